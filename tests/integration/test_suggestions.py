"""Commands that are suggested keep the options that matter, and they run."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from console import CommandResult
from loopback import QUICK, SMALL, served
from surveyor.cli import run

pytestmark = pytest.mark.usefixtures("nowhere")
LINKS = "www.a.example\tb.example\nb.example\twww.a.example\nc.example\tw2.a.example\nwww.a.example\tc.example\n"
GRAPH = "my $(graph) it's.tsv"  # a name that a shell would take apart


def suggestions(result: CommandResult) -> list[list[str]]:
    """Return the commands that a run suggested."""
    return [shlex.split(line)[1:] for line in re.findall(r"^  \S.*?   (surveyor .*)$", result.err, re.MULTILINE)]


def keeps(commands: list[list[str]], *words: str) -> bool:
    """Return whether each command has these words."""
    return bool(commands) and all(word in command for command in commands for word in words)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["domains", GRAPH, "--condense"], ["--condense", GRAPH]),
        (["domains", GRAPH, "--condense", "--score", "in,tse", "--rng", "3"], ["--condense", "in,tse", "--rng"]),
        (["domains", GRAPH, "--trusted", "list.txt", "--blacklist", "bad.txt"], ["--trusted", "--blacklist"]),
        (["rank", GRAPH, "--damping", "0.5", "--trusted", "list.txt"], ["--damping", "0.5", "--trusted", GRAPH]),
        (["simulate", GRAPH, "--until", "pages=2", "--seed", "b.example", "--damping", "0.7"], ["--damping", "--rng"]),
        (["community", GRAPH, "--local", "host:www.a.example", "--damping", "0.7"], ["--local", "--damping"]),
        (["sample", GRAPH, "--topic", "everything", "--until", "steps=100", "--rng", "2"], ["--topic", "--rng"]),
        (["graph", "build", GRAPH, "my graph"], ["my graph"]),
        (["graph", "condense", GRAPH, "my domains"], ["my domains"]),
    ],
)
@pytest.mark.slow
@pytest.mark.usefixtures("tiny_communities")
def test_of_graphs(capsys: pytest.CaptureFixture[str], words: list[str], kept: list[str]) -> None:
    Path(GRAPH).write_text(LINKS)
    Path("list.txt").write_text("b.example\n")
    Path("bad.txt").write_text("c.example\n")
    result = CommandResult(capsys, *words)
    commands = suggestions(result)
    assert result.code == 0, result.err
    assert keeps(commands, *kept), commands
    for command in commands:
        assert run(command) == 0, command


@pytest.mark.slow
def test_of_surveys(capsys: pytest.CaptureFixture[str]) -> None:
    with served({**SMALL, "/robots.txt": "User-agent: *\nDisallow: /c"}) as url:
        crawl = ["crawl", url, *QUICK, "--out", "my survey;x", "--rng", "3"]
        pending = [
            ([*crawl, "--until", "pages=2"], 0),
            ([*crawl, "--until", "coverage=0.999"], 3),
            (["status", "my survey;x"], 0),
            (["rank", "my survey;x", "--damping", "0.7", "--crawled-only"], 0),
            (["report", "my survey;x", "--out", "r.html"], 0),
            (["sql", "my survey;x"], 0),
            (["try", url, *QUICK[:4]], 0),
        ]
        for words, code in pending:
            result = CommandResult(capsys, *words)
            assert result.code == code, (words, result.err)
            commands = [command for command in suggestions(result) if "--open" not in command]
            for command in commands:
                more = QUICK if command[0] == "crawl" and "--contact" not in command else []
                goal = (
                    {3} if command[0] == "crawl" and words[0] in ("crawl", "status", "try") else set()
                )  # /c is blocked
                assert run([*command, *more]) in {0, *goal}, command
            if words[0] == "rank":
                assert keeps(commands, "--damping", "--crawled-only")
            if words[0] == "try":
                assert keeps(commands, "--contact", "--allow")
            if "--again" in " ".join(map(" ".join, commands)):
                assert keeps([one for one in commands if one[0] == "crawl"], "--rng", "--contact", "my survey;x")


@pytest.mark.slow
def test_a_fresh_survey_is_resumed_by_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with served({**SMALL, "/robots.txt": "User-agent: *\nDisallow: /c"}) as url:
        for _ in range(2):
            result = CommandResult(capsys, "crawl", url, *QUICK, "--fresh", "--until", "coverage=0.999")
        (again,) = [command for command in suggestions(result) if "--again" in command]
        assert "--fresh" not in again
        assert again[again.index("--out") + 1].endswith("-2.survey")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="there are no names of open files here")
def test_a_pipe_is_not_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    Path(GRAPH).write_text(LINKS)
    for words in (["rank", GRAPH, "--trusted"], ["domains", GRAPH, "--trusted"]):
        reading, writing = os.pipe()
        os.write(writing, b"b.example\n")
        os.close(writing)
        result = CommandResult(capsys, *words, f"/dev/fd/{reading}")
        os.close(reading)
        assert result.code == 0, result.err
        assert "/dev/fd/" not in "".join(word for command in suggestions(result) for word in command)
        assert keeps([command for command in suggestions(result) if "--trusted" in command], "FILE")
