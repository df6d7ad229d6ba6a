"""Delay, backoff and exclusion of one host, by response times and failures."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_hosts import known, slow
from reference_crawler import Clock
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.fetch.politeness.policy import (
    BREAKS,
    BURST,
    FIRST_BREAK,
    LONGEST_BREAK,
    REST,
    STRAINED,
    Host,
    PolitenessPolicy,
    format_seconds,
)


def a_host(least: float = 1.0) -> Host:
    return Host("a.example", 0.0, least)


def test_a_slow_host_is_given_time() -> None:
    host = a_host()
    assert host.delay == 1.0
    host.record(0.1, 0.0)
    assert host.delay == 1.0
    for _ in range(20):
        host.record(3.0, 0.0)
    assert host.delay == pytest.approx(REST * 3.0, rel=0.01)
    for _ in range(40):
        host.record(0.1, 0.0)
    assert host.delay == 1.0


def test_each_failure_doubles_the_delay_and_each_answer_shortens_it() -> None:
    host = a_host()
    delays = []
    for _ in range(8):
        host.record(None, 1.0)
        delays.append(host.delay)
    assert delays[:5] == [2.0, 4.0, 8.0, 16.0, STRAINED]
    assert delays[-1] == STRAINED
    for _ in range(20):
        host.record(None, 0.0)
    assert host.delay == 1.0


@given(
    st.floats(0, 100),
    st.lists(st.tuples(st.none() | st.floats(0, 120), st.sampled_from([0.0, 0.2, 1.0])), max_size=50),
)
def test_the_delay_is_never_shorter_than_asked_for_and_never_absurd(
    least: float, lived: list[tuple[float | None, float]]
) -> None:
    host = a_host(least)
    for seconds, failure in lived:
        host.record(seconds, failure)
        assert host.delay >= least
        assert host.delay <= max(least, STRAINED, REST * max(s or 0.0 for s, _ in lived))
    assert (host.delay == 0) == (least == 0)


def test_breaks_grow_and_then_no_more_of_them_help() -> None:
    host = a_host()
    rests = [host.record(None, 1.0) for _ in range(int(BURST) + BREAKS)]
    assert rests[: int(BURST) - 1] == [0.0] * (int(BURST) - 1)
    breaks = rests[int(BURST) - 1 :]
    assert breaks[0] == FIRST_BREAK
    assert all(then in (2 * rest, LONGEST_BREAK) for rest, then in pairwise(breaks[:-1]))
    assert breaks[-1] == math.inf
    host = a_host()
    for _ in range(3):
        assert [host.record(None, 1.0) for _ in range(int(BURST) - 1)] == [0.0] * (int(BURST) - 1)
        host.record(None, 0.0)  # one answer, and all is forgotten
    assert [bool(host.record(None, 0.2)) for _ in range(60)].index(True) in (49, 50)  # pages that are forbidden


def test_times_as_people_say_them() -> None:
    assert [format_seconds(seconds) for seconds in (0.25, 1, 60, 150, 3600, 86_400, 172_800, 1e7)] == [
        "0.25 s", "1 s", "60 s", "2.5 min", "60 min", "24 h", "2 days", "116 days",
    ]  # fmt: skip


# --- what hosts make of it ---


def step(hosts: Hosts, number: int) -> str | None:
    return hosts.step(number, f"http://{hosts[number].name}")


def why(hosts: Hosts, number: int) -> str:
    return hosts.refusal(number, f"http://{hosts[number].name}", f"http://{hosts[number].name}/x")


def test_a_host_that_asks_for_too_long_a_delay_is_left_out_with_a_sentence() -> None:
    hosts = Hosts(policy=PolitenessPolicy(max_delay=30), clock=Clock())
    lame, late = known(hosts, "lame.example", slow(30)), known(hosts, "late.example", slow(31))
    assert hosts[lame].delay == 30
    assert (step(hosts, lame), why(hosts, lame)) == ("page", "")
    assert "31 s between two pages (Crawl-delay), more than max_delay (30 s)" in why(hosts, late)
    assert hosts.messages == [
        "lame.example asks for 30 s between two pages (Crawl-delay): at most 120 pages an hour",
        "late.example asks for 31 s between two pages (Crawl-delay), more than max_delay (30 s): it is left out",
    ]


def test_a_host_that_asks_to_be_left_alone_for_long_is_left_out_and_wakes_to_be_refused() -> None:
    clock = Clock()
    hosts = Hosts(policy=PolitenessPolicy(max_wait=600), clock=clock)
    number = known(hosts, "a.example")
    hosts.wake()
    hosts.back_off(number, clock.now + 600, "Retry-After")
    assert (hosts.wake(), step(hosts, number), hosts.messages) == ([], None, [])
    hosts.back_off(number, clock.now + 601, "Retry-After")
    assert hosts.wake() == [number]
    assert step(hosts, number) == "page"
    assert why(hosts, number) == "a.example requests a pause beyond max_wait (Retry-After)"
    assert hosts.messages == ["a.example requests a pause of 10 min, longer than max_wait (10 min): it is skipped"]


def test_a_host_that_only_fails_gets_rest_and_is_left_out_in_the_end() -> None:
    clock = Clock()
    hosts = Hosts(clock=clock)
    number = known(hosts, "a.example")
    rests = []
    for _ in range(int(BURST) + BREAKS):
        until = hosts.record_response(number, None, 1.0, "http 503")
        if until is not None:
            rests.append(until - clock.now)
            assert step(hosts, number) is None
        clock.now = hosts[number].ready_at
    assert rests == [60, 120, 240, 480, 900]
    assert why(hosts, number) == "a.example only fails (last: http 503)"
    assert len(hosts.messages) == BREAKS + 1
    assert hosts.record_response(number, None, 1.0, "http 503") is None
    assert len(hosts.messages) == BREAKS + 1


def test_hosts_to_avoid_are_never_asked_for_anything() -> None:
    hosts = Hosts(policy=PolitenessPolicy(avoid=frozenset({"example.org", "b.example"})), clock=Clock())
    names = ["example.org", "www.example.org", "b.example", "notexample.org", "a.b.example", "example.org.au"]
    numbers = [hosts.number(name) for name in names]
    assert [bool(hosts[number].excluded) for number in numbers] == [True, True, True, False, True, False]
    assert (step(hosts, 1), why(hosts, 1)) == ("page", "it is on your list of hosts to avoid")
    assert step(hosts, 3) == "address"


def test_hosts_of_one_domain_are_asked_one_after_the_other() -> None:
    clock = Clock()
    hosts = Hosts(policy=PolitenessPolicy(delay=1.0, domain_delay=0.25), clock=clock)
    numbers = [known(hosts, f"h{number}.example.org", address=f"10.0.0.{number}") for number in range(4)]
    other = known(hosts, "h.example.net", address="10.0.1.1")
    assert sorted(hosts.wake()) == [*numbers, other]
    begun = []
    awake = set(numbers)
    for _ in range(20):
        for number in sorted(awake):
            if step(hosts, number) == "page":
                hosts.lease(number, "page")
                begun.append((number, clock.now))
            awake.discard(number)
        if len(begun) == 4:
            break
        clock.now = hosts.next_wake
        awake |= set(hosts.wake())
    assert [then - at for (_, at), (_, then) in pairwise(begun)] == pytest.approx([0.25] * 3)
    assert step(hosts, other) == "page"


def test_a_request_costs_the_same_with_ten_thousand_hosts_at_one_address() -> None:
    """Counted in hosts that are woken, not in seconds."""
    clock = Clock()
    hosts = Hosts(1.0, clock=clock)
    for number in range(10_000):
        known(hosts, f"h{number}.site{number}.example", address="10.0.0.1")
    woken = hosts.wake()
    asked = []
    for _ in range(50):
        for number in woken:
            if step(hosts, number) == "page":
                hosts.lease(number, "page")
                asked.append(number)
        hosts.end_request(asked[-1])
        clock.now += 1.0
        woken = hosts.wake()
        assert len(woken) <= 65
    assert len(set(asked)) == 50
