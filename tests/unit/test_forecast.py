"""How long a crawl takes, said before it starts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_web import Sites, Time, crawled, page
from surveyor.cli.crawl_display import forecast_line
from surveyor.crawler.pending import Forecast, forecast
from surveyor.crawler.session import Run


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
