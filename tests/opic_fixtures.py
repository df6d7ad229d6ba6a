"""Start states, strategies and sums for tests of OPIC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surveyor import Graph
from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.strategies.adaptive import AdaptiveOpic
from surveyor.crawler.strategies.opic import Opic, Policy, Teleport
from surveyor.kernels import opic_cash as kernels
from surveyor.kernels.mass import Rows

POLICIES: tuple[Policy, ...] = ("greedy", "cycle", "random")
TELEPORTS: tuple[Teleport, ...] = ("trusted", "uniform")
Maker = Callable[[Policy, Teleport], Opic]
MAKERS: tuple[Maker, ...] = (
    lambda policy, teleport: Opic(policy, teleport=teleport),
    lambda policy, teleport: AdaptiveOpic("fixed", 0.5, policy=policy, teleport=teleport),
    lambda policy, teleport: AdaptiveOpic("variable", 3, policy=policy, teleport=teleport),
    lambda policy, teleport: AdaptiveOpic("bao", 0.5, policy=policy, teleport=teleport),
)


@dataclass(frozen=True)
class Beginning:
    """The part of a ledger that a strategy reads at the start."""

    seeds: IdArray
    teleport: FloatArray
    capacity: int
    damping: float = 0.85


def beginning(seeds: npt.ArrayLike, capacity: int) -> Beginning:
    pages = np.asarray(seeds, np.int32)
    return Beginning(pages, np.full(pages.size, 1 / pages.size), capacity)


def everywhere(graph: Graph) -> Beginning:
    return beginning(np.arange(graph.pages), graph.pages)


def begun(strategy: Opic, start: Beginning, seed: int = 1) -> Opic:
    strategy.begin(start, None, np.random.default_rng(seed))
    return strategy


def rows_of(graph: Graph) -> Rows:
    return Rows(graph.indptr[:-1].copy(), graph.indptr[1:].copy(), graph.indices.copy())


def holdings(strategy: Opic) -> FloatArray:
    """Total cash of each page, computed with NumPy."""
    cash = strategy.cash
    weight = np.where(cash.state & kernels.OUT, 0.0, cash.weight)
    held: FloatArray = cash.cash + weight * (cash.totals[kernels.BETA] - cash.settled)
    return held


def jumps_of(start: Beginning, pages: int) -> FloatArray:
    shares = np.zeros(pages)
    shares[start.seeds] = start.teleport
    return shares


def distance(estimate: FloatArray, truth: FloatArray) -> float:
    """L1 distance; the estimate may have room for more pages."""
    return float(np.abs(estimate[: truth.size] - truth).sum() + estimate[truth.size :].sum())
