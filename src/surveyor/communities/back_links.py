"""Links into the local pages that are known from elsewhere: from a file, a graph, another survey.

What a small crawl lacks most are links from pages that it never saw. A page of which such links are known counts as
read, though nobody fetched it: it has the links that are known, and as many others, which lead to nowhere known, as
make up its number of links; where that is not told either, it has as many as half of the pages read have at most.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.kernels.known import Known
from surveyor.kernels.mass import Rows
from surveyor.urls import normalise

if TYPE_CHECKING:
    pass

UNTOLD = 0  # the degree of a page whose number of links nobody knows
Find = Callable[[str], int | None]


@dataclass(frozen=True, slots=True, eq=False)
class BackLinks:
    """Pages outside, the local pages that each links to, and how many links it has in all."""

    sources: tuple[str, ...]
    indptr: IntArray
    targets: IdArray  # ids of local pages
    degrees: IntArray

    @property
    def links(self) -> int:
        """How many links into the local domain there are."""
        return int(self.targets.size)


def from_file(path: Path | str, find: Find) -> BackLinks:
    """Read a table of links: source, target and, if known, the links of the source, with tabs or commas between.

    Only links to pages that `find` knows count; names are tried as they are, and as the crawler spells them.
    """
    pairs: list[tuple[str, int, int]] = []
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(file, 1):
                text = line.strip()
                if not text or text.startswith("#"):
                    continue
                cells = text.split("\t") if "\t" in text else next(csv.reader([text]))
                if number == 1 and cells[0].strip().lower() in ("source", "from"):
                    continue
                pairs += _pair(path, number, [cell.strip() for cell in cells], find)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(
            f"the back-links in {path} cannot be read: {why}", hint="source and target in each line"
        ) from error
    if not pairs:
        raise UsageError(
            f"{path} has no link to a local page", hint="each line holds two URLs: the page that links, the local page"
        )
    return _gathered(pairs)


def _pair(path: Path | str, number: int, cells: list[str], find: Find) -> list[tuple[str, int, int]]:
    if len(cells) < 2 or (len(cells) > 2 and cells[2] and not cells[2].isdecimal()):
        raise UsageError(
            f"line {number} of {path} is no link",
            hint="source, target and perhaps the number of links, with tabs between",
        )
    target = _found(cells[1], find)
    degree = int(cells[2]) if len(cells) > 2 and cells[2] else UNTOLD
    return [] if target is None else [(normalise(cells[0]) or cells[0], target, degree)]


def _found(name: str, find: Find) -> int | None:
    there = find(name)
    spelt = normalise(name) if there is None else None
    return find(spelt) if spelt is not None else there


def from_graph(graph: Graph, names: Iterable[tuple[str, int]]) -> BackLinks:
    """Take the pages of a graph that link to local pages, given by name and id; all their links are counted."""
    if graph.names is None:
        raise UsageError("the graph of back-links has no names", hint="give one with URLs")
    pairs: list[tuple[str, int, int]] = []
    into, degrees = graph.in_links, graph.out_degrees
    for name, page in names:
        there = graph.names.find(name)
        if there is not None:
            sources = into.indices[into.indptr[there] : into.indptr[there + 1]]
            pairs += [(graph.names[int(source)], page, int(degrees[source])) for source in sources]
    if not pairs:
        raise UsageError("the back-links lead to no local page", hint="names of pages must be spelt as in the survey")
    return _gathered(pairs)


def _gathered(pairs: list[tuple[str, int, int]]) -> BackLinks:
    """Put the links of each page together."""
    rows: dict[str, dict[int, None]] = {}
    degrees: dict[str, int] = {}
    for source, target, degree in pairs:
        rows.setdefault(source, {})[target] = None
        degrees[source] = max(degree, degrees.get(source, UNTOLD))
    sizes = [len(row) for row in rows.values()]
    targets = [target for row in rows.values() for target in row]
    return BackLinks(
        tuple(rows),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array(targets, np.int32),
        np.array([degrees[source] for source in rows], np.int64),
    )


def added(rows: Rows, web: int, known: Known, back: BackLinks, find: Find) -> tuple[Rows, int, IdArray]:
    """Add pages with known back-links to the rows of a web; return the rows, how many ids there are, and the new pages.

    Pages that were read are left as they are. Links that are not known lead to one page that nobody can read.
    """
    usual = int(np.median(known.degrees + known.leaving)) if known.pages.size else 1
    nowhere, web = web, web + 1
    start = np.append(rows.start, np.zeros(web - rows.start.size, np.int64))
    end = np.append(rows.end, np.zeros(web - rows.end.size, np.int64))
    more: list[IdArray] = []
    used, fresh, ids = rows.targets.size, [], []
    for entry, name in enumerate(back.sources):
        page = find(name)
        if page is not None and _is_read(known, page):
            continue
        links = back.targets[back.indptr[entry] : back.indptr[entry + 1]]
        others = max(0, (int(back.degrees[entry]) or usual) - links.size)
        if page is None:
            page, web = web, web + 1
            fresh.append((used, used + links.size + others))
        else:
            start[page], end[page] = used, used + links.size + others
        more += [links, np.full(others, nowhere, np.int32)]
        used += links.size + others
        ids.append(page)
    begins, ends = np.array(fresh, np.int64).reshape(-1, 2).T
    grown = Rows(np.append(start, begins), np.append(end, ends), np.concatenate([rows.targets, *more]))
    return grown, web, np.sort(np.array(ids, np.int32))


def _is_read(known: Known, page: int) -> bool:
    place = int(np.searchsorted(known.pages, page))
    return place < known.pages.size and int(known.pages[place]) == page
