"""Waits of a crawl: a forecast of its duration, and pending retries when nothing can be fetched now.

**Forecast.** Each host gets one request per crawl delay, so the host with the most pages takes longest, and the number
of hosts limits the pages per second. Response times can only increase the duration; hosts discovered later can reduce
it.

**Pending retries.** Retries of a failed page have increasing delays, and a host may ask for a wait or be in backoff
because it only fails. This costs nothing while other pages can be fetched. If there are none, and the next retry or
host is more than `SOON` seconds away, the crawl ends without them if at most `SHARE` of all mass, or at most `FEW`
pages, are left. (The limit in pages is for small sites, where each page holds much of the mass.) Those pages become
*blocked*, with the last failure as the reason; `--again` retries them. The crawl always waits with `patient`, before
the first page was fetched, for a seed with more than `SEED_SHARE` of the mass, for a host that is only paced by its
crawl delay, and while the network is down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surveyor.arrays import IntArray
from surveyor.fetch.http import TRIES
from surveyor.fetch.politeness.policy import format_seconds
from surveyor.outcome import FetchResults, Outcome

if TYPE_CHECKING:
    from surveyor.crawler.queues import HostQueues
    from surveyor.crawler.replay import Derived
    from surveyor.crawler.sources.live import LiveSource
    from surveyor.fetch.politeness.hosts import Hosts

SOON = 10.0  # seconds: shorter waits are never abandoned
SHARE = 0.05  # of all mass
FEW = 3  # pages
SEED_SHARE = 0.25  # of all mass, if seeds are among the queued pages
MIN_REPORTED_WAIT = 2.0  # seconds


class Waiting:
    """Waits of a crawl: describes them, and decides when to abandon them."""

    def __init__(self, state: Derived, hosts: Hosts, queues: HostQueues, source: LiveSource, *, patient: bool) -> None:
        self._state, self._hosts, self._queues, self._source = state, hosts, queues, source
        self._patient = patient

    def sentence(self) -> str:
        """Describe the next wait, such as "retry 3 of 3 for /boom in 160 s: http 500"; "" if requests are running."""
        if self._source.in_progress:
            return ""
        now = self._hosts.clock()
        hosts = [(self._hosts.backoff(number), self._hosts[number].name) for number in self._queues.asking()]
        ahead = [(found[0], name, *found[1:]) for found, name in hosts if found]
        if (first := self._queues.first_held) is not None:
            ahead.append((first[0], self._short(self._state.urls[first[1]]), *self._trouble(first[1])))
        until, name, tries, why = min(ahead, default=(0.0, "", 0, ""))
        seconds = until - now
        if seconds < MIN_REPORTED_WAIT:
            return ""
        spelled = f"{seconds:.0f} s" if seconds < 600 else format_seconds(seconds)
        return f"{_retry(tries) or 'waiting'} for {name} in {spelled}: {why}"

    def abandon(self, again_at: float) -> FetchResults | None:
        """Return blocked outcomes for the pages to abandon; None to wait. Call it only while no request is running."""
        now = self._hosts.clock()
        if self._patient or not SOON < again_at - now < math.inf or self._hosts.is_silent:
            return None
        crawl = self._state.crawl
        mass, pages = crawl.ledger.coverage().waiting, len(crawl.frontier)
        if (
            not self._state.tally.pages
            or crawl.frontier.rereads
            or (mass > SHARE and (pages > FEW or (mass > SEED_SHARE and self._seed_waits())))
        ):
            return None
        backoffs = {number: self._hosts.backoff(number) for number in self._queues.asking()}
        if any(found is None or found[0] - now <= SOON for found in backoffs.values()):
            return None  # a host that is only paced by its crawl delay
        held = self._queues.release()
        reasons = {page: _not_awaited(*self._trouble(page)) for page in held}
        for page in held:
            self._source.drop_retry(page)
        for page in set(crawl.frontier.queued().pages.tolist()) - set(held):
            found = backoffs.get(self._queues.host(page))
            reasons[page] = _not_awaited(*found[1:]) if found else "not awaited"
        if not reasons:
            return None
        return FetchResults(outcomes=[Outcome(page, "blocked", reason=reasons[page]) for page in sorted(reasons)])

    def _seed_waits(self) -> bool:
        crawl = self._state.crawl
        return not set(crawl.ledger.seeds.tolist()).isdisjoint(crawl.frontier.queued().pages.tolist())

    def _trouble(self, page: int) -> tuple[int, str]:
        """Return the number of tries and the last failure of a held page, or of the robots.txt of its origin."""
        tries, why = self._source.last_failure(page)
        found = None if why else self._hosts.backoff(self._queues.host(page))
        return (tries, why) if found is None else found[1:]

    def _short(self, url: str) -> str:
        rest = url.partition("://")[2]
        return rest[rest.find("/") :] if len(self._hosts) == 1 else rest


def _retry(tries: int) -> str:
    return f"retry {min(tries, TRIES - 1)} of {TRIES - 1}" if tries else ""


def _not_awaited(tries: int, why: str) -> str:
    return f"{why} ({_retry(tries)} not awaited)" if tries else f"{why} (not awaited)"


@dataclass(frozen=True, slots=True)
class Forecast:
    """Estimated duration of a crawl."""

    pages: int  # queued
    hosts: int  # with queued pages
    rate: float  # pages per second that these hosts allow; inf without a delay
    seconds: float  # lower bound until all of them are read; or time for the pages of the goal at this rate
    is_goal: bool = False


def forecast(waiting: IntArray | Sequence[int], delays: Sequence[float], most: float = math.inf) -> Forecast:
    """Return how long it takes to read all queued pages (one count per host), or `most` pages at their rate.

    >>> forecast([100, 50], [1.0, 1.0])
    Forecast(pages=150, hosts=2, rate=2.0, seconds=100.0, is_goal=False)
    >>> forecast([100, 50], [1.0, 1.0], most=60).seconds, forecast([1], [2.0], most=500).seconds
    (30.0, 1000.0)
    """
    known = [(int(pages), delay) for pages, delay in zip(waiting, delays, strict=True) if pages > 0]
    total = sum(pages for pages, _ in known)
    rate = math.fsum(1 / delay if delay > 0 else math.inf for _, delay in known)
    longest = max((pages * delay for pages, delay in known), default=0.0)
    seconds = longest if most == math.inf else most / rate if rate else 0.0
    return Forecast(total, len(known), rate, seconds, most < math.inf)
