"""`sv.community`: what the whole web thinks of local pages, learnt from a few pages around them.

The web is a graph that is known, a survey that is replayed, or the live web around a survey. In all three the same
rounds choose the same pages; what was read is then turned into estimates in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IdArray, marked
from surveyor.config import Settings
from surveyor.crawler.strategies.rounds import is_still
from surveyor.errors import UsageError
from surveyor.estimate.community import back_links as links
from surveyor.estimate.community.beginning import begin, extra_pages
from surveyor.estimate.community.concluding import all_estimates, jackknife, rank_alone
from surveyor.estimate.community.estimators import Method
from surveyor.estimate.community.known_graph import Expanded, Plan, Round, expand, rows_of
from surveyor.estimate.community.local import local_pages
from surveyor.estimate.community.replayed import replayed
from surveyor.estimate.community.result import CommunityRank, Ending
from surveyor.graph.back_links import BackLinks, from_file
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph
from surveyor.kernels.crawled_graph import CrawledGraph, build_crawled_graph
from surveyor.kernels.mass import Rows
from surveyor.rank.expansion import SELECTORS, Select
from surveyor.rank.pagerank import SolverOptions, pagerank
from surveyor.stopping import ProgressCallback, silent
from surveyor.store.layout import is_survey
from surveyor.survey.survey import Survey

if TYPE_CHECKING:
    from surveyor.estimate.community.live import Crawled
    from surveyor.graph.names import Names
    from surveyor.rank.expansion import Expansion

TOLERANCE = 1e-9  # of the estimates
SURE = 1e-10  # of the truth, where the web is known
Local = str | Sequence[str] | Sequence[int] | AnyIntArray | BoolArray
Source = Graph | Survey | Path | str
Told = Graph | BackLinks  # back-links that were read


def community(
    source: Source,
    local: Local,
    *,
    extra: int | str = "2n",
    select: Select = "complement",
    rounds: int | None = None,
    estimator: Method = "auto",
    start: Sequence[int] | IdArray | None = None,
    back_links: Source | None = None,
    still: float = 0.0,
    truth: bool = False,
    replay: bool = False,
    out: Path | str | None = None,
    damping: float | None = None,
    rng: int | None = None,
    progress: ProgressCallback = silent,
    **settings: Any,
) -> CommunityRank:
    """Estimate the global rank of local pages by reading pages around them that matter most to them.

    Parameters
    ----------
    source : a graph, which plays the web; or a survey, around which pages are fetched, politely, into a survey of its
        own that is gone on with when asked again (`out`); with `replay`, only what the survey holds is read.
    local : a rule such as "host:docs.example.org", "prefix:https://example.org/docs/" or "file:pages.txt"; or names,
        ids, or one truth value per page.
    extra : pages to ask for besides: a number, or so many times the local ones ("2n", "0.5n").
    select : how to choose them: complement, flow, cho, outlinks, random.
    rounds : in how many parts; the frontier is judged anew before each. By default a round is 4 % of the local pages.
    estimator : auto, or crawled (the paper's), or frontier.
    start : pages of a graph that were read before, besides the local ones: they cost nothing.
    back_links : links into the local pages known from elsewhere: a file of pairs, a graph or a survey.
    still : end when three rounds in a row move the ranks of the local pages by less (L1).
    truth : rank the whole graph, too, and compare.
    damping, rng : 0.85 and 7 for a graph, those of the survey otherwise.
    settings : of a crawl, where pages are fetched: contact, delay, allow, … (docs/reference/settings.md).

    >>> from surveyor.graph.synthetic.generate import synthetic_web
    >>> web = synthetic_web("small").graph
    >>> found = community(web, "domain:site41.example", truth=True)
    >>> found.compared().l1 < found.compared("local").l1
    True
    """
    check(select, rounds, estimator, damping, still, rng)
    given, back = _opened(source), None if back_links is None else read_back_links(back_links)
    stands_for, usual = None, 0.85
    if isinstance(given, Graph):
        if settings or out is not None or replay:
            what = next(iter(settings), "out" if out is not None else "replay")
            raise UsageError(f"{what} is for surveys, and this is a graph", hint="leave it out")
        web, shut, gone = given, None, None
    elif replay:
        if settings or out is not None:
            raise UsageError("a replay fetches nothing, and has no settings of a crawl", hint="leave replay out")
        told = replayed(given)
        web, shut, gone = told.graph, ~(told.read | told.gone), told.gone
        stands_for, usual = told.stands_for, given.damping
    else:
        if truth:
            raise UsageError("nobody knows the true rank of a live web", hint="give a graph, or replay=True")
        if start is not None:
            raise UsageError("a survey starts with the pages that it has read", hint="leave start out, or give a graph")
        return _live(given, local, estimator, back, rng, extra=extra, select=select, rounds=rounds, out=out,
                     still=still, damping=damping, **settings)  # fmt: skip
    readable = np.ones(web.pages, np.bool_) if shut is None or gone is None else ~(shut | gone)
    if back is not None:
        _named(web.names)
    chosen, notes = _local(local, web, readable)
    most = extra_pages(extra, chosen.size)
    batch = max(1, -(-most // rounds)) if rounds else 0
    follow, seed = usual if damping is None else damping, 7 if rng is None else rng
    plan = Plan(most, select, batch, follow, seed=seed, still=still)
    global_rank = None
    if truth:
        scores = pagerank(web, follow, SURE, options=SolverOptions(progress=progress)).scores[chosen]
        global_rank = scores / scores.sum()
    errors: list[float] = []

    def watch(expansion: Expansion, _: CrawledGraph, now: Round) -> None:
        progress("reading around", now.asked, most, "pages")
        if global_rank is not None:
            errors.append(float(np.abs(expansion.local_ranks() - global_rank).sum()))

    before = None if start is None else np.flatnonzero(marked(np.asarray(start), web.pages)).astype(np.int32)
    found = expand(web, chosen, plan, start=before, gone=gone, shut=shut, watch=watch)
    return conclude(
        found, rows_of(web), web.pages, chosen, estimator, follow, seed, select, ending=_ending(found, most, still),
        names=web.names, truth=global_rank, errors=tuple(errors), notes=notes, back_links=back, addresses=stands_for,
    )  # fmt: skip


def _live(
    survey: Survey,
    local: Local,
    estimator: Method,
    back_links: Told | None,
    rng: int | None,
    *,
    out: Path | str | None,
    damping: float | None,
    **rest: Any,
) -> CommunityRank:
    """Fetch around a survey."""
    from surveyor.estimate.community.live import run
    from surveyor.fetch.http import run_sync

    ours = {name: rest.pop(name) for name in ("extra", "select", "rounds", "still")}
    if damping is not None:
        rest["damping"] = damping
    if rng is not None:
        rest["rng"] = rng
    origins = dict.fromkeys(rest, "argument")
    begun = begin(survey.folder, local, out=out, settings=Settings(**rest), origins=origins, **ours)
    with begun:
        crawled = run_sync(run(begun))
        return of_crawled(crawled, estimator, begun.folder.manifest.rng, back_links, notes=begun.warnings)


def of_crawled(
    crawled: Crawled,
    estimator: Method,
    rng: int,
    back_links: Source | Told | None = None,
    *,
    notes: tuple[str, ...] = (),
) -> CommunityRank:
    """Work out all estimates from a community that was read live."""
    from surveyor.graph.names import Names

    back = read_back_links(back_links) if isinstance(back_links, Graph | Survey | Path | str) else back_links

    state, terms = crawled.state, crawled.terms
    ledger, urls = state.crawl.ledger, state.urls
    names = Names.of(urls[page] for page in range(len(urls)))
    told = (*notes, crawled.remark) if crawled.remark else notes
    ids = max(ledger.capacity, len(urls))  # URLs out of scope have no account
    return conclude(
        crawled.expanded(), state.crawl.graph.rows, ids, crawled.local, estimator, ledger.damping,
        rng, terms.select, ending=crawled.ending, stands_for=ledger.stands_for(), names=names, notes=told,
        back_links=back, addresses=ledger.stands_for(),
    )  # fmt: skip


def _opened(source: Source) -> Graph | Survey:
    if isinstance(source, Graph | Survey):
        return source
    return Survey(source) if is_survey(source) else read_graph(source)


def _local(local: Local, web: Graph, readable: BoolArray) -> tuple[IdArray, tuple[str, ...]]:
    """Return the local pages, and which are missing; of a survey that is replayed, those that it has read."""
    if readable.all():
        chosen = local_pages(local, web.names, web.pages)
        return chosen.places, _missing(chosen.missing, "in the graph")
    chosen = local_pages(local, web.names, web.pages, what="this survey", may_be_all=True)
    found = chosen.places[readable[chosen.places]]
    if not found.size:
        raise UsageError("none of the local pages was read in this survey", hint="see `surveyor top SURVEY`")
    return found, _missing(chosen.missing + chosen.places.size - found.size, "read in the survey")


def _missing(pages: int, where: str) -> tuple[str, ...]:
    return (f"{pages:,} of the pages that were to be local {'is' if pages == 1 else 'are'} not {where}",) * bool(pages)


def conclude(
    found: Expanded,
    rows: Rows,
    web: int,
    local: IdArray,
    estimator: Method,
    damping: float,
    rng: int,
    select: str,
    *,
    ending: Ending,
    stands_for: IdArray | None = None,
    names: Names | None = None,
    truth: FloatArray | None = None,
    errors: tuple[float, ...] = (),
    notes: tuple[str, ...] = (),
    back_links: Told | None = None,
    addresses: IdArray | None = None,
) -> CommunityRank:
    """Work out all estimates from what was read, and how they would have come out otherwise.

    `stands_for` is applied to links as they are; `addresses`, to names of back-links.
    """
    other_names: dict[int, str] = {}
    if back_links is not None:
        found, grown = _with_back_links(found, rows, web, local, _named(names), back_links, addresses)
        rows, web, other_names = grown.rows, grown.web, grown.names
        notes = (*notes, _how_many(grown.pages.size))
        if stands_for is not None:
            stands_for = np.append(stands_for, np.arange(stands_for.size, web, dtype=np.int32))

    def retold(pages: IdArray) -> CrawledGraph:
        return build_crawled_graph(rows, pages, stands_for, scratch)

    scratch = np.full(web, -1, np.int32)
    if back_links is not None:
        found = replace(found, known=retold(found.known.pages))
    all_of_them = all_estimates(found.known, local, found.batch_of, damping, TOLERANCE)
    spread = jackknife(found.known, local, found.batch_of, estimator, retold, damping)
    return CommunityRank(
        pages=local,
        local=rank_alone(local, retold, damping, TOLERANCE),
        estimate=all_of_them[estimator],
        estimates=all_of_them,
        spread=spread,
        unsettled=None if spread is None else float(spread.sum()),
        rounds=found.rounds,
        extra=found.extra,
        ending=ending,
        select=select,
        damping=damping,
        rng=rng,
        known=found.known,
        batch_of=found.batch_of,
        names=names,
        other_names=other_names,
        truth=truth,
        errors=errors,
        notes=notes,
    )


def read_back_links(source: Source) -> Told:
    """Read back-links, before any work is done that they may spoil."""
    if isinstance(source, Graph | Survey) or _is_graph(Path(source)):
        given = _opened(source)
        graph = given if isinstance(given, Graph) else replayed(given).graph
        if graph.names is None:
            raise UsageError("the graph of back-links has no names", hint="give one with URLs")
        return graph
    return from_file(source)


def _named(names: Names | None) -> Names:
    if names is None:
        raise UsageError("back-links are matched by name, and the graph has none", hint="give a graph with names")
    return names


def _with_back_links(
    found: Expanded, rows: Rows, web: int, local: IdArray, names: Names, told: Told, addresses: IdArray | None
) -> tuple[Expanded, links.Grown]:
    """Add pages of which links into the local domain are known; what they tell is still to be put together."""

    def find(name: str) -> int | None:
        page = names.find(name)
        if page is None or addresses is None or page >= addresses.size:  # URLs out of scope have no other address
            return page
        return int(addresses[page])

    back = links.from_graph(told, (names[page] for page in local.tolist())) if isinstance(told, Graph) else told
    grown = links.added(rows, web, found.known, set(local.tolist()), back, find)
    pages = np.concatenate([found.known.pages, grown.pages])
    order = np.argsort(pages, kind="stable")
    batch_of = np.append(found.batch_of, np.zeros(grown.pages.size, np.int64))[order]
    return replace(found, known=found.known._replace(pages=pages[order]), batch_of=batch_of), grown


def _how_many(pages: int) -> str:
    if not pages:
        return "no back-link is new: none leads from a page that was not read to a local page, by its URL"
    some = "1 page that was not read is" if pages == 1 else f"{pages:,} pages that were not read are"
    return f"{some} known to link to local ones"


def _is_graph(path: Path) -> bool:
    return is_survey(path) or (path / "graph.json").is_file()


def check(
    select: str, rounds: int | None, estimator: str, damping: float | None, still: float, rng: int | None = None
) -> None:
    """Refuse what cannot work, before any of it is done."""
    if select not in SELECTORS:
        raise UsageError(f"no selection {select!r}", hint=f"choose {', '.join(SELECTORS)}")
    if estimator not in get_args(Method):
        raise UsageError(f"no estimator {estimator!r}", hint=f"choose {', '.join(get_args(Method))}")
    if rounds is not None and (not isinstance(rounds, int | np.integer) or rounds < 1):
        raise UsageError(f"{rounds} rounds", hint="give a whole number from 1 on")
    if damping is not None and not 0 < damping < 1:
        raise UsageError(f"damping {damping} is not between 0 and 1", hint="0.85 is usual")
    if rng is not None and not (isinstance(rng, int | np.integer) and 0 <= rng < 2**63):
        raise UsageError(f"rng is {rng}", hint="give a whole number from 0 on")
    if not still >= 0:
        raise UsageError(f"ranks cannot move by less than {still}", hint="give a small number, such as 0.001")


def _ending(found: Expanded, most: int, still: float) -> Ending:
    if found.extra.size >= most:
        return "spent"
    if is_still([one.moved for one in found.rounds], still):
        return "still"
    return "exhausted" if found.extra.size else "nothing"
