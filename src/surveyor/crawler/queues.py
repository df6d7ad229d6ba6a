"""Priority queues of pages: a single queue, or one per host of which only some may be requested now.

Both order pages by priority (highest first, ties by the smaller id). `SingleQueue` is for simulations, `HostQueues` for
a live crawl: it returns the best page among the hosts that may be requested now, preceded by host tasks where the
address or the robots.txt of a host is needed first. Pages that robots.txt forbids are refused when they come up. A page
whose fetch failed can be held back until its retry is due.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, ByteArray, FloatArray, IdArray, IntArray
from surveyor.outcome import NO_LINKS, Outcome
from surveyor.stopping import NO_LIMIT
from surveyor.web.urls import host as host_of
from surveyor.web.urls import origin as origin_of

if TYPE_CHECKING:
    from surveyor.fetch.politeness.hosts import Hosts
    from surveyor.kernels.priority_queues import Queue


ABSENT = -2  # in both kinds of queue: the page is not in it
REFUSALS = 1_000  # per batch: a host that forbids a million pages must not delay all others


class HostTask(NamedTuple):
    """Task to complete for a host before its pages can be requested: look up its address or fetch its robots.txt."""

    kind: Literal["address", "robots"]
    host: int
    origin: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Pages to fetch now, best first, host tasks to run, and pages that may not be fetched."""

    pages: list[int] = field(default_factory=list)
    refused: list[Outcome] = field(default_factory=list)
    tasks: list[HostTask] = field(default_factory=list)
    room: int | None = NO_LIMIT  # requests that the source may start on its own; None if it has started them already

    def __bool__(self) -> bool:
        return bool(self.pages or self.refused or self.tasks)


class SingleQueue:
    """All pages in one queue."""

    def __init__(self, pages: int) -> None:
        from surveyor.kernels.priority_queues import new_queue

        self._queue = new_queue(pages)

    @property
    def size(self) -> int:
        """Number of pages there is room for."""
        return self._queue.priority.size

    def __len__(self) -> int:
        return int(self._queue.counts[2])

    def reorder(self, state: ByteArray, pages: IdArray, priorities: FloatArray, also: AnyInt) -> int:
        """Set priorities; return the index of an invalid entry, or -1."""
        from surveyor.kernels.priority_queues import update_priorities

        return update_priorities(self._queue, state, pages, priorities, also)

    def take(self, batch: Batch, count: int, refuse: Callable[[int], str], least: float = -math.inf) -> None:
        """Lease the best pages of priority `least` or more, up to `count` in the batch, except those refused."""
        from surveyor.kernels.priority_queues import best_page, lease_best

        while len(batch.pages) < count and (page := best_page(self._queue)) >= 0:
            if self._queue.priority[page] < least:
                break
            lease_best(self._queue)
            if reason := refuse(page):
                batch.refused.append(Outcome(page, "blocked", reason=reason))
            else:
                batch.pages.append(page)

    def drop(self, page: int) -> None:
        """Remove a page."""
        from surveyor.kernels.priority_queues import remove

        remove(self._queue, page)

    @property
    def best_available(self) -> float:
        """Priority of the best page that may be requested now; minus infinity if there is none."""
        from surveyor.kernels.priority_queues import best_page

        page = best_page(self._queue)
        return float(self._queue.priority[page]) if page >= 0 else -math.inf

    again_at = math.inf  # nothing is ever held back
    held_pages: frozenset[int] = frozenset()
    failing_pages: IdArray = NO_LINKS

    def failing_of(self, pages: IdArray) -> frozenset[int]:  # noqa: ARG002
        """Return no page."""
        return frozenset()

    def queued(self) -> tuple[IdArray, FloatArray]:
        """Return the queued and leased pages and their priorities."""
        pages = np.flatnonzero(self._queue.before != ABSENT).astype(np.int32)
        return pages, self._queue.priority[pages]

    def by_host(self) -> IdArray:
        """Return an empty array: there is a single queue for all hosts."""
        return NO_LINKS

    def settle(self, pages: IdArray) -> None:
        """Do nothing: there is a single queue for all hosts."""

    def hold(self, page: int, until: float) -> None:  # noqa: ARG002
        """Queue a page again immediately: there is no clock."""
        from surveyor.kernels.priority_queues import set_priority

        priority = float(self._queue.priority[page])
        self.drop(page)
        set_priority(self._queue, page, priority)

    def grow(self, pages: int) -> None:
        """Grow to room for `pages` pages."""
        self._queue = grown(self._queue, pages)


class HostQueues:
    """A queue for each host."""

    def __init__(
        self,
        pages: int,
        hosts: Hosts,
        url_of: Callable[[int], str],
        host_ids: Callable[[IdArray], IdArray] | None = None,
    ) -> None:
        """Make room for pages; `url_of` returns their URLs, and `host_ids` is a fast way to group them by host."""
        from surveyor.kernels.priority_queues import new_host_heaps, new_queue

        self.hosts, self._url_of, self._host_ids = hosts, url_of, host_ids
        self._numbers: dict[int, int] = {}  # host number by host id
        self._forest, self._awake = new_host_heaps(pages, 64), new_queue(64)
        self._held: list[tuple[float, int]] = []  # retry times and pages

    @property
    def size(self) -> int:
        """Number of pages there is room for."""
        return self._forest.priority.size

    def __len__(self) -> int:
        return int(np.count_nonzero(self._forest.before >= -1)) + len(self._held)

    def reorder(self, state: ByteArray, pages: IdArray, priorities: FloatArray, also: AnyInt) -> int:
        """Set priorities; return the index of an invalid entry, or -1."""
        from surveyor.kernels import priority_queues
        from surveyor.kernels.mass import STATUS, UNKNOWN

        while (
            wrong := priority_queues.update_host_priorities(self._forest, self._awake, state, pages, priorities, also)
        ) < -1:
            inside = pages[(pages >= 0) & (pages < state.size)]
            self._settle(inside[state[inside] & STATUS != UNKNOWN])
        return wrong

    def take(self, batch: Batch, count: int, refuse: Callable[[int], str], least: float = -math.inf) -> None:
        """Lease the best pages and host tasks of hosts that may be requested now, up to `count` in the batch.

        Pages of a priority below `least`, and tasks of hosts that have only such pages, are not leased.
        """
        from surveyor.kernels import priority_queues
        from surveyor.kernels.priority_queues import best_page

        now = self.hosts.clock()
        while self._held and self._held[0][0] <= now:
            priority_queues.return_page(self._forest, self._awake, np.int64(heapq.heappop(self._held)[1]))
        if self.hosts.paused_until > now:
            return
        if woken := set(self.hosts.wake()):
            self._make_room(max(woken))
            priority_queues.mark_all_ready(self._forest, self._awake, np.array([*woken], np.int32))
        host = best_page(self._awake)
        while host >= 0 and len(batch.pages) + len(batch.tasks) < count and len(batch.refused) < REFUSALS:
            if self._forest.priority[self._forest.root[host]] < least:
                break
            leases, again = self._ask(host, batch, refuse)
            host = priority_queues.next_host(self._forest, self._awake, host, leases, not again)

    def _ask(self, host: int, batch: Batch, refuse: Callable[[int], str]) -> tuple[bool, bool]:
        """Choose the next request to a host; return whether it is its best page, and whether more may follow now."""
        page = int(self._forest.root[host])
        url = self._url_of(page)
        origin = origin_of(url)
        if (until := self.hosts.origin_wait(host, origin)) is not None:
            self.hold(page, until)
            return True, True
        step = self.hosts.step(host, origin)
        if step is None:
            return False, False
        if step != "page":
            if reason := refuse(page):  # no request is made for a page that would be refused
                batch.refused.append(Outcome(page, "blocked", reason=reason))
                return True, True
            batch.tasks.append(HostTask(step, host, origin))
            return False, self.hosts.lease(host, step)
        if reason := self.hosts.refusal(host, origin, url) or refuse(page):
            batch.refused.append(Outcome(page, "blocked", reason=reason))
            return True, True
        batch.pages.append(page)
        return True, self.hosts.lease(host, step)

    @property
    def best_available(self) -> float:
        """Priority of the best page of the hosts that may be requested now, as of the last `take`."""
        from surveyor.kernels.priority_queues import best_page

        host = best_page(self._awake)
        return float(self._forest.priority[self._forest.root[host]]) if host >= 0 else -math.inf

    @property
    def again_at(self) -> float:
        """Earliest time at which a host or a held page may be requested again; inf if there is none."""
        if not self._held and (self._forest.root < 0).all():
            return math.inf  # hosts may wake, but no pages are queued
        soonest = min(self.hosts.next_wake, self._held[0][0] if self._held else math.inf)
        return max(soonest, self.hosts.paused_until) if soonest < math.inf else soonest

    def queued(self) -> tuple[IdArray, FloatArray]:
        """Return the queued and leased pages and their priorities."""
        pages = np.flatnonzero(self._forest.before != ABSENT).astype(np.int32)
        return pages, self._forest.priority[pages]

    def by_host(self) -> IdArray:
        """Return one page of each host, by host number, which breaks ties between hosts."""
        numbers, pages = np.unique(self._forest.host, return_index=True)
        return pages[numbers >= 0].astype(np.int32)

    def waiting(self) -> IntArray:
        """Return the number of queued pages of each host."""
        hosts = self._forest.host[self._forest.before != ABSENT]
        return np.bincount(hosts[hosts >= 0], minlength=len(self.hosts))

    def waiting_mass(self, masses: FloatArray) -> FloatArray:
        """Return the mass of the queued pages of each host."""
        queued = np.flatnonzero(self._forest.before[: masses.size] != ABSENT)
        queued = queued[self._forest.host[queued] >= 0]
        amount = masses[queued].astype(np.float64)
        return np.bincount(self._forest.host[queued], amount, minlength=len(self.hosts)).astype(np.float64)

    def settle(self, pages: IdArray) -> None:
        """Number the hosts of pages, in this order."""
        for page in pages.tolist():
            self.host(page)

    def hold(self, page: int, until: float) -> None:
        """Hold a leased page back until then."""
        heapq.heappush(self._held, (until, page))

    @property
    def held_pages(self) -> set[int]:
        """Pages that are held back."""
        return {page for _, page in self._held}

    @property
    def failing_pages(self) -> IdArray:
        """Pages that are held back, and queued pages of hosts in backoff."""
        failing = [host for host in self.asking() if self.hosts.backoff(host) is not None]
        queued = np.flatnonzero(self._forest.before >= -1)
        of_hosts = queued[np.isin(self._forest.host[queued], failing)]
        return np.concatenate([of_hosts, np.fromiter(self.held_pages, np.int64)]).astype(np.int32)

    def failing_of(self, pages: IdArray) -> set[int]:
        """Return those of some pages that are held back, or whose host is in backoff."""
        held = self.held_pages
        return {page for page in pages.tolist() if page in held or self.hosts.backoff(self.host(page)) is not None}

    @property
    def first_held(self) -> tuple[float, int] | None:
        """Time and page of the next retry; None if no page is held back."""
        return self._held[0] if self._held else None

    def release(self) -> list[int]:
        """Stop holding pages back, and return them; they are still leased."""
        held, self._held = [page for _, page in self._held], []
        return held

    def asking(self) -> list[int]:
        """Return the hosts with queued pages."""
        return np.flatnonzero(self._forest.root >= 0).tolist()

    def keep(self, page: int, until: float) -> bool:
        """Hold a queued page back, as before a restart; return False if it is not queued."""
        from surveyor.kernels import priority_queues

        if self._forest.before[page] in (ABSENT, priority_queues.HEAP_LEASED):
            return False
        priority_queues.remove_page(self._forest, self._awake, np.int64(page))
        self._forest.before[page] = priority_queues.HEAP_LEASED
        self.hold(page, until)
        return True

    def host(self, page: int) -> int:
        """Return the host of a page."""
        if self._forest.host[page] < 0:
            self._settle(np.array([page], np.int32))
        return int(self._forest.host[page])

    def drop(self, page: int) -> None:
        """Remove a page."""
        from surveyor.kernels import priority_queues

        priority_queues.remove_page(self._forest, self._awake, np.int64(page))

    def grow(self, pages: int) -> None:
        """Grow to room for `pages` pages."""
        from surveyor.kernels.priority_queues import new_host_heaps

        old = self._forest
        new = new_host_heaps(pages, 0)
        for name in ("priority", "child", "sibling", "before", "host"):
            getattr(new, name)[: old.priority.size] = getattr(old, name)
        self._forest = new._replace(root=old.root, ready=old.ready)

    def _settle(self, pages: IdArray) -> None:
        """Assign host numbers to pages that have none."""
        new = pages[self._forest.host[pages] < 0]
        if self._host_ids is None:
            numbers = [self.hosts.number(host_of(self._url_of(page))) for page in new.tolist()]
        else:
            numbers = []
            for page, known in zip(new.tolist(), self._host_ids(new).tolist(), strict=True):
                if (host := self._numbers.get(known)) is None:
                    host = self._numbers[known] = self.hosts.number(host_of(self._url_of(page)))
                numbers.append(host)
        self._make_room(max(numbers, default=0))
        self._forest.host[new] = numbers

    def _make_room(self, host: int) -> None:
        from surveyor.kernels.priority_queues import new_host_heaps

        if host >= self._forest.root.size:
            more = new_host_heaps(0, 2 * host)
            more.root[: self._forest.root.size] = self._forest.root
            more.ready[: self._forest.ready.size] = self._forest.ready
            self._forest = self._forest._replace(root=more.root, ready=more.ready)
            self._awake = grown(self._awake, more.root.size)


def grown(old: Queue, pages: int) -> Queue:
    """Return a copy of a queue with room for `pages` pages."""
    from surveyor.kernels.priority_queues import new_queue

    new = new_queue(pages)
    for name in ("priority", "after", "before", "heap"):
        getattr(new, name)[: old.priority.size] = getattr(old, name)
    return new._replace(heads=old.heads, used=old.used, counts=old.counts)
