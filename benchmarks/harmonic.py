"""Harmonic centrality: surveyor compared with tools that estimate it or compute it exactly.

`python -m benchmarks harmonic`

A synthetic web of domains. No package that pip installs has HyperBall (NetworKit's sketch of the neighbourhood function
takes undirected graphs only), so surveyor is compared with HyperBall as published, written in NumPy; NetworKit's
exact search for the ten best; and igraph, exact too, on a sample of domains, from which the time for all is
extrapolated. NetworKit's sketch is timed on the same links as an undirected graph, and so is surveyor. Each tool runs
in a separate process; errors are over a sample of domains, with the ground truth from breadth-first search.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import memory
from benchmarks.graphs import ROOT
from benchmarks.peers import THREADS, Floats, Ids
from benchmarks.process import environment
from benchmarks.race import say
from benchmarks.table import markdown
from benchmarks.targets import Verdict

if TYPE_CHECKING:
    from surveyor import Graph

SAMPLE = 32  # domains with a ground truth
REGISTERS = 64
CHUNK = 1 << 18  # links whose counters are gathered at a time, by hand
TIMEOUT = 300.0
Row = dict[str, Any]


def harmonic(links: int, rounds: int, threads: int) -> list[Row]:
    """Run every tool in turn, `rounds` times; keep the fastest turn of each."""
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as work:
        folder = Path(work) / "domains"
        _prepare(links, folder)
        best: dict[str, Row] = {}
        for turn in range(rounds):
            for name in TOOLS:
                if "failed" in best.get(name, {}):
                    continue
                say(f"harmonic, turn {turn + 1}: {name}")
                row = _turn(name, folder, threads)
                if "failed" in row or row["seconds"] < best.get(name, {}).get("seconds", np.inf):
                    best[name] = {"tool": name, **row}
        return list(best.values())


def harmonic_table(rows: list[Row]) -> str:
    """Return the tools side by side."""
    header = ["tool", "answer", "wall s", "CPU s", "above start MB", "rms error"]
    return markdown(header, map(_cells, rows))


def harmonic_verdicts(rows: list[Row]) -> list[Verdict]:
    """Compare surveyor's time with that of each peer that answers the same question."""
    found = {row["tool"]: row for row in rows if "seconds" in row}
    pairs = [
        ("surveyor", "NumPy, by hand"),
        ("surveyor", "igraph"),
        ("surveyor", "NetworKit, ten best"),
        ("surveyor, both ways", "NetworKit, both ways"),
    ]
    return [
        Verdict(
            f"{ours} / {peer}",
            f"{found[ours]['seconds']:.2f} s against {found[peer]['seconds']:.2f} s",
            found[ours]["seconds"] / found[peer]["seconds"],
            None,
        )
        for ours, peer in pairs
        if ours in found and peer in found
    ]


def _cells(row: Row) -> list[str]:
    if "failed" in row:
        return [row["tool"], row["failed"], *["–"] * 4]
    error = f"{row['error']:.1%}" if row.get("error") is not None else "–"
    above = f"{row['above'] / 2**20:.0f}"
    return [row["tool"], row["answer"], f"{row['seconds']:.2f}", f"{row['cpu']:.2f}", above, error]


def _turn(name: str, folder: Path, threads: int) -> Row:
    command = [sys.executable, "-m", "benchmarks.harmonic", name, str(folder)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(threads), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"over {TIMEOUT:.0f} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["ended badly"])[-1][:80]}
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def _prepare(links: int, folder: Path) -> None:
    """Write the web, and the truth of a sample of it: half of the best by in-links, half of any."""
    from surveyor import synthetic_web

    say(f"harmonic: a web of domains with {links:,} links")
    graph = synthetic_web("domains", links=links, folder=folder, names=False).graph
    degrees = graph.in_links.degrees()
    linked = np.flatnonzero(degrees)
    rng = np.random.default_rng(7)
    best = rng.choice(np.argsort(-degrees)[:1000], SAMPLE // 2, replace=False)
    sample = np.unique(np.concatenate([best, rng.choice(linked, SAMPLE // 2, replace=False)]))
    np.savez(folder / "truth.npz", sample=sample, exact=[exact_harmonic(graph, int(domain)) for domain in sample])


def exact_harmonic(graph: Graph, domain: int) -> float:
    """Search against the links, breadth first."""
    rows = graph.in_links
    seen = np.zeros(graph.pages, np.bool_)
    seen[domain] = True
    frontier, level, total = np.array([domain]), 0, 0.0
    while frontier.size:
        level += 1
        starts, lengths = rows.indptr[frontier], rows.indptr[frontier + 1] - rows.indptr[frontier]
        shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        reached = rows.indices[np.arange(lengths.sum()) + shift]
        new = np.zeros(graph.pages, np.bool_)
        new[reached] = True
        new &= ~seen
        seen |= new
        frontier = np.flatnonzero(new)
        total += frontier.size / level
    return total


def by_hand(indptr: Any, indices: Ids) -> Floats:
    """HyperBall as printed (Boldi and Vigna 2013): differences of estimated balls, all rows at every level."""
    domains = indptr.size - 1
    rng = np.random.default_rng(7)
    counters = np.zeros((domains, REGISTERS), np.uint8)
    values = np.minimum(rng.geometric(0.5, domains), 50)
    counters[np.arange(domains), rng.integers(0, REGISTERS, domains)] = values
    ball, total, level = _estimate(counters), np.zeros(domains), 0
    while True:
        level += 1
        grown = counters.copy()
        first = 0
        while first < domains:
            last = max(int(np.searchsorted(indptr, indptr[first] + CHUNK, side="right")) - 1, first + 1)
            full = first + np.flatnonzero(np.diff(indptr[first : last + 1]))
            if full.size:
                rows = counters[indices[indptr[first] : indptr[last]]]
                merged = np.maximum.reduceat(rows, indptr[full] - indptr[first])
                grown[full] = np.maximum(grown[full], merged)
            first = last
        if np.array_equal(grown, counters):
            return total
        size = _estimate(grown)
        total += (size - ball) / level
        counters, ball = grown, size


def _estimate(counters: Any) -> Floats:
    """Estimate the sizes as Flajolet and others (2007) do, with linear counting below 2.5 times the registers."""
    raw = 0.709 * REGISTERS**2 / np.ldexp(1.0, -counters.astype(np.int32)).sum(axis=1)
    empty = np.count_nonzero(counters == 0, axis=1)
    linear = REGISTERS * np.log(REGISTERS / np.maximum(empty, 1))
    return np.asarray(np.where((raw <= 2.5 * REGISTERS) & (empty > 0), linear, raw))


def _surveyor(graph: Graph, registers: int = REGISTERS) -> Callable[[], Any]:
    from surveyor import Resources
    from surveyor import harmonic as estimate

    resources = Resources(threads=THREADS)
    estimate(graph, 1, registers=registers, resources=resources)
    _warm_up(registers)
    return lambda: estimate(graph, registers=registers, resources=resources).scores


def _warm_up(registers: int) -> None:
    from surveyor import Graph
    from surveyor import harmonic as estimate

    estimate(Graph.from_arrays(np.arange(9), np.arange(1, 10), 10), registers=registers)


def _both_ways(graph: Graph) -> tuple[Any, Any]:
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    return np.concatenate([sources, graph.indices]), np.concatenate([graph.indices, sources])


def _surveyor_both(graph: Graph) -> Callable[[], Any]:
    from surveyor import Graph

    doubled = Graph.from_arrays(*_both_ways(graph), graph.pages)
    doubled.in_links  # noqa: B018  # built before the clock starts, as NetworKit's graph is
    run = _surveyor(doubled)

    def quiet() -> None:
        run()

    return quiet


def _hand(graph: Graph) -> Callable[[], Any]:
    rows = graph.in_links
    indptr, indices = np.array(rows.indptr), np.array(rows.indices)
    return lambda: by_hand(indptr, indices)


def _networkit_both(graph: Graph) -> Callable[[], Any]:
    import networkit

    networkit.setNumberOfThreads(THREADS)
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    made = networkit.GraphFromCoo((sources, graph.indices.astype(np.int64)), n=graph.pages, directed=False)
    made.removeMultiEdges()
    part = networkit.components.ConnectedComponents.extractLargestConnectedComponent(made, True)

    def run() -> None:
        networkit.distance.NeighborhoodFunctionApproximation(part, REGISTERS, 7).run()

    return run


def _networkit_top(graph: Graph) -> Callable[[], Any]:
    import networkit

    networkit.setNumberOfThreads(THREADS)
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    made = networkit.GraphFromCoo((graph.indices.astype(np.int64), sources), n=graph.pages, directed=True)

    def run() -> None:
        networkit.centrality.TopHarmonicCloseness(made, 10).run()

    return run


def _igraph(graph: Graph) -> Callable[[], Any]:
    import igraph

    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    made = igraph.Graph(graph.pages, np.column_stack([sources, graph.indices]).astype(np.int64), directed=True)
    some = np.load(Path(sys.argv[2]) / "truth.npz")["sample"]

    def run() -> Floats:
        scores = np.full(graph.pages, np.nan)
        scores[some] = np.array(made.harmonic_centrality(some.tolist(), mode="in", normalized=False))
        return scores

    return run


TOOLS: dict[str, tuple[Callable[[Any], Callable[[], Any]], str]] = {
    "surveyor": (_surveyor, "all domains, 64 registers"),
    "surveyor, 256": (lambda graph: _surveyor(graph, 256), "all domains, 256 registers"),
    "NumPy, by hand": (_hand, "all domains, 64 registers"),
    "igraph": (_igraph, "exact; time for all from a sample"),
    "NetworKit, ten best": (_networkit_top, "exact, ten domains"),
    "surveyor, both ways": (_surveyor_both, "all domains, links taken both ways"),
    "NetworKit, both ways": (_networkit_both, "the sum over all domains; largest component"),
}


def main() -> None:
    from surveyor import Graph

    name, folder = sys.argv[1:]
    graph = Graph.open(folder, verify=False)
    graph.in_links.indices.sum()
    start = TOOLS[name][0](graph)
    memory.forget_peak()
    resident, began, cpu = memory.status("VmRSS"), time.perf_counter(), time.process_time()
    scores = start()
    row: Row = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "answer": TOOLS[name][1]}
    row["above"] = memory.peak() - resident
    truth = np.load(Path(folder) / "truth.npz")
    if scores is not None:
        row["error"] = float(np.sqrt(np.mean((scores[truth["sample"]] / truth["exact"] - 1) ** 2)))
    if name == "igraph":
        row |= {key: row[key] * graph.pages / truth["sample"].size for key in ("seconds", "cpu")}
    print(json.dumps(row))


if __name__ == "__main__":
    main()
