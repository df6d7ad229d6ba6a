"""Rows as an Excel workbook (extra `xlsx`).

Text is always stored as text: a cell that begins with `=` is no formula, and a URL is no link. Unlike CSV this needs no
escapes. Excel allows 1,048,576 rows and 32,767 characters in a cell; longer texts are cut, and end in an ellipsis.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from surveyor.errors import MissingExtra, UsageError

MOST_ROWS = 1_048_576
MOST_CHARACTERS = 32_767  # as Excel counts them: code units of UTF-16
INVALID = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # in XML
WIDTHS = {"url": 60, "title": 40, "text": 80}


def write_xlsx(path: Path, names: Iterable[str], rows: Iterable[Iterable[Any]], title: str) -> int:
    """Write a workbook of one sheet with fixed column names; return the number of cells that were cut."""
    try:
        xlsxwriter: Any = importlib.import_module("xlsxwriter")
    except ImportError as error:
        raise MissingExtra("writing Excel workbooks", "XlsxWriter", "xlsx") from error
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "in_memory": False}
    columns, cut = list(names), 0
    path.open("wb").close()  # raises OSError where no file can be written
    book = xlsxwriter.Workbook(str(path), {**options, "tmpdir": str(path.parent)})
    try:
        sheet = book.add_worksheet(title)
        bold = book.add_format({"bold": True})
        for column, name in enumerate(columns):
            sheet.set_column(column, column, WIDTHS.get(name, 12))
        for column, name in enumerate(columns):
            sheet.write_string(0, column, name, bold)
        sheet.freeze_panes(1, 0)
        number = 0
        for number, row in enumerate(rows, 1):
            if number == MOST_ROWS:
                raise UsageError(
                    f"an Excel sheet holds at most {MOST_ROWS - 1:,} rows of values",
                    hint="limit them with --top, or write csv",
                )
            for column, value in enumerate(row):
                cut += _write_cell(sheet, number, column, value)
        sheet.autofilter(0, 0, number, len(columns) - 1)
    finally:
        try:
            book.close()
        except xlsxwriter.exceptions.FileCreateError as error:
            raise OSError(0, str(error)) from error
    return cut


def _write_cell(sheet: Any, row: int, column: int, value: Any) -> bool:
    """Write one cell; return whether it was cut."""
    if value is None:
        return False
    if isinstance(value, (int, float)):
        sheet.write_number(row, column, value)
        return False
    text = INVALID.sub("\ufffd", value)
    units = len(text.encode("utf-16-le")) // 2
    if units > MOST_CHARACTERS:
        kept = text.encode("utf-16-le")[: 2 * (MOST_CHARACTERS - 1)]
        text = kept.decode("utf-16-le", "ignore") + "…"
    sheet.write_string(row, column, text)
    return units > MOST_CHARACTERS
