"""The shard of a page: a hash of its registrable domain, modulo the number of shards.

All hosts of a domain are in one shard, so that delays, budgets and robots.txt need no communication. The hash is fixed
(BLAKE2b), so every process and every version computes the same shard.

    >>> shard_of("example.org", 4), shard_of("example.org", 1)
    (1, 0)
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.errors import InputError, UsageError
from surveyor.web.urls import Urls, domain, host

MOST_SHARDS = 4096


@lru_cache(maxsize=1 << 16)
def shard_of(name: str, shards: int) -> int:
    """Return the shard of a registrable domain, or of an address."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") % shards


class Placement(Protocol):
    """The shards of the pages of one shard and of their names."""

    index: int  # of this shard
    shards: int
    knows_pages: bool

    def owners(self, pages: IdArray) -> IntArray:
        """Return the shard of each page."""

    def names(self, pages: IdArray) -> list[str]:
        """Return the names of pages, the same in every shard."""

    def owns(self, names: list[str]) -> bool:
        """Return whether all named pages are of this shard; raise InputError if one is not a name."""

    def ids(self, names: list[str]) -> IdArray:
        """Return the ids of named pages in this shard; new pages get ids."""


class UrlPlacement:
    """The shards of URLs."""

    def __init__(self, urls: Urls, index: int, shards: int, *, knows_pages: bool = True) -> None:
        """Without `knows_pages`, the URLs are about to be restored."""
        self.index, self.shards, self.knows_pages, self._urls = index, shards, knows_pages, urls

    def owners(self, pages: IdArray) -> IntArray:
        """Return the shard of each page."""
        shards = self.shards
        found = [shard_of(domain(host(url)), shards) for url in self._urls.texts(pages)]
        return np.array(found, np.int64)

    def names(self, pages: IdArray) -> list[str]:
        """Return the URLs of pages."""
        return self._urls.texts(pages)

    def owns(self, names: list[str]) -> bool:
        """Return whether all URLs are of this shard."""
        try:
            return all(shard_of(domain(host(name)), self.shards) == self.index for name in names)
        except (UsageError, ValueError) as error:
            raise InputError(f"a batch of mass is damaged: {error}", hint="restart the crawl") from error

    def ids(self, names: list[str]) -> IdArray:
        """Return the ids of URLs; new ones get the next ids."""
        return self._urls.ids(names)


class GraphPlacement:
    """The shards of the pages of a known graph, which have the same id in every shard."""

    def __init__(self, owner: IntArray, index: int, shards: int) -> None:
        self.index, self.shards, self.knows_pages, self._owner = index, shards, True, owner

    def owners(self, pages: IdArray) -> IntArray:
        """Return the shard of each page."""
        return self._owner[pages]

    def names(self, pages: IdArray) -> list[str]:
        """Return the ids of pages as text."""
        return [str(page) for page in pages.tolist()]

    def owns(self, names: list[str]) -> bool:
        """Return whether all pages are of this shard."""
        return bool((self._owner[self.ids(names)] == self.index).all())

    def ids(self, names: list[str]) -> IdArray:
        """Return the ids that texts name."""
        return np.array([int(name) for name in names], np.int32)
