"""Ground truth of an embedded web: the graph that a perfect crawler would see, and the importance of its pages.

The crawler starts from seeds, retries transient failures, waits where it must, follows links in its scope, and sees
one version of the web. `PerfectCrawler` defines its policies. The graph is that of the ledger: links as fetched;
redirects (and canonical URLs of the same domain) are aliases, and a page that links to both URLs keeps both links;
pages that are gone have no links.

| status | pages | links |
|---|---|---|
| fetched | any status on the way | as fetched, distinct, in scope, without self-links and nofollow |
| gone | 404, 410 | none |
| blocked | robots.txt, host down, redirect loop or redirect out of scope | none (`behind`: the real ones) |
| redirected | redirects, canonical URLs | none; links to it count for its target |
| unknown | beyond the depth limit | not visited: any |

**Importance** is PageRank with teleport to the seeds, damping d. If no page is unknown, it is exact up to the error of
the ranking. (Blocked pages could have any links; this is the web in which they have the ones listed.) An endless web is
cut at depth D. Let ρ be the mass that unknown pages absorb if they pass none on. Then ρ ≤ d ** (D + 1), because a
random surfer there has followed D + 1 links since the last jump; and since each page keeps 1 − d of what it absorbs,
the fetched pages S of the graph hold

    settled(S) + (1 − d)·ρ(S)  ≤  coverage  ≤  settled(S) + (1 − d)·ρ(S) + d·ρ

for every continuation of the web. Both sides follow from one ranking x in which unknown pages have no links: with m
their share of it, ρ = m / (1 − d + d·m), settled = x · (1 − d·ρ), and (1 − d)·ρ_j likewise.
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
from surveyor.rank.pagerank import Ranking, pagerank
from surveyor.testing.web_content import Content, WebPages
from surveyor.testing.web_plan import NOWHERE, domain_of

STATUSES = ("fetched", "gone", "blocked", "redirected", "unknown")
FETCHED, GONE, BLOCKED, REDIRECTED, UNKNOWN = range(5)
CALENDAR_DEPTH = 60  # links from the seeds at which an endless calendar is cut, unless a depth is passed
TOLERANCE = 1e-12
LINK_BYTES = 1 << 16  # upper bound of the size of the links at both ends of a huge page


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfectCrawler:
    """Policies of the crawler that defines the ground truth; the defaults follow the definition of the ledger."""

    agent: str = "surveyor"  # product token for robots.txt
    scope: Callable[[str], bool] | None = None  # predicate of URLs in scope
    normalise: Callable[[str], str] | None = None  # maps equivalent URLs to one, e.g. by dropping ?sid=
    nofollow: bool = False  # whether links with rel=nofollow count
    canonical: bool = True  # whether canonical URLs of the same domain are followed
    confirms: bool = True  # whether a 404 is requested twice before the page counts as gone
    soft_404: bool = False  # whether soft 404 pages count as gone
    longest: int = 2_000_000  # size limit of a page in bytes; decides whether the last links of a huge page count
    behind: bool = False  # whether blocked pages keep their real links in the graph


@dataclass(frozen=True)
class Truth:
    """Ground truth of an embedded web: link graph, and status and importance of each URL."""

    graph: Graph  # multigraph; ids index `urls`
    urls: tuple[str, ...]
    kinds: tuple[str, ...]  # labels: ordinary, farm, …, calendar, soft-404, redirect, …
    statuses: ByteArray  # indices into `STATUSES`
    reasons: tuple[str, ...]  # of blocked pages: robots, error, loop or scope
    alias_of: IntArray  # canonical page of each page, often itself
    teleport: FloatArray  # uniform over the seeds
    damping: float
    depth: int | None  # at which the web was cut, if it was

    @cached_property
    def ids(self) -> dict[str, int]:
        """Id of each URL."""
        return {url: page for page, url in enumerate(self.urls)}

    @cached_property
    def importance(self) -> Ranking:
        """PageRank with teleport to the seeds; unknown pages have no links."""
        return pagerank(self.graph, self.damping, TOLERANCE, self.teleport)

    @property
    def exact(self) -> bool:
        """Whether the graph contains every reachable page."""
        return not bool((self.statuses == UNKNOWN).any())

    @property
    def unseen(self) -> float:
        """Mass ρ that unknown pages absorb."""
        share = float(self.importance.scores[self.statuses == UNKNOWN].sum())
        return share / (1 - self.damping + self.damping * share)

    @property
    def bound(self) -> float:
        """Upper bound of ρ: d ** (depth + 1), or 0."""
        return 0.0 if self.depth is None or self.exact else self.damping ** (self.depth + 1)

    def status(self, url: str) -> str:
        """Return the status of a URL: fetched, gone, blocked, redirected or unknown."""
        page = self.ids.get(url)
        return STATUSES[UNKNOWN if page is None else int(self.statuses[page])]

    def target(self, url: str) -> str:
        """Return the canonical URL of a URL."""
        return self.urls[int(self.alias_of[self.ids[url]])]

    def links(self, url: str) -> list[str]:
        """Return the URLs that a page links to."""
        return [self.urls[page] for page in self.graph.links_of(self.ids[url])]

    def coverage(self, fetched: Iterable[str]) -> tuple[float, float]:
        """Return lower and upper bounds of the importance of these pages; unknown URLs may hold any amount."""
        pages = {int(self.alias_of[self.ids[url]]) for url in fetched if url in self.ids}
        certain = self.importance.scores * (1 - self.damping * self.unseen)
        share = float(certain[sorted(pages)].sum())
        error = self.importance.error
        return max(0.0, share - error), min(1.0, share + self.damping * self.unseen + error)

    def __repr__(self) -> str:
        counts = ", ".join(f"{(self.statuses == code).sum():,} {name}" for code, name in enumerate(STATUSES))
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
    """Follow all links from the seeds to `depth`; by default only the endless calendar is cut."""
    search = _Search(pages, crawler or PerfectCrawler(), version, depth)
    starts = [search.number(url) for url in seeds]
    if not starts or None in starts:
        raise UsageError(
            "seeds must be URLs of this web in scope, got none or one out of scope", hint="see EmbeddedWeb.seeds"
        )
    search.run([start for start in starts if start is not None])
    return search.truth([start for start in dict.fromkeys(starts) if start is not None], damping)


class _Search:
    """Breadth-first search in which aliases cost no step."""

    def __init__(self, pages: WebPages, crawler: PerfectCrawler, version: int, depth: int | None) -> None:
        self.pages, self.crawler, self.version, self.depth = pages, crawler, version, depth
        self.ids: dict[str, int] = {}
        self.urls: list[str] = []
        self.statuses: dict[int, int] = {}
        self.reasons: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self.rows: dict[int, list[int]] = {}
        self.targets: dict[int, int] = {}

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
                self._set(page, BLOCKED, "error")
                continue
            content = self.pages.content(place, self.version)
            self.kinds[page] = content.kind
            limit = CALENDAR_DEPTH if self.depth is None and content.kind == "calendar" else self.depth
            if limit is not None and depth > limit:
                self._set(page, UNKNOWN)
                continue
            self._visit(page, content)
            if page in self.targets:
                queue.appendleft((self.targets[page], depth))
            queue.extend((target, depth + 1) for target in self.rows.get(page, ()))

    def _set(self, page: int, status: int, reason: str = "") -> None:
        self.statuses[page], self.reasons[page] = status, reason

    def _visit(self, page: int, content: Content) -> None:
        """Set the status of a page, and its links or redirect target."""
        crawler, plan = self.crawler, self.pages.plan
        host, _, rest = content.place.partition("/")
        self._set(page, FETCHED)
        if plan.role(host) in ("down", "reset"):
            self._set(page, BLOCKED, "error")
        elif not plan.robots_of(host).allows(crawler.agent, "/" + rest):
            self._set(page, BLOCKED, "robots")
        if self.statuses[page] == BLOCKED and not crawler.behind:
            return
        if content.redirect:
            target = self.number(self.pages.url(content.redirect))
            if target is None:
                self._set(page, BLOCKED, "scope")
            elif self.statuses[page] == FETCHED:
                self._redirect(page, target)
            else:
                self.rows[page] = [target]
            return
        if self.statuses[page] == FETCHED:
            soft = content.kind == "soft-404" and crawler.soft_404
            if content.status >= 400 or soft or (content.kind == "returning" and not crawler.confirms):
                self._set(page, GONE)
                return
            if (target := self._canonical(page, content)) is not None:
                self._redirect(page, target)
                return
        whole = crawler.longest > self.pages.settings.huge_bytes + LINK_BYTES
        links = content.links + (content.tail if whole else ())
        targets = [self.number(self.pages.url(link.place)) for link in links if crawler.nofollow or not link.nofollow]
        self.rows[page] = [target for target in dict.fromkeys(targets) if target is not None and target != page]

    def _canonical(self, page: int, content: Content) -> int | None:
        """Return the canonical page of a page, if it is another one on the same domain."""
        if not (self.crawler.canonical and content.canonical):
            return None
        if domain_of(content.canonical.partition("/")[0]) != domain_of(content.place.partition("/")[0]):
            return None
        target = self.number(self.pages.url(content.canonical))
        return None if target == page else target

    def _redirect(self, page: int, target: int) -> None:
        self._set(page, REDIRECTED)
        self.targets[page] = target

    def truth(self, starts: list[int], damping: float) -> Truth:
        """Merge aliases and return the ground truth."""
        count = len(self.urls)
        alias_of = np.array([self._final(page) for page in range(count)], np.int64)
        rows = [np.sort(alias_of[self.rows.get(page, [])]) for page in range(count)]
        indptr = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
        graph = Graph(indptr, np.concatenate(rows).astype(np.int32), names=Names.of(self.urls))
        teleport = np.bincount(alias_of[starts], minlength=count) / len(starts)
        statuses = np.array([self.statuses[page] for page in range(count)], np.uint8)
        cut = bool((statuses == UNKNOWN).any())
        return Truth(
            graph,
            tuple(self.urls),
            tuple(self.kinds[page] for page in range(count)),
            read_only(statuses),
            tuple(self.reasons[page] for page in range(count)),
            read_only(alias_of),
            read_only(teleport),
            damping,
            (CALENDAR_DEPTH if self.depth is None else self.depth) if cut else None,
        )

    def _final(self, page: int) -> int:
        """Follow aliases to the end; loops are blocked."""
        path: dict[int, None] = {}
        while page in self.targets and page not in path:
            path[page] = None
            page = self.targets[page]
        if page in path:  # the loop
            for member in list(path)[list(path).index(page) :]:
                del self.targets[member]
                self._set(member, BLOCKED, "loop")
        return page
