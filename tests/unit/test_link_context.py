"""Contexts of links: their extraction from pages, and how the journal stores them."""

from __future__ import annotations

import time
import zlib

import numpy as np
import pytest

from surveyor.web import link_context
from surveyor.web.html import read_cheap_page, read_page
from surveyor.web.link_context import LinkContext, by_page, mark, order, pack, renumbered, unpack
from surveyor.web.references import Addresses

URL = "https://example.org/a/"
HTML = {"content-type": "text/html"}


def contexts(html: str) -> dict[str, LinkContext]:
    page = read_page(html.encode(), URL, headers=HTML)
    read = unpack(pack(page.anchors, page.marks), len(page.links))
    return {link.url.removeprefix("https://example.org/"): found for link, found in zip(page.links, read, strict=True)}


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href=b>  One\n two </a>", LinkContext("One two", "a", "main", "")),
        ("<a href=b rel='External NOFOLLOW x'>t</a>", LinkContext("t", "a", "main", "nofollow external")),
        ("<nav><ul><li><a href=b>t</a></ul></nav>", LinkContext("t", "a", "navigation", "")),
        ("<div role=navigation class=related><a href=b>t</a></div>", LinkContext("t", "a", "navigation", "")),
        ("<div class='x navheader'><a href=b>t</a></div>", LinkContext("t", "a", "navigation", "")),
        ("<div role=contentinfo><a href=b>t</a></div>", LinkContext("t", "a", "footer", "")),
        ("<header><a href=b>t</a></header>", LinkContext("t", "a", "header", "")),
        ("<article><header><a href=b>t</a></header></article>", LinkContext("t", "a", "main", "")),
        ("<footer><nav><a href=b>t</a></nav></footer>", LinkContext("t", "a", "navigation", "")),
        ("<aside><a href=b>t</a></aside>", LinkContext("t", "a", "aside", "")),
        ("<nav></nav><a href=b>t</a>", LinkContext("t", "a", "main", "")),
        ("<nav><link href=x><svg><use href=y></svg></nav><a href=b>t</a>", LinkContext("t", "a", "main", "")),
        ("<link href=x><nav><link href=y><a href=b>t</a></nav>", LinkContext("t", "a", "navigation", "")),
        ("<nav><a name=x>y</a><a role=banner href=b>t</a></nav>", LinkContext("t", "a", "navigation", "")),
        ("<nav><header></header><a href=b>t</a></nav>", LinkContext("t", "a", "navigation", "")),
        ("<a href=b> <img alt='A map'></a>", LinkContext("A map", "a", "main", "")),
        ("<map><area href=b alt=North></map>", LinkContext("North", "area", "main", "")),
        ("<iframe src=b></iframe>", LinkContext("", "iframe", "main", "")),
        ("<link rel=next href=b>", LinkContext("", "link", "main", "next")),
        ("<meta http-equiv=refresh content='0;url=b'>", LinkContext("", "meta", "main", "")),
        ("<nav><a href=b>menu</a></nav><p><a href=b>text</a>", LinkContext("text", "a", "main", "")),
        ("<p><a href=b>text</a><nav><a href=b>menu</a></nav>", LinkContext("text", "a", "main", "")),
        ("<p><a href=b></a><nav><a href=b>menu</a></nav>", LinkContext("menu", "a", "navigation", "")),
        ("<a href=b>" + "w" * 1000 + "</a>", LinkContext("w" * 120, "a", "main", "")),
    ],
)
def test_the_context_of_a_link(html: str, expected: LinkContext) -> None:
    assert contexts(html) == {"a/b": expected}


def test_every_mark_is_read_back() -> None:
    for element in link_context.ELEMENTS:
        for position in link_context.POSITIONS:
            for rel in ("", *link_context.RELS, "nofollow ugc"):
                packed = pack(["t"], [mark(element, position, rel)])
                assert unpack(packed, 1) == [LinkContext("t", element, position, rel)]


def test_contexts_are_in_the_order_of_page_ids_and_without_the_page_itself() -> None:
    ids = np.array([9, 4, 7, 4, 2], np.int32)
    marks = [mark("a", "main", "")] * 5
    packed = by_page(7, ids, ("nine", "four", "self", "again", "two"), marks)
    known = order(7, [np.array([9], np.int32), np.array([4, 7], np.int32), np.array([2], np.int32)])
    assert known.tolist() == [2, 4, 9]
    assert [found.text for found in unpack(packed, 3)] == ["two", "four", "nine"]
    other = renumbered(packed, 0, known, np.array([30, 20, 10], np.int32))
    assert [found.text for found in unpack(other, 3)] == ["nine", "four", "two"]


def test_links_without_contexts() -> None:
    assert pack([], []) == b""
    assert unpack(b"", 2) == [link_context.NO_CONTEXT] * 2


@pytest.mark.parametrize(
    "packed",
    [
        b"x",
        zlib.compress(b"\0\0t")[:-1],
        zlib.compress(b"\0"),
        zlib.compress(b"\0\0one\ntwo"),
        zlib.compress(b"\x07\0t"),  # an unknown element
        zlib.compress(b"\0\xfft"),  # an unknown rel
        zlib.compress(bytes(link_context.MOST_PLAIN + 1)),
    ],
)
def test_damaged_contexts_are_rejected(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"context|anchor texts|mark"):
        unpack(packed, 1)


def test_hostile_pages_stay_cheap() -> None:
    nested = "<a href=x><object>" * 1400
    regions = "<nav>" * 700 + "<a href=x>t</a>" * 700
    text = "<a href=y>" + "word " * 20_000
    for html in (nested, regions, "<a href=x><td>" * 1400 + text):
        start = time.process_time()
        read_cheap_page(html.encode(), URL, HTML, Addresses())
        assert time.process_time() - start < 0.5  # 65 ms on a machine at rest


def test_anchor_texts_of_one_page_are_bounded() -> None:
    html = "<a href=x1><object>" * 100 + "word " * 10_000
    assert read_page(html.encode(), URL, headers=HTML).links


@pytest.mark.parametrize(
    "long",
    [
        f"<a href=x>{'word ' * 200_000}</a>",
        f"<a href=x><b>{'word ' * 200_000}</b></a>",
        f"<a href=x><img alt='{'word ' * 200_000}'></a>",
    ],
    ids=["text", "element", "image"],
)
def test_a_very_long_anchor_leaves_the_others_their_texts(long: str) -> None:
    others = "".join(f"<a href=y{number}>to <b>y{number}</b></a>" for number in range(2_000))
    anchors = read_page((3 * long + others).encode(), URL, headers=HTML).anchors
    assert anchors[0].startswith("word word")
    assert [*anchors[1:]] == [f"to y{number}" for number in range(2_000)]


def test_the_anchor_texts_kept_of_one_page_are_bounded() -> None:
    html = "".join(f"<a href=y{number}>{'word ' * 1_000}</a>" for number in range(2_000))
    anchors = read_page(html.encode(), URL, headers=HTML).anchors
    assert sum(map(len, anchors)) <= 502_000
    nested = "".join(f"<a href=x{number}><object>" for number in range(1_400)) + "word " * 20_000
    start = time.process_time()
    assert sum(map(len, read_page(nested.encode(), URL, headers=HTML).anchors)) <= 502_000
    assert time.process_time() - start < 0.5  # 15 ms on a machine at rest
