"""Windows of Adaptive OPIC: contents, unbiasedness, and tracking of a changing web."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opic_fixtures import MAKERS, POLICIES, beginning, begun, distance, everywhere, holdings, jumps_of, rows_of
from oracles import dense_pagerank
from surveyor import pagerank
from surveyor.arrays import FloatArray
from surveyor.crawler.sources.graph import ChangingWeb
from surveyor.crawler.strategies.adaptive import AdaptiveOpic, Window
from surveyor.crawler.strategies.opic import Opic, Policy
from surveyor.kernels import opic_cash as kept
from surveyor.kernels import opic_cash as kernels
from surveyor.kernels.mass import Rows
from surveyor.outcome import NO_LINKS, Outcome
from surveyor.rank.pagerank import SolverOptions
from webs import chain, random_web

READS = st.lists(st.tuples(st.floats(0.01, 3), st.floats(0, 0.5)), max_size=30)


@settings(deadline=None)
@given(READS, st.floats(0.5, 6), st.integers(2, 5), st.floats(0, 0.5), st.floats(0.01, 1))
@pytest.mark.slow
def test_windows_equal_the_full_list_of_fetches(
    reads: list[tuple[float, float]], size: float, count: int, cash: float, wait: float
) -> None:
    windows = {"fixed": (kept.FIXED, size), "variable": (kept.VARIABLE, float(count))}
    for window, (kind, length) in windows.items():
        state = kept.new_earnings(2, kind, length)
        kept.start_earnings(state, 0, 1.0)
        pairs, now = [(1.0, 0.0)], 1.0
        for span, moved in reads:
            now += span
            while kept.lacks_pairs(state, 1):
                state = kept.with_pairs(state)
            record(state, moved, now)
            pairs.append((now, moved))
        now += wait
        if window == "fixed":
            older = [place for place, (when, _) in enumerate(pairs) if when <= now - length]
            recent = pairs[older[-1] if older else 0 :]
        else:
            recent = pairs[-count:]
        span, earned = now - recent[0][0], cash + sum(moved for _, moved in recent[1:])
        young = (window == "fixed" or len(reads) < count) and span < length / 4
        expected = (earned + length / 4 * 0.1) / (span + length / 4) if young else earned / span
        assert kept.earning_rate(state, 0, cash, now, 0.1) == pytest.approx(expected)


def record(state: kept.Earnings, moved: float, now: float) -> None:
    kept.record_earnings(state, 0, moved, now)


def test_bao_keeps_one_window_in_one_number() -> None:
    state = kept.new_earnings(1, kept.BAO, 8.0)
    kept.start_earnings(state, 0, 100.0)
    record(state, 0.4, 103.0)  # the first read, 3 after the discovery: a rate of 0.4 / 3
    assert kept.earning_rate(state, 0, 0.0, 103.0, 0.01) == pytest.approx(0.4 / 3)
    record(state, 0.2, 107.0)
    assert kept.earning_rate(state, 0, 0.0, 107.0, 0.01) == pytest.approx(0.6 / 7)
    record(state, 0.5, 110.0)  # of the 7 units known before, 5 are still in the window of 8
    assert kept.earning_rate(state, 0, 0.0, 110.0, 0.01) == pytest.approx((0.6 * 5 / 7 + 0.5) / 8)
    before = state.history[0]
    record(state, 0.1, 112.0)
    assert state.history[0] == pytest.approx(before * 6 / 8 + 0.1)
    record(state, 0.9, 121.0)  # all that was known is old
    assert state.history[0] == pytest.approx(0.9 * 8 / 9)


def test_a_first_fetch_soon_after_discovery_is_blended_with_the_average() -> None:
    state = kept.new_earnings(1, kept.BAO, 8.0)
    kept.start_earnings(state, 0, 100.0)
    record(state, 0.4, 101.0)  # the rule: (c + H·κ) / (Δ/T + κ) in a window T, with H = T·average and κ = 1/4
    assert 8 * kept.earning_rate(state, 0, 0.0, 101.0, 0.01) == pytest.approx((0.4 + 0.08 * 0.25) / (1 / 8 + 0.25))


@pytest.mark.slow
def test_initial_cash_is_not_earned() -> None:
    window: Window
    for window in ("fixed", "variable", "bao"):
        strategy = begun(AdaptiveOpic(window, 8), beginning([0, 1], 3))
        graph = chain(3)
        strategy.observe(Outcome(0, "fetched", graph.links_of(0)), NO_LINKS)
        assert kept.earning_rate(strategy.cash.earnings, 0, 0.0, 0.5, 0.0) == 0
        assert kept.earning_rate(strategy.cash.earnings, 1, 0.5 + 0.425, 0.5, 0.0) == pytest.approx(0.425 / 2.5)


@pytest.mark.compiled
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.slow
def test_windows_are_unbiased_where_the_oldest_pair_does_not_count(policy: Policy) -> None:
    graph = random_web(400, 4000, 3)
    jumps = jumps_of(everywhere(graph), 400)
    truth = dense_pagerank(graph, 0.85, jumps, jumps)
    strategy = begun(AdaptiveOpic("variable", 4, policy=policy, teleport="uniform"), everywhere(graph))
    strategy.run(rows_of(graph), 20 * 400)
    rates, rates_with_oldest = np.zeros(400), np.zeros(400)
    for _ in range(100):
        strategy.run(rows_of(graph), 57)
        found = np.zeros(400)
        kernels.estimate(strategy.cash, found)
        pairs, now = strategy.cash.earnings, strategy.cash.totals[kernels.TIME]
        rates += found / 100
        rates_with_oldest += (found + pairs.what[pairs.oldest] / (now - pairs.when[pairs.oldest])) / 100
    assert rates.sum() == pytest.approx(1, abs=0.02)
    assert np.median(rates / truth) == pytest.approx(1, abs=0.03)
    assert 1.15 < rates_with_oldest.sum() < 1.5
    assert 1.15 < np.median(rates_with_oldest / truth) < 1.5


@pytest.mark.slow
def test_a_compiled_crawl_tracks_a_growing_web() -> None:
    graph = random_web(30, 120, 9)
    web = ChangingWeb(graph, np.random.default_rng(4), changed=0.1, born=0.2, died=0.05)
    for make in MAKERS:
        strategy = begun(make("greedy", "uniform"), everywhere(graph))
        for _ in range(4):
            web.step()
            assert strategy.run(web.rows, 2 * web.pages, web.dead).size == 2 * web.pages
        assert (strategy.cash.state[30 : web.pages] & kernels.KNOWN).sum() > 10
        assert holdings(strategy).sum() + strategy.cash.totals[kernels.VIRTUAL] == pytest.approx(1, abs=1e-12)
    alone = begun(Opic(), beginning([0], 1))
    assert alone.run(Rows(np.zeros(1, np.int64), np.zeros(1, np.int64), NO_LINKS), 3).tolist() == [0, 0, 0]


def current(strategy: Opic, web: ChangingWeb) -> FloatArray:
    """PageRank of the current web, with jumps to the pages that the strategy knows and considers alive."""
    alive = strategy.cash.state[: web.pages] == kernels.KNOWN
    return pagerank(web.graph(), teleport=alive.astype(float), options=SolverOptions(threads=1)).scores


@pytest.mark.compiled
@pytest.mark.parametrize("window", ["fixed", "variable", "bao"])
@pytest.mark.slow
def test_windows_track_a_changing_and_growing_web(window: Window) -> None:
    graph = random_web(200, 1600, 9)
    web = ChangingWeb(graph, np.random.default_rng(4), changed=0.05, born=0.01, died=0.01)
    plain = begun(Opic(teleport="uniform"), everywhere(graph))
    strategy = begun(AdaptiveOpic(window, teleport="uniform"), everywhere(graph))
    errors = []
    for epoch in range(24):
        web.step()
        for method in (plain, strategy):
            method.run(web.rows, web.pages, web.dead)
        if epoch >= 12:
            errors.append([distance(method.importance(), current(method, web)) for method in (plain, strategy)])
    assert np.mean(errors, axis=0)[1] < 0.8 * np.mean(errors, axis=0)[0]
