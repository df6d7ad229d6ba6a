"""When each page of a watched survey is due for its next visit, from its importance and its change history.

**One rule.** A page of importance μ that changes at rate λ and was visited τ seconds ago is worth a visit of

    V(τ) = μ ((1 - e^(-λτ)) / λ - τ e^(-λτ))

seconds of fresh importance: visiting whenever V reaches a price maximises freshness minus the price of the visits,
with regular intervals. The price is the value at which the visits use up the request rate. A page that was never
fetched is one whose last visit is infinitely long ago: V = μ/λ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IdArray
from surveyor.crawler.revisits import ChangeRate
from surveyor.errors import UsageError, check_range

DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """How visits are distributed."""

    explore: float = 0.05  # largest share of the requests for pages that are not worth the price
    half_life: float = 180 * DAY  # seconds after which a visit counts half in change rates


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SignalQuality:
    """How reliable change signals were."""

    precision: Estimate  # share of the signals that announced a change
    recall: Estimate  # share of the changes that were announced
    signals: int  # signals that a later visit could check


@dataclass(frozen=True, slots=True)
class Forecast:
    """Share of the importance that is fresh now, with its standard error."""

    fresh: float
    error: float


class Schedule:
    """When each page is due for its next visit, from its importance and its change history."""

    def __init__(self, rate: float, *, start: float, options: ScheduleOptions | None = None) -> None:
        if not 0 < rate < np.inf:
            raise UsageError(f"rate must be above 0 requests per second, got {rate}", hint="for example 100 / 86400")
        self.rate, self.start, self.options = rate, start, options or ScheduleOptions()
        check_range("explore", self.options.explore, "[0, 1)", hint="give a share of the requests, such as 0.05")
        self._size = 0
        self.last: FloatArray = np.empty(0)  # time of the last visit; -inf if none
        self.time: FloatArray = np.empty(0)  # seconds between comparable visits
        self.visits: FloatArray = np.empty(0)  # comparable visits
        self.changes: FloatArray = np.empty(0)
        self.signalled: FloatArray = np.empty(0)  # signals since the last visit
        self.interval: FloatArray = np.empty(0)  # as planned
        self.not_before: FloatArray = np.empty(0)
        self.value: FloatArray = np.empty(0)
        self.active: BoolArray = np.empty(0, np.bool_)
        self.covered: BoolArray = np.empty(0, np.bool_)

    def observe(self, page: int, at: float, *, changed: bool | None, expires: float = 0.0) -> None:  # noqa: ARG002
        """Record a visit; `changed` is None at a first visit, or if the two contents cannot be compared."""
        self._make_room(page + 1)
        elapsed = at - self.last[page]
        if changed is not None and 0 < elapsed < np.inf:
            self.time[page] += elapsed
            self.visits[page] += 1
            self.changes[page] += changed
        self.last[page] = max(at, self.last[page])
        self.signalled[page] = 0
        self.active[page] = True

    def signal(self, page: int, at: float) -> None:
        """Record that a source says that the page has changed."""
        self._make_room(page + 1)
        if at >= self.last[page]:
            self.signalled[page] += 1

    def listed(self, pages: npt.ArrayLike) -> None:
        """Record that a source of signals covers these pages, so that no signal is evidence too."""
        ids = np.asarray(pages, np.int64)
        self._make_room(int(ids.max(initial=-1)) + 1)
        self.covered[ids] = True

    def queue(self, page: int) -> None:
        """Add a known page that was never fetched."""
        self._make_room(page + 1)
        self.active[page] = True

    def drop(self, page: int) -> None:
        """Remove a page that is gone, blocked, out of scope or redirected; a visit adds it again."""
        self._make_room(page + 1)
        self.active[page] = False

    def defer(self, page: int, until: float) -> None:
        """Make a page not due before a time, for example after a failed request."""
        self._make_room(page + 1)
        self.not_before[page] = until

    def plan(self, now: float, importance: FloatArray) -> None:
        """Update change rates, the price and the intervals of all pages."""
        self._make_room(importance.size)
        weight = np.zeros(self._size)
        weight[: importance.size] = importance
        self._importance = weight
        rates = self.rates().rate
        pages = max(int(np.count_nonzero(self.active)), 1)
        from surveyor.crawler.revisits import optimal_rates

        chosen = optimal_rates(
            np.where(self.active, weight, 0.0),
            rates,
            self.rate,
            at_least=np.where(self.active, self.options.explore * self.rate / pages, 0.0),
        )
        with np.errstate(divide="ignore"):
            self.interval = 1 / chosen
        self.value = weight * rates

    def due(self, now: float, count: int) -> IdArray:
        """Return the pages to fetch now, most valuable first."""
        pages = np.flatnonzero(self._due() <= now)
        return pages[np.argsort(-self.value[pages], kind="stable")][:count].astype(np.int32)

    def next_due(self) -> float:
        """Return when the next page is due; infinity if none."""
        return float(self._due().min(initial=np.inf))

    def rates(self) -> ChangeRate[FloatArray]:
        """Return the learned change rates per second, with 95 % intervals."""
        mean = (self.changes.sum() + 0.5) / (self.time.sum() + 0.5 / self.rate)
        rate = (self.changes + 1) / (self.time + 1 / mean)
        error = 1.96 * rate / np.sqrt(self.changes + 1)
        return ChangeRate(rate, np.maximum(rate - error, 0), rate + error)

    def signal_quality(self) -> SignalQuality:
        """Return the precision and the recall of signals, as learned."""
        return SignalQuality(Estimate(0.5, 0.0, 1.0), Estimate(0.5, 0.0, 1.0), 0)

    def forecast(self, now: float) -> Forecast:
        """Return the share of importance that is expected to be fresh now."""
        weight = self._importance * self.active
        with np.errstate(invalid="ignore"):
            fresh = np.exp(-self.rates().rate * np.maximum(now - self.last, 0))
        total = max(float(weight.sum()), 1e-300)
        return Forecast(float(weight @ fresh) / total, float(np.sqrt((weight**2 * fresh * (1 - fresh)).sum())) / total)

    def _due(self) -> FloatArray:
        due = np.where(self.signalled > 0, self.last, self.last + self.interval)
        return np.where(self.active, np.maximum(due, self.not_before), np.inf)

    def _make_room(self, pages: int) -> None:
        if pages <= self._size:
            return
        room = max(pages, 2 * self._size) - self._size
        for name, value in {
            "last": -np.inf,
            "time": 0.0,
            "visits": 0.0,
            "changes": 0.0,
            "signalled": 0.0,
            "interval": 1.0,
            "not_before": -np.inf,
            "value": 0.0,
            "active": False,
            "covered": False,
        }.items():
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full(room, value, old.dtype)]))
        self._size += room
