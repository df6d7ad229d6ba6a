"""`surveyor community` when sense, links or the disk run out: one sentence, and nothing left behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import surveyor as sv
from community_web import FAR, HOST, SITE, web
from console import FULL, NO_KERNELS, Said, process

pytestmark = pytest.mark.usefixtures("nowhere")

RULE = f"host:{HOST}"


@pytest.fixture
def path(tmp_path: Path) -> str:
    web().save(tmp_path / "web.graph")
    return "web.graph"


def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def worked(*_: object, **__: object) -> None:
        raise AssertionError("it was refused too late")

    monkeypatch.setattr("surveyor.estimate.community.community.expand", worked)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([], "nothing says which pages are local"),
        (["--local", "host:nowhere.example"], "no page of web.graph is local by host:nowhere.example"),
        (["--local", "all"], "all 11 pages of web.graph are local by all: there is nothing outside to learn from"),
        (["--local", "ids:0-10"], "all 11 pages of web.graph are local by ids:0-10"),
        (["--local", "ids:9-3"], "'9-3' in 'ids:9-3' is no run of pages"),
        (["--local", "hots:www.example.org"], "is neither a rule for local pages, nor a file, nor a host"),
        (["--local", "file:none.txt"], "the local pages in none.txt cannot be read: No such file"),
        (["--local", "file:empty.txt"], "empty.txt names no pages"),
        (["--local", RULE, "--extra", "-5"], "'-5' is no number of extra pages"),
        (["--local", RULE, "--extra", "many"], "'many' is no number of extra pages"),
        (["--local", RULE, "--select", "best"], "'best' is not one of 'complement', 'flow', 'cho'"),
        (["--local", RULE, "--estimator", "best"], "'best' is not one of 'auto', 'crawled', 'frontier'"),
        (["--local", RULE, "--rounds", "0"], "0 is below 1."),
        (["--local", RULE, "--top", "0"], "0 is below 1."),
        (["--local", RULE, "--rng", "-1"], "-1 is below 0."),
        (["--local", RULE, "--until", "pages=5"], "there is no stopping rule 'pages'; write stable=0.001"),
        (["--local", RULE, "--until", "stable=none"], "stable=none is not a number of stable"),
        (["--local", RULE, "--until", "stable=3"], "stable must be above 0 and below 2, got 3"),
        (["--local", RULE, "--damping", "1"], "damping 1 is not between 0 and 1"),
        (["--local", RULE, "--damping", "0"], "damping 0 is not between 0 and 1"),
        (["--local", RULE, "--damping", "nan"], "damping nan is not between 0 and 1"),
        (["--local", RULE, "--explain", "/a", "--csv"], "--csv has no room for --explain"),
        (["--local", RULE, "--explain", FAR[0]], f"{FAR[0]} is no local page"),
        (["--local", RULE, "--explain", "/nothing"], "/nothing is no local page"),
        (["--local", RULE, "--explain", "#77"], "#77 is no local page"),
        (["--local", RULE, "--out", "ranks.txt"], "the name ranks.txt tells no format"),
        (["--local", RULE, "--out", "no/ranks.csv"], "no/ranks.csv cannot be written: there is no folder no"),
        (["--local", RULE, "--plot", "no/p.svg"], "no/p.svg cannot be written: there is no folder no"),
        (["--local", RULE, "--report", "web.graph"], "web.graph is a folder"),
        (["--local", RULE, "--out", "a.csv", "--report", "./a.csv"], "--out and --report name the same file, ./a.csv"),
        (["--local", RULE, "--plot", "a", "--report", "a"], "--plot and --report name the same file, a"),
        (["--local", RULE, "--out", "a.csv", "--back-links", "a.csv"], "--out and --back-links name the same file"),
        (["--local", RULE, "--replay"], "web.graph is no survey"),
        (["--local", RULE, "--start", "all"], "web.graph is no survey"),
        (["--local", RULE, "--into", "d"], "--into is for pages that are fetched, and a graph fetches none"),
        (["--local", RULE, "--max-delay", "9"], "--max-delay is for pages that are fetched, and a graph fetches none"),
        (["--local", RULE, "--json", "--csv"], "--json and --csv exclude each other."),
    ],
)
def test_what_cannot_work_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch, more: list[str],
    problem: str,
) -> None:  # fmt: skip
    no_work(monkeypatch)
    (tmp_path / "empty.txt").write_text("# nothing yet\n")
    said = Said(capsys, "community", path, *more)
    assert (said.code, said.out) == (2, "")
    assert problem in said.err
    assert said.err.splitlines()[-1].startswith("  hint: ")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["empty.txt", "web.graph"]


def test_graphs_and_surveys_that_are_none(capsys: pytest.CaptureFixture[str], path: str) -> None:
    for place, code in (("nothing", (2, 4)), ("nothing.survey", (4,))):
        said = Said(capsys, "community", place, "--local", RULE)
        assert said.code in code
        assert place in said.err.splitlines()[0]
    (Path(path) / "graph.json").write_text("{")
    assert Said(capsys, "community", path, "--local", RULE).code == 4


def test_back_links_that_tell_nothing(capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path) -> None:
    for text, problem in (
        (None, "the back-links in back.tsv cannot be read: No such file"),
        ("one word\n", "line 1 of back.tsv is no link"),
    ):
        if text is not None:
            (tmp_path / "back.tsv").write_text(text)
        said = Said(capsys, "community", path, "--local", RULE, "--back-links", "back.tsv")
        assert (said.code, said.out) == (2, "")
        assert problem in said.err
    (tmp_path / "back.tsv").write_text(f"{SITE[1]}\t{SITE[2]}\n")  # from a page that is read anyway
    said = Said(capsys, "community", path, "--local", RULE, "--back-links", "back.tsv")
    assert (said.code, "note: no back-link is new: " in said.out) == (0, True)


def test_no_link_leads_outside(capsys: pytest.CaptureFixture[str]) -> None:
    sv.Graph.from_edges([(SITE[0], SITE[1]), (SITE[1], SITE[0]), (FAR[0], SITE[0])]).save(Path("island"))
    said = Said(capsys, "community", "island", "--local", RULE)
    assert said.code == 3
    assert f"! no page of {RULE} links to a page outside that can be read: there is nothing to learn from" in said.err
    assert "no page outside was asked for" in said.out
    assert said.out.splitlines()[1].endswith("   /")  # what is known is told all the same
    assert Said(capsys, "community", "island", "--local", RULE, "--json").json()["ending"] == "nothing"
    asked_for_none = Said(capsys, "community", "island", "--local", RULE, "--extra", "0")
    assert asked_for_none.code == 0


def test_what_is_for_surveys_or_for_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.survey").mkdir()
    Path("s.survey/survey.toml").write_text("")
    for more, problem in (
        (["--truth"], "nobody knows the true rank of the pages of a survey"),
        (["--replay", "--delay", "3"], "--delay is for pages that are fetched, and a replay fetches none"),
        (["--replay", "--into", "d"], "--into is for pages that are fetched, and a replay fetches none"),
    ):
        said = Said(capsys, "community", "s.survey", "--local", RULE, *more)
        assert (said.code, said.out) == (2, "")
        assert problem in said.err
    said = Said(capsys, "community", "s.survey", "--replay")
    assert (said.code, "nothing says which pages are local" in said.err) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="limits are for POSIX")
@pytest.mark.parametrize(
    "option",
    [
        "all.csv",
        "report.html",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("all.csv.gz", "all.parquet", "all.npy", "plot.svg")),
    ],
)
def test_a_full_disk_while_files_are_written(path: str, tmp_path: Path, option: str) -> None:
    (tmp_path / option).write_text("as before")
    flag = {"plot.svg": "--plot", "report.html": "--report"}.get(option, "--out")
    limit = {"plot.svg": "9000", "report.html": "9000"}.get(option, "60")
    args = (limit, "community", path, "-q", "--csv", "--top", "1", "--local", RULE, flag, option)
    done = process("-c", FULL, *args, env=NO_KERNELS, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    problem = done.stderr.splitlines()[0]
    assert problem.startswith(f"{option} cannot be written: ")
    assert problem.endswith("File too large")
    assert (tmp_path / option).read_text() == "as before"
    assert sorted(one.name for one in tmp_path.iterdir() if one.name != "config") == sorted([option, "web.graph"])


@pytest.mark.parametrize(
    "place", ["surveyor.estimate.community.community.jackknife", "surveyor.report.community_files._batches"]
)
def test_an_interrupt_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupted)
    said = Said(capsys, "community", path, "--local", RULE, "--out", "all.csv")
    assert (said.code, said.err.splitlines()[-1]) == (130, "Interrupted.")
    assert [one.name for one in tmp_path.iterdir()] == ["web.graph"]
