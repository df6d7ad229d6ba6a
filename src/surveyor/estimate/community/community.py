"""`sv.community`: estimate the global rank of local pages from few pages around them.

The web is a known graph, a replayed survey, or the live web around a survey. In all three cases the same rounds select
the pages (`strategies/rounds.py`), and the same estimators rank them (`estimators.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IdArray, marked
from surveyor.config import from_arguments
from surveyor.crawler.strategies.rounds import is_stable
from surveyor.errors import UsageError
from surveyor.estimate.community.community_options import (
    DAMPING,
    EXTRA,
    RNG,
    SELECT,
    CommunityOptions,
    check_size,
    local_pages,
)
from surveyor.estimate.community.community_rank import CommunityRank, Ending
from surveyor.estimate.community.community_survey import CrawledCommunity, crawl_community, open_community_survey
from surveyor.estimate.community.estimators import Method, all_estimates, local_rank
from surveyor.estimate.community.impact import Impacts, largest_impacts
from surveyor.estimate.community.known_graph import (
    AddedLinks,
    Expanded,
    ExpansionPlan,
    ReplayedSurvey,
    Round,
    add_back_links,
    expand,
    replay_survey,
    rows_of,
)
from surveyor.fetch.event_loops import in_thread, run_sync
from surveyor.graph.adapters import GraphLike, page_ids, simple_graph
from surveyor.graph.back_links import BackLinks, back_links_in_graph, read_back_link_table
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.kernels.crawled_graph import CrawledGraph, build_crawled_graph
from surveyor.kernels.mass import Rows
from surveyor.rank.pagerank import SolverOptions, pagerank
from surveyor.stopping import ProgressCallback, silent
from surveyor.store.directory import SurveyFolder
from surveyor.store.layout import is_survey
from surveyor.survey.cell_display import CellDisplay
from surveyor.survey.survey import Survey

if TYPE_CHECKING:
    from surveyor.rank.expansion import Expansion

TOLERANCE = 1e-9  # of the estimates
TRUTH_TOLERANCE = 1e-10
NO_BATCH = (
    "no page was fetched in rounds, so nothing shows how outside pages link: the estimate may be worse than the local "
    "rank; request pages (extra) to improve it"
)
FEW_LOCAL = 10
Local = str | Sequence[str] | Sequence[int] | AnyIntArray | BoolArray
Source = GraphLike | Survey


def community(
    source: Source,
    local: Local,
    *,
    extra: int | str = EXTRA,
    select: str = SELECT,
    rng: int | None = None,
    progress: ProgressCallback = silent,
    **options: Any,
) -> CommunityRank:
    """Estimate the global rank of local pages by fetching the pages around them that affect their ranks most.

    Parameters
    ----------
    source : a graph, or any of `as_graph` (weights, self-links and duplicate links are ignored); or a survey, around
        which pages are fetched into a new survey (`out`). Repeating the call resumes that survey. With `replay=True`,
        only pages that the survey has fetched are used.
    local : a rule such as "host:docs.example.org", "prefix:https://example.org/docs/" or "file:pages.txt", or of a
        survey "words:solar" or "model:solar.json"; or a list of names or ids, or one boolean per page.
    extra : number of pages to request: an integer, or a multiple of the number of local pages ("2n", "0.5n").
    select : score that selects them: explore, complement, flow, cho, outlinks, random.
    rng : random seed; by default 7 for a graph, and that of the survey otherwise.
    options : further options of `CommunityOptions`, and for pages that are fetched the settings of a crawl (contact,
        delay, allow, …; docs/reference/settings.md).

        rounds : number of selection rounds; by default each round requests 4 % of the local pages.
        estimator : auto, crawled (of the paper) or frontier.
        known : pages known at the start besides the local ones: ids of a graph; of a survey "all" fetched pages
            (default if pages are fetched) or the "local" ones (default of a replay).
        back_links : known links to the local pages: a table of links, a graph or a survey.
        stable : stop when three consecutive rounds change the local ranks by less (L1).
        truth : rank the whole graph and compare.
        damping : probability of following a link; by default 0.85, or that of the survey.
        quiet : show no live progress of fetching in a notebook.

    >>> from surveyor.graph.synthetic.generate import synthetic_web
    >>> web = synthetic_web("small").graph
    >>> result = community(web, "domain:site41.example", truth=True)
    >>> result.compare().l1 < result.compare("local").l1
    True
    """
    quiet = bool(options.pop("quiet", False))
    chosen, settings = CommunityOptions.split({"extra": extra, "select": select, "rng": rng, **options})
    chosen.check()
    opened = _opened(source)
    chosen = replace(chosen, back_links=read_back_links(chosen.back_links))
    if isinstance(opened, Graph):
        return _of_graph(opened, local, chosen, settings, progress)
    if chosen.replay:
        return _of_replay(opened, local, chosen, settings, progress)
    return _of_live_web(
        opened, local, chosen, settings, CellDisplay(shown=not quiet, goal=f"{chosen.extra or EXTRA} extra pages")
    )


async def community_async(source: Source, local: Local, **options: Any) -> CommunityRank:
    """Estimate as `community` does, in a thread, so that the event loop stays free; cancelling it saves."""
    return await in_thread(partial(community, source, local, **options))


def _of_graph(
    graph: Graph, local: Local, options: CommunityOptions, settings: dict[str, Any], progress: ProgressCallback
) -> CommunityRank:
    """Expand the local pages within a known graph."""
    if settings or options.out is not None or options.replay:
        name = next(iter(settings), "out" if options.out is not None else "replay")
        raise UsageError(f"{name} applies to surveys only, and the source is a graph", hint=f"omit {name}")
    if isinstance(options.known, str):
        raise UsageError(f"known={options.known!r} applies to surveys only", hint="give ids of pages of the graph")
    chosen = local_pages(page_ids(graph, local), graph.names, graph.pages)
    check_size(chosen.indices.size, chosen.rule)
    notes = _missing(chosen.missing, "in the graph")
    return _expanded(_KnownWeb(graph), chosen.indices, options, notes, progress)


def _of_replay(
    survey: Survey, local: Local, options: CommunityOptions, settings: dict[str, Any], progress: ProgressCallback
) -> CommunityRank:
    """Expand the local pages within the pages that a survey has fetched."""
    if settings or options.out is not None:
        name = next(iter(settings), "out")
        raise UsageError(f"{name} does not apply to a replay, which fetches no page", hint=f"omit {name}, or replay")
    web = replay_survey(survey)
    some_left = not web.fetched.all()
    with SurveyFolder.open(survey.folder, write=False) as archive:
        chosen = local_pages(
            local, web.graph.names, web.graph.pages, what="this survey", allow_all=some_left, archive=archive
        )
    pages = chosen.indices[web.fetched[chosen.indices]]
    if not pages.size:
        raise UsageError("none of the local pages was fetched in this survey", hint="see `surveyor top SURVEY`")
    check_size(pages.size, chosen.rule)
    notes = _missing(chosen.missing + chosen.indices.size - pages.size, "fetched in the survey")
    known = options.known
    if isinstance(known, str):  # "all": no page is left to request
        known = np.flatnonzero(web.fetched).astype(np.int32) if known == "all" else None
        options = replace(options, extra=options.extra if known is None else 0)
    damping = survey.damping if options.damping is None else options.damping
    return _expanded(_KnownWeb.replayed(web), pages, replace(options, known=known, damping=damping), notes, progress)


def _of_live_web(
    survey: Survey, local: Local, options: CommunityOptions, settings: dict[str, Any], display: CellDisplay
) -> CommunityRank:
    """Fetch pages around the local pages of a survey."""
    if options.truth:
        raise UsageError("the true rank is unknown on the live web", hint="pass a graph, or omit truth")
    if options.known is not None and not isinstance(options.known, str):
        raise UsageError("known must be all or local for a survey, got a list", hint="omit known, or pass a graph")
    given = {name: value for name in ("damping", "rng") if (value := getattr(options, name)) is not None}
    given |= settings
    origins = dict.fromkeys(given, "argument")
    with open_community_survey(
        survey.folder, local, options, settings=from_arguments(given), origins=origins
    ) as opened:
        crawled = run_sync(crawl_community(opened, watch=lambda now, _: display.crawl(now)))
        display.end(crawled.ending)
        return rank_crawled(crawled, options, opened.folder.manifest.rng, notes=opened.warnings)


def rank_crawled(
    crawled: CrawledCommunity, options: CommunityOptions, rng: int, *, notes: tuple[str, ...] = ()
) -> CommunityRank:
    """Estimate the global rank of the local pages of a crawled community."""
    state = crawled.state
    ledger, urls = state.crawl.ledger, state.urls
    notes = (*notes, crawled.remark) if crawled.remark else notes
    ids = max(ledger.capacity, len(urls))  # URLs out of scope have no ledger entry
    names = Names.of(urls[page] for page in range(len(urls)))
    links = WebLinks(state.crawl.graph.rows, ids, names, ledger.stands_for(), resolve_links=True)
    run = CommunityRun(
        crawled.expanded(), crawled.local, crawled.record.select, ledger.damping, rng, crawled.ending, notes
    )
    return conclude(run, links, options.estimator, read_back_links(options.back_links))


@dataclass(frozen=True, slots=True, eq=False)
class _KnownWeb:
    """A graph whose pages can be fetched, except those that are blocked or gone."""

    graph: Graph
    blocked: BoolArray | None = None
    gone: BoolArray | None = None
    redirects: IdArray | None = None

    @classmethod
    def replayed(cls, web: ReplayedSurvey) -> _KnownWeb:
        """Return the web of a replayed survey."""
        return cls(web.graph, ~(web.fetched | web.gone), web.gone, web.redirects)


def _expanded(
    web: _KnownWeb, local: IdArray, options: CommunityOptions, notes: tuple[str, ...], progress: ProgressCallback
) -> CommunityRank:
    """Expand local pages within a known web and estimate their global rank."""
    graph, back_links = web.graph, read_back_links(options.back_links)
    if back_links is not None:
        _require_names(graph.names)
    extra = options.extra_pages(local.size)
    batch = max(1, -(-extra // options.rounds)) if options.rounds else 0
    damping = DAMPING if options.damping is None else options.damping
    rng = RNG if options.rng is None else options.rng
    plan = ExpansionPlan(extra, options.selector, batch, damping, seed=rng, stable=options.stable)
    truth, ranks = None, None
    if options.truth:
        ranks = pagerank(graph, damping, TRUTH_TOLERANCE, options=SolverOptions(progress=progress)).scores
        truth = ranks[local] / ranks[local].sum()
    errors: list[float] = []

    def watch(expansion: Expansion, _: CrawledGraph, now: Round) -> None:
        progress("fetching around", now.requested, extra, "pages")
        if truth is not None:
            errors.append(float(np.abs(expansion.local_ranks() - truth).sum()))

    start = None
    if options.known is not None:
        start = np.flatnonzero(marked(np.asarray(options.known), graph.pages)).astype(np.int32)
    expanded = expand(graph, local, plan, start=start, gone=web.gone, blocked=web.blocked, watch=watch)
    ending = _ending(expanded, extra, options.stable)
    reached = (expanded.known.pages, expanded.batch_of)
    impacts = None if ranks is None else largest_impacts(graph, ranks, local, *reached)
    run = CommunityRun(expanded, local, plan.select, damping, rng, ending, notes, truth, tuple(errors), impacts)
    links = WebLinks(rows_of(graph), graph.pages, graph.names, web.redirects)
    return conclude(run, links, options.estimator, back_links)


def _ending(expanded: Expanded, extra: int, stable: float) -> Ending:
    if expanded.extra.size >= extra:
        return "complete"
    if is_stable([one.change for one in expanded.rounds], stable):
        return "stable"
    return "exhausted" if expanded.extra.size else "no_frontier"


def _missing(pages: int, where: str) -> tuple[str, ...]:
    return (f"{pages:,} of the local pages {'is' if pages == 1 else 'are'} not {where}",) * bool(pages)


@dataclass(frozen=True, slots=True, eq=False)
class CommunityRun:
    """The pages fetched around local pages, and the parameters of the run."""

    expanded: Expanded
    local: IdArray
    select: str
    damping: float
    rng: int
    ending: Ending
    notes: tuple[str, ...] = ()
    truth: FloatArray | None = None
    errors: tuple[float, ...] = ()
    impacts: Impacts | None = None


@dataclass(frozen=True, slots=True, eq=False)
class WebLinks:
    """The links of all known pages, by id."""

    rows: Rows
    ids: int  # number of page ids
    names: Names | None
    redirects: IdArray | None = None  # the page that each URL redirects to
    resolve_links: bool = False  # whether links may lead to URLs that redirect


def conclude(
    run: CommunityRun, links: WebLinks, estimator: Method, back_links: Graph | BackLinks | None = None
) -> CommunityRank:
    """Compute all estimates from the fetched pages."""
    expanded, notes, rows, ids = run.expanded, run.notes, links.rows, links.ids
    other_names: dict[int, str] = {}
    redirects = links.redirects if links.resolve_links else None
    if back_links is not None:
        expanded, added = _with_back_links(run, links, back_links)
        rows, ids, other_names = added.rows, added.ids, added.names
        notes = (*notes, _back_link_note(added.pages.size))
        if redirects is not None:
            redirects = np.append(redirects, np.arange(redirects.size, ids, dtype=np.int32))

    def known_links(pages: IdArray) -> CrawledGraph:
        return build_crawled_graph(rows, pages, redirects, scratch)

    scratch = np.full(ids, -1, np.int32)
    if back_links is not None:
        expanded = replace(expanded, known=known_links(expanded.known.pages))
    estimates = all_estimates(expanded.known, run.local, expanded.batch_of, run.damping, TOLERANCE)
    return CommunityRank(
        pages=run.local,
        local_scores=local_rank(run.local, known_links, run.damping, TOLERANCE),
        estimate=estimates[estimator],
        estimates=estimates,
        rounds=expanded.rounds,
        extra=expanded.extra,
        ending=run.ending,
        select=run.select,
        damping=run.damping,
        rng=run.rng,
        known=expanded.known,
        batch_of=expanded.batch_of,
        names=links.names,
        other_names=other_names,
        truth=run.truth,
        errors=run.errors,
        impacts=run.impacts,
        notes=(*notes, *_cautions(expanded, run.local.size)),
    )


def _cautions(expanded: Expanded, pages: int) -> tuple[str, ...]:
    """Return the reasons why the estimate may be worse than the local rank."""
    few = f"with fewer than {FEW_LOCAL} local pages the estimate is often worse than the local rank"
    return (few,) * (pages < FEW_LOCAL) + (NO_BATCH,) * (not (expanded.batch_of > 0).any())


def _opened(source: Source) -> Graph | Survey:
    if isinstance(source, Survey):
        return source
    if isinstance(source, str | Path) and is_survey(source):
        return Survey(source)
    return simple_graph(source)


def read_back_links(source: Graph | Survey | Path | str | BackLinks | None) -> Graph | BackLinks | None:
    """Read back-links from a table, a graph or a survey; return what is already read."""
    if source is None or not isinstance(source, Graph | Survey | Path | str):
        return source
    if not isinstance(source, Graph | Survey) and not _is_graph(Path(source)):
        return read_back_link_table(source)
    opened = _opened(source)
    graph = opened if isinstance(opened, Graph) else replay_survey(opened).graph
    if graph.names is None:
        raise UsageError("the graph of back-links has no names", hint="give a graph whose pages have URLs as names")
    return graph


def _is_graph(path: Path) -> bool:
    return is_survey(path) or (path / "graph.json").is_file()


def _require_names(names: Names | None) -> Names:
    if names is None:
        raise UsageError("back_links are matched by name, and the graph has no names", hint="pass a graph with names")
    return names


def _with_back_links(run: CommunityRun, links: WebLinks, back_links: Graph | BackLinks) -> tuple[Expanded, AddedLinks]:
    """Add the pages that are known to link to local ones; their links are still to be counted."""
    names, redirects, expanded = _require_names(links.names), links.redirects, run.expanded

    def find(name: str) -> int | None:
        page = names.find(name)
        if page is None or redirects is None or page >= redirects.size:  # URLs out of scope have no redirect
            return page
        return int(redirects[page])

    local = run.local.tolist()
    if isinstance(back_links, Graph):
        back_links = back_links_in_graph(back_links, (names[page] for page in local))
    added = add_back_links(links.rows, links.ids, expanded.known, set(local), back_links, find)
    pages = np.concatenate([expanded.known.pages, added.pages])
    order = np.argsort(pages, kind="stable")
    batch_of = np.append(expanded.batch_of, np.zeros(added.pages.size, np.int64))[order]
    return replace(expanded, known=expanded.known._replace(pages=pages[order]), batch_of=batch_of), added


def _back_link_note(pages: int) -> str:
    if not pages:
        return "the back-links add no page: none leads from a page that was not fetched to a local page"
    some = "1 page that was not fetched links" if pages == 1 else f"{pages:,} pages that were not fetched link"
    return f"{some} to local pages, according to the back-links"
