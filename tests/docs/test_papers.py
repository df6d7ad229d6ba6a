"""The commands in the tables that map papers to commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import surveyor as sv
from console import CommandResult
from example_site import HOME, survey_of

PAGE = Path(__file__).parents[2] / "docs/reference/papers.md"
SECTIONS = ("Global rank of a community", "OPIC", "RankMass", "Focused sampling", "Domain reputation")
LIVE = ("example.org", "watch ", "--contact")  # they need a network


def commands(section: str) -> list[str]:
    text = PAGE.read_text("utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    return list(dict.fromkeys(re.findall(r"`(surveyor [^`]+)`", text)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    graph = sv.synthetic_web("small").graph
    assert graph.names is not None
    graph.save(tmp_path / "web.graph")
    best = sv.pagerank(graph).top(3).tolist()
    (tmp_path / "trusted.txt").write_text("".join(f"{graph.names[page]}\t{1 + page % 3}\n" for page in best), "utf-8")
    sv.condense(graph).graph.save(tmp_path / "domains.graph")
    for name, pages in (("pages.txt", range(0, graph.pages, 2)), ("other.txt", range(0, graph.pages, 3))):
        (tmp_path / name).write_text("".join(f"{graph.names[page]}\n" for page in pages), "utf-8")
    (tmp_path / "tlds.csv").write_text("example,0.7\ntest,0.3\n", "utf-8")
    (tmp_path / "bad.txt").write_text("site15.example\n", "utf-8")
    survey_of(tmp_path / "site.survey", strategy="opic")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_commands_of_the_tables_run(folder: Path, section: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = [line for line in commands(section) if not any(word in line for word in LIVE)]
    assert len(run) >= 10
    assert (folder / "web.graph").is_dir()
    for line in run:
        words = shlex.split(line)[1:]
        limits = ["--until", "pages=100"] if words[0] == "simulate" and "--until" not in words else []
        if "requests=3000" in words:  # the same with fewer requests
            words[words.index("requests=3000")] = "requests=300"
        result = CommandResult(capsys, *words, *limits, *(["--rng", "7"] if words[0] == "simulate" else []))
        assert result.code in (0, 3), f"{line}: {result.err}"
        assert result.out or "graph condense" in line


def test_the_levels_of_a_goal_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "web.graph", "--strategies", "breadth:coverage=0.9", "--until", "pages=50", "--rng", "7"]
    assert folder.is_dir()
    assert "breadth: 15 levels hold at least 90 % (damping 0.85)" in CommandResult(capsys, *words).out


def test_every_section_has_a_table() -> None:
    text = PAGE.read_text("utf-8")
    for section in SECTIONS:
        assert f"## {section}\n" in text
    assert HOME in text
