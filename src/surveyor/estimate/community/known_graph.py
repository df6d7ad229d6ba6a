"""FindGlobalPR over known links: expand local pages round by round within a graph or a replayed survey.

The rounds are those of `strategies/rounds.py`: in each, the best pages of the frontier are fetched. A page that is gone
counts as requested and as a page without links; the next page of the ranking replaces it.

Links into the local pages that are known from other sources (`graph/back_links.py`) are added as rows: the page they
come from counts as fetched. The rest of its links lead to an unknown page. If its out-degree is unknown too, the median
out-degree of the fetched pages is used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, IdArray, IntArray, read_only
from surveyor.crawler.strategies.rounds import PART, SPARE, is_stable
from surveyor.graph.back_links import BackLinks, LinkingPage
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.kernels.crawled_graph import CrawledGraph
from surveyor.kernels.mass import Rows
from surveyor.rank.expansion import TOLERANCE, Expansion, Select
from surveyor.survey.derived_survey import is_final
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.outcome import Visit
    from surveyor.survey.survey import Survey


@dataclass(frozen=True, slots=True)
class ExpansionPlan:
    """How a local domain is expanded."""

    extra: int  # pages to request in total
    select: Select = "complement"
    batch: int = 0  # pages per round; 0 for 4 % of the local pages
    damping: float = 0.85
    tolerance: float = TOLERANCE
    seed: int = 7
    stable: float = 0.0  # stop when three consecutive rounds change the ranks by less

    def batch_size(self, local: int) -> int:
        """Return the number of pages per round."""
        return self.batch or max(1, math.ceil(PART * local))


@dataclass(frozen=True, slots=True)
class Round:
    """The state at the start of a round."""

    fetched: int  # extra pages fetched so far
    requested: int  # extra pages requested so far
    change: float  # L1 distance from the local ranks one round earlier
    error: float  # proven error of the ranks of the fetched pages (of the solver, not of the estimate)
    seconds: float  # since the start


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """A local domain with the pages fetched around it."""

    known: CrawledGraph
    expansion: Expansion
    batch_of: IntArray  # by index: the round in which each page was fetched, 0 for the start
    extra: IdArray  # pages requested, in order
    rounds: tuple[Round, ...]


def rows_of(graph: Graph) -> Rows:
    """Return the links of a graph in the form that kernels take."""
    return Rows(read_only(graph.indptr[:-1]), read_only(graph.indptr[1:]), read_only(graph.indices))


Watch = Callable[[Expansion, CrawledGraph, Round], None]


def expand(
    graph: Graph,
    local: IdArray,
    plan: ExpansionPlan,
    *,
    start: IdArray | None = None,
    gone: BoolArray | None = None,
    blocked: BoolArray | None = None,
    watch: Watch = lambda _expansion, _known, _round: None,
) -> Expanded:
    """Fetch pages around local ones until the plan is complete, the ranks are stable, or the frontier is empty.

    `start` are pages fetched before (in addition to the local ones). Pages that are `gone` count as requested, pages
    that are `blocked` are never requested. `watch` is called at the start of each round.
    """
    started = time.perf_counter()
    rows = rows_of(graph)
    pages = np.unique(local if start is None else np.concatenate([local, start])).astype(np.int32)
    lost = np.zeros(graph.pages, np.bool_) if gone is None else gone
    waits = None if blocked is None else ~blocked
    expansion = Expansion(local, plan.select, damping=plan.damping, tolerance=plan.tolerance, seed=plan.seed)
    rounds: list[Round] = []
    order: list[IdArray] = [np.empty(0, np.int32)]
    requested = fetched = 0
    while True:
        known = expansion.update(rows, pages, graph.pages)
        seconds = time.perf_counter() - started
        rounds.append(Round(fetched, requested, expansion.change, expansion.error, seconds))
        watch(expansion, known, rounds[-1])
        if requested >= plan.extra or is_stable([one.change for one in rounds], plan.stable):
            break
        count = plan.batch_size(local.size)
        ranking = expansion.best(known, SPARE * count, waits)
        enough = np.searchsorted(np.cumsum(~lost[ranking]), count) + 1
        chosen = ranking[: min(enough, plan.extra - requested)]
        if not chosen.size:
            break
        requested, fetched = requested + chosen.size, fetched + int((~lost[chosen]).sum())
        order.append(chosen)
        pages = np.sort(np.concatenate([pages, chosen]), kind="stable")
    extra = np.concatenate(order)
    batch_of = np.zeros(pages.size, np.int64)
    batch_of[np.searchsorted(pages, extra)] = np.repeat(np.arange(len(order)), [part.size for part in order])
    return Expanded(known, expansion, batch_of, extra, tuple(rounds))


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedSurvey:
    """All links of a survey except nofollow links, and the status of its pages."""

    graph: Graph
    fetched: BoolArray
    gone: BoolArray
    redirects: IdArray  # the page that each URL finally redirects to


def replay_survey(survey: Survey) -> ReplayedSurvey:
    """Return the last known links of each page of a survey, in scope or not, with redirects resolved."""
    latest: dict[int, Visit] = {visit.page: visit for visit in survey.journal.visits() if is_final(visit)}
    urls = [url for _, url, _ in survey.pages()]
    kinds, final = [""] * len(urls), list(range(len(urls)))
    sources: list[IdArray] = []
    targets: list[IdArray] = []
    for page, visit in latest.items():
        kinds[page] = visit.kind
        if visit.kind == "redirected":
            final[page] = visit.target
        elif visit.kind == "fetched":
            goals = np.concatenate([visit.links, visit.out_of_scope])
            sources.append(np.full(goals.size, page, np.int32))
            targets.append(goals)
    redirects = _resolved(np.array(final, np.int64))
    nothing = np.empty(0, np.int32)
    goals = redirects[np.concatenate([nothing, *targets])]
    graph = Graph.from_arrays(np.concatenate([nothing, *sources]), goals, len(urls), Names.of(urls))
    fetched, gone = (np.array([kind == status for kind in kinds], np.bool_) for status in ("fetched", "gone"))
    return ReplayedSurvey(graph, fetched, gone, redirects.astype(np.int32))


def _resolved(targets: IntArray) -> IntArray:
    """Follow each redirect to its end; a page of a redirect loop maps to a page of the loop."""
    for _ in range(16):
        targets = targets[targets]
    return targets


class AddedLinks(NamedTuple):
    """Rows of links with those of pages known only by back-links."""

    rows: Rows
    ids: int  # number of page ids
    pages: IdArray  # ids of the pages that now count as fetched
    names: dict[int, str]  # names of pages that had no id


FindPage = Callable[[str], int | None]


def add_back_links(
    rows: Rows, ids: int, known: CrawledGraph, local: Container[int], back_links: BackLinks, find: FindPage
) -> AddedLinks:
    """Add the links of pages that link to local ones; `find` returns the id of a URL, redirects resolved.

    Fetched pages keep their links. Links to unknown pages lead to one additional page that can never be fetched.
    """
    typical = int(np.median(known.degrees + known.leaving)) if known.pages.size else 1
    unknown, ids = ids, ids + 1
    lookup = _Lookup(find)
    useful: dict[int | str, tuple[str, list[LinkingPage]]] = {}  # by id, or by normalised URL if it has none
    for name, linking in back_links.items():
        page = lookup(name)
        if not _is_fetched(known, page) and any(lookup(target) in local for target in linking.targets):
            useful.setdefault(lookup.key(name), (name, []))[1].append(linking)
    names: dict[int, str] = {}
    new_ids: dict[int | str, int] = {}
    for key, (name, _) in useful.items():
        if isinstance(key, str):
            lookup.found[name], new_ids[key], names[ids], ids = ids, ids, name, ids + 1
        else:
            new_ids[key] = key
    start = np.append(rows.start, np.zeros(ids - rows.start.size, np.int64))
    end = np.append(rows.end, np.zeros(ids - rows.end.size, np.int64))
    parts: list[IdArray] = [rows.targets]
    used = rows.targets.size
    for key, (_, entries) in useful.items():
        page = new_ids[key]
        targets = {lookup.key(target) for entry in entries for target in entry.targets}
        goals = sorted(
            {new_ids.get(goal, goal) for goal in targets if isinstance(goal, int) or goal in new_ids} - {page}
        )
        degree = max(len(goals), max(entry.degree for entry in entries) or max(typical, len(targets)))
        start[page], end[page], used = used, used + degree, used + degree
        parts += [np.array(goals, np.int32), np.full(degree - len(goals), unknown, np.int32)]
    grown = Rows(read_only(start), read_only(end), read_only(np.concatenate(parts)))
    return AddedLinks(grown, ids, np.sort(np.array(list(new_ids.values()), np.int32)), names)


class _Lookup:
    """Finds pages by URL, as given or normalised; remembers results."""

    def __init__(self, find: FindPage) -> None:
        self.found: dict[str, int | None] = {}
        self._find = find

    def __call__(self, name: str) -> int | None:
        if name not in self.found:
            page = self._find(name)
            url = normalise(name) if page is None else None
            self.found[name] = self._find(url) if url is not None else page
        return self.found[name]

    def key(self, name: str) -> int | str:
        """Return the id of a page, or its normalised URL if it has none."""
        page = self(name)
        return (normalise(name) or name) if page is None else page


def _is_fetched(known: CrawledGraph, page: int | None) -> bool:
    if page is None:
        return False
    index = int(np.searchsorted(known.pages, page))
    return index < known.pages.size and int(known.pages[index]) == page
