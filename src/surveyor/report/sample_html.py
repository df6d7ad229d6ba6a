"""A sample as one HTML file: what it tells of the pages on its topic, and how far to trust that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surveyor.report import html_page, samples
from surveyor.report.numbers import count, percent, printable
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from surveyor.estimate.sampling.diagnostics import Diagnostics
    from surveyor.estimate.sampling.sample_result import Sample
    from surveyor.report.sample_plots import Drawn
    from surveyor.report.samples import Breakdown, Statistic

DIAGNOSED = (
    "Effective: as many independent uniform pages would tell as much. R-hat: near 1 if all walks are about the same "
    "pages. Geweke's z: how far the beginning of the walks lies from their end, within ±2 if they have settled."
)
PAGES, ROWS = 200, 30  # sampled pages and categories at most


@dataclass(frozen=True, slots=True)
class SampleReport:
    """What the report of a sample tells."""

    sample: Sample
    source: str  # where the walks went, in words
    command: str  # that makes it again
    statistics: Sequence[Statistic] = ()
    breakdowns: Sequence[Breakdown] = ()
    draws: Sequence[str] = ()
    figures: Mapping[str, Drawn] | None = None
    failed: Sequence[str] = ()  # why something that was asked for is not told


def write_report(report: SampleReport, path: str | Path) -> Path:
    """Write the report as one file."""
    return html_page.write(render(report), path)


def render(report: SampleReport) -> str:
    """Return the report as HTML."""
    sample = report.sample
    ess, rhat = samples.worth(sample)
    told = sample.diagnostics if sample.has_estimates else None
    parts = [
        '<p class="soft">A uniform sample of the pages on a topic, by random walks whose steps are weighted.</p>',
        html_page.facts({
            "pages on topic met": count(sample.distinct_pages),
            "pages asked for": count(sample.fetches),
            "effective sample size": count(ess),
            "R-hat": "-" if math.isnan(rhat) else f"{rhat:.3f}",
            "in-links": samples.share_told(sample),
        }),
        *(f"<p><b>!</b> {html_page.text(line[0].upper() + line[1:])}.</p>" for line in (*sample.notes, *report.failed)),
        *_statistics(report),
        *_figures(report),
        *_breakdowns(report),
        *_pages(sample),
        *_draws(report),
        "<h2>How far to trust it</h2>",
        *(f"<p>{html_page.text(line)}</p>" for line in samples.UNCERTAIN),
        *([] if told is None else [html_page.grid(_diagnosed(told), DIAGNOSED)]),
        *_method(report, told),
    ]  # fmt: skip
    return html_page.document(f"Sample of {sample.topic}", parts)


def _statistics(report: SampleReport) -> list[str]:
    if not report.statistics:
        return []
    about = "Each interval is meant to hold the truth in 95 of 100 such samples; how far that goes is told below."
    return ["<h2>Estimates</h2>", html_page.grid(samples.table(report.statistics), about)]


def _figures(report: SampleReport) -> list[str]:
    if not report.figures:
        return []
    drawn = [html_page.figure(one.svg, f"{one.title}.", one.about) for one in report.figures.values()]
    return ["<h2>Curves</h2>", '<div class="figures">', *drawn, "</div>"]


def _breakdowns(report: SampleReport) -> list[str]:
    parts = []
    for one in report.breakdowns:
        more = len(one.found.labels) - ROWS
        about = "Shares of the pages on topic; each interval is for its row alone."
        about += f" {more:,} more are left out here." if more > 0 else ""
        parts += [f"<h2>By {html_page.text(one.of)}</h2>", html_page.grid(samples.categories_table(one, ROWS), about)]
    return parts


def _pages(sample: Sample) -> list[str]:
    told = sample.pages()
    if not told["url"]:
        return []
    best = sorted(range(len(told["url"])), key=lambda row: (-told["weight"][row], told["url"][row]))[:PAGES]
    cells = [
        [percent(told["weight"][row]), count(told["visits"][row]), f"{told['degree'][row]:,.0f}",
         printable(told["url"][row])]
        for row in best
    ]  # fmt: skip
    about = (
        f"{count(len(cells))} of {count(len(told['url']))} pages, those that count most. Weight: how much a page "
        "counts, of 100 % in all; visits: steps of walks on it; degree: its neighbours when a walk first drew from it."
    )
    return [
        "<h2>Sampled pages</h2>",
        html_page.grid(Table(["weight", "visits", "degree", "page"], cells, (), ()), about, links=True),
    ]


def _draws(report: SampleReport) -> list[str]:
    if not report.draws:
        return []
    cells = [[count(place), printable(url)] for place, url in enumerate(report.draws[:PAGES], 1)]
    about = "Pages drawn so that each page on topic is as likely as any other; one may come more than once."
    return ["<h2>Pages drawn</h2>", html_page.grid(Table(["", "page"], cells, (), ()), about, links=True)]


def _diagnosed(told: Diagnostics) -> Table:
    cells = [
        [count(told.ess[name]), _known(told.rhat[name], 3), _known(told.geweke[name], 1), printable(name)]
        for name in told.ess
    ]
    return Table(["effective", "R-hat", "Geweke's z", "looked at"], cells, (), ())


def _known(number: float, digits: int) -> str:
    return f"{number:.{digits}f}" if math.isfinite(number) else "-"


def _method(report: SampleReport, told: Diagnostics | None) -> list[str]:
    sample = report.sample
    values = {
        "walked over": report.source,
        **{name: value for name, value in samples.facts(sample).items() if name not in ("R-hat",)},
        **_walked(told),
        "random seed": str(sample.rng),
        "made with": html_page.GENERATOR,
    }  # fmt: skip
    return html_page.method(values, report.command)


def _walked(told: Diagnostics | None) -> dict[str, str]:
    if told is None:
        return {}
    return {
        "jumps out of traps": count(told.jumps),
        "steps left out at the beginning": count(told.burn_in_steps),
        "neighbours of a page": (
            f"{told.mean_degree_of_steps:,.1f} on average over steps, "
            f"{told.mean_degree_of_pages:,.1f} over pages on topic"
        ),
    }
