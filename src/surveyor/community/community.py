"""`sv.community`: what the whole web thinks of local pages, learnt from a few pages around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IdArray
from surveyor.community.concluding import all_estimates, jackknife, rank_alone
from surveyor.community.known_graph import Expanded, Plan, Round, expand, rows_of
from surveyor.community.result import CommunityRank, Ending
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.kernels.known import Known, known
from surveyor.kernels.mass import Rows
from surveyor.progress import Progress, silent
from surveyor.rank.estimates import Method
from surveyor.rank.expansion import SELECTORS, Select
from surveyor.rank.pagerank import pagerank
from surveyor.strategies.rounds import is_still

if TYPE_CHECKING:
    from surveyor.crawling.survey import Survey
    from surveyor.graph.names import Names
    from surveyor.rank.expansion import Expansion

TOLERANCE = 1e-9  # of the estimates
SURE = 1e-10  # of the truth, where the web is known
ROUNDS = 50
EXTRA = re.compile(r"(?P<times>\d+(?:\.\d+)?)?(?P<n>n)?")
Local = str | Sequence[str] | Sequence[int] | AnyIntArray | BoolArray


def community(
    source: Graph | Survey | Path | str,
    local: Local,
    *,
    extra: int | str = "2n",
    select: Select = "complement",
    rounds: int = ROUNDS,
    estimator: Method = "auto",
    start: Sequence[int] | IdArray | None = None,
    still: float = 0.0,
    truth: bool = False,
    damping: float = 0.85,
    rng: int = 7,
    progress: Progress = silent,
) -> CommunityRank:
    """Estimate the global rank of local pages by reading pages around them that matter most to them.

    Parameters
    ----------
    source : a graph, which plays the web.
    local : a rule such as "host:docs.example.org", "prefix:https://example.org/docs/" or "file:pages.txt"; or names,
        ids, or one truth value per page.
    extra : pages to ask for besides: a number, or so many times the local ones ("2n", "0.5n").
    select : how to choose them: complement, flow, cho, outlinks, random.
    rounds : in how many parts; the frontier is judged anew before each.
    estimator : auto, or crawled (the paper's), or frontier.
    start : pages read before, besides the local ones: they cost nothing.
    still : end when three rounds in a row move the ranks of the local pages by less (L1).
    truth : rank the whole graph, too, and compare.

    >>> from surveyor.graph.synthetic import synthetic_web
    >>> web = synthetic_web("small").graph
    >>> found = community(web, "host:www.site0.example", truth=True)
    >>> found.compared().l1 < found.compared("local").l1
    True
    """
    check(select, rounds, estimator, damping, still)
    graph = source if isinstance(source, Graph) else Graph.open(Path(str(source)))
    from surveyor.community.local import local_pages

    chosen = local_pages(local, graph.names, graph.pages).places
    most = pages_asked(extra, chosen.size)
    plan = Plan(most, select, max(1, -(-most // rounds)), damping, seed=rng, still=still)
    global_rank = None
    if truth:
        scores = pagerank(graph, damping, SURE, progress=progress).scores[chosen]
        global_rank = scores / scores.sum()
    errors: list[float] = []

    def watch(expansion: Expansion, _: Known, now: Round) -> None:
        progress("reading around", now.asked, most, "pages")
        if global_rank is not None:
            errors.append(float(np.abs(expansion.local_ranks() - global_rank).sum()))

    before = None if start is None else np.asarray(start, np.int32)
    found = expand(graph, chosen, plan, start=before, watch=watch)
    return conclude(
        found, rows_of(graph), graph.pages, chosen, estimator, damping, rng, select,
        ending=_ending(found, most, still), names=graph.names, truth=global_rank, errors=tuple(errors),
    )  # fmt: skip


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
) -> CommunityRank:
    """Work out all estimates from what was read, and how they would have come out otherwise."""

    def retold(pages: IdArray) -> Known:
        return known(rows, pages, stands_for, scratch)

    scratch = np.full(web, -1, np.int32)
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
        truth=truth,
        errors=errors,
        notes=notes,
    )


def pages_asked(extra: int | str, local: int) -> int:
    """Read how many pages to ask for.

    >>> pages_asked("2n", 150), pages_asked("0.5n", 150), pages_asked(40, 150), pages_asked("n", 150)
    (300, 75, 40, 150)
    """
    text = str(extra).strip()
    told = EXTRA.fullmatch(text)
    if not text or told is None or (told["n"] is None and "." in text):
        raise UsageError(f"{extra!r} is no number of extra pages", hint="give one, such as 5000, or n, 2n, 0.5n")
    times = float(told["times"] or 1)
    return round(times * local) if told["n"] else int(times)


def check(select: str, rounds: int, estimator: str, damping: float, still: float) -> None:
    """Refuse what cannot work, before any of it is done."""
    if select not in SELECTORS:
        raise UsageError(f"no selection {select!r}", hint=f"choose {', '.join(SELECTORS)}")
    if estimator not in get_args(Method):
        raise UsageError(f"no estimator {estimator!r}", hint=f"choose {', '.join(get_args(Method))}")
    if rounds < 1:
        raise UsageError(f"{rounds} rounds", hint="give a whole number from 1 on")
    if not 0 <= damping < 1:
        raise UsageError(f"damping {damping} is outside 0 to 1", hint="0.85 is usual")
    if not still >= 0:
        raise UsageError(f"ranks cannot move by less than {still}", hint="give a small number, such as 0.001")


def _ending(found: Expanded, most: int, still: float) -> Ending:
    if found.extra.size >= most:
        return "spent"
    return "still" if is_still([one.moved for one in found.rounds], still) else "nothing left"
