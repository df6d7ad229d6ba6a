"""The heaps of all hosts compared with exhaustively searched dictionaries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.kernels import priority_queues as heaps
from surveyor.kernels.mass import BLOCKED, FETCHED, UNKNOWN, WAITING

PAGES, HOSTS = 15, 3
PRIORITIES = st.one_of(
    st.floats(allow_nan=False),
    st.floats(0.9, 1.1),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 5e-324]),
)
OPERATIONS = st.sampled_from(["put"] * 6 + ["lease", "lease", "back", "forget", "wake", "wake", "rest", "show"])


def best(held: dict[int, float]) -> int:
    return min(held, key=lambda one: (-held[one], one), default=-1)


def new_forest(pages: int = PAGES, hosts: int = HOSTS) -> heaps.HostHeaps:
    forest = heaps.new_host_heaps(pages, hosts)
    forest.host[:] = np.arange(pages) % hosts
    return forest


@dataclass
class Model:
    """The expected state, in the simplest representation."""

    forest: heaps.HostHeaps = field(default_factory=new_forest)
    queue: heaps.Queue = field(default_factory=lambda: heaps.new_queue(HOSTS))
    waiting: list[dict[int, float]] = field(default_factory=lambda: [{} for _ in range(HOSTS)])
    leased: dict[int, float] = field(default_factory=dict)
    awake: set[int] = field(default_factory=set)

    def do(self, operation: str, page: int, priority: float) -> None:
        host = page % HOSTS
        own = self.waiting[host]
        if operation == "put":
            heaps.set_page_priority(self.forest, self.queue, page, priority)
            (self.leased if page in self.leased else own)[page] = priority
        elif operation == "lease":
            page = best(own)
            assert heaps.lease_from_host(self.forest, self.queue, host) == page
            if own:
                self.leased[page] = own.pop(page)
        elif operation == "back":
            heaps.return_page(self.forest, self.queue, page)
            if page in self.leased:
                own[page] = self.leased.pop(page)
        elif operation == "forget":
            assert heaps.remove_page(self.forest, self.queue, page) == (page in own)
            own.pop(page, None)
            self.leased.pop(page, None)
        elif operation == "wake":
            heaps.mark_ready(self.forest, self.queue, host)
            self.awake.add(host)
        elif operation == "rest":
            heaps.mark_not_ready(self.forest, self.queue, host)
            self.awake.discard(host)
        else:
            heaps.update_host(self.forest, self.queue, host)

    def check(self) -> None:
        for host, own in enumerate(self.waiting):
            assert self.forest.root[host] == best(own)
            assert members(self.forest, host) == set(own)
        for page in range(PAGES):
            known = self.leased if page in self.leased else self.waiting[page % HOSTS]
            if page in known:
                assert self.forest.priority[page] == known[page]
            else:
                assert self.forest.before[page] == heaps.HEAP_ABSENT
            assert (self.forest.before[page] == heaps.HEAP_LEASED) == (page in self.leased)
        shown = {host: self.waiting[host][best(self.waiting[host])] for host in self.awake if self.waiting[host]}
        assert self.queue.counts[2] == len(shown)
        first = heaps.lease_best(self.queue)
        assert first == best(shown)
        if first >= 0:  # put it back as it was
            heaps.remove(self.queue, first)
            heaps.update_host(self.forest, self.queue, first)


def members(forest: heaps.HostHeaps, host: int) -> set[int]:
    """Traverse a heap and check every pointer and the order."""
    found: set[int] = set()
    root = int(forest.root[host])
    if root == heaps.NONE:
        return found
    assert forest.before[root] == heaps.HEAP_ROOT
    assert forest.sibling[root] == heaps.NONE
    open_ = [root]
    while open_:
        page = open_.pop()
        assert page not in found
        found.add(page)
        former, below = page, int(forest.child[page])
        while below != heaps.NONE:
            assert forest.before[below] == former
            mine, its = forest.priority[page], forest.priority[below]
            assert mine > its or (mine == its and page < below)
            open_.append(below)
            former, below = below, int(forest.sibling[below])
    return found


@settings(max_examples=150)
@given(st.lists(st.tuples(OPERATIONS, st.integers(0, PAGES - 1), PRIORITIES), max_size=60))
def test_the_best_page_and_host_after_any_events(
    events: list[tuple[str, int, float]],
) -> None:
    model = Model()
    for event in events:
        model.do(*event)
        model.check()


@settings(max_examples=60)
@given(st.lists(PRIORITIES, min_size=PAGES, max_size=PAGES), st.lists(PRIORITIES, min_size=PAGES, max_size=PAGES))
def test_a_leased_page_returns_with_its_current_priority(first: list[float], then: list[float]) -> None:
    model = Model()
    steps = [("put", page, priority) for page, priority in enumerate(first)]
    steps += [("lease", page, 0.0) for page in range(PAGES)]
    steps += [("put", page, priority) for page, priority in enumerate(then)]
    steps += [("back", page, 0.0) for page in range(PAGES)]
    for step in steps:
        model.do(*step)
        model.check()
    assert not model.leased


def left_in_order(forest: heaps.HostHeaps, hosts: heaps.Queue) -> list[int]:
    """Remove all pages in the order of the host queues: the best page of the best host."""
    taken = []
    while (host := heaps.lease_best(hosts)) >= 0:
        heaps.mark_not_ready(forest, hosts, host)
        taken.append(heaps.lease_from_host(forest, hosts, host))
        heaps.mark_ready(forest, hosts, host)
    return taken


@pytest.mark.parametrize("pages", [3_000, pytest.param(100_000, marks=pytest.mark.compiled)])
@pytest.mark.slow
def test_many_pages_leave_in_order(pages: int) -> None:
    rng, count = np.random.default_rng(3), 50
    forest, hosts = new_forest(pages, count), heaps.new_queue(count)
    state = np.full(pages, WAITING, np.uint8)
    for host in range(count):
        heaps.mark_ready(forest, hosts, host)
    final = np.round(rng.pareto(1.0, pages), 2)  # with ties
    for priorities in (rng.random(pages), rng.random(pages) * 10, final):
        order = rng.permutation(pages).astype(np.int32)
        assert heaps.update_host_priorities(forest, hosts, state, order, priorities[order], FETCHED) == -1
    taken = left_in_order(forest, hosts)
    expected = np.lexsort((np.arange(pages), np.arange(pages) % count, -final))  # ties: the host, then the page
    assert taken == expected.tolist()


def test_decreasing_priorities_of_one_host_stay_in_order() -> None:
    pages = 2_000
    forest, hosts, state = new_forest(pages, 1), heaps.new_queue(1), np.full(pages, WAITING, np.uint8)
    heaps.mark_ready(forest, hosts, 0)
    ids = np.arange(pages, dtype=np.int32)
    for scale in (1.0, 0.5, 0.25, -1.0):
        assert heaps.update_host_priorities(forest, hosts, state, ids, scale * ids.astype(np.float64), FETCHED) == -1
        members(forest, 0)
    assert left_in_order(forest, hosts) == ids.tolist()


def test_only_fetchable_pages_enter_and_invalid_ones_are_reported() -> None:
    forest, hosts = new_forest(), heaps.new_queue(HOSTS)
    state = np.full(PAGES, WAITING, np.uint8)
    state[[1, 2, 3]] = UNKNOWN, FETCHED, BLOCKED

    def updated(pages: list[int], priorities: list[float], also: np.int64 = WAITING) -> int:
        return heaps.update_host_priorities(forest, hosts, state, np.array(pages, np.int32), np.array(priorities), also)

    assert updated([0, 2, 3], [1.0, 2.0, 3.0]) == -1
    assert set().union(*(members(forest, host) for host in range(HOSTS))) == {0}
    assert updated([2, 3], [2.0, 3.0], FETCHED) == -1
    assert set().union(*(members(forest, host) for host in range(HOSTS))) == {0, 2}
    assert [updated([0, page], [0.0, 1.0]) for page in (1, -1, PAGES)] == [1, 1, 1]
    assert updated([0], [math.nan]) == 0
