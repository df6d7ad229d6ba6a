r"""Text cells of CSV files, escaped so that text from the web cannot run in a spreadsheet or control a terminal.

A spreadsheet treats a cell that begins with `=`, `+`, `-` or `@` (or their full-width forms) as a formula, also after
a tab or a line end. Such text is prefixed with an apostrophe. Control characters are written as escapes (`\x1b`),
except tabs and line ends within a cell; `original` undoes both. Numbers and JSON are written unchanged.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any, TextIO

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|\\(?=x[0-9a-f]{2})")  # or text that looks like an escape
ESCAPE = re.compile(r"\\x([0-9a-f]{2})")


def harmless(cell: Any) -> Any:
    r"""Return a cell as written to CSV; values that are not text are unchanged.

    >>> harmless("=1+1"), harmless("a\x1b[31m"), harmless(-1), harmless("it's")
    ("'=1+1", 'a\\x1b[31m', -1, "it's")
    """
    if not isinstance(cell, str):
        return cell
    text = (
        cell if cell.isprintable() and "\\" not in cell else CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", cell)
    )
    return f"'{text}" if cell.lstrip("'").startswith(FORMULA) else text


def original(cell: str) -> str:
    r"""Return the text of a cell that `harmless` wrote.

    >>> original("'=1+1"), original(harmless("a\x1b[31m")) == "a\x1b[31m", original(harmless(r"\x1b")) == r"\x1b"
    ('=1+1', True, True)
    """
    text = ESCAPE.sub(lambda found: chr(int(found[1], 16)), cell)
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA) else text


def write_rows(file: TextIO, rows: Iterable[Iterable[Any]], *, raw: bool = False) -> None:
    """Write rows as CSV. All CSV output of surveyor uses this function, except links of a graph."""
    writer = csv.writer(file, lineterminator="\n")
    if raw:
        writer.writerows(rows)
    else:
        writer.writerows(map(harmless, row) for row in rows)
