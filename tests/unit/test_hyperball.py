"""HyperBall: errors as predicted, coverage of intervals, the same bytes on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import graph_distances
import webs
from surveyor import Graph, UsageError
from surveyor.rank.domains.reach_sketches import harmonic, hyperball
from surveyor.rank.domains.reputation import Reputation, Resources

SEEDS = 24


def supporters(graph: Graph, depth: int = 2, **options: Any) -> Reputation:
    return hyperball(graph, depth, keep=[depth], **options).supporters(depth)


@pytest.mark.parametrize("registers", [16, 64, 256])
def test_the_error_of_a_large_level_is_as_predicted(registers: int) -> None:
    """1.04 / √m, or less: 400 seeds estimate a standard deviation to within 3.5 %; three times that is allowed."""
    graph = graph_distances.crowd(3, 20 * registers)
    options: dict[str, Any] = {"registers": registers, "resources": Resources(threads=1)}
    found = np.array([supporters(graph, rng=seed, **options).score(0) for seed in range(400)])
    error = found / (20 * registers) - 1
    theory = 1.04 / np.sqrt(registers)
    assert 0.88 < np.sqrt(np.mean(error**2)) / theory < 1.11
    assert abs(error.mean()) < 3 * theory / np.sqrt(400) + 0.25 / registers


def test_a_small_level_after_a_large_one_is_estimated_well() -> None:
    """The difference of two balls would have an error of 13 % of 4,000: 520. Changed registers are more informative."""
    graph = graph_distances.crowd(4000, 400)
    results = [supporters(graph, rng=seed) for seed in range(300)]
    found = np.array([result.score(0) for result in results])
    stated = np.sqrt(np.mean([400 * result.error_model.dispersion[0] for result in results]))  # type: ignore[attr-defined]
    assert abs(found.mean() - 400) < 3 * found.std() / np.sqrt(300) + 8
    assert 0.86 < found.std() / np.sqrt(400 * 4400 * 1.386 / 64) < 1.14  # 195; three times the error of 300 seeds
    assert 0.8 < found.std() / stated < 1.2
    ends = np.array([result.interval(0) for result in results])
    assert np.mean((ends[:, 0] <= 400) & (ends[:, 1] >= 400)) > 0.93


@pytest.mark.parametrize("registers", [16, 64, 256])
@pytest.mark.slow
def test_intervals_have_their_stated_coverage(registers: int) -> None:
    graph = graph_distances.skewed(500, 1500, 3)
    exact, levels = (
        graph_distances.harmonic(graph),
        {depth: graph_distances.supporters(graph, depth) for depth in (2, 3)},
    )
    held: dict[object, list[float]] = {"harmonic": [], 2: [], 3: []}
    for seed in range(SEEDS):
        balls = hyperball(graph, registers=registers, rng=seed, keep=[2, 3], resources=Resources(threads=1))
        low, high = balls.harmonic().intervals()
        held["harmonic"].append(float(np.mean((low <= exact + 1e-4) & (exact <= high + 1e-4))))
        for depth, truth in levels.items():
            low, high = balls.supporters(depth).intervals()
            held[depth].append(float(np.mean(((low <= truth) & (truth <= high))[truth > 0])))
    assert all(np.mean(shares) >= 0.93 for shares in held.values()), held


def test_harmonic_is_within_its_error() -> None:
    """Errors of one seed are correlated, so only seeds count: 150 estimate a standard deviation to within 6 %."""
    graph = graph_distances.skewed(300, 1500, 4)
    exact = graph_distances.harmonic(graph)
    some = exact > 20
    results = [harmonic(graph, rng=seed, resources=Resources(threads=1)) for seed in range(150)]
    errors = np.array([result.scores[some] / exact[some] - 1 for result in results])
    assert np.sqrt(np.mean(errors**2)) < 1.04 / 8  # HyperBall's own
    assert abs(errors.mean()) < 3 * errors.mean(axis=1).std() / np.sqrt(150) + 0.5 / 64
    stated = np.array([result.error_model.dispersion[some] / exact[some] for result in results])  # type: ignore[attr-defined]
    assert 0.82 < np.sqrt(np.mean(errors**2 / stated)) < 1.18


@given(graph=webs.graphs(max_pages=12, max_links=30))
def test_tiny_graphs_are_nearly_exact(graph: Graph) -> None:
    """Twelve domains collide little in 1,024 registers; a collision loses one domain, within the interval."""
    balls = hyperball(graph, registers=1024, keep=[1, 2, 3])
    exact = graph_distances.harmonic(graph)
    assert np.abs(balls.harmonic().scores - exact).max() < 0.6
    for depth in (1, 2, 3):
        truth, result = graph_distances.supporters(graph, depth), balls.supporters(depth)
        low, high = result.intervals()
        assert np.all((low <= truth) & (truth <= high))
        assert np.mean(np.abs(result.scores - truth)) < 0.2
    assert balls.supporters(1).scores.tolist() == graph_distances.supporters(graph, 1).tolist()


def test_levels_are_those_of_a_chain() -> None:
    balls = hyperball(webs.chain(30), registers=1024, keep=[29, 30, 31])
    assert balls.levels == 29
    assert balls.complete
    assert len(balls.reach) == 30
    assert balls.supporters(29).top(1).tolist() == [29]
    assert balls.supporters(31).scores.max() == 0
    assert balls.harmonic().score(29) == pytest.approx(sum(1 / level for level in range(1, 30)), rel=0.05)
    assert repr(balls) == "Balls(30 domains, 29 levels, complete)"


def test_depth_ends_the_levels() -> None:
    balls = hyperball(webs.chain(30), 3)
    assert (balls.levels, balls.complete) == (3, False)
    assert balls.harmonic().score(20) == pytest.approx(1 + 1 / 2 + 1 / 3, rel=0.05)
    assert hyperball(webs.chain(30), 1).harmonic().scores.tolist() == [0.0] + [1.0] * 29


def test_a_path_around_a_cycle_does_not_count_the_domain_itself() -> None:
    assert supporters(webs.cycle(2), registers=1024).scores.tolist() == [0, 0]
    assert supporters(webs.cycle(3), 3, registers=1024).scores.tolist() == [0, 0, 0]


def test_threads_and_blocks_do_not_change_a_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = webs.random_web(3000, 20_000, 5)
    monkeypatch.setattr("surveyor.rank.sweeps.BLOCK", 1 << 11)
    one = hyperball(graph, resources=Resources(threads=1), keep=[2, 4])
    four = hyperball(graph, resources=Resources(threads=4), keep=[2, 4])
    monkeypatch.undo()
    whole = hyperball(graph, resources=Resources(threads=2), keep=[2, 4])
    for other in (four, whole):
        assert other.harmonic().raw.tobytes() == one.harmonic().raw.tobytes()
        assert other.dispersion.tobytes() == one.dispersion.tobytes()
        assert all(np.array_equal(other.kept[depth], one.kept[depth]) for depth in (2, 4))
    assert hyperball(graph, rng=8).totals.tobytes() != one.totals.tobytes()


@pytest.mark.parametrize("pages", [0, 1, 5])
def test_graphs_without_links(pages: int) -> None:
    nothing = np.empty(0, np.int64)
    graph = Graph.from_arrays(nothing, nothing, pages)
    balls = hyperball(graph, keep=[2])
    assert (balls.levels, balls.complete) == (0, True)
    assert balls.harmonic().scores.tolist() == [0.0] * pages
    low, high = balls.supporters(2).intervals()
    assert low.tolist() == high.tolist() == [0.0] * pages


def test_memory_chooses_the_registers() -> None:
    graph = webs.chain(100)
    assert harmonic(graph, resources=Resources(memory=2 * 100 * 300)).method["registers"] == 256
    assert harmonic(graph, resources=Resources(memory=1 << 40)).method["registers"] == 1024
    with pytest.raises(UsageError, match="memory must be at least 3,200 bytes for 100 domains, got 1,000"):
        harmonic(graph, resources=Resources(memory=1000))


def test_invalid_arguments() -> None:
    graph = webs.chain(4)
    for registers in (0, 8, 48, 2048):
        with pytest.raises(UsageError, match=rf"registers must be a power of two in \[16, 1024\], got {registers}"):
            hyperball(graph, registers=registers)
    with pytest.raises(UsageError, match="depth must be at least 1, got 0"):
        supporters(graph, 0)
    with pytest.raises(UsageError, match=r"keep must hold levels in \[1, 2\], got 3"):
        hyperball(graph, 2, keep=[3])
    with pytest.raises(UsageError, match=r"depth 2 .*\n  hint: hyperball\(graph, keep=\[2\]\)"):
        hyperball(graph).supporters(2)


def test_the_result_is_a_reputation() -> None:
    graph = Graph.from_edges([("a", "b"), ("c", "b"), ("b", "d"), ("e", "d")])
    score = harmonic(graph)
    assert score.kind == "harmonic"
    assert score.name(int(score.top(1)[0])) == "d"
    rows = score.to_dict(2)
    assert rows["registers"] == 64
    assert rows["domains"][0]["low"] <= 3 <= rows["domains"][0]["high"] + 0.01
    assert supporters(graph).interval("d") == (1.0, 3.0)
