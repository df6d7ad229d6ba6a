"""Independent uniform draws of the stored pages on a topic: the method `uniform`.

The pages of a graph or survey are at hand, so no walk is needed to reach them: pages are drawn without replacement, and
those on topic are kept. Each draw is an independent page of the topic, however the topic is connected. A share has the
exact binomial interval, and a part that holds 3 % of the topic is missed by 400 draws once in 200,000 samples. If all
pages were drawn, the results are exact.

Walks over stored pages are checked against such draws (`contradictions`): estimates that differ by more than chance
allows show that the walks missed pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from surveyor.arrays import IdArray
from surveyor.estimate.sampling.distributions import clopper_pearson
from surveyor.estimate.sampling.estimates import Estimate, mean_or_share
from surveyor.estimate.sampling.properties import PageSource, resolve_property
from surveyor.estimate.sampling.sample_goals import WalkLimits
from surveyor.estimate.sampling.walk_trace import WalkTrace

FIRST_CHECK, GROWTH = 64, 8  # draws before the first check; each later interval is 1/GROWTH of the draws so far
CHECK_DRAWS = 2_000  # that walks over a graph are compared with
CHECK_READS = 1_000  # pages of a survey that are read for this comparison
MAX_Z = 4.0  # standard errors by which walks and draws may differ


@dataclass(slots=True)
class Draws:
    """Draws of pages on topic, in order, and the pages examined to find them."""

    candidates: IdArray  # pages in random order
    is_on_topic: Callable[[int], bool]
    drawn: list[int]
    examined_at: list[int]  # pages examined when each page was drawn
    examined: int = 0

    @classmethod
    def of(cls, pages: IdArray, rng: int, is_on_topic: Callable[[int], bool] = lambda _: True) -> Draws:
        """Shuffle the pages to draw from."""
        return cls(np.random.default_rng([rng, 0xD]).permutation(pages), is_on_topic, [], [])

    @property
    def is_complete(self) -> bool:
        """Whether all pages were examined."""
        return self.examined >= self.candidates.size

    def extend(self, count: int, examine: int, expired: Callable[[], bool] = lambda: False) -> None:
        """Draw until there are `count` pages, `examine` pages were examined, none is left, or the time is over."""
        while len(self.drawn) < count and self.examined < min(examine, self.candidates.size) and not expired():
            page = int(self.candidates[self.examined])
            self.examined += 1
            if self.is_on_topic(page):
                self.drawn.append(page)
                self.examined_at.append(self.examined)

    def trace(self) -> WalkTrace:
        """Return the draws as walks of one step and of equal weight."""
        page = np.array(self.drawn, np.int32)
        number = np.arange(page.size, dtype=np.int32)
        ones = np.ones(page.size)
        at = np.array(self.examined_at, np.int64)
        return WalkTrace(number, np.zeros_like(number), page, ones.astype(np.bool_), ones, at)

    def checks(self, degree: Callable[[int], int]) -> WalkTrace:
        """Return the draws with the degrees of their pages."""
        degrees = np.array([max(degree(page), 1) for page in self.drawn], np.float64)
        return replace(self.trace(), degree=degrees)

    def run(self, limits: WalkLimits, pages: PageSource) -> str:
        """Draw to the end, and return the ending."""
        for count in _checks():
            self.extend(min(count, limits.steps), limits.fetches, limits.expired)
            if not self.drawn and self.is_complete:
                return "lost"
            if self.is_complete:
                return "complete"
            if self.drawn and (met := limits.done(self.trace(), pages)):
                return str(met)
            if len(self.drawn) >= limits.steps:
                return "steps"
            if self.examined >= limits.fetches:
                return "fetches"
            if limits.expired():
                return "minutes"
        raise AssertionError  # pragma: no cover  # the checks never end

    def size(self, level: float = 0.95) -> Estimate:
        """Estimate the number of pages on topic among the candidates; exact if all were examined."""
        found, pages = len(self.drawn), int(self.candidates.size)
        if self.is_complete:
            return counted(found, level)
        share = found / self.examined
        low, high = clopper_pearson(share, self.examined, level)
        least, most = found, pages - (self.examined - found)
        error = math.sqrt(share * (1 - share) / self.examined) * pages
        low, high = max(low * pages, least), min(high * pages, most)
        value = min(max(share * pages, low), high)
        method = f"share on topic of {self.examined:,} pages drawn of {pages:,}, Clopper-Pearson interval"
        return Estimate(value, low, high, level, error, self.examined, found, found, found, method)


def counted(pages: int, level: float = 0.95) -> Estimate:
    """Return a number of pages that was counted."""
    value = float(pages)
    return Estimate(value, value, value, level, 0.0, value, pages, pages, 0, "counted")


def contradictions(weighted: WalkTrace, check: WalkTrace, pages: PageSource, names: Iterable[str]) -> list[str]:
    """Return how estimates of walks and of independent draws differ, where they differ by more than chance allows."""
    values = {"log degree": (np.log(weighted.degree), np.log(check.degree))}
    drawn = replace(check, degree=np.ones(len(check)))
    for name in names:
        if name not in ("degree", "log_degree"):
            numbers = resolve_property(name, pages).numbers
            values[name] = numbers(weighted), numbers(check)
    found = []
    for name, (walked, uniform) in values.items():
        if np.isnan(walked).all() or np.isnan(uniform).all():
            continue
        one, other = mean_or_share(weighted, walked), mean_or_share(drawn, uniform)
        error = math.hypot(one.standard_error, other.standard_error)
        if abs(one.value - other.value) > MAX_Z * error + 1e-9 * abs(other.value):
            found.append(f"{name}: {one} by the walks, {other} by {len(check):,} independent draws")
    return found


def _checks() -> Iterator[int]:
    count = FIRST_CHECK
    while True:
        yield count
        count += max(FIRST_CHECK // 4, count // GROWTH)
