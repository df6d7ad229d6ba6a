"""Tables of a survey, for `surveyor sql` and `surveyor export`.

    pages     every known URL: status, distance from the seeds, number of links
    links     source and target, as each page was last read
    anchors   text, element, rel and position of each link
    ranks     share, score and position of the pages in scope
    hosts     pages, importance and bytes by host
    visits    every outcome, in the order of the journal
    robots    the latest robots.txt of each origin
    events    other events: retries, waits, changes of the settings

Rows are produced in batches: any table of a survey of a million pages fits in memory.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.crawler.replay import Derived, Ranked, require_graph, scope_of
from surveyor.rank.pagerank import Ranking
from surveyor.store import tabular
from surveyor.store.directory import SurveyFolder
from surveyor.store.tabular import VISIT, VISITS, Batch, Columns
from surveyor.web.urls import Urls, domain, host, origin

STATUSES = (
    "out of scope",
    "queued",
    "fetched",
    "blocked",
    "gone",
    "redirected",
)  # status by number, as in kernels/mass.py
NOFOLLOW = "only nofollow links lead here"
PAGES: Columns = {
    "id": "int32",
    "url": "string",
    "host": "string",
    "domain": "string",
    **VISIT,
    "depth": "int32",
    "in_links": "int64",
    "out_links": "int64",
}
RANKS: Columns = {"id": "int32", "share": "float64", "score": "float64", "position": "int64"}
TABLES: dict[str, Columns] = {
    "pages": PAGES,
    "links": {"source": "int32", "target": "int32", "kind": "string", "in_scope": "int32"},
    "anchors": {
        "source": "int32",
        "target": "int32",
        **dict.fromkeys(("text", "element", "rel", "position"), "string"),
    },
    "ranks": RANKS,
    "hosts": {
        "host": "string",
        "domain": "string",
        "pages": "int64",
        "fetched": "int64",
        "queued": "int64",
        "blocked": "int64",
        "gone": "int64",
        "redirected": "int64",
        "out_of_scope": "int64",
        "share": "float64",
        "bytes": "int64",
    },
    "visits": VISITS,
    "robots": {"origin": "string", "status": "int32", "fetched_at": "timestamp", "body": "string"},
    "events": {"event": "int64", "visit": "int64", "happened_at": "timestamp", "kind": "string", "detail": "string"},
}


class Tables:
    """The tables of one survey, for its journal at the time of creation."""

    def __init__(
        self, folder: SurveyFolder, state: Derived, ranked: Ranked | None, ranking: Callable[[], Ranking]
    ) -> None:
        """`ranked` is None in a survey without a link graph, which has no links and ranks."""
        self._journal, self._state, self._graph, self._ranking = folder.journal, state, ranked, ranking
        self._folder = folder
        self._scope = scope_of(folder.manifest)
        self.size = len(state.urls)

    def batches(self, name: str) -> Iterator[Batch]:
        """Yield the columns of a table in batches of rows."""
        made: Iterator[Batch] = getattr(self, f"_{name}")()
        return made

    @property
    def _ranked(self) -> Ranked:
        if self._graph is None:
            require_graph(self._folder)
        assert self._graph is not None  # noqa: S101
        return self._graph

    @property
    def urls(self) -> Urls:
        """The URLs of all pages."""
        return self._state.urls

    @cached_property
    def statuses(self) -> IntArray:
        """Status of each page, as an index into `STATUSES`."""
        from surveyor.kernels.mass import STATUS

        known = self._state.crawl.ledger.state[: self.size] & STATUS
        return np.concatenate([known, np.zeros(self.size - known.size)]).astype(np.int64)  # others: not in the ledger

    def hashes(self) -> dict[int, bytes]:
        """Return the hash of each page as it was last read."""
        visits = islice(self._journal.visits(), self._journal.position)
        return {visit.page: visit.hash for visit in visits if visit.kind == "fetched"}

    def titles(self) -> dict[int, str]:
        """Return the title of each page as it was last read."""
        visits = islice(self._journal.visits(), self._journal.position)
        return {visit.page: visit.title for visit in visits if visit.kind == "fetched"}

    def out_of_scope(self, url: str) -> str | None:
        """Return why a URL is out of scope at any depth; None if it may be in scope."""
        return self._scope.why_not(url)

    def scope_reason(self, url: str) -> str:
        """Return why a known URL is out of scope."""
        deep = self._scope.depth
        return self._scope.why_not(url) or (NOFOLLOW if deep is None else f"more than {deep} links from the seeds")

    def _pages(self) -> Iterator[Batch]:
        return tabular.batched(PAGES, self._page_rows())

    def _page_rows(self) -> Iterator[tuple[Any, ...]]:
        depth = into = out = np.full(self.size, -1, np.int64)
        if self._graph is not None:
            graph = self._graph.graph
            depth, into, out = map(self._by_page, (self._depths(), graph.in_links.degrees(), graph.out_degrees))
        nothing = [None] * len(VISIT)
        for page, url, visit in self._journal.pages():
            if page >= self.size:  # found since by another process
                return
            _, reason, *more = tabular.visit_values(visit) if visit else nothing
            kind = STATUSES[self.statuses[page]]
            reason = self.scope_reason(url) if kind == "out of scope" and not visit else reason
            name = host(url)
            numbers = (None if column[page] < 0 else int(column[page]) for column in (depth, into, out))
            yield (page, url, name, domain(name), kind, reason, *more, *numbers)

    def _by_page(self, values: IntArray) -> IntArray:
        """Map values by graph node to page ids of the journal, -1 for pages not in the graph."""
        every = np.full(self.size, -1, np.int64)
        every[self._ranked.pages] = values
        return every

    def depths(self) -> IntArray:
        """Return the number of links from the nearest seed of each page of the journal, -1 where it is not known."""
        return self._by_page(self._depths())

    def _depths(self) -> IntArray:
        """Return the distance in links of each page of the graph from the nearest seed; -1 if unreachable."""
        graph = self._ranked.graph
        depth = np.full(graph.pages, -1, np.int64)
        here: IntArray = np.flatnonzero(self._ranked.teleport)  # the seeds
        steps = 0
        while here.size:
            depth[here] = steps
            steps += 1
            rows = [graph.indices[graph.indptr[page] : graph.indptr[page + 1]] for page in here.tolist()]
            near = np.unique(np.concatenate(rows))
            here = near[depth[near] < 0].astype(np.int64)
        return depth

    def _links(self) -> Iterator[Batch]:
        require_graph(self._folder)
        rescoped = any(event.kind == "scope_changed" for event in self._journal.events())
        judged = {"judged": self._state.reader.judged} if rescoped else {}
        for batch in tabular.link_batches(self._journal, **judged):
            batch["in_scope"] = (self.statuses[batch["target"]] > 0).astype(np.int32)
            yield batch

    def _anchors(self) -> Iterator[Batch]:
        require_graph(self._folder)
        return tabular.batched(TABLES["anchors"], tabular.anchor_rows(self._journal))

    def _ranks(self) -> Iterator[Batch]:
        ranking = self._ranking()
        yield {
            "id": self._ranked.pages,
            "share": ranking.scores,
            "score": np.round(ranking.log_scores(), 3),
            "position": positions(ranking.scores),
        }

    def _hosts(self) -> Iterator[Batch]:
        share = np.zeros(self.size)
        if self._graph is not None:
            share[self._graph.pages] = self._ranking().scores
        count: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(STATUSES))
        mass: defaultdict[str, float] = defaultdict(float)
        size: defaultdict[str, int] = defaultdict(int)
        names = [host(url) for url in self._state.urls.added(0)]
        for name, status, part in zip(names, self.statuses.tolist(), share.tolist(), strict=True):
            count[name][status] += 1
            mass[name] += part
        for visit in islice(self._journal.visits(), self._journal.position):
            size[names[visit.page]] += visit.size
        mass_of = mass.__getitem__ if self._graph is not None else lambda _: None
        columns_of = {"fetched": 2, "queued": 1, "blocked": 3, "gone": 4, "redirected": 5, "out of scope": 0}
        rows = (
            (name, domain(name), sum(pages), *(pages[at] for at in columns_of.values()), mass_of(name), size[name])
            for name, pages in count.items()
        )
        yield from tabular.batched(TABLES["hosts"], rows)

    def _visits(self) -> Iterator[Batch]:
        return tabular.batched(VISITS, tabular.visit_rows(self._journal))

    def _robots(self) -> Iterator[Batch]:
        rows = (
            (file.origin, file.status or None, round(file.fetched_at * 1e6), file.body.decode("utf-8", "replace"))
            for file in map(self._journal.robots, dict.fromkeys(map(origin, self._state.urls.added(0))))
            if file is not None
        )
        return tabular.batched(TABLES["robots"], rows)

    def _events(self) -> Iterator[Batch]:
        rows = (
            (number, event.visit, round(event.at * 1e6), event.kind, json.dumps(dict(event.detail)))
            for number, event in enumerate(self._journal.events(), 1)
        )
        return tabular.batched(TABLES["events"], rows)


def positions(scores: FloatArray) -> IntArray:
    """Return the position of each score: the number of larger scores, plus one."""
    return 1 + scores.size - np.searchsorted(np.sort(scores), scores, side="right")
