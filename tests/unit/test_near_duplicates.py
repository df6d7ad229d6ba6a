"""Near-duplicates by sketches against brute force over the shingles themselves."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.web import near_duplicates as module
from surveyor.web.near_duplicates import SHINGLE, SIMILAR, SIZE, NearDuplicates, groups, similarity, sketch

WORDS = [f"w{number}" for number in range(3_000)]


@lru_cache(maxsize=512)  # brute force compares a text with many
def shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.lower().split()
    return frozenset(tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1))


def exact(first: str, second: str) -> float:
    one, other = shingles(first), shingles(second)
    common = len(one & other)
    return common / max(len(one) + len(other) - common, 1)


def is_close(share: float) -> bool:
    """Return whether an estimate of this similarity may fall on either side of the threshold."""
    return abs(share - SIMILAR) <= 4 * (share * (1 - share) / SIZE) ** 0.5 and share < 1


def text_of(rng: random.Random, count: int) -> list[str]:
    return rng.choices(WORDS, k=count)


def edited(rng: random.Random, words: list[str], share: float) -> list[str]:
    return [rng.choice(WORDS) if rng.random() < share else word for word in words]


def test_groups_are_those_of_brute_force() -> None:
    """300 texts: copies, copies with few other words (similar) and with many (not similar)."""
    rng = random.Random(7)  # noqa: S311
    texts: list[str] = []
    for _ in range(60):
        original = text_of(rng, rng.randint(30, 900))
        texts.append(" ".join(original))
        texts += [" ".join(edited(rng, original, share)) for share in (0.0, 0.002, 0.06, 0.3)]
    rng.shuffle(texts)
    found = {frozenset(group) for group in groups(map(sketch, texts))}
    first: dict[int, list[int]] = {}
    doubtful: set[int] = set()
    for number, text in enumerate(texts):
        shares = {leader: exact(texts[leader], text) for leader in first}
        doubtful |= {one for at, share in shares.items() if is_close(share) for one in (at, number)}
        leader = next((at for at, share in shares.items() if share >= SIMILAR), number)
        first.setdefault(leader, []).append(number)
    expected = {frozenset(group) for group in first.values() if len(group) > 1}
    sure = {group for group in expected if not group & doubtful}
    assert len(sure) >= 30
    assert sure <= found
    for group in found:  # and no group joins texts that are clearly different
        leader = min(group)
        assert min(exact(texts[leader], texts[member]) for member in group) > SIMILAR - 0.11


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2])
def test_the_estimate_of_the_similarity_has_the_stated_standard_error(share: float) -> None:
    rng = random.Random(int(1_000 * share))  # noqa: S311
    errors = []
    for _ in range(200):
        words = text_of(rng, 700)
        first, second = " ".join(words), " ".join(edited(rng, words, share))
        errors.append(similarity(sketch(first), sketch(second)) - exact(first, second))
    assert abs(np.mean(errors)) < 4 * 0.045 / 200**0.5
    assert np.std(errors) <= 0.045 * 1.15
    if share == 0:
        assert not np.any(errors)


@given(st.lists(st.sampled_from("abcde"), max_size=40), st.lists(st.sampled_from("abcde"), max_size=40))
def test_the_similarity_of_short_texts_is_exact(first: list[str], second: list[str]) -> None:
    one, other = " ".join(first), " ".join(second)
    assert len(shingles(one)) <= SIZE
    assert similarity(sketch(one), sketch(other)) == pytest.approx(exact(one, other))


def test_texts_without_spaces_have_shingles_of_characters() -> None:
    text = "日本語の文章には空白がありません。これは短い例文です。"
    assert sketch(text).size > 15
    assert similarity(sketch(text), sketch(text + "東")) > 0.9
    assert groups([sketch(text), sketch(text + "東"), sketch("別の文章です。これは全く違う。")]) == [[0, 1]]


def test_short_and_empty_texts_are_not_compared() -> None:
    assert groups([sketch(text) for text in ("", "", "a b c", "a b c")]) == []


def test_the_first_text_represents_its_group() -> None:
    index = NearDuplicates()
    texts = ["a b c d e f g", "x y z u v w q", "a b c d e f g", "x y z u v w q", "a b c d e f g"]
    assert [index.add(sketch(text)) for text in texts] == [0, 1, 0, 1, 0]


def test_texts_that_share_a_hash_with_many_groups_are_compared_with_a_bounded_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_COMPARED", 3)
    index = NearDuplicates()
    common = "one two three four "
    for number in range(50):
        index.add(sketch(common + " ".join(f"t{number}x{word}" for word in range(30))))
    assert max(map(len, index._by_key.values())) <= 3


def test_many_groups_grow_the_index() -> None:
    texts = [" ".join(f"{number}-{word}" for word in range(20)) for number in range(300)]
    index = NearDuplicates()
    assert [index.add(sketch(text)) for text in texts + texts] == [*range(300), *range(300)]


def test_texts_that_differ_only_after_many_words_are_not_similar() -> None:
    head = [f"h{number}" for number in range(50_000)]
    first, second = (" ".join([*head, *(f"{name}{number}" for number in range(60_000))]) for name in "ab")
    assert exact(first, second) == pytest.approx(0.294, abs=0.001)
    assert similarity(sketch(first), sketch(second)) == pytest.approx(0.294, abs=4 * 0.045)
    assert groups([sketch(first), sketch(second)]) == []


@pytest.mark.parametrize("block", [1, 2, 3, 4, 7, 50])
@pytest.mark.parametrize("words", [3, 4, 5, 40, 700])
def test_a_text_read_in_blocks_has_the_same_sketch(block: int, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = " ".join(text_of(random.Random(words), words)) + "\x1f\u00a0End."  # noqa: S311
    for text in (plain, f"{plain} 日本語の文章には空白がありません。", plain.encode("ascii", "ignore").decode()):
        with monkeypatch.context() as patch:
            whole = sketch(text)
            patch.setattr(module, "LONG", 0)
            patch.setattr(module, "BLOCK", block)
            assert sketch(text).tolist() == whole.tolist()
