"""The columns of the table `pages`: from URLs and visits, continued from an earlier build, and from the survey."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.serve.view.schema import CODED, COMPUTED, KEPT
from surveyor.survey.tables import positions
from surveyor.web.urls import domain, host, origin

if TYPE_CHECKING:
    from surveyor.survey.survey import Survey

Arrays = dict[str, np.ndarray[Any, Any]]
DEEPEST = 12  # folders of a URL that are distinguished
MOST_FOLDERS = 500_000  # then pages in new folders count in the nearest one that is known
EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,8})$")
MISSING = {"host": 0, "folder": 0, "type": 0, "reason": 0, "language": 0, "visits": 0, "transferred": 0}
LONGEST_TITLE = 1_000  # characters that the tables keep; `visits` has all
LONGEST_REASON, LONGEST_LANGUAGE = 1_000, 100
BLOCK = 1 << 15


class Interned(dict[str, int]):
    """Texts and their codes, in order of first appearance."""

    def code(self, text: str) -> int:
        """Return the code of a text; a new one gets the next code."""
        return self.setdefault(text, len(self))


class Folders(Interned):
    """Prefixes of URLs, each after its parent."""

    def __init__(self, known: Mapping[str, int] | None = None, parents: list[int] | None = None) -> None:
        super().__init__(known or {})
        self.parents = parents or []

    def of(self, url: str) -> int:
        """Return the code of the folder of a URL."""
        path = url.partition("?")[0]
        prefix = path[: path.rindex("/") + 1]
        found = self.get(prefix)
        return self._add(prefix, len(origin(url)) + 1) if found is None else found

    def _add(self, prefix: str, root: int) -> int:
        """Add a prefix and those above it; `root` is the length of the shortest."""
        ends = [at + 1 for at in range(root - 1, len(prefix)) if prefix[at] == "/"][: DEEPEST + 1]
        parent = -1
        for end in ends:
            code = self.get(prefix[:end])
            if code is None:
                if parent >= 0 and len(self) >= MOST_FOLDERS:
                    break
                code = self.code(prefix[:end])
                self.parents.append(parent)
            parent = code
        return parent


class Facts:
    """What URLs and visits say of each page, and the texts of codes."""

    def __init__(self) -> None:
        self.arrays: Arrays = {name: np.empty(0, kind) for name, kind in KEPT.items()}
        self.hosts, self.folders = Interned(), Folders()
        self.words: dict[str, Interned] = {kind: Interned({"": 0}) for kind in CODED}
        self.titles: dict[int, str] = {}  # of the pages that were visited since the earlier build
        self.first_new = 0  # page
        self.visited: IdArray = np.empty(0, np.int32)

    def add_urls(self, urls: list[str]) -> None:
        """Add the pages that are new."""
        first = self.first_new = self.arrays["host"].size
        more: Arrays = {}
        for name, kind in KEPT.items():
            empty = np.full(len(urls) - first, MISSING.get(name, -1), kind)
            more[name] = np.full(empty.size, np.nan) if kind is np.float64 else empty
        types = self.words["type"]
        new = urls[first:]
        more["host"][:] = [self.hosts.code(host(url)) for url in new]
        more["folder"][:] = [self.folders.of(url) for url in new]
        more["type"][:] = [types.code(extension(url)) for url in new]
        self.arrays = {name: np.concatenate([self.arrays[name], more[name]]) for name in KEPT}

    def add_visits(self, survey: Survey, since: int) -> None:
        """Add the visits after a position, up to that of the survey."""
        journal, arrays = survey.journal, self.arrays
        visits = islice(journal.visits(since, links=False), journal.position - since)
        reasons, languages = self.words["reason"], self.words["language"]
        seen: list[IdArray] = []
        while some := list(islice(visits, BLOCK)):
            pages = np.array([visit.page for visit in some], np.int32)
            sizes = np.array([visit.size for visit in some], np.int64)
            columns = {  # the last visit of each page counts: later entries replace earlier ones
                "reason": [reasons.code(visit.reason[:LONGEST_REASON]) for visit in some],
                "language": [languages.code(visit.language[:LONGEST_LANGUAGE]) for visit in some],
                "http_status": [visit.status or -1 for visit in some],
                "bytes": sizes,
                "seconds": [visit.seconds for visit in some],
                "fetched_at": [visit.fetched_at or np.nan for visit in some],
                "redirected_to": [visit.target for visit in some],
            }
            last = pages.size - 1 - np.unique(pages[::-1], return_index=True)[1]
            for name, values in columns.items():
                arrays[name][pages[last]] = np.asarray(values)[last]
            np.add.at(arrays["visits"], pages, 1)
            np.add.at(arrays["transferred"], pages, sizes)
            self.titles.update((visit.page, visit.title[:LONGEST_TITLE]) for visit in some)
            seen.append(pages)
        self.visited = np.unique(np.concatenate([self.visited, *seen]))

    def add_scope(self, survey: Survey, status: np.ndarray[Any, Any], urls: list[str]) -> None:
        """Set the reason of pages out of scope that were not visited, and remove it from those now in scope."""
        reason, unvisited = self.arrays["reason"], self.arrays["visits"] == 0
        reason[unvisited & (status > 0)] = 0
        code, tables = self.words["reason"].code, survey.tables
        for page in np.flatnonzero(unvisited & (status == 0) & (reason == 0)).tolist():
            reason[page] = code(tables.scope_reason(urls[page]))


def extension(url: str) -> str:
    """Return the file extension of a URL in lower case, or an empty string.

    >>> extension("https://a.example/x/report.PDF?y=1.z"), extension("https://a.example/")
    ('pdf', '')
    """
    name = url.partition("?")[0].rpartition("/")[2]
    found = EXTENSION.search(name)
    return found[1].lower() if found and not found[1].isdigit() else ""


def domains_of(hosts: Interned) -> tuple[Interned, IdArray]:
    """Return the domains of hosts, and the code of the domain of each host."""
    domains = Interned()
    return domains, np.array([domains.code(domain(name)) for name in hosts], np.int32)


def computed(survey: Survey, pages: int) -> Arrays:
    """Return the columns that depend on the whole survey: statuses, links, ranks, accounts and queue."""
    kinds = {name: kind for name, kind in COMPUTED.items() if name != "status"}
    found: Arrays = {
        name: np.full(pages, np.nan if kind is np.float64 else -1).astype(kind) for name, kind in kinds.items()
    }
    found["status"] = survey.tables.statuses[:pages].astype(np.uint8)
    crawl = survey.state.crawl
    queue = crawl.frontier.queued()
    queued = queue.pages < pages
    found["priority"][queue.pages[queued]] = queue.priorities[queued]
    found["priority"][~np.isfinite(found["priority"])] = np.nan
    if not survey.keeps_graph:
        if (importance := survey.own_importance) is not None:
            _ranks(found, importance.pages, importance.shares)
        return found
    ranked, ranking = survey.as_graph(), survey.ranking
    _ranks(found, ranked.pages, ranking.scores)
    inside = ranked.pages < pages
    nodes = ranked.pages[inside]
    found["score"][nodes] = np.round(ranking.log_scores(), 3)[inside]
    found["in_links"][nodes] = ranked.graph.in_links.degrees()[inside]
    found["out_links"][nodes] = ranked.graph.out_degrees[inside]
    depths = survey.tables.depths()[:pages]
    found["depth"][: depths.size] = depths
    held = np.isin(found["status"], (1, 3))  # queued and blocked pages
    residual = crawl.ledger.residual[:pages]
    found["mass"][: residual.size][held[: residual.size]] = np.maximum(residual[held[: residual.size]], 0.0)
    return found


def _ranks(found: Arrays, pages: IdArray, shares: FloatArray) -> None:
    inside = pages < found["share"].size
    found["share"][pages[inside]] = shares[inside]
    found["position"][pages[inside]] = positions(shares)[inside]


def values_of(values: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Return the values of an array as SQLite stores them, None where they are missing."""
    plain = values.tolist()
    if values.dtype.kind == "f":
        return (None if value != value else value for value in plain)
    return (None if value < 0 else value for value in plain)
