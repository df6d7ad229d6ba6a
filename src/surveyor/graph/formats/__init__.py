"""Graph formats: read graphs from files of other programs, and write them.

read_graph(path)             into memory
build_graph(source, folder)  into a graph folder, in bounded memory
write_graph(graph, path)     to a file, which appears when it is complete
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypedDict, Unpack

from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.folder import build_folder, check_free
from surveyor.graph.formats.intake import Intake, ReadOptions, TooSparse
from surveyor.graph.formats.ranks import Ranks, read_ranks, write_ranks
from surveyor.graph.formats.registry import FORMATS, Format, detect, format_named
from surveyor.graph.formats.streams import spooled
from surveyor.graph.labels import Labels
from surveyor.stopping import ProgressCallback, silent

__all__ = [
    "FORMATS",
    "Format",
    "Ranks",
    "build_graph",
    "detect",
    "read_graph",
    "read_ranks",
    "write_graph",
    "write_ranks",
]


def read_graph(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    nodes: int | None = None,
    strict: bool = False,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Graph:
    """Read a graph of any format into memory; a graph folder is opened.

    With `nodes`, ids in a list of numbers are used unchanged, 0..nodes-1; without, the ids that occur are
    renumbered in the same order. Malformed lines are counted in `graph.provenance`; `strict` makes them fatal.
    A pipe, or `-` for the standard input, is first copied to a temporary file.
    """
    if _is_folder(path, format):
        return Graph.open(path)
    options = ReadOptions(nodes, strict, None, threads)
    with _collected(path, format, options, progress) as intake:
        graph = intake.builder.finish(intake.nodes, intake.names, progress=progress)
        provenance = {**intake.provenance(), **graph.provenance}
        return Graph(graph.indptr, graph.indices, names=graph.names, provenance=provenance)


class BuildOptions(TypedDict, total=False):
    """Options of `build_graph`."""

    format: str | None  # of the source; by default detected
    nodes: int | None  # number of pages; by default the largest id + 1
    strict: bool  # raise an error at the first malformed line
    memory: int  # bytes for links, in addition to the names; default 1 GiB
    replace: bool  # an existing graph in the folder
    threads: int | None  # default: all cores


def build_graph(
    source: str | Path, folder: str | Path, *, progress: ProgressCallback = silent, **options: Unpack[BuildOptions]
) -> Graph:
    """Convert a graph of any format to a graph folder, in bounded memory, and open it.

    Options: `format`, `nodes`, `strict`, `memory`, `replace`, `threads` (see `BuildOptions`).
    """
    folder, format_name, replace = Path(folder), options.get("format"), options.get("replace", False)
    check_free(folder, replace=replace)
    if _is_folder(source, format_name):
        return Graph.open(Graph.open(source).save(folder, replace=replace), verify=False)
    memory, threads = options.get("memory", 1 << 30), options.get("threads")
    reading = ReadOptions(options.get("nodes"), options.get("strict", False), memory, threads)
    with _collected(source, format_name, reading, progress) as intake:
        return build_folder(
            intake.builder,
            folder,
            nodes=intake.nodes,
            names=intake.names,
            provenance=intake.provenance(),
            replace=replace,
            progress=progress,
        )


def write_graph(graph: Graph, path: str | Path, *, format: str | None = None, names: bool = True) -> None:  # noqa: A002
    """Write a graph in the format of the suffix, or in another; `names=False` writes ids instead of names."""
    path = Path(path)
    kind = format_named(format) if format else detect(path, writing=True)
    if kind.write is None:
        raise UsageError(f"{kind.name} can be read but not written", hint=f"choose {', '.join(writable())}")
    if graph.weights is not None and kind.name != "surveyor":
        raise UsageError(
            f"format {kind.name} cannot hold the weights of links",
            hint="write a graph folder (format='surveyor'), or graph.simple() without weights",
        )
    if not names:
        graph = graph.with_names(None)
    elif isinstance(graph.names, Labels):
        graph = graph.with_names(graph.names.distinct_text())
    kind.write(graph, path)


def writable() -> list[str]:
    """Return the names of the formats that can be written."""
    return [kind.name for kind in FORMATS.values() if kind.write]


def _is_folder(path: str | Path, format_name: str | None) -> bool:
    return format_name == "surveyor" or (format_name is None and (Path(path) / "graph.json").is_file())


@contextmanager
def _collected(
    source: str | Path, format_name: str | None, options: ReadOptions, progress: ProgressCallback
) -> Iterator[Intake]:
    """Read a source completely; ids too sparse for one pass take two more."""
    with ExitStack() as stack:
        kind, path = stack.enter_context(opened_source(source, format_name))
        intake = stack.enter_context(
            Intake(Path(source), copy=path, format_name=kind.name, options=options, progress=progress)
        )
        try:
            kind.read(path, intake)
            intake.settle()
        except TooSparse:
            for listing in (True, False):
                intake.read_again(listing=listing)
                kind.read(path, intake)
                intake.settle()
        yield intake


@contextmanager
def opened_source(source: str | Path, format_name: str | None) -> Iterator[tuple[Format, Path]]:
    """Yield the format of a source, and the source or a copy of it that can be read several times."""
    named = format_named(format_name) if format_name else None
    with spooled(source) as path:
        yield named or detect(path), path
