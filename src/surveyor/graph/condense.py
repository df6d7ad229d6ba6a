"""Condense a page graph to a graph of hosts or registrable domains.

Site x links to site y ≠ x if some page of x links to some page of y; multiple links are merged into one. All sites
(hosts or domains) are kept, also those without links. Their ids follow their names in reversed label order
(`org.example`), as in Common Crawl's graphs: ties of scores are broken by id.

    >>> pages = Graph.from_edges([("https://www.a.example.org/1", "http://b.co.uk/"), ("http://b.co.uk/", "b.co.uk")])
    >>> domains = condense(pages)
    >>> list(domains.graph.names), domains.graph.links_of(1).tolist(), domains.site_of.tolist()
    (['example.org', 'b.co.uk'], [], [0, 1, 1])

Links are mapped in blocks and sorted as in `build`: with a folder, in bounded memory. In addition it takes 4 bytes per
page, and the names of hosts and domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from surveyor.arrays import IdArray, IntArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.adapters import GraphLike, simple_graph
from surveyor.graph.build import Builder
from surveyor.graph.csr import Graph
from surveyor.graph.folder import build_folder, check_free
from surveyor.graph.hosts_and_domains import Level, SiteIndex
from surveyor.graph.names import Names
from surveyor.stopping import ProgressCallback, silent
from surveyor.web.suffixes import Suffixes

NAMES = 1 << 18  # names processed at a time
LINKS = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class CondensedGraph:
    """A graph of hosts or domains, and the host or domain of each page."""

    graph: Graph  # its pages are the hosts or domains
    site_of: IdArray  # id of the host or domain of each page, -1 if it has none
    sizes: IntArray  # number of pages of each host or domain
    level: Level
    without_suffix: int  # hosts under no known suffix; each is its own domain

    def __post_init__(self) -> None:
        object.__setattr__(self, "site_of", read_only(self.site_of))
        object.__setattr__(self, "sizes", read_only(self.sizes))

    @property
    def without_host(self) -> int:
        """The number of pages whose names are neither URLs nor host names; they and their links are left out."""
        return int(self.site_of.size - self.sizes.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {
            self.level: self.graph.pages,
            "links": self.graph.links,
            "pages": int(self.site_of.size),
            "without_host": self.without_host,
            "without_suffix": self.without_suffix,
            "provenance": dict(self.graph.provenance),
        }

    def __repr__(self) -> str:
        sites = f"{self.graph.pages:,} {self.level} of {self.site_of.size:,} pages"
        return f"CondensedGraph({sites}, {self.graph.links:,} links)"


class CondenseOptions(TypedDict, total=False):
    """Options of `condense`."""

    suffixes: Suffixes | None  # public suffix list; by default the bundled one
    aliases: Mapping[str, str] | None  # a host or domain, and the one it counts as, such as a mirror and its original
    folder: Path | str | None  # write the graph there, in bounded memory
    replace: bool  # an existing graph in that folder
    memory: int | None  # bytes for links; default 1 GiB


def condense(
    graph: GraphLike,
    level: Level = "domains",
    *,
    progress: ProgressCallback = silent,
    **options: Unpack[CondenseOptions],
) -> CondensedGraph:
    """Build the graph of hosts or domains of a graph whose pages have URLs or host names as names.

    Options: `suffixes`, `aliases`, `folder`, `replace`, `memory` (see `CondenseOptions`).
    """
    graph = simple_graph(graph)
    if graph.names is None:
        raise UsageError(
            "the graph has no names, so the hosts of its pages are unknown",
            hint="build it from links between URLs or host names",
        )
    folder, replace = options.get("folder"), options.get("replace", False)
    target = None if folder is None else Path(folder)
    if target is not None:
        check_free(target, replace=replace)
    sites = SiteIndex(level, options.get("suffixes"), options.get("aliases"))
    site_of = np.empty(graph.pages, np.int32)
    for first, some in blocks(graph.names):
        site_of[first : first + len(some)] = sites.sites_of(some)
        progress("finding hosts", first + len(some), graph.pages, "pages")
    names, new = sites.in_order()
    site_of = new[site_of]
    about = provenance(sites, site_of, graph.provenance) | {"pages_read": graph.pages, "links_read": graph.links}
    with Builder(memory=options.get("memory", 1 << 30), scratch=None if target is None else target.parent) as builder:
        lost = 0
        for done, sources, targets in _mapped(graph, site_of):
            known = (sources >= 0) & (targets >= 0)
            across = known & (sources != targets)
            lost += int(known.size - np.count_nonzero(known))
            builder.add(sources[across], targets[across])
            progress("reading links", done, graph.links, "links")
        about |= {"self_links_dropped": graph.links - lost - builder.links_seen}
        if target is None:
            small = builder.finish(len(names), names, progress=progress)
            about = {**small.provenance, **about}
            small = Graph(small.indptr, small.indices, names=names, provenance=about)
        else:
            small = build_folder(
                builder, target, nodes=len(names), names=names, provenance=about, replace=replace, progress=progress
            )
    sizes, unlisted = sizes_of(site_of, len(names)), int(about.get("hosts_under_no_suffix", 0))
    return CondensedGraph(small, site_of, sizes, level, unlisted)


def blocks(names: Names) -> Iterator[tuple[int, Names]]:
    """Yield names in blocks, with the id of the first."""
    for first in range(0, len(names), NAMES):
        offsets = names.offsets[first : first + NAMES + 1]
        yield first, Names(offsets - offsets[0], names.blob[offsets[0] : offsets[-1]])


def sizes_of(site_of: IdArray, sites: int) -> IntArray:
    """Count the pages of each site."""
    return np.bincount(site_of[site_of >= 0], minlength=sites).astype(np.int64)


def provenance(sites: SiteIndex, site_of: IdArray, before: Mapping[str, Any]) -> dict[str, Any]:
    """Describe how sites were derived, and count the names without a host and the hosts without a known suffix."""
    about: dict[str, Any] = {name: before[name] for name in ("source", "synthetic", "rng", "notes") if name in before}
    about |= {"condensed_to": sites.level, "names_without_host": int(np.count_nonzero(site_of < 0))}
    if sites.suffixes is not None:
        about |= {"suffixes": sites.suffixes.about, "hosts_under_no_suffix": int(sites.without_suffix.size)}
    return about


def _mapped(graph: Graph, site_of: IdArray) -> Iterator[tuple[int, IdArray, IdArray]]:
    """Yield the number of links read so far, and the sites of both ends of the latest block."""
    for start in range(0, graph.links, LINKS):
        stop = min(start + LINKS, graph.links)
        first = int(np.searchsorted(graph.indptr, start, "right")) - 1
        last = int(np.searchsorted(graph.indptr, stop))
        bounds: IntArray = np.clip(graph.indptr[first : last + 1], start, stop)
        yield stop, np.repeat(site_of[first:last], bounds[1:] - bounds[:-1]), site_of[graph.indices[start:stop]]
