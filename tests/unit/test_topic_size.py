from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.estimate.sampling.estimates import relative_topic_size, topic_size
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walk_webs import communities, lazy_walks, many_traces, trace_of

DEGREES = np.array([1.0, 2.0, 4.0, 1.0, 3.0, 7.0])
WEB = communities(np.random.default_rng(1))


def pairwise_collisions(sample: WalkTrace) -> tuple[float, int]:
    """Sum degree ratios and collisions over all ordered pairs of rows of different walks."""
    ratios, collisions = 0.0, 0
    rows = range(len(sample))
    for first, second in itertools.permutations(rows, 2):
        if sample.walk[first] != sample.walk[second]:
            ratios += float(sample.degree[first] / sample.degree[second])
            collisions += int(sample.page[first] == sample.page[second])
    return ratios, collisions


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=2, max_size=5))
def test_topic_size_equals_the_pairwise_collision_estimator_for_walks_of_any_length(walks: list[list[int]]) -> None:
    page = np.array([page for one in walks for page in one], np.int32)
    walk = np.repeat(np.arange(len(walks), dtype=np.int32), [len(one) for one in walks])
    sample = WalkTrace(
        walk, np.zeros_like(walk), page, np.ones(page.size, np.bool_), DEGREES[page], np.arange(page.size)
    )
    ratios, collisions = pairwise_collisions(sample)
    found = topic_size(sample, burn_in=0.0)
    distinct = len(set(page.tolist()))
    if collisions:
        assert found.value == pytest.approx(max(ratios / collisions, distinct))
        assert distinct <= found.low <= found.high
        assert found.low <= found.value <= found.high
        assert f"{collisions // 2} collisions" in found.method
    else:
        assert found.value == found.high == math.inf
        assert found.low == distinct  # steps of walks that never met are no evidence of a large topic


def test_without_collisions_the_size_is_at_least_the_pages_seen_and_at_most_those_that_exist() -> None:
    sample = trace_of(np.arange(400).reshape(4, 100), np.full(400, 5.0))
    found = topic_size(sample, burn_in=0.0)
    assert found.low == 400
    assert found.high == math.inf
    assert topic_size(sample, burn_in=0.0, at_most=7_201).high == 7_201
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["value"], plain["high"]) == (None, None)


def test_one_collision_gives_a_wide_interval() -> None:
    pages = np.arange(400).reshape(4, 100)
    pages[1, 50] = pages[0, 50]
    found = topic_size(trace_of(pages, np.full(400, 5.0)), burn_in=0.0)
    assert found.value == pytest.approx(60_000)
    assert found.low < 15_000
    assert found.high > 1_000_000


def test_one_walk_raises() -> None:
    with pytest.raises(UsageError, match=r"topic size .* 2 walks, got 1"):
        topic_size(trace_of(np.array([[0, 1, 2, 1]]), DEGREES))


def test_walks_beyond_the_maximum_number_of_batches_are_grouped() -> None:
    rng = np.random.default_rng(2)
    sample = trace_of(lazy_walks(WEB, rng.integers(0, WEB.pages, 500), 40, rng), WEB.degree)
    found = topic_size(sample)
    assert found.low <= WEB.pages <= found.high
    assert found.high / found.low < 1.3
    assert found.walks == 500


@pytest.mark.slow
@pytest.mark.parametrize(("walks", "steps"), [(4, 500), (16, 150)])
def test_size_intervals_have_nominal_coverage_and_length(walks: int, steps: int) -> None:
    samples = many_traces(WEB, 200, walks, steps, np.random.default_rng([walks, steps]))
    estimates = [topic_size(sample) for sample in samples]
    coverage = np.mean([estimate.low <= WEB.pages <= estimate.high for estimate in estimates])
    length = np.median([math.log(estimate.high / estimate.low) / 2 for estimate in estimates])
    expected = 1.96 * np.std([math.log(estimate.value) for estimate in estimates])
    assert 0.89 <= coverage <= 0.995
    assert 0.8 <= length / expected <= 1.35
    assert np.mean([estimate.value for estimate in estimates]) == pytest.approx(WEB.pages, rel=0.03)


def test_relative_topic_size_includes_pages_off_topic() -> None:
    topic = WEB.community == 2
    rng = np.random.default_rng(3)
    sample = trace_of(lazy_walks(WEB, rng.integers(0, WEB.pages, 8), 2000, rng), WEB.degree, topic)
    found = relative_topic_size(sample)
    assert found.low <= 0.25 <= found.high
    assert found.margin < 0.06
    weight = 1 / sample.degree
    plain = relative_topic_size(sample, burn_in=0.0)
    assert plain.value == pytest.approx(float(weight[sample.on_topic].sum() / weight.sum()))
