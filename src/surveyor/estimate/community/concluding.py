"""From what was read to the answer: the estimates, and how far they would have come out otherwise.

**Uncertainty.** Nothing read bounds what pages not read would say (local estimation of PageRank can be wrong however
much is read around a page), so no bound is claimed. What can be told is how much the answer depends on which pages were
read: the extra pages are dealt out to a few groups of batches, each group is left out in turn, and the spread of the
answers, scaled as a jackknife, is the uncertainty shown. It says nothing of what no batch could have seen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.community.estimators import Estimate, Method, estimate
from surveyor.kernels.crawled_graph import CrawledGraph

GROUPS = 8  # of batches, each left out in turn
ROUGH = 1e-6  # the tolerance of these
METHODS: tuple[Method, ...] = ("auto", "crawled", "frontier")

Retold = Callable[[IdArray], CrawledGraph]  # what so many of the pages read tell, by id


def all_estimates(
    known: CrawledGraph, local: IdArray, batch_of: IntArray, damping: float, tolerance: float
) -> dict[str, Estimate]:
    """Estimate the global rank of local pages, by id, in all ways."""
    places = _places(known, local)
    return {
        method: estimate(known, places, batch_of, method, damping=damping, tolerance=tolerance) for method in METHODS
    }


def rank_alone(local: IdArray, retold: Retold, damping: float, tolerance: float) -> FloatArray:
    """Return the PageRank of local pages by the links among them alone."""
    alone = retold(np.sort(local))
    none = np.zeros(local.size, np.int64)
    return estimate(alone, _places(alone, local), none, "crawled", damping=damping, tolerance=tolerance).scores


def jackknife(
    known: CrawledGraph, local: IdArray, batch_of: IntArray, method: Method, retold: Retold, damping: float
) -> FloatArray | None:
    """Return the standard deviation of each local score over what batches are left out; None with less than two."""
    batches = np.unique(batch_of[batch_of > 0])
    groups = min(GROUPS, batches.size)
    if groups < 2:
        return None
    found = np.empty((groups, local.size))
    for group in range(groups):
        kept = (batch_of == 0) | (np.searchsorted(batches, batch_of) % groups != group)
        rest = retold(known.pages[kept])
        found[group] = estimate(
            rest, _places(rest, local), batch_of[kept], method, damping=damping, tolerance=ROUGH
        ).scores
    spread: FloatArray = np.sqrt((groups - 1) * found.var(axis=0))
    return spread


def _places(known: CrawledGraph, pages: IdArray) -> IdArray:
    places = np.searchsorted(known.pages, pages)
    if not np.array_equal(known.pages[np.minimum(places, known.pages.size - 1)], pages):
        raise UsageError("local pages are no longer among the pages read", hint="begin anew with what is there")
    return places.astype(np.int32)
