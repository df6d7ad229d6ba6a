"""What changed between two surveys, as a table and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import count, percent, share_at_most
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from surveyor.survey.diff import Change, Difference

KEYS = ("kind", "old_share", "new_share", "old_position", "new_position", "url")
MEANS = {
    "new": "read now; the old survey had read all it knew, and had not heard of it",
    "first seen": "read now; the old survey had not heard of it, but had not read all it knew",
    "gone": "the server says so",
    "redirected": "redirects to another page now",
    "blocked": "could not be read now",
    "unlinked": "the new survey has read all it knows, and no link leads there",
    "not seen": "the new survey has not heard of it, but has not read all it knows",
    "risen": "by more than both surveys can be wrong by",
    "fallen": "by more than both surveys can be wrong by",
    "perhaps risen": "over the links as fetched, by less than both surveys can be wrong by",
    "perhaps fallen": "over the links as fetched, by less than both surveys can be wrong by",
    "changed": "other bytes",
}


def change_table(found: Difference, number: int | None) -> Table:
    """Lay out the pages that differ, at most so many of each kind."""
    rows = [change for changes in found.changes.values() for change in changes[:number]]
    return Table(
        titles=("share", "was", "position", "was", "what", "page"),
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
    """Say what makes two surveys measure different things."""
    return [
        f"they differ in {name}: {_value(old)} before, {_value(new)} now"
        for name, (old, new) in found.differing.items()
    ]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value[:3])) + (f" and {len(value) - 3} more" if len(value) > 3 else "")
    return "none" if value is None else str(value)


def summary_lines(found: Difference) -> list[str]:
    """Count what differs, and say what each word means."""
    there = {kind: len(changes) for kind, changes in found.changes.items() if changes}
    width = max(map(len, there), default=0)
    digits = max((len(count(number)) for number in there.values()), default=0)
    return [f"{count(number):>{digits}} {kind:<{width}}  {MEANS[kind]}" for kind, number in there.items()]


def margin_line(found: Difference) -> str:
    """Say which differences of shares are not called changes."""
    return (
        f"Shares that differ by less than {share_at_most(found.margin)} are not called risen or fallen: "
        "so much, in both surveys together, waits, is blocked or still moves."
    )
