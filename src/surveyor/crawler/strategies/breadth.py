"""Breadth first: pages by distance from the seeds; with a number of levels, L-Neighbor.

All pages within L − 1 links of the trusted seeds hold at least 1 − damping^L of all importance, because a random
surfer follows fewer than L links with that probability (Cho and Schonfeld, theorem 1). So `levels_needed` returns the
depth that guarantees a share before the crawl starts, and `breadth:coverage=0.9` stops there. The bound is loose: the
ledger proves the same or more, sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.errors import UsageError, check_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from surveyor.arrays import IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome


LISTED = 1 << 20  # depth of a listed page that no fetched page links to


def levels_needed(share: float, damping: float = 0.85) -> int:
    """Return the number of levels, the seeds being the first, that are guaranteed to hold this share.

    >>> levels_needed(0.9)
    15
    """
    levels = 0
    while damping**levels > 1 - share:
        levels += 1
    return levels


def plan(strategy: object, damping: float) -> str:
    """Describe the levels that a breadth-first crawl fetches for its coverage; "" for other strategies."""
    share = getattr(strategy, "coverage", None)
    if not isinstance(strategy, Breadth) or share is None:
        return ""
    return f"breadth: {levels_needed(share, damping)} levels hold at least {100 * share:g} % (damping {damping:g})"


class Breadth:
    """Nearest to the seeds first, down to `levels` levels, or to those that guarantee a coverage."""

    parameters: ClassVar[dict[str, Callable[[str], object]]] = {"levels": int, "coverage": float}

    def __init__(self, levels: int | None = None, *, coverage: float | None = None) -> None:
        check_range("coverage", coverage, "(0, 1)", hint="for example breadth:coverage=0.9")
        if levels is not None and coverage is not None:
            raise UsageError(
                "levels and coverage exclude each other", hint="give one: breadth:15, breadth:coverage=0.9"
            )
        if levels is not None and (levels < 1 or int(levels) != levels):
            raise UsageError(f"levels must be an integer of at least 1, got {levels}", hint="level 1 are the seeds")
        self.levels, self.coverage = levels, coverage
        self.name = "breadth" if levels is None else f"breadth:{levels}"
        if coverage is not None:
            self.name = f"breadth:coverage={coverage:g}"

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Start with the seeds."""
        self._ledger = ledger
        if self.coverage is not None:
            self.levels = levels_needed(self.coverage, ledger.damping)
        self._depth = np.full(ledger.capacity, -1, np.int32)
        self._depth[ledger.seeds] = 0
        return Reorder(ledger.seeds, np.zeros(ledger.seeds.size))

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Put newly discovered pages one level below the page that links to them."""
        if self._depth.size < self._ledger.capacity:
            self._depth = np.append(self._depth, np.full(self._ledger.capacity - self._depth.size, -1, np.int32))
        if self._depth[outcome.page] < 0:
            self._depth[outcome.page] = LISTED
        links = (
            outcome.links if outcome.kind == "fetched" else np.array([outcome.target], np.int32)[: outcome.target + 1]
        )
        depth = self._depth[outcome.page] + 1
        new = links[(self._depth[links] < 0) | ((self._depth[links] >= LISTED) & (depth < LISTED))]
        self._depth[new] = depth
        if self.levels is not None and depth >= self.levels:
            return NOTHING
        return Reorder(new, np.full(new.size, -float(depth)))
