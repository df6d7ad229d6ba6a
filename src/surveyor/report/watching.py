"""How a watch ended, as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.report.numbers import counted, percent

if TYPE_CHECKING:
    from surveyor.survey.watch import WatchResult

ENDINGS = {
    "done": "Nothing more is due",
    "budget": "The requests of the day are used up",
    "interrupted": "Stopped; the same command resumes",
}


def ending_line(result: WatchResult) -> str:
    """Return how a watch ended, what it found and the forecast freshness."""
    found = ", ".join(f"{count:,} {kind}" for kind, count in result.found.items()) or "no change found"
    fresh = f"{percent(result.fresh)} ± {percent(1.96 * result.fresh_error)} of the importance is fresh (forecast)"
    missing = f"; {counted(result.unavailable, 'page')} gone or blocked" if result.unavailable else ""
    return f"{ENDINGS[result.ending]}: {found}; {fresh}{missing}."
