"""Charts of plain HTML for reports: bars, and a treemap. They need no script and follow light and dark mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from surveyor.report.html_page import text
from surveyor.report.numbers import counted, percent
from surveyor.survey.overview import DEEPEST, Folder, Overview

ASPECT = 2.0  # width of a treemap divided by its height
COLORS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
SMALL = 0.0005  # share of a treemap below which a box is left out
NAMED = 0.016, 0.09  # width of a box for each character of its name, and height, from which on it is labelled


class Box(NamedTuple):
    """A box of a treemap, in fractions of its width and height."""

    left: float
    top: float
    width: float
    height: float


def overview_parts(overview: Overview) -> list[str]:
    """Return the charts of a site: depth, status, importance by folder."""
    depths = {_depth(depth): count for depth, count in overview.depths.items()}
    parts = [
        "<h2>Shape of the site</h2>",
        '<div class="figures">',
        bars("Fetched pages by depth.", "Number of links from the nearest seed.", depths),
        bars("URLs by status.", "Known URLs in scope.", overview.statuses),
        "</div>",
    ]
    if len(overview.folders) > 1:
        about = "Area: importance of the pages in it."
        parts.append(treemap("Importance by folder.", about, overview.folders))
    return parts


def _depth(depth: int) -> str:
    if depth < 0:
        return "unknown"
    return f"{depth} or more" if depth == DEEPEST else str(depth)


def bars(title: str, about: str, values: Mapping[str, int]) -> str:
    """Return a bar chart with a label and the number at each bar."""
    most = max(values.values(), default=0) or 1
    rows = "".join(
        f"<tr><th>{text(name)}</th>"
        f'<td class="track"><span class="bar" style="width:{100 * value / most:.2f}%"></span></td>'
        f"<td>{value:,}</td></tr>\n"
        for name, value in values.items()
    )
    caption = f"<figcaption><b>{text(title)}</b> {text(about)}</figcaption>"
    return f'<figure><table class="bars"><tbody>{rows}</tbody></table>{caption}</figure>'


def treemap(title: str, about: str, folders: Sequence[Folder]) -> str:
    """Return a treemap of folders; names and numbers are in the titles of its boxes, and shown in large ones."""
    shown = [one for one in sorted(folders, key=lambda one: -one.share) if one.share > 0]
    total = sum(one.share for one in shown)
    shown = [one for one in shown if one.share > SMALL * total]
    boxes = squarified([one.share for one in shown])
    tops = list(dict.fromkeys(_top(one.name) for one in shown))
    parts = []
    for one, box in zip(shown, boxes, strict=True):
        color = COLORS[tops.index(_top(one.name)) % len(COLORS)]
        label = f"{one.name}: {percent(one.share)}, {counted(one.pages, 'page')}"
        place = ";".join(
            f"{side}:{100 * value:.2f}%" for side, value in zip(("left", "top", "width", "height"), box, strict=True)
        )
        fits = box.width >= NAMED[0] * (len(one.name) + 1) and box.height >= NAMED[1]
        inside = f"<b>{text(one.name)}</b> {percent(one.share)}" if fits else ""
        parts.append(f'<div style="{place};--box:var(--{color})" title="{text(label)}">{inside}</div>')
    caption = f"<figcaption><b>{text(title)}</b> {text(about)}</figcaption>"
    return f'<figure class="map"><div class="treemap">{"".join(parts)}</div>{caption}</figure>'


def _top(name: str) -> str:
    return name.strip("/").partition("/")[0]


def squarified(weights: Sequence[float]) -> list[Box]:
    """Divide a rectangle into boxes with areas in proportion to descending weights, each as square as possible.

    The method of Bruls, Huizing and van Wijk (2000): a row takes boxes along the shorter side as long as that makes
    its longest box more square.

    >>> [tuple(round(part, 2) for part in box) for box in squarified([2.0, 1.0, 1.0])]
    [(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 0.5, 0.5), (0.5, 0.5, 0.5, 0.5)]
    """
    total = sum(weights)
    areas = [ASPECT * weight / total for weight in weights]
    left, top, width, height = 0.0, 0.0, ASPECT, 1.0
    found: list[Box] = []
    while len(found) < len(areas):
        side = min(width, height)
        row = [areas[len(found)]]
        for area in areas[len(found) + 1 :]:
            if _worst([*row, area], side) > _worst(row, side):
                break
            row.append(area)
        depth = min(sum(row) / side, max(width, height))
        at = 0.0
        for area in row:
            length = area / depth if depth else 0.0
            box = Box(left, top + at, depth, length) if width >= height else Box(left + at, top, length, depth)
            found.append(Box(box.left / ASPECT, box.top, box.width / ASPECT, box.height))
            at += length
        if width >= height:
            left, width = left + depth, width - depth
        else:
            top, height = top + depth, height - depth
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """Return the greatest ratio of the sides of the boxes of a row."""
    total = sum(row)
    return max(max(side**2 * area / total**2, total**2 / (side**2 * area)) for area in row)
