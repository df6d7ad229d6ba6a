"""When each page of a watched survey is due for its next visit, from its importance and its change history.

**One rule.** A visit to a page of importance μ that changes at rate λ, τ after its last visit, is worth

    V(τ) = μ ((1 - e^(-λτ)) / λ - τ e^(-λτ))

units of fresh importance: visits at regular intervals T with V(T) = price have the largest freshness minus price times
visits (it is the Whittle index of the page). The price is the one at which the visits of all pages use up the request
rate. Where sources of signals list a page, V is the value given the signals since the last visit
(`kernels/revisit_index.py`). A page that was never fetched is one whose last visit is infinitely long ago: V = μ/λ with
the usual λ. So new pages and re-visits are weighed by the same number.

**Pages that are not worth the price** are visited too, because estimates can only be corrected by visits: each page
once in active / (explore · rate) seconds, up to ten times less often the more visits it has had. This takes at most
the share `explore` of the requests.

**Plans.** `plan` learns change rates (`change_learning.py`) and sets the price so that the pages that become due until
the next plan (in as long a time as since the last one) use up the rate and what was left unused, given which pages are
overdue. Until then the due time of a page changes only by its own visits and signals. Pages added after a plan become
due with the next one. The state is a function of the calls: the same visits, signals and plans give the same schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.crawler.change_learning import LEAST_PRECISION, Learned, SignalQuality, learn
from surveyor.crawler.revisits import ChangeRate
from surveyor.errors import UsageError, check_range

DAY = 86400.0
PERIOD = 0.05  # of the pages, visited in the first period
LONGEST = 0.5  # of the pages, visited in any other
FEWEST = 20  # visits in a period
SEASONED = 4.0  # visits after which a page that is not worth the price is visited half as often
RAREST = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """How visits are distributed."""

    explore: float = 0.05  # largest share of the requests for pages that are not worth the price
    half_life: float = 180 * DAY  # seconds after which a visit counts half in change rates
    shortest: float = 600.0  # seconds between two visits to a page


@dataclass(frozen=True, slots=True)
class Forecast:
    """Share of the importance that is fresh now, with its standard error."""

    fresh: float
    error: float


class Schedule:
    """When each page is due for its next visit, from its importance and its change history."""

    def __init__(self, rate: float, *, start: float, options: ScheduleOptions | None = None) -> None:
        from surveyor.kernels.change_history import new_history

        if not 0 < rate < np.inf:
            raise UsageError(f"rate must be above 0 requests per second, got {rate}", hint="for example 100 / 86400")
        self.rate, self.options, self._clock = float(rate), options or ScheduleOptions(), _time(start)
        check_range("explore", self.options.explore, "[0, 1)", hint="give a share of the requests, such as 0.05")
        check_range("half_life", self.options.half_life, "(0, inf]", hint="in seconds")
        check_range("shortest", self.options.shortest, "[0, inf)", hint="in seconds")
        self.price = math.inf  # of a visit, as planned
        self._history = new_history(0)
        self._learned: Learned | None = None
        self._active: BoolArray = np.empty(0, np.bool_)
        self._planned = 0  # pages at the last plan
        self._visits = 0  # since then
        self._planned_at, self._period = math.nan, math.nan
        self._columns: dict[str, FloatArray] = {name: np.empty(0) for name in DEFAULTS}

    @property
    def pages(self) -> int:
        """Number of pages that may become due."""
        return int(np.count_nonzero(self._active))

    def observe(self, page: int, at: float, *, changed: bool | None, expires: float = 0.0) -> None:
        """Record a visit; `changed` is None at a first visit, or if the two contents cannot be compared."""
        from surveyor.kernels.change_history import UNKNOWN, record

        self._add(page, at)
        mark = UNKNOWN if changed is None else int(changed)
        expires = expires if math.isfinite(expires) else 0.0
        record(self._history, page, float(at), mark, float(expires), self.options.half_life)
        self._columns["not_before"][page] = -np.inf
        self._visits += 1
        self._set_due(page)

    def signal(self, page: int, at: float) -> None:
        """Record that a source says that the page changed at this time."""
        self._make_room(page)
        self._clock = _time(at)
        history = self._history
        if history.source[page] < 0:
            self.listed([page])
        if at > history.last[page]:
            history.pending[page] += 1
            history.signals[page] += 1
            self._set_due(page)

    def listed(self, pages: npt.ArrayLike, source: int = 0) -> None:
        """Record that a source of signals covers these pages, so that no signal is evidence too."""
        ids = np.asarray(pages, np.int64)
        if source < 0 or (ids.size and ids.min() < 0):
            raise UsageError("pages and sources are numbered from 0", hint="give ids of known pages")
        self._make_room(int(ids.max(initial=-1)))
        history = self._history
        history.covered[ids[history.source[ids] < 0]] = self._clock
        history.source[ids] = source

    def queue(self, page: int) -> None:
        """Add a known page that was never fetched."""
        self._add(page, self._clock)

    def drop(self, page: int) -> None:
        """Remove a page that is gone, blocked, out of scope or redirected; a visit adds it again."""
        self._make_room(page)
        self._active[page] = False
        self._set_due(page)

    def defer(self, page: int, until: float) -> None:
        """Make a page not due before a time, for example after a failed request; a visit ends this."""
        self._make_room(page)
        self._columns["not_before"][page] = _time(until)
        self._set_due(page)

    def plan(self, now: float, importance: npt.ArrayLike) -> None:
        """Learn change rates and the reliability of signals; set the price and all due times."""
        weight = np.asarray(importance, np.float64)
        if weight.ndim != 1 or not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise UsageError("importance must be finite, none negative", hint="give one number per page")
        self._make_room(weight.size - 1)
        self._clock = _time(now)
        columns, history = self._columns, self._history
        for times in (history.last, history.covered, columns["known"]):  # the clock was set back
            times[np.isfinite(times)] = np.minimum(times[np.isfinite(times)], now)
        columns["weight"][:] = 0.0
        columns["weight"][: weight.size] = weight
        learned = self._learned = self._learn(now)
        useful = learned.precision >= LEAST_PRECISION
        columns["speed"] = np.where(useful, learned.missed, learned.rate)
        columns["theta"] = np.where(useful, learned.signals / learned.missed, 0.0)
        columns["evidence"] = np.where(useful, -np.log1p(-learned.precision), 0.0)
        columns["worth"] = np.where(self._active, columns["weight"] / columns["speed"], 0.0)
        self._set_price(now)
        self._planned = self._active.size
        columns["due"] = self._due_times()

    def due(self, now: float, count: int) -> IdArray:
        """Return the pages to fetch now, most valuable first: of highest value, or longest not explored."""
        pages = np.flatnonzero(self._columns["due"] <= now)
        if not pages.size:
            return pages.astype(np.int32)
        since, explore = self._since()[pages], self._columns["explore"][pages]
        urgency = np.maximum(self._values(now, pages) / self.price, (now - since) / explore)
        return pages[np.lexsort((pages, -urgency))][: max(count, 0)].astype(np.int32)

    def next_due(self) -> float:
        """Return when the next page is due; infinity if none."""
        return float(self._columns["due"].min(initial=np.inf))

    def rates(self) -> ChangeRate[FloatArray]:
        """Return the change rates per second as of the last plan, with 95 % intervals."""
        known = self._last_plan()
        return ChangeRate(known.rate, known.low, known.high)

    def signal_quality(self) -> SignalQuality:
        """Return the precision and the recall of signals as of the last plan."""
        return self._last_plan().quality

    def forecast(self, now: float) -> Forecast:
        """Return the share of the importance that is expected to be fresh now; pages never fetched are not."""
        known, pages = self._last_plan(), np.flatnonzero(self._active[: self._planned])
        weight = self._columns["weight"][pages]
        total = float(weight.sum())
        if not total > 0:
            return Forecast(0.0, 0.0)
        fresh, square = np.zeros(pages.size), np.zeros(pages.size)
        for step, share in ((-math.sqrt(3), 1 / 6), (0.0, 2 / 3), (math.sqrt(3), 1 / 6)):  # quadrature over the rate
            part = np.exp(-self._exposure(now, pages, np.exp(step * known.error[pages])))
            fresh += share * part
            square += share * part**2
        spread = fresh * (1 - fresh)  # of a coin with this share, whatever its distribution
        return Forecast(float(weight @ fresh) / total, math.sqrt(float(weight**2 @ spread)) / total)

    def _learn(self, now: float) -> Learned:
        return learn(self._history, now)

    def _set_price(self, now: float) -> None:
        """Find the price, and how often the other pages are visited, for the next period."""
        columns, history = self._columns, self._history
        active = max(self.pages, 1)
        requests = self._next_requests(now, active)
        end = now + self._period
        able = np.flatnonzero(self._active & (columns["not_before"] <= end))
        values = self._values(end, able)
        seasoned = np.minimum(1 + history.visits / SEASONED, RAREST)
        explore = self.options.explore
        columns["explore"] = (
            np.full(self._active.size, np.inf) if explore == 0 else active / (explore * self.rate) * seasoned
        )
        ratio = (end - self._since()[able]) / columns["explore"][able]
        used, slack = 0.0, 1.0
        for _ in range(2):
            self.price = self._price_for(requests - used, end, able, values)
            overdue = ratio[(values < self.price) & (ratio >= 1)]
            most = int(explore * requests)
            slack = 1.0
            if overdue.size > most:
                slack = float(np.partition(overdue, overdue.size - most - 1)[overdue.size - most - 1]) * (1 + 1e-12)
            used = min(overdue.size, most)
        columns["explore"] *= slack
        self._set_thresholds(np.arange(self._active.size))

    def _next_requests(self, now: float, active: int) -> float:
        """Set the next period; return how many requests should become due in it."""
        shortest, longest = FEWEST / self.rate, LONGEST * active / self.rate
        elapsed, used = now - self._planned_at, self._visits
        self._planned_at, self._visits = now, 0
        if not elapsed >= 0:  # the first plan, or the clock was set back
            self._period = max(PERIOD * active / self.rate, shortest)
            return self._period * self.rate
        self._period = max(min(elapsed, longest), shortest)
        unused = min(max(min(elapsed, longest) * self.rate - used, 0.0), self._period * self.rate)
        return self._period * self.rate + unused

    def _price_for(self, requests: float, end: float, pages: IntArray, values: FloatArray) -> float:
        """Return the price at which this many requests are due until `end`."""
        order = np.argsort(-values, kind="stable")
        pages, values = pages[order], values[order]
        high = float(values[0]) if values.size else 0.0
        if not high > 0:
            return math.inf
        few = int(requests) < values.size and values[int(requests)] > 0
        low = float(values[int(requests)]) if few else high * 1e-12
        for _ in range(40):
            if high <= low * (1 + 1e-4):
                break
            price = math.sqrt(low * high)
            if self._requests_at(price, end, pages[: np.searchsorted(-values, -price, "right")]) > requests:
                low = price
            else:
                high = price
        return math.sqrt(low * high)

    def _requests_at(self, price: float, end: float, pages: IntArray) -> float:
        """Return the number of visits until `end` to pages that are worth the price by then."""
        columns = self._columns
        level, length = self._thresholds(price, pages)
        speed = columns["speed"][pages]
        first = self._history.last[pages] + (level - columns["evidence"][pages] * self._history.pending[pages]) / speed
        first = np.maximum(first, self._clock)
        again = np.maximum(length / speed, max(self.options.shortest, 1e-9))
        return pages.size + float(np.floor(np.maximum(end - first, 0) / again).sum())

    def _thresholds(self, price: float, pages: IntArray) -> tuple[FloatArray, FloatArray]:
        from surveyor.kernels.revisit_index import lengths, thresholds

        theta, evidence, worth = (self._columns[name][pages] for name in ("theta", "evidence", "worth"))
        level, length = np.empty(pages.size), np.empty(pages.size)
        thresholds(price, theta, evidence, worth, level)
        lengths(level, theta, evidence, length)
        return level, length

    def _set_thresholds(self, pages: IntArray) -> None:
        self._columns["level"] = self._thresholds(self.price, pages)[0]

    def _values(self, now: float, pages: IntArray) -> FloatArray:
        """Return what a visit to each page is worth."""
        from surveyor.kernels.revisit_index import values

        theta, evidence, worth = (self._columns[name][pages] for name in ("theta", "evidence", "worth"))
        found = np.empty(pages.size)
        values(self._exposure(now, pages), theta, evidence, worth, found)
        return found

    def _exposure(self, now: float, pages: IntArray, faster: FloatArray | float = 1.0) -> FloatArray:
        """Return minus the logarithm of the probability that each page is fresh."""
        history = self._history
        elapsed = np.maximum(now - history.last[pages], 0.0)
        exposure: FloatArray = faster * self._columns["speed"][pages] * elapsed
        return exposure + self._columns["evidence"][pages] * history.pending[pages]

    def _since(self) -> FloatArray:
        """Return when each page was last visited, or first known."""
        return np.maximum(self._history.last, self._columns["known"])

    def _due_times(self) -> FloatArray:
        columns, history = self._columns, self._history
        wait = (columns["level"] - columns["evidence"] * history.pending) / columns["speed"]
        worth = np.where(np.isfinite(wait), history.last, 0.0) + wait  # infinite if it never reaches the price
        worth = np.maximum(worth, history.last + self.options.shortest)
        since = self._since()
        explore = np.where(np.isfinite(since), since, 0.0) + columns["explore"]
        due = np.maximum(np.minimum(worth, explore), columns["not_before"])
        return np.where(self._active, due, np.inf)

    def _set_due(self, page: int) -> None:
        """Update the due time of one page, as `_due_times`."""
        columns, history = self._columns, self._history
        if page >= self._planned or not self._active[page]:
            columns["due"][page] = np.inf
            return
        last = float(history.last[page])
        level = float(columns["level"][page])
        worth = math.inf
        if level < math.inf:
            wait = (level - float(columns["evidence"][page]) * float(history.pending[page])) / float(
                columns["speed"][page]
            )
            worth = max(last + wait, last + self.options.shortest)
        explore = max(last, float(columns["known"][page])) + float(columns["explore"][page])
        columns["due"][page] = max(min(worth, explore), float(columns["not_before"][page]))

    def _last_plan(self) -> Learned:
        if self._learned is None:
            raise UsageError("nothing has been learned yet", hint="call plan first")
        return self._learned

    def _add(self, page: int, at: float) -> None:
        self._make_room(page)
        self._clock = _time(at)
        if not self._active[page]:
            self._active[page] = True
            self._columns["known"][page] = float(at)
            self._set_due(page)

    def _make_room(self, page: int) -> None:
        """Make room for a page; columns grow by at least a half."""
        from surveyor.kernels.change_history import new_history

        size = self._active.size
        if page < -1:
            raise UsageError(f"no page {page}", hint="pages are numbered from 0")
        if page < size:
            return
        room = max(page + 1, size + size // 2, 16) - size
        self._active = np.concatenate([self._active, np.zeros(room, np.bool_)])
        self._history = type(self._history)(
            *(np.concatenate([old, new]) for old, new in zip(self._history, new_history(room), strict=True))
        )
        for name, value in DEFAULTS.items():
            self._columns[name] = np.concatenate([self._columns[name], np.full(room, value)])


DEFAULTS = {  # columns of a page before its first plan
    "weight": 0.0,
    "speed": 1.0,  # rate of changes that signals do not announce
    "theta": 0.0,  # signals per such change
    "evidence": 0.0,  # of one signal: minus the logarithm of the probability that it is wrong
    "worth": 0.0,  # weight / speed
    "level": np.inf,  # exposure at which a visit is worth the price
    "explore": np.inf,  # seconds after which the page is visited even if it is not worth the price
    "known": -np.inf,  # since when the page is known
    "not_before": -np.inf,
    "due": np.inf,
}


def _time(at: float) -> float:
    if not math.isfinite(at):
        raise UsageError(f"a time must be finite, got {at}", hint="give seconds since 1970")
    return float(at)
