"""The truth about an embedded web: the graph that a perfect crawler would see, and the importance of its pages.

The crawler starts from seeds, asks patiently (it repeats what may pass, waits when told to), follows links within
its scope, and sees the web in one version. `PerfectCrawler` says what counts as what. The graph is that of the
ledger: links as fetched; pages that redirect (or name a canonical of their own domain) stand for others, and a page
that linked to both keeps both links; pages gone have no links.

| fate | pages | links |
|---|---|---|
| fine | read, with whatever status on the way | as fetched, distinct, in scope, without itself and without nofollow |
| gone | 404, 410 | none |
| blocked | robots.txt, a host that is down, redirects in a circle or out of scope | none (`behind`: the real ones) |
| alias | redirects, canonical | none; links to it lead to what it stands for |
| beyond | further away than the depth | not looked at: any |

**Importance** is PageRank with jumps to the seeds, damping d. If no page is beyond, it is exact but for the error of
the ranking. (Blocked pages could have any links; the graph is the web in which they have these.) If the web has no end,
it is cut at some depth D. Let ρ be the mass that pages beyond absorb if they pass nothing on. Then ρ ≤ d ** (D + 1),
because a surfer who got there has followed D + 1 links since the last jump; and since each page keeps 1 − d of what
it absorbs for itself, the pages S of the graph that were read hold

    settled(S) + (1 − d)·ρ(S)  ≤  coverage  ≤  settled(S) + (1 − d)·ρ(S) + d·ρ

however the web goes on. Both sides come from one ranking x in which pages beyond are without links: with m their
share of it, ρ = m / (1 − d + d·m), settled = x · (1 − d·ρ), and (1 − d)·ρ_j is the same formula for pages beyond.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surveyor.arrays import ByteArray, FloatArray, IntArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.rank.pagerank import pagerank
from surveyor.rank.ranking import Ranking
from surveyor.testing.web_html import Sheet
from surveyor.testing.web_pages import WebPages
from surveyor.testing.web_plan import NOWHERE, domain_of

FATES = ("fine", "gone", "blocked", "alias", "beyond")
FINE, GONE, BLOCKED, ALIAS, BEYOND = range(5)
ENDLESS = 60  # links from the seeds: where a calendar is cut unless a depth is given
TOLERANCE = 1e-12
ENDS = 1 << 16  # bytes that the links at both ends of a huge page take at most


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfectCrawler:
    """What a crawler makes of what it gets; the defaults are those of the ledger's definition."""

    agent: str = "surveyor"  # the product token that robots.txt files know
    scope: Callable[[str], bool] | None = None  # which URLs belong
    normalise: Callable[[str], str] | None = None  # makes one URL of several, such as by dropping ?sid=
    nofollow: bool = False  # whether links with rel=nofollow count
    canonical: bool = True  # whether a canonical of the same domain is believed
    confirms: bool = True  # whether a page is asked twice before it counts as gone
    soft_404: bool = False  # whether a page that only says that there is none is recognised as gone
    longest: int = 2_000_000  # bytes of a page that are read: all of a huge one, or the links before its text
    behind: bool = False  # whether blocked pages have their real links in the graph


@dataclass(frozen=True)
class Truth:
    """A graph with names, and what became of each page."""

    graph: Graph  # a multigraph, ids as in `urls`
    urls: tuple[str, ...]
    kinds: tuple[str, ...]  # labels: ordinary, farm, …, calendar, soft-404, redirect, …
    fates: ByteArray  # `FATES` names the numbers
    reasons: tuple[str, ...]  # of pages blocked: robots, error, loop or scope
    stands_for: IntArray  # of each page: the page it is an alias of, or itself
    teleport: FloatArray  # even over the seeds
    damping: float
    depth: int | None  # where it was cut, if it was

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each URL."""
        return {url: page for page, url in enumerate(self.urls)}

    @cached_property
    def importance(self) -> Ranking:
        """PageRank from the seeds, as if pages beyond were without links."""
        return pagerank(self.graph, self.damping, TOLERANCE, self.teleport)

    @property
    def exact(self) -> bool:
        """Whether the whole web that can be reached is here."""
        return not bool((self.fates == BEYOND).any())

    @property
    def unseen(self) -> float:
        """The mass that pages beyond absorb, ρ."""
        share = float(self.importance.scores[self.fates == BEYOND].sum())
        return share / (1 - self.damping + self.damping * share)

    @property
    def bound(self) -> float:
        """What ρ can be at most: d ** (depth + 1), or 0."""
        return 0.0 if self.depth is None or self.exact else self.damping ** (self.depth + 1)

    def fate(self, url: str) -> str:
        """Return what became of a URL: fine, gone, blocked, alias or beyond (also of one not met)."""
        page = self.ids.get(url)
        return FATES[BEYOND if page is None else int(self.fates[page])]

    def target(self, url: str) -> str:
        """Return the URL that a URL stands for."""
        return self.urls[int(self.stands_for[self.ids[url]])]

    def links(self, url: str) -> list[str]:
        """Return the URLs that a page links to."""
        return [self.urls[page] for page in self.graph.links_of(self.ids[url])]

    def coverage(self, read: Iterable[str]) -> tuple[float, float]:
        """Return at least and at most how much of all importance these pages hold; URLs not met hold any."""
        pages = {int(self.stands_for[self.ids[url]]) for url in read if url in self.ids}
        sure = self.importance.scores * (1 - self.damping * self.unseen)
        held = float(sure[sorted(pages)].sum())
        error = self.importance.error
        return max(0.0, held - error), min(1.0, held + self.damping * self.unseen + error)

    def __repr__(self) -> str:
        counts = ", ".join(f"{(self.fates == fate).sum():,} {name}" for fate, name in enumerate(FATES))
        return f"Truth({self.graph.pages:,} URLs: {counts}; {self.graph.links:,} links)"


def find_truth(
    pages: WebPages,
    seeds: Sequence[str],
    crawler: PerfectCrawler | None = None,
    *,
    version: int = 0,
    damping: float = 0.85,
    depth: int | None = None,
) -> Truth:
    """Follow all links from the seeds; `depth` cuts everything, without it only what has no end is cut."""
    walk = _Walk(pages, crawler or PerfectCrawler(), version, depth)
    starts = [walk.number(url) for url in seeds]
    if not starts or None in starts:
        raise UsageError("a seed is out of scope, or there is none", hint="give URLs of this web that are in scope")
    walk.run([start for start in starts if start is not None])
    return walk.truth([start for start in dict.fromkeys(starts) if start is not None], damping)


class _Walk:
    """A breadth-first search in which aliases cost no step."""

    def __init__(self, pages: WebPages, crawler: PerfectCrawler, version: int, depth: int | None) -> None:
        self.pages, self.crawler, self.version, self.depth = pages, crawler, version, depth
        self.ids: dict[str, int] = {}
        self.urls: list[str] = []
        self.fates: dict[int, int] = {}
        self.reasons: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self.rows: dict[int, list[int]] = {}
        self.goals: dict[int, int] = {}

    def number(self, url: str) -> int | None:
        """Return the id of a URL, None if it is out of scope."""
        url = self.crawler.normalise(url) if self.crawler.normalise else url
        if url not in self.ids:
            if self.crawler.scope and not self.crawler.scope(url):
                return None
            self.ids[url] = len(self.urls)
            self.urls.append(url)
        return self.ids[url]

    def run(self, starts: list[int]) -> None:
        queue = deque((start, 0) for start in starts)
        done: set[int] = set()
        while queue:
            page, depth = queue.popleft()
            if page in done:
                continue
            done.add(page)
            place = self.pages.place(self.urls[page])
            if place.startswith(NOWHERE):
                self.kinds[page] = "nowhere"
                self._end(page, BLOCKED, "error")
                continue
            sheet = self.pages.sheet(place, self.version)
            self.kinds[page] = sheet.kind
            limit = ENDLESS if self.depth is None and sheet.kind == "calendar" else self.depth
            if limit is not None and depth > limit:
                self._end(page, BEYOND)
                continue
            self._look(page, sheet)
            if page in self.goals:
                queue.appendleft((self.goals[page], depth))
            queue.extend((goal, depth + 1) for goal in self.rows.get(page, ()))

    def _end(self, page: int, fate: int, reason: str = "") -> None:
        self.fates[page], self.reasons[page] = fate, reason

    def _look(self, page: int, sheet: Sheet) -> None:
        """Decide the fate of a page and note its links or where it moved."""
        crawler, plan = self.crawler, self.pages.plan
        host, _, rest = sheet.place.partition("/")
        self._end(page, FINE)
        if plan.role(host) in ("down", "reset"):
            self._end(page, BLOCKED, "error")
        elif not plan.robots_of(host).allows(crawler.agent, "/" + rest):
            self._end(page, BLOCKED, "robots")
        if self.fates[page] == BLOCKED and not crawler.behind:
            return
        if sheet.moved_to:
            goal = self.number(self.pages.url(sheet.moved_to))
            if goal is None:
                self._end(page, BLOCKED, "scope")
            elif self.fates[page] == FINE:
                self._move(page, goal)
            else:
                self.rows[page] = [goal]
            return
        if self.fates[page] == FINE:
            soft = sheet.kind == "soft-404" and crawler.soft_404
            if sheet.status >= 400 or soft or (sheet.kind == "returning" and not crawler.confirms):
                self._end(page, GONE)
                return
            if (goal := self._canonical(page, sheet)) is not None:
                self._move(page, goal)
                return
        whole = crawler.longest > self.pages.settings.huge_bytes + ENDS
        links = sheet.links + (sheet.tail if whole else ())
        goals = [self.number(self.pages.url(link.place)) for link in links if crawler.nofollow or not link.nofollow]
        self.rows[page] = [goal for goal in dict.fromkeys(goals) if goal is not None and goal != page]

    def _canonical(self, page: int, sheet: Sheet) -> int | None:
        """Return another page that a page names as canonical, if it is to be believed."""
        if not (self.crawler.canonical and sheet.canonical):
            return None
        if domain_of(sheet.canonical.partition("/")[0]) != domain_of(sheet.place.partition("/")[0]):
            return None
        goal = self.number(self.pages.url(sheet.canonical))
        return None if goal == page else goal

    def _move(self, page: int, goal: int) -> None:
        self._end(page, ALIAS)
        self.goals[page] = goal

    def truth(self, starts: list[int], damping: float) -> Truth:
        """Merge aliases and gather all that was found."""
        count = len(self.urls)
        stands_for = np.array([self._final(page) for page in range(count)], np.int64)
        rows = [np.sort(stands_for[self.rows.get(page, [])]) for page in range(count)]
        indptr = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
        graph = Graph(indptr, np.concatenate(rows).astype(np.int32), names=Names.of(self.urls))
        teleport = np.bincount(stands_for[starts], minlength=count) / len(starts)
        fates = np.array([self.fates[page] for page in range(count)], np.uint8)
        cut = bool((fates == BEYOND).any())
        return Truth(
            graph,
            tuple(self.urls),
            tuple(self.kinds[page] for page in range(count)),
            read_only(fates),
            tuple(self.reasons[page] for page in range(count)),
            read_only(stands_for),
            read_only(teleport),
            damping,
            (ENDLESS if self.depth is None else self.depth) if cut else None,
        )

    def _final(self, page: int) -> int:
        """Follow aliases to their end; those that go round in a circle are blocked."""
        path: dict[int, None] = {}
        while page in self.goals and page not in path:
            path[page] = None
            page = self.goals[page]
        if page in path:  # all from the first time it was met
            for member in list(path)[list(path).index(page) :]:
                del self.goals[member]
                self._end(member, BLOCKED, "loop")
        return page
