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
ranking, only what changed is moved (`kernels/pagerank_iterations.py`). *auto* starts with power sweeps and switches
to seidel as soon as one of them shrinks the change too little; on an expander none does.

Cost: one sequential read of the in-links per sweep, 40 to 80 bytes of memory per page. The in-links may be
a memory map larger than RAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray
from surveyor.errors import NotConverged, UsageError
from surveyor.graph.csr import Graph
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.ranking import Ranking
from surveyor.rank.sweeps import Sweeps
from surveyor.stopping import ProgressCallback, silent

Solver = Literal["auto", "power", "seidel", "push"]
Weights = npt.ArrayLike | Sequence[str]

EXPANDER = 0.3  # while power sweeps leave less than this part of the change, they are the fastest
SMALLEST = 1e-13  # float64 cannot prove a smaller error


def pagerank(
    graph: Graph,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    teleport: Weights | None = None,
    *,
    dangling: Literal["teleport", "uniform"] | FloatArray = "teleport",
    start: Ranking | FloatArray | None = None,
    solver: Solver = "auto",
    max_sweeps: int = 1000,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Ranking:
    """Rank the pages of a graph so that the L1 distance to the exact PageRank is at most `tolerance`.

    Parameters
    ----------
    teleport : one weight per page, or the names of the trusted pages; uniform by default.
    dangling : where a surfer goes from a page without links.
    start : an earlier ranking of this graph, or of one with fewer pages; work then grows with the change.
    solver : "auto" chooses; see the module docstring.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
    >>> ranking = pagerank(graph, tolerance=1e-9)
    >>> ranking.name(ranking.top(1)[0]), round(ranking.share("b"), 4), ranking.error <= 1e-9
    ('b', 0.3974, True)
    """
    _check(damping, tolerance, solver, start)
    jump = _weights(graph, teleport, "teleport")
    stuck_to = _stuck_to(graph, dangling)
    with ThreadPool(threads) as pool:
        sweeps = Sweeps(graph, jump, stuck_to, damping, pool)
        if graph.pages == 0:
            return _ranking(graph, sweeps, "power", tolerance, dangling)
        if start is not None:
            sweeps.begin(_earlier(graph, start))
        chosen = _solve(sweeps, solver, tolerance, max_sweeps, progress, warm=start is not None)
    ranking = _ranking(graph, sweeps, chosen, tolerance, dangling)
    if ranking.error > tolerance:
        rounding = "rounding allows no smaller bound here; ask for a larger tolerance"
        hint = rounding if ranking.sweeps < max_sweeps else "raise max_sweeps"
        raise NotConverged(ranking, tolerance, f"{hint}, or take .best (it carries its own bound)")
    return ranking


def _solve(
    sweeps: Sweeps, solver: Solver, tolerance: float, max_sweeps: int, progress: ProgressCallback, *, warm: bool
) -> str:
    """Sweep until the proven error is small enough, no longer falls, or the sweeps are used up."""
    if warm and solver in ("auto", "push"):
        if sweeps.leaky:
            sweeps.push(tolerance, max_sweeps)
            if sweeps.prove() <= tolerance:
                return "push"
        solver = "auto"
    method = "seidel" if solver == "seidel" else "power"
    gain = 0.21  # an exact residual is about this part of the bound of a Gauss–Seidel sweep
    stalled = 0
    while sweeps.error > tolerance and sweeps.sweeps < max_sweeps and stalled < 8:
        progress("ranking", sweeps.sweeps, _expected(sweeps, tolerance), "sweeps")
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


def _expected(sweeps: Sweeps, tolerance: float) -> float:
    """Predict the number of sweeps from the rate at which the bound has fallen; 0 while it is unknown."""
    if len(sweeps.history) < 4 or not 0 < sweeps.error < sweeps.history[1]:
        return 0.0
    pace = np.log(sweeps.error / sweeps.history[1]) / (len(sweeps.history) - 2)
    return sweeps.sweeps + float(np.log(tolerance / sweeps.error) / pace)


def _ranking(graph: Graph, sweeps: Sweeps, solver: str, tolerance: float, dangling: object) -> Ranking:
    stuck_to = sweeps.jump if sweeps.stuck_to is None else sweeps.stuck_to
    return Ranking(
        scores=sweeps.scores(),
        error=sweeps.error,
        sweeps=sweeps.sweeps,
        damping=sweeps.damping,
        tolerance=tolerance,
        solver=solver,
        dangling=dangling if isinstance(dangling, str) else "given",
        jump=None if sweeps.jump.size == 1 else sweeps.jump,
        stuck_to=None if stuck_to.size == 1 else stuck_to,
        history=tuple(sweeps.history),
        names=graph.names,
    )


def _check(damping: float, tolerance: float, solver: str, start: object) -> None:
    if not 0 <= damping < 1:
        raise UsageError(
            f"damping {damping} is outside 0 to 1", hint="it is the chance to follow a link; 0.85 is usual"
        )
    if not tolerance >= SMALLEST:
        raise UsageError(f"tolerance {tolerance} is below what float64 can prove", hint=f"ask for {SMALLEST} or more")
    if solver not in ("auto", "power", "seidel", "push"):
        raise UsageError(f"no solver {solver!r}", hint="auto, power, seidel or push")
    if solver == "push" and start is None:
        raise UsageError("the push solver starts from an earlier ranking", hint="give start=, or solver='auto'")


def _weights(graph: Graph, given: Weights | None, what: str) -> FloatArray:
    """Return a distribution over the pages; a single entry represents the uniform one."""
    if given is None:
        return np.full(1, 1.0 / max(graph.pages, 1))
    if isinstance(given, str):
        given = [given]
    array = np.asarray(given)
    if array.dtype.kind in "US":
        weights = np.zeros(graph.pages)
        weights[[graph.page(str(name)) for name in array]] = 1.0
    else:
        weights = array.astype(np.float64)
    if weights.shape != (graph.pages,):
        raise UsageError(
            f"{what} has shape {weights.shape} for {graph.pages:,} pages",
            hint="give one weight per page, or names",
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise UsageError(
            f"{what} weights must be finite, none negative, not all zero",
            hint="give one weight per page, or names",
        )
    return _shares(weights)


def _stuck_to(graph: Graph, dangling: str | FloatArray) -> FloatArray | None:
    """Return the distribution that dangling pages lead to, None for the teleport vector."""
    if not isinstance(dangling, str):
        return _weights(graph, dangling, "dangling")
    if dangling not in ("teleport", "uniform"):
        raise UsageError(f"no dangling rule {dangling!r}", hint="teleport, uniform, or one weight per page")
    return None if dangling == "teleport" else _weights(graph, None, "dangling")


def _earlier(graph: Graph, start: Ranking | FloatArray) -> FloatArray:
    """Return an earlier ranking as a start; pages that it lacks get an equal share."""
    scores = np.asarray(start.scores if isinstance(start, Ranking) else start, np.float64)
    if (
        scores.ndim != 1
        or scores.size > graph.pages
        or not (np.isfinite(scores).all() and (scores >= 0).all() and scores.any())
    ):
        raise UsageError(
            f"the start has shape {scores.shape} or bad values for {graph.pages:,} pages",
            hint="give a ranking of this graph, or of its first pages",
        )
    full = np.full(graph.pages, 1.0 / graph.pages)
    full[: scores.size] = _shares(scores)
    return _shares(full)


def _shares(weights: FloatArray) -> FloatArray:
    """Scale weights to sum 1 without overflow."""
    scaled = weights / weights.max()
    return np.asarray(scaled / scaled.sum())
