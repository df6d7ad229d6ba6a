"""`surveyor simulate`: output, invalid arguments, files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from console import LINKS, CommandResult, process
from generate_reference import HEAD
from surveyor.cli.options import STRATEGIES
from surveyor.cli.simulate import DEFAULT_STRATEGIES
from surveyor.crawler import strategies
from surveyor.crawler.strategies.strategy import name_of
from surveyor.graph.csr import Graph

TIMES = ("seconds", "microseconds_per_page", "link_updates_per_second")
FROM_HOME = ("--seed", "home", "--rng", "7")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Save a web of 60 pages that are all reachable from the first."""
    links = [(f"https://{a % 3}.example/{a}", f"https://{b % 3}.example/{b}") for a in range(60) for b in _targets(a)]
    path = tmp_path_factory.mktemp("web") / "web.graph"
    Graph.from_edges(links).save(path)
    return str(path)


def _targets(page: int) -> set[int]:
    return {(2 * page) % 60, (2 * page + 1) % 60, page // 3} - {page}


def names(words: str) -> list[str]:
    """Return the names of strategies in tables."""
    return [name_of(strategies.by_name(word)) for word in words.split(",")]


def timeless(result: dict[str, Any]) -> dict[str, Any]:
    """Remove measured times."""
    runs = [{name: value for name, value in run.items() if name not in TIMES} for run in result["runs"]]
    return {**result, "runs": runs}


def test_a_race_is_printed(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "simulate", folder, *FROM_HOME)
    assert printed.code == 0, printed.err
    lines = printed.out.splitlines()
    assert lines[1].split()[-2:] == ["µs/page", "strategy"]
    assert [line.split()[-1] for line in lines[2:7]] == [*names(DEFAULT_STRATEGIES), "order"]
    assert "times the fetches of the best possible order" in printed.out
    assert "5 pages, 6 links" in printed.out
    assert "relative to the seeds, the damping and the links as fetched" in printed.out
    assert f"surveyor simulate {folder} --seed home --rng 7 --report race.html" in printed.err
    quiet = CommandResult(capsys, "simulate", folder, *FROM_HOME, "--quiet")
    assert "strategy" in quiet.out
    assert not quiet.err


def test_a_race_as_json_is_documented(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "simulate", folder, *FROM_HOME, "--strategies", "rankmass,breadth", "--json").json()
    assert result["command"] == "simulate"
    assert result["graph"] == {"path": folder, "pages": 5, "links": 6}
    assert (result["goal"], result["reached"], result["rng"], result["damping"]) == (0.9, True, 7, 0.85)
    assert [run["strategy"] for run in result["runs"]] == names("rankmass,breadth")
    for run in result["runs"]:
        assert run["coverage"]["at_least"] >= 0.9
        assert run["curve"]["fetches"][-1] == run["fetches"]
        assert all(low <= true + 1e-9 for low, true in zip(run["curve"]["at_least"], run["curve"]["true"], strict=True))
    for name in {*result, *result["runs"][0], *result["runs"][0]["coverage"]}:
        assert f"`{name}`" in HEAD, name


def test_a_race_as_csv(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "simulate", folder, *FROM_HOME, "--csv")
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert [row["strategy"] for row in rows] == [*names(DEFAULT_STRATEGIES), "optimal"]
    assert int(rows[0]["guaranteed_50"]) >= int(rows[0]["true_50"]) >= int(rows[-1]["true_50"])


def test_the_same_seed_gives_the_same_race(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", web, "--seed", "#0", "--strategies", "rankmass,random,opic", "--json"]
    first = CommandResult(capsys, *words, "--rng", "3").json()
    assert timeless(first) == timeless(CommandResult(capsys, *words, "--rng", "3").json())
    drawn = CommandResult(capsys, *words).json()["rng"]
    assert isinstance(drawn, int)


def test_the_loop_of_a_live_crawl_fetches_the_same_pages(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", web, "--seed", "#0", "--rng", "3", "--strategies", "breadth,rankmass", "--json"]
    compiled, objects = CommandResult(capsys, *words).json(), CommandResult(capsys, *words, "--no-compile").json()
    assert not any(run["compiled"] for run in objects["runs"])
    for one, other in zip(compiled["runs"], objects["runs"], strict=True):
        assert one["fetches"] == other["fetches"]
        assert one["curve"]["true"] == pytest.approx(other["curve"]["true"])
        assert one["curve"]["at_least"] == pytest.approx(other["curve"]["at_least"], abs=1e-6)


def test_the_first_rule_reached_stops_the_crawl(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", web, "--seed", "#0", "--strategies", "breadth", "--json", "--until", "pages=7"]
    result = CommandResult(capsys, *words, "--until", "coverage=0.99").json()
    assert result["runs"][0]["fetches"] == 7
    assert "7 pages" in result["until"]
    assert "99 %" in result["until"]


def test_an_unreachable_goal_exits_with_3(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", web, "--seed", "#0", "--strategies", "breadth,rankmass", "--block", "1.example"]
    printed = CommandResult(capsys, *words)
    assert printed.code == 3, printed.err
    for name in names("breadth,rankmass"):
        assert f"! {name} did not reach the goal: " in printed.err
    result = CommandResult(capsys, *words, "--json")
    assert result.code == 3
    assert not result.json()["reached"]
    assert result.json()["runs"][0]["coverage"]["blocked"] > 0.05
    assert "blocked" in " ".join(result.json()["notes"])


def test_conditions_are_noted(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--gone", "0.1"], ["--batch", "4"], ["--budget", "5"], ["--change-rate", "0.05"]):
        printed = CommandResult(
            capsys, "simulate", web, "--seed", "#0", "--rng", "1", "--strategies", "rankmass", "--json", *words
        )
        assert printed.code in {0, 3}, printed.err
        assert printed.json()["notes"], words


def test_seeds_by_name_by_id_and_from_a_file(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("blog\nabsent\n")
    words = ["simulate", folder, "--strategies", "breadth", "--json"]
    ids = {Graph.open(folder).page(name) for name in ("home", "blog")}
    assert set(CommandResult(capsys, *words, "--seed", "home", "--seed", f"#{max(ids)}").json()["seeds"]) == ids
    printed = CommandResult(capsys, *words, "--seed", "home", "--seeds", str(seeds))
    assert set(printed.json()["seeds"]) == ids
    assert printed.json()["seed_names"] == ["home", "blog"]
    assert "absent" in printed.err
    assert CommandResult(capsys, *words).json()["seeds"]


def test_a_file_of_links_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "links.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in LINKS))
    result = CommandResult(capsys, "simulate", str(path), "--strategies", "rankmass", "--seed", "home", "--json").json()
    assert result["graph"]["pages"] == 5


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--strategies", "rankmas"], "rankmass"),
        (["--strategies", " , "], "--strategies"),
        (["--until", "coverag=0.9"], "did you mean coverage?"),
        (["--until", "coverage=2"], "coverage must be"),
        (["--seed", "absent"], "absent"),
        (["--seeds", "no/such/file"], "no/such/file"),
        (["--gone", "1.5"], "1.5"),
        (["--change-rate", "-1"], "-1"),
        (["--gone", "nan"], "nan"),
        (["--block", "nope"], "block must name a host or page of the graph, got 'nope'"),
        (["--damping", "1.5"], "1.5"),
        (["--batch", "0"], "must be at least 1, got 0"),
        (["--budget", "0"], "must be at least 1, got 0"),
        (["--rng", "-1"], "must be at least 0, got -1"),
        (["--report", "none/race.html"], "there is no folder none"),
        (["--out", "."], "is a folder"),
    ],
)
def test_invalid_arguments(words: list[str], expected: str, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "simulate", folder, *words)
    assert printed.code == 2, printed.err
    assert expected in printed.err
    assert "  hint: " in printed.err
    assert not printed.out


def test_a_report_and_a_file_are_written(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report, out = tmp_path / "race.html", tmp_path / "race.json"
    words = ["simulate", folder, "--seed", "home", "--report", str(report), "--out", str(out), "--json"]
    printed = CommandResult(capsys, *words)
    assert printed.code == 0, printed.err
    assert json.loads(out.read_text("utf-8")) == printed.json()
    page = report.read_text("utf-8")
    assert page.count("<svg") >= 2
    assert f"--rng {printed.json()['rng']}</pre>" in page
    monkeypatch.setattr("surveyor.report.svg.find_spec", lambda _: None)
    assert "pip install 'surveyor[report]'" in CommandResult(capsys, *words).err
    assert "<svg" not in report.read_text("utf-8")


def test_the_strategies_of_the_help_are_those_of_the_library() -> None:
    assert set(STRATEGIES) == set(strategies.NAMES)
    assert set(DEFAULT_STRATEGIES.split(",")) <= set(STRATEGIES)


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from surveyor.cli import run; code = run(['simulate', '--help']);"
        "assert not {'numpy', 'numba', 'rich', 'matplotlib'} & set(sys.modules); sys.exit(code)"
    )
    done = process("-c", script)
    assert done.returncode == 0, done.stderr
    assert "--strategies" in done.stdout
