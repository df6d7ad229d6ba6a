"""A small table, to the terminal (with rich), to a pipe (plain columns) or to CSV."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from surveyor.report.numbers import printable

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for machines (`records`, under `keys`) and the same rows for people (`cells`, under `titles`)."""

    titles: Sequence[str]
    cells: Sequence[Sequence[str]]
    keys: Sequence[str]
    records: Sequence[Sequence[Any]]
    left: int = 1  # so many columns at the right end are text, aligned to the left


def write_csv(table: Table, stream: TextIO) -> None:
    """Write the records with full precision and a header."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.keys)
    writer.writerows(table.records)


def write_text(table: Table, stream: TextIO, *, rich: bool, color: bool = True) -> None:
    """Write the cells in columns."""
    if rich:
        _write_rich(table, stream, color=color)
    else:
        stream.writelines(f"{line}\n" for line in plain_lines(table))


def plain_lines(table: Table) -> list[str]:
    """Lay the cells out in columns without any colour."""
    rows = [list(table.titles), *([printable(cell) for cell in row] for row in table.cells)]
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


def _write_rich(table: Table, stream: TextIO, *, color: bool) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
    for column, title in enumerate(table.titles):
        last = column >= len(table.titles) - table.left
        grid.add_column(
            title,
            justify="left" if last else "right",
            overflow="fold" if last else "ellipsis",
            no_wrap=not last,
        )
    for row in table.cells:
        grid.add_row(*(Text(printable(cell)) for cell in row))
    Console(file=stream, no_color=not color or None, highlight=False).print(Padding(grid, (0, 0, 0, 2)))
