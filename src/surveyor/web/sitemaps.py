r"""Parse lists of pages that sites publish: sitemaps, sitemap indexes, feeds, plain text. Bytes in, URLs and dates out.

Sitemaps (sitemaps.org) and RSS, Atom and JSON feeds are recognised by their content, not by their names; any may be
gzipped. URLs before a syntax error are kept. Entity and attribute declarations, deep nesting and very long namespaces
stop the parser: a list needs none of them, and a few lines of them can expand to gigabytes.

    >>> read_listing(b"# mine\nhttps://example.org/a\n\nhttps://example.org/b\n").pages
    ('https://example.org/a', 'https://example.org/b')

The date of an entry is the latest of those that say when it was published or changed (`lastmod`, `pubDate`, `updated`,
`date_modified`, …), as a W3C date or an HTTP date. A date without a time is the start of that day in UTC.
"""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urljoin
from xml.parsers import expat

from surveyor.web.caching import http_date
from surveyor.web.markup import HEAD, named

MOST_BYTES = 100_000_000  # of a decompressed list: twice the limit for sitemaps
MOST_PAGES = 1_000_000
DEEPEST, LONGEST_SPACE = 100, 1_000  # nested elements; characters of a namespace
LINE = re.compile(rb"[^\r\n]+")
Kind = Literal["sitemap", "index", "feed", "text"]
ROOTS: dict[str, Kind] = {"urlset": "sitemap", "sitemapindex": "index", "rss": "feed", "RDF": "feed", "feed": "feed"}
PLACES = {("url", "loc"), ("sitemap", "loc"), ("item", "link"), ("entry", "link")}  # (parent, element) of a URL
DATES = {  # (parent, element) of a date
    *(("url", "lastmod"), ("sitemap", "lastmod"), ("item", "pubDate"), ("entry", "updated"), ("entry", "published")),
    ("item", "http://purl.org/dc/elements/1.1/ date"),
    ("item", "http://www.w3.org/2005/Atom updated"),
}
ENTRIES = frozenset(parent for parent, _ in PLACES)
LONGEST_DATE = 64  # characters
PARTIAL = re.compile(r"(\d{4})(?:-(\d{2}))?")


@dataclass(frozen=True, slots=True)
class Listing:
    """The URLs of a list: pages, or other lists."""

    kind: Kind
    pages: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    modified: tuple[float, ...] = ()  # of each page or list, in seconds since 1970, or 0; empty if none has a date


def read_listing(body: bytes, base: str = "") -> Listing | None:
    """Parse a list of any kind; resolve relative URLs against `base`. Return None if it is not a list."""
    text = _unpacked(body)
    start = text[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        return _Reader(base).read(text)
    if start.startswith(b"{"):
        return _json_feed(text, base)
    named: dict[str, None] = {}
    for found in LINE.finditer(text.removeprefix(b"\xef\xbb\xbf")):  # lazily: there may be millions
        line = found[0].decode("utf-8", "replace").strip()
        if line and not line.startswith("#"):
            named[line] = None
        if len(named) == MOST_PAGES:
            break
    return Listing("text", tuple(named))


def _unpacked(body: bytes) -> bytes:
    if not body.startswith(b"\x1f\x8b"):
        return body[:MOST_BYTES]
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, MOST_BYTES)
    except zlib.error:
        return b""


def _json_feed(text: bytes, base: str) -> Listing | None:
    try:
        items = json.loads(text)["items"]
        found = [item for item in items if isinstance(item, dict) and _is_text(item.get("url"))][:MOST_PAGES]
        urls: dict[str, float] = {}
        for item in found:
            dates = [item.get(name) for name in ("date_modified", "date_published")]
            url, at = (
                urljoin(base, item["url"]),
                max(list_date(date) for date in dates if _is_text(date) or date is None),
            )
            urls[url] = max(at, urls.get(url, 0.0))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Listing("feed", tuple(urls), modified=_dates(urls))


def _dates(urls: dict[str, float]) -> tuple[float, ...]:
    return tuple(urls.values())[:MOST_PAGES] if any(urls.values()) else ()


def list_date(text: str | None) -> float:
    """Return a date of a list as seconds since 1970; 0 if there is none.

    >>> list_date("1970-01-02"), list_date("1970-01-01T01:00+01:00"), list_date("Thu, 01 Jan 1970 00:01:00 GMT")
    (86400.0, 0.0, 60.0)
    """
    text = (text or "")[:LONGEST_DATE].strip()
    if match := PARTIAL.fullmatch(text):
        text = f"{match[1]}-{match[2] or '01'}-01"
    try:
        time = datetime.fromisoformat(text)
        at = (time.replace(tzinfo=UTC) if time.tzinfo is None else time).timestamp()
        return max(0.0, at)
    except (ValueError, OverflowError):
        return http_date(text) or 0.0


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _as_utf8(body: bytes) -> bytes:
    """Return XML re-encoded as UTF-8 from the charset that it declares, if browsers support that charset."""
    charset = named(body[:HEAD])
    return body if charset in ("", "utf-8") else body.decode(charset, "replace").encode("utf-8", "replace")


@dataclass(slots=True)
class _Reader:
    """Incremental parser of XML lists."""

    base: str
    kind: Kind | None = None
    space: str = ""  # the namespace of the root
    path: list[str] = field(default_factory=list)
    text: list[str] | None = None  # of the URL or date being parsed
    urls: dict[str, float] = field(default_factory=dict)  # and their dates
    entry: list[str] = field(default_factory=list)  # URLs of the entry being parsed
    date: float = 0.0  # of that entry

    def read(self, body: bytes) -> Listing | None:
        parser = expat.ParserCreate("utf-8", " ")  # overrides the declaration: expat accepts any Python codec
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler, parser.StartNamespaceDeclHandler = self._characters, self._space
        parser.EntityDeclHandler = parser.AttlistDeclHandler = self._reject
        parser.buffer_text = True
        with suppress(expat.ExpatError, ValueError):  # URLs before the error are kept
            parser.Parse(_as_utf8(body), True)  # noqa: FBT003  # positional only
        if self.kind is None:
            return None
        self._end_entry()  # if it was cut off
        found, dates = tuple(self.urls)[:MOST_PAGES], _dates(self.urls)
        if self.kind == "index":
            return Listing("index", lists=found, modified=dates)
        return Listing(self.kind, found, modified=dates)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        if not self.path:
            self.kind, self.space = ROOTS.get(local), space
        mine = space == self.space or local in ("item", "link")  # RSS 1.0 has its items in another namespace
        if len(self.path) == DEEPEST:
            raise ValueError("depth")
        self.path.append(local if mine else f"{space} {local}")
        if tuple(self.path[-2:]) in DATES:
            self.text = []
        elif tuple(self.path[-2:]) in PLACES:
            self.text = []
            if self.path[-2] == "entry" and attributes.get("rel", "alternate") == "alternate":
                self._found(attributes.get("href", ""))

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def _end(self, _name: str) -> None:
        here = tuple(self.path[-2:])
        if self.text is not None and here in PLACES:
            self._found("".join(self.text))
            self.text = None
        elif self.text is not None and here in DATES:
            self.date = max(self.date, list_date("".join(self.text)))
            self.text = None
        elif here[-1] in ENTRIES:
            self._end_entry()
        self.path.pop()

    def _end_entry(self) -> None:
        for url in self.entry:
            self.urls[url] = max(self.urls[url], self.date)
        self.entry.clear()
        self.date = 0.0

    def _found(self, url: str) -> None:
        if self.kind is not None and url.strip():
            with suppress(ValueError):  # not a URL
                full = urljoin(self.base, url.strip())
                self.urls.setdefault(full, 0.0)
                self.entry.append(full)
            if len(self.urls) == MOST_PAGES:
                raise ValueError("pages")

    def _space(self, _prefix: str | None, uri: str | None) -> None:
        if len(uri or "") > LONGEST_SPACE:  # it is part of the name of each element
            raise ValueError("namespace")

    def _reject(self, *_: Any) -> None:
        raise ValueError("entities")
