"""The ledger against dense solves, whatever happens to the pages and wherever unread pages may lead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surveyor as sv
from oracles import Array, importance_from_each, merged_links
from surveyor import Graph
from surveyor import ledger as ledger_module
from surveyor.errors import UsageError
from surveyor.graph.growing import GrowingGraph
from surveyor.kernels import closure as closing
from surveyor.kernels import mass as accounts
from surveyor.ledger import CoverageInterval, Ledger
from surveyor.outcome import Kind, Outcome
from webs import graphs, random_web

LIVES = {
    "unknown": accounts.UNKNOWN,
    "waiting": accounts.WAITING,
    "read": accounts.READ,
    "blocked": accounts.BLOCKED,
    "dead": accounts.DEAD,
    "alias": accounts.ALIAS,
}


@dataclass(frozen=True)
class Event:
    kind: str  # of an outcome, or "sweep", or "close"
    page: int = 0
    links: tuple[int, ...] = ()
    target: int = -1


@dataclass
class Crawl:
    """A graph and a ledger, fed as the loop feeds them, beside an obvious account of the same events."""

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
            tell(self.ledger, event)
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
        if life == "read":
            self.corrected |= event.kind != "read" or self.links[page] != list(event.links)
        elif life == "dead":
            self.corrected |= event.kind != "gone"
        self.links.pop(page, None)
        if event.kind == "read":
            self.life[page] = "read"
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


def tell(ledger: Ledger, event: Event) -> None:
    """Do what the loop does with an outcome."""
    kinds: dict[str, Kind] = {"read": "read", "gone": "gone", "blocked": "blocked", "moved": "moved"}
    kind, links = kinds[event.kind], np.array(event.links, np.int32)
    old = ledger.graph.links_of(event.page) if kind == "blocked" else ledger.graph.put(event.page, links)
    ledger.observe(Outcome(event.page, kind, links, target=event.target), old)


def read(ledger: Ledger, page: int, *links: int) -> None:
    tell(ledger, Event("read", page, links))


def new_crawl(seeds: Sequence[int], **options: float) -> Crawl:
    return Crawl(Ledger(GrowingGraph(), seeds, **options))  # type: ignore[arg-type]


# --- what must hold after every event ---


def check_lives(crawl: Crawl, size: int) -> None:
    lives = [crawl.life.get(page, "unknown") for page in range(size)]
    assert (crawl.ledger.state[:size] & accounts.LIFE).tolist() == [LIVES[life] for life in lives]
    assert crawl.ledger.known == len(crawl.life)
    assert crawl.ledger.read == lives.count("read")
    assert crawl.ledger.waiting.tolist() == crawl.pages("waiting")


def check_accounts(crawl: Crawl) -> None:
    now, mass = crawl.ledger.coverage(), crawl.ledger.mass
    parts = [now.captured, now.moving, now.waiting, now.blocked, now.lost]
    assert abs(math.fsum(parts) - 1.0) <= 1e-12
    residual = {life: math.fsum(mass.residual[crawl.pages(life)]) for life in LIVES}
    settled = {life: math.fsum(mass.settled[crawl.pages(life)]) for life in ("read", "dead", "waiting", "blocked")}
    pool = accounts.total(mass, accounts.POOL)
    assert now.captured == pytest.approx(settled["read"], abs=1e-12)
    assert now.moving == pytest.approx(residual["read"] + pool, abs=1e-12)
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
    """Links that the pages of which nothing is known might have: helpful, hostile, any."""
    pages = [page for page in range(size) if crawl.life.get(page, "unknown") in ("unknown", "waiting", "blocked")]
    read, trap = crawl.pages("read"), size - 1  # nothing links to the last page yet
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
        assert now.at_least - 1e-9 <= exact[crawl.pages("read")].sum() <= now.at_most + 1e-9


def check_touched(crawl: Crawl, before: Array, known: set[int]) -> None:
    touched, residual = crawl.ledger.touched.tolist(), crawl.ledger.residual
    waiting = crawl.pages("waiting")
    changed = {page for page in waiting if page not in known or page >= before.size or residual[page] != before[page]}
    assert changed <= set(touched) <= set(waiting)
    assert len(touched) == len(set(touched))


def check_closed(ledger: Ledger) -> None:
    """Nothing that may be pushed exceeds the threshold that is in force."""
    mass, state = ledger.mass, ledger.state & accounts.LIFE
    settled = (state == accounts.READ) | (state == accounts.DEAD)
    threshold = mass.rules[accounts.THRESHOLD]
    assert np.abs(mass.residual[settled]).max(initial=0.0) <= threshold
    assert abs(accounts.total(mass, accounts.POOL)) * ledger.teleport.max() <= threshold


# --- random lives of small webs ---


@st.composite
def lives(draw: st.DrawFn) -> tuple[int, Ledger, list[Event]]:
    size = draw(st.integers(2, 14))
    page = st.integers(0, size - 1)
    links = st.lists(page, max_size=5, unique=True)
    kind = st.sampled_from(["read"] * 6 + ["gone"] * 2 + ["blocked", "sweep", "close"] + ["moved"] * 2)
    seeds = draw(st.lists(page, min_size=1, max_size=3))
    weights = draw(st.none() | st.lists(st.floats(0.01, 5), min_size=len(seeds), max_size=len(seeds)))
    ledger = Ledger(
        GrowingGraph(draw(st.sampled_from([1, 1024])), draw(st.sampled_from([1, 4096]))),
        seeds,
        weights,
        damping=draw(st.sampled_from([0.85, 0.05, 0.5, 0.95])),
        closure=draw(st.sampled_from([0.1, 1.0, 0.01])),
        eager=draw(st.booleans()),
        effort=draw(st.sampled_from([math.inf, 3.0, 0.0])),
        precision=draw(st.sampled_from([1e-4, 1e-10])),
    )
    events = []
    for what, where, found, target in draw(st.lists(st.tuples(kind, page, links, page), max_size=30)):
        targets = tuple(link for link in found if link != where) if what == "read" else ()
        events.append(Event(what, where, targets, target if what == "moved" else -1))
    return size, ledger, events


@settings(deadline=None, max_examples=150)
@given(lives(), st.integers(0, 2**32 - 1))
def test_every_bound_holds_whatever_happens(life: tuple[int, Ledger, list[Event]], seed: int) -> None:
    size, ledger, events = life
    crawl, rng = Crawl(ledger), np.random.default_rng(seed)
    for event in [Event("sweep"), *events]:
        crawl.happen(event)
        check_lives(crawl, size + 1)
        check_accounts(crawl)
        check_levels(crawl)
        check_truth(crawl, size + 1, rng)


@settings(deadline=None, max_examples=200)
@given(lives())
def test_accounts_and_levels_hold_whatever_happens(life: tuple[int, Ledger, list[Event]]) -> None:
    size, ledger, events = life
    crawl = Crawl(ledger)
    for event in events:
        crawl.happen(event)
        check_lives(crawl, size)
        check_accounts(crawl)
        check_levels(crawl)


@settings(deadline=None, max_examples=200)
@given(lives(), st.sampled_from([1 << 16, 0, 1, 3]))
def test_touched_names_every_waiting_page_that_changed(life: tuple[int, Ledger, list[Event]], room: int) -> None:
    _, ledger, events = life
    ledger.mass = ledger.mass._replace(touched=np.empty(room, np.int32))
    ledger.mass.counts[accounts.COUNT] = 0
    ledger.mass.state[:] &= np.uint8(255 - accounts.TOUCHED)
    crawl = Crawl(ledger)
    for event in events:
        before, known = crawl.ledger.residual.copy(), set(crawl.life)
        crawl.happen(event)
        check_touched(crawl, before, known)


def test_touched_overflows_into_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "TOUCHED", 2)
    crawl = new_crawl([0])
    assert crawl.ledger.touched.tolist() == [0]
    read(crawl.ledger, 0, 1, 2, 3)
    assert crawl.ledger.touched.tolist() == [1, 2, 3]
    read(crawl.ledger, 1, 4)
    assert crawl.ledger.touched.tolist() == [4]
    read(crawl.ledger, 2)
    read(crawl.ledger, 3, 0)
    assert crawl.ledger.touched.tolist() == [4]


def test_touched_is_a_copy() -> None:
    crawl = new_crawl([0])
    read(crawl.ledger, 0, 1, 2)
    touched = crawl.ledger.touched
    read(crawl.ledger, 1, 3, 4)
    assert sorted(touched.tolist()) == [1, 2]


@settings(deadline=None, max_examples=150)
@given(lives())
def test_closure_leaves_nothing_above_its_threshold(life: tuple[int, Ledger, list[Event]]) -> None:
    _, ledger, events = life
    ledger.mass.rules[accounts.EAGER] = 1.0
    ledger.mass.rules[accounts.EFFORT] = math.inf
    crawl = Crawl(ledger)
    mass = ledger.mass
    for event in events:
        ignored = crawl.life.get(event.page) == "alias" or event.kind in ("blocked", "sweep")
        circle = event.kind == "moved" and crawl.stands_for(event.target) == event.page
        work, threshold = mass.counts[accounts.WORK], mass.rules[accounts.THRESHOLD]
        crawl.happen(event)
        if (ignored or circle) and event.kind != "close":
            continue
        check_closed(ledger)
        largest = max((ledger.residual[page] for page in crawl.pages("waiting")), default=0.0)
        wanted = max(mass.rules[accounts.CLOSURE] * largest, mass.rules[accounts.PRECISION] / ledger.known)
        late = closing.SCAN_EVERY * work < mass.counts[accounts.SETTLED] and threshold == mass.rules[accounts.THRESHOLD]
        if not (crawl.corrected or late):  # only corrections lower what waits while pages are closed
            assert mass.rules[accounts.THRESHOLD] * closing.SLACK <= wanted
    ledger.close()
    check_closed(ledger)
    if not crawl.corrected:
        largest = max((ledger.residual[page] for page in crawl.pages("waiting")), default=0.0)
        wanted = max(mass.rules[accounts.CLOSURE] * largest, mass.rules[accounts.PRECISION] / ledger.known)
        assert mass.rules[accounts.THRESHOLD] <= wanted


@settings(deadline=None, max_examples=100)
@given(lives())
def test_a_lazy_ledger_pushes_nothing_by_itself(life: tuple[int, Ledger, list[Event]]) -> None:
    _, ledger, events = life
    ledger.mass.rules[accounts.EAGER] = 0.0
    crawl = Crawl(ledger)
    for event in events:
        if event.kind not in ("sweep", "close"):
            crawl.happen(event)
    assert crawl.ledger.coverage().captured == 0.0
    assert crawl.ledger.coverage().lost == math.fsum(crawl.ledger.residual[crawl.pages("dead")])


@settings(deadline=None, max_examples=60)
@given(lives())
def test_the_lower_bound_is_reached_when_all_unread_pages_are_traps(life: tuple[int, Ledger, list[Event]]) -> None:
    size, ledger, events = life
    crawl = Crawl(ledger)
    for event in events:
        crawl.happen(event)
    for _ in range(300):  # at damping 0.95: what moves is below 1e-6
        ledger.sweep()
    stands_for = [crawl.stands_for(page) for page in range(size)]
    teleport = np.zeros(size)
    for seed, share in zip(ledger.seeds, ledger.teleport, strict=True):
        teleport[stands_for[seed]] += share
    traps = {page: [page] for page in range(size) if page not in crawl.links and crawl.life.get(page) != "dead"}
    exact = teleport @ importance_from_each(merged_links(crawl.links | traps, stands_for), ledger.damping, teleport)
    at_least = ledger.coverage().at_least
    assert exact[crawl.pages("read")].sum() == pytest.approx(at_least, abs=2e-5)
    assert ledger.coverage().moving == pytest.approx(0.0, abs=2e-6)


@settings(deadline=None, max_examples=100)
@given(graphs(), st.sampled_from([1e-4, 1e-8]))
def test_a_web_read_to_the_end_leaves_no_more_than_precision(web: Graph, precision: float) -> None:
    """FAILS on 0 -> 1, both read: the pass that the fallen threshold needs is put off for ever."""
    crawl = new_crawl([0], precision=precision)
    while crawl.pages("waiting"):
        page = crawl.pages("waiting")[0]
        crawl.happen(Event("read", page, tuple(web.links_of(page).tolist())))
    assert crawl.ledger.coverage().moving <= 2 * precision  # half on pages, half in the pool
    assert crawl.ledger.coverage().at_least >= 1 - 2 * precision


@settings(deadline=None, max_examples=50)
@given(graphs(), st.sampled_from([1e-4, 1e-8]), st.booleans(), st.sampled_from([math.inf, 3.0]))
def test_closing_a_web_read_to_the_end_leaves_precision(
    web: Graph, precision: float, eager: bool, effort: float
) -> None:
    crawl = new_crawl([0], precision=precision, eager=eager, effort=effort)
    while crawl.pages("waiting"):
        page = crawl.pages("waiting")[0]
        crawl.happen(Event("read", page, tuple(web.links_of(page).tolist())))
    crawl.ledger.close()
    assert crawl.ledger.coverage().moving <= 2 * precision


# --- closed forms ---


@pytest.mark.parametrize("damping", [0.5, 0.85, 0.95])
def test_a_chain_of_k_pages_captures_all_but_the_kth_power_of_damping(damping: float) -> None:
    crawl = new_crawl([0], damping=damping)
    for page in range(60):
        read(crawl.ledger, page, page + 1)
        now = crawl.ledger.coverage()
        assert now.captured == pytest.approx(1 - damping ** (page + 1), abs=1e-12)
        assert now.waiting == pytest.approx(damping ** (page + 1), abs=1e-12)
        assert now.at_most == pytest.approx(1 - (1 - damping) * damping ** (page + 1), abs=1e-12)


def test_a_star_that_leads_back() -> None:
    d, leaves = 0.85, 8
    crawl = new_crawl([0], precision=1e-13)
    read(crawl.ledger, 0, *range(1, leaves + 1))
    assert crawl.ledger.coverage().captured == pytest.approx(1 - d, abs=1e-15)
    for leaf in range(1, leaves + 1):
        read(crawl.ledger, leaf, 0)
    now = crawl.ledger.coverage()
    assert now.captured == pytest.approx(1.0, abs=1e-12)
    centre = float(crawl.ledger.mass.settled[0])
    assert centre == pytest.approx(1 / (1 + d), abs=1e-12)
    assert crawl.ledger.importance()[1:9] == pytest.approx(np.full(8, d / (1 + d) / leaves), abs=1e-12)


def test_two_pages_that_link_to_each_other() -> None:
    d = 0.85
    crawl = new_crawl([0], precision=1e-14)
    read(crawl.ledger, 0, 1)
    read(crawl.ledger, 1, 0)
    assert crawl.ledger.importance()[:2] == pytest.approx([1 / (1 + d), d / (1 + d)], abs=1e-12)


def test_a_dead_seed_keeps_its_share_as_lost() -> None:
    crawl = new_crawl([0, 1], precision=1e-14)
    tell(crawl.ledger, Event("gone", 0))
    read(crawl.ledger, 1)
    now = crawl.ledger.coverage()
    assert now.captured == pytest.approx(0.5, abs=1e-12)
    assert now.lost == pytest.approx(0.5, abs=1e-12)
    assert now.at_least == pytest.approx(now.at_most, abs=1e-12)


def test_links_to_both_names_of_a_page_count_twice() -> None:
    crawl = new_crawl([0])
    read(crawl.ledger, 0, 1, 2, 3)
    tell(crawl.ledger, Event("moved", 1, target=2))
    assert crawl.ledger.residual[[1, 2, 3]] == pytest.approx([0, 0.85 * 2 / 3, 0.85 / 3])


# --- room, order, bytes ---


def contents(ledger: Ledger, size: int) -> tuple[bytes, ...]:
    mass = ledger.mass
    arrays = mass.residual[:size], mass.settled[:size], mass.state[:size], mass.totals, mass.rules, mass.levels
    return tuple(array.tobytes() for array in arrays)


@settings(deadline=None, max_examples=60)
@given(lives(), st.integers(1, 5))
def test_room_changes_nothing(life: tuple[int, Ledger, list[Event]], spread: int) -> None:
    """Ids far beyond the first capacity: the same bytes as with room for all from the start."""
    size, model, events = life
    names = np.arange(size) * 700 * spread
    rules = model.mass.rules

    def run(room: int) -> Ledger:
        graph = GrowingGraph(1, 1)
        graph.size = room
        ledger = Ledger(
            graph,
            names[model.seeds].astype(np.int32),
            model.teleport,
            damping=model.damping,
            closure=float(rules[accounts.CLOSURE]),
            eager=bool(rules[accounts.EAGER]),
            effort=float(rules[accounts.EFFORT]),
            precision=float(rules[accounts.PRECISION]),
        )
        graph.size = 0
        crawl = Crawl(ledger)
        for event in events:
            links = tuple(int(names[link]) for link in event.links)
            target = int(names[event.target]) if event.kind == "moved" else -1
            crawl.happen(Event(event.kind, int(names[event.page]), links, target))
            check_accounts(crawl)
        return ledger

    small, large = run(0), run(100_000)
    shared = min(small.capacity, large.capacity)
    assert contents(small, shared) == contents(large, shared)


def test_events_may_name_pages_far_beyond_all_others() -> None:
    for kind in ("blocked", "gone", "moved", "read"):
        crawl = new_crawl([0])
        crawl.happen(Event(kind, 70_000, target=90_000 if kind == "moved" else -1))
        check_lives(crawl, crawl.ledger.capacity)
        check_accounts(crawl)


def test_the_lower_bound_is_never_above_the_upper_not_even_by_rounding() -> None:
    """FAILS: at_least is 1 + 9e-16 here, and at_most is 1."""
    crawl = new_crawl([0], precision=1e-17)
    for page, links in ((1, ()), (0, ()), (0, (1,))):
        read(crawl.ledger, page, *links)
    now = crawl.ledger.coverage()
    assert now.at_least <= now.at_most <= 1.0


# --- more pages than the ring and the list of early pages hold ---


def read_all(ledger: Ledger, web: Graph, order: Sequence[int]) -> None:
    for page in order:
        links = web.links_of(page)
        ledger.observe(Outcome(page, "read", links), ledger.graph.put(page, links))


@pytest.mark.compiled
def test_a_larger_web_is_accounted_for_exactly() -> None:
    web = random_web(80_000, 320_000, seed=3)
    seeds = np.arange(0, 60_000, 3_000, dtype=np.int32)
    teleport = np.zeros(web.pages)
    teleport[seeds] = 1.0
    exact = sv.pagerank(web, teleport=teleport, tolerance=1e-10)
    ledger = Ledger(GrowingGraph(), seeds)
    order = np.argsort(-exact.scores, kind="stable")
    for part in np.array_split(order, [2_000, 60_000, 70_000]):
        read_all(ledger, web, part.tolist())
        now = ledger.coverage()
        parts = [now.captured, now.moving, now.waiting, now.blocked, now.lost]
        assert abs(math.fsum(parts) - 1.0) <= 1e-12
        done = (ledger.state & accounts.LIFE == accounts.READ)[: web.pages]
        covered = float(exact.scores[done].sum())
        assert now.at_least - 1e-9 <= covered <= now.at_most + 1e-9
        assert now.captured == pytest.approx(math.fsum(ledger.mass.settled), abs=1e-12)
        assert (ledger.mass.settled[: web.pages] <= exact.scores + 1e-9).all()
        check_closed(ledger)
    assert ledger.mass.counts[accounts.SETTLED] > accounts.RING
    ledger.close()
    check_closed(ledger)
    assert ledger.coverage().at_least >= 1 - 2e-4


@pytest.mark.compiled
def test_room_changes_nothing_on_a_larger_web_either() -> None:
    """FAILS: beyond 65,536 pages read, how often a pass is due depends on the room there happens to be."""
    web = random_web(90_000, 360_000, seed=4)
    order = np.argsort(-sv.pagerank(web, teleport=np.eye(1, web.pages)[0]).scores, kind="stable")
    runs = []
    for room in (0, 2_000_000):
        graph = GrowingGraph()
        graph.size = room
        ledger = Ledger(graph, [0])
        graph.size = 0
        read_all(ledger, web, order[:70_000].tolist())
        runs.append(contents(ledger, web.pages))
    assert [one == other for one, other in zip(*runs, strict=True)] == [True] * len(runs[0])


@pytest.mark.compiled
def test_close_finds_pages_that_the_ring_had_no_room_for() -> None:
    """FAILS: pages that the ring had no room for during a pass are left when the rest of the pass finds none.

    Page 0 links to as many pages as the ring holds; a thousand of them link to two of the first pages each, and
    all others to one page that waits.
    """
    few, many = 2_000, accounts.RING
    ledger = Ledger(GrowingGraph(), [0], eager=False, closure=1e-9)
    links = np.arange(few + 1, few + 1 + many, dtype=np.int32)
    ledger.observe(Outcome(0, "read", links), ledger.graph.put(0, links))
    ledger.sweep()
    for page in range(1, few + 1):
        read(ledger, page, few + many + 1)
    for page in links.tolist():
        first = 2 * (page - few) - 1
        read(ledger, page, *((first, first + 1) if first < few else (few + many + 1,)))
    ledger.close()
    check_closed(ledger)


@pytest.mark.compiled
def test_a_pass_finds_pages_after_very_many_second_lives() -> None:
    """FAILS: with few pages but more than 65,536 deaths and readings, a pass by id looks them up as if by order."""
    crawl = new_crawl([0], eager=False)
    read(crawl.ledger, 0, 1, 2, 3)
    crawl.ledger.sweep()
    for _ in range(accounts.RING // 2 + 1):
        tell(crawl.ledger, Event("gone", 1))
        read(crawl.ledger, 1, 3)
    read(crawl.ledger, 2, 3)
    crawl.ledger.close()
    check_closed(crawl.ledger)


# --- errors ---


@pytest.mark.parametrize("damping", [0.0, 1.0, -0.5, 1.5, math.nan])
def test_refuses_a_damping_that_means_nothing(damping: float) -> None:
    with pytest.raises(UsageError, match="damping is"):
        Ledger(GrowingGraph(), [0], damping=damping)


@pytest.mark.parametrize("closure", [0.0, -1.0, math.nan])
def test_refuses_a_closure_that_means_nothing(closure: float) -> None:
    with pytest.raises(UsageError, match="closure is"):
        Ledger(GrowingGraph(), [0], closure=closure)


@pytest.mark.parametrize(
    ("seeds", "weights", "words"),
    [
        ([], None, "no seeds"),
        ([3, -1], None, "no page -1"),
        ([0, 1], [1.0], "weights"),
        ([0, 1], [1.0, 0.0], "weights"),
        ([0, 1], [1.0, -1.0], "weights"),
        ([0, 1], [1.0, math.nan], "weights"),
        ([0, 1], [1.0, math.inf], "weights"),
        ([0], [[1.0]], "weights"),
    ],
)
def test_refuses_seeds_that_cannot_be_trusted(seeds: list[int], weights: list[float] | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Ledger(GrowingGraph(), seeds, weights)


@pytest.mark.parametrize("precision", [0.0, -1.0, math.nan])
def test_refuses_a_precision_that_is_never_reached(precision: float) -> None:
    """FAILS: it is accepted, and closing then never ends, with the lock of the interpreter released."""
    with pytest.raises(UsageError, match="precision"):
        Ledger(GrowingGraph(), [0], precision=precision)


def test_weights_of_a_seed_named_twice_add_up() -> None:
    ledger = Ledger(GrowingGraph(), [4, 2, 4], [1.0, 2.0, 1.0])
    assert (ledger.seeds.tolist(), ledger.teleport.tolist()) == ([2, 4], [0.5, 0.5])


def test_says_where_all_importance_is() -> None:
    crawl = new_crawl([0])
    read(crawl.ledger, 0, 1)
    now = crawl.ledger.coverage()
    assert repr(now).startswith("CoverageInterval(at_least=0.1500, at_most=0.8725, captured=0.1500, moving=0.0000")
    assert CoverageInterval(**now.to_dict()) == now


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(0, "Read"), "no kind of outcome"),  # type: ignore[arg-type]
        (Outcome(0, "moved"), "no page -1"),
        (Outcome(-4, "read"), "no page -4"),
        (Outcome(0, "read", np.array([1, 2], np.int32)), "call graph.put"),
        (Outcome(5_000, "read", np.array([1], np.int32)), "call graph.put"),
    ],
)
def test_refuses_outcomes_that_would_make_the_accounts_wrong(outcome: Outcome, said: str) -> None:
    ledger = Ledger(GrowingGraph(), [0])
    with pytest.raises(UsageError, match=said):
        ledger.observe(outcome, np.empty(0, np.int32))
    assert ledger.coverage().waiting == 1.0


def test_an_alias_has_no_importance_of_its_own() -> None:
    graph = GrowingGraph()
    ledger = Ledger(graph, [0])
    ledger.observe(Outcome(0, "moved", target=3), graph.put(0, np.empty(0, np.int32)))
    assert ledger.importance_of(0) == 0.0
    assert ledger.importance_of(3) == pytest.approx(0.15)
