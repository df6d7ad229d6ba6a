"""Assign the pages of a graph to pieces of similar work, at the borders of hosts.

Hosts are ordered by their names in reversed labels (`org.example`), so that the hosts of a domain are mostly in one
piece, and cut into runs of similar work: links into a page, and four more per page. A host is never divided, so one
giant host makes one large piece, and some pieces may be empty. Pages whose names have no host are divided anywhere.
Without names, pages are divided by id.

Pages of a piece are in the order of their ids, so that rows of a graph larger than memory are read in order.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyIntArray, IdArray, IntArray
from surveyor.graph.condense import blocks as name_blocks
from surveyor.graph.csr import Graph
from surveyor.graph.hosts_and_domains import SiteIndex
from surveyor.graph.names import Names

PER_PAGE = 4  # work of a page, in links


class Cut(NamedTuple):
    """The piece of each page: by ranges of ids, or by a table."""

    bounds: IntArray  # ranges: piece q has the ids bounds[q] to bounds[q + 1]; table: first place in `order`
    piece_of: IdArray | None  # table
    local_of: IdArray | None
    order: IntArray | None  # all pages, by piece

    @property
    def sizes(self) -> list[int]:
        """The number of pages of each piece."""
        return [int(size) for size in np.diff(self.bounds)]

    def locate(self, pages: AnyIntArray) -> tuple[AnyIntArray, AnyIntArray]:
        """Return the pieces and the local ids of pages."""
        if self.piece_of is not None and self.local_of is not None:
            return self.piece_of[pages], self.local_of[pages]
        pieces = np.searchsorted(self.bounds, pages, "right") - 1
        return pieces, pages - self.bounds[pieces]

    def pages_of(self, piece: int) -> IntArray:
        """Return the ids of the pages of a piece, ascending."""
        first, last = self.bounds[piece : piece + 2].tolist()
        return np.arange(first, last) if self.order is None else self.order[first:last]


def cut(graph: Graph, pieces: int) -> Cut:
    """Divide a graph into pieces of similar work."""
    return cut_pages(graph.names, graph.in_links.indptr, pieces)


def cut_pages(names: Names | None, indptr: IntArray, pieces: int) -> Cut:
    """Divide pages into pieces of similar work, given their names and the starts of the rows of their in-links."""
    if names is not None:
        return _by_table(_pieces_of(_hosts(names), indptr, pieces), pieces)
    pages = indptr.size - 1
    work = int(indptr[-1]) + PER_PAGE * pages
    marks = [step * (work / pieces) for step in range(1, pieces)]
    places = range(pages + 1)
    inner = [bisect_left(places, mark, key=lambda page: int(indptr[page]) + PER_PAGE * page) for mark in marks]
    return Cut(np.array([0, *inner, pages], np.int64), None, None, None)


def _hosts(names: Names) -> IntArray:
    """Return the place of the host of each page in the order of hosts; pages without a host follow one by one."""
    sites = SiteIndex("hosts")
    site_of = np.empty(len(names), np.int32)
    for first, some in name_blocks(names):
        site_of[first : first + len(some)] = sites.sites_of(some)
    _, new = sites.in_order()
    hosts = new[site_of].astype(np.int64)
    alone = np.flatnonzero(hosts < 0)
    hosts[alone] = len(sites) + np.arange(alone.size)
    return hosts


def _pieces_of(hosts: IntArray, indptr: IntArray, pieces: int) -> IdArray:
    """Return the piece of each page: the one in which the middle of its host's work lies."""
    work = np.diff(indptr) + PER_PAGE
    of_host = np.bincount(hosts, weights=work)  # whole numbers below 2**53: exact
    middle = np.cumsum(of_host) - of_host / 2
    total = float(of_host.sum()) or 1.0
    return np.minimum(middle * (pieces / total), pieces - 1).astype(np.int32)[hosts]


def _by_table(piece_of: IdArray, pieces: int) -> Cut:
    bounds = np.zeros(pieces + 1, np.int64)
    np.cumsum(np.bincount(piece_of, minlength=pieces), out=bounds[1:])
    if (piece_of[1:] >= piece_of[:-1]).all():
        return Cut(bounds, None, None, None)
    order = np.argsort(piece_of, kind="stable")
    local_of = np.empty(piece_of.size, np.int32)
    for first, last in pairwise(bounds.tolist()):
        local_of[order[first:last]] = np.arange(last - first)
    return Cut(bounds, piece_of, local_of, order)
