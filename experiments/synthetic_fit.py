"""Compare the shape of synthetic webs with real graphs.

    python -m experiments.synthetic_fit --data DIR

DIR is a folder of real graphs, each in its own folder: `cnr-2000` (BVGraph), `debian-docs` (CSR arrays
and a page list with sites), `hollins` (edges), `walk-domains` and `cc2024-labelled` (domain graphs). Missing
graphs are skipped with a message. The output is a Markdown table.

Exponents are the maximum-likelihood estimate of a discrete power law over degrees of at least 10,
1 + n / Σ ln(k / 9.5) (Clauset, Shalizi and Newman 2009, eq. 3.7): one estimator and one cut-off for all
graphs, so that the numbers can be compared although few of the distributions are pure power laws.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import PRESETS, rmat, synthetic_web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from surveyor.arrays import IntArray

TAIL = 10  # smallest degree of the fitted tail
NEAR = 1000  # ids closer than this are near
SITE = (5_000, 7_000)  # pages of the single sites that the `site` preset is compared with
DAMPING = 0.85
LARGEST = 2_000_000  # pages; presets that have more are measured at this size
CHANGE = 1e-9  # L1 change of the scores that ends the count of sweeps

Measures = dict[str, float | None]
COLUMNS = {
    "pages": ",.0f",
    "links": ",.0f",
    "links per page": ".1f",
    "in exponent": ".2f",
    "out exponent": ".2f",
    "dangling": ".3f",
    "no in-links": ".3f",
    "reciprocal": ".2f",
    "intra-site": ".3f",
    "near": ".2f",
    "sweeps": ".0f",
    "ratio": ".3f",
}


def measure(graph: Graph, site: IntArray | None = None) -> Measures:
    """Describe the shape of a graph by a few numbers; None where a number has no meaning.

    Shares of pages: dangling (no links), no in-links. Shares of links: reciprocal (the target links back),
    intra-site, near (ids less than 1,000 apart). Sweeps and ratio: see `convergence`.
    """
    from experiments.kernels import count_inside, count_mutual, count_near

    out, into = graph.out_degrees, graph.in_links.degrees()
    rows, links = graph.in_links, max(graph.links, 1)
    sweeps, ratio = convergence(graph)
    return {
        "pages": graph.pages,
        "links": graph.links,
        "links per page": graph.links / max(graph.pages, 1),
        "in exponent": exponent(into),
        "out exponent": exponent(out),
        "dangling": float((out == 0).mean()),
        "no in-links": float((into == 0).mean()),
        "reciprocal": count_mutual(graph.indptr, graph.indices, rows.indptr, rows.indices) / links,
        "intra-site": None if site is None else count_inside(graph.indptr, graph.indices, site) / links,
        "near": count_near(graph.indptr, graph.indices, NEAR) / links,
        "sweeps": sweeps,
        "ratio": ratio,
    }


def exponent(degrees: IntArray) -> float | None:
    """Estimate the power-law exponent of the tail of a degree distribution."""
    tail = degrees[degrees >= TAIL]
    return None if tail.size < 10 else 1 + tail.size / float(np.log(tail / (TAIL - 0.5)).sum())


def convergence(graph: Graph) -> tuple[int, float]:
    """Count the power sweeps PageRank needs, and the ratio of successive changes at the end."""
    from experiments.kernels import gather_sweep

    degrees, rows = graph.out_degrees, graph.in_links
    weight = np.divide(DAMPING, degrees, out=np.zeros(graph.pages), where=degrees > 0)
    dangling = degrees == 0
    rank = np.full(graph.pages, 1 / graph.pages)
    changes = [1.0]
    while changes[-1] > CHANGE:
        base = (1 - DAMPING + DAMPING * float(rank[dangling].sum())) / graph.pages
        changes.append(gather_sweep(rows.indptr, rows.indices, rank * weight, base, rank))
    back = min(10, len(changes) - 1)
    return len(changes) - 1, (changes[-1] / changes[-1 - back]) ** (1 / back)


def real_graphs(data: Path) -> Iterator[tuple[str, Graph, IntArray | None]]:
    """Yield name, graph and sites of each real graph; report missing ones."""
    readers: dict[str, Callable[[Path], Iterator[tuple[str, Graph, IntArray | None]]]] = {
        "cnr-2000": _cnr,
        "debian-docs": _debian,
        "hollins": _hollins,
        "walk-domains": _walk_domains,
        "cc2024-labelled": _common_crawl,
    }
    for name, read in readers.items():
        if (data / name).is_dir():
            yield from read(data / name)
        else:
            print(f"no {name} in {data}: skipped", file=sys.stderr)


def _cnr(folder: Path) -> Iterator[tuple[str, Graph, IntArray | None]]:
    from surveyor.graph.formats import read_graph

    yield "cnr-2000", read_graph(folder / "cnr-2000.graph"), None


def _debian(folder: Path) -> Iterator[tuple[str, Graph, IntArray | None]]:
    with np.load(folder / "graph.csr.npz") as arrays:
        graph = Graph(arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int32))
    with gzip.open(folder / "pages.tsv.gz", "rt") as lines:
        site = np.unique([line.split("\t")[1] for line in lines], return_inverse=True)[1]
    yield "debian-docs", graph, site
    sizes = np.bincount(site)
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    for number in np.flatnonzero((sizes >= SITE[0]) & (sizes < SITE[1])):
        pages = np.flatnonzero(site == number)
        inside = (site[sources] == number) & (site[graph.indices] == number)
        source, target = (np.searchsorted(pages, ids[inside]) for ids in (sources, graph.indices))
        yield "debian-docs, one site", Graph.from_arrays(source, target, pages.size), None


def _hollins(folder: Path) -> Iterator[tuple[str, Graph, IntArray | None]]:
    with gzip.open(folder / "edges.txt.gz", "rt") as lines:
        links = np.loadtxt(lines, np.int64) - 1
    yield "hollins", Graph.from_arrays(links[:, 0], links[:, 1]), None


def _walk_domains(folder: Path) -> Iterator[tuple[str, Graph, IntArray | None]]:
    for path in sorted(folder.glob("*-graph.json.gz")):
        with gzip.open(path, "rt") as file:
            links = json.load(file)["links"]
        yield "walk-domains", Graph.from_edges((link["src"], link["dst"]) for link in links), None


def _common_crawl(folder: Path) -> Iterator[tuple[str, Graph, IntArray | None]]:
    for path in sorted(folder.glob("*.edges.tsv.gz")):
        with gzip.open(path, "rt") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
        yield "cc2024-labelled", Graph.from_edges((row[0], row[1]) for row in rows), None


def synthetic_graphs() -> Iterator[tuple[str, Graph, IntArray | None]]:
    """Yield the presets unchanged, and R-MAT as a graph without locality."""
    for name, shape in PRESETS.items():
        web = synthetic_web(replace(shape, pages=min(shape.pages, LARGEST)), names=False)
        yield f"**{name}**", web.graph, None if shape.smallest_site == shape.largest_site else web.site
    yield "R-MAT 18 × 16", rmat(18, 16), None


def table(rows: Iterable[tuple[str, Measures]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; graphs of one name share a row, with medians and the range of sweeps."""
    yield "| graph | " + " | ".join(COLUMNS) + " |"
    yield "|---|" + "--:|" * len(COLUMNS)
    for name, group in groupby(rows, key=lambda row: row[0]):
        found = [measures for _, measures in group]
        cells = []
        for key, form in COLUMNS.items():
            values = [value for measures in found if (value := measures[key]) is not None]
            cells.append(format(median(values), form) if values else "–")
            if key == "sweeps" and len(found) > 1:
                cells[-1] += f" ({min(values):.0f}–{max(values):.0f})"
        label = name if len(found) == 1 else f"{name}, median of {len(found)}"
        yield f"| {label} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the comparison table."""
    parser = argparse.ArgumentParser(description="Compare synthetic webs with real graphs.")
    parser.add_argument("--data", type=Path, help="folder of real graphs; without it only the presets are measured")
    data: Path | None = parser.parse_args().data
    graphs = chain(real_graphs(data) if data else (), synthetic_graphs())
    for line in table((name, measure(graph, site)) for name, graph, site in graphs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
