"""Random histories of pages, and the invariants of the ledger after every event."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import strategies as st

from oracles import Array, importance_from_each, merged_links
from surveyor.crawler.ledger import Ledger, PushOptions
from surveyor.graph.growing import GrowingGraph
from surveyor.kernels import mass as accounts
from surveyor.kernels import mass as closing
from surveyor.outcome import Kind, Outcome

LIVES = {
    "unknown": accounts.UNKNOWN,
    "waiting": accounts.WAITING,
    "fetched": accounts.FETCHED,
    "blocked": accounts.BLOCKED,
    "dead": accounts.GONE,
    "alias": accounts.REDIRECTED,
}


@dataclass(frozen=True)
class Event:
    kind: str  # of an outcome, or "sweep", or "close"
    page: int = 0
    links: tuple[int, ...] = ()
    target: int = -1


@dataclass
class Crawl:
    """Graph and ledger, updated as in the crawl loop, and an obvious model of the same events."""

    ledger: Ledger
    life: dict[int, str] = field(default_factory=dict)
    links: dict[int, list[int]] = field(default_factory=dict)  # of pages read
    alias: dict[int, int] = field(default_factory=dict)
    corrected: bool = False  # a page that had been read, or was gone, turned out to be different
    least: float = 0.0

    def __post_init__(self) -> None:
        self.life = {int(seed): "waiting" for seed in self.ledger.seeds}

    @property
    def graph(self) -> GrowingGraph:
        return self.ledger.graph

    def happen(self, event: Event) -> None:
        if event.kind == "sweep":
            self.ledger.sweep()
        elif event.kind == "close":
            self.ledger.close()
        else:
            apply_event(self.ledger, event)
            self._note(event)

    def stands_for(self, page: int) -> int:
        while page in self.alias:
            page = self.alias[page]
        return page

    def _note(self, event: Event) -> None:
        page, life = event.page, self.life.get(event.page, "unknown")
        if life == "alias":
            return
        if event.kind == "blocked":
            if life in ("unknown", "waiting"):
                self.life[page] = "blocked"
            return
        if life == "fetched":
            self.corrected |= event.kind != "fetched" or self.links[page] != list(event.links)
        elif life == "dead":
            self.corrected |= event.kind != "gone"
        self.links.pop(page, None)
        if event.kind == "fetched":
            self.life[page] = "fetched"
            self.links[page] = list(event.links)
            for link in event.links:
                self.life.setdefault(link, "waiting")
        elif event.kind == "gone":
            self.life[page] = "dead"
        else:
            self.life.setdefault(page, "waiting")
            self.life.setdefault(event.target, "waiting")
            if (target := self.stands_for(event.target)) == page:
                self.life[page] = "blocked"
            else:
                self.life[page], self.alias[page] = "alias", target

    def pages(self, life: str) -> list[int]:
        return sorted(page for page, its in self.life.items() if its == life)


def apply_event(ledger: Ledger, event: Event) -> None:
    """Apply an event to a ledger as the crawl loop does."""
    kinds: dict[str, Kind] = {"fetched": "fetched", "gone": "gone", "blocked": "blocked", "redirected": "redirected"}
    kind, links = kinds[event.kind], np.array(event.links, np.int32)
    old = ledger.graph.links_of(event.page) if kind == "blocked" else ledger.graph.put(event.page, links)
    ledger.observe(Outcome(event.page, kind, links, target=event.target), old)


def read(ledger: Ledger, page: int, *links: int) -> None:
    apply_event(ledger, Event("fetched", page, links))


def new_crawl(seeds: Sequence[int], *, damping: float = 0.85, **options: float) -> Crawl:
    push = PushOptions(**options)  # type: ignore[arg-type]
    return Crawl(Ledger(GrowingGraph(), seeds, damping=damping, push=push))


# --- invariants after every event ---


def check_lives(crawl: Crawl, size: int) -> None:
    lives = [crawl.life.get(page, "unknown") for page in range(size)]
    assert (crawl.ledger.state[:size] & accounts.STATUS).tolist() == [LIVES[life] for life in lives]
    assert crawl.ledger.known == len(crawl.life)
    assert crawl.ledger.read == lives.count("fetched")
    assert crawl.ledger.waiting.tolist() == crawl.pages("waiting")


def check_accounts(crawl: Crawl) -> None:
    now, mass = crawl.ledger.coverage(), crawl.ledger.mass
    parts = [now.captured, now.moving, now.waiting, now.blocked, now.lost]
    assert abs(math.fsum(parts) - 1.0) <= 1e-12
    residual = {life: math.fsum(mass.residual[crawl.pages(life)]) for life in LIVES}
    settled = {life: math.fsum(mass.settled[crawl.pages(life)]) for life in ("fetched", "dead", "waiting", "blocked")}
    pool = accounts.total(mass, accounts.POOL)
    assert now.captured == pytest.approx(settled["fetched"], abs=1e-12)
    assert now.moving == pytest.approx(residual["fetched"] + pool, abs=1e-12)
    assert now.waiting == pytest.approx(residual["waiting"], abs=1e-12)
    assert now.blocked == pytest.approx(residual["blocked"], abs=1e-12)
    assert now.lost == pytest.approx(settled["dead"] + residual["dead"], abs=1e-12)
    assert settled["waiting"] == settled["blocked"] == residual["alias"] == residual["unknown"] == 0.0
    negative = -math.fsum(np.minimum(mass.residual, 0.0))
    assert accounts.total(mass, accounts.NEGATIVE) == pytest.approx(negative, abs=1e-12)
    assert 0.0 <= now.at_least <= now.at_most + 1e-12 <= 1.0 + 1e-12
    if not crawl.corrected:
        assert min(parts) >= -1e-12
        assert negative == 0.0
        assert now.at_least >= crawl.least - 1e-12
    crawl.least = now.at_least


def check_levels(crawl: Crawl) -> None:
    mass = crawl.ledger.mass
    residuals = [float(mass.residual[page]) for page in crawl.pages("waiting")]
    levels = [level(residual) for residual in residuals if residual > 0]
    assert mass.levels.tolist() == np.bincount(levels, minlength=accounts.LEVELS).tolist()
    top, largest = closing.top_waiting(mass), max(residuals, default=0.0)
    if 2.0**-accounts.DEEPEST <= largest < 16.0:  # a page that had much and moved may make another wait with more
        assert top <= largest < top * (1 + 1 / accounts.STEPS)
    elif largest <= 0.0:
        assert top == 0.0


def level(residual: float) -> int:
    fraction, exponent = math.frexp(residual)
    place = accounts.STEPS * (exponent - 1 + accounts.DEEPEST) + math.floor((2 * fraction - 1) * accounts.STEPS)
    return min(max(place, 0), int(accounts.LEVELS) - 1)


def completions(crawl: Crawl, size: int, rng: np.random.Generator) -> Iterator[dict[int, list[int]]]:
    """Possible links of unfetched pages: helpful, hostile, random."""
    pages = [page for page in range(size) if crawl.life.get(page, "unknown") in ("unknown", "waiting", "blocked")]
    read, trap = crawl.pages("fetched"), size - 1  # nothing links to the last page yet
    yield {}
    yield {page: [page] for page in pages}
    yield {page: [trap] for page in pages}
    yield dict.fromkeys(pages, pages)
    yield dict.fromkeys(pages, read)
    yield dict.fromkeys(pages, read[:1])
    yield {page: rng.integers(0, size, rng.integers(0, 5)).tolist() for page in pages}


def check_truth(crawl: Crawl, size: int, rng: np.random.Generator) -> None:
    ledger, now, mass = crawl.ledger, crawl.ledger.coverage(), crawl.ledger.mass
    stands_for = [crawl.stands_for(page) for page in range(size)]
    teleport = np.zeros(size)
    for seed, share in zip(ledger.seeds, ledger.teleport, strict=True):
        teleport[stands_for[seed]] += share
    settled, residual = mass.settled[:size].copy(), mass.residual[:size]
    settled[crawl.pages("alias")] = 0.0
    jumps = residual + accounts.total(mass, accounts.POOL) * teleport
    for guess in completions(crawl, size, rng):
        importance = importance_from_each(merged_links(crawl.links | guess, stands_for), ledger.damping, teleport)
        exact = teleport @ importance
        assert np.abs(settled + jumps @ importance - exact).max() <= 1e-9
        assert now.at_least - 1e-9 <= exact[crawl.pages("fetched")].sum() <= now.at_most + 1e-9


def check_touched(crawl: Crawl, before: Array, known: set[int]) -> None:
    touched, residual = crawl.ledger.touched.tolist(), crawl.ledger.residual
    waiting = crawl.pages("waiting")
    changed = {page for page in waiting if page not in known or page >= before.size or residual[page] != before[page]}
    assert changed <= set(touched) <= set(waiting)
    assert len(touched) == len(set(touched))


def check_closed(ledger: Ledger) -> None:
    """Check that no residual of a settled page exceeds the threshold."""
    mass, state = ledger.mass, ledger.state & accounts.STATUS
    settled = (state == accounts.FETCHED) | (state == accounts.GONE)
    threshold = mass.rules[accounts.THRESHOLD]
    assert np.abs(mass.residual[settled]).max(initial=0.0) <= threshold
    assert abs(accounts.total(mass, accounts.POOL)) * ledger.teleport.max() <= threshold


# --- random histories of small webs ---


@st.composite
def lives(draw: st.DrawFn) -> tuple[int, Ledger, list[Event]]:
    size = draw(st.integers(2, 14))
    page = st.integers(0, size - 1)
    links = st.lists(page, max_size=5, unique=True)
    kind = st.sampled_from(["fetched"] * 6 + ["gone"] * 2 + ["blocked", "sweep", "close"] + ["redirected"] * 2)
    seeds = draw(st.lists(page, min_size=1, max_size=3))
    weights = draw(st.none() | st.lists(st.floats(0.01, 5), min_size=len(seeds), max_size=len(seeds)))
    ledger = Ledger(
        GrowingGraph(draw(st.sampled_from([1, 1024])), draw(st.sampled_from([1, 4096]))),
        seeds,
        weights,
        damping=draw(st.sampled_from([0.85, 0.05, 0.5, 0.95])),
        push=PushOptions(
            closure=draw(st.sampled_from([0.1, 1.0, 0.01])),
            eager=draw(st.booleans()),
            effort=draw(st.sampled_from([math.inf, 3.0, 0.0])),
            precision=draw(st.sampled_from([1e-4, 1e-10])),
        ),
    )
    events = []
    for what, where, found, target in draw(st.lists(st.tuples(kind, page, links, page), max_size=30)):
        targets = tuple(link for link in found if link != where) if what == "fetched" else ()
        events.append(Event(what, where, targets, target if what == "redirected" else -1))
    return size, ledger, events
