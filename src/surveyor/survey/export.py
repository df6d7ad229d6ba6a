"""Export of a survey: tables, texts, a sitemap, a small graph for drawing, an index of the WARC archive.

Tables are Parquet, CSV, JSON lines or Excel workbooks; texts are a table, Markdown or llms.txt.

A file is renamed into place when it is complete. Existing files are not overwritten unless requested.

CSV cells are escaped for spreadsheets (`store/tabular.py`), unless `raw`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, get_args
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from surveyor.errors import UsageError
from surveyor.graph.formats.streams import atomic_write
from surveyor.stopping import ProgressCallback, silent
from surveyor.store import tabular
from surveyor.store.spreadsheet import write_xlsx
from surveyor.store.tabular import Batch, Columns, write_csv_rows
from surveyor.survey.sitemap_export import Sitemap, sitemap, sitemap_files, write_sitemap, write_sitemap_files
from surveyor.survey.tables import RANKS, STATUSES, TABLES, Tables
from surveyor.survey.text_export import text_batches, texts_for, write_llms, write_markdown
from surveyor.survey.texts import COLUMNS as TEXT_COLUMNS
from surveyor.survey.texts import TextCounts, Texts
from surveyor.web.urls import host

if TYPE_CHECKING:
    from surveyor.arrays import IntArray
    from surveyor.survey.survey import Survey

Format = Literal["parquet", "csv", "jsonl", "xlsx", "markdown", "llms.txt", "sitemap", "gexf", "graphml", "warc"]
Level = Literal["pages", "hosts"]
SUFFIXES = {f".{name}": name for name in ("parquet", "csv", "jsonl", "gexf", "graphml")}
SUFFIXES |= {".ndjson": "jsonl", ".cdxj": "warc", ".xlsx": "xlsx", ".md": "markdown", ".xml": "sitemap"}
TEXTS = "text"  # the table of texts, most important first
TEXT_FORMATS = ("markdown", "llms.txt")
BINARY = ("parquet", "xlsx")
FOLDER = ("pages", "links", "ranks", "hosts", "visits")  # tables in a folder of Parquet files
DEFAULT_NODES = 500  # pages or hosts in a graph for drawing
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
XML_TYPES = {str: "string", int: "long", float: "double"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Options of an export; see `surveyor export --help`."""

    format: Format | None = None  # default: by the suffix
    table: str = "pages"
    level: Level = "pages"  # nodes of a graph
    top: int | None = None
    replace: bool = False
    raw: bool = False  # CSV without escapes
    tokens: int | None = None  # texts: stop before more tokens than this
    duplicates: bool = False  # texts: keep pages whose text is nearly that of a more important one
    markdown: bool = False  # texts in a table: as Markdown

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in get_args(Format):
            choices = ", ".join(get_args(Format))
            raise UsageError(f"format must be one of {choices}, got {self.format!r}", hint="omit it to use the suffix")
        if self.table not in TABLES and self.table != TEXTS:
            raise UsageError(f"there is no table {self.table!r}", hint=f"known: {', '.join([*TABLES, TEXTS])}")


@dataclass(slots=True)
class ExportedContent:
    """What an export of texts, of a sitemap or of a workbook contains and left out."""

    progress: ProgressCallback = silent
    texts: TextCounts | None = None
    sitemap: Sitemap | None = None
    cells_cut: int = 0  # texts that were too long for a cell of Excel

    def begin(self, survey: Survey, kind: str, options: ExportOptions) -> Texts:
        """Return the texts of an export; their counts are complete at its end."""
        texts = texts_for(survey, kind, options, self.progress)
        self.texts = texts.counts
        return texts

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as plain values."""
        found = {"texts": self.texts, "sitemap": self.sitemap}
        cut = {"cells_cut": self.cells_cut} if self.cells_cut else {}
        return {name: part.to_dict() for name, part in found.items() if part is not None} | cut


def export(
    survey: Survey, to: Path | str, options: ExportOptions, *, about: ExportedContent | None = None
) -> list[Path]:
    """Write a survey to a file or, as Parquet, a folder; return the files. `about` gets what was exported."""
    path, about = Path(to), about or ExportedContent()
    kind = options.format or _by_name(path, options.table)
    _check(kind, options)
    if kind == "parquet" and path.suffix != ".parquet" and options.table != TEXTS:
        _check_free([path / f"{name}.parquet" for name in FOLDER], replace=options.replace)
        return parquet_files(survey.tables, path)
    _check_free([path], replace=options.replace)
    if kind == "sitemap":
        about.sitemap = made = sitemap(survey, options.top)
        paths = sitemap_files(made, path)
        _check_free(paths, replace=options.replace)
        write_sitemap_files(made, paths)
        return paths
    if kind == "parquet":
        tabular.write_parquet(path, *_table(survey, options, about))
    elif kind == "xlsx":
        names, batches = _table(survey, options, about)
        with atomic_write(path) as draft:
            about.cells_cut = write_xlsx(draft, names, _rows(names, batches), options.table)
    else:
        with atomic_write(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="") as file:
            _write(survey, kind, options, file, about)
    return [path]


def export_text(survey: Survey, file: TextIO, options: ExportOptions, *, about: ExportedContent | None = None) -> None:
    """Write a survey to a stream; the default format is CSV."""
    kind = options.format or "csv"
    if kind in BINARY:
        name = "Parquet" if kind == "parquet" else "an Excel workbook"
        raise UsageError(f"a stream of text cannot hold {name}", hint="name a file, or choose --format csv or jsonl")
    _check(kind, options)
    _write(survey, kind, options, file, about or ExportedContent())


def _write(survey: Survey, kind: str, options: ExportOptions, file: TextIO, about: ExportedContent) -> None:
    """Write a format of text."""
    if kind in ("gexf", "graphml"):
        subgraph = top_subgraph(survey, options.level, DEFAULT_NODES if options.top is None else options.top)
        (write_gexf if kind == "gexf" else write_graphml)(subgraph, file)
    elif kind == "warc":
        _write_index(survey.tables, file)
    elif kind == "sitemap":
        about.sitemap = sitemap(survey, options.top)
        write_sitemap(about.sitemap, file)
    elif kind in TEXT_FORMATS:
        texts = about.begin(survey, kind, options)
        (write_markdown if kind == "markdown" else write_llms)(texts, file)
    else:
        names, batches = _table(survey, options, about)
        if kind == "csv":
            write_csv_rows(file, chain([list(names)], _rows(names, batches)), raw=options.raw)
        else:
            _write_jsonl(names, batches, file)


def _check(kind: str, options: ExportOptions) -> None:
    """Reject options that do not apply to a format or table."""
    texts = options.table == TEXTS or kind in TEXT_FORMATS
    if kind in (*TEXT_FORMATS, "sitemap", "warc", "gexf", "graphml") and options.table not in _tables_of(kind):
        raise UsageError(f"{kind} does not hold the table {options.table}", hint="omit the table, or choose jsonl")
    if options.top is not None and not texts and (options.table != "pages" or kind == "warc"):
        problem = f"top is for pages and graphs, not for {'warc' if kind == 'warc' else options.table}"
        raise UsageError(problem, hint="omit it, or use `surveyor sql` with LIMIT")
    if not texts:
        for name in ("tokens", "duplicates", "markdown"):
            if getattr(options, name):
                raise UsageError(f"{name} is for texts", hint="add --table text, or --format markdown or llms.txt")


def _tables_of(kind: str) -> tuple[str, ...]:
    """Return the tables that a format without tables accepts: the default, and texts where it holds them."""
    return ("pages", TEXTS) if kind in TEXT_FORMATS else ("pages",)


def parquet_files(tables: Tables, folder: Path) -> list[Path]:
    """Write pages, links, ranks, hosts and visits as Parquet files; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.parquet" for name in FOLDER]
    for name, path in zip(FOLDER, paths, strict=True):
        tabular.write_parquet(path, TABLES[name], tables.batches(name))
    return paths


def _by_name(path: Path, table: str) -> str:
    kind = "llms.txt" if path.name.lower() == "llms.txt" else SUFFIXES.get(path.suffix.lower())
    if kind is None and path.suffix and not path.is_dir():
        raise UsageError(
            f"the suffix of {path} is not a known format", hint=f"set --format: {', '.join(get_args(Format))}"
        )
    if kind is None and table == TEXTS:
        raise UsageError("texts are one file, not a folder", hint="name a file such as texts.jsonl or texts.parquet")
    return kind or "parquet"


def _check_free(paths: list[Path], *, replace: bool) -> None:
    for path in paths:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint="name a file, or use the format parquet")
        if path.exists() and not replace:
            raise UsageError(f"{path} already exists", hint="choose another name, or overwrite it with --replace")
        if path.parent.exists() and not path.parent.is_dir():
            raise UsageError(f"{path.parent} is not a folder", hint="choose another name")


def _table(survey: Survey, options: ExportOptions, about: ExportedContent) -> tuple[Columns, Iterator[Batch]]:
    """Return the columns of a table and its rows; pages include their ranks."""
    name, tables = options.table, survey.tables
    if name == TEXTS:
        return TEXT_COLUMNS, text_batches(about.begin(survey, "table", options))
    if name != "pages":
        return TABLES[name], tables.batches(name)
    more = {column: kind for column, kind in RANKS.items() if column != "id"}
    every = _ranked(tables)
    return {**TABLES["pages"], **more}, every if options.top is None else iter([_best(every, options.top)])


def _ranked(tables: Tables) -> Iterator[Batch]:
    """Yield pages with their ranks, None for pages without."""
    ranks = next(tables.batches("ranks"))
    row = np.full(tables.size, -1, np.int64)
    row[ranks["id"]] = np.arange(len(ranks["id"]))
    for batch in tables.batches("pages"):
        rows = row[list(batch["id"])].tolist()
        more = {name: ranks[name] for name in RANKS if name != "id"}
        yield batch | {name: [None if at < 0 else values[at].item() for at in rows] for name, values in more.items()}


def _best(batches: Iterator[Batch], top: int) -> Batch:
    """Return the best pages, best first."""
    found: list[tuple[Any, ...]] = []
    names: list[str] = []
    for batch in batches:
        names = list(batch)
        place = names.index("position")
        found += [row for row in zip(*batch.values(), strict=True) if row[place] is not None and row[place] <= top]
    best = sorted(found, key=lambda row: (row[place], row[0]))[:top]
    return dict(zip(names, zip(*best, strict=True), strict=True)) if best else {name: [] for name in names}


def _rows(names: Columns, batches: Iterator[Batch]) -> Iterator[list[Any]]:
    """Yield rows for text formats: times as ISO 8601, hashes as hex."""
    for batch in batches:
        plain = [_plain(batch[name], kind) for name, kind in names.items()]
        yield from map(list, zip(*plain, strict=True))


def _plain(values: Any, kind: str) -> list[Any]:
    plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if kind == "timestamp":
        return [None if at is None else f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ}" for at in plain]
    return [None if item is None else item.hex() for item in plain] if kind == "binary" else plain


def _write_jsonl(names: Columns, batches: Iterator[Batch], file: TextIO) -> None:
    for row in _rows(names, batches):
        file.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, allow_nan=False) + "\n")


def _write_index(tables: Tables, file: TextIO) -> None:
    """Write a CDXJ index of the visits in the WARC files, sorted by URL and time."""
    urls = tables.urls
    lines = []
    for batch in tables.batches("visits"):
        for row in zip(*batch.values(), strict=True):
            visit: Mapping[str, Any] = dict(zip(batch, row, strict=True))
            if visit["warc_file"] is not None:
                lines.append(_index_line(urls[visit["id"]], visit))
    file.writelines(sorted(lines))


def _index_line(url: str, visit: Mapping[str, Any]) -> str:
    at = datetime.fromtimestamp((visit["fetched_at"] or 0) / 1e6, UTC)
    fields = {
        "url": url,
        "status": str(visit["status"] or "-"),
        "length": str(visit["warc_length"]),
        "offset": str(visit["warc_offset"]),
        "filename": visit["warc_file"],
    }
    return f"{sort_key(url)} {at:%Y%m%d%H%M%S} {json.dumps(fields)}\n"


def sort_key(url: str) -> str:
    """Return the SURT-like sort key of a URL for CDXJ: the host reversed, so that a domain is contiguous.

    >>> sort_key("https://docs.example.org:8080/A?b")
    'org,example,docs:8080)/a?b'
    """
    authority, _, rest = url.partition("://")[2].partition("/")
    name, colon, port = (authority, "", "") if authority.endswith("]") else authority.partition(":")
    turned = name if name.replace(".", "").isdigit() or "[" in name else ",".join(reversed(name.split(".")))
    return f"{turned}{colon}{port})/{rest}".lower()


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Nodes with attributes, best first, and weighted links between them."""

    kind: str  # "pages" or "hosts"
    attributes: dict[str, type]  # attributes of each node, besides its label
    nodes: list[tuple[str, dict[str, Any]]]  # label and attributes
    links: list[tuple[int, int, int]]  # source, target, weight
    omitted: int  # number of other nodes of the survey


def top_subgraph(survey: Survey, level: str, top: int) -> Subgraph:
    """Return the best pages or hosts and the links among them."""
    if top < 1:
        raise UsageError(f"top must be at least 1, got {top}", hint=f"the default is {DEFAULT_NODES}")
    if level not in ("pages", "hosts"):
        raise UsageError(f"level must be pages or hosts, got {level!r}", hint="the default is pages")
    return _page_subgraph(survey, top) if level == "pages" else _host_subgraph(survey, top)


def _page_subgraph(survey: Survey, top: int) -> Subgraph:
    ranked, ranking, statuses = survey.as_graph(), survey.ranking, survey.tables.statuses
    best, marks = ranking.top(top), ranking.log_scores()
    attributes = {"url": str, "host": str, "title": str, "kind": str, "share": float, "score": float, "position": int}
    nodes = []
    for position, number in enumerate(best.tolist(), 1):
        url, page = ranked.graph.name(number), int(ranked.pages[number])
        title = survey.title(page)
        values = (
            url,
            host(url),
            title,
            STATUSES[statuses[page]],
            ranking.share(number),
            float(marks[number]),
            position,
        )
        nodes.append((title or url, dict(zip(attributes, values, strict=True))))
    group = np.full(ranked.graph.pages, -1, np.int64)
    group[best] = np.arange(best.size)
    return Subgraph("pages", attributes, nodes, _links(survey, group), ranked.graph.pages - best.size)


def _host_subgraph(survey: Survey, top: int) -> Subgraph:
    ranked, scores = survey.as_graph(), survey.ranking.scores
    number: dict[str, int] = {}
    of_page = np.array([number.setdefault(host(url), len(number)) for url in ranked.graph.names or ()], np.int64)
    share = np.bincount(of_page, scores, len(number))
    pages, fetched = np.bincount(of_page), np.bincount(of_page, ranked.read).astype(int)
    best = np.lexsort((np.arange(share.size), -share))[:top]
    names, attributes = list(number), {"pages": int, "fetched": int, "share": float, "position": int}
    nodes = [
        (names[at], dict(zip(attributes, (int(pages[at]), int(fetched[at]), float(share[at]), place), strict=True)))
        for place, at in enumerate(best.tolist(), 1)
    ]
    kept = np.full(len(number), -1, np.int64)
    kept[best] = np.arange(best.size)
    return Subgraph("hosts", attributes, nodes, _links(survey, kept[of_page]), len(number) - best.size)


def _links(survey: Survey, group: IntArray) -> list[tuple[int, int, int]]:
    """Count the links between groups of pages; those inside a group, and pages in none (-1), are left out."""
    graph = survey.graph()
    sources, targets = group[np.repeat(np.arange(graph.pages), graph.out_degrees)], group[graph.indices]
    kept = (sources >= 0) & (targets >= 0) & (sources != targets)
    size = np.int64(group.max(initial=0) + 1)
    keys, weights = np.unique(sources[kept] * size + targets[kept], return_counts=True)
    return [
        (key // int(size), key % int(size), weight) for key, weight in zip(keys.tolist(), weights.tolist(), strict=True)
    ]


def write_gexf(graph: Subgraph, file: TextIO) -> None:
    """Write GEXF, for Gephi."""
    write = _head(file, '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">', graph)
    write('<graph defaultedgetype="directed" mode="static">\n<attributes class="node">\n')
    for number, (name, kind) in enumerate(graph.attributes.items()):
        write(f'<attribute id="{number}" title="{name}" type="{XML_TYPES[kind]}"/>\n')
    write("</attributes>\n<nodes>\n")
    for node, (label, attributes) in enumerate(graph.nodes):
        write(f'<node id="{node}" label={_quoted(label)}><attvalues>')
        for number, value in enumerate(attributes.values()):
            write(f'<attvalue for="{number}" value={_quoted(value)}/>')
        write("</attvalues></node>\n")
    write("</nodes>\n<edges>\n")
    for number, (source, target, weight) in enumerate(graph.links):
        write(f'<edge id="{number}" source="{source}" target="{target}" weight="{weight}"/>\n')
    write("</edges>\n</graph>\n</gexf>\n")


def write_graphml(graph: Subgraph, file: TextIO) -> None:
    """Write GraphML, for yEd, Cytoscape, igraph and others."""
    write = _head(file, '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">', graph)
    for name, kind in {"label": str, **graph.attributes}.items():
        write(f'<key id="{name}" for="node" attr.name="{name}" attr.type="{XML_TYPES[kind]}"/>\n')
    write('<key id="weight" for="edge" attr.name="weight" attr.type="long"/>\n<graph edgedefault="directed">\n')
    for node, (label, attributes) in enumerate(graph.nodes):
        data = "".join(
            f'<data key="{name}">{_text(value)}</data>' for name, value in {"label": label, **attributes}.items()
        )
        write(f'<node id="n{node}">{data}</node>\n')
    for source, target, weight in graph.links:
        write(f'<edge source="n{source}" target="n{target}"><data key="weight">{weight}</data></edge>\n')
    write("</graph>\n</graphml>\n")


def _head(file: TextIO, root: str, graph: Subgraph) -> Callable[[str], Any]:
    file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    comment = f"The top {len(graph.nodes)} {graph.kind} of a survey; {graph.omitted} others are omitted."
    file.write(f"<!-- {comment} -->\n{root}\n")
    return file.write


def _clean(value: Any) -> str:
    return NOT_XML.sub("\ufffd", repr(value) if isinstance(value, float) else str(value))


def _quoted(value: Any) -> str:
    return quoteattr(_clean(value))


def _text(value: Any) -> str:
    return escape(_clean(value))
