"""The keyed hash of string tables, and the tables: ids follow from the order of strings alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Graph, UsageError, read_graph
from surveyor.kernels.string_table import LAST_ROUNDS, ROUNDS, hash_bytes, sip_hash
from surveyor.store.snapshot import restore, snapshot
from surveyor.web.interning import StringTable, key_words, process_key
from surveyor.web.urls import Urls

BITS = (1 << 64) - 1
KEY = bytes(range(16))
# SipHash-2-4 of the bytes 0, 1, 2 … of each length, under KEY, by its authors (github.com/veorq/SipHash, vectors.h)
VECTORS = bytes.fromhex(
    "310e0edd47db6f72fd67dc93c539f8745a4fa9d909806c0d2d7efbd796666785b7877127e09427cf8da699cd64557618"
    "cee3fe586e46c9cb37d1018bf50002ab6224939a79f5f593b0e4a90bdf82009ef3b9dd94c5bb5d7aa7ad6b22462fb3f4"
    "fbe50e86bc8f1e75903d84c02756ea14eef27a8e90ca23f7e545be4961ca29a1db9bc2577fcc2a3f9447be2cf5e99a69"
    "9cd38d96f0b3c14bbd6179a71dc96dbb98eea21af25cd6bec7673b2eb0cbf2d0883ea3e395675393c8ce5ccd8c030ca8"
    "94af49f6c650adb8eab8858ade92e1bcf315bb5bb835d817adcf6b0763612e2fa5c91da7acaa4dde716595876650a2a6"
    "28ef495c53a387ad42c341d8fa92d832ce7cf2722f512771e37859f94623f3a7381205bb1ab0e012ae97a10fd434e015"
    "b4a31508beff4d3181396229f09079024d0cf49ee5d4dcca5c73336a76d8bf9ad0a704536ba93e0e925958fcd6420cad"
    "a915c29bc8067318952b79f3bc0aa6d4f21df2e41d4535f987577519048f53a910a56cf5dfcd9adbeb75095ccd986cd0"
    "51a9cb9ecba312e696afadfc2ce666c772fe52975a4364ee5a1645b276d592a1b274cb8ebf87870a6f9bb4203de7b381"
    "eaecb2a30b22a87f9924a43cc1315724bd838d3aafbf8db70b1a2a3265d51aea135079a3231ce660932b2846e4d70666"
    "e1915f5cb1eca46cf325965ca16d629f575ff28e60381be5724506eb4c328a95"
)


def siphash(text: bytes, key: bytes, rounds: int, last_rounds: int) -> int:
    """The algorithm as its paper has it, in plain Python."""
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turn(word: int, by: int) -> int:
        return (word << by | word >> (64 - by)) & BITS

    def mix() -> None:
        v[0], v[2] = (v[0] + v[1]) & BITS, (v[2] + v[3]) & BITS
        v[1], v[3] = turn(v[1], 13) ^ v[0], turn(v[3], 16) ^ v[2]
        v[0] = turn(v[0], 32)
        v[2], v[0] = (v[2] + v[1]) & BITS, (v[0] + v[3]) & BITS
        v[1], v[3] = turn(v[1], 17) ^ v[2], turn(v[3], 21) ^ v[0]
        v[2] = turn(v[2], 32)

    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        for _ in range(rounds):
            mix()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(last_rounds):
        mix()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def compiled(text: bytes, key: bytes, rounds: int = ROUNDS, last_rounds: int = LAST_ROUNDS) -> int:
    letters = np.frombuffer(b"??" + text + b"!", np.uint8)  # from within a longer text
    return int(sip_hash(letters, 2, 2 + len(text), key_words(key), rounds, last_rounds))


def test_the_hash_is_siphash_by_the_vectors_of_its_authors() -> None:
    for length in range(64):
        text, expected = bytes(range(length)), int.from_bytes(VECTORS[8 * length : 8 * length + 8], "little")
        assert siphash(text, KEY, 2, 4) == expected
        assert compiled(text, KEY, 2, 4) == expected


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=300), st.binary(min_size=16, max_size=16))
def test_the_hash_of_tables_is_siphash_1_3(text: bytes, key: bytes) -> None:
    assert (ROUNDS, LAST_ROUNDS) == (1, 3)
    assert compiled(text, key) == siphash(text, key, 1, 3)
    letters = np.frombuffer(text, np.uint8)
    assert int(hash_bytes(letters, 0, letters.size, key_words(key))) == siphash(text, key, 1, 3)


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="Python was built with another hash")
def test_python_hashes_in_the_same_way_under_a_key_of_zeros() -> None:
    texts = [bytes(range(1, length)) for length in range(2, 40)]
    code = f"print(*map(hash, {texts!r}))"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": "0"}, capture_output=True, check=True)
    assert [int(word) & BITS for word in done.stdout.split()] == [compiled(text, bytes(16)) for text in texts]


def test_keys_have_sixteen_bytes() -> None:
    assert process_key() == process_key() != bytes(16)
    assert key_words().tobytes() == process_key()
    with pytest.raises(UsageError, match="a hash key of 3 bytes"):
        Urls(key=b"abc")


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text("abc/:", max_size=6), max_size=60), st.binary(min_size=16, max_size=16))
def test_ids_do_not_depend_on_the_key(paths: list[str], key: bytes) -> None:
    texts = [f"http://{path.replace('/', '')}.example/{path}" for path in paths]
    mine, other = Urls(1, key), Urls(1)
    assert mine.ids(texts).tolist() == other.ids(texts).tolist()
    pages = np.arange(len(mine), dtype=np.int32)
    assert mine.host_ids(pages).tolist() == other.host_ids(pages).tolist()
    assert [mine.find(text) for text in texts] == [other.find(text) for text in texts]


def test_hosts_with_equal_hashes_are_distinguished_by_their_bytes() -> None:
    urls, names = Urls(), ["a.example", "b.example", "b.example:81", "c.example", "a.example"]
    pages = urls.ids([f"https://{name}/{number}" for number, name in enumerate(names)])
    assert urls.host_ids(pages).tolist() == [0, 1, 1, 2, 0]
    table = StringTable(4)
    text = np.frombuffer(b"aabb", np.uint8)
    table.intern(text, np.array([[0, 1]]))
    table._hashes[0] = hash_bytes(text, 2, 3, table._key)  # as if "a" and "b" had one hash
    table._slots[:] = -1
    table._slots[int(table._hashes[0]) % table._slots.size] = 0
    assert table.intern(text, np.array([[2, 3], [3, 4], [2, 3]])).tolist() == [1, 1, 1]
    assert [table[number] for number in range(len(table))] == [b"a", b"b"]


def test_files_of_graphs_do_not_depend_on_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = tmp_path / "links.tsv"
    links.write_text(
        "".join(f"https://h{n % 7}.example/{n}\thttps://h{n % 5}.example/{n * n % 50}\n" for n in range(90))
    )
    written = []
    for number in range(2):
        monkeypatch.setattr("surveyor.web.interning.process_key", lambda number=number: bytes([number] * 16))
        graph: Graph = read_graph(links)
        graph.save(tmp_path / f"g{number}")
        assert graph.names is not None
        assert graph.names.find("https://h0.example/0") == 0
        assert graph.names.repeats() == 0
        files = sorted(path for path in (tmp_path / f"g{number}").rglob("*") if path.suffix == ".npy")
        written.append([(path.name, path.read_bytes()) for path in files])
    assert written[0] == written[1]
    assert len(written[0]) >= 3


def test_a_checkpoint_keeps_the_tables() -> None:
    urls, texts = Urls(key=KEY), [f"http://h{number % 5}.example/{number}" for number in range(100)]
    pages = urls.ids(texts)
    hosts = urls.host_ids(pages).tolist()
    frozen = snapshot({"urls": urls})
    assert frozen is not None
    other = Urls(key=KEY)
    restore({"urls": other}, {name: array.copy() for name, array in frozen[0].items()}, frozen[1])
    assert other.ids([*texts, "http://new.example/"]).tolist() == list(range(101))
    assert other.host_ids(pages).tolist() == hosts
