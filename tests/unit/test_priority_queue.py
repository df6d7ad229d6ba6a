"""The priority queue compared with an exhaustively searched dictionary."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.kernels.priority_queues import lease_best, new_queue, remove, set_priority

PRIORITIES = st.one_of(
    st.floats(allow_nan=False),
    st.floats(0.9, 1.1),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 5e-324]),
)


def best(held: dict[int, float]) -> int:
    return min(held, key=lambda page: (-held[page], page), default=-1)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ppppdt"), st.integers(0, 11), PRIORITIES), max_size=80))
def test_the_highest_priority_is_leased_first_after_any_changes(events: list[tuple[str, int, float]]) -> None:
    queue = new_queue(12)
    held: dict[int, float] = {}
    for event, page, priority in events:
        if event == "p":
            set_priority(queue, page, priority)
            held[page] = priority
        elif event == "d":
            remove(queue, page)
            held.pop(page, None)
        else:
            taken = lease_best(queue)
            remove(queue, max(taken, 0))
            assert taken == best(held)
            held.pop(taken, None)
        assert queue.counts[2] == len(held)
    while held:
        taken = lease_best(queue)
        assert taken == best(held)
        held.pop(taken)
    assert lease_best(queue) == -1


def test_many_pages_leave_in_order() -> None:
    pages, rng = 20_000, np.random.default_rng(3)
    queue = new_queue(pages)
    final = np.round(rng.pareto(1.0, pages), 2)  # with ties
    for page in rng.permutation(pages):
        set_priority(queue, int(page), float(rng.random()))
    for page in rng.permutation(pages):
        set_priority(queue, int(page), float(final[page]))
    taken = [lease_best(queue) for _ in range(pages)]
    assert taken == np.lexsort((np.arange(pages), -final)).tolist()


def test_a_leased_page_returns_only_after_removal() -> None:
    queue = new_queue(2)
    set_priority(queue, 0, 1.0)
    assert lease_best(queue) == 0
    set_priority(queue, 0, 2.0)
    assert lease_best(queue) == -1
    remove(queue, 0)
    set_priority(queue, 0, 2.0)
    assert lease_best(queue) == 0
