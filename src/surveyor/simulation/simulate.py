"""Compare strategies on a known graph: the reads each needs and the coverage it can guarantee.

Each strategy crawls the same web from the same seeds through the same loop as a live crawl (`loop.py`), with a
graph in place of the network. Strategies that need only the ledger run in one kernel on a fixed web
(`kernels/compiled_crawl.py`), which reads the same pages with the same results, hundreds of times faster.

    >>> from surveyor.graph.synthetic.generate import synthetic_web
    >>> race = simulate(synthetic_web("small").graph, ["breadth", "rankmass"], Coverage(0.9), rng=7)
    >>> [run.strategy for run in race.runs if run.reached]
    ['breadth', 'rankmass']
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np

from surveyor.arrays import BoolArray, IdArray, IntArray
from surveyor.crawler.strategies import by_name, check
from surveyor.crawler.strategies.rankmass import RankMass
from surveyor.crawler.strategies.strategy import Strategy, name_of
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.simulation import compiled as kernels
from surveyor.simulation import objects
from surveyor.simulation.course import Course
from surveyor.simulation.race import Race, Run
from surveyor.simulation.scenario import Scenario, best_order, set_up
from surveyor.stopping import Bytes, Coverage, Pages, ProgressCallback, Rule, contains, silent

GOAL = Coverage(0.9)
CHANGES = ("change", "are born", "go")


def simulate(
    graph: Graph,
    strategies: str | Strategy | Sequence[str | Strategy] = ("breadth", "rankmass", "windowed", "opic"),
    until: Rule = GOAL,
    *,
    seeds: int | str | Sequence[int | str] | IdArray | BoolArray | None = None,
    damping: float = 0.85,
    dead: float | BoolArray = 0.0,
    blocked: str | Sequence[str | int] | BoolArray = (),
    budget: int | IntArray | None = None,
    domains: IntArray | None = None,
    batch: int = 1,
    changes: float | tuple[float, float, float] = 0.0,
    samples: int = 16,
    rng: int | None = None,
    compiled: bool | None = None,
    progress: ProgressCallback = silent,
) -> Race:
    """Crawl a known graph with each strategy; return the pages each read and the coverage it could guarantee.

    Parameters
    ----------
    strategies : names, or objects (a new one per race, as a strategy keeps its state).
    seeds : trusted pages, by id or name; by default the ten of highest PageRank.
    dead, blocked : share or mask of pages that are gone; hosts, pages or mask of pages that may not be read.
    budget, domains : page budget per domain; domain ids, one per page, by default the hosts.
    batch : pages fetched between two updates of the priorities.
    changes : share of pages whose links change per epoch, in which as many pages are requested as there are; or this
        share and the shares of pages added and removed.
    samples : number of comparisons of estimated with true importance.
    compiled : False to run objects only; True to require kernels; by default kernels where possible.
    """
    moves = tuple(changes) if isinstance(changes, tuple | list) else (changes, 0.0, 0.0)
    if not (len(moves) == 3 and all(0 <= share < 1 for share in moves)):
        raise UsageError(f"the shares of pages that change are {changes}", hint="give shares from 0 up to 1")
    if not isinstance(batch, int | np.integer) or batch < 1:
        raise UsageError(f"a batch of {batch} pages", hint="give a whole number from 1 on")
    batch = min(int(batch), max(graph.pages, 1))
    if not isinstance(until, Rule):
        raise UsageError(f"until is {until!r}", hint="give a rule, such as sv.Coverage(0.9) or sv.Pages(5000)")
    if contains(until, Bytes):
        raise UsageError(f"until {until}: a simulation receives no bytes", hint="ask for coverage, pages or minutes")
    if rng is not None and (not isinstance(rng, int | np.integer) or rng < 0):
        raise UsageError(f"rng is {rng}", hint="give a whole number from 0 on")
    listed = strategies if isinstance(strategies, list | tuple) else [strategies]
    chosen = [by_name(one) if isinstance(one, str) else check(one, _called(one)) for one in listed]
    if not chosen:
        raise UsageError("there are no strategies to race", hint='name some, such as "breadth" and "rankmass"')
    seed = int(np.random.SeedSequence().entropy) % 2**32 if rng is None else int(rng)  # type: ignore[arg-type]
    scenario = set_up(
        graph, [seeds] if isinstance(seeds, str | int) else seeds, damping=damping, dead=dead, blocked=blocked,
        budget=budget, domains=domains, rng=np.random.default_rng([seed, 0]),
    )  # fmt: skip
    truth = scenario.truth(progress=progress)
    notes = [*scenario.notes]
    if batch > 1:
        notes.append(f"batches of {batch:,} pages")
    if any(moves):
        shares = ", ".join(f"{100 * share:.3g} % {what}" for share, what in zip(moves, CHANGES, strict=True) if share)
        notes.append(f"per {graph.pages:,} requests, of the pages: {shares}; bounds are those of the web as fetched")
        notes.append("the best order is that of the web at the start")
    course = Course(scenario, truth.scores, until, batch, moves if any(moves) else None, samples, seed, progress)
    runs = tuple(_run(strategy, course, compiled=compiled) for strategy in chosen)
    return Race(
        runs=runs,
        optimal=best_order(truth.scores, scenario.fates),
        pages=graph.pages,
        links=graph.links,
        seeds=scenario.seeds,
        damping=damping,
        until=str(until),
        rng=seed,
        truth_error=truth.error,
        notes=tuple(notes),
        goal=_goal(until),
        seed_names=tuple(graph.name(page) for page in scenario.seeds[:10].tolist()) if graph.names is not None else (),
    )


def _run(strategy: Strategy, course: Course, *, compiled: bool | None) -> Run:
    fits = kernels.fits(strategy, course)
    if compiled and not fits:
        raise UsageError(
            f"no kernel runs {name_of(strategy)} on this web towards this goal",
            hint="kernels know breadth, rankmass, windowed and random, on webs without budgets and changes",
        )
    run = kernels.run if fits and compiled is not False else objects.run
    ours = type(strategy).__module__.startswith("surveyor.")
    run(deepcopy(strategy) if ours else RankMass(), _trial(course))  # compile kernels before timing
    return run(strategy, course)


def _trial(course: Course) -> Course:
    """Return a course of three pages."""
    graph = Graph(np.array([0, 2, 3, 3]), np.array([1, 2, 0], np.int32))
    scenario = Scenario(graph, np.zeros(1, np.int32), course.scenario.damping, np.zeros(3, np.uint8))
    return replace(
        course, scenario=scenario, truth=np.full(3, 1 / 3), changes=None, samples=1, progress=silent, until=Pages(3)
    )


def _called(strategy: object) -> str:
    return strategy.__name__ if isinstance(strategy, type) else type(strategy).__name__


def _goal(until: Rule) -> float | None:
    """Return the coverage goal of a rule, if it is a plain one."""
    share = (until.limits() or (math.inf, 0))[0]
    return share if share < 1 else None
