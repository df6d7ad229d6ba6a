"""The hash of the main text: stable under boilerplate, different if the content is."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.fetch.parser import Parser
from surveyor.outcome import TEXT_METHOD, Visit, has_changed
from surveyor.web import main_text as module
from surveyor.web.main_text import SIZE, main_text, text_hash, without_timestamps

URL = "https://example.org/"
HTML = {"content-type": "text/html; charset=utf-8"}
PLAIN = {"content-type": "text/plain"}
WORDS = "The river rises in the mountains and reaches the sea after four hundred miles of forest and farmland. "


def page(content: str = WORDS * 3, *, top: str = "", end: str = "") -> bytes:
    article = f"<article><h1>The river</h1><p>{content}</p><p>{WORDS}</p></article>"
    return f"<html><body><header>{top}</header>{article}<footer>{end}</footer></body></html>".encode()


@pytest.fixture(params=["library", "visible text"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "library":
        pytest.importorskip("resiliparse")
    else:
        monkeypatch.setattr(module, "_extractor", lambda: None)
        monkeypatch.setattr(module, "_method", lambda: b"\0\1")
    return str(request.param)


def test_boilerplate_does_not_count(method: str) -> None:
    before = text_hash(page(top="<nav><a href=/a>Home</a></nav>", end="Generated 2026-11-18 20:13:05"), URL, HTML)
    assert before == text_hash(
        page(top="<nav><a href=/a>Home</a></nav>", end="Generated 2026-11-19 07:01:59"), URL, HTML
    )
    other = text_hash(page(top="<nav><a href=/b>News</a></nav>", end="17 comments"), URL, HTML)
    assert (before == other) == (method == "library")  # all visible text includes it


def test_every_change_of_the_content_counts(method: str) -> None:
    assert method
    hashes = {text_hash(page(text), URL, HTML) for text in (WORDS, WORDS * 2, WORDS.replace("four", "five"), "x")}
    assert len(hashes) == 4
    assert {len(one) for one in hashes} == {SIZE}
    assert len({one[:TEXT_METHOD] for one in hashes}) == 1


def test_white_space_does_not_count(method: str) -> None:
    assert method
    assert text_hash(page(WORDS.replace(" ", "\n  ")), URL, HTML) == text_hash(page(WORDS), URL, HTML)


def test_a_page_without_main_text_counts_with_its_visible_text(method: str) -> None:
    assert method
    menu = b"<nav><a href=/a>One</a> <a href=/b>Two</a></nav>"
    assert "One" in main_text(menu, URL, HTML)
    assert text_hash(b"", URL, HTML) == text_hash(b"<script>1</script>", URL, HTML) == b""


def test_plain_text_counts_as_it_is(method: str) -> None:
    assert method
    assert main_text(b"a <b>c", URL, PLAIN) == "a <b>c"
    assert text_hash(b"", URL, {"content-type": "image/png"}) == b""


def test_two_methods_are_not_comparable(monkeypatch: pytest.MonkeyPatch) -> None:
    one = text_hash(page(), URL, HTML)
    monkeypatch.setattr(module, "_method", lambda: bytes(255 - byte for byte in one[:TEXT_METHOD]))
    other = text_hash(page(), URL, HTML)
    assert one != other
    before, after = (Visit(0, "fetched", hash=bytes([n]), text_hash=text) for n, text in enumerate((one, other)))
    assert has_changed(before, after) is None


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ((b"1", b""), (b"1", b""), False),
        ((b"1", b"mm1"), (b"1", b""), False),
        ((b"1", b""), (b"2", b""), None),
        ((b"1", b"mm1"), (b"2", b""), None),
        ((b"1", b"mm1"), (b"2", b"mm1"), False),
        ((b"1", b"mm1"), (b"2", b"mm2"), True),
        ((b"", b""), (b"", b""), None),
    ],
)
def test_whether_a_page_has_changed(
    before: tuple[bytes, bytes], after: tuple[bytes, bytes], changed: bool | None
) -> None:
    old, new = (Visit(0, "fetched", hash=digest, text_hash=text) for digest, text in (before, after))
    assert has_changed(old, new) is changed


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-11-18 20:13",
        "2026-11-18T20:13:05.123Z",
        "Wed, 18 Nov 2026 20:13:05 GMT",
        "Wed Nov 18 20:13:05 2026",
        "18.11.2026, 20:13",
        "November 18, 2026 at 8:13 pm",
        "20:13:05",
    ],
)
def test_timestamps_are_removed(stamp: str) -> None:
    assert without_timestamps(f"made {stamp}; 3 pages") == "made ; 3 pages"


@pytest.mark.parametrize(
    "text", ["18 November 2026", "2026-11-18", "opens at 20:13", "version 3.11.2", "ratio 10:30", "1:2:3"]
)
def test_content_is_not_removed(text: str) -> None:
    assert without_timestamps(text) == text


@given(st.text(alphabet="0123456789:-. TZapm", max_size=200))
def test_nothing_but_timestamps_is_removed(text: str) -> None:
    rest = iter(text)
    assert all(letter in rest for letter in without_timestamps(text))  # a subsequence


def test_the_parser_process_gives_the_same_hash() -> None:
    async def ask() -> object:
        parser = Parser()
        try:
            return await parser.text_hash(URL, HTML, page())
        finally:
            await parser.close()

    assert asyncio.run(ask()) == text_hash(page(), URL, HTML)
