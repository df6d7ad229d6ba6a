"""The inputs: two real graphs where they are found, a synthetic web, and an expander as the adverse case.

Each becomes a folder with the same links as int32 arrays, as text and as gzip text, and the exact ranks.
Links of the real graphs and of the web are in the order of their sources, as crawls write them; those of
the expander are shuffled. The ranks of synthetic graphs are computed by power iteration in float64 until a sweep
changes less than 1e-15, and kept for later runs.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import Floats, Ids, SciPy, power_iteration

ROOT = Path(__file__).parent.parent
WEB_LINKS = 16_000_000
SMALL_LINKS = 1_000_000
Links = tuple[int, Ids, Ids]  # pages, sources, targets


class Absent(Exception):
    """A real graph is not in the folder of real graphs."""


@dataclass(frozen=True, slots=True)
class Input:
    """A folder with one graph in all its forms."""

    name: str
    kind: str  # "real", "web" or "expander"
    folder: Path
    pages: int
    links: int

    @property
    def text(self) -> Path:
        return self.folder / "links.tsv"

    @property
    def gz(self) -> Path:
        return self.folder / "links.tsv.gz"


@dataclass(frozen=True, slots=True)
class Source:
    """Where an input comes from."""

    kind: str
    links: Callable[[Path], Links]
    ranks: str = ""  # the file of exact ranks in the folder of real graphs


def data_folder(given: str | None) -> Path:
    """Return the folder of real graphs."""
    chosen = given or os.environ.get("SURVEYOR_DATA")
    return Path(chosen) if chosen else ROOT / "data"


def cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "surveyor" / "bench"


def prepare(name: str, data: Path, work: Path) -> Input:
    """Write one input into a folder of its own."""
    source = SOURCES[name]
    folder = work / name
    folder.mkdir(parents=True)
    pages, sources, targets = source.links(data)
    np.save(folder / "sources.npy", sources)
    np.save(folder / "targets.npy", targets)
    made = Input(name, source.kind, folder, pages, sources.size)
    write_text(made.text, made.gz, sources, targets)
    ranks = np.load(data / source.ranks) if source.ranks else exact_ranks(name, pages, sources, targets)
    np.save(folder / "ranks.npy", ranks)
    return made


def write_text(text: Path, gz: Path, sources: Ids, targets: Ids) -> None:
    """Write two columns of ids, plain and packed."""
    import pyarrow
    from isal import igzip_threaded
    from pyarrow import csv

    table = pyarrow.table({"source": sources, "target": targets})
    csv.write_csv(table, text, csv.WriteOptions(include_header=False, delimiter="\t"))
    packing: Any = igzip_threaded
    with text.open("rb") as plain, packing.open(gz, "wb", compresslevel=1, threads=2) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)


def exact_ranks(name: str, pages: int, sources: Ids, targets: Ids) -> Floats:
    """Return ranks that are exact to about 1e-14, from the cache if these very links were ranked before."""
    check = zlib.crc32(targets.data, zlib.crc32(sources.data, pages))
    path = cache_folder() / f"{name}-{check:08x}.npy"
    if path.is_file():
        kept: Floats = np.load(path)
        return kept
    tool = SciPy()
    tool.arrays(pages, sources, targets)
    follow, dangling = tool.graph
    ranks = power_iteration(follow, dangling, 1e-15)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".draft-{os.getpid()}.npy")
    np.save(draft, ranks)
    draft.rename(path)
    return ranks


def _cnr(data: Path) -> Links:
    from surveyor import read_graph

    path = data / "cnr-2000" / "cnr-2000.graph"
    if not path.is_file():
        raise Absent
    return _pairs(read_graph(path))


def _debian(data: Path) -> Links:
    path = data / "debian-docs" / "graph.csr.npz"
    if not path.is_file():
        raise Absent
    with np.load(path) as file:
        indptr, indices = file["indptr"], file["indices"].astype(np.int32)
    pages = indptr.size - 1
    return pages, np.repeat(np.arange(pages, dtype=np.int32), np.diff(indptr)), indices


def _web(links: int) -> Callable[[Path], Links]:
    def make(_: Path) -> Links:
        from surveyor import synthetic_web

        return _pairs(synthetic_web("web", links=links, names=False).graph)

    return make


def _expander(scale: int) -> Callable[[Path], Links]:
    """Give an R-MAT graph without the pages that no link touches, its links in random order."""

    def make(_: Path) -> Links:
        from surveyor import rmat

        pages, sources, targets = _pairs(rmat(scale, 16))
        seen = np.zeros(pages, np.bool_)
        seen[sources] = seen[targets] = True
        number = (np.cumsum(seen) - 1).astype(np.int32)
        order = np.random.default_rng(7).permutation(sources.size)
        return int(seen.sum()), number[sources[order]], number[targets[order]]

    return make


def _pairs(graph: Any) -> Links:
    sources = np.repeat(np.arange(graph.pages, dtype=np.int32), np.diff(graph.indptr))
    return graph.pages, sources, np.array(graph.indices)


SOURCES = {
    "cnr-2000": Source("real", _cnr, "cnr-2000/pagerank_no_self_links.npy"),
    "debian-docs": Source("real", _debian, "debian-docs/pagerank.npy"),
    "web": Source("web", _web(WEB_LINKS)),
    "rmat": Source("expander", _expander(20)),
    "small-web": Source("web", _web(SMALL_LINKS)),
    "small-rmat": Source("expander", _expander(16)),
}
FULL = ("cnr-2000", "debian-docs", "web", "rmat")
QUICK = ("cnr-2000",)
