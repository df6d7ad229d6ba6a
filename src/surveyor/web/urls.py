"""URL normalisation, hosts and registrable domains of URLs, and a table of URL ids.

**Normalisation** follows the WHATWG URL standard, as browsers do, with further rules so that fewer spellings of one
page remain:

- only http and https; the fragment, user names and passwords, default ports and an empty query are dropped;
- `%41` becomes `A` for letters, digits and `-._~`; other escapes are written in upper case (`%c3` -> `%C3`);
- tracking parameters (`TRACKING`: utm_source, gclid, …) and session ids (`SESSIONS`: PHPSESSID, `;jsessionid=` in
  a path, …; `TOKENS` such as `sid` only where the value looks like a token, since `sid=12` may be a story) are
  dropped, unless `drop_tracking=False`. All other parameters are kept, in their order;
- the result is None if it is longer than 2,000 bytes or not a URL.

Normalisation is idempotent. Most links are in normal form already and are recognised by a pattern instead of the
parser; the result is the same.

**Domains** are registrable domains by the ICANN part of the Public Suffix List (`suffixes.py`): `a.b.co.uk` belongs to
`b.co.uk`, and all blogs of one provider belong to the provider. IP addresses and hosts under no known suffix are their
own domain.

**Ids.** `Urls` gives each normalised URL the next free id. The strings are stored in one blob with a hash table, which
takes 22 to 28 bytes per URL in addition to the string. Aliases (redirects, canonical links) are permanent, as in the
ledger.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
from ada_url import join_url, normalize_url

from surveyor.arrays import MAX_PAGES, ByteArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.web.interning import StringTable
from surveyor.web.references import LONGEST_RAW, is_plain
from surveyor.web.suffixes import Suffixes

LONGEST = 2_000  # bytes of a normalised URL
FEW = 32  # up to this many URLs are read one by one
TRACKING = (
    r"utm_\w*|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|mc_cid|mc_eid|_ga|_gl|"
    r"_hsenc|_hsmi|mkt_tok|vero_id"
)
SESSIONS = r"phpsessid|jsessionid|aspsessionid\w*|cfid|cftoken"
TOKENS = r"sid|sessid|sessionid|session_id"  # dropped with a value of at least 16 letters and digits

_DROPPED = re.compile(rf"(?:{TRACKING}|{SESSIONS})(?:=.*)?|(?:{TOKENS})=[\w,-]{{16,}}", re.ASCII | re.IGNORECASE)
_SESSION_IN_PATH = re.compile(r";jsessionid=[^/;?]*", re.IGNORECASE)
# not after a lone %, where decoding could create a new escape
_ESCAPE = re.compile(  # of unreserved characters, or in lower case: most escapes are neither and cost no call
    r"%(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee]|[0-9A-Fa-f][a-f]|[a-f][0-9A-F])(?<!%%..)(?<!%[0-9A-Fa-f]%..)"
)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def normalise(url: str, base: str | None = None, *, drop_tracking: bool = True) -> str | None:
    """Resolve and normalise a URL; return None if it is not an http(s) URL or too long.

    >>> normalise("../%7Ejoe/?b=2&utm_source=x&a=1#top", "HTTP://Bücher.example:80/shop/list")
    'http://xn--bcher-kva.example/~joe/?b=2&a=1'
    >>> normalise("mailto:joe@example.org") is None
    True
    """
    if is_plain(url):
        return url if len(url) <= LONGEST else None
    if len(url) > LONGEST_RAW and len(url := url.partition("#")[0]) > LONGEST_RAW:
        return None
    try:
        full = normalize_url(url) if base is None else join_url(base, url)
        full = _tidy(full, drop_tracking=drop_tracking)
    except ValueError:
        return None
    return full if 0 < len(full) <= LONGEST else None


def normalise_all(urls: Sequence[str], base: str | None = None, *, drop_tracking: bool = True) -> list[str | None]:
    """Normalise the links of a page; each distinct string is processed once."""
    seen = {url: normalise(url, base, drop_tracking=drop_tracking) for url in dict.fromkeys(urls)}
    return [seen[url] for url in urls]


def _tidy(url: str, *, drop_tracking: bool) -> str:
    """Normalise a URL that the parser has serialised; return an empty string if it is not http(s)."""
    if not url.startswith(("http://", "https://")):
        return ""
    url = url.partition("#")[0]
    if "@" in url:
        start = url.index("//") + 2
        authority, slash, rest = url[start:].partition("/")
        url = url[:start] + authority.rpartition("@")[2] + slash + rest
    if "%" in url:
        url = _ESCAPE.sub(_unescape, url)
    path, _, query = url.partition("?")
    if drop_tracking:
        if ";" in path:
            shorter = _SESSION_IN_PATH.sub("", path)
            path = path if shorter == path else normalize_url(shorter)  # "/..;jsessionid=1" becomes "/.."
        if query:
            query = "&".join([part for part in query.split("&") if not _DROPPED.fullmatch(part)])
    return f"{path}?{query}" if query else path


def _unescape(match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if character in _UNRESERVED else match[0].upper()


def host(url: str) -> str:
    """Return the host of a normalised URL, without the port; an IPv6 address keeps its brackets.

    >>> host("https://example.org:8080/a"), host("http://[::1]/")
    ('example.org', '[::1]')
    """
    authority = _split(url)[2]
    return authority if authority.endswith("]") else authority.rpartition(":")[0] or authority


def origin(url: str) -> str:
    """Return the origin of a normalised URL (scheme, host, port unless default): the range of one robots.txt.

    >>> origin("https://example.org:8080/a?b")
    'https://example.org:8080'
    """
    scheme, _, authority = _split(url)[:3]
    return f"{scheme}//{authority}"


def _split(url: str) -> list[str]:
    parts = url.split("/", 3)
    if len(parts) < 4 or parts[0] not in ("http:", "https:") or parts[1]:
        raise UsageError(f"{url!r} is not a normalised URL", hint="it looks like https://example.org/; see normalise")
    return parts


@lru_cache(maxsize=1 << 16)
def domain(host: str) -> str:
    """Return the registrable domain of a host.

    >>> domain("news.bbc.co.uk"), domain("10.0.0.1"), domain("db.intern")
    ('bbc.co.uk', '10.0.0.1', 'db.intern')
    """
    return _suffixes().domain(host) or host


@cache
def _suffixes() -> Suffixes:
    return Suffixes()


class Urls:
    """Normalised URLs with dense ids, and their aliases."""

    def __init__(self, expected: int = 1 << 12, key: bytes | None = None) -> None:
        """Reserve space for `expected` URLs; `key` is the hash key of the survey (default: that of the process)."""
        self._strings = StringTable(expected, key)
        self._hosts = StringTable(1 << 8, key)
        self._stands_for: IdArray = np.empty(0, np.int32)  # empty until there is an alias
        self._redirects: ByteArray = np.empty(0, np.uint8)  # redirects in a row that led to each page; grows as needed

    def __len__(self) -> int:
        return self._strings.known

    def __getitem__(self, page: int) -> str:
        return self._strings[page].decode("ascii")

    def __repr__(self) -> str:
        return f"Urls({len(self):,})"

    def ids(self, urls: Sequence[str]) -> IdArray:
        """Return the id of each URL; new URLs get the next ids, in order."""
        text = "".join(urls)
        if not text.isascii():
            strange = next(url for url in urls if not url.isascii())
            raise UsageError(f"{strange!r} is not normalised", hint="pass URLs through normalise_all first")
        if len(self) + len(urls) > MAX_PAGES:
            raise UsageError(f"more than {MAX_PAGES:,} URLs", hint="split the survey by domain")
        spans = np.zeros((len(urls), 2), np.int64)
        np.cumsum(np.fromiter(map(len, urls), np.int64, len(urls)), out=spans[:, 1])
        spans[1:, 0] = spans[:-1, 1]
        return self._intern(text, spans)

    def _intern(self, text: str, spans: IntArray) -> IdArray:
        return self._strings.intern(np.frombuffer(text.encode("ascii"), np.uint8), spans)

    def host_ids(self, pages: IdArray) -> IdArray:
        """Return the host id of each page; hosts are numbered in order of first appearance in these calls."""
        from surveyor.kernels.string_table import host_spans

        self._check(pages)
        spans = np.empty((pages.size, 2), np.int64)
        host_spans(self._strings.blob, self._strings.offsets, pages, spans)
        return self._hosts.intern(self._strings.blob, spans)

    def find(self, url: str) -> int | None:
        """Return the id of a URL, or None."""
        return self._strings.find(url.encode("utf-8", "surrogatepass"))

    def added(self, since: int) -> list[str]:
        """Return the URLs with ids from `since` on, which a journal has not written yet."""
        if not 0 <= since <= len(self):
            raise UsageError(f"no ids from {since} on", hint=f"there are {len(self):,} URLs")
        return self._between(since, len(self))

    def texts(self, pages: IdArray) -> list[str]:
        """Return the URLs of pages; consecutive ids, as new links of a page have, are read in one step."""
        if pages.size > FEW and np.array_equal(pages, np.arange(pages[0], pages[0] + pages.size)):
            self._check(pages)
            return self._between(int(pages[0]), int(pages[-1]) + 1)
        return [self[page] for page in pages.tolist()]

    def _between(self, first: int, end: int) -> list[str]:
        ends = self._strings.offsets[first : end + 1].tolist()
        text = self._strings.blob[ends[0] : ends[-1]].tobytes().decode("ascii")
        return [text[start - ends[0] : stop - ends[0]] for start, stop in pairwise(ends)]

    def alias(self, page: int, target: int) -> bool:
        """Make a page an alias of another; return False if it is an alias of a third one, or if that makes a cycle."""
        self._check(np.array([page, target]))
        if not self._stands_for.size:
            self._stands_for = np.arange(len(self), dtype=np.int32)
        now, root = self.canonical(np.array([page, target], np.int32)).tolist()
        if now != page:
            return bool(now == root)
        if root == page:
            return False
        self._stands_for[page] = root
        self._count_redirect(page, target)
        return True

    def redirects(self, page: int) -> int:
        """Return the length of the shortest known chain of redirects that led to a page; 0 if there is none."""
        return int(self._redirects[page]) if page < self._redirects.size else 0

    def _count_redirect(self, page: int, target: int) -> None:
        if target >= self._redirects.size:
            more = np.zeros(target + 1 + target // 4 - self._redirects.size, np.uint8)
            self._redirects = np.concatenate([self._redirects, more])
        hops, known = min(self.redirects(page) + 1, 255), self.redirects(target)
        self._redirects[target] = min(known or hops, hops)

    def canonical(self, pages: IdArray) -> IdArray:
        """Resolve aliases: return the canonical page of each page; most are their own."""
        self._check(pages)
        if not self._stands_for.size:
            return pages.copy()
        if self._stands_for.size < len(self):
            more = np.arange(self._stands_for.size, len(self) + len(self) // 4, dtype=np.int32)
            self._stands_for = np.concatenate([self._stands_for, more])
        roots = self._stands_for[pages]
        while not np.array_equal(further := self._stands_for[roots], roots):
            roots = further
        self._stands_for[pages] = roots
        return roots

    def _check(self, pages: IdArray | IntArray) -> None:
        if pages.size and not (pages.min() >= 0 and pages.max() < len(self)):
            raise UsageError("pages that no URL has", hint=f"ids run from 0 to {len(self) - 1:,}")
