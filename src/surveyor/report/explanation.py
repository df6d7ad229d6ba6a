"""Present the explanation of one score: rows with the fraction of the score that came from each source."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import at_most, count, counted, percent
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.rank.explain import Explanation, RankWithoutLinks
    from surveyor.rank.pagerank import Ranking
    from surveyor.web.link_context import LinkContext

MAX_TEMPLATES = 10  # with a row each
MAX_STEPS = 7  # pages of a path that are shown in full


@dataclass(frozen=True, slots=True)
class Row:
    """One source of the score and the fraction it contributed."""

    kind: str  # template, link, others, dangling, teleport or origin
    fraction: float
    name: str
    detail: str = ""
    pages: int | None = None  # that contributed
    links: int | None = None  # that each of them has, or that all of them share


def link_rows(explanation: Explanation, contexts: Mapping[str, LinkContext] | None = None) -> list[Row]:
    """Return what came over the last link, or without one; the fractions sum to 1.

    `contexts` are those of the links, by source, as far as they are known.
    """
    rows = []
    for group in explanation.templates[:MAX_TEMPLATES]:
        shared = len(group.shared_links)
        name, detail = f"{counted(group.pages, 'page')} of {group.host}", f"share the same {shared} links: one template"
        rows.append(Row("template", group.fraction, name, detail, group.pages, shared))
    if more := explanation.templates[MAX_TEMPLATES:]:
        pages = sum(group.pages for group in more)
        fraction = sum(group.fraction for group in more)
        rows.append(Row("template", fraction, counted(pages, "page"), counted(len(more), "other template"), pages))
    for link in explanation.links:
        detail = f"{count(link.links)} of {counted(link.out_links, 'link')}"
        context = (contexts or {}).get(link.name)
        rows.append(Row("link", link.fraction, link.name, detail + context_text(context), 1, link.out_links))
    if explanation.other_pages:
        name = counted(explanation.other_pages, "other page")
        rows.append(Row("others", explanation.other_links, name, pages=explanation.other_pages))
    if explanation.dangling > 0:
        rows.append(Row("dangling", explanation.dangling, "pages without links", "jumps from them"))
    rows.append(Row("teleport", explanation.teleport, "random jumps", "directly to this page"))
    return rows


def context_text(context: LinkContext | None) -> str:
    """Return the anchor text of a link and its position, to follow other details; empty if it is not known."""
    if context is None:
        return ""
    place = "main content" if context.position == "main" else context.position
    return f", “{context.text}” in the {place}" if context.text else f", in the {place}"


def origin_rows(explanation: Explanation) -> list[Row]:
    """Return where the surfers who reached the page had started; the fractions sum to 1."""
    rows = [Row("origin", origin.fraction, origin.name) for origin in explanation.origins]
    return [*rows, Row("others", explanation.other_origins, "other pages, or not traced back that far")]


def title_line(ranking: Ranking, explanation: Explanation) -> str:
    """Return the line above the tables."""
    score = float(ranking.log_scores()[explanation.page])
    return (
        f"{explanation.name}   score {score:.0f}   share {percent(explanation.share)}   position "
        f"{count(explanation.position)} of {count(ranking.scores.size)}   {counted(explanation.in_links, 'in-link')}"
    )


def path_line(ranking: Ranking, explanation: Explanation) -> str:
    """Describe a shortest path from a teleport page; empty if the teleport is uniform."""
    if ranking.teleport_weights is None:
        return ""
    if not explanation.path:
        return "no path of links leads here from the teleport pages"
    if len(explanation.path) == 1:
        return "this is a teleport page"
    steps = [explanation.path[0], *(_without_host(before, page) for before, page in pairwise(explanation.path))]
    if len(steps) > MAX_STEPS:
        omitted = len(steps) - MAX_STEPS + 1
        steps[MAX_STEPS // 2 : MAX_STEPS // 2 + omitted] = [f"… {counted(omitted, 'page')} …"]
    return f"reached from {' → '.join(steps)}"


def _without_host(before: str, page: str) -> str:
    """Return only the path of a page, if the page before it is on the same host."""
    root = "/".join(before.split("/")[:3])
    return page.removeprefix(root) if "://" in root and page.startswith(f"{root}/") else page


def without_line(without: RankWithoutLinks, templates: int) -> str:
    """Describe the rank of the page if no template linked to it, as precisely as the error allows."""
    place = f"position {count(without.position)}"
    if not without.certain:
        place = f"about {place}, between {count(without.best)} and {count(without.worst)}"
    which = "the template's links" if templates == 1 else f"the links of the {templates} templates"
    share = f"share {percent(without.share)}, proven error at most {at_most(without.error)}"
    if without.share <= without.error:
        share = f"share at most {at_most(without.share + without.error)}"
    return f"Without {which} to it, it would be at {place} ({share})."


def rows_table(rows: list[Row], title: str) -> Table:
    """Return rows as a table; `title` is the heading of the sources."""
    return Table(
        titles=("fraction", title, ""),
        cells=[(percent(row.fraction), row.name, row.detail) for row in rows],
        keys=("kind", "fraction", "name", "pages", "links"),
        records=[(row.kind, row.fraction, row.name, row.pages, row.links) for row in rows],
        left=2,
    )


def to_dict(
    ranking: Ranking, explanation: Explanation, contexts: Mapping[str, LinkContext] | None = None
) -> dict[str, Any]:
    """Return the explanation as plain values, with the score from 0 to 100 and the known contexts of its links."""
    score = {"score": round(float(ranking.log_scores()[explanation.page]), 1)}
    known = {source: context._asdict() for source, context in (contexts or {}).items()}
    return {**score, **explanation.to_dict(), "contexts": known}
