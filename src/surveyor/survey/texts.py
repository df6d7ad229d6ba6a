"""Main texts of the pages of a survey, most important first.

    for page in sv.open("docs.example.org.survey").texts(tokens=100_000):
        print(page.position, page.url, page.language, page.text[:80])

Texts are read from the archived responses (`warc/`), in several processes. Pages are ordered by the share of `top`, or
in a survey without a link graph by the importance that OPIC estimates. A page whose text is nearly that of a more
important one is left out, unless duplicates are kept; they then name that page.

With `tokens`, the pages are those that fit, in order; the last one is cut at the end of a line. Tokens are estimated
(`web/tokens.py`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surveyor.errors import SurveyError, UsageError
from surveyor.fetch.bodies import decoded
from surveyor.fetch.parser import Parser
from surveyor.fetch.text_workers import Body, TextWorkers
from surveyor.stopping import ProgressCallback, silent
from surveyor.store.tabular import Columns
from surveyor.web.boundary import Failure
from surveyor.web.near_duplicates import NearDuplicates, sketch
from surveyor.web.page_text import PageText, require_library
from surveyor.web.tokens import estimate_tokens

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray, IntArray
    from surveyor.outcome import Visit
    from surveyor.survey.survey import Survey

Form = Literal["text", "markdown"]
COLUMNS: Columns = {
    "position": "int64",
    "id": "int32",
    "url": "string",
    "title": "string",
    "language": "string",
    "share": "float64",
    "tokens": "int64",
    "cut": "string",
    "duplicate_of": "string",
    "text": "string",
}
TOO_LONG, INCOMPLETE, OVER_BUDGET = "too long", "archived in part", "budget"  # why a text was cut
_FENCE = re.compile(r" *(`{3,})")


@dataclass(frozen=True, slots=True)
class TextPage:
    """The main text of one page of a survey."""

    position: int  # among the fetched pages, by importance
    id: int
    url: str
    title: str
    language: str  # detected, or as declared; empty if unknown
    share: float  # of all importance
    tokens: int  # estimated
    cut: str  # why the end is missing: too long, archived in part, budget; empty if it is not
    duplicate_of: str  # URL of a more important page with nearly the same text
    text: str


@dataclass(slots=True)
class TextCounts:
    """What became part of an export of texts, and what did not."""

    pages: int = 0  # with a text
    tokens: int = 0
    share: float = 0.0  # of all importance, on these pages
    duplicates: int = 0  # left out, or marked
    empty: int = 0  # without text: images, PDF, empty pages
    not_archived: int = 0
    unreadable: int = 0  # the parser failed or was stopped
    cut: int = 0
    incomplete: int = 0  # of these, pages whose response was not transferred or stored to its end
    remaining: int = 0  # pages that were not read because the budget or the number of pages was reached

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    """Which texts to read, and how."""

    form: Form = "text"
    tokens: int | None = None  # stop before more tokens than this
    top: int | None = None  # number of pages
    duplicates: bool = False  # keep pages whose text is nearly that of a more important one
    demote: int = 0  # levels by which headings of Markdown are lowered
    cost: Callable[[TextPage], int] | None = None  # tokens of a page as it is written; default: of its text

    def __post_init__(self) -> None:
        for name in ("tokens", "top"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, got {value}", hint="omit it for all pages")
        if self.form not in ("text", "markdown"):
            raise UsageError(f"form must be text or markdown, got {self.form!r}", hint="the default is text")


@dataclass(slots=True)
class Texts:
    """The texts of a survey; iterate once, then read `counts`."""

    survey: Survey
    options: TextOptions
    progress: ProgressCallback = silent
    counts: TextCounts = field(default_factory=TextCounts)

    def __iter__(self) -> Iterator[TextPage]:
        require_library()
        require_archive(self.survey)
        pages, shares = by_importance(self.survey)
        index, urls = NearDuplicates(), dict[int, str]()  # of texts, by their number in the index
        options, counts = self.options, self.counts
        with TextWorkers(options.demote, is_markdown=options.form == "markdown") as workers:
            for position, ((visit, is_whole), answer) in enumerate(workers.map(_bodies(self.survey, pages)), 1):
                self.progress("reading texts", position, pages.size, "pages")
                text = self._usable(visit, answer)
                if visit is None or text is None:
                    continue
                number = len(urls)
                url = urls[number] = self.survey.url(visit.page)
                earlier = index.add(sketch(text.text))
                counts.duplicates += earlier != number
                if earlier != number and not options.duplicates:
                    continue
                share = float(shares[position - 1])
                twin = urls[earlier] if earlier != number else ""
                page = _page(position, url, visit, text, share, twin, options.form)
                page = page if is_whole or page.cut else replace(page, cut=INCOMPLETE)
                kept = self._within_budget(page)
                if kept is not None:
                    self._count(kept)
                    counts.incomplete += not is_whole
                    yield kept
                if kept is not page or counts.pages == options.top:
                    counts.remaining = pages.size - position
                    break
        if not counts.pages:
            raise self._nothing()

    def _usable(self, visit: Visit | None, answer: PageText | Failure | None) -> PageText | None:
        """Return a text that is not empty, and count the others."""
        if visit is None or visit.warc is None:
            self.counts.not_archived += 1
        elif isinstance(answer, Failure):
            self.counts.unreadable += 1
        elif answer is None or not answer.text:
            self.counts.empty += 1
        else:
            return answer
        return None

    def _nothing(self) -> UsageError:
        """Return the error for a survey without any text."""
        counts, options = self.counts, self.options
        if options.tokens is not None and counts.remaining:
            return UsageError(f"no text fits into {options.tokens:,} tokens", hint="raise the number of tokens")
        why = f"{counts.not_archived:,} are not archived, {counts.empty:,} have no text, {counts.unreadable:,} failed"
        hint = "resume the crawl, then export"
        if counts.not_archived and not (counts.empty or counts.unreadable):
            hint = f"`surveyor doctor {shlex.quote(str(self.survey.folder))}` reads the WARC files of the survey"
        return UsageError(f"{self.survey.folder} has no page with a text: {why}", hint=hint)

    def _within_budget(self, page: TextPage) -> TextPage | None:
        """Return a page, or the part of it that fits into the budget; None if nothing fits."""
        most, cost = self.options.tokens, self.options.cost or _own_tokens
        if most is None or self.counts.tokens + cost(page) <= most:
            return page
        parts = page.text.split("\n")
        low, high = 0, len(parts) - 1  # the number of parts that fit
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.counts.tokens + cost(_cut(page, parts[:middle], self.options.form)) <= most
            low, high = (middle, high) if fits else (low, middle - 1)
        return _cut(page, parts[:low], self.options.form) if low else None

    def _count(self, page: TextPage) -> None:
        self.counts.pages += 1
        self.counts.tokens += (self.options.cost or _own_tokens)(page)
        self.counts.share += page.share
        self.counts.cut += bool(page.cut)


def _own_tokens(page: TextPage) -> int:
    return page.tokens


def _page(
    position: int, url: str, visit: Visit, text: PageText, share: float, duplicate_of: str, form: Form
) -> TextPage:
    shown = text.text if form == "text" else text.markdown
    cut = TOO_LONG if text.cut else ""
    tokens = estimate_tokens(shown)
    return TextPage(position, visit.page, url, visit.title, text.language, share, tokens, cut, duplicate_of, shown)


def _cut(page: TextPage, parts: list[str], form: Form) -> TextPage:
    """Return the first parts of a page; an open code block is closed."""
    text = "\n".join(parts).rstrip()
    if form == "markdown":
        fence = ""
        for line in text.split("\n"):
            found = _FENCE.match(line)
            if found and not fence:
                fence = found[0]
            elif fence and line == fence:
                fence = ""
        text += f"\n{fence}" if fence else ""
    values = {name: getattr(page, name) for name in TextPage.__slots__}
    return TextPage(**{**values, "text": text, "tokens": estimate_tokens(text), "cut": OVER_BUDGET})


def by_importance(survey: Survey) -> tuple[IntArray, FloatArray]:
    """Return the fetched pages and their shares, most important first."""
    if survey.keeps_graph:
        ranked, scores = survey.as_graph(), survey.ranking.scores
        nodes = np.flatnonzero(ranked.read)
        nodes = nodes[np.lexsort((nodes, -scores[nodes]))]
        return ranked.pages[nodes].astype(np.int64), scores[nodes]
    found = survey.own_importance or survey.importance()
    fetched = found.fetches > 0
    return found.pages[fetched].astype(np.int64), found.shares[fetched]


def require_archive(survey: Survey) -> None:
    """Raise an error that names the next command if the responses of a survey are not stored."""
    try:
        survey.archive  # noqa: B018  # raises if there is none
    except UsageError as error:
        words = [
            "surveyor",
            "crawl",
            *survey.manifest.seeds[:3],
            "--out",
            f"{survey.folder.name}.archived",
            "--archive",
        ]
        raise UsageError(
            f"{survey.folder} has no archived responses, so the texts of its pages are not known",
            hint=f"crawl again with an archive: `{shlex.join(words)}`",
        ) from error


def _bodies(survey: Survey, pages: IntArray) -> Iterator[tuple[tuple[Visit | None, bool], Body | None]]:
    """Yield the latest fetch of each page, whether its response is whole, and the response; None if not archived."""
    for page in pages.tolist():
        visit = survey.journal.last_visit(page, "fetched")
        body, is_whole = (None, True) if visit is None else body_of(survey, visit)
        yield (visit, is_whole), body


def body_of(survey: Survey, visit: Visit) -> tuple[Body | None, bool]:
    """Return the archived response of a visit, None if it was erased or is damaged, and whether it is whole."""
    if visit.warc is None:
        return None, True
    try:
        body, headers, cut = decoded(survey.archive.read(visit.warc))
    except (SurveyError, UsageError):
        return None, True
    return Body(survey.url(visit.page), headers, body, visit.language), not cut


def text_of(survey: Survey, url: str) -> PageText:
    """Return the main text of one page; a path is enough if exactly one known page has it."""
    from surveyor.fetch.event_loops import run_sync
    from surveyor.survey.url_status import resolve

    require_library()
    require_archive(survey)
    found = resolve(survey.tables, url)
    known = survey.tables.urls.find(found)
    page = None if known is None else int(survey.tables.urls.canonical(np.array([known], np.int32))[0])
    visit = None if page is None else survey.journal.last_visit(page, "fetched")
    body, is_whole = (None, True) if visit is None else body_of(survey, visit)
    if body is None:
        words = ["surveyor", "explain", str(survey.folder), found]
        raise UsageError(
            f"{found} has no archived text in {survey.folder}", hint=f"`{shlex.join(words)}` has its status"
        )

    async def read(response: Body) -> PageText | Failure | None:
        parser = Parser()
        try:
            return await parser.page_text(response.url, response.headers, response.body, response.declared)
        finally:
            await parser.close()

    answer = run_sync(read(body))
    if isinstance(answer, Failure):
        raise UsageError(f"{found} {answer.reason}", hint="the archived response is in the WARC files of the survey")
    if answer is None or not answer.text:
        kind = body.headers.get("content-type") or "empty"
        raise UsageError(f"{found} has no text: it is {kind}", hint="`surveyor export` leaves such pages out")
    return answer if is_whole else replace(answer, cut=True)
