"""Cost per link from a million links to a hundred million, and the memory of streams.

Webs are in the order of their hosts, as crawls are; R-MAT graphs, which have no order worth the name, stand
beside them. Each graph is made in a folder, ranked from there by memory map, written as gzip text and built
again from that.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.graphs import ROOT
from benchmarks.process import environment
from benchmarks.race import say
from benchmarks.table import markdown
from benchmarks.targets import Verdict

SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
KINDS = ("web", "rmat")
BYTES_PER_LINK = 40  # two graph folders, gzip text, and runs spilled while building
TIMEOUT = 900.0
FLAT = 1.5  # how much the largest cost per link may exceed the smallest
LARGE = 90_000_000  # links from which the memory targets apply
BUILD_PEAK, STREAM_PRIVATE = 2 << 30, 1 << 30
Row = dict[str, Any]


class StepFailed(Exception):
    """A process of this benchmark ended badly or took too long."""


def scaling(most: int, threads: int, rounds: int) -> list[Row]:
    """Measure every size up to `most` links that the disk has room for."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as work:
        for links in (size for size in SIZES if size <= most):
            free = shutil.disk_usage(work).free
            if free < BYTES_PER_LINK * links:
                say(f"{links:,} links skipped: {BYTES_PER_LINK * links >> 20:,} MB of disk needed, {free >> 20:,} free")
                continue
            for kind in KINDS:
                try:
                    rows.append(_measure(kind, links, Path(work), threads, rounds))
                except StepFailed as problem:
                    say(f"  {kind}, {links:,} links: {problem}")
    return rows


def step(name: str, threads: int, **arguments: Any) -> Row:
    """Run one step in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.steps", name, json.dumps(arguments)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(threads), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{name} took over {TIMEOUT:.0f} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise StepFailed(f"{name} failed with code {done.returncode}: {lines[-1]}")
    report: Row = json.loads(done.stdout)
    return report


def _measure(kind: str, links: int, work: Path, threads: int, rounds: int) -> Row:
    say(f"  {kind}, {links:,} links")
    folder = work / f"{kind}-{links}"
    folder.mkdir()
    first, second, packed = (str(folder / name) for name in ("made", "built", "links.txt.gz"))
    try:
        made = step("make", threads, kind=kind, links=links, folder=first)
        ranked = step("stream", threads, folder=first, rounds=rounds)
        written = step("text", threads, folder=first, path=packed)
        shutil.rmtree(first)
        built = step("build", threads, path=packed, folder=second)
    finally:
        shutil.rmtree(folder)
    count = made["links"]
    return {
        "kind": kind,
        "links": count,
        "pages": made["pages"],
        "make seconds": made["seconds"],
        "gz bytes": written["bytes"],
        "build ns": 1e9 * built["seconds"] / count,
        "build peak": built["peak"],
        "build private": built["private"],
        "rank ns": 1e9 * ranked["seconds"] / count,
        "sweep ns": 1e9 * ranked["seconds"] / count / ranked["sweeps"],
        "sweeps": ranked["sweeps"],
        "solver": ranked["solver"],
        "stream peak": ranked["peak"],
        "stream private": ranked["private"],
    }


def scaling_table(rows: list[Row]) -> str:
    header = [
        "graph",
        "links",
        "pages",
        "build ns/link",
        "rank ns/link",
        "sweeps",
        "ns/link·sweep",
        "build peak MB",
        "private",
        "stream peak MB",
        "private",
    ]
    sizes = ("build peak", "build private", "stream peak", "stream private")
    return markdown(
        header,
        (
            [
                row["kind"],
                f"{row['links']:,}",
                f"{row['pages']:,}",
                f"{row['build ns']:.0f}",
                f"{row['rank ns']:.1f}",
                f"{row['sweeps']} {row['solver']}",
                f"{row['sweep ns']:.2f}",
                *(f"{row[size] >> 20:,}" for size in sizes),
            ]
            for row in rows
        ),
    )


def scaling_verdicts(rows: list[Row]) -> list[Verdict]:
    """Compare the sizes with each other, and the largest with its memory targets."""
    found = []
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        if len(mine) > 1:
            for what in ("rank ns", "sweep ns", "build ns"):
                costs = [row[what] for row in mine]
                text = " → ".join(f"{cost:.3g}" for cost in costs)
                target = FLAT if kind == "web" else None
                name = f"{kind}: {what} per link, largest / smallest"
                found.append(Verdict(name, text, max(costs) / min(costs), target))
    for row in (row for row in rows if row["kind"] == "web" and row["links"] >= LARGE):
        for what, key, limit in (
            ("build from gzip text, peak", "build peak", BUILD_PEAK),
            ("streaming PageRank, private memory", "stream private", STREAM_PRIVATE),
        ):
            text = f"{row[key] >> 20:,} MB of {limit >> 20:,} MB"
            found.append(Verdict(f"{row['links']:,} links: {what}", text, row[key] / limit, 1.0))
    return found
