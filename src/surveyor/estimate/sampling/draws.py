"""Pages of a topic, each as likely as any other, out of the steps of walks.

A walk stands on a page in proportion to its degree d. If each step is stretched to Geometric(d / D) moments, D the
largest degree, each page is stood on equally long in the long run (Bar-Yossef et al. 2000); pages are taken at moments
equally far apart. For estimates weights serve better: they are what stretching means on average, without its chance.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import IdArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.burn_in import BURN
from surveyor.estimate.sampling.estimates import chosen
from surveyor.estimate.sampling.walk_trace import WalkTrace


def uniform_draws(trace: WalkTrace, count: int, rng: int | np.random.Generator, *, burn: float = BURN) -> IdArray:
    """Return so many pages of the topic in the order of walks and time; a page may come more than once."""
    if count != int(count) or count < 1:
        raise UsageError(f"{count} pages", hint="ask for a whole number of pages, one at least")
    rows = chosen(trace, np.ones(len(trace), np.bool_), burn)
    if count > rows.walk.size:
        raise UsageError(
            f"{count:,} pages out of {rows.walk.size:,} steps on topic", hint="walk longer, or ask for fewer pages"
        )
    chance = np.random.default_rng(rng)
    degree = rows.degree
    until = np.cumsum(chance.geometric(degree / degree.max()))
    moments = (np.arange(count) + chance.random()) * (until[-1] / count)
    page: IdArray = rows.page[np.searchsorted(until, moments, side="right").clip(max=degree.size - 1)]
    return page
