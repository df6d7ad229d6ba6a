"""Pages become hosts or registrable domains: the graph of who links to whom.

Place x links to place y if some page of x links to some page of y and they are not the same; however often, it is one
link. All places of the graph are kept, also those without links. Their ids follow their names read from the right
(`org.example`), as in Common Crawl's graphs: ties of scores are broken by id.

    >>> pages = Graph.from_edges([("https://www.a.example.org/1", "http://b.co.uk/"), ("http://b.co.uk/", "b.co.uk")])
    >>> domains = condense(pages)
    >>> list(domains.graph.names), domains.graph.links_of(1).tolist(), domains.of.tolist()
    (['example.org', 'b.co.uk'], [], [0, 1, 1])

Links are mapped some at a time and sorted as in `build`: with a folder, in bounded memory. Besides it takes 4 bytes a
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
from surveyor.stopping import Progress, silent
from surveyor.web.suffixes import Suffixes

NAMES = 1 << 18  # looked at at a time
LINKS = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class Condensed:
    """A graph of hosts or domains, and on which of them each page is."""

    graph: Graph  # its pages are the hosts or domains
    of: IdArray  # of each page: the id of its host or domain, -1 if it has none
    sizes: IntArray  # of each host or domain: how many pages are on it
    to: Level
    without_suffix: int  # hosts under no known suffix, each its own domain

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", read_only(self.of))
        object.__setattr__(self, "sizes", read_only(self.sizes))

    @property
    def without_host(self) -> int:
        """How many pages have names that are no URLs and no host names; they and their links are left out."""
        return int(self.of.size - self.sizes.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return what can be said in numbers."""
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
    progress: Progress = silent,
) -> Condensed:
    """Make the graph of hosts or domains of a graph whose pages have URLs or host names as names.

    `aliases` leads from a host or domain to the one that it is to count as, such as a mirror. With `folder` the graph
    goes there, and about `memory` bytes are taken for links on the way.
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
    told = provenance(places, of, graph.provenance) | {"pages_read": graph.pages, "links_read": graph.links}
    with Builder(memory=memory, scratch=None if target is None else target.parent) as builder:
        lost = 0
        for done, sources, targets in _mapped(graph, of):
            known = (sources >= 0) & (targets >= 0)
            across = known & (sources != targets)
            lost += int(known.size - np.count_nonzero(known))
            builder.add(sources[across], targets[across])
            progress("reading links", done, graph.links, "links")
        told |= {"self_links_dropped": graph.links - lost - builder.links_seen}
        if target is None:
            small = builder.finish(len(names), names, progress=progress)
            told = {**small.provenance, **told}
            small = Graph(small.indptr, small.indices, names=names, provenance=told)
        else:
            small = build_folder(
                builder, target, nodes=len(names), names=names, provenance=told, replace=replace, progress=progress
            )
    return Condensed(small, of, sizes_of(of, len(names)), to, int(told.get("hosts_under_no_suffix", 0)))


def blocks(names: Names) -> Iterator[tuple[int, Names]]:
    """Yield names some at a time, with the id of the first."""
    for first in range(0, len(names), NAMES):
        offsets = names.offsets[first : first + NAMES + 1]
        yield first, Names(offsets - offsets[0], names.blob[offsets[0] : offsets[-1]])


def sizes_of(of: IdArray, places: int) -> IntArray:
    """Count the pages of each place."""
    return np.bincount(of[of >= 0], minlength=places).astype(np.int64)


def provenance(places: Places, of: IdArray, before: Mapping[str, Any]) -> dict[str, Any]:
    """Say how places were found, and in which names and hosts they were not."""
    told: dict[str, Any] = {name: before[name] for name in ("source", "synthetic", "rng", "notes") if name in before}
    told |= {"condensed_to": places.to, "names_without_host": int(np.count_nonzero(of < 0))}
    if places.suffixes is not None:
        told |= {"suffixes": places.suffixes.about, "hosts_under_no_suffix": int(places.without_suffix.size)}
    return told


def _mapped(graph: Graph, of: IdArray) -> Iterator[tuple[int, IdArray, IdArray]]:
    """Yield how many links were read, and the places of both ends of the latest."""
    for start in range(0, graph.links, LINKS):
        stop = min(start + LINKS, graph.links)
        first = int(np.searchsorted(graph.indptr, start, "right")) - 1
        last = int(np.searchsorted(graph.indptr, stop))
        bounds: IntArray = np.clip(graph.indptr[first : last + 1], start, stop)
        yield stop, np.repeat(of[first:last], bounds[1:] - bounds[:-1]), of[graph.indices[start:stop]]
