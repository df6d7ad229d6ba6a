"""Queues of many hosts against a model that looks at every page, and the frontier in front of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_crawler import Clock
from surveyor.crawler.frontier import Budgets, Frontier
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.queues import REFUSALS, Batch, HostQueues, HostTask, SingleQueue
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.errors import StrategyError
from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.graph.growing import GrowingGraph
from surveyor.kernels.mass import FETCHED, WAITING
from surveyor.outcome import Outcome
from surveyor.web.robots import Robots
from surveyor.web.urls import Urls, host

RULES = Robots.from_text(b"User-agent: *\nDisallow: /no")
FORBIDDEN = "robots.txt disallows it (Disallow: /no)"
SMALL, LARGE, HOSTS = 9, 18, 3


def url_of(page: int) -> str:
    return f"http://{page % HOSTS}.example/{'no' if page % 4 == 3 else 'yes'}/{page}"


def allow(_page: int) -> str:
    return ""


def put(queues: HostQueues | SingleQueue, priorities: dict[int, float]) -> None:
    state = np.full(queues.size, WAITING, np.uint8)
    pages = np.array(list(priorities), np.int32)
    assert queues.reorder(state, pages, np.array(list(priorities.values())), FETCHED) == -1


def taken(queues: HostQueues | SingleQueue, count: int = 1, refuse: Callable[[int], str] = allow) -> Batch:
    batch = Batch()
    queues.take(batch, count, refuse)
    return batch


@dataclass
class Model:
    """Hosts whose rules are known, their queues, and the same thing as an obvious search."""

    delay: float
    clock: Clock = field(default_factory=Clock)
    waiting: dict[int, float] = field(default_factory=dict)
    leased: dict[int, float] = field(default_factory=dict)
    held: dict[int, tuple[float, float]] = field(default_factory=dict)  # when, priority
    free_at: list[float] = field(default_factory=lambda: [0.0] * HOSTS)  # inf while asked

    def __post_init__(self) -> None:
        self.hosts = Hosts(self.delay, clock=self.clock, resolves=False)
        for number in range(HOSTS):
            assert self.hosts.number(f"{number}.example") == number
            self.hosts.set_robots(number, f"http://{number}.example", RULES, math.inf)
        self.queues = HostQueues(SMALL, self.hosts, url_of)

    def do(self, what: str, page: int, number: float) -> None:
        page %= self.queues.size
        if what == "put":
            put(self.queues, {page: number})
            if page in self.held:
                self.held[page] = self.held[page][0], number
            else:
                (self.leased if page in self.leased else self.waiting)[page] = number
        elif what == "take":
            self.take(1 + page % 4)
        elif what == "pass":
            self.clock.now += page / 4
        elif what == "grow" and self.queues.size < LARGE:
            self.queues.grow(LARGE)
        elif what in ("end", "again") and self.leased:
            self.end(min(self.leased), what)
        elif what == "drop" and page not in self.held and page not in self.leased:
            self.queues.drop(page)
            self.waiting.pop(page, None)
        elif what == "keep":
            self.queues.keep(page, self.clock.now + 2)
            if page in self.waiting:
                self.held[page] = self.clock.now + 2, self.waiting.pop(page)

    def end(self, page: int, what: str) -> None:
        host = page % HOSTS
        self.hosts.end_request(host)
        self.free_at[host] = self.clock.now + self.delay
        if what == "end":
            self.queues.drop(page)
            del self.leased[page]
        else:
            self.queues.hold(page, self.clock.now + 3)
            self.held[page] = self.clock.now + 3, self.leased.pop(page)

    def take(self, count: int) -> Batch:
        now = self.clock.now
        for page in [page for page, (until, _) in self.held.items() if until <= now]:
            self.waiting[page] = self.held.pop(page)[1]
        pages: list[int] = []
        refused: list[int] = []
        while len(pages) < count:
            ready = [page for page in self.waiting if self.free_at[page % HOSTS] <= now]
            if not ready:
                break
            page = min(ready, key=lambda one: (-self.waiting[one], one % HOSTS, one))
            self.leased[page] = self.waiting.pop(page)
            if page % 4 == 3:
                refused.append(page)
            else:
                pages.append(page)
                self.free_at[page % HOSTS] = math.inf if self.delay else 0.0
        batch = taken(self.queues, count)
        assert batch.pages == pages
        assert batch.refused == [Outcome(page, "blocked", reason=FORBIDDEN) for page in refused]
        assert not batch.tasks
        for page in refused:
            self.queues.drop(page)
            del self.leased[page]
        return batch

    def check(self) -> None:
        assert len(self.queues) == len(self.waiting) + len(self.held)
        known = {**self.waiting, **self.leased, **{page: priority for page, (_, priority) in self.held.items()}}
        pages, priorities = self.queues.queued()
        assert dict(zip(pages.tolist(), priorities.tolist(), strict=True)) == known

    def drain(self) -> None:
        """Take all that is left, waiting only for as long as the queues say."""
        for _ in range(300):
            busy = bool(self.take(HOSTS) or self.leased)
            while self.leased:
                self.end(min(self.leased), "end")
            soonest = self.queues.again_at
            if soonest == math.inf:
                break
            if not busy:
                assert soonest > self.clock.now
                self.clock.now = soonest
        assert not self.waiting
        assert not self.held
        assert len(self.queues) == 0


OPERATIONS = st.sampled_from(
    [*["put"] * 5, *["take"] * 3, "pass", "pass", "end", "end", "again", "drop", "keep", "grow"]
)
PRIORITIES = st.floats(-2, 2) | st.sampled_from([0.0, 1.0, math.inf, -math.inf])


@settings(max_examples=150)
@given(st.sampled_from([0.0, 1.5]), st.lists(st.tuples(OPERATIONS, st.integers(0, LARGE - 1), PRIORITIES), max_size=50))
def test_always_the_best_page_of_the_hosts_that_may_be_asked(
    delay: float, events: list[tuple[str, int, float]]
) -> None:
    model = Model(delay)
    for event in events:
        model.do(*event)
        model.check()
    model.drain()


def test_pages_that_are_held_or_of_a_host_in_backoff_are_failing() -> None:
    clock = Clock()
    hosts = Hosts(1.0, clock=clock)
    queues = HostQueues(SMALL, hosts, url_of)
    put(queues, dict.fromkeys(range(6), 1.0))
    some = np.array([0, 1, 2, 4], np.int32)
    assert queues.failing_of(some) == set()
    queues.hold(2, clock.now + 100)
    hosts.back_off(queues.host(1), clock.now + 50, "429")
    assert queues.failing_of(some) == {1, 2, 4}
    assert queues.failing_of(some) == set(some.tolist()) & set(queues.failing_pages.tolist())
    clock.now += 60
    assert queues.failing_of(some) == {2}
    assert SingleQueue(SMALL).failing_of(some) == set()


def test_host_tasks_come_first_and_one_at_a_time_per_address() -> None:
    clock = Clock()
    hosts = Hosts(1.0, clock=clock)
    queues = HostQueues(SMALL, hosts, url_of)
    put(queues, {0: 1.0, 1: 3.0, 2: 2.0, 4: 9.0})
    batch = taken(queues, 10)
    assert batch.tasks == [HostTask("address", hosts.number(f"{n}.example"), f"http://{n}.example") for n in (1, 2, 0)]
    assert not batch.pages
    assert not taken(queues, 10)
    assert queues.again_at == math.inf  # nothing happens by itself
    for number in range(3):
        hosts.set_address(number, "10.0.0.1")
        hosts.end_request(number, asked=False)
    robots = taken(queues, 10)
    first = hosts.number("1.example")
    assert robots.tasks == [HostTask("robots", first, "http://1.example")]
    assert not taken(queues, 10)
    hosts.set_robots(first, "http://1.example", RULES, clock.now + DAY)
    hosts.end_request(first)
    assert not taken(queues, 10)
    assert queues.again_at == clock.now + 1
    clock.now += 1
    assert taken(queues, 10).pages == [4]
    clock.now += 5
    hosts.end_request(first)
    clock.now += 1
    assert taken(queues, 10).pages == [1]  # it matters more than the rules of the others


def test_no_host_is_requested_while_the_network_is_down() -> None:
    model = Model(1.0)
    put(model.queues, {0: 1.0, 1: 2.0})
    model.hosts.unreached(0, "http://never.example", offline=True)
    model.queues.keep(1, model.clock.now + 1)
    assert not taken(model.queues, 5)
    assert model.queues.again_at == model.hosts.paused_until
    model.clock.now = model.hosts.paused_until
    assert taken(model.queues, 5).pages == [1, 0]


def test_pages_that_may_not_be_read_come_out_in_portions() -> None:
    count = 2 * REFUSALS + 500
    hosts = Hosts(1.0, clock=Clock(), resolves=False)
    queues = HostQueues(count + 1, hosts, lambda page: f"http://a.example/{'no' if page < count else 'yes'}/{page}")
    hosts.set_robots(hosts.number("a.example"), "http://a.example", RULES, math.inf)
    put(queues, {page: float(count - page) for page in range(count + 1)})
    batches = [taken(queues) for _ in range(3)]
    assert [len(batch.refused) for batch in batches] == [REFUSALS, REFUSALS, 500]
    assert [batch.pages for batch in batches] == [[], [], [count]]


def test_reasons_of_others_count_after_those_of_robots() -> None:
    model = Model(1.0)
    put(model.queues, {0: 1.0, 1: 2.0, 3: 3.0})
    batch = taken(model.queues, 5, lambda page: "budget" if page == 1 else "")
    assert [(outcome.page, outcome.reason) for outcome in batch.refused] == [(3, FORBIDDEN), (1, "budget")]
    assert batch.pages == [0]


def test_ten_thousand_hosts_are_each_looked_up_once() -> None:
    count, clock = 10_000, Clock()
    hosts = Hosts(1.0, clock=clock)
    queues = HostQueues(count, hosts, lambda page: f"http://{page}.example:8080/")
    put(queues, {page: float(-page) for page in range(count)})
    asked: list[int] = []
    while batch := taken(queues, 64):
        asked += [task.host for task in batch.tasks]
        for task in batch.tasks:
            hosts.set_address(task.host, "")
    assert asked == list(range(count))
    assert len(queues) == count


@pytest.mark.parametrize(
    "url", ["http://[::1]:8080/", "http://127.0.0.1/", "http://a_b!$&'()*+,;=~.example/", "http://./", "http://../x?y"]
)
def test_odd_hosts_are_hosts(url: str) -> None:
    hosts = Hosts(1.0, clock=Clock(), resolves=False)
    queues = HostQueues(1, hosts, lambda _: url)
    put(queues, {0: 1.0})
    (task,) = taken(queues).tasks
    assert task.kind == "robots"
    assert url.startswith(f"{task.origin}/")
    assert hosts[task.host].name in url


# --- the frontier ---


def frontier(count: int, room: int = 2, **options: object) -> Frontier:
    """Page 0 was read and links to all others, which wait."""
    graph = GrowingGraph()
    ledger = Ledger(graph, [0], pages=room)
    links = np.arange(1, count, dtype=np.int32)
    ledger.observe(Outcome(0, "fetched", links), graph.put(0, links))
    return Frontier(ledger, **options)  # type: ignore[arg-type]


def by_host(count: int, room: int = 2) -> tuple[Frontier, HostQueues, Clock]:
    clock = Clock()
    hosts = Hosts(0.0, clock=clock, resolves=False)
    for number in range(HOSTS):
        hosts.set_robots(hosts.number(f"{number}.example"), f"http://{number}.example", Robots("absent"), math.inf)
    queues = HostQueues(4, hosts, [url_of(page) for page in range(count)].__getitem__)
    return frontier(count, room, queues=queues), queues, clock


def reorder(priorities: dict[int, float]) -> Reorder:
    return Reorder(np.array(list(priorities), np.int32), np.array(list(priorities.values())))


@given(st.dictionaries(st.integers(1, 39), st.floats(-2, 2), min_size=1), st.integers(0, 5), st.integers(0, 3))
@settings(max_examples=60)
def test_what_stands_makes_the_same_frontier_in_either_kind_of_queue(
    priorities: dict[int, float], count: int, holds: int
) -> None:
    made, queues, clock = by_host(40)
    plain = frontier(40)
    for one in (made, plain):
        one.update(reorder(priorities))
    leased = made.take(count).pages
    for page in leased[:holds]:
        made.hold(page, clock.now + 9)
    plain.take(count)
    order = sorted(priorities, key=lambda page: (-priorities[page], page))
    hosts_order = sorted(priorities, key=lambda page: (-priorities[page], page % HOSTS, page))
    for source in (made, plain):
        for target, expected in ((by_host(40)[0], hosts_order), (frontier(40), order)):
            target.update(source.queued())
            assert target.take(40).pages == expected
    assert len(queues) == len(priorities) - len(leased[holds:])


def test_there_is_room_for_pages_that_became_known() -> None:
    made, queues, _ = by_host(3_000)
    assert queues.size == 4
    made.update(reorder({page: float(page) for page in range(1, 3_000)}))
    assert queues.size >= 3_000
    assert made.take(10_000).pages == list(range(2_999, 0, -1))
    made.drop(10**6)  # of which it never heard


@pytest.mark.parametrize("kind", ["hosts", "one"])
@pytest.mark.parametrize(
    ("pages", "priorities", "problem"),
    [
        ([500], [1.0], "page 500, which no fetched page links to"),
        ([10**6], [1.0], "page 1000000, which no fetched page links to"),
        ([-1], [1.0], "page -1, which no fetched page"),
        ([1], [math.nan], "priority of page 1 is NaN"),
        ([1, 2], [1.0], "2 pages and 1 priorities"),
        ([1.5], [1.0], "must be page ids"),
        ([2**40], [1.0], "must be page ids"),
    ],
)
def test_invalid_reorders_are_rejected(kind: str, pages: list[float], priorities: list[float], problem: str) -> None:
    made = by_host(1_000)[0] if kind == "hosts" else frontier(1_000)
    small = frontier(10, 1_000) if kind == "one" else by_host(10, 1_000)[0]
    wrong = Reorder(np.array(pages, np.int32 if pages == [-1] else None), np.array(priorities))
    with pytest.raises(StrategyError, match=problem):
        (small if pages == [500] else made).update(wrong)


def test_pages_already_read_are_ignored_unless_they_are_read_again() -> None:
    made = by_host(5)[0]
    made.update(reorder({0: 9.0, 1: 1.0}))
    assert made.take(5).pages == [1]
    again = frontier(5, rereads=True)
    again.update(reorder({0: 9.0, 1: 1.0}))
    assert again.take(5).pages == [0, 1]


def test_a_domain_over_its_budget_is_refused_in_either_kind() -> None:
    budgets = Budgets(np.zeros(4, np.int64), np.array([2]))
    hosts = Hosts(0.0, clock=Clock(), resolves=False)
    for number in range(HOSTS):
        hosts.set_robots(hosts.number(f"{number}.example"), f"http://{number}.example", Robots("absent"), math.inf)
    for queues in (None, HostQueues(10, hosts, url_of)):
        made = frontier(6, budgets=budgets, queues=queues)
        made.update(reorder({page: -float(page) for page in range(1, 6)}))
        batch = made.take(10)
        assert batch.pages == [1, 2, 4, 5]  # the last two became known after the budgets
        assert [(outcome.page, outcome.reason) for outcome in batch.refused] == [(3, "budget")]


def test_hosts_found_by_their_keys_are_the_same_hosts() -> None:
    urls = Urls(4)
    count = len(urls.ids([url_of(page) for page in range(60)]))
    orders = []
    for keys in (None, urls.host_ids):
        hosts = Hosts(0.0, clock=Clock(), resolves=False)
        queues = HostQueues(4, hosts, urls.__getitem__, keys)
        made = frontier(count, queues=queues)
        made.update(reorder({page: float(page % 7) for page in range(1, count)}))
        orders.append([queues.host(page) for page in range(count)])
        assert [hosts[number].name for number in range(len(hosts))] == list(
            dict.fromkeys(host(url_of(page)) for page in range(1, count))
        )
    assert orders[0] == orders[1]
