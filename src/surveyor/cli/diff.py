"""`surveyor diff`: the differences between two surveys, or the changes within one since a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.errors import UsageError
from surveyor.report.numbers import count, percent, share_at_most

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.report.tables import Table
    from surveyor.survey.diff import Change, Difference
    from surveyor.survey.survey import Survey

UNCERTAIN = ("perhaps risen", "perhaps fallen")
KEYS = ("kind", "old_share", "new_share", "old_position", "new_position", "url")


@options.command("diff", table=True)
@click.argument("old", type=click.Path(), metavar="OLD")
@click.argument("new", type=click.Path(), metavar="[NEW]", required=False)
@click.option("--since", metavar="TIME", help="Compare the survey with itself at this time (2026-11-18, 12h, 7d, 2w).")
@click.option("--atom", type=click.Path(), metavar="FILE", help="Write the changes since TIME as an Atom feed, too.")
@options.top(10, "Pages to list, with two surveys of each kind; --csv prints all.")
def command(output: Output, *, old: str, new: str | None, since: str | None, atom: str | None, top: int) -> int:
    """Show the differences between the surveys OLD and NEW: pages that are new, gone, risen, fallen or changed.

    With --since and one survey, show the pages whose content has changed since that time, as far as later visits
    found it. Times are in UTC unless they name a zone.

    A survey knows only the pages it has fetched. A page counts as risen or fallen only if the difference of its shares
    exceeds the error bound of both surveys, and as new or gone only if that is certain; uncertain changes are
    listed separately.
    """
    from surveyor.survey.survey import Survey

    if since is not None and new is None:
        from surveyor.cli import changes
        from surveyor.survey.changes import since_time

        with Survey(old) as survey:
            return changes.show(output, survey, since_time(since, time.time()), top=top, atom=atom)
    if new is None or since is not None:
        raise UsageError(
            "diff compares two surveys, or one survey with itself at a time",
            hint="pass OLD NEW, or one survey and --since TIME",
        )
    if atom is not None:
        raise UsageError("atom needs --since", hint="pass one survey and --since TIME")
    with Survey(old) as before, Survey(new) as after:
        return show(output, before, after, top)


def show(output: Output, before: Survey, after: Survey, number: int) -> int:
    """Print the differences; reasons for doubt come first."""
    from surveyor.report.numbers import counted, interval

    found, names = before.diff(after), (str(before.folder), str(after.folder))
    coverage = {"old_coverage": before.coverage.to_dict(), "new_coverage": after.coverage.to_dict()}
    output.object("diff", {"old": names[0], "new": names[1], **coverage, **found.to_dict(number)})
    if output.mode == "csv":
        output.table(change_table(found, None))
        return 0
    output.warn(*differing_lines(found))
    if found.differing:
        output.warn("The surveys measure different things: not every difference is a change of the pages.")
    width = max(map(len, names))
    for name, survey in zip(names, (before, after), strict=True):
        output.line(f"{name:<{width}}  {counted(survey.pages_fetched, 'page')} fetched, {interval(survey.coverage)}")
    output.line(
        f"{counted(found.both, 'page')} ranked in both; overlap of the top {found.best}: {100 * found.overlap:.0f} %; "
        f"Kendall's tau: {found.kendall:.2f}; {50 * found.l1:.1f} % of all importance moved between pages"
    )
    output.line(margin_line(found))
    output.line()
    lines = summary_lines(found)
    output.lines(lines or ["No page differs."])
    if lines:
        output.line()
        if (table := change_table(found, number, uncertain=False)).cells:
            output.table(table)
        if line := uncertain_line(found):
            output.line(line)
        best = next(one for changes in found.changes.values() for one in changes)
        path = names[0] if best.new_share is None else names[1]
        explain, all_pages = ["surveyor", "explain", path, best.url], ["surveyor", "diff", *names, "--csv"]
        output.next_steps({"explain the largest change": explain, "all differences": all_pages})
    return 0


def uncertain_line(found: Difference) -> str:
    """Summarize moves within the error bound, which are not listed; empty if there is none."""
    moves = [change for kind in UNCERTAIN for change in found.changes[kind]]
    if not moves:
        return ""
    return f"{count(len(moves))} moves within the error bound are not listed (--csv lists them)"


def change_table(found: Difference, number: int | None, *, uncertain: bool = True) -> Table:
    """Format the pages that differ, at most `number` of each kind; without `uncertain`, no moves within the error."""
    from surveyor.report.tables import Table

    shown = [changes for kind, changes in found.changes.items() if uncertain or kind not in UNCERTAIN]
    rows = [change for changes in shown for change in changes[:number]]
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
    from surveyor.survey.diff import KINDS

    there = {kind: len(changes) for kind, changes in found.changes.items() if changes}
    width = max(map(len, there), default=0)
    digits = max((len(count(number)) for number in there.values()), default=0)
    return [f"{count(number):>{digits}} {kind:<{width}}  {KINDS[kind]}" for kind, number in there.items()]


def margin_line(found: Difference) -> str:
    """Describe the differences of shares that are not significant."""
    return (
        f"Differences of shares below {share_at_most(found.margin)} do not count as risen or fallen: this is the "
        "importance that is waiting, blocked or moving in both surveys together."
    )
