"""The result of `sv.community`: local rank and estimated global rank of local pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.community.estimators import Estimate
from surveyor.estimate.community.impact import Impacts
from surveyor.estimate.community.known_graph import Round
from surveyor.frames import Tabular
from surveyor.graph.labels import Labels
from surveyor.graph.names import labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.estimate.community.movers import Mover
    from surveyor.graph.names import Names
    from surveyor.kernels.crawled_graph import CrawledGraph
    from surveyor.rank.comparison import Comparison

PRECISION = 1 << 20  # scores that differ by less are tied
Ending = Literal["complete", "stable", "exhausted", "no_frontier", "interrupted"]


@dataclass(frozen=True, eq=False)
class CommunityRank(Tabular):
    """The estimated global rank of local pages; entry i of each vector belongs to `pages[i]`."""

    pages: IdArray  # ids of the local pages
    local_scores: FloatArray  # PageRank by the links among the local pages alone, summing to 1
    estimate: Estimate  # by the requested estimator
    estimates: Mapping[str, Estimate]  # by all estimators
    rounds: tuple[Round, ...]
    extra: IdArray  # ids of the requested pages, in order
    ending: Ending
    select: str
    damping: float
    rng: int
    known: CrawledGraph
    batch_of: IntArray
    names: Names | None = None
    other_names: Mapping[int, str] = field(default_factory=dict)  # of pages known only by back-links
    truth: FloatArray | None = None  # true global rank of the local pages, if the whole graph was ranked
    errors: tuple[float, ...] = ()  # L1 distance of the crawled estimate from the truth at the start of each round
    notes: tuple[str, ...] = ()
    impacts: Impacts | None = None  # of outside pages by their true ranks, if the whole graph was ranked

    @property
    def scores(self) -> FloatArray:
        """The estimated global rank of the local pages, summing to 1."""
        return self.estimate.scores

    @property
    def fetched(self) -> int:
        """The number of extra pages fetched."""
        return self.rounds[-1].fetched

    @property
    def distance(self) -> float:
        """The L1 distance between the estimate and the local rank, from 0 to 2."""
        return float(np.abs(self.scores - self.local_scores).sum())

    @property
    def disagreement(self) -> float:
        """The L1 distance between the crawled and the frontier estimate, an indication of the unknown links."""
        return float(np.abs(self.estimates["crawled"].scores - self.estimates["frontier"].scores).sum())

    @cached_property
    def positions(self) -> IntArray:
        """The position of each local page by estimated global rank, starting at 1; ties by id."""
        return _positions(self.scores)

    @cached_property
    def local_positions(self) -> IntArray:
        """The position of each local page by local rank, starting at 1; ties by id."""
        return _positions(self.local_scores)

    def name(self, page: int) -> str:
        """Return the name of a page, or its id as text."""
        if page in self.other_names:
            return self.other_names[page]
        return str(page) if self.names is None else self.names[page]

    def top(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the best local pages by estimated global rank."""
        order = np.argsort(self.positions)[:count]
        return [self.row(int(entry)) for entry in order]

    def largest_changes(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the local pages whose estimated share differs most from their local share, most first."""
        size = np.abs(self.scores - self.local_scores)
        return [self.row(int(entry)) for entry in np.argsort(-size, kind="stable")[:count]]

    def row(self, entry: int) -> dict[str, Any]:
        """Return positions and shares of one local page, by index."""
        row = {
            **labels(int(self.pages[entry]), self.name(int(self.pages[entry]))),
            "position": int(self.positions[entry]),
            "share": float(self.scores[entry]),
            "local_position": int(self.local_positions[entry]),
            "local_share": float(self.local_scores[entry]),
            "change": int(self.local_positions[entry] - self.positions[entry]),  # positions gained
        }
        if self.truth is not None:
            row["true_share"] = float(self.truth[entry])
        return row

    def movers(self, page: Any = None, count: int = 10) -> list[Mover]:
        """Return the outside pages that affect one local page, or all of them, most."""
        from surveyor.estimate.community.movers import movers

        indices = np.searchsorted(self.known.pages, self.pages)
        target = None if page is None else int(indices[self._entry(page)])
        return movers(self.known, self._ranks, indices, target, count, damping=self.damping, method="frontier")

    def largest_impacts(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the outside pages with the largest impact: the probability to be there and follow a link to L.

        `round` is the round in which a page was fetched: 0 if it was known at the start, None if it was not fetched.
        """
        if self.impacts is None:
            raise UsageError("the impact needs the true ranks of all pages", hint="pass a graph and truth=True")
        pages, impacts, rounds = (values[:count].tolist() for values in self.impacts[:3])
        return [
            {**labels(page, self.name(page)), "impact": impact, "round": None if number < 0 else number}
            for page, impact, number in zip(pages, impacts, rounds, strict=True)
        ]

    @cached_property
    def _ranks(self) -> FloatArray:
        """The PageRank of all fetched pages, by index, with leaking links to others."""
        from surveyor.estimate.community.estimators import estimate

        everything = np.arange(self.known.pages.size, dtype=np.int32)
        return estimate(self.known, everything, self.batch_of, "frontier", damping=self.damping).scores

    def compare(self, method: str | None = None) -> Comparison:
        """Compare an estimate (or "local") with the true global rank."""
        from surveyor.rank.comparison import compare_ranks

        if self.truth is None:
            raise UsageError("the true global rank was not computed", hint="pass a graph and truth=True")
        chosen = self.local_scores if method == "local" else self.estimates[method].scores if method else self.scores
        return compare_ranks(chosen, self.truth)

    def to_dict(self, top: int = 10) -> dict[str, Any]:
        """Return the best pages, the rounds and all parameters as plain values."""
        fields: dict[str, Any] = {
            "local_pages": int(self.pages.size),
            "requested": int(self.extra.size),
            "fetched": self.fetched,
            "select": self.select,
            "estimator": self.estimate.method,
            "explanation": self.estimate.explanation,
            "weights": dict(self.estimate.weights),
            "solver_error": self.estimate.error,
            "damping": self.damping,
            "rng": self.rng,
            "ending": self.ending,
            "distance": self.distance,
            "disagreement": self.disagreement,
            "notes": list(self.notes),
            "rounds": [
                {name: getattr(one, name) for name in ("fetched", "requested", "change", "seconds")}
                for one in self.rounds
            ],
            "pages": self.top(top),
        }
        if self.truth is not None:
            fields["comparison"] = {name: self.compare(name).to_dict() for name in ("local", *self.estimates)}
            fields["errors"] = list(self.errors)
        if self.impacts is not None:
            fields["impact"] = {"fetched_share": self.impacts.fetched, "pages": self.largest_impacts(top)}
        return fields

    def _columns(self) -> dict[str, Any]:
        return self.columns()

    def _draw(self, axes: Axes) -> None:
        axes.loglog(self.local_scores, self.scores, ".", markersize=4)
        axes.axline((1e-3, 1e-3), (1.0, 1.0), color="0.7", linewidth=1)  # pages that do not move
        axes.set_xlabel("share by local links")
        axes.set_ylabel("estimated global share")

    def columns(self) -> dict[str, Any]:
        """Return all local pages as columns, best first."""
        order = np.argsort(self.positions)
        columns: dict[str, Any] = {"id": self.pages[order]}
        if self.names is not None:
            columns["name"] = [self.names[int(page)] for page in self.pages[order]]
        columns["position"] = self.positions[order]
        columns["share"] = self.scores[order]
        columns["local_position"] = self.local_positions[order]
        columns["local_share"] = self.local_scores[order]
        columns["change"] = (self.local_positions - self.positions)[order]
        if self.truth is not None:
            columns["true_share"] = self.truth[order]
        return columns

    def _entry(self, page: Any) -> int:
        if isinstance(page, str) or isinstance(self.names, Labels):
            if self.names is None:
                raise UsageError(f"page {page!r} is unknown, because the graph has no names", hint="give an id")
            page = self.names.id_of(page)
        found = np.flatnonzero(self.pages == page)
        if not found.size:
            raise UsageError(f"{self.name(page)} is not a local page", hint="see .top()")
        return int(found[0])

    def __repr__(self) -> str:
        about = f"{self.pages.size:,} local pages, {self.fetched:,} extra, {self.select}, {self.estimate.method}"
        return f"CommunityRank({about}, distance {self.distance:.3f})"

    def _html(self) -> str:
        rows = "".join(
            f"<tr><td>{row['position']}</td><td>{row['local_position']}</td><td>{row['share']:.3%}</td>"
            f"<td>{row['local_share']:.3%}</td><td>{escape(str(row['name']))}</td></tr>"
            for row in self.top(10)
        )
        head = "<tr><th>global</th><th>local</th><th>share</th><th>local share</th><th>page</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>"


def _positions(scores: FloatArray) -> IntArray:
    """Return positions, best first; scores that differ by less than the error of the solver are tied."""
    fraction, exponent = np.frexp(scores)
    scores = np.ldexp(np.round(fraction * PRECISION), exponent)
    positions = np.empty(scores.size, np.int64)
    positions[np.argsort(-scores, kind="stable")] = np.arange(1, scores.size + 1)
    return positions
