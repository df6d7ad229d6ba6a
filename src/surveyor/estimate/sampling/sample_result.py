"""A sample of a topic: the pages that walks met, how much each counts, and what they tell with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling import estimates, sizes
from surveyor.estimate.sampling.diagnostics import Diagnostics, diagnose
from surveyor.estimate.sampling.estimates import Distribution, Estimate, uniform_draws
from surveyor.estimate.sampling.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from surveyor.estimate.sampling.in_link_coverage import InLinkCoverage
from surveyor.estimate.sampling.properties import ANY, BOUNDS, Asked, Pages, Property, hosts_of, property_of
from surveyor.estimate.sampling.sample_goals import SampleGoal
from surveyor.estimate.sampling.standard_errors import after_burn_in
from surveyor.estimate.sampling.walk_methods import METHODS
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, eq=False)
class Sample:
    """Pages of a topic as walks met them; each counts so that every page of the topic counts alike.

    A property that is asked about may be a rule (`"word:buy"`, `"tld:uk"`), a function of a page, an array by page, or
    one of `out_degree`, `log_out_degree`, `degree`, `log_degree`, `intra`, `host`, `domain`, `tld`, `language`.
    """

    trace: WalkTrace  # as it was walked
    weighted: WalkTrace  # with weights that make up for in-links that were not known; else the same
    source: Pages
    topic: str
    method: str
    walks: int
    rng: int
    fetches: int  # pages asked for, each once
    ending: str  # ess, width, fetches, steps; lost, longest, exhausted, interrupted
    until: SampleGoal
    in_links: InLinkCoverage
    lost: tuple[int, ...] = ()  # walks that never found the topic
    watched: tuple[str, ...] = ()
    about: tuple[str, ...] = ()  # what else should be known
    where: str = ""
    _asked: dict[str, Property] = field(default_factory=dict, repr=False)

    @property
    def reached(self) -> bool:
        """Whether the goal was reached; a budget is one only if nothing else was asked for."""
        aims = self.until.ess is not None or self.until.width is not None
        return self.ending in (("ess", "width") if aims else ("fetches", "steps"))

    @property
    def steps(self) -> int:
        """Steps of all walks."""
        return len(self.trace)

    @property
    def precision(self) -> float:
        """The share of the pages fetched that are on topic."""
        return self.distinct / self.fetches if self.fetches else 0.0

    @cached_property
    def distinct(self) -> int:
        """Different pages on topic that were met."""
        return int(np.unique(self.trace.page[self.trace.on_topic]).size)

    def share(self, of: Asked, *, level: float = 0.95) -> Estimate:
        """Estimate the share of pages of the topic that have a property."""
        return estimates.share(self.weighted, self.values(of), level=level)

    def mean(self, of: Asked, *, level: float = 0.95) -> Estimate:
        """Estimate the mean of a number over the pages of the topic."""
        told = estimates.mean(self.weighted, self.values(of), level=level)
        least, most = BOUNDS.get(of, ANY) if isinstance(of, str) else ANY
        return replace(told, low=max(told.low, least), high=min(told.high, most))

    def quantile(self, of: Asked, q: float = 0.5, *, level: float = 0.95) -> Estimate:
        """Estimate a quantile of a number over the pages of the topic."""
        return estimates.quantile(self.weighted, self.values(of), q, level=level)

    def histogram(self, of: Asked, edges: Sequence[float], *, level: float = 0.95) -> Distribution:
        """Estimate how the pages of the topic are distributed over ranges of a number."""
        return estimates.histogram(self.weighted, self.values(of), edges, level=level)

    def distribution(self, of: Asked, *, level: float = 0.95) -> Distribution:
        """Estimate how the pages of the topic are distributed over categories, such as domains; largest first."""
        return estimates.distribution(self.weighted, self._property(of).rows(self.trace), level=level)

    def fits(self, of: Asked, expected: Mapping[Any, float]) -> GoodnessOfFit:
        """Test whether a known distribution could be that of the topic (χ² for steps that are alike)."""
        return goodness_of_fit(self.weighted, self._property(of).rows(self.trace), expected)

    def size(self, *, level: float = 0.95) -> Estimate:
        """Estimate how many pages the topic has, from pages that different walks met.

        Links that were not known count as if they were not there: to make up for them did not help (see the docs).
        """
        return sizes.topic_size(self.trace, level=level)

    def relative_size(self, *, level: float = 0.95) -> Estimate:
        """Estimate which share of all pages is on topic; the walks must be unfocused (`webwalker`)."""
        if self.method != "webwalker":
            raise UsageError(
                f"{self.method} hardly leaves the topic, and tells nothing of its share of all pages",
                hint="sample with method webwalker",
            )
        return sizes.relative_topic_size(self.weighted, level=level)

    def recall(self, urls: Iterable[str], *, level: float = 0.95) -> Estimate:
        """Estimate which share of the topic a crawl or an index holds, given its URLs, however they are spelt."""
        if isinstance(urls, str):
            raise UsageError("recall is about several URLs", hint="give a list of them, or the pages of a survey")
        held, name = {normalise(str(url)) or str(url) for url in urls}, self.source.url
        inside = Property("recall", lambda page: (normalise(name(page)) or name(page)) in held)
        return estimates.share(self.weighted, inside.numbers(self.trace), level=level)

    def draws(self, count: int, *, rng: int | None = None) -> list[str]:
        """Return so many pages, each drawn uniformly from the topic; a page may come twice."""
        pages = uniform_draws(self.weighted, count, self.rng if rng is None else rng)
        return [self.source.url(page) for page in pages.tolist()]

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Say whether the sample can be trusted."""
        return diagnose(self.weighted, self.watching(self.trace), host=hosts_of(self.trace, self.source))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What to beware of: each names its cause."""
        if not self.telling:
            return (*self.about, "too few steps are on topic to tell anything: walk longer, or begin at pages on topic")
        return (*self.about, *self.diagnostics.warnings)

    @cached_property
    def telling(self) -> bool:
        """Whether there are steps to estimate from."""
        try:
            return bool(self.diagnostics.ess)
        except UsageError:
            return False

    def watching(self, trace: WalkTrace) -> dict[str, FloatArray]:
        """Return the values of the properties that are watched, of those that are known of any page."""
        found = {name: self._property(name).numbers(trace) for name in self.watched}
        return {name: values for name, values in found.items() if not np.isnan(values).all()}

    def pages(self) -> dict[str, list[Any]]:
        """Return the pages on topic by column: URL, weight (summing to 1), visits, degree, first walk, fetches then."""
        counts = np.sort(after_burn_in(self.trace))  # the steps that estimates are of
        chosen = counts[self.trace.on_topic[counts]]
        trace = self.trace.rows(chosen)
        met, first, place = np.unique(trace.page, return_index=True, return_inverse=True)
        weights = self.weighted.weight[chosen]
        weight = np.bincount(place, weights) / weights.sum()  # rows come in the same order however pages are numbered
        order = np.argsort(first)
        visits: IntArray = np.bincount(place)
        return {
            "url": [self.source.url(page) for page in met[order].tolist()],
            "weight": weight[order].tolist(),
            "visits": visits[order].tolist(),
            "degree": trace.degree[first][order].tolist(),
            "walk": trace.walk[first][order].tolist(),
            "fetches": trace.fetches[first][order].tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the sample by name; estimates of what was watched are among it."""
        return {
            "topic": self.topic, "method": self.method, "exact": METHODS[self.method].exact, "where": self.where,
            "walks": self.walks, "rng": self.rng, "until": str(self.until), "ending": self.ending,
            "reached": self.reached, "steps": self.steps, "fetches": self.fetches, "pages": self.distinct,
            "precision": self.precision, "in_links": self.in_links.to_dict(), "lost": list(self.lost),
            "notes": list(self.notes),
            "estimates": {name: self._estimate(name).to_dict() for name in self.watching(self.trace) if self.telling},
            "diagnostics": self.diagnostics.to_dict() if self.telling else None,
        }  # fmt: skip

    def _estimate(self, name: str) -> Estimate:
        return estimates.mean_or_share(self.weighted, self.values(name))

    def values(self, of: Asked) -> FloatArray:
        """Return a property as a number for each step; NaN where it has none."""
        return self._property(of).numbers(self.trace)

    def _property(self, of: Asked) -> Property:
        """Return a property; what was found out about pages is kept for those with a name."""
        if not isinstance(of, str):
            return property_of(of, self.source)
        if of not in self._asked:
            self._asked[of] = property_of(of, self.source)
        return self._asked[of]

    def __repr__(self) -> str:
        return (
            f"Sample of {self.topic}: {int(self.trace.on_topic.sum()):,} steps of {self.walks} walks ({self.method}) "
            f"on {self.distinct:,} pages, {self.fetches:,} asked for; ended by {self.ending}"
        )

    def _repr_html_(self) -> str:
        told = self.watching(self.trace) if self.telling else ()
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(str(self._estimate(name)))}</td></tr>" for name in told)
        return f"<p>{escape(repr(self))}</p><table>{rows}</table>"
