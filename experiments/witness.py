"""Whether what a crawl shows is true: a witness of every moment of it, who knows the whole web.

**The web of a moment** (`Moment`) is the one that the crawl has met so far: pages that were read have the links that
they had when they were read, pages found gone have none, all others are as they are in the first version of the web.
As long as nothing changes, that is the truth of `surveyor.testing` itself. Two things of an embedded web change: pages
that die after they were read, which only who reads them again can know, and links, when a new version begins. The
coverage of the pages read is a sum that follows the crawl page by page; PageRank is computed anew only when a page
has changed.

**What is checked** after every outcome:

- coverage lies between `at_least` and `at_most`, in the web as a perfect crawler would see it and in the web in which
  pages that may not be read have their real links; where a web has no end, coverage itself is an interval, and what is
  shown must not lie outside of it;
- the five accounts sum to 1, and no bound is out of order;
- the page is what the truth says: gone only if it is, moved only where it moves to, and its links are the real ones.

And now and then (`EVERY` outcomes, and at the end):

- the sum is that of `Truth.coverage`;
- coverage lies within the bounds also in webs made up against them, in which all pages that were not read (and are
  not gone), blocked ones too, lead into a trap without a way out; lead back to a page that was read; or are other
  addresses of that page.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.crawler.session import Run
from surveyor.graph.csr import Graph
from surveyor.kernels import mass
from surveyor.outcome import Outcome
from surveyor.rank.pagerank import pagerank
from surveyor.testing.web_plan import CALENDAR
from surveyor.testing.web_server import EmbeddedWeb
from surveyor.testing.web_truth import STATUSES, Truth
from surveyor.web.urls import host

TINY = 1e-9  # what rounding may be guilty of
EVERY = 100  # outcomes between two thorough looks
GOALS = (0.5, 0.8, 0.9)
FETCHED, GONE, BLOCKED, REDIRECTED, UNKNOWN = range(len(STATUSES))
NONE: IntArray = np.empty(0, np.int64)


class Moment:
    """The web that a crawl has met so far, and how much of its importance the pages read hold."""

    def __init__(self, versions: Sequence[Truth]) -> None:
        """Take the truth about a web, and after it what else is true of other versions; the first one has the seeds."""
        urls = tuple(dict.fromkeys(url for truth in versions for url in truth.urls))
        self.ids = {url: page for page, url in enumerate(urls)}
        self._rows: list[dict[int, IntArray]] = []  # of each version
        statuses, alias_of = np.full(len(urls), UNKNOWN, np.uint8), np.arange(len(urls))
        kinds = [""] * len(urls)
        for truth in reversed(versions):  # the first one counts, but for what it does not reach
            here = np.array([self.ids[url] for url in truth.urls])
            known = truth.statuses != UNKNOWN
            statuses[here[known]], alias_of[here] = truth.statuses[known], here[truth.alias_of]
            rows = [np.sort(here[truth.graph.links_of(page)]) for page in np.flatnonzero(known).tolist()]
            self._rows.insert(0, dict(zip(here[known].tolist(), rows, strict=True)))
            for page, kind in zip(here.tolist(), truth.kinds, strict=True):
                kinds[page] = kind
        self.statuses, self.alias_of, self.kinds = statuses, alias_of, kinds
        self._now = [next((rows[page] for rows in self._rows if page in rows), NONE) for page in range(len(urls))]
        teleport = np.zeros(len(urls))
        teleport[[self.ids[url] for url in versions[0].urls]] = versions[0].teleport
        self._like = replace(versions[0], urls=urls, alias_of=alias_of, teleport=teleport)
        self._read: Counter[int] = Counter()  # how many URLs of each page were read
        self._dead: set[int] = set()
        self._truth: Truth | None = None
        self._sure: FloatArray = np.empty(0)
        self._held = 0.0

    def read(self, url: str, links: Iterable[str]) -> bool:
        """Let a page have been read; say whether its links are those that it has in some version."""
        page = self._page(url)
        if page is None:
            return True
        goals = [self._page(link) for link in links]
        found = np.sort(np.array([-1 if goal is None else goal for goal in goals], np.int64))
        versions = [rows[page] for rows in self._rows if page in rows]
        if any(np.array_equal(found, row) for row in versions):
            self._set(page, found, FETCHED)
            return True
        return not versions  # of what is beyond, nothing is known

    def hold(self, url: str, change: int) -> None:
        """Count a page as read (1), or no longer (-1)."""
        page = self._page(url)
        if page is None:
            return
        before, after = self._read[page], self._read[page] + change
        self._read[page] = after
        if self._truth is not None and (before > 0) != (after > 0):
            self._held += math.copysign(self._sure[page], change)

    def bury(self, url: str) -> None:
        """Let a page be gone from now on."""
        page = self._page(url)
        if page is not None:
            self._dead.add(page)
            self._set(page, NONE, GONE)

    def interval(self) -> tuple[float, float]:
        """Return at least and at most what the pages read hold."""
        truth = self._ranked()
        error, unseen = truth.importance.error, truth.unseen
        return max(0.0, self._held - error), min(1.0, self._held + truth.damping * unseen + error)

    def slowly(self, urls: Iterable[str]) -> tuple[float, float]:
        """Return the same for these pages, in the plainest way."""
        return self._ranked().coverage(urls)

    def extremes(self) -> list[float]:
        """Return what the pages read hold if all others lead into a trap, lead back to one read, or are that one."""
        read = [page for page, count in self._read.items() if count > 0]
        if not read:
            return []
        scores, kept = self._ranked().importance.scores, self._dead.union(read)
        inside = [float(np.isin(self._now[page], read).mean()) if self._now[page].size else 0.5 for page in read]
        best = max(zip(inside, scores[read].tolist(), read, strict=True))[2]
        trap = len(self._now)
        same = np.array([page if page in kept else best for page in range(trap)])
        shares = []
        for goal, meant in ((trap, np.arange(trap)), (best, np.arange(trap)), (best, same)):
            rows = [meant[row] if page in kept else np.array([goal]) for page, row in enumerate(self._now)]
            teleport = np.bincount(meant, self._like.teleport, trap + 1)
            ranking = pagerank(_graph([*rows, np.array([trap])]), self._like.damping, 1e-11, teleport)
            shares.append(float(ranking.scores[read].sum()))
        return shares

    def _page(self, url: str) -> int | None:
        page = self.ids.get(url)
        return None if page is None else int(self.alias_of[page])

    def _set(self, page: int, row: IntArray, status: int) -> None:
        if status != self.statuses[page] or not np.array_equal(row, self._now[page]):
            self._now[page], self.statuses[page] = row, status
            self._truth = None

    def _ranked(self) -> Truth:
        if self._truth is None:
            self._truth = replace(self._like, graph=_graph(self._now), statuses=self.statuses.copy())
            self._sure = self._truth.importance.scores * (1 - self._truth.damping * self._truth.unseen)
            self._held = math.fsum(self._sure[page] for page, count in self._read.items() if count > 0)
        return self._truth


class Witness:
    """Watches one crawl; `violations` says what was not true."""

    def __init__(self, web: EmbeddedWeb, moments: Sequence[Moment], advance_at: int | None = None) -> None:
        """Compare with each of these webs; after so many outcomes a new version of the web begins."""
        self._web, self._moments, self._advance_at = web, moments, advance_at
        self._counted: set[int] = set()
        self.outcomes = self.looks = self.thorough = self.reads = 0
        self.kinds: Counter[str] = Counter()
        self.violations: list[str] = []
        self.margins = {"coverage": (math.inf, math.inf), "an extreme": (math.inf, math.inf)}  # to at_least, at_most
        self.reached: dict[float, int] = {}  # pages read when at_least came to a goal

    def __call__(self, run: Run, outcome: Outcome | None) -> None:
        """Look at a moment of a crawl."""
        if outcome is not None:
            self.outcomes += 1
            self.reads += outcome.kind == "fetched"
            self.kinds[outcome.kind] += 1
            self._learn(run, outcome)
            if self.outcomes == self._advance_at:
                self._web.advance()
        self.look(run, thorough=outcome is not None and self.outcomes % EVERY == 0)

    def look(self, run: Run, *, thorough: bool) -> None:
        """Compare what is shown with the truth."""
        self.looks += 1
        now = run.state.crawl.ledger.coverage()
        self.shown = now.at_least, now.at_most
        self._check(abs(now.captured + now.moving + now.waiting + now.blocked + now.lost - 1) <= TINY, f"sum of {now}")
        self._check(0 <= now.at_least <= now.at_most <= 1, f"order of {now}")
        for goal in GOALS:
            if now.at_least >= goal:
                self.reached.setdefault(goal, self.reads)
        self.true = self._moments[0].interval()
        for moment in self._moments:
            low, high = moment.interval()
            self._compare(low, high, "coverage")
            if thorough:
                for share in moment.extremes():
                    self._compare(share, share, "an extreme")
                urls, ledger = run.state.urls, run.state.crawl.ledger
                read = np.flatnonzero(ledger.state & mass.STATUS == mass.FETCHED)
                plainly = moment.slowly(urls[page] for page in read.tolist())
                self._check(np.allclose(plainly, (low, high), rtol=0, atol=TINY), f"sum {low} is {plainly[0]}")
        self.thorough += thorough

    def _compare(self, low: float, high: float, what: str) -> None:
        at_least, at_most = self.shown
        margins = high - at_least, at_most - low
        if self.reads:  # before, all are 0
            before = self.margins[what]
            self.margins[what] = min(before[0], margins[0]), min(before[1], margins[1])
        result = f"{what} {low:.9f}..{high:.9f} outside {at_least:.9f}..{at_most:.9f}"
        self._check(min(margins) >= -TINY, result)

    def _learn(self, run: Run, outcome: Outcome) -> None:
        """Follow what happened, and compare it with what is there."""
        urls, page = run.state.urls, outcome.page
        url, ledger = urls[page], run.state.crawl.ledger
        status, links = self._status(url), [urls[link] for link in outcome.links.tolist()]
        dies = self._web.pages.place(url) in self._web.plan.dying
        if outcome.kind == "fetched":
            self._check(status == "fetched" or self._endless(url), f"{url} was read and is {status}")
        elif outcome.kind == "gone":
            self._check(status == "gone" or dies, f"{url} was found gone and is {status}")
        elif outcome.kind == "redirected":
            self._check(status == "redirected" or "/loop/" in url, f"{url} was found moved and is {status}")
        for moment in self._moments:
            if outcome.kind == "gone":
                moment.bury(url)
            elif outcome.kind == "fetched":
                self._check(moment.read(url, links), f"other links on {url}: {links}")
        counts = bool(ledger.state[page] & mass.STATUS == mass.FETCHED)
        if counts != (page in self._counted):
            self._counted ^= {page}
            for moment in self._moments:
                moment.hold(url, 1 if counts else -1)

    def _status(self, url: str) -> str:
        moment = self._moments[0]
        page = moment.ids.get(url)
        return "unknown" if page is None else STATUSES[moment.statuses[page]]

    def _endless(self, url: str) -> bool:
        return host(url) == CALENDAR and self._status(url) == "unknown"

    def _check(self, true: bool, problem: str) -> None:  # noqa: FBT001
        if not true:
            self.violations.append(f"after {self.outcomes} outcomes: {problem}")


def trespasses(web: EmbeddedWeb, agent: str = "surveyor") -> list[str]:
    """Return what was asked for although robots.txt forbids it, or could not be read."""
    found = []
    for request in web.log:
        shut = web.plan.role(request.host) in ("down", "reset")
        allowed = web.plan.robots_of(request.host).allows(agent, request.path)
        if request.path != "/robots.txt" and (shut or not allowed):
            found.append(f"asked {request.host} for {request.path}")
    return found


def _graph(rows: Sequence[IntArray]) -> Graph:
    indptr = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
    return Graph(indptr, np.concatenate(rows).astype(np.int32))
