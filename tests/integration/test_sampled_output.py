"""A sampled coverage beside the certified one: in words, JSON, the live display and reports."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from pathlib import Path

import pytest

import surveyor as sv
from console import CommandResult
from fake_web import Sites, Time, crawled, page
from surveyor.cli.crawl_display import CrawlDisplay
from surveyor.crawler.coverage_walks import SampledCoverage
from surveyor.crawler.ledger import CoverageInterval
from surveyor.crawler.session import Run
from surveyor.fetch.http import Fetched
from surveyor.graph.csr import Graph
from surveyor.report.numbers import both_bounds, sampled_line, sampled_meaning

HOME = "http://a.example/"
FIELDS = {"at_least", "confidence", "walks", "finished", "epochs", "fetches"}
GOAL = "coverage=0.8@95%"


def targets(page: int, pages: int = 2000) -> set[int]:
    """Return the links of a page: ten important pages, and twelve pages that no other page links to."""
    return {*range(10), *range(12 * page + 1, min(12 * page + 13, pages))} - {page}


def sites() -> dict[str, Fetched]:
    """Return a site where most links return to ten pages, which the certified bound must not assume."""
    names = [HOME, *(f"{HOME}{number}" for number in range(1, 2000))]
    return {name: page(name, *(names[target] for target in targets(number))) for number, name in enumerate(names)}


@pytest.fixture(scope="module")
def seen() -> list[tuple[str, list[str]]]:
    """Lines of the live display while walks run: of a log, and of a terminal."""
    return []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, seen: list[tuple[str, list[str]]]) -> Path:
    path = tmp_path_factory.mktemp("sampled") / "a.survey"
    display = CrawlDisplay(silent=True)

    def watch(run: Run, _outcome: object) -> None:
        if run.sampled() is not None and len(seen) < 3:
            seen.append((display.line(run), display.lines(run)))

    crawled(path, [HOME], Sites(Time(), sites()), watch, until=GOAL)
    return path


def test_the_json_has_both_bounds(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coverage = CommandResult(capsys, "status", str(made), "--json").json()["coverage"]
    sampled = coverage["sampled"]
    assert sampled.keys() == FIELDS
    assert sampled["at_least"] >= 0.8 > coverage["at_least"]
    assert sampled["confidence"] == 0.95
    assert 0 < sampled["finished"] <= sampled["walks"]
    report = CommandResult(capsys, "report", str(made), "--out", str(made / "b.html"), "--json").json()
    assert report["coverage"] == coverage
    with sv.open(made) as survey:
        assert survey.coverage_fields == coverage
        assert survey.goal_reached


def test_the_status_shows_both_bounds_in_different_words(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "status", str(made)).out
    captured, sampled = printed.splitlines()[:2]
    assert re.search(r"at least, \d+\.\d % at most \(certified\)$", captured)
    assert re.fullmatch(r"sampled   █+\S? +8\d\.\d %  at least \(95 %; \d+ walks(, \d+ unfinished)?\)", sampled)
    assert "certified: always true; sampled, 95 %: wrong at most once in 20 crawls" in printed


def test_the_live_display_shows_the_walks(made: Path, seen: list[tuple[str, list[str]]]) -> None:
    assert made.is_dir()
    log, terminal = seen[-1]
    assert re.match(r"\d+\.\d % at least \(sampled, 95 %\), \d+ walks?   certified \d+\.\d % at least", log)
    assert terminal[0].endswith("at most   certified")
    assert re.search(r"^sampled .* at least \(95 %; \d+ walks.*goal 80 %$", terminal[1])


def test_the_report_shows_both_bounds(made: Path) -> None:
    text = unescape(re.sub(r"<[^>]+>", " ", sv.write_report(made, made / "c.html").read_text("utf-8")))
    for words in (
        "captured, certified lower bound",
        "captured, lower bound sampled at 95 %",
        "at most once in 20 crawls",
        "sampled lower bound",
        "random walks",
    ):
        assert words in text, words


def test_a_survey_without_walks_says_nothing_of_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "b.survey"
    crawled(path, [HOME], Sites(Time(), {HOME: page(HOME)}), until="coverage=0.5")
    assert "sampled" not in CommandResult(capsys, "status", str(path)).out
    assert CommandResult(capsys, "status", str(path), "--json").json()["coverage"]["sampled"] is None
    assert "sampled" not in sv.write_report(path).read_text("utf-8")


def test_the_bound_that_reached_the_goal_comes_first() -> None:
    certified = CoverageInterval(0.8427, 0.9671, 0.84, 0.0, 0.1, 0.06, 0.0)
    sampled = SampledCoverage(0.9109, 0.95, 34, 30, 1, 12)
    both = "91.0 % at least (sampled, 95 %), certified 84.2 % at least, 96.8 % at most"
    assert both_bounds(certified, sampled) == both
    assert both_bounds(certified, None) == "84.2 % at least, 96.8 % at most"
    same = SampledCoverage(0.8427, 0.95, 34, 34, 1, 12)
    assert both_bounds(certified, same) == "84.2 % at least, 96.8 % at most (certified)"
    assert sampled_line(sampled).endswith("91.0 %  at least (95 %; 34 walks, 4 unfinished)")
    assert sampled_line(same).endswith("84.2 %  at least (95 %; 34 walks)")


@pytest.mark.parametrize(("confidence", "crawls"), [(0.9, "10"), (0.99, "100"), (0.7, "3"), (0.9999, "10,000")])
def test_the_frequency_of_errors_is_rounded_up(confidence: float, crawls: str) -> None:
    assert sampled_meaning(confidence).endswith(f"wrong at most once in {crawls} crawls")


def test_a_simulation_compares_certified_sampled_and_true(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "web.graph")
    Graph.from_edges([(str(number), str(goal)) for number in range(2000) for goal in targets(number)]).save(path)
    words = ["simulate", path, "--seed", "0", "--rng", "7", "--strategies", "rankmass", "--until", GOAL]
    report = str(tmp_path / "race.html")
    printed = CommandResult(capsys, *words, "--report", report)
    assert printed.code == 0, printed.err
    heads = [line for line in printed.out.splitlines() if line.startswith("fetches until")]
    assert heads == [
        "fetches until this coverage was certified",
        "fetches until this coverage was sampled at 95 %",
        "fetches until this true coverage was reached",
    ]
    assert "times the fetches of the best possible order to prove 80 %, sampled at 95 %." in printed.out
    assert "Certified: always true; sampled, 95 %: wrong at most once in 20 crawls." in printed.out
    page = Path(report).read_text("utf-8")
    assert "<h2>Fetches until a coverage was sampled at 95 %</h2>" in page
    assert "Dash-dotted: the lower bound sampled at 95 %" in page
    result = CommandResult(capsys, *words, "--json").json()
    assert (result["goal"], result["confidence"]) == (0.8, 0.95)
    run, curve = result["runs"][0], result["runs"][0]["curve"]
    assert run["true"]["0.8"] < run["sampled"]["0.8"] == run["fetches"]
    assert run["guaranteed"]["0.8"] is None
    assert run["ratio"]["sampled"]["0.8"] == run["fetches"] / result["optimal"]["0.8"]
    assert run["walks"] > 0
    assert not run["compiled"]
    assert all(low <= sampled for low, sampled in zip(curve["at_least"], curve["sampled"], strict=True))
    assert curve["sampled"][-1] >= 0.8
    rows = list(csv.DictReader(io.StringIO(CommandResult(capsys, *words, "--csv").out)))
    assert (rows[0]["sampled_80"], rows[0]["walks"]) == (str(run["fetches"]), str(run["walks"]))
    assert rows[1]["sampled_80"] == ""
