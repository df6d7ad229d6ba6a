"""The context of the links of a page: anchor text, element, rel and position on the page.

**Position** follows the markup: links inside `nav`, `header`, `footer` or `aside`, or inside an element with the ARIA
role of one or the class `navheader` or `navfooter` (DocBook), are navigation, header, footer or aside; all others are
main content. As in the ARIA mapping of HTML, `header` and `footer` inside an article, a section or the main element
belong to the content. A URL that a page links several times has the context of its first link with a text, if possible
one in the main content.

**Storage.** The journal stores one value per visit: two bytes of marks per link and the texts, compressed. Links are in
ascending order of their page ids over all lists of the visit, without the page itself. This order does not change
when the scope does, which only moves links between lists. Measured: `python -m benchmarks.link_context`.

    >>> packed = pack(["Home", "Next page"], [mark("a", "navigation", ""), mark("link", "main", "next")])
    >>> unpack(packed, 2)[0], unpack(packed, 2)[1].rel
    (LinkContext(text='Home', element='a', position='navigation', rel=''), 'next')
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from surveyor.arrays import IdArray

LONGEST_TEXT = 120  # characters of an anchor text
MOST_PLAIN = 50_000 * (2 + 4 * (LONGEST_TEXT + 1))  # bytes of the contexts of one page before compression
ELEMENTS = ("a", "area", "frame", "iframe", "link", "meta")
POSITIONS = ("main", "navigation", "header", "footer", "aside")
RELS = ("nofollow", "ugc", "sponsored", "next", "prev", "external")
LEVEL = 1  # of compression


class LinkContext(NamedTuple):
    """How a page links to another one."""

    text: str = ""  # of the anchor, white space collapsed, at most 120 characters; the alt text of an image
    element: str = "a"
    position: str = "main"  # main, navigation, header, footer or aside
    rel: str = ""  # the known values, separated by spaces


NO_CONTEXT = LinkContext(element="", position="")  # of a link stored without context


@lru_cache(maxsize=4096)
def mark(element: str, position: str, rel: str) -> int:
    """Return element, position and rel of a link as a number below 65,536."""
    words = rel.lower().split()
    bits = sum(1 << place for place, word in enumerate(RELS) if word in words)
    return ELEMENTS.index(element) | POSITIONS.index(position) << 3 | bits << 8


@lru_cache(maxsize=4096)
def _read(number: int) -> tuple[str, str, str]:
    element, position = number & 7, number >> 3 & 7
    if element >= len(ELEMENTS) or position >= len(POSITIONS) or number >> 8 >= 1 << len(RELS):
        raise ValueError(f"a link has the unknown mark {number}")
    return (
        ELEMENTS[element],
        POSITIONS[position],
        " ".join(word for place, word in enumerate(RELS) if number >> 8 >> place & 1),
    )


def pack(texts: Sequence[str], marks: Sequence[int]) -> bytes:
    """Encode the contexts of the links of one page; empty if there is none."""
    if not marks:
        return b""
    from isal import isal_zlib

    numbers = array("H", marks)
    if sys.byteorder == "big":
        numbers.byteswap()
    plain = numbers.tobytes() + _joined(texts).encode("utf-8", "replace")
    packed: bytes = isal_zlib.compress(plain, LEVEL)  # half the time of zlib
    return packed


def _joined(texts: Sequence[str]) -> str:
    """Return texts separated by line feeds, white space collapsed and cut to the maximum length."""
    joined = f" {' '.join(texts)} "
    if joined.isprintable() and "  " not in joined and max(map(len, texts)) <= LONGEST_TEXT:
        return "\n".join(texts)  # nothing to collapse, as on most pages
    return "\n".join([" ".join(text.split())[:LONGEST_TEXT] for text in texts])


def unpack(packed: bytes, links: int) -> list[LinkContext]:
    """Decode the contexts of a page with this number of links; raise ValueError if they are invalid."""
    if not packed:
        return [NO_CONTEXT] * links
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(packed, MOST_PLAIN)
    except zlib.error as error:
        raise ValueError("contexts of links that cannot be decompressed") from error
    if not reader.eof or len(plain) < 2 * links:
        raise ValueError("contexts of links that are cut off or too long")
    marks = np.frombuffer(plain[: 2 * links], "<u2").tolist()
    texts = plain[2 * links :].decode("utf-8", "replace").split("\n")
    if len(texts) != max(links, 1):
        raise ValueError(f"{len(texts)} anchor texts for {links} links")
    return [LinkContext(text, *_read(number)) for text, number in zip(texts, marks, strict=True)]


def order(page: int, lists: Iterable[IdArray]) -> IdArray:
    """Return the distinct links of a page in the order of their contexts."""
    ids = np.unique(np.concatenate([*lists]))
    found: IdArray = ids[ids != page]
    return found


def by_page(page: int, ids: IdArray, texts: Sequence[str], marks: Sequence[int]) -> bytes:
    """Encode texts and marks of links given in the order of `ids`, which may contain the page itself."""
    first = ids.argsort(kind="stable")
    ordered = ids[first]
    if (ordered[1:] == ordered[:-1]).any():  # never for the distinct URLs of one page
        ordered, first = np.unique(ids, return_index=True)
    places = first[ordered != page].tolist()
    if len(places) < 2:
        return pack([texts[place] for place in places], [marks[place] for place in places])
    chosen = itemgetter(*places)
    return pack(chosen(texts), chosen(marks))


def renumbered(packed: bytes, page: int, old: IdArray, new: IdArray) -> bytes:
    """Return contexts for new ids of the links; `old` is their order (see `order`), `new` the ids in that order."""
    if not packed:
        return b""
    found = unpack(packed, old.size)
    return by_page(page, new, [context.text for context in found], [mark(*context[1:]) for context in found])
