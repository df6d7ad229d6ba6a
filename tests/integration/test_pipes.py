"""Lists that come from a pipe, as `--trusted <(command)` gives them: read once, or refused in one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from console import CommandResult
from loopback import QUICK, SMALL, served

pytestmark = [
    pytest.mark.usefixtures("nowhere"),
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here"),
]
LINKS = (
    "a.example\tb.example\nb.example\ta.example\nc.example\ta.example\na.example\tc.example\nbad.example\ta.example\n"
)


@contextmanager
def pipe(text: str) -> Iterator[str]:
    """Yield the name of a pipe with some content; it is not an error if no process opens it."""
    path = Path(f"pipe-{len(list(Path().iterdir()))}")
    os.mkfifo(path)

    def write() -> None:
        with suppress(BrokenPipeError):
            path.write_text(text)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield str(path)
    finally:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        writer.join(5)


@pytest.mark.usefixtures("tiny_communities")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["domains", "links.tsv", "--trusted"], "a.example\n"),
        (["domains", "links.tsv", "--blacklist"], "bad.example\n"),
        (["domains", "links.tsv", "--condense", "--suffixes"], "example\n"),
        (["domains"], LINKS),
        (["rank", "links.tsv", "--trusted"], "a.example\n"),
        (["rank"], LINKS),
        (["explain", "links.tsv", "a.example", "--trusted"], "a.example\n"),
        (["community", "links.tsv", "--local", "host:a.example", "--back-links"], "x.example\ta.example\n"),
        (["sample", "links.tsv", "--topic", "everything", "--until", "steps=50", "--in-links"], LINKS),
    ],
)
def test_a_pipe_is_as_good_as_a_file(capsys: pytest.CaptureFixture[str], words: list[str], text: str) -> None:
    Path("links.tsv").write_text(LINKS)
    Path("list.txt").write_text(text)
    file = CommandResult(capsys, *words, "list.txt", "--csv")
    assert file.code == 0, file.err
    with pipe(text) as name:
        piped = CommandResult(capsys, *words, name, "--csv")
    assert (piped.code, piped.out) == (0, file.out), piped.err


def test_seeds_from_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with served(SMALL) as url, pipe(f"{url}\n") as name:
        result = CommandResult(capsys, "crawl", "--seeds", name, *QUICK, "--until", "pages=2", "--json")
        assert (result.code, result.json()["seeds"]) == (0, [url])


@pytest.mark.parametrize(
    "words", [["community", "links.tsv", "--local"], ["crawl", "a.example", *QUICK, "--budget-file"]]
)
def test_what_is_read_again_may_not_be_a_pipe(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    Path("links.tsv").write_text(LINKS)
    with pipe("a.example,5\n") as name:
        result = CommandResult(capsys, *words, name)
    assert result.code == 2
    assert f"{name} is a pipe, and" in result.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_process_substitution() -> None:
    Path("links.tsv").write_text(LINKS)
    line = f"{sys.executable} -m surveyor domains links.tsv --trusted <(echo a.example) --csv"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)  # noqa: S607
    assert done.returncode == 0, done.stderr
    assert "trust" in done.stdout.splitlines()[0]
