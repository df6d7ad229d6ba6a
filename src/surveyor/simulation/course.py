"""Inputs shared by all strategies of a race: the web, its true importance, the goal, and the accuracy samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.crawler.ledger import CoverageInterval, Ledger, PushOptions
from surveyor.crawler.loop import Ending
from surveyor.crawler.strategies.strategy import Strategy, name_of
from surveyor.errors import StrategyError
from surveyor.graph.growing import GrowingGraph
from surveyor.rank.comparison import kendall, l1
from surveyor.simulation.race import Sample
from surveyor.simulation.scenario import Scenario
from surveyor.stopping import NO_LIMIT, ProgressCallback, Rule

BEST = 1000  # pages of highest true importance whose order is compared
FIRST_SAMPLE = 10  # reads before the first comparison


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The conditions of one race."""

    scenario: Scenario
    truth: FloatArray
    until: Rule
    batch: int
    changes: tuple[float, float, float] | None  # shares of pages changed, born and gone per epoch
    samples: int
    rng: int
    progress: ProgressCallback

    @property
    def most(self) -> int:
        """Maximum number of reads (expected number on a changing web); the last batch may exceed the goal."""
        pages = int(np.count_nonzero(self.scenario.fates == 0))
        limit = (self.until.limits() or (0, NO_LIMIT))[1] + self.batch - 1
        return limit if self.changes and limit < NO_LIMIT else min(pages, limit)

    def ledger(self, strategy: Strategy, graph: GrowingGraph) -> Ledger:
        """Create a ledger for a strategy, with room for the whole web."""
        closure, eager = getattr(strategy, "closure", 0.1), getattr(strategy, "eager", True)
        if not isinstance(closure, int | float) or not closure > 0 or not isinstance(eager, bool):
            problem = f"strategy {name_of(strategy)} has closure {closure!r} and eager {eager!r}"
            raise StrategyError(f"{problem}, not a number above 0 and True or False")
        return Ledger(
            graph,
            self.scenario.seeds,
            damping=self.scenario.damping,
            push=PushOptions(closure, eager),
            pages=self.scenario.graph.pages,
        )

    def generator(self) -> np.random.Generator:
        """Return a random generator with the same seed for every strategy."""
        return np.random.default_rng([self.rng, 1])


@dataclass(slots=True)
class Accuracy:
    """Compares estimated with true importance after 10 reads, then at geometrically spaced reads."""

    truth: FloatArray
    due: IntArray
    taken: list[Sample] = field(default_factory=list)

    @classmethod
    def of(cls, course: Course, most: int) -> Accuracy:
        """Schedule the comparisons of a run of at most `most` reads."""
        if not course.samples:
            return cls(course.truth, np.array([NO_LIMIT]))
        due = np.unique(np.geomspace(min(FIRST_SAMPLE, max(most, 1)), max(most, 1), course.samples).astype(np.int64))
        return cls(course.truth, np.append(due, NO_LIMIT))

    @property
    def next(self) -> int:
        """Number of reads at the next comparison."""
        return int(self.due[len(self.taken)])

    def take(self, reads: int, estimate: FloatArray) -> None:
        """Compare an estimate with the truth and append a sample."""
        estimate = np.append(estimate, np.zeros(max(0, self.truth.size - estimate.size)))[: self.truth.size]
        best = np.argpartition(-self.truth, BEST)[:BEST] if self.truth.size > BEST else np.arange(self.truth.size)
        self.taken.append(Sample(reads, l1(estimate, self.truth), kendall(estimate[best], self.truth[best])))
        skipped = int(np.searchsorted(self.due, reads, "right"))
        self.due = np.concatenate([np.zeros(len(self.taken), np.int64), self.due[skipped:]])


def with_end(bounds: Sequence[float] | FloatArray, last: float) -> FloatArray:
    """Return bounds whose last entry includes all that followed the last read: pages gone, and the final closure."""
    array = np.array(bounds, np.float64)
    array[-1:] = last
    return array


def in_words(ending: Ending, coverage: CoverageInterval) -> str:
    """Describe why a crawl ended."""
    if ending == "reached":
        return "the goal is reached"
    shut = coverage.blocked + coverage.lost
    where = f"{100 * shut:.1f} % of the mass has stopped at pages that cannot be read"
    if ending == "unreachable":
        return f"{where}, so at most {100 * (1 - shut):.1f} % can be guaranteed"
    return "no page is left that the strategy names" + (f"; {where}" if shut >= 0.001 else "")
