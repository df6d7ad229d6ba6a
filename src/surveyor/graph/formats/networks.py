"""GraphML and GEXF, the XML formats of graph viewers: read as a stream, written through NetworkX; for small graphs.

Of a file come nodes and edges alone: positions, colours and values are passed over. A file that declares entities is
refused before one is used, nothing outside the file is ever opened, and what is nested too deeply or too long to be
the text of a graph is no graph.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import atomic_write, compressed_writer, decompressed, library
from surveyor.graph.names import Names

MOST_LINKS = 1_000_000
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MAX_DEPTH = 200  # of nested elements
LONGEST = 1 << 20  # bytes of a tag with its attributes
LONGEST_NAME = 1 << 16
STEP = 1 << 16
BOTH = ("undirected", "mutual", "false", "0")  # values of edges in both directions


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
    found = _Network(kind)
    try:
        with decompressed(path) as (file, _):
            while text := file.read(STEP):
                found.feed(text)
        found.feed(b"", last=True)
        names, links = found.result()
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as {kind}: {error}",
            hint="open it in the program that wrote it and save it again",
        ) from error
    counted = names == [str(page) for page in range(len(names))]
    intake.declare(len(names), None if counted else Names.of(names))
    intake.links(links[:, 0].copy(), links[:, 1].copy())
    if found.undirected:
        intake.note(f"{path.name} is undirected: each edge becomes two links")


class _Network:
    """Collects the nodes and edges of the first graph of a file."""

    def __init__(self, kind: str) -> None:
        self.undirected = False
        self._kind = kind
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.EntityDeclHandler = self._entity
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._fed = 0
        self._open: list[str] = []
        self._graphs = self._inside = 0  # graphs started, and current nesting of graphs
        self._default = False  # whether edges are undirected by default
        self._ids: dict[str, int] = {}
        self._declared: list[int] = []
        self._edges: list[tuple[int, int]] = []

    def feed(self, text: bytes, *, last: bool = False) -> None:
        """Parse another chunk."""
        self._parser.Parse(text, last)
        self._fed += len(text)
        if self._fed - self._parser.CurrentByteIndex > LONGEST:
            raise ValueError(f"a tag has more than {LONGEST:,} bytes")

    def result(self) -> tuple[list[str], Any]:
        """Return the names of the nodes, in the order of the file, and an array of links."""
        if not self._graphs:
            raise ValueError("it has no graph element")
        order = list(dict.fromkeys(self._declared))
        if len(order) < len(self._ids):
            known = set(order)
            missing = next(name for name, number in self._ids.items() if number not in known)
            raise ValueError(f"an edge names the node {missing[:80]!r}, which is not declared")
        names, new = list(self._ids), np.empty(len(order), np.int64)
        new[order] = np.arange(len(order))
        links = np.array(self._edges, np.int64).reshape(-1, 2)
        return [names[number] for number in order], new[links]

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if not self._open and tag != self._kind:
            raise ValueError(f"its root element is {tag[:40]!r}")
        self._open.append(tag)
        if len(self._open) > MAX_DEPTH:
            raise ValueError(f"its elements are nested more than {MAX_DEPTH} deep")
        if tag == "graph":
            self._inside += 1
            self._graphs += self._inside == 1
            if self._inside == self._graphs == 1:
                default = attributes.get("edgedefault" if self._kind == "graphml" else "defaultedgetype", "undirected")
                self._default = default in BOTH
        if self._graphs != 1 or not self._inside:
            return
        if tag == "node":
            self._declared.append(self._number(attributes, "id"))
        elif tag == "edge":
            self._edge(attributes)
        elif tag in ("hyperedge", "port"):
            raise ValueError(f"it contains a {tag}, which cannot be represented as links")

    def _end(self, tag: str) -> None:
        self._open.pop()
        self._inside -= tag.rpartition(":")[2] == "graph"

    def _edge(self, attributes: dict[str, str]) -> None:
        ends = self._number(attributes, "source"), self._number(attributes, "target")
        stated = attributes.get("directed" if self._kind == "graphml" else "type", "").lower()
        both = stated in BOTH if stated else self._default
        self._edges.append(ends)
        if both:
            self.undirected = True
            self._edges.append(ends[::-1])

    def _number(self, attributes: dict[str, str], name: str) -> int:
        value = attributes.get(name)
        if value is None:
            raise ValueError(f"line {self._parser.CurrentLineNumber}: {self._open[-1]} has no {name}")
        if len(value) > LONGEST_NAME:
            raise ValueError(f"the {name} of a {self._open[-1]} has {len(value):,} characters")
        return self._ids.setdefault(value, len(self._ids))

    def _doctype(self, name: str, _system: str | None, _public: str | None, internal: int) -> None:
        if internal:
            raise ValueError(f"its document type {name[:40]!r} contains declarations, which are not allowed")

    def _entity(self, name: str, *_: object) -> None:
        raise ValueError(f"it declares the entity {name[:40]!r}")


def _write(graph: Graph, path: Path, kind: str) -> None:
    networkx = library("networkx", f"writing {kind}")
    if graph.links > MOST_LINKS:
        raise UsageError(
            f"{graph.links:,} links are too many for {kind}, a format for graph viewers",
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
    with atomic_write(path) as draft, compressed_writer(draft) as write:
        if kind == "graphml":
            networkx.write_graphml_xml(made, _Sink(write))
        else:
            networkx.write_gexf(made, _Sink(write))


class _Sink:
    """The minimal file interface that NetworkX writes to."""

    def __init__(self, write: Any) -> None:
        self.write = write
