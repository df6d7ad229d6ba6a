"""What samples know about pages that they did not reach."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surveyor as sv
from surveyor.arrays import BoolArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.distributions import clopper_pearson, hypergeometric_interval
from surveyor.estimate.sampling.independent_draws import Draws
from surveyor.estimate.sampling.parts import Parts, groups_of_walks, largest_missed, pages_off_topic
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace

MAIN, POCKET = 1_932, 68  # 3.4 % of the topic


def pocket_web(bridges: int = 1, seed: int = 0) -> tuple[sv.Graph, BoolArray]:
    """Return a random web with a pocket that few links connect to the rest."""
    rng = np.random.default_rng(seed)
    links = [rng.integers(0, MAIN, (6 * MAIN, 2)), rng.integers(MAIN, MAIN + POCKET, (6 * POCKET, 2))]
    links.append(np.column_stack([np.arange(bridges), MAIN + np.arange(bridges)]))
    ends = np.concatenate(links)
    return sv.Graph.from_arrays(ends[:, 0], ends[:, 1], MAIN + POCKET), np.arange(MAIN + POCKET) >= MAIN


def reachable(graph: sv.Graph, topic: BoolArray, start: int, off: int) -> set[int]:
    """Walk over at most `off` pages off topic in a row, in plain Python."""
    near: dict[int, set[int]] = {page: set() for page in range(graph.pages)}
    for page in range(graph.pages):
        for other in graph.links_of(page).tolist():
            near[page].add(other)
            near[other].add(page)
    seen, front = {(start, 0)}, [(start, 0)]
    while front:
        page, steps = front.pop()
        for other in near[page]:
            state = (other, 0 if topic[other] else steps + 1)
            if state[1] <= off and state not in seen:
                seen.add(state)
                front.append(state)
    return {page for page, _ in seen if topic[page]}


@given(st.integers(0, 5_000), st.integers(0, 3))
def test_parts_are_the_pages_that_a_walk_reaches(seed: int, off: int) -> None:
    rng = np.random.default_rng(seed)
    pages = int(rng.integers(2, 30))
    sources, targets = rng.integers(0, pages, (2, pages))
    graph = sv.Graph.from_arrays(sources, targets, nodes=pages)
    topic = rng.random(pages) < 0.5
    topic[0] = True
    parts = Parts.of(NeighbourLists.of(graph), topic, off)
    assert (parts.of_page[~topic] == -1).all()
    assert parts.sizes.tolist() == sorted(parts.sizes.tolist(), reverse=True)
    for start in np.flatnonzero(topic).tolist():
        own = set(np.flatnonzero(parts.of_page == parts.of_page[start]).tolist())
        assert own == reachable(graph, topic, start, off)
        assert parts.sizes[parts.of_page[start]] == len(own)


@pytest.mark.parametrize("method", ["hard", "nonbacktracking", "mixture", "trial", "webwalker"])
def test_walks_visit_exactly_their_part(method: str) -> None:
    rng = np.random.default_rng(4)
    sources, targets = rng.integers(0, 60, (2, 75))
    graph = sv.Graph.from_arrays(sources, targets, nodes=60)
    topic, plan = rng.random(60) < 0.5, WalkPlan(method)
    neighbours = NeighbourLists.of(graph)
    parts = Parts.of(neighbours, topic, pages_off_topic(plan))
    for start in np.flatnonzero(parts.of_page == 0)[:3].tolist():
        walks = CompiledWalks(neighbours, topic, [start], plan)
        walks.advance(20_000)
        trace = walks.trace()
        assert set(trace.page[trace.on_topic].tolist()) == set(np.flatnonzero(parts.of_page == 0).tolist())


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=5), min_size=1, max_size=7))
def test_walks_with_a_common_page_are_in_one_group(walks: list[list[int]]) -> None:
    page = np.array([page for one in walks for page in one], np.int32)
    walk = np.repeat(np.arange(len(walks), dtype=np.int32), [len(one) for one in walks])
    ones = np.ones(page.size)
    found = groups_of_walks(WalkTrace(walk, np.zeros_like(walk), page, ones > 0, ones, walk.astype(np.int64)))
    sets = [set(one) for one in walks]
    for _ in walks:
        sets = [set().union(*(other for other in sets if other & one)) for one in sets]
    assert [[one == other for other in found] for one in found] == [[bool(a & b) for b in sets] for a in sets]


@pytest.mark.parametrize("samples", [8, pytest.param(150, marks=pytest.mark.slow)])
def test_a_pocket_is_never_missed_in_silence(samples: int) -> None:
    """Eight walks alone estimate 0 % (0 to 0.8) in three of four samples."""
    covered, reported = 0, 0
    for seed in range(samples):
        graph, pocket = pocket_web(seed=seed)
        topic = np.arange(graph.pages)
        drawn = sv.sample(graph, topic, rng=seed)
        share = drawn.share(pocket)
        assert drawn.reached
        assert share.low > 0  # pages of the pocket are among the draws
        covered += share.low <= 0.034 <= share.high
        walked = sv.sample(graph, topic, method="trial", rng=seed)
        share = walked.share(pocket)
        assert share.high > 0.02 or not walked.reached
        reported += not walked.reached
    assert covered >= 0.95 * samples - 5 * np.sqrt(0.95 * 0.05 * samples)
    assert reported > samples / 2


def test_a_tracked_share_that_draws_contradict_is_not_reached() -> None:
    graph, pocket = pocket_web(bridges=3)
    names = [f"https://{'pocket' if one else 'main'}.example/{page}" for page, one in enumerate(pocket.tolist())]
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees).tolist()
    graph = sv.Graph.from_edges([(names[a], names[b]) for a, b in zip(sources, graph.indices.tolist(), strict=True)])
    found = sv.sample(graph, of="host:pocket.example", start=["https://main.example/0"], until="ess=400", method="hard")
    assert (found.ending, found.reached) == ("missed", False)
    assert any("by 2,000 independent draws" in note for note in found.notes)
    share = found.share("host:pocket.example")
    assert share.low <= POCKET / graph.pages <= share.high
    assert found.to_dict()["reach"]["conclusive"] is False


def parts_web(sizes: list[int], seed: int = 1) -> tuple[sv.Graph, np.ndarray]:
    """Return random webs without links between them, and the number of the web of each page."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *sizes])
    ends = np.concatenate([rng.integers(a, b, (5 * (b - a), 2)) for a, b in pairwise(starts.tolist())])
    graph = sv.Graph.from_arrays(ends[:, 0], ends[:, 1], int(starts[-1]))
    return graph, np.repeat(np.arange(len(sizes)), sizes)


def test_a_topic_in_parts_has_the_size_of_all_of_them() -> None:
    graph, part = parts_web([600, 250, 150])
    for method in (None, "trial", "hard", "mixture"):
        found = sv.sample(graph, np.arange(1_000), method=method)
        size = found.size()
        assert (size.low, size.value, size.high) == (1_000, 1_000, 1_000)
        for number, share in enumerate((0.6, 0.25, 0.15)):
            estimate = found.share(part == number)
            assert estimate.low <= share <= estimate.high, method
        assert found.reached is (method is None)
    assert any("40 % of the topic were not reached (400 pages" in note for note in found.notes)


def test_starts_in_two_parts_end_within_seconds_with_the_reason() -> None:
    graph, _ = parts_web([500, 500])
    started = time.monotonic()
    found = sv.sample(graph, np.arange(1_000), start=[0, 700])
    assert time.monotonic() - started < 30  # with compilation
    assert (found.ending, found.reached) == ("parts", False)
    assert any("2 groups that never visited a common page" in note for note in found.notes)
    with pytest.raises(UsageError, match="2 groups that never met"):
        found.size()


def test_a_scattered_topic_is_refused_at_once() -> None:
    graph, _ = parts_web([20] * 50)
    with pytest.raises(UsageError, match=r"method hard cannot sample .* 50 parts .* largest holds 2 %") as error:
        sv.sample(graph, np.arange(1_000), method="hard")
    assert "uniform" in error.value.hint


def test_walks_without_a_collision_say_no_more_than_they_know() -> None:
    pages = np.arange(7_200)
    graph = sv.Graph.from_arrays(pages[::2], pages[1::2], nodes=7_201)  # pairs of pages
    found = sv.sample(graph, pages, method="hard", start=[0, 2, 4, 6], until="steps=4000")
    with pytest.raises(UsageError, match="4 groups"):
        found.size()
    alone = sv.sample(graph, pages[:2], method="hard", start=[0], until="steps=4000").size()
    assert alone.low == alone.value == 2


def test_draws_of_all_pages_are_exact() -> None:
    graph, part = parts_web([30, 20])
    found = sv.sample(graph, np.arange(50), of="degree")
    assert (found.ending, found.reached, found.complete) == ("complete", True, True)
    share, mean = found.share(part == 0), found.mean("out_degree")
    assert (share.low, share.value, share.high) == (0.6, 0.6, 0.6)
    assert mean.low == mean.value == mean.high == pytest.approx(graph.out_degrees.mean())
    assert found.notes == ()
    assert len(found.draws(200)) == 200


def test_intervals_of_draws_cover_shares_of_any_size() -> None:
    graph, _ = parts_web([3_000])
    flags = {share: np.random.default_rng(2).random(3_000) < share for share in (0.01, 0.1, 0.5)}
    right = dict.fromkeys(flags, 0)
    for seed in range(60):
        found = sv.sample(graph, np.arange(3_000), rng=seed)
        for share, values in flags.items():
            estimate = found.share(values)
            right[share] += estimate.low <= values.mean() <= estimate.high
    assert min(right.values()) >= 51
    assert sum(right.values()) >= 0.95 * 180 - 4 * np.sqrt(0.95 * 0.05 * 180)


@pytest.mark.parametrize(("draws", "population"), [(40, 50), (40, 90), (30, 1_000)])
def test_the_hypergeometric_interval_covers_any_number_of_pages(draws: int, population: int) -> None:
    """Exact coverage for each true number, by the probabilities of all outcomes."""
    intervals = [hypergeometric_interval(found, draws, population, 0.95) for found in range(draws + 1)]
    ways = [math.comb(population, draws)]
    for having in range(0, population + 1, max(1, population // 60)):
        covered = sum(
            math.comb(having, found) * math.comb(population - having, draws - found)
            for found, (low, high) in enumerate(intervals)
            if low <= having <= high
        )
        assert covered / ways[0] >= 0.95 - 1e-9
    binomial = [clopper_pearson(found / draws, draws, 0.95) for found in range(draws + 1)]
    lengths = [(high - low) / population for low, high in intervals]
    assert sum(lengths) < sum(high - low for low, high in binomial)


def test_size_by_draws_until_all_are_examined() -> None:
    topic = np.random.default_rng(1).random(5_000) < 0.2
    right = 0
    for seed in range(100):
        draws = Draws.of(np.arange(5_000, dtype=np.int32), seed, lambda page: bool(topic[page]))
        draws.extend(100, 10_000)
        size = draws.size()
        assert len(draws.drawn) == 100 <= size.low
        assert size.high <= 5_000
        right += size.low <= topic.sum() <= size.high
    assert right >= 86
    draws.extend(10_000, 10_000)
    assert draws.size().low == draws.size().high == topic.sum()


def test_the_largest_part_that_is_missed_once_in_twenty() -> None:
    assert (1 - largest_missed(400)) ** 400 == pytest.approx(0.05)
    assert largest_missed(0) == 1.0


def test_uniform_takes_no_options_of_walks() -> None:
    graph, _ = parts_web([30])
    with pytest.raises(UsageError, match="walks is an option of walks"):
        sv.sample(graph, "everything", method="uniform", walks=4)
    with pytest.raises(UsageError, match="method uniform draws stored pages"):
        sv.sample(["https://a.example/"], "everything", method="uniform", contact="me@example.org")
    assert sv.sample(graph, "everything", walks=4, until="steps=100").method == "trial"


def test_a_time_limit_ends_walks_and_draws() -> None:
    graph, _ = parts_web([3_000])
    for method in ("uniform", "trial"):
        found = sv.sample(graph, np.arange(3_000), method=method, until="ess=100k, minutes=0.00001")
        assert (found.ending, found.reached) == ("minutes", False)
    assert sv.sample(graph, np.arange(3_000), method="trial", until="minutes=0.00001").reached


def test_a_larger_radius_lets_the_neighbourhood_walk_go_further() -> None:
    """The pages of a path alternate in twos; a walk with radius 1 cannot cross two pages off topic."""
    path = np.arange(9)
    graph = sv.Graph.from_arrays(path[:-1], path[1:], nodes=9)
    topic = np.array([True, True, False, False, False, True, True, True, True])
    visited = {}
    for radius in (1, 2):
        walks = CompiledWalks(
            NeighbourLists.of(graph), topic, [0], WalkPlan("neighbourhood-paper", radius=radius, reach=10)
        )
        walks.advance(5_000)
        visited[radius] = set(walks.trace().page.tolist())
    assert visited[1] == {0, 1, 2}
    assert visited[2] == set(range(9))
