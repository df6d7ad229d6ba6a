"""The differences between two surveys as a table and text lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import count, percent, share_at_most
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from surveyor.survey.diff import Change, Difference

KEYS = ("kind", "old_share", "new_share", "old_position", "new_position", "url")
MEANS = {
    "new": "fetched now; the old survey was complete and did not know it",
    "first seen": "fetched now; the old survey did not know it, but was not complete",
    "gone": "HTTP 404, 410 or similar",
    "redirected": "redirects to another page now",
    "blocked": "cannot be fetched now",
    "unlinked": "no link to it; the new survey is complete",
    "not seen": "no link to it yet; the new survey is not complete",
    "risen": "by more than the error bound of both surveys",
    "fallen": "by more than the error bound of both surveys",
    "perhaps risen": "on the links as fetched, within the error bound of both surveys",
    "perhaps fallen": "on the links as fetched, within the error bound of both surveys",
    "changed": "different content",
}


def change_table(found: Difference, number: int | None) -> Table:
    """Format the pages that differ, at most `number` of each kind."""
    rows = [change for changes in found.changes.values() for change in changes[:number]]
    return Table(
        titles=("share", "before", "position", "before", "change", "page"),
        cells=[(*_numbers(row), row.kind, row.url) for row in rows],
        keys=KEYS,
        records=[tuple(getattr(row, key) for key in KEYS) for row in rows],
        left=2,
    )


def _numbers(row: Change) -> tuple[str, str, str, str]:
    shares = ["" if share is None else percent(share) for share in (row.new_share, row.old_share)]
    places = ["" if place is None else count(place) for place in (row.new_position, row.old_position)]
    return shares[0], shares[1], places[0], places[1]


def differing_lines(found: Difference) -> list[str]:
    """List the settings in which two surveys differ, so that they measure different things."""
    return [
        f"different {name}: {_value(old)} before, {_value(new)} now" for name, (old, new) in found.differing.items()
    ]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value[:3])) + (f" and {len(value) - 3} more" if len(value) > 3 else "")
    return "none" if value is None else str(value)


def summary_lines(found: Difference) -> list[str]:
    """List the number and the meaning of each kind of change."""
    there = {kind: len(changes) for kind, changes in found.changes.items() if changes}
    width = max(map(len, there), default=0)
    digits = max((len(count(number)) for number in there.values()), default=0)
    return [f"{count(number):>{digits}} {kind:<{width}}  {MEANS[kind]}" for kind, number in there.items()]


def margin_line(found: Difference) -> str:
    """Describe the differences of shares that are not significant."""
    return (
        f"Differences of shares below {share_at_most(found.margin)} do not count as risen or fallen: this is the "
        "importance that is waiting, blocked or moving in both surveys together."
    )
