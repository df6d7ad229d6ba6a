"""The commands for graphs in pieces."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

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
def web(tmp_path: Path) -> str:
    graph = random_web(400, 3000, 4)
    names = [f"http://{page % 23}.example/{page}" for page in range(graph.pages)]
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    Graph.from_arrays(sources, graph.indices, graph.pages, names=names).save(tmp_path / "web")
    return "web"


def test_split_info_doctor_and_rank(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = execute(capsys, "graph", "split", web, "pieces", "--pieces", "3", "--json")
    made = json.loads(out)
    assert (code, made["pieces"], made["pages"], made["named"]) == (0, 3, 400, True)
    assert execute(capsys, "graph", "split", web, "pieces")[0] == 2
    assert execute(capsys, "graph", "split", web, "pieces", "--pieces", "5", "--replace")[0] == 0
    code, out, err = execute(capsys, "graph", "info", "pieces", "--verify")
    assert code == 0
    assert "pieces                   5" in out
    assert "all match" in out
    code, out, err = execute(capsys, "doctor", "pieces")
    assert "400 pages" in out
    found = []
    for graph in ("pieces", web):
        code, out, err = execute(capsys, "rank", graph, "--json", "--tolerance", "1e-12", "--out", f"{graph}.csv")
        assert code == 0, err
        found.append(json.loads(out))
        with Path(f"{graph}.csv").open() as file:
            found[-1]["rows"] = list(csv.DictReader(file))
    one, whole = found
    assert [page["name"] for page in one["pages"]] == [page["name"] for page in whole["pages"]]
    same = ("id", "in_links", "out_links", "score")
    assert [[page[name] for name in same] for page in one["pages"]] == [
        [page[name] for name in same] for page in whole["pages"]
    ]
    assert one["rows"][0].keys() == whole["rows"][0].keys()
    shares = {row["name"]: (row["id"], float(row["share"])) for row in whole["rows"]}
    assert len(one["rows"]) == 400
    values = [float(row["share"]) for row in one["rows"]]
    assert values == sorted(values, reverse=True)
    for row in one["rows"]:
        assert shares[row["name"]][0] == row["id"]
        assert float(row["share"]) == pytest.approx(shares[row["name"]][1], abs=2e-12)


def test_trusted_pages(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    execute(capsys, "graph", "split", web, "pieces")
    Path("trusted").write_text("# comment\nhttp://3.example/3 2\n#17\n#21 3\nhttp://nowhere.example/\n")
    found = []
    for graph in ("pieces", web):
        arguments = ("--trusted", "trusted", "--dangling", "uniform", "--tolerance", "1e-10", "--json")
        code, out, err = execute(capsys, "rank", graph, *arguments)
        assert code == 0, err
        assert "1 of 4 trusted pages are not in this graph" in err
        found.append([(page["id"], round(page["share"], 9)) for page in json.loads(out)["pages"]])
    assert found[0] == found[1]


def test_checkpoints_and_too_few_sweeps(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    execute(capsys, "graph", "split", web, "pieces")
    code, _, err = execute(capsys, "rank", "pieces", "--checkpoints", "work", "--max-sweeps", "3")
    assert code == 3
    assert "above the tolerance" in err
    assert (Path("work") / "scores" / "00000.npy").is_file()
    code, _, err = execute(capsys, "rank", "pieces", "--checkpoints", "work", "--damping", "0.5")
    assert code == 2
    assert "other pieces or parameters" in err


@pytest.mark.parametrize("source", ["links.tsv", "links.parquet", "synthetic:small"])
def test_build_in_pieces(source: str, web: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--links", "20000"] if source.startswith("synthetic") else []
    if not more:
        execute(capsys, "graph", "convert", web, source)
    code, out, err = execute(capsys, "graph", "build", source, "pieces", "--pieces", "3", "--json", *more)
    assert code == 0, err
    made = json.loads(out)
    assert made["pieces"] == 3
    assert more or made["links"] == Graph.open(web).links


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("rank", "web", "--cluster", "local:2"), "--cluster needs a graph in pieces, and web is not one"),
        (("rank", "web", "--checkpoints", "x"), "--checkpoints needs a graph in pieces"),
        (("rank", "pieces", "--report", "x.html"), "--report needs a graph in one part"),
        (("rank", "pieces", "--warm-start", "x.csv"), "--warm-start does not apply to pieces"),
        (("rank", "pieces", "--crawled-only"), "--crawled-only does not apply"),
        (("rank", "pieces", "--teleport", "seeds"), "--teleport seeds does not apply"),
        (("rank", "pieces", "--out", "x.npy"), "written as CSV or Parquet"),
        (("rank", "pieces", "--trusted", "none"), "No such file"),
        (("rank", "pieces", "--cluster", "there"), "cluster must be auto, local:N or HOST:PORT"),
        (("graph", "split", "web", "p", "--pieces", "5000"), "pieces must be in"),
        (("graph", "split", "none", "p"), "does not exist"),
        (("graph", "split", "web", "p", "--cluster", "there"), "cluster must be auto, local:N or HOST:PORT"),
        (("graph", "build", "none.tsv", "p", "--cluster", "local:2"), "--cluster needs a graph in pieces"),
        (("graph", "build", "none.tsv", "p", "--pieces", "2"), "does not exist"),
    ],
)
def test_wrong_usage(web: str, arguments: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    execute(capsys, "graph", "split", web, "pieces", "--pieces", "2")
    code, _, err = execute(capsys, *arguments)
    assert code == 2
    assert problem in err


def test_damaged_pieces_exit_with_4(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    execute(capsys, "graph", "split", web, "pieces", "--pieces", "2")
    (Path("pieces") / "00001" / "ghosts.npy").unlink()
    for command in (("rank", "pieces"), ("doctor", "pieces"), ("graph", "info", "pieces")):
        code, out, err = execute(capsys, *command)
        assert code == 4
        assert "is missing" in out + err


def test_drafts_of_killed_commands_are_removed(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    for draft, pid in (("pieces", 99_999_999), ("pieces", os.getppid()), ("other", 99_999_999)):
        (Path(f"{draft}.draft-{pid}") / "00000").mkdir(parents=True)
    diary = Path("pieces.draft-99999998")
    diary.mkdir()
    (diary / "diary").touch()
    code, _, err = execute(capsys, "graph", "split", web, "pieces", "--pieces", "2")
    assert code == 0
    assert "removed pieces.draft-99999999" in err
    left = sorted(path.name for path in Path().glob("*.draft-*"))
    assert left == sorted(["other.draft-99999999", f"pieces.draft-{os.getppid()}", diary.name])


def test_other_commands_name_the_ones_for_pieces(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    execute(capsys, "graph", "split", web, "pieces", "--pieces", "2")
    code, _, err = execute(capsys, "top", "pieces")
    assert code == 2
    assert "is a graph in pieces" in err


def test_checkpoints_stay_valid_when_pieces_are_written_again(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    split = ("graph", "split", web, "pieces", "--pieces", "3")
    ranked = ("rank", "pieces", "--checkpoints", "work", "--tolerance", "1e-12", "--json")
    execute(capsys, *split)
    code, out, err = execute(capsys, *ranked)
    assert code == 0, err
    sweeps = json.loads(out)["ranking"]["sweeps"]
    (Path("pieces") / "00001" / "indices.npy").unlink()
    assert execute(capsys, *ranked)[0] == 4
    assert execute(capsys, "graph", "split", web, "pieces", "--pieces", "2", "--replace")[0] == 0
    assert "other pieces or parameters" in execute(capsys, *ranked)[2]
    assert execute(capsys, *split, "--replace")[0] == 0
    code, out, _ = execute(capsys, *ranked)
    assert (code, json.loads(out)["ranking"]["sweeps"]) == (0, sweeps)
