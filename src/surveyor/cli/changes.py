"""`surveyor diff SURVEY --since TIME`: the pages of one survey that have changed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.report.numbers import counted, percent

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.report.tables import Table
    from surveyor.survey.changes import Changes
    from surveyor.survey.survey import Survey

KEYS = ("kind", "at", "importance", "old_title", "title", "url")


def show(output: Output, survey: Survey, since: float, *, top: int, atom: str | None) -> int:
    """Print the changes since a time, and write them as an Atom feed if it is asked for."""
    from surveyor.report.atom import atom_feed
    from surveyor.report.html_page import write
    from surveyor.survey.changes import KINDS

    found = survey.changes(since)
    if atom is not None:
        write(atom_feed(found, survey.manifest.seeds), Path(atom))
    output.object("diff", {"survey": str(survey.folder), **found.to_dict(top)})
    if output.mode == "csv":
        output.table(change_table(found, None))
        return 0
    counts = found.counts()
    output.line(f"{counted(found.visited, 'page')} visited since {_time(since)}; {_number(found)}")
    if not counts:
        return 0
    width = max(map(len, counts))
    output.lines([f"{number:>7,} {kind:<{width}}  {KINDS[kind]}" for kind, number in counts.items()])
    output.line()
    output.table(change_table(found, top))
    if "perhaps changed" in counts:
        output.line()
        output.line("With the setting main_text, later visits separate changes of content from boilerplate.")
    return 0


def change_table(found: Changes, number: int | None) -> Table:
    """Format the pages that have changed, at most `number`."""
    from surveyor.report.tables import Table

    rows = found.pages[:number]
    return Table(
        titles=("share", "found at", "change", "page"),
        cells=[
            ("" if row.importance is None else percent(row.importance), _time(row.at), row.kind, row.url)
            for row in rows
        ],
        keys=KEYS,
        records=[tuple(getattr(row, key) for key in KEYS) for row in rows],
        left=2,
    )


def _number(found: Changes) -> str:
    return f"{counted(len(found.pages), 'page')} changed" if found.pages else "none has changed"


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
