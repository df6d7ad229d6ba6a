"""Validation of journal events: a survey may come from elsewhere, and other code relies on its events.

Only kinds that surveyor reads are listed; events of other kinds are displayed as they are and never acted on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from surveyor.store.rows import is_time

Test = Callable[[Any], bool]
LARGEST = 1 << 53


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _switch(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _perhaps_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _perhaps_number(value: Any) -> bool:
    return value is None or _number(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_count, value.values()))


def _pages(value: Any) -> bool:
    return isinstance(value, list) and all(map(_count, value))


SHAPES: Mapping[str, Mapping[str, Test]] = {
    "retry": {"page": _count, "until": _number, "tries": _count, "missing": _switch, "why": _perhaps_text},
    "robots": {
        "origin": _text, "until": _perhaps_number, "tries": _count, "why": _text, "status": _perhaps_number,
    },
    "wait": {"host": _text, "until": _number, "rest": _switch, "why": _perhaps_text},
    "requests": {"count": _count},
    "rescue": {"last_good": _count, "lost_commits": _count},
    "told": {"page": _count, "from": _pages},
    "budgets": {
        "spec": _text, "read": _count, "rest": _count, "pages": _counts, "digest": _text, "opened": _texts,
    },
    "community": {
        **dict.fromkeys(("base", "journal", "rule", "digest", "select"), _text),
        **dict.fromkeys(("position", "rounds", "local", "start", "read", "outside"), _count),
    },
    "sample": {
        **dict.fromkeys(("topic", "method"), _text), **dict.fromkeys(("walks", "window", "hosts", "limit"), _count),
    },
}  # fmt: skip


def check_event(kind: str, at: Any, detail: Mapping[str, Any], pages: int) -> None:
    """Raise ValueError unless an event of a journal with this many pages has valid details."""
    if not is_time(at):
        raise ValueError(f"an event {kind[:50]!r} without a time")
    for name, test in SHAPES.get(kind, {}).items():
        if not test(detail.get(name)):
            raise ValueError(f"an event {kind!r} whose {name} is {str(detail.get(name))[:50]!r}")
    if kind in ("retry", "told") and max([detail["page"], *detail.get("from", ())]) >= pages:
        raise ValueError(f"an event {kind!r} of a page that has no URL")
