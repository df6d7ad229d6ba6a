"""The variants of the RankMass paper against the algorithms as printed, page by page."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from surveyor import Coverage, Graph, Pages, UsageError, pagerank, simulate, synthetic_web
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.breadth import Breadth, levels_needed, plan
from surveyor.crawler.strategies.printed import PrintedRankMass
from webs import graphs


def printed_order(graph: Graph, seeds: list[int], damping: float, most: int) -> tuple[list[int], float]:
    """Return the fetches of RankMass as printed and its CRM; mass of pages without links returns to the seeds."""
    mass = np.zeros(graph.pages)
    mass[seeds] = 1 / len(seeds)
    order: list[int] = []
    captured = 0.0
    while True:
        page = int(mass.argmax())
        if mass[page] < 1e-15 or (page not in order and len(order) == most):
            return order, captured
        if page not in order:
            order.append(page)
        held, mass[page] = mass[page], 0.0
        captured += (1 - damping) * held
        links = graph.links_of(page) if graph.links_of(page).size else np.array(seeds)
        for link in links.tolist():
            mass[link] += damping * held / links.size


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_printed_rankmass_fetches_as_printed(graph: Graph) -> None:
    strategy = PrintedRankMass()
    run = simulate(graph, [strategy], Pages(graph.pages), seeds=[0], rng=1).runs[0]
    order, captured = printed_order(graph, [0], 0.85, graph.pages)
    assert run.order.tolist() == order
    assert strategy.captured <= run.coverage.at_least + 1e-4  # the precision of the ledger
    assert strategy.captured == pytest.approx(captured, abs=1e-9)


def test_on_a_web_the_ledger_proves_more_than_the_printed_sum() -> None:
    graph = synthetic_web("small", rng=3).graph
    seeds = sorted(pagerank(graph, tolerance=1e-4).top(3).tolist())
    strategy = PrintedRankMass()
    printed, plain = simulate(graph, [strategy, "rankmass"], Pages(200), seeds=seeds, rng=1).runs
    assert printed.order.tolist() == printed_order(graph, seeds, 0.85, 200)[0]
    assert strategy.captured < printed.at_least[-1]
    assert len(set(printed.order.tolist()) & set(plain.order.tolist())) > 180
    assert (printed.at_least <= printed.true + 1e-7).all()


def test_sweep_moves_all_mass_once_per_round() -> None:
    graph = synthetic_web("small", rng=2).graph
    seeds = sorted(pagerank(graph, tolerance=1e-4).top(3).tolist())
    sweep, closed = simulate(graph, ["sweep:0.2", "windowed:0.2"], Coverage(0.8), seeds=seeds, rng=1).runs
    mass, read, crm = np.zeros(graph.pages), np.zeros(graph.pages, np.bool_), 0.0
    mass[seeds] = 1 / len(seeds)
    order: list[int] = []
    while len(order) < min(sweep.fetches, 300):
        waiting = np.flatnonzero((mass > 0) & ~read)
        count = max(1, int(np.ceil(0.2 * waiting.size)))
        best = waiting[np.lexsort((waiting, -mass[waiting]))[:count]]
        order += best.tolist()
        read[best] = True
        pool = 0.0
        for page in np.flatnonzero(read).tolist():
            held, mass[page] = mass[page], 0.0
            crm += 0.15 * held
            links = graph.links_of(page)
            if links.size:
                mass[links] += 0.85 * held / links.size
            else:
                pool += 0.85 * held
        mass[seeds] += pool / len(seeds)
    together = min(len(order), sweep.fetches)
    assert sweep.order[:together].tolist() == order[:together]
    assert closed.fetches <= sweep.fetches


@pytest.mark.parametrize(("share", "damping"), [(0.5, 0.85), (0.9, 0.85), (0.99, 0.5), (0.9, 0.99)])
def test_breadth_chooses_the_smallest_number_of_levels(share: float, damping: float) -> None:
    levels = levels_needed(share, damping)
    assert damping**levels <= 1 - share < damping ** (levels - 1)
    strategy = by_name(f"breadth:coverage={share}")
    assert isinstance(strategy, Breadth)
    assert f"{levels} levels" in plan(strategy, damping)
    graph = synthetic_web("small", rng=1).graph
    run = simulate(graph, [strategy], Pages(10**6), seeds=[0], rng=1).runs[0]
    assert strategy.levels == levels_needed(share)
    assert run.true[-1] >= share
    for wrong in ("breadth:coverage=1", "breadth:coverage=x", "breadth:levels=2,coverage=0.5"):
        with pytest.raises(UsageError):
            by_name(wrong)
