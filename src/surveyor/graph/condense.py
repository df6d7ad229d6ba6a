"""Condense a page graph to a graph of hosts or registrable domains.

Place x links to place y ≠ x if some page of x links to some page of y; multiple links are merged into one. All places
of the graph are kept, also those without links. Their ids follow their names in reversed label order (`org.example`),
as in Common Crawl's graphs: ties of scores are broken by id.

    >>> pages = Graph.from_edges([("https://www.a.example.org/1", "http://b.co.uk/"), ("http://b.co.uk/", "b.co.uk")])
    >>> domains = condense(pages)
    >>> list(domains.graph.names), domains.graph.links_of(1).tolist(), domains.of.tolist()
    (['example.org', 'b.co.uk'], [], [0, 1, 1])

Links are mapped in blocks and sorted as in `build`: with a folder, in bounded memory. In addition it takes 4 bytes per
page, and the names of hosts and domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import IdArray, IntArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.build import Builder
from surveyor.graph.csr import Graph
from surveyor.graph.folder import build_folder, check_free
from surveyor.graph.names import Names
from surveyor.graph.places import Level, Places
from surveyor.stopping import ProgressCallback, silent
from surveyor.web.suffixes import Suffixes

NAMES = 1 << 18  # names processed at a time
LINKS = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class Condensed:
    """A graph of hosts or domains, and the host or domain of each page."""

    graph: Graph  # its pages are the hosts or domains
    of: IdArray  # id of the host or domain of each page, -1 if it has none
    sizes: IntArray  # number of pages of each host or domain
    to: Level
    without_suffix: int  # hosts under no known suffix; each is its own domain

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", read_only(self.of))
        object.__setattr__(self, "sizes", read_only(self.sizes))

    @property
    def without_host(self) -> int:
        """The number of pages whose names are neither URLs nor host names; they and their links are left out."""
        return int(self.of.size - self.sizes.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {
            self.to: self.graph.pages, "links": self.graph.links, "pages": int(self.of.size),
            "without_host": self.without_host, "without_suffix": self.without_suffix,
            "provenance": dict(self.graph.provenance),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Condensed({self.graph.pages:,} {self.to} of {self.of.size:,} pages, {self.graph.links:,} links)"


def condense(
    graph: Graph,
    to: Level = "domains",
    *,
    suffixes: Suffixes | None = None,
    aliases: Mapping[str, str] | None = None,
    folder: Path | str | None = None,
    replace: bool = False,
    memory: int | None = 1 << 30,
    progress: ProgressCallback = silent,
) -> Condensed:
    """Build the graph of hosts or domains of a graph whose pages have URLs or host names as names.

    `aliases` maps a host or domain to the one it counts as, such as a mirror to its original. With `folder` the graph
    is written there, and about `memory` bytes are used for links.
    """
    if graph.names is None:
        raise UsageError(
            "this graph has no names, so the hosts of its pages are not known",
            hint="build it from links between URLs or host names",
        )
    target = None if folder is None else Path(folder)
    if target is not None:
        check_free(target, replace=replace)
    places = Places(to, suffixes, aliases)
    of = np.empty(graph.pages, np.int32)
    for first, some in blocks(graph.names):
        of[first : first + len(some)] = places.of(some)
        progress("finding hosts", first + len(some), graph.pages, "pages")
    names, new = places.in_order()
    of = new[of]
    about = provenance(places, of, graph.provenance) | {"pages_read": graph.pages, "links_read": graph.links}
    with Builder(memory=memory, scratch=None if target is None else target.parent) as builder:
        lost = 0
        for done, sources, targets in _mapped(graph, of):
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
    return Condensed(small, of, sizes_of(of, len(names)), to, int(about.get("hosts_under_no_suffix", 0)))


def blocks(names: Names) -> Iterator[tuple[int, Names]]:
    """Yield names in blocks, with the id of the first."""
    for first in range(0, len(names), NAMES):
        offsets = names.offsets[first : first + NAMES + 1]
        yield first, Names(offsets - offsets[0], names.blob[offsets[0] : offsets[-1]])


def sizes_of(of: IdArray, places: int) -> IntArray:
    """Count the pages of each place."""
    return np.bincount(of[of >= 0], minlength=places).astype(np.int64)


def provenance(places: Places, of: IdArray, before: Mapping[str, Any]) -> dict[str, Any]:
    """Describe how places were derived, and count the names and hosts for which there is none."""
    about: dict[str, Any] = {name: before[name] for name in ("source", "synthetic", "rng", "notes") if name in before}
    about |= {"condensed_to": places.to, "names_without_host": int(np.count_nonzero(of < 0))}
    if places.suffixes is not None:
        about |= {"suffixes": places.suffixes.about, "hosts_under_no_suffix": int(places.without_suffix.size)}
    return about


def _mapped(graph: Graph, of: IdArray) -> Iterator[tuple[int, IdArray, IdArray]]:
    """Yield the number of links read so far, and the places of both ends of the latest block."""
    for start in range(0, graph.links, LINKS):
        stop = min(start + LINKS, graph.links)
        first = int(np.searchsorted(graph.indptr, start, "right")) - 1
        last = int(np.searchsorted(graph.indptr, stop))
        bounds: IntArray = np.clip(graph.indptr[first : last + 1], start, stop)
        yield stop, np.repeat(of[first:last], bounds[1:] - bounds[:-1]), of[graph.indices[start:stop]]
