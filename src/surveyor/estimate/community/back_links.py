"""Links into the local pages that are known from elsewhere: from a file, a graph, another survey.

What a small crawl lacks most are links from pages that it never saw. A page of which such links are known counts as
read, though nobody fetched it: it has the links that are known, and as many others, which lead to nowhere known, as
make up its number of links; where that is not told either, it has as many as half of the pages read have at most.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

import numpy as np

from surveyor.arrays import IdArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.back_links import BackLinks, Linking
from surveyor.graph.csr import Graph
from surveyor.kernels.crawled_graph import CrawledGraph
from surveyor.kernels.mass import Rows
from surveyor.web.urls import normalise

Find = Callable[[str], int | None]


def from_graph(graph: Graph, local: Iterable[str]) -> BackLinks:
    """Take the pages of a graph that link to local pages, by name, with all their links."""
    names = graph.names
    if names is None:
        raise UsageError("the graph of back-links has no names", hint="give one with URLs")
    into = graph.in_links
    found = (names.find(name) for name in local)
    there = [into.indices[into.indptr[page] : into.indptr[page + 1]] for page in found if page is not None]
    sources = np.unique(np.concatenate([np.empty(0, np.int32), *there])).tolist()
    rows = {page: graph.links_of(page) for page in sources}
    return {names[page]: Linking(tuple(names[goal] for goal in row.tolist()), row.size) for page, row in rows.items()}


class Grown(NamedTuple):
    """The rows of a web, with those of pages that link to local ones."""

    rows: Rows
    web: int  # how many ids there are
    pages: IdArray  # that count as read from now on
    names: dict[int, str]  # of those that had no id before


def added(rows: Rows, web: int, known: CrawledGraph, local: Container[int], back: BackLinks, find: Find) -> Grown:
    """Add pages that link to local ones to the rows of a web; `find` knows pages by all their addresses.

    Pages that were read are left as they are. Links that lead to no known page lead to one that nobody can read.
    """
    usual = int(np.median(known.degrees + known.leaving)) if known.pages.size else 1
    nowhere, web = web, web + 1
    spelt = _Spelt(find)
    useful: dict[int | str, tuple[str, list[Linking]]] = {}  # by id, or by name if it has none: each page once
    for name, linking in back.items():
        page = spelt(name)
        if not _is_read(known, page) and any(spelt(target) in local for target in linking.targets):
            useful.setdefault(spelt.key(name), (name, []))[1].append(linking)
    names: dict[int, str] = {}
    ids: dict[int | str, int] = {}
    for key, (name, _) in useful.items():
        if isinstance(key, str):
            spelt.found[name], ids[key], names[web], web = web, web, name, web + 1
        else:
            ids[key] = key
    start = np.append(rows.start, np.zeros(web - rows.start.size, np.int64))
    end = np.append(rows.end, np.zeros(web - rows.end.size, np.int64))
    more: list[IdArray] = [rows.targets]
    used = rows.targets.size
    for key, (_, told) in useful.items():
        page = ids[key]
        targets = {spelt.key(target) for one in told for target in one.targets}
        goals = sorted({ids.get(goal, goal) for goal in targets if isinstance(goal, int) or goal in ids} - {page})
        degree = max(len(goals), max(one.degree for one in told) or max(usual, len(targets)))
        start[page], end[page], used = used, used + degree, used + degree
        more += [np.array(goals, np.int32), np.full(degree - len(goals), nowhere, np.int32)]
    grown = Rows(read_only(start), read_only(end), read_only(np.concatenate(more)))
    return Grown(grown, web, np.sort(np.array(list(ids.values()), np.int32)), names)


class _Spelt:
    """Finds pages by names as they are, or as the crawler spells them; remembers what it found."""

    def __init__(self, find: Find) -> None:
        self.found: dict[str, int | None] = {}
        self._find = find

    def __call__(self, name: str) -> int | None:
        if name not in self.found:
            page = self._find(name)
            spelt = normalise(name) if page is None else None
            self.found[name] = self._find(spelt) if spelt is not None else page
        return self.found[name]

    def key(self, name: str) -> int | str:
        """Return what tells a page from others: its id, or its name in the one spelling."""
        page = self(name)
        return (normalise(name) or name) if page is None else page


def _is_read(known: CrawledGraph, page: int | None) -> bool:
    if page is None:
        return False
    place = int(np.searchsorted(known.pages, page))
    return place < known.pages.size and int(known.pages[place]) == page
