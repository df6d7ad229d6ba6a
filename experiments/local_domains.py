"""Webs and local domains in them: sites, directories and topics, of real graphs and of synthetic webs.

Real graphs are in subfolders of one folder: `debian-docs` (CSR arrays and a list of pages), `cnr-2000`
(BVGraph), `hollins` and `polblogs` (edges), and `wikispeedia.tar.xz`. Missing graphs are skipped.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.graph.csr import Graph

SMALLEST, LARGEST = 200, 20_000  # pages of a domain
PAGES = 300_000  # of a synthetic web
SEEN = (7, 11)  # seeds of webs with tuning domains; others are fresh
CUTS = 36  # ranges of cnr-2000 that were evaluated before; others are fresh
GROUPS = {
    "python": ("python",),
    "sphinxy": ("python3.11", "sphinx", "cmake", "linux-doc", "sagemath"),
    "debian": ("debian", "harden", "installation", "developers", "aptitude"),
    "cpp": ("cppreference", "libstdc", "libboost", "wx3.2", "qtbase"),
    "db": ("db5.3", "postgresql", "sqlite3", "python-sqlalchemy"),
    "web": ("apache2", "tomcat", "nodejs", "python-django", "python-flask", "python-werkzeug"),
    "pyweb": ("python-django", "python-flask", "python-werkzeug", "python-jinja2", "python-babel", "python3.11"),
}
WORDS = ("config", "test", "array", "string", "tree", "error", "file", "time", "matrix")


@dataclass(frozen=True)
class Domain:
    """A local domain: some pages of a known web."""

    name: str
    family: str  # site, directory or topic
    pages: IdArray
    fresh: bool = False  # neither used for design nor evaluated before

    @property
    def part(self) -> str:
        """Whether the estimator was tuned on it: two in five were, by the hash of the name.

        Directories belong to the part of their site.
        """
        if self.fresh:
            return "fresh"
        name = self.name
        if name.startswith("debdir:"):
            name = "debian:" + name.removeprefix("debdir:").split("/")[0]
        digest = hashlib.md5(name.lower().encode(), usedforsecurity=False).hexdigest()
        return "test" if int(digest, 16) % 5 >= 2 else "tuning"


Web = tuple[str, Graph, list[Domain]]


def synthetic(seeds: tuple[int, ...]) -> Iterator[Web]:
    """Yield synthetic webs with fourteen sites and seven topics each."""
    from surveyor.graph.synthetic.generate import PRESETS, synthetic_web

    for seed in seeds:
        web = synthetic_web(replace(PRESETS["web"], pages=PAGES), rng=seed, names=False)
        rng, fresh = np.random.default_rng(seed), seed not in SEEN
        size = np.diff(web.first_page)
        domains = [
            Domain(f"synth{seed}:site{site}", "site", _run(web.first_page[site], web.first_page[site + 1]), fresh)
            for site in sorted(rng.permutation(np.flatnonzero((size >= 300) & (size <= LARGEST)))[:14])
        ]
        topics, counts = np.unique(web.topic, return_counts=True)
        domains += [
            Domain(f"synth{seed}:topic{topic}", "topic", _where(web.topic == topic), fresh)
            for topic in sorted(rng.permutation(topics[(counts >= 300) & (counts <= LARGEST)])[:7])
        ]
        yield f"synthetic {seed}", web.graph, domains


def real(data: Path) -> Iterator[Web]:
    """Yield the real graphs that are there."""
    readers: dict[str, Callable[[Path], Web]] = {
        "polblogs": _polblogs,
        "wikispeedia.tar.xz": _wikispeedia,
        "hollins": _hollins,
        "cnr-2000": _cnr,
        "debian-docs": _debian,
    }
    for name, read in readers.items():
        if (data / name).exists():
            yield read(data / name)


def _polblogs(folder: Path) -> Web:
    lines = lines_of(folder / "nodes.tsv.gz")
    camp = np.array([line[2] for line in lines])
    links = np.array([line[:2] for line in lines_of(folder / "edges.tsv.gz")]).astype(np.int64)
    domains = [Domain(f"polblogs:{name}", "topic", _where(camp == name)) for name in np.unique(camp)]
    return "polblogs", graph_of(links, len(lines)), domains


def _wikispeedia(path: Path) -> Web:
    found = articles(path)
    by_category: dict[str, set[int]] = defaultdict(set)
    for article, (top, *_) in found.categories:
        by_category[top].add(article)
    domains = [
        Domain(f"wiki:{name}", "topic", np.array(sorted(pages), np.int32))
        for name, pages in by_category.items()
        if 100 <= len(pages) <= 1_600
    ]
    return "wikispeedia", found.graph, domains


def _hollins(folder: Path) -> Web:
    links = np.array([line for line in lines_of(folder / "edges.txt.gz", " ") if line[0] != "#"]).astype(np.int64) - 1
    by_prefix: dict[str, list[int]] = defaultdict(list)
    for line in lines_of(folder / "links.dat.gz", " ")[1:]:
        parts = line[1].split("/")
        for depth in range(3, min(len(parts), 6)):
            by_prefix["/".join(parts[:depth])].append(int(line[0]) - 1)
    domains = [
        Domain(f"hollins:{prefix}", "directory", np.array(sorted(pages), np.int32))
        for prefix, pages in by_prefix.items()
        if SMALLEST <= len(pages) <= 2_500
    ]
    return "hollins", graph_of(links), domains


def _cnr(folder: Path) -> Web:
    """Cut the ids, which follow the URLs, where few links cross; there are no names."""
    from surveyor.graph.formats import read_graph

    graph = read_graph(folder / "cnr-2000.graph")
    sources = np.repeat(np.arange(graph.pages), np.diff(graph.indptr))
    graph = graph_of(np.column_stack([sources, graph.indices]), graph.pages)
    runs = [run for run in cut_ranges(graph, 12_000, 1_200) if 300 <= run[1] - run[0] <= LARGEST]
    order = np.random.default_rng(5).permutation(len(runs))
    domains = [
        Domain(f"cnr:{runs[at][0]}-{runs[at][1]}", "site", _run(*runs[at]), place >= CUTS)
        for place, at in enumerate(order)
    ]
    return "cnr-2000", graph, domains


def cut_ranges(graph: Graph, keep: int, least: int) -> Iterator[tuple[int, int]]:
    """Cut the ids of a graph where few links cross, until ranges of at most `keep` ids have no such place.

    Ranges of fewer than `least` ids are not cut.
    """
    sources = np.repeat(np.arange(graph.pages), np.diff(graph.indptr))
    first, last = np.minimum(sources, graph.indices) + 1, np.maximum(sources, graph.indices)
    near = last - first < LARGEST
    crossing = np.cumsum(
        np.bincount(first[near], minlength=graph.pages + 2) - np.bincount(last[near] + 1, minlength=graph.pages + 2)
    )

    def cut(begin: int, end: int) -> Iterator[tuple[int, int]]:
        margin = (end - begin) // 5
        where = begin + margin + int(np.argmin(crossing[begin + margin : end - margin])) if margin else begin
        if end - begin < least or (end - begin <= keep and crossing[where] > 60):
            yield begin, end
        else:
            yield from cut(begin, where)
            yield from cut(where, end)

    return cut(0, graph.pages)


def _debian(folder: Path) -> Web:
    with np.load(folder / "graph.csr.npz") as arrays:
        graph = Graph(arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int32))
    lines = lines_of(folder / "pages.tsv.gz")
    site, path = np.array([line[1] for line in lines]), [line[2] for line in lines]
    names, counts = np.unique(site, return_counts=True)
    size = dict(zip(names.tolist(), counts.tolist(), strict=True))
    domains = [Domain(f"debian:{name}", "site", _where(site == name)) for name in size if 220 <= size[name] <= LARGEST]
    inside: dict[tuple[str, str], list[int]] = defaultdict(list)
    for page, address in enumerate(path):
        parts = address.split("/")
        for depth in range(6, len(parts)):
            inside[str(site[page]), "/".join(parts[:depth])].append(page)
    largest = sorted(((len(pages), prefix, name) for (name, prefix), pages in inside.items()), reverse=True)
    taken: dict[str, list[list[int]]] = defaultdict(list)
    for count, prefix, name in largest:
        pages = inside[name, prefix]
        if 300 <= count <= 5_000 and count < 0.6 * size[name] and len(taken[name]) < 2 and pages not in taken[name]:
            taken[name].append(pages)
            label = f"debdir:{name}{prefix.removeprefix('/usr/share/doc')}"
            domains.append(Domain(label, "directory", np.array(pages, np.int32)))
    domains += [
        Domain(f"debtopic:{group}", "topic", _where(np.array([name.startswith(starts) for name in site])))
        for group, starts in GROUPS.items()
    ]
    files = [address.rsplit("/", 1)[-1].lower() for address in path]
    domains += [
        Domain(f"debword:{word}", "topic", _where(np.array([word in file for file in files]))) for word in WORDS
    ]
    return "debian-docs", graph, domains


def graph_of(links: IntArray, pages: int | None = None) -> Graph:
    """Make a graph without links of a page to itself."""
    kept = links[links[:, 0] != links[:, 1]]
    return Graph.from_arrays(kept[:, 0], kept[:, 1], pages)


def lines_of(path: Path, separator: str = "\t") -> list[list[str]]:
    """Read a compressed table."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        return [line.strip().split(separator) for line in file if line.strip()]


class Articles(NamedTuple):
    """The articles of Wikispeedia by number, their links, and their categories, each from the top category down."""

    number: dict[str, int]
    graph: Graph
    categories: list[tuple[int, list[str]]]


def articles(path: Path) -> Articles:
    """Read Wikispeedia from its archive."""
    with tarfile.open(path) as archive:
        tables = {name: _member(archive, f"wikispeedia/{name}.tsv") for name in ("articles", "links", "categories")}
    number = {line[0]: at for at, line in enumerate(tables["articles"])}
    links = [[number[a], number[b]] for a, b, *_ in tables["links"] if a in number and b in number]
    below = [(number[a], category.split(".")[1:]) for a, category, *_ in tables["categories"] if a in number]
    return Articles(number, graph_of(np.array(links), len(number)), below)


def _member(archive: tarfile.TarFile, name: str) -> list[list[str]]:
    file = archive.extractfile(name)
    if file is None:
        raise SystemExit(f"{name} is no file")
    text = io.TextIOWrapper(file, encoding="utf-8")
    return [line.strip().split("\t") for line in text if line.strip() and not line.startswith("#")]


def _where(chosen: np.ndarray) -> IdArray:
    return np.flatnonzero(chosen).astype(np.int32)


def _run(first: int, last: int) -> IdArray:
    return np.arange(first, last, dtype=np.int32)
