"""Page properties that a sample can estimate: rules, functions, arrays, and properties that every page has.

A property has one value for each row of a trace. It is computed once for each distinct page, so that a page is loaded
from the archive once, however often walks visited it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray
from surveyor.crawler.topics.page_content import SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import SurveyorError, UsageError
from surveyor.estimate.sampling.walk_trace import WalkTrace

NUMERIC = ("out_degree", "log_out_degree", "degree", "log_degree", "topic_link_share")
CATEGORICAL = ("host", "domain", "tld", "language")
UNBOUNDED = (-math.inf, math.inf)
BOUNDS = {"degree": (1.0, math.inf), "topic_link_share": (0.0, 1.0)}  # of the true mean
PropertySpec = str | Callable[[SampledPage], Any] | npt.NDArray[Any] | Sequence[float]


class PageSource(Protocol):
    """The pages of a sample, by id."""

    def url(self, page: int) -> str:
        """Return the URL or name of a page."""

    def page(self, page: int) -> SampledPage:
        """Return a page."""

    def topic_link_share(self, page: int) -> float:
        """Return the share of a page's links that lead to pages on topic; NaN if unknown or without links."""

    @property
    def has_content(self) -> bool:
        """Whether the content of pages is available."""

    @property
    def count(self) -> int:
        """The number of page ids."""


@dataclass(slots=True)
class Property:
    """A named property, computed by page and cached; `row_values` computes it from the trace instead."""

    name: str
    page_value: Callable[[int], Any]
    row_values: Callable[[WalkTrace], FloatArray] | None = None
    cache: dict[int, Any] = field(default_factory=dict)

    def values(self, trace: WalkTrace) -> npt.NDArray[Any]:
        """Return the value for each row; None off topic."""
        return self._by_row(trace, self._value, np.full(len(trace), None, object))

    def numbers(self, trace: WalkTrace) -> FloatArray:
        """Return the value for each row as a number; NaN off topic and where it is unknown."""
        return self._by_row(trace, lambda page: self._number(self._value(page)), np.full(len(trace), np.nan))

    def _by_row(self, trace: WalkTrace, value: Callable[[int], Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.row_values is not None:
            return self.row_values(trace)
        pages, inverse = np.unique(trace.page[trace.on_topic], return_inverse=True)
        values = np.empty(pages.size, rows.dtype)
        values[:] = [value(page) for page in pages.tolist()]
        rows[trace.on_topic] = values[inverse]
        return rows

    def _number(self, value: Any) -> float:
        try:
            number = np.nan if value is None else float(value)
        except (TypeError, ValueError):
            number = np.inf
        if np.isinf(number):
            raise UsageError(
                f"the property {self.name} must be a finite number, got {value!r}",
                hint="estimate its distribution instead, or give a rule or function",
            )
        return number

    def _value(self, page: int) -> Any:
        if page not in self.cache:
            self.cache[page] = self.page_value(page)
        return self.cache[page]


def resolve_property(spec: PropertySpec, pages: PageSource) -> Property:
    """Return the property for a name, a rule such as `word:buy`, a function of a page, or an array by page id."""
    if callable(spec):
        return _from_function(spec, pages)
    if not isinstance(spec, str):
        return _from_array(np.asarray(spec), pages.count)
    if spec in ("degree", "log_degree"):
        transform: Any = np.log if spec == "log_degree" else np.copy
        return Property(spec, lambda _: None, lambda trace: transform(trace.degree))
    if spec == "topic_link_share":
        rows = getattr(pages, "drawn_link_values", None) if getattr(pages, "needs_draws", False) else None
        return Property(spec, pages.topic_link_share, rows)
    if spec == "log_out_degree":
        return Property(spec, lambda page: float(np.log1p(pages.page(page).out_degree)))
    if spec == "tld":
        return Property(spec, lambda page: pages.page(page).host.rpartition(".")[2])
    rule = None if spec in ("out_degree", *CATEGORICAL) else Topic.parse(spec)
    if not pages.has_content and (spec == "language" or (rule is not None and rule.needs_content)):
        raise UsageError(
            f"the property {spec} needs page content, which is not available",
            hint="use a URL rule (host:, domain:, tld:, prefix:, url:), or sample a survey with its archive",
        )
    if rule is None:
        return Property(spec, lambda page: getattr(pages.page(page), spec))
    return Property(rule.text, lambda page: bool(rule(pages.page(page))))


def _from_function(function: Callable[[SampledPage], Any], pages: PageSource) -> Property:
    name = getattr(function, "__name__", type(function).__name__)

    def value(page: int) -> Any:
        try:
            return function(pages.page(page))
        except SurveyorError:
            raise
        except Exception as error:  # user code may raise anything
            problem = f"the property {name} failed on {pages.url(page)}: {type(error).__name__}: {error}"
            raise UsageError(problem, hint="fix the function, and estimate again") from error

    return Property(name, value)


def _from_array(values: npt.NDArray[Any], count: int) -> Property:
    if values.shape != (count,):
        raise UsageError(
            f"values must have one entry for each of the {count:,} pages, got shape {values.shape}",
            hint="give one value per page, a rule or a function",
        )
    return Property("values", lambda page: values[page].item())


def host_ids(trace: WalkTrace, pages: PageSource) -> IntArray | None:
    """Return a host id for each row; None if pages have no URLs."""
    visited, inverse = np.unique(trace.page, return_inverse=True)
    names = [pages.page(page).host for page in visited.tolist()]
    if not any(names):
        return None
    return np.unique(names, return_inverse=True)[1][inverse].astype(np.int64)
