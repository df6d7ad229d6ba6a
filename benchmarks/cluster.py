"""PageRank over pieces on one and two workers: strong and weak scaling, beside threads over the whole graph.

    python -m benchmarks.cluster [--links 160e6] [--pieces 8] [--rounds 3]

A worker is a Ray process on this machine with one thread. Measured is a sweep, with its part of the exchange and of the
extrapolation; starting processes and opening files do not count. Strong scaling is the same web on two workers;
weak scaling is a web of half the links on one worker beside the whole one on two, per link. All are measured in turn;
the minimum over the rounds counts.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.race import say
from benchmarks.table import markdown
from surveyor import Graph, NotConverged, Pieces, SolverOptions, pagerank, split_graph, synthetic_web
from surveyor.cluster.ranking import RayExecutor
from surveyor.cluster.session import Node, Session
from surveyor.graph.pieces.tasks import Executor, LocalExecutor, MakeExecutor
from surveyor.graph.pieces.write import WriteOptions
from surveyor.rank.pieces.ranking import PieceOptions, rank_with
from surveyor.rank.pieces.worker import WorkerSetup

FEW, MANY = 5, 25  # sweeps
STRONG, WEAK = 0.8, 0.75  # efficiencies to reach
BYTES_PER_LINK = 40


class Some:
    """The first machines of a session."""

    def __init__(self, session: Session, count: int) -> None:
        self.session, self.count = session, count

    def nodes(self) -> list[Node]:
        return self.session.nodes()[: self.count]

    def restore(self) -> None:
        self.session.restore()


class Timed:
    """An executor that measures its steps."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.seconds: dict[str, list[float]] = {}

    def start(self) -> None:
        self.executor.start()

    def run(self, step: int, name: str, arguments: Any) -> list[Any]:
        began = time.perf_counter()
        found = self.executor.run(step, name, arguments)
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        return found

    def per_sweep(self) -> float:
        """Return the seconds of a sweep and its part of other steps; medians, as the first loads code."""
        kinds = [self.seconds.get(name, []) for name in ("seidel", "power", "measure", "gram", "blend")]
        sweeps = len(kinds[0]) + len(kinds[1])
        return sum(len(kind) * median(kind) for kind in kinds if kind) / sweeps

    def close(self) -> None:
        self.executor.close()


def threads(graph: Graph, count: int) -> float:
    """Return the seconds of a sweep over the whole graph."""
    seconds = []
    for sweeps in (FEW, MANY):
        began = time.perf_counter()
        with suppress(NotConverged):
            pagerank(graph, tolerance=1e-13, options=SolverOptions("seidel", sweeps, count))
        seconds.append(time.perf_counter() - began)
    return (seconds[1] - seconds[0]) / (MANY - FEW)


def workers(pieces: Pieces, make: MakeExecutor, count: int = 1) -> float:
    """Return the seconds of a sweep over pieces, with extrapolation and exchange."""
    made: list[Timed] = []

    def timed(setup: WorkerSetup) -> Timed:
        made.append(Timed(make(setup)))
        return made[0]

    with suppress(NotConverged):
        rank_with(pieces, tolerance=1e-13, options=PieceOptions("seidel", MANY, count), executor=timed)
    return made[0].per_sweep()


def measure(links: int, count: int, rounds: int, work: Path) -> dict[str, float]:
    """Return the seconds of a sweep of each way to rank."""
    graphs = {}
    for part in (1, 2):
        web = synthetic_web("web", links=links * part // 2, names=False, folder=work / f"web{part}").graph
        say(f"web of {web.links:,} links and {web.pages:,} pages")
        graphs[part] = web, split_graph(web, work / f"pieces{part}", count, WriteOptions(memory=2 << 30))
        say(f"  {graphs[part][1].ghosts / web.pages:.2f} values per page exchanged in a sweep")
    (half, half_pieces), (whole, pieces) = graphs[1], graphs[2]
    best: dict[str, float] = {}
    with Session("local:2") as session:
        runs: dict[str, Callable[[], float]] = {
            "threads 1": lambda: threads(whole, 1),
            "threads 2": lambda: threads(whole, 2),
            "one process, 2 threads": lambda: workers(pieces, LocalExecutor, 2),
            "workers 1": lambda: workers(pieces, partial(RayExecutor, Some(session, 1))),
            "workers 2": lambda: workers(pieces, partial(RayExecutor, Some(session, 2))),
            "workers 1, half": lambda: workers(half_pieces, partial(RayExecutor, Some(session, 1))),
        }
        for number in range(rounds):
            for name, run in runs.items():
                seconds = run()
                best[name] = min(seconds, best.get(name, seconds))
                say(f"  round {number + 1}, {name}: {1000 * seconds:.0f} ms a sweep")
    best["strong"] = best["workers 1"] / (2 * best["workers 2"])
    per_link = best["workers 1, half"] / half.links, best["workers 2"] / whole.links
    best["weak"] = per_link[0] / (2 * per_link[1])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the scaling of PageRank over pieces.")
    parser.add_argument("--links", type=float, default=160e6)
    parser.add_argument("--pieces", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as folder:
        free = shutil.disk_usage(folder).free
        if free < BYTES_PER_LINK * given.links:
            raise SystemExit(f"{BYTES_PER_LINK * given.links / 1e9:.0f} GB of disk needed, {free / 1e9:.0f} free")
        found = measure(int(given.links), given.pieces, given.rounds, Path(folder))
    rows = [[name, f"{1000 * seconds:.0f}"] for name, seconds in found.items() if name not in ("strong", "weak")]
    print(markdown(["way", "ms a sweep"], rows))
    for name, least in (("strong", STRONG), ("weak", WEAK)):
        verdict = "reached" if found[name] >= least else "missed"
        print(f"{name} scaling on two workers: efficiency {found[name]:.2f} (at least {least}: {verdict})")


if __name__ == "__main__":
    main()
