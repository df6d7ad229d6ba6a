"""The other end of a worker: orders out, answers in, and an end to both when it takes too long."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

from benchmarks.graphs import ROOT, Input

START = 120.0  # seconds that a tool may take to import, compile and load arrays


class Lost(Exception):
    """A worker could not start, did not answer in time, or ended."""


def environment(threads: int) -> dict[str, str]:
    """Return the environment that gives every tool the same number of threads."""
    names = ("BENCH", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM", "RAYON_NUM")
    return {**os.environ, **{f"{name}_THREADS": str(threads) for name in names}}


class Process:
    """A running worker; use it in a `with` statement, or close it."""

    def __init__(self, tool: str, graph: Input, form: str, threads: int) -> None:
        command = [sys.executable, "-m", "benchmarks.worker", tool, str(graph.folder), str(graph.pages), form]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._rest = b""
        answer = self._answer(START)
        if "failed" in answer:
            self.close()
            raise Lost(answer["failed"])
        self.start = int(answer["start"])  # bytes resident before anything was built

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, do: str, timeout: float, **order: Any) -> dict[str, Any]:
        """Send a command and wait for the answer; its field `failed` describes an error."""
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps({"do": do, **order}).encode() + b"\n")
            pipe.flush()
        except BrokenPipeError as error:
            raise Lost("ended by itself") from error
        return self._answer(timeout)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _answer(self, timeout: float) -> dict[str, Any]:
        pipe = self._process.stdout
        assert pipe is not None
        until = time.monotonic() + timeout
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                self.close()
                raise Lost(f"over {timeout:.0f} s")
            block = os.read(pipe.fileno(), 1 << 16)
            if not block:
                self.close()
                raise Lost("ended by itself")
            self._rest += block
        line, self._rest = self._rest.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer
