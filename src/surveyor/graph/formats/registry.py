"""The table of formats, and which of them a file is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from surveyor.config import SURVEY_FILE
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import bvgraph, commoncrawl, matrices, matrix_market, networks, pairs, parquet
from surveyor.graph.formats import detection as beginning
from surveyor.graph.formats.filetypes import refuse
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import head, plain_suffix

Read = Callable[[Path, Intake], None]
Write = Callable[[Graph, Path], None]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file."""

    name: str
    suffixes: tuple[str, ...]
    about: str
    read: Read
    write: Write | None = None


def _open_folder(path: Path, intake: Intake) -> None:
    graph = Graph.open(path)
    intake.declare(graph.pages, graph.names)
    for sources, targets in pairs.link_batches(graph):
        intake.links(sources, targets)


def _save_folder(graph: Graph, path: Path) -> None:
    graph.save(path, replace=True)


FORMATS: dict[str, Format] = {
    kind.name: kind
    for kind in (
        Format("surveyor", (), "a graph folder, opened by memory map", _open_folder, _save_folder),
        Format(
            "commoncrawl",
            ("-vertices.txt", "-edges.txt", "-vertices.paths", "-edges.paths"),
            "Common Crawl web graph: names and links, as files or lists of parts",
            commoncrawl.read_commoncrawl,
            commoncrawl.write_commoncrawl,
        ),
        Format(
            "snap",
            (".txt", ".el", ".edges", ".edgelist", ".snap", ".dat"),
            "edge list: two numbers a line, comments",
            pairs.read_snap,
            pairs.write_snap,
        ),
        Format("tsv", (".tsv", ".tab"), "two names or ids a line, with a tab", pairs.read_tsv, pairs.write_tsv),
        Format("csv", (".csv",), "two names or ids a line, with a comma", pairs.read_csv, pairs.write_csv),
        Format(
            "parquet",
            (".parquet", ".pq"),
            "table of links: two columns of names or ids",
            parquet.read_parquet,
            parquet.write_parquet,
        ),
        Format(
            "matrixmarket",
            (".mtx",),
            "Matrix Market text: rows link to columns",
            matrix_market.read_matrix_market,
            matrix_market.write_matrix_market,
        ),
        Format("npz", (".npz",), "SciPy sparse matrix, or its arrays", matrices.read_npz, matrices.write_npz),
        Format("graphml", (".graphml",), "XML of graph viewers", networks.read_graphml, networks.write_graphml),
        Format("gexf", (".gexf",), "XML of Gephi", networks.read_gexf, networks.write_gexf),
        Format(
            "bvgraph",
            (".graph", ".properties"),
            "WebGraph's BVGraph, as LAW publishes it",
            bvgraph.read_bvgraph,
        ),
    )
}
STARTS = {
    b"PAR1": "parquet",
    b"PK\x03\x04": "npz",
    b"%%MatrixMarket": "matrixmarket",
    b"<graphml": "graphml",
    b"<gexf": "gexf",
}


def format_named(name: str) -> Format:
    """Return a format by name."""
    if name not in FORMATS:
        raise UsageError(f"there is no format {name!r}", hint=f"known formats: {', '.join(FORMATS)}")
    return FORMATS[name]


def detect(path: str | Path, *, writing: bool = False) -> Format:
    """Say which format a file or folder is, by its suffix and its first bytes."""
    path = Path(path)
    suffix = plain_suffix(path)
    by_suffix = next((kind for kind in FORMATS.values() if suffix in kind.suffixes), None)
    if commoncrawl.PART.fullmatch(path.name) and (writing or commoncrawl.find_files(path)):
        return FORMATS["commoncrawl"]
    if writing:
        if suffix == ".graph":  # as `surveyor graph build` names its folders
            return FORMATS["surveyor"]
        if by_suffix is None:
            known = ", ".join(kind.name for kind in FORMATS.values() if kind.write)
            raise UsageError(
                f"the name {path.name!r} tells no format", hint=f"name it with --format-out; known formats: {known}"
            )
        return by_suffix
    if path.is_dir():
        return _detect_folder(path)
    base = bvgraph.basename(path)
    if not path.exists() and not base.with_name(base.name + ".graph").exists():
        raise InputError(f"{path} does not exist", hint="check the name of the file or folder")
    if not path.exists():
        return FORMATS["bvgraph"]
    named = by_suffix is not None and by_suffix.name != "snap"
    if not (named and by_suffix in (FORMATS["bvgraph"], FORMATS["commoncrawl"])):
        refuse(path, head(path))
    return by_suffix if by_suffix is not None and named else _detect_content(path)


def _detect_folder(path: Path) -> Format:
    if (path / "graph.json").is_file():
        return FORMATS["surveyor"]
    if commoncrawl.find_files(path):
        return FORMATS["commoncrawl"]
    if (path / SURVEY_FILE).is_file():
        raise InputError(
            f"{path} is a survey, not a graph",
            hint=f"`surveyor top {path}` ranks its pages, `surveyor export {path}` writes its links",
        )
    raise InputError(
        f"{path} is a folder without a graph: neither graph.json nor a pair of vertices and edges files",
        hint="name a file in it, or a folder made by `surveyor graph build`",
    )


def _detect_content(path: Path) -> Format:
    start = head(path)
    for mark, name in STARTS.items():
        if start.startswith(mark) or (mark[:1] == b"<" and mark in start[:2000]):
            return FORMATS[name]
    if not start or b"\0" not in start[:1024]:
        first = beginning.begin(path)
        if first.numbers:
            return FORMATS["snap"]
        if beginning.has_columns(path):
            return FORMATS["tsv"]
    raise InputError(
        f"{path} is in no format that is known",
        hint="if it is one of these, name it with `graph build --format` or `graph convert --format-in`; "
        f"known formats: {', '.join(FORMATS)}",
    )
