"""Surveys with scripted journals and archived pages, for tests of search; and a slow oracle of its order."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from surveyor.config import Settings
from surveyor.crawler.start import start
from surveyor.outcome import Exchange, Outcome, Visit, head
from surveyor.search.words import words
from surveyor.store.directory import SurveyFolder
from surveyor.web.link_context import by_page, mark

HOME = "https://a.example/"
MARK = mark("a", "main", "")
WEIGHTS = {"title": 5, "anchors": 3, "headings": 2, "body": 1, "url": 2}
AT = 1.7e9


@dataclass(frozen=True)
class Page:
    """A page of a scripted site."""

    title: str = ""
    text: str = ""
    links: tuple[tuple[str, str], ...] = ()  # target and text
    heading: str = ""
    language: str = "en"
    kind: str = "fetched"

    def html(self) -> bytes:
        links = "".join(f'<a href="{escape(url)}">{escape(text)}</a> ' for url, text in self.links)
        heading = f"<h2>{escape(self.heading)}</h2>" if self.heading else ""
        return (
            f"<html lang={self.language}><head><title>{escape(self.title)}</title></head><body><nav>{links}</nav>"
            f"<main>{heading}<p>{escape(self.text)}</p></main></body></html>"
        ).encode()


@dataclass
class Site:
    """A survey that grows by visits."""

    path: Path
    archive: bool = True
    clock: float = AT
    ids: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {"contact": "me@example.org", "rng": 7, "archive": self.archive, "scope": "any", "until": "pages=10000"}
        folder, _ = start(self.path, [HOME], Settings(**given), {})  # type: ignore[arg-type]
        self.ids = {url: page for page, url in enumerate(folder.journal.urls())}
        folder.close()

    def visit(self, pages: Mapping[str, Page]) -> None:
        """Append a visit to each page."""
        with SurveyFolder.open(self.path) as folder:
            new: list[str] = []
            for url in [
                *([] if self.ids else [HOME]),
                *pages,
                *(url for page in pages.values() for url, _ in page.links),
            ]:
                if url not in self.ids:
                    self.ids[url] = len(self.ids)
                    new.append(url)
            folder.commit([self._outcome(url, page) for url, page in pages.items()], new)

    def _outcome(self, url: str, page: Page) -> Outcome:
        self.clock += 1
        number = self.ids[url]
        if page.kind == "gone":
            return Visit(number, "gone", status=404, fetched_at=self.clock, seconds=0.1)
        body = page.html()
        links = {self.ids[target]: text for target, text in reversed(page.links) if target != url}
        every = np.array(sorted(links), np.int32)
        answer = head(b"HTTP/1.1 200 OK", [(b"content-type", b"text/html; charset=utf-8")], len(body))
        exchange = Exchange(url, head(b"GET / HTTP/1.1", []), answer, body, self.clock) if self.archive else None
        return Visit(
            number,
            "fetched",
            every,
            status=200,
            fetched_at=self.clock,
            seconds=0.1,
            size=len(body),
            hash=hashlib.blake2b(body, digest_size=16).digest(),
            title=page.title,
            language=page.language,
            contexts=by_page(number, every, [links[one] for one in every.tolist()], [MARK] * every.size),
            exchange=exchange,
        )


def counts_of(fields: Mapping[str, Sequence[str]], language: str) -> dict[str, Counter[bytes]]:
    """Count the words of each field."""
    return {name: Counter(word for text in texts for word in words(text, language)) for name, texts in fields.items()}


def scores_of(documents: Mapping[int, dict[str, Counter[bytes]]], query: Sequence[Sequence[bytes]]) -> dict[int, float]:
    """Return BM25F of the pages that have all words of a query; each word is given by its stems."""
    k, b = 1.2, 0.75
    length = {
        page: sum(WEIGHTS[name] * sum(counts.values()) for name, counts in fields.items())
        for page, fields in documents.items()
    }
    mean = sum(length.values()) / len(length)
    total = dict.fromkeys(documents, 0.0)
    for stems in query:
        frequency = {
            page: sum(WEIGHTS[name] * counts[stem] for name, counts in fields.items() for stem in stems)
            for page, fields in documents.items()
        }
        having = sum(map(bool, frequency.values()))
        idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for page in list(total):
            f = frequency[page]
            total[page] += idf * f * (k + 1) / (f + k * (1 - b + b * length[page] / mean))
            if not f:
                del total[page]
    return total


def oracle(scores: Mapping[int, float], importance: Mapping[int, float], weight: float) -> list[int]:
    """Order pages by BM25F and importance."""
    least = min(importance.values()) / 2
    best, most = max(scores.values(), default=1), max((importance.get(page, least) for page in scores), default=1)
    logs = {
        page: (1 - weight) * math.log(score / best) + weight * math.log(importance.get(page, least) / most)
        for page, score in scores.items()
    }
    return sorted(scores, key=lambda page: (-round(logs[page], 12), page))


VOCABULARY = [
    *("river", "rivers", "sea", "level", "harbour", "pilot", "tide", "winds", "wind", "forest", "valley", "barley"),
    *("Häuser", "haus", "größe", "fluss", "café", "naïve", "東京都", "東京", "c3po", "x", "running", "run", "market"),
]


def random_pages(rng: np.random.Generator, count: int, most: int = 60) -> dict[str, Page]:
    """Return random pages of a site of `most` pages; some are gone."""
    urls = [HOME, *(f"{HOME}{folder}/p{number}" for number in range(most) for folder in ("guide",))]
    weights = 1 / np.arange(1, len(VOCABULARY) + 1)

    def text(size: int) -> str:
        return " ".join(rng.choice(VOCABULARY, size, p=weights / weights.sum()))

    pages = {}
    for url in rng.choice(urls, count, replace=False).tolist():
        goals = rng.choice(urls, int(rng.integers(0, 8)), replace=False).tolist()
        pages[str(url)] = Page(
            title=text(int(rng.integers(0, 5))),
            text=f"{text(int(rng.integers(1, 80)))} {rng.integers(1 << 40)} and the rest of the page.",
            links=tuple((str(goal), text(int(rng.integers(0, 3)))) for goal in goals),
            heading=text(int(rng.integers(0, 4))),
            language=str(rng.choice(["en", "de", "fr"])),
            kind="gone" if url != HOME and rng.random() < 0.1 else "fetched",
        )
    return pages
