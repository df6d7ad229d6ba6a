"""The result of `sv.sample`: visited pages with their weights, and estimates with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling import estimates
from surveyor.estimate.sampling.diagnostics import Diagnostics, diagnose
from surveyor.estimate.sampling.distributions import difference_interval, hypergeometric_interval
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
from surveyor.estimate.sampling.sample_pages import SurveyPages
from surveyor.estimate.sampling.standard_errors import after_burn_in
from surveyor.estimate.sampling.walk_methods import UNIFORM, method_named
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.frames import Tabular, draw_bars
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

MAX_EXACT = 1_000_000  # pages on topic; with more, the binomial interval of draws hardly differs


@dataclass(frozen=True, eq=False)
class Sample(Tabular):
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
    check: WalkTrace | None = None  # independent draws of stored pages that estimates of walks are compared with
    _properties: dict[str, Property] = field(default_factory=dict, repr=False)

    @property
    def reached(self) -> bool:
        """Whether the goal was reached; a limit of fetches or steps counts only if it is the sole rule."""
        has_target = self.goal.ess is not None or self.goal.width is not None
        return self.ending in (("ess", "width") if has_target else ("fetches", "steps", "minutes")) or self.complete

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
        return self._estimate(self._property(of), partial(estimates.share, level=level))

    def mean(self, of: PropertySpec, *, level: float = 0.95) -> Estimate:
        """Estimate the mean of a number over the pages on topic."""
        if isinstance(of, str) and of == "topic_link_share" and isinstance(self.source, SurveyPages):
            return self._topic_link_share(self.source, of, level)
        estimate = self._estimate(self._property(of), partial(estimates.mean, level=level))
        lowest, highest = BOUNDS.get(of, UNBOUNDED) if isinstance(of, str) else UNBOUNDED
        return replace(estimate, low=max(estimate.low, lowest), high=min(estimate.high, highest))

    def _topic_link_share(self, pages: SurveyPages, of: str, level: float) -> Estimate:
        """Estimate the mean share of links to pages on topic; where targets are unknown, from the links drawn."""
        trace, values = self.weighted, self.values(of)
        if pages.needs_draws:
            values, links = pages.drawn_links(self.trace)
            trace = replace(trace, degree=np.nan_to_num(links, nan=1.0))  # each link of a page is drawn as often
        estimate = estimates.mean(trace, values, level=level)
        return self._whole(replace(estimate, low=max(estimate.low, 0.0), high=min(estimate.high, 1.0)))

    def quantile(self, of: PropertySpec, q: float = 0.5, *, level: float = 0.95) -> Estimate:
        """Estimate a quantile of a number over the pages on topic."""
        return self._estimate(self._property(of), partial(estimates.quantile, q=q, level=level))

    def histogram(self, of: PropertySpec, edges: Sequence[float], *, level: float = 0.95) -> Distribution:
        """Estimate the histogram of a number over the pages on topic."""
        values = self._property(of).numbers
        return self._estimates_of(values, partial(estimates.histogram, edges=edges, level=level))

    def distribution(self, of: PropertySpec, *, level: float = 0.95) -> Distribution:
        """Estimate the shares of categories, such as domains, among the pages on topic; largest first."""
        return self._estimates_of(self._property(of).values, partial(estimates.distribution, level=level))

    def fits(self, of: PropertySpec, expected: Mapping[Any, float]) -> GoodnessOfFit:
        """Test goodness of fit to a known distribution (χ², corrected for autocorrelated steps)."""
        return goodness_of_fit(self.weighted, self._property(of).values(self.trace), expected)

    def size(self, *, level: float = 0.95) -> Estimate:
        """Estimate the number of pages on topic: counted where all are known, otherwise from collisions between walks.

        Weights are not corrected for unknown in-links: the correction did not improve sizes (see the docs).
        """
        estimates.check_level(level)
        if self.counted is not None:
            return self.counted
        if self.reach.groups > 1:
            raise UsageError(
                f"the walks form {self.reach.groups} groups that never met, so their collisions do not show the size of"
                " the topic",
                hint="walk longer, use a larger reach, or sample each part by its own starts",
            )
        most = float(self.source.count) if self.reach.kind == "drawn" or self.reach.known else math.inf
        size = self.reach.enlarge(estimates.topic_size(self.trace, level=level, at_most=most), most)
        seen = float(self.distinct_pages)
        return replace(size, low=max(size.low, seen), value=max(size.value, seen), high=max(size.high, seen))

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
        return self._estimate(recall, partial(estimates.share, level=level))

    def recall_difference(self, urls: Iterable[str], other: Iterable[str], *, level: float = 0.95) -> Estimate:
        """Estimate by how much one crawl or index contains a larger share of the topic than another."""
        name = self.source.url
        one, two = ({normalise(str(url)) or str(url) for url in index} for index in (urls, other))

        def sign(page: int) -> int:
            url = normalise(name(page)) or name(page)
            return (url in one) - (url in two)

        found = self._estimate(Property("recall difference", sign), partial(estimates.mean, level=level))
        share = partial(estimates.share, level=level)
        more = self._estimate(Property("in the first", lambda page: sign(page) > 0), share, widened=False)
        fewer = self._estimate(Property("in the other", lambda page: sign(page) < 0), share, widened=False)
        low, high = difference_interval((more.value, more.low, more.high), (fewer.value, fewer.low, fewer.high))
        missed = self.reach.missed_share
        low, high = (1 - missed) * low - missed, (1 - missed) * high + missed
        method = "difference of shares, square-and-add interval"
        return replace(found, low=max(low, -1.0), high=min(high, 1.0), method=method, is_share=True)

    def draws(self, count: int, *, rng: int | None = None) -> list[str]:
        """Draw pages uniformly from the topic, with replacement."""
        seed = self.rng if rng is None else rng
        if self.complete and count == int(count) >= 1:
            pages = np.random.default_rng(seed).choice(self.trace.page, int(count))
        else:
            pages = uniform_draws(self.weighted, count, seed)
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
        return {name: self._estimate(self._property(name), estimates.mean_or_share) for name in self.tracked_values()}

    def _whole(self, estimate: Estimate, *, widened: bool = True) -> Estimate:
        """Return an estimate for the whole topic: exact if all pages were drawn, wider if some cannot be reached."""
        if self.complete:
            value = estimate.value
            return replace(estimate, low=value, high=value, standard_error=0.0, ess=float(self.distinct_pages))
        if self.independent and estimate.is_share and self._pages is not None and estimate.steps == len(self.trace):
            found = round(estimate.value * estimate.steps)
            ends = hypergeometric_interval(found, estimate.steps, self._pages, estimate.level)
            low, high = (end / self._pages for end in ends)
            method = "share of draws without replacement, hypergeometric interval"
            return replace(estimate, low=min(low, estimate.value), high=max(high, estimate.value), method=method)
        return self.reach.widen(estimate) if estimate.is_share and widened else estimate

    @property
    def _pages(self) -> int | None:
        """The number of pages on topic, if it is known and not too large for exact probabilities."""
        known = self.counted is not None and self.counted.low == self.counted.high
        return int(self.counted.low) if known and self.counted is not None and self.counted.low < MAX_EXACT else None

    def _estimate(
        self, of: Property, estimator: Callable[[WalkTrace, Any], Estimate], *, widened: bool = True
    ) -> Estimate:
        """Estimate a property; if independent draws lie outside the interval of the walks, it includes theirs."""
        found = estimator(self.weighted, of.numbers(self.trace))
        if self._check is not None:
            check, drawn = self._check
            with suppress(UsageError):  # no drawn page has it
                found = _including(found, estimator(drawn, of.numbers(check)))
        return self._whole(found, widened=widened)

    def _estimates_of(
        self, values: Callable[[WalkTrace], Any], estimator: Callable[[WalkTrace, Any], Distribution]
    ) -> Distribution:
        found = estimator(self.weighted, values(self.trace))
        shares = list(found.shares)
        if self._check is not None:
            check, drawn = self._check
            others = estimator(drawn, values(check))
            by_label = dict(zip(others.labels, others.shares, strict=True))
            shares = [
                _including(one, by_label[label]) if label in by_label else one
                for label, one in zip(found.labels, shares, strict=True)
            ]
        return replace(found, shares=tuple(self._whole(share) for share in shares))

    @cached_property
    def _check(self) -> tuple[WalkTrace, WalkTrace] | None:
        """The independent draws, with the degrees of their pages and with equal weights."""
        return None if self.check is None else (self.check, replace(self.check, degree=np.ones(len(self.check))))

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

    def _columns(self) -> dict[str, Any]:
        return self.pages()

    def _draw(self, axes: Axes) -> None:
        found = self._estimates()
        if found:
            values = [one.value for one in found.values()]
            bounds = [one.low for one in found.values()], [one.high for one in found.values()]
            draw_bars(axes, list(found), values, "estimate", bounds)
            return
        pages = self.pages()
        axes.hist(pages["degree"], weights=pages["weight"], bins=30)
        axes.set_xlabel("degree")
        axes.set_ylabel("share of the topic")

    def _html(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(str(estimate))}</td></tr>"
            for name, estimate in self._estimates().items()
        )
        return f"<p>{escape(repr(self))}</p><table>{rows}</table>"


def _including(walked: Estimate, drawn: Estimate) -> Estimate:
    """Return an estimate of walks; if independent draws contradict it, its interval includes theirs."""
    if walked.low <= drawn.value <= walked.high:
        return walked
    method = f"{walked.method}; widened to include independent draws"
    return replace(walked, low=min(walked.low, drawn.low), high=max(walked.high, drawn.high), method=method)
