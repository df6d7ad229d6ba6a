"""`surveyor domains` with too little memory or disk space, interrupts, invalid options: an error, no leftover files."""

from __future__ import annotations

import gc
import gzip
import sys
from pathlib import Path

import pytest

import surveyor as sv
from console import FULL, NO_KERNELS, CommandResult, process
from surveyor.graph.synthetic.generate import rmat
from surveyor.rank.domains import scores as library

NAMED = [(f"fan{number}.org", f"hub{number % 7}.org") for number in range(400)]
LINKS = [*NAMED, *((f"hub{number}.org", "star.org") for number in range(7)), ("hub0.org", "hub1.org")]


@pytest.fixture
def named(tmp_path: Path) -> str:
    return str(sv.Graph.from_edges(LINKS).save(tmp_path / "named"))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def worked(*_: object, **__: object) -> None:
        raise AssertionError("rejected too late")

    monkeypatch.setattr(library, "domains", worked)


# Memory


def test_a_stream_prints_and_writes_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, named: str, scratch: Path
) -> None:
    (tmp_path / "bad.txt").write_text("hub1.org\nfan7.org\n")
    more = ["--p", "0.4", "--rng", "5", "--budget", "star:1-90@40", "--blacklist", str(tmp_path / "bad.txt")]
    whole = CommandResult(capsys, "domains", named, *more, "--csv", "--out", str(tmp_path / "whole.csv"))
    short = CommandResult(
        capsys, "domains", named, *more, "--csv", "--out", str(tmp_path / "short.csv"), "--memory", "4k"
    )
    assert short.out == whole.out
    assert "; in memory (" in whole.err
    assert "; streamed (" in short.err
    assert "needed, 4,000 bytes allowed)" in short.err
    assert (whole.code, short.code) == (0, 0)
    ranked = (tmp_path / "whole.csv").read_text().splitlines()
    by_id = (tmp_path / "short.csv").read_text().splitlines()
    cut = [line.split(",", 1)[1] for line in ranked]  # the stream has no positions
    assert by_id == [cut[0], *sorted(cut[1:], key=lambda line: int(line.split(",")[0]))]
    result = [
        CommandResult(capsys, "domains", named, *more, "--json", *size).json() for size in ([], ["--memory", "4k"])
    ]
    assert [one["mode"] for one in result] == ["in memory", "streamed"]
    assert result[0]["domains"] == result[1]["domains"]
    assert result[0]["spam"] == result[1]["spam"]
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_a_file_of_links_is_built_into_a_temporary_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, scratch: Path
) -> None:
    (tmp_path / "links.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in LINKS) + "and nothing\n")
    whole = CommandResult(capsys, "domains", str(tmp_path / "links.tsv"), "--csv")
    short = CommandResult(capsys, "domains", str(tmp_path / "links.tsv"), "--csv", "--memory", "4k")
    assert short.out == whole.out
    assert "; streamed (" in short.err
    assert "1 malformed line was skipped" in short.err
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_scores_that_exceed_the_memory_limit_are_rejected(capsys: pytest.CaptureFixture[str], named: str) -> None:
    printed = CommandResult(capsys, "domains", named, "--score", "harmonic", "--memory", "4k")
    assert (printed.code, printed.out) == (2, "")
    assert printed.err.startswith(
        "harmonic over 408 domains needs about 65,280 bytes of memory, and memory is limited to 4,000 bytes"
    )
    assert "hint: tse, supp and qvs read a graph folder as a stream" in printed.err


# Invalid options


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--score", "best"], "unknown score 'best'; choose tse, supp, in,"),
        (["--score", ""], "unknown score ''"),
        (["--p", "0"], "p must be in (0, 1], got 0"),
        (["--p", "150%"], "p must be in (0, 1], got 1.5"),
        (["--p", "many"], "must be a share such as 0.01 or 1%, got 'many'"),
        (["--p", "nan"], "p must be in (0, 1], got nan"),
        (["--error", "0"], "error must be in (0, 1), got 0"),
        (["--error", "100%"], "error must be in (0, 1), got 1"),
        (["--top", "0"], "must be at least 1, got 0"),
        (["--rng", "-1"], "must be at least 0, got -1"),
        (["--supporter-depth", "3", "--score", "tse,in"], "--supporter-depth must be 2 with --score in, got 3"),
        (["--compare", "star.org", "hub1.org", "--score", "in"], "--compare needs the sample of tse"),
        (["--budget", "most"], "'most' is not a budget"),
        (["--budget", "star+9"], "--budget star+9 gives pages to trusted domains"),
        (["--plot", "p.svg"], "--plot needs --blacklist"),
        (["--out", "scores.txt"], "scores.txt has no known suffix"),
        (["--out", "nowhere/scores.csv"], "nowhere/scores.csv cannot be written: there is no folder nowhere"),
        (["--suffixes", "none.dat"], "the list of suffixes none.dat cannot be read: No such file"),
        (["--blacklist", "none.txt"], "none.txt cannot be read: No such file"),
        (["--blacklist", "empty.txt"], "empty.txt names no domain"),
        (["--trusted", "empty.txt"], "empty.txt names no domain"),
        (["--compare", "star.org", "moon.org"], "no page named 'moon.org'"),
        (["--json", "--csv"], "--json and --csv exclude each other."),
    ],
)
def test_invalid_options_are_rejected_before_the_work(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    no_work(monkeypatch)
    (tmp_path / "empty.txt").write_text("# nothing yet\n")
    printed = CommandResult(capsys, "domains", named, *more)
    assert (printed.code, printed.out) == (2, "")
    assert problem in printed.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "named"]


@pytest.mark.parametrize("more", [[], ["--memory", "1MB"]])
@pytest.mark.parametrize(
    ("options", "which"),
    [
        (["--blacklist", "some.txt"], "--blacklist needs"),
        (["--trusted", "some.txt"], "--trusted needs"),
        (["--compare", "a.org", "b.org"], "--compare needs"),
        (["--condense"], "--condense needs"),
        (["--trusted", "some.txt", "--blacklist", "some.txt"], "--blacklist and --trusted need"),
    ],
)
def test_a_graph_without_names(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    which: str,
    more: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.txt").write_text("0 1\n1 2\n")
    (tmp_path / "some.txt").write_text("a.org\n")
    assert CommandResult(capsys, "domains", "links.txt", "--csv").out.splitlines()[1].startswith("1,2,2,1.0,")
    no_work(monkeypatch)
    printed = CommandResult(capsys, "domains", "links.txt", *options, *more)
    assert (printed.code, printed.out) == (2, "")
    assert printed.err.splitlines()[-2:] == [
        f"{which} names, and links.txt has none",
        "  hint: build it from a file with names",
    ]


def test_graphs_that_are_none(capsys: pytest.CaptureFixture[str], tmp_path: Path, named: str) -> None:
    printed = CommandResult(capsys, "domains", str(tmp_path / "nowhere"))
    assert printed.code in (2, 4)
    assert "nowhere" in printed.err.splitlines()[0]
    (Path(named) / "graph.json").write_text("{")
    assert CommandResult(capsys, "domains", named).code == 4
    empty = sv.Graph.from_edges([]).save(tmp_path / "empty")
    printed = CommandResult(capsys, "domains", str(empty), "--csv", "--budget", "star")
    assert (printed.code, printed.out.count("\n")) == (0, 1)


def test_trusted_domains_that_the_graph_does_not_hold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, named: str
) -> None:
    (tmp_path / "good.txt").write_text("moon.org\n")
    printed = CommandResult(capsys, "domains", named, "--trusted", str(tmp_path / "good.txt"))
    assert (printed.code, printed.out) == (2, "")
    assert "none of the 1 trusted domains is in the graph\n" in printed.err


# The disk, and Ctrl-C


@pytest.mark.skipif(sys.platform == "win32", reason="limits are for POSIX")
@pytest.mark.parametrize("limit", [64, 900, 3000])
def test_a_full_disk_during_the_build(tmp_path: Path, limit: int) -> None:
    (tmp_path / "links.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in LINKS))
    (tmp_path / "scratch").mkdir()
    env = {**NO_KERNELS, "TMPDIR": str(tmp_path / "scratch")}
    args = (str(limit), "domains", str(tmp_path / "links.tsv"), "-q", "--memory", "4k")
    done = process("-c", FULL, *args, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    problem, hint = done.stderr.splitlines()
    assert problem.endswith("cannot be written: File too large")
    assert hint == "  hint: check the folder and its free space"
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits are for POSIX")
@pytest.mark.parametrize("name", ["all.csv", "all.csv.gz", "all.parquet", "all.npy"])
def test_a_full_disk_while_domains_are_written(tmp_path: Path, named: str, name: str) -> None:
    (tmp_path / name).write_text("as before")
    env = dict(NO_KERNELS)
    args = ("500", "domains", named, "-q", "--csv", "--top", "1", "--out", str(tmp_path / name))
    done = process("-c", FULL, *args, env=env)
    assert done.returncode == 2
    problem = done.stderr.splitlines()[0]
    assert problem.startswith(f"{tmp_path / name} cannot be written: ")
    assert problem.endswith("File too large")
    assert (tmp_path / name).read_text() == "as before"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "named"])


@pytest.mark.skipif(sys.platform == "win32", reason="limits are for POSIX")
def test_a_full_disk_while_ranks_are_written(tmp_path: Path, named: str) -> None:
    env = dict(NO_KERNELS)
    done = process("-c", FULL, "500", "rank", named, "-q", "--out", str(tmp_path / "all.npy"), env=env)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"{tmp_path / 'all.npy'} cannot be written: File too large"
    assert [path.name for path in tmp_path.iterdir()] == ["named"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits are for POSIX")
def test_a_full_disk_while_a_stream_is_counted(tmp_path: Path) -> None:
    rmat(12, 2).save(tmp_path / "web")
    (tmp_path / "scratch").mkdir()
    env = {**NO_KERNELS, "TMPDIR": str(tmp_path / "scratch")}
    args = ("2000", "domains", str(tmp_path / "web"), "-q", "--memory", "4k", "--p", "0.1")
    done = process("-c", FULL, *args, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be written: File too large" in done.stderr
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    "place", ["surveyor.graph.folder.transpose", "surveyor.rank.domains.scores.streamed_supporters"]
)
def test_an_interrupt_leaves_no_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name, text in (("vertices", "0\torg.a\n1\torg.b\n"), ("edges", "0\t1\n")):
        (tmp_path / f"cc-domain-{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setattr(place, interrupted)
    printed = CommandResult(capsys, "domains", str(tmp_path), "--memory", "10", "--out", str(tmp_path / "all.csv"))
    assert (printed.code, printed.err.splitlines()[-1]) == (130, "Interrupted.")
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "all.csv").exists()


def test_an_interrupt_while_domains_are_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("surveyor.report.domain_scores._column_values", interrupted)
    printed = CommandResult(capsys, "domains", named, "--out", str(tmp_path / "all.csv"))
    assert (printed.code, printed.err.splitlines()[-1]) == (130, "Interrupted.")
    assert [path.name for path in tmp_path.iterdir()] == ["named"]
