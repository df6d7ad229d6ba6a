"""Drawings of the page as SVG with attributes only: the policy of the page forbids style attributes.

Colours are those of the reports (`report/page.css`), by name, so that they follow light and dark mode. Each drawing has
a text alternative; the numbers are also in a table or list beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from surveyor.report.charts import COLORS, SMALL, squarified
from surveyor.report.numbers import counted, percent, printable, tiny
from surveyor.report.survey_html import ACCOUNTS

WIDTH, HEIGHT = 720, 300  # of a chart
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 14, 42  # margins of a chart
TICKS = 5
POINTS = 400  # of one line
MAP_WIDTH, MAP_HEIGHT = 1000, 500  # of a treemap, twice as wide as high
LETTER = 7.2  # width of a letter of a treemap
GRAPH = 900  # side of a graph
LABEL, LABELS = 28, 24  # letters of a label of a graph, number of labels
DASHES = ("", "6 4", "2 3", "8 3 2 3")

Points = Sequence[tuple[float, float]]


def text(value: object) -> str:
    """Escape text from the web."""
    return str(escape(printable(str(value))))


def _svg(kind: str, size: tuple[int, int], role: str, label: str, parts: Iterable[str]) -> Markup:
    """Return a drawing from parts whose texts are escaped already."""
    box = f'viewBox="0 0 {size[0]} {size[1]}" role="{role}" aria-label="{text(label)}"'
    return Markup(f'<svg class="{kind}" {box}>{"".join(parts)}</svg>')  # noqa: S704


def mass(accounts: Mapping[str, float], goal: float | None = None) -> Markup:
    """Draw the five accounts of importance as one bar, with the goal as a mark."""
    shares = {name: max(0.0, float(accounts.get(name) or 0.0)) for name in ACCOUNTS}
    total, at, parts = sum(shares.values()) or 1.0, 0.0, []
    for name, share in shares.items():
        width = 1000 * share / total
        parts.append(
            f'<rect x="{at:.2f}" width="{width:.2f}" height="40" fill="var(--{ACCOUNTS[name][0]})">'
            f"<title>{name} {100 * share:.2f} %</title></rect>"
        )
        at += width
    if goal is not None:
        parts.append(f'<rect class="goal" x="{1000 * goal - 1.5:.1f}" y="-6" width="3" height="52"/>')
    label = ", ".join(f"{name} {100 * share:.2f} %" for name, share in shares.items())
    mark = f"; goal {100 * goal:.10g} %" if goal is not None else ""
    return Markup(  # noqa: S704  # numbers and names of ours
        f'<svg class="mass" viewBox="0 -6 1000 52" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}{mark}">{"".join(parts)}</svg>'
    )


def swatch(account: str) -> Markup:
    """Draw the colour of an account."""
    color = ACCOUNTS[account][0]
    return Markup(  # noqa: S704
        f'<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10" rx="2" '
        f'fill="var(--{color})"/></svg>'
    )


def bar(share: float | None, most: float = 1.0, color: str = "one") -> Markup:
    """Draw a share as a bar beside its number."""
    part = 0.0 if not share or most <= 0 else min(1.0, max(0.0, share / most))
    width = max(0.8, 100 * part) if part else 0.0
    return Markup(  # noqa: S704
        f'<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect width="{width:.2f}" '
        f'height="6" rx="1" fill="var(--{color})"/></svg>'
    )


def interval(low: float, high: float, value: float | None = None) -> Markup:
    """Draw an interval of shares, and the estimate in it."""
    left, right = 100 * max(0.0, low), 100 * min(1.0, high)
    mark = "" if value is None else f'<rect x="{100 * value - 0.4:.2f}" width="0.8" height="10" fill="var(--ink)"/>'
    return Markup(  # noqa: S704
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect y="4" width="100" height="2" fill="var(--grid)"/>'
        f'<rect x="{left:.2f}" y="2" width="{max(0.6, right - left):.2f}" height="6" fill="var(--one)"/>{mark}</svg>'
    )


def lines(
    series: Mapping[str, Points],
    *,
    label: str,
    x_title: str,
    goal: float | None = None,
    shares: bool = True,
    log_x: bool = False,
) -> Markup:
    """Draw named lines over a count: each has a colour and a dash pattern, and its name at its end."""
    shown = {
        name: _thin([(x, y) for x, y in points if _drawable(x, y, log_x=log_x)]) for name, points in series.items()
    }
    every = [point for points in shown.values() for point in points]
    if not every:
        return Markup("")
    low_x, high_x = min(x for x, _ in every), max(x for x, _ in every)
    if high_x == low_x:
        high_x = low_x + 1
    high_y = 1.0 if shares else max(y for _, y in every) or 1.0
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def across(x: float) -> float:
        if log_x:
            return LEFT + wide * math.log(x / low_x) / math.log(high_x / low_x)
        return LEFT + wide * (x - low_x) / (high_x - low_x)

    def up(y: float) -> float:
        return TOP + high * (1 - min(y, high_y) / high_y)

    parts = []
    for step in range(TICKS + 1):
        value = high_y * step / TICKS
        name = f"{100 * value:.0f} %" if shares else _short_number(value)
        y = up(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
    floor = HEIGHT - BOTTOM + 18
    parts += [
        f'<text x="{across(value):.1f}" y="{floor}" text-anchor="middle">{_short_number(value)}</text>'
        for value in _ticks(low_x, high_x, log=log_x)
    ]
    parts.append(
        f'<text x="{LEFT + wide / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle" class="soft">{text(x_title)}</text>'
    )
    if goal is not None and shares:
        y = up(goal)
        parts.append(f'<line class="goal-line" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    for place, points in enumerate(shown.values()):
        if points:
            path = "M" + "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in points)
            dash = DASHES[place % len(DASHES)]
            parts.append(
                f'<path d="{path}" fill="none" stroke="var(--{COLORS[place % len(COLORS)]})" stroke-width="2.2"'
                + (f' stroke-dasharray="{dash}"' if dash else "")
                + "/>"
            )
    return _svg("chart", (WIDTH, HEIGHT), "img", label, parts) + _legend(list(shown), goal if shares else None)


def _legend(names: Sequence[str], goal: float | None) -> Markup:
    keys = []
    for place, name in enumerate(names):
        dash = DASHES[place % len(DASHES)]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        keys.append(
            f'<li><svg viewBox="0 0 24 8" aria-hidden="true"><line x1="0" x2="24" y1="4" y2="4" stroke-width="2.5" '
            f'stroke="var(--{COLORS[place % len(COLORS)]})"{dashed}/></svg>{text(name)}</li>'
        )
    if goal is not None:
        line = '<line class="goal-line" x1="0" x2="24" y1="4" y2="4"/>'
        keys.append(f'<li><svg viewBox="0 0 24 8" aria-hidden="true">{line}</svg>goal {100 * goal:.10g} %</li>')
    return Markup(f'<ul class="legend">{"".join(keys)}</ul>')  # noqa: S704  # names are escaped


def _drawable(x: float, y: float, *, log_x: bool) -> bool:
    return math.isfinite(x) and math.isfinite(y) and (x > 0 or not log_x)


def _thin(points: Points) -> Points:
    step = len(points) / POINTS
    if step <= 1:
        return points
    return [*(points[int(place * step)] for place in range(POINTS)), points[-1]]


def _ticks(low: float, high: float, *, log: bool) -> Iterable[float]:
    if log:
        powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        return [10.0**power for power in powers] or [low, high]
    step = 10 ** math.floor(math.log10((high - low) or 1))
    while (high - low) / step > TICKS + 1:
        step *= 2 if (high - low) / step < 12 else 2.5
    return [value * step for value in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _short_number(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value:,.0f}" if value >= 10 or value == round(value) else tiny(value)


def treemap(boxes: Sequence[Mapping[str, Any]], *, label: str) -> Markup:
    """Draw boxes with `name`, `share`, `pages` and perhaps `href` and `color`: the area of a box is its share."""
    shown = [one for one in sorted(boxes, key=lambda one: -one["share"]) if one["share"] > 0]
    total = sum(one["share"] for one in shown)
    shown = [one for one in shown if one["share"] > SMALL * total]
    if not shown:
        return Markup("")
    parts = []
    for place, (one, box) in enumerate(zip(shown, squarified([one["share"] for one in shown]), strict=True)):
        x, y = MAP_WIDTH * box.left, MAP_HEIGHT * box.top
        width, height = MAP_WIDTH * box.width, MAP_HEIGHT * box.height
        color = COLORS[one.get("color", place) % len(COLORS)]
        title = f"{text(one['name'])}: {percent(one['share'])}, {counted(one['pages'], 'page')}"
        inside = (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" fill="var(--{color})"/>'
        )
        letters = int((width - 12) / LETTER)
        if letters >= 3 and height >= 18:
            name = str(one["name"])
            name = name if len(name) <= letters else f"{name[: letters - 1]}…"
            kind = "" if letters >= 24 else ' class="small-box"'
            inside += f'<text x="{x + 6:.1f}" y="{y + 16:.1f}"{kind}>{text(name)}</text>'
            if height >= 36 and letters >= 7:
                inside += f'<text x="{x + 6:.1f}" y="{y + 32:.1f}" class="soft">{percent(one["share"])}</text>'
        body = f"<g><title>{title}</title>{inside}</g>"
        parts.append(f'<a href="{text(one["href"])}">{body}</a>' if one.get("href") else body)
    return _svg("treemap", (MAP_WIDTH, MAP_HEIGHT), "group", label, parts)


def graph(nodes: Sequence[Mapping[str, Any]], links: Sequence[tuple[int, int, float]], *, label: str) -> Markup:
    """Draw a graph from nodes with `x`, `y` (0 to 1), `name`, `share`, `color` and `href`, and weighted links."""
    if not nodes:
        return Markup("")
    most = max(one["share"] for one in nodes) or 1.0
    heaviest = max((weight for _, _, weight in links), default=1.0) or 1.0
    place = [(40 + (GRAPH - 80) * one["x"], 40 + (GRAPH - 80) * one["y"]) for one in nodes]
    parts = []
    for source, target, weight in links:
        (x1, y1), (x2, y2) = place[source], place[target]
        opacity = 0.12 + 0.5 * math.sqrt(weight / heaviest)
        parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke-opacity="{opacity:.2f}"/>')
    named = _labelled(nodes, place, most)
    for number, (one, (x, y)) in enumerate(zip(nodes, place, strict=True)):
        radius = _radius(one["share"], most)
        title = f"{text(one['name'])}: {percent(one['share'])}, {counted(one['pages'], 'page')}"
        body = (
            f'<title>{title}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" '
            f'fill="var(--{COLORS[one["color"] % len(COLORS)]})"/>'
        )
        if number in named:
            left, anchor = _label_place(x, radius)
            body += f'<text x="{left:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{text(_label(one["name"]))}</text>'
        parts.append(f'<a href="{text(one["href"])}">{body}</a>' if one.get("href") else f"<g>{body}</g>")
    return _svg("graph", (GRAPH, GRAPH), "group", label, parts)


def _radius(share: float, most: float) -> float:
    return 3 + 22 * math.sqrt(share / most)


def _label(name: object) -> str:
    label = str(name)
    return label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"


def _label_place(x: float, radius: float) -> tuple[float, str]:
    return (x - radius - 4, "end") if x > GRAPH * 0.7 else (x + radius + 4, "start")


def _labelled(nodes: Sequence[Mapping[str, Any]], place: Points, most: float) -> set[int]:
    """Return the nodes that get a label: the best ones, as far as their labels do not overlap."""
    taken: list[tuple[float, float, float]] = []
    chosen = set[int]()
    for node in sorted(range(len(nodes)), key=lambda node: -nodes[node]["share"])[: 2 * LABELS]:
        x, y = place[node]
        at, anchor = _label_place(x, _radius(nodes[node]["share"], most))
        width = LETTER * len(_label(nodes[node]["name"]))
        left = at - width if anchor == "end" else at
        if len(chosen) < LABELS and all(
            abs(y - other) > 15 or left > end or left + width < start for start, end, other in taken
        ):
            chosen.add(node)
            taken.append((left, left + width, y))
    return chosen


def scatter(points: Sequence[Mapping[str, Any]], *, x_title: str, y_title: str, label: str) -> Markup:
    """Draw points with `x` and `y` from 0 to 100, `name` and `heat` from 0 to 1 (drawn as colour and shape)."""
    wide, high, parts = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, []
    for step in range(TICKS + 1):
        value = 100 * step / TICKS
        y, x = TOP + high * (1 - value / 100), LEFT + wide * value / 100
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.0f}</text>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:.0f}</text>')
    for one in points:
        x, y = LEFT + wide * one["x"] / 100, TOP + high * (1 - one["y"] / 100)
        color = "two" if one.get("heat", 0.0) >= 0.5 else "one"
        shape = (
            f'<path d="M{x:.1f} {y - 6:.1f}l6 11h-12z" fill="var(--two)"/>'
            if color == "two"
            else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="var(--one)"/>'
        )
        parts.append(f"<g><title>{text(one['name'])}</title>{shape}</g>")
    parts.append(
        f'<text x="{LEFT + wide / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle" class="soft">{text(x_title)}</text>'
        f'<text x="14" y="{TOP + high / 2:.0f}" text-anchor="middle" class="soft" '
        f'transform="rotate(-90 14 {TOP + high / 2:.0f})">{text(y_title)}</text>'
    )
    return _svg("chart", (WIDTH, HEIGHT), "img", label, parts)


def spark(values: Sequence[float], label: str) -> Markup:
    """Draw a small line without axes."""
    most = max(values, default=0.0)
    if len(values) < 2 or most <= 0:
        return Markup("")
    step = 100 / (len(values) - 1)
    path = "M" + "L".join(f"{place * step:.1f} {29 - 28 * value / most:.1f}" for place, value in enumerate(values))
    return Markup(  # noqa: S704
        f'<svg class="spark" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label="{text(label)}">'
        f'<path d="{path}" fill="none" stroke="var(--one)" vector-effect="non-scaling-stroke"/></svg>'
    )
