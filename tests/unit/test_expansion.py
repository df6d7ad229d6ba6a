"""Ranks of what was read, kept up to date by pushes, and the pages that are read next."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import surveyor as sv
from oracles import dense_pagerank
from surveyor import Graph, UsageError
from surveyor.estimate.community.known_graph import ExpansionPlan, expand, rows_of
from surveyor.graph.synthetic.generate import synthetic_web
from surveyor.kernels.crawled_graph import CrawledGraph
from surveyor.rank.expansion import Expansion

WEB = synthetic_web("small")


LOCAL = np.sort(np.random.default_rng(8).permutation(WEB.graph.pages)[:300]).astype(np.int32)


def recomputed(found: CrawledGraph, damping: float = 0.85) -> np.ndarray:
    """PageRank of the pages read, from nothing."""
    graph = Graph(found.indptr, found.indices)
    even = np.full(graph.pages, 1 / graph.pages)
    return dense_pagerank(graph, damping, even, even)


@pytest.mark.parametrize("select", ["complement", "flow", "cho", "outlinks", "random"])
@pytest.mark.parametrize("tolerance", [pytest.param(1e-4, marks=pytest.mark.slow), 1e-8])
def test_updated_ranks_are_those_recomputed_within_the_bound(select: str, tolerance: float) -> None:
    errors = []

    def watch(expansion: Expansion, found: CrawledGraph, _: object) -> None:
        truth = recomputed(found)
        assert expansion.error <= tolerance
        errors.append(float(np.abs(expansion.ranks(found) - truth).sum()))
        assert errors[-1] <= expansion.error
        inside = truth[np.searchsorted(found.pages, LOCAL)]
        assert np.abs(expansion.local_ranks() - inside / inside.sum()).sum() <= 2 * expansion.error / inside.sum()

    expand(WEB.graph, LOCAL, ExpansionPlan(300, select, 60, tolerance=tolerance), watch=watch)  # type: ignore[arg-type]
    assert len(errors) == 6
    assert max(errors) > 0


@pytest.mark.parametrize("damping", [0.0, 0.5, 0.95])
def test_the_bound_holds_for_any_damping(damping: float) -> None:
    def watch(expansion: Expansion, found: CrawledGraph, _: object) -> None:
        assert np.abs(expansion.ranks(found) - recomputed(found, damping)).sum() <= expansion.error <= 1e-6

    expand(WEB.graph, LOCAL, ExpansionPlan(90, batch=30, damping=damping, tolerance=1e-6), watch=watch)


def test_a_damping_near_one_ends_with_a_proven_error() -> None:
    def watch(expansion: Expansion, found: CrawledGraph, _: object) -> None:
        truth = recomputed(found, 0.9999)
        assert np.abs(expansion.ranks(found) - truth).sum() <= expansion.error

    done = expand(WEB.graph, LOCAL, ExpansionPlan(40, batch=20, damping=0.9999), watch=watch)
    assert max(one.error for one in done.rounds) > 1e-5  # more than was asked for, and it says so


def test_what_is_read_is_what_scores_say() -> None:
    seen: list[tuple[CrawledGraph, np.ndarray]] = []

    def watch(expansion: Expansion, found: CrawledGraph, _: object) -> None:
        seen.append((found, expansion.scores(found)))

    found = expand(WEB.graph, LOCAL, ExpansionPlan(100, "flow", 25), watch=watch)
    assert found.extra.size == np.unique(found.extra).size == 100
    for step, (before, scores) in enumerate(seen[:-1]):
        chosen = found.extra[25 * step : 25 * step + 25]
        at = {int(page): score for page, score in zip(before.frontier, scores, strict=True)}
        taken = [at[int(page)] for page in chosen]
        assert all(a >= b * (1 - 1e-9) for a, b in pairwise(taken))
        left = [score for page, score in at.items() if page not in set(chosen.tolist())]
        assert min(taken) >= max(left) * (1 - 1e-9)


def test_when_all_is_read_the_rank_is_the_global_one() -> None:
    found = expand(WEB.graph, LOCAL, ExpansionPlan(10**6, tolerance=1e-9))
    reached = found.known.pages.size
    truth = sv.pagerank(Graph(found.known.indptr, found.known.indices), tolerance=1e-12).scores
    local = truth[np.searchsorted(found.known.pages, LOCAL)]
    assert found.known.frontier.size == 0
    assert reached > 2 * LOCAL.size
    assert np.abs(found.expansion.local_ranks() - local / local.sum()).sum() < 1e-7


def test_seeds_change_ties_alone() -> None:
    plans = [ExpansionPlan(60, "outlinks", 20, seed=seed) for seed in (1, 1, 2)]
    one, same, other = (expand(WEB.graph, LOCAL, plan).extra for plan in plans)
    assert one.tolist() == same.tolist() != other.tolist()
    luck = [expand(WEB.graph, LOCAL, ExpansionPlan(60, "random", 20, seed=seed)).extra.tolist() for seed in range(3)]
    assert luck[0] != luck[1] != luck[2]


def test_each_round_draws_again_and_excludes_no_page_permanently() -> None:
    # Page 0 links to a hundred pages; each of them links to ten more that no other page links to.
    links = [(0, page) for page in range(1, 101)]
    links += [(page, 91 + 10 * page + step) for page in range(1, 101) for step in range(10)]
    ends = np.array(links)
    graph = Graph.from_arrays(ends[:, 0], ends[:, 1], 1101)
    first = 0
    for seed in range(40):  # with 50 of the first hundred and 500 others to draw from in the second round
        found = expand(graph, np.array([0], np.int32), ExpansionPlan(100, "random", 50, seed=seed))
        first += int((found.extra[50:] <= 100).sum())
    assert 130 < first < 240  # 50 × 50/550 a seed on average, 182 in all, with a spread of 12


def test_pages_gone_are_replaced_and_counted() -> None:
    gone = np.zeros(WEB.graph.pages, np.bool_)
    plain = expand(WEB.graph, LOCAL, ExpansionPlan(40, batch=20))
    gone[plain.extra[:7]] = True
    found = expand(WEB.graph, LOCAL, ExpansionPlan(100, batch=20), gone=gone)
    assert found.extra[:20].tolist() == plain.extra[:20].tolist()
    assert [one.requested for one in found.rounds[:2]] == [0, 27]
    assert [one.fetched for one in found.rounds[:2]] == [0, 20]
    assert found.extra.size == 100
    assert found.rounds[-1].fetched == 93


def test_blocked_pages_are_never_requested() -> None:
    plain = expand(WEB.graph, LOCAL, ExpansionPlan(40, batch=20))
    blocked = np.zeros(WEB.graph.pages, np.bool_)
    blocked[plain.extra] = True
    found = expand(WEB.graph, LOCAL, ExpansionPlan(40, batch=20), blocked=blocked)
    assert not np.isin(found.extra, plain.extra).any()


def test_ranks_that_stand_still_end_it() -> None:
    found = expand(WEB.graph, LOCAL, ExpansionPlan(10**6, batch=5, stable=3.0))
    assert len(found.rounds) == 4  # the start and three that moved less
    assert expand(WEB.graph, LOCAL, ExpansionPlan(100, batch=20, stable=0.0)).extra.size == 100


def test_pages_read_before_cost_nothing() -> None:
    before = expand(WEB.graph, LOCAL, ExpansionPlan(40, batch=20)).extra
    found = expand(WEB.graph, LOCAL, ExpansionPlan(20, batch=20), start=before)
    assert found.known.pages.size == LOCAL.size + 60
    assert (found.batch_of > 0).sum() == 20
    assert not np.isin(found.extra, before).any()


def test_unknown_selection() -> None:
    with pytest.raises(UsageError, match="unknown select 'best'"):
        Expansion(LOCAL, "best")  # type: ignore[arg-type]


def test_rows_of_a_graph_are_its_links() -> None:
    rows = rows_of(WEB.graph)
    assert rows.targets[rows.start[5] : rows.end[5]].tolist() == WEB.graph.links_of(5).tolist()
