"""What every HTML file of ours is made of: no script, nothing fetched, light and dark, prints well.

Every name is escaped, and the page forbids scripts on top.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor import __version__
from surveyor.graph.formats.streams import aside
from surveyor.report.numbers import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from surveyor.report.tables import Table

MADE_WITH = f"surveyor {__version__}"
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


def document(title: str, parts: Iterable[str]) -> str:
    """Put the parts, which are HTML already, into one page."""
    css = files("surveyor.report").joinpath("page.css").read_text("utf-8")
    body = "\n".join([f"<h1>{text(title)}</h1>", *parts])
    return PAGE.format(title=text(title), css=css, body=body, generator=MADE_WITH)


def write(page: str, path: str | Path) -> Path:
    """Write a page as one file, at once: what another name of an earlier file leads to stays as it is."""
    path = Path(path)
    if path.exists() and not path.is_file():  # a device such as /dev/stdout; a folder is refused
        path.write_text(page, "utf-8")
        return path
    with aside(path) as draft, draft.open("x", encoding="utf-8") as file:
        file.write(page)
    return path


def text(value: object) -> str:
    """Make any text safe to stand in HTML."""
    return escape(printable(str(value)), quote=True)


def facts(values: Mapping[str, str]) -> str:
    """Show the numbers that matter most, as a row of boxes."""
    cells = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in values.items())
    return f'<dl class="facts">{cells}</dl>'


def figure(svg: str, title: str, about: str) -> str:
    """Show a drawing with what there is to see in it."""
    return f"<figure>{svg}<figcaption><b>{text(title)}</b> {text(about)}</figcaption></figure>"


def short(value: str) -> str:
    """Cut what is too long to be shown, so that no name makes a page large."""
    return value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"


def link(url: str) -> str:
    """Lead to a page of the web; only http and https, and nothing that is too long to be seen whole."""
    if not url.startswith(("http://", "https://")) or len(url) > LONGEST:
        return text(short(url))
    return f'<a href="{text(url)}" rel="noopener noreferrer">{text(url)}</a>'


def grid(table: Table, about: str, *, links: bool = False) -> str:
    """Show the cells of a table and what they say; numbers stand right, text left, and in sight.

    With `links`, cells of the last column that are URLs lead there.
    """
    titles = "".join(f"<th>{text(title)}</th>" for title in table.titles)
    rows = "".join(f"<tr>{''.join(_cells(row, links=links))}</tr>\n" for row in table.cells)
    return (
        f'<div class="scroll"><table class="keyed left{table.left}"><thead><tr>{titles}</tr></thead>\n'
        f'<tbody>{rows}</tbody></table></div>\n<p class="soft">{text(about)}</p>'
    )


def _cells(row: Sequence[str], *, links: bool) -> Iterator[str]:
    for place, cell in enumerate(row, 1):
        first, *more = cell.split("\n")  # what follows stands below, smaller
        head = link(first) if links and place == len(row) else text(short(first))
        tail = "".join(f'<div class="soft">{text(short(line))}</div>' for line in more)
        yield f"<td>{head}{tail}</td>"


def method(values: Mapping[str, str], command: str) -> list[str]:
    """Say how a result came about, and how to make it again."""
    rows = "".join(f"<tr><th>{text(name)}</th><td>{text(value)}</td></tr>" for name, value in values.items())
    return [
        "<h2>Method</h2>",
        f'<table class="plain"><tbody>{rows}</tbody></table>',
        "<p>To make it again:</p>",
        f"<pre>{text(command)}</pre>",
    ]
