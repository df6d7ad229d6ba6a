"""Text cells of CSV files: nothing that comes from the web runs in a spreadsheet or drives a terminal.

A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@` (or their full-width forms) for a formula, also after a
tab or a line end. Such text gets an apostrophe in front. Control characters are written as escapes, except tabs and
line ends within a cell. Numbers are written as they are, and so is all of JSON.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any, TextIO

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(cell: Any) -> Any:
    r"""Return a cell as it is written; what is no text stays.

    >>> harmless("=1+1"), harmless("a\x1b[31m"), harmless(-1), harmless("it's")
    ("'=1+1", 'a\\x1b[31m', -1, "it's")
    """
    if not isinstance(cell, str):
        return cell
    text = cell if cell.isprintable() else CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", cell)
    return f"'{text}" if cell.lstrip("'").startswith(FORMULA) else text


def original(cell: str) -> str:
    """Return the text of a cell that `harmless` wrote, but for control characters."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell


def write_rows(file: TextIO, rows: Iterable[Iterable[Any]], *, raw: bool = False) -> None:
    """Write rows as CSV; all CSV that surveyor writes goes through here, except links of a graph."""
    writer = csv.writer(file, lineterminator="\n")
    if raw:
        writer.writerows(rows)
    else:
        writer.writerows(map(harmless, row) for row in rows)
