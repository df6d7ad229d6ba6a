"""Pages as people write them: by name; `#3` is the page with id 3; without names, 3 is enough."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray
    from surveyor.cli.output import Output
    from surveyor.graph.csr import Graph

SHOWN = 3  # unknown trusted pages that are named
ID = re.compile(r"#[0-9]+")


def page_of(graph: Graph, text: str) -> int | None:
    """Find a page by its name, or by its id."""
    page = graph.names.find(text) if graph.names is not None else None
    if page is not None:
        return page
    digits = re.fullmatch(r"#?([0-9]+)" if graph.names is None else r"#([0-9]+)", text)
    return int(digits[1]) if digits and int(digits[1]) < graph.pages else None


def word_for(graph: Graph, page: int) -> str:
    """Return what a command takes for a page: its name, or `#id` if the name cannot be typed as it is printed."""
    from surveyor.report.numbers import printable

    name = graph.name(page)
    return f"#{page}" if name != printable(name) or name.startswith("-") else name


def find(graph: Graph, text: str) -> int:
    """Find a page, or say which one may be meant."""
    from surveyor.errors import UsageError

    page = page_of(graph, text)
    if page is not None:
        return page
    if not graph.pages:
        raise UsageError(f"no page {text}: this graph has none", hint="check what was built")
    bare = text.removeprefix("http://").removeprefix("https://").rstrip("/")
    guesses = [start + bare + end for start in ("https://", "http://", "") for end in ("/", "")]
    near = [guess for guess in guesses if page_of(graph, guess) is not None]
    if near:
        raise UsageError(f"no page {text}", hint=f"did you mean {near[0]}?")
    ids = f"#0 to #{graph.pages - 1}"
    hint = f"give a name as `surveyor top` prints it, or an id from {ids}" if graph.names else f"give an id from {ids}"
    if "\\" in text:
        hint += "; a name printed with \\ goes by its id, which `surveyor top --csv` shows as page"
    raise UsageError(f"no page {text}", hint=hint)


def trusted_teleport(output: Output, graph: Graph, path: str) -> FloatArray:
    """Read trusted pages, one a line, and share the jumps evenly among them."""
    import numpy as np

    from surveyor.errors import InputError

    try:
        lines = Path(path).read_bytes().decode("utf-8-sig", "surrogateescape").split("\n")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", hint="give a file with one page a line") from error
    words = [line.strip(" \t\r") for line in lines]
    wanted = [word for word in words if word and (not word.startswith("#") or ID.fullmatch(word))]
    found = [(name, page_of(graph, name)) for name in wanted]
    unknown = [name for name, page in found if page is None]
    known = sorted({page for _, page in found if page is not None})
    if not known:
        raise InputError(
            f"none of the {len(wanted):,} pages in {path} is in this graph" if wanted else f"{path} names no page",
            hint="write names as `surveyor top` prints them, or ids as #3, one a line",
        )
    if unknown:
        names = ", ".join(unknown[:SHOWN]) + (", …" if len(unknown) > SHOWN else "")
        output.warn(f"{len(unknown):,} of {len(wanted):,} trusted pages are not in this graph: {names}")
    teleport = np.zeros(graph.pages)
    teleport[known] = 1 / len(known)
    return teleport
