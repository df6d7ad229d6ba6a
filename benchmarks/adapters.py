"""Graphs of other libraries: the time of a conversion and of a ranking, beside building a graph from arrays.

    python -m benchmarks.adapters --links 10_000_000 --networkx 1_000_000

Each measurement is the best of three, or of seven that alternate with building from arrays; the first call compiles the
kernels and is not counted. Memory is the largest resident set beyond that before the call, as the kernel of the system
counts it. The ratio of processor times hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import surveyor as sv

ROUNDS = 3
PAIRS = 7  # of runs that alternate


def peak() -> int:
    """Return the largest resident set since the last reset, in bytes."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    return 0


def measured(work: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, int, float]:
    """Return the best time, the smallest memory and the best processor time of some runs; the first is not counted."""
    if rounds > 1:
        work()
    times, sizes, processor = [], [], []
    for _ in range(rounds):
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5", "ascii")  # resets the largest resident set
        before, start, cpu = peak(), time.perf_counter(), time.process_time()
        result = work()
        times.append(time.perf_counter() - start)
        processor.append(time.process_time() - cpu)
        sizes.append(peak() - before)
        del result
    return min(times), min(sizes), min(processor)


def beside(base: Callable[[], Any], work: Callable[[], Any]) -> tuple[float, float, int, float]:
    """Alternate two runs, so that other load affects both.

    Return their best times, the memory of the second, and the ratio of their processor times.
    """
    work()
    pairs = [(measured(base, 1), measured(work, 1)) for _ in range(PAIRS)]
    times = [[turn[which] for turn in pairs] for which in (0, 1)]
    best, own = (min(time for time, _, _ in one) for one in times)
    ratio = min(cpu for _, _, cpu in times[1]) / min(cpu for _, _, cpu in times[0])
    return best, own, min(size for _, size, _ in times[1]), ratio


def report(name: str, seconds: float, size: int, base: float) -> None:
    """Print one row."""
    print(f"{name:<66} {seconds:8.2f} s {seconds / base:7.2f} x {size / 1e6:9,.0f} MB", flush=True)


def tables(links: int) -> None:
    """Compare tables with arrays."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    rng = np.random.default_rng(1)
    pages = links // 10
    sources, targets = (
        (rng.zipf(1.7, links) * 7919 + rng.integers(0, pages, links)) % pages,
        rng.integers(0, pages, links),
    )
    print(f"{links:,} links between {pages:,} pages, columns of int64")
    base, size, _ = measured(lambda: sv.Graph.from_arrays(sources, targets))
    report("Graph.from_arrays", base, size, base)
    table = pa.table({"source": sources, "target": targets})
    forms: dict[str, Any] = {
        "as_graph(PyArrow table)": table,
        "as_graph(pandas data frame)": pd.DataFrame({"source": sources, "target": targets}),
        "as_graph(Polars data frame)": pl.DataFrame({"source": sources, "target": targets}),
        "as_graph(NumPy pairs)": np.stack([sources, targets], axis=1),
        "as_graph(PyArrow table, ids with gaps)": pa.table({"source": sources * 3, "target": targets * 3}),
        "as_graph(PyArrow table, 8-digit text)": pa.table(
            {name: pa.array(np.char.mod("%08d", ids).tolist()) for name, ids in (("a", sources), ("b", targets))}
        ),
    }
    for name, form in forms.items():
        base, seconds, size, ratio = beside(lambda: sv.Graph.from_arrays(sources, targets), partial(sv.as_graph, form))
        report(f"{name} (processor time {ratio:.2f} x)", seconds, size, base)


def networkx(links: int) -> None:
    """Compare with NetworkX, which computes to the same error here."""
    import networkx as nx

    rng = np.random.default_rng(1)
    pages = links // 10
    graph = nx.DiGraph()
    graph.add_nodes_from(range(pages))
    graph.add_edges_from(rng.integers(0, pages, (links, 2)).tolist())
    print(f"NetworkX: {graph.number_of_edges():,} edges, {pages:,} nodes")
    tolerance = 1e-6
    base, size, _ = measured(lambda: nx.pagerank(graph, tol=tolerance / pages, backend="networkx"))
    report("networkx.pagerank", base, size, base)
    seconds, size, _ = measured(lambda: sv.as_graph(graph))
    report("sv.as_graph(G): conversion", seconds, size, base)
    converted = sv.as_graph(graph)
    report("sv.pagerank(converted): ranking", *measured(lambda: sv.pagerank(converted, tolerance=tolerance))[:2], base)
    report("sv.pagerank(G): both", *measured(lambda: sv.pagerank(graph, tolerance=tolerance))[:2], base)
    graph.__networkx_cache__ = None  # converted again each time
    both = measured(lambda: nx.pagerank(graph, tol=tolerance, backend="surveyor"))
    report('networkx.pagerank(G, backend="surveyor")', *both[:2], base)


def weighted(links: int) -> None:
    """Compare rankings with and without weights of the same links."""
    rng = np.random.default_rng(1)
    pages = links // 10
    sources, targets = rng.integers(0, pages, (2, links))
    plain = sv.Graph.from_arrays(sources, targets)
    heavy = sv.Graph.from_arrays(sources, targets, weights=rng.exponential(size=links))
    base, size, _ = measured(lambda: sv.pagerank(plain, tolerance=1e-9))
    report(f"pagerank, {links:,} links", base, size, base)
    report("the same with weights", *measured(lambda: sv.pagerank(heavy, tolerance=1e-9))[:2], base)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=10_000_000)
    parser.add_argument("--networkx", type=int, default=1_000_000)
    arguments = parser.parse_args()
    tables(arguments.links)
    networkx(arguments.networkx)
    weighted(3_000_000)
