"""When each page of a watched survey is due for its next visit, from its importance and its change history.

**One rule.** A visit to a page of importance μ that changes at rate λ, τ after its last visit, has the value

    V(τ) = μ ((1 - e^(-λτ)) / λ - τ e^(-λτ))

units of fresh importance: visits at regular intervals T with V(T) = price have the largest freshness minus price times
visits (it is the Whittle index of the page). The price is the one at which the visits of all pages use up the request
rate. Where sources of signals list a page, V is the value given the signals since the last visit
(`kernels/revisit_index.py`). A page that was never fetched is one whose last visit is infinitely long ago: V = μ/λ with
the usual λ. So new pages and re-visits are weighed by the same number.

**Pages whose value stays below the price** are visited too, because only visits correct estimates: each page once in
active / (explore · rate) seconds, up to ten times less often the more visits it has had. This takes at most the share
`explore` of the requests that others need. Requests that no page would use are given to the pages that come next
(`_keep_pace`). Uncertain rates are taken to be lower than their estimates, so that pages that seem to
change too fast are visited until this is certain.

**Plans.** `plan` learns change rates (`change_learning.py`) and sets the price so that the pages that become due in the
next `period` use up the rate and what was left unused, given which pages are overdue. Until the next plan the due time
of a page changes only by its own visits and signals. Pages added after a plan become due with the next one. A plan is
a function of the visits and signals before it, not of earlier plans, so a schedule that is rebuilt from a journal
continues like the one that was interrupted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.crawler.change_learning import LEAST_PRECISION, Learned, SignalQuality, learn
from surveyor.crawler.revisits import ChangeRate
from surveyor.errors import UsageError, check_range

DAY = 86400.0
PERIOD = 0.2  # visits per page in a period
FEWEST = 20  # visits in a period
DOUBT = 0.25  # without signals, uncertain rates are taken to be lower, by exp(-DOUBT · variance of the logarithm)
SEASONED = 4.0  # visits after which a page of a value below the price is visited half as often
RAREST = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """How visits are distributed."""

    explore: float = 0.05  # largest share of the requests for pages of a value below the price
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
        self._rare = math.inf  # seconds between visits to a page that no price makes due
        self._history = new_history(0)
        self._learned: Learned | None = None
        self._active: BoolArray = np.empty(0, np.bool_)
        self._planned = 0  # pages at the last plan
        self._visits = 0
        self._columns: dict[str, FloatArray] = {name: np.empty(0) for name in DEFAULTS}

    @property
    def pages(self) -> int:
        """Number of pages that may become due."""
        return int(np.count_nonzero(self._active))

    @property
    def period(self) -> float:
        """Seconds for which a plan is made; plan again after it at the latest."""
        return max(PERIOD * self.pages, FEWEST) / self.rate

    @property
    def bytes_per_page(self) -> float:
        """Memory of the arrays that stay between calls, per page of their size."""
        arrays: list[npt.NDArray[Any]] = [*self._history, *self._columns.values(), self._active]
        return sum(array.nbytes for array in arrays) / max(self._active.size, 1)

    def observe(self, page: int, at: float, *, changed: bool | None, expires: float = 0.0) -> None:
        """Record a visit; `changed` is None at a first visit, or if the two contents cannot be compared."""
        from surveyor.kernels.change_history import UNKNOWN, record

        self._add(page, at)
        mark = UNKNOWN if changed is None else int(changed)
        expires = expires if math.isfinite(expires) else 0.0
        self._visits += 1
        record(self._history, page, float(at), mark, float(expires), self.options.half_life)
        self._columns["not_before"][page] = -np.inf
        self._columns["explore"][page] = self._rare * min(1 + float(self._history.visits[page]) / SEASONED, RAREST)
        self._set_due(page)

    def observe_all(
        self, pages: npt.ArrayLike, at: npt.ArrayLike, changed: npt.ArrayLike, expires: npt.ArrayLike | None = None
    ) -> None:
        """Record many visits in order, as `observe`, without signals between them; -1 is an unknown change.

        The pages are not due before the next plan.
        """
        from surveyor.kernels.change_history import record_all

        ids, times, marks = np.asarray(pages, np.int64), np.asarray(at, np.float64), np.asarray(changed, np.int64)
        until = np.zeros(times.shape) if expires is None else np.nan_to_num(np.asarray(expires, np.float64), posinf=0)
        if ids.ndim != 1 or not ids.shape == times.shape == marks.shape == until.shape:
            raise UsageError("visits need a page, a time and a mark each", hint="give arrays of one length")
        if not ids.size:
            return
        if ids.min() < 0 or not np.isfinite(times).all():
            raise UsageError("pages are numbered from 0, and times are finite", hint="give seconds since 1970")
        self._make_room(int(ids.max()))
        record_all(self._history, ids, times, marks, until, self.options.half_life)
        first = np.unique(ids, return_index=True)
        new = ~self._active[first[0]]
        self._columns["known"][first[0][new]] = times[first[1][new]]
        self._active[ids] = True
        self._columns["not_before"][ids] = -np.inf
        self._columns["due"][ids] = np.inf
        self._visits += ids.size
        self._clock = float(times[-1])

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
        self._make_room(int(ids.max(initial=0)))
        history = self._history
        history.covered[ids[history.source[ids] < 0]] = self._clock
        history.source[ids] = source

    def last_visit(self, page: int) -> float | None:
        """Return the time of the last visit to a page; None if it is not scheduled or was never visited."""
        if page >= self._active.size or not self._active[page] or self._history.last[page] == -np.inf:
            return None
        return float(self._history.last[page])

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

    def plan(self, now: float, importance: npt.ArrayLike, requested: npt.ArrayLike = ()) -> None:
        """Learn change rates and the reliability of signals; set the price and all due times.

        Pages that were `requested` since they became due, and wait for their hosts, do not hold back others.
        """
        weight = np.asarray(importance, np.float64)
        if weight.ndim != 1 or not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise UsageError("importance must be finite, none negative", hint="give one number per page")
        self._make_room(max(weight.size - 1, 0))
        self._clock = _time(now)
        columns, history = self._columns, self._history
        for times in (history.last, history.covered, columns["known"]):  # the clock was set back
            times[np.isfinite(times)] = np.minimum(times[np.isfinite(times)], now)
        columns["weight"][:] = 0.0
        columns["weight"][: weight.size] = weight
        learned = self._learned = self._learn(now)
        useful = learned.precision >= LEAST_PRECISION
        slower = np.where(useful, 1.0, np.exp(-DOUBT * np.minimum(learned.error, 1.5) ** 2))
        columns["speed"] = np.where(useful, learned.missed, learned.rate) * slower
        columns["theta"] = np.where(useful, learned.signals / columns["speed"], 0.0)
        columns["evidence"] = np.where(useful, -np.log1p(-learned.precision), 0.0)
        columns["scale"] = np.where(self._active, columns["weight"] / columns["speed"], 0.0)
        self._set_price(now, np.asarray(requested, np.int64))
        self._planned = self._active.size
        columns["due"] = self._due_times()

    def due(self, now: float, count: int) -> IdArray:
        """Return the pages to fetch now: most valuable first, with the share `explore` of others, longest due first."""
        return self.due_values(now, count)[0]

    def due_values(self, now: float, count: int, requested: npt.ArrayLike = ()) -> tuple[IdArray, FloatArray]:
        """Return the pages to fetch now, but those that were requested, and values by which they come in this order.

        A page of the share `explore` has the value of the best page.
        """
        columns = self._columns
        pages = np.setdiff1d(np.flatnonzero(columns["due"] <= now), requested)
        values = self._values(now, pages)
        valuable = values >= self.price * (1 - 1e-6)
        overdue = (now - self._since()[pages]) / columns["explore"][pages]
        places = np.arange(pages.size)
        main, other = places[valuable], places[~valuable]
        main = main[np.lexsort((main, -values[valuable]))]
        other = other[np.lexsort((other, -overdue[~valuable]))]
        requests = self._visits + np.arange(min(max(count, 0), pages.size) + 1)
        turn = np.diff(np.floor(self.options.explore * requests)) > 0  # requests that are for the second kind
        turn &= np.cumsum(turn) <= other.size
        taken = int(np.count_nonzero(turn))
        found = np.empty(turn.size, np.int64)
        found[turn] = other[:taken]
        found[~turn] = np.concatenate([main, other[taken:]])[: turn.size - taken]
        best = values.max(initial=0.0)
        return pages[found].astype(np.int32), np.where(turn, best, values[found])

    def values(self, now: float, pages: npt.ArrayLike) -> FloatArray:
        """Return the value of a visit to each page as of the last plan."""
        return self._values(now, np.asarray(pages, np.int64))

    def count_due(self, now: float) -> int:
        """Return how many pages are due."""
        return int(np.count_nonzero(self._columns["due"] <= now))

    def next_due(self) -> float:
        """Return when the next page is due; infinity if none."""
        return float(self._columns["due"].min(initial=np.inf))

    def rates(self) -> ChangeRate[FloatArray]:
        """Return the change rates per second as of the last plan, with 95 % intervals."""
        known = self._last_plan()
        return ChangeRate(known.rate, known.low, known.high)

    def signal_quality(self) -> SignalQuality:
        """Return the precision of signals as of the last plan."""
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

    def _set_price(self, now: float, requested: IntArray) -> None:
        """Find the price, and how often the other pages are visited, for the next period."""
        columns, history = self._columns, self._history
        active = max(self.pages, 1)
        requests = self._next_requests(now)
        end = now + self.period
        able = np.flatnonzero(self._active & (columns["not_before"] <= end))
        values = self._values(end, able)
        explore = self.options.explore
        self._rare = math.inf if explore == 0 else active / (explore * self.rate)
        columns["explore"] = self._rare * np.minimum(1 + history.visits / SEASONED, RAREST)
        ratio = (end - self._since()[able]) / columns["explore"][able]
        most, overdue = int(explore * requests), able[:0]
        for _ in range(2):
            self.price = self._price_for(requests - min(overdue.size, most), end, able, values)
            late = (values < self.price) & (ratio >= 1)
            overdue = able[late][np.lexsort((able[late], -ratio[late]))]
        postponed = overdue[most:]  # to the end of the period
        columns["explore"][postponed] = end - self._since()[postponed]
        self._set_thresholds(np.arange(self._active.size))
        is_free = ~np.isin(able, requested) & (self._since()[able] + self.options.shortest <= end)
        self._keep_pace(now, able[is_free], values[is_free])

    def _keep_pace(self, now: float, able: IntArray, values: FloatArray) -> None:
        """Make pages due early, in order, as far as the rate since the last visit would be unused otherwise.

        After a crawl many pages reach the price at the same moment, at the end of the period; and the value of a page
        that is certainly stale grows no more, so that no price may separate many such pages. What is unused in the
        meantime is lost. The pages that become due next come first, then the most valuable ones.
        """
        end, since, last = now + self.period, self._since(), self._history.last[self._active]
        due = self._due_times()[able]
        begin = min(max(float(last[np.isfinite(last)].max(initial=-np.inf)), now - DAY), now)
        order = np.lexsort((able, since[able], -values, np.where(due <= end, due, np.inf)))
        pages = able[order][: math.ceil((end - begin) * self.rate)]
        turn = np.maximum(begin + (np.arange(pages.size) + 0.5) / self.rate, since[pages] + self.options.shortest)
        explore = self._columns["explore"]
        explore[pages] = np.minimum(explore[pages], np.maximum(turn - since[pages], 1e-3))

    def _next_requests(self, now: float) -> float:
        """Return how many requests should become due in the next period."""
        requests = self.period * self.rate
        used = int(np.count_nonzero(self._history.last > now - self.period))  # as each page is visited once at most
        unused = max(requests - used, 0.0)
        return requests + math.sqrt(requests) + unused  # a reserve, so that the rate is used if fewer become due

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
        """Return the number of visits until `end` to pages whose value reaches the price by then."""
        columns = self._columns
        level, length = self._thresholds(price, pages)
        speed = columns["speed"][pages]
        first = self._history.last[pages] + (level - columns["evidence"][pages] * self._history.pending[pages]) / speed
        first = np.maximum(first, self._clock)
        again = np.maximum(length / speed, max(self.options.shortest, 1e-9))
        return pages.size + float(np.floor(np.maximum(end - first, 0) / again).sum())

    def _thresholds(self, price: float, pages: IntArray) -> tuple[FloatArray, FloatArray]:
        from surveyor.kernels.revisit_index import lengths, thresholds

        theta, evidence, scale = (self._columns[name][pages] for name in ("theta", "evidence", "scale"))
        level, length = np.empty(pages.size), np.empty(pages.size)
        thresholds(price, theta, evidence, scale, level)
        lengths(level, theta, evidence, length)
        return level, length

    def _set_thresholds(self, pages: IntArray) -> None:
        self._columns["level"] = self._thresholds(self.price, pages)[0]

    def _values(self, now: float, pages: IntArray) -> FloatArray:
        """Return the value of a visit to each page."""
        from surveyor.kernels.revisit_index import values

        theta, evidence, scale = (self._columns[name][pages] for name in ("theta", "evidence", "scale"))
        found = np.empty(pages.size)
        values(self._exposure(now, pages), theta, evidence, scale, found)
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
        at_price = np.where(np.isfinite(wait), history.last, 0.0) + wait  # infinite if it never reaches the price
        at_price = np.maximum(at_price, history.last + self.options.shortest)
        since = self._since()
        explore = np.where(np.isfinite(since), since, 0.0) + columns["explore"]
        due = np.maximum(np.minimum(at_price, explore), columns["not_before"])
        return np.where(self._active, due, np.inf)

    def _set_due(self, page: int) -> None:
        """Update the due time of one page, as `_due_times`."""
        columns, history = self._columns, self._history
        if page >= self._planned or not self._active[page]:
            columns["due"][page] = np.inf
            return
        last = float(history.last[page])
        level = float(columns["level"][page])
        at_price = math.inf
        if level < math.inf:
            wait = (level - float(columns["evidence"][page]) * float(history.pending[page])) / float(
                columns["speed"][page]
            )
            at_price = max(last + wait, last + self.options.shortest)
        explore = max(last, float(columns["known"][page])) + float(columns["explore"][page])
        columns["due"][page] = max(min(at_price, explore), float(columns["not_before"][page]))

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
        if page < 0:
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
    "scale": 0.0,  # weight / speed
    "level": np.inf,  # exposure at which the value of a visit is the price
    "explore": np.inf,  # seconds after which the page is visited even if its value is below the price
    "known": -np.inf,  # since when the page is known
    "not_before": -np.inf,
    "due": np.inf,
}


def _time(at: float) -> float:
    if not math.isfinite(at):
        raise UsageError(f"a time must be finite, got {at}", hint="give seconds since 1970")
    return float(at)
