"""Run the command line on a pseudo-terminal, send input, and read its output."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from types import TracebackType

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PATIENCE = 90.0  # seconds, for busy machines and kernel compilation


class Terminal:
    """One command on a terminal with `columns` columns."""

    def __init__(self, *args: str, columns: int = 80, env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = os.openpty()
        env = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "40", **(env or {})}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "surveyor", *args], stdin=theirs, stdout=theirs, stderr=theirs, env=env
        )
        os.close(theirs)
        self.text = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read until the text has appeared `times` times."""
        end = time.monotonic() + PATIENCE
        while self.text.count(text) < times:
            assert time.monotonic() < end, f"{text!r} did not appear: {self.text}"
            assert self._read(), f"{text!r} did not appear: {self.text}"

    def finish(self) -> int:
        """Read to the end; return the exit code."""
        while self._read():
            pass
        return self._process.wait(PATIENCE)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], PATIENCE)[0]:
            return False
        try:
            new = os.read(self._ours, 1 << 16)
        except OSError:  # Linux: the other end is closed
            new = b""
        self.text += CONTROLS.sub("", new.decode("utf-8", "replace")).replace("\r\n", "\n")
        return bool(new)
