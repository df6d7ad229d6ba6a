"""How long a crawl takes, said before it starts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from surveyor.cli.crawl_display import CostLine, cost_line, forecast_line
from surveyor.crawler.pending import Forecast, forecast
from surveyor.crawler.session import Run
from surveyor.stopping import parse_rule


@given(st.lists(st.tuples(st.integers(0, 500), st.sampled_from([0.5, 1.0, 7.0])), max_size=8))
def test_no_order_reads_what_waits_faster(hosts: list[tuple[int, float]]) -> None:
    waiting, delays = [pages for pages, _ in hosts], [delay for _, delay in hosts]
    result = forecast(waiting, delays)
    assert result.pages == sum(waiting)
    assert result.seconds == max((pages * delay for pages, delay in hosts), default=0.0)
    assert result.rate * result.seconds >= result.pages - 1e-9  # no host can be asked more often


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (Forecast(0, 0, 0.0, 0.0), ""),
        (Forecast(9, 1, math.inf, 0.0), ""),
        (Forecast(1, 1, 1.0, 1.0), "at most 1 page per second from 1 host known so far"),
        (Forecast(1, 1, 2600.0, 1.0), "at most 2,600 pages per second"),
        (Forecast(9, 3, 3.0, 500.0, is_goal=True), "; at that rate the goal takes 8 min"),
        (
            Forecast(1200, 1, 0.1, 12_000.0),
            "a page every 10 s from 1 host known so far; the 1,200 queued pages",
        ),
    ],
)
def test_it_is_said_in_words(result: Forecast, line: str) -> None:
    assert line in forecast_line(result)
    assert bool(line) == bool(forecast_line(result))


def test_a_resumed_crawl_knows_its_queue(tmp_path: Path) -> None:
    home, other = "http://a.example/", "http://b.example/"
    names = [*(f"{home}{number}" for number in range(40)), *(f"{other}{number}" for number in range(3))]
    client = Sites(Time(), {home: page(home, *names), **{name: page(name) for name in names}})
    seen: list[tuple[float, Forecast]] = []

    def watch(run: Run, _outcome: object) -> None:
        seen.append((client.time.now, run.forecast()))

    crawled(tmp_path / "s", [home], client, watch, until="pages=1", scope="any")
    assert seen[0][1] == Forecast(1, 1, 1.0, 1.0, is_goal=True)
    seen.clear()
    crawled(tmp_path / "s", [home], client, watch, until="coverage=0.9999", scope="any", delay=2.0)
    at, result = seen[0]
    assert result == Forecast(43, 2, 1.0, 80.0)
    assert client.time.now - at >= result.seconds


def test_the_cost_of_each_goal_is_forecast_in_words() -> None:
    certified, both = parse_rule("coverage=0.9"), parse_rule("coverage=0.9@95%")
    assert cost_line(certified, 1234, None) == "forecast, not a bound: 90 % certified after about 1,200 pages"
    assert cost_line(both, 1234, 655).endswith("1,200 pages, 90 % sampled at 95 % after about 660")
    assert cost_line(both, None, 655) == "forecast, not a bound: 90 % sampled at 95 % after about 660"
    assert cost_line(both, None, None) == cost_line(parse_rule("pages=5"), None, None) == ""


def test_a_forecast_is_made_once_and_again_after_a_stop(tmp_path: Path) -> None:
    home, pages = "http://a.example/", 700
    names = [home, *(f"{home}{number}" for number in range(1, pages))]
    links = [{*range(3), *range(4 * number + 1, min(4 * number + 5, pages))} for number in range(pages)]
    web = {names[number]: page(names[number], *(names[target] for target in links[number])) for number in range(pages)}
    lines: list[str] = []
    costs = CostLine(parse_rule("coverage=0.95"))

    def watch(run: Run, _outcome: object) -> None:
        lines.extend(filter(None, [costs.line(run.state.crawl)]))

    crawled(tmp_path / "s", [home], Sites(Time(), web), watch, until="coverage=0.95")
    assert len(lines) == 1
    assert lines[0].startswith("forecast, not a bound: 95 % certified after about ")
    with sv.open(tmp_path / "s") as survey:
        resumed = CostLine(parse_rule("coverage=0.99@95%"))
        resumed.resume(survey._folder)
        assert "99 % sampled at 95 % after about" in resumed.line(survey._derived.crawl)
        assert resumed.line(survey._derived.crawl) == ""
        reached = CostLine(parse_rule("coverage=0.9@95%"))
        reached.resume(survey._folder)
        assert reached.line(survey._derived.crawl) == ""
