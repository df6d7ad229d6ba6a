"""The passage of a page that has most words of a query, as plain text with the places of these words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import NamedTuple

from surveyor.search.segment import Texts
from surveyor.search.words import Token, tokens

LENGTH = 240  # characters
SEARCHED = 100_000  # characters of a text


class Snippet(NamedTuple):
    """A passage, and the start and end of each matching word in it."""

    text: str
    matches: list[tuple[int, int]]


def snippet(texts: Texts, wanted: Collection[bytes]) -> Snippet:
    """Return the best passage of the body; of a heading, link text or the title, if the body has no word."""
    for text in (texts.body, " · ".join(texts.headings), " · ".join(texts.anchors), texts.title):
        hits = [token for token in tokens(text[:SEARCHED], texts.language) if token.word in wanted]
        if hits:
            return _passage(text, hits)
    return Snippet(_plain(texts.body[:LENGTH]), [])


def _passage(text: str, hits: list[Token]) -> Snippet:
    """Return the passage with most different words, of those the one with most occurrences, then the first."""
    best, first = (0, 0), hits[0]
    ends = [hit.end for hit in hits]
    for number, hit in enumerate(hits):
        inside = hits[number : max(number + 1, bisect_left(ends, hit.start + LENGTH - 60))]
        score = (len({one.word for one in inside}), len(inside))
        if score > best:
            best, first = score, hit
    begin = max(0, first.start - 60)
    if begin:
        space = text.find(" ", begin, first.start)
        begin = space + 1 if space >= 0 else begin
    end = min(len(text), begin + LENGTH)
    if end < len(text):
        space = text.rfind(" ", max(first.end, begin), end)
        end = space if space > 0 else end
    shown = [(hit.start - begin, hit.end - begin) for hit in hits if begin <= hit.start and hit.end <= end]
    merged: list[tuple[int, int]] = []
    for start, stop in shown:  # pairs of characters overlap
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], stop
        else:
            merged.append((start, stop))
    return Snippet(_plain(text[begin:end]), merged)


def _plain(text: str) -> str:
    """Return a text of the same length in which each white space is a blank."""
    return "".join(" " if character.isspace() else character for character in text)
