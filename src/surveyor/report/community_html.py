"""A community as one HTML file: what the web around local pages makes of them, and how far to trust that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from surveyor.report import communities, html_page
from surveyor.report.numbers import at_most, count, counted, duration, tiny

if TYPE_CHECKING:
    from pathlib import Path

    from surveyor.estimate.community.result import CommunityRank

PAGES, MOVES, MOVERS = 200, 20, 20  # rows at most
UNCERTAIN = (
    "Nobody can bound how far an estimate of global rank is from the truth without having read the whole web: a page "
    "that was not read may link to local pages and carry much rank. So no bound is stated here.",
    "What is stated is the spread: the pages read outside are dealt out to a few groups of batches, each group is left "
    "out in turn, and the standard deviation of the outcomes, scaled as a jackknife, is what stands after ±. It tells "
    "how much the estimate depends on which of these pages were read. The real error can be larger. How far the last "
    "rounds still moved the ranks, and how far the plain estimates lie apart, are further hints.",
)


@dataclass(frozen=True, slots=True)
class CommunityReport:
    """What the report of a community tells."""

    title: str
    found: CommunityRank
    rule: str  # what makes a page local
    source: str  # where it was learnt from, in words
    command: str  # that makes it again
    plots: bool = True


def write_report(report: CommunityReport, path: str | Path) -> Path:
    """Write the report as one file."""
    return html_page.write(render(report), path)


def render(report: CommunityReport) -> str:
    """Return the report as HTML."""
    found = report.found
    parts = [
        '<p class="soft">Rank by the links among local pages says how a site sees itself. The estimated global rank '
        "says how the web around it does, learnt from pages outside that matter most to it.</p>",
        html_page.facts({
            "local pages": count(found.pages.size),
            "pages read outside": count(found.read),
            "moved from local rank (L1)": f"{found.moved:.3f}",
            **({} if found.unsettled is None else {"spread in all (L1)": f"{found.unsettled:.3f}"}),
            **({} if found.truth is None else {"distance from the truth (L1)": f"{found.compared().l1:.3f}"}),
        }),
        *(f"<p>{html_page.text(line[0].upper() + line[1:])}.</p>"
          for line in [*communities.lines(found, report.rule), *found.notes]),
        *(_figures(found) if report.plots else []),
        *_pages(found),
        *_movers(found),
        *_truth(found),
        "<h2>How far to trust it</h2>",
        *(f"<p>{line}</p>" for line in UNCERTAIN),
        *_method(report),
    ]  # fmt: skip
    return html_page.document(report.title, parts)


def _figures(found: CommunityRank) -> list[str]:
    from surveyor.report.community_plots import changes_plot, convergence_plot

    bars = "" if found.spread is None else " A bar is the spread on either side."
    figures = [
        html_page.figure(
            changes_plot(found),
            "What the web around them changes.",
            f"Each dot is a local page; above the line it gains. Those whose share changed most are named.{bars}",
        )
    ]
    if len(found.rounds) > 1:
        truth = (
            " Also how far the ranks by links among pages read were from the truth when each round began."
            if found.errors
            else ""
        )
        about = f"How far each round moved the local ranks in all; rounds that moved none are left out.{truth}"
        figures.append(html_page.figure(convergence_plot(found), "How the ranks settled.", about))
    return ["<h2>Curves</h2>", '<div class="figures">', *figures, "</div>"]


def _pages(found: CommunityRank) -> list[str]:
    about = (
        f"The first {count(min(PAGES, found.pages.size))} of {counted(found.pages.size, 'local page')} by estimated "
        "global rank; local: the position by local links alone; moved: places gained or lost. Shares are of the local "
        "pages' rank alone and sum to 100 %."
    )
    return [
        "<h2>Local pages</h2>",
        html_page.grid(communities.local_table(found.top(PAGES)), about, links=True),
        "<h2>What moved most</h2>",
        html_page.grid(
            communities.local_table(found.moves(MOVES)), "Pages whose share changed most, up or down.", links=True
        ),
    ]


def _movers(found: CommunityRank) -> list[str]:
    movers = found.movers(count=MOVERS)
    if not movers:
        return ["<h2>Pages outside that matter most</h2>", "<p>None that was read links to a local page.</p>"]
    table = communities.movers_table(found, movers)
    about = f"{communities.movers_line()}."
    return ["<h2>Pages outside that matter most</h2>", html_page.grid(table, about, links=True)]


def _truth(found: CommunityRank) -> list[str]:
    if found.truth is None:
        return []
    about = (
        "L1: 0 is the truth, 2 has nothing in common with it. Kendall: 1 is the same order; weighted: the same with "
        "the top weighing most. Top: pages that the best of both lists have in common."
    )
    return ["<h2>Beside the truth</h2>", html_page.grid(communities.truth_table(found), about)]


def _method(report: CommunityReport) -> list[str]:
    found = report.found
    values = {
        "learnt from": report.source,
        "local pages": f"{count(found.pages.size)} by {report.rule}",
        "pages outside": f"{count(found.extra.size)} asked for, {count(found.read)} read",
        "chosen by": f"{found.select}, in {counted(max(len(found.rounds) - 1, 0), 'round')}",
        "ending": found.ending,
        "estimator": communities.estimator(found).removeprefix("estimator: "),
        "solved to": f"{at_most(found.estimate.error)} in all: of the equations, not of the truth",
        "damping": tiny(found.damping),
        "random seed": str(found.rng),
        "time": duration(found.rounds[-1].seconds) if found.rounds else "",
        "made with": html_page.GENERATOR,
    }
    return html_page.method(values, report.command)
