"""What an audit reads from the body of a page: references, ids, headings, descriptions, words.

Bodies are untrusted. They are parsed in pieces whose cost is bounded (`web/markup.py`), and nothing here raises.

    >>> facts = read_facts(b"<h1 id=a>Hi</h1><a href='b#c'>x</a>", "https://example.org/", {})
    >>> facts.has_heading, facts.has_id("a"), facts.fragments
    (True, True, (('https://example.org/b', 'c'),))
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import unquote
from zlib import crc32

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from surveyor.arrays import IntArray
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import read_page
from surveyor.web.main_text import main_text
from surveyor.web.markup import decode, tame
from surveyor.web.near_duplicates import EMPTY, sketch
from surveyor.web.references import resolve
from surveyor.web.urls import normalise

MOST_REFERENCES = 20_000  # of one page
_NODES = (
    "base[href], h1, meta[name], a[href], area[href], link[href], img[src], script[src], iframe[src], source[src], "
    "video[src], audio[src], embed[src], img[srcset], source[srcset], link[imagesrcset], video[poster], form[action], "
    "[id], a[name]"
)
_RESOURCES = {"img": "image", "script": "script", "iframe": "frame", "embed": "media"} | dict.fromkeys(
    ("source", "video", "audio"), "media"
)
_NO_TEXT = ":is(a, nav, header, footer, script, style, noscript, template)"
SHORT = 20  # words of a main text; of a shorter one, extraction may have missed a part
_STYLES = frozenset(("stylesheet", "icon"))
_OTHER_LINKS = frozenset(("author", "help", "license", "manifest", "modulepreload", "preload", "search"))
NOT_LOADED = ("link", "form")  # kinds of resources that a browser loads only on demand, if at all
_SETS = ("srcset", "imagesrcset")  # attributes that name several images
LONGEST_FRAGMENT = 1_000  # characters of a fragment that is judged
LONGEST_SET = 20_000  # characters of such an attribute that are read
_LINE_ENDS = re.compile(r"[\t\n\r]")
_ATTRIBUTE = re.compile(
    r"""(?<=[\s"'/])(href|src|poster|action|(?:image)?srcset)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Facts about one page."""

    is_html: bool = False
    title: str = ""
    description: str = ""
    has_heading: bool = False  # of the first level
    canonicals: tuple[str, ...] = ()  # distinct, as named
    noindex: bool = False
    words: int = 0  # of the main text; of all text outside of links and navigation, if that is short
    sketch: IntArray = field(default_factory=lambda: EMPTY)  # of the main text, unless short; see `web.near_duplicates`
    ids: IntArray = field(default_factory=lambda: EMPTY)  # hashes of ids and names, ascending
    fragments: tuple[tuple[str, str], ...] = ()  # distinct (URL, fragment)
    resources: tuple[tuple[str, str], ...] = ()  # distinct (kind, URL)
    hreflang: tuple[tuple[str, str], ...] = ()  # distinct (language, URL)

    def has_id(self, fragment: str) -> bool:
        """Return whether the page has a place of this name; never False for a place that it has."""
        number = crc32(fragment.encode("utf-8", "replace"))
        place = int(np.searchsorted(self.ids, number))
        return place < self.ids.size and int(self.ids[place]) == number


def read_facts(body: bytes, url: str, headers: Mapping[str, str]) -> PageFacts:
    """Read the facts of a response with a decoded body; empty ones if it cannot be parsed."""
    found = guarded(url, _read, body, url, headers)
    return PageFacts() if isinstance(found, Failure) else found


def _read(body: bytes, url: str, headers: Mapping[str, str]) -> PageFacts:
    content_type = headers.get("content-type", "").lower()
    kind = content_type.partition(";")[0].strip()
    if kind and "html" not in kind:
        return PageFacts(noindex=read_page(b"", url, headers=headers).noindex)
    page = read_page(body, url, headers=headers, text=False)
    found = _Found(url)
    pieces = tame(decode(body, content_type).text)[0]
    for piece in pieces:
        for node in LexborHTMLParser(piece.encode()).css(_NODES):
            found.take(node, node.tag or "", node.attributes)
    header = None if page.canonical is None else normalise(page.canonical)
    text = main_text(body, url, headers)
    words = len(text.split())
    is_long = words >= SHORT
    if not is_long:
        words = max(words, sum(map(_words_outside_of_links, pieces)))
    return PageFacts(
        is_html=True,
        title=page.title,
        description=found.description,
        has_heading=found.has_heading,
        canonicals=tuple(dict.fromkeys([*found.canonicals, *([header] if header else [])])),
        noindex=page.noindex,
        words=words,
        sketch=sketch(text) if is_long else EMPTY,
        ids=np.unique(np.array(found.ids, np.int64)),
        fragments=tuple(found.fragments),
        resources=tuple(found.resources),
        hreflang=tuple(found.hreflang),
    )


def _words_outside_of_links(html: str) -> int:
    """Return the number of words that are not in links, navigation or scripts."""
    body = LexborHTMLParser(html.encode()).body
    if body is None:
        return 0
    for node in body.css(_NO_TEXT):
        node.decompose()
    return len(body.text(separator=" ").split())


class _Found:
    """Collects facts from elements in document order."""

    def __init__(self, url: str) -> None:
        self.base = url
        self.description, self.has_heading = "", False
        self.canonicals: list[str] = []
        self.ids: list[int] = []
        self.fragments: dict[tuple[str, str], None] = {}
        self.resources: dict[tuple[str, str], None] = {}
        self.hreflang: dict[tuple[str, str], None] = {}
        self._based, self._left = False, MOST_REFERENCES

    def take(self, node: LexborNode, tag: str, attributes: Mapping[str, str | None]) -> None:
        """Add one element; it may come several times."""
        for name in ("id", "name") if tag == "a" else ("id",):
            if value := attributes.get(name):
                self.ids.append(crc32(value.encode("utf-8", "replace")))
        if tag == "h1":
            self.has_heading = self.has_heading or bool(node.text().strip() or node.css_first("img[alt]"))
        elif tag == "meta" and (attributes.get("name") or "").strip().lower() == "description":
            self.description = self.description or " ".join((attributes.get("content") or "").split())[:1_000]
        elif tag == "base" and not self._based:
            self.base, self._based = resolve(attributes.get("href") or "", self.base) or self.base, True
        elif self._left > 0:
            self._left -= 1
            self._refer(tag, attributes)

    def _refer(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if tag in ("a", "area"):
            reference, mark, fragment = (attributes.get("href") or "").partition("#")
            fragment = _LINE_ENDS.sub("", fragment.strip())  # as browsers do
            if mark and len(fragment) <= LONGEST_FRAGMENT and (url := self._absolute(reference)) is not None:
                self.fragments[url, fragment] = None
        elif tag == "link":
            self._take_link(attributes)
        elif tag == "form" and (attributes.get("method") or "get").strip().lower() == "get":
            self._load("form", attributes.get("action"))
        elif tag in _RESOURCES:
            self._load(_RESOURCES[tag], attributes.get("src"))
            self._load("image", attributes.get("poster"))
        for name in _SETS:
            for reference in candidates(attributes.get(name) or ""):
                self._load("image", reference)

    def _load(self, kind: str, reference: str | None) -> None:
        if reference and (url := self._absolute(reference)) is not None:
            self.resources[kind, url] = None

    def _take_link(self, attributes: Mapping[str, str | None]) -> None:
        rels, url = (attributes.get("rel") or "").lower().split(), self._absolute(attributes.get("href") or "")
        if url is None:
            return
        if "canonical" in rels:
            self.canonicals.append(url)
        elif "alternate" in rels and attributes.get("hreflang"):
            self.hreflang[(attributes.get("hreflang") or "").lower(), url] = None
        elif not _STYLES.isdisjoint(rels):
            self.resources["icon" if "icon" in rels else "style sheet", url] = None
        elif not _OTHER_LINKS.isdisjoint(rels):
            self.resources["link", url] = None

    def _absolute(self, reference: str) -> str | None:
        url = resolve(reference.strip(), self.base)
        return None if url is None else normalise(url)


def candidates(srcset: str) -> Iterator[str]:
    """Yield the references of a `srcset` attribute, which have descriptors such as `2x` and are separated by commas.

    >>> list(candidates("a.png, b,c.png 2x,d.png 640w"))
    ['a.png', 'b,c.png', 'd.png']
    """
    in_descriptor = False
    for word in srcset[:LONGEST_SET].split():
        reference = word
        if in_descriptor:
            _, comma, reference = word.partition(",")
            in_descriptor = not comma
        if not in_descriptor and (bare := reference.strip(",")):
            in_descriptor = not reference.endswith(",")
            yield bare


def is_place(facts: PageFacts, fragment: str) -> bool:
    """Return whether a fragment leads somewhere on a page, or means something else than a place."""
    if not fragment or fragment.lower() == "top" or fragment.startswith((":~:", "!", "/")):
        return True
    return facts.has_id(fragment) or facts.has_id(unquote(fragment))


def lines_of(body: bytes, url: str, headers: Mapping[str, str], wanted: Collection[str]) -> dict[str, int]:
    """Return the line of the first reference to each wanted URL; with its fragment, if it is wanted so."""
    text, found = decode(body, headers.get("content-type", "").lower()).text, dict[str, int]()
    for line, reference in _references(text, url):
        if reference in wanted:
            found.setdefault(reference, line)
        if (bare := reference.partition("#")[0]) in wanted:
            found.setdefault(bare, line)
    return found


def _references(text: str, url: str) -> Iterator[tuple[int, str]]:
    """Yield the line and URL of the references in the source of a page, in order."""
    base, line, place = url, 1, 0
    if match := re.search(r"""<base\b[^>]{0,500}?href\s*=\s*["']?([^"'\s>]+)""", text[:100_000], re.IGNORECASE):
        base = resolve(unescape(match[1]), url) or url
    for match in _ATTRIBUTE.finditer(text):
        line, place = line + text.count("\n", place, match.start()), match.start()
        value = unescape(match[2] or match[3] or match[4] or "")
        for one in candidates(value) if match[1].lower() in _SETS else (value.strip(),):
            reference, mark, fragment = one.partition("#")
            absolute = resolve(reference, base)
            if absolute is not None and (plain := normalise(absolute)) is not None:
                yield line, f"{plain}{mark}{_LINE_ENDS.sub('', fragment)}"
