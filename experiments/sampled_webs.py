"""Webs for experiments on sampled coverage: synthetic, real, and made up against the bound.

The adversarial webs have frontiers of which a random walk sees the decisive part rarely: `rare` pages that lead into a
closed community while all others lead back, residuals that differ by orders of magnitude, walks with a period, pages
that no link leads to, chains, link farms, endless trees, pages without links and pages that are gone. They are small,
so that a dense solve gives the true importance.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surveyor.arrays import ByteArray, FloatArray, IdArray, IntArray
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.sources.graph import GraphSource, Instant
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph
from surveyor.graph.synthetic.generate import PRESETS, WebShape, synthetic_web
from surveyor.outcome import Outcome
from surveyor.simulation.scenario import FETCHABLE, GONE, Scenario

DAMPING = 0.85
SITES = ("apache2-doc", "postgresql-doc-15", "python-django-doc", "git-doc", "nodejs-doc")  # of debian-docs
BALL = 3_000  # pages of the part of a large graph
SHAPES: dict[str, WebShape] = {
    "small": replace(PRESETS["small"], pages=800, largest_site=160),
    "site": replace(PRESETS["site"], pages=1_000, smallest_site=1_000, largest_site=1_000),
    "domains": replace(PRESETS["domains"], pages=800),
}


class Web(NamedTuple):
    """A graph, its seeds, and the status of each page."""

    graph: Graph
    seeds: IdArray
    outcomes: ByteArray


def synthetic(name: str, rng: int) -> Web:
    """Return a small synthetic web with gone and blocked pages and random seeds."""
    draw = np.random.default_rng([rng, 1])
    graph = synthetic_web(SHAPES[name], rng=rng, names=False).graph
    return spoilt(graph, draw, gone=float(draw.choice([0, 0.05])), blocked=float(draw.choice([0, 0, 0.03])))


def spoilt(graph: Graph, draw: np.random.Generator, *, gone: float = 0.0, blocked: float = 0.0) -> Web:
    """Return a graph with random seeds that link to others, and with random gone and blocked pages."""
    linking = np.flatnonzero(graph.out_degrees > 0)
    seeds = np.unique(draw.choice(linking, int(draw.integers(1, 6)))).astype(np.int32)
    outcomes = draw.choice(3, graph.pages, p=[1 - gone - blocked, gone, blocked]).astype(np.uint8)
    outcomes[seeds] = FETCHABLE
    return Web(graph, seeds, outcomes)


def dense_truth(web: Web, damping: float = DAMPING) -> FloatArray:
    """Return the importance of each page, by a dense solve."""
    pages = web.graph.pages
    teleport = np.zeros(pages)
    teleport[web.seeds] = 1 / web.seeds.size
    steps = np.zeros((pages, pages))
    for page in range(pages):
        links = web.graph.links_of(page) if web.outcomes[page] != GONE else np.empty(0, np.int32)
        if links.size:
            np.add.at(steps[page], links, 1 / links.size)
        else:
            steps[page] = teleport
    solved = np.linalg.solve(np.eye(pages) - damping * steps.T, (1 - damping) * teleport)
    return solved.astype(np.float64)


def scenario(web: Web, damping: float = DAMPING) -> Scenario:
    """Return the web as a scenario of a simulation."""
    return Scenario(web.graph, web.seeds, damping, web.outcomes)


def real(data: Path) -> Iterator[tuple[str, Graph]]:
    """Yield the real graphs in a folder; of `debian-docs`, single sites."""
    if (hollins := data / "hollins" / "edges.txt.gz").exists():
        with gzip.open(hollins, "rt") as lines:
            links = np.loadtxt(lines, np.int64) - 1
        yield "hollins", Graph.from_arrays(links[:, 0], links[:, 1])
    if (blogs := data / "polblogs" / "edges.tsv.gz").exists():
        with gzip.open(blogs, "rt") as lines:
            links = np.array([[int(cell) for cell in line.split("\t")[:2]] for line in lines if line[0].isdigit()])
        yield "polblogs", Graph.from_arrays(*np.unique(links, return_inverse=True)[1].reshape(-1, 2).T)
    if (articles := data / "wikispeedia.tar.xz").exists():
        yield "wikispeedia", _articles(articles)
    if (data / "debian-docs" / "graph.csr.npz").exists():
        yield from _sites(data / "debian-docs")
    if (cnr := data / "cnr-2000" / "cnr-2000.graph").exists():
        yield "cnr-2000", read_graph(cnr)


def _articles(path: Path) -> Graph:
    with tarfile.open(path) as files:
        for file in files:
            if file.name.endswith("links.tsv") and (found := files.extractfile(file)) is not None:
                lines = [line.rstrip("\n").split("\t") for line in TextIOWrapper(found, "utf-8")]
                return Graph.from_edges((line[0], line[1]) for line in lines if len(line) == 2)
    raise ValueError("no links.tsv")


def _sites(folder: Path) -> Iterator[tuple[str, Graph]]:
    with np.load(folder / "graph.csr.npz") as arrays:
        graph = Graph(arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int32))
    with gzip.open(folder / "pages.tsv.gz", "rt") as lines:
        site = np.array([line.split("\t")[1] for line in lines])
    for name in SITES:
        yield name, induced(graph, np.flatnonzero(site == name))


def induced(graph: Graph, pages: IntArray) -> Graph:
    """Return the graph of some pages and the links between them."""
    inside = np.zeros(graph.pages, np.bool_)
    inside[pages] = True
    ids = np.cumsum(inside) - 1
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    kept = inside[sources] & inside[graph.indices]
    return Graph.from_arrays(ids[sources[kept]], ids[graph.indices[kept]], int(inside.sum()))


def part(graph: Graph, draw: np.random.Generator, most: int = BALL) -> Graph:
    """Return a graph, or the first pages that a breadth-first search from a random page finds in a larger one."""
    if graph.pages <= most:
        return graph
    found: dict[int, None] = {int(draw.choice(np.flatnonzero(graph.out_degrees > 2))): None}
    queue = list(found)
    for page in queue:
        fresh = [int(link) for link in graph.links_of(page) if int(link) not in found]
        queue += fresh
        found.update(dict.fromkeys(fresh))
        if len(found) >= most:
            break
    return induced(graph, np.array(list(found)[:most]))


class Draft:
    """Rows of links, added page by page."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []

    def add(self, count: int = 1) -> list[int]:
        """Add pages without links."""
        first = len(self.rows)
        self.rows += [[] for _ in range(count)]
        return list(range(first, first + count))

    def ring(self, count: int) -> list[int]:
        """Add pages that lead only to each other."""
        pages = self.add(count)
        for number, page in enumerate(pages):
            self.rows[page] = [pages[(number + 1) % count], pages[(number + 2) % count]]
        return pages

    def web(self, seeds: Sequence[int] = (0,), gone: Sequence[int] = ()) -> Web:
        """Return the web."""
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in self.rows])]).astype(np.int64)
        flat = np.array([link for row in self.rows for link in row], np.int32)
        outcomes = np.zeros(len(self.rows), np.uint8)
        outcomes[list(gone)] = GONE
        return Web(Graph(indptr, flat), np.array(seeds, np.int32), outcomes)


def rare(draw: np.random.Generator) -> Web:
    """Leaves of a hub lead back to it, but for a rare share that leads into a closed community."""
    draft = Draft()
    leaves = draft.add(1 + int(draw.integers(150, 400)))[1:]
    trap = draft.ring(30)
    odd = set(draw.choice(leaves, max(1, int(draw.uniform(0.005, 0.08) * len(leaves))), replace=False).tolist())
    draft.rows[0] = leaves
    for leaf in leaves:
        draft.rows[leaf] = [trap[int(draw.integers(30))]] if leaf in odd else [0]
    return draft.web()


def one_way(draw: np.random.Generator) -> Web:
    """Each leaf of a hub leads to a closed pair of pages of its own."""
    draft = Draft()
    leaves = draft.add(1 + int(draw.integers(1_500, 2_000)))[1:]
    draft.rows[0] = leaves
    for leaf in leaves:
        first, second = draft.add(2)
        draft.rows[leaf], draft.rows[first], draft.rows[second] = [first], [second], [first]
    return draft.web()


def deep(draw: np.random.Generator) -> Web:
    """Leaves lead on to a second level, of which a rare share leads into a closed community."""
    draft = Draft()
    leaves = draft.add(1 + int(draw.integers(80, 160)))[1:]
    draft.rows[0] = leaves
    trap = draft.ring(40)
    for leaf in leaves:
        second = draft.add(2)
        draft.rows[leaf] = [0, *second]
        for page in second:
            draft.rows[page] = [trap[int(draw.integers(40))]] if draw.random() < 0.04 else [0]
    return draft.web()


def skewed(draw: np.random.Generator) -> Web:
    """Residuals halve from page to page; the tail of a chain of hubs leads into a closed community."""
    draft = Draft()
    hubs = draft.add(12)
    trap = draft.ring(20)
    for hub, following in zip(hubs, [*hubs[1:], trap[0]], strict=True):
        leaves = draft.add(int(draw.integers(5, 40)))
        draft.rows[hub] = [following] * len(leaves) + leaves
        for leaf in leaves:
            draft.rows[leaf] = [trap[0]] if draw.random() < 0.05 else [hubs[0]]
    return draft.web()


def periodic(draw: np.random.Generator) -> Web:
    """Pages in groups; each group leads only to the next one."""
    draft = Draft()
    groups = [draft.add(int(draw.integers(20, 60))) for _ in range(int(draw.integers(2, 9)))]
    for group, following in zip(groups, [*groups[1:], groups[0]], strict=True):
        for page in group:
            draft.rows[page] = draw.choice(following, int(draw.integers(1, 6))).tolist()
    return draft.web()


def disconnected(draw: np.random.Generator) -> Web:
    """Seeds in components of very different sizes, without a link between them."""
    draft = Draft()
    seeds = []
    for size in (3, 40, 150, 150):
        pages = draft.add(size)
        seeds.append(pages[0])
        for page in pages:
            draft.rows[page] = draw.choice(pages, int(draw.integers(1, 5))).tolist()
    return draft.web(seeds)


def chain(draw: np.random.Generator) -> Web:
    """Long chains; few of their pages lead back."""
    draft = Draft()
    draft.add()
    for _ in range(int(draw.integers(5, 15))):
        pages = draft.add(30)
        draft.rows[0].append(pages[0])
        back = draw.uniform(0, 0.3)
        for page in pages:
            draft.rows[page] = [page + 1] if page != pages[-1] else [0]
            if draw.random() < back:
                draft.rows[page].append(0)
    return draft.web()


def farm(draw: np.random.Generator) -> Web:
    """A web whose pages sometimes link to a link farm, which never links back."""
    draft = Draft()
    pages = draft.add(150)
    hijacked = draft.add(int(draw.integers(50, 200)))
    target = hijacked[0]
    draft.rows[target] = hijacked[1:]
    for page in hijacked[1:]:
        draft.rows[page] = [target]
    for page in pages:
        draft.rows[page] = draw.choice(pages, 4).tolist() + ([target] if draw.random() < 0.03 else [])
    return draft.web()


def trap(draw: np.random.Generator) -> Web:
    """A site with a calendar: pages that lead to further pages, five hundred of them."""
    draft = Draft()
    pages = draft.add(100)
    days = draft.add(500)
    for page in pages:
        draft.rows[page] = draw.choice(pages, 3).tolist()
    draft.rows[int(draw.choice(pages[:20]))].append(days[0])
    for number, day in enumerate(days):
        draft.rows[day] = days[number + 1 : number + 3] or [pages[0]]
    return draft.web()


def dangling(draw: np.random.Generator) -> Web:
    """Most pages have no links; some are gone, some lead into a closed community."""
    draft = Draft()
    pages = draft.add(60)
    ring = draft.ring(25)
    gone: list[int] = []
    for page in pages:
        leaves = draft.add(6)
        draft.rows[page] = draw.choice(pages, 2).tolist() + leaves
        for leaf in leaves:
            kind = draw.random()
            if kind < 0.05:
                draft.rows[leaf] = [ring[0]]
            elif kind < 0.4:
                gone.append(leaf)
                draft.rows[leaf] = [pages[0]]  # a gone page has no links, whatever it had
    return draft.web(pages[:2], gone)


FAMILIES: dict[str, Callable[[np.random.Generator], Web]] = {
    family.__name__: family for family in (rare, deep, skewed, periodic, disconnected, chain, farm, trap, dangling)
}


class ByOrder(Instant):
    """A web that answers by request order: a page that is requested for a walk links to the first seed only.

    This breaks the assumption of sampled coverage.
    """

    def __init__(self, web: Web, walks: CoverageWalks) -> None:
        self._web, self._own, self._walks = web, GraphSource(web.graph, web.outcomes), walks
        self._deceived: set[int] = set()

    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Yield an outcome for each page."""
        wanted = set(self._walks.wanted.tolist())
        for page, outcome in zip(pages, self._own.answers(pages), strict=True):
            if page in wanted and outcome.kind == "fetched":
                self._deceived.add(page)
                yield Outcome(page, "fetched", self._web.seeds[:1])
            else:
                yield outcome

    def as_fetched(self) -> Web:
        """Return the web in which the pages that were fetched have the links that they were fetched with."""
        draft = Draft()
        seed = int(self._web.seeds[0])
        pages = range(self._web.graph.pages)
        draft.rows = [[seed] if page in self._deceived else self._web.graph.links_of(page).tolist() for page in pages]
        return draft.web(self._web.seeds.tolist())
