"""The experiment on interval coverage: its band, its verdicts, and a few runs."""

from __future__ import annotations

import math

import pytest
from experiments import calibration
from experiments.calibration import Cell, band, cells_of, coverage_table, summary
from experiments.topic_webs import synthetic_topics

from surveyor.estimate.sampling.sample_goals import SampleGoal

pytestmark = pytest.mark.compiled  # walks of many steps


def outside_probability(runs: int, low: int, high: int) -> float:
    """Return the probability of a count outside the band, by summation."""
    return sum(math.comb(runs, k) * 0.95**k * 0.05 ** (runs - k) for k in range(runs + 1) if not low <= k <= high)


@pytest.mark.parametrize(("runs", "cells"), [(60, 1), (400, 1), (400, 100)])
@pytest.mark.slow
def test_the_band_is_exact(runs: int, cells: int) -> None:
    low, high = band(runs, cells)
    assert outside_probability(runs, low, high) <= 0.001 / cells
    assert outside_probability(runs, low + 1, runs) > 0.0005 / cells
    assert high == runs or outside_probability(runs, 0, high - 1) > 0.0005 / cells


@pytest.mark.slow
def test_verdicts_and_summary() -> None:
    def cell(covered: int, runs: int = 400) -> Cell:
        return Cell("a web", "trial", "camp", 0.4, 400, runs, covered, 3, 0.1, 400.0, 5_000.0)

    cells = [cell(380), cell(350), cell(400), cell(190, runs=199)]
    assert [one.verdict(4) for one in cells] == ["inside", "too narrow", "too wide", "not done"]
    text = summary(cells)
    assert text.startswith("1 of 3 evaluated cells")
    assert "1 below, 1 above" in text
    assert text.endswith("In 1 cells most samples did not reach the goal.")
    whole = coverage_table(cells, 4)
    assert whole == coverage_table(cells[:1], 4) + coverage_table(cells[1:], 4, head=False)
    assert coverage_table([cell(0, runs=0)], 4, head=False).endswith("| 0% | - | - | - | not done | - | - | - |\n")
    assert summary([cell(0, runs=0)]) == "No sample reached its goal."


@pytest.mark.slow
def test_interval_coverage_is_about_nominal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of half the length would have a coverage of about two thirds."""
    monkeypatch.setattr(calibration, "MAX_ROUNDS", 1 << 11)
    web = next(web for web in synthetic_topics(8_000) if web.name == "synthetic: sites")
    cells = cells_of(web, "trial", 60, SampleGoal(ess=200))
    assert [one.statistic for one in cells] == ["subtopic", "camp", "rare", "log out-degree", "size"]
    covered = sum(one.covered for one in cells) / sum(one.runs for one in cells)
    assert 0.85 <= covered <= 0.99
