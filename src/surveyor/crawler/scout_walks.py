"""Independent random walks from the seeds, whose ends are a sample from importance, and a sample of unfetched URLs.

A walk starts at a seed drawn by its teleport weight. At each page it ends with probability 1 − d, else it follows a
random link; a page without links, or one that is gone, leads to a seed. Redirects are resolved first. So the page where
it ends is a random draw from PageRank with teleport to the seeds: the importance that a crawl captures. The number of
walks is fixed in advance, and none is dropped or replaced, so that their ends are independent and identically
distributed. A walk that needs an unfetched page, also at its end, waits for an ordinary visit of it.

After the walks, some of the known unfetched URLs are drawn, all with equal probability, and requested: how many of them
are pages gives a lower bound of the size of the site.

**State.** The walks are a function of the journal: an event `scout` has the random secret and the number of walks, an
event `scout_sample` the URLs drawn; the steps follow from the secret and the links as fetched. A page that is changed
or lost after it was fetched, or another scope, discards them.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.coverage_walks import hashed_unit
from surveyor.outcome import DISCARDING, NO_LINKS, Event, Outcome
from surveyor.stopping import ScoutProgress

if TYPE_CHECKING:
    from surveyor.crawler.ledger import Ledger
    from surveyor.crawler.loop import Crawl, Tally
    from surveyor.stopping import Scouted

START, STEP, END, DRAW = range(4)  # random numbers of a page of a walk, and of an unfetched URL
AT_ONCE = 10  # walks in progress, so that those before a limit have ended rather than all are half done
RESERVE = 2  # requests kept for each URL of the sample


class Walk(NamedTuple):
    """A walk: its pages in order, whether it has ended, and whether its last move followed a link."""

    pages: tuple[int, ...]
    ended: bool
    clicked: bool


class Drawn(NamedTuple):
    """A sample of the unfetched URLs: its pages, and the numbers of URLs and of fetched pages at that time."""

    pages: tuple[int, ...]
    unfetched: int
    fetched: int


class ScoutWalks:
    """The walks and the sample of one survey."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._jumps: FloatArray = np.cumsum(ledger.teleport)
        self.secret = ""
        self.sample_size = 0
        self._requests_before = 0
        self._paths: list[list[int]] = []
        self._next: list[int] = []  # page where each walk is, or for which it waits
        self._ended: list[bool] = []
        self._clicked: list[bool] = []
        self._waiting: dict[int, list[int]] = {}  # walks by the unfetched page that they wait for
        self.drawn: Drawn | None = None

    def apply_event(self, event: Event) -> None:
        """Update the state for an event, if it concerns the scout."""
        if event.kind == "scout":
            self.begin(event.detail)
        elif event.kind == "scout_sample":
            self.set_sample(event.detail)
        elif event.kind in DISCARDING:
            self.discard()

    def begin(self, detail: Mapping[str, Any]) -> None:
        """Start all walks of a new scout instead of the previous one; with another damping, start none."""
        self.discard()
        if detail["damping"] != self._ledger.damping:
            return
        self.secret, self.sample_size = detail["secret"], detail["sample"]
        self._requests_before = detail["requests"]
        for walk in range(detail["walks"]):
            self._paths.append([])
            self._ended.append(False)
            self._clicked.append(False)
            self._next.append(self._seed(hashed_unit(self.secret, walk, 0, START)))
            self._move(walk)

    def set_sample(self, detail: Mapping[str, Any]) -> None:
        """Record the URLs drawn."""
        if self.count:
            self.drawn = Drawn(tuple(detail["pages"]), detail["unfetched"], detail["fetched"])

    def discard(self) -> None:
        """Forget the scout, because what it found is no longer true."""
        for things in (self._paths, self._next, self._ended, self._clicked):
            things.clear()
        self._waiting.clear()
        self.secret, self.sample_size, self.drawn = "", 0, None

    def observe(self, outcome: Outcome, *, changed: bool) -> None:
        """Move the walks that wait for a page; `changed`: the page was fetched before, with other links or status."""
        if changed:
            self.discard()
        if outcome.kind != "blocked":
            for walk in self._waiting.pop(outcome.page, ()):
                self._move(walk)

    @property
    def count(self) -> int:
        """Number of walks."""
        return len(self._paths)

    @property
    def walks(self) -> list[Walk]:
        """The walks, in order."""
        return [Walk(tuple(path), self._ended[walk], self._clicked[walk]) for walk, path in enumerate(self._paths)]

    @property
    def unfinished(self) -> int:
        """Number of walks that wait for a page, which may be blocked."""
        return sum(map(len, self._waiting.values()))

    def is_walking(self, first: int | None = None) -> bool:
        """Return whether a walk, or one of the first, waits for a page that can be fetched."""
        before = self.count if first is None else first
        return any(self._is_queued(page) and min(walks) < before for page, walks in self._waiting.items())

    def progress(self, requests: int) -> ScoutProgress | None:
        """Return the progress after this many requests of the survey; None if there are no walks."""
        if not self.count:
            return None
        ended = self.drawn is not None and not any(map(self._is_queued, self.drawn.pages)) and not self.is_walking()
        return ScoutProgress(self.count, self.sample_size, ended, max(0, requests - self._requests_before))

    def wanted(self, held: Collection[int]) -> IdArray:
        """Return the pages to fetch: the sample, else those of the first walks, and those of `held` that walks need.

        The pages of `held` are retried later. They stay wanted, so that links found meanwhile do not change that.
        """
        sample = () if self.drawn is None else self.drawn.pages
        pages = [page for page in sample if self._is_queued(page)]
        if all(page in held for page in pages):
            ready = [(min(walks), page) for page, walks in self._waiting.items() if self._is_queued(page)]
            pages += [page for _, page in heapq.nsmallest(AT_ONCE, (one for one in ready if one[1] not in held))]
            pages += [page for _, page in ready if page in held]
        return np.array(sorted(set(pages)), np.int32) if pages else NO_LINKS

    def draw(self) -> dict[str, Any]:
        """Return the details of a sample of the known unfetched pages, without replacement."""
        pages = self._ledger.waiting.tolist()
        chosen = heapq.nsmallest(self.sample_size, pages, key=lambda page: hashed_unit(self.secret, page, 0, DRAW))
        return {"pages": sorted(chosen), "unfetched": len(pages), "fetched": self._ledger.read}

    def is_fetched(self, page: int) -> bool:
        """Return whether a page was fetched, is not gone, and is not an alias of another."""
        from surveyor.kernels.mass import FETCHED, STATUS

        return page < self._ledger.capacity and bool(self._ledger.mass.state[page] & STATUS == FETCHED)

    def _seed(self, drawn: float) -> int:
        seeds = self._ledger.seeds
        return int(seeds[min(int(np.searchsorted(self._jumps, drawn, "right")), seeds.size - 1)])

    def _is_queued(self, page: int) -> bool:
        from surveyor.kernels.mass import STATUS, WAITING

        return page < self._ledger.capacity and bool(self._ledger.mass.state[page] & STATUS == WAITING)

    def _move(self, walk: int) -> None:
        """Follow a walk until it ends or needs an unfetched page."""
        from surveyor.kernels import mass

        ledger, path = self._ledger, self._paths[walk]
        while True:
            page = int(mass.redirect_target(ledger.mass, self._next[walk]))
            status = int(ledger.mass.state[page] & mass.STATUS)
            if status not in (mass.FETCHED, mass.GONE):
                self._waiting.setdefault(page, []).append(walk)
                return
            step = len(path)
            path.append(page)
            if hashed_unit(self.secret, walk, step, END) < 1 - ledger.damping:
                self._ended[walk] = True
                return
            links = ledger.graph.links_of(page) if status == mass.FETCHED else NO_LINKS
            drawn = hashed_unit(self.secret, walk, step, STEP)
            self._clicked[walk] = bool(links.size)
            self._next[walk] = (
                int(links[min(int(drawn * links.size), links.size - 1)]) if links.size else self._seed(drawn)
            )


class ScoutPlan:
    """What a scout fetches next: the pages that its walks wait for, then a sample; no others."""

    exclusive = True  # no other pages are fetched while it waits for some

    def __init__(self, rule: Scouted, crawl: Crawl, tally: Tally) -> None:
        self._rule, self._tally = rule, tally
        self._crawl = crawl
        self.walking = True

    def next_events(self, now: float) -> list[Event]:
        """Return the event that starts the walks or draws the sample, and choose the pages to fetch."""
        walks, rule = self._crawl.scout, self._rule
        if walks is None:
            return []
        if (walks.count, walks.sample_size) != (rule.walks, rule.sample):
            detail = {"secret": self._tally.secret(), "damping": self._crawl.ledger.damping}
            limits = {"walks": rule.walks, "sample": rule.sample, "requests": self._tally.requests}
            return [Event("scout", now, detail | limits)]
        now_at = walks.progress(self._tally.requests)
        scarce = now_at is not None and rule.requests - now_at.requests <= RESERVE * rule.sample
        if walks.drawn is None and (scarce or not walks.is_walking()):
            return [Event("scout_sample", now, walks.draw())]
        self._crawl.frontier.prefer(walks.wanted(self._crawl.frontier.held))
        return []
