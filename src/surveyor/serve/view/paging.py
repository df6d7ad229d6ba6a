"""Selection, sorting and counting of the rows of a table by its arrays.

Rows are in the order of one column, ties by id and rows without a value last. The opposite order is the exact reverse,
but for the rows without a value, which stay last. A page of rows starts after, or ends before, the value and id of a
row (keyset paging), so that each row is returned once, also when the table was built again in the meantime: a token
names values, no offsets.

A filter is an array of one truth value per row, so that any combination of filters has exact counts. A word is searched
in all texts, one after the other: for a million pages that takes a fifth of the time of a LIKE of SQLite. An index of
trigrams (FTS5) finds rare words at once, but takes as much disk as all tables, and longer where a word is frequent and
the rows are sorted (`python -m benchmarks.view --text` compares them).
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, IntArray, map_npy
from surveyor.errors import UsageError
from surveyor.serve.view.schema import SORTS

CHUNK = 1 << 15  # rows examined at a time
MOST_ROWS = 1_000
LONGEST_TOKEN = 20_000
LONGEST_WORD = 1_000  # characters of a text that is searched
SAMPLED = 1 << 20  # bytes whose frequencies are counted


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which rows to return, and in which order.

    `filters` maps columns to a value, to a list of values of which one must match, or to a dict with `at_least` and
    `at_most`; None selects rows without a value. `after` is a token `next` or `previous` of an earlier result.
    """

    filters: Mapping[str, Any] = field(default_factory=dict)
    sort: str = ""  # by default, the importance if there is one
    descending: bool | None = None  # by default, the natural order of the column: numbers fall, texts and depths rise
    after: str = ""
    limit: int = 50
    text: str = ""  # that the URL or the title must contain, in any case
    words: Sequence[str] = ()  # each of which the URL or the title must contain, too


@dataclass(frozen=True, slots=True)
class Found:
    """Ids of a page of rows, and where it lies."""

    ids: list[int]
    next: str
    previous: str
    total: int  # rows that match
    first: int  # of them, before the first one returned


class Rows:
    """The arrays of one table."""

    def __init__(self, folder: Path, table: str, size: int, values: Mapping[str, int]) -> None:
        self._folder, self.table, self.size, self._values = folder, table, size, values
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._lock = threading.Lock()
        self._searched: dict[str, BoolArray] = {}  # the latest texts that were searched

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._arrays:
            self._arrays[name] = map_npy(self._folder / f"{name}.npy")
        return self._arrays[name]

    def matching(self, text: str) -> BoolArray:
        """Return which rows contain a text, in any case."""
        needle = text.lower()
        with self._lock:
            return self._matching(needle)

    def _matching(self, needle: str) -> BoolArray:
        if len(needle) > LONGEST_WORD:
            raise UsageError(f"text has {len(needle):,} characters", hint=f"search for at most {LONGEST_WORD:,}")
        if needle not in self._searched:
            while len(self._searched) >= 4:
                self._searched.pop(next(iter(self._searched)))
            self._searched[needle] = contains(self["text"], self["text_offsets"], needle.encode("utf-8", "replace"))
        return self._searched[needle]

    def page(self, query: PageQuery, mask: BoolArray | None, text_of: Callable[[str, int], str]) -> Found:
        """Return the ids of one page of rows; `text_of` returns the lower-case text of a column in a row."""
        order = Order(self, query, text_of)
        limit = check_limit(query.limit)
        total = self.size if mask is None else int(np.count_nonzero(mask))
        if not query.after:
            start, back = 0, False
        else:
            start, back = order.place(query.after)
        ids = order.before(start, limit, mask) if back else order.after(start, limit, mask)
        if not ids:
            return Found([], "", "", total, 0 if back else order.count(start, mask))
        first, last = ids[0], ids[-1]
        more = bool(order.after(last[0] + 1, 1, mask))
        earlier = order.count(first[0], mask)
        return Found(
            [row for _, row in ids],
            order.token_of(last[1], back=False) if more else "",
            order.token_of(first[1], back=True) if earlier else "",
            total,
            earlier,
        )


class Order:
    """The rows of a table in the order of one column."""

    def __init__(self, rows: Rows, query: PageQuery, text_of: Callable[[str, int], str]) -> None:
        sort, descending, natural = query.sort, query.descending, SORTS[rows.table]
        if sort not in natural:
            raise UsageError(f"there is no order by {str(sort)[:50]!r}", hint=f"known: {', '.join(natural)}")
        self._rows, self._sort, self._text_of = rows, sort, text_of
        self._largest_first = natural[sort]
        self._descending = self._largest_first if descending is None else bool(descending)
        self._order, self._known = rows[f"order_{sort}"], rows._values[sort]
        self._reversed = self._descending != self._largest_first

    def key(self, row: int) -> Any:
        """Return the value by which a row is placed in the natural order."""
        if self._sort not in self._numbers:
            return self._text_of(self._sort, row)
        value = self._rows[self._sort][row].item()
        return -value if self._largest_first else value

    @property
    def _numbers(self) -> Sequence[str]:
        return [name for name in SORTS[self._rows.table] if name not in ("url", "title", "host", "domain")]

    def slice(self, start: int, end: int) -> np.ndarray[Any, Any]:
        """Return the rows from one place to another, in the order shown."""
        known = self._known
        if not self._reversed or start >= known:
            return self._order[start:end]
        middle = min(end, known)
        head = self._order[known - middle : known - start][::-1]
        return head if end <= known else np.concatenate([head, self._order[known:end]])

    def after(self, start: int, limit: int, mask: BoolArray | None) -> list[tuple[int, int]]:
        """Return place and id of the first matching rows from a place on."""
        found: list[tuple[int, int]] = []
        while start < self._rows.size and len(found) < limit:
            end = min(self._rows.size, start + (CHUNK if mask is not None else limit - len(found)))
            ids = self.slice(start, end)
            hits = np.arange(ids.size) if mask is None else np.flatnonzero(mask[ids])
            hits = hits[: limit - len(found)]
            found += zip((hits + start).tolist(), ids[hits].tolist(), strict=True)
            start = end
        return found

    def before(self, end: int, limit: int, mask: BoolArray | None) -> list[tuple[int, int]]:
        """Return place and id of the last matching rows before a place."""
        found: list[tuple[int, int]] = []
        while end > 0 and len(found) < limit:
            start = max(0, end - (CHUNK if mask is not None else limit - len(found)))
            ids = self.slice(start, end)
            hits = np.arange(ids.size) if mask is None else np.flatnonzero(mask[ids])
            hits = hits[max(0, hits.size - (limit - len(found))) :]
            found = [*zip((hits + start).tolist(), ids[hits].tolist(), strict=True), *found]
            end = start
        return found

    def count(self, end: int, mask: BoolArray | None) -> int:
        """Count the matching rows before a place."""
        if mask is None:
            return end
        starts = range(0, end, CHUNK)
        return sum(int(np.count_nonzero(mask[self.slice(at, min(end, at + CHUNK))])) for at in starts)

    def token_of(self, row: int, *, back: bool) -> str:
        """Return the token for the rows after a row, or before it."""
        known = self._order_has(row)
        return self.token(self.key(row) if known else None, row, back=back)

    def token(self, value: Any, row: int, *, back: bool) -> str:
        """Return a token."""
        plain = json.dumps([self._sort, self._descending, value, row, back], separators=(",", ":"))
        return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")

    def place(self, token: str) -> tuple[int, bool]:
        """Return the place that a token names, and whether the rows before it are asked for."""
        value, row, back = self._read(token)
        order, known = self._order, self._known
        if value is None:
            find = np.searchsorted
            rest = order[known:]
            at = known + int(find(rest, row, "left" if back else "right"))
            return at, back
        bisect = bisect_left if back == (not self._reversed) else bisect_right
        at = bisect(range(known), (value, row), key=lambda at: (self.key(int(order[at])), int(order[at])))
        return (known - at if self._reversed else at), back

    def _read(self, token: str) -> tuple[Any, int, bool]:
        try:
            if len(token) > LONGEST_TOKEN:
                raise ValueError("it is too long")
            plain = base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
            sort, descending, value, row, back = json.loads(plain)
            is_text = self._sort not in self._numbers
            fits = value is None or (isinstance(value, str) if is_text else _is_number(value))
            if (sort, descending) != (self._sort, self._descending) or not fits:
                raise ValueError("it is of another order")
            if type(row) is not int or not 0 <= row < 1 << 31 or type(back) is not bool:
                raise ValueError("it names no row")
        except (ValueError, TypeError, binascii.Error, RecursionError) as error:
            raise UsageError(f"after is no token of this order ({error})", hint="start from the first page") from error
        return value, row, back

    def _order_has(self, row: int) -> bool:
        """Return whether a row has a value."""
        if self._sort not in self._numbers:
            return bool(self._text_of(self._sort, row))
        value = self._rows[self._sort][row].item()
        return value == value if isinstance(value, float) else bool(value >= 0)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def check_limit(limit: int) -> int:
    """Reject a number of rows out of range."""
    if type(limit) is not int or not 1 <= limit <= MOST_ROWS:
        raise UsageError(f"limit must be from 1 to {MOST_ROWS:,}, got {str(limit)[:20]}", hint="the default is 50")
    return limit


def contains(blob: ByteArray, offsets: IntArray, needle: bytes) -> BoolArray:
    """Return which texts contain a word; one without a byte is in all, and none has a line end between its columns."""
    from surveyor.kernels.text_search import mark_containing

    found = np.full(offsets.size - 1, not needle)
    if needle and b"\n" not in needle:
        word = np.frombuffer(needle, np.uint8)
        common = np.bincount(blob[:SAMPLED], minlength=256)
        mark_containing(np.asarray(blob), np.asarray(offsets), word, int(np.argmin(common[word])), found)
    return found
