"""Files that hold no graph, told by their first bytes: web archives, documents, images, programs, databases.

Their words between blanks would otherwise pass as links between names. The message says what a file is, and which
command takes it, if there is one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from surveyor.errors import InputError

LINKS = "give a graph: a graph folder, or a file of links (`surveyor graph build --help` lists the formats)"
CRAWL = "to follow its links, give the address of the page: `surveyor crawl URL`"
ARCHIVE = "archives cannot be imported yet; crawl the site with `surveyor crawl URL`, or give a file of links"
ZIP = b"PK\x03\x04"


class FileType(NamedTuple):
    """A kind of file that is no graph."""

    name: str
    hint: str = LINKS


STARTS: dict[bytes, FileType] = {
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
    b"SQLite format 3\0": FileType("an SQLite database", "of a survey, give the folder: `surveyor top FOLDER`"),
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
    b"7z\xbc\xaf\x27\x1c": FileType("a 7z archive", "unpack it, then name a file of links in it"),
    b"Rar!\x1a\x07": FileType("a RAR archive", "unpack it, then name a file of links in it"),
    b"\x93NUMPY": FileType("a NumPy array", "a graph takes several: give an .npz of scipy.sparse.save_npz"),
}
BINARY = (b"BM", b"MZ", b"ID3")  # short marks with which a text may begin as well
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


def file_type(start: bytes) -> FileType | None:
    """Return the kind of a file that is no graph by its first bytes, unpacked; None if it may be one."""
    start = start.removeprefix(b"\xef\xbb\xbf")
    for mark, kind in STARTS.items():
        if start.startswith(mark) and (mark not in BINARY or b"\0" in start[:512]):
            return kind
    if start[:4] == b"RIFF" and start[8:12] in MEDIA:
        return MEDIA[start[8:12]]
    if start[4:8] == b"ftyp":
        image = start[8:12] in (b"avif", b"heic", b"mif1")
        return FileType("an image (AVIF or HEIC)" if image else "a film or sound (MP4)")
    if start[257:262] == b"ustar":
        return FileType("a tar archive", "unpack it, then name a file of links in it")
    if start.startswith(ZIP):
        return _zipped(start)
    if found := MARKUP.match(start):
        tag = found[1].lower()
        if tag == b"svg":
            return FileType("an SVG image")
        return FileType(SITEMAPS.get(tag, "an HTML page"), CRAWL)
    if JSON.match(start):
        return FileType("a JSON document", "write its links as CSV, one source and one target a line")
    return None


def _zipped(start: bytes) -> FileType | None:
    """Tell a ZIP archive from an npz, whose members are all arrays."""
    if WACZ.search(start):
        return FileType("a web archive (WACZ)", ARCHIVE)
    if OFFICE.search(start):
        return FileType("an Office document or e-book")
    name = start[30 : 30 + int.from_bytes(start[26:28], "little")]
    return None if name.endswith(b".npy") else FileType("a ZIP archive", "unpack it, then name a file of links in it")


def refuse(path: Path, start: bytes) -> None:
    """Refuse a file that is no graph, and say what it is."""
    if (kind := file_type(start)) is not None:
        raise InputError(f"{path} is {kind.name}, not a graph", hint=kind.hint)
