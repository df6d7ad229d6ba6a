"""Hosts and registrable domains of names, and rules that select names by host, domain or URL prefix.

Names are URLs or host names. All operations are vectorised over a table of names: URLs are parsed some thousand at a
time, and only a host and port that was not seen before is normalised and looked up in the public suffix list. In a host
graph every name is a host, so each is.

| rule | names |
|---|---|
| host | of this host, on any port; with a port, on this port only |
| domain | of a registrable domain, with all its subdomains |
| prefix | this page and all below it; `…/docs*` is any name with this prefix; https equals http |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.names import Interner, Names
from surveyor.web.suffixes import Suffixes, spelt
from surveyor.web.urls import normalise

Level = Literal["hosts", "domains"]
SLASH = ord("/")
NO_SITE = -1  # the host or domain of a name that has none
URL = re.compile(r"https?://[^/]")
ENDS = ("/", "?", "#")  # what may follow the last path segment of a prefix
_QUERY = re.compile(r"[?#\\]")  # ends the host of a URL that has no path
_PORT = re.compile(r":\d+$")
_URL = re.compile(r"https?://(?:[^/?#]*@)?([^/?#\\]*)", re.IGNORECASE)


class SiteIndex:
    """Numbers the hosts or registrable domains of names in the order of first appearance."""

    def __init__(
        self, level: Level = "domains", suffixes: Suffixes | None = None, aliases: Mapping[str, str] | None = None
    ) -> None:
        """Index hosts or domains; each site in `aliases` gets the number of the site that it maps to."""
        if level not in get_args(Level):
            raise UsageError(f"unknown level {level!r}", hint=f"choose {' or '.join(get_args(Level))}")
        self.level: Level = level
        self.suffixes = (suffixes or Suffixes()) if level == "domains" else None
        self._aliases = {self._site(spelt(a) or a): self._site(spelt(b) or b) for a, b in (aliases or {}).items()}
        self._authorities, self._sites = Interner(), Interner()
        self._of_authority: IdArray = np.empty(0, np.int32)
        self._unlisted: list[IntArray] = []  # sites under no known suffix, with duplicates

    def __len__(self) -> int:
        return self._sites.known

    def sites_of(self, names: Names) -> IdArray:
        """Return the site number of each name; -1 for a name without a host."""
        spans = authorities(names)
        at = np.full(len(names), NO_SITE, np.int32)
        urls, others = np.flatnonzero(spans[:, 0] < spans[:, 1]), np.flatnonzero(spans[:, 0] == 0)
        known = self._authorities.known
        ids = self._authorities.intern(names.blob, spans[urls])
        fresh, where = np.unique(ids[ids >= known], return_index=True)
        rows = urls[np.flatnonzero(ids >= known)[where]]
        if fresh.size:
            texts = [names.blob[first:last].tobytes() for first, last in spans[rows].tolist()]
            hosts = [_QUERY.split(text.decode("utf-8", "surrogateescape"), 1)[0].rpartition("@")[2] for text in texts]
            self._of_authority = np.concatenate([self._of_authority, self._numbers(hosts)])
        at[urls] = self._of_authority[ids]
        if others.size:
            text, ends = names.blob.tobytes(), names.offsets.tolist()
            hosts = [text[ends[page] : ends[page + 1]].decode("utf-8", "surrogateescape") for page in others.tolist()]
            at[others] = self._numbers(hosts)
        return at

    def names(self) -> Names:
        """Return the names of the sites."""
        return self._sites.names()

    def in_order(self, kept: IntArray | None = None) -> tuple[Names, IdArray]:
        """Return names in Common Crawl order (by `org.example`), and new numbers by old number; -1 if not kept.

        The array of new numbers ends with an additional -1, the entry of pages without a host.
        """
        names = self.names()
        names = names if kept is None else names.take(kept)
        order = names.reversed_labels().order()
        new: IdArray = np.full(len(self) + 1, NO_SITE, np.int32)
        new[order if kept is None else kept[order]] = np.arange(order.size)
        return names.take(order), new

    @property
    def without_suffix(self) -> IntArray:
        """The sites under no known suffix: hosts that are used as their own domain."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *self._unlisted]))

    def _numbers(self, hosts: list[str]) -> IdArray:
        """Return the site number of each host."""
        spelling = [spelt(host) for host in hosts]
        sites = [self._site(host) if host else "" for host in spelling]
        found = Names.of(self._aliases.get(site, site) for site in sites)
        numbers = np.full(len(hosts), NO_SITE, np.int32)
        some = np.flatnonzero(np.diff(found.offsets))
        spans = np.column_stack([found.offsets[some], found.offsets[some + 1]])
        numbers[some] = self._sites.intern(found.blob, spans)
        if (suffixes := self.suffixes) is not None:
            own = [at for at in some.tolist() if sites[at] == spelling[at] and sites[at] not in self._aliases]
            self._unlisted.append(numbers[[at for at in own if not suffixes.knows(spelling[at])]].astype(np.int64))
        return numbers

    def _site(self, host: str) -> str:
        return host if self.suffixes is None else self.suffixes.domain_of(host)


def hosts_of(names: Names) -> tuple[IdArray, Names]:
    """Return the host number of each page (with its port, if it has one), and the names of the hosts.

    >>> at, hosts = hosts_of(Names.of(["https://a.example/x", "http://a.example", "b", "https://b.example:81/"]))
    >>> at.tolist(), list(hosts)
    ([0, 0, -1, 1], ['a.example', 'b.example:81'])
    """
    spans = authorities(names)
    urls = np.flatnonzero(spans[:, 0] < spans[:, 1])
    interner = Interner()
    at = np.full(len(names), NO_SITE, np.int32)
    at[urls] = interner.intern(names.blob, spans[urls])
    return at, interner.names()


def authorities(names: Names) -> IntArray:
    """Return the start and end in the blob of the host and port of each URL; (0, 0) for other names."""
    blob, first, last = names.blob, names.offsets[:-1], names.offsets[1:]
    start = np.where(_starts(blob, first, last, b"http://"), first + 7, 0)
    start = np.where(_starts(blob, first, last, b"https://"), first + 8, start)
    slashes = np.append(np.flatnonzero(blob == SLASH), blob.size)
    end = np.minimum(slashes[np.searchsorted(slashes, start)], last)
    return np.column_stack([start, np.where(start > 0, end, 0)])


def _starts(blob: ByteArray, first: IntArray, last: IntArray, with_: bytes) -> BoolArray:
    """Return which names start with these bytes."""
    long = last - first >= len(with_)
    same = long.copy()
    for step, letter in enumerate(with_):
        same[long] &= (blob[first[long] + step] | (0x20 if chr(letter).isalpha() else 0)) == letter
    return same


def on_host(names: Names, host: str) -> BoolArray:
    """Return which names are of a host."""
    if has_port(host):
        at, hosts = hosts_of(names)
        return np.array([*map(host_matcher(host), hosts), False])[at]
    return where(names, spelt(host).__eq__)


def in_domain(names: Names, domain: str) -> BoolArray:
    """Return which names are of a registrable domain; by suffix, as an unlisted `db.intern` has subdomains, too."""
    return where(names, domain_matcher(Suffixes().domain(domain)))


def where(names: Names, matches: Callable[[str], bool]) -> BoolArray:
    """Return which names are of hosts for which `matches` is true; it is called once per host."""
    hosts = SiteIndex("hosts")
    at = hosts.sites_of(names)
    return np.array([*map(matches, hosts.names()), False])[at]  # -1: no host


def has_port(host: str) -> bool:
    """Return whether a host includes a port."""
    return _PORT.search(host) is not None


def host_matcher(host: str) -> Callable[[str], bool]:
    """Return a predicate that is true if a host with its port is this one."""
    wanted, port = spelt(host), host.rpartition(":")[2]
    return lambda name: spelt(name) == wanted and name.rpartition(":")[2] == port


def domain_matcher(domain: str) -> Callable[[str], bool]:
    """Return a predicate that is true for this host and its subdomains."""
    return lambda host: host == domain or host.endswith(f".{domain}")


def authority(name: str) -> str:
    """Return the host and port of a URL; any other name is returned as it is.

    >>> authority("HTTP://Example.org:8080?x"), authority("example.org")
    ('Example.org:8080', 'example.org')
    """
    found = _URL.match(name)
    return found[1] if found else name


class UrlPrefix:
    """A URL prefix."""

    def __init__(self, text: str) -> None:
        self.is_open = text.endswith("*")  # anything may follow
        bare = text.rstrip("*")
        spellings = {bare, (normalise(bare) or bare) if "://" in bare else bare}
        self._starts = sorted({spelling.partition("://")[2] or spelling for spelling in spellings})

    def matches(self, name: str) -> bool:
        """Return whether a name has this prefix, in any scheme, and ends there or continues with `/`, `?` or `#`."""
        rest = name.partition("://")[2] if _URL.match(name) else name
        return any(
            rest.startswith(start)
            and (self.is_open or start.endswith("/") or not rest[len(start) :] or rest[len(start)] in ENDS)
            for start in self._starts
        )

    def select(self, names: Names) -> BoolArray:
        """Return which names have this prefix."""
        first, last = names.offsets[:-1], names.offsets[1:]
        begins = np.where((at := authorities(names)[:, 0]) > 0, at, first)
        found = np.zeros(len(names), np.bool_)
        for start in self._starts:
            letters = start.encode("utf-8", "surrogateescape")
            left = np.flatnonzero(last - begins >= len(letters))
            for step, letter in enumerate(letters):
                left = left[names.blob[begins[left] + step] == letter]
            if not self.is_open and not letters.endswith(b"/"):
                after = begins[left] + len(letters)
                inside = after < last[left]
                left = left[~inside | np.isin(names.blob[np.where(inside, after, 0)], [ord(end) for end in ENDS])]
            found[left] = True
        return found
