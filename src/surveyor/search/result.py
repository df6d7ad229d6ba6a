"""Results of a search: pages, best first, with the parts of their scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.frames import Tabular, draw_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.arrays import FloatArray

COLUMNS = ("position", "id", "url", "title", "score", "language", "snippet")


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page that matches a query."""

    position: int
    id: int
    url: str
    title: str
    score: float  # W^(1-w) * I^w: 1 for a page that is first by words and by importance
    language: str  # empty if it is unknown
    fetched_at: float  # seconds since 1970
    copies: int  # other matching pages with nearly the same text, which are left out
    snippet: str  # a passage of the page, as plain text
    matches: tuple[tuple[int, int], ...]  # start and end of the words in it
    explanation: dict[str, Any]  # what the score consists of

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query."""

    word: str
    pages: int  # that have it
    idf: float
    instead_of: str  # the word that was asked for, if no page has it and this one is shown instead


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SearchResult(Tabular):
    """The pages that match a query, best first."""

    query: str
    rank: str  # local, opic, global, domain or none
    weight: float  # of the importance: 0 words only, 1 importance only
    pages: tuple[FoundPage, ...]
    total: int  # matching pages, near-duplicates left out
    words: tuple[QueryWord, ...]
    indexed: int  # pages
    visit: int  # of the journal, up to which pages are indexed
    notes: tuple[str, ...] = ()  # what to know of these results

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "query": self.query,
            "rank": self.rank,
            "weight": self.weight,
            "total": self.total,
            "indexed": self.indexed,
            "visit": self.visit,
            "notes": list(self.notes),
            "words": [asdict(word) for word in self.words],
            "pages": [page.to_dict() for page in self.pages],
        }

    def top(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the first results as plain values."""
        return [page.to_dict() for page in self.pages[:count]]

    def _columns(self) -> dict[str, Any]:
        return {name: [getattr(page, name) for page in self.pages] for name in COLUMNS}

    def _draw(self, axes: Axes) -> None:
        scores: FloatArray = np.array([page.score for page in self.pages])
        draw_bars(axes, [page.title or page.url for page in self.pages], scores.tolist(), "score")

    def __len__(self) -> int:
        return len(self.pages)

    def __repr__(self) -> str:
        by = "words only" if self.weight == 0 else f"{self.rank} importance, weight {self.weight:g}"
        return f"SearchResult({self.query!r}: {self.total:,} of {self.indexed:,} pages, {by})"

    def _html(self) -> str:
        rows = "".join(
            f"<tr><td>{page.score:.3f}</td><td>{escape(page.title)}<br>{escape(page.url)}<br>{marked(page)}</td></tr>"
            for page in self.pages[:10]
        )
        return f"<p>{escape(repr(self))}</p><table><tr><th>score</th><th>page</th></tr>{rows}</table>"


def marked(page: FoundPage) -> str:
    """Return the snippet of a page as HTML with its words marked."""
    parts, at = [], 0
    for start, end in page.matches:
        parts += [escape(page.snippet[at:start]), f"<mark>{escape(page.snippet[start:end])}</mark>"]
        at = end
    return "".join([*parts, escape(page.snippet[at:])])
