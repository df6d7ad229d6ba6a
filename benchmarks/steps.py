"""What each process of the scaling benchmark does; one step a process, so that its peaks are its own.

`python -m benchmarks.steps STEP ARGUMENTS`, the arguments being a JSON object, prints a JSON object.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import memory
from benchmarks.peers import THREADS

Report = dict[str, Any]
ENOUGH = 2.0  # seconds


def make(kind: str, links: int, folder: str) -> Report:
    """Write a graph of about this many links into a graph folder."""
    from surveyor import rmat, synthetic_web

    began = time.perf_counter()
    if kind == "web":
        graph = synthetic_web("web", links=links, folder=Path(folder), names=False).graph
    else:
        scale = max(1, round(math.log2(links / 16)))
        graph = rmat(scale, max(1, round(links / 2**scale)))
        graph.save(folder)
    return {"pages": graph.pages, "links": graph.links, "seconds": time.perf_counter() - began}


def text(folder: str, path: str) -> Report:
    """Write the links of a graph folder as gzip text."""
    from surveyor import Graph, write_graph

    write_graph(Graph.open(folder, verify=False), path, format="snap")
    return {"bytes": Path(path).stat().st_size}


def build(path: str, folder: str) -> Report:
    """Build a graph folder from text."""
    from surveyor import build_graph

    _warm_up()
    return {"seconds": _best(lambda: build_graph(path, folder, format="snap", replace=True, threads=THREADS))}


def stream(folder: str, rounds: int) -> Report:
    """Open a graph by memory map and rank it, the pages of the map being the kernel's to keep or drop."""
    from surveyor import Graph, SolverOptions, pagerank

    _warm_up()
    graph = Graph.open(folder, verify=False)
    ranking = pagerank(graph, tolerance=1e-6, options=SolverOptions(threads=THREADS))
    seconds = _best(lambda: pagerank(graph, tolerance=1e-6, options=SolverOptions(threads=THREADS)), rounds)
    return {"seconds": seconds, "sweeps": ranking.sweeps, "error": ranking.error, "solver": ranking.solver}


def bandwidth() -> Report:
    """Measure how fast memory is read."""
    return {"bandwidth": memory.read_bandwidth(THREADS)}


def _best(task: Callable[[], object], rounds: int = 1) -> float:
    """Return the quickest of some runs; short ones are repeated until they have taken two seconds."""
    seconds: list[float] = []
    while len(seconds) < rounds or sum(seconds) < ENOUGH:
        began = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _warm_up() -> None:
    """Compile, or load, what will be timed."""
    from surveyor import SolverOptions, build_graph, pagerank

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "links.txt"
        path.write_text("".join(f"{page}\t{(3 * page + 1) % 999}\n" for page in range(999)), "utf-8")
        graph = build_graph(path, Path(folder) / "graph", threads=THREADS)
        pagerank(graph, options=SolverOptions(solver="seidel", threads=THREADS))


STEPS: dict[str, Callable[..., Report]] = {
    "make": make,
    "text": text,
    "build": build,
    "stream": stream,
    "bandwidth": bandwidth,
}


def main() -> None:
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    with memory.PrivatePeak() as private:
        report = STEPS[name](**arguments)
    print(json.dumps({**report, "private": private.bytes, "peak": memory.peak()}))


if __name__ == "__main__":
    main()
