"""A page as one value, and its three forms: HTML, JSON and CSV.

A view returns a `Page`; everything else is the same for all of them. Text from the web is neutralised once, where a
template prints it (`clean`): control characters and marks of writing direction become visible escapes, long text is
cut, and Jinja escapes what remains.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from surveyor import __version__
from surveyor.report import numbers
from surveyor.report.numbers import printable
from surveyor.serve import drawing

if TYPE_CHECKING:
    from starlette.requests import Request

SCHEMA = 1  # of the JSON
LONGEST = 2_000  # characters of one text in a page
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute
FORMATS = {"json": "application/json; charset=utf-8", "csv": "text/csv; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: the names of its columns, and its rows as dicts."""

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a view shows."""

    template: str
    title: str
    data: dict[str, Any] = field(default_factory=dict)  # the JSON, and values of the template
    table: Rows | None = None  # the CSV
    command: Sequence[str] = ()  # that gives the same
    python: str = ""  # that does
    shown: dict[str, Any] = field(default_factory=dict)  # further values of the template: drawings, forms
    status: int = 200


def clean(value: object) -> object:
    """Neutralise a value that a template prints."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…")
    return value


def short(value: object, longest: int = 120) -> str:
    """Cut a text for a cell of a table."""
    text = "" if value is None else str(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def paragraphs(value: str, longest: int = 60_000) -> Markup:
    """Return a text of several lines, neutralised line by line."""
    text = value if len(value) <= longest else f"{value[:longest]}…"
    return Markup("\n").join(printable(line.replace("\t", " ")) for line in text.splitlines())


def path_of(url: str) -> str:
    """Return a URL without its scheme, as a short label."""
    return url.partition("://")[2] or url


def is_link(url: object) -> bool:
    """Return whether a URL may be an address to follow: only http and https, of a length that can be shown."""
    return isinstance(url, str) and url.startswith(("http://", "https://")) and len(url) <= LONGEST


def moment(value: float | None, *, seconds: bool = False) -> Markup:
    """Return a time as an element that the script shows in the zone of the reader; without it, in UTC."""
    if not value or not math.isfinite(value) or not 0 < value < 253_402_300_800:
        return Markup("–")
    at = datetime.fromtimestamp(value, UTC)
    shown = f"{at:%Y-%m-%d %H:%M:%S}" if seconds else f"{at:%Y-%m-%d %H:%M}"
    return Markup('<time datetime="{}">{} UTC</time>').format(f"{at:%Y-%m-%dT%H:%M:%SZ}", shown)


def dash(value: object) -> object:
    """Return a value, or a dash for none."""
    return "–" if value is None or value == "" else value


def _optional(function: Any) -> Any:
    return lambda value, *more: "–" if value is None else function(value, *more)


def counted(value: float, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return numbers.counted(round(value), one, many)


@cache
def static_version(name: str) -> str:
    """Return a short digest of a static file, so that a browser fetches a new one at once."""
    return hashlib.sha256(files("surveyor.serve").joinpath("static", name).read_bytes()).hexdigest()[:12]


@cache
def templates() -> Environment:
    """Return the templates with their filters."""
    made = Environment(
        loader=PackageLoader("surveyor.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "amount": _optional(numbers.amount),
        "at_least": _optional(numbers.share_at_least),
        "at_most": _optional(numbers.share_at_most),
        "count": _optional(numbers.count),
        "dash": dash,
        "duration": _optional(numbers.duration),
        "moment": moment,
        "noun": counted,
        "paragraphs": paragraphs,
        "path_of": path_of,
        "percent": _optional(numbers.percent),
        "score": _optional("{:.0f}".format),
        "short": short,
        "size": _optional(numbers.size),
    }
    made.tests["link"] = is_link
    made.globals |= {"draw": drawing, "static_version": static_version, "version": __version__}
    return made


def part(template: str, **values: Any) -> str:
    """Return a part of a page as HTML, for events."""
    return templates().get_template(template).render(**values)


def respond(page: Page, kind: str, request: Request, context: Mapping[str, Any]) -> Response:
    """Return a page in one of its forms; `context` has the values that all pages share."""
    if kind == "json":
        content = json.dumps({"schema": SCHEMA, **page.data}, default=_plain, allow_nan=False, ensure_ascii=False)
        return Response(content, page.status, media_type=FORMATS["json"])
    if kind == "csv":
        if page.table is None:
            return Response("There is no table on this page.\n", 404, media_type="text/plain")
        return Response(as_csv(page.table), page.status, media_type=FORMATS["csv"])
    values = {
        **context,
        **page.data,
        **page.shown,
        "title": page.title,
        "command": shlex.join(page.command),
        "python": page.python,
        "has_table": page.table is not None,
        "query": request.url.query,
    }
    return HTMLResponse(templates().get_template(page.template).render(values), page.status)


def as_csv(table: Rows) -> str:
    """Return a table as CSV; text that a spreadsheet would compute gets an apostrophe."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in table.columns])  # those of a query are from its address
    for row in table.rows:
        writer.writerow([_cell(row.get(name)) for name in table.columns])
    return file.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if text.startswith(FORMULA) else text
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return "" if value is None else value


def _plain(value: object) -> object:
    """Return a value of NumPy as one of Python, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)
