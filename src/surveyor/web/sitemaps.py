r"""Parse lists of pages that sites publish: sitemaps, sitemap indexes, feeds and plain text. Bytes in, URLs out.

Sitemaps (sitemaps.org) and RSS, Atom and JSON feeds are recognised by their content, not by their names; any may be
gzipped. URLs before a syntax error are kept. Entity and attribute declarations, deep nesting and very long namespaces
stop the parser: a list needs none of them, and a few lines of them can expand to gigabytes.

    >>> read_listing(b"# mine\nhttps://example.org/a\n\nhttps://example.org/b\n").pages
    ('https://example.org/a', 'https://example.org/b')
"""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urljoin
from xml.parsers import expat

from surveyor.web.markup import HEAD, named

MOST_BYTES = 100_000_000  # of a decompressed list: twice the limit for sitemaps
MOST_PAGES = 1_000_000
DEEPEST, LONGEST_SPACE = 100, 1_000  # nested elements; characters of a namespace
LINE = re.compile(rb"[^\r\n]+")
Kind = Literal["sitemap", "index", "feed", "text"]
ROOTS: dict[str, Kind] = {"urlset": "sitemap", "sitemapindex": "index", "rss": "feed", "RDF": "feed", "feed": "feed"}
PLACES = {("url", "loc"), ("sitemap", "loc"), ("item", "link"), ("entry", "link")}  # (parent, element) of a URL


@dataclass(frozen=True, slots=True)
class Listing:
    """The URLs of a list: pages, or other lists."""

    kind: Kind
    pages: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()


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
        urls = [urljoin(base, item["url"]) for item in items if isinstance(item, dict) and _is_text(item.get("url"))]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Listing("feed", tuple(dict.fromkeys(urls))[:MOST_PAGES])


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
    text: list[str] | None = None  # of the URL being parsed
    urls: dict[str, None] = field(default_factory=dict)

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
        found = tuple(self.urls)[:MOST_PAGES]
        return Listing("index", lists=found) if self.kind == "index" else Listing(self.kind, found)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        if not self.path:
            self.kind, self.space = ROOTS.get(local), space
        mine = space == self.space or local in ("item", "link")  # RSS 1.0 has its items in another namespace
        if len(self.path) == DEEPEST:
            raise ValueError("depth")
        self.path.append(local if mine else f"{space} {local}")
        if tuple(self.path[-2:]) in PLACES:
            self.text = []
            if self.path[-2] == "entry" and attributes.get("rel", "alternate") == "alternate":
                self._found(attributes.get("href", ""))

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def _end(self, _name: str) -> None:
        if self.text is not None and tuple(self.path[-2:]) in PLACES:
            self._found("".join(self.text))
            self.text = None
        self.path.pop()

    def _found(self, url: str) -> None:
        if self.kind is not None and url.strip():
            with suppress(ValueError):  # not a URL
                self.urls[urljoin(self.base, url.strip())] = None
            if len(self.urls) == MOST_PAGES:
                raise ValueError("pages")

    def _space(self, _prefix: str | None, uri: str | None) -> None:
        if len(uri or "") > LONGEST_SPACE:  # it is part of the name of each element
            raise ValueError("namespace")

    def _reject(self, *_: Any) -> None:
        raise ValueError("entities")
