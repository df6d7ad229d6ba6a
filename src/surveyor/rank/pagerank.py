"""PageRank with a proven error.

The rank r of a page is the share of time a surfer spends on it who follows a random link with probability
`damping` (d) and otherwise jumps to a page drawn from the teleport vector v. From a page without links the
surfer jumps as `dangling` defines (u: the teleport vector, or uniform):

    r = G r,   G r = d · (Aᵀ (r / out-degree) + (sum of r on dangling pages) · u) + (1 − d) · v

**Certificate.** G contracts the L1 distance of any two vectors of sum 1 by the factor d. So for every x of sum 1,
however it was found, ‖x − r‖ ≤ ‖G x − x‖ / (1 − d), and G x itself is within d times that. Each computation
ends with such a step, and the bound includes the rounding of that step. The bound of a Gauss–Seidel sweep
with change D is 2 d D / (1 − d): each value it read was an old or a new one, so its residual is at most d D,
and scaling the result to sum 1 at most doubles that. (With u ≠ v the jumps lag too: (1 + d) D / (1 − d).)

**Solvers.** *power*: x ← G x. *seidel*: Gauss–Seidel on blocks of pages, first all even blocks in parallel,
then the odd ones; inside a block new values are used immediately, and adjacent blocks are never updated
at the same time, so blocks cost almost no convergence. The number of blocks depends on the graph only:
the result has the same bytes on any number of threads. Instead of rescaling x, the weight of the jump
follows the sum of x, which converges on expanders as fast as power does. Every few sweeps the last ranks
are combined so that their combined change is smallest (reduced rank extrapolation). *push*: from an earlier
ranking, only what changed is moved (`kernels/pagerank_iterations.py`). *auto* starts with power sweeps and switches to
seidel as soon as one of them shrinks the change too little; on an expander none does.

Cost: one sequential read of the in-links per sweep, 40 to 80 bytes of memory per page. The in-links may be
a memory map larger than RAM.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray, read_only, real_numbers
from surveyor.errors import NotConverged, UsageError, check_range
from surveyor.frames import Tabular, draw_shares
from surveyor.graph.adapters import GraphLike, as_graph
from surveyor.graph.csr import Graph, page_id
from surveyor.graph.labels import Labels
from surveyor.graph.names import Names, labels
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.sweeps import Sweeps
from surveyor.stopping import ProgressCallback, silent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUMMARY = ("error", "sweeps", "damping", "tolerance", "solver", "dangling", "teleport")  # of a ranking, as plain values
LOG_FLOOR = 1e-9  # of the best share: lower end of the log scale


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranking(Tabular):
    """Scores over the pages of one graph, with a proven error and the method."""

    scores: FloatArray  # sum to 1; read-only
    error: float  # the L1 distance to the exact answer is at most this
    sweeps: int  # passes over all links, including the last one, which proves the error
    damping: float
    tolerance: float
    solver: str  # "power", "seidel" or "push": the one that did most of the work
    dangling: str  # rule for pages without links: "teleport", "uniform" or "custom"
    teleport_weights: FloatArray | None = None  # teleport distribution; None: uniform
    dangling_weights: FloatArray | None = None  # distribution that dangling pages lead to; None: uniform
    history: tuple[float, ...] = ()  # the proven bound after each sweep
    names: Names | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", read_only(self.scores))

    @property
    def teleport(self) -> str:
        """Teleport distribution: "uniform" or "custom"."""
        return "uniform" if self.teleport_weights is None else "custom"

    def top(self, count: int = 10) -> npt.NDArray[Any]:
        """Return the best pages, best first, by id, or by node if an object of another library was ranked."""
        best = self.top_ids(count)
        return self.names.of(best) if isinstance(self.names, Labels) else best

    def top_ids(self, count: int = 10) -> IntArray:
        """Return the ids of the best pages, best first; ties broken by id."""
        count = max(0, min(count, self.scores.size))
        best = np.arange(self.scores.size)
        if count < self.scores.size // 4:
            # All pages not below the last of the best, so that ties with it are broken by id too.
            threshold = np.partition(self.scores, -count)[-count] if count else np.inf
            best = np.flatnonzero(self.scores >= threshold)
        return best[np.lexsort((best, -self.scores[best]))[:count]]

    def share(self, page: Hashable) -> float:
        """Return the score of a page, by id or by name; by node, if an object of another library was ranked."""
        return float(self.scores[self._id(page)])

    def position(self, page: Hashable) -> int:
        """Return the number of pages above this one, plus one (ties share the better position)."""
        return int(np.count_nonzero(self.scores > self.share(page))) + 1

    def log_scores(self) -> FloatArray:
        """Return scores from 0 to 100 on a log scale, from the smallest share to the largest of this ranking."""
        positive = self.scores[self.scores > 0]
        if positive.size == 0:
            return np.zeros_like(self.scores)
        return log_scale(self.scores, float(positive.min()), float(positive.max()))

    def name(self, page: int) -> str:
        """Return the name of a page, or its id as text."""
        return str(page) if self.names is None else self.names[page]

    def to_dict(self, top: int = 10) -> dict[str, Any]:
        """Return the best pages and all parameters as plain values."""
        scaled = self.log_scores()
        return {
            **{name: getattr(self, name) for name in SUMMARY},
            "pages": [
                {**labels(page, self.name(page)), "share": float(self.scores[page]), "score": float(scaled[page])}
                for page in self.top_ids(top).tolist()
            ],
        }

    def _columns(self) -> dict[str, Any]:
        if isinstance(self.names, Labels):
            return {"node": self.names.of(np.arange(self.scores.size)), "share": self.scores}
        columns: dict[str, Any] = {"id": np.arange(self.scores.size), "share": self.scores}
        if self.names is not None:
            columns["name"] = list(self.names)
        return columns

    def _draw(self, axes: Axes) -> None:
        draw_shares(axes, self.scores)

    def _id(self, page: Any) -> int:
        if isinstance(page, str) and self.names is None:
            raise UsageError(f"no page {page!r}: the ranking has no names", hint="pass the id of the page")
        if self.names is not None and (isinstance(page, str) or isinstance(self.names, Labels)):
            return self.names.id_of(page)
        return page_id(page, self.scores.size)

    def __repr__(self) -> str:
        size = f"{self.scores.size:,} pages"
        return f"Ranking({size}, error at most {self.error:.1e}, {self.sweeps} sweeps, {self.solver})"

    def _html(self) -> str:
        rows = "".join(
            f"<tr><td>{row['score']:.0f}</td><td>{row['share']:.3%}</td><td>{escape(str(row['name']))}</td></tr>"
            for row in self.to_dict()["pages"]
        )
        return f"<p>{escape(repr(self))}</p><table><tr><th>score</th><th>share</th><th>page</th></tr>{rows}</table>"


Solver = Literal["auto", "power", "seidel", "push"]
Weights = npt.ArrayLike | Sequence[Hashable] | Set[Hashable] | Mapping[Any, float]
Dangling = Literal["teleport", "uniform"] | FloatArray | Mapping[Any, float]

EXPANDER = 0.3  # while power sweeps leave less than this fraction of the change, they are the fastest
SMALLEST = 1e-13  # float64 cannot prove a smaller error


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """How `pagerank` computes: solver, maximum number of sweeps, threads, progress reports."""

    solver: Solver = "auto"  # see the module docstring
    max_sweeps: int = 1000
    threads: int | None = None  # all cores by default
    progress: ProgressCallback = silent


DEFAULT_OPTIONS = SolverOptions()


def pagerank(
    graph: GraphLike,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    teleport: Weights | None = None,
    *,
    dangling: Dangling = "teleport",
    start: Ranking | FloatArray | None = None,
    options: SolverOptions = DEFAULT_OPTIONS,
) -> Ranking:
    """Rank the pages of a graph so that the L1 distance to the exact PageRank is at most `tolerance`.

    Parameters
    ----------
    graph : a `Graph`, or an object of another library or a path, as in `as_graph`. Where it has weights, a surfer
        follows each link with a probability proportional to its weight; self-links that it has count.
    teleport : one weight per page, the trusted pages (names, or a set of pages), or a dict from pages to weights;
        uniform by default.
    dangling : where a surfer goes from a page without links: "teleport", "uniform", one weight per page, or a dict.
    start : an earlier ranking of this graph, or of one with fewer pages; work then grows with the change.
    options : solver, maximum number of sweeps, threads and progress.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
    >>> ranking = pagerank(graph, tolerance=1e-9)
    >>> ranking.name(ranking.top(1)[0]), round(ranking.share("b"), 4), ranking.error <= 1e-9
    ('b', 0.3974, True)
    >>> pagerank([(10, 20), (20, 30), (30, 10), (30, 20)]).top(2).tolist()
    [20, 30]
    """
    graph = as_graph(graph)
    check_arguments(damping, tolerance, options.solver, start)
    teleport_weights = _distribution(graph, teleport, "teleport")
    dangling_weights = _dangling_distribution(graph, dangling)
    with ThreadPool(options.threads) as pool:
        sweeps = Sweeps(graph, teleport_weights, dangling_weights, damping, pool)
        if graph.pages == 0:
            return _ranking(graph, sweeps, "power", tolerance, dangling)
        if start is not None:
            sweeps.start(_start_vector(graph, start))
        solver = _solve(sweeps, tolerance, options, warm=start is not None)
    ranking = _ranking(graph, sweeps, solver, tolerance, dangling)
    if ranking.error > tolerance:
        rounding = "rounding allows no smaller bound here; use a larger tolerance"
        hint = rounding if ranking.sweeps < options.max_sweeps else "raise max_sweeps"
        raise NotConverged(ranking, tolerance, f"{hint}, or use .best (it carries its own bound)")
    return ranking


class RankSweeps(Protocol):
    """Ranks that `solve` improves: those of a graph, or of a graph in pieces."""

    history: list[float]
    change: float

    @property
    def error(self) -> float:
        """The proven bound of the current ranks."""

    @property
    def sweeps(self) -> int:
        """The number of passes over all links."""

    def prove(self) -> float:
        """Run one power sweep and return its bound."""

    def seidel(self) -> float:
        """Run one Gauss–Seidel sweep and return its bound."""


def _solve(sweeps: Sweeps, tolerance: float, options: SolverOptions, *, warm: bool) -> str:
    """Push, from an earlier ranking, and sweep until the proven error is small enough; return the solver."""
    if warm and options.solver in ("auto", "push"):
        if sweeps.can_push:
            sweeps.push(tolerance, options.max_sweeps)
            if sweeps.prove() <= tolerance:
                return "push"
        options = replace(options, solver="auto")
    return solve(sweeps, tolerance, options)


def solve(sweeps: RankSweeps, tolerance: float, options: SolverOptions) -> str:
    """Sweep until the proven error is small enough, no longer falls, or the sweeps are used up; return the solver."""
    solver, max_sweeps = options.solver, options.max_sweeps
    method = "seidel" if solver == "seidel" else "power"
    gain = 0.21  # an exact residual is about this fraction of the bound of a Gauss–Seidel sweep
    stalled = 0
    while sweeps.error > tolerance and sweeps.sweeps < max_sweeps and stalled < 8:
        options.progress("ranking", sweeps.sweeps, _expected_sweeps(sweeps, tolerance), "sweeps")
        best, before = min(sweeps.history, default=2.0), sweeps.change
        if method == "seidel":
            bound = sweeps.seidel()
            if gain * bound <= tolerance:
                gain = max(0.05, min(1.0, 1.1 * sweeps.prove() / (bound or 1.0)))
        else:
            sweeps.prove()
            if solver == "auto" and len(sweeps.history) > 1 and sweeps.change > EXPANDER * before:
                method = "seidel"
        # Rounding sets a floor; eight sweeps in a row without progress near it mean that it is reached.
        stalled = stalled + 1 if best < 1e-9 and min(sweeps.history) >= best else 0
    return method


def _expected_sweeps(sweeps: RankSweeps, tolerance: float) -> float:
    """Predict the number of sweeps from the rate at which the bound has fallen; 0 while it is unknown."""
    if len(sweeps.history) < 4 or not 0 < sweeps.error < sweeps.history[1]:
        return 0.0
    rate = np.log(sweeps.error / sweeps.history[1]) / (len(sweeps.history) - 2)
    return sweeps.sweeps + float(np.log(tolerance / sweeps.error) / rate)


def _ranking(graph: Graph, sweeps: Sweeps, solver: str, tolerance: float, dangling: Dangling) -> Ranking:
    teleport = sweeps.teleport
    dangling_weights = teleport if sweeps.dangling is None else sweeps.dangling
    return Ranking(
        scores=sweeps.scores(),
        error=sweeps.error,
        sweeps=sweeps.sweeps,
        damping=sweeps.damping,
        tolerance=tolerance,
        solver=solver,
        dangling=dangling if isinstance(dangling, str) else "custom",
        teleport_weights=None if teleport.size == 1 else teleport,
        dangling_weights=None if dangling_weights.size == 1 else dangling_weights,
        history=tuple(sweeps.history),
        names=graph.names,
    )


def log_scale(shares: FloatArray, smallest: float, best: float) -> FloatArray:
    """Return shares as scores from 0 to 100 on a log scale between the smallest positive and the best share."""
    floor = max(smallest, LOG_FLOOR * best)  # pages far from the seeds would stretch the scale
    if floor >= best:
        return np.where(shares > 0, 100.0, 0.0)
    scaled: FloatArray = 100 * np.log(np.maximum(shares, floor) / floor) / np.log(best / floor)
    return scaled


def check_arguments(damping: float, tolerance: float, solver: str, start: object) -> None:
    """Reject arguments of `pagerank` that are out of range."""
    check_range("damping", damping, "[0, 1)", hint="it is the probability of following a link, usually 0.85")
    check_range("tolerance", tolerance, f"[{SMALLEST}, inf]", hint="float64 cannot prove a smaller error")
    if solver not in get_args(Solver):
        raise UsageError(f"unknown solver {solver!r}", hint=f"choose {', '.join(get_args(Solver))}")
    if solver == "push" and start is None:
        raise UsageError("solver 'push' needs start, an earlier ranking", hint="pass start=, or solver='auto'")


def _distribution(graph: Graph, weights: Weights | None, argument: str) -> FloatArray:
    """Return a distribution over the pages; a single entry represents the uniform one."""
    if weights is None:
        return np.full(1, 1.0 / max(graph.pages, 1))
    hint = "pass one weight per page, a list of pages, or a dict from pages to weights"
    if isinstance(weights, Mapping):
        values = np.zeros(graph.pages)
        values[[graph.page(page) for page in weights]] = real_numbers(list(weights.values()), argument, hint=hint)
    elif (pages := _listed_pages(weights)) is not None:
        values = np.zeros(graph.pages)
        values[[graph.page(page) for page in pages]] = 1.0
    else:
        array = np.asarray(weights)
        if array.shape != (graph.pages,):
            raise UsageError(
                f"{argument} must have one weight for each of {graph.pages:,} pages, got shape {array.shape}", hint=hint
            )
        values = real_numbers(array, argument, hint=hint)
    if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
        raise UsageError(f"{argument} weights must be finite and non-negative, and not all zero", hint=hint)
    return _shares(values)


def _listed_pages(weights: Any) -> list[Any] | None:
    """Return the pages if these are pages and not weights: text, a set, or a list with anything but numbers."""
    if isinstance(weights, str):
        return [weights]
    if isinstance(weights, np.ndarray):
        return weights.tolist() if weights.dtype.kind in "US" else None
    if isinstance(weights, set | frozenset):
        return list(weights)
    numbers = int | float | np.number | np.bool_
    if isinstance(weights, list | tuple) and any(not isinstance(weight, numbers) for weight in weights):
        return list(weights)
    return None


def _dangling_distribution(graph: Graph, dangling: Dangling) -> FloatArray | None:
    """Return the distribution that dangling pages lead to, None for the teleport distribution."""
    if not isinstance(dangling, str):
        return _distribution(graph, dangling, "dangling")
    if dangling not in ("teleport", "uniform"):
        raise UsageError(f"unknown dangling rule {dangling!r}", hint="choose teleport, uniform, or one weight per page")
    return None if dangling == "teleport" else _distribution(graph, None, "dangling")


def _start_vector(graph: Graph, start: Ranking | FloatArray) -> FloatArray:
    """Return an earlier ranking as a start vector; pages that it lacks get an equal share."""
    scores = np.asarray(start.scores if isinstance(start, Ranking) else start, np.float64)
    valid = scores.ndim == 1 and scores.size <= graph.pages and bool(np.isfinite(scores).all())
    if not (valid and (scores >= 0).all() and scores.any()):
        raise UsageError(
            f"start must hold at most {graph.pages:,} finite, non-negative scores, got shape {scores.shape}",
            hint="pass a ranking of this graph, or of its first pages",
        )
    full = np.full(graph.pages, 1.0 / graph.pages)
    full[: scores.size] = _shares(scores)
    return _shares(full)


def _shares(weights: FloatArray) -> FloatArray:
    """Scale weights to sum 1 without overflow."""
    scaled = weights / weights.max()
    return np.asarray(scaled / scaled.sum())
