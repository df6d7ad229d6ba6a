"""The pages of a sample by id: names of a graph, or pages of a survey with their content from its WARC files.

The content of a page is what it was when last fetched. A page that opted out of archiving, or a survey without an
archive, has title and language only, which are in the journal. Links are all that the page names, nofollow links
included, normalised as by the crawler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from surveyor.arrays import ByteArray, FloatArray, IntArray
from surveyor.crawler.topics.page_content import PageContent, SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import SurveyorError, UsageError
from surveyor.estimate.sampling.walk_methods import DEAD, ON, WalkGraph
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.fetch.bodies import decoded
from surveyor.graph.csr import Graph
from surveyor.store.directory import SurveyFolder
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import read_page
from surveyor.web.references import Addresses
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.outcome import Exchange, Visit
    from surveyor.web.urls import Urls

CLASSIFIED_LINKS = 10  # of a page of a survey, to estimate its topic link share


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
        return SampledPage(str(self.url(page)), out_degree=int(self._out_degrees[page]))

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
    classify: Callable[[int], bool | None] | None = None  # kind of any page of a stored survey; None if not fetched
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
        """Return the share of a page's links that lead to pages on topic; NaN if it has none.

        If the text of pages decides the topic, it is the share of some links to fetched pages, drawn at random.
        """
        links, graph = sorted(self.graph.links.get(page, frozenset())), self.graph
        if not links or self.needs_draws:
            return float("nan")
        if graph.kind_from_url or self.classify is None:
            return sum(graph.kind(link) == ON for link in links) / len(links)
        kinds: list[bool] = []
        for link in np.random.default_rng([page, len(links)]).permutation(links).tolist():
            if (on_topic := self.classify(link)) is not None:
                kinds.append(on_topic)
            if len(kinds) == CLASSIFIED_LINKS:
                break
        return sum(kinds) / len(kinds) if kinds else float("nan")

    @property
    def needs_draws(self) -> bool:
        """Whether the kinds of link targets are known only where a walk drew them."""
        return not self.graph.kind_from_url and self.classify is None

    def drawn_links(self, trace: WalkTrace) -> tuple[FloatArray, FloatArray]:
        """Return, by row, whether the neighbour drawn is on topic, and the number of out-links; NaN if it is no link.

        The first neighbour drawn at a page, if it is an out-link, is any of them with equal probability.
        """
        graph = self.graph
        on_topic, links = np.full(len(trace), np.nan), np.full(len(trace), np.nan)
        drawn = np.full(len(trace), -1) if trace.drawn is None else trace.drawn
        for row in np.flatnonzero(trace.on_topic & (drawn >= 0)).tolist():
            page, other = int(trace.page[row]), int(drawn[row])
            near = graph.links.get(page, frozenset())
            links[row] = len(near) or np.nan
            if other in near and graph.kinds.get(other, DEAD) != DEAD:
                on_topic[row] = float(graph.kinds[other] == ON)
        return on_topic, links

    def drawn_link_values(self, trace: WalkTrace) -> FloatArray:
        """Return row values whose weighted mean is the topic link share, without bias but with a larger variance."""
        on_topic, links = self.drawn_links(trace)
        return np.where(np.isnan(links), np.nan, np.nan_to_num(on_topic) * trace.degree / links)

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
    body, headers, _ = decoded(exchange)
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
