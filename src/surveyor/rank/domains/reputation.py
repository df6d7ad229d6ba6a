"""Scores of domains with confidence intervals: the result type of every domain score.

Only ranks matter: which domain is above which. Ties are broken by in-degree, then by id; the ids of a condensed
graph, and of Common Crawl's, follow the names in reversed label order (`org.example`).

    >>> estimate = Reputation("tse", np.array([30, 0, 12], np.uint32), scale=100.0, error_model=BinomialCount(0.01))
    >>> estimate.top(2).tolist(), estimate.score(0), [round(end) for end in estimate.interval(0)]
    ([0, 2], 3000.0, [2028, 4276])

Error models, by estimator:

    Exact            counted, not estimated
    BoundedError     a proven bound on the error of every score (PageRank)
    BinomialCount    a count among sampled domains: Binomial(true count, p)
    PoissonCount     an estimate with a known variance-to-mean ratio per domain (bit vectors, HyperLogLog)

The confidence holds for each domain separately. Errors of different domains are not independent: all were estimated
from the same sample.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, FloatArray, IntArray, let_go, read_only
from surveyor.errors import UsageError
from surveyor.frames import BARS, Tabular, draw_bars
from surveyor.graph.labels import Labels
from surveyor.graph.names import Names
from surveyor.stopping import ProgressCallback, silent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AT_ONCE = 1 << 20  # scores read at a time: they may be in a file larger than memory
CONFIDENCE = 0.95
Interval = tuple[FloatArray, FloatArray]  # lower and upper ends


@dataclass(frozen=True, slots=True)
class Resources:
    """Threads, memory and progress reports of a computation; they never change its result."""

    threads: int | None = None  # all cores by default
    memory: int | None = None  # maximum bytes, where a computation has a limit
    progress: ProgressCallback = silent


DEFAULT_RESOURCES = Resources()


class ErrorModel(Protocol):
    """The error distribution of scores."""

    @property
    def confidence(self) -> float:
        """The coverage probability of an interval; 1 if it is proven."""

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the lower and upper bounds for these scores."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A score that was counted, not estimated."""

    confidence: float = 1.0

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the scores themselves."""
        return scores, scores


@dataclass(frozen=True, slots=True)
class BoundedError:
    """A score with a proven bound `error` on its error."""

    error: float
    confidence: float = 1.0

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the scores minus and plus the bound, never below 0."""
        return np.maximum(scores - self.error, 0.0), scores + self.error


@dataclass(frozen=True, slots=True)
class BinomialCount:
    """A count among domains of which each was sampled with probability p, divided by p.

    The bounds are the true counts N for which Binomial(N, p) is that high, or that low, with probability
    (1 - confidence) / 2: an exact interval (inverted test), whose coverage is never too low. With at least 1,000
    counted and as many not sampled, the score interval (c - N p)² = z² N p (1 - p) is used instead; the two agree to
    a thousandth.
    """

    p: float
    confidence: float = CONFIDENCE

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the bounds, computed once for each distinct count."""
        from surveyor.kernels.binomial import trial_intervals

        if self.p >= 1:
            return scores, scores
        counts, inverse = np.unique(np.rint(scores * self.p).astype(np.int64), return_inverse=True)
        z = NormalDist().inv_cdf(0.5 + self.confidence / 2)
        low, high = np.empty(counts.size), np.empty(counts.size)
        trial_intervals(counts, self.p, (1 - self.confidence) / 2, z, low, high)
        return low[inverse], high[inverse]

    def relative_error(self, score: float) -> float:
        """Return the relative standard deviation of the estimate of a score of this size."""
        return math.sqrt((1 - self.p) / (self.p * score)) if score > 0 else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class PoissonCount:
    """An estimate whose variance is the true value times a dispersion, which differs between domains.

    It is distributed like a Poisson count in units of the dispersion. The bounds are those of its score interval:
    (estimate - N)² = z² N · dispersion; for an estimate of 0 they are 0 and z² · dispersion. No bound is above
    `maximum`; the bounds of integer counts are rounded outwards.
    """

    dispersion: npt.NDArray[np.float32]  # variance-to-mean ratio of each domain
    maximum: float = math.inf
    integers: bool = False
    confidence: float = CONFIDENCE

    def for_domains(self, domains: AnyIntArray) -> PoissonCount:
        """Return the error model of some domains."""
        return replace(self, dispersion=self.dispersion[domains])

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the bounds for the scores of the domains of this model, in their order."""
        half = NormalDist().inv_cdf(0.5 + self.confidence / 2) ** 2 * self.dispersion.astype(np.float64) / 2
        width = np.sqrt(half * (2 * scores + half))
        low, high = np.maximum(scores + half - width, 0.0), scores + half + width
        if self.integers:
            low, high = np.floor(low), np.ceil(high)
        return low, np.minimum(high, np.maximum(self.maximum, scores))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reputation(Tabular):
    """Scores over the domains of one graph."""

    kind: str  # the score: "tse", "supp", "in", …
    raw: npt.NDArray[Any]  # a number per domain, read-only; may be a memory map
    scale: float = 1.0  # the score of a domain is its raw number times this
    error_model: ErrorModel = field(default_factory=Exact)
    in_indptr: IntArray | None = None  # in-links of the graph, row by row, to break ties
    names: Names | None = None
    method: Mapping[str, Any] = field(default_factory=dict)  # parameters that reproduce the scores: p, depth, seed, …

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

    def score(self, domain: Hashable) -> float:
        """Return the score of a domain, by id or by name."""
        return float(self.raw[self.id_of(domain)]) * self.scale

    def interval(self, domain: Hashable) -> tuple[float, float]:
        """Return the confidence interval of the score of a domain."""
        low, high = self.intervals(np.array([self.id_of(domain)]))
        return float(low[0]), float(high[0])

    def intervals(self, domains: AnyIntArray | None = None) -> Interval:
        """Return the confidence intervals of some domains, or of all."""
        if domains is None:
            return self.error_model.intervals(self.scores)
        model = self.error_model
        if isinstance(model, PoissonCount):
            model = model.for_domains(domains)
        return model.intervals(self._scores(self.raw[domains]))

    def top(self, count: int = 10) -> npt.NDArray[Any]:
        """Return the best domains, best first, by id, or by node if an object of another library was scored."""
        best = self.top_ids(count)
        return self.names.of(best) if isinstance(self.names, Labels) else best

    def top_ids(self, count: int = 10) -> IntArray:
        """Return the ids of the best domains, best first; ties are broken by in-degree, then by id."""
        count = max(0, min(count, self.domains))
        if not count:
            return np.empty(0, np.int64)
        threshold = self._raw_at(count)
        best = [start + np.flatnonzero(raw >= threshold) for start, raw in self._blocks()]
        return self._in_order(np.concatenate(best))[:count]

    def score_at(self, position: int) -> float:
        """Return the score at a position, 1 being the best; 0 if there are fewer domains."""
        return float(self._raw_at(position)) * self.scale if 0 < position <= self.domains else 0.0

    def position(self, domain: Hashable) -> int:
        """Return the number of domains above this one, plus one (ties share the better position)."""
        own = self.raw[self.id_of(domain)]
        return 1 + sum(int(np.count_nonzero(raw > own)) for _, raw in self._blocks())

    def positions(self) -> IntArray:
        """Return the position of each domain, all distinct: 1 is the best."""
        positions = np.empty(self.domains, np.int64)
        positions[self.top_ids(self.domains)] = np.arange(1, self.domains + 1)
        return positions

    def name(self, domain: int) -> str:
        """Return the name of a domain, or its id as text."""
        return str(domain) if self.names is None else self.names[domain]

    def to_dict(self, top: int = 10) -> dict[str, Any]:
        """Return the best domains and the method as plain values."""
        best = self.top_ids(top)
        low, high = self.intervals(best)
        bounds = zip(best.tolist(), low.tolist(), high.tolist(), strict=True)
        rows = [
            {
                "position": position,
                "domain": self.name(domain),
                "id": domain,
                "score": float(self.raw[domain]) * self.scale,
                "low": lower,
                "high": upper if np.isfinite(upper) else None,
            }
            for position, (domain, lower, upper) in enumerate(bounds, 1)
        ]
        return {
            "score": self.kind,
            "confidence": self.error_model.confidence,
            **{key: value for key, value in self.method.items() if value != np.inf},
            "domains": rows,
        }

    def _columns(self) -> dict[str, Any]:
        low, high = self.intervals()
        columns: dict[str, Any] = {"id": np.arange(self.domains), "score": self.scores, "low": low, "high": high}
        if isinstance(self.names, Labels):
            columns = {"node": self.names.of(columns.pop("id")), **columns}
        elif self.names is not None:
            columns["domain"] = list(self.names)
        return columns

    def _draw(self, axes: Axes) -> None:
        best = self.top_ids(BARS)
        low, high = self.intervals(best)
        names = [self.name(domain) for domain in best.tolist()]
        draw_bars(axes, names, self._scores(self.raw[best]).tolist(), self.kind, (low.tolist(), high.tolist()))

    def _scores(self, raw: npt.NDArray[Any]) -> FloatArray:
        return np.asarray(raw, np.float64) * self.scale

    def _blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield blocks of raw numbers with their start; release the memory of mapped file pages."""
        for start in range(0, self.domains, AT_ONCE):
            yield start, self.raw[start : start + AT_ONCE]
            let_go(self.raw, start, min(start + AT_ONCE, self.domains))

    def _raw_at(self, position: int) -> Any:
        best = self.raw[:0]
        for _, raw in self._blocks():
            best = np.concatenate([best, raw])
            if best.size > position:
                best = np.partition(best, -position)[-position:]
        return best.min()

    def _in_order(self, nodes: IntArray) -> IntArray:
        """Return domains sorted, best first."""
        raw, into = self.raw[nodes], self.in_indptr
        descending = -raw.astype(np.int64) if raw.dtype.kind in "iu" else -raw
        fewer_links = np.zeros(nodes.size, np.int64) if into is None else into[nodes] - into[nodes + 1]
        return nodes[np.lexsort((nodes, fewer_links, descending))]

    def id_of(self, domain: Any) -> int:
        """Return the id of a domain, given by name, id or node."""
        if self.names is not None and (isinstance(domain, str) or isinstance(self.names, Labels)):
            return self.names.id_of(domain)
        if isinstance(domain, str):
            raise UsageError(f"no domain {domain!r}: the graph has no names", hint="pass the id of the domain")
        if not 0 <= domain < self.domains:
            raise UsageError(f"domain id must be in [0, {self.domains - 1}], got {domain}", hint="see .top()")
        return int(domain)

    def __repr__(self) -> str:
        method = "".join(f", {key} {value}" for key, value in self.method.items())
        return f"Reputation({self.kind}, {self.domains:,} domains{method})"

    def _html(self) -> str:
        rows = "".join(
            f"<tr><td>{row['position']}</td><td>{row['score']:,.6g}</td><td>{escape(str(row['domain']))}</td></tr>"
            for row in self.to_dict()["domains"]
        )
        return f"<p>{escape(repr(self))}</p><table><tr><th></th><th>score</th><th>domain</th></tr>{rows}</table>"
