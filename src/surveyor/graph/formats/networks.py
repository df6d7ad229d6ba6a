"""GraphML and GEXF, the XML formats of graph viewers, through NetworkX: for small graphs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import aside, library, packing, unpacked
from surveyor.graph.names import Names

MOST_LINKS = 1_000_000
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_graphml(path: Path, intake: Intake) -> None:
    """Read GraphML; node ids become names."""
    _read(path, intake, "graphml")


def read_gexf(path: Path, intake: Intake) -> None:
    """Read GEXF; node ids become names."""
    _read(path, intake, "gexf")


def write_graphml(graph: Graph, path: Path) -> None:
    """Write GraphML with names (or ids) as node ids."""
    _write(graph, path, "graphml")


def write_gexf(graph: Graph, path: Path) -> None:
    """Write GEXF with names (or ids) as node ids and labels."""
    _write(graph, path, "gexf")


def _read(path: Path, intake: Intake, kind: str) -> None:
    networkx = library("networkx", f"reading {kind}")
    with unpacked(path) as (file, _):
        try:
            found = getattr(networkx, f"read_{kind}")(file)
        except (
            ParseError,
            networkx.NetworkXException,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:
            raise InputError(
                f"{path} cannot be read as {kind}: {error or type(error).__name__}",
                hint="open it in the program that wrote it and save it again",
            ) from error
    names = [str(node) for node in found]
    ids = {node: page for page, node in enumerate(found)}
    edges = np.array([(ids[a], ids[b]) for a, b in found.edges()], np.int64).reshape(-1, 2)
    counted = names == [str(page) for page in range(len(names))]
    intake.declare(len(names), None if counted else Names.of(names))
    intake.links(edges[:, 0].copy(), edges[:, 1].copy())
    if not found.is_directed():
        intake.note(f"{path.name} is undirected: every edge became two links")
        intake.links(edges[:, 1].copy(), edges[:, 0].copy())


def _write(graph: Graph, path: Path, kind: str) -> None:
    networkx = library("networkx", f"writing {kind}")
    if graph.links > MOST_LINKS:
        raise UsageError(
            f"{graph.links:,} links are too many for {kind}, which is text for graph viewers",
            hint=f"write a smaller graph (at most {MOST_LINKS:,} links), or Parquet or npz",
        )
    names = [graph.name(page) for page in range(graph.pages)]
    for name in names:
        if NOT_XML.search(name):
            raise UsageError(f"the name {name!r} cannot be written as {kind}", hint="write Parquet or npz instead")
    made: Any = networkx.DiGraph()
    made.add_nodes_from(names)
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    made.add_edges_from((names[a], names[b]) for a, b in zip(sources, graph.indices, strict=True))
    with aside(path) as draft, packing(draft) as write:
        if kind == "graphml":
            networkx.write_graphml_xml(made, _Sink(write))
        else:
            networkx.write_gexf(made, _Sink(write))


class _Sink:
    """The little of a file that NetworkX needs to write to."""

    def __init__(self, write: Any) -> None:
        self.write = write
