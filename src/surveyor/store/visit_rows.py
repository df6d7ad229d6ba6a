"""Rows of the table `visits`: from visits, and back. Empty values are NULL, and lists of links are packed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from surveyor.arrays import IdArray
from surveyor.outcome import Place, Visit
from surveyor.store.database import pack


def packed_rows(visits: Sequence[Visit]) -> list[tuple[object, ...]]:
    """Return the columns of each visit, with empty values as None."""
    lists = (pack([getattr(visit, name) for visit in visits]) for name in ("links", "out_of_scope", "nofollow"))
    return [
        (
            int(visit.page),
            visit.kind,
            encodable(visit.reason),
            None if visit.target < 0 else int(visit.target),
            links,
            visit.status or None,
            _real(visit.fetched_at),
            _real(visit.seconds),
            visit.hash or None,
            encodable(visit.etag),
            encodable(visit.last_modified),
            outside,
            nofollow,
            encodable(visit.title),
            encodable(visit.language),
            *(visit.warc or (None, None, None)),
            visit.size or None,
            visit.text_hash or None,
            _real(visit.expires),
            visit.contexts or None,
        )
        for visit, links, outside, nofollow in zip(visits, *lists, strict=True)
    ]


def _real(number: float) -> float | None:
    """Return a number as SQLite reads it back: digests are computed over what is read."""
    return float(number) if number and number == number else None


def encodable(text: str) -> str | None:
    """Return text that UTF-8 can encode: a page with invalid text must not end a crawl."""
    return (text if text.isascii() else text.encode("utf-8", "replace").decode()) or None


def visits_of(rows: Sequence[Any], lists: Sequence[Sequence[IdArray]]) -> Iterator[Visit]:
    """Yield the visits of rows; `lists` are their links in scope, out of scope and nofollow."""
    for row, links, outside, nofollow in zip(rows, *lists, strict=True):
        page, kind, reason, target, _, status, at, seconds, digest, etag, changed = row[:11]
        title, language, file, offset, length, size, text_digest, expires, contexts = row[13:]
        yield Visit(
            page,
            kind,
            links,
            reason or "",
            -1 if target is None else target,
            status or 0,
            at or 0.0,
            seconds or 0.0,
            digest or b"",
            etag or "",
            changed or "",
            outside,
            nofollow,
            title or "",
            language or "",
            None if file is None else Place(file, offset, length),
            size or 0,
            text_digest or b"",
            expires or 0.0,
            contexts or b"",
        )
