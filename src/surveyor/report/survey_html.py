"""A survey as one HTML file: how much it covers and how that grew, its best pages, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report import page
from surveyor.report.accounts import MEANING
from surveyor.report.numbers import at_most, count, counted, percent, share_at_least, share_at_most
from surveyor.report.race import share
from surveyor.report.race_plots import thinned_lines
from surveyor.report.surveys import blocked_table
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from surveyor.arrays import FloatArray
    from surveyor.crawling.survey import History, Survey
    from surveyor.ledger import CoverageInterval

ROWS = 200  # pages in the table
ABOUT = (
    "Importance is the share of time that a reader spends on a page who follows links at random and now and then "
    "jumps back to a seed. Without having seen the rest of the web, the crawl knows how much of it the pages hold "
    f"that it has read, at least and at most; {MEANING}."
)


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known of a made-up web beside what a survey says of it."""

    shares: Mapping[str, float]  # of importance, by URL
    covered: FloatArray  # true coverage after each page read


@dataclass(frozen=True, slots=True)
class SurveyReport:
    """What the report of a survey tells."""

    title: str
    survey: Survey
    command: str  # that goes on with the crawl
    goal: float | None = None
    truth: Truth | None = None
    plots: bool = True


def write_report(report: SurveyReport, path: str | Path) -> Path:
    """Write the report as one file."""
    return page.write(render(report), path)


def render(report: SurveyReport) -> str:
    """Return the report as HTML."""
    survey = report.survey
    coverage, history = survey.coverage, survey.history()
    parts = [
        f'<p class="soft">{counted(survey.pages_read, "page")} read of {count(survey.pages_known)} known, in order of '
        "importance.</p>",
        page.facts({
            "captured, at least": share_at_least(coverage.at_least),
            "at most": share_at_most(coverage.at_most),
            **({} if report.truth is None else {"in truth": percent(float(report.truth.covered[-1]))}),
            "pages read": count(survey.pages_read),
            "blocked": percent(coverage.blocked),
            "lost": percent(coverage.lost),
        }),
        f"<p>{page.text(ABOUT)}</p>",
        *(_figures(report, history) if report.plots and history.pages.size else []),
        "<h2>Best pages</h2>",
        page.grid(_pages(report), _pages_about(report)),
        "<h2>Where all importance is</h2>",
        page.grid(_accounts(coverage), "Five accounts that sum to 100 %, always."),
        *_blocked(survey),
        *_method(report),
    ]  # fmt: skip
    return page.document(report.title, parts)


def _figures(report: SurveyReport, history: History) -> list[str]:
    lines: dict[str, FloatArray] = {"at least": history.at_least, "at most": history.at_most}
    about = "What the crawl could guarantee after each page, from both sides."
    if report.truth is not None:
        lines["in truth"] = report.truth.covered
        about += " The truth, which only a made-up web has, lies between."
    goal = None if report.goal is None else (f"goal: {share(report.goal)}", report.goal)
    svg = thinned_lines(lines, goal, x_title="pages read", label="bounds of coverage against pages read")
    figure = page.figure(svg, "Importance captured.", about)
    return ["<h2>How coverage grew</h2>", '<div class="figures">', figure, "</div>"]


def _pages(report: SurveyReport) -> Table:
    rows = report.survey.top(ROWS)
    known = {} if report.truth is None else report.truth.shares
    titles = ("score", "share", *(["true share"] if known else []), "page")
    cells = [
        (
            f"{row['score']:.0f}",
            percent(row["share"]),
            *([percent(known.get(row["url"], 0.0))] if known else []),
            row["url"] + ("" if row["read"] else "  (not read)"),
        )
        for row in rows
    ]
    return Table(titles, cells, titles, cells)


def _pages_about(report: SurveyReport) -> str:
    ranking = report.survey.rank()
    distance = ""
    if report.truth is not None:
        names = report.survey.graph().names or ()
        known = np.array([report.truth.shares.get(name, 0.0) for name in names])
        unseen = max(0.0, 1 - float(known.sum()))
        apart = float(np.abs(ranking.scores - known).sum()) + unseen
        distance = f" All shares together are {apart:.3f} away from the true ones (2 would be nothing in common)."
    return (
        "PageRank of all pages known, with jumps to the seeds; pages not read count as pages without links. "
        f"Error for this graph at most {at_most(ranking.error)}.{distance} "
        "Score: 0 to 100, log scale, this survey only."
    )


def _accounts(coverage: CoverageInterval) -> Table:
    about = {
        "captured": "settled on pages that were read",
        "moving": "on its way, on pages already read",
        "waiting": "on known pages that were not read yet",
        "blocked": "on pages that may not or cannot be read",
        "lost": "on pages that are gone",
    }
    rows = [(f"{100 * max(0.0, getattr(coverage, name)):.2f} %", name, text) for name, text in about.items()]
    return Table(("share", "account", ""), rows, ("share", "account", "about"), rows, left=2)


def _blocked(survey: Survey) -> list[str]:
    rows = survey.blocked()
    if not rows:
        return []
    return ["<h2>What could not be read</h2>", page.grid(blocked_table(rows), "Importance that waits behind it.")]


def _method(report: SurveyReport) -> list[str]:
    survey = report.survey
    manifest, settings = survey.manifest, dict(survey.manifest.settings)
    values: dict[str, Any] = {
        "seeds": ", ".join(manifest.seeds),
        "random seed": manifest.rng,
        **{name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in settings.items()},
        "begun": f"{manifest.created:%Y-%m-%d %H:%M} UTC",
        "made with": page.MADE_WITH,
    }
    return page.method({name: str(value) for name, value in values.items() if value not in ("", None)}, report.command)
