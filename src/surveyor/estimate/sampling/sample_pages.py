"""The pages of a sample by id: names of a graph, or pages of a survey with their content from its WARC files.

The content of a page is what it was when last fetched. A page that opted out of archiving, or a survey without an
archive, has title and language only, which are in the journal. Links are all that the page names, nofollow links
included, normalised as by the crawler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from surveyor.arrays import ByteArray, IntArray
from surveyor.errors import SurveyorError, UsageError
from surveyor.estimate.sampling.page_content import PageContent, SampledPage
from surveyor.estimate.sampling.properties import check_available
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.walk_methods import ON, WalkGraph
from surveyor.fetch.encodings import Unreadable, decoder_of
from surveyor.fetch.responses import joined
from surveyor.graph.csr import Graph
from surveyor.store.directory import SurveyFolder
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import read_page
from surveyor.web.references import Addresses
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.outcome import Exchange, Visit
    from surveyor.web.urls import Urls

MAX_DECODED = 20_000_000  # bytes of a decoded body; the rest is left out
CHUNK = 1 << 16  # bytes


@dataclass(frozen=True)
class GraphPages:
    """The pages of a graph, which have names and links but no content."""

    graph: Graph
    kind: ByteArray
    has_content: ClassVar[bool] = False

    @property
    def count(self) -> int:
        """Number of pages."""
        return self.graph.pages

    def url(self, page: int) -> str:
        """Return the name of a page."""
        return str(page) if self.graph.names is None else self.graph.names[page]

    def page(self, page: int) -> SampledPage:
        """Return a page."""
        return SampledPage(self.url(page), out_degree=int(self._out_degrees[page]))

    def topic_link_share(self, page: int) -> float:
        """Return the share of a page's links that lead to pages on topic; NaN if it has none."""
        links = np.unique(self.graph.links_of(page))
        return float((self.kind[links] == ON).mean()) if links.size else float("nan")

    @cached_property
    def _out_degrees(self) -> IntArray:
        return self.graph.out_degrees


@dataclass(slots=True)
class SurveyPages:
    """The pages of a survey that walks visited; content is read from the survey while it is open, or later."""

    folder: Path
    urls: Urls
    graph: WalkGraph
    writable: SurveyFolder | None = field(default=None, repr=False)  # the open survey while the sample runs
    has_content: bool = True  # the archive holds the content of pages
    _readable: SurveyFolder | None = field(default=None, repr=False)

    @property
    def count(self) -> int:
        """Number of known URLs."""
        return len(self.urls)

    def url(self, page: int) -> str:
        """Return the URL of a page."""
        return self.urls[page]

    def page(self, page: int) -> SampledPage:
        """Return a page as last fetched; one that never was has its URL only."""
        folder = self._open()
        visit = folder.journal.last_visit(page, "fetched")
        return SampledPage(self.urls[page]) if visit is None else archived_page(folder, self.urls[page], visit)

    def topic_link_share(self, page: int) -> float:
        """Return the share of a page's links that lead to pages on topic; NaN if it has none."""
        links, graph = self.graph.links.get(page, frozenset()), self.graph
        check_available(("topic_link_share",), url_only=graph.kind_from_url)
        if not links:
            return float("nan")
        return sum(graph.kind(link) == ON for link in links) / len(links)

    def close(self) -> None:
        """Close the survey; it is reopened when a page is read again."""
        self.writable = None
        if self._readable is not None:
            self._readable.close()
        self._readable = None

    def _open(self) -> SurveyFolder:
        if self.writable is not None:
            return self.writable
        if self._readable is None:
            self._readable = SurveyFolder.open(self.folder, write=False)
        return self._readable


def is_on_topic(topic: Topic, page: SampledPage) -> bool:
    """Return whether a page is on topic; name the topic and the page if a user's function fails."""
    try:
        return topic(page)
    except SurveyorError:
        raise
    except Exception as error:  # whatever a user's topic function raises
        problem = f"the topic {topic.text} failed on {page.url}: {type(error).__name__}: {error}"
        raise UsageError(problem, hint="fix the topic function; run the same command again to resume") from error


def archived_page(folder: SurveyFolder, url: str, visit: Visit) -> SampledPage:
    """Return the page of a visit; its content is parsed on first use."""
    links = np.unique(np.concatenate([visit.links, visit.out_of_scope, visit.nofollow]))
    return SampledPage(url, int((links != visit.page).sum()), partial(_content, folder, visit))


def archived_pages(folder: SurveyFolder) -> Iterator[SampledPage]:
    """Yield the pages of a survey that are fetched and neither gone nor redirected, by id."""
    for page, url, latest in folder.pages():
        visit = folder.journal.last_visit(page, "fetched") if latest and latest.kind == "blocked" else latest
        if visit is not None and visit.kind == "fetched":
            yield archived_page(folder, url, visit)


def parse_exchange(exchange: Exchange) -> PageContent:
    """Parse an HTTP response as sent; of a broken or oversized body, the part before the fault counts."""
    lines = [line.partition(b":") for line in exchange.response.split(b"\r\n")[1:] if line]
    headers = joined(tuple((name, value.strip()) for name, _, value in lines))
    body = _decode(exchange.body, headers.get("content-encoding", ""))
    page = guarded(exchange.url, read_page, body, exchange.url, headers=headers, addresses=Addresses(normalise))
    if isinstance(page, Failure):
        return PageContent(is_readable=False)
    return PageContent(page.title, page.language, page.text, tuple(link.url for link in page.links))


def _content(folder: SurveyFolder, visit: Visit) -> PageContent:
    if visit.exchange is not None and not visit.exchange.not_modified:  # fetched in this process
        return parse_exchange(visit.exchange)
    if visit.warc is None:
        return PageContent(visit.title, visit.language, is_readable=False)
    return parse_exchange(folder.archive.read(visit.warc))


def _decode(body: bytes, encoding: str) -> bytes:
    """Undo content encodings chunk by chunk, so that the part before a fault is kept."""
    chunks: list[bytes] = []
    remaining = MAX_DECODED
    try:
        decoder = decoder_of(encoding)
        if decoder is None:
            return body
        for start in range(0, len(body), CHUNK):
            chunks.append(decoder.feed(body[start : start + CHUNK], remaining))
            remaining -= len(chunks[-1])
            if remaining < 0:
                break
    except Unreadable:
        pass
    return b"".join(chunks)
