"""A sitemap of the fetched pages, most important first (https://www.sitemaps.org/protocol.html).

The priority of a page is its score of `top`, from 0.1 to 1.0; `lastmod` is the Last-Modified date of the server. A
sitemap may only list pages of its own origin: those of the origin with the most importance are listed. Pages that ask
not to be indexed are left out, if their responses are archived, and so are redirects and pages with another canonical
URL.

A file holds at most 50,000 URLs and 50 MB. If there are more, `sitemap.xml` is an index of `sitemap-1.xml`, … at the
root of the site.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote
from xml.sax.saxutils import escape

from surveyor.errors import UsageError
from surveyor.graph.formats.streams import atomic_write
from surveyor.survey.texts import body_of, by_importance
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import read_page
from surveyor.web.urls import origin

if TYPE_CHECKING:
    from surveyor.outcome import Visit
    from surveyor.survey.survey import Survey

MOST_URLS = 50_000  # of one file
MOST_BYTES = 50 * 1024 * 1024
HEADER_BYTES = 200_000  # in which a page may ask not to be indexed
NONE = re.compile(rb"noindex|\bnone\b")
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
START, END = f'{HEAD}<urlset xmlns="{NAMESPACE}">\n', "</urlset>\n"


@dataclass(slots=True)
class Sitemap:
    """The entries of a sitemap, and what was left out."""

    origin: str
    entries: list[str] = field(default_factory=list)  # XML, most important first
    other_origins: int = 0
    noindex: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {**asdict(self), "entries": len(self.entries)}

    def files(self) -> Iterator[list[str]]:
        """Yield the entries of each file."""
        part: list[str] = []
        size = len(START) + len(END)
        for entry in self.entries:
            more = len(entry.encode())
            if part and (len(part) == MOST_URLS or size + more > MOST_BYTES):
                yield part
                part, size = [], len(START) + len(END)
            part.append(entry)
            size += more
        yield part


def sitemap(survey: Survey, top: int | None = None) -> Sitemap:
    """Return the sitemap of a survey, with at most `top` pages."""
    pages, shares = by_importance(survey)
    urls = [survey.url(page) for page in pages.tolist()]
    mass: defaultdict[str, float] = defaultdict(float)
    for url, share in zip(urls, shares.tolist(), strict=True):
        mass[origin(url)] += share
    if not mass:
        raise UsageError(f"{survey.folder} has no fetched pages", hint="resume the crawl, then export again")
    made = Sitemap(max(sorted(mass), key=mass.__getitem__))
    scores = dict(zip(survey.as_graph().pages.tolist(), survey.ranking.log_scores().tolist(), strict=True))
    for page, url in zip(pages.tolist(), urls, strict=True):
        if origin(url) != made.origin:
            made.other_origins += 1
            continue
        visit = survey.journal.last_visit(page, "fetched")
        if visit is not None and _is_hidden(survey, visit):
            made.noindex += 1
            continue
        if top is None or len(made.entries) < top:
            made.entries.append(_entry(url, scores[page], visit))
    return made


def _is_hidden(survey: Survey, visit: Visit) -> bool:
    """Return whether a page asks not to be indexed; False if its response is not archived."""
    if not survey.manifest.setting("archive") or (found := body_of(survey, visit)[0]) is None:
        return False
    start = found.body[:HEADER_BYTES]
    if not found.headers.get("x-robots-tag") and not (b"robots" in (lower := start.lower()) and NONE.search(lower)):
        return False
    page = guarded(found.url, read_page, start, found.url, headers=found.headers, text=False)
    return not isinstance(page, Failure) and page.noindex


def _entry(url: str, score: float, visit: Visit | None) -> str:
    modified = _date(visit.last_modified) if visit is not None else ""
    last = f"<lastmod>{modified}</lastmod>" if modified else ""
    return f"<url><loc>{escape(url)}</loc>{last}<priority>{max(0.1, score / 100):.1f}</priority></url>\n"


def _date(header: str) -> str:
    """Return a Last-Modified header as a W3C date; empty if it is not one."""
    try:
        return f"{parsedate_to_datetime(header).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def write_sitemap(made: Sitemap, file: TextIO) -> None:
    """Write a sitemap to a stream; UsageError if it needs several files."""
    first, *others = made.files()
    if others:
        raise UsageError(
            f"{len(made.entries):,} pages need {len(others) + 1} files and an index", hint="name a file with --out"
        )
    _write(first, file)


def _write(entries: list[str], file: TextIO) -> None:
    file.write(START)
    file.writelines(entries)
    file.write(END)


def sitemap_files(made: Sitemap, path: Path) -> list[Path]:
    """Return the paths of the files: one, or the index and its parts."""
    count = sum(1 for _ in made.files())
    parts = [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, count + 1)]
    return [path] if count == 1 else [path, *parts]


def write_sitemap_files(made: Sitemap, paths: list[Path]) -> None:
    """Write the parts, then the index."""
    parts = paths[1:] or paths
    for path, entries in zip(parts, made.files(), strict=True):
        with atomic_write(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
            _write(entries, file)
    if len(paths) == 1:
        return
    with atomic_write(paths[0]) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        file.write(f'{HEAD}<sitemapindex xmlns="{NAMESPACE}">\n')
        for path in parts:
            file.write(f"<sitemap><loc>{escape(f'{made.origin}/{quote(path.name)}')}</loc></sitemap>\n")
        file.write("</sitemapindex>\n")
