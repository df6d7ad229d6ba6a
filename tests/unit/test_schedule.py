from __future__ import annotations

import math

import numpy as np
import pytest
from experiments.watched_webs import Recipe, fresh_importance, is_fresh, watch, watched_web
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.arrays import FloatArray
from surveyor.crawler.schedule import DAY, Schedule, ScheduleOptions
from surveyor.errors import UsageError

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["observe", "signal", "listed", "queue", "drop", "defer", "plan", "due"]),
        st.integers(0, 6),
        st.floats(0, 1e10) | st.floats(0, 1e3),
        st.sampled_from([None, True, False]),
    ),
    max_size=40,
)
WEIGHTS = st.lists(st.sampled_from([0.0, 1e-300, 1e-12, 1.0, 3.0, 1e12]), min_size=7, max_size=7)


def visited(visits: int = 6, pages: int = 50, rate: float = 1e-3, **options: float) -> Schedule:
    """Return a schedule of pages visited daily; page p changes with probability p/pages."""
    rng = np.random.default_rng(3)
    schedule = Schedule(rate, start=0.0, options=ScheduleOptions(**options))
    for day in range(visits):
        for page in range(pages):
            changed = None if day == 0 else bool(rng.random() < page / pages)
            schedule.observe(page, day * DAY + page, changed=changed)
    return schedule


def dues(schedule: Schedule) -> FloatArray:
    return schedule._columns["due"][: schedule.pages].copy()


def test_a_page_is_due_when_its_value_reaches_the_price() -> None:
    schedule = visited()
    schedule.plan(6 * DAY, np.linspace(1, 3, 50))
    for page in np.flatnonzero(dues(schedule) > 6 * DAY):
        due = float(dues(schedule)[page])
        speed, last = schedule._columns["speed"][page], schedule._history.last[page]
        x = speed * (due - last)
        value = np.linspace(1, 3, 50)[page] / speed * (1 - math.exp(-x) * (1 + x))
        explored = last + schedule._columns["explore"][page]
        assert value == pytest.approx(schedule.price, rel=1e-5) or due == pytest.approx(explored)


@pytest.mark.parametrize("rate", [1e-5, 1e-4, 1e-3, 1e-1])
def test_as_many_pages_become_due_as_the_rate_allows(rate: float) -> None:
    schedule = visited(pages=400, rate=rate, shortest=0.0, explore=0.0)
    now = 6 * DAY
    schedule.plan(now, np.linspace(1, 3, 400))
    end = now + schedule.period
    level, length = schedule._thresholds(schedule.price, np.arange(400))
    again = length / schedule._columns["speed"][:400]
    due = np.maximum(schedule._history.last[:400] + level / schedule._columns["speed"][:400], now)
    worth = due <= end
    requests = float((1 + np.floor((end - np.maximum(due[worth], now)) / again[worth])).sum())
    assert np.isfinite(level).any()
    wanted = schedule._next_requests(now)
    assert requests == pytest.approx(wanted, rel=0.1, abs=2)


def test_more_important_pages_come_first_and_more_often() -> None:
    schedule = Schedule(1e-3, start=0.0)
    for page in range(3):
        schedule.observe(page, 0.0, changed=None)
    schedule.plan(1.0, [1.0, 4.0, 2.0])
    due = dues(schedule)
    assert due[1] < due[2] < due[0]
    late = schedule.due(1e9, 3)
    assert late.tolist() == [1, 2, 0]
    assert schedule.due(1e9, 2).tolist() == [1, 2]
    assert schedule.due(1e9, 0).size == schedule.due(1e9, -3).size == 0
    assert schedule.next_due() == due.min()


def test_a_new_page_is_worth_a_visit_whose_page_is_certainly_stale() -> None:
    schedule = visited()
    schedule.queue(50)
    weight = np.append(np.ones(50), 3.0)
    assert math.isinf(schedule._columns["due"][50])
    schedule.plan(6 * DAY, weight)
    fresh = schedule._values(6 * DAY, np.array([50]))[0]
    assert fresh == pytest.approx(3.0 / schedule._columns["speed"][50])
    assert schedule.due(6 * DAY, 1).tolist() == [50]
    weight[50] = 1e-9
    schedule.plan(5 * DAY + 100, weight)  # nothing is unused
    assert 50 not in schedule.due(5 * DAY + 100, 51)
    explored = 5 * DAY + 49 + schedule._columns["explore"][50]
    assert schedule._columns["due"][50] == pytest.approx(explored)  # but it is explored


def test_dropped_and_deferred_pages_are_not_due() -> None:
    schedule = visited()
    schedule.plan(60 * DAY, np.ones(50))
    first, second = schedule.due(60 * DAY, 2).tolist()
    schedule.drop(first)
    schedule.defer(second, 61 * DAY)
    assert not {first, second} & set(schedule.due(60.5 * DAY, 50).tolist())
    assert second in schedule.due(61 * DAY, 50)
    schedule.plan(60 * DAY, np.ones(50))
    assert not {first, second} & set(schedule.due(60.5 * DAY, 50).tolist())
    assert schedule.pages == 49
    schedule.observe(first, 60 * DAY, changed=True)
    assert schedule.pages == 50
    for page in range(50):
        schedule.drop(page)
    schedule.plan(62 * DAY, np.ones(50))
    assert schedule.next_due() == math.inf
    assert schedule.due(1e12, 5).size == 0
    assert schedule.forecast(62 * DAY).fresh == 0.0


@pytest.mark.slow
def test_exploration_is_bounded_and_reaches_every_page() -> None:
    schedule = visited(pages=200, explore=0.1)
    weight = np.zeros(200)
    weight[:20] = 1.0  # the others are never worth the price
    now, rate, seen, counts = 6 * DAY, schedule.rate, set(), [0, 0]
    for _ in range(450):
        now += 20 / rate
        schedule.plan(now, weight)
        for page in schedule.due(now, 20).tolist():
            counts[page >= 20] += 1
            seen.add(page)
            schedule.observe(page, now, changed=False)
    assert seen == set(range(200))
    assert 0 < counts[1] <= 0.105 * 450 * 20
    assert sum(counts) >= 0.95 * 450 * 20 or schedule.options.shortest > 20 / rate


def test_the_same_calls_give_the_same_schedule_and_plans_leave_no_trace() -> None:
    rng = np.random.default_rng(5)
    pages, at = rng.integers(0, 30, 600), np.sort(rng.uniform(0, 30 * DAY, 600))
    changed, weight = rng.random(600) < 0.4, rng.pareto(1, 30) + 0.1
    first = np.zeros(600, np.bool_)
    first[np.unique(pages, return_index=True)[1]] = True
    schedules = []
    for plans in (True, False):
        schedule = Schedule(1e-4, start=0.0)
        schedule.listed(np.arange(0, 30, 3))
        for page, when, mark, new in zip(pages.tolist(), at.tolist(), changed.tolist(), first.tolist(), strict=True):
            if page % 3 == 0:
                schedule.signal(page, when - 1)
            schedule.observe(page, when, changed=None if new else mark)
            if plans and page == 7:
                schedule.plan(when, weight)
                schedule.due(when, 3)
        schedule.plan(31 * DAY, weight)
        schedules.append(schedule)
    assert dues(schedules[0]).tolist() == dues(schedules[1]).tolist()
    assert schedules[0].rates().rate.tolist() == schedules[1].rates().rate.tolist()
    assert schedules[0].signal_quality() == schedules[1].signal_quality()
    many = Schedule(1e-4, start=0.0)
    many.observe_all(pages, at, np.where(first, -1, changed))
    one = Schedule(1e-4, start=0.0)
    for page, when, mark, new in zip(pages.tolist(), at.tolist(), changed.tolist(), first.tolist(), strict=True):
        one.observe(page, when, changed=None if new else mark)
    for schedule in (many, one):
        schedule.plan(31 * DAY, weight)
    assert dues(many).tolist() == dues(one).tolist()


def test_due_times_of_single_pages_are_those_of_the_plan() -> None:
    schedule = visited()
    schedule.listed([1, 2, 3])
    schedule.plan(6 * DAY, np.ones(50))
    schedule.signal(2, 6 * DAY)
    schedule.observe(3, 6.5 * DAY, changed=True)
    schedule.queue(55)
    alone = schedule._columns["due"].copy()
    assert schedule._due_times()[:50].tolist() == alone[:50].tolist()


@settings(max_examples=60, deadline=None)
@given(EVENTS, WEIGHTS, st.sampled_from([1e-9, 1e-3, 1e3]))
def test_no_sequence_of_calls_breaks_it(
    events: list[tuple[str, int, float, bool | None]], weights: list[float], rate: float
) -> None:
    schedule = Schedule(rate, start=0.0)
    active: set[int] = set()
    for name, page, at, changed in events:
        if name == "observe":
            schedule.observe(page, at, changed=changed, expires=at * 2)
            active.add(page)
        elif name == "plan":
            schedule.plan(at, weights)
            rates = schedule.rates()
            assert ((rates.rate > 0) & np.isfinite(rates.rate)).all()
            assert ((rates.low <= rates.rate * 1.01) & (rates.rate <= rates.high * 1.01)).all()
            forecast = schedule.forecast(at)
            assert 0 <= forecast.fresh <= 1 + 1e-9
            assert forecast.error >= 0
        elif name == "due":
            found = schedule.due(at, 3).tolist()
            assert len(found) == len(set(found)) <= 3
            assert set(found) <= active
            assert not found or schedule.next_due() <= at
        elif name == "listed":
            schedule.listed([page])
        elif name in ("queue", "drop"):
            getattr(schedule, name)(page)
            (active.add if name == "queue" else active.discard)(page)
        else:
            getattr(schedule, name)(page, at)
        assert not np.isnan(schedule._columns["due"]).any()
        assert schedule.pages == len(active)


def test_a_clock_that_was_wrong_does_not_block_pages() -> None:
    schedule = visited()
    for page in range(50):
        schedule.observe(page, 1e10, changed=False)  # the clock was far in the future
    schedule.plan(7 * DAY, np.ones(50))
    assert schedule.next_due() < 60 * DAY
    forecast = schedule.forecast(7 * DAY)
    assert forecast.fresh == pytest.approx(1.0)


def test_hints_of_servers_are_weak() -> None:
    def rate(expires: float, visits: int) -> float:
        schedule = Schedule(1e-3, start=0.0)
        for visit in range(visits + 1):
            schedule.observe(0, visit * DAY, changed=visit % 2 == 0 if visit else None, expires=visit * DAY + expires)
        schedule.plan(visits * DAY, [1.0])
        return float(schedule.rates().rate[0])

    slow, fast = rate(300 * DAY, 0), rate(60.0, 0)
    assert fast > 1.5 * slow
    assert rate(60.0, 40) < 1.2 * rate(300 * DAY, 40)


def test_signals_make_pages_due_earlier_if_they_were_right_and_only_then() -> None:
    gains = []
    for honest in (True, False):
        rng = np.random.default_rng(4)
        schedule = Schedule(60 / DAY, start=0.0)
        schedule.listed(np.arange(60))
        for day in range(15):
            for page in range(60):
                changed = bool(rng.random() < 0.4)
                announced = changed if honest else bool(rng.random() < 0.4)
                if announced and day:
                    schedule.signal(page, day * DAY - 60)
                schedule.observe(page, day * DAY + page, changed=changed if day else None)
        schedule.plan(15 * DAY, np.ones(60))
        before = dues(schedule)[5]
        schedule.signal(5, 14.1 * DAY)
        gains.append(before - dues(schedule)[5])
        quality = schedule.signal_quality()
        assert (quality.precision.value > 0.9) == honest
        assert quality.precision.low <= quality.precision.value <= quality.precision.high
    assert gains[0] > 0.2 * DAY
    assert gains[1] < 0.3 * gains[0]


def test_old_signals_are_ignored_and_visits_settle_them() -> None:
    schedule = visited()
    schedule.plan(6 * DAY, np.ones(50))
    before = dues(schedule)
    schedule.signal(4, 3 * DAY)
    assert dues(schedule).tolist() == before.tolist()
    schedule.signal(4, 6 * DAY)
    assert schedule._history.pending[4] == 1
    schedule.observe(4, 6.1 * DAY, changed=True)
    assert schedule._history.pending[4] == 0


def test_learned_schedules_are_close_to_known_rates_and_forecasts_are_right() -> None:
    web = watched_web(Recipe(pages=400, days=15, odd=0.3), 2)
    rate = 0.3 * float(web.rates.sum())
    z: list[float] = []

    def planned(now: float, schedule: Schedule, last: FloatArray) -> None:
        forecast = schedule.forecast(now)
        if now > web.end / 2:
            true = float(web.importance @ is_fresh(web, last, now)) / float(web.importance.sum())
            z.append((true - forecast.fresh) / forecast.error)

    edges = np.array([0.6, 1.0]) * web.end
    schedule = Schedule(rate, start=0.0, options=ScheduleOptions(shortest=1.0))
    learned = fresh_importance(web, watch(web, schedule, signals=False, planned=planned), edges)[0]
    from surveyor.crawler.revisits import freshness, optimal_intervals

    best = freshness(
        web.importance, web.rates, 1 / optimal_intervals(web.importance, web.rates, rate), spacing="regular"
    )
    assert learned >= 0.94 * best / web.importance.sum()
    assert abs(np.mean(z)) < 2


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_impossible_rates_are_refused(rate: float) -> None:
    with pytest.raises(UsageError, match="rate must be above 0"):
        Schedule(rate, start=0.0)


def test_impossible_calls_are_refused() -> None:
    schedule = Schedule(1.0, start=0.0)
    for call in (
        lambda: schedule.observe(-1, 0.0, changed=None),
        lambda: schedule.observe(0, math.nan, changed=None),
        lambda: schedule.signal(0, math.inf),
        lambda: schedule.defer(0, math.nan),
        lambda: schedule.listed([-2]),
        lambda: schedule.plan(0.0, [-1.0]),
        lambda: schedule.plan(math.nan, [1.0]),
        lambda: schedule.plan(0.0, [math.nan]),
        lambda: schedule.rates(),
        lambda: schedule.observe_all([0], [1.0, 2.0], [1]),
        lambda: schedule.observe_all([-1], [1.0], [1]),
        lambda: Schedule(1.0, start=0.0, options=ScheduleOptions(explore=1.0)),
        lambda: Schedule(1.0, start=0.0, options=ScheduleOptions(half_life=0.0)),
        lambda: Schedule(1.0, start=0.0, options=ScheduleOptions(shortest=-1.0)),
    ):
        with pytest.raises(UsageError, match="hint: "):
            call()
