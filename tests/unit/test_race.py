"""The reports of a race: JSON, tables, a comparison, plots and one HTML file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.crawler.ledger import CoverageInterval
from surveyor.report.numbers import at_most
from surveyor.report.race import (
    RaceReport,
    bounds,
    comparison,
    coverage_plot,
    error_plot,
    facts,
    gap_plot,
    guaranteed_table,
    order_plot,
    render_race,
    sampled_table,
    shortfalls,
    true_table,
    write_race_report,
)
from surveyor.report.svg import LINES, VARIABLES, lines_plot
from surveyor.report.tables import plain_lines, write_csv
from surveyor.simulation.race import LEVELS, Race, Run, Sample, thinned
from test_report import CONTROL, NASTY, Tags, check_harmless

if TYPE_CHECKING:
    from pathlib import Path

    from surveyor.arrays import FloatArray

SHARES = np.array([0.30, 0.22, 0.16, 0.13, 0.07, 0.05, 0.03, 0.021, 0.011, 0.008])
SAMPLES = (Sample(1, 0.9, 0.1), Sample(5, 0.4, 0.6), Sample(9, 0.1, float("nan")))


def run(name: str, order: list[int], lag: float = 0.9, *, reached: bool = True, samples: bool = False) -> Run:
    """Fetch pages in this order; `lag` is the guaranteed share of the true coverage."""
    true = np.cumsum(SHARES[order])
    low = float(lag * true[-1]) if order else 0.0
    return Run(
        strategy=name,
        order=np.array(order, np.int32),
        at_least=lag * true,
        at_most=1 - 0.15 * (1 - true),
        true=true,
        coverage=CoverageInterval(low, 0.999, low, 0.0, 1 - low, 0.0, 0.0),
        reached=reached,
        stop_reason="coverage 90 % is guaranteed" if reached else "every page that may be read is read",
        requests=len(order) + 2,
        link_updates=400,
        seconds=0.0002,
        compiled=lag > 0.5,
        samples=SAMPLES if samples else (),
    )


def race(*runs: Run, goal: float | None = 0.9, **fields: object) -> Race:
    optimal: FloatArray = np.cumsum(SHARES)
    whole = Race(
        runs,
        optimal,
        pages=10,
        links=40,
        seeds=np.array([0, 4], np.int32),
        damping=0.85,
        until="coverage 90 %",
        rng=7,
        truth_error=3e-10,
        goal=goal,
    )
    return replace(whole, **fields)  # type: ignore[arg-type]


BEST = run("rankmass", list(range(10)), 0.998, samples=True)
SLOW = run("breadth", [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], 0.94)
STUCK = run("opic", [9, 8], reached=False)
NOTHING = run("nothing", [], reached=False)


@pytest.fixture(scope="module")
def usual() -> Race:
    return race(BEST, SLOW, STUCK, notes=("gone: 2 pages",), seed_names=("home", NASTY))


# Numbers


def test_fetches_are_counted_to_the_first_that_reaches_the_level() -> None:
    assert [BEST.fetches_for(level) for level in LEVELS] == [2, 4, 6, 7, 9]
    assert [SLOW.fetches_for(level, "true") for level in LEVELS] == [9, 10, 10, 10, 10]
    assert [SLOW.fetches_for(level) for level in LEVELS] == [9, 10, 10, None, None]
    assert STUCK.fetches_for(0.5) is NOTHING.fetches_for(0.5) is None
    assert race(BEST).optimal_fetches_for(0.9) == 6
    assert race(BEST).optimal_fetches_for(1.1) is None


def test_costs_of_a_run() -> None:
    assert BEST.microseconds_per_page == pytest.approx(20)
    assert BEST.link_updates_per_second == pytest.approx(2e6)
    assert NOTHING.microseconds_per_page is None
    assert replace(BEST, seconds=0.0).link_updates_per_second is None


def test_results_are_read_only(usual: Race) -> None:
    for array in (usual.optimal, usual.seeds, BEST.order, BEST.true, BEST.at_least, BEST.at_most):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_race_as_plain_values(usual: Race) -> None:
    result = json.loads(json.dumps(usual.to_dict(), allow_nan=False))
    assert (result["pages"], result["links"], result["seeds"], result["rng"]) == (10, 40, [0, 4], 7)
    assert (result["goal"], result["reached"], result["notes"]) == (0.9, False, ["gone: 2 pages"])
    assert result["optimal"] == {"0.5": 2, "0.8": 4, "0.9": 6, "0.95": 7, "0.98": 8}
    first, second, third = result["runs"]
    assert first["guaranteed"] == {"0.5": 2, "0.8": 4, "0.9": 6, "0.95": 7, "0.98": 9}
    assert first["ratio"]["guaranteed"]["0.98"] == 9 / 8
    assert second["ratio"]["true"]["0.9"] == 10 / 6
    assert second["ratio"]["guaranteed"]["0.95"] is third["guaranteed"]["0.5"] is None
    assert first["coverage"] == BEST.coverage.to_dict()
    assert first["samples"][-1] == {"fetches": 9, "l1": 0.1, "tau": None, "bound": None}
    assert third["curve"]["fetches"] == [1, 2]
    assert third["curve"]["true"] == STUCK.true.tolist()


def test_a_race_with_a_sampled_goal(usual: Race) -> None:
    assert usual.to_dict()["runs"][0]["sampled"] is usual.to_dict()["confidence"] is None
    one = replace(SLOW, sampled=np.maximum(SLOW.at_least, 0.99 * SLOW.true), walks=25)
    sampled = race(one, confidence=0.95, until="coverage 90 %, sampled at 95 %")
    result = json.loads(json.dumps(sampled.to_dict(), allow_nan=False))["runs"][0]
    assert (result["guaranteed"]["0.95"], result["sampled"]["0.95"], result["walks"]) == (None, 10, 25)
    assert result["ratio"]["sampled"]["0.95"] == 10 / 7
    assert len(result["curve"]["sampled"]) == 10
    assert comparison(sampled).endswith("of the best possible order to prove 90 %, sampled at 95 %.")
    assert plain_lines(sampled_table(sampled))[1].split()[-4:] == ["99.0", "%", "25", "breadth"]
    html = sampled._repr_html_()
    assert "until this share was certified" in html
    assert "until this share was sampled at 95 %" in html
    assert "sampled at 95 %" in coverage_plot(sampled)
    assert "sampled" not in coverage_plot(usual)
    assert sampled.to_polars()["sampled"].to_list() == one.sampled.tolist()  # type: ignore[union-attr]
    assert "sampled" not in usual.to_polars().columns


def test_a_run_without_fetches() -> None:
    result = race(NOTHING).to_dict()["runs"][0]
    assert (result["fetches"], result["microseconds_per_page"], result["curve"]["fetches"]) == (0, None, [])


@given(st.integers(0, 10**7), st.integers(0, 500))
def test_a_thinned_curve_has_both_ends_and_few_points(size: int, points: int) -> None:
    places = thinned(size, points)
    assert places.size <= max(points, 2)
    assert (np.diff(places) > 0).all()
    if size:
        assert (places[0], places[-1]) == (1, size)


def test_a_race_in_one_line_and_in_a_notebook(usual: Race) -> None:
    assert repr(usual) == ("Race(rankmass, breadth, opic; 10 pages, 40 links; until coverage 90 %; rng 7)")
    assert repr(STUCK) == "Run(opic, 2 fetches, coverage 0.017 to 0.999, not reached)"
    shown = race(replace(BEST, strategy=NASTY))._repr_html_()
    assert "script" not in Tags(shown).tags
    assert shown.count("<img") == 1  # the plot, whose data no page can run
    assert "onerror=" not in shown.replace("onerror=&quot;", "")
    assert "<td>2</td><td>4</td><td>6</td><td>7</td><td>9</td>" in shown


def test_a_race_as_a_table_of_fetches(usual: Race) -> None:
    pytest.importorskip("polars")
    frame = usual.to_polars()
    assert frame.columns == ["strategy", "fetch", "id", "at_least", "at_most", "true"]
    assert frame.height == 22
    assert frame.filter(frame["strategy"] == "opic")["id"].to_list() == [9, 8]
    assert race().to_polars().height == 0


# Words


def test_tables_for_people(usual: Race) -> None:
    certain, captured = plain_lines(guaranteed_table(usual)), plain_lines(true_table(usual))
    assert certain[0].split("   ")[-1] == "strategy"
    assert certain[1].split() == ["2", "4", "6", "7", "9", "99.8–99.9", "%", "20.0", "rankmass"]
    assert certain[3].split()[:5] == ["–"] * 5
    assert certain[4].split() == ["2", "4", "6", "7", "8", "best", "possible", "order"]
    assert captured[2].split() == ["9", "10", "10", "10", "10", "10", "breadth"]


def test_table_for_machines(usual: Race) -> None:
    stream = io.StringIO()
    write_csv(guaranteed_table(usual), stream)
    header, first, _, third, best = (line.split(",") for line in stream.getvalue().splitlines())
    assert len(header) == len(first) == len(third) == len(best)
    result = dict(zip(header, best, strict=True))
    assert (result["strategy"], result["true_90"], result["guaranteed_90"]) == ("optimal", "6", "")
    assert dict(zip(header, third, strict=True))["reached"] == "False"
    assert true_table(usual).records == guaranteed_table(usual).records


def test_bounds_round_outward() -> None:
    assert bounds(0.90049, 0.96801) == "90.0–96.9 %"
    assert bounds(0.0, 1.0) == "0.0–100.0 %"
    assert bounds(-1e-17, 1 + 1e-15) == "0.0–100.0 %"


def test_comparison_in_one_sentence(usual: Race) -> None:
    assert comparison(usual) == (
        "rankmass needed 1.00 times the fetches of the best possible order to guarantee 90 %, "
        "against 1.67 for breadth; opic did not reach it."
    )
    assert comparison(race(SLOW, goal=None)).endswith("to guarantee 90 %.")
    assert comparison(race(SLOW, goal=0.97)).endswith("to guarantee 90 %.")
    assert comparison(race(BEST, goal=0.97)).endswith("to guarantee 97 %.")
    assert "to guarantee 90 %, against" in comparison(race(BEST, SLOW, STUCK, goal=None))
    assert comparison(race(STUCK, NOTHING)) == "No strategy could guarantee 50 %."
    third = replace(SLOW, strategy="flow")
    assert "against 1.67 for breadth and 1.67 for flow." in comparison(race(BEST, SLOW, third))


def test_facts_and_shortfalls(usual: Race) -> None:
    assert facts(usual) == {
        "web": "10 pages, 40 links",
        "seeds": f"home, {NASTY}",
        "damping": "0.85",
        "until": "coverage 90 %",
        "notes": "gone: 2 pages",
        "rng": "7",
    }
    many = race(BEST, seeds=np.arange(5, dtype=np.int32))
    assert facts(many)["seeds"] == "#0, #1, #2, and 2 more"
    assert shortfalls(usual) == ["opic did not reach the goal: every page that may be read is read"]


# Figures


def words_in(plot: str) -> str:
    """Parse a figure as XML and return its text."""
    return " ".join(ET.fromstring(plot).itertext())  # noqa: S314  # our own


def test_figures_take_their_colours_from_the_page(usual: Race) -> None:
    for plot in (coverage_plot(usual), gap_plot(usual), error_plot(usual), order_plot(usual)):
        words_in(plot)
        assert "var(--one)" in plot
        assert "#0" not in plot.replace('xlink:href="#', "")
    assert len(set(VARIABLES.values())) == len(VARIABLES) == 2 + len(LINES)


def test_every_colour_is_defined_for_light_dark_and_print(usual: Race) -> None:
    page = render_race(RaceReport("A race", usual, "", plots=False))
    for variable in VARIABLES.values():
        assert page.count(f"{variable[4:-1]}: #") == 3


def test_figures_of_a_race_have_all_lines(usual: Race) -> None:
    words = words_in(coverage_plot(usual))
    for name in ("rankmass", "breadth", "opic", "best possible order", "guaranteed", "goal: 90 %", "pages fetched"):
        assert name in words
    assert "goal" not in words_in(coverage_plot(race(BEST, goal=None)))


def test_a_strategy_without_samples_keeps_others_in_their_colours() -> None:
    later = order_plot(race(SLOW, BEST))
    assert "var(--two)" in later
    assert "var(--one)" not in later
    assert "breadth" not in later


@pytest.mark.parametrize("name", ["_hidden", "$x^", "日本語", NASTY, CONTROL, "a\\1b", ""])
def test_any_name_can_be_plotted(name: str) -> None:
    plot = coverage_plot(race(replace(BEST, strategy=name), SLOW))
    drawn = words_in(plot)
    assert "\x1b" not in plot
    if name.isprintable():
        assert name in drawn


def test_strategies_with_equal_names_are_numbered() -> None:
    words = words_in(gap_plot(race(BEST, BEST)))
    assert "rankmass 1" in words
    assert "rankmass 2" in words


def test_figures_of_nearly_empty_races() -> None:
    for few in (race(), race(NOTHING), race(run("one", [0]))):
        words_in(coverage_plot(few))
        words_in(gap_plot(few))
        words_in(order_plot(few))
    many = [replace(BEST, strategy=str(place)) for place in range(10)]
    assert "var(--eight)" in coverage_plot(race(*many))


def test_any_lines_can_be_plotted() -> None:
    series: dict[str, Any] = {"a": ([0, 1, 10], [1e-3, 0.0, 1e-6]), "b": (np.arange(3), np.array([np.nan, 2.0, 3.0]))}
    plot = lines_plot(series, x_title="links", y_title="error", log_x=True, log_y=True, label='of "a" & <b>')
    words = words_in(plot)
    assert "links" in words
    assert "error" in words
    assert 'aria-label="of &quot;a&quot; &amp; &lt;b&gt;"' in plot
    assert plot == lines_plot(series, x_title="links", y_title="error", log_x=True, log_y=True, label='of "a" & <b>')


# The page


def test_report_is_one_harmless_file(tmp_path: Path) -> None:
    hostile = race(
        replace(BEST, strategy=NASTY, stop_reason=NASTY, reached=False),
        replace(SLOW, strategy=CONTROL),
        STUCK,
        until=NASTY,
        notes=(NASTY,),
        seed_names=(NASTY, CONTROL),
    )
    report = RaceReport(NASTY, hostile, f"surveyor simulate '{NASTY}'")
    page = write_race_report(report, tmp_path / "race.html").read_text("utf-8")
    check_harmless(page)
    assert page.count("<svg") == 4


def test_the_report_is_deterministic(usual: Race) -> None:
    report = RaceReport("A race", usual, "surveyor simulate a.graph --rng 7")
    page = render_race(report)
    assert page == render_race(report)
    slower = tuple(replace(run, seconds=3 * run.seconds) for run in usual.runs)
    again = render_race(replace(report, race=replace(usual, runs=slower)))
    numbers = re.compile(r"<td>[\d.,]+( [kM])?</td>")
    assert page != again
    assert numbers.sub("", page) == numbers.sub("", again)


def test_the_report_has_method_and_definitions(usual: Race) -> None:
    words = " ".join("".join(Tags(render_race(RaceReport("A race", usual, "surveyor simulate a.graph"))).words).split())
    for sentence in (
        comparison(usual),
        *shortfalls(usual),
        "2 of 3",
        "relative to these seeds, this damping and the links as",
        f"L1 error at most {at_most(3e-10)}",
        "gone: 2 pages",
        "surveyor simulate a.graph",
    ):
        assert sentence in words


def test_report_without_curves_or_samples(usual: Race) -> None:
    assert "<svg" not in render_race(RaceReport("A race", usual, "", plots=False))
    assert render_race(RaceReport("A race", race(SLOW), "")).count("<svg") == 2
    assert "0 strategies" in render_race(RaceReport("A race", race(), ""))


def test_ids_of_figures_do_not_clash(usual: Race) -> None:
    page = render_race(RaceReport("A race", usual, ""))
    ids = [value for name, value in Tags(page).attributes if name == "id"]
    assert len(ids) == len(set(ids))
