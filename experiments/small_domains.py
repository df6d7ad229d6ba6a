"""Small local domains of real webs, divided by name into tuning and test domains before any of them was measured.

A domain has 100 to 1,500 pages: sites and folders of documentation (`debian-docs`), folders of a university site
(`hollins`), id ranges between which few links cross (`cnr-2000`; ids follow URLs), and categories of an encyclopedia
(`wikispeedia`). Domains of one web are disjoint, except categories. A domain with fewer than ten links to outside
pages has nothing to follow and is left out.

The part of a domain follows from the hash of its name (`local_domains.Domain.part`). A folder belongs to the part of
its site; an id range that overlaps one on which an estimator was tuned before is a tuning domain, whatever its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments import local_domains
from experiments.local_domains import Domain, articles, cut_ranges, lines_of
from surveyor.arrays import IdArray
from surveyor.graph.csr import Graph

SMALLEST, LARGEST = 100, 1_500  # pages of a domain
PER_SITE = 3  # folders of one site, so that no site dominates
RANGES = 70  # of cnr-2000
LINKS_OUT = 10


@dataclass(frozen=True)
class SmallDomain(Domain):
    """A small local domain; `group` decides on its part if it is not the name."""

    group: str = ""
    tuned_before: bool = False

    @property
    def part(self) -> str:
        """Whether estimators may be tuned on it (`tuning`) or not (`test`)."""
        return "tuning" if self.tuned_before else Domain(self.group or self.name, self.family, self.pages).part


Web = tuple[str, Graph, list[SmallDomain]]


def real(data: Path) -> Iterator[Web]:
    """Yield the real webs that are there, with their small domains."""
    for name, graph, domains in local_domains.real(data):
        if name == "debian-docs":
            small = _folders(data / name)
        elif name == "hollins":
            small = _university(data / name)
        elif name == "cnr-2000":
            small = _ranges(graph, domains)
        elif name == "wikispeedia":
            small = _categories(data / "wikispeedia.tar.xz")
        else:
            continue
        yield name, graph, [one for one in small if _links_out(graph, one.pages) >= LINKS_OUT]


def _folders(folder: Path) -> Iterator[SmallDomain]:
    """Select sites and folders, the largest disjoint ones of each site."""
    inside: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for page, (_, site, path, *_) in enumerate(lines_of(folder / "pages.tsv.gz")):
        inside[site][""].append(page)
        parts = path.split("/")
        for depth in range(5, len(parts)):
            inside[site]["/".join(parts[:depth])].append(page)
    for site, found in inside.items():
        for prefix, pages in _disjoint(found, PER_SITE):
            label = prefix.removeprefix("/usr/share/doc") if prefix else ""
            yield SmallDomain(f"debian:{site}{label}", "directory" if prefix else "site", pages, group=f"debian:{site}")


def _university(folder: Path) -> Iterator[SmallDomain]:
    inside: dict[str, list[int]] = defaultdict(list)
    for number, address, *_ in lines_of(folder / "links.dat.gz", " ")[1:]:
        parts = address.split("/")
        for depth in range(3, len(parts)):
            inside["/".join(parts[:depth])].append(int(number) - 1)
    for prefix, pages in _disjoint(inside, len(inside)):
        yield SmallDomain(f"hollins:{prefix}", "directory", pages)


def _disjoint(inside: dict[str, list[int]], most: int) -> Iterator[tuple[str, IdArray]]:
    """Yield the largest folders that fit and do not overlap."""
    taken: set[int] = set()
    fits = sorted((-len(pages), prefix) for prefix, pages in inside.items() if SMALLEST <= len(pages) <= LARGEST)
    for _, prefix in fits:
        if most and taken.isdisjoint(inside[prefix]):
            taken.update(inside[prefix])
            most -= 1
            yield prefix, np.array(sorted(inside[prefix]), np.int32)


def _ranges(graph: Graph, before: Iterable[Domain]) -> Iterator[SmallDomain]:
    tuned = np.zeros(graph.pages, np.bool_)
    for domain in before:
        tuned[domain.pages] |= domain.part == "tuning"
    runs = [run for run in cut_ranges(graph, LARGEST, 2 * SMALLEST) if SMALLEST <= run[1] - run[0] <= LARGEST]
    for at in np.random.default_rng(22).permutation(len(runs))[:RANGES]:
        pages = np.arange(*runs[at], dtype=np.int32)
        name = f"cnr:{runs[at][0]}-{runs[at][1]}"
        yield SmallDomain(name, "site", pages, tuned_before=bool(tuned[pages].any()))


def _categories(path: Path) -> Iterator[SmallDomain]:
    """Select subcategories; those of one category belong to the same part."""
    inside: dict[tuple[str, str], set[int]] = defaultdict(set)
    for article, category in articles(path).categories:
        inside[category[0], ".".join(category[:2])].add(article)
    for (top, name), pages in inside.items():
        if SMALLEST <= len(pages) <= LARGEST:
            yield SmallDomain(f"wiki:{name}", "topic", np.array(sorted(pages), np.int32), group=f"wiki:{top}")


def _links_out(graph: Graph, pages: IdArray) -> int:
    local = np.zeros(graph.pages, np.bool_)
    local[pages] = True
    return int(sum((~local[graph.indices[graph.indptr[page] : graph.indptr[page + 1]]]).sum() for page in pages))
