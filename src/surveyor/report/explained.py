"""An explanation of one score, as rows: each says which part of the score came from where."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import at_most, count, counted, percent
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from surveyor.rank.explain import Explanation
    from surveyor.rank.ranking import Ranking
    from surveyor.rank.without import Without

GROUPS = 10  # templates that get a row of their own
STEPS = 7  # pages of a chain that are shown in full


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what kind of source gave which part of the score."""

    kind: str  # template, link, others, stuck, teleport or origin
    part: float
    name: str
    how: str = ""
    pages: int | None = None  # that gave it
    links: int | None = None  # that each of them has, or that all of them share


def link_rows(told: Explanation) -> list[Row]:
    """Say what came over the last link, or without one; the parts sum to 1."""
    rows = [
        Row("template", group.part, f"{counted(group.pages, 'page')} of {group.host}",
            f"share the same {len(group.shared)} links: one template", group.pages, len(group.shared))
        for group in told.templates[:GROUPS]
    ]  # fmt: skip
    if more := told.templates[GROUPS:]:
        pages = sum(group.pages for group in more)
        part = sum(group.part for group in more)
        rows.append(Row("template", part, counted(pages, "page"), counted(len(more), "other template"), pages))
    rows += [
        Row("link", link.part, link.name, f"{count(link.times)} of {counted(link.links, 'link')}", 1, link.links)
        for link in told.links
    ]
    if told.other_pages:
        name = counted(told.other_pages, "other page")
        rows.append(Row("others", told.other_links, name, pages=told.other_pages))
    if told.stuck > 0:
        rows.append(Row("stuck", told.stuck, "pages without links", "whose readers jump"))
    rows.append(Row("teleport", told.teleport, "random jumps", "straight to this page"))
    return rows


def origin_rows(told: Explanation) -> list[Row]:
    """Say where the readers who came here had started; the parts sum to 1."""
    rows = [Row("origin", origin.part, origin.name) for origin in told.origins]
    return [*rows, Row("others", told.other_origins, "elsewhere, or too far back to follow")]


def title(ranking: Ranking, told: Explanation) -> str:
    """Return the line above the tables."""
    return (
        f"{told.name}   score {float(ranking.marks()[told.page]):.0f}   share {percent(told.share)}   "
        f"position {count(told.position)} of {count(ranking.scores.size)}   {counted(told.in_links, 'in-link')}"
    )


def path_line(ranking: Ranking, told: Explanation) -> str:
    """Say how a reader comes here from a page that jumps go to; nothing if they go to all pages alike."""
    if ranking.jump is None:
        return ""
    if not told.path:
        return "no chain of links leads here from the pages that readers start on"
    if len(told.path) == 1:
        return "readers start here"
    steps = [told.path[0], *(_shorter(before, page) for before, page in pairwise(told.path))]
    if len(steps) > STEPS:
        left_out = len(steps) - STEPS + 1
        steps[STEPS // 2 : STEPS // 2 + left_out] = [f"… {counted(left_out, 'page')} …"]
    return f"reached from {' → '.join(steps)}"


def _shorter(before: str, page: str) -> str:
    """Return the path of a page alone, if the page before it is of the same host."""
    root = "/".join(before.split("/")[:3])
    return page.removeprefix(root) if "://" in root and page.startswith(f"{root}/") else page


def without_line(without: Without, templates: int) -> str:
    """Say how the page would rank if no template linked to it; the error decides whether that is about."""
    place = f"position {count(without.position)}"
    if not without.decided:
        place = f"about {place}, between {count(without.best)} and {count(without.worst)}"
    which = "the template's links" if templates == 1 else f"the links of the {templates} templates"
    share = f"share {percent(without.share)}, proven error at most {at_most(without.error)}"
    if without.share <= without.error:
        share = f"share at most {at_most(without.share + without.error)}"
    return f"Without {which} to it, it would be at {place} ({share})."


def rows_table(rows: list[Row], what: str) -> Table:
    """Lay rows out for people and machines."""
    return Table(
        titles=("part", what, ""),
        cells=[(percent(row.part), row.name, row.how) for row in rows],
        keys=("kind", "part", "name", "pages", "links"),
        records=[(row.kind, row.part, row.name, row.pages, row.links) for row in rows],
        left=2,
    )


def fields(ranking: Ranking, told: Explanation) -> dict[str, Any]:
    """Return the explanation as JSON shows it."""
    return {"explanation": {"score": round(float(ranking.marks()[told.page]), 1), **told.to_dict()}}
