"""Addresses that are remembered or put together are those that the parser gives."""

from __future__ import annotations

import random

import pytest

from surveyor.web.references import REMEMBERED, Addresses, resolve
from surveyor.web.urls import normalise

BASES = (
    "http://h.example/", "http://h.example//", "http://h.example/a/b/c.html?q=1", "https://h.example:8080/a//b/",
    "http://127.0.0.1:8433/x/y/z/", "http://h.example/a/b%2e/c", "http://[::1]/a/", "http://h.example/a?b/c/", "",
)  # fmt: skip
PIECES = (
    "..", "../", "../", "./", "/", "//", "a", "b.html", "?", "q=1", "#", "x", " ", "\t", ":", "http:", "http://",
    "https://o.example", "\\", "%2e", ".", ";", "&utm_source=1", "~u", "é", "mailto:",
)  # fmt: skip


@pytest.mark.parametrize("base", BASES)
def test_whatever_is_written_leads_where_the_parser_says(base: str) -> None:
    draw = random.Random(base)  # noqa: S311  # not for secrets
    raw, spelt = Addresses(), Addresses(normalise)
    for _ in range(4_000):
        reference = "".join(draw.choices(PIECES, k=draw.randrange(6)))
        wanted = resolve(reference, base)
        assert raw.seen_from(base)[reference] == wanted, reference
        assert spelt.seen_from(base)[reference] == (wanted and normalise(wanted)), reference


def test_what_depends_on_the_page_is_not_remembered_for_its_folder() -> None:
    addresses = Addresses()
    for page in ("one", "two"):
        seen = addresses.seen_from(f"https://example.org/a/{page}?q")
        assert seen["#top"] == seen[""] == f"https://example.org/a/{page}?q"
        assert seen["?p"] == f"https://example.org/a/{page}?p"
        assert seen["https:"] == resolve("https:", f"https://example.org/a/{page}?q")
        assert seen["b#c"] == seen["b"] == "https://example.org/a/b"


def test_only_so_many_are_remembered() -> None:
    addresses = Addresses()
    first = addresses.seen_from("https://example.org/")
    for number in range(REMEMBERED + 2):
        assert first[str(number)] == f"https://example.org/{number}"
    again = addresses.seen_from("https://example.org/")
    assert len(first) > REMEMBERED
    assert len(again) == 0
