"""What a page says: its links, title and visible text, and what it asks of crawlers. HTML bytes in, values out.

**Links** come in document order from `a`, `area`, `frame`, `iframe`, `link` (next, prev) and meta refresh, resolved
against `<base>`, http(s) only, without fragments; each address once. `rel` nofollow, ugc or sponsored, or a `nofollow`
for the whole page, makes `follow` False; an address also linked without it is followed. A canonical address is no link:
who does not believe it must not pass importance to it either.

**Wishes** (noindex, nofollow, none, noarchive, unavailable_after) are gathered from meta tags named `robots` or
`surveyor` and from X-Robots-Tag headers for all or for `surveyor`; of several, the strictest counts. Several headers
of one name are joined by newlines; where commas join them, an agent's name holds until the next name.

**Hostile pages.** Nothing here raises, and time is bounded: `markup` takes out of a page what would cost the parser too
much. `cut` says that something was left out, be it tags, links (beyond 50,000) or text (beyond 100,000 characters).
`read_cheap_page` leaves alone what could take longer than some 65 ms, for a process that can be stopped (see
`fetch/parser.py`).

What this is not: a browser. Scripts do not run, style sheets do not hide text, templates and comments are not read.
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

from surveyor.web.charsets import Decoded, decode, guessed
from surveyor.web.javascript import MORE_LINKS, needs_javascript
from surveyor.web.markup import CHEAP_LENGTH, cheap, tame
from surveyor.web.references import Addresses, resolve

AGENT = "surveyor"
MOST_LINKS = 50_000
MOST_JOINED = 500_000  # characters of a base, once for each reference: they are joined in some 50 ms
LONGEST_BASE = 2_000  # characters, as of any URL; references below a longer one lead nowhere
MOST_TEXT = 100_000  # characters

_SOURCES = "html, base[href], title, meta, link[href], a[href], area[href], frame[src], iframe[src]"
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
_WISH = re.compile(r"(?:[^,:]+:\s*)?unavailable_after\s*:\s*(?:[a-z]+,)?[^,]*|[^,]+", re.IGNORECASE)
_CANONICAL_HEADER = re.compile(r"""<([^<>]*)>([^<>]*)""")


class Link(NamedTuple):
    """An absolute address that a page names, and whether following it passes importance on."""

    url: str
    follow: bool = True


_link = partial(tuple.__new__, Link)  # of a pair, in less than half of the time of `Link(*pair)`


@dataclass(frozen=True, slots=True)
class Page:
    """What was read from a page."""

    links: tuple[Link, ...] = ()
    title: str = ""
    text: str = ""  # what a reader sees, white space collapsed
    language: str = ""  # as the page says, in lower case: "en-gb"
    canonical: str | None = None
    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    unavailable_after: datetime | None = None
    charset: str = "utf-8"
    cut: bool = False  # some tags, links or text were left out
    javascript: bool = False  # it is empty until a script has run


def read_page(
    body: bytes,
    url: str,
    *,
    content_type: str = "",
    headers: Mapping[str, str] | None = None,
    text: bool = True,
    addresses: Addresses | None = None,
) -> Page:
    """Read a page; never raises, whatever the bytes are. Without `text`, which takes a third of the time, none.

    Links are as `addresses` spells them, if they are given.
    Of a body that its type calls something other than HTML or XML, only headers (and plain text) are read.

    >>> page = read_page(b"<title>Hi</title><a href='b#c'>x</a><a rel=nofollow href=/d>y</a>", "https://example.org/a/")
    >>> page.title, page.links[0].url, page.links[1]
    ('Hi', 'https://example.org/a/b', Link(url='https://example.org/d', follow=False))
    """
    return _read(body, url, content_type, headers or {}, addresses, text=text)


def read_cheap_page(body: bytes, url: str, headers: Mapping[str, str], addresses: Addresses) -> Page | None:
    """Read a page without its text as `read_page` does; None, soon, if that could take more than some 65 ms."""
    if len(body) > 2 * CHEAP_LENGTH:
        return None
    try:
        return _read(body, url, "", headers, addresses, text=False, cheaply=True)
    except _TooCostly:
        return None


class _TooCostly(Exception):
    """A page that may take long to read."""


def _refuse(_body: bytes) -> str:
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
    wishes = _Wishes()
    for line in known.get("x-robots-tag", "").splitlines():
        wishes.take(line)
    canonical = _linked(known.get("link", ""), url)
    language = known.get("content-language", "").partition(",")[0]
    kind = content_type.partition(";")[0].strip()
    if kind and "html" not in kind and "xml" not in kind:
        is_text = text and kind.startswith("text/")
        plain, charset = decode(body, content_type, declares=False)[:2] if is_text else ("", "")
        shown = " ".join(plain[:MOST_TEXT].split())
        cut, language = len(plain) > MOST_TEXT, _tag(language)
        return Page(text=shown, language=language, canonical=canonical, charset=charset, cut=cut, **wishes.asked())
    decoded = decode(body, content_type, guess=_refuse if cheaply else guessed)
    html = decoded.text
    pieces, cut = ([_cheap(decoded)], False) if cheaply else _tame(html)
    found, shown, long = _Found(url), "", False
    for piece in pieces:
        tree = LexborHTMLParser(piece)
        found.scan(tree.css(_SOURCES), wishes)
        if text and not long:
            more, long = _visible(tree.body)
            shown = f"{shown} {more}" if shown and more else shown or more
            long = long or len(shown) > MOST_TEXT
    javascript = False
    if len(found.named) <= MORE_LINKS and len(pieces) == 1 and "script" in html.lower():
        javascript = needs_javascript(tree, _visible(tree.body)[0], len(found.named))
    if cheaply and len(found.base) * len(found.named) > MOST_JOINED:
        raise _TooCostly
    links, many = found.addresses(addresses or Addresses(), nofollow=wishes.nofollow)
    return Page(
        links=links,
        title=found.title,
        text=shown[:MOST_TEXT],
        language=_tag(found.language or language),
        canonical=found.canonical or canonical,
        charset=decoded.charset,
        cut=cut or many or long,
        javascript=javascript,
        **wishes.asked(),
    )


def _tag(language: str) -> str:
    return language.strip().lower()[:35]


class _Wishes:
    """What headers and meta tags ask of a crawler, the strictest of all."""

    def __init__(self) -> None:
        self.noindex = self.nofollow = self.noarchive = False
        self.until: datetime | None = None

    def take(self, text: str) -> None:
        """Read a list of wishes, in which an agent's name and a colon limit those that follow."""
        concerned = True
        for match in _WISH.finditer(text[:10_000]):
            wish = match[0].strip().lower()
            name, colon, rest = (part.strip() for part in wish.partition(":"))
            if colon and name != "unavailable_after" and not name.startswith("max-"):
                concerned, wish = name in (AGENT, "*"), rest
            if not concerned:
                continue
            self.noindex |= wish in ("noindex", "none")
            self.nofollow |= wish in ("nofollow", "none")
            self.noarchive |= wish == "noarchive"
            if wish.startswith("unavailable_after") and (time := _time(wish.partition(":")[2].strip())):
                self.until = min(self.until or time, time)

    def asked(self) -> dict[str, Any]:
        """Return the fields of a page."""
        flags = {"noindex": self.noindex, "nofollow": self.nofollow, "noarchive": self.noarchive}
        return {**flags, "unavailable_after": self.until}


def _time(text: str) -> datetime | None:
    """Read a time in the style of RFC 850, RFC 1123 or ISO 8601; UTC if it names no zone."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            time = read(text.upper())
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _linked(header: str, url: str) -> str | None:
    """Return the canonical address that a Link header names."""
    for match in _CANONICAL_HEADER.finditer(header[:10_000]):
        rel = re.search(r"""\brel\s*=\s*(?:"([^"]*)"|([^\s;,]+))""", match[2], re.IGNORECASE)
        if rel and "canonical" in (rel[1] or rel[2] or "").lower().split():
            return resolve(match[1].strip(), url)
    return None


class _Found:
    """What the tags of a page say, in document order; addresses are resolved once the base is known."""

    def __init__(self, url: str) -> None:
        self.base = self.url = resolve(url, url) or ""
        self.title = self.language = ""
        self.canonical: str | None = None
        self.named: list[tuple[str, bool]] = []
        self._has_base = self._has_title = False

    def scan(self, nodes: Iterable[LexborNode], wishes: _Wishes) -> None:
        """Take in the tags."""
        add = self.named.append
        for node in nodes:
            tag, told = node.tag, node.attributes
            if tag == "a" or tag == "area":  # most are, and this is faster than a search
                href = told.get("href") or ""
                add((href, "rel" not in told or _NO_FOLLOW.isdisjoint((told["rel"] or "").lower().split())))
            elif tag in ("frame", "iframe"):
                self.named.append((told.get("src") or "", True))
            elif tag == "link":
                rels = (told.get("rel") or "").lower().split()
                if "canonical" in rels and self.canonical is None:
                    self.canonical = told.get("href") or ""
                if not {"next", "prev"}.isdisjoint(rels):
                    self.named.append((told.get("href") or "", True))
            elif tag == "meta":
                self._meta(told, wishes)
            elif tag == "html":
                self.language = self.language or told.get("lang") or told.get("xml:lang") or ""
            elif tag == "base" and not self._has_base:
                base = resolve(told.get("href") or "", self.url) or self.url
                self._has_base, self.base = True, base if len(base) <= LONGEST_BASE else ""
            elif tag == "title" and not self._has_title:
                self._has_title, self.title = True, " ".join(node.text()[:10_000].split())[:1_000]

    def _meta(self, told: dict[str, str | None], wishes: _Wishes) -> None:
        content = told.get("content") or ""
        name = (told.get("name") or "").strip().lower()
        if name in ("robots", AGENT):
            wishes.take(content)
        header = (told.get("http-equiv") or "").strip().lower()
        if header == "refresh" and (match := _REFRESH.match(content[:4_000].strip())):
            self.named.append((match[1] or match[2] or match[3] or "", True))
        elif header == "content-language" and not self.language:
            self.language = content.partition(",")[0]

    def addresses(self, table: Addresses, *, nofollow: bool) -> tuple[tuple[Link, ...], bool]:
        """Return the links as absolute addresses, and whether there were too many."""
        if self.canonical is not None:
            self.canonical = resolve(self.canonical, self.base)
        links: dict[str, bool] = {}
        leads_to = table.seen_from(self.base)
        for reference, passes in self.named:
            if (url := leads_to[reference]) is not None and (passes or url not in links):
                links[url] = passes
        if nofollow:
            links = dict.fromkeys(links, False)
        return tuple(map(_link, islice(links.items(), MOST_LINKS))), len(links) > MOST_LINKS


def _visible(body: LexborNode | None) -> tuple[str, bool]:
    """Return the text that a reader sees, with a space where a block begins or ends, and whether it was cut."""
    parts = [" "]
    size, goal = 0, -1  # of a hidden element: the first node behind it
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
            if size > 4 * MOST_TEXT:  # much of it may be white space
                break
        elif tag in _HIDDEN:
            behind = _behind(node)
            if behind is None:
                break
            goal = behind.mem_id
    text = " ".join("".join(parts).split())
    return text[:MOST_TEXT], size > 4 * MOST_TEXT or len(text) > MOST_TEXT


def _behind(node: LexborNode | None) -> LexborNode | None:
    """Return the first node after an element and all that is in it."""
    while node is not None and node.next is None:
        node = node.parent
    return None if node is None else node.next
