"""The command line when things go wrong, and where it runs: errors, signals, pipes, caches, terminals."""

from __future__ import annotations

import ast
import errno
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from console import CommandResult, process
from surveyor.cli import kernel_cache, options
from surveyor.cli.output import Output
from surveyor.cli.progress import ProgressMeter, describe
from surveyor.graph.csr import Graph
from surveyor.kernels import _cache
from surveyor.kernels._cache import CacheFolder

# Errors


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rnak"], "There is no command rnak. Did you mean rank?"),
        (["graph", "bild"], "There is no command bild. Did you mean build?"),
        (["nonsense"], "Commands: crawl, scout, watch, status, steer, graph, rank"),
        (["rank", "x", "--tolerence", "1"], "Did you mean --tolerance?"),
        (["rank", "x", "--hlep"], "Did you mean --help?"),
        (["top", "x", "--count", "5"], "No option --count. Did you mean --top?"),
        (["crawl", "a.example", "--pause=9"], "No option --pause. Did you mean --backoff?"),
        (["simulate", "x", "--dead", "1%"], "No option --dead. Did you mean --gone?"),
        (["sample", "x", "--plots", "x"], "No option --plots. Did you mean --plot?"),
        (["sample", "x", "--pages", "x"], "No option --pages. Did you mean --save?"),
        (["graph", "condense", "x", "y", "--to", "hosts"], "No option --to. Did you mean --level?"),
        (["graph", "convert", "x", "y", "--force"], "No option --force. Did you mean --replace?"),
        (["rank"], "Missing argument"),
        (["search", "x"], "Missing argument"),
        (["search", "no/such/file", "words"], "no/such/file"),
        (["rank", "x", "--json", "--csv"], "exclude each other"),
        (["graph", "build", "a", "b", "--memory", "much"], "must be an amount"),
        (["rank", "no/such/file"], "no/such/file"),
        (
            ["rank", "x", "--tolerance", "5"],
            "'--tolerance': must be above 0 and below 2, the largest possible error; got 5.",
        ),
        (["rank", "x", "--tolerance", "nan"], "must be above 0 and below 2, the largest possible error; got nan."),
        (["demo", "--rng", "-1"], "must be at least 0, got -1"),
        (["mcp"], "no survey is named"),
        (["mcp", "no/such/file"], "no/such/file does not exist"),
        (["mcp", "x", "--json"], "surveyor mcp has no --json"),
        (["mcp", "x", "--max-pages", "5"], "--max-pages needs --allow-crawl"),
        (["mcp", "--allow-crawl", "--max-pages", "0"], "must be at least 1, got 0"),
        (["mcp", "--allow-crawl", "--max-minutes", "0"], "0.0 is not in the range"),
        (["mcp", "--allow-crawl", "--scope", "web"], "'web' is not one of"),
        (["graph", "build", "synthetic:small", "x", "--rng", "-1"], "must be at least 0, got -1"),
    ],
)
def test_wrong_usage(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, *words)
    assert printed.code in ({2, 4} if "no/such/file" in words else {2})
    assert expected in printed.err
    assert "  hint: " in printed.err
    assert not printed.out


def test_a_port_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        printed = CommandResult(capsys, "demo", "--serve", "--port", port, "--out", str(tmp_path / "demo"))
    assert (printed.code, "leave --port out" in printed.err) == (2, True)
    assert f"--port {port} of 127.0.0.1 cannot be used" in printed.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(("option", "value"), [("--damping", "1.5"), ("--tolerance", "-1"), ("--tolerance", "nan")])
def test_impossible_settings(option: str, value: str, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "rank", folder, option, value)
    assert printed.code == 2
    assert "  hint: " in printed.err


def test_damaged_and_newer_graphs(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(folder) / "graph.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps({**about, "version": 99}))
    newer = CommandResult(capsys, "rank", folder)
    assert newer.code == 4
    assert "hint: pip install --upgrade surveyor" in newer.err
    path.write_text("{")
    assert CommandResult(capsys, "graph", "info", folder).code == 4
    path.write_text(json.dumps(about))
    (Path(folder) / "indices.npy").write_bytes(b"")
    assert CommandResult(capsys, "rank", folder).code == 4


def test_a_bug_is_admitted(folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("surveyor.graph.formats.read_graph", broken)
    printed = CommandResult(capsys, "rank", folder)
    assert printed.code == 1
    assert "bug in surveyor (ZeroDivisionError: oh)" in printed.err
    assert "Traceback" not in printed.err
    assert "Traceback" in CommandResult(capsys, "rank", folder, "--debug").err


def test_an_interrupt_is_one_line(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("surveyor.graph.formats.read_graph", interrupted)
    printed = CommandResult(capsys, "rank", folder)
    assert printed.code == 130
    assert printed.err.strip() == "Interrupted."


def test_sigterm_ends_with_143() -> None:
    script = (
        "import sys, time, surveyor.graph.formats as f\n"
        "f.read_graph = lambda *a, **k: (print('ready', flush=True), time.sleep(30))\n"
        "from surveyor.cli import main; main()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, "rank", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGTERM)
        _, printed = child.communicate(timeout=20)
    assert child.returncode == 143
    assert printed.decode().strip() == "Terminated."


def test_a_reader_that_leaves_is_no_error(folder: str) -> None:
    script = "import sys; from surveyor.cli import main; main()"
    read, write = os.pipe()
    os.close(read)
    child = subprocess.run(
        [sys.executable, "-c", script, "rank", folder, "-q"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert child.stderr == b""
    assert child.returncode == 0


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_a_closed_stdout_is_no_error(closed: str, folder: str, tmp_path: Path) -> None:
    line = f'"$0" -m surveyor rank "$1" --out "$2" {closed}'
    out = tmp_path / "ranks.csv"
    done = subprocess.run(["/bin/sh", "-c", line, sys.executable, folder, str(out)], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"bug" not in done.stderr
    assert out.read_text().startswith("id,share,name\n")


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "Interrupted."), (signal.SIGTERM, "Terminated.")])
def test_a_signal_during_the_first_imports_is_one_line(number: int, word: str) -> None:
    script = (
        "import os, sys, builtins; from surveyor.cli import main; real = builtins.__import__\n"
        "def slow(name, *a, **k):\n"
        f"    if name == 'click': builtins.__import__ = real; os.kill(os.getpid(), {int(number)})\n"
        "    return real(name, *a, **k)\n"
        "builtins.__import__ = slow; main()"
    )
    done = process("-c", script, "top", "x")
    assert done.stderr == f"{word}\n"
    assert done.returncode == 128 + number


DROPPED = """
import os, signal, sys, time
from surveyor.cli import interrupts
async def work():
    os.kill(os.getpid(), signal.SIGINT)
    try:
        time.sleep(10)
    except KeyboardInterrupt:  # as in a callback from C, where exceptions are printed and dropped
        raise RuntimeError("no compiled object yet") from None
caught = []
sys.exit(interrupts.run(work, caught)[1])
"""


def test_an_interruption_that_a_library_drops_is_still_one() -> None:
    assert process("-c", DROPPED).returncode == 130


def test_csv_in_a_pipe_is_what_out_writes(tmp_path: Path) -> None:
    path, out = tmp_path / "web.graph", tmp_path / "ranks.csv"
    Graph.from_edges([("a\udcff", "b\x1b[31m\u00e9")]).save(path)
    words = [sys.executable, "-m", "surveyor", "rank", str(path), "--csv", "-q", "--out", str(out)]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, capture_output=True, check=True, env=env)
    names = [line.rpartition(b",")[2] for line in done.stdout.splitlines()]
    assert names == [line.rpartition(b",")[2] for line in out.read_bytes().splitlines()]
    assert sorted(names) == [b"a\xff", b"b\\x1b[31m\xc3\xa9", b"name"]  # control characters are escaped


# Surroundings


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "doctor", "--json").json()
    assert result["healthy"]
    printed = CommandResult(capsys, "doctor")
    assert printed.code == 0
    assert "1/3 each" in printed.out


def test_doctor_says_when_something_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from surveyor.cli import doctor
    from surveyor.store.recovery import Check

    bad = Check("self-check", "off", fine=False, advice="install surveyor again")
    monkeypatch.setattr(doctor, "_self_check", lambda: bad)
    printed = CommandResult(capsys, "doctor")
    assert printed.code == 1
    assert "! self-check: install surveyor again" in printed.err


CACHE = (
    "from surveyor.cli import run; from surveyor.kernels._cache import cache_folder; "
    "run(['doctor', '-q']); print(cache_folder().path)"
)


def test_kernels_are_cached_in_the_home_of_the_user(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": ""}
    done = process("-c", CACHE, env=env)
    assert done.stdout.splitlines()[-1].startswith(str(tmp_path / "surveyor" / "kernels-"))
    chosen = process("-c", CACHE, env={**env, "NUMBA_CACHE_DIR": str(tmp_path / "mine")})
    assert chosen.stdout.splitlines()[-1].startswith(str(tmp_path / "mine" / "kernels-"))


def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    env = {
        "XDG_CACHE_HOME": str(tmp_path / "file"),
        "TMPDIR": str(tmp_path / "tmp"),
        "NUMBA_DISABLE_JIT": "1",
        "NUMBA_CACHE_DIR": "",
    }
    done = process("-c", CACHE.replace("'-q'", ""), env=env)
    assert done.stdout.splitlines()[-1].startswith(str(tmp_path / "tmp"))
    assert "cannot be written or is full; compiled kernels go to" in done.stderr


def test_a_cache_without_room_is_not_chosen(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")  # a limit on the size of files stands for a full disk
    script = (
        "import resource, sys; from pathlib import Path; from surveyor.kernels._cache import writable\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); folder = Path(sys.argv[1])\n"
        "print(writable(folder), writable(folder, 0))"
    )
    assert resource
    assert process("-c", script, str(tmp_path)).stdout == "False True\n"


def test_a_cache_that_fills_up_is_a_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from numba.core import caching

    cache: Any = caching.Cache

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_cache, "cache_folder", lambda: CacheFolder(tmp_path, tmp_path))
    monkeypatch.setattr(cache, "save_overload", full)
    with kernel_cache.kernels(Output()):
        for _ in range(2):
            cache.save_overload(None, None, None)
    printed = capsys.readouterr().err
    assert printed.count(f"! compiled kernels cannot be saved in {tmp_path} (No space left on device)") == 1
    assert "NUMBA_CACHE_DIR or XDG_CACHE_HOME" in printed
    assert cache.save_overload is full


@pytest.mark.parametrize(("kept", "seconds", "result"), [(False, 0.0, True), (True, 0.1, False), (True, 0.4, True)])
def test_compiling_is_announced_if_it_takes_long(
    kept: bool,
    seconds: float,
    result: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from numba.core import event

    if kept:
        (tmp_path / "kernel.nbi").touch()
    clock = [0.0]
    monkeypatch.setattr(_cache, "cache_folder", lambda: CacheFolder(tmp_path, tmp_path))
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    output = Output()
    with kernel_cache.kernels(output), event.trigger_event("numba:compile"):
        clock[0] += seconds
    assert ("compiling kernels" in capsys.readouterr().err) == result
    assert output.compiling == seconds


# Small parts


@pytest.mark.parametrize(
    ("text", "value"),
    [("20000", 20_000), ("15m", 15_000_000), ("1GB", 10**9), ("2.5k", 2_500), ("1e6", 10**6)],
)
def test_amounts(text: str, value: int) -> None:
    assert options.Amount().convert(text, None, None) == value


def test_progress_in_words() -> None:
    assert describe("reading", 50e6, 50e6, 200e6, "bytes", 2) == "reading  50 MB of 200 MB  25 %  25 MB/s  6.0 s left"
    assert describe("merging", 0, 0, 0, "links", 0) == "merging  0 links"


class Screen(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(("terminal", "silent"), [(True, False), (False, False), (True, True)])
def test_progress_is_a_bar_on_a_terminal_and_rare_lines_elsewhere(
    terminal: bool, silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    screen = Screen(terminal=terminal)
    meter = ProgressMeter(screen, silent=silent, color=False)
    for step in range(31):
        clock[0] = float(step)
        meter("reading", step * 1e6, 30e6, "bytes")
    meter.clear()
    if silent:
        assert not screen.getvalue()
    elif terminal:
        assert "of 30 MB" in screen.getvalue()
    else:
        assert screen.getvalue().count("\n") == 3


def test_names_that_are_not_utf8_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "web.graph"
    Graph.from_edges([("a\udcff", "b\x1b[31m"), ("b\x1b[31m", "a\udcff")]).save(path)
    assert "a\\xff" in CommandResult(capsys, "top", str(path)).out
    assert "\x1b" not in CommandResult(capsys, "top", str(path)).out
    assert json.loads(CommandResult(capsys, "top", str(path), "--json").out)["pages"][0]["name"] in {
        "a\udcff",
        "b\x1b[31m",
    }


def test_every_error_raised_here_says_what_to_do_next() -> None:
    source = Path(options.__file__).parent
    for path in (*source.glob("*.py"), *(source.parent / "report").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            raised = node.exc if isinstance(node, ast.Raise) else None
            if isinstance(raised, ast.Call) and ast.unparse(raised.func) in {"UsageError", "InputError"}:
                assert "hint" in {word.arg for word in raised.keywords}, f"{path.name}:{raised.lineno}"
