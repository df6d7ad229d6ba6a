"""`surveyor sample`: invalid options, unreliable samples, and disks that are full or read-only."""

from __future__ import annotations

import os
import sys
from itertools import combinations, pairwise
from pathlib import Path

import pytest

import surveyor as sv
from console import FULL, NO_KERNELS, CommandResult, process

pytestmark = pytest.mark.usefixtures("nowhere")

ON = [f"https://a.example/{name}" for name in "abcd"]
OFF = [f"https://b.test/{name}" for name in "abcdefgh"]
QUICK = ["--topic", "tld:example", "--until", "steps=200"]


def links() -> list[tuple[str, str]]:
    """Return the links of a ring of pages on topic and of a chain off topic that leads to it."""
    ring = [(page, ON[place - 1]) for place, page in enumerate(ON)]
    return [*ring, *pairwise(OFF), (OFF[-1], ON[0])]


@pytest.fixture
def path(tmp_path: Path) -> str:
    sv.Graph.from_edges(links()).save(tmp_path / "web.graph")
    return "web.graph"


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([], "Missing option '--topic'"),
        (["--topic", ""], "the topic is empty"),
        (["--topic", "hots:a.example"], "unknown topic rule 'hots'"),
        (["--topic", "url:["], "'[' is not a regular expression"),
        (["--topic", "model:none.json"], "none.json"),
        (["--topic", "tld:nowhere"], "tld:nowhere"),
        (["--topic", "solar power"], "needs the text of pages, but a graph has only names"),
        ([*QUICK, "--share", "hots:a"], "unknown topic rule 'hots'"),
        ([*QUICK, "--share", "solar power"], "needs the text of pages"),
        ([*QUICK, "--share", "out_degree"], "--share needs a rule, and out_degree is a number"),
        ([*QUICK, "--share", "host"], "host is a category, not a rule"),
        ([*QUICK, "--of", "tld"], "tld is a category, not a rule"),
        (["web.graph", *QUICK], "web.graph is a file or folder"),
        (["https://a.example/", *QUICK], "web.graph is a file or folder"),
        (["old.survey", *QUICK], "is a file or folder"),
        (["--seeds", "empty.txt", *QUICK], "web.graph is a file or folder"),
        ([*QUICK, "--method", "best"], "'best' is not one of 'uniform', 'trial', 'mixture', 'hard'"),
        ([*QUICK, "--mean", "height"], "'height' is not one of 'out_degree', 'log_out_degree'"),
        ([*QUICK, "--by", "colour"], "'colour' is not one of 'domain', 'host', 'tld', 'language', 'out_degree'"),
        ([*QUICK, "--walks", "0"], "must be at least 1, got 0"),
        ([*QUICK, "--rng", "-1"], "must be at least 0, got -1"),
        ([*QUICK, "--draws", "0"], "must be at least 1, got 0"),
        ([*QUICK, "--reach", "0"], "must be at least 1, got 0"),
        (["--topic", "tld:example", "--until", "pages=5"], "pages"),
        (["--topic", "tld:example", "--until", "ess"], "'ess' is not a stopping rule"),
        (["--topic", "tld:example", "--until", "ess=many"], "ess=many is not a number of ess"),
        (["--topic", "tld:example", "--until", "ess=0"], "ess"),
        (["--topic", "tld:example", "--until", "width=300%"], "width"),
        (["--topic", "tld:example", "--until", "fetches=-5"], "fetches must be a whole number of at least 1, got -5"),
        (["--topic", "tld:example", "--until", "width=3%"], "--until width needs a property"),
        ([*QUICK, "--until", "width=3%", "--mean", "degree"], "--until width applies to shares, and degree"),
        ([*QUICK, "--by", "language"], "--by language needs the text of pages"),
        ([*QUICK, "--in-links", "130%"], "--in-links must be a share from 0% to 100%, got 130%"),
        ([*QUICK, "--in-links", "nan"], "--in-links must be a share from 0% to 100%, got nan"),
        ([*QUICK, "--in-links", "10%", "--in-links", "20%"], "--in-links may be repeated for live samples only"),
        ([*QUICK, "--start", "https://nowhere.example/"], "no page 'https://nowhere.example/' in this graph"),
        ([*QUICK, "--in-links", "none.tsv"], "none.tsv"),
        ([*QUICK, "--recall", "none.txt"], "none.txt"),
        ([*QUICK, "--recall", "empty.txt"], "empty.txt has no URLs"),
        ([*QUICK, "--save", "pages.txt"], "unknown format of pages.txt"),
        ([*QUICK, "--save", "pages.npy"], "unknown format of pages.npy"),
        ([*QUICK, "--save", "no/pages.csv"], "no/pages.csv cannot be written: there is no folder no"),
        ([*QUICK, "--report", "web.graph"], "web.graph is a folder"),
        ([*QUICK, "--plot", "empty.txt"], "empty.txt is not a folder"),
        ([*QUICK, "--plot", "no/curves"], "no/curves cannot be created: no does not exist"),
        ([*QUICK, "--save", "a.csv", "--report", "./a.csv"], "--save and --report name the same file, ./a.csv"),
        ([*QUICK, "--save", "a.csv", "--recall", "a.csv"], "--save and --recall name the same file, a.csv"),
        ([*QUICK, "--radius", "2"], "--radius applies to the method neighbourhood-paper only"),
        ([*QUICK, "--out", "d"], "--out applies to live samples only"),
        ([*QUICK, "--max-delay", "9"], "--max-delay applies to live samples only"),
        ([*QUICK, "--json", "--csv"], "--json and --csv exclude each other."),
    ],
)
def test_invalid_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str, more: list[str], problem: str
) -> None:
    (tmp_path / "empty.txt").write_text("# nothing yet\n")
    result = CommandResult(capsys, "sample", path, *more)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err
    assert result.err.splitlines()[-1].startswith("  hint: ")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["empty.txt", "web.graph"]


def test_missing_source(capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "sample", "--topic", "everything")
    assert (result.code, result.out) == (2, "")
    assert "no source to sample was given" in result.err
    result = CommandResult(capsys, "sample", "nothing", "--topic", "arts")
    assert "no graph or survey 'nothing'" in result.err
    for place, codes in (("nothing", (2, 4)), ("nothing.graph", (2, 4)), ("nothing.survey", (4,))):
        result = CommandResult(capsys, "sample", place, "--topic", "everything")
        assert result.code in codes
        assert place in result.err.splitlines()[0]


def test_options_for_other_sources(capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "sample", "https://a.example/", "--topic", "everything", "--start", "x")
    assert (result.code, "--start applies to graphs and surveys only" in result.err) == (2, True)
    result = CommandResult(capsys, "sample", "s.survey", "--topic", "everything", "--delay", "3")
    assert (result.code, "--delay applies to live samples only, and a survey" in result.err) == (2, True)
    result = CommandResult(capsys, "sample", "https://a.example/", "--topic", "everything", "--recall", "none.txt")
    assert result.code == 2
    assert "contact" not in result.err  # rejected before the prompt


# Warnings


def test_start_off_topic_finds_it(capsys: pytest.CaptureFixture[str], path: str) -> None:
    result = CommandResult(capsys, "sample", path, *QUICK, "--start", OFF[-2])
    assert result.code == 0
    assert "mean out_degree" in result.out


def test_lost_walks(capsys: pytest.CaptureFixture[str]) -> None:
    apart = [*links(), ("https://c.test/", "https://d.test/"), ("https://d.test/", "https://c.test/")]
    sv.Graph.from_edges(apart).save(Path("apart.graph"))
    result = CommandResult(capsys, "sample", "apart.graph", *QUICK, "--start", "https://c.test/", "--start", ON[0])
    assert "! 4 of 8 walks have not found the topic yet" in result.err
    lost = CommandResult(capsys, "sample", "apart.graph", *QUICK, "--start", "https://c.test/")
    assert lost.code == 3
    assert "! no walk found a page on topic (tld:example)" in lost.err
    assert "estimate" not in lost.out
    fields = CommandResult(capsys, "sample", "apart.graph", *QUICK, "--start", "https://c.test/", "--json").json()
    assert (fields["ending"], fields["reached"], fields["estimates"]) == ("lost", False, [])


def test_disconnected_topic(capsys: pytest.CaptureFixture[str]) -> None:
    """Walks in two unconnected parts disagree, and a walk on an isolated page never moves."""

    def ring(name: str, size: int) -> list[tuple[str, str]]:
        pages = [f"https://{name}.example/{number}" for number in range(size)]
        return [(page, pages[place - 1]) for place, page in enumerate(pages)]

    clique = list(combinations([f"https://two.example/{number}" for number in range(12)], 2))
    alone = [("https://alone.example/", "https://other.test/")]
    sv.Graph.from_edges([*ring("one", 30), *clique, *alone]).save(Path("parts.graph"))
    starts = ["https://one.example/0", "https://two.example/0", "https://alone.example/", "https://one.example/9"]
    words = ["--topic", "tld:example", "--until", "steps=2000", "--walks", "4"]
    result = CommandResult(
        capsys, "sample", "parts.graph", *words, *(word for page in starts for word in ("--start", page))
    )
    assert result.code == 0
    assert "! R-hat " in result.err
    assert "the walks disagree" in result.err
    assert "! a walk was left out that never moved" in result.err
    page = CommandResult(
        capsys, "sample", "parts.graph", *words, "--start", starts[0], "--start", starts[1], "--report", "r.html"
    )
    assert "! R-hat" in page.err
    assert "The walks disagree" in Path("r.html").read_text() or "the walks disagree" in Path("r.html").read_text()


def test_single_host(capsys: pytest.CaptureFixture[str], path: str) -> None:
    result = CommandResult(capsys, "sample", path, *QUICK, "--method", "trial")
    assert "of the steps are on one host" in result.err


def test_files_without_steps_on_topic(capsys: pytest.CaptureFixture[str], path: str) -> None:
    """The limit ends the sample before the first step; all files are written."""
    words = ["sample", path, "--topic", "tld:example", "--until", "fetches=1", "--walks", "4", "--draws", "3"]
    result = CommandResult(capsys, *words, "--report", "r.html", "--plot", "curves", "--save", "p.csv")
    assert result.code == 3
    assert "! 4 of 4 walks have not found the topic yet" in result.err
    assert "was not reached" not in result.err  # the limit is the sole goal
    assert "! no figures were written to curves" in result.err
    assert "--until fetches=2 " in result.err
    assert "weights make every page count alike" not in result.out
    assert not Path("curves").exists()
    assert Path("p.csv").read_text().splitlines() == ["url,weight,visits,degree,walk,fetches"]
    page = Path("r.html").read_text("utf-8")
    assert "4 of 4 walks have not found the topic yet" in page
    assert "<svg" not in page
    fields = CommandResult(capsys, *words, "--json").json()
    assert fields["reached"] is sv.sample(path, "tld:example", until="fetches=1", walks=4).reached
    assert (fields["estimates"], fields["draws"]) == ([], [])
    assert CommandResult(capsys, *words, "--csv").out == "url\n"


def test_failed_draws_do_not_affect_other_statistics(capsys: pytest.CaptureFixture[str], path: str) -> None:
    words = ["sample", path, *QUICK, "--method", "trial", "--draws", "100000", "--by", "tld"]
    result = CommandResult(capsys, *words, "--report", "r.html")
    assert result.code == 3
    assert "mean out_degree" in result.out
    assert result.out.count("example") == 2  # the topic, and the one category
    assert "! --draws 100000 could not be estimated: " in result.err
    assert "got 100,000" in result.err
    assert "was not reached" not in result.err
    assert "--draws 100000 could not be estimated" in Path("r.html").read_text("utf-8")
    fields = CommandResult(capsys, *words, "--json").json()
    assert (fields["reached"], fields["draws"], set(fields["by"])) == (True, [], {"tld"})
    assert "--draws 100000 could not be estimated" in fields["notes"][-1]
    assert CommandResult(capsys, *words, "--csv").out == "url\n"  # only the table of draws


def test_property_without_values(capsys: pytest.CaptureFixture[str]) -> None:
    """Pages without links have no share of links to pages on topic."""
    sv.Graph.from_edges([(off, on) for off in OFF for on in ON]).save(Path("sinks.graph"))
    words = ["sample", "sinks.graph", *QUICK, "--mean", "topic_link_share", "--mean", "degree"]
    result = CommandResult(capsys, *words, "--report", "r.html", "--plot", "curves")
    assert result.code == 3
    assert "! --mean topic_link_share could not be estimated: " in result.err
    assert "mean degree" in result.out
    assert "effective sample size  0" not in result.out
    assert "mean degree" in Path("r.html").read_text("utf-8")
    assert Path("curves", "running-1.svg").exists()


def test_longer_walks_are_suggested_only_after_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    apart = [*links(), ("https://c.test/", "https://d.test/"), ("https://d.test/", "https://c.test/")]
    sv.Graph.from_edges(apart).save(Path("apart.graph"))
    words = ["--topic", "tld:example", "--start", "https://c.test/", "--until", "ess=9,fetches=5000"]
    result = CommandResult(capsys, "sample", "apart.graph", *words)
    assert result.code == 3
    assert "no walk found a page on topic" in result.err
    assert "walk on" not in result.err


# Disks


@pytest.mark.skipif(sys.platform == "win32", reason="limits are for POSIX")
@pytest.mark.parametrize(
    "name",
    [
        "all.csv",
        "report.html",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("all.csv.gz", "all.parquet", "curves")),
    ],
)
@pytest.mark.slow
def test_full_disk(path: str, tmp_path: Path, name: str) -> None:
    if name != "curves":
        (tmp_path / name).write_text("as before")
    flag = {"report.html": "--report", "curves": "--plot"}.get(name, "--save")
    limit = "9000" if name in ("report.html", "curves") else "60"
    done = process("-c", FULL, limit, "sample", path, "-q", "--csv", *QUICK, flag, name, env=NO_KERNELS, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    problem = next(line for line in done.stderr.splitlines() if not line.startswith("! "))
    assert " cannot be written: " in problem
    assert problem.endswith("File too large")
    if name == "curves":
        assert [one.name for one in (tmp_path / name).iterdir() if one.stat().st_size > 9000] == []
    else:
        assert (tmp_path / name).read_text() == "as before"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(capsys: pytest.CaptureFixture[str], path: str) -> None:
    Path("closed").mkdir(mode=0o500)
    for words in (["--save", "closed/a.csv"], ["--plot", "closed"], ["--report", "closed/r.html"]):
        result = CommandResult(capsys, "sample", path, *QUICK, *words)
        assert (result.code, "takes no files from you" in result.err) == (2, True)


def test_interrupt_leaves_no_partial_file(
    capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("surveyor.report.sample.batches", interrupted)
    result = CommandResult(capsys, "sample", path, *QUICK, "--save", "all.csv")
    assert (result.code, result.err.splitlines()[-1]) == (130, "Interrupted.")
    assert [one.name for one in tmp_path.iterdir()] == ["web.graph"]
