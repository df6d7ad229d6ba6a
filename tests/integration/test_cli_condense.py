"""`surveyor graph condense`: what it writes, what it says, and what it leaves behind when it fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from console import CommandResult, process
from domain_links import LINKS
from fake_web import Sites, Time, crawled, page
from surveyor.graph import folder as graph_folder
from surveyor.graph.condense import condense
from surveyor.graph.csr import Graph
from surveyor.survey.survey import Survey


@pytest.fixture
def pages(tmp_path: Path) -> str:
    return str(Graph.from_edges(LINKS).save(tmp_path / "pages"))


def names_of(folder: Path) -> list[str]:
    names = Graph.open(folder).names
    assert names is not None
    return list(names)


def test_pages_become_domains(capsys: pytest.CaptureFixture[str], tmp_path: Path, pages: str) -> None:
    printed = CommandResult(capsys, "graph", "condense", pages, str(tmp_path / "d"))
    assert printed.code == 0
    assert names_of(tmp_path / "d") == ["db.intern", "github.io", "a.org", "b.co.uk"]
    assert "domains               4, of 7 pages\n" in printed.out
    assert "links within domains  1\n" in printed.out
    assert "duplicates merged     1\n" in printed.out
    assert "! 1 page whose name is neither a URL nor a host is omitted\n" in printed.err
    assert "! 1 host without a known public suffix is counted as a domain\n" in printed.err
    assert f"surveyor domains {tmp_path / 'd'}\n" in printed.err
    info = CommandResult(capsys, "graph", "info", str(tmp_path / "d")).out
    assert "Public Suffix List of " in info
    assert "condensed to" in info


def test_one_json_object(capsys: pytest.CaptureFixture[str], tmp_path: Path, pages: str) -> None:
    result = CommandResult(capsys, "graph", "condense", pages, str(tmp_path / "d"), "--level", "hosts", "--json").json()
    assert result["command"] == "graph condense"
    assert (result["level"], result["hosts"], result["links"], result["pages"]) == ("hosts", 6, 5, 7)
    assert (result["without_host"], result["without_suffix"]) == (1, 0)
    assert names_of(tmp_path / "d") == ["db.intern", "joe.github.io", "a.org", "www.a.org", "b.co.uk", "www.b.co.uk"]


def test_lists_of_suffixes(capsys: pytest.CaptureFixture[str], tmp_path: Path, pages: str) -> None:
    quiet = ("graph", "condense", pages, str(tmp_path / "d"), "-q", "--replace")
    assert CommandResult(capsys, *quiet, "--private-suffixes").code == 0
    assert "joe.github.io" in names_of(tmp_path / "d")
    (tmp_path / "own.dat").write_text("a.org\nuk\n")
    assert CommandResult(capsys, *quiet, "--suffixes", str(tmp_path / "own.dat")).code == 0
    assert names_of(tmp_path / "d") == ["db.intern", "joe.github.io", "a.org", "www.a.org", "co.uk"]
    printed = CommandResult(capsys, *quiet, "--suffixes", str(tmp_path / "none.dat"))
    assert (printed.code, printed.out) == (2, "")
    assert printed.err.startswith(f"the list of suffixes {tmp_path / 'none.dat'} cannot be read: No such file")
    assert Graph.open(tmp_path / "d").pages == 5  # as before


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--level", "hosts", "--private-suffixes"], "--level hosts uses no public suffixes"),
        (["--nofollow"], "--nofollow applies to surveys"),
        (["--level", "pages"], "'pages' is not one of 'domains', 'hosts'"),
    ],
)
def test_options_that_make_no_sense(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, pages: str, more: list[str], problem: str
) -> None:
    printed = CommandResult(capsys, "graph", "condense", pages, str(tmp_path / "d"), *more)
    assert printed.code == 2
    assert problem in printed.err
    assert not (tmp_path / "d").exists()


def test_graphs_that_cannot_be_condensed(capsys: pytest.CaptureFixture[str], tmp_path: Path, pages: str) -> None:
    (tmp_path / "links.txt").write_text("0 1\n1 2\n")
    printed = CommandResult(capsys, "graph", "condense", str(tmp_path / "links.txt"), str(tmp_path / "d"))
    assert (printed.code, printed.err.splitlines()[0]) == (
        2,
        f"{tmp_path / 'links.txt'} has no names, so the hosts of its pages are unknown",
    )
    printed = CommandResult(capsys, "graph", "condense", pages, pages)
    assert (printed.code, printed.err.splitlines()[0]) == (2, f"{pages} already exists")
    printed = CommandResult(capsys, "graph", "condense", str(tmp_path / "nowhere"), str(tmp_path / "d"))
    assert printed.code in (2, 4)
    assert "nowhere" in printed.err.splitlines()[0]
    assert not (tmp_path / "d").exists()


def test_a_survey_becomes_domains(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    home, far = "http://www.a.org/", "http://b.co.uk/"
    answers = {home: page(home, "/x", far, extra='<a rel=nofollow href="http://ads.com/">x</a>')}
    crawled(tmp_path / "a.survey", [home], Sites(Time(), answers))
    assert CommandResult(capsys, "graph", "condense", str(tmp_path / "a.survey"), str(tmp_path / "d")).code == 0
    domains = Graph.open(tmp_path / "d")
    assert names_of(tmp_path / "d") == ["ads.com", "a.org", "b.co.uk"]
    assert domains.links_of(1).tolist() == [2]
    assert domains.provenance["source"] == str(tmp_path / "a.survey")
    args = ("graph", "condense", str(tmp_path / "a.survey"), str(tmp_path / "d"), "--replace", "--nofollow", "--json")
    assert CommandResult(capsys, *args).json()["links"] == 2
    with Survey(tmp_path / "a.survey") as survey:
        assert survey.domain_graph(nofollow=True).graph == Graph.open(tmp_path / "d")


FULL = """
import resource, sys
from surveyor.cli import run
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(run(sys.argv[2:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits are for POSIX")
@pytest.mark.parametrize("limit", [64, 300, 2000, 3000])
@pytest.mark.slow
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, limit: int) -> None:
    edges = [(f"http://h{number}.org/", f"http://h{7 * number % 400}.org/") for number in range(400)]
    Graph.from_edges(edges).save(tmp_path / "pages")
    env = {"NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}  # compiled kernels would be kept in files
    args = (str(limit), "graph", "condense", str(tmp_path / "pages"), str(tmp_path / "d"), "-q")
    done = process("-c", FULL, *args, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"{tmp_path / 'd'} cannot be written: File too large",
        "  hint: check the folder and its free space",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]


def test_an_interrupt_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, pages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    condense(Graph.open(pages), "hosts", folder=tmp_path / "d")
    before = json.loads((tmp_path / "d" / "graph.json").read_text())
    monkeypatch.setattr(graph_folder, "transpose", interrupted)
    printed = CommandResult(capsys, "graph", "condense", pages, str(tmp_path / "d"), "--replace")
    assert (printed.code, printed.err.splitlines()[-1]) == (130, "Interrupted.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "pages"]
    assert json.loads((tmp_path / "d" / "graph.json").read_text()) == before
