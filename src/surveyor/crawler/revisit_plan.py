"""Which pages a watch requests now: those that its schedule finds due, and seldom those that could not be fetched.

The plan holds what the schedule needs of each page: a digest of its content, whether it failed, and when it is
rechecked. All of it is a function of the visits in the journal, so that a resumed watch continues the same schedule.

A page that is gone or blocked (a temporary redirect counts as blocked) leaves the schedule and is *rechecked*: first
after a day, then after twice as long each time, up to 30 days. Rechecks are at most one request in ten, unless no other
page is due. The frontier holds only pages that are due (*released*), by value; pages of a host that does not respond
stay there until it does. Pages that have waited there get their present value after each plan, so that pages that
become due later do not overtake them for ever.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, FloatArray, IdArray
from surveyor.crawler.replay import DELETED
from surveyor.crawler.schedule import Schedule
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.outcome import TEXT_METHOD

if TYPE_CHECKING:
    from surveyor.crawler.frontier import Frontier
    from surveyor.crawler.ledger import Ledger
    from surveyor.crawler.queues import Batch

DAY = 86_400.0
FIRST_RECHECK, LAST_RECHECK = DAY, 30 * DAY  # seconds; doubled by each failure
RECHECK_SHARE = 0.1  # of the requests
REPLAN_LEAST, REPLAN_MOST = 10.0, 6 * 3600.0  # seconds between two updates of rates and importance
REPLAN_SHARE = 0.25  # of the time in which the budget allows one visit per page
Finding = Literal["", "new", "changed", "gone", "redirected", "back"]  # "": nothing changed


class Seen(NamedTuple):
    """A visit as the plan needs it; `at` is 0 if the page was not requested."""

    page: int
    kind: str
    reason: str
    status: int
    at: float
    content: bytes  # a hash
    expires: float = 0.0  # time until which the server declares the page fresh
    text: bytes = b""  # a hash of the main text; empty if it is not known


@dataclass(slots=True)
class Pages:
    """What is known of each page."""

    content: np.ndarray  # uint64: a digest of the content, 0 if it was never fetched
    text: np.ndarray  # uint64: a digest of the main text, 0 if it is not known
    method: np.ndarray  # uint16: how that text was found
    failures: ByteArray  # in a row
    recheck: FloatArray  # time of the next recheck; inf if the page is in the schedule
    known: BoolArray  # whether it was ever in the schedule
    released: BoolArray  # whether it is in the frontier
    first: BoolArray  # whether it is there before all values: a recheck or a retry
    lost: BoolArray  # whether it was fetched, and was found gone since then


class RevisitPlan:
    """The pages that are due, from a schedule and the pages that failed."""

    def __init__(
        self,
        schedule: Schedule,
        ledger: Ledger,
        importance: Callable[[], FloatArray] | None = None,
        *,
        fetches_new: bool = True,
    ) -> None:
        """Plan re-visits by importance, by default that of the ledger; `fetches_new`: also visit new pages."""
        self.schedule, self._ledger, self._fetches_new = schedule, ledger, fetches_new
        self.importance = importance or ledger.importance
        self._pages = _no_pages(0)
        self._credit, self._waiting = 1.0, 0  # rechecks that are allowed; number of released pages
        self._next_plan = -math.inf
        self._added = False  # pages since the last plan, whose due times it determines
        self._reorders = False  # whether pages in the frontier need their present values
        self._is_stuck = False  # whether no page in the frontier could be requested

    def observe(self, seen: Seen) -> Finding:
        """Record a visit; return what it found."""
        page, pages = seen.page, self._room(seen.page)
        if pages.released[page]:
            pages.released[page] = False
            self._waiting -= 1
        pages.known[page] = True
        failures, before = int(pages.failures[page]), int(pages.content[page])
        if seen.kind == "fetched":
            changed = self._compare(seen)
            pages.failures[page], pages.recheck[page] = 0, np.inf
            self.schedule.observe(page, seen.at, changed=changed, expires=seen.expires)
            was_lost, pages.lost[page] = bool(pages.lost[page]), False
            return "new" if not before else "back" if was_lost else "changed" if changed else ""
        self.schedule.drop(page)
        if seen.kind == "redirected" or seen.reason == DELETED:
            pages.recheck[page], pages.failures[page] = np.inf, 0
            was_lost, pages.lost[page] = bool(pages.lost[page]), bool(before)
            return "redirected" if before and seen.kind == "redirected" and not was_lost else ""
        pages.failures[page] = min(failures + 1, 255)
        pages.recheck[page] = seen.at + min(FIRST_RECHECK * 2.0 ** min(failures, 20), LAST_RECHECK)
        is_found = bool(before) and seen.kind == "gone" and not pages.lost[page]
        pages.lost[page] |= is_found
        return "gone" if is_found else ""

    def _compare(self, seen: Seen) -> bool | None:
        """Return whether a page has changed since its last fetch, None if that is unknown; remember its content.

        As `outcome.has_changed`, except that other bytes are a change of a page whose main text is never hashed.
        """
        pages, page = self._pages, seen.page
        before = int(pages.content[page]), int(pages.text[page]), int(pages.method[page])
        content, text = _digest(seen.content), _digest(seen.text) if seen.text else 0
        method = int.from_bytes(seen.text[:TEXT_METHOD], "little")
        pages.content[page], pages.text[page], pages.method[page] = content, text, method
        if not before[0]:
            return None
        if seen.status == 304 or before[0] == content:
            return False
        comparable = bool(before[1]) == bool(text) and before[2] == method
        return (before[1] != text or not text) if comparable else None

    def add_new(self, pages: IdArray) -> None:
        """Add pages that were discovered and never fetched."""
        if pages.size == 0:
            return
        known = self._room(int(pages.max())).known
        for page in pages[~known[pages]].tolist() if self._fetches_new else ():
            known[page] = self._added = True
            self.schedule.queue(page)

    def replan(self, now: float) -> bool:
        """Update rates, importance and due times if that is due; return whether it was."""
        if now < self._next_plan:
            return False
        self.schedule.plan(now, self.importance(), np.flatnonzero(self._pages.released))
        span = REPLAN_SHARE * self._ledger.known / self.schedule.rate
        self._next_plan = now + min(max(span, REPLAN_LEAST), REPLAN_MOST)
        self._added, self._reorders = False, True
        return True

    def hasten(self) -> bool:
        """Make the next plan due now if pages were added since the last one; return whether there were."""
        if self._added:
            self._next_plan = -math.inf
        return self._added

    def release(self, frontier: Frontier, pages: Iterable[int]) -> None:
        """Put pages into the frontier that a retry waits for."""
        ids = np.fromiter(pages, np.int32)
        if ids.size:
            self._room(int(ids.max()))
            self._put(frontier, ids, np.full(ids.size, np.inf))

    def take(self, frontier: Frontier, count: int, now: float) -> Batch:
        """Lease up to `count` pages that are due at `now` and may be requested; best first."""
        if count > 0:
            late = np.flatnonzero((self._pages.recheck <= now) & ~self._pages.released)
            more = count + (self._waiting // 4 if self._is_stuck else 0)
            due, values = self.schedule.due_values(now, more, np.flatnonzero(self._pages.released))
            rechecks = min(late.size, count) if due.size == 0 else min(late.size, count, int(self._credit))
            due, values = due[: more - rechecks], values[: more - rechecks]
            self._credit = max(0.0, min(self._credit + RECHECK_SHARE * due.size, 10.0) - rechecks)
            if rechecks:
                order = np.argsort(self._pages.recheck[late], kind="stable")
                self._put(frontier, late[order][:rechecks].astype(np.int32), np.full(rechecks, np.inf))
            self._put(frontier, due, values)
            self._reorder(frontier, now)
        batch = frontier.take(max(count, 0))
        self._is_stuck = not batch  # the hosts of the best pages do not respond
        if batch.pages:  # if they are retried, they come first
            leased = np.array(batch.pages, np.int32)
            self._room(int(leased.max())).first[leased] = True
            frontier.update(Reorder(leased, np.full(leased.size, np.inf)))
        return batch

    def _reorder(self, frontier: Frontier, now: float) -> None:
        """Give the pages in the frontier their present values, if a plan has changed these."""
        if not self._reorders:
            return
        self._reorders = False
        pages = np.flatnonzero(self._pages.released & ~self._pages.first).astype(np.int32)
        if pages.size:
            frontier.update(Reorder(pages, self.schedule.values(now, pages)))

    def has_more(self, now: float) -> bool:
        """Return whether pages are due that were not released."""
        return self.schedule.count_due(now) > self._waiting

    def next_at(self, now: float) -> float:
        """Return when the next page becomes due or the plan is updated, after `now`."""
        ahead = [self.schedule.next_due(), float(self._pages.recheck.min(initial=np.inf)), self._next_plan]
        return min((at for at in ahead if at > now), default=now + REPLAN_MOST)

    @property
    def waiting(self) -> int:
        """Number of due pages that wait in the frontier or are being requested."""
        return self._waiting

    def failed(self) -> int:
        """Return the number of pages that are gone or blocked."""
        return int(np.count_nonzero(self._pages.recheck < np.inf))

    def _put(self, frontier: Frontier, pages: IdArray, priorities: FloatArray) -> None:
        from surveyor.kernels import mass

        status = self._ledger.state[pages] & mass.STATUS
        valid = (status != mass.UNKNOWN) & (status != mass.REDIRECTED)
        for page in pages[~valid].tolist():  # out of scope since it was changed
            self.schedule.drop(page)
            self._pages.recheck[page] = np.inf
        is_new = valid & ~self._pages.released[pages]
        new = pages[is_new]
        self._pages.released[new], self._pages.first[new] = True, np.isposinf(priorities[is_new])
        self._waiting += int(new.size)
        frontier.update(Reorder(new, priorities[is_new]))

    def _room(self, page: int) -> Pages:
        if page >= self._pages.known.size:
            old, new = self._pages, _no_pages(max(page + 1, 2 * self._pages.known.size))
            for name in Pages.__slots__:
                getattr(new, name)[: old.known.size] = getattr(old, name)
            self._pages = new
        return self._pages


def _no_pages(size: int) -> Pages:
    return Pages(
        np.zeros(size, np.uint64),
        np.zeros(size, np.uint64),
        np.zeros(size, np.uint16),
        np.zeros(size, np.uint8),
        np.full(size, np.inf),
        *(np.zeros(size, np.bool_) for _ in range(4)),
    )


def _digest(content: bytes) -> int:
    """Return the last eight bytes of a hash as a number above 0."""
    return int.from_bytes(content[-8:], "little") or 1
