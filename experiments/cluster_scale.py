"""Memory, communication and time of graphs in pieces, measured and computed: `python -m experiments.cluster_scale`.

Measured on a synthetic page web and a synthetic domain web: values exchanged per page (ghosts) by the number of pieces;
bytes that workers really hand over in a sweep, beside the computed ones; processor time per link of a power sweep;
the largest size of the work folder of each domain score. Computed from them: PageRank of 3 G pages and 100 G links.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.table import markdown

from surveyor import Graph, Pieces, split_graph, synthetic_web
from surveyor.cluster.ranking import assign
from surveyor.graph.pieces.cut import cut
from surveyor.graph.pieces.tasks import LocalExecutor
from surveyor.rank.domains.scores import DomainOptions
from surveyor.rank.pieces.domains import score_with
from surveyor.rank.pieces.worker import PieceWorker, WorkerSetup
from surveyor.rank.sweeps import DEPTH

COUNTS = (1, 2, 4, 8, 64, 1024)
SCORES = ("in", "win", "harmonic", "tse", "supp")
SWEEPS = 20
PAGES, LINKS, CORES, PER_MACHINE, NETWORK = 3e9, 100e9, 1000, 16, 1.25e9  # bytes per second of a machine


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Memory, communication and time of graphs in pieces.")
    parser.add_argument("--pages", type=float, default=10e6, help="links of the page web")
    parser.add_argument("--domains", type=float, default=4e6, help="links of the domain web")
    given = parser.parse_args(arguments)
    web = synthetic_web("web", links=int(given.pages)).graph
    domains = synthetic_web("domains", links=int(given.domains)).graph
    ghosts = {
        name: [ghosts_per_page(graph, count) for count in COUNTS]
        for name, graph in (("pages", web), ("domains", domains))
    }
    rows = [
        [name, f"{graph.links / graph.pages:.1f}", *(f"{one:.2f}" for one in ghosts[name])]
        for name, graph in (("pages", web), ("domains", domains))
    ]
    print(markdown(["web", "links per page", *(f"{count:,} pieces" for count in COUNTS)], rows), "\n")
    with tempfile.TemporaryDirectory(prefix="surveyor-scale-") as folder:
        seconds = exchanged(web, Path(folder))
        work_folders(domains, Path(folder))
    predicted(ghosts["pages"][-1], seconds)


def ghosts_per_page(graph: Graph, pieces: int) -> float:
    """Return the values exchanged per page: pairs of a page and another piece that it links to."""
    owner = np.asarray(cut(graph, pieces).locate(np.arange(graph.pages))[0]).astype(np.int64)
    found = 0
    for first in range(0, graph.pages, 1 << 18):
        last = min(first + (1 << 18), graph.pages)
        sources = np.repeat(np.arange(first, last), np.diff(graph.indptr[first : last + 1]))
        targets = owner[graph.indices[graph.indptr[first] : graph.indptr[last]]]
        across = targets != owner[sources]
        found += np.unique(sources[across] * pieces + targets[across]).size
    return found / graph.pages


def exchanged(web: Graph, folder: Path) -> float:
    """Compare the bytes handed over in a sweep with the computed ones; return the processor time per link."""
    rows, per_link = [], 0.0
    for count in (2, 4, 8):
        pieces = split_graph(web, folder / f"pages-{count}", count)
        for workers in sorted({2, count}):
            done, seconds = sweep_bytes(pieces, workers, folder)
            computed = 8 * pieces.ghosts * (1 - (count / workers - 1) / max(count - 1, 1))
            rows.append([str(count), str(workers), f"{done:,}", f"{computed:,.0f}", f"{done / computed:.3f}"])
            per_link = seconds / web.links
    print(markdown(["pieces", "workers", "bytes per sweep", "computed", "ratio"], rows), "\n")
    print(f"processor time of a power sweep: {1e9 * per_link:.2f} ns per link\n")
    return per_link


def sweep_bytes(pieces: Pieces, workers: int, folder: Path) -> tuple[int, float]:
    """Run real workers in this process; return the bytes between them per sweep, and the least processor time."""
    assigned = assign([piece.links + piece.pages for piece in pieces.counts], workers)
    setup: Any = {"pieces": str(pieces.folder), "work": str(folder), "assigned": assigned, "damping": 0.85}
    setup |= {name: False for name in ("teleport", "uniform_dangling", "stored") if name in WorkerSetup._fields}
    setup |= {"depth": DEPTH, "threads": 1}
    team = [PieceWorker(WorkerSetup(**setup), place) for place in range(len(assigned))]
    boxes = [worker.run(0, "start", None, ())[1] for worker in team]
    least = np.inf
    for step in range(1, SWEEPS + 1):
        before = time.process_time()
        boxes = [
            worker.run(step, "power", [1.0, 0.0], [box[place] for box in boxes])[1] for place, worker in enumerate(team)
        ]
        least = min(least, time.process_time() - before)
    for worker in team:
        worker.close()
    return sum(array.nbytes for box in boxes for array in box), float(least)


class Watched(LocalExecutor):
    """An executor that records the largest size of the work folder."""

    def __init__(self, setup: Any, sizes: list[int]) -> None:
        super().__init__(setup)
        self._folder, self._sizes = Path(setup.work), sizes

    def run(self, step: int, name: str, arguments: Any) -> list[Any]:
        """Do a step."""
        results = super().run(step, name, arguments)
        self._sizes.append(sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file()))
        return results


def work_folders(domains: Graph, folder: Path) -> None:
    """Print the largest size of the work folder of each score, per domain."""
    rows = []
    for count in (1, 8):
        pieces = split_graph(domains, folder / f"domains-{count}", count)
        for score in SCORES:
            sizes: list[int] = []
            chosen = DomainOptions(p=0.01 if score == "tse" else None)
            score_with(pieces, score, options=chosen, executor=partial(Watched, sizes=sizes))
            names = 0 if domains.names is None else int(domains.names.offsets[-1]) + 8 * domains.pages
            used = (max(sizes) - names) / domains.pages
            rows.append([score, str(count), f"{pieces.ghosts / pieces.pages:.2f}", f"{used:,.0f}"])
    print(markdown(["score", "pieces", "values exchanged per domain", "bytes per domain, without names"], rows), "\n")


def predicted(ghosts: float, per_link: float) -> None:
    """Print the memory, bytes and time of a sweep over the large graph, by the number of machines."""
    rows = []
    for machines in (1, 8, round(CORES / PER_MACHINE), 256, 1024):
        compute = LINKS * per_link / (machines * PER_MACHINE)
        moved = 8 * ghosts * PAGES * (1 - 1 / machines)
        memory = (24 * PAGES + 8 * ghosts * PAGES) / machines
        network = moved / machines / NETWORK
        rows.append(
            [
                f"{machines:,}",
                f"{memory / 1e9:.1f}",
                f"{moved / machines / 1e9:.2f}",
                f"{compute:.1f}",
                f"{network:.1f}",
            ]
        )
    print(markdown(["machines", "memory, GB", "received per sweep, GB", "computing, s", "network, s"], rows))


if __name__ == "__main__":
    main()
