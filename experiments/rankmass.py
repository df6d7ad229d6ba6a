"""The tables of the RankMass paper, on webs whose true importance is known.

    python -m experiments.rankmass [--pages 10000000] [--data DIR] [--goal 0.98] [--parts real,web,growth]

For each web: the fetches that each order needs until a coverage of 90 % and 98 % is guaranteed, and until it is true;
the optimal order; and the cost of ordering. L-Neighbor, RankMass and Windowed RankMass (one sweep per round) are those
of the paper, with the bound of the ledger, which is at least as tight as that of the paper; "closure" also pushes the
mass of fetched pages. Then the growth of the cost from a hundredth of the pages to all of them.

The webs are the synthetic preset `web` with at least `--pages` pages and, if DIR has them, the real page graphs
`cnr-2000` (BVGraph) and `debian-docs` (CSR arrays). Seeds are one page in a thousand, drawn at random, or the ten
pages of highest PageRank. The output is Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.kernels import rankmass_as_printed
from surveyor.arrays import IdArray
from surveyor.crawler.strategies.breadth import Breadth, levels_needed
from surveyor.crawler.strategies.rankmass import RankMass
from surveyor.crawler.strategies.strategy import Strategy
from surveyor.crawler.strategies.windowed import Sweep, Windowed
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph
from surveyor.graph.synthetic.generate import synthetic_web
from surveyor.kernels.mass import Rows, new_mass
from surveyor.kernels.priority_queues import new_queue
from surveyor.simulation.race import Race, Run
from surveyor.simulation.scenario import SimulationOptions
from surveyor.simulation.simulate import simulate
from surveyor.stopping import Coverage

LINKS_PER_PAGE = 17.3  # of the preset at ten million pages
SHARE = 1000  # one page in 1,000 is a seed
LEVELS = (0.9, 0.98)
UNSAMPLED = SimulationOptions(samples=0)
MANY = 1_000_000  # on larger webs RankMass as printed, which is slow, is run to the first level only
HEAD = (
    "| order | 90 % guaranteed | 90 % true | 98 % guaranteed | 98 % true | true / optimal at 98 % | rounds | seconds "
    "| pages/s "
    "| M links/s |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def orders() -> list[tuple[str, Strategy]]:
    """Return the orders of the paper and ours beside them."""
    windows = (0.2, 0.1, 0.05)
    return [
        ("L-Neighbor", Breadth()),
        *[(f"Windowed {100 * window:g} %", Sweep(window)) for window in windows],
        ("RankMass", RankMass(1.0)),
        *[(f"Windowed {100 * window:g} %, closure", Windowed(window)) for window in windows],
        ("RankMass, closure 0.1", RankMass()),
        ("RankMass, closure 0.01", RankMass(0.01)),
    ]


def count_of(number: int | None) -> str:
    """Format a number of fetches."""
    return "–" if number is None else f"{number:,}"


def row(name: str, strategy: Strategy, run: Run, race: Race) -> str:
    """Return one line of the table."""
    best, true = race.optimal_fetches_for(0.98), run.fetches_for(0.98, "true")
    cells = [count_of(run.fetches_for(level, which)) for level in LEVELS for which in ("guaranteed", "true")]
    ratio = "–" if not best or not true else f"{true / best:.3f}"
    rounds = getattr(strategy, "rounds", "") or ""
    speed = f"{run.seconds:.1f} | {run.fetches / run.seconds:,.0f} | {run.link_updates / run.seconds / 1e6:.1f}"
    return f"| {name} | {' | '.join(cells)} | {ratio} | {rounds} | {speed} |"


def table(name: str, graph: Graph, seeds: IdArray | None, goal: float) -> None:
    """Race all orders over one web and print the table."""
    chosen = "the ten pages of highest PageRank" if seeds is None else f"{seeds.size:,} pages at random"
    print(f"\n## {name}: {graph.pages:,} pages, {graph.links:,} links; seeds: {chosen}\n\n{HEAD}", flush=True)
    race = None
    for label, strategy in orders():
        say(f"{name}: {label}")
        race = simulate(graph, [strategy], Coverage(goal), seeds=seeds, rng=7, options=UNSAMPLED)
        print(row(label, strategy, race.runs[0], race), flush=True)
    if race is not None:
        best = [count_of(race.optimal_fetches_for(level)) for level in LEVELS]
        print(as_printed(graph, race.seeds))
        print(f"| optimal order | {best[0]} | {best[0]} | {best[1]} | {best[1]} | 1 | | | | |")
        levels = levels_needed(goal)
        depth = within(graph, race.seeds, levels)
        print(f"\nBy its theorem, L-Neighbor fetches all {depth:,} pages of {levels} levels for {100 * goal:g} %.")


def as_printed(graph: Graph, seeds: IdArray) -> str:
    """Return the line of RankMass with the guarantee of the paper."""
    levels = LEVELS if graph.pages <= MANY else LEVELS[:1]
    fetched, found = np.zeros(graph.pages, np.int32), np.zeros(len(levels), np.int64)
    rows = Rows(graph.indptr[:-1], graph.indptr[1:], graph.indices)
    rankmass_as_printed(rows, seeds, 0.85, new_queue(graph.pages), fetched, np.array(levels), found)
    cells = [f"{count:,} | " for count in found.tolist()] + ["not run | "] * (len(LEVELS) - len(levels))
    return f"| RankMass as printed | {'| '.join(cells)}| | | | | |"


def within(graph: Graph, seeds: IdArray, levels: int) -> int:
    """Count the pages of this many levels; the seeds are the first."""
    seen = np.zeros(graph.pages, np.bool_)
    level = np.asarray(seeds, np.int64)
    for _ in range(levels):
        seen[level] = True
        mark = np.zeros(graph.pages, np.bool_)
        for start in range(0, level.size, 1 << 20):
            part = level[start : start + (1 << 20)]
            lengths = graph.out_degrees[part]
            first = np.repeat(graph.indptr[part] - np.cumsum(lengths) + lengths, lengths)
            mark[graph.indices[first + np.arange(first.size)]] = True
        level = np.flatnonzero(mark & ~seen)
    return int(seen.sum())


def growth(pages: int, goal: float) -> None:
    """Print how the cost of RankMass with closure grows with the web."""
    print(f"\n## Growth: RankMass, closure 0.1, to {100 * goal:g} % guaranteed, one seed in {SHARE:,} pages\n")
    print("| pages | links | fetches | seconds | µs per fetch | link updates per fetch | M links/s | bytes per page |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for size in (pages // 100, pages // 10, pages):
        graph = web(size)
        run = simulate(graph, [RankMass()], Coverage(goal), seeds=spread(graph), rng=7, options=UNSAMPLED).runs[0]
        print(
            f"| {graph.pages:,} | {graph.links:,} | {run.fetches:,} | {run.seconds:.1f} "
            f"| {run.microseconds_per_page:.1f} | {run.link_updates / run.fetches:.0f} "
            f"| {run.link_updates / run.seconds / 1e6:.1f} | {bytes_per_page(graph.pages):.1f} |",
            flush=True,
        )


def bytes_per_page(pages: int) -> float:
    """Return what ledger and queue take for each page there is room for, without links."""
    room = 0
    for size in (pages, 2 * pages):
        mass = new_mass(size, np.zeros(1, np.int32), np.ones(1), (0.85, 0.1, 1e-4, 1.0, 1.0), 1 << 16)
        seen = {id(array): array.nbytes for part in (mass, new_queue(size)) for array in part if array.base is None}
        room = sum(seen.values()) - room
    return room / pages


def web(pages: int) -> Graph:
    """Return the synthetic web with at least about so many pages."""
    return synthetic_web("web", links=int(LINKS_PER_PAGE * pages * 1.05), names=False).graph


def spread(graph: Graph) -> IdArray:
    """Draw the seeds."""
    return np.sort(np.random.default_rng(5).choice(graph.pages, graph.pages // SHARE, replace=False)).astype(np.int32)


def real(data: Path) -> Iterator[tuple[str, Graph]]:
    """Yield the real page graphs that are there."""
    cnr, debian = data / "cnr-2000" / "cnr-2000.graph", data / "debian-docs" / "graph.csr.npz"
    if cnr.exists():
        yield "cnr-2000", read_graph(cnr)
    if debian.exists():
        arrays = np.load(debian)
        yield "debian-docs", Graph(arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int32))
    if not cnr.exists() and not debian.exists():
        say(f"no real page graphs in {data}: only the synthetic web is used")


def say(text: str) -> None:
    """Talk, beside the tables."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=10_000_000, help="pages of the synthetic web")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of real graphs")
    parser.add_argument("--goal", type=float, default=0.98)
    parser.add_argument("--parts", default="real,web,growth", help="what to print, with commas between")
    options = parser.parse_args()
    parts = options.parts.split(",")
    simulate(web(1_000), [strategy for _, strategy in orders()], Coverage(0.5))  # compile before timing
    if "real" in parts:
        for name, graph in real(options.data):
            table(name, graph, None, options.goal)
            table(name, graph, spread(graph), options.goal)
    if "web" in parts:
        graph = web(options.pages)
        table("web", graph, spread(graph), options.goal)
        table("web", graph, None, options.goal)
        del graph
    if "growth" in parts:
        growth(options.pages, options.goal)


if __name__ == "__main__":
    main()
