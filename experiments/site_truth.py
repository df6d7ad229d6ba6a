"""The truth about a real site: the graph that a perfect crawler would see, found without any code of the crawler.

A breadth-first search from the entry asks the server's own look-up (`SiteServer.find`), reads HTML with Python's
`html.parser` and resolves with `urllib.parse`, where the crawler has an HTTP client, lexbor and ada. What counts as a
link is what `links` documents; how pages become a graph is what `web_truth` documents:

| status | pages | links |
|---|---|---|
| fine | HTML | distinct addresses of the same host, without itself, without nofollow, without files |
| other | 200, but no HTML | none |
| gone | 404 | none |
| alias | redirects; canonical is another page of the host | none; links to it lead to what it stands for |

Links whose path ends like a file that holds no links (`scope.FILES`) are out of scope, as are other hosts. URLs are
spelt as browsers do, with unreserved characters unescaped; those longer than 2,000 letters are none.
Importance is PageRank with jumps to the entry.

Limits: `html.parser` builds no tree. It reads a link wherever its tag stands, but not in templates, comments, scripts
and what else HTML takes for text (`TEXT`).
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from multiprocessing import get_context
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import numpy as np

from experiments.sites import Found, SiteServer
from surveyor.arrays import ByteArray, IntArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.rank.pagerank import Ranking, pagerank
from surveyor.web.scope import FILES

STATUSES = ("fine", "other", "gone", "alias")
FINE, OTHER, GONE, ALIAS = range(4)
TOLERANCE = 1e-12
LONGEST = 2_000  # letters of a URL
TEXT = frozenset(("textarea", "title", "iframe", "noembed", "noframes", "xmp"))  # no tags in these
HTML = frozenset(("text/html", "application/xhtml+xml"))
NO_FOLLOW = frozenset(("nofollow", "ugc", "sponsored", "none"))
CHARSET = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
REFRESH = re.compile(r"""\s*[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?["']?([^"']*)""", re.IGNORECASE)
HOST = re.compile(r"[^\s\0-\x20#%/:<>?@\[\\\]^|\x7f]+")  # what may be one, before it is turned into ASCII
ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
SAFE_IN_PATH = "%/:@!$&'()*+,;=~|[]-._"
SAFE_IN_QUERY = "%/:@!$&()*+,;=~|[]-._?^`{}\\"


class Said(NamedTuple):
    """What the tags of a file say, as written."""

    links: tuple[tuple[str, bool], ...]  # reference, and whether it passes importance on
    base: str | None
    canonical: str | None


class _Tags(HTMLParser):
    """Gathers references in the order of the file."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[tuple[str, bool]] = []
        self.base: str | None = None
        self.canonical: str | None = None
        self.nofollow = False
        self._templates = 0
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._text:
            return
        if tag == "template":
            self._templates += 1
        attributes = {name: value or "" for name, value in reversed(attrs)}  # of repeated ones the first counts
        if not self._templates:
            self._take(tag, attributes)
        self._text = tag if tag in TEXT else ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self._text:
            self._text = ""
        elif tag == "template" and self._templates and not self._text:
            self._templates -= 1

    def _take(self, tag: str, attributes: dict[str, str]) -> None:
        rels = set(attributes.get("rel", "").lower().split())
        if tag in ("a", "area") and "href" in attributes:
            self.found.append((attributes["href"], not rels & NO_FOLLOW - {"none"}))
        elif tag in ("frame", "iframe") and "src" in attributes:
            self.found.append((attributes["src"], True))
        elif tag == "link" and "href" in attributes:
            if rels & {"next", "prev"}:
                self.found.append((attributes["href"], True))
            if "canonical" in rels and self.canonical is None:
                self.canonical = attributes["href"]
        elif tag == "base" and "href" in attributes and self.base is None:
            self.base = attributes["href"]
        elif tag == "meta":
            content = attributes.get("content", "")
            if attributes.get("name", "").strip().lower() in ("robots", "surveyor"):
                self.nofollow |= not NO_FOLLOW.isdisjoint(re.split(r"[\s,]+", content.lower()))
            if attributes.get("http-equiv", "").strip().lower() == "refresh" and (match := REFRESH.match(content)):
                self.found.append((match[1], True))


def read_file(found: Found) -> Said:
    """Read what the tags of a file say."""
    body = found.file.read_bytes() if found.file else b""
    body = gzip.decompress(body) if found.zipped else body
    tags = _Tags()
    tags.feed(_text(body))
    tags.close()
    return Said(tuple((link, passes and not tags.nofollow) for link, passes in tags.found), tags.base, tags.canonical)


def _text(body: bytes) -> str:
    match = CHARSET.search(body[:2_048])
    try:
        return body.decode(match[1].decode() if match else "utf-8")
    except (LookupError, UnicodeDecodeError):
        return body.decode("cp1252", "replace")


def resolve(base: str, reference: str) -> str | None:
    """Return the address that a reference means, spelt in one way; None if it is not http(s) or too long."""
    reference = re.sub(r"[\t\n\r]", "", reference.strip("".join(map(chr, range(33)))))
    before, mark, query = reference.partition("#")[0].partition("?")
    if not re.match(r"(?!https?:)[a-z][a-z0-9+.-]*:", before, re.IGNORECASE):
        before = before.replace("\\", "/")
    try:
        parts = urlsplit(urljoin(base, before + mark + query))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not HOST.fullmatch(host):
        return None
    usual = 443 if parts.scheme == "https" else 80
    place = host + (f":{port}" if port and port != usual else "")
    path = ESCAPE.sub(_unescape, quote(parts.path or "/", safe=SAFE_IN_PATH))
    asked = ESCAPE.sub(_unescape, quote(parts.query, safe=SAFE_IN_QUERY))
    url = f"{parts.scheme}://{place}{path}" + (f"?{asked}" if asked else "")
    return url if len(url) <= LONGEST else None


def _unescape(match: re.Match[str]) -> str:
    letter = chr(int(match[1], 16))
    return letter if letter.isascii() and (letter.isalnum() or letter in "-._~") else match[0].upper()


@dataclass(frozen=True)
class SiteTruth:
    """The graph of a site, and the status of each URL."""

    graph: Graph  # a multigraph, ids as in `urls`
    urls: tuple[str, ...]
    statuses: ByteArray  # `STATUSES` names the numbers
    stands_for: IntArray  # of each URL: the one it is an alias of, or itself
    links: Counter[str]  # distinct addresses on pages, by where they lead: site, other host, file, nofollow
    damping: float

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each URL."""
        return {url: page for page, url in enumerate(self.urls)}

    @cached_property
    def importance(self) -> Ranking:
        """PageRank with jumps to the entry, which is page 0."""
        teleport = np.zeros(len(self.urls))
        teleport[self.stands_for[0]] = 1
        return pagerank(self.graph, self.damping, TOLERANCE, teleport)

    @property
    def leaving(self) -> float:
        """The share of all links on pages that lead to other hosts."""
        return self.links["other host"] / max(1, self.links.total())

    def with_status(self, *statuses: int) -> list[str]:
        """Return the URLs with one of these statuses."""
        return [self.urls[page] for page in np.flatnonzero(np.isin(self.statuses, statuses)).tolist()]

    def coverage(self, read: Iterable[str]) -> float:
        """Return how much of all importance these pages hold."""
        pages = {int(self.stands_for[self.ids[url]]) for url in read if url in self.ids}
        return float(self.importance.scores[sorted(pages)].sum())

    def __repr__(self) -> str:
        counts = ", ".join(f"{(self.statuses == status).sum():,} {name}" for status, name in enumerate(STATUSES))
        return f"SiteTruth({counts}; {self.graph.links:,} links; {self.leaving:.1%} of all links leave)"


def find_truth(web: SiteServer, name: str, *, damping: float = 0.85, workers: int = 1) -> SiteTruth:
    """Follow all links of a site from its entry; files are read by so many processes."""
    walk = _Walk(web, web.entry(name))
    if workers == 1:
        walk.run(map)
    else:  # processes that are no copies of this one: it has a thread that serves
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            walk.run(lambda read, files: pool.map(read, files, chunksize=16))
    return walk.truth(damping)


Read = Callable[[Callable[[Found], Said], list[Found]], Iterable[Said]]


class _Walk:
    """A breadth-first search."""

    def __init__(self, web: SiteServer, entry: str) -> None:
        self.web = web
        self.place = urlsplit(entry).netloc
        self.host = self.place.partition(":")[0]
        self.urls = [entry]  # in the order of discovery
        self.ids = {entry: 0}
        self.statuses: dict[int, int] = {}
        self.rows: dict[int, list[int]] = {}
        self.goals: dict[int, int] = {}
        self.links: Counter[str] = Counter()

    def run(self, read: Read) -> None:
        """Visit all URLs, those of one distance together."""
        done = 0
        while done < len(self.urls):
            level = list(range(done, len(self.urls)))
            done += len(level)
            found = {page: answer for page in level if (answer := self._visit(page)).file is not None}
            for (page, _), said in zip(found.items(), read(read_file, list(found.values())), strict=True):
                self._look(self.urls[page], page, said)

    def _visit(self, page: int) -> Found:
        """Decide the status of a URL; return the file if it is a page with links."""
        parts = urlsplit(self.urls[page])
        found = self.web.find(self.host, parts.path + (f"?{parts.query}" if parts.query else ""))
        if found.target:
            self.statuses[page] = ALIAS
            self.goals[page] = self._number(resolve(self.urls[page], found.target) or "")
        elif found.file is None:
            self.statuses[page] = GONE
        elif found.kind not in HTML:
            self.statuses[page] = OTHER
        else:
            self.statuses[page] = FINE
            return found
        return Found(found.status)

    def _look(self, url: str, page: int, said: Said) -> None:
        """Note the links of a page, or the page that it stands for."""
        base = resolve(url, said.base or "") or url
        passing: dict[str, bool] = {}
        for reference, passes in said.links:
            if (goal := resolve(base, reference)) is not None:
                passing[goal] = passing.get(goal, False) or passes
        canonical = resolve(base, said.canonical) if said.canonical is not None else None
        if canonical not in (None, url) and self._where(canonical or "") == "site":
            self.statuses[page] = ALIAS
            self.goals[page] = self._number(canonical or "")
            return
        self.rows[page] = []
        for goal, passes in passing.items():
            where = self._where(goal) if passes else "nofollow"
            if goal != url:
                self.links[where] += 1
                if where == "site":
                    self.rows[page].append(self._number(goal))

    def _where(self, url: str) -> str:
        parts = urlsplit(url)
        if parts.netloc != self.place:
            return "other host"
        _, dot, ending = parts.path.rpartition("/")[2].rpartition(".")
        return "file" if dot and ending.lower() in FILES else "site"

    def _number(self, url: str) -> int:
        if url not in self.ids:
            self.ids[url] = len(self.urls)
            self.urls.append(url)
        return self.ids[url]

    def truth(self, damping: float) -> SiteTruth:
        """Merge aliases and gather all that was found."""
        count = len(self.urls)
        stands_for = np.array([self._final(page) for page in range(count)], np.int64)
        rows = [np.sort(stands_for[self.rows.get(page, [])]) for page in range(count)]
        indptr = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
        graph = Graph(indptr, np.concatenate(rows).astype(np.int32), names=Names.of(self.urls))
        statuses = np.array([self.statuses[page] for page in range(count)], np.uint8)
        return SiteTruth(graph, tuple(self.urls), read_only(statuses), read_only(stands_for), self.links, damping)

    def _final(self, page: int) -> int:
        """Follow aliases to their end."""
        start, steps = page, 0
        while page in self.goals:
            page, steps = self.goals[page], steps + 1
            if steps > len(self.goals):
                raise UsageError(
                    f"{self.urls[start]} is its own alias, by a loop of canonical links", hint="fix the site"
                )
        return page
