"""WAT files: the links of the pages of a web archive, as Common Crawl publishes them.

A WAT file is a WARC file whose records are JSON documents about the records of another one. A page is an HTTP response
with HTML; its links are those of its `a` and `area` elements, resolved against its address or its `base` element, and
normalised. Links marked nofollow, ugc or sponsored are left out and counted. Records that cannot be parsed are
malformed lines, numbered by record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.errors import InputError
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import decompressed
from surveyor.web.urls import normalise, normalise_all

LONGEST = 1 << 26  # bytes of a record
AT_ONCE = 1 << 21  # bytes of addresses passed on together
ELEMENTS = ("A@/href", "AREA@/href")
UNTRUSTED = {"nofollow", "ugc", "sponsored"}


def files_of(path: Path) -> list[Path]:
    """Return the WAT files of a folder, or the file itself."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.name.lower().endswith((".wat", ".wat.gz")))
    return [path]


def read_wat(path: Path, intake: Intake) -> None:
    """Read the links of all files."""
    files = files_of(path)
    if not files:
        raise InputError(f"{path} has no WAT files", hint="their names end with .wat or .wat.gz")
    waiting, size, untrusted = list[str](), 0, 0
    for done, file in enumerate(files):
        intake.progress("reading", done, len(files), "files")
        for number, record in enumerate(_records(file), 1):
            try:
                page, links, left = page_links(json.loads(record))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                intake.malformed(file, number, record[:200])
                continue
            untrusted += left
            for link in links:
                waiting += (page, link)
                size += len(page) + len(link)
            if size > AT_ONCE:
                _pass_on(waiting, intake)
                waiting, size = [], 0
    _pass_on(waiting, intake)
    if untrusted:
        intake.note(f"{untrusted:,} links marked nofollow, ugc or sponsored are left out")


def page_links(record: dict[str, Any]) -> tuple[str, list[str], int]:
    """Return the address of a page, its links, and the number of links left out; no links if it is not a page."""
    envelope = record["Envelope"]
    address = normalise(str(envelope["WARC-Header-Metadata"].get("WARC-Target-URI", "")))
    response = envelope.get("Payload-Metadata", {}).get("HTTP-Response-Metadata", {})
    html = response.get("HTML-Metadata", {})
    if address is None or not html:
        return "", [], 0
    base = html.get("Head", {}).get("Base")
    start = (normalise(str(base), address) if base else None) or address
    links = [link for link in html.get("Links", []) if link.get("path") in ELEMENTS and link.get("url")]
    trusted = [str(link["url"]) for link in links if not UNTRUSTED & set(str(link.get("rel", "")).lower().split())]
    found = [link for link in normalise_all(trusted, start) if link is not None]
    return address, found, len(links) - len(trusted)


def _records(file: Path) -> Iterator[bytes]:
    """Yield the JSON documents of a file."""
    archive, errors = (import_module(f"warcio.{name}") for name in ("archiveiterator", "exceptions"))
    try:
        with decompressed(file) as (stream, _):
            for record in archive.ArchiveIterator(stream):
                if record.rec_type == "metadata":
                    text = record.content_stream().read(LONGEST + 1)
                    yield text if len(text) <= LONGEST else b""
            while stream.read(LONGEST):  # raises for a truncated file, which warcio does not
                pass
    except (errors.ArchiveLoadFailed, ValueError) as error:
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{file} cannot be read as WAT: {problem}", hint="download it again") from error


def _pass_on(addresses: list[str], intake: Intake) -> None:
    """Add links, given as source, target, source, target, ..."""
    encoded = [address.encode("utf-8", "surrogateescape") for address in addresses]
    ends = np.concatenate([[0], np.cumsum([len(address) for address in encoded], dtype=np.int64)])
    if encoded:
        intake.pairs(np.frombuffer(b"".join(encoded), np.uint8), np.column_stack([ends[:-1], ends[1:]]))
