"""The top of a ranking as rows: score, share, in-links, out-links, name.

The score, from 0 to 100, is for people (`Ranking.marks`). It compares pages of one graph, never two graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report.numbers import count, counted, percent
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from surveyor.graph.csr import Graph
    from surveyor.rank.ranking import Ranking


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a ranked list."""

    position: int
    page: int
    score: float
    share: float
    in_links: int
    out_links: int
    name: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON shows them."""
        fields = {field: getattr(self, field) for field in self.__slots__}
        return {**fields, "url": self.name} if "://" in self.name else fields


def top_pages(graph: Graph, ranking: Ranking, number: int) -> list[Page]:
    """Describe the best pages, best first."""
    marks, into = ranking.marks(), graph.in_links.indptr
    return [
        Page(
            position,
            int(page),
            round(float(marks[page]), 1),
            float(ranking.scores[page]),
            int(into[page + 1] - into[page]),
            int(graph.indptr[page + 1] - graph.indptr[page]),
            graph.name(int(page)),
        )
        for position, page in enumerate(ranking.top(number), 1)
    ]


def near_ties(ranking: Ranking, number: int) -> int:
    """Count the neighbours in the list of the best pages, and at its end, whose order is not certain.

    The scores are off by at most `error` in total, so two pages whose scores differ by more stand in their
    true order.
    """
    shares = ranking.scores[ranking.top(number + 1)]
    return int(np.count_nonzero(shares[:-1] - shares[1:] <= ranking.error))


def order_in_words(ties: int) -> str:
    """Say how certain the order of a list is."""
    return f"order proven, save for {counted(ties, 'near-tie')}" if ties else "order proven"


def page_table(pages: list[Page]) -> Table:
    """Lay the pages out for people and machines."""
    return Table(
        titles=("score", "share", "in-links", "page"),
        cells=[(f"{row.score:.0f}", percent(row.share), count(row.in_links), row.name) for row in pages],
        keys=Page.__slots__,
        records=[tuple(getattr(row, key) for key in Page.__slots__) for row in pages],
    )
