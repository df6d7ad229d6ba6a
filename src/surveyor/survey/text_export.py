"""Texts of a survey as one Markdown file, as llms.txt, and as rows of a table.

`markdown` holds whole texts, most important first: a heading of the first level with the title, the URL, the text. The
headings of a page are lowered by one level, so no page can pose as another one. `llms.txt` (https://llmstxt.org) holds
a link and a line per page, in a section for each folder. Both are CommonMark in which no page can insert markup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO
from urllib.parse import unquote, urlsplit

from surveyor.stopping import ProgressCallback, silent
from surveyor.survey.texts import COLUMNS, TextOptions, TextPage, Texts
from surveyor.web.markdown import autolink, escape, link, one_line
from surveyor.web.tokens import estimate_tokens

if TYPE_CHECKING:
    from surveyor.store.tabular import Batch
    from surveyor.survey.export import ExportOptions
    from surveyor.survey.survey import Survey

BATCH = 256  # texts
LONGEST_LINE = 160  # characters that describe a page in llms.txt
SMALLEST = 2  # pages of a section; smaller ones are joined
OTHER = "Other pages"


def texts_for(survey: Survey, kind: str, options: ExportOptions, progress: ProgressCallback = silent) -> Texts:
    """Return the texts that an export needs."""
    cost = {"markdown": _section_tokens, "llms.txt": _line_tokens}.get(kind)
    own = TextOptions(
        form="markdown" if options.markdown or kind == "markdown" else "text",
        tokens=options.tokens,
        top=options.top,
        duplicates=options.duplicates,
        demote=int(kind == "markdown"),
        cost=cost,
    )
    return Texts(survey, own, progress)


def text_batches(texts: Texts) -> Iterator[Batch]:
    """Yield the rows of a table of texts in small batches."""
    rows: list[TextPage] = []
    for page in texts:
        rows.append(page)
        if len(rows) == BATCH:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[TextPage]) -> Batch:
    batch: Batch = {name: [getattr(page, name) for page in rows] for name in COLUMNS}
    return batch | {name: [value or None for value in batch[name]] for name in ("language", "cut", "duplicate_of")}


def write_markdown(texts: Texts, file: TextIO) -> None:
    """Write whole texts as one Markdown document."""
    for number, page in enumerate(texts):
        file.write("\n" * (number > 0) + _section(page))


def _section(page: TextPage) -> str:
    copy = f"Nearly the same text as {autolink(page.duplicate_of)}.\n\n" if page.duplicate_of else ""
    return f"# {_title(page)}\n\n{autolink(page.url)}\n\n{copy}{page.text}\n"


def _section_tokens(page: TextPage) -> int:
    return estimate_tokens(_section(page))


def _title(page: TextPage) -> str:
    return escape(one_line(page.title or page.url))


def write_llms(texts: Texts, file: TextIO) -> None:
    """Write llms.txt: the title of the most important page, and sections of links by folder."""
    shares: defaultdict[str, float] = defaultdict(float)
    lines: defaultdict[str, list[str]] = defaultdict(list)
    name = ""
    for page in texts:
        name = name or _title(page)
        section = _folder(page.url)
        shares[section] += page.share
        lines[section].append(_line(page))
    small = [section for section, own in lines.items() if len(own) < SMALLEST and section != OTHER]
    for section in small:
        lines[OTHER] += lines.pop(section)
    counts = texts.counts
    file.write(f"# {name}\n\n> {counts.pages:,} pages, the most important first in each section, with ")
    file.write(f"{counts.share:.1%} of the importance of the site.\n")
    for section in sorted(lines, key=lambda own: (own == OTHER, -shares[own], own)):
        file.write(f"\n## {escape(one_line(section))}\n\n" + "\n".join(lines[section]) + "\n")


def _folder(url: str) -> str:
    """Return the first folder in the path of a URL."""
    first, slash, _ = urlsplit(url).path.lstrip("/").partition("/")
    return unquote(first) if slash else OTHER


def _line(page: TextPage) -> str:
    about = _description(page)
    return f"- {link(one_line(page.title or page.url), page.url)}" + (f": {escape(about)}" if about else "")


def _description(page: TextPage) -> str:
    """Return the first long line of a text that is not its title."""
    lines = (one_line(line, LONGEST_LINE) for line in page.text.split("\n") if line)
    return next((line for line in lines if len(line) >= 40 and line not in page.title), "")


def _line_tokens(page: TextPage) -> int:
    return estimate_tokens(_line(page))
