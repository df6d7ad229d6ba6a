"""The result of every domain score: one number per domain, its interval, and the method.

Only ranks matter: which domain is above which. Ties are broken by in-degree, then by id; the ids of a condensed
graph, and of Common Crawl's, follow the names in reversed label order (`org.example`).

    >>> from surveyor.rank.domains.intervals import Counted
    >>> estimate = Reputation("tse", np.array([30, 0, 12], np.uint32), unit=100.0, certainty=Counted(0.01))
    >>> estimate.top(2).tolist(), estimate.score(0), [round(end) for end in estimate.interval(0)]
    ([0, 2], 3000.0, [2028, 4276])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, FloatArray, IntArray, let_go, read_only
from surveyor.errors import MissingExtra, UsageError
from surveyor.graph.names import Names
from surveyor.rank.domains.intervals import Certainty, Exact, Grained, Interval

if TYPE_CHECKING:
    import polars

AT_ONCE = 1 << 20  # scores read at a time: they may be in a file larger than memory


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reputation:
    """Scores over the domains of one graph."""

    kind: str  # the score: "tse", "supp", "in", …
    raw: npt.NDArray[Any]  # a number per domain, read-only; may be a memory map
    unit: float = 1.0  # the score of a domain is its raw number times this
    certainty: Certainty = field(default_factory=Exact)
    in_indptr: IntArray | None = None  # in-links of the graph, row by row, to break ties
    names: Names | None = None
    method: Mapping[str, Any] = field(default_factory=dict)  # p, depth, rounds, seed, …: enough to reproduce it

    def __post_init__(self) -> None:
        object.__setattr__(self, "raw", read_only(self.raw))

    @property
    def domains(self) -> int:
        """The number of domains."""
        return int(self.raw.size)

    @property
    def scores(self) -> FloatArray:
        """All scores; 8 bytes per domain."""
        return self._scores(self.raw)

    def score(self, domain: int | str) -> float:
        """Return the score of a domain, by id or by name."""
        return float(self.raw[self.id_of(domain)]) * self.unit

    def interval(self, domain: int | str) -> tuple[float, float]:
        """Return the interval of the score of a domain."""
        low, high = self.intervals(np.array([self.id_of(domain)]))
        return float(low[0]), float(high[0])

    def intervals(self, domains: AnyIntArray | None = None) -> Interval:
        """Return the intervals of some domains, or of all."""
        if domains is None:
            return self.certainty.intervals(self.scores)
        law = self.certainty.at(domains) if isinstance(self.certainty, Grained) else self.certainty
        return law.intervals(self._scores(self.raw[domains]))

    def top(self, count: int = 10) -> IntArray:
        """Return the ids of the best domains, best first; ties are broken by in-degree, then by id."""
        count = max(0, min(count, self.domains))
        if not count:
            return np.empty(0, np.int64)
        edge = self._at(count)
        found = []
        for start, raw in self._blocks():
            found.append(start + np.flatnonzero(raw >= edge))
        return self._in_order(np.concatenate(found))[:count]

    def at(self, position: int) -> float:
        """Return the score at a position of the list, 1 being the best; 0 if it has fewer."""
        return float(self._at(position)) * self.unit if 0 < position <= self.domains else 0.0

    def position(self, domain: int | str) -> int:
        """Return the number of domains above this one, plus one (ties share the better position)."""
        mine = self.raw[self.id_of(domain)]
        return 1 + sum(int(np.count_nonzero(raw > mine)) for _, raw in self._blocks())

    def positions(self) -> IntArray:
        """Return the position of each domain, all distinct: 1 is the best."""
        places = np.empty(self.domains, np.int64)
        places[self.top(self.domains)] = np.arange(1, self.domains + 1)
        return places

    def name(self, domain: int) -> str:
        """Return the name of a domain, or its id as text."""
        return str(domain) if self.names is None else self.names[domain]

    def to_dict(self, top: int = 10) -> dict[str, Any]:
        """Return the best domains and the method as plain values."""
        best = self.top(top)
        low, high = self.intervals(best)
        rows = zip(best.tolist(), low.tolist(), high.tolist(), strict=True)
        return {
            "score": self.kind,
            "confidence": self.certainty.confidence,
            **{key: value for key, value in self.method.items() if value != np.inf},
            "domains": [
                {"position": place, "domain": self.name(node), "id": node, "score": self.score(node),
                 "low": least, "high": most if np.isfinite(most) else None}
                for place, (node, least, most) in enumerate(rows, 1)
            ],
        }  # fmt: skip

    def to_polars(self) -> polars.DataFrame:
        """Return domain, score and interval as a Polars table."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtra("to_polars()", "polars", "frames") from error
        low, high = self.intervals()
        columns: dict[str, Any] = {"id": np.arange(self.domains), "score": self.scores, "low": low, "high": high}
        if self.names is not None:
            columns["domain"] = list(self.names)
        return polars.DataFrame(columns)

    def _scores(self, raw: npt.NDArray[Any]) -> FloatArray:
        return np.asarray(raw, np.float64) * self.unit

    def _blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield blocks of raw numbers with their start; memory of file pages is released."""
        for start in range(0, self.domains, AT_ONCE):
            yield start, self.raw[start : start + AT_ONCE]
            let_go(self.raw, start, min(start + AT_ONCE, self.domains))

    def _at(self, position: int) -> Any:
        best = self.raw[:0]
        for _, raw in self._blocks():
            best = np.concatenate([best, raw])
            if best.size > position:
                best = np.partition(best, -position)[-position:]
        return best.min()

    def _in_order(self, nodes: IntArray) -> IntArray:
        """Return domains sorted, best first."""
        raw, into = self.raw[nodes], self.in_indptr
        falling = -raw.astype(np.int64) if raw.dtype.kind in "iu" else -raw
        fewer = np.zeros(nodes.size, np.int64) if into is None else into[nodes] - into[nodes + 1]
        return nodes[np.lexsort((nodes, fewer, falling))]

    def id_of(self, domain: int | str) -> int:
        """Return the id of a domain, given by name or id."""
        if isinstance(domain, str):
            if self.names is None:
                raise UsageError(f"no domain named {domain!r}: this graph has no names", hint="ask by id")
            return self.names.id_of(domain)
        if not 0 <= domain < self.domains:
            raise UsageError(f"no domain {domain}: ids go from 0 to {self.domains - 1}", hint="see .top()")
        return int(domain)

    def __repr__(self) -> str:
        how = ", ".join(f"{key} {value}" for key, value in self.method.items())
        return f"Reputation({self.kind}, {self.domains:,} domains{', ' if how else ''}{how})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{row['position']}</td><td>{row['score']:,.6g}</td><td>{escape(row['domain'])}</td></tr>"
            for row in self.to_dict()["domains"]
        )
        return f"<p>{escape(repr(self))}</p><table><tr><th></th><th>score</th><th>domain</th></tr>{rows}</table>"
