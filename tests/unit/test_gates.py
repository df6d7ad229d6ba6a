"""Gates shared by hosts: queued hosts are woken in turn, few at a time, and none is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from surveyor.fetch.politeness.policy import FEW, RETRY_AFTER, Agenda


def test_a_gate_opens_when_it_is_free_and_not_before() -> None:
    agenda = Agenda()
    gate = agenda.gate()
    gate.free_at = 5.0
    agenda.queue(7, gate)
    assert agenda.next == 5.0
    assert agenda.due(4.9) == []
    assert agenda.due(5.0) == [7]
    assert agenda.next is None


def test_a_gate_that_is_held_opens_some_time_after_it_is_released() -> None:
    agenda = Agenda()
    gate = agenda.gate()
    gate.held = 1
    agenda.queue(7, gate)
    assert agenda.due(99.0) == []
    agenda.release(gate, 3.0)
    gate.free_at = 9.0  # another went through meanwhile
    assert agenda.due(3.0) == []
    assert agenda.next == 9.0
    assert agenda.due(9.0) == [7]


def test_of_many_only_a_few_are_woken_and_the_others_soon_after() -> None:
    agenda = Agenda()
    gate = agenda.gate()
    for host in [*range(3 * FEW), *range(3 * FEW)]:
        agenda.queue(host, gate)
    assert agenda.due(0.0) == list(range(FEW))
    assert agenda.due(0.0) == []
    assert agenda.due(RETRY_AFTER) == list(range(FEW, 2 * FEW))
    gate.held = 1
    agenda.queue(0, gate)
    assert agenda.due(10.0) == []
    agenda.release(gate, 20.0)
    assert agenda.due(20.0) == [*range(2 * FEW, 3 * FEW)]
    assert agenda.due(20.0 + RETRY_AFTER) == [0]


@given(st.lists(st.tuples(st.sampled_from("qhrw"), st.integers(0, 5), st.integers(0, 1), st.floats(0, 9)), max_size=60))
def test_whoever_waits_has_something_to_wake_him(steps: list[tuple[str, int, int, float]]) -> None:
    agenda, now = Agenda(), 0.0
    gates = [agenda.gate(), agenda.gate()]
    waiting: set[tuple[int, int]] = set()
    for what, host, number, seconds in steps:
        gate = gates[number]
        if what == "q":
            agenda.queue(host, gate)
            waiting.add((host, number))
        elif what == "h" and gate.is_open(now):
            gate.held += 1
        elif what == "r" and gate.held:
            agenda.release(gate, now + seconds)
        elif what == "w":
            now += seconds
            for woken in agenda.due(now):
                assert any(gates[which].is_open(now) for one, which in waiting if one == woken)
        waiting = {(host, which) for which in (0, 1) for host in gates[which].queue}
        for which in (0, 1):
            assert not gates[which].queue or gates[which].held or gates[which].is_planned
    for gate in gates:
        while gate.held:
            agenda.release(gate, now)
    left, woken_at_last = {host for gate in gates for host in gate.queue}, set[int]()
    while (soonest := agenda.next) is not None:
        woken_at_last.update(agenda.due(soonest))
    assert woken_at_last == left
