"""What was found out about local pages: their rank among themselves, and what the web around them makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.errors import MissingExtra, UsageError
from surveyor.estimate.community.estimators import Estimate
from surveyor.estimate.community.known_graph import Round

if TYPE_CHECKING:
    import polars

    from surveyor.estimate.community.movers import Mover
    from surveyor.graph.names import Names
    from surveyor.kernels.crawled_graph import CrawledGraph
    from surveyor.rank.comparison import Comparison

DIGITS = 1 << 20  # of scores that order pages
Ending = Literal["spent", "still", "exhausted", "nothing", "interrupted"]


@dataclass(frozen=True, eq=False)
class CommunityRank:
    """The estimated global rank of local pages; entry i of each vector is that of `pages[i]`."""

    pages: IdArray  # ids of the local pages
    local: FloatArray  # their PageRank by the links among them alone, summing to 1
    estimate: Estimate  # the one that was asked for
    estimates: Mapping[str, Estimate]  # all of them, by method
    spread: FloatArray | None  # standard deviation of each score by a jackknife over batches: no bound
    unsettled: float | None  # the sum of it: how much the answer depends on which pages were read
    rounds: tuple[Round, ...]
    extra: IdArray  # ids of the pages asked for, in order
    ending: Ending
    select: str
    damping: float
    rng: int
    known: CrawledGraph
    batch_of: IntArray
    names: Names | None = None
    other_names: Mapping[int, str] = field(default_factory=dict)  # of pages that are known by back-links alone
    truth: FloatArray | None = None  # the global rank of the local pages, if the whole web is known
    errors: tuple[float, ...] = ()  # L1 distance of the paper's estimate from it, as each round began
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> FloatArray:
        """The estimated global rank of the local pages, summing to 1."""
        return self.estimate.scores

    @property
    def read(self) -> int:
        """How many extra pages were read."""
        return self.rounds[-1].read

    @property
    def moved(self) -> float:
        """How far the estimate lies from the local rank: L1, from 0 to 2."""
        return float(np.abs(self.scores - self.local).sum())

    @property
    def disagreement(self) -> float:
        """How far the two plain estimates lie apart, L1: what links of pages not read may yet bring."""
        return float(np.abs(self.estimates["crawled"].scores - self.estimates["frontier"].scores).sum())

    @cached_property
    def positions(self) -> IntArray:
        """The position of each local page by estimated global rank, from 1 on; ties by id."""
        return _positions(self.scores)

    @cached_property
    def local_positions(self) -> IntArray:
        """The position of each local page by local rank, from 1 on; ties by id."""
        return _positions(self.local)

    def name(self, page: int) -> str:
        """Return the name of a page by its id."""
        if page in self.other_names:
            return self.other_names[page]
        return str(page) if self.names is None else self.names[page]

    def top(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the best local pages by estimated global rank."""
        order = np.argsort(self.positions)[:count]
        return [self.row(int(entry)) for entry in order]

    def moves(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the local pages whose share changed most by what was read outside, most first."""
        size = np.abs(self.scores - self.local)
        return [self.row(int(entry)) for entry in np.argsort(-size, kind="stable")[:count]]

    def row(self, entry: int) -> dict[str, Any]:
        """Return all about one local page."""
        row = {
            "page": int(self.pages[entry]),
            "name": self.name(int(self.pages[entry])),
            "position": int(self.positions[entry]),
            "share": float(self.scores[entry]),
            "local_position": int(self.local_positions[entry]),
            "local_share": float(self.local[entry]),
            "moved": int(self.local_positions[entry] - self.positions[entry]),  # places gained
        }
        if self.spread is not None:
            row["spread"] = float(self.spread[entry])
        if self.truth is not None:
            row["true_share"] = float(self.truth[entry])
        return row

    def movers(self, page: int | str | None = None, count: int = 10) -> list[Mover]:
        """Return the outside pages that matter most, to one local page or to all together."""
        from surveyor.estimate.community.movers import movers

        places = np.searchsorted(self.known.pages, self.pages)
        target = None if page is None else int(places[self._entry(page)])
        ranks = self._ranks
        return movers(self.known, ranks, places, target, count, damping=self.damping, method="frontier")

    @cached_property
    def _ranks(self) -> FloatArray:
        """The PageRank of all pages read, by place, links to others leaking: what flows are measured with."""
        from surveyor.estimate.community.estimators import estimate

        everything = np.arange(self.known.pages.size, dtype=np.int32)
        return estimate(self.known, everything, self.batch_of, "frontier", damping=self.damping).scores

    def compared(self, method: str | None = None) -> Comparison:
        """Compare an estimate (or "local") with the truth, where the whole web is known."""
        from surveyor.rank.comparison import compare_ranks

        if self.truth is None:
            raise UsageError("nobody knows the true global rank here", hint="give a graph and truth=True")
        chosen = self.local if method == "local" else self.estimates[method].scores if method else self.scores
        return compare_ranks(chosen, self.truth)

    def to_dict(self, top: int = 10) -> dict[str, Any]:
        """Return the best pages, the rounds, the outside pages that matter and all parameters as plain values."""
        told: dict[str, Any] = {
            "local_pages": int(self.pages.size), "asked": int(self.extra.size), "read": self.read,
            "select": self.select, "estimator": self.estimate.method, "why": self.estimate.why,
            "weights": dict(self.estimate.weights), "solver_error": self.estimate.error, "damping": self.damping,
            "rng": self.rng, "ending": self.ending, "moved": self.moved, "unsettled": self.unsettled,
            "disagreement": self.disagreement,
            "notes": list(self.notes),
            "rounds": [
                {"read": one.read, "asked": one.asked, "moved": one.moved, "seconds": one.seconds}
                for one in self.rounds
            ],
            "pages": self.top(top),
        }  # fmt: skip
        if self.truth is not None:
            told["compared"] = {name: self.compared(name).to_dict() for name in ("local", *self.estimates)}
            told["errors"] = list(self.errors)
        return told

    def to_polars(self) -> polars.DataFrame:
        """Return all local pages as a Polars table."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtra("to_polars()", "polars", "frames") from error
        return polars.DataFrame(self.columns())

    def columns(self) -> dict[str, Any]:
        """Return all local pages as columns, best first."""
        order = np.argsort(self.positions)
        columns: dict[str, Any] = {"page": self.pages[order]}
        if self.names is not None:
            columns["name"] = [self.names[int(page)] for page in self.pages[order]]
        columns |= {
            "position": self.positions[order], "share": self.scores[order],
            "local_position": self.local_positions[order], "local_share": self.local[order],
            "moved": (self.local_positions - self.positions)[order],
        }  # fmt: skip
        if self.spread is not None:
            columns["spread"] = self.spread[order]
        if self.truth is not None:
            columns["true_share"] = self.truth[order]
        return columns

    def _entry(self, page: int | str) -> int:
        if isinstance(page, str):
            if self.names is None:
                raise UsageError(f"no page named {page!r}: the graph has no names", hint="ask by id")
            page = self.names.id_of(page)
        found = np.flatnonzero(self.pages == page)
        if not found.size:
            raise UsageError(f"{self.name(page)} is no local page", hint="see .top()")
        return int(found[0])

    def __repr__(self) -> str:
        told = f"{self.pages.size:,} local pages, {self.read:,} extra, {self.select}, {self.estimate.method}"
        return f"CommunityRank({told}, moved {self.moved:.3f})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{row['position']}</td><td>{row['local_position']}</td><td>{row['share']:.3%}</td>"
            f"<td>{row['local_share']:.3%}</td><td>{escape(row['name'])}</td></tr>"
            for row in self.top(10)
        )
        head = "<tr><th>global</th><th>local</th><th>share</th><th>local share</th><th>page</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>"


def _positions(scores: FloatArray) -> IntArray:
    """Number pages from the best; scores that differ by no more than solving leaves open are tied."""
    fraction, exponent = np.frexp(scores)
    scores = np.ldexp(np.round(fraction * DIGITS), exponent)
    positions = np.empty(scores.size, np.int64)
    positions[np.argsort(-scores, kind="stable")] = np.arange(1, scores.size + 1)
    return positions
