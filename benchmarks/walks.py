"""Random walks over a stored graph: steps per second on one core, compared with other tools.

`python -m benchmarks walks`

The web is synthetic; the topic has most pages of some sites and a few of all others, 2 % of the web. Each method runs
eight walks from pages on topic; a step is a row of the trace, whether the walk moved or stayed. Unfocused walks are
compared with igraph (`Graph.random_walk`, in C, from call to list), NetworKit (`randomNeighbor`, a call from Python for
each step) and a loop in plain Python over neighbour lists, none of which records degrees or fetches. Times are CPU
times, the fastest of several rounds; each tool runs in its own process, and graphs are built before the clock starts.
Last, the time per step for increasing numbers of steps.
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
TARGET = 2e6  # steps per second
MAX_GROWTH = 1.25  # time per step of the longest walks / that of the shortest
TIMEOUT = 900.0
OURS, METHODS = "surveyor", ("trial", "mixture", "hard", "nonbacktracking", "webwalker")
Row = dict[str, Any]


def walks(links: int, rounds: int, threads: int) -> Iterator[Row]:
    """Yield the measurements of our methods, of longer walks, and of each peer."""
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as work:
        folder = Path(work) / "web"
        prepare(links, folder)
        for name in TOOLS:
            say(f"walks: {name}")
            done = _turn(name, folder, rounds, threads)
            yield from ({"tool": name, **row} for row in done)


def walks_table(rows: list[Row]) -> str:
    """Return the measurements as a table."""
    cells = []
    for row in rows:
        if "failed" in row:
            cells.append([row["tool"], row["failed"], "–", "–", "–"])
        else:
            million = f"{row['steps'] / row['seconds'] / 1e6:.2f}"
            cells.append([row["tool"], row["what"], f"{row['steps']:,}", f"{row['seconds']:.3f}", million])
    return markdown(["tool", "walk", "steps", "CPU s", "million steps/s"], cells)


def walks_verdicts(rows: list[Row]) -> list[Verdict]:
    """Return verdicts on the speed of each method, its growth with steps, and the ratio to each peer."""
    measured = [row for row in rows if "seconds" in row]
    ours = {row["what"]: row["seconds"] / row["steps"] for row in measured if row["tool"] == OURS}
    verdicts = [
        Verdict(
            f"time of a step, {method}", f"{1 / ours[method] / 1e6:.2f} M steps/s per core", ours[method] * TARGET, 1.0
        )
        for method in METHODS
        if method in ours
    ]
    longer = [row["seconds"] / row["steps"] for row in measured if row["tool"] == "surveyor, longer"]
    if longer:
        text = ", ".join(f"{1e9 * each:.0f}" for each in longer) + " ns per step"
        verdicts.append(
            Verdict(f"time of a step, {LONGER[-1]} M / {LONGER[0]} M steps", text, longer[-1] / longer[0], MAX_GROWTH)
        )
    for row in measured:
        if not row["tool"].startswith(OURS) and "webwalker" in ours:
            each = row["seconds"] / row["steps"]
            text = f"{1e9 * ours['webwalker']:.0f} ns and {1e9 * each:.0f} ns per step"
            verdicts.append(Verdict(f"webwalker / {row['tool']}", text, ours["webwalker"] / each, None))
    return verdicts


def prepare(links: int, folder: Path) -> None:
    """Write the web, the topic and the start pages."""
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
        return [{"failed": (done.stderr.strip().splitlines() or ["failed"])[-1][:80]}]
    rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return rows


# In a separate process


class Setup(NamedTuple):
    """The graph, the topic and the start pages."""

    graph: Graph
    neighbours: NeighbourLists
    topic: Any
    starts: Any


def _timed(what: str, task: Callable[[], int], rounds: int) -> Row:
    """Run a task several times; return its steps and the smallest CPU time."""
    best: Row = {}
    for _ in range(rounds):
        started = time.process_time()
        steps = task()
        seconds = time.process_time() - started
        if not best or seconds / steps < best["seconds"] / best["steps"]:
            best = {"what": what, "steps": steps, "seconds": seconds}
    return best


def _surveyor(setup: Setup, rounds: int) -> list[Row]:
    return [_timed(method, _walk_task(setup, method, STEPS), rounds) for method in METHODS]


def _longer(setup: Setup, rounds: int) -> list[Row]:
    first = METHODS[0]
    return [_timed(f"{first}, {size} M", _walk_task(setup, first, size * 10**6), rounds) for size in LONGER]


def _walk_task(setup: Setup, method: str, steps: int) -> Callable[[], int]:
    from surveyor.estimate.sampling.compiled_walks import CompiledWalks
    from surveyor.estimate.sampling.walk_methods import WalkPlan

    def new_walks() -> CompiledWalks:
        return CompiledWalks(setup.neighbours, setup.topic, setup.starts, WalkPlan(method))

    pilot = new_walks()  # compiles before the clock starts, and measures the steps per round
    pilot.advance(PILOT)
    rounds = math.ceil(steps * PILOT / len(pilot.trace()))

    def run() -> int:
        walks = new_walks()
        walks.advance(rounds)
        return len(walks.trace())

    return run


def _igraph(setup: Setup, rounds: int) -> list[Row]:
    import igraph

    graph = setup.graph
    pairs = np.column_stack([np.repeat(np.arange(graph.pages), graph.out_degrees), graph.indices])
    other = igraph.Graph(n=graph.pages, edges=pairs, directed=True)

    def run() -> int:
        return sum(len(other.random_walk(start, STEPS // WALKS, mode="all")) for start in setup.starts.tolist())

    return [_timed("all pages", run, rounds)]


def _networkit(setup: Setup, rounds: int) -> list[Row]:
    import networkit

    neighbours, pages = setup.neighbours, setup.graph.pages
    sources = np.repeat(np.arange(pages), np.diff(neighbours.starts))
    once = sources < neighbours.pages
    pairs = sources[once], neighbours.pages[once].astype(np.int64)
    other = networkit.GraphFromCoo((np.ones(pairs[0].size), pairs), n=pages, weighted=False, directed=False)
    step = networkit.graphtools.randomNeighbor
    return [_timed("all pages", lambda: _looped(setup, lambda at: step(other, at)), rounds)]


def _python(setup: Setup, rounds: int) -> list[Row]:
    import random

    ends = setup.neighbours.starts.tolist()
    lists = [setup.neighbours.pages[first:last].tolist() for first, last in pairwise(ends)]
    choose = random.Random(7).choice  # noqa: S311  # not for cryptography
    return [_timed("all pages", lambda: _looped(setup, lambda at: choose(lists[at])), rounds)]


def _looped(setup: Setup, step: Callable[[int], int]) -> int:
    for start in setup.starts.tolist():
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
    with np.load(folder / "topic.npz") as arrays:
        topic, starts = arrays["topic"], arrays["starts"]
    print(json.dumps(TOOLS[name](Setup(graph, NeighbourLists.of(graph), topic, starts), rounds)))


if __name__ == "__main__":
    main()
