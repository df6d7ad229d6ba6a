"""Answers to SQL as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surveyor.report.tables import Table

if TYPE_CHECKING:
    from surveyor.survey.sql import QueryResult

SQL_TYPES = {"int32": "integer", "int64": "integer", "float64": "number"}


def query_table(found: QueryResult) -> Table:
    """Lay an answer out: columns of numbers to the right, from the first one that holds text on to the left."""
    numbers = 0
    for column in range(len(found.columns)):
        if any(isinstance(row[column], str | list | dict) for row in found.rows):
            break
        numbers += 1
    return Table(
        titles=found.columns,
        cells=[tuple(map(_cell, row)) for row in found.rows],
        keys=found.columns,
        records=[
            tuple(json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in row) for row in found.rows
        ],
        left=len(found.columns) - numbers,
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def tables_table(tables: Mapping[str, Mapping[str, str]]) -> Table:
    """Lay out which columns tables have."""
    rows = [(name, column, SQL_TYPES.get(kind, "text")) for name in tables for column, kind in tables[name].items()]
    lines = [(name, ", ".join(columns)) for name, columns in tables.items()]
    return Table(titles=("table", "columns"), cells=lines, keys=("table", "column", "type"), records=rows, left=2)
