"""The table of graph formats, and detection of the format of a file.

Files that are not graphs (web archives, documents, images, programs, databases) are recognised by their first bytes:
their words between blanks could otherwise be taken for links between names. The message names the type, and the command
that reads it, if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from surveyor.config import SURVEY_FILE
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import bvgraph, commoncrawl, matrices, networks, pairs, parquet, wat
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.pairs import has_columns, text_layout
from surveyor.graph.formats.streams import head, plain_suffix

Read = Callable[[Path, Intake], None]
Write = Callable[[Graph, Path], None]
LINKS = "pass a graph: a graph folder, or a file of links (`surveyor graph build --help` lists the formats)"
CRAWL = "to follow its links, pass its URL: `surveyor crawl URL`"
ARCHIVE = "archives cannot be imported yet; crawl the site with `surveyor crawl URL`, or pass a file of links"
ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Format:
    """A file format for graphs."""

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
            "edge list: two numbers per line, comments",
            pairs.read_snap,
            pairs.write_snap,
        ),
        Format("tsv", (".tsv", ".tab"), "two names or ids per line, tab-separated", pairs.read_tsv, pairs.write_tsv),
        Format("csv", (".csv",), "two names or ids per line, comma-separated", pairs.read_csv, pairs.write_csv),
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
            matrices.read_matrix_market,
            matrices.write_matrix_market,
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
        Format(
            "wat", (".wat",), "links of web archives, as Common Crawl publishes them: files or folders", wat.read_wat
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


class FileType(NamedTuple):
    """A kind of file that is not a graph."""

    name: str
    hint: str = LINKS


MAGIC: dict[bytes, FileType] = {
    b"WARC/": FileType("a web archive (WARC)", ARCHIVE),
    b"filedesc://": FileType("a web archive (ARC)", ARCHIVE),
    b"%PDF-": FileType("a PDF document"),
    b"%!PS": FileType("a PostScript document"),
    b"{\\rtf": FileType("an RTF document"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": FileType("an Office document"),
    b"\x89PNG\r\n\x1a\n": FileType("a PNG image"),
    b"\xff\xd8\xff": FileType("a JPEG image"),
    b"GIF87a": FileType("a GIF image"),
    b"GIF89a": FileType("a GIF image"),
    b"BM": FileType("a BMP image"),
    b"II*\0": FileType("a TIFF image"),
    b"MM\0*": FileType("a TIFF image"),
    b"\0\0\x01\0": FileType("an icon"),
    b"SQLite format 3\0": FileType("an SQLite database", "for a survey, pass its folder: `surveyor top FOLDER`"),
    b"\x7fELF": FileType("a program (ELF)"),
    b"MZ": FileType("a program (Windows)"),
    b"\xcf\xfa\xed\xfe": FileType("a program (Mach-O)"),
    b"\xca\xfe\xba\xbe": FileType("a program (Mach-O or Java)"),
    b"\0asm": FileType("a program (WebAssembly)"),
    b"wOFF": FileType("a font"),
    b"wOF2": FileType("a font"),
    b"OggS": FileType("a sound or film (Ogg)"),
    b"ID3": FileType("a sound (MP3)"),
    b"fLaC": FileType("a sound (FLAC)"),
    b"\x1a\x45\xdf\xa3": FileType("a film (Matroska or WebM)"),
    b"7z\xbc\xaf\x27\x1c": FileType("a 7z archive", "unpack it, then pass a file of links in it"),
    b"Rar!\x1a\x07": FileType("a RAR archive", "unpack it, then pass a file of links in it"),
    b"\x93NUMPY": FileType("a NumPy array", "a graph needs several: pass an .npz of scipy.sparse.save_npz"),
}
BINARY = (b"BM", b"MZ", b"ID3")  # short: a text may start with them, too
MEDIA = {b"WEBP": FileType("a WebP image"), b"WAVE": FileType("a sound (WAV)"), b"AVI ": FileType("a film (AVI)")}
OFFICE = re.compile(rb"word/|xl/|ppt/|\[Content_Types\]\.xml|mimetypeapplication/(?:vnd\.oasis|epub)")
WACZ = re.compile(rb"datapackage(?:-digest)?\.json|archive/[^\0]{1,200}\.warc")
TAGS = (
    rb"!doctype\s+html|html|head|body|svg|rss|feed|urlset|sitemapindex|"
    rb"a|article|br|blockquote|div|dl|footer|form|h[1-6]|header|hr|img|link|main|meta|nav|ol|p|pre|script|section|span|"
    rb"style|table|title|ul"
)
MARKUP = re.compile(rb"(?is)\s*(?:<\?xml[^>]{0,400}\?>\s*)?(?:<!--.{0,4000}?-->\s*)?<(" + TAGS + rb")[\s>/]")
JSON = re.compile(rb'\s*(?:\{\s*(?:"|\})|\[\s*(?:[\[{"\]]|-?\d+\s*[,\]]))')
SITEMAPS = {b"rss": "a feed (RSS)", b"feed": "a feed (Atom)", b"urlset": "a sitemap", b"sitemapindex": "a sitemap"}


def format_named(name: str) -> Format:
    """Return a format by name."""
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}", hint=f"known formats: {', '.join(FORMATS)}")
    return FORMATS[name]


def detect(path: str | Path, *, writing: bool = False) -> Format:
    """Return the format of a file or folder, by its suffix and its first bytes."""
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
                f"{path.name!r} has no suffix of a known format", hint=f"set the format with --format: {known}"
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
    is_checked = not (named and by_suffix in (FORMATS["bvgraph"], FORMATS["commoncrawl"], FORMATS["wat"]))
    if is_checked and (other := file_type(head(path))) is not None:
        raise InputError(f"{path} is {other.name}, not a graph", hint=other.hint)
    return by_suffix if by_suffix is not None and named else _detect_content(path)


def _detect_folder(path: Path) -> Format:
    if (path / "graph.json").is_file():
        return FORMATS["surveyor"]
    if commoncrawl.find_files(path):
        return FORMATS["commoncrawl"]
    if (path / "pieces.json").is_file():
        raise InputError(
            f"{path} is a graph in pieces, and this needs a graph in one part",
            hint=f"`surveyor rank {path}` ranks it; for other commands pass the graph itself",
        )
    if wat.files_of(path):
        return FORMATS["wat"]
    if (path / SURVEY_FILE).is_file():
        raise InputError(
            f"{path} is a survey, not a graph",
            hint=f"`surveyor top {path}` ranks its pages, `surveyor export {path}` writes its links",
        )
    raise InputError(
        f"{path} is a folder without a graph: neither graph.json nor a pair of vertices and edges files",
        hint="pass a file in it, or a folder made by `surveyor graph build`",
    )


def _detect_content(path: Path) -> Format:
    start = head(path)
    for mark, name in STARTS.items():
        if start.startswith(mark) or (mark[:1] == b"<" and mark in start[:2000]):
            return FORMATS[name]
    if not start or b"\0" not in start[:1024]:
        if text_layout(path).numbers:
            return FORMATS["snap"]
        if has_columns(path):
            return FORMATS["tsv"]
    raise InputError(
        f"{path} is in no known format",
        hint=f"name the format with --input-format: {', '.join(FORMATS)}",
    )


def file_type(start: bytes) -> FileType | None:
    """Return the kind of a file that is not a graph, by its first bytes (decompressed); None if it may be one."""
    start = start.removeprefix(b"\xef\xbb\xbf")
    for mark, kind in MAGIC.items():
        if start.startswith(mark) and (mark not in BINARY or b"\0" in start[:512]):
            return kind
    if start[:4] == b"RIFF" and start[8:12] in MEDIA:
        return MEDIA[start[8:12]]
    if start[4:8] == b"ftyp":
        image = start[8:12] in (b"avif", b"heic", b"mif1")
        return FileType("an image (AVIF or HEIC)" if image else "a film or sound (MP4)")
    if start[257:262] == b"ustar":
        return FileType("a tar archive", "unpack it, then pass a file of links in it")
    if start.startswith(ZIP):
        return _zipped(start)
    if found := MARKUP.match(start):
        tag = found[1].lower()
        if tag == b"svg":
            return FileType("an SVG image")
        return FileType(SITEMAPS.get(tag, "an HTML page"), CRAWL)
    if JSON.match(start):
        return FileType("a JSON document", "write its links as CSV, one source and one target per line")
    return None


def _zipped(start: bytes) -> FileType | None:
    """Distinguish a ZIP archive from an npz, whose members are all arrays."""
    if WACZ.search(start):
        return FileType("a web archive (WACZ)", ARCHIVE)
    if OFFICE.search(start):
        return FileType("an Office document or e-book")
    name = start[30 : 30 + int.from_bytes(start[26:28], "little")]
    return None if name.endswith(b".npy") else FileType("a ZIP archive", "unpack it, then pass a file of links in it")
