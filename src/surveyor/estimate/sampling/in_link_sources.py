"""Sources of in-links: pages that link to a page, which a walk cannot observe itself.

A source is any object with a method `in_links(url, limit)` that returns the URLs of at most `limit` pages that link to
a page, best first if it can rank them: a table, a graph, another survey, or the client of a service. `query` validates
the answers: entries that are not URLs are dropped, and a source that raises is named in the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from surveyor.errors import SurveyorError, UsageError
from surveyor.store.layout import is_survey
from surveyor.web.urls import host, normalise

if TYPE_CHECKING:
    from surveyor.graph.csr import Graph

DEFAULT_LIMIT = 100  # in-links requested per page, as in the paper
EXAMINED = 10  # answers examined per in-link requested, since some may not be URLs


@runtime_checkable
class InLinkSource(Protocol):
    """Reports the pages that link to a page."""

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return URLs of at most `limit` pages that link to a page."""


class NoInLinks:
    """Reports nothing: walks know only the in-links from pages that they fetched."""

    def in_links(self, url: str, limit: int) -> Iterable[str]:  # noqa: ARG002
        """Return nothing."""
        return ()


class InLinkFile:
    """A table of links with source and target in each line, as exported by search consoles and back-link services."""

    def __init__(self, path: Path | str) -> None:
        from surveyor.graph.back_links import read_back_link_table

        self.name = f"file {Path(path).name}"
        self._sources: dict[str, dict[str, None]] = {}
        for source, linking in read_back_link_table(path).items():
            for target in linking.targets:
                self._sources.setdefault(normalise(target) or target, {})[source] = None
        if not self._sources:
            raise UsageError(f"{path} has no links", hint="the file needs a source and a target in each line")

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return the sources that the table lists for a page."""
        return list(islice(self._sources.get(url, ()), limit))


class InLinkGraph:
    """A graph whose page names are URLs."""

    def __init__(self, graph: Graph, name: str = "graph") -> None:
        if graph.names is None:
            raise UsageError("the graph of in-links has no page names", hint="use a graph whose page names are URLs")
        self._graph, self._names, self.name = graph, graph.names, name

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return the pages of the graph that link to a page."""
        page, transposed = self._names.find(url), self._graph.in_links
        if page is None:
            return ()
        row = transposed.indices[transposed.indptr[page] : transposed.indptr[page + 1]]
        return [self._names[other] for other in row[:limit].tolist()]


class InLinkSurvey(InLinkGraph):
    """The fetched pages of a survey."""

    def __init__(self, folder: Path | str) -> None:
        from surveyor.survey.survey import Survey

        with Survey(folder) as survey:
            super().__init__(survey.graph(), f"survey {Path(folder).name}")


@dataclass(frozen=True)
class CombinedInLinks:
    """Several sources, queried in order until the limit is reached."""

    sources: Sequence[InLinkSource]

    @property
    def name(self) -> str:
        """The names of all sources."""
        return ", ".join(source_name(source) for source in self.sources)

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return the answers of the first source, then of the next."""
        urls: dict[str, None] = {}
        for source in self.sources:
            if len(urls) >= limit:
                break
            urls.update(dict.fromkeys(query(source, url, limit - len(urls))))
        return list(urls)


def in_link_source(value: object) -> InLinkSource:
    """Return the source for a source, a graph, the path of a survey, graph or table, or a list of these."""
    from surveyor.graph.csr import Graph

    if value is None:
        return NoInLinks()
    if isinstance(value, Graph):
        return InLinkGraph(value)
    if isinstance(value, str | Path):
        path = Path(value)
        if is_survey(path):
            return InLinkSurvey(path)
        if (path / "graph.json").is_file():
            return InLinkGraph(Graph.open(path), f"graph {path.name}")
        return InLinkFile(path)
    if isinstance(value, list | tuple):
        return CombinedInLinks([in_link_source(one) for one in value])
    if isinstance(value, InLinkSource) and not isinstance(value, type):
        return value
    raise UsageError(
        f"in_links must be a source of in-links, got {type(value).__name__}",
        hint="pass a survey, a graph, a table of source and target, or an object with a method in_links(url, limit)",
    )


def source_name(source: InLinkSource) -> str:
    """Return the name of a source for messages; empty for `NoInLinks`."""
    return "" if isinstance(source, NoInLinks) else str(getattr(source, "name", "")) or type(source).__name__


def query(source: InLinkSource, url: str, limit: int = DEFAULT_LIMIT) -> list[str]:
    """Return the normalised, distinct URLs of pages that link to a page, without the page itself."""
    urls: dict[str, None] = {}
    try:
        for answer in islice(source.in_links(url, limit), EXAMINED * limit):
            normalised = normalise(answer) if isinstance(answer, str) else None
            if normalised is not None and normalised != url and host(normalised):
                urls[normalised] = None
            if len(urls) >= limit:
                break
    except SurveyorError:
        raise
    except Exception as error:  # whatever a user's source raises
        problem = f"the in-link source {source_name(source)} failed for {url}: {type(error).__name__}: {error}"
        raise UsageError(problem, hint="fix the source, or leave it out; run the same command to resume") from error
    return list(urls)
