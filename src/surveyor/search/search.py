"""Search a survey: `survey.search("words")`.

The index is brought up to date first, so a page that a crawl in another process fetched seconds ago is found. If that
is not possible, because another process is at it or the folder cannot be written, the index is used as it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import numpy as np

from surveyor.arrays import BoolArray, FloatArray
from surveyor.errors import SurveyError, UsageError, check_range
from surveyor.search import query as queries
from surveyor.search.generation import Generation, current, exists
from surveyor.search.importance import Rank, importance_of, least_of
from surveyor.search.index import terms_of, update
from surveyor.search.ranking import saturated
from surveyor.search.result import FoundPage, QueryWord, SearchResult
from surveyor.search.searcher import Hits, Matches, Searcher
from surveyor.search.snippets import snippet
from surveyor.search.words import language_code
from surveyor.stopping import ProgressCallback, silent
from surveyor.survey.changes import since_time

if TYPE_CHECKING:
    from surveyor.survey.survey import Survey

WEIGHT = 0.2
TOP = 10
MOST = 1_000  # results


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How to rank, and which pages to show."""

    rank: Rank = "local"
    weight: float | None = None  # of the importance; by default 0.2, and 0 with rank none
    ranks: Path | str | None = None  # file of global ranks or domain scores
    top: int = TOP
    host: str = ""
    language: str = ""
    since: str = ""  # fetched since this time: 2026-11-18, 12h, 7d, 2w
    folder: str = ""  # path such as /guide/, or URL
    update: bool = True  # bring the index up to date first

    def __post_init__(self) -> None:
        check_range("weight", self.weight, "[0, 1]", hint="0 is words only, 1 is importance only")
        for name in ("host", "language", "since", "folder"):
            if not isinstance(getattr(self, name), str):
                raise UsageError(
                    f"{name} must be text, got {getattr(self, name)!r}", hint="for example host='a.example'"
                )
        if isinstance(self.top, bool) or not isinstance(self.top, int):
            raise UsageError(f"top must be a whole number, got {self.top!r}", hint="the default is 10")
        if "/" in self.host or self.host.count(":") == 1:  # an IPv6 address has more colons
            raise UsageError(f"host must be a name without scheme and port, got {self.host!r}", hint="as in a.example")
        if self.folder and not (self.folder.startswith("/") or "://" in self.folder):
            raise UsageError(f"folder must begin with /, got {self.folder!r}", hint="for example /guide/")
        if not 1 <= self.top <= MOST:
            raise UsageError(f"top must be in [1, {MOST:,}], got {self.top:,}", hint="the default is 10")
        if self.language and not language_code(self.language):
            raise UsageError(f"language must be a code such as en, got {self.language[:50]!r}", hint="for example de")


@dataclass(slots=True)
class _Opened:
    """What searches of one open survey share."""

    searcher: Searcher
    importance: dict[tuple[str, str], tuple[FloatArray, float]]
    urls: list[str] | None = None


_OPENED: WeakKeyDictionary[Survey, _Opened] = WeakKeyDictionary()


def search_survey(survey: Survey, words: str, *, progress: ProgressCallback = silent, **options: Any) -> SearchResult:
    """Search the pages of a survey; options are the fields of `SearchOptions`."""
    chosen = SearchOptions(**options)
    terms = queries.terms_of(queries.parse(words))
    generation, notes = _generation(survey, chosen, progress)
    opened = _OPENED.get(survey)
    if opened is None or opened.searcher.generation.about != generation.about:
        try:
            opened = _Opened(Searcher(generation, progress), {})
        except SurveyError:  # another process may have replaced and removed it meanwhile
            again, notes = _generation(survey, chosen, progress)
            if again.about == generation.about:
                raise
            generation, opened = again, _Opened(Searcher(again, progress), {})
        _OPENED[survey] = opened
    searcher = opened.searcher
    weight = (0.0 if chosen.rank == "none" else WEIGHT) if chosen.weight is None else chosen.weight
    if chosen.rank == "none" and weight:
        raise UsageError(f"weight must be 0 with rank none, got {weight:g}", hint="choose another rank")
    importance, least = _importance(survey, opened, chosen)
    language = language_code(chosen.language)
    found = searcher.match(terms, _chosen(survey, opened, chosen, language), language)
    hits = searcher.best(found, importance, least, weight, chosen.top)
    notes += _notes(generation, found, hits)
    return SearchResult(
        query=words,
        rank=chosen.rank,
        weight=weight,
        pages=tuple(_pages(searcher, found, hits, importance, weight)),
        total=hits.total,
        words=tuple(QueryWord(word.word, word.pages, word.idf, word.instead_of) for word in found.words),
        indexed=searcher.pages,
        visit=generation.position,
        notes=tuple(notes),
    )


def _generation(survey: Survey, chosen: SearchOptions, progress: ProgressCallback) -> tuple[Generation, list[str]]:
    """Return the index of a survey, and what to know of it."""
    survey.journal.refresh()
    terms, notes = terms_of(survey), list[str]()
    found = current(survey.folder, terms)
    if found is not None and found.about["complete"] and found.position == survey.journal.position:
        opened = _OPENED.get(survey)
        if opened is not None and opened.searcher.generation.about != found.about:
            survey.refresh()  # another process has updated the index: ranks are to be those of its pages
        return found, notes
    had_another = found is None and exists(survey.folder)
    try:
        if chosen.update:
            done = update(survey, progress)
            if had_another:
                notes.append(
                    "The index in the survey was damaged, or not made for it by this user here: it was built again."
                )
            return done, notes
        problem = "it is not updated"
    except SurveyError as error:
        problem = error.problem
        if found is None:
            raise
    found = current(survey.folder, terms)  # it may have been replaced since
    if found is None:
        raise UsageError(f"{survey.folder} has no index", hint="search with update=True")
    if found.position != survey.journal.position:
        missing = survey.journal.position - found.position
        notes.append(f"The latest {missing:,} visits are not indexed: {problem}.")
    return found, notes


def _importance(survey: Survey, opened: _Opened, chosen: SearchOptions) -> tuple[FloatArray, float]:
    """Return the importance of each row of the index, and what an unknown one counts as."""
    key = chosen.rank, str(chosen.ranks or "")
    if key not in opened.importance:
        by_page = importance_of(survey, chosen.rank, None if chosen.ranks is None else Path(chosen.ranks))
        pages = opened.searcher.indexed.page
        by_row = np.full(pages.size, np.nan)
        inside = pages < by_page.size
        by_row[inside] = by_page[pages[inside]]
        opened.importance[key] = by_row, least_of(by_page)
    return opened.importance[key]


def _chosen(survey: Survey, opened: _Opened, chosen: SearchOptions, language: str) -> BoolArray | None:
    """Return which rows the filters select."""
    searcher = opened.searcher
    masks: list[BoolArray] = []
    if language:
        masks.append(searcher.languages == language.encode())
    if chosen.since:
        masks.append(searcher.indexed.fetched_at >= since_time(chosen.since, time.time()))
    if chosen.host or chosen.folder:
        if opened.urls is None:
            urls = list(survey.journal.urls())
            opened.urls = [urls[page] for page in searcher.indexed.page.tolist()]
        host, folder = chosen.host.lower().rstrip("."), chosen.folder
        folder = folder if folder.endswith("/") or not folder else f"{folder}/"
        masks.append(np.fromiter((_is_inside(url, host, folder) for url in opened.urls), np.bool_, searcher.pages))
    if not masks:
        return None
    whole: BoolArray = np.logical_and.reduce(masks)
    return whole


def _is_inside(url: str, host: str, folder: str) -> bool:
    parts = urlsplit(url)
    start = parts.path if folder.startswith("/") else url
    return (not host or parts.hostname == host) and start.startswith(folder)


def _notes(generation: Generation, found: Matches, hits: Hits) -> list[str]:
    """Return what to know of results."""
    notes = []
    if not generation.about["complete"]:
        notes.append("The index is not complete yet: an update was interrupted or is running.")
    if generation.about["terms"][1] != "archived":
        notes.append("The survey has no archived responses, so titles, link texts and URLs are indexed, but no texts.")
    notes += [f"No page has {word.instead_of}; showing {word.word}." for word in found.words if word.instead_of]
    missing = [word.word for word in found.words if not word.pages]
    if missing:
        notes.append(f"No page has {', '.join(missing)}.")
    if hits.total and not found.is_complete and len(found.words) > 1:
        notes.append("No page has all words; showing pages with some of them.")
    return notes


def _pages(searcher: Searcher, found: Matches, hits: Hits, importance: FloatArray, weight: float) -> list[FoundPage]:
    wanted = {form for word in found.words for form in word.stems}
    pages = []
    for number, row in enumerate(hits.rows):
        texts = searcher.texts(row)
        passage = snippet(texts, wanted)
        known = float(importance[row])
        explanation = {
            "words": {word.word: _word_part(searcher, row, word) for word in found.words if word.frequency[row]},
            "length": float(searcher.relative[row]),
            "bm25f": float(found.scores[np.searchsorted(found.rows, row)]),
            "relative_words": hits.words[number],
            "importance": None if np.isnan(known) else known,
            "relative_importance": hits.importance[number],
            "weight": weight,
        }
        pages.append(
            FoundPage(
                position=number + 1,
                id=texts.page,
                url=texts.url,
                title=texts.title,
                score=hits.scores[number],
                language=texts.language,
                fetched_at=float(searcher.indexed.fetched_at[row]),
                copies=hits.copies[number] - 1,
                snippet=passage.text,
                matches=tuple(passage.matches),
                explanation=explanation,
            )
        )
    return pages


def _word_part(searcher: Searcher, row: int, word: Any) -> dict[str, Any]:
    """Return what a word adds to the score of a page."""
    frequency = word.frequency[row : row + 1]
    part = float(saturated(frequency, searcher.relative[row : row + 1])[0])
    fields = searcher.frequencies(row, word)
    return {"fields": fields, "frequency": float(frequency[0]), "idf": word.idf, "adds": word.idf * part}
