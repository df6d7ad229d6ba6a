"""Fetch pages over HTTP: start the requests that the frontier leased, and return outcomes, retries and events.

Pacing happens elsewhere: every request that is started was permitted by `Hosts`, which gets each response time and
failure in return. A transient failure becomes a retry with exponential backoff; failures while the local network is
down do not count. `responses.py` maps responses to outcomes.

A robots.txt may redirect to another host: each redirect is one more request, started when that host may be requested.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from surveyor.crawler.queues import Batch, HostTask
from surveyor.crawler.sources.canonicals import Canonicals
from surveyor.fetch.http import FIRST_BACKOFF, TEMPORARY, TRANSIENT, Client, Fetched, FetchRequest, retry_delay
from surveyor.fetch.parser import Parser
from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.fetch.responses import MOVED_AWAY, PageResponse, Reader, interpreted, joined, judge, next_hop, rules_in
from surveyor.outcome import Event, FetchResults, Outcome, Retry, RobotsFile, Visit
from surveyor.web.boundary import Failure, failed, guarded
from surveyor.web.caching import usable_validators
from surveyor.web.html import Page, read_page
from surveyor.web.urls import host as host_of
from surveyor.web.urls import origin as origin_of

if TYPE_CHECKING:
    from surveyor.crawler.topics.focus import Judge
    from surveyor.fetch.addresses import Resolver

NO_RESPONSE = frozenset({"dns", "timeout-connect", "offline"})  # a refused connection is a response
MANY_LINKS = 5_000  # of new outcomes: interning them takes some milliseconds
LONGEST_WAIT = 1.0  # seconds between two checks of the stopping rule, which may be in minutes
LONGEST_BATCH = 0.02  # seconds of parsing after which other tasks run
FORBIDDEN_WEIGHT = (
    0.2  # of a failure: one forbidden page is common, fifty in a row mean that the host refuses the crawl
)
PATIENCE = 5.0  # seconds for requests in progress to finish when a run ends
Wait = Callable[[asyncio.Event, float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Connection:
    """How a run reaches the web: by default the real network and clock, parts of which a caller may replace."""

    client: Client | None = None  # HttpClient by default
    resolver: Resolver | None = None  # of that client
    hosts: Hosts | None = None  # with their clock
    wait: Wait | None = None  # waits for an event until a time of that clock
    patience: float = PATIENCE


REAL = Connection()


@dataclass(frozen=True, slots=True)
class PageLookup:
    """What a crawl knows of pages, as functions of the page id."""

    place_of: Callable[[int], tuple[str, int]]  # URL and host number
    last_visit: Callable[[int], Visit | None] = lambda _: None
    is_readable: Callable[[int], bool | None] = lambda _: None  # None: not fetched yet
    is_conditional: Callable[[int, Visit], bool] = lambda _page, _visit: True  # False: send no validators (an audit)


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Options of a live source."""

    backoff: float = FIRST_BACKOFF  # seconds before the first retry
    fetches_canonicals: bool = True  # fetch canonical pages before the pages that name them are reported
    keeps_pages: bool = False  # a page that was fetched and redirects temporarily is blocked, and no alias
    judge: Judge | None = None  # decides from its content whether a page is on the topic of a focused crawl


class Hop(NamedTuple):
    """A request for robots.txt, possibly redirected to another host."""

    task: HostTask
    host: int  # to request it from
    url: str
    before: tuple[str, ...]  # URLs that led there


class LiveSource:
    """Source of pages over HTTP."""

    def __init__(
        self,
        client: Client,
        reader: Reader,
        hosts: Hosts,
        lookup: PageLookup,
        *,
        options: FetchOptions | None = None,
        wait: Wait | None = None,
        parser: Parser | None = None,
    ) -> None:
        """Fetch with a client. Pages that may take long to parse go to `parser`; without one they are parsed here."""
        self._client, self._reader, self._hosts, self._lookup = client, reader, hosts, lookup
        options = options or FetchOptions()
        self._keeps_pages = options.keeps_pages
        self._backoff, self._wait, self._parser = options.backoff, wait or self._wait_for, parser
        self._judge = options.judge
        self._canonicals = Canonicals(reader, lookup.is_readable, fetches=options.fetches_canonicals)
        self._fetching: set[str] = set()  # URLs of pages in progress, until they are reported or held
        self._leased: set[str] = set()  # those that the frontier leased
        self._tasks: set[asyncio.Task[None]] = set()
        self._pages: deque[PageResponse] = deque()  # fetched and not parsed yet
        self._answers: list[PageResponse] = []
        self._results = FetchResults()
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._hops: list[Hop] = []
        self._tries: dict[int, int] = {}
        self._why: dict[int, str] = {}  # why pages that will be retried failed
        self._missing: set[int] = set()  # pages that responded once that they are gone
        self._extra = 0  # requests without a visit: robots.txt, and those before a retry

    @property
    def in_progress(self) -> int:
        """Number of requests that were started and not reported yet, or are pending."""
        return len(self._tasks) + len(self._pages) + len(self._answers) + self.pending + self.held

    @property
    def pending(self) -> int:
        """Number of requests that wait for a host and use no slot: redirected robots.txt files and canonical pages."""
        return len(self._hops) + len(self._canonicals.wanted)

    @property
    def held(self) -> int:
        """Number of fetched pages that are reported once it is known whether their canonical pages can be fetched."""
        return len(self._canonicals)

    def start(self, batch: Batch) -> None:
        """Start the requests of a batch."""
        for task in batch.tasks:
            self._start_task(task)
        for page in batch.pages:
            url, host = self._lookup.place_of(page)
            self._leased.add(url)
            if url in self._fetching or self._canonicals.lease(url):  # another page names it as canonical
                self._hosts.end_request(host, asked=False)
            else:
                self._fetching.add(url)
                self._start(self._fetch(page, url, host))
        if batch.room is None:
            return
        self._follow_robots(batch.room)
        room = batch.room - len(self._hops)
        if self.held and room <= 0 and not self._tasks:  # nothing ends that would make room
            self._answers += self._canonicals.released(self._hosts.clock(), everything=True)
            self._ready.set()
        self._fetch_canonicals(room)

    def wake(self) -> None:
        """End a wait for results: there may be something else to do."""
        self._ready.set()

    async def results(self, until: float) -> FetchResults:
        """Return finished results; wait for one, but not beyond a time."""
        if not self._ready.is_set():
            soon = self._hosts.clock() + LONGEST_WAIT  # a held page may be due
            await self._wait(self._ready, min(until, soon) if self.held else until)
        self._ready.clear()
        if self._failure is not None:
            raise self._failure
        await self._parse_pages()
        self._answers += self._canonicals.released(self._hosts.clock())
        answers, self._answers = self._answers, []
        results, final = self._results, []
        for answer in answers:
            self._extra += answer.fetched.requests  # minus one if it ends as a visit
            self._leased.discard(answer.fetched.url)
            if not answer.leased and answer.verdict.kind not in ("fetched", "redirected"):
                guarded(answer.fetched.url, self._record_canonical_failure, answer, results)
                self._canonicals.fail(answer.fetched.url)
                continue
            retry = guarded(answer.fetched.url, self._retry, answer, results)
            if isinstance(retry, Retry):
                results.retries.append(retry)
                continue
            self.drop_retry(answer.page)
            self._extra -= 1
            final.append(answer)
        if self._extra:
            results.events.append(Event("requests", self._hosts.clock(), {"count": self._extra}))
            self._extra = 0
        visits = self._reader.visits(final)
        results.outcomes.extend(visits)
        if self._judge is not None and (event := self._judged(final, visits, self._judge)) is not None:
            results.events.append(event)
        if sum(outcome.links.size for outcome in results.outcomes) > MANY_LINKS:
            await asyncio.sleep(0)  # committing them takes as long again: other tasks run in between
        self._results = FetchResults()
        return results

    def _judged(self, answers: Sequence[PageResponse], visits: Sequence[Outcome], judge: Judge) -> Event | None:
        """Return which of the pages just fetched are on topic; None if no content was received."""
        on: list[int] = []
        off: list[int] = []
        for answer, visit in zip(answers, visits, strict=True):
            if visit.kind == "fetched" and answer.content is not None:
                found = guarded(answer.fetched.url, judge, answer.fetched.url, answer.content)
                if not isinstance(found, Failure):
                    (on if found else off).append(int(visit.page))
        return Event("topic", self._hosts.clock(), {"on": on, "off": off}) if on or off else None

    def _record_canonical_failure(self, answer: PageResponse, results: FetchResults) -> None:
        """Apply the failure of a canonical page to its host; the page itself is not retried."""
        if self._held_until(answer.host, answer.fetched) is None:
            self._record_response(answer, results)
            if answer.fetched.status == 429 and not answer.fetched.retry_after:
                until = self._hosts.clock() + self._scaled(FIRST_BACKOFF)
                self._back_off(answer.host, until, answer.verdict.reason, results)

    def _retry(self, answer: PageResponse, results: FetchResults) -> Retry | None:
        """Apply a response to its host; return when to retry the page, None if it is an outcome."""
        again = answer.verdict.again
        if again and (until := self._held_until(answer.host, answer.fetched)) is not None:
            return self._retry_after_outage(answer, until, results)
        self._record_response(answer, results)
        return self._schedule_retry(answer, results) if again else None

    async def results_within(self, seconds: float) -> FetchResults:
        """Return finished results after at most this many seconds of real time; start no pending request."""
        self._hops.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        self._ready.set()
        results = await self.results(0.0)
        if dropped := self._canonicals.clear():
            results.events.append(Event("requests", self._hosts.clock(), {"count": dropped}))
        return results

    async def close(self) -> None:
        """Cancel the requests in progress."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def restore_retry(self, page: int, tries: int, *, missing: bool = False, why: str = "") -> None:
        """Restore the number of attempts of a page, the last failure, and whether it responded that it is gone."""
        self._tries[page], self._why[page] = tries, why
        if missing:
            self._missing.add(page)

    def last_failure(self, page: int) -> tuple[int, str]:
        """Return the attempts of a page that will be retried, and its last failure."""
        return self._tries.get(page, 0), self._why.get(page, "")

    def drop_retry(self, page: int) -> None:
        """Forget the attempts of a page."""
        self._tries.pop(page, None)
        self._why.pop(page, None)
        self._missing.discard(page)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._ready.set()
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()

    async def _wait_for(self, event: asyncio.Event, until: float) -> None:
        left = until - self._hosts.clock()
        with suppress(TimeoutError):  # not wait_for, which may swallow a cancellation
            async with asyncio.timeout(min(max(0.0, left), LONGEST_WAIT)):
                await event.wait()

    async def _fetch(self, page: int | None, url: str, host: int) -> None:
        """Fetch a page; a canonical page without an id gets one if it has an outcome."""
        known = None if page is None else self._lookup.last_visit(page)
        request = FetchRequest(url)
        if page is not None and known is not None and self._lookup.is_conditional(page, known):
            request = FetchRequest(url, *usable_validators(known.etag, known.last_modified, known.fetched_at))
        at = self._hosts.clock()
        try:
            fetched = await self._request(request)
        except BaseException:
            self._hosts.end_request(host)
            raise
        if fetched.status is not None:
            self._hosts.reached(host, origin_of(url))
        verdict = judge(fetched)
        if self._keeps_pages and fetched.status in TEMPORARY and page is not None and self._lookup.is_readable(page):
            verdict = MOVED_AWAY
        if page is None:
            page = self._reader.number(url) if verdict.kind in ("fetched", "redirected") else -1
        self._pages.append(PageResponse(page, host, fetched, at, verdict, known))

    def _fetch_canonicals(self, room: int) -> None:
        """Fetch canonical pages whose hosts may be requested now, after the robots.txt of their origins."""
        hosts = self._hosts
        for url in list(self._canonicals.wanted):
            if room <= 0:
                return
            if url in self._fetching or self._canonicals.is_settled(url):
                continue
            host, origin = hosts.number(host_of(url)), origin_of(url)
            step = hosts.step(host, origin)
            if step is None and not hosts.tries(host, origin):
                continue
            if step is None or (step == "page" and hosts.refusal(host, origin, url)):
                self._canonicals.fail(url)
                self._ready.set()
                continue
            room -= 1
            hosts.lease(host, step)
            if step == "page":
                del self._canonicals.wanted[url]
                self._fetching.add(url)
                self._start(self._fetch(self._reader.find(url), url, host))
            else:
                self._start_task(HostTask(step, host, origin))

    async def _parse_pages(self) -> None:
        """Parse fetched pages in a batch, which is faster than between requests; their hosts stay leased."""
        started = time.perf_counter()
        while self._pages:
            answer = self._pages.popleft()
            answer.parsed = self._reader.parse(answer)
            needs_text = not isinstance(answer.parsed, Failure) and self._reader.needs_text(answer)
            needs_content = not isinstance(answer.parsed, Failure) and self._judge is not None and answer.is_page
            if self._parser is not None and (needs_text or needs_content or (answer.parsed is None and answer.is_page)):
                self._start(self._parse_in_worker(self._parser, answer, needs_text=needs_text))
                continue
            if needs_text:
                self._reader.hash_text(answer)
            if needs_content:
                answer.content = _read_content(answer.fetched)
            self._release(answer)
            if time.perf_counter() - started > LONGEST_BATCH:
                await asyncio.sleep(0)
                started = time.perf_counter()

    async def _parse_in_worker(self, parser: Parser, answer: PageResponse, *, needs_text: bool) -> None:
        fetched = answer.fetched
        try:
            if answer.parsed is None:
                answer.parsed = await parser.page(fetched.url, joined(fetched.headers), fetched.body)
            if needs_text and not isinstance(answer.parsed, Failure):
                found = await parser.text_hash(fetched.url, joined(fetched.headers), fetched.body)
                answer.text_hash = b"" if isinstance(found, Failure) else found  # the page itself was parsed
            if self._judge is not None and answer.is_page and not isinstance(answer.parsed, Failure):
                answer.content = await parser.content(fetched.url, joined(fetched.headers), fetched.body)
        except BaseException:
            self._hosts.end_request(answer.host)
            raise
        self._release(answer)

    def _release(self, answer: PageResponse) -> None:
        """Release the host of a parsed page, and report the page unless its canonical page is fetched first."""
        url = answer.fetched.url
        self._hosts.end_request(answer.host)
        self._fetching.discard(url)
        answer.leased = url in self._leased
        self._answers += self._canonicals.take(answer, self._hosts.clock())

    async def _request(self, request: FetchRequest) -> Fetched:
        """Fetch; an exception of the client becomes a response with an error."""
        try:
            fetched = await self._client.fetch(request)
            return fetched if fetched.url == request.url else replace(fetched, url=request.url)
        except Exception as error:
            return Fetched(request.url, error="protocol", detail=failed(request.url, error).reason)

    def _start_task(self, task: HostTask) -> None:
        hop = Hop(task, task.host, f"{task.origin}/robots.txt", ())
        self._start(self._look_up(task.host) if task.kind == "address" else self._fetch_robots(hop))

    async def _look_up(self, host: int) -> None:
        """Look up the address of a host, if the client can."""
        find, address = getattr(self._client, "address", None), ""
        try:
            if find is not None:
                address = await find(self._hosts[host].name)
        except Exception as error:  # the fetch that follows reports it
            failed(self._hosts[host].name, error)
        finally:
            self._hosts.set_address(host, address)
            self._hosts.end_request(host, asked=False)

    def _follow_robots(self, room: int) -> None:
        """Request each redirected robots.txt whose host may be requested now."""
        hosts, hops, self._hops = self._hosts, self._hops, []
        for hop in hops:
            if hosts[hop.task.host].excluded:
                continue  # its rules are no longer needed
            if refused := hosts.exclusion(hop.host, origin_of(hop.url)):
                why = f"robots.txt of {hop.task.origin} is at {hosts[hop.host].name}: {refused}"
                self._record_robots(hop, Fetched(hop.url, error="forbidden-address", detail=why))
                self._ready.set()  # the host can be requested or excluded right now
                continue
            step = hosts.robots_step(hop.host, origin_of(hop.url)) if room > 0 else None
            room -= step == "robots"
            if step is not None:
                hosts.lease(hop.host, step)
                self._start(self._look_up(hop.host) if step == "address" else self._fetch_robots(hop))
            if step != "robots":
                self._hops.append(hop)

    async def _fetch_robots(self, hop: Hop) -> None:
        try:
            fetched = await self._request(FetchRequest(hop.url, types=("*/*",)))
            self._extra += fetched.requests
            self._interpret_robots(hop, interpreted(fetched))
        finally:
            self._hosts.end_request(hop.host)  # after its rules are known, so that their delay applies

    def _interpret_robots(self, hop: Hop, fetched: Fetched) -> None:
        """Record the rules in a response, or follow its redirect."""
        before = (*hop.before, hop.url)
        target, fetched = next_hop(fetched, before)
        if not target:
            self._record_robots(hop, fetched)
            return
        self._hosts.reached(hop.host, origin_of(hop.url))
        self._hosts.robots_redirected(hop.task.host, hop.task.origin)
        self._apply_retry_after(hop.host, fetched, self._results)
        self._hops.append(Hop(hop.task, self._hosts.number(host_of(target)), target, before))

    def _record_robots(self, hop: Hop, fetched: Fetched) -> None:
        """Record the rules of an origin, or schedule a retry."""
        hosts, now = self._hosts, self._hosts.clock()
        host, origin = hop.task.host, hop.task.origin
        status, robots = rules_in(fetched)
        if fetched.status is not None:
            hosts.reached(hop.host, origin_of(hop.url))
        if hop.before:  # it was redirected, and nothing else wakes the host
            hosts.wait(host, now)
        self._apply_retry_after(hop.host, fetched, self._results)
        trouble = ""
        if robots.state == "unreachable":
            trouble = fetched.detail if fetched.error else ""
            held = None if hop.before else self._held_until(hop.host, fetched)  # a redirecting host was reachable
            if held is not None:
                hosts.robots_failed(host, origin, held, counts=False)
                return
            tries = hosts.tries(host, origin) + 1
            backoff = _retry_delay(tries, fetched)
            if hosts[hop.host].excluded:
                backoff = None  # it was excluded for its Retry-After
            until = None if backoff is None else now + max(self._scaled(backoff), fetched.retry_after or 0.0)
            detail = {"origin": origin, "until": until, "tries": tries, "why": trouble, "status": fetched.status}
            self._results.events.append(Event("robots_retry", now, detail))
            if until is not None:
                unanswered = fetched.status is None and not hop.before
                trouble = trouble or f"http {fetched.status}"
                hosts.robots_failed(host, origin, until, error=trouble, unanswered=unanswered)
                return
        hosts.set_robots(host, origin, robots, now + DAY, error=trouble)
        self._results.robots.append(RobotsFile(origin, now, now + DAY, status or 0, fetched.body))

    def _record_response(self, answer: PageResponse, results: FetchResults) -> None:
        """Update the delay of a host from a response, and apply its Retry-After."""
        fetched, verdict = answer.fetched, answer.verdict
        self._apply_retry_after(answer.host, fetched, results)
        failed = fetched.error in TRANSIENT or (verdict.again and verdict.kind == "blocked")
        failure = 1.0 if failed else FORBIDDEN_WEIGHT if fetched.status in (401, 403) else 0.0
        until = self._hosts.record_response(answer.host, fetched.timings.first_byte, failure, verdict.reason)
        if until is not None:
            self._record_backoff(answer.host, until, verdict.reason, results, own=True)

    def _retry_after_outage(self, answer: PageResponse, until: float, results: FetchResults) -> Retry:
        """Retry a page after an outage of the local network."""
        why = self._why[answer.page] = answer.verdict.reason
        results.events.append(Event("offline", self._hosts.clock(), {"until": until, "why": why}))
        return Retry(answer.page, until)

    def _schedule_retry(self, answer: PageResponse, results: FetchResults) -> Retry | None:
        """Return when to retry a page; None to give up."""
        page, fetched, now, verdict = answer.page, answer.fetched, self._hosts.clock(), answer.verdict
        tries = self._tries[page] = self._tries.get(page, 0) + 1
        self._why[page] = verdict.reason
        missing = verdict.kind == "gone"
        if missing:  # it is gone after two such responses, whatever came between; after one if it was not readable
            is_known = page in self._missing or self._was_unreadable(page)
            backoff = None if is_known else FIRST_BACKOFF
            self._missing.add(page)
        else:
            backoff = _retry_delay(tries, fetched)
        asked = fetched.retry_after or 0.0
        if fetched.status == 429 and not asked:  # the limit is of the host, not of the page
            self._back_off(answer.host, now + self._scaled(backoff or FIRST_BACKOFF), verdict.reason, results)
        if backoff is None or self._hosts[answer.host].excluded:
            return None
        until = now + max(asked, self._scaled(backoff))
        known = page in self._missing
        detail = {"page": page, "until": until, "tries": tries, "missing": known, "why": verdict.reason}
        results.events.append(Event("retry", now, detail))
        return Retry(page, until)

    def _was_unreadable(self, page: int) -> bool:
        """Return whether a page was requested before, and could not be read."""
        readable = self._lookup.is_readable(page)
        return readable is not None and not readable

    def _apply_retry_after(self, host: int, fetched: Fetched, results: FetchResults) -> None:
        """Apply a Retry-After to the host, whatever the response is otherwise."""
        if fetched.retry_after and fetched.status is not None and fetched.status >= 300:
            self._back_off(host, self._hosts.clock() + fetched.retry_after, "Retry-After", results)

    def _back_off(self, host: int, until: float, why: str, results: FetchResults) -> None:
        """Send no request to a host until a time, also after a restart."""
        self._hosts.back_off(host, until, why)
        self._record_backoff(host, until, why, results)

    def _record_backoff(self, host: int, until: float, why: str, results: FetchResults, *, own: bool = False) -> None:
        detail = {"host": self._hosts[host].name, "until": until, "why": why, **({"own": True} if own else {})}
        results.events.append(Event("backoff", self._hosts.clock(), detail))

    def _held_until(self, host: int, fetched: Fetched) -> float | None:
        """Return until when to wait if the local network may be down; None if the failure counts."""
        if fetched.error not in NO_RESPONSE:
            return None
        is_offline, why = fetched.error == "offline", fetched.detail or fetched.error
        return self._hosts.unreached(host, origin_of(fetched.url), offline=is_offline, why=why)

    def _scaled(self, backoff: float) -> float:
        return backoff * self._backoff / FIRST_BACKOFF


def _read_content(fetched: Fetched) -> Page | None:
    """Return a page with its text, parsed in this process."""
    found = guarded(fetched.url, read_page, fetched.body, fetched.url, headers=joined(fetched.headers))
    return None if isinstance(found, Failure) else found


def _retry_delay(tries: int, fetched: Fetched) -> float | None:
    """Return the seconds before the next attempt, None to give up; other hosts are reached meanwhile."""
    error = "timeout-connect" if fetched.error == "offline" else fetched.error
    return retry_delay(tries, error or fetched.status or "")
