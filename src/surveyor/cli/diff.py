"""`surveyor diff`: the differences between two surveys."""

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
@options.top(10, "Pages of each kind to list; --csv prints all.")
def command(output: Output, *, old: str, new: str, top: int) -> int:
    """Show the differences between the surveys OLD and NEW: pages that are new, gone, risen, fallen or changed.

    A survey knows only the pages it has fetched. A page counts as risen or fallen only if the difference of its shares
    exceeds the error bound of both surveys, and as new or gone only if that is certain; uncertain changes have other
    names.
    """
    from surveyor.survey.survey import Survey

    with Survey(old) as before, Survey(new) as after:
        return show(output, before, after, top)


def show(output: Output, before: Survey, after: Survey, number: int) -> int:
    """Print the differences; reasons for doubt come first."""
    from surveyor.report.accounts import interval
    from surveyor.report.diff_tables import change_table, differing_lines, margin_line, summary_lines
    from surveyor.report.numbers import counted

    found, names = before.diff(after), (str(before.folder), str(after.folder))
    coverage = {"old_coverage": before.coverage.to_dict(), "new_coverage": after.coverage.to_dict()}
    output.object("diff", {"old": names[0], "new": names[1], **coverage, **found.to_dict(number)})
    if output.mode == "csv":
        output.table(change_table(found, None))
        return 0
    for line in differing_lines(found):
        output.warn(line)
    if found.differing:
        output.warn("The surveys measure different things: not every difference is a change of the pages.")
    width = max(map(len, names))
    for name, survey in zip(names, (before, after), strict=True):
        output.line(f"{name:<{width}}  {counted(survey.pages_fetched, 'page')} fetched, {interval(survey.coverage)}")
    output.line(
        f"{counted(found.both, 'page')} ranked in both; overlap of the top {found.best}: {found.overlap:.0%}; "
        f"Kendall's tau: {found.kendall:.2f}; {found.l1 / 2:.1%} of all importance moved between pages"
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
        path = names[0] if best.new_share is None else names[1]
        explain, all_pages = ["surveyor", "explain", path, best.url], ["surveyor", "diff", *names, "--csv"]
        output.next_steps({"explain the largest change": explain, "all differences": all_pages})
    return 0
