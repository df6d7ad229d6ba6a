"""The token estimate against counts of two vocabularies, measured once (experiments/tokens.py measures real pages)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.web.tokens import FEATURES, WEIGHTS, estimate_tokens, features
from test_page_text import PROSE, SENTENCES

CODE = 'def mean(values: list[float]) -> float:\n    """Return the mean."""\n    return sum(values) / len(values)\n'
ROW = "- 2026-11-19 | 127.0.0.1 | 12,345.67 | 0x7fff\n"
COUNTED = {  # text, tokens of o200k_base, tokens of Tekken
    "German": (SENTENCES["de"] * 5, 126, 116),
    "French": (SENTENCES["fr"] * 5, 111, 101),
    "Spanish": (SENTENCES["es"] * 5, 121, 111),
    "Japanese": (SENTENCES["ja"] * 5, 181, 175),
    "Russian": (SENTENCES["ru"] * 5, 136, 141),
    "English": (PROSE * 5, 96, 101),
    "code": (CODE * 5, 130, 130),
    "table": (ROW * 10, 310, 410),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_estimate_is_within_a_quarter_of_both_vocabularies(name: str) -> None:
    text, *counts = COUNTED[name]
    for count in counts:
        assert abs(estimate_tokens(text) / count - 1) <= 0.26


@given(st.text(), st.text())
def test_the_estimate_of_a_longer_text_is_not_smaller(first: str, second: str) -> None:
    together = estimate_tokens(f"{first} {second}")
    assert together >= 0
    assert abs(together - estimate_tokens(first) - estimate_tokens(second)) <= 2
    assert features(first).size == len(FEATURES) == WEIGHTS.size
