"""Parse HTML pages: links, title, visible text and robots directives. Bytes in, values out.

**Links** are extracted in document order from `a`, `area`, `frame`, `iframe`, `link` (next, prev) and meta refresh,
resolved against `<base>`, http(s) only, without fragments, each URL once. `rel` nofollow, ugc or sponsored, or a
`nofollow` for the whole page, sets `follow` to False; a URL that is also linked without it is followed. A canonical URL
is not a link: a crawl that rejects it must not pass importance to it.

**Robots directives** (noindex, nofollow, none, noarchive, unavailable_after) are collected from meta tags named
`robots` or `surveyor` and from X-Robots-Tag headers for all agents or for `surveyor`. The strictest one applies.
Repeated headers are joined by newlines; within a comma-separated list, an agent's name applies until the next name.

**Hostile pages.** Nothing here raises, and time is bounded: `markup` removes what would cost the parser too much. `cut`
is set if tags, links (beyond 50,000) or text (beyond 100,000 characters) were left out. `read_cheap_page` rejects pages
that could take more than about 65 ms; they are parsed in a process that can be stopped (see `fetch/parser.py`).

This is not a browser: scripts do not run, style sheets do not hide text, templates and comments are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from surveyor.web.javascript import MORE_LINKS, needs_javascript
from surveyor.web.link_context import mark
from surveyor.web.markup import CHEAP_LENGTH, Decoded, cheap, decode, guessed, tame
from surveyor.web.references import Addresses, resolve

AGENT = "surveyor"
MOST_LINKS = 50_000
MOST_JOINED = 500_000  # base length times references, in characters: joined in about 50 ms
LONGEST_BASE = 2_000  # characters, as for any URL; references relative to a longer base are dropped
MOST_TEXT = 100_000  # characters

_SOURCES = (  # each element once; few alternatives, as each takes time
    ":is(html, title, meta, [href], frame[src], iframe[src], nav, header, footer, aside, [role], .navheader, "
    ".navfooter)"
)
_NAMED_REGIONS = {  # roles and classes -> position of the links inside
    **dict.fromkeys(("navigation", "navheader", "navfooter"), "navigation"),
    "banner": "header",
    "contentinfo": "footer",
    "complementary": "aside",
}
_REGION_TAGS = {"nav": "navigation", "aside": "aside", "header": "header", "footer": "footer"}
_CONTENT = frozenset(("article", "main", "section"))  # whose header and footer are content
_PLACE = 7 << 3  # bits of a mark that are not zero outside of the main content
_MOST_REGIONS = 20  # of a page; links in further ones count as those of the region around them
_MOST_UP = 50  # ancestors of a region that are searched for content
_LONGEST_ANCHOR = 1_200  # characters of an anchor text before white space is collapsed
_ANCHOR_ROOM = 500_000  # characters of anchor texts that are kept of one page
_ANCHOR_WORK = 20_000_000  # characters of anchor texts that are read on one page: all of it, unless anchors are nested
_NO_FOLLOW = frozenset(("nofollow", "ugc", "sponsored"))
_HIDDEN = frozenset(("script", "style", "noscript", "noframes", "iframe", "template", "title"))
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset
        figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr iframe img input legend li main menu nav ol
        optgroup option p pre script section select style summary table tbody td textarea tfoot th thead tr ul""",
    )
)
_REFRESH = re.compile(r"""[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.+))""", re.IGNORECASE | re.DOTALL)
_DIRECTIVE = re.compile(r"(?:[^,:]+:\s*)?unavailable_after\s*:\s*(?:[a-z]+,)?[^,]*|[^,]+", re.IGNORECASE)
_CANONICAL_HEADER = re.compile(r"""<([^<>]*)>([^<>]*)""")


class Link(NamedTuple):
    """An absolute URL linked from a page, and whether the link passes importance."""

    url: str
    follow: bool = True


_link = partial(tuple.__new__, Link)  # from a pair; less than half the time of `Link(*pair)`


@dataclass(frozen=True, slots=True)
class Page:
    """The parsed content of a page."""

    links: tuple[Link, ...] = ()
    anchors: tuple[str, ...] = ()  # text of each link, as in the source
    marks: tuple[int, ...] = ()  # element, position and rel of each link; see `link_context.mark`
    title: str = ""
    text: str = ""  # visible text, white space collapsed
    language: str = ""  # as declared, in lower case: "en-gb"
    canonical: str | None = None
    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    unavailable_after: datetime | None = None
    charset: str = "utf-8"
    cut: bool = False  # some tags, links or text were left out
    javascript: bool = False  # empty until a script has run


def read_page(
    body: bytes,
    url: str,
    *,
    content_type: str = "",
    headers: Mapping[str, str] | None = None,
    text: bool = True,
    addresses: Addresses | None = None,
) -> Page:
    """Parse a page; never raises, whatever the bytes are.

    Extracting `text` takes a third of the time. `addresses`, if given, normalises the links. If the content type is
    neither HTML nor XML, only headers (and plain text) are read.

    >>> page = read_page(b"<title>Hi</title><a href='b#c'>x</a><a rel=nofollow href=/d>y</a>", "https://example.org/a/")
    >>> page.title, page.links[0].url, page.links[1]
    ('Hi', 'https://example.org/a/b', Link(url='https://example.org/d', follow=False))
    """
    return _read(body, url, content_type, headers or {}, addresses, text=text)


def read_cheap_page(body: bytes, url: str, headers: Mapping[str, str], addresses: Addresses) -> Page | None:
    """Parse a page without its text like `read_page`; return None early if that could take more than about 65 ms."""
    if len(body) > 2 * CHEAP_LENGTH:
        return None
    try:
        return _read(body, url, "", headers, addresses, text=False, cheaply=True)
    except _TooCostly:
        return None


class _TooCostly(Exception):
    """A page that may take long to parse."""


def _no_guess(_body: bytes) -> str:
    raise _TooCostly


def _cheap(decoded: Decoded) -> bytes:
    if (html := cheap(decoded.text, decoded.encoded())) is None:
        raise _TooCostly
    return html


def _tame(html: str) -> tuple[list[bytes], bool]:
    pieces, cut = tame(html)
    return [piece.encode() for piece in pieces], cut  # the parser takes twice as long for a string


def _read(
    body: bytes,
    url: str,
    content_type: str,
    headers: Mapping[str, str],
    addresses: Addresses | None,
    *,
    text: bool,
    cheaply: bool = False,
) -> Page:
    known = {name.lower(): value for name, value in headers.items()}
    content_type = (content_type or known.get("content-type", "")).lower()
    directives = _Directives()
    for line in known.get("x-robots-tag", "").splitlines():
        directives.take(line)
    canonical = _linked(known.get("link", ""), url)
    language = known.get("content-language", "").partition(",")[0]
    kind = content_type.partition(";")[0].strip()
    if kind and "html" not in kind and "xml" not in kind:
        is_text = text and kind.startswith("text/")
        plain, charset = decode(body, content_type, declares=False)[:2] if is_text else ("", "")
        shown = " ".join(plain[:MOST_TEXT].split())
        cut, language = len(plain) > MOST_TEXT, _tag(language)
        return Page(text=shown, language=language, canonical=canonical, charset=charset, cut=cut, **directives.asked())
    decoded = decode(body, content_type, guess=_no_guess if cheaply else guessed)
    html = decoded.text
    pieces, cut = ([_cheap(decoded)], False) if cheaply else _tame(html)
    found, shown, long = _Found(url), "", False
    for piece in pieces:
        tree = LexborHTMLParser(piece)
        found.scan(tree.css(_SOURCES), directives)
        if text and not long:
            more, long = _visible(tree.body)
            shown = f"{shown} {more}" if shown and more else shown or more
            long = long or len(shown) > MOST_TEXT
    javascript = False
    if len(found.named) <= MORE_LINKS and len(pieces) == 1 and "script" in html.lower():
        javascript = needs_javascript(tree, _visible(tree.body)[0], len(found.named))
    if cheaply and len(found.base) * len(found.named) > MOST_JOINED:
        raise _TooCostly
    links, contexts, many = found.addresses(addresses or Addresses(), nofollow=directives.nofollow)
    _, _, anchors, marks = zip(*contexts, strict=True) if contexts else ((), (), (), ())
    return Page(
        links=links,
        anchors=anchors,
        marks=marks,
        title=found.title,
        text=shown[:MOST_TEXT],
        language=_tag(found.language or language),
        canonical=found.canonical or canonical,
        charset=decoded.charset,
        cut=cut or many or long,
        javascript=javascript,
        **directives.asked(),
    )


def _tag(language: str) -> str:
    return language.strip().lower()[:35]


class _Directives:
    """Robots directives of headers and meta tags; the strictest one applies."""

    def __init__(self) -> None:
        self.noindex = self.nofollow = self.noarchive = False
        self.until: datetime | None = None

    def take(self, text: str) -> None:
        """Parse a list of directives, in which an agent's name and a colon restrict those that follow."""
        concerned = True
        for match in _DIRECTIVE.finditer(text[:10_000]):
            directive = match[0].strip().lower()
            name, colon, rest = (part.strip() for part in directive.partition(":"))
            if colon and name != "unavailable_after" and not name.startswith("max-"):
                concerned, directive = name in (AGENT, "*"), rest
            if not concerned:
                continue
            self.noindex |= directive in ("noindex", "none")
            self.nofollow |= directive in ("nofollow", "none")
            self.noarchive |= directive == "noarchive"
            if directive.startswith("unavailable_after") and (time := _time(directive.partition(":")[2].strip())):
                self.until = min(self.until or time, time)

    def asked(self) -> dict[str, Any]:
        """Return the directives as fields of `Page`."""
        flags = {"noindex": self.noindex, "nofollow": self.nofollow, "noarchive": self.noarchive}
        return {**flags, "unavailable_after": self.until}


def _time(text: str) -> datetime | None:
    """Parse a time in the format of RFC 850, RFC 1123 or ISO 8601; UTC if it has no zone."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            time = read(text.upper())
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _linked(header: str, url: str) -> str | None:
    """Return the canonical URL of a Link header, or None."""
    for match in _CANONICAL_HEADER.finditer(header[:10_000]):
        rel = re.search(r"""\brel\s*=\s*(?:"([^"]*)"|([^\s;,]+))""", match[2], re.IGNORECASE)
        if rel and "canonical" in (rel[1] or rel[2] or "").lower().split():
            return resolve(match[1].strip(), url)
    return None


_Reference = tuple[str, bool, str, int]  # as written, whether it is followed, text, mark


class _Found:
    """Data of the tags of a page, in document order; references are resolved once the base is known."""

    def __init__(self, url: str) -> None:
        self.base = self.url = resolve(url, url) or ""
        self.title = self.language = ""
        self.canonical: str | None = None
        self.named: list[_Reference] = []
        self._has_base = self._has_title = False
        self._regions: list[tuple[int, int]] = []  # open ones, innermost last: number of the link after it, mark
        self._links = 0  # elements with href in the tree, so far
        self._read: dict[str, int] = {}  # reference -> 0 if its text in the main content is known, else its region
        self._counted_regions, self._room, self._work = 0, _ANCHOR_ROOM, _ANCHOR_WORK

    def scan(self, nodes: Iterable[LexborNode], directives: _Directives) -> None:
        """Collect links, title, language, base, canonical URL and directives from tags."""
        self._regions.clear()
        self._links = 0
        add, regions, read = self.named.append, self._regions, self._read
        room, work = self._room, self._work
        for node in nodes:
            tag, attributes = node.tag, node.attributes
            if tag == "a" or tag == "area":  # most are; faster than a set lookup
                if "href" not in attributes:  # a region of such a name
                    continue
                number = 0
                if regions:
                    while regions and regions[-1][0] <= self._links:
                        regions.pop()
                    number = regions[-1][1] if regions else 0
                self._links += 1
                follow = True
                if "rel" in attributes:
                    rel = (attributes["rel"] or "").lower()
                    follow, number = _NO_FOLLOW.isdisjoint(rel.split()), number | mark(tag, "main", rel)
                reference, text = attributes["href"] or "", ""
                if tag == "area":
                    text, number = attributes.get("alt") or "", number | mark(tag, "main", "")
                elif room > 0 < work and ((known := read.get(reference)) is None or (known and not number & _PLACE)):
                    inside = node.child
                    if inside is None or inside.next is not None or (text := inside.text_content or "") == "":
                        text = node.text_lexbor() or ""  # not text alone; takes three times as long
                    work -= len(text)
                    if not text or text.isspace():
                        text = _alt(node)
                    if len(text) > _LONGEST_ANCHOR:
                        text = text[:_LONGEST_ANCHOR]
                    room -= len(text)
                    if text:
                        read[reference] = number & _PLACE
                add((reference, follow, text, number))
                continue
            self._links += "href" in attributes
            if tag in ("frame", "iframe"):
                if "src" in attributes:
                    add((attributes["src"] or "", True, "", mark(tag, "main", "")))
            elif tag == "link":
                rel = (attributes.get("rel") or "").lower()
                rels = rel.split()
                if "href" not in attributes:
                    continue
                if "canonical" in rels and self.canonical is None:
                    self.canonical = attributes.get("href") or ""
                if not {"next", "prev"}.isdisjoint(rels):
                    add((attributes.get("href") or "", True, "", mark("link", "main", rel)))
            elif tag == "meta":
                self._meta(attributes, directives)
            elif tag == "html":
                self.language = self.language or attributes.get("lang") or attributes.get("xml:lang") or ""
            elif tag == "base" and not self._has_base and "href" in attributes:
                base = resolve(attributes.get("href") or "", self.url) or self.url
                self._has_base, self.base = True, base if len(base) <= LONGEST_BASE else ""
            elif tag == "title" and not self._has_title:
                self._has_title, self.title = True, " ".join(node.text()[:10_000].split())[:1_000]
            elif tag in _REGION_TAGS or "role" in attributes or "class" in attributes:
                self._region(node, _REGION_TAGS.get(tag or "", ""), attributes)

        self._room, self._work = room, work

    def _region(self, node: LexborNode, position: str, attributes: Mapping[str, str | None]) -> None:
        """Record the position of the links inside an element, which are the next ones; inner elements come later."""
        words = [attributes.get("role") or "", *(attributes.get("class") or "").split()[:20]]
        position = next((_NAMED_REGIONS[word] for word in words if word in _NAMED_REGIONS), position)
        if not position or self._counted_regions >= _MOST_REGIONS:
            return
        self._counted_regions += 1
        if position in ("header", "footer") and _is_in_content(node):
            return
        self._regions.append((self._links + len(node.css("[href]")), mark("a", position, "")))

    def _meta(self, attributes: dict[str, str | None], directives: _Directives) -> None:
        content = attributes.get("content") or ""
        name = (attributes.get("name") or "").strip().lower()
        if name in ("robots", AGENT):
            directives.take(content)
        header = (attributes.get("http-equiv") or "").strip().lower()
        if header == "refresh" and (match := _REFRESH.match(content[:4_000].strip())):
            self.named.append((match[1] or match[2] or match[3] or "", True, "", mark("meta", "main", "")))
        elif header == "content-language" and not self.language:
            self.language = content.partition(",")[0]

    def addresses(self, table: Addresses, *, nofollow: bool) -> tuple[tuple[Link, ...], list[_Reference], bool]:
        """Return the links as absolute URLs, the reference chosen for each, and whether there were too many."""
        if self.canonical is not None:
            self.canonical = resolve(self.canonical, self.base)
        links: dict[str, bool] = {}
        chosen: dict[str, _Reference] = {}
        leads_to = table.seen_from(self.base)
        for one in self.named:
            reference, passes, text, number = one
            if (url := leads_to[reference]) is None:
                continue
            if url not in links:
                links[url], chosen[url] = passes, one
                continue
            if passes:
                links[url] = True
            _, _, before, place = chosen[url]
            if text and (not before or (place & _PLACE and not number & _PLACE)):
                chosen[url] = one
        if nofollow:
            links = dict.fromkeys(links, False)
        kept = [*chosen.values()][:MOST_LINKS]
        return tuple(map(_link, islice(links.items(), MOST_LINKS))), kept, len(links) > MOST_LINKS


def _alt(node: LexborNode) -> str:
    """Return the alt text of an image that begins a link."""
    inside = node.child
    while inside is not None and inside.tag == "-text":
        inside = inside.next
    return (inside.attributes.get("alt") or "") if inside is not None and inside.tag == "img" else ""


def _is_in_content(node: LexborNode) -> bool:
    """Return whether an element is inside an article, a section or the main element."""
    above = node.parent
    for _ in range(_MOST_UP):
        if above is None:
            return False
        if above.tag in _CONTENT:
            return True
        above = above.parent
    return False


def _visible(body: LexborNode | None) -> tuple[str, bool]:
    """Return the visible text, with a space where a block begins or ends, and whether it was truncated."""
    parts = [" "]
    size, goal = 0, -1  # goal: id of the first node after a hidden element
    for node in body.traverse(include_text=True) if body is not None else ():
        if goal >= 0:
            if node.mem_id != goal:
                continue
            goal = -1
        tag = node.tag
        if parts[-1] != " " and (tag in _BLOCKS or ((before := node.prev) is not None and before.tag in _BLOCKS)):
            parts.append(" ")
        if tag == "-text":
            text = node.text_content or " "
            parts.append(text)
            size += len(text)
            if size > 4 * MOST_TEXT:  # most of it may be white space
                break
        elif tag in _HIDDEN:
            behind = _behind(node)
            if behind is None:
                break
            goal = behind.mem_id
    text = " ".join("".join(parts).split())
    return text[:MOST_TEXT], size > 4 * MOST_TEXT or len(text) > MOST_TEXT


def _behind(node: LexborNode | None) -> LexborNode | None:
    """Return the first node after an element and its descendants."""
    while node is not None and node.next is None:
        node = node.parent
    return None if node is None else node.next
