"""Waiting times: help, import, and the first ranking of the command line and of the library, cold and warm."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.graphs import ROOT
from benchmarks.targets import Verdict

TIMEOUT = 120.0
SURVEYOR = [sys.executable, "-m", "surveyor"]
FIRST = "import surveyor as sv; sv.pagerank(sv.Graph.from_edges([('a', 'b'), ('b', 'c'), ('c', 'a'), ('c', 'b')]))"
IMPORT = "import sys, surveyor; sys.exit(any(name in sys.modules for name in ('numba', 'scipy', 'pyarrow')))"


def startup(repeats: int = 5) -> list[Verdict]:
    """Measure all waiting times."""
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as folder:
        cold = {**_environment(), "XDG_CACHE_HOME": folder}
        links = Path(folder) / "links.tsv"
        links.write_text("".join(f"{page}\t{(3 * page + 1) % 1000}\n" for page in range(1000)), "utf-8")
        first = [sys.executable, "-c", FIRST]
        rank = [*SURVEYOR, "rank", str(links), "--top", "3"]
        return [
            _verdict("`surveyor --help`", [*SURVEYOR, "--help"], repeats, 0.25),
            _verdict("`import surveyor`, Numba absent", [sys.executable, "-c", IMPORT], repeats, None),
            _verdict("first `surveyor rank`, cold kernels", rank, 1, 10.0, cold),
            _verdict("`surveyor rank`, warm kernels", rank, repeats, 1.0, cold),
            _verdict("`import surveyor` and first `sv.pagerank`, warm kernels", first, repeats + 1, 1.0, cold),
        ]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}


def _verdict(
    what: str, command: list[str], repeats: int, target: float | None, env: dict[str, str] | None = None
) -> Verdict:
    """Run a command some times; the quickest counts."""
    best, cpu, problem = float("inf"), float("inf"), ""
    for _ in range(repeats):
        began, before = time.perf_counter(), os.times()
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=env or _environment(),
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"over {TIMEOUT:.0f} s"
            break
        best, after = min(best, time.perf_counter() - began), os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        cpu = min(cpu, spent)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["nothing on stderr"]
            problem = f"exit code {done.returncode}: {lines[-1][:100]}"
            break
    return Verdict(
        what, problem or f"{best:.3f} s ({cpu:.2f} s of CPU time)", float("inf") if problem else best, target
    )
