"""Open the graph or survey that a command names, and look up its pages.

A page is given by name; `#3` is the page with id 3; in a graph without names, 3 is enough.
"""

from __future__ import annotations

import re
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from surveyor.arrays import FloatArray
    from surveyor.cli.output import Output
    from surveyor.crawler.ledger import CoverageInterval
    from surveyor.graph.csr import Graph
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.survey.survey import Survey

MAX_UNKNOWN = 3  # unknown trusted pages that are named
ID = re.compile(r"#[0-9]+")
WEIGHTED = re.compile(r"(.*[^\s,])(?:\s*,\s*|\s+)([^\s,]+)")  # a page, and its weight after white space or a comma


def is_survey(path: str) -> bool:
    """Return whether a path is that of a survey, or has its suffix and does not exist."""
    from surveyor.store import layout

    return layout.is_survey(path) or (path.rstrip("/").endswith(".survey") and not Path(path).exists())


class SurveyGraph(NamedTuple):
    """The graph of a survey and how it is ranked."""

    graph: Graph
    teleport: FloatArray | None
    damping: float
    coverage: CoverageInterval
    notes: tuple[str, ...]  # about pages that need JavaScript


def open_survey(path: str, teleport: str | None, *, crawled_only: bool, survey: Survey | None = None) -> SurveyGraph:
    """Return the graph of a survey; a survey that is already open stays open."""
    from surveyor.report.survey_tables import javascript_lines
    from surveyor.survey.survey import Survey

    with nullcontext(survey) if survey else Survey(path) as opened:
        source = opened.as_graph(crawled_only=crawled_only)
        weights = None if teleport == "uniform" else source.teleport
        return SurveyGraph(source.graph, weights, opened.damping, opened.coverage, tuple(javascript_lines(opened)))


def open_graph(output: Output, path: str, threads: int | None = None) -> Graph:
    """Open a graph folder, a file of links, or the graph of a survey; report what was skipped."""
    if is_survey(path):
        return open_survey(path, None, crawled_only=False).graph
    from surveyor.cli.options import input_format_hint
    from surveyor.graph.formats import read_graph

    with output.progress() as progress, input_format_hint("`surveyor graph build --input-format`"):
        graph = read_graph(path, threads=threads, progress=progress)
    if not Path(path).is_dir():
        output.graph_notes(graph)
    return graph


def page_of(graph: Graph, text: str) -> int | None:
    """Return the id of a page given by name or id; None if there is none."""
    page = graph.names.find(text) if graph.names is not None else None
    if page is not None:
        return page
    digits = re.fullmatch(r"#?([0-9]+)" if graph.names is None else r"#([0-9]+)", text)
    return int(digits[1]) if digits and int(digits[1]) < graph.pages else None


def page_argument(graph: Graph, page: int) -> str:
    """Return a page as a command argument: its name, or `#id` if the name cannot be typed as it is printed."""
    from surveyor.report.numbers import printable

    name = graph.name(page)
    return f"#{page}" if name != printable(name) or name.startswith("-") else name


def find(graph: Graph, text: str) -> int:
    """Return the id of a page; suggest a similar one if there is none."""
    from surveyor.errors import UsageError

    page = page_of(graph, text)
    if page is not None:
        return page
    if not graph.pages:
        raise UsageError(f"no page {text!r}: the graph is empty", hint="check the source that the graph was built from")
    bare = text.removeprefix("http://").removeprefix("https://").rstrip("/")
    guesses = [start + bare + end for start in ("https://", "http://", "") for end in ("/", "")]
    similar = [guess for guess in guesses if page_of(graph, guess) is not None]
    if similar:
        raise UsageError(f"no page {text!r} in this graph", hint=f"did you mean {similar[0]}?")
    ids = f"#0 to #{graph.pages - 1}"
    hint = f"use a name as printed by `surveyor top`, or an id from {ids}" if graph.names else f"use an id from {ids}"
    if "\\" in text:
        hint += "; use the id for a name printed with \\, see column page of `surveyor top --csv`"
    raise UsageError(f"no page {text!r} in this graph", hint=hint)


def trusted_teleport(output: Output, graph: Graph, path: str) -> FloatArray:
    """Read trusted pages, one per line; return a teleport distribution by their weights, 1 by default."""
    import numpy as np

    from surveyor.errors import InputError

    weights = weighted_pages(output, graph, path)
    teleport = np.zeros(graph.pages)
    teleport[list(weights)] = list(weights.values())
    if not teleport.any():
        raise InputError(
            f"no page in {path} has a weight above 0", hint="write a weight such as 1 after a page, or none"
        )
    teleport /= teleport.max()
    return np.asarray(teleport / teleport.sum())


def weighted_page(graph: Graph, text: str) -> tuple[int | None, float]:
    """Return a page and its weight from `PAGE`, `PAGE WEIGHT` or `PAGE,WEIGHT`; a page of that whole name comes first.

    Raise ValueError if what follows a page is no weight.
    """
    return _weighted(lambda name: page_of(graph, name), text)


def _weighted(lookup: Callable[[str], int | None], text: str) -> tuple[int | None, float]:
    from surveyor.crawler.seed_pages import as_weight

    if (page := lookup(text)) is not None:
        return page, 1.0
    if found := WEIGHTED.fullmatch(text):
        page = lookup(found[1])
        if page is not None:
            return page, as_weight(found[2])
    return None, 1.0


def weighted_pages(output: Output, graph: Graph, path: str) -> dict[int, float]:
    """Read pages with their weights, one per line; warn of pages that are not in the graph."""
    return _checked_weights(output, lambda name: page_of(graph, name), path, _listed(path))


def weighted_pages_of_pieces(output: Output, pieces: Pieces, path: str) -> dict[int, float]:
    """Read pages of a graph in pieces with their weights, by global id; each piece is read once."""
    listed = _listed(path)
    wanted = {*listed, *(found[1] for name in listed if (found := WEIGHTED.fullmatch(name)))}
    numbers = {name: int(name[1:]) for name in wanted if ID.fullmatch(name) and len(name) < 19}
    known = dict(zip(numbers, pieces.at_numbers(list(numbers.values())), strict=True))
    known |= {name: page for name, page in zip(wanted, pieces.find_all(list(wanted)), strict=True) if page is not None}
    return _checked_weights(output, known.get, path, listed)


def check_cluster(path: str, cluster: str | None) -> None:
    """Reject a cluster for a graph that is not in pieces."""
    from surveyor.errors import UsageError

    if cluster:
        raise UsageError(
            f"--cluster needs a graph in pieces, and {path} is not one",
            hint=f"surveyor graph split {shlex.quote(path)} PIECES",
        )


def _listed(path: str) -> list[str]:
    """Read the lines of a file of pages, without comments."""
    from surveyor.errors import InputError

    try:
        lines = Path(path).read_bytes().decode("utf-8-sig", "surrogateescape").split("\n")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", hint="use a file with one page per line") from error
    stripped = [line.strip(" \t\r") for line in lines]
    return [name for name in stripped if name and (not name.startswith("#") or _names_id(name))]


def _names_id(line: str) -> bool:
    """Return whether a line that starts with # names a page by id, with or without a weight; others are comments."""
    weighted = WEIGHTED.fullmatch(line)
    return bool(ID.fullmatch(line) or (weighted and ID.fullmatch(weighted[1]) and _is_number(weighted[2])))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _checked_weights(
    output: Output, lookup: Callable[[str], int | None], path: str, names: list[str]
) -> dict[int, float]:
    from surveyor.errors import InputError

    try:
        pages = [(name, *_weighted(lookup, name)) for name in names]
    except ValueError as error:
        raise InputError(
            f"{path}: {error}", hint="write a page, and a number after it if its weight is not 1"
        ) from None
    unknown = [name for name, page, _ in pages if page is None]
    known = {page: weight for _, page, weight in pages if page is not None}
    if not known:
        raise InputError(
            f"none of the {len(names):,} pages in {path} is in this graph" if names else f"{path} names no page",
            hint="write names as printed by `surveyor top`, or ids as #3, one per line",
        )
    if unknown:
        listed = ", ".join(unknown[:MAX_UNKNOWN]) + (", …" if len(unknown) > MAX_UNKNOWN else "")
        output.warn(f"{len(unknown):,} of {len(names):,} trusted pages are not in this graph: {listed}")
    return known
