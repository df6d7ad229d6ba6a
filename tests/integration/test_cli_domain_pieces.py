"""`surveyor domains` and `graph condense` over graphs in pieces."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from console import CommandResult
from surveyor import Graph
from webs import random_web

pytestmark = pytest.mark.usefixtures("nowhere")


def execute(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    result = CommandResult(capsys, *arguments)
    return result.code, result.out, result.err


@pytest.fixture
def web(capsys: pytest.CaptureFixture[str]) -> str:
    graph = random_web(600, 5000, 4)
    names = [f"http://w{page % 3}.d{page % 70}.{'com' if page % 2 else 'co.uk'}/{page}" for page in range(graph.pages)]
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    Graph.from_arrays(sources, graph.indices, graph.pages, names=names).save(Path("web"))
    assert execute(capsys, "graph", "split", "web", "web.pieces", "--pieces", "3")[0] == 0
    return "web"


def scored(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = execute(capsys, "domains", *arguments, "--json")
    assert code == 0, err
    result: dict[str, Any] = json.loads(out)
    return result


def test_the_json_is_that_of_one_graph(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("--score", "tse,supp,in,win,qvs,harmonic", "--p", "0.3", "--top", "8", "--budget", "star")
    whole, ours = scored(capsys, web, *chosen), scored(capsys, "web.pieces", *chosen)
    assert ours["domains"] == whole["domains"]
    assert ours["top"] == whole["top"]
    assert (ours["mode"], whole["mode"]) == ("in pieces", "in memory")
    for name, method in whole["scores"].items():
        assert {**ours["scores"][name], "mode": ""} == {**method, "mode": ""}
    everything = scored(capsys, "web.pieces", "--score", "all")
    assert list(everything["scores"]) == ["tse", "in", "win", "pagerank", "harmonic", "qvs"]
    assert sorted(path.name for path in Path().iterdir() if path.is_dir()) == ["web", "web.pieces"]


def test_condense_and_files_of_all_domains(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = execute(capsys, "graph", "condense", "web.pieces", "d.pieces", "--pieces", "2", "--json")
    made = json.loads(out)
    assert (code, made["pieces"], made["domains"], made["pages"]) == (0, 2, 70, 600), err
    assert execute(capsys, "graph", "condense", "web.pieces", "d.pieces")[0] == 2
    assert execute(capsys, "graph", "condense", "web.pieces", "d.pieces", "--replace", "--level", "hosts")[0] == 0
    code, out, err = execute(capsys, "domains", "d.pieces", "--score", "win", "--out", "hosts.csv")
    assert code == 0, err
    with Path("hosts.csv").open() as file:
        rows = {row["domain"]: row for row in csv.DictReader(file)}
    assert execute(capsys, "graph", "condense", web, "hosts", "--level", "hosts")[0] == 0
    assert execute(capsys, "domains", "hosts", "--score", "win", "--out", "whole.csv")[0] == 0
    with Path("whole.csv").open() as file:
        for row in csv.DictReader(file):
            row.pop("position")
            assert rows.pop(row["domain"]) == row
    assert not rows
    assert execute(capsys, "domains", "d.pieces", "--condense", "--out", "domains.parquet")[0] == 0
    assert Path("domains.parquet").stat().st_size


def test_lists_of_bad_domains(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.txt").write_text("d3.com\nd4.co.uk\n")
    ours, whole = (scored(capsys, graph, "--blacklist", "bad.txt", "--score", "in") for graph in ("web.pieces", web))
    assert ours["spam"] == whole["spam"]
    assert ours["bad_domains"] == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["domains", "web.pieces", "--score", "tse,bv"], "bv cannot be computed over a graph in pieces"),
        (["domains", "web.pieces", "--compare", "d3.com", "d5.com"], "--compare needs a graph in one part"),
        (["domains", "web.pieces", "--supporter-depth", "3"], "depth must be 2 over a graph in pieces, got 3"),
        (["domains", "web", "--cluster", "local:2"], "--cluster needs a graph in pieces, and web is not one"),
        (["domains", "web.pieces", "--cluster", "local:0"], "must have a number of workers in [1, 64]"),
        (["graph", "condense", "web", "x", "--pieces", "3"], "--pieces needs a graph in pieces, and web is not one"),
        (["graph", "condense", "web", "x", "--cluster", "auto"], "--cluster needs a graph in pieces"),
        (["graph", "condense", "web.pieces", "web"], "web already exists and is not a graph in pieces"),
        (["domains", "plain.pieces", "--condense"], "--condense needs names, and plain.pieces has none"),
        (
            ["graph", "condense", "plain.pieces", "x"],
            "plain.pieces has no names, so the hosts of its pages are unknown",
        ),
    ],
)
def test_refusals(web: str, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "plain.pieces" in arguments:
        random_web(50, 200, 1).save(Path("plain"))
        assert execute(capsys, "graph", "split", "plain", "plain.pieces", "--pieces", "2")[0] == 0
    code, _, err = execute(capsys, *arguments)
    assert code == 2
    assert problem in " ".join(err.split())
    assert web


def test_trusted_domains_need_one_graph(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.txt").write_text("d3.com\n")
    assert web
    code, _, err = execute(capsys, "domains", "web.pieces", "--trusted", "good.txt")
    assert (code, "--trusted needs a graph in one part" in err) == (2, True)
