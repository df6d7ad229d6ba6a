"""A process that holds one tool and one graph, and does what lines on its input say.

`python -m benchmarks.worker TOOL FOLDER PAGES arrays|text`

It answers each line of JSON with one. Whatever the tool prints goes to stderr.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import memory
from benchmarks.peers import TOOLS, Ids, Tool


class Worker:
    def __init__(self, tool: str, folder: Path, pages: int, form: str) -> None:
        warm_up(TOOLS[tool]())
        self.tool, self.pages, self.folder = TOOLS[tool](), pages, folder
        self.ranks = np.load(folder / "ranks.npy")
        self.links: tuple[Ids, Ids] | None = None
        if form == "arrays":
            self.links = np.load(folder / "sources.npy"), np.load(folder / "targets.npy")
        gc.collect()
        memory.forget_peak()
        self.start = memory.status("VmRSS")

    def arrays(self) -> dict[str, Any]:
        assert self.links is not None
        return self._build(self.tool.arrays, self.pages, *self.links)

    def text(self, path: str) -> dict[str, Any]:
        return self._build(self.tool.text, self.pages, path)

    def rank(self, accuracy: float) -> dict[str, Any]:
        began = time.perf_counter()
        answer = self.tool.rank(accuracy)
        seconds = time.perf_counter() - began
        peak = memory.peak()
        error = float(np.abs(self.tool.scores(answer) - self.ranks).sum())
        return {"seconds": seconds, "error": error, "peak": peak, **self.tool.facts(answer)}

    def _build(self, build: Any, *args: Any) -> dict[str, Any]:
        self.tool.graph = None
        gc.collect()
        began = time.perf_counter()
        build(*args)
        return {"seconds": time.perf_counter() - began, "peak": memory.peak()}


def warm_up(tool: Tool) -> None:
    """Import and compile all that will be timed, on a tiny graph."""
    sources = np.repeat(np.arange(1000, dtype=np.int32), 2)
    targets = np.asarray((sources + np.tile([1, 7], 1000)) % 1000, np.int32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "links.tsv"
        path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(sources, targets, strict=True)), "utf-8")
        tool.text(1000, str(path))
        tool.rank(1e-6)
    tool.arrays(1000, sources, targets)
    tool.rank(1e-6)


def _failed(problem: Exception) -> dict[str, Any]:
    return {"failed": f"{type(problem).__name__}: {problem}".splitlines()[0][:120]}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    name, folder, pages, form = sys.argv[1:]
    try:
        worker = Worker(name, Path(folder), int(pages), form)
    except Exception as problem:  # a tool that is absent, or does not work here
        answers.write(json.dumps(_failed(problem)) + "\n")
        return
    answers.write(json.dumps({"start": worker.start}) + "\n")
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = getattr(worker, order.pop("do"))(**order)
        except Exception as problem:
            answer = _failed(problem)
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
