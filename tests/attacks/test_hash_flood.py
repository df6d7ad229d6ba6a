"""URLs and names chosen so that they meet in one slot of a hash table: without the key they cannot be chosen."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from attack import attack

from surveyor.arrays import KeyArray
from surveyor.graph.names import Interner, Names
from surveyor.kernels.string_table import rehash
from surveyor.web.interning import StringTable
from surveyor.web.urls import Urls

COUNT, SLOTS = 10_000, 1 << 14  # a table of 10,000 strings has so many slots
HOSTS, HOST_SLOTS = 2_000, 1 << 12
SITE = "http://a.example/"
PRIME, MIX = np.uint64(1099511628211), np.uint64(0x9E3779B97F4A7C15)
BASIS = np.array([14695981039346656037], np.uint64)
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", np.uint8)


def fnv(states: KeyArray, letters: KeyArray) -> KeyArray:
    """One step of FNV-1a, the hash without a key that tables had: for each state, with each letter."""
    return ((states[:, None] ^ letters[None, :]) * PRIME).ravel()


def mixed(states: KeyArray) -> KeyArray:
    values = (states ^ (states >> np.uint64(32))) * MIX
    return values ^ (values >> np.uint64(29))


@cache
def crafted(prefix: str, count: int, slots: int) -> list[str]:
    """Texts whose old hashes end in the same bits: all belong into one slot."""
    letters, found = LETTERS.astype(np.uint64), list[str]()
    begun = fnv(fnv(fnv(hashed(prefix), letters), letters), letters)
    spelt = [prefix + "".join(map(chr, three)) for three in product(LETTERS, repeat=3)]
    for text, state in zip(spelt, begun, strict=True):
        ends = fnv(fnv(fnv(np.array([state], np.uint64), letters), letters), letters)
        for place in np.flatnonzero(mixed(ends) % np.uint64(slots) == 0).tolist():
            found.append(text + "".join(chr(LETTERS[place // size % 32]) for size in (1024, 32, 1)))
        if len(found) >= count:
            break
    return found[:count]


def hashed(text: str) -> KeyArray:
    state = BASIS
    for letter in text.encode():
        state = fnv(state, np.array([letter], np.uint64))
    return state


def slot(text: str, slots: int) -> int:
    return int(mixed(hashed(text))[0]) % slots


def drawn(prefix: str, count: int) -> list[str]:
    numbers = np.random.default_rng(5).permutation(1 << 20)[:count]
    return [f"{prefix}{number:06x}" for number in numbers.tolist()]


def probes(texts: list[str], table: StringTable) -> float:
    names = Names.of(texts)
    table.intern(names.blob, np.column_stack([names.offsets[:-1], names.offsets[1:]]))
    assert table.probes.size == len(set(texts))
    return float(table.probes.mean())


@attack(
    "10,000 URLs that share one slot under a hash without a key (FNV-1a)",
    area="hashing",
    must_hold="at most three times the probes of random URLs",
    inputs=COUNT,
)
@pytest.mark.parametrize("kind", ["survey", "process"])
@pytest.mark.slow
def test_crafted_urls_take_no_more_probes_than_random_ones(kind: str) -> None:
    texts = crafted(SITE, COUNT, SLOTS)
    assert len(set(texts)) == COUNT
    assert {slot(text, SLOTS) for text in texts[::500]} == {0}
    if kind == "survey":
        urls, other = Urls(key=b"k" * 16), Urls(key=b"k" * 16)
        urls.ids(texts)
        other.ids(drawn(SITE, COUNT))
        flooded, usual = float(urls._strings.probes.mean()), float(other._strings.probes.mean())
    else:
        flooded, usual = probes(texts, Interner()), probes(drawn(SITE, COUNT), Interner())
    assert flooded <= 3 * usual
    assert usual < 4


def test_the_same_urls_would_take_thousands_of_probes_without_a_key() -> None:
    table, texts = StringTable(COUNT), crafted(SITE, COUNT, SLOTS)
    probes(texts, table)
    assert table._slots.size == SLOTS
    table._hashes[:COUNT] = mixed(np.concatenate([hashed(text) for text in texts]))
    table._slots[:] = -1
    rehash(table._hashes, COUNT, table._slots)
    assert table.probes.mean() == (COUNT + 1) / 2


@attack(
    "2,000 hosts that share one slot under a hash without a key",
    area="hashing",
    must_hold="at most three times the probes of random hosts; hosts are distinguished by their bytes",
    inputs=HOSTS,
)
def test_crafted_hosts_take_no_more_probes_than_random_ones() -> None:
    hosts, mean = crafted("", HOSTS, HOST_SLOTS), []
    assert {slot(host, HOST_SLOTS) for host in hosts[::100]} == {0}
    for names in (hosts, drawn("", HOSTS)):
        urls = Urls()
        pages = urls.ids([f"http://{name}/{number}" for name in names for number in range(2)])
        assert urls.host_ids(pages).tolist() == [number for number in range(HOSTS) for _ in range(2)]
        assert urls._hosts._slots.size == HOST_SLOTS
        mean.append(float(urls._hosts.probes.mean()))
    assert mean[0] <= 3 * mean[1]
