from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Names, UsageError
from surveyor.graph.names import Interner


@given(st.lists(st.text(max_size=12), unique=True))
@settings(max_examples=100, deadline=None)
def test_every_name_is_found_again(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    texts = list(dict.fromkeys(texts))
    names = Names.of(texts)
    assert list(names) == texts
    assert [names.find(text) for text in texts] == list(range(len(texts)))
    assert names.find("not there, and longer than any") is None


@given(st.lists(st.binary(max_size=8), max_size=300), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_interning_numbers_by_first_appearance(words: list[bytes], batch: int) -> None:
    interner = Interner(expected=1)
    ids: list[int] = []
    for first in range(0, len(words), batch):
        part = words[first : first + batch]
        ends = np.cumsum([len(word) for word in part])
        spans = np.stack([ends - [len(word) for word in part], ends], axis=1).astype(np.int64)
        ids += interner.intern(np.frombuffer(b"".join(part), np.uint8), spans).tolist()
    expected: dict[bytes, int] = {}
    assert ids == [expected.setdefault(word, len(expected)) for word in words]
    assert [name.encode("utf-8", "surrogateescape") for name in interner.names()] == list(expected)


def test_the_table_grows() -> None:
    interner = Interner(expected=1)
    words = [f"https://example.org/{'x' * (number % 90)}/{number}".encode() for number in range(5_000)]
    ends = np.cumsum([len(word) for word in words])
    spans = np.stack([ends - [len(word) for word in words], ends], axis=1)
    text = np.frombuffer(b"".join(words), np.uint8)
    assert interner.intern(text, spans).tolist() == list(range(5_000))
    assert interner.intern(text, spans[::-1].copy()).tolist() == list(range(5_000))[::-1]
    assert interner.names()[4_999].encode() == words[4_999]


def test_bytes_that_are_not_utf8_survive() -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    names = Names.of([name])
    assert names[0] == name
    assert names.find(name) == 0


def test_indexing_has_edges() -> None:
    names = Names.of(["a", "b"])
    assert names[-1] == "b"
    for place in (2, -3):
        with pytest.raises(IndexError):
            names[place]
    with pytest.raises(UsageError, match="'c'"):
        names.id_of("c")
    assert repr(names) == "Names(2)"
    assert names == Names.of(["a", "b"]) != Names.of(["a", "c"])
    assert hash(names) == hash(Names.of(["a", "b"]))
    assert list(names.take(np.array([1, 0]))) == ["b", "a"]
