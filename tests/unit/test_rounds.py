"""Strategies in rounds fetch the same pages as on a known graph, for any order of responses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import surveyor as sv
from surveyor import UsageError
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.loop import Crawl
from surveyor.crawler.strategies import by_name
from surveyor.estimate.community.known_graph import ExpansionPlan, expand
from surveyor.graph.growing import GrowingGraph
from surveyor.graph.synthetic.generate import synthetic_web
from surveyor.outcome import Outcome
from surveyor.store.snapshot import restore, snapshot

WEB = synthetic_web("small")
LOCAL = 300


def rolled() -> sv.Graph:
    """The web with permuted pages, so that the local ones are of many sites."""
    number = np.random.default_rng(8).permutation(WEB.graph.pages)
    sources = np.repeat(np.arange(WEB.graph.pages), WEB.graph.out_degrees)
    return sv.Graph.from_arrays(number[sources], number[WEB.graph.indices], WEB.graph.pages)


GRAPH = rolled()


def begun(strategy: str) -> Crawl:
    graph = GrowingGraph(GRAPH.pages)
    ledger = Ledger(graph, [0], pages=GRAPH.pages)
    crawl = Crawl(graph, ledger, by_name(strategy), Frontier(ledger), CoverageWalks(ledger))
    crawl.begin(np.random.default_rng(3))
    return crawl


def crawled(strategy: str, gone: frozenset[int] = frozenset(), order: int = 0) -> tuple[Crawl, list[int]]:
    """Fetch the local pages, then those of the strategy, concurrently, with responses in any order."""
    crawl, chance = begun(strategy), np.random.default_rng(order)
    for page in range(LOCAL):
        crawl.apply(Outcome(page, "fetched", GRAPH.links_of(page)))
    asked: list[int] = []
    in_progress: list[int] = []
    while True:
        in_progress += crawl.frontier.take(7 - len(in_progress)).pages
        if not in_progress:
            return crawl, asked
        page = in_progress.pop(int(chance.integers(len(in_progress))) if order else 0)
        asked.append(page)
        crawl.apply(Outcome(page, "gone") if page in gone else Outcome(page, "fetched", GRAPH.links_of(page)))


SEED = int(np.random.default_rng(3).integers(2**62))
NUMBERS = f"local={LOCAL},start={LOCAL},batch=20,extra=90"


@pytest.mark.parametrize("strategy", ["complement", "flow", "rounds:select=cho", "rounds:select=random"])
def test_the_loop_fetches_the_pages_of_the_simulation(strategy: str) -> None:
    name, _, rest = strategy.partition(":")
    crawl, asked = crawled(f"{name}:{NUMBERS}{',' * bool(rest)}{rest}")
    select = rest.partition("=")[2] or name
    plan = ExpansionPlan(90, select, 20, seed=SEED)  # type: ignore[arg-type]
    found = expand(GRAPH, np.arange(LOCAL, dtype=np.int32), plan)
    assert asked == found.extra.tolist()
    rounds = crawl.strategy.rounds  # type: ignore[attr-defined]
    assert [(one.fetched, one.requested) for one in found.rounds] == [one[:2] for one in rounds]
    assert [one.change for one in found.rounds] == pytest.approx([one[2] for one in rounds], rel=1e-9)


def test_the_order_of_responses_does_not_matter() -> None:
    first = crawled(f"complement:{NUMBERS}")[1]
    for order in (1, 2):
        other = crawled(f"complement:{NUMBERS}", order=order)[1]
        assert [sorted(other[step : step + 20]) for step in range(0, 90, 20)] == [
            sorted(first[step : step + 20]) for step in range(0, 90, 20)
        ]


@pytest.mark.parametrize("order", [0, 4, 5])
def test_a_page_that_is_gone_is_replaced_and_counts(order: int) -> None:
    plain = crawled(f"complement:{NUMBERS}")[1]
    gone = np.zeros(GRAPH.pages, np.bool_)
    gone[[*plain[:5], *plain[30:33]]] = True
    crawl, asked = crawled(f"complement:{NUMBERS}", frozenset(np.flatnonzero(gone).tolist()), order)
    found = expand(GRAPH, np.arange(LOCAL, dtype=np.int32), ExpansionPlan(90, batch=20, seed=SEED), gone=gone)
    rounds = crawl.strategy.rounds  # type: ignore[attr-defined]
    assert [one[:2] for one in rounds] == [(one.fetched, one.requested) for one in found.rounds]
    ends = [one[1] for one in rounds]
    for begin, end in pairwise(ends):
        assert sorted(asked[begin:end]) == sorted(found.extra[begin:end].tolist())


def test_the_seeds_are_local_by_default() -> None:
    race = sv.simulate(WEB.graph, ["complement", "flow"], sv.Pages(200), rng=4)
    assert all(run.reached for run in race.runs)


def test_a_redirected_seed_is_replaced_by_its_target() -> None:
    crawl = begun("complement")
    assert crawl.frontier.take().pages == [0]
    crawl.apply(Outcome(0, "redirected", target=5))
    assert crawl.frontier.take().pages == [5]
    crawl.apply(Outcome(5, "fetched", np.array([1, 2], np.int32)))
    assert set(crawl.frontier.take(5).pages) <= {1, 2}


def test_a_redirected_page_is_replaced_by_its_target() -> None:
    crawl = begun("complement:local=1,start=1,batch=1,extra=3")
    crawl.apply(Outcome(0, "fetched", np.array([1, 2], np.int32)))
    first = crawl.frontier.take().pages[0]
    crawl.apply(Outcome(first, "redirected", target=7))
    assert crawl.frontier.take(5).pages == [7]


def test_a_checkpoint_within_a_round_resumes_identically() -> None:
    def parts(crawl: Crawl) -> dict[str, object]:
        return {"graph": crawl.graph, "ledger": crawl.ledger, "strategy": crawl.strategy}

    whole = crawled(f"complement:{NUMBERS}")[1]
    crawl = begun(f"complement:{NUMBERS}")
    for page in range(LOCAL):
        crawl.apply(Outcome(page, "fetched", GRAPH.links_of(page)))
    for page in whole[:33]:
        assert crawl.frontier.take().pages == [page]
        crawl.apply(Outcome(page, "fetched", GRAPH.links_of(page)))
    frozen = snapshot(parts(crawl))
    assert frozen is not None
    waiting, other = crawl.frontier.queued(), begun(f"complement:{NUMBERS}")
    restore(parts(other), {name: array.copy() for name, array in frozen[0].items()}, frozen[1])
    fresh = Crawl(other.graph, other.ledger, other.strategy, Frontier(other.ledger), CoverageWalks(other.ledger))
    fresh.frontier.update(waiting)
    rest = []
    while taken := fresh.frontier.take().pages:
        rest += taken
        fresh.apply(Outcome(taken[0], "fetched", GRAPH.links_of(taken[0])))
    assert rest == whole[33:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("complement:local=x", "local .* must be an integer, got 'x'"),
        ("complement:locals=3", "unknown argument 'locals'"),
        ("rounds:best", "unknown select 'best'"),
        ("complement:local=5,start=3", "start at least local, got 5, 3"),
        ("flow:batch=-1", "at least 0.* -1"),
        ("complement:stable=nan", "stable must .* nan"),
    ],
)
def test_invalid_arguments_are_rejected(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        by_name(text)
