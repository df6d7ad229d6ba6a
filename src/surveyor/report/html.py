"""A ranking as one HTML file. Without times in it, the same ranking gives the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from surveyor.report import html_page
from surveyor.report.explained import link_rows
from surveyor.report.graphs import source
from surveyor.report.html_page import text
from surveyor.report.numbers import at_most, count, counted, percent, tiny
from surveyor.report.pages import Page, near_ties, top_pages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from surveyor.graph.csr import Graph
    from surveyor.rank.explain import Explanation
    from surveyor.rank.ranking import Ranking

ROWS = 200  # pages in the table
STUCK = {"teleport": "their readers jump as all others do", "uniform": "their readers jump to any page"}


@dataclass(frozen=True, slots=True)
class Report:
    """What a report tells."""

    title: str
    graph: Graph
    ranking: Ranking
    explanation: Explanation
    command: str  # that makes the ranking again
    plots: bool = True


def write_report(report: Report, path: str | Path) -> Path:
    """Write the report as one file."""
    return html_page.write(render(report), path)


def render(report: Report) -> str:
    """Return the report as HTML."""
    graph, ranking = report.graph, report.ranking
    pages = top_pages(graph, ranking, ROWS)
    parts = [
        f'<p class="soft">{counted(graph.pages, "page")} ranked by the links between them.</p>',
        html_page.facts({
            "pages": count(graph.pages),
            "links": count(graph.links),
            "proven error": f"≤ {at_most(ranking.error)}",
            "near-ties in the list": count(near_ties(ranking, ROWS)),
            "sweeps": count(ranking.sweeps),
        }),
        *(_figures(graph, ranking) if report.plots else []),
        *_explained(report),
        *_pages(pages, graph.pages),
        *_method(report),
    ]  # fmt: skip
    return html_page.document(report.title, parts)


def _figures(graph: Graph, ranking: Ranking) -> list[str]:
    from surveyor.report.plots import error_plot, share_plot

    return [
        '<div class="figures">',
        html_page.figure(
            share_plot(graph, ranking),
            "Share of each page, by position.",
            "Where the two lines part, rank and the mere number of links tell different stories.",
        ),
        html_page.figure(
            error_plot(ranking),
            "Proven error after each sweep.",
            "The exact scores differ from these by at most so much, summed over all pages.",
        ),
        "</div>",
    ]


def _explained(report: Report) -> list[str]:
    told, graph = report.explanation, report.graph
    rows = link_rows(told)
    largest = max((row.part for row in rows), default=0.0) or 1.0
    body = "".join(
        f'<tr><td>{percent(row.part)}</td><td class="graph">'
        f'<span class="bar" style="width:{100 * row.part / largest:.1f}%"></span></td>'
        f'<td>{text(row.name)} <span class="soft">{text(row.how)}</span></td></tr>\n'
        for row in rows
    )
    place = "first" if told.position == 1 else f"number {count(told.position)}"
    return [
        f"<h2>Why {text(told.name)} is {place}</h2>",
        f"<p>Share {percent(told.share)}, position {count(told.position)} of {count(graph.pages)}. "
        "Its rank came from:</p>",
        '<div class="scroll"><table><thead><tr><th>part</th><th class="graph"></th><th>from</th></tr></thead>',
        f"<tbody>{body}</tbody></table></div>",
    ]


def _pages(pages: Sequence[Page], total: int) -> list[str]:
    body = "".join(
        f"<tr><td>{count(row.position)}</td><td>{row.score:.0f}</td><td>{percent(row.share)}</td>"
        f"<td>{count(row.in_links)}</td><td>{count(row.out_links)}</td><td>{text(row.name)}</td></tr>\n"
        for row in pages
    )
    return [
        "<h2>Top pages</h2>",
        '<div class="scroll"><table>'
        f"<caption>The first {count(len(pages))} of {counted(total, 'page')}. Score: 0 to 100, on a log "
        "scale from the smallest share to the largest; it compares pages of this graph only.</caption>",
        "<thead><tr><th></th><th>score</th><th>share</th><th>in-links</th><th>out-links</th><th>page</th>",
        "</tr></thead>",
        f"<tbody>{body}</tbody></table></div>",
    ]


def _method(report: Report) -> list[str]:
    ranking, told = report.ranking, report.graph.provenance
    jumps = "any page, all alike" if ranking.teleport == "uniform" else "the trusted pages"
    values = {
        "measure": "PageRank: the share of time a reader who follows links at random spends on each page",
        "damping": f"{ranking.damping:g} (the chance of following a link rather than jumping)",
        "jumps go to": jumps,
        "pages without links": STUCK.get(ranking.dangling, ranking.dangling),
        "solver": ranking.solver,
        "proven error": f"at most {at_most(ranking.error)} in all (asked for: {tiny(ranking.tolerance)})",
        "source": source(told),
        "links read": count(told["links_read"]) if "links_read" in told else "not recorded",
        "self-links dropped": count(told.get("self_links_dropped", 0)),
        "repeats merged": count(told.get("repeats_merged", 0)),
        "made with": html_page.GENERATOR,
    }
    return html_page.method(values, report.command)
