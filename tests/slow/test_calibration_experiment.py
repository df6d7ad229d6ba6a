"""The experiment on coverage: its band, its verdicts, and a few runs."""

from __future__ import annotations

import math

import pytest
from experiments import calibration
from experiments.calibration import Cell, band, cells_of, coverage_table, summary
from experiments.topic_webs import made_up

from surveyor.estimate.sampling.sample_goals import SampleGoal

pytestmark = pytest.mark.compiled  # walks of many steps


def chance(runs: int, low: int, high: int) -> float:
    """How likely a count outside the band is, by adding up."""
    return sum(math.comb(runs, k) * 0.95**k * 0.05 ** (runs - k) for k in range(runs + 1) if not low <= k <= high)


@pytest.mark.parametrize(("runs", "cells"), [(60, 1), (400, 1), (400, 100)])
@pytest.mark.slow
def test_the_band_is_exact(runs: int, cells: int) -> None:
    low, high = band(runs, cells)
    assert chance(runs, low, high) <= 0.001 / cells
    assert chance(runs, low + 1, runs) > 0.0005 / cells
    assert high == runs or chance(runs, 0, high - 1) > 0.0005 / cells


@pytest.mark.slow
def test_verdicts_and_the_sum_of_them() -> None:
    def cell(held: int, runs: int = 400) -> Cell:
        return Cell("a web", "trial", "camp", 0.4, 400, runs, held, 3, 0.1, 400.0, 5_000.0)

    cells = [cell(380), cell(350), cell(400), cell(190, runs=199)]
    assert [one.verdict(4) for one in cells] == ["inside", "too narrow", "too wide", "not done"]
    told = summary(cells)
    assert told.startswith("1 of 3 judged cells")
    assert "1 below, 1 above" in told
    assert told.endswith("1 cells are of samples most of which were not done.")
    whole = coverage_table(cells, 4)
    assert whole == coverage_table(cells[:1], 4) + coverage_table(cells[1:], 4, head=False)
    assert coverage_table([cell(0, runs=0)], 4, head=False).endswith("| 0% | - | - | - | not done | - | - | - |\n")
    assert summary([cell(0, runs=0)]) == "No sample called itself done."


@pytest.mark.slow
def test_intervals_hold_about_as_often_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad estimate of the error would show: half as long, 95 % intervals hold two times in three."""
    monkeypatch.setattr(calibration, "LAST", 1 << 11)
    web = next(web for web in made_up(8_000) if web.name == "made up: sites")
    cells = cells_of(web, "trial", 60, SampleGoal(ess=200))
    assert [one.what for one in cells] == ["subtopic", "camp", "rare", "log out-degree", "size"]
    held = sum(one.held for one in cells) / sum(one.runs for one in cells)
    assert 0.85 <= held <= 0.99
