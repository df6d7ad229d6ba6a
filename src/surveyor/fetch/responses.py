"""Map HTTP responses to outcomes, and responses to requests for robots.txt to rules (RFC 9309, 2.3.1).

| response | outcome |
|---|---|
| 2xx, 304 | *fetched*, with its links (none if it is not HTML), up to the size limit |
| 2xx, but empty until a script has run | *fetched*, with that as its reason |
| 2xx, but no body could be read: declared too long, or not in its encoding | *blocked* |
| 2xx, with another page of its domain as canonical URL | *redirected* there, unless that page is known to be gone |
| redirect to a URL in scope | *redirected* there; the target is queued like any page |
| redirect out of scope, in a loop, to an invalid URL, or the 21st in a row | *blocked* |
| 404, 410 | *gone*, after the second such response |
| 408, 425, 429, 5xx, no connection, timeout | *blocked*, after a few retries |
| any other | *blocked* |
| the parser fails (see `boundary`) | *blocked* |

Links out of scope and nofollow links are stored in the visit but carry no importance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, IdArray
from surveyor.fetch.http import MOST_REDIRECTS, PASSING_STATUS, REDIRECTS, TRANSIENT, Fetched, Headers
from surveyor.outcome import NO_LINKS, Exchange, Kind, Outcome, Visit, head
from surveyor.web.boundary import Failure, guarded
from surveyor.web.caching import expiry
from surveyor.web.html import Page, read_cheap_page, read_page
from surveyor.web.javascript import NEEDS_JAVASCRIPT
from surveyor.web.link_context import by_page
from surveyor.web.references import Addresses
from surveyor.web.robots import Robots
from surveyor.web.scope import Scope
from surveyor.web.urls import Urls, domain, host, normalise, origin

CUT = frozenset({"too-large", "decode"})  # the part received is read
MISSING = frozenset({404, 410})
UNKNOWN, INSIDE, OUTSIDE = range(3)  # whether a page is in scope
NOTHING = Page()
ROBOTS_TAG = b"x-robots-tag"
LEFT = "redirects out of the scope"
TRUNCATED = {"too-large": "length", "timeout-page": "time", "reset": "disconnect"}  # WARC-Truncated values


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of a response; `again` if it may be temporary."""

    kind: Kind
    reason: str = ""
    again: bool = False


READ, MOVED = Verdict("fetched"), Verdict("redirected")
MOVED_AWAY = Verdict("blocked", "redirects temporarily")


@dataclass(slots=True)
class PageResponse:
    """The result of a fetch, its time, and the previous visit of the page if there was one."""

    page: int
    host: int
    fetched: Fetched
    at: float
    verdict: Verdict  # `judge(fetched)`
    known: Visit | None = None
    parsed: Page | Failure | None = None  # once parsed; see `Reader.parse`
    leased: bool = True  # by the frontier; else fetched as the canonical URL of another page
    ignores_canonical: bool = False  # its canonical page cannot be read, so it is not an alias
    text_hash: bytes = b""  # of the main text, if it was extracted; see `Reader.needs_text`
    content: Page | None = None  # if it was extracted to decide the topic of the page
    _digest: bytes = b""

    @property
    def is_page(self) -> bool:
        """Whether there is a body to parse."""
        return self.verdict.kind == "fetched" and not self.fetched.skipped and not self.fetched.not_modified

    @property
    def digest(self) -> bytes:
        """The hash of the decoded body."""
        self._digest = self._digest or hashlib.blake2b(self.fetched.body, digest_size=16).digest()
        return self._digest

    @property
    def is_same(self) -> bool:
        """Whether the body is that of the previous visit."""
        return self.known is not None and bool(self.known.hash) and self.known.hash == self.digest


def judge(fetched: Fetched) -> Verdict:
    """Return the meaning of a response, regardless of the content of the page.

    >>> judge(Fetched("http://a.example/", status=503)), judge(Fetched("http://a.example/", error="tls")).kind
    (Verdict(kind='blocked', reason='http 503', again=True), 'blocked')
    """
    status, error = fetched.status or 0, fetched.error
    if error and not (error in CUT and (fetched.body or not 200 <= status < 300)):
        return Verdict("blocked", fetched.detail or error, error in TRANSIENT or error == "offline")
    if status in REDIRECTS:
        return MOVED
    if 200 <= status < 300 or (status == 304 and fetched.not_modified):
        return READ
    if status in MISSING:
        return Verdict("gone", f"http {status}", again=True)
    return Verdict("blocked", f"http {status}", status in PASSING_STATUS)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A response, its parsed page, and the URLs in it."""

    answer: PageResponse
    verdict: Verdict
    page: Page
    goal: str | None  # target of a redirect or canonical link
    follow: list[str]  # distinct links
    other: list[str]  # nofollow links
    texts: Sequence[str] = ()  # of each link, first of those to follow
    marks: Sequence[int] = ()

    @property
    def urls(self) -> list[str]:
        return [self.goal] if self.goal is not None else [*self.follow, *self.other]


class Reader:
    """Turns responses into visits; decides which links are in scope."""

    def __init__(
        self,
        urls: Urls,
        scope: Scope,
        seeds: Sequence[int],
        *,
        follow_nofollow: bool = False,
        main_text: bool = False,
        sent: Mapping[str, str] | None = None,
    ) -> None:
        """Assign link ids in `urls`; with `sent`, the headers of a request, visits carry their exchange.

        With `main_text`, pages need the hash of their main text.
        """
        self._urls, self._scope, self._main_text, self._sent = urls, scope, main_text, sent
        self._follows, self._addresses = follow_nofollow, Addresses(normalise)
        self._place: ByteArray = np.zeros(1024, np.uint8)  # per page: UNKNOWN, INSIDE, OUTSIDE
        self._seeds = np.array(seeds, np.int32)
        self._depth: dict[int, int] = dict.fromkeys(seeds, 0)  # links from a seed, if the scope has a depth limit

    def parse(self, answer: PageResponse) -> Page | Failure | None:
        """Parse a page if that is cheap; return None if it may not be, or if there is no body to parse."""
        return guarded(answer.fetched.url, self._parse, answer.fetched) if answer.is_page else None

    def _parse(self, fetched: Fetched) -> Page | None:
        return read_cheap_page(fetched.body, fetched.url, joined(fetched.headers), self._addresses)

    def needs_text(self, answer: PageResponse) -> bool:
        """Return whether the main text of a response is needed: it is not if the body is that of the last visit."""
        return self._main_text and answer.is_page and not (answer.is_same and answer.known and answer.known.text_hash)

    def hash_text(self, answer: PageResponse) -> None:
        """Hash the main text of a page, in this process; a crawl leaves it to its parser process."""
        from surveyor.web.main_text import text_hash

        fetched = answer.fetched
        found = guarded(fetched.url, text_hash, fetched.body, fetched.url, joined(fetched.headers))
        answer.text_hash = b"" if isinstance(found, Failure) else found

    def find(self, url: str) -> int | None:
        """Return the id of a URL, if it has one."""
        return self._urls.find(url)

    def number(self, url: str) -> int:
        """Return the id of a URL; a new URL gets the next id."""
        return int(self._urls.ids([url])[0])

    def url(self, page: int) -> str:
        """Return the URL of a page."""
        return self._urls[page]

    def end_of(self, page: int) -> int:
        """Return the page at the end of the known redirects of a page."""
        return int(self._urls.canonical(np.array([page], np.int32))[0])

    def canonical(self, page: int, parsed: Page | Failure | None) -> str | None:
        """Return the canonical URL of a page if it is another page and acceptable; whether it exists is not checked."""
        if not isinstance(parsed, Page) or parsed.canonical is None:
            return None
        found = guarded(self._urls[page], self._canonical, page, parsed)
        return None if isinstance(found, Failure) else found

    def visits(self, answers: Sequence[PageResponse]) -> list[Outcome]:
        """Turn responses into visits, in order; link ids are assigned in batches."""
        made: list[Outcome] = []
        readings: list[_Reading] = []
        for answer in answers:
            reading = guarded(answer.fetched.url, self._read, answer)
            readings.append(_blocked(answer, reading) if isinstance(reading, Failure) else reading)
            if readings[-1].goal is not None:  # a new alias affects the next page
                made += self._numbered(readings)
                readings = []
        return made + self._numbered(readings)

    def _numbered(self, readings: Sequence[_Reading]) -> list[Outcome]:
        """Assign ids to the URLs of responses and create the visits."""
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
        """Update aliases and depths from an outcome, also from one that is replayed."""
        if outcome.kind == "redirected":
            self._urls.alias(outcome.page, outcome.target)
        if self._scope.depth is not None:
            here = self._depth.get(outcome.page, 0)
            for page in outcome.links.tolist():
                self._depth[page] = min(self._depth.get(page, here + 1), here + 1)
            if outcome.kind == "redirected":
                self._depth[outcome.target] = min(self._depth.get(outcome.target, here), here)

    @property
    def counts_depth(self) -> bool:
        """Whether the scope has a depth limit."""
        return self._scope.depth is not None

    def judged(self, visit: Visit) -> Visit:
        """Return a visit as it would be under the current scope."""
        if visit.kind == "redirected" or (visit.kind == "blocked" and visit.reason == LEFT):
            return self._moved(visit, visit.target if visit.kind == "redirected" else int(visit.out_of_scope[0]))
        if visit.kind != "fetched":
            return visit
        also, kept = (visit.nofollow, NO_LINKS) if self._follows else (NO_LINKS, visit.nofollow)
        named = np.concatenate([visit.links, visit.out_of_scope, also])
        named = named[named != visit.page]
        inside = self._inside(visit.page, named)
        return replace(visit, links=named[inside], out_of_scope=named[~inside], nofollow=kept)

    def _read(self, answer: PageResponse) -> _Reading:
        """Parse the page, if there is one, and collect its URLs."""
        fetched, verdict, page = answer.fetched, answer.verdict, NOTHING
        goal = None
        if verdict.kind == "redirected" and fetched.target is not None:
            goal = normalise(fetched.target)
        elif answer.is_page:
            parsed = answer.parsed
            if parsed is None:
                headers = joined(fetched.headers)
                parsed = read_page(fetched.body, fetched.url, headers=headers, text=False, addresses=self._addresses)
            if isinstance(parsed, Failure):
                return _blocked(answer, parsed)
            page, goal = parsed, None if answer.ignores_canonical else self._canonical(answer.page, parsed)
        if page is NOTHING and any(name.lower() == ROBOTS_TAG for name, _ in fetched.headers):
            asked = read_page(b"", fetched.url, content_type="none/none", headers=joined(fetched.headers))
            page = Page(noarchive=asked.noarchive)  # errors, redirects and images may set it too
        if page.links and not self._follows and any(not link.follow for link in page.links):
            every = list(zip(page.links, page.anchors, page.marks, strict=True))
            every.sort(key=lambda entry: not entry[0].follow)
            follow = [link.url for link in page.links if link.follow]
            other = [link.url for link in page.links if not link.follow]
            texts, marks = [text for _, text, _ in every], [mark for *_, mark in every]
            return _Reading(answer, verdict, page, goal, follow, other, texts, marks)
        return _Reading(answer, verdict, page, goal, [link.url for link in page.links], [], page.anchors, page.marks)

    def _canonical(self, number: int, page: Page) -> str | None:
        """Return the canonical URL of a page if it is another page, of the same domain, in scope and not in a loop."""
        if page.canonical is None:
            return None
        goal, here = normalise(page.canonical), self._urls[number]
        if goal is None or domain(host(goal)) != domain(host(here)) or not self._scope.admits(goal):
            return None
        if self._urls.redirects(number) >= MOST_REDIRECTS:
            return None  # an endless chain; this page has content, so it is read
        if goal.partition(":")[2] == here.partition(":")[2]:
            return None  # itself, perhaps by http, which often redirects back
        known = self._urls.find(goal)
        if known is not None and int(self._urls.canonical(np.array([known], np.int32))[0]) == number:
            return None  # two pages that name each other as canonical: one of them must be read
        return goal

    def _visit(self, reading: _Reading, ids: IdArray) -> Visit:
        answer, verdict, page = reading.answer, reading.verdict, reading.page
        fetched, known = answer.fetched, answer.known
        fields: dict[str, Any] = {
            "status": fetched.status or 0,
            "fetched_at": answer.at,
            "seconds": fetched.timings.total,
            "size": len(fetched.raw),
            "expires": expiry(joined(fetched.headers), answer.at),
        }
        if fetched.not_modified and known is not None:
            fields |= {
                "etag": fetched.etag or known.etag,
                "last_modified": fetched.last_modified or known.last_modified,
            }
            exchange = None if page.noarchive else self._exchange(answer)
            return self.judged(replace(known, exchange=exchange, **fields))  # the scope may have changed since
        fields |= {
            "etag": fetched.etag or "",
            "last_modified": fetched.last_modified or "",
            "title": page.title,
            "language": page.language,
            "exchange": None if page.noarchive else self._exchange(answer),
        }
        if reading.goal is not None:
            return self._moved(Visit(answer.page, "redirected", **fields), int(ids[0]))
        if verdict.kind == "redirected":  # to an invalid URL
            return Visit(answer.page, "blocked", reason="redirects to no page", **fields)
        if verdict.kind != "fetched":
            return Visit(answer.page, verdict.kind, reason=verdict.reason, **fields)
        follow, other = ids[: len(reading.follow)], ids[len(reading.follow) :]
        inside = self._inside(answer.page, follow)
        return Visit(
            answer.page,
            "fetched",
            follow[inside & (follow != answer.page)],
            NEEDS_JAVASCRIPT if page.javascript else "",
            out_of_scope=follow[~inside],
            nofollow=other,
            contexts=by_page(answer.page, ids, reading.texts, reading.marks),
            hash=answer.digest,
            text_hash=answer.text_hash or (known.text_hash if known is not None and answer.is_same else b""),
            **fields,
        )

    def _moved(self, visit: Visit, goal: int) -> Visit:
        """Return the visit as moved to `goal`, or as blocked if that target is not acceptable."""
        there = np.array([goal], np.int32)
        if goal == visit.page:
            return replace(visit, kind="blocked", reason="redirects to itself")
        if not self._inside(visit.page, there, steps=0)[0]:
            return replace(visit, kind="blocked", reason=LEFT, target=-1, out_of_scope=there)
        if int(self._urls.canonical(there)[0]) == visit.page:
            return replace(visit, kind="blocked", reason="redirects in a circle")
        if self._urls.redirects(visit.page) >= MOST_REDIRECTS:
            return replace(visit, kind="blocked", reason=f"more than {MOST_REDIRECTS} redirects", target=-1)
        return replace(visit, kind="redirected", reason="", target=goal, out_of_scope=NO_LINKS)

    def _inside(self, page: int, ids: IdArray, steps: int = 1) -> BoolArray:
        """Return which of the pages `ids`, at `steps` links from `page`, are in scope."""
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

    def _exchange(self, answer: PageResponse) -> Exchange | None:
        """Return the request and response as transferred, for the archive."""
        fetched = answer.fetched
        if self._sent is None or fetched.status is None:
            return None
        if fetched.not_modified and (answer.known is None or answer.known.warc is None):
            return None
        same = answer.known is not None and (fetched.not_modified or (answer.is_page and answer.is_same))
        authority, _, path = fetched.url.partition("//")[2].partition("/")
        asked = [(b"Host", authority.encode()), *((n.encode(), v.encode()) for n, v in self._sent.items())]
        first = f"HTTP/{fetched.version or '1.1'} {fetched.status} {fetched.reason}".encode("latin-1", "replace")
        return Exchange(
            fetched.url,
            head(f"GET /{path} HTTP/1.1".encode(), asked),
            head(first, fetched.headers, None if fetched.not_modified else len(fetched.raw)),
            fetched.raw,
            answer.at,
            fetched.ip,
            TRUNCATED.get(fetched.error, ""),
            refers=answer.known.warc if same and answer.known is not None else None,
            not_modified=fetched.not_modified,
        )


def _blocked(answer: PageResponse, failure: Failure) -> _Reading:
    return _Reading(answer, Verdict("blocked", failure.reason), NOTHING, None, [], [])


def joined(headers: Headers) -> dict[str, str]:
    """Return headers by name; repeated headers are joined by newlines."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joined[key] = f"{joined[key]}\n{text}" if key in joined else text
    return joined


HOPS = 5  # maximum redirects


def next_hop(fetched: Fetched, before: Sequence[str]) -> tuple[str, Fetched]:
    """Return the URL to request next, if any, and the effective response; `before` are the URLs requested so far.

    Too many redirects, a redirect loop, or a redirect without a valid target count as a missing file.
    """
    if fetched.status not in REDIRECTS:
        return "", fetched
    target = None if fetched.target is None else normalise(fetched.target)  # even if the body was cut off
    if target is None or target in before or len(before) > HOPS:
        return "", replace(fetched, status=404, error="", body=b"")
    return target, fetched


def interpreted(fetched: Fetched) -> Fetched:
    """Return the response unchanged if its rules can be parsed, else as a failure, which permits nothing."""
    found = guarded(fetched.url, _try_rules, fetched)
    if not isinstance(found, Failure):
        return fetched
    return replace(fetched, status=None, error="protocol", detail=f"robots.txt {found.reason}", body=b"")


def _try_rules(fetched: Fetched) -> None:
    robots = rules_in(fetched)[1]
    robots.why(f"{origin(fetched.url)}/")
    _ = robots.crawl_delay, robots.sitemaps


def rules_in(fetched: Fetched) -> tuple[int | None, Robots]:
    """Return the effective status and the rules; a body that was cut off is used as far as it goes."""
    status = None if fetched.error and not (fetched.error in CUT and fetched.body) else fetched.status
    return status, Robots.from_answer(status, fetched.body)
