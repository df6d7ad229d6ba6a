"""Random walks over a stored graph: steps a second on one core, beside tools that walk.

`python -m benchmarks walks`

A made-up web; the topic is most pages of some sites and a few of all others, 2 % of the web. Each method makes eight
walks from pages on topic; a step is a row of the sample: where a walk stands, whether it moved or stayed. Walks without
a focus stand beside those of igraph (`Graph.random_walk`, in C, from call to list), of NetworKit (`randomNeighbor`, a
call from Python for each step) and of a loop in plain Python over lists of neighbours, none of which notes degrees or
fetches. Times are CPU time, the fastest of some turns; each tool is a process of its own, and graphs are built before
the clock starts. Last, the time per step of longer and longer walks.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.graphs import ROOT
from benchmarks.process import environment
from benchmarks.race import say
from benchmarks.table import markdown
from benchmarks.targets import Verdict

if TYPE_CHECKING:
    from surveyor import Graph
    from surveyor.estimate.sampling.compiled_walks import NeighbourLists

SIZES = {"full": 16_000_000, "quick": 1_000_000}  # links
WALKS, STEPS, PILOT = 8, 2_000_000, 20_000
LONGER = (1, 2, 4, 8)  # million steps
WANTED = 2e6  # steps a second
EVEN = 1.25  # time per step of the longest walks / that of the shortest
TIMEOUT = 900.0
OURS, METHODS = "surveyor", ("trial", "mixture", "hard", "nonbacktracking", "webwalker")
Row = dict[str, Any]


def walks(links: int, rounds: int, threads: int) -> Iterator[Row]:
    """Yield what was measured: our methods, longer walks, and each peer."""
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as work:
        folder = Path(work) / "web"
        _prepare(links, folder)
        for name in TOOLS:
            say(f"walks: {name}")
            done = _turn(name, folder, rounds, threads)
            yield from ({"tool": name, **row} for row in done)


def walks_table(rows: list[Row]) -> str:
    """Return the tools side by side."""
    cells = []
    for row in rows:
        if "failed" in row:
            cells.append([row["tool"], row["failed"], "–", "–", "–"])
        else:
            million = f"{row['steps'] / row['seconds'] / 1e6:.2f}"
            cells.append([row["tool"], row["what"], f"{row['steps']:,}", f"{row['seconds']:.3f}", million])
    return markdown(["tool", "walk", "steps", "CPU s", "million steps/s"], cells)


def walks_verdicts(rows: list[Row]) -> list[Verdict]:
    """Judge the speed of each method, the growth with steps, and the ratio to each peer."""
    found = [row for row in rows if "seconds" in row]
    ours = {row["what"]: row["seconds"] / row["steps"] for row in found if row["tool"] == OURS}
    judged = [
        Verdict(
            f"time of a step, {method}", f"{1 / ours[method] / 1e6:.2f} M steps/s a core", ours[method] * WANTED, 1.0
        )
        for method in METHODS
        if method in ours
    ]
    longer = [row["seconds"] / row["steps"] for row in found if row["tool"] == "surveyor, longer"]
    if longer:
        told = ", ".join(f"{1e9 * each:.0f}" for each in longer) + " ns a step"
        judged.append(
            Verdict(f"time of a step, {LONGER[-1]} M / {LONGER[0]} M steps", told, longer[-1] / longer[0], EVEN)
        )
    for row in found:
        if not row["tool"].startswith(OURS) and "webwalker" in ours:
            each = row["seconds"] / row["steps"]
            told = f"{1e9 * ours['webwalker']:.0f} ns against {1e9 * each:.0f} ns a step"
            judged.append(Verdict(f"webwalker / {row['tool']}", told, ours["webwalker"] / each, None))
    return judged


def _prepare(links: int, folder: Path) -> None:
    """Write the web, the topic and where walks begin."""
    from surveyor import synthetic_web

    say(f"walks: a web with {links:,} links")
    web = synthetic_web("web", links=links, folder=folder, names=False)
    rng, size = np.random.default_rng(7), np.bincount(web.topic) / web.graph.pages
    subject = int(np.argmin(np.abs(size - 0.03)))
    topic = rng.random(web.graph.pages) < np.where(web.topic == subject, 0.6, 0.003)
    starts = rng.choice(np.flatnonzero(topic & (web.graph.out_degrees > 3)), WALKS, replace=False)
    np.savez(folder / "topic.npz", topic=topic, starts=starts)


def _turn(name: str, folder: Path, rounds: int, threads: int) -> list[Row]:
    command = [sys.executable, "-m", "benchmarks.walks", name, str(folder), str(rounds)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(threads), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return [{"failed": f"over {TIMEOUT:.0f} s"}]
    if done.returncode:
        return [{"failed": (done.stderr.strip().splitlines() or ["ended badly"])[-1][:80]}]
    rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return rows


# --- in a process of its own ---


class Setup(NamedTuple):
    """What is walked on."""

    graph: Graph
    near: NeighbourLists
    topic: Any
    starts: Any


def _timed(what: str, task: Callable[[], int], rounds: int) -> Row:
    """Run a task some times; return its steps and the least CPU time."""
    best: Row = {}
    for _ in range(rounds):
        began = time.process_time()
        steps = task()
        seconds = time.process_time() - began
        if not best or seconds / steps < best["seconds"] / best["steps"]:
            best = {"what": what, "steps": steps, "seconds": seconds}
    return best


def _surveyor(ground: Setup, rounds: int) -> list[Row]:
    return [_timed(method, _walking(ground, method, STEPS), rounds) for method in METHODS]


def _longer(ground: Setup, rounds: int) -> list[Row]:
    first = METHODS[0]
    return [_timed(f"{first}, {size} M", _walking(ground, first, size * 10**6), rounds) for size in LONGER]


def _walking(ground: Setup, method: str, steps: int) -> Callable[[], int]:
    from surveyor.estimate.sampling.compiled_walks import CompiledWalks
    from surveyor.estimate.sampling.walk_methods import WalkPlan

    def begun() -> CompiledWalks:
        return CompiledWalks(ground.near, ground.topic, ground.starts, WalkPlan(method))

    pilot = begun()  # compiles before the clock starts, and tells how many rounds make so many steps
    pilot.advance(PILOT)
    rounds = math.ceil(steps * PILOT / len(pilot.trace()))

    def run() -> int:
        going = begun()
        going.advance(rounds)
        return len(going.trace())

    return run


def _igraph(ground: Setup, rounds: int) -> list[Row]:
    import igraph

    graph = ground.graph
    pairs = np.column_stack([np.repeat(np.arange(graph.pages), graph.out_degrees), graph.indices])
    other = igraph.Graph(n=graph.pages, edges=pairs, directed=True)

    def run() -> int:
        return sum(len(other.random_walk(start, STEPS // WALKS, mode="all")) for start in ground.starts.tolist())

    return [_timed("all pages", run, rounds)]


def _networkit(ground: Setup, rounds: int) -> list[Row]:
    import networkit

    near, pages = ground.near, ground.graph.pages
    sources = np.repeat(np.arange(pages), np.diff(near.starts))
    once = sources < near.pages
    pairs = sources[once], near.pages[once].astype(np.int64)
    other = networkit.GraphFromCoo((np.ones(pairs[0].size), pairs), n=pages, weighted=False, directed=False)
    step = networkit.graphtools.randomNeighbor
    return [_timed("all pages", lambda: _looped(ground, lambda at: step(other, at)), rounds)]


def _python(ground: Setup, rounds: int) -> list[Row]:
    import random

    ends = ground.near.starts.tolist()
    lists = [ground.near.pages[first:last].tolist() for first, last in pairwise(ends)]
    choose = random.Random(7).choice  # noqa: S311  # a walk keeps no secrets
    return [_timed("all pages", lambda: _looped(ground, lambda at: choose(lists[at])), rounds)]


def _looped(ground: Setup, step: Callable[[int], int]) -> int:
    for start in ground.starts.tolist():
        at, trace = start, []
        for _ in range(STEPS // WALKS):
            trace.append(at)
            at = step(at)
    return STEPS


TOOLS: dict[str, Callable[[Setup, int], list[Row]]] = {
    OURS: _surveyor,
    "surveyor, longer": _longer,
    "igraph": _igraph,
    "NetworKit": _networkit,
    "Python": _python,
}


def main() -> None:
    from surveyor import Graph
    from surveyor.estimate.sampling.compiled_walks import NeighbourLists

    name, folder, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    graph = Graph.open(folder, verify=False)
    with np.load(folder / "topic.npz") as kept:
        topic, starts = kept["topic"], kept["starts"]
    print(json.dumps(TOOLS[name](Setup(graph, NeighbourLists.of(graph), topic, starts), rounds)))


if __name__ == "__main__":
    main()
