"""Politeness is a property: whatever hosts, addresses, delays and answers there are, no host is requested too soon."""

from __future__ import annotations

import heapq
import math
import random
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_hosts import FREE, known, slow
from reference_crawler import Clock
from surveyor.fetch.politeness.hosts import DAY, Hosts, Step, monotonic_clock
from surveyor.fetch.politeness.policy import FIRST_PAUSE, LONGEST_PAUSE, MIN_EVIDENCE, PAUSES, RECENT, PolitenessPolicy
from surveyor.outcome import RobotsFile
from surveyor.web.robots import Robots

SLACK = 1e-6  # of sums of seconds since 1970


@dataclass
class Asked:
    """A request, and the delay of its host when it began and when it had ended."""

    host: int
    origin: str
    step: Step
    begin: float
    first_delay: float
    end: float = math.inf
    delay: float = 0.0


@dataclass
class World:
    """Hosts that answer after a while, and one that asks them as the queues do."""

    hosts: Hosts
    clock: Clock
    chance: random.Random
    address: list[str]
    robots: list[Robots]
    failures: list[int]  # how often robots.txt cannot be read
    pages: list[deque[str]]  # origins of pages to ask for
    log: list[Asked] = field(default_factory=list)
    asked_to_wait: list[tuple[int, float, float]] = field(default_factory=list)
    in_progress: list[tuple[float, int]] = field(default_factory=list)

    def begin(self, awake: set[int]) -> None:
        for host in self.chance.sample(sorted(awake), len(awake)):
            while host in awake and self.pages[host]:
                origin = self.pages[host][0]
                step = self.hosts.step(host, origin)
                if step is None:
                    awake.discard(host)
                    break
                if step == "page":
                    self.pages[host].popleft()
                asked = Asked(host, origin, step, self.clock.now, self.hosts[host].delay)
                self.log.append(asked)
                end = self.clock.now + self.chance.choice([0.01, 0.1, 1.0, 7.0])
                heapq.heappush(self.in_progress, (end, len(self.log) - 1))
                if not self.hosts.lease(host, step):
                    awake.discard(host)

    def end(self) -> None:
        asked = self.log[heapq.heappop(self.in_progress)[1]]
        host, now = asked.host, self.clock.now
        if asked.step == "address":
            self.hosts.set_address(host, self.address[host])
        elif asked.step == "robots" and self.failures[host]:
            self.failures[host] -= 1
            self.hosts.robots_failed(host, asked.origin, now + self.chance.choice([0.0, 3.0, 20.0]))
        elif asked.step == "robots":
            self.hosts.set_robots(host, asked.origin, self.robots[host], now + DAY)
        self.hosts.end_request(host, asked=asked.step != "address")
        asked.end, asked.delay = now, self.hosts[host].delay
        if asked.step == "page" and self.chance.random() < 0.2:  # Retry-After
            until = now + self.chance.choice([0.5, 30.0])
            self.hosts.wait(host, until)
            self.asked_to_wait.append((host, now, until))

    def run(self) -> None:
        """Continue until all pages were requested; a host that is lost leaves nothing to wait for, and fails."""
        awake: set[int] = set()
        for _ in range(3_000):
            awake.update(self.hosts.wake())
            self.begin(awake)
            if not any(self.pages) and not self.in_progress:
                return
            soonest = min(self.hosts.next_wake, self.in_progress[0][0] if self.in_progress else math.inf)
            assert soonest < math.inf, "pages wait, and nothing will ever happen"
            self.clock.now = max(self.clock.now, soonest)
            while self.in_progress and self.in_progress[0][0] <= self.clock.now:
                self.end()
        raise AssertionError("it does not end")


@st.composite
def worlds(draw: st.DrawFn) -> World:
    chance, clock = draw(st.randoms(use_true_random=True)), Clock()
    count = draw(st.integers(1, 6))
    names = [f"{number}.example" for number in range(count)]
    own = [name for name in names if chance.random() < 0.2]
    policy = PolitenessPolicy(delay=draw(st.sampled_from([0.0, 1.0, 2.5])), own=frozenset(own))
    hosts = Hosts(policy=policy, clock=clock)
    pages = draw(
        st.lists(
            st.lists(st.sampled_from(["http", "http", "https"]), min_size=1, max_size=5), min_size=count, max_size=count
        )
    )
    rules = st.sampled_from([FREE, FREE, slow(0.5), slow(4), slow(10), Robots.from_answer(503, b"")])
    world = World(
        hosts,
        clock,
        chance,
        [f"10.0.0.{chance.randrange(3)}" if chance.random() < 0.9 else "" for _ in names],
        draw(st.lists(rules, min_size=count, max_size=count)),
        draw(st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=count, max_size=count)),
        [deque(f"{scheme}://{name}" for scheme in each) for name, each in zip(names, pages, strict=True)],
    )
    assert [hosts.number(name) for name in names] == list(range(count))
    return world


def gate(world: World, asked: Asked) -> str:
    name = world.hosts[asked.host].name
    return "" if name in world.hosts.policy.own else world.address[asked.host]


def check_apart(world: World) -> None:
    requests = [asked for asked in world.log if asked.step != "address"]
    for place, first in enumerate(requests):
        for then in requests[place + 1 :]:
            if then.host != first.host and not (gate(world, first) and gate(world, first) == gate(world, then)):
                continue
            if first.first_delay > 0 or then.begin >= first.end:
                assert then.begin >= first.end + first.delay - SLACK, (first, then)


def check_robots(world: World) -> None:
    """A host is asked for nothing but robots.txt before that is known, and for nothing while it is read."""
    read = {(asked.host, asked.origin): asked.end for asked in world.log if asked.step == "robots"}  # the last one
    for asked in world.log:
        if asked.step == "page":
            assert asked.begin >= read[asked.host, asked.origin]
        if asked.step != "page":
            others = [one for one in world.log if one.host == asked.host and one is not asked]
            assert not any(one.begin < asked.end and asked.begin < one.end for one in others)


@settings(max_examples=250)
@given(worlds())
def test_no_host_is_requested_too_soon_and_none_is_forgotten(world: World) -> None:
    wanted = sum(map(len, world.pages))
    world.run()
    assert sum(asked.step == "page" for asked in world.log) == wanted
    assert sum(asked.step == "address" for asked in world.log) == len(world.pages)
    check_apart(world)
    check_robots(world)
    for host, since, until in world.asked_to_wait:
        assert not any(asked.host == host and since < asked.begin < until - SLACK for asked in world.log)


# --- one thing at a time ---


def page(hosts: Hosts, number: int) -> Step | None:
    return hosts.step(number, f"http://{hosts[number].name}")


def test_robots_is_read_again_after_a_day() -> None:
    clock = Clock()
    hosts = Hosts(1.0, clock=clock)
    number = known(hosts, "a.example")
    clock.now += DAY - 1
    assert page(hosts, number) == "page"
    clock.now += 1
    assert page(hosts, number) == "robots"
    assert not hosts.lease(number, "robots")
    hosts.robots_failed(number, "http://a.example", clock.now + 60)
    hosts.end_request(number)
    clock.now += 30
    assert page(hosts, number) is None  # what was known does not hold any more
    clock.now += 30
    assert set(hosts.wake()) == {number}
    assert page(hosts, number) == "robots"
    assert hosts.tries(number, "http://a.example") == 1
    assert hosts.tries(number, "https://a.example") == 0


def test_after_a_restart_all_wait_their_full_delay_and_stored_rules_hold_until_they_expire() -> None:
    clock = Clock()
    text = b"User-agent: *\nCrawl-delay: 10\nDisallow: /secret"
    stored = {
        "http://slow.example": RobotsFile("http://slow.example", clock.now - 60, clock.now + 60, 200, text),
        "http://old.example": RobotsFile("http://old.example", clock.now - 60, clock.now, 200, text),
        "http://down.example": RobotsFile("http://down.example", clock.now - 60, clock.now + 60, 0),
    }
    hosts = Hosts(2.0, clock=clock, resolves=False, stored=stored.get)
    early = known(hosts, "early.example", slow(5))
    hosts.resumed()
    numbers = [hosts.number(name) for name in ("new.example", "slow.example", "old.example", "down.example")]
    assert hosts.wake() == []
    assert [page(hosts, number) for number in (early, *numbers)] == [None] * 5
    clock.now += 2
    assert set(hosts.wake()) == {1, 3, 4}
    assert [page(hosts, number) for number in numbers] == ["robots", None, "robots", "page"]
    assert hosts.refusal(4, "http://down.example", "http://down.example/") != ""
    clock.now += 3
    assert hosts.wake() == [early]
    clock.now += 5
    assert hosts.wake() == [2]
    assert page(hosts, 2) == "page"
    assert hosts[2].delay == 10
    assert (
        hosts.refusal(2, "http://slow.example", "http://slow.example/secret")
        == "robots.txt disallows it (Disallow: /secret)"
    )
    assert hosts.refusal(2, "http://slow.example", "http://slow.example/") == ""
    clock.now += 50
    assert page(hosts, 2) == "robots"


def test_without_a_delay_several_requests_are_under_way_but_none_beside_robots() -> None:
    clock = Clock()
    hosts = Hosts(0.0, clock=clock)
    number = known(hosts, "a.example", address="10.0.0.1")
    assert [(page(hosts, number), hosts.lease(number, "page")) for _ in range(5)] == [("page", True)] * 5
    assert hosts.step(number, "https://a.example") is None  # its robots.txt waits until all have ended
    for left in range(4, -1, -1):
        hosts.end_request(number)
        hosts.wake()
        assert hosts.step(number, "https://a.example") == (None if left else "robots")
    assert not hosts.lease(number, "robots")
    hosts.wait(number, clock.now)
    assert hosts.wake() == []  # not even by what another page asked for


def test_a_host_that_is_awake_when_it_asks_to_be_left_alone_is() -> None:
    clock = Clock()
    hosts = Hosts(0.0, clock=clock)
    number = known(hosts, "a.example")
    assert hosts.wake() == [number]
    assert (page(hosts, number), hosts.lease(number, "page")) == ("page", True)
    hosts.wait(number, clock.now + 60)
    assert page(hosts, number) is None
    clock.now += 60
    assert hosts.wake() == [number]
    assert page(hosts, number) == "page"


def test_a_host_with_a_delay_keeps_its_address_though_others_there_have_none() -> None:
    clock = Clock()
    hosts = Hosts(0.0, clock=clock)
    quick, lame = known(hosts, "a.example", address="10.0.0.1"), known(hosts, "b.example", slow(5), "10.0.0.1")
    hosts.wake()
    assert (page(hosts, quick), hosts.lease(quick, "page")) == ("page", True)
    assert (page(hosts, lame), hosts.lease(lame, "page")) == ("page", False)
    hosts.end_request(quick)  # which began before
    assert page(hosts, quick) is None
    clock.now += 1
    hosts.end_request(lame)
    clock.now += 4.5
    assert page(hosts, quick) is None
    clock.now += 0.5
    assert quick in hosts.wake()
    assert page(hosts, quick) == "page"


def test_permission_lifts_rules_but_not_silence() -> None:
    clock = Clock()
    hosts = Hosts(clock=clock, policy=PolitenessPolicy(permitted=frozenset({"mine.example", "down.example"})))
    closed = Robots.from_text(b"User-agent: *\nDisallow: /")
    mine, other = known(hosts, "mine.example", closed), known(hosts, "other.example", closed)
    down = known(hosts, "down.example", Robots.from_answer(None, b""))
    hosts[down].rules["http://down.example"].error = "down.example does not resolve"
    reasons = [hosts.refusal(n, f"http://{hosts[n].name}", f"http://{hosts[n].name}/x") for n in (mine, other, down)]
    assert reasons == ["", "robots.txt disallows it (Disallow: /)", "down.example does not resolve"]


def test_names_are_hosts_whatever_they_look_like() -> None:
    hosts = Hosts(1.0, clock=Clock())
    names = ["[::1]", "127.0.0.1", "a_b!$&'()*+,;=~.example", ".", "..", "xn--wgv71a.jp", "example.org."]
    assert [hosts.number(name) for name in names] == list(range(len(names)))
    assert [hosts.number(name) for name in reversed(names)] == list(range(len(names)))[::-1]
    assert len(hosts) == len(names)
    assert sorted(hosts.wake()) == list(range(len(names)))


def test_the_clock_does_not_jump_and_may_stand_still() -> None:
    clock = monotonic_clock()
    assert abs(clock() - time.time()) < 5
    standing = Clock()
    hosts = Hosts(1.0, clock=standing, resolves=False)
    number = known(hosts, "a.example")
    hosts.wake()
    hosts.lease(number, "page")
    hosts.end_request(number)
    assert [hosts.wake() for _ in range(3)] == [[]] * 3
    assert hosts.next_wake == standing.now + 1


# --- the network itself ---


def site(number: int) -> str:
    return f"http://{number}.example"


def reached(count: int, clock: Clock, **policy: Any) -> Hosts:
    """Return hosts of so many domains that have answered, a while ago."""
    hosts = Hosts(clock=clock, policy=PolitenessPolicy(**policy))
    for number in range(count):
        hosts.reached(known(hosts, f"{number}.example"), site(number))
    clock.now += RECENT
    return hosts


@pytest.mark.parametrize("answered", [MIN_EVIDENCE, 10])
def test_domains_that_answered_and_are_all_silent_mean_that_the_network_is_down(answered: int) -> None:
    hosts = reached(answered, Clock())
    stranger = hosts.number("never.example")
    assert not hosts.unreached(stranger, "http://never.example")
    found = [hosts.unreached(number, site(number)) is not None for number in range(MIN_EVIDENCE)]
    assert found == [False] * (MIN_EVIDENCE - 1) + [True]
    assert hosts.unreached(stranger, "http://never.example") == hosts.paused_until  # now no host is to blame


def test_a_success_in_the_last_seconds_proves_that_the_network_is_there() -> None:
    clock = Clock()
    hosts = reached(MIN_EVIDENCE + 1, clock)
    hosts.reached(MIN_EVIDENCE, site(MIN_EVIDENCE))
    assert not any(hosts.unreached(number, site(number)) for number in range(MIN_EVIDENCE))
    assert not hosts.unreached(0, site(0), offline=True)
    assert hosts.paused_until == 0.0
    clock.now += RECENT
    assert hosts.unreached(0, site(0))


def test_hosts_of_one_domain_count_once() -> None:
    clock = Clock()
    hosts = reached(5, clock)
    names = [f"{number}.evil.org" for number in range(10)]
    for name in names:
        hosts.reached(known(hosts, name), f"http://{name}")
    clock.now += RECENT
    assert not any(hosts.unreached(hosts.number(name), f"http://{name}") for name in names)
    assert hosts.paused_until == 0.0


def test_hosts_of_the_own_network_and_origins_that_never_answered_are_no_evidence() -> None:
    own = frozenset(f"{number}.example" for number in range(4))
    hosts = reached(4, Clock(), own=own)
    assert not any(hosts.unreached(number, site(number)) for number in range(4))
    hosts = reached(4, Clock())
    assert not any(hosts.unreached(number, f"https://{number}.example") for number in range(4))
    assert hosts.paused_until == 0.0


def test_one_host_that_fails_again_and_again_is_gone_itself() -> None:
    hosts = reached(5, Clock())
    assert not any(hosts.unreached(0, site(0)) for _ in range(20))
    assert hosts.paused_until == 0.0


@pytest.mark.parametrize("answered", [1, 2])
def test_with_few_known_hosts_only_the_silent_ones_wait(answered: int) -> None:
    clock = Clock()
    hosts = reached(answered, clock)
    stranger = known(hosts, "new.example")
    found = [hosts.unreached(number, site(number)) for number in range(answered)]
    assert found == [None] * (answered - 1) + [clock.now + FIRST_PAUSE]
    assert (hosts.paused_until, hosts.is_silent) == (0.0, True)
    assert not hosts.unreached(stranger, "http://new.example")
    assert hosts[stranger].ready_at <= clock.now
    assert hosts[answered - 1].ready_at == clock.now + FIRST_PAUSE
    assert hosts.backoff(answered - 1) is not None


@pytest.mark.parametrize("count", [1, MIN_EVIDENCE])
def test_pauses_double_are_bounded_and_end_with_an_answer(count: int) -> None:
    clock = Clock()
    hosts = reached(count, clock)
    for number in range(1, count):
        hosts.unreached(number, site(number))
    pauses = []
    for _ in range(PAUSES):
        until = hosts.unreached(0, site(0))
        assert until is not None
        pauses.append(until - clock.now)
        assert hosts.unreached(0, site(0)) == until  # another one that was under way makes it no longer
        clock.now = until
    assert pauses == [min(FIRST_PAUSE * 2**number, LONGEST_PAUSE) for number in range(PAUSES)]
    assert not hosts.unreached(0, site(0))  # gone after all
    assert hosts.unreached(0, site(0), offline=True)  # this machine says so itself, however long
    assert hosts.paused_until - clock.now == LONGEST_PAUSE
    clock.now = hosts.paused_until
    hosts.reached(0, site(0))
    clock.now += RECENT
    assert hosts.unreached(0, site(0), offline=True) == clock.now + FIRST_PAUSE


def test_a_machine_that_says_it_is_offline_is_believed_at_once() -> None:
    hosts = Hosts(1.0, clock=Clock())
    assert hosts.unreached(hosts.number("never.example"), "http://never.example", offline=True)
    assert hosts.paused_until == hosts.clock() + FIRST_PAUSE


def test_what_fails_while_others_are_reached_is_no_evidence_until_it_answers() -> None:
    clock = Clock()
    hosts = reached(2, clock)
    assert hosts.unreached(0, site(0), offline=True)
    hosts.reached(1, site(1))
    clock.now += 60
    assert not hosts.unreached(0, site(0), offline=True)
    hosts.reached(0, site(0))
    clock.now += 60
    assert hosts.unreached(0, site(0), offline=True)
