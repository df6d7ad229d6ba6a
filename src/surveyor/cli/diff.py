"""`surveyor diff`: what changed between two surveys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.survey.survey import Survey


@options.command("diff", table=True)
@click.argument("old", type=click.Path(), metavar="OLD")
@click.argument("new", type=click.Path(), metavar="NEW")
@options.top(10, "Pages of each kind to list; --csv gives all.")
def command(output: Output, *, old: str, new: str, top: int) -> int:
    """Say what changed from the survey OLD to the survey NEW: pages that are new, gone, risen, fallen or changed.

    What a survey has not read it does not know. So a page is only called risen or fallen if its share differs by more
    than both surveys can be wrong by, and new or gone if that is certain; other words say what else it may be.
    """
    from surveyor.survey.survey import Survey

    with Survey(old) as before, Survey(new) as after:
        return show(output, before, after, top)


def show(output: Output, before: Survey, after: Survey, number: int) -> int:
    """Print the differences, what makes them doubtful first."""
    from surveyor.report.accounts import interval
    from surveyor.report.diff_tables import change_table, differing_lines, margin_line, summary_lines
    from surveyor.report.numbers import counted

    found, names = before.diff(after), (str(before.folder), str(after.folder))
    output.object("diff", {
        "old": names[0], "new": names[1], "old_coverage": before.coverage.to_dict(),
        "new_coverage": after.coverage.to_dict(), **found.to_dict(number),
    })  # fmt: skip
    if output.mode == "csv":
        output.table(change_table(found, None))
        return 0
    for line in differing_lines(found):
        output.warn(line)
    if found.differing:
        output.warn("So they measure different things, and what follows is no change of the pages alone.")
    width = max(map(len, names))
    for name, survey in zip(names, (before, after), strict=True):
        output.line(f"{name:<{width}}  {counted(survey.pages_fetched, 'page')} fetched, {interval(survey.coverage)}")
    output.line(
        f"{counted(found.both, 'page')} ranked in both; of the best {found.best}, {found.overlap:.0%} are in both; "
        f"order alike to {found.kendall:.2f} (1 is the same); {found.l1 / 2:.1%} of all shares moved"
    )
    output.line(margin_line(found))
    output.line()
    lines = summary_lines(found)
    for line in lines or ["No page differs."]:
        output.line(line)
    if lines:
        output.line()
        output.table(change_table(found, number))
        best = next(one for changes in found.changes.values() for one in changes)
        output.next_steps({
            "why is that?": ["surveyor", "explain", names[0] if best.new_share is None else names[1], best.url],
            "all of it": ["surveyor", "diff", *names, "--csv"],
        })  # fmt: skip
    return 0
