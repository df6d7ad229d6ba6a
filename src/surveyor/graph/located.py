"""Select names on a host, in a domain or below a URL prefix: rules shared by communities and samples.

| rule | names |
|---|---|
| host | of this host, on any port; with a port, on this port only |
| domain | of a registrable domain, with all its subdomains |
| prefix | this page and all below it; `…/docs*` is any name with this prefix; https equals http |

Names are URLs or hosts. All operations are vectorised over a table of names.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from surveyor.arrays import BoolArray
from surveyor.graph.names import Names
from surveyor.graph.places import Places
from surveyor.graph.sites import authorities, hosts_of
from surveyor.web.suffixes import Suffixes, spelt
from surveyor.web.urls import normalise

ENDS = ("/", "?", "#")  # what may follow the last path segment of a prefix
_PORT = re.compile(r":\d+$")
_URL = re.compile(r"https?://(?:[^/?#]*@)?([^/?#\\]*)", re.IGNORECASE)


def on_host(names: Names, host: str) -> BoolArray:
    """Return which names are of a host."""
    if has_port(host):
        at, hosts = hosts_of(names)
        return np.array([*map(is_at(host), hosts), False])[at]
    return where(names, spelt(host).__eq__)


def in_domain(names: Names, domain: str) -> BoolArray:
    """Return which names are of a registrable domain; by suffix, as an unlisted `db.intern` has subdomains, too."""
    return where(names, ends_with(Suffixes().domain(domain)))


def where(names: Names, is_meant: Callable[[str], bool]) -> BoolArray:
    """Return which names are of hosts for which `is_meant` is true; it is called once per host."""
    places = Places("hosts")
    at = places.of(names)
    return np.array([*map(is_meant, places.names()), False])[at]  # -1: no host


def has_port(host: str) -> bool:
    """Return whether a host includes a port."""
    return _PORT.search(host) is not None


def is_at(host: str) -> Callable[[str], bool]:
    """Return a predicate that is true if a host with its port is this one."""
    wanted, port = spelt(host), host.rpartition(":")[2]
    return lambda name: spelt(name) == wanted and name.rpartition(":")[2] == port


def ends_with(domain: str) -> Callable[[str], bool]:
    """Return a predicate that is true for this host and its subdomains."""
    return lambda host: host == domain or host.endswith(f".{domain}")


def authority(name: str) -> str:
    """Return the host and port of a URL; any other name is returned as it is.

    >>> authority("HTTP://Example.org:8080?x"), authority("example.org")
    ('Example.org:8080', 'example.org')
    """
    found = _URL.match(name)
    return found[1] if found else name


class Prefix:
    """A URL prefix."""

    def __init__(self, text: str) -> None:
        self.is_open = text.endswith("*")  # anything may follow
        bare = text.rstrip("*")
        spellings = {bare, (normalise(bare) or bare) if "://" in bare else bare}
        self._starts = sorted({spelling.partition("://")[2] or spelling for spelling in spellings})

    def holds(self, name: str) -> bool:
        """Return whether a name has this prefix, in any scheme, and ends there or continues with `/`, `?` or `#`."""
        rest = name.partition("://")[2] if _URL.match(name) else name
        return any(
            rest.startswith(start)
            and (self.is_open or start.endswith("/") or not rest[len(start) :] or rest[len(start)] in ENDS)
            for start in self._starts
        )

    def among(self, names: Names) -> BoolArray:
        """Return which names have this prefix."""
        first, last = names.offsets[:-1], names.offsets[1:]
        begin = np.where((at := authorities(names)[:, 0]) > 0, at, first)
        found = np.zeros(len(names), np.bool_)
        for start in self._starts:
            letters = start.encode("utf-8", "surrogateescape")
            left = np.flatnonzero(last - begin >= len(letters))
            for step, letter in enumerate(letters):
                left = left[names.blob[begin[left] + step] == letter]
            if not self.is_open and not letters.endswith(b"/"):
                after = begin[left] + len(letters)
                inside = after < last[left]
                left = left[~inside | np.isin(names.blob[np.where(inside, after, 0)], [ord(end) for end in ENDS])]
            found[left] = True
        return found
