"""Statistics of a scout against exact oracles, its walks against dense PageRank, and its forecasts."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import surveyor as sv
from crawl_states import fresh
from surveyor.crawler.loop import Crawl, Tally
from surveyor.crawler.scout_walks import ScoutPlan, ScoutWalks, Walk
from surveyor.crawler.strategies import by_name
from surveyor.errors import UsageError
from surveyor.estimate.scouting.forecasts import ScoutedSite, forecasts
from surveyor.estimate.scouting.scout import ScoutOptions
from surveyor.estimate.scouting.walk_statistics import (
    CoverageCurve,
    coverage_curve,
    members_at_least,
    share_estimate,
    unseen_mass,
    upper_bound,
)
from surveyor.outcome import Event, Outcome
from surveyor.stopping import Scouted

SEEDS = (0, 7)
LINKS: dict[int, list[int]] = {
    0: [1, 2, 3, 8],
    1: [2, 9],
    2: [4],
    3: [],
    4: [5, 6, 0],
    6: [10, 11, 1],
    7: [0, 4],
    11: [7],
}
MOVES = {8: 1, 9: 10}
GONE = {5}


def outcome(page: int) -> Outcome:
    if page in MOVES:
        return Outcome(page, "redirected", target=MOVES[page])
    if page in GONE:
        return Outcome(page, "gone")
    return Outcome(page, "fetched", np.array(LINKS.get(page, []), np.int32))


def importance(damping: float) -> np.ndarray:
    """Solve for PageRank with jumps to the seeds; pages gone or without links lead to the seeds."""
    pages, jumps = 12, np.zeros(12)
    jumps[list(SEEDS)] = 0.5
    moves = np.zeros((pages, pages))
    for page in range(pages):
        goals = [MOVES.get(goal, goal) for goal in LINKS.get(page, [])] if page not in GONE else []
        for goal in goals:
            moves[goal, page] += 1 / len(goals)
        if not goals:
            moves[:, page] = jumps
    return np.linalg.solve(np.eye(pages) - damping * moves, (1 - damping) * jumps)


def state_of(walks: int, secret: str = "s") -> Crawl:  # noqa: S107
    crawl = fresh(by_name("breadth"), SEEDS)
    crawl = Crawl(crawl.graph, crawl.ledger, crawl.strategy, crawl.frontier, crawl.walks, ScoutWalks(crawl.ledger))
    detail = {"secret": secret, "damping": crawl.ledger.damping, "walks": walks, "sample": 3, "requests": 0}
    crawl.apply_event(Event("scout", 0.0, detail))
    return crawl


def scout_of(crawl: Crawl) -> ScoutWalks:
    assert crawl.scout is not None
    return crawl.scout


def fetch_wanted(crawl: Crawl, *, blocked: frozenset[int] = frozenset()) -> int:
    """Fetch what the walks wait for until nothing is left; return the number of pages."""
    count = 0
    while (wanted := scout_of(crawl).wanted(())).size:
        page = int(wanted[0])
        crawl.apply(Outcome(page, "blocked", reason="robots") if page in blocked else outcome(page))
        count += 1
    return count


def test_ends_are_a_sample_from_importance() -> None:
    crawl = state_of(6_000)
    fetch_wanted(crawl)
    walks = scout_of(crawl).walks
    assert all(walk.ended for walk in walks)
    counts = np.bincount([walk.pages[-1] for walk in walks], minlength=12)
    expected = 6_000 * importance(0.85)
    assert not counts[list(MOVES)].any()
    held = expected > 0
    chi_square = ((counts - expected)[held] ** 2 / expected[held]).sum()
    assert chi_square < 26.1  # 99.8 % quantile for 9 degrees of freedom
    clicked = np.mean([walk.clicked for walk in walks if len(walk.pages) > 1])
    assert 0.5 < clicked < 1
    assert not any(walk.clicked for walk in walks if len(walk.pages) == 1)


def test_walks_do_not_depend_on_the_order_of_fetches() -> None:
    crawl, other = state_of(50), state_of(50)
    fetch_wanted(crawl)
    for page in [*range(12), *reversed(range(12))]:  # what no page links to yet is ignored the first time
        known = other.ledger.state[page] if page < other.ledger.capacity else 0
        if known:
            other.apply(outcome(page))
    fetch_wanted(other)
    assert scout_of(crawl).walks == scout_of(other).walks
    assert scout_of(state_of(50, "t")).walks != scout_of(crawl).walks


def test_walks_stuck_on_blocked_pages_stay_unfinished() -> None:
    crawl = state_of(200)
    fetch_wanted(crawl, blocked=frozenset({4}))
    scout = scout_of(crawl)
    assert 0 < scout.unfinished < 200
    assert not scout.is_walking()
    assert scout.unfinished == sum(not walk.ended for walk in scout.walks)
    progress = scout.progress(20)
    assert progress is not None
    assert not progress.ended  # the sample is missing
    crawl.apply_event(Event("scout_sample", 0.0, scout.draw()))
    progress = scout.progress(20)
    assert progress is not None
    assert progress.ended == (not scout.wanted(()).size)


def test_changed_pages_discard_the_walks() -> None:
    crawl = state_of(20)
    fetch_wanted(crawl)
    crawl.apply(Outcome(0, "fetched", np.array([2], np.int32)))
    assert scout_of(crawl).count == 0
    assert scout_of(crawl).progress(5) is None


def test_walks_of_another_damping_are_not_started() -> None:
    crawl = state_of(20)
    crawl.apply_event(Event("scout", 0.0, {"secret": "s", "damping": 0.5, "walks": 9, "sample": 1, "requests": 0}))
    assert scout_of(crawl).count == 0


def test_the_plan_starts_walks_then_draws_a_sample() -> None:
    crawl, tally = fresh(by_name("breadth"), SEEDS), Tally(secret=lambda: "s")
    crawl = Crawl(crawl.graph, crawl.ledger, crawl.strategy, crawl.frontier, crawl.walks, ScoutWalks(crawl.ledger))
    plan = ScoutPlan(Scouted(10, 2, 100), crawl, tally)
    (event,) = plan.next_events(1.0)
    assert (event.kind, event.detail["walks"], event.detail["requests"]) == ("scout", 10, 0)
    crawl.apply_event(event)
    assert plan.next_events(1.0) == []
    tally.requests = 97  # too few are left for more walks
    (event,) = plan.next_events(1.0)
    assert event.kind == "scout_sample"
    assert event.detail == {"pages": [0, 7], "unfetched": 2, "fetched": 0}


def test_the_sample_is_uniform() -> None:
    counts = np.zeros(12)
    for number in range(600):
        crawl = state_of(1, f"secret {number}")
        for page in (0, 7, 4):
            crawl.apply(outcome(page))
        detail = scout_of(crawl).draw()
        assert detail["unfetched"] == 6  # 1, 2, 3, 8, 5, 6
        counts[detail["pages"]] += 1
    chosen = counts[counts > 0]
    assert chosen.size == 6
    assert ((chosen - 300) ** 2 / 150).sum() < 20.5  # three of six: variance 1/4 each


def tail(trials: int, count: int, p: float) -> float:
    return math.fsum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(count, trials + 1))


@pytest.mark.parametrize(("count", "unknown", "trials"), [(0, 0, 10), (3, 0, 10), (10, 0, 10), (7, 4, 60), (0, 9, 9)])
def test_intervals_have_exact_tails(count: int, unknown: int, trials: int) -> None:
    made = share_estimate(count, unknown, trials)
    if count:
        assert tail(trials, count, made.at_least) == pytest.approx(0.025)
    else:
        assert made.at_least == 0
    if count + unknown < trials:
        assert 1 - tail(trials, count + unknown + 1, made.at_most) == pytest.approx(0.025)
    else:
        assert made.at_most == 1
    assert made.share == (count / (trials - unknown) if trials > unknown else None)


def test_no_walks_give_no_information() -> None:
    made = share_estimate(0, 0, 0)
    assert (made.share, made.at_least, made.at_most) == (None, 0, 1)
    assert upper_bound(0, 0) == 1
    assert upper_bound(0, 59) == pytest.approx(1 - 0.05 ** (1 / 59))


@pytest.mark.parametrize(
    ("population", "drawn", "members"), [(12, 5, 3), (12, 5, 5), (12, 5, 1), (9, 9, 4), (40, 6, 6)]
)
def test_the_size_bound_is_exact(population: int, drawn: int, members: int) -> None:
    def reached(true: int) -> float:
        ways = range(members, min(drawn, true) + 1)
        hits = sum(math.comb(true, k) * math.comb(population - true, drawn - k) for k in ways)
        return hits / math.comb(population, drawn)

    first = next(true for true in range(members, population + 1) if reached(true) > 0.05)
    assert members_at_least(population, drawn, members) == first


def test_unseen_mass_counts_ends_that_no_other_walk_visited() -> None:
    walks = [Walk((0, 1), True, True), Walk((0, 1, 2), True, True), Walk((0,), True, False), Walk((0, 3), True, True)]
    made = unseen_mass(walks)
    assert made.estimate == 0.5  # 2 and 3
    assert made.at_most == pytest.approx(upper_bound(1, 2))
    assert unseen_mass([*walks, Walk((0,), False, True)]).at_most == pytest.approx(upper_bound(2, 3))
    assert unseen_mass(walks, is_half_done=False).at_most is None
    assert unseen_mass([Walk((), False, False)] * 2).estimate is None


def test_the_coverage_curve_is_the_mean_over_all_subsets() -> None:
    walks = [Walk((0, 1), True, True), Walk((0, 1, 2), True, True), Walk((0,), True, False), Walk((0, 3), True, True)]
    curve = coverage_curve(walks)
    pages = [
        np.mean([len({p for walk in some for p in walk.pages}) for some in combinations(walks, n)]) for n in (1, 2, 3)
    ]
    covered = []
    for size in (1, 2, 3):
        hits = []
        for number, walk in enumerate(walks):
            others = walks[:number] + walks[number + 1 :]
            hits += [walk.pages[-1] in {p for one in some for p in one.pages} for some in combinations(others, size)]
        covered.append(np.mean(hits))
    assert curve.pages == pytest.approx(np.array(pages))
    assert curve.coverage == pytest.approx(np.array(covered))
    assert coverage_curve(walks[:1]).pages.size == 0


def site(certified: np.ndarray, best: float = 1.0, rate: float | None = 2.0, *, complete: bool = False) -> ScoutedSite:
    return ScoutedSite(
        certified.size, certified, CoverageCurve(np.array([10.0, 40.0]), np.array([0.5, 0.75])), best, rate, complete
    )


def test_forecasts_extrapolate_a_power_law() -> None:
    certified = 1 - 0.9 * np.arange(1, 101) ** -0.5
    half, most = forecasts(site(certified), [0.5, 0.94])
    assert (half.certified_pages, half.certified_hours, half.sampled_pages) == (4, 0.0, 4)
    assert most.certified_pages == pytest.approx(225, rel=0.1)
    assert most.certified_hours == pytest.approx((225 - 100) / 2 / 3600, rel=0.2)
    assert most.reason == ""
    assert forecasts(site(certified, rate=None), [0.94])[0].certified_hours is None


def test_forecasts_are_refused_with_a_reason() -> None:
    slow, steady = np.full(100, 0.3), 1 - 0.9 * np.arange(1, 101) ** -0.5
    assert "too slowly" in forecasts(site(slow), [0.9])[0].reason
    assert "blocked" in forecasts(site(steady, best=0.92), [0.95])[0].reason
    assert "fewer than 20" in forecasts(site(steady[:10]), [0.95])[0].reason
    assert "no known URL" in forecasts(site(steady, complete=True), [0.95])[0].reason
    assert forecasts(site(np.empty(0)), [0.9])[0].certified_pages is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"walks": 1}, "walks must be from 2 to 10,000, got 1"),
        ({"sample": -1}, "sample must be from 0 to 10,000, got -1"),
        ({"walks": 2.5}, "walks must be from 2 to 10,000, got 2.5"),
        ({"until": "coverage=0.9"}, "there is no stopping rule 'coverage'"),
        ({"until": "requests=0"}, "requests must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ScoutOptions(**options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        sv.scout("https://a.example/", contact="me@example.org", **options)  # type: ignore[arg-type]


def test_what_is_certified_already_is_no_forecast() -> None:
    before = site(1 - 0.9 * np.arange(1, 101) ** -0.5)  # 91 % at the end of the scout
    grown = ScoutedSite(900, before.certified, before.curve, 1.0, 2.0, now=0.97)
    reached, missing = forecasts(grown, [0.95, 0.98])
    assert (reached.certified_pages, reached.certified_hours, reached.sampled_pages) == (900, 0.0, 900)
    assert missing.certified_pages is not None
    assert missing.certified_pages > 900
