"""A race as one HTML file. The same race gives the same bytes, but for the times that were measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from surveyor.report import html_page
from surveyor.report.numbers import amount, at_most, count, counted
from surveyor.report.race import COVERAGE, NONE, comparison, facts, guaranteed_table, shortfalls, true_table
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from pathlib import Path

    from surveyor.simulation.race import Race


@dataclass(frozen=True, slots=True)
class RaceReport:
    """What the report of a race tells."""

    title: str
    race: Race
    command: str  # that runs the race again
    plots: bool = True


def write_report(report: RaceReport, path: str | Path) -> Path:
    """Write the report as one file."""
    return html_page.write(render(report), path)


def render(report: RaceReport) -> str:
    """Return the report as HTML."""
    race = report.race
    there = sum(run.reached for run in race.runs)
    parts = [
        f'<p class="soft">{counted(len(race.runs), "strategy", "strategies")} crawled the same web, each in its '
        f"own order, until {html_page.text(race.until)}.</p>",
        html_page.facts({
            "pages": count(race.pages),
            "links": count(race.links),
            "seeds": count(race.seeds.size),
            "damping": f"{race.damping:g}",
            "reached the goal": f"{count(there)} of {count(len(race.runs))}",
        }),
        f"<p>{html_page.text(comparison(race))}</p>",
        *(f"<p>{html_page.text(line)}.</p>" for line in shortfalls(race)),
        *(_figures(race) if report.plots else []),
        *_tables(race),
        "<h2>What coverage means</h2>",
        f"<p>{html_page.text(COVERAGE)}</p>",
        *_method(report),
    ]  # fmt: skip
    return html_page.document(report.title, parts)


def _figures(race: Race) -> list[str]:
    from surveyor.report.race_plots import coverage_plot, error_plot, gap_plot, order_plot

    figures = [
        html_page.figure(
            coverage_plot(race),
            "Importance captured.",
            "Solid: the truth, which only a simulation knows. Dashed: what the crawl could guarantee at that "
            "moment. No order of reading can lie above the thin line.",
        ),
        html_page.figure(
            gap_plot(race),
            "What was still uncertain.",
            "How far the upper bound of coverage lay above the lower one.",
        ),
    ]
    if any(run.samples for run in race.runs):
        figures += [
            html_page.figure(
                error_plot(race),
                "Error of the estimates.",
                "Estimated against true importance: absolute differences, summed over all pages.",
            ),
            html_page.figure(
                order_plot(race),
                "Order of the estimates.",
                "Kendall's correlation with the true order, over the pages that matter most; 1 is the same order.",
            ),
        ]
    return ["<h2>Curves</h2>", '<div class="figures">', *figures, "</div>"]


def _tables(race: Race) -> list[str]:
    return [
        "<h2>Reads until a share was certain</h2>",
        html_page.grid(
            guaranteed_table(race),
            "Pages read until the crawl could guarantee that it held this share; the bounds of coverage at the end; "
            "the time of ordering and bookkeeping.",
        ),
        "<h2>Reads until a share was captured</h2>",
        html_page.grid(true_table(race), "Pages read until the crawl held this share, whether it knew or not."),
        "<h2>Accounts at the end</h2>",
        html_page.grid(
            _accounts(race),
            "All importance is in one of five accounts: captured, moving (on a page read, not yet passed on), "
            "waiting (on a known page not read), blocked, or lost. They sum to 100 %.",
        ),
    ]


def _accounts(race: Race) -> Table:
    names = ("captured", "moving", "waiting", "blocked", "lost")
    records = [[getattr(run.coverage, name) for name in names] for run in race.runs]
    cells = [
        (
            *(f"{abs(100 * share):.2f} %" for share in shares),
            count(run.reads),
            count(run.requests),
            NONE if run.link_updates_per_second is None else amount(run.link_updates_per_second),
            run.strategy,
        )
        for run, shares in zip(race.runs, records, strict=True)
    ]
    return Table((*names, "reads", "requests", "link updates/s", "strategy"), cells, names, records)


def _method(report: RaceReport) -> list[str]:
    race = report.race
    compiled = [run.strategy for run in race.runs if run.compiled]
    values = {
        **facts(race),
        "truth": f"PageRank of the whole web from the same seeds, off by at most {at_most(race.truth_error)} in all",
        "guarantee": "from the links of the pages read alone, as in a crawl of the real web",
        "best possible order": "the pages by their true importance, as if all were known beforehand",
        "compiled crawls": ", ".join(compiled) or "none",
        "made with": html_page.GENERATOR,
    }
    return html_page.method(values, report.command)
