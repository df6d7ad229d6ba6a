"""What an answer means: HTTP in, outcomes out.

| answer | outcome |
|---|---|
| 2xx, 304 | *read*, with its links (none if it is not HTML), as far as it can be: to its end, or to the size limit |
| 2xx, but empty until a script has run | *read*, with that as its reason |
| 2xx, but nothing could be read: said to be too long, or not in its encoding | *blocked* |
| 2xx, names another page of its domain as canonical | *moved* there, unless that is known to be gone |
| redirect into the scope | *moved* there; the page that it leads to is fetched in its turn |
| redirect out of the scope, in a circle, to no page, or the 21st in a row | *blocked* |
| 404, 410 | *gone*, once it was answered twice |
| 408, 425, 429, 5xx, no connection, too slow | *blocked*, after it was tried again a few times |
| any other | *blocked* |
| whatever its interpreter fails at (see `boundary`) | *blocked* |

Links that leave the scope, or that say nofollow, are kept in the visit but carry no importance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, IdArray
from surveyor.fetch.http import MOST_REDIRECTS, PASSING, PASSING_STATUS, REDIRECTS, Fetched, Headers
from surveyor.outcome import NO_LINKS, Exchange, Kind, Outcome, Visit, head
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import Page, read_cheap_page, read_page
from surveyor.web.javascript import NEEDS_JAVASCRIPT
from surveyor.web.references import Addresses
from surveyor.web.scope import Scope
from surveyor.web.urls import Urls, domain, host, normalise

CUT = frozenset({"too-large", "decode"})  # what came before is read
MISSING = frozenset({404, 410})
UNKNOWN, INSIDE, OUTSIDE = range(3)  # what is known of a page and the scope
NOTHING = Page()
WISHES = b"x-robots-tag"
LEFT = "redirects out of the scope"
TRUNCATED = {"too-large": "length", "timeout-page": "time", "reset": "disconnect"}  # as WARC calls it


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer means; `again` says that the next one may be another."""

    kind: Kind
    reason: str = ""
    again: bool = False


READ, MOVED = Verdict("read"), Verdict("moved")


@dataclass(slots=True)
class Answer:
    """What came of asking for a page, when it was asked, and the visit before if there was one."""

    page: int
    host: int
    fetched: Fetched
    at: float
    verdict: Verdict  # `judge(fetched)`
    known: Visit | None = None
    parsed: Page | Failure | None = None  # what the page says, once it was parsed; see `Reader.parse`
    leased: bool = True  # by the frontier; else fetched because another page names it as canonical
    ignores_canonical: bool = False  # the page that it names as canonical cannot be read, so it is not an alias

    @property
    def is_page(self) -> bool:
        """Whether there is a body to parse."""
        return self.verdict.kind == "read" and not self.fetched.skipped and not self.fetched.not_modified


def judge(fetched: Fetched) -> Verdict:
    """Say what an answer means, whatever the page itself says.

    >>> judge(Fetched("http://a.example/", status=503)), judge(Fetched("http://a.example/", error="tls")).kind
    (Verdict(kind='blocked', reason='http 503', again=True), 'blocked')
    """
    status, error = fetched.status or 0, fetched.error
    if error and not (error in CUT and (fetched.body or not 200 <= status < 300)):
        return Verdict("blocked", fetched.detail or error, error in PASSING or error == "offline")
    if status in REDIRECTS:
        return MOVED
    if 200 <= status < 300 or (status == 304 and fetched.not_modified):
        return READ
    if status in MISSING:
        return Verdict("gone", f"http {status}", again=True)
    return Verdict("blocked", f"http {status}", status in PASSING_STATUS)


@dataclass(frozen=True, slots=True)
class _Reading:
    """An answer, what its page says, and the URLs that it names."""

    answer: Answer
    verdict: Verdict
    page: Page
    goal: str | None  # where it moved to
    follow: list[str]  # links, each once
    other: list[str]  # links that say nofollow

    @property
    def urls(self) -> list[str]:
        return [self.goal] if self.goal is not None else [*self.follow, *self.other]


class Reader:
    """Turns answers into visits; knows which links belong to the survey."""

    def __init__(
        self,
        urls: Urls,
        scope: Scope,
        seeds: Sequence[int],
        *,
        follow_nofollow: bool = False,
        sent: Mapping[str, str] | None = None,
    ) -> None:
        """Number links in `urls`; with `sent`, the headers of a request, visits carry what went over the wire."""
        self._urls, self._scope, self._sent = urls, scope, sent
        self._follows, self._addresses = follow_nofollow, Addresses(normalise)
        self._place: ByteArray = np.zeros(1024, np.uint8)  # of each page: UNKNOWN, INSIDE, OUTSIDE
        self._seeds = np.array(seeds, np.int32)
        self._depth: dict[int, int] = dict.fromkeys(seeds, 0)  # links from a seed, if the scope asks

    def parse(self, answer: Answer) -> Page | Failure | None:
        """Parse a page, if that takes little time; return None if it may not, or if it is no page."""
        return guarded(answer.fetched.url, self._parse, answer.fetched) if answer.is_page else None

    def _parse(self, fetched: Fetched) -> Page | None:
        return read_cheap_page(fetched.body, fetched.url, joined(fetched.headers), self._addresses)

    def find(self, url: str) -> int | None:
        """Return the number of a URL, if it has one."""
        return self._urls.find(url)

    def number(self, url: str) -> int:
        """Return the number of a URL, which becomes known by that."""
        return int(self._urls.ids([url])[0])

    def url(self, page: int) -> str:
        """Return the URL of a page."""
        return self._urls[page]

    def end_of(self, page: int) -> int:
        """Return the page at the end of the redirects of a page, as far as they are known."""
        return int(self._urls.canonical(np.array([page], np.int32))[0])

    def canonical(self, page: int, parsed: Page | Failure | None) -> str | None:
        """Return another page that a page names as canonical, if that is to be believed should it exist."""
        if not isinstance(parsed, Page) or parsed.canonical is None:
            return None
        found = guarded(self._urls[page], self._canonical, page, parsed)
        return None if isinstance(found, Failure) else found

    def visits(self, answers: Sequence[Answer]) -> list[Outcome]:
        """Turn answers into visits, in their order; the links of many are numbered together."""
        made: list[Outcome] = []
        readings: list[_Reading] = []
        for answer in answers:
            reading = guarded(answer.fetched.url, self._read, answer)
            readings.append(_blocked(answer, reading) if isinstance(reading, Failure) else reading)
            if readings[-1].goal is not None:  # who stands for whom counts for what the next page says
                made += self._numbered(readings)
                readings = []
        return made + self._numbered(readings)

    def _numbered(self, readings: Sequence[_Reading]) -> list[Outcome]:
        """Number the URLs of answers and make visits of them."""
        ids = self._urls.ids([url for reading in readings for url in reading.urls])
        made: list[Outcome] = []
        start = 0
        for reading in readings:
            end = start + len(reading.urls)
            answer = reading.answer
            visit = guarded(answer.fetched.url, self._visit, reading, ids[start:end])
            if isinstance(visit, Failure):
                visit = Visit(answer.page, "blocked", reason=visit.reason, fetched_at=answer.at)
            self.recall(visit)
            made.append(visit)
            start = end
        return made

    def recall(self, outcome: Outcome) -> None:
        """Take note of an outcome, also of one from before a restart: who stands for whom, how far pages are."""
        if outcome.kind == "moved":
            self._urls.alias(outcome.page, outcome.target)
        if self._scope.depth is not None:
            here = self._depth.get(outcome.page, 0)
            for page in outcome.links.tolist():
                self._depth[page] = min(self._depth.get(page, here + 1), here + 1)
            if outcome.kind == "moved":
                self._depth[outcome.target] = min(self._depth.get(outcome.target, here), here)

    @property
    def counts_depth(self) -> bool:
        """Whether it matters how far a page is from the seeds."""
        return self._scope.depth is not None

    def judged(self, visit: Visit) -> Visit:
        """Return a visit as it would have been under the scope of now."""
        if visit.kind == "moved" or (visit.kind == "blocked" and visit.reason == LEFT):
            return self._moved(visit, visit.target if visit.kind == "moved" else int(visit.out_of_scope[0]))
        if visit.kind != "read":
            return visit
        also, kept = (visit.nofollow, NO_LINKS) if self._follows else (NO_LINKS, visit.nofollow)
        named = np.concatenate([visit.links, visit.out_of_scope, also])
        named = named[named != visit.page]
        inside = self._inside(visit.page, named)
        return replace(visit, links=named[inside], out_of_scope=named[~inside], nofollow=kept)

    def _read(self, answer: Answer) -> _Reading:
        """Read the HTML of a page, if it is one, and gather the URLs that matter."""
        fetched, verdict, page = answer.fetched, answer.verdict, NOTHING
        goal = None
        if verdict.kind == "moved" and fetched.target is not None:
            goal = normalise(fetched.target)
        elif answer.is_page:
            said = answer.parsed
            if said is None:
                headers = joined(fetched.headers)
                said = read_page(fetched.body, fetched.url, headers=headers, text=False, addresses=self._addresses)
            if isinstance(said, Failure):
                return _blocked(answer, said)
            page, goal = said, None if answer.ignores_canonical else self._canonical(answer.page, said)
        if page is NOTHING and any(name.lower() == WISHES for name, _ in fetched.headers):
            asked = read_page(b"", fetched.url, content_type="none/none", headers=joined(fetched.headers))
            page = Page(noarchive=asked.noarchive)  # errors, redirects and images may ask for it too
        follow = [link.url for link in page.links if link.follow or self._follows]
        other = [link.url for link in page.links if not (link.follow or self._follows)]
        return _Reading(answer, verdict, page, goal, follow, other)

    def _canonical(self, number: int, page: Page) -> str | None:
        """Return the page that a page names as canonical, if it is another one that is to be believed."""
        if page.canonical is None:
            return None
        goal, here = normalise(page.canonical), self._urls[number]
        if goal is None or domain(host(goal)) != domain(host(here)) or not self._scope.admits(goal):
            return None
        if self._urls.redirects(number) >= MOST_REDIRECTS:
            return None  # a chain that leads ever further; this page has content, so it is read
        if goal.partition(":")[2] == here.partition(":")[2]:
            return None  # itself, perhaps by http: that often leads back here
        known = self._urls.find(goal)
        if known is not None and int(self._urls.canonical(np.array([known], np.int32))[0]) == number:
            return None  # two pages that name each other: one of them must be read
        return goal

    def _visit(self, reading: _Reading, ids: IdArray) -> Visit:
        answer, verdict, page = reading.answer, reading.verdict, reading.page
        fetched, known = answer.fetched, answer.known
        told: dict[str, Any] = {
            "status": fetched.status or 0,
            "fetched_at": answer.at,
            "seconds": fetched.timings.total,
            "size": len(fetched.raw),
        }
        if fetched.not_modified and known is not None:
            return self.judged(replace(known, **told))  # the scope may have changed since
        told |= {
            "etag": fetched.etag or "",
            "last_modified": fetched.last_modified or "",
            "title": page.title,
            "language": page.language,
            "exchange": None if page.noarchive else self._exchange(answer),
        }
        if reading.goal is not None:
            return self._moved(Visit(answer.page, "moved", **told), int(ids[0]))
        if verdict.kind == "moved":  # to what is no URL
            return Visit(answer.page, "blocked", reason="redirects to no page", **told)
        if verdict.kind != "read":
            return Visit(answer.page, verdict.kind, reason=verdict.reason, **told)
        follow, other = ids[: len(reading.follow)], ids[len(reading.follow) :]
        inside = self._inside(answer.page, follow)
        return Visit(
            answer.page,
            "read",
            follow[inside & (follow != answer.page)],
            NEEDS_JAVASCRIPT if page.javascript else "",
            out_of_scope=follow[~inside],
            nofollow=other,
            hash=hashlib.blake2b(fetched.body, digest_size=16).digest(),
            **told,
        )

    def _moved(self, told: Visit, goal: int) -> Visit:
        """Say where a page moved to, if that belongs to the survey."""
        there = np.array([goal], np.int32)
        if goal == told.page:
            return replace(told, kind="blocked", reason="redirects to itself")
        if not self._inside(told.page, there, steps=0)[0]:
            return replace(told, kind="blocked", reason=LEFT, target=-1, out_of_scope=there)
        if int(self._urls.canonical(there)[0]) == told.page:
            return replace(told, kind="blocked", reason="redirects in a circle")
        if self._urls.redirects(told.page) >= MOST_REDIRECTS:
            return replace(told, kind="blocked", reason=f"more than {MOST_REDIRECTS} redirects", target=-1)
        return replace(told, kind="moved", reason="", target=goal, out_of_scope=NO_LINKS)

    def _inside(self, page: int, ids: IdArray, steps: int = 1) -> BoolArray:
        """Say which pages, so many links from a page, belong to the survey."""
        if self._place.size < len(self._urls):
            more = np.zeros(2 * len(self._urls) - self._place.size, np.uint8)
            self._place = np.concatenate([self._place, more])
        unknown = ids[self._place[ids] == UNKNOWN]
        for number, url in zip(unknown.tolist(), self._urls.texts(unknown), strict=True):
            self._place[number] = INSIDE if self._scope.admits(url) else OUTSIDE
        inside: BoolArray = self._place[ids] == INSIDE
        if self._scope.depth is not None and self._depth.get(page, 0) + steps > self._scope.depth:
            inside &= np.isin(ids, self._seeds)
        return inside

    def _exchange(self, answer: Answer) -> Exchange | None:
        """Return what went over the wire, for the archive."""
        fetched = answer.fetched
        if self._sent is None or fetched.status is None or fetched.not_modified:
            return None
        authority, _, path = fetched.url.partition("//")[2].partition("/")
        asked = [(b"Host", authority.encode()), *((n.encode(), v.encode()) for n, v in self._sent.items())]
        first = f"HTTP/{fetched.version or '1.1'} {fetched.status} {fetched.reason}".encode("latin-1", "replace")
        return Exchange(
            fetched.url,
            head(f"GET /{path} HTTP/1.1".encode(), asked),
            head(first, fetched.headers, len(fetched.raw)),
            fetched.raw,
            answer.at,
            fetched.ip,
            TRUNCATED.get(fetched.error, ""),
        )


def _blocked(answer: Answer, failure: Failure) -> _Reading:
    return _Reading(answer, Verdict("blocked", failure.reason), NOTHING, None, [], [])


def joined(headers: Headers) -> dict[str, str]:
    """Return headers by name; several of one name are joined by newlines."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joined[key] = f"{joined[key]}\n{text}" if key in joined else text
    return joined
