"""The result of `sv.sample`: visited pages with their weights, and estimates with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling import estimates
from surveyor.estimate.sampling.diagnostics import Diagnostics, diagnose
from surveyor.estimate.sampling.estimates import Distribution, Estimate, uniform_draws
from surveyor.estimate.sampling.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from surveyor.estimate.sampling.in_links import InLinkCoverage
from surveyor.estimate.sampling.properties import (
    BOUNDS,
    UNBOUNDED,
    PageSource,
    Property,
    PropertySpec,
    host_ids,
    resolve_property,
)
from surveyor.estimate.sampling.reach import Reach
from surveyor.estimate.sampling.sample_goals import SampleGoal
from surveyor.estimate.sampling.standard_errors import after_burn_in
from surveyor.estimate.sampling.walk_methods import UNIFORM, method_named
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of the pages of a topic, weighted so that every reachable page of the topic counts equally.

    The property of an estimate is a rule (`"word:buy"`, `"tld:uk"`), a function of a page, an array by page id, or one
    of `out_degree`, `log_out_degree`, `degree`, `log_degree`, `topic_link_share`, `host`, `domain`, `tld`, `language`.
    """

    trace: WalkTrace  # the steps as walked
    weighted: WalkTrace  # the steps with weights corrected for unknown in-links; else the same
    source: PageSource
    topic: str
    method: str
    walks: int
    rng: int
    fetches: int  # distinct pages requested
    ending: str  # ess, width, complete, fetches, steps; missed, parts, lost, longest, exhausted, interrupted
    goal: SampleGoal
    in_links: InLinkCoverage
    lost_walks: tuple[int, ...] = ()  # walks that never found the topic
    tracked: tuple[str, ...] = ()  # properties that the goal applies to
    remarks: tuple[str, ...] = ()  # warnings about the walks and in-links
    location: str = ""  # of the graph or survey
    reach: Reach = field(default_factory=Reach)  # what the sample could not reach, as far as it is known
    counted: Estimate | None = None  # number of pages on topic, if it is not estimated from collisions
    _properties: dict[str, Property] = field(default_factory=dict, repr=False)

    @property
    def reached(self) -> bool:
        """Whether the goal was reached; a limit of fetches or steps counts only if it is the sole rule."""
        has_target = self.goal.ess is not None or self.goal.width is not None
        return self.ending in (("ess", "width") if has_target else ("fetches", "steps")) or self.complete

    @property
    def independent(self) -> bool:
        """Whether pages were drawn independently, rather than by walks."""
        return self.method == UNIFORM.name

    @property
    def complete(self) -> bool:
        """Whether every page on topic was drawn, so that estimates are exact."""
        return self.ending == "complete"

    @property
    def steps(self) -> int:
        """Steps of all walks."""
        return len(self.trace)

    @property
    def precision(self) -> float:
        """Share of the requested pages that are on topic."""
        return self.distinct_pages / self.fetches if self.fetches else 0.0

    @cached_property
    def distinct_pages(self) -> int:
        """Number of distinct pages on topic that were visited."""
        return int(np.unique(self.trace.page[self.trace.on_topic]).size)

    def share(self, of: PropertySpec, *, level: float = 0.95) -> Estimate:
        """Estimate the share of the pages on topic that have a property."""
        return self._whole(estimates.share(self.weighted, self.values(of), level=level))

    def mean(self, of: PropertySpec, *, level: float = 0.95) -> Estimate:
        """Estimate the mean of a number over the pages on topic."""
        estimate = estimates.mean(self.weighted, self.values(of), level=level)
        lowest, highest = BOUNDS.get(of, UNBOUNDED) if isinstance(of, str) else UNBOUNDED
        bounded = replace(estimate, low=max(estimate.low, lowest), high=min(estimate.high, highest))
        return self._whole(bounded)

    def quantile(self, of: PropertySpec, q: float = 0.5, *, level: float = 0.95) -> Estimate:
        """Estimate a quantile of a number over the pages on topic."""
        return self._whole(estimates.quantile(self.weighted, self.values(of), q, level=level))

    def histogram(self, of: PropertySpec, edges: Sequence[float], *, level: float = 0.95) -> Distribution:
        """Estimate the histogram of a number over the pages on topic."""
        return self._all_whole(estimates.histogram(self.weighted, self.values(of), edges, level=level))

    def distribution(self, of: PropertySpec, *, level: float = 0.95) -> Distribution:
        """Estimate the shares of categories, such as domains, among the pages on topic; largest first."""
        found = estimates.distribution(self.weighted, self._property(of).values(self.trace), level=level)
        return self._all_whole(found)

    def fits(self, of: PropertySpec, expected: Mapping[Any, float]) -> GoodnessOfFit:
        """Test goodness of fit to a known distribution (χ², corrected for autocorrelated steps)."""
        return goodness_of_fit(self.weighted, self._property(of).values(self.trace), expected)

    def size(self, *, level: float = 0.95) -> Estimate:
        """Estimate the number of pages on topic: counted where all are known, otherwise from collisions between walks.

        Weights are not corrected for unknown in-links: the correction did not improve sizes (see the docs).
        """
        if self.counted is not None:
            return self.counted
        if self.reach.groups > 1:
            raise UsageError(
                f"the walks are in {self.reach.groups} parts of the topic that never met, so their collisions do not"
                " show its size",
                hint="use method trial or a larger reach, or sample each part by its own starts",
            )
        most = float(self.source.count) if self.reach.kind == "drawn" or self.reach.known else math.inf
        return self.reach.enlarge(estimates.topic_size(self.trace, level=level, at_most=most), most)

    def relative_size(self, *, level: float = 0.95) -> Estimate:
        """Estimate the share of all pages that is on topic; requires unfocused walks (method `webwalker`)."""
        if self.method != "webwalker":
            raise UsageError(
                f"relative_size needs unfocused walks, and method {self.method} hardly leaves the topic",
                hint="sample with method webwalker",
            )
        return estimates.relative_topic_size(self.weighted, level=level)

    def recall(self, urls: Iterable[str], *, level: float = 0.95) -> Estimate:
        """Estimate the share of the pages on topic that a crawl or an index contains, given its URLs."""
        if isinstance(urls, str):
            raise UsageError(
                f"urls must be a list of URLs, got the string {urls!r}", hint="pass several, such as [url]"
            )
        contained, name = {normalise(str(url)) or str(url) for url in urls}, self.source.url
        recall = Property("recall", lambda page: (normalise(name(page)) or name(page)) in contained)
        return self._whole(estimates.share(self.weighted, recall.numbers(self.trace), level=level))

    def draws(self, count: int, *, rng: int | None = None) -> list[str]:
        """Draw pages uniformly from the topic, with replacement."""
        pages = uniform_draws(self.weighted, count, self.rng if rng is None else rng)
        return [self.source.url(page) for page in pages.tolist()]

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Effective sample sizes, R-hat and Geweke's z of the tracked properties."""
        host = None if self.independent else host_ids(self.trace, self.source)
        return diagnose(self.weighted, self.tracked_values(), host=host)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Warnings, each with its cause."""
        if not self.has_estimates:
            return (*self.remarks, "too few steps on topic for any estimate: walk longer, or start at pages on topic")
        return self.remarks if self.complete else (*self.remarks, *self.diagnostics.warnings)

    @cached_property
    def has_estimates(self) -> bool:
        """Whether enough steps are on topic to estimate anything."""
        try:
            return bool(self.diagnostics.ess)
        except UsageError:
            return False

    def tracked_values(self) -> dict[str, FloatArray]:
        """Return the value of each tracked property at each step, for properties that some visited page has."""
        values = {name: self.values(name) for name in self.tracked}
        return {name: numbers for name, numbers in values.items() if not np.isnan(numbers).all()}

    def pages(self) -> dict[str, list[Any]]:
        """Return the visited pages on topic as columns; weights sum to 1; `walk`, `fetches`: at the first visit."""
        counts = np.sort(after_burn_in(self.trace))  # steps after the burn-in
        chosen = counts[self.trace.on_topic[counts]]
        trace = self.trace.rows(chosen)
        visited, first, place = np.unique(trace.page, return_index=True, return_inverse=True)
        weights = self.weighted.weight[chosen]
        weight = np.bincount(place, weights) / weights.sum()
        order = np.argsort(first)
        visits: IntArray = np.bincount(place)
        return {
            "url": [self.source.url(page) for page in visited[order].tolist()],
            "weight": weight[order].tolist(),
            "visits": visits[order].tolist(),
            "degree": trace.degree[first][order].tolist(),
            "walk": trace.walk[first][order].tolist(),
            "fetches": trace.fetches[first][order].tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with estimates of the tracked properties."""
        return {
            "topic": self.topic,
            "method": self.method,
            "exact": method_named(self.method).exact,
            "location": self.location,
            "walks": self.walks,
            "rng": self.rng,
            "until": str(self.goal),
            "ending": self.ending,
            "reached": self.reached,
            "steps": self.steps,
            "fetches": self.fetches,
            "distinct_pages": self.distinct_pages,
            "precision": self.precision,
            "in_links": self.in_links.to_dict(),
            "lost_walks": list(self.lost_walks),
            "reach": self.reach.to_dict(),
            "notes": list(self.notes),
            "estimates": {name: estimate.to_dict() for name, estimate in self._estimates().items()},
            "diagnostics": self.diagnostics.to_dict() if self.has_estimates else None,
        }

    def _estimates(self) -> dict[str, Estimate]:
        """Return estimates of the tracked properties."""
        if not self.has_estimates:
            return {}
        return {
            name: self._whole(estimates.mean_or_share(self.weighted, numbers))
            for name, numbers in self.tracked_values().items()
        }

    def _whole(self, estimate: Estimate) -> Estimate:
        """Return an estimate for the whole topic: exact if all pages were drawn, wider if some cannot be reached."""
        if self.complete:
            value = estimate.value
            return replace(estimate, low=value, high=value, standard_error=0.0, ess=float(self.distinct_pages))
        return self.reach.widen(estimate) if estimate.is_share else estimate

    def _all_whole(self, found: Distribution) -> Distribution:
        return replace(found, shares=tuple(self._whole(share) for share in found.shares))

    def values(self, of: PropertySpec) -> FloatArray:
        """Return the value of a property at each step; NaN where it has none."""
        return self._property(of).numbers(self.trace)

    def _property(self, of: PropertySpec) -> Property:
        """Return a property; named ones are cached with their values."""
        if not isinstance(of, str):
            return resolve_property(of, self.source)
        if of not in self._properties:
            self._properties[of] = resolve_property(of, self.source)
        return self._properties[of]

    @property
    def _what(self) -> str:
        if self.independent:
            return f"{self.walks:,} independent draws"
        return f"{int(self.trace.on_topic.sum()):,} steps of {self.walks} walks ({self.method})"

    def __repr__(self) -> str:
        return (
            f"Sample of {self.topic}: {self._what} "
            f"on {self.distinct_pages:,} pages, {self.fetches:,} requested; ended by {self.ending}"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(str(estimate))}</td></tr>"
            for name, estimate in self._estimates().items()
        )
        return f"<p>{escape(repr(self))}</p><table>{rows}</table>"
