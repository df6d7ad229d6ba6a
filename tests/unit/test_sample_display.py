"""Progress display of walks on a terminal and in a log."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from surveyor.cli.sample_display import WalkDisplay
from surveyor.estimate.sampling.properties import Property
from surveyor.estimate.sampling.walk_trace import WalkTrace


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def trace(steps: int, walks: int = 4) -> WalkTrace:
    random = np.random.default_rng(3)
    on = random.random(steps) < 0.8
    degree = random.integers(1, 9, steps).astype(float)
    walk = np.arange(steps, dtype=np.int32) % walks
    page = random.integers(0, 500, steps).astype(np.int32)
    return WalkTrace(walk, np.zeros(steps, np.int32), page, on, degree, np.arange(1, steps + 1))


TRACKED = {"tld:uk": Property("tld:uk", lambda page: page % 4 == 0)}


def display(goal: str, stream: io.StringIO | None = None, tracked: Any = TRACKED, **options: Any) -> WalkDisplay:
    made = WalkDisplay(goal, stream, **options)
    made.track(tracked)
    return made


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_lines_of_a_terminal(columns: int) -> None:
    lines = display("ess=4k,fetches=900").lines(trace(800), 640, "1.0/s", columns)
    assert [line.split()[0] for line in lines] == ["ESS", "estimate", "800"]
    assert " of 4,000   R-hat 1." in lines[0]
    assert "tld:uk 2" in lines[1]
    assert " to " in lines[1]
    assert "   640 pages requested   " in lines[2]
    assert lines[2].endswith("% of the steps on topic   1.0/s")
    assert len(lines[0]) <= max(columns, 70)


def test_no_step_on_topic_and_goal_without_ess() -> None:
    early = trace(3)
    off = WalkTrace(early.walk, early.segment, early.page, np.zeros(3, np.bool_), early.degree, early.fetches)
    lines = display("width=3%").lines(off, 3)
    assert lines == ["ESS        0", "3 steps   3 pages requested   0 % of the steps on topic"]
    assert WalkDisplay("ess=50").line(trace(0), 0).startswith("ESS 0 of 50")


def test_property_without_values_is_not_shown() -> None:
    nothing = {"topic_link_share": Property("topic_link_share", lambda _: None)}
    lines = display("ESS = 4k", tracked=nothing).lines(trace(800), 640)
    assert [line.split()[0] for line in lines] == ["ESS", "800"]
    assert " of 4,000" in lines[0]


def test_log_lines_at_intervals() -> None:
    now, log = [0.0], io.StringIO()
    shown = WalkDisplay("ess=50", log, clock=lambda: now[0])
    steps = trace(300)
    for second in range(35):
        now[0] = float(second)
        shown(lambda: steps, 300)
    lines = log.getvalue().splitlines()
    assert len(lines) == 3
    assert all("R-hat" in line and "300 steps" in line for line in lines)


def test_terminal_is_redrawn_and_cleared() -> None:
    now, screen = [0.0], Screen()
    shown = display("ess=50", screen, color=False, clock=lambda: now[0])
    for tick in range(8):
        now[0] = tick / 4
        shown(lambda: trace(300), 300)
    shown.clear()
    assert 2 <= screen.getvalue().count("300 steps") <= 8
    shown.clear()  # twice is harmless


def test_slow_updates_are_rare() -> None:
    now, log = [0.0], io.StringIO()
    updates = []

    def slow() -> WalkTrace:
        updates.append(now[0])
        now[0] += 5.0
        return trace(30)

    shown = WalkDisplay("ess=50", log, clock=lambda: now[0])
    while now[0] < 400:
        shown(slow, 30)
        now[0] += 1
    assert len(updates) == 4  # each is followed by a pause of twenty times its duration


def test_silent_display_prints_nothing() -> None:
    log = io.StringIO()
    shown = WalkDisplay("ess=50", log, silent=True, clock=lambda: 1e9)
    shown(lambda: trace(30), 30)
    assert log.getvalue() == ""
