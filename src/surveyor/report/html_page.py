"""Building blocks of HTML reports: no external resources, light and dark, printable.

All text is escaped, and a content security policy forbids scripts as well, except one that sorts and filters tables
where a report asks for it. The page is readable without it.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor import __version__
from surveyor.errors import UsageError
from surveyor.graph.formats.streams import atomic_write
from surveyor.report.numbers import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from surveyor.report.tables import Table

GENERATOR = f"surveyor {__version__}"
LONGEST = 300  # characters of one cell
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="{generator}">
<title>{title}</title>
<style>
{css}</style>
</head>
<body>
{body}
</body>
</html>
"""


def document(title: str, parts: Iterable[str], *, sortable: bool = False) -> str:
    """Return a complete page from parts that are HTML already; with `sortable`, a script sorts and filters tables."""
    css = files("surveyor.report").joinpath("page.css").read_text("utf-8")
    body = "\n".join([f"<h1>{text(title)}</h1>", *parts])
    page = PAGE.format(title=text(title), css=css, body=body, generator=GENERATOR)
    return with_script(page) if sortable else page


def with_script(page: str) -> str:
    """Add the script that sorts and filters tables; the policy permits this script by its hash, and no other."""
    script = files("surveyor.report").joinpath("tables.js").read_text("utf-8")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    page = page.replace("style-src 'unsafe-inline'", f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'", 1)
    return page.replace("</body>", f"<script>{script}</script>\n</body>", 1)


def write(page: str, path: str | Path) -> Path:
    """Write a page atomically; a hard link to an earlier file keeps the old content."""
    path = Path(path)
    if path.exists() and not path.is_file():  # a device such as /dev/stdout; a folder is rejected below
        try:
            path.write_text(page, "utf-8")
        except OSError as error:
            hint = "check the path, and the space left on the disk"
            raise UsageError(f"{path} cannot be written: {error.strerror or error}", hint=hint) from error
        return path
    with atomic_write(path) as draft, draft.open("x", encoding="utf-8") as file:
        file.write(page)
    return path


def text(value: object) -> str:
    """Escape text for HTML."""
    return escape(printable(str(value)), quote=True)


def facts(values: Mapping[str, str]) -> str:
    """Return key figures as a row of boxes."""
    cells = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in values.items())
    return f'<dl class="facts">{cells}</dl>'


def figure(svg: str, title: str, about: str) -> str:
    """Return a figure with its caption."""
    return f"<figure>{svg}<figcaption><b>{text(title)}</b> {text(about)}</figcaption></figure>"


def short(value: str) -> str:
    """Cut long text, so that the size of a page is bounded."""
    return value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"


def link(url: str, base: str = "") -> str:
    """Return a link to a URL; anything but http and https, and any URL too long to show, is plain text.

    The link shows the URL without `base`, an origin.
    """
    if not url.startswith(("http://", "https://")) or len(url) > LONGEST:
        return text(short(url))
    return f'<a href="{text(url)}" rel="noopener noreferrer">{text(without(base, url))}</a>'


def without(base: str, value: str) -> str:
    """Return a text with the URLs of an origin shortened to their paths.

    >>> without("https://a.example", "https://a.example/b is at https://a.example.org/")
    '/b is at https://a.example.org/'
    """
    return value.replace(f"{base}/", "/") if base else value


def grid(table: Table, about: str, *, links: bool = False, base: str = "") -> str:
    """Return a table with a description; numbers are right-aligned, text is left-aligned.

    With `links`, URLs in the last column become links. URLs of the origin `base` are shown without it.
    """
    titles = "".join(f"<th>{text(title)}</th>" for title in table.titles)
    rows = "".join(f"<tr>{''.join(_cells(row, base, links=links))}</tr>\n" for row in table.cells)
    return (
        f'<div class="scroll"><table class="keyed left{table.left}"><thead><tr>{titles}</tr></thead>\n'
        f'<tbody>{rows}</tbody></table></div>\n<p class="soft">{text(about)}</p>'
    )


def _cells(row: Sequence[str], base: str, *, links: bool) -> Iterator[str]:
    for place, cell in enumerate(row, 1):
        first, *more = cell.split("\n")  # further lines are smaller
        head = link(first, base) if links and place == len(row) else text(short(without(base, first)))
        tail = "".join(f'<div class="soft">{text(short(without(base, line)))}</div>' for line in more)
        yield f"<td>{head}{tail}</td>"


def method(values: Mapping[str, str], command: str) -> list[str]:
    """Return the parameters of a result and the command that reproduces it."""
    rows = "".join(f"<tr><th>{text(name)}</th><td>{text(value)}</td></tr>" for name, value in values.items())
    return [
        "<h2>Method</h2>",
        f'<table class="plain"><tbody>{rows}</tbody></table>',
        "<p>To reproduce it:</p>",
        f"<pre>{text(command)}</pre>",
    ]
