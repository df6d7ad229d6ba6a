"""The files that others read and write: any of them becomes a graph, and a graph becomes any of them.

read_graph(path)             into memory
build_graph(source, folder)  into a graph folder, in bounded memory
write_graph(graph, path)     to a file, which appears only when it is complete
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.folder import build_folder, check_free
from surveyor.graph.formats.intake import Intake, TooSparse
from surveyor.graph.formats.ranks import Ranks, read_ranks, write_ranks
from surveyor.graph.formats.registry import FORMATS, Format, detect, format_named
from surveyor.graph.formats.streams import spooled
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
    format: str | None = None,  # noqa: A002  # the word that users say
    nodes: int | None = None,
    strict: bool = False,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Graph:
    """Read a graph of any format into memory; a graph folder is opened.

    With `nodes`, ids in a list of numbers are taken as they are, 0..nodes-1; without, those that occur are
    numbered in their order. Malformed lines are counted in `graph.provenance`; `strict` makes them fatal.
    A pipe, or `-` for the standard input, is first copied to a temporary file.
    """
    if _is_folder(path, format):
        return Graph.open(path)
    with _taken(path, format, nodes=nodes, strict=strict, memory=None, threads=threads, progress=progress) as intake:
        graph = intake.builder.finish(intake.nodes, intake.names, progress=progress)
        provenance = {**intake.provenance(), **graph.provenance}
        return Graph(graph.indptr, graph.indices, names=graph.names, provenance=provenance)


def build_graph(
    source: str | Path,
    folder: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    nodes: int | None = None,
    strict: bool = False,
    memory: int = 1 << 30,
    replace: bool = False,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Graph:
    """Read a graph of any format into a graph folder, in about `memory` bytes beside its names; open it."""
    folder = Path(folder)
    check_free(folder, replace=replace)
    if _is_folder(source, format):
        return Graph.open(Graph.open(source).save(folder, replace=replace), verify=False)
    with _taken(
        source, format, nodes=nodes, strict=strict, memory=memory, threads=threads, progress=progress
    ) as intake:
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
        raise UsageError(f"{kind.name} can be read but not written", hint=f"choose from {', '.join(writable())}")
    kind.write(graph if names else Graph(graph.indptr, graph.indices), path)


def writable() -> list[str]:
    """Return the names of the formats that can be written."""
    return [kind.name for kind in FORMATS.values() if kind.write]


def _is_folder(path: str | Path, format_name: str | None) -> bool:
    return format_name == "surveyor" or (format_name is None and (Path(path) / "graph.json").is_file())


@contextmanager
def _taken(
    source: str | Path,
    format_name: str | None,
    *,
    nodes: int | None,
    strict: bool,
    memory: int | None,
    threads: int | None,
    progress: ProgressCallback,
) -> Iterator[Intake]:
    """Read a source to its end; ids too sparse for one reading take two more."""
    named = format_named(format_name) if format_name else None
    with ExitStack() as stack:
        path = stack.enter_context(spooled(source))
        kind = named or detect(path)
        intake = stack.enter_context(
            Intake(
                Path(source),
                copy=path,
                format_name=kind.name,
                nodes=nodes,
                strict=strict,
                memory=memory,
                threads=threads,
                progress=progress,
            )
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
