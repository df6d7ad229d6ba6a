"""Tables and lines of a watch: what changed, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import counted, percent
from surveyor.report.tables import Table, table_of

if TYPE_CHECKING:
    from surveyor.survey.watch import WatchResult

ENDINGS = {
    "done": "Nothing more is due",
    "budget": "The requests of the day are used up",
    "interrupted": "Stopped; the same command resumes",
}


def changes_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format findings: kind, time and page."""
    return table_of([dict(row) for row in rows], {"kind": str, "at": format_time, "url": str})


def format_time(at: float) -> str:
    """Format a time in seconds since 1970.

    >>> format_time(0.0)
    '1970-01-01 00:00 UTC'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def ending_line(result: WatchResult) -> str:
    """Return how a watch ended, what it found and the forecast freshness."""
    found = ", ".join(f"{count:,} {kind}" for kind, count in result.found.items()) or "no change found"
    fresh = f"{percent(result.fresh)} ± {percent(1.96 * result.fresh_error)} of the importance is fresh (forecast)"
    missing = f"; {counted(result.unavailable, 'page')} gone or blocked" if result.unavailable else ""
    return f"{ENDINGS[result.ending]}: {found}; {fresh}{missing}."
