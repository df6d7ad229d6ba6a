"""Validation of journal rows: SQLite stores values of any type in any column, and the file may come from elsewhere.

Each function raises ValueError with the problem; the journal reports it as damage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

Test = Callable[[Any], bool]
LAST_SECOND = 253_402_300_799  # of the year 9999: later times are not valid dates
LARGEST = 1 << 53  # largest count that a float64 represents exactly
LONGEST_NAME = 255  # characters of a file name


def is_time(value: Any) -> bool:
    """Return whether a value is a time in seconds since 1970."""
    return type(value) in (int, float) and 0 <= value <= LAST_SECOND


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST


def _seconds(value: Any) -> bool:
    return type(value) is float and abs(value) < LARGEST


def _status(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def _bytes(value: Any) -> bool:
    return type(value) is bytes


def _text(value: Any) -> bool:
    return type(value) is str


def _name(value: Any) -> bool:
    return type(value) is str and len(value) <= LONGEST_NAME


VISIT: dict[str, tuple[int, Test]] = {  # index in `chain.VISIT`; links, kind and target are checked with the pages
    "status": (5, _status),
    "fetched_at": (6, is_time),
    "seconds": (7, _seconds),
    "hash": (8, _bytes),
    "etag": (9, _text),
    "last_modified": (10, _text),
    "title": (13, _text),
    "language": (14, _text),
    "warc_file": (15, _name),
    "size": (18, _count),
}
PLACE = slice(15, 18)  # columns of a location in the archive
ROBOTS: dict[str, Test] = {
    "origin": _text,
    "fetched_at": is_time,
    "expires_at": is_time,
    "status": _status,
    "body": _bytes,
}


def check_visits(rows: Sequence[Sequence[Any]]) -> None:
    """Check the columns of visits; each may be NULL."""
    columns = list(zip(*rows, strict=True))
    for name, (column, test) in VISIT.items() if columns else ():
        for value in columns[column]:
            if value is not None and not test(value):
                raise ValueError(f"a visit whose {name} is {str(value)[:50]!r}")
    for row in rows:
        file, *numbers = row[PLACE]
        if file is not None and any(type(number) is not int for number in numbers):
            raise ValueError("a visit whose record lies nowhere")


def check_robots(row: Sequence[Any]) -> None:
    """Check the columns of a robots.txt."""
    for (name, test), value in zip(ROBOTS.items(), row, strict=True):
        if not test(value):
            raise ValueError(f"a robots.txt whose {name} is {str(value)[:50]!r}")


def check_texts(what: str, values: Sequence[Any]) -> None:
    """Check that all values are text."""
    for value in values:
        if type(value) is not str:
            raise ValueError(f"{what} that is {str(value)[:50]!r}")


def check_counts(what: str, values: Sequence[Any]) -> None:
    """Check that all values are counts."""
    for value in values:
        if not _count(value):
            raise ValueError(f"{what} that is {str(value)[:50]!r}")


def whole_number(value: Any) -> int | None:
    """Return the integer that a text holds; None if it holds none, or one of more than 18 digits."""
    text = str(value)
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None
