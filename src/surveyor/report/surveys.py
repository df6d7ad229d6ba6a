"""Tables of a survey: the best pages, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surveyor.report.numbers import count, percent
from surveyor.report.tables import Table


def top_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay the best pages out; a page that was not read is marked."""
    keys = ("score", "share", "read", "url")
    return Table(
        titles=("score", "share", "page"),
        cells=[
            (f"{row['score']:.0f}", percent(row["share"]), row["url"] + ("" if row["read"] else "  (not read)"))
            for row in rows
        ],
        keys=keys,
        records=_records(rows, keys),
    )


def blocked_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out why pages could not be read."""
    keys = ("mass", "pages", "reason")
    return Table(
        titles=("mass", "pages", "why"),
        cells=[(percent(row["mass"]), count(row["pages"]), row["reason"]) for row in rows],
        keys=keys,
        records=_records(rows, keys),
    )


def refused_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out pages that could not be read."""
    keys = ("mass", "url", "reason")
    return Table(
        titles=("mass", "page", "why"),
        cells=[(percent(row["mass"]), row["url"], row["reason"]) for row in rows],
        keys=keys,
        records=_records(rows, keys),
        left=2,
    )


def leaving_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out where links lead."""
    keys = ("mass", "links", "where")
    return Table(
        titles=("mass", "links", "where to"),
        cells=[(percent(row["mass"]), count(row["links"]), row["where"]) for row in rows],
        keys=keys,
        records=_records(rows, keys),
    )


def _records(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[tuple[Any, ...]]:
    return [tuple(row[key] for key in keys) for row in rows]
