"""Who links to a page: what a walk cannot see for itself, as sources of back-links tell it.

A source is any object with a method `in_links(url, limit)` that gives the URLs of pages that link to one, at most so
many of them, best first if it knows which are. It may be a table, a graph, another survey, or the client of a service.
`asked` asks one, and takes nothing on trust: what is no URL is left out, and a source that fails is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from surveyor.errors import SurveyorError, UsageError
from surveyor.web.urls import host, normalise

if TYPE_CHECKING:
    from surveyor.graph.csr import Graph

LIMIT = 100  # in-links that a source is asked for, as many as the paper took
LOOKED_AT = 10  # times as many answers are looked at, in case some are no URLs


@runtime_checkable
class InLinkSource(Protocol):
    """What tells who links to a page."""

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return URLs of pages that link to a page, at most so many."""


class NoInLinks:
    """Tells nothing: walks know the in-links that they came by, and no others."""

    def in_links(self, url: str, limit: int) -> Iterable[str]:  # noqa: ARG002
        """Return nothing."""
        return ()


class InLinkFile:
    """A table of links: source and target in each line, as a search console or a back-link service exports it."""

    def __init__(self, path: Path | str) -> None:
        from surveyor.graph.back_links import from_file

        self.name = f"file {Path(path).name}"
        self._into: dict[str, dict[str, None]] = {}
        for source, linking in from_file(path).items():
            for target in linking.targets:
                self._into.setdefault(normalise(target) or target, {})[source] = None
        if not self._into:
            raise UsageError(f"{path} names no links", hint="give a file with source and target in each line")

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return the pages that the table names."""
        return list(islice(self._into.get(url, ()), limit))


class InLinkGraph:
    """A graph whose pages have URLs as names."""

    def __init__(self, graph: Graph, name: str = "graph") -> None:
        if graph.names is None:
            raise UsageError("the graph of back-links has no names", hint="give one with URLs")
        self._graph, self._names, self.name = graph, graph.names, name

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return the pages of the graph that link to it."""
        page, into = self._names.find(url), self._graph.in_links
        if page is None:
            return ()
        row = into.indices[into.indptr[page] : into.indptr[page + 1]]
        return [self._names[other] for other in row[:limit].tolist()]


class InLinkSurvey(InLinkGraph):
    """A survey: the pages that it has read."""

    def __init__(self, folder: Path | str) -> None:
        from surveyor.survey.survey import Survey

        with Survey(folder) as survey:
            super().__init__(survey.graph(), f"survey {Path(folder).name}")


@dataclass(frozen=True)
class Several:
    """Several sources, one after the other."""

    sources: Sequence[InLinkSource]

    @property
    def name(self) -> str:
        """The names of all."""
        return ", ".join(source_name(source) for source in self.sources)

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return what the first tells, then the next."""
        told: dict[str, None] = {}
        for source in self.sources:
            if len(told) >= limit:
                break
            told.update(dict.fromkeys(asked(source, url, limit - len(told))))
        return list(told)


def in_link_source(given: object) -> InLinkSource:
    """Make a source of what a user gives: one, a graph, the name of a survey, graph or table, or a list of these."""
    from surveyor.graph.csr import Graph

    if given is None:
        return NoInLinks()
    if isinstance(given, Graph):
        return InLinkGraph(given)
    if isinstance(given, str | Path):
        path = Path(given)
        if (path / "survey.toml").is_file():
            return InLinkSurvey(path)
        if (path / "graph.json").is_file():
            return InLinkGraph(Graph.open(path), f"graph {path.name}")
        return InLinkFile(path)
    if isinstance(given, list | tuple):
        return Several([in_link_source(one) for one in given])
    if isinstance(given, InLinkSource) and not isinstance(given, type):
        return given
    raise UsageError(
        f"{type(given).__name__} is no source of back-links",
        hint="give a survey, a graph, a table of source and target, or an object with a method in_links(url, limit)",
    )


def source_name(source: InLinkSource) -> str:
    """Return how a source is called in messages; nothing if nobody tells."""
    return "" if isinstance(source, NoInLinks) else str(getattr(source, "name", "")) or type(source).__name__


def asked(source: InLinkSource, url: str, limit: int = LIMIT) -> list[str]:
    """Ask a source who links to a page; return pages of the web other than it, each once, in the one spelling."""
    found: dict[str, None] = {}
    try:
        for told in islice(source.in_links(url, limit), LOOKED_AT * limit):
            spelt = normalise(told) if isinstance(told, str) else None
            if spelt is not None and spelt != url and host(spelt):
                found[spelt] = None
            if len(found) >= limit:
                break
    except SurveyorError:
        raise
    except Exception as error:  # whatever a source of the user's does
        problem = f"the source of back-links {source_name(source)} failed for {url}: {type(error).__name__}: {error}"
        raise UsageError(problem, hint="mend it, or leave it out; run the same command again to go on") from error
    return list(found)
