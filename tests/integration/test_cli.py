"""The command line: what each command prints, and what it leaves alone."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

from console import LINKS, CommandResult, process
from generate_reference import addresses_reference, reference, rules_reference, settings_reference
from surveyor.cli import lazy, options
from surveyor.cli.graph_source import page_argument
from surveyor.errors import InputError
from surveyor.graph.csr import Graph

ROOT = Path(__file__).parents[2]


# Starting


@pytest.mark.parametrize(
    "words", [["--help"], [], ["--version"], ["rank", "--help"], ["graph", "build", "-h"], ["demo", "-h"]]
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    script = (
        "import sys; from surveyor.cli import run; code = run(sys.argv[1:]);"
        "assert not {'numpy', 'numba', 'rich', 'matplotlib'} & set(sys.modules); sys.exit(code)"
    )
    done = process("-c", script, *words)
    assert done.returncode == 0, done.stderr
    assert "surveyor" in done.stdout
    assert not done.stderr


def test_module_runs() -> None:
    done = process("-m", "surveyor", "--version")
    assert done.stdout.startswith("surveyor 0.")


def test_every_command_has_help_and_the_shared_options() -> None:
    context = click.Context(lazy.surveyor)
    for group in (lazy.surveyor, *map(lazy.group, lazy.GROUPS)):
        for name, (_, about) in group.table.items():
            command = group.get_command(context, name)
            assert command is not None
            assert command.help, name
            assert about.endswith(".")
            if name not in {*lazy.GROUPS, "completion"}:
                assert {"json", "quiet", "no_color", "debug"} <= {option.name for option in command.params}


def test_reference_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert page == reference(), "run: python docs/generate_reference.py"
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    assert page == settings_reference(), "run: python docs/generate_reference.py"
    page = (ROOT / "docs" / "reference" / "addresses.md").read_text("utf-8")
    assert page == addresses_reference(), "run: python docs/generate_reference.py"
    page = (ROOT / "docs" / "reference" / "check.md").read_text("utf-8")
    assert page == rules_reference(), "run: python docs/generate_reference.py"


def test_reference_is_written_where_the_documentation_is(tmp_path: Path) -> None:
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    assert process(str(ROOT / "docs" / "generate_reference.py"), cwd=tmp_path).returncode == 0
    assert (tmp_path / "docs" / "reference" / "commands.md").read_text("utf-8") == reference()
    assert (tmp_path / "docs" / "reference" / "settings.md").read_text("utf-8") == settings_reference()


def test_choices_are_those_of_the_library() -> None:
    from surveyor.graph.formats import FORMATS

    assert set(options.FORMATS) == set(FORMATS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "completion", shell)
    assert printed.code == 0
    assert "_SURVEYOR_COMPLETE" in printed.out


def test_completion_completes() -> None:
    env = {"_SURVEYOR_COMPLETE": "bash_complete", "COMP_WORDS": "surveyor ra", "COMP_CWORD": "1"}
    assert process("-c", "from surveyor.cli import main; main()", env=env).stdout == "plain,rank\n"


# Ranking


def test_rank_prints_data_to_stdout_and_talk_to_stderr(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "rank", folder)
    assert printed.code == 0
    lines = printed.out.splitlines()
    assert lines[0].split() == ["score", "share", "in-links", "page"]
    assert lines[1].split()[0] == "100"
    assert lines[1].split()[-1] == "home"
    assert "proven error at most" in printed.out
    assert f"surveyor explain {folder} home" in printed.err
    quiet = CommandResult(capsys, "rank", folder, "--quiet")
    assert quiet.out == printed.out
    assert not quiet.err


def test_rank_as_json_and_csv(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "rank", folder, "--json", "--tolerance", "1e-10").json()
    assert result["command"] == "rank"
    assert result["graph"] == {"path": folder, "pages": 5, "links": 6}
    assert result["ranking"]["reached"]
    assert result["ranking"]["error"] <= 1e-10
    assert [page["position"] for page in result["pages"]] == [1, 2, 3, 4, 5]
    assert sum(page["share"] for page in result["pages"]) == pytest.approx(1)
    rows = list(csv.DictReader(io.StringIO(CommandResult(capsys, "top", folder, "--csv", "--tolerance", "1e-10").out)))
    assert [row["name"] for row in rows] == [page["name"] for page in result["pages"]]
    assert [float(row["share"]) for row in rows] == [page["share"] for page in result["pages"]]


def test_rank_reads_a_plain_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "links.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in LINKS))
    result = CommandResult(capsys, "top", str(path), "-n", "1", "--json").json()
    assert result["pages"][0]["name"] == "home"


def test_trusted_pages(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trusted = tmp_path / "trusted.txt"
    trusted.write_text("# mine\nblog\nunknown\n\n")
    printed = CommandResult(capsys, "rank", folder, "--trusted", str(trusted), "--json")
    result = printed.json()
    assert result["ranking"]["teleport"] == "custom"
    assert "1 of 2 trusted pages are not in this graph: unknown" in printed.err
    assert {page["name"]: page["share"] for page in result["pages"]}["blog"] >= 0.15
    trusted.write_text("unknown\n")
    assert CommandResult(capsys, "rank", folder, "--trusted", str(trusted)).code == 2


def test_rank_that_does_not_converge_is_shown_with_its_error(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "rank", folder, "--tolerance", "1e-12", "--max-sweeps", "1", "--json")
    assert printed.code == 3
    result = printed.json()
    assert not result["ranking"]["reached"]
    assert result["ranking"]["error"] > 1e-12
    assert "\n! the proven error is " in printed.err
    text = CommandResult(capsys, "rank", folder, "--tolerance", "1e-12", "--max-sweeps", "1")
    shown = text.out.partition("proven error at most ")[2].split()[0]
    assert f"the proven error is {shown}, above the tolerance 1e-12, after 1 sweep." in text.err


def test_ranks_are_written_and_start_the_next_run(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ranks.csv", "ranks.npy"):
        path = tmp_path / name
        assert CommandResult(capsys, "rank", folder, "--out", str(path), "--tolerance", "1e-12").code == 0
        assert path.stat().st_size
    warm = CommandResult(capsys, "rank", folder, "--warm-start", str(path), "--json").json()
    cold = CommandResult(capsys, "rank", folder, "--json").json()
    assert warm["ranking"]["sweeps"] <= cold["ranking"]["sweeps"]
    assert CommandResult(capsys, "rank", folder, "--warm-start", str(tmp_path / "none.npy")).code == 2


def test_ranks_of_other_pages_are_reported(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ranks = tmp_path / "ranks.csv"
    ranks.write_text("id,share,name\n0,0.5,home\n1,0.3,news\n2,0.2,gone\n")
    printed = CommandResult(capsys, "rank", folder, "--warm-start", str(ranks))
    assert printed.code == 0
    assert "! 2 of 3 ranks in" in printed.err
    assert "3 of its 5 pages start with an equal share" in printed.err
    ranks.write_text("id,share,name\n2,0.2,gone\n")
    assert CommandResult(capsys, "rank", folder, "--warm-start", str(ranks)).code == 2


def test_files_that_cannot_be_written_are_rejected_before_ranking(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, name in (("--out", "none/ranks.csv"), ("--report", "none/report.html"), ("--report", ".")):
        printed = CommandResult(capsys, "rank", folder, option, str(tmp_path / name))
        assert (printed.code, printed.out) == (2, "")
        assert "  hint: " in printed.err
    assert not (tmp_path / "none").exists()
    urls = tmp_path / "urls.graph"
    Graph.from_edges([("https://a.example/", "https://b.example/")]).save(urls)
    printed = CommandResult(capsys, "rank", str(urls), "--out", str(tmp_path / "ranks.txt.gz"))
    assert (printed.code, printed.out) == (2, "")


def test_explain(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "explain", folder, "home")
    assert printed.out.startswith("home   score 100   share")
    assert "1 of 2 links" in printed.out
    result = CommandResult(capsys, "explain", folder, "home", "--json").json()
    why = result["explanation"]
    assert (why["name"], why["position"], why["score"]) == ("home", 1, 100)
    parts = sum(link["fraction"] for link in why["links"]) + why["other_links"] + why["dangling"] + why["teleport"]
    assert parts == pytest.approx(1, abs=1e-5)
    rows = list(csv.DictReader(io.StringIO(CommandResult(capsys, "explain", folder, "home", "--csv", "-n", "1").out)))
    assert [row["kind"] for row in rows] == ["link", "others", "dangling", "teleport"]
    assert CommandResult(capsys, "explain", folder, "hom").code == 2


def test_a_number_is_a_name_in_a_graph_with_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trusted = tmp_path / "web.graph", tmp_path / "trusted.txt"
    Graph.from_edges([("10", "20"), ("20", "30"), ("30", "40"), ("40", "10")]).save(path)
    assert CommandResult(capsys, "explain", str(path), "0").code == 2
    assert CommandResult(capsys, "explain", str(path), "#4").code == 2
    assert CommandResult(capsys, "explain", str(path), "10", "--json").json()["explanation"]["id"] == 0
    assert CommandResult(capsys, "explain", str(path), "#1", "--json").json()["explanation"]["name"] == "20"
    trusted.write_text("0\n1\n")
    assert CommandResult(capsys, "rank", str(path), "--trusted", str(trusted)).code == 2
    trusted.write_text("#2 is a remark\n# 5\n#3\t2\n")
    assert (
        CommandResult(capsys, "top", str(path), "--trusted", str(trusted), "--json").json()["pages"][0]["name"] == "40"
    )
    shares = []
    for weighted in ("#3\n#1 5\n", "40\n20,5\n", "#3\n#1,5\n"):
        trusted.write_text(weighted)
        ranked = CommandResult(capsys, "rank", str(path), "--trusted", str(trusted), "--json").json()["pages"]
        shares.append({page["name"]: page["share"] for page in ranked})
    assert shares[0] == shares[1] == shares[2]
    assert shares[0]["20"] > shares[0]["40"]
    bare = tmp_path / "bare.graph"
    Graph.from_arrays(np.array([0, 1]), np.array([1, 0])).save(bare)
    for word in ("1", "#1"):
        assert CommandResult(capsys, "explain", str(bare), word, "--json").json()["explanation"]["id"] == 1


def test_a_name_that_cannot_be_typed_is_suggested_by_its_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "web.graph")
    Graph.from_edges([("-x", "b\x1b[31m")]).save(path)
    assert f"surveyor explain {path} '#1'" in CommandResult(capsys, "rank", path).err
    assert CommandResult(capsys, "explain", path, "#1").code == 0
    assert "use the id" in CommandResult(capsys, "explain", path, "b\\x1b[31m").err
    assert page_argument(Graph.open(path), 0) == "#0"  # a name that looks like an option


def test_trusted_file_of_another_editor(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trusted = tmp_path / "trusted.txt"
    trusted.write_bytes(b"\xef\xbb\xbfblog\r\n")
    printed = CommandResult(capsys, "rank", folder, "--trusted", str(trusted), "--json")
    assert printed.json()["ranking"]["teleport"] == "custom"
    assert "not in this graph" not in printed.err
    trusted.write_bytes(b"\xef\xbb\xbf\r\n")
    assert "names no page" in CommandResult(capsys, "rank", folder, "--trusted", str(trusted)).err


def test_explain_guesses_the_scheme_and_the_slash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "web.graph"
    Graph.from_edges([("https://a.example/", "https://b.example/x")]).save(path)
    printed = CommandResult(capsys, "explain", str(path), "http://a.example")
    assert "hint: did you mean https://a.example/?" in printed.err


# Graphs


def test_build_counts_what_it_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, dest = tmp_path / "links.tsv", tmp_path / "web.graph"
    source.write_text("0\t1\n1\t2\n2\t0\n2\t0\n1\t1\nrubbish\n")
    printed = CommandResult(capsys, "graph", "build", str(source), str(dest))
    assert printed.code == 0, printed.err
    assert "self-links dropped  1" in printed.out
    assert "duplicates merged   1" in printed.out
    assert f"{source.name}:6: rubbish" in printed.err
    assert f"surveyor rank {dest}" in printed.err
    assert CommandResult(capsys, "graph", "build", str(source), str(dest)).code == 2
    result = CommandResult(capsys, "graph", "build", str(source), str(dest), "--replace", "--json").json()
    assert (result["pages"], result["links"], result["provenance"]["malformed"]["count"]) == (3, 3, 1)
    assert CommandResult(capsys, "graph", "build", str(source), str(dest), "--replace", "--strict").code == 2
    quiet = CommandResult(capsys, "graph", "build", str(source), str(dest), "--replace", "--quiet")
    assert not quiet.out


def test_build_a_synthetic_web(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dest = str(tmp_path / "web.graph")
    result = CommandResult(capsys, "graph", "build", "synthetic:small", dest, "--rng", "3", "--json").json()
    assert result["named"]
    assert result["pages"] > 100
    assert CommandResult(capsys, "graph", "build", "synthetic:smal", dest + "2").code == 2
    assert CommandResult(capsys, "graph", "build", dest, dest + "2", "--rng", "3").code == 2


def test_options_of_files_are_refused_for_a_synthetic_web(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--nodes", "9"], ["--input-format", "tsv"], ["--strict"]):
        printed = CommandResult(capsys, "graph", "build", "synthetic:small", str(tmp_path / "web.graph"), *words)
        assert printed.code == 2
        assert "apply to files of links" in printed.err


def test_build_removes_drafts_of_killed_builds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "links.tsv"
    source.write_text("a\tb\n")
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    stale, alive, other = (
        tmp_path / name
        for name in (f"web[1].draft-{killed.pid}", f"web[1].draft-{os.getppid()}", f"web2.draft-{killed.pid}")
    )
    for draft in (stale, alive, other):
        draft.mkdir()
    (stale / "indices.npy").touch()
    printed = CommandResult(capsys, "graph", "build", str(source), str(tmp_path / "web[1]"))
    assert printed.code == 0
    assert f"removed {stale}" in printed.err
    assert [draft.exists() for draft in (stale, alive, other)] == [False, True, True]
    stale.mkdir()
    (stale / "letters.txt").touch()  # a folder of the user that is called so
    assert CommandResult(capsys, "graph", "build", str(source), str(tmp_path / "web[1]"), "--replace").code == 0
    assert stale.exists()


def test_info(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "graph", "info", folder, "--verify", "--json").json()
    assert (result["pages"], result["links"], result["pages_without_out_links"], result["max_in_links"]) == (5, 6, 1, 3)
    printed = CommandResult(capsys, "graph", "info", folder)
    assert "1 (20.0 %)" in printed.out


def test_convert_there_and_back(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, back = str(tmp_path / "links.tsv"), str(tmp_path / "back.graph")
    assert CommandResult(capsys, "graph", "convert", folder, text).code == 0
    assert CommandResult(capsys, "graph", "convert", folder, text).code == 2  # it exists now
    assert CommandResult(capsys, "graph", "build", text, back).code == 0
    assert Graph.open(back).links == 6


def test_hints_name_the_options_there_are(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strange = tmp_path / "strange"
    strange.write_bytes(bytes(99))
    assert "with --format:" in CommandResult(capsys, "graph", "convert", folder, str(tmp_path / "x")).err
    assert (
        "with --input-format:" in CommandResult(capsys, "graph", "convert", str(strange), str(tmp_path / "x.csv")).err
    )
    for words in (["rank"], ["graph", "info"]):
        assert "graph build --input-format`" in CommandResult(capsys, *words, str(strange)).err
    for hint in ("with --format", "with `graph build --input-format`"):
        with pytest.raises(InputError) as rejected, options.input_format_hint("--other"):
            raise InputError("no", hint=hint)
        assert rejected.value.hint == hint


def test_scores_agree_with_the_library(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    from surveyor.rank.pagerank import pagerank

    result = CommandResult(capsys, "rank", folder, "--json").json()
    expected = pagerank(Graph.open(folder)).scores
    assert np.array_equal([page["share"] for page in sorted(result["pages"], key=lambda page: page["id"])], expected)


def test_rank_writes_a_report(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    words = ["rank", folder, "--report", str(path), "--damping", "0.5"]
    assert CommandResult(capsys, *words).code == 0
    assert "--damping 0.5</pre>" in path.read_text("utf-8")
    monkeypatch.setattr("surveyor.report.svg.find_spec", lambda _: None)
    bare = CommandResult(capsys, *words)
    assert "pip install 'surveyor[report]'" in bare.err
    assert "<svg" not in path.read_text("utf-8")


def test_a_graph_without_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "empty.graph")
    none = np.zeros(0, np.int64)
    Graph.from_arrays(none, none, 0).save(path)
    assert CommandResult(capsys, "rank", path).code == 0
    assert CommandResult(capsys, "graph", "info", path).code == 0
    printed = CommandResult(capsys, "explain", path, "0")
    assert printed.code == 2
    assert "-1" not in printed.err
    assert CommandResult(capsys, "top", path, "--csv").out == "position,id,score,share,in_links,out_links,name\n"
    assert CommandResult(capsys, "rank", path, "--report", str(tmp_path / "report.html")).code == 2
