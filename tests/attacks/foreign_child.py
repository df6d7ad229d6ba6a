"""Run every command on a survey in this process, and record what a survey from elsewhere must not bring about.

Hooks of the interpreter see each import, each file opened for writing, each file removed or renamed, and each
connection before it is made; a connection is refused there, so that no packet is sent.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

SECONDS = 60  # that a command may take: one that waits for a pipe would take forever
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink", "os.chmod",
           "shutil.rmtree", "shutil.move"}  # fmt: skip
DOCUMENTED = {0, 2, 3, 4, 5}


class Recorder:
    """Sees what the interpreter does."""

    def __init__(self, folder: Path, allowed: tuple[str, int]) -> None:
        self.seen: list[str] = []
        self.on = False
        self._allowed = allowed
        homes = [folder / "here", folder / "config", Path(os.environ.get("NUMBA_CACHE_DIR", "/nonexistent"))]
        caches = [Path.home() / ".cache", Path(sys.prefix), Path(tempfile.gettempdir(), "numba"), Path("/dev")]
        self._inside = tuple(os.path.realpath(place) for place in [*homes, *caches])

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "import" and str(args[0]).startswith("evil"):
            self.seen.append(f"import of {args[0]}")
        elif event == "open" and (_writes(args[1]) or (args[1] is None and int(args[2] or 0) & WRITES)):
            self._check(event, args[0])
        elif event in CHANGES:
            for path in args[:2] if event in ("os.rename", "os.link", "shutil.move") else args[:1]:
                self._check(event, path)
        elif event in ("os.system", "os.exec"):
            self.seen.append(event)
        elif event in ("socket.connect", "socket.sendto"):
            address = args[-1]
            if address[:2] != self._allowed:
                self.seen.append(f"{event} {address}")
            raise ConnectionRefusedError(f"no connection is made in this test ({address})")
        elif event == "socket.getaddrinfo" and str(args[0]) not in ("127.0.0.1", "localhost", "honest.example"):
            raise ConnectionRefusedError("no name is looked up in this test")

    def _check(self, event: str, path: Any) -> None:
        if isinstance(path, int):
            return
        real = os.path.realpath(os.fsdecode(path))
        if not real.startswith(self._inside):
            self.seen.append(f"{event} {real}")


def _writes(mode: Any) -> bool:
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def snapshot(folder: Path) -> dict[str, bytes | str]:
    """Return all that lies in a folder."""
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def too_long(*_: object) -> None:
    raise TimeoutError("it takes too long")


def main() -> None:
    plan = json.load(sys.stdin)
    folder, rows = Path(plan["folder"]), []
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # it would connect without asking the interpreter
    from surveyor.cli import run

    host, _, port = plan["seed"].partition("://")[2].partition("/")[0].partition(":")
    recorder = Recorder(folder, (host, int(port)))
    sys.addaudithook(recorder)
    signal.signal(signal.SIGALRM, too_long)
    names = {"survey": "a.survey", "honest": "honest.survey", "out": "out", "seed": plan["seed"]}
    for command, call in plan["calls"].items():
        if call is None:
            continue
        before, out, err = snapshot(folder / "outside"), io.StringIO(), io.StringIO()
        recorder.seen, recorder.on = [], True
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run([*command.split(), *(word.format(**names) for word in call)])
        finally:
            signal.alarm(0)
            recorder.on = False
        bad = list(dict.fromkeys(recorder.seen))
        bad += ["a file outside changed"] if snapshot(folder / "outside") != before else []
        bad += ["the module was run"] if (folder / "imported").exists() or "evil_strategy" in sys.modules else []
        result = err.getvalue().strip().splitlines()
        bad += [f"exit {code}: {result[-2:]}"] if code not in DOCUMENTED else []
        bad += ["a traceback"] if "Traceback" in err.getvalue() else []
        bad += [f"control characters in {out.getvalue()[:80]!r}"] if "\x1b]" in out.getvalue() + err.getvalue() else []
        rows.append(
            {"command": command, "code": code, "message": result[-2] if len(result) > 1 else "", "violations": bad}
        )
    sys.stdout.write("\n" + json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
