"""The setup of a simulation: the simulated web, its failures, the goal, and the accuracy measurements.

True importance is defined as in `ledger.py`: gone pages have no links, blocked pages keep theirs. It is PageRank of
that graph with jumps to the seeds, with its own proven error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, FloatArray, IdArray, IntArray
from surveyor.crawler.frontier import Budgets
from surveyor.crawler.ledger import CoverageInterval, Ledger, PushOptions, check_damping
from surveyor.crawler.loop import Ending
from surveyor.crawler.strategies.strategy import Strategy, name_of
from surveyor.errors import InputError, StrategyError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.growing import GrowingGraph
from surveyor.graph.names import Names
from surveyor.outcome import NO_LINKS
from surveyor.rank.comparison import kendall, l1
from surveyor.rank.pagerank import Ranking, SolverOptions, pagerank
from surveyor.simulation.race import Sample
from surveyor.stopping import NO_LIMIT, Progress, ProgressCallback, Rule, is_limit, silent

SEEDS = 10  # default number of seeds: pages of highest PageRank
TOLERANCE = 1e-7  # L1 error of true importance
BEST = 1000  # pages of highest true importance whose order is compared
FIRST_SAMPLE = 10  # fetches before the first comparison
FETCHABLE, GONE, BLOCKED = range(3)  # status of a simulated page, as numbered in the kernels
Seeds = int | str | Sequence[int | str] | Mapping[int, float] | Mapping[str, float] | IdArray | BoolArray

LARGE = 1e300  # weights above are divided by the largest one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationOptions:
    """The conditions of a simulated crawl."""

    damping: float = 0.85
    gone: float | BoolArray = 0.0  # share or mask of the pages that are gone
    block: str | Sequence[str | int] | BoolArray = ()  # hosts, pages or a mask of pages that robots.txt disallows
    budget: int | IntArray | None = None  # maximum number of pages per domain
    domains: IntArray | None = None  # domain id of each page; by default the hosts
    batch: int = 1  # pages fetched between two updates of the priorities
    # Shares of pages per epoch, in which as many pages are requested as there are:
    change_rate: float = 0.0  # whose links change
    birth_rate: float = 0.0  # that are added
    death_rate: float = 0.0  # that are removed
    samples: int = 16  # comparisons of estimated with true importance
    compiled: bool | None = None  # True to require the compiled crawl, False to disable it

    @property
    def changes(self) -> tuple[float, float, float]:
        """The rates of change, birth and death."""
        return self.change_rate, self.birth_rate, self.death_rate

    def check(self) -> None:
        """Raise if a number is out of range."""
        for name in ("change_rate", "birth_rate", "death_rate"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} must be from 0 up to 1, got {getattr(self, name)}", hint="give a share")
        if not isinstance(self.batch, int | np.integer) or self.batch < 1:
            raise UsageError(f"batch must be an integer of at least 1, got {self.batch}", hint="give a number of pages")


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """The simulated web, hidden from strategies."""

    graph: Graph
    seeds: IdArray
    damping: float
    outcomes: ByteArray  # of each page: FETCHABLE, GONE or BLOCKED
    budgets: Budgets | None = None
    notes: tuple[str, ...] = ()
    weights: FloatArray | None = None  # of the seeds, in random jumps; None: equal
    listed: IdArray = field(default_factory=lambda: NO_LINKS)  # pages known in advance that no jump leads to

    def truth(self, graph: Graph | None = None, progress: ProgressCallback = silent) -> Ranking:
        """Return the true importance of each page, of this web or of a changed version of it."""
        graph = graph or self.graph
        gone = np.zeros(graph.pages, np.bool_)
        gone[: self.outcomes.size] = self.outcomes == GONE  # pages added since are fetchable
        graph = _without_links(graph, gone)
        trusted = np.zeros(graph.pages)
        trusted[self.seeds] = 1.0 if self.weights is None else self.weights
        trusted /= trusted.sum()
        return pagerank(graph, self.damping, TOLERANCE, trusted, options=SolverOptions(progress=progress))


def set_up(graph: Graph, seeds: Seeds | None, options: SimulationOptions, rng: np.random.Generator) -> Scenario:
    """Check the options and draw the random parts of a scenario."""
    check_damping(options.damping)
    if graph.pages == 0:
        raise InputError("the graph has no pages", hint="check the input of `graph build`")
    notes = []
    weights, listed = None, NO_LINKS
    if isinstance(seeds, Mapping):
        trusted, weights, listed = _weighted(graph, seeds)
        if np.ptp(weights):
            notes.append(f"weights of the seeds: {weights.min():g} to {weights.max():g}")
        if listed.size:
            notes.append(f"known in advance: {listed.size:,} pages, fetched after all others")
    elif seeds is None:
        trusted = pagerank(graph, tolerance=1e-4).top_ids(SEEDS).astype(np.int32)
        notes.append(f"seeds: the {trusted.size} pages of highest PageRank")
    else:
        trusted = _seeds(graph, [seeds] if isinstance(seeds, str | int) else seeds)
    outcomes = np.zeros(graph.pages, np.uint8)
    blocked = _blocked(graph, options.block)
    outcomes[blocked] = BLOCKED
    if blocked.any():
        notes.append(f"blocked: {int(blocked.sum()):,} pages")
    gone = _gone(graph, options.gone, rng, trusted) & ~blocked
    outcomes[gone] = GONE
    if gone.any():
        notes.append(f"gone: {int(gone.sum()):,} pages, {int(gone[trusted].sum()) or 'no'} seeds among them")
    budgets = None
    if options.budget is not None:
        budgets = _budgets(graph, options.budget, options.domains)
        pages, site = budgets.limits, "host" if options.domains is None else "domain"
        limits = f"{pages.min():,}" if pages.min() == pages.max() else f"{pages.min():,} to {pages.max():,}"
        notes.append(f"budget: {limits} pages for each of {pages.size:,} {site}s")
    return Scenario(graph, trusted, options.damping, outcomes, budgets, tuple(notes), weights, listed)


def _seeds(graph: Graph, seeds: Sequence[int | str] | IdArray | BoolArray) -> IdArray:
    if not len(seeds):
        raise UsageError("seeds must not be empty", hint="pass at least one page to start from")
    if isinstance(seeds, np.ndarray) and seeds.dtype == np.bool_:
        seeds = np.flatnonzero(_mask(graph, np.asarray(seeds, np.bool_), "seeds")).astype(np.int32)
    return np.unique([_page(graph, seed) for seed in seeds]).astype(np.int32)


def _weighted(graph: Graph, seeds: Mapping[Any, float]) -> tuple[IdArray, FloatArray, IdArray]:
    """Return the seeds with a weight above 0, their weights, and the pages of weight 0."""
    pages = {_page(graph, seed): weight for seed, weight in seeds.items()}
    for seed, weight in seeds.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float | np.number) or not 0 <= weight < np.inf:
            raise UsageError(
                f"the weight of a seed must be a number above 0, or 0 for a page known in advance, got {weight!r} "
                f"for {seed!r}",
                hint="for example 2.5",
            )
    ids = np.array(sorted(pages), np.int32)
    weights = np.array([pages[page] for page in ids.tolist()], np.float64)
    if weights.max() > LARGE:  # the sum may exceed any float
        weights /= weights.max()
    if not weights.any():
        raise UsageError("seeds must have a weight above 0", hint="pass at least one page to start from")
    return ids[weights > 0], weights[weights > 0], ids[weights == 0]


def hosts(names: Names) -> tuple[IntArray, list[str]]:
    """Return the host number of each page, and the names of the hosts."""
    numbers: dict[str, int] = {}
    of = np.array([numbers.setdefault(host_of(name), len(numbers)) for name in names], np.int64)
    return of, list(numbers)


def host_of(name: str) -> str:
    """Return the host of a URL with or without a scheme.

    >>> host_of("https://example.org/a/b"), host_of("example.org/a")
    ('example.org', 'example.org')
    """
    return name.split("://", 1)[-1].split("/", 1)[0]


def _page(graph: Graph, seed: Any) -> int:
    if isinstance(seed, str) or graph.labelled:
        return graph.page(seed)
    if not isinstance(seed, int | np.integer) or not 0 <= seed < graph.pages:
        raise UsageError(f"page id must be from 0 to {graph.pages - 1}, got {seed}", hint="name a page of the graph")
    return int(seed)


def _gone(graph: Graph, share: float | BoolArray, rng: np.random.Generator, seeds: IdArray) -> BoolArray:
    if isinstance(share, np.ndarray):
        return _mask(graph, share, "gone")
    if not isinstance(share, int | float) or not 0 <= share < 1:
        raise UsageError(f"gone must be a share from 0 up to 1, got {share}", hint="or give a mask of pages")
    gone = rng.random(graph.pages) < share
    gone[seeds] = False  # a crawl needs fetchable seeds
    return gone


def _blocked(graph: Graph, names: str | Sequence[str | int] | BoolArray) -> BoolArray:
    if isinstance(names, np.ndarray):
        return _mask(graph, names, "block")
    blocked = np.zeros(graph.pages, np.bool_)
    if not len(names):
        return blocked
    words = [names] if isinstance(names, str) else list(names)
    of, found = (None, []) if graph.names is None else hosts(graph.names)
    for word in words:
        if of is not None and word in found:
            blocked |= of == found.index(word)
        elif graph.names is not None and isinstance(word, str) and graph.names.find(word) is None:
            raise UsageError(
                f"block must name a host or page of the graph, got {word!r}",
                hint="write hosts as in the names of pages",
            )
        else:
            blocked[_page(graph, word)] = True
    return blocked


def _mask(graph: Graph, given: BoolArray, what: str) -> BoolArray:
    if given.shape != (graph.pages,) or given.dtype != np.bool_:
        raise UsageError(
            f"{what} must be a boolean mask of {graph.pages:,} pages, got {given.dtype} of shape {given.shape}",
            hint="see the reference of simulate",
        )
    return given


def _budgets(graph: Graph, budget: int | IntArray, domains: IntArray | None) -> Budgets:
    if domains is None:
        if graph.names is None:
            raise UsageError(
                "budget needs domains, because the graph has no names", hint="give `domains`, one per page"
            )
        domains = hosts(graph.names)[0]
    domains = np.asarray(domains, np.int64)
    if domains.shape != (graph.pages,):
        raise UsageError(
            f"domains must have one entry for each of {graph.pages:,} pages, got {domains.size:,}",
            hint="give one domain id per page",
        )
    limits = np.asarray(budget, np.int64)
    if limits.ndim == 0:
        limits = np.full(int(domains.max(initial=-1)) + 1, int(limits))
    if (limits < 1).any():
        raise UsageError(
            f"budget must be at least 1 page, got {limits.min()}", hint="give each domain at least one page"
        )
    return Budgets(domains, limits)


def _without_links(graph: Graph, gone: BoolArray) -> Graph:
    if not gone.any():
        return graph
    degrees = graph.out_degrees
    kept = np.repeat(~gone, degrees)
    indptr = np.concatenate([[0], np.cumsum(np.where(gone, 0, degrees))])
    return Graph(indptr, graph.indices[kept])


def optimal_coverage(truth: FloatArray, outcomes: ByteArray) -> FloatArray:
    """Return the true coverage of the best k fetchable pages, for each k from 1."""
    best: FloatArray = np.cumsum(np.sort(truth[outcomes == FETCHABLE])[::-1])
    return best


@dataclass(frozen=True, slots=True, eq=False)
class RaceSetup:
    """The inputs that all strategies of a race share."""

    scenario: Scenario
    truth: FloatArray
    until: Rule
    options: SimulationOptions
    rng: int
    progress: ProgressCallback

    @property
    def max_fetches(self) -> int:
        """Maximum number of fetches (expected number on a changing web); the last batch may exceed the goal."""
        pages = int(np.count_nonzero(self.scenario.outcomes == FETCHABLE))
        limit = min((self.until.limits() or (0, NO_LIMIT))[1], self.until.remaining(Progress(pages=0)))
        limit += self.options.batch - 1
        repeats = any(self.options.changes) or is_limit(self.until)
        return limit if repeats and limit < NO_LIMIT else min(pages, limit)

    def ledger(self, strategy: Strategy, graph: GrowingGraph) -> Ledger:
        """Create a ledger for a strategy, with room for the whole web."""
        closure, eager = getattr(strategy, "closure", 0.1), getattr(strategy, "eager", True)
        if not isinstance(closure, int | float) or not closure > 0 or not isinstance(eager, bool):
            raise StrategyError(
                f"strategy {name_of(strategy)}: closure must be a number above 0 and eager a bool, "
                f"got {closure!r} and {eager!r}"
            )
        ledger = Ledger(
            graph,
            self.scenario.seeds,
            self.scenario.weights,
            damping=self.scenario.damping,
            push=PushOptions(closure, eager),
            pages=self.scenario.graph.pages,
        )
        ledger.announce(self.scenario.listed)
        return ledger

    def generator(self) -> np.random.Generator:
        """Return a random generator with the same seed for every strategy."""
        return np.random.default_rng([self.rng, 1])


@dataclass(slots=True)
class Accuracy:
    """Compares estimated with true importance after 10 fetches, then at geometrically spaced fetches.

    On a changing web the comparisons are evenly spaced, since the error does not decrease as 1 / fetches there.
    """

    truth: FloatArray
    due: IntArray
    taken: list[Sample] = field(default_factory=list)

    @classmethod
    def of(cls, setup: RaceSetup) -> Accuracy:
        """Schedule the comparisons of a run."""
        if not setup.options.samples:
            return cls(setup.truth, np.array([NO_LIMIT]))
        last = max(setup.max_fetches, 1)
        spaced = np.linspace if any(setup.options.changes) else np.geomspace
        due = np.unique(spaced(min(FIRST_SAMPLE, last), last, setup.options.samples).astype(np.int64))
        return cls(setup.truth, np.append(due, NO_LIMIT))

    @property
    def next(self) -> int:
        """Number of fetches at the next comparison."""
        return int(self.due[len(self.taken)])

    def compare(self, fetches: int, estimate: FloatArray, bound: float | None = None) -> None:
        """Compare an estimate, which has this bound on its error, with the truth and append a sample."""
        estimate = np.append(estimate, np.zeros(max(0, self.truth.size - estimate.size)))[: self.truth.size]
        best = np.argpartition(-self.truth, BEST)[:BEST] if self.truth.size > BEST else np.arange(self.truth.size)
        tau = kendall(estimate[best], self.truth[best])
        self.taken.append(Sample(fetches, l1(estimate, self.truth), tau, bound))
        skipped = int(np.searchsorted(self.due, fetches, "right"))
        self.due = np.concatenate([np.zeros(len(self.taken), np.int64), self.due[skipped:]])


def with_final(bounds: Sequence[float] | FloatArray, last: float) -> FloatArray:
    """Return bounds whose last entry includes all that followed the last fetch: gone pages and the final closure."""
    array = np.array(bounds, np.float64)
    array[-1:] = last
    return array


def describe_stop(ending: Ending, coverage: CoverageInterval) -> str:
    """Describe why a crawl stopped."""
    if ending == "reached":
        return "the goal is reached"
    stuck = coverage.blocked + coverage.lost
    where = f"{100 * stuck:.1f} % of the mass is on pages that cannot be fetched"
    if ending == "unreachable":
        return f"{where}, so at most {100 * (1 - stuck):.1f} % can be guaranteed"
    return "the strategy has no more pages to fetch" + (f"; {where}" if stuck >= 0.001 else "")
