"""The command line of shards: `simulate --shards`, `crawl --cluster --shards`, `cluster reshard`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopback import QUICK, SMALL, served
from surveyor import Graph
from surveyor.cli import run
from surveyor.graph.synthetic.generate import synthetic_web


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("graphs") / "web.graph"
    web: Graph = synthetic_web("small").graph
    web.save(folder)
    return str(folder)


def test_simulate_shows_the_cost_of_shards(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", graph, "--shards", "4", "--rng", "7"]) == 0
    text = capsys.readouterr().out
    assert "joint certified coverage" in text
    assert run(["simulate", graph, "--shards", "4", "--rng", "7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["shards"] for one in found["runs"]] == [1, 2, 4]
    assert all(one["reached"] and one["at_least"] >= 0.9 for one in found["runs"])
    assert found["runs"][0]["batches"] == 0 < found["runs"][2]["batches"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--until", "pages=5"], "until must be a certified coverage"),
        (["--budget", "5"], "budgets are not possible with shards"),
        (["--report", "race.html"], "--report is not possible with --shards"),
    ],
)
def test_simulations_in_shards_that_are_not_possible(
    graph: str, words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", graph, "--shards", "2", *words]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.xdist_group("cluster")  # one cluster at a time
@pytest.mark.usefixtures("cluster")
def test_crawl_reshard_and_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = str(tmp_path / "web.survey")
    with served(SMALL) as url:
        words = ["crawl", url, *QUICK, "--out", survey, "--until", "coverage=0.9", "--json"]
        assert run([*words, "--cluster", "auto", "--shards", "2"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["ending"] == "reached"
        assert found["coverage"]["at_least"] >= 0.9
        assert run(words) == 2
        assert "has shards, so one process cannot crawl it" in capsys.readouterr().err
        assert run(["cluster", "reshard", survey, "--shards", "0", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["shards_before"] == 2
        assert run(words) == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--shards", "2"], "--shards needs a cluster"),
        (["--cluster", "here"], "cluster must be"),
        (["--cluster", "local:1", "--shards", "100000"], "shards must be in [1, "),
        (["--metrics", "9464"], "--metrics needs --cluster"),
        (["--cluster", "local:1", "--metrics", "here"], "metrics must be PORT or HOST:PORT"),
        (["--cluster", "local:1", "--metrics", "70000"], "a port in [0, 65535]"),
        (["--cluster", "local:1", "--from-last-good"], "--from-last-good is not possible with --cluster"),
        (["--cluster", "local:1", "--strategy", "opic"], "the strategy opic is not possible in a sharded crawl"),
    ],
)
def test_crawls_in_shards_that_are_not_possible(
    tmp_path: Path, words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["crawl", "http://127.0.0.1:9/", *QUICK, "--out", str(tmp_path / "web.survey"), *words]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "web.survey").exists()
