from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.estimate.sampling.sizes import relative_size, size
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walking import communities, many_trails, trail_of, walked

DEGREES = np.array([1.0, 2.0, 4.0, 1.0, 3.0, 7.0])
WEB = communities(np.random.default_rng(1))


def by_loops(sample: WalkTrace) -> tuple[float, int]:
    """Compare each row with each row of another walk."""
    above, collisions = 0.0, 0
    rows = range(len(sample))
    for one, other in itertools.permutations(rows, 2):
        if sample.walk[one] != sample.walk[other]:
            above += float(sample.degree[one] / sample.degree[other])
            collisions += int(sample.page[one] == sample.page[other])
    return above, collisions


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=2, max_size=5))
def test_the_size_is_that_of_pairs_of_rows_of_walks_of_any_length(walks: list[list[int]]) -> None:
    page = np.array([page for one in walks for page in one], np.int32)
    walk = np.repeat(np.arange(len(walks), dtype=np.int32), [len(one) for one in walks])
    sample = WalkTrace(
        walk, np.zeros_like(walk), page, np.ones(page.size, np.bool_), DEGREES[page], np.arange(page.size)
    )
    above, collisions = by_loops(sample)
    found = size(sample, burn=0.0)
    seen = len(set(page.tolist()))
    if collisions:
        assert found.value == pytest.approx(max(above / collisions, seen))
        assert seen <= found.low <= found.high
        assert found.low <= found.value <= found.high
        assert f"{collisions // 2} collisions" in found.how
    else:
        assert found.value == found.high == math.inf
        assert found.low == pytest.approx(max(seen, above / 2 / -math.log(0.05)))


def test_no_collision_gives_a_lower_bound_that_three_expected_ones_explain() -> None:
    sample = trail_of(np.arange(400).reshape(4, 100), np.full(400, 5.0))
    found = size(sample, burn=0.0)
    assert found.low == pytest.approx(6 * 100 * 100 / 3, rel=0.01)
    assert found.high == math.inf
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["value"], plain["high"]) == (None, None)


def test_few_collisions_give_a_wide_interval() -> None:
    pages = np.arange(400).reshape(4, 100)
    pages[1, 50] = pages[0, 50]
    found = size(trail_of(pages, np.full(400, 5.0)), burn=0.0)
    assert found.value == pytest.approx(60_000)
    assert found.low < 15_000
    assert found.high > 1_000_000


def test_one_walk_is_not_enough() -> None:
    with pytest.raises(UsageError, match="one walk does not tell"):
        size(trail_of(np.array([[0, 1, 2, 1]]), DEGREES))


def test_many_walks_are_taken_together() -> None:
    rng = np.random.default_rng(2)
    sample = trail_of(walked(WEB, rng.integers(0, WEB.pages, 500), 40, rng), WEB.degree)
    found = size(sample)
    assert found.low <= WEB.pages <= found.high
    assert found.high / found.low < 1.3
    assert found.walks == 500


@pytest.mark.parametrize(("walks", "steps"), [(4, 500), (16, 150)])
def test_sizes_are_right_as_often_as_promised(walks: int, steps: int) -> None:
    found = [size(sample) for sample in many_trails(WEB, 200, walks, steps, np.random.default_rng([walks, steps]))]
    held = np.mean([one.low <= WEB.pages <= one.high for one in found])
    length = np.median([math.log(one.high / one.low) / 2 for one in found])
    needed = 1.96 * np.std([math.log(one.value) for one in found])
    assert 0.89 <= held <= 0.995
    assert 0.8 <= length / needed <= 1.35
    assert np.mean([one.value for one in found]) == pytest.approx(WEB.pages, rel=0.03)


def test_the_part_of_all_pages_that_is_on_topic_counts_pages_off_topic() -> None:
    topic = WEB.community == 2
    rng = np.random.default_rng(3)
    sample = trail_of(walked(WEB, rng.integers(0, WEB.pages, 8), 2000, rng), WEB.degree, topic)
    found = relative_size(sample)
    assert found.low <= 0.25 <= found.high
    assert found.margin < 0.06
    weight = 1 / sample.degree
    plain = relative_size(sample, burn=0.0)
    assert plain.value == pytest.approx(float(weight[sample.on_topic].sum() / weight.sum()))
