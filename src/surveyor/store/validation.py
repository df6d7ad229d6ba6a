"""Validation of journal rows and events: SQLite stores values of any type in any column, and a survey is untrusted.

Each function raises ValueError with the problem; the journal reports it as damage. Only the details of events that
surveyor reads are checked; events of other kinds are displayed as they are and never acted on.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Test = Callable[[Any], bool]
LAST_SECOND = 253_402_300_799  # of the year 9999: later times are not valid dates
LARGEST = 1 << 53  # largest count that a float64 represents exactly
LONGEST_NAME = 255  # characters of a file name
MOST_WALKS = 10_000  # of a scout
MOST_STARTS = 1_000  # of walks of an epoch
LONGEST_SECRET = 64  # characters of a key of random numbers
MOST_FOLDERS = 1_000_000_000  # of shards, over all reshardings
MOST_MASS = 1e6  # in one account: more than 1 only while negative residuals balance it


def is_time(value: Any) -> bool:
    """Return whether a value is a time in seconds since 1970."""
    return type(value) in (int, float) and 0 <= value <= LAST_SECOND


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST


def _optional_count(value: Any) -> bool:
    return value is None or _count(value)


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


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # an integer may be larger


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _optional_bool(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _optional_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _optional_number(value: Any) -> bool:
    return value is None or _number(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_count, value.values()))


def _optional_ids(value: Any) -> bool:
    """Return whether a value is None or a table of page ids, each written as text."""
    return value is None or (isinstance(value, dict) and all(map(_id, value.values())))


def _id(value: Any) -> bool:
    return _name(value) and value.isascii() and value.isdecimal()


def _names(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_text, value.values()))


def _pages(value: Any) -> bool:
    return isinstance(value, list) and all(map(_count, value))


def _times(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_time, value))


def _secret(value: Any) -> bool:
    return type(value) is str and len(value) <= LONGEST_SECRET and value.isascii()


def _captured(value: Any) -> bool:
    return _number(value) and -MOST_MASS <= value < 1


def _unsettled(value: Any) -> bool:
    return _number(value) and 0 <= value <= MOST_MASS


def _starts(value: Any) -> bool:
    return _pages(value) and len(value) <= MOST_STARTS


def _few(value: Any) -> bool:
    return _count(value) and value <= MOST_WALKS


def _bounds(value: Any) -> bool:
    pairs = isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    return pairs and all(_number(number) and 0 <= number <= 1 for pair in value for number in pair)


VISIT: dict[str, tuple[int, Test]] = {  # index in `commits.VISIT`; links, kind and target are checked with the pages
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
    "text_hash": (19, _bytes),
    "expires": (20, is_time),
    "contexts": (21, _bytes),
}
PLACE = slice(15, 18)  # columns of a WARC location
ROBOTS: dict[str, Test] = {
    "origin": _text,
    "fetched_at": is_time,
    "expires_at": is_time,
    "status": _status,
    "body": _bytes,
}


def _masses(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is float and abs(one) <= MOST_MASS for one in value)


SHARD_MASS: Mapping[str, Test] = {"pages": _pages, "masses": _masses, "hops": _pages}
EVENTS: Mapping[str, Mapping[str, Test]] = {
    "retry": {"page": _count, "until": _number, "tries": _count, "missing": _optional_bool, "why": _optional_text},
    "robots_retry": {
        "origin": _text,
        "until": _optional_number,
        "tries": _count,
        "why": _text,
        "status": _optional_number,
    },
    "sitemaps": {"unread": _names},
    "backoff": {"host": _text, "until": _number, "own": _optional_bool, "why": _optional_text},
    "requests": {"count": _count},
    "pushed": {"threshold": _number},
    "epoch": {
        "damping": _number,
        "captured": _captured,
        "unsettled": _unsettled,
        "secret": _secret,
        "pages": _count,
        "starts": _starts,
    },
    "walks": {"count": _count, "bounds": _bounds},
    "scout": {
        "secret": _secret,
        "damping": _number,
        **dict.fromkeys(("walks", "sample"), _few),
        "requests": _count,
    },
    "scout_sample": {"pages": _pages, "unfetched": _count, "fetched": _count},
    "scout_sitemaps": {"lists": _count, "pages": _count, "unread": _optional_count, "requests": _optional_count},
    "topic": {"on": _pages, "off": _pages},
    "watch": {"rate": _count},
    "audit": {"page": _count, "at": _number, "changed": _is_bool},
    "lying": {"host": _text, "why": _text},
    "list": {
        **dict.fromkeys(("site", "url", "etag", "last_modified"), _text),
        **dict.fromkeys(("due", "dated"), is_time),
        "nested": _is_bool,
    },
    "signals": {**dict.fromkeys(("site", "source"), _text), "found": _pages, "modified": _times, "listed": _pages},
    "shard_start": {"crawl": _secret, **dict.fromkeys(("shard", "shards", "incarnation"), _count)},
    "shard_cut": {**dict.fromkeys(("to", "number", "incarnation", "epoch"), _count), **SHARD_MASS},
    "shard_got": {**dict.fromkeys(("from", "number", "incarnation"), _count), **SHARD_MASS},
    "shard_epoch": {"epoch": _count},
    "shard_acked": {"to": _count, "number": _count},
    "shards_merged": {
        "crawl": _secret,
        "positions": _pages,
        "requests": _optional_count,
        "first": lambda value: value is None or (_count(value) and value <= MOST_FOLDERS),
    },
    "recovery": {"last_good": _count, "lost_commits": _count},
    "in_links": {"page": _count, "sources": _pages},
    "budgets": {
        "spec": _text,
        "fetched": _count,
        "default": _count,
        "pages": _counts,
        "digest": _text,
        "reopened": _texts,
        "groups": _optional_ids,
    },
    "community": {
        **dict.fromkeys(("base", "journal", "rule", "digest", "select"), _text),
        **dict.fromkeys(("position", "rounds", "local", "start", "fetched", "frontier"), _count),
    },
    "sample": {
        **dict.fromkeys(("topic", "method"), _text),
        **dict.fromkeys(("walks", "window", "hosts", "limit"), _count),
    },
}


PAGES_OF: Mapping[str, tuple[str, ...]] = {  # details of events that are pages
    "retry": ("page",),
    "in_links": ("page", "sources"),
    "audit": ("page",),
    "signals": ("found", "listed"),
    "epoch": ("starts",),
    "scout_sample": ("pages",),
    "topic": ("on", "off"),
    "shard_cut": ("pages",),
    "shard_got": ("pages",),
}


def check_visits(rows: Sequence[Sequence[Any]]) -> None:
    """Check the columns of visits; each may be NULL."""
    columns = list(zip(*rows, strict=True))
    for name, (column, test) in VISIT.items() if columns else ():
        for value in columns[column]:
            if value is not None and not test(value):
                raise ValueError(f"a visit has an invalid {name}: {str(value)[:50]!r}")
    for row in rows:
        file, *numbers = row[PLACE]
        if file is not None and any(type(number) is not int for number in numbers):
            raise ValueError("a visit names a WARC file without an offset and a length")


def check_robots(row: Sequence[Any]) -> None:
    """Check the columns of a robots.txt."""
    for (name, test), value in zip(ROBOTS.items(), row, strict=True):
        if not test(value):
            raise ValueError(f"a robots.txt has an invalid {name}: {str(value)[:50]!r}")


def check_texts(what: str, values: Sequence[Any]) -> None:
    """Check that all values are text."""
    for value in values:
        if type(value) is not str:
            raise ValueError(f"{what} must be text, got {str(value)[:50]!r}")


def check_counts(what: str, values: Sequence[Any]) -> None:
    """Check that all values are counts."""
    for value in values:
        if not _count(value):
            raise ValueError(f"{what} must be a count, got {str(value)[:50]!r}")


def whole_number(value: Any) -> int | None:
    """Return the integer that a text holds; None if it holds none, or one of more than 18 digits."""
    text = str(value)
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def check_event(kind: str, at: Any, detail: Mapping[str, Any], pages: int) -> None:
    """Raise ValueError unless an event of a journal with this many pages has valid details."""
    if not is_time(at):
        raise ValueError(f"an event {kind[:50]!r} has an invalid time")
    for name, test in EVENTS.get(kind, {}).items():
        if not test(detail.get(name)):
            raise ValueError(f"an event {kind!r} has an invalid {name}: {str(detail.get(name))[:50]!r}")
    if kind in ("shard_cut", "shard_got") and not (
        len(detail["pages"]) == len(detail["masses"]) and len(detail["hops"]) in (0, len(detail["pages"]))
    ):
        raise ValueError(f"an event {kind!r} does not have one mass for each page")
    if kind == "shard_start" and detail["shard"] >= detail["shards"]:
        raise ValueError("an event 'shard_start' names a shard that does not exist")
    for value in map(detail.__getitem__, PAGES_OF.get(kind, ())):
        if max(value if isinstance(value, list) else [value], default=0) >= pages:
            raise ValueError(f"an event {kind!r} names a page without a URL")
    if kind == "budgets" and max(map(int, (detail.get("groups") or {}).values()), default=-1) >= pages:
        raise ValueError(f"an event {kind!r} names a page without a URL")
