"""What one may ask about the pages of a sample: rules, functions, arrays, and properties that every page has.

A property has one value for each row of the trace. It is found out once for each page that was met, so that a page is
read from the archive once, however often walks came by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import SurveyorError, UsageError
from surveyor.estimate.sampling.page import SampledPage
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.walk_trace import WalkTrace

NUMBERS = ("out_degree", "log_out_degree", "degree", "log_degree", "intra")
ANY = (-math.inf, math.inf)
BOUNDS = {"degree": (1.0, math.inf), "intra": (0.0, 1.0)}  # which no mean of them can leave
CATEGORIES = ("host", "domain", "tld", "language")
Asked = str | Callable[[SampledPage], Any] | npt.NDArray[Any] | Sequence[float]


def check_known(names: Iterable[str], *, free: bool) -> None:
    """Refuse what is not known of the pages of a survey or of the web, unless URLs alone tell the topic."""
    if "intra" in names and not free:
        raise UsageError(
            "which links stay on topic is not known, as most of the pages that they lead to were not read",
            hint="choose a topic that URLs tell, or sample a graph",
        )


class Pages(Protocol):
    """The pages of a sample, by number."""

    def url(self, page: int) -> str:
        """Return the URL of a page, or its name."""

    def page(self, page: int) -> SampledPage:
        """Return a page."""

    def intra(self, page: int) -> float:
        """Return the share of a page's links that lead to pages on topic; NaN where it is not known or has none."""

    @property
    def speaking(self) -> bool:
        """Whether it is known what pages say."""

    @property
    def count(self) -> int:
        """How many pages are known by number."""


@dataclass(slots=True)
class Property:
    """One property: its name, and its value for a page; `of_rows` if it is told by the rows themselves."""

    name: str
    of_page: Callable[[int], Any]
    of_rows: Callable[[WalkTrace], FloatArray] | None = None
    known: dict[int, Any] = field(default_factory=dict)

    def rows(self, trace: WalkTrace) -> npt.NDArray[Any]:
        """Return the value for each row; None off topic, where it counts for nothing."""
        return self._laid_out(trace, self._of, np.full(len(trace), None, object))

    def numbers(self, trace: WalkTrace) -> FloatArray:
        """Return values as numbers, one a row; NaN where there is none."""
        return self._laid_out(trace, lambda page: self._number(self._of(page)), np.full(len(trace), np.nan))

    def _laid_out(self, trace: WalkTrace, value: Callable[[int], Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.of_rows is not None:
            return self.of_rows(trace)
        met, place = np.unique(trace.page[trace.on_topic], return_inverse=True)
        values = np.empty(met.size, rows.dtype)
        values[:] = [value(page) for page in met.tolist()]
        rows[trace.on_topic] = values[place]
        return rows

    def _number(self, value: Any) -> float:
        try:
            number = np.nan if value is None else float(value)
        except (TypeError, ValueError):
            number = np.inf
        if np.isinf(number):
            problem = f"{self.name} is no number: {value!r}"
            raise UsageError(problem, hint="ask for its distribution instead, or give a rule or function")
        return number

    def _of(self, page: int) -> Any:
        if page not in self.known:
            self.known[page] = self.of_page(page)
        return self.known[page]


def property_of(asked: Asked, pages: Pages) -> Property:
    """Return the property that is asked for: a name, a rule such as `word:buy`, a function, or an array by page."""
    if callable(asked):
        return _by_function(asked, pages)
    if not isinstance(asked, str):
        return _by_page(np.asarray(asked), pages.count)
    if asked in ("degree", "log_degree"):
        change: Any = np.log if asked == "log_degree" else np.copy
        return Property(asked, lambda _: None, lambda trace: change(trace.degree))
    if asked == "intra":
        return Property(asked, pages.intra)
    if asked == "log_out_degree":
        return Property(asked, lambda page: float(np.log1p(pages.page(page).out_degree)))
    if asked == "tld":
        return Property(asked, lambda page: pages.page(page).host.rpartition(".")[2])
    rule = None if asked in ("out_degree", *CATEGORIES) else Topic.parse(asked)
    if not pages.speaking and (asked == "language" or (rule is not None and rule.reads)):
        raise UsageError(
            f"{asked} is told from what pages say, which is not known here",
            hint="ask for a rule for URLs (host:, domain:, tld:, prefix:, url:), or sample a survey with its archive",
        )
    if rule is None:
        return Property(asked, lambda page: getattr(pages.page(page), asked))
    return Property(rule.text, lambda page: bool(rule(pages.page(page))))


def _by_function(asked: Callable[[SampledPage], Any], pages: Pages) -> Property:
    name = getattr(asked, "__name__", type(asked).__name__)

    def value(page: int) -> Any:
        try:
            return asked(pages.page(page))
        except SurveyorError:
            raise
        except Exception as error:  # whatever a function of the user's does
            problem = f"the property {name} failed on {pages.url(page)}: {type(error).__name__}: {error}"
            raise UsageError(problem, hint="mend it, and ask the sample again") from error

    return Property(name, value)


def _by_page(values: npt.NDArray[Any], count: int) -> Property:
    if values.shape != (count,):
        raise UsageError(
            f"values of shape {values.shape} for {count:,} pages", hint="give one value per page, a rule or a function"
        )
    return Property("values", lambda page: values[page].item())


def hosts_of(trace: WalkTrace, pages: Pages) -> IntArray | None:
    """Number the host of each row; None if pages have no URLs."""
    met, place = np.unique(trace.page, return_inverse=True)
    names = [pages.page(page).host for page in met.tolist()]
    if not any(names):
        return None
    return np.unique(names, return_inverse=True)[1][place].astype(np.int64)
