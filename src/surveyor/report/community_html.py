"""The report of a community as one HTML file, and its figures as SVG: changes of the ranks, and convergence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surveyor.report import communities, html_page
from surveyor.report.numbers import at_most, count, counted, duration, printable, tiny
from surveyor.report.svg import INK, ONE, SIZE, TWO, figure, lines_plot

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from surveyor.arrays import FloatArray, IntArray
    from surveyor.estimate.community.community_rank import CommunityRank

POINTS = 3000  # drawn at most: more overlap, and make the file large
LABELS, LINE = 7, 0.055  # labelled pages; the height of a label as a share of the axis
MAX_TICKS = 7
LABEL_LENGTH = 30
GAP = 12  # points between two figures
PAGES, CHANGES, MOVERS = 200, 20, 20  # rows at most
UNCERTAIN = (
    "The error of an estimate of global rank cannot be bounded without fetching the whole web: a page that was not "
    "fetched may link to local pages and have a high rank. So no bound is stated.",
    "Nor is a standard error stated. The spread of the estimates without some of the fetched pages does not predict "
    "the true error: where the whole web is known, it was from far too small to far too large. The change "
    "of the ranks in the last rounds and the distance between the crawled and the frontier estimate show how much "
    "unfetched pages matter to the method, not how much they matter.",
)


@dataclass(frozen=True, slots=True)
class CommunityReport:
    """The contents of the report of a community."""

    title: str
    result: CommunityRank
    rule: str  # that selects the local pages
    source: str  # description
    command: str  # that writes the report again
    plots: bool = True


def write_report(report: CommunityReport, path: str | Path) -> Path:
    """Write the report as one file."""
    return html_page.write(render(report), path)


def render(report: CommunityReport) -> str:
    """Return the report as HTML."""
    result = report.result
    parts = [
        '<p class="soft">The local rank uses only links among local pages. The estimated global rank also uses links '
        "of the pages outside that affect the local pages most.</p>",
        html_page.facts(_key_figures(result)),
        *(
            f"<p>{html_page.text(line[0].upper() + line[1:])}.</p>"
            for line in [*communities.lines(result, report.rule), *result.notes]
        ),
        *(_figures(result) if report.plots else []),
        *_pages(result),
        *_movers(result),
        *_truth(result),
        "<h2>Uncertainty</h2>",
        *(f"<p>{line}</p>" for line in UNCERTAIN),
        *_method(report),
    ]
    return html_page.document(report.title, parts)


def _key_figures(result: CommunityRank) -> dict[str, str]:
    figures = {
        "local pages": count(result.pages.size),
        "pages fetched outside": count(result.fetched),
        "distance from local rank (L1)": f"{result.distance:.3f}",
    }
    if result.truth is not None:
        figures["distance from the true rank (L1)"] = f"{result.compare().l1:.3f}"
    return figures


def _figures(result: CommunityRank) -> list[str]:
    figures = [
        html_page.figure(
            changes_plot(result),
            "Estimated global share relative to local share.",
            "Each dot is a local page; pages above the line gain. The largest changes are labelled.",
        )
    ]
    if len(result.rounds) > 1:
        truth = (
            " Also the distance of the crawled estimate from the true rank at the start of each round."
            if result.errors
            else ""
        )
        about = f"L1 change of the local ranks in each round; rounds without a change are omitted.{truth}"
        figures.append(html_page.figure(convergence_plot(result), "Convergence of the ranks.", about))
    return ["<h2>Figures</h2>", '<div class="figures">', *figures, "</div>"]


def _pages(result: CommunityRank) -> list[str]:
    about = (
        f"The first {count(min(PAGES, result.pages.size))} of {counted(result.pages.size, 'local page')} by estimated "
        "global rank; local: the position by local rank; change: positions gained or lost. Shares are of the local "
        "pages' rank alone and sum to 100 %."
    )
    return [
        "<h2>Local pages</h2>",
        html_page.grid(communities.local_table(result.top(PAGES)), about, links=True),
        "<h2>Largest changes</h2>",
        html_page.grid(
            communities.local_table(result.largest_changes(CHANGES)),
            "Pages whose estimated share differs most from their local share.",
            links=True,
        ),
    ]


def _movers(result: CommunityRank) -> list[str]:
    movers = result.movers(count=MOVERS)
    if not movers:
        return [
            "<h2>Outside pages with the largest effect</h2>",
            "<p>No fetched page outside links to a local page.</p>",
        ]
    table = communities.movers_table(result, movers)
    about = f"{communities.movers_line()}."
    return ["<h2>Outside pages with the largest effect</h2>", html_page.grid(table, about, links=True)]


def _truth(result: CommunityRank) -> list[str]:
    if result.truth is None:
        return []
    about = (
        "L1 distance from the true rank: 0 is equal, 2 is disjoint. Kendall: 1 is the same order; weighted: with most "
        "weight on the top. Top: share of pages common to the top of both lists."
    )
    impacts = communities.impact_table(result, MOVERS)
    return [
        "<h2>Comparison with the true rank</h2>",
        html_page.grid(communities.truth_table(result), about),
        "<h2>Impact of outside pages by their true rank</h2>",
        html_page.grid(impacts, f"{communities.impact_line(result)}.", links=True),
    ]


def _method(report: CommunityReport) -> list[str]:
    result = report.result
    values = {
        "source": report.source,
        "local pages": f"{count(result.pages.size)} by {report.rule}",
        "pages outside": f"{count(result.extra.size)} requested, {count(result.fetched)} fetched",
        "selected by": f"{result.select}, in {counted(max(len(result.rounds) - 1, 0), 'round')}",
        "ending": result.ending,
        "estimator": communities.estimator(result).removeprefix("estimator: "),
        "solver error": at_most(result.estimate.error),
        "damping": tiny(result.damping),
        "random seed": str(result.rng),
        "time": duration(result.rounds[-1].seconds) if result.rounds else "",
        "created with": html_page.GENERATOR,
    }
    return html_page.method(values, report.command)


def convergence_plot(result: CommunityRank) -> str:
    """Plot the change of the ranks in each round and, if known, the distance from the true rank."""
    rounds = result.rounds[1:]
    series = {"change in a round": ([one.fetched for one in rounds], [one.change for one in rounds])}
    if result.errors:
        series["distance from the true rank"] = ([one.fetched for one in result.rounds], list(result.errors))
    return lines_plot(
        series,
        x_title="pages fetched outside",
        y_title="L1 distance",
        label="change of the ranks of the local pages in each round",
        log_y=True,
    )


def changes_plot(result: CommunityRank) -> str:
    """Plot the ratio of the estimated to the local share of each page; label the largest changes."""
    shown, times = _spaced(result), result.scores / result.local_scores
    low, high = float(times.min()), float(times.max())
    ends = (min(low, 0.95) / 1.1, max(high, 1.05) * 1.1)
    across = (float(result.local_scores.min()) / 1.3, float(result.local_scores.max()) * 1.3)

    def draw(axes: Axes) -> None:
        axes.loglog(across, (1, 1), color=INK, linewidth=0.8)
        axes.plot(result.local_scores[shown], times[shown], "o", color=ONE, markersize=3, alpha=0.55, markeredgewidth=0)
        for entry, left in _named(result, times, ends, across):
            at = float(result.local_scores[entry]), float(times[entry])
            axes.plot(*at, "o", color=TWO, markersize=4.5)
            axes.annotate(
                _short(result, entry),
                at,
                xytext=(-7 if left else 7, 0),
                textcoords="offset points",
                fontsize=8,
                color=INK,
                ha="right" if left else "left",
                va="center",
                annotation_clip=True,
            )
        axes.set_xlim(across)
        axes.set_ylim(ends)
        axes.set_xlabel("local share")
        axes.set_ylabel("estimated share / local share")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.12f}".rstrip("0").rstrip(".") + " %")
        axes.set_yticks(_ticks(*ends))
        axes.yaxis.set_major_formatter(lambda value, _: f"× {value:.3g}")

    label = "ratio of the estimated global share to the local share of each local page"
    return figure(draw, label, label, (SIZE[0], SIZE[1] * 1.15))


def _ticks(low: float, high: float) -> list[float]:
    """Choose round factors that cover a range, including 1: the finest scale with at most MAX_TICKS ticks.

    >>> _ticks(0.45, 1.7), _ticks(0.9, 40.0)
    ([0.5, 0.7, 1.0, 1.4], [1.0, 2.0, 5.0, 10.0, 20.0])
    """
    powers = [10.0**power for power in range(-12, 13)]
    scales = (
        [0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4],
        [0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0],
        [number * power for power in powers for number in (1, 2, 5)],
        powers,
    )
    ticks = [[factor for factor in scale if low <= factor <= high] for scale in scales]
    fits = (
        factors
        for scale, factors in zip(scales, ticks, strict=True)
        if len(factors) <= MAX_TICKS and scale[0] <= low * 1.3 and scale[-1] >= high / 1.3
    )
    return next(fits, ticks[-1])


def both_plots(result: CommunityRank) -> str:
    """Return both figures as one: the changes above, the convergence below."""
    parts = [changes_plot(result), *([convergence_plot(result)] if len(result.rounds) > 1 else [])]
    sizes = [[float(number) for number in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', part)[0]] for part in parts]
    top, inner = 0.0, []
    for part, (width, height) in zip(parts, sizes, strict=True):
        placed = f'<svg y="{top:g}" width="{width:g}" height="{height:g}" viewBox='
        inner.append(part.replace("<svg viewBox=", placed, 1))
        top += height + GAP
    wide = max(width for width, _ in sizes)
    head = f'<svg viewBox="0 0 {wide:g} {top - GAP:g}" xmlns:xlink="http://www.w3.org/1999/xlink">'
    return "\n".join([head, *inner, "</svg>"])


def _spaced(result: CommunityRank) -> IntArray:
    """Choose the points to draw: all, or if there are many the best and an even selection of the rest."""
    order = np.argsort(-np.maximum(result.local_scores, result.scores), kind="stable")
    if order.size <= POINTS:
        return order
    best, rest = order[: POINTS // 2], order[POINTS // 2 :]
    step = -(-rest.size // (POINTS // 2))
    return np.concatenate([best, rest[::step]])


def _named(
    result: CommunityRank, times: FloatArray, ends: tuple[float, float], across: tuple[float, float]
) -> list[tuple[int, bool]]:
    """Choose the largest changes whose labels do not overlap, and the side of each label (True: left)."""
    by_change = np.argsort(-np.abs(result.scores - result.local_scores), kind="stable")[: 10 * LABELS]
    chosen: list[tuple[int, bool]] = []
    taken: list[float] = []
    for entry in by_change.tolist():
        up = _part(float(times[entry]), ends)
        if times[entry] != 1 and all(abs(up - other) > LINE for other in taken):
            chosen.append((entry, _part(float(result.local_scores[entry]), across) > 0.5))
            taken.append(up)
        if len(chosen) == LABELS:
            break
    return chosen


def _part(value: float, ends: tuple[float, float]) -> float:
    """Return the position of a value on a logarithmic axis, from 0 to 1."""
    return float(np.log(value / ends[0]) / np.log(ends[1] / ends[0]))


def _short(result: CommunityRank, entry: int) -> str:
    """Return the end of a name, which distinguishes pages of one site."""
    name = result.name(int(result.pages[entry]))
    shown = printable(re.sub(r"^\w+://([^/]*(?=/.))?", "", name))
    return shown if len(shown) <= LABEL_LENGTH else f"…{shown[-LABEL_LENGTH:]}"
