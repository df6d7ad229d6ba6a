"""Back-links from external sources: server logs, search consoles, back-link services and other graphs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

import numpy as np

from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.streams import decompressed

UNKNOWN = ("", "-")  # how logs write an unknown page
MAX_DEGREE = 1_000_000  # cap on the out-degree of a page: with more links, each passes on a negligible share
UNKNOWN_DEGREE = 0


@dataclass(frozen=True, slots=True)
class LinkingPage:
    """A page outside the graph: the names of the pages it links to, and its total number of links."""

    targets: tuple[str, ...]
    degree: int = UNKNOWN_DEGREE


BackLinks = Mapping[str, LinkingPage]  # by the name of the linking page


def read_back_link_table(path: Path | str) -> BackLinks:
    """Read a table of links: source, target and optionally the out-degree of the source, tab- or comma-separated."""
    rows: dict[str, dict[str, None]] = {}
    degrees: dict[str, int] = {}
    try:
        with decompressed(Path(path)) as (file, _):
            read = TextIOWrapper(file, "utf-8-sig", newline="")
            lines = ((number, line.strip()) for number, line in enumerate(read, 1))
            numbered = [(number, text) for number, text in lines if text and not text.startswith("#")]
    except (InputError, UnicodeDecodeError) as error:
        reason = error.problem if isinstance(error, InputError) else "it is not UTF-8 text"
        reason = reason.removeprefix(f"{path} cannot be read: ")
        problem = f"the back-links in {path} cannot be read: {reason}"
        raise UsageError(problem, hint="give a file with source and target in each line") from error
    for index, (number, text) in enumerate(numbered):
        cells = [cell.strip() for cell in (text.split("\t") if "\t" in text else next(csv.reader([text])))]
        if index == 0 and cells[0].lower() in ("source", "from"):
            continue
        source, target, degree = _link(path, number, cells)
        if source not in UNKNOWN:
            rows.setdefault(source, {})[target] = None
            degrees[source] = min(max(degree, degrees.get(source, UNKNOWN_DEGREE)), MAX_DEGREE)
    return {source: LinkingPage(tuple(row), degrees[source]) for source, row in rows.items()}


def back_links_in_graph(graph: Graph, targets: Iterable[str]) -> BackLinks:
    """Return the pages of a graph that link to pages with these names, with all their links."""
    names = graph.names
    if names is None:
        raise UsageError("the graph of back-links has no names", hint="give a graph whose pages have URLs as names")
    into = graph.in_links
    found = (names.find(name) for name in targets)
    parents = [into.indices[into.indptr[page] : into.indptr[page + 1]] for page in found if page is not None]
    sources = np.unique(np.concatenate([np.empty(0, np.int32), *parents])).tolist()
    rows = {page: graph.links_of(page) for page in sources}
    return {
        names[page]: LinkingPage(tuple(names[goal] for goal in row.tolist()), row.size) for page, row in rows.items()
    }


def _link(path: Path | str, number: int, cells: list[str]) -> tuple[str, str, int]:
    if len(cells) < 2 or (len(cells) > 2 and cells[2] and not cells[2].isdecimal()):
        hint = "each line holds source, target and optionally the number of links of the source, separated by tabs"
        raise UsageError(f"line {number} of {path} is not a link: {' '.join(cells)[:80]!r}", hint=hint)
    return cells[0], cells[1], int(cells[2]) if len(cells) > 2 and cells[2] else UNKNOWN_DEGREE
