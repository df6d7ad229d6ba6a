"""Tables for the terminal (with rich), pipes (plain columns) and CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from surveyor.report.numbers import printable
from surveyor.store.tabular import escape_cell, write_csv_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Formats = dict[str, Callable[[Any], str]]
INDENT, GAP = 2, 3  # blanks before a table and between its columns
TITLES = {"url": "page", "in_links": "in-links", "true_share": "true share", "where": "target"}  # of keys
ROOM = 16  # minimum width of a text column


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as values (`records`, under `keys`) and the same rows as formatted text (`cells`, under `titles`)."""

    titles: Sequence[str]
    cells: Sequence[Sequence[str]]
    keys: Sequence[str]
    records: Sequence[Sequence[Any]]
    left: int = 1  # number of columns at the right end that are text


def table_of(rows: Sequence[Any], formats: Formats, *, titles: Mapping[str, str] = TITLES, left: int = 1) -> Table:
    """Return rows, which are mappings or objects, as a table; `formats` are those of its columns, by key."""
    records = [[row[key] if isinstance(row, dict) else getattr(row, key) for key in formats] for row in rows]
    cells = [[show(value) for show, value in zip(formats.values(), record, strict=True)] for record in records]
    return Table([titles.get(key, key) for key in formats], cells, list(formats), records, left)


def write_csv(table: Table, stream: TextIO, *, escape: bool = False) -> None:
    """Write the records with full precision and a header; `escape` escapes invisible characters, for a terminal."""
    rows: Iterable[Sequence[Any]] = chain([table.keys], table.records)
    if escape:
        rows = ([printable(escape_cell(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows)
    write_csv_rows(stream, rows, raw=escape)


def write_text(table: Table, stream: TextIO, *, rich: bool, color: bool = True) -> None:
    """Write the cells in columns."""
    if rich:
        _write_rich(table, stream, color=color)
    else:
        stream.writelines(f"{line}\n" for line in plain_lines(table))


def plain_lines(table: Table) -> list[str]:
    """Return the cells as aligned lines without colours."""
    rows = [[printable(title) for title in table.titles], *([printable(cell) for cell in row] for row in table.cells)]
    numbers = len(table.titles) - table.left
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.titles))]
    return [
        "  "
        + "   ".join(
            cell.rjust(width) if column < numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def shown_columns(table: Table, width: int) -> list[int]:
    """Return the columns that fit: number columns are dropped from the last until the text fits; one number stays."""
    numbers = len(table.titles) - table.left
    rows = [table.titles, *table.cells]
    widths = [GAP + max(len(row[column]) for row in rows) for column in range(numbers)]
    while numbers > 1 and width - sum(widths[:numbers]) < ROOM:
        numbers -= 1
    return [*range(numbers), *range(len(table.titles) - table.left, len(table.titles))]


def _write_rich(table: Table, stream: TextIO, *, color: bool) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(file=stream, no_color=not color or None, highlight=False)
    columns = shown_columns(table, console.width - INDENT)
    grid = Grid(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
    for column in columns:
        last = column >= len(table.titles) - table.left
        grid.add_column(
            Text(printable(table.titles[column])),
            justify="left" if last else "right",
            overflow="fold" if last else "ellipsis",
            no_wrap=not last,
        )
    for row in table.cells:
        grid.add_row(*(Text(printable(row[column])) for column in columns))
    console.print(Padding(grid, (0, 0, 0, INDENT)))
