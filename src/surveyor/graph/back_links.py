"""Back-links from external sources: server logs, search consoles and back-link services."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.streams import unpacked

MIN_EVIDENCE = ("", "-")  # what logs contain for an unknown page
MOST = 1_000_000  # cap on the out-degree of a page: with more links, each passes on a negligible share
UNTOLD = 0  # the degree of a page whose number of links is unknown


@dataclass(frozen=True, slots=True)
class Linking:
    """A page outside the graph: the names of the pages it links to, and its total number of links."""

    targets: tuple[str, ...]
    degree: int = UNTOLD


BackLinks = Mapping[str, Linking]  # by the name of the linking page


def from_file(path: Path | str) -> BackLinks:
    """Read a table of links: source, target and optionally the out-degree of the source, tab- or comma-separated."""
    rows: dict[str, dict[str, None]] = {}
    degrees: dict[str, int] = {}
    try:
        with unpacked(Path(path)) as (file, _):
            read = TextIOWrapper(file, "utf-8-sig", newline="")
            lines = ((number, line.strip()) for number, line in enumerate(read, 1))
            numbered = [(number, text) for number, text in lines if text and not text.startswith("#")]
    except (InputError, UnicodeDecodeError) as error:
        why = error.problem if isinstance(error, InputError) else "it is not UTF-8 text"
        why = why.removeprefix(f"{path} cannot be read: ")
        problem = f"the back-links in {path} cannot be read: {why}"
        raise UsageError(problem, hint="give a file with source and target in each line") from error
    for place, (number, text) in enumerate(numbered):
        cells = [cell.strip() for cell in (text.split("\t") if "\t" in text else next(csv.reader([text])))]
        if place == 0 and cells[0].lower() in ("source", "from"):
            continue
        source, target, degree = _link(path, number, cells)
        if source not in MIN_EVIDENCE:
            rows.setdefault(source, {})[target] = None
            degrees[source] = min(max(degree, degrees.get(source, UNTOLD)), MOST)
    return {source: Linking(tuple(row), degrees[source]) for source, row in rows.items()}


def _link(path: Path | str, number: int, cells: list[str]) -> tuple[str, str, int]:
    if len(cells) < 2 or (len(cells) > 2 and cells[2] and not cells[2].isdecimal()):
        hint = "source, target and perhaps how many links the source has, with tabs between"
        raise UsageError(f"line {number} of {path} is no link", hint=hint)
    return cells[0], cells[1], int(cells[2]) if len(cells) > 2 and cells[2] else UNTOLD
