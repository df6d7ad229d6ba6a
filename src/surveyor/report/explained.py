"""An explanation of one score, as rows: each says which part of the score came from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import count, counted, percent
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from surveyor.rank.explain import Explanation
    from surveyor.rank.ranking import Ranking

Row = tuple[str, float, str, str]  # kind, part of the score, from where, how


def link_rows(told: Explanation) -> list[Row]:
    """Say what came over the last link, or without one; the parts sum to 1."""
    others = told.in_links - len(told.links)
    rows = [("link", link.part, link.name, f"1 of {counted(link.links, 'link')}") for link in told.links]
    if others:
        rows.append(("others", told.other_links, counted(others, "other page"), ""))
    if told.stuck > 0:
        rows.append(("stuck", told.stuck, "pages without links", "whose readers jump"))
    rows.append(("teleport", told.teleport, "random jumps", "straight to this page"))
    return rows


def origin_rows(told: Explanation) -> list[Row]:
    """Say where the readers who came here had started; the parts sum to 1."""
    rows = [("origin", origin.part, origin.name, "") for origin in told.origins]
    return [*rows, ("others", told.other_origins, "elsewhere, or too far back to follow", "")]


def title(ranking: Ranking, told: Explanation) -> str:
    """Return the line above the tables."""
    return (
        f"{told.name}   score {float(ranking.marks()[told.page]):.0f}   share {percent(told.share)}   "
        f"position {count(told.position)} of {count(ranking.scores.size)}"
    )


def rows_table(rows: list[Row], what: str) -> Table:
    """Lay rows out for people and machines."""
    return Table(
        titles=("part", what, ""),
        cells=[(percent(part), name, how) for _, part, name, how in rows],
        keys=("kind", "part", "name"),
        records=[(kind, part, name) for kind, part, name, _ in rows],
        left=2,
    )


def fields(ranking: Ranking, told: Explanation) -> dict[str, Any]:
    """Return the explanation as JSON shows it."""
    return {"explanation": {"score": round(float(ranking.marks()[told.page]), 1), **told.to_dict()}}
