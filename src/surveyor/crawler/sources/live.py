"""Pages over HTTP: what the frontier hands out is fetched, and what came of it is told as outcomes.

Nothing is paced here: what is begun was allowed to begin, and `Hosts` is told of every answer, how long it took and
whether it was a failure. A failure that may pass is told as a retry, later each time; being offline is nobody's failure
and costs no try. What an answer means is in `responses.py`.

A robots.txt may lie elsewhere: each redirect is one more request, to be begun when the host that it leads to may be
asked.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from surveyor.crawler.queues import Batch, HostTask
from surveyor.crawler.sources.canonicals import Canonicals
from surveyor.fetch.http import FIRST_BACKOFF, PASSING, Client, Fetched, FetchRequest, next_try
from surveyor.fetch.parser import Parser
from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.fetch.responses import Answer, Reader, interpreted, joined, judge, next_hop, rules_in
from surveyor.outcome import Event, FetchResults, Retry, RobotsFile, Visit
from surveyor.web.boundary import failed, guarded
from surveyor.web.urls import host as host_of
from surveyor.web.urls import origin as origin_of

if TYPE_CHECKING:
    from surveyor.fetch.addresses import Resolver

SILENT = frozenset({"dns", "timeout-connect", "offline"})  # a refused connection is an answer
MANY_LINKS = 5_000  # of new outcomes: to number them takes some milliseconds
LONGEST_WAIT = 1.0  # seconds without a look at whether the crawl is done: there are goals in minutes
LONGEST_BATCH = 0.02  # seconds of parsing after which other tasks run
TURNED_AWAY = 0.2  # of a failure: one page may well be forbidden, fifty in a row are a wish
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


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Options of a live source."""

    backoff: float = FIRST_BACKOFF  # seconds before the first retry
    fetches_canonicals: bool = True  # fetch canonical pages before the pages that name them are reported


class Hop(NamedTuple):
    """A robots.txt that is to be asked for elsewhere."""

    task: HostTask
    host: int  # to be asked
    url: str
    before: tuple[str, ...]  # URLs that led there


class LiveSource:
    """Fetches what the frontier hands out."""

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
        self._backoff, self._wait, self._parser = options.backoff, wait or self._wait_for, parser
        self._canonicals = Canonicals(reader, lookup.is_readable, fetches=options.fetches_canonicals)
        self._fetching: set[str] = set()  # URLs of pages under way, until they are reported or held
        self._leased: set[str] = set()  # those that the frontier leased
        self._tasks: set[asyncio.Task[None]] = set()
        self._pages: deque[Answer] = deque()  # fetched and not parsed yet
        self._answers: list[Answer] = []
        self._results = FetchResults()
        self._something = asyncio.Event()
        self._failure: BaseException | None = None
        self._hops: list[Hop] = []
        self._tries: dict[int, int] = {}
        self._why: dict[int, str] = {}  # pages that are to be retried failed
        self._missing: set[int] = set()  # pages that were answered to be gone, once
        self._extra = 0  # requests that no visit stands for: for robots.txt, and those before a retry

    @property
    def under_way(self) -> int:
        """How many fetches have begun and were not reported yet, or are to begin."""
        return len(self._tasks) + len(self._pages) + len(self._answers) + self.to_begin + self.held

    @property
    def to_begin(self) -> int:
        """How many of them wait for a host, and take nobody's place: each robots.txt that lies elsewhere."""
        return len(self._hops) + len(self._canonicals.wanted)

    @property
    def held(self) -> int:
        """How many pages were fetched, and are reported when it is known whether their canonical pages can be read."""
        return len(self._canonicals)

    def begin(self, batch: Batch) -> None:
        """Begin to fetch pages and to run tasks."""
        for task in batch.tasks:
            self._find_out(task)
        for page in batch.pages:
            url, host = self._lookup.place_of(page)
            self._leased.add(url)
            if url in self._fetching or self._canonicals.lease(url):  # another page names it as canonical
                self._hosts.answered(host, asked=False)
            else:
                self._fetching.add(url)
                self._start(self._fetch(page, url, host))
        if batch.room is None:
            return
        self._hop(batch.room)
        room = batch.room - len(self._hops)
        if self.held and room <= 0 and not self._tasks:  # nothing ends that would make room
            self._answers += self._canonicals.released(self._hosts.clock(), everything=True)
            self._something.set()
        self._ask_canonicals(room)

    async def results(self, until: float) -> FetchResults:
        """Return what has ended; wait for something to end, but not beyond that time."""
        if not self._something.is_set():
            soon = self._hosts.clock() + LONGEST_WAIT  # what is held may have been held for long enough
            await self._wait(self._something, min(until, soon) if self.held else until)
        self._something.clear()
        if self._failure is not None:
            raise self._failure
        await self._parse_pages()
        self._answers += self._canonicals.released(self._hosts.clock())
        answers, self._answers = self._answers, []
        results, final = self._results, []
        for answer in answers:
            self._extra += answer.fetched.requests  # less one if it ends as a visit
            self._leased.discard(answer.fetched.url)
            if not answer.leased and answer.verdict.kind not in ("fetched", "redirected"):
                guarded(answer.fetched.url, self._bear, answer, results)
                self._canonicals.fail(answer.fetched.url)
                continue
            retry = guarded(answer.fetched.url, self._retry, answer, results)
            if isinstance(retry, Retry):
                results.retries.append(retry)
                continue
            self.forget(answer.page)
            self._extra -= 1
            final.append(answer)
        if self._extra:
            results.events.append(Event("requests", self._hosts.clock(), {"count": self._extra}))
            self._extra = 0
        results.outcomes.extend(self._reader.visits(final))
        if sum(outcome.links.size for outcome in results.outcomes) > MANY_LINKS:
            await asyncio.sleep(0)  # to commit them takes as long again: other tasks run in between
        self._results = FetchResults()
        return results

    def _bear(self, answer: Answer, results: FetchResults) -> None:
        """Heed what the failure of a canonical page means for its host; the page itself is not retried for that."""
        if self._held_until(answer.host, answer.fetched) is None:
            self._feel(answer, results)
            if answer.fetched.status == 429 and not answer.fetched.retry_after:
                until = self._hosts.clock() + self._scaled(FIRST_BACKOFF)
                self._leave_alone(answer.host, until, answer.verdict.reason, results)

    def _retry(self, answer: Answer, results: FetchResults) -> Retry | None:
        """Record what an answer means for its host; return when to try the page again, None if it is an outcome."""
        again = answer.verdict.again
        if again and (until := self._held_until(answer.host, answer.fetched)) is not None:
            return self._after_the_pause(answer, until, results)
        self._feel(answer, results)
        return self._again(answer, results) if again else None

    async def news_within(self, seconds: float) -> FetchResults:
        """Return what has ended, after at most so many seconds of real time; nothing that waits begins any more."""
        self._hops.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._something.wait()
        self._something.set()
        results = await self.results(0.0)
        if dropped := self._canonicals.clear():
            results.events.append(Event("requests", self._hosts.clock(), {"count": dropped}))
        return results

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def recall(self, page: int, tries: int, *, missing: bool = False, why: str = "") -> None:
        """Remember how often a page was tried before a restart, why it failed, and if it was answered to be gone."""
        self._tries[page], self._why[page] = tries, why
        if missing:
            self._missing.add(page)

    def trouble(self, page: int) -> tuple[int, str]:
        """Return how often a page that is to be retried was tried, and why it failed."""
        return self._tries.get(page, 0), self._why.get(page, "")

    def forget(self, page: int) -> None:
        """Retry a page no more."""
        self._tries.pop(page, None)
        self._why.pop(page, None)
        self._missing.discard(page)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._something.set()
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()

    async def _wait_for(self, something: asyncio.Event, until: float) -> None:
        left = until - self._hosts.clock()
        with suppress(TimeoutError):  # not wait_for, which may swallow that the crawl is stopped
            async with asyncio.timeout(min(max(0.0, left), LONGEST_WAIT)):
                await something.wait()

    async def _fetch(self, page: int | None, url: str, host: int) -> None:
        """Fetch a page; a canonical page may have no number yet, and gets one if there is something to report."""
        known = None if page is None else self._lookup.last_visit(page)
        request = FetchRequest(url, known.etag or None, known.last_modified or None) if known else FetchRequest(url)
        at = self._hosts.clock()
        try:
            fetched = await self._ask(request)
        except BaseException:
            self._hosts.answered(host)
            raise
        if fetched.status is not None:
            self._hosts.reached(host, origin_of(url))
        verdict = judge(fetched)
        if page is None:
            page = self._reader.number(url) if verdict.kind in ("fetched", "redirected") else -1
        self._pages.append(Answer(page, host, fetched, at, verdict, known))

    def _ask_canonicals(self, room: int) -> None:
        """Fetch canonical pages whose hosts may be asked now, after the robots.txt of their origins."""
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
            if step is None or (step == "page" and hosts.why_not(host, origin, url)):
                self._canonicals.fail(url)
                self._something.set()
                continue
            room -= 1
            hosts.lease(host, step)
            if step == "page":
                del self._canonicals.wanted[url]
                self._fetching.add(url)
                self._start(self._fetch(self._reader.find(url), url, host))
            else:
                self._find_out(HostTask(step, host, origin))

    async def _parse_pages(self) -> None:
        """Parse fetched pages in a batch, which takes less time than between requests; hosts are leased meanwhile."""
        began = time.perf_counter()
        while self._pages:
            answer = self._pages.popleft()
            answer.parsed = self._reader.parse(answer)
            if answer.parsed is None and self._parser is not None and answer.is_page:
                self._start(self._parse_apart(self._parser, answer))
            else:
                self._pass_on(answer)
            if time.perf_counter() - began > LONGEST_BATCH:
                await asyncio.sleep(0)
                began = time.perf_counter()

    async def _parse_apart(self, parser: Parser, answer: Answer) -> None:
        fetched = answer.fetched
        try:
            answer.parsed = await parser.page(fetched.url, joined(fetched.headers), fetched.body)
        except BaseException:
            self._hosts.answered(answer.host)
            raise
        self._pass_on(answer)

    def _pass_on(self, answer: Answer) -> None:
        """Release the host of a page that was parsed, and report the page unless its canonical page comes first."""
        url = answer.fetched.url
        self._hosts.answered(answer.host)
        self._fetching.discard(url)
        answer.leased = url in self._leased
        self._answers += self._canonicals.take(answer, self._hosts.clock())

    async def _ask(self, request: FetchRequest) -> Fetched:
        """Fetch; what the client itself cannot interpret is an answer too."""
        try:
            fetched = await self._client.fetch(request)
            return fetched if fetched.url == request.url else replace(fetched, url=request.url)
        except Exception as error:
            return Fetched(request.url, error="protocol", detail=failed(request.url, error).reason)

    def _find_out(self, task: HostTask) -> None:
        hop = Hop(task, task.host, f"{task.origin}/robots.txt", ())
        self._start(self._find(task.host) if task.kind == "address" else self._ask_rules(hop))

    async def _find(self, host: int) -> None:
        """Look a host up; a client that cannot do that leaves it open."""
        find, address = getattr(self._client, "address", None), ""
        try:
            if find is not None:
                address = await find(self._hosts[host].name)
        except Exception as error:  # the fetch that follows will explain it
            failed(self._hosts[host].name, error)
        finally:
            self._hosts.found(host, address)
            self._hosts.answered(host, asked=False)

    def _hop(self, room: int) -> None:
        """Ask for each robots.txt that lies elsewhere, if the host there may be asked now."""
        hosts, hops, self._hops = self._hosts, self._hops, []
        for hop in hops:
            if hosts[hop.task.host].refused:
                continue  # meanwhile nobody needs its rules
            if refused := hosts.refused(hop.host, origin_of(hop.url)):
                why = f"robots.txt of {hop.task.origin} lies at {hosts[hop.host].name}: {refused}"
                self._rule(hop, Fetched(hop.url, error="forbidden-address", detail=why))
                self._something.set()  # the host may be asked, or refused, right now
                continue
            step = hosts.turn(hop.host, origin_of(hop.url)) if room > 0 else None
            room -= step == "robots"
            if step is not None:
                hosts.lease(hop.host, step)
                self._start(self._find(hop.host) if step == "address" else self._ask_rules(hop))
            if step != "robots":
                self._hops.append(hop)

    async def _ask_rules(self, hop: Hop) -> None:
        try:
            fetched = await self._ask(FetchRequest(hop.url, types=("*/*",)))
            self._extra += fetched.requests
            self._told_rules(hop, interpreted(fetched))
        finally:
            self._hosts.answered(hop.host)  # after the rules are known: their delay counts from now on

    def _told_rules(self, hop: Hop, fetched: Fetched) -> None:
        """Take in an answer, or go where it leads."""
        before = (*hop.before, hop.url)
        target, fetched = next_hop(fetched, before)
        if not target:
            self._rule(hop, fetched)
            return
        self._hosts.reached(hop.host, origin_of(hop.url))
        self._hosts.asked_elsewhere(hop.task.host, hop.task.origin)
        self._heed(hop.host, fetched, self._results)
        self._hops.append(Hop(hop.task, self._hosts.number(host_of(target)), target, before))

    def _rule(self, hop: Hop, fetched: Fetched) -> None:
        """Take in what came of asking for a robots.txt, or say when to ask again."""
        hosts, now = self._hosts, self._hosts.clock()
        host, origin = hop.task.host, hop.task.origin
        status, robots = rules_in(fetched)
        if fetched.status is not None:
            hosts.reached(hop.host, origin_of(hop.url))
        if hop.before:  # it was asked for elsewhere, and nothing wakes the host itself
            hosts.wait(host, now)
        self._heed(hop.host, fetched, self._results)
        trouble = ""
        if robots.state == "unreachable":
            trouble = fetched.detail if fetched.error else ""
            held = None if hop.before else self._held_until(hop.host, fetched)  # it was there a moment ago
            if held is not None:
                hosts.unruled(host, origin, held, counts=False)
                return
            tries = hosts.tries(host, origin) + 1
            backoff = _next_try(tries, fetched)
            if hosts[hop.host].refused:
                backoff = None  # it asks to be left alone for long
            until = None if backoff is None else now + max(self._scaled(backoff), fetched.retry_after or 0.0)
            told = {"origin": origin, "until": until, "tries": tries, "why": trouble, "status": fetched.status}
            self._results.events.append(Event("robots_retry", now, told))
            if until is not None:
                unanswered = fetched.status is None and not hop.before
                trouble = trouble or f"http {fetched.status}"
                hosts.unruled(host, origin, until, trouble=trouble, unanswered=unanswered)
                return
        hosts.ruled(host, origin, robots, now + DAY, trouble=trouble)
        self._results.robots.append(RobotsFile(origin, now, now + DAY, status or 0, fetched.body))

    def _feel(self, answer: Answer, results: FetchResults) -> None:
        """Tell how a host bears being asked, and heed what it asks for."""
        fetched, verdict = answer.fetched, answer.verdict
        self._heed(answer.host, fetched, results)
        failed = fetched.error in PASSING or (verdict.again and verdict.kind == "blocked")
        failure = 1.0 if failed else TURNED_AWAY if fetched.status in (401, 403) else 0.0
        until = self._hosts.felt(answer.host, fetched.timings.first_byte, failure, verdict.reason)
        if until is not None:
            self._note_wait(answer.host, until, verdict.reason, results, rest=True)

    def _after_the_pause(self, answer: Answer, until: float, results: FetchResults) -> Retry:
        """Try a page again when the network may be there again."""
        why = self._why[answer.page] = answer.verdict.reason
        results.events.append(Event("offline", self._hosts.clock(), {"until": until, "why": why}))
        return Retry(answer.page, until)

    def _again(self, answer: Answer, results: FetchResults) -> Retry | None:
        """Say when to try a page again; None to give up."""
        page, fetched, now, verdict = answer.page, answer.fetched, self._hosts.clock(), answer.verdict
        tries = self._tries[page] = self._tries.get(page, 0) + 1
        self._why[page] = verdict.reason
        missing = verdict.kind == "gone"
        if missing:  # only once it was answered twice, whatever else was answered before
            backoff = None if page in self._missing else FIRST_BACKOFF
            self._missing.add(page)
        else:
            backoff = _next_try(tries, fetched)
        asked = fetched.retry_after or 0.0
        if fetched.status == 429 and not asked:  # the host, not just the page, is to be left alone
            self._leave_alone(answer.host, now + self._scaled(backoff or FIRST_BACKOFF), verdict.reason, results)
        if backoff is None or self._hosts[answer.host].refused:
            return None
        until = now + max(asked, self._scaled(backoff))
        known = page in self._missing
        told = {"page": page, "until": until, "tries": tries, "missing": known, "why": verdict.reason}
        results.events.append(Event("retry", now, told))
        return Retry(page, until)

    def _heed(self, host: int, fetched: Fetched, results: FetchResults) -> None:
        """Keep to a Retry-After, whatever the answer is otherwise: it is the host that asks for it."""
        if fetched.retry_after and fetched.status is not None and fetched.status >= 300:
            self._leave_alone(host, self._hosts.clock() + fetched.retry_after, "Retry-After", results)

    def _leave_alone(self, host: int, until: float, why: str, results: FetchResults) -> None:
        """Keep to the wish of a host not to be asked before some time, after a restart too."""
        self._hosts.leave_alone(host, until, why)
        self._note_wait(host, until, why, results)

    def _note_wait(self, host: int, until: float, why: str, results: FetchResults, *, rest: bool = False) -> None:
        told = {"host": self._hosts[host].name, "until": until, "why": why, **({"own": True} if rest else {})}
        results.events.append(Event("backoff", self._hosts.clock(), told))

    def _held_until(self, host: int, fetched: Fetched) -> float | None:
        """Return until when to wait if a failure may be that of the network here; None if it counts."""
        if fetched.error not in SILENT:
            return None
        is_offline, why = fetched.error == "offline", fetched.detail or fetched.error
        return self._hosts.unreached(host, origin_of(fetched.url), offline=is_offline, why=why)

    def _scaled(self, backoff: float) -> float:
        return backoff * self._backoff / FIRST_BACKOFF


def _next_try(tries: int, fetched: Fetched) -> float | None:
    """Return the seconds before the next attempt, None to give up; other hosts are reached meanwhile."""
    error = "timeout-connect" if fetched.error == "offline" else fetched.error
    return next_try(tries, error or fetched.status or "")
