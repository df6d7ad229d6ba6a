"""`surveyor community` with invalid arguments, without links, or with a full disk: one message, and no file left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import surveyor as sv
from community_web import FAR, HOST, SITE, web
from console import FULL, NO_KERNELS, CommandResult, process

pytestmark = pytest.mark.usefixtures("nowhere", "tiny_communities")

RULE = f"host:{HOST}"


@pytest.fixture
def path(tmp_path: Path) -> str:
    web().save(tmp_path / "web.graph")
    return "web.graph"


def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def worked(*_: object, **__: object) -> None:
        raise AssertionError("the work started")

    monkeypatch.setattr("surveyor.estimate.community.community.expand", worked)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([], "the local pages are not specified"),
        (["--local", "host:nowhere.example"], "no page of web.graph matches local host:nowhere.example"),
        (["--local", "all"], "all 11 pages of web.graph match local all"),
        (["--local", "ids:0-10"], "all 11 pages of web.graph match local ids:0-10"),
        (["--local", "ids:9-3"], "'9-3' in 'ids:9-3' is not a range of ids"),
        (["--local", "hots:www.example.org"], "is not a rule for local pages, a file or a host"),
        (["--local", "file:none.txt"], "the local pages in none.txt cannot be read: No such file"),
        (["--local", "file:empty.txt"], "empty.txt contains no pages"),
        (["--local", RULE, "--extra", "-5"], "extra must be a number of pages or a multiple of n, got '-5'"),
        (["--local", RULE, "--extra", "many"], "a multiple of n, got 'many'"),
        (["--local", RULE, "--select", "best"], "'best' is not one of 'explore', 'complement', 'flow', 'cho'"),
        (["--local", RULE, "--estimator", "best"], "'best' is not one of 'auto', 'crawled', 'frontier'"),
        (["--local", RULE, "--rounds", "0"], "must be at least 1, got 0"),
        (["--local", RULE, "--top", "0"], "must be at least 1, got 0"),
        (["--local", RULE, "--rng", "-1"], "must be at least 0, got -1"),
        (["--local", RULE, "--until", "pages=5"], "there is no stopping rule 'pages'; write stable=0.001"),
        (["--local", RULE, "--until", "stable=none"], "stable=none is not a number of stable"),
        (["--local", RULE, "--until", "stable=3"], "stable must be above 0 and below 2, got 3"),
        (["--local", RULE, "--damping", "1"], "damping must be in (0, 1), got 1"),
        (["--local", RULE, "--damping", "0"], "damping must be in (0, 1), got 0"),
        (["--local", RULE, "--damping", "nan"], "damping must be in (0, 1), got nan"),
        (["--local", RULE, "--explain", "/a", "--csv"], "--csv and --explain exclude each other"),
        (["--local", RULE, "--explain", FAR[0]], f"{FAR[0]} is not a local page"),
        (["--local", RULE, "--explain", "/nothing"], "/nothing is not a local page"),
        (["--local", RULE, "--explain", "#77"], "#77 is not a local page"),
        (["--local", RULE, "--save", "ranks.txt"], "ranks.txt has no known suffix"),
        (["--local", RULE, "--save", "no/ranks.csv"], "no/ranks.csv cannot be written: there is no folder no"),
        (["--local", RULE, "--plot", "no/p.svg"], "no/p.svg cannot be written: there is no folder no"),
        (["--local", RULE, "--report", "web.graph"], "web.graph is a folder"),
        (
            ["--local", RULE, "--save", "a.csv", "--report", "./a.csv"],
            "--save and --report name the same file, ./a.csv",
        ),
        (["--local", RULE, "--plot", "a", "--report", "a"], "--plot and --report name the same file, a"),
        (["--local", RULE, "--save", "a.csv", "--back-links", "a.csv"], "--save and --back-links name the same file"),
        (["--local", RULE, "--replay"], "web.graph is not a survey"),
        (["--local", RULE, "--known", "all"], "web.graph is not a survey\n  hint: --known applies to surveys"),
        (["--local", RULE, "--out", "d"], "--out applies to fetched pages, and a graph fetches none"),
        (["--local", RULE, "--max-delay", "9"], "--max-delay applies to fetched pages, and a graph fetches none"),
        (["--local", RULE, "--json", "--csv"], "--json and --csv exclude each other."),
    ],
)
def test_invalid_arguments_are_rejected_before_the_work(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    problem: str,
) -> None:
    no_work(monkeypatch)
    (tmp_path / "empty.txt").write_text("# nothing yet\n")
    result = CommandResult(capsys, "community", path, *more)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err
    assert result.err.splitlines()[-1].startswith("  hint: ")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["empty.txt", "web.graph"]


def test_graphs_and_surveys_that_are_none(capsys: pytest.CaptureFixture[str], path: str) -> None:
    for place, code in (("nothing", (2, 4)), ("nothing.survey", (4,))):
        result = CommandResult(capsys, "community", place, "--local", RULE)
        assert result.code in code
        assert place in result.err.splitlines()[0]
    (Path(path) / "graph.json").write_text("{")
    assert CommandResult(capsys, "community", path, "--local", RULE).code == 4


def test_back_links_without_local_pages(capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path) -> None:
    for text, problem in (
        (None, "the back-links in back.tsv cannot be read: No such file"),
        ("one word\n", "line 1 of back.tsv is not a link"),
    ):
        if text is not None:
            (tmp_path / "back.tsv").write_text(text)
        result = CommandResult(capsys, "community", path, "--local", RULE, "--back-links", "back.tsv")
        assert (result.code, result.out) == (2, "")
        assert problem in result.err
    (tmp_path / "back.tsv").write_text(f"{SITE[1]}\t{SITE[2]}\n")  # from a fetched page
    result = CommandResult(capsys, "community", path, "--local", RULE, "--back-links", "back.tsv")
    assert (result.code, "note: the back-links add no page: " in result.out) == (0, True)


def test_no_link_leads_outside(capsys: pytest.CaptureFixture[str]) -> None:
    sv.Graph.from_edges([(SITE[0], SITE[1]), (SITE[1], SITE[0]), (FAR[0], SITE[0])]).save(Path("island"))
    result = CommandResult(capsys, "community", "island", "--local", RULE)
    assert result.code == 3
    assert f"! no page of {RULE} links to a page outside that can be fetched" in result.err
    assert "no page outside was requested" in result.out
    assert result.out.splitlines()[1].endswith("   /")  # the local rank is printed
    assert CommandResult(capsys, "community", "island", "--local", RULE, "--json").json()["ending"] == "no_frontier"
    asked_for_none = CommandResult(capsys, "community", "island", "--local", RULE, "--extra", "0")
    assert asked_for_none.code == 0


def test_what_is_for_surveys_or_for_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.survey").mkdir()
    Path("s.survey/survey.toml").write_text("")
    for more, problem in (
        (["--truth"], "--truth needs the whole graph"),
        (["--replay", "--delay", "3"], "--delay applies to fetched pages, and a replay fetches none"),
        (["--replay", "--out", "d"], "--out applies to fetched pages, and a replay fetches none"),
    ):
        result = CommandResult(capsys, "community", "s.survey", "--local", RULE, *more)
        assert (result.code, result.out) == (2, "")
        assert problem in result.err
    result = CommandResult(capsys, "community", "s.survey", "--replay")
    assert (result.code, "the local pages are not specified" in result.err) == (2, True)


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
    flag = {"plot.svg": "--plot", "report.html": "--report"}.get(option, "--save")
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
    "place", ["surveyor.estimate.community.community.all_estimates", "surveyor.report.communities.batches"]
)
def test_an_interrupt_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupted)
    result = CommandResult(capsys, "community", path, "--local", RULE, "--save", "all.csv")
    assert (result.code, result.err.splitlines()[-1]) == (130, "Interrupted.")
    assert [one.name for one in tmp_path.iterdir()] == ["web.graph"]
