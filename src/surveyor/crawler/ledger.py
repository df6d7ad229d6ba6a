"""Where all importance is while a crawl goes on: five accounts that sum to 1, always.

Importance is PageRank with jumps to the trusted seeds. It starts as a unit of mass on the seeds. Each page that
is read settles a part 1 − d (d is the damping) of the mass that has reached it and hands the rest to its links;
a page without links hands it back to the seeds. Every unit is

- *captured*: settled on pages that were read,
- *moving*: on its way, on pages already read or back to the seeds,
- *waiting*: on known pages that were not read yet,
- *blocked*: on pages that may not or cannot be read now (robots, budget, an error that may pass), or
- *lost*: on pages that are gone for good.

**Coverage** is the share of importance that the pages read hold. It is known from both sides, without having
seen the rest of the web:

    captured + (1 − d)·moving − N  ≤  coverage  ≤  1 − lost − (1 − d)·(waiting + blocked) + N

because importance = settled + Σ residual_i · (importance with all jumps to i), and each page keeps at least 1 − d
of its own residual wherever its links lead. N is the size of negative residuals: 0 unless a page that was read
again had changed, and then the lower bound may fall. (Mass on its way back to the seeds, and of mass on pages
that are gone all but 1 − d, counts for neither bound.)

**Truth** is any web in which pages that were read have just the links as fetched, aliases are merged (a page
that linked to both keeps both links), pages gone have no links, and all other pages have any links at all.

**Addresses of one page**: on a real web a page that has not answered, waiting or blocked, may turn out to be another
address of a page read: its mass was covered all along. A ledger with `aliases` allows for it, and only what is gone
lowers its upper bound: 1 − lost + N (of mass that has just arrived on pages gone, 1 − d counts as lost).

**Closure**: mass on pages already read can be pushed on without a download. After each page the ledger does so
wherever it exceeds about `closure` times the largest waiting mass, within `effort` link updates per page read on
average. (A threshold that falls is followed after some work; `close` follows it at once.) RankMass: Cho and
Schonfeld 2007; the push: Andersen, Chung and Lang 2006. 17 bytes per page; time linear in the link updates.

    >>> from surveyor.graph.growing import GrowingGraph
    >>> graph = GrowingGraph()
    >>> ledger = Ledger(graph, [0])
    >>> old = graph.put(0, np.array([1, 2], np.int32))
    >>> ledger.observe(Outcome(0, "read", graph.links_of(0)), old)
    >>> coverage = ledger.coverage()
    >>> round(coverage.at_least, 4), round(coverage.at_most, 4), round(coverage.waiting, 4)
    (0.15, 0.8725, 0.85)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import get_args

import numpy as np

from surveyor.arrays import MAX_PAGES, ByteArray, FloatArray, IdArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import Kind, Outcome

KINDS = get_args(Kind)
DUST = 1e-15  # an account that holds less is empty but for rounding
TOUCHED = 1 << 16  # pages whose changes are told one by one; beyond, all waiting pages count as changed


@dataclass(frozen=True, slots=True, repr=False)
class CoverageInterval:
    """How much of all importance the pages read hold, and where the rest is."""

    at_least: float
    at_most: float
    captured: float
    moving: float
    waiting: float
    blocked: float
    lost: float

    def to_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        return asdict(self)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value:.4f}" for name, value in asdict(self).items())
        return f"CoverageInterval({numbers})"


class Ledger:
    """The accounts of one crawl."""

    def __init__(
        self,
        graph: GrowingGraph,
        seeds: Sequence[int] | IdArray,
        weights: Sequence[float] | FloatArray | None = None,
        *,
        damping: float = 0.85,
        closure: float = 0.1,
        eager: bool = True,
        effort: float = math.inf,
        precision: float = 1e-4,
        pages: int = 1024,
        aliases: bool = False,
    ) -> None:
        """Put all mass on the seeds, by weight or evenly; when no page waits, closure leaves about `precision`.

        With `aliases`, any page that has not answered may stand for one that was read; without, none does unasked.

        A ledger that is not `eager` pushes nothing by itself, only in `close` and `sweep`. There is room for
        so many `pages`; more comes as needed.
        """
        from surveyor.kernels.mass import new_mass

        check_damping(damping)
        for name, value in (("closure", closure), ("precision", precision)):
            if not value > 0:
                raise UsageError(f"{name} is {value:g}", hint="give a number above 0")
        if not effort >= 0:
            raise UsageError(f"the effort is {effort:g}", hint="give the link updates per page, or inf")
        self.graph = graph
        self.damping, self.aliases = damping, aliases
        self.seeds, self.teleport = _trusted(seeds, weights)
        self._pages = max(pages, int(self.seeds.max()) + 1, graph.size)
        rules = damping, closure, precision, effort, float(eager)
        self._summary = np.empty(7)
        self.mass = new_mass(self._pages, self.seeds, self.teleport, rules, TOUCHED)

    def observe(self, outcome: Outcome, old_links: IdArray) -> None:
        """Account for what happened to a page; the graph holds its links already, `old_links` are those before."""
        from surveyor.kernels import closure, mass

        self._check(outcome)
        self._make_room(max(outcome.page, outcome.target, self.graph.size - 1))
        mass.forget_touched(self.mass)
        page, life = outcome.page, self.mass.state[outcome.page] & mass.LIFE
        if life == mass.ALIAS:
            return  # its mass is elsewhere for good
        if outcome.kind == "blocked":
            if life in (mass.UNKNOWN, mass.WAITING):
                mass.turn(self.mass, page, mass.BLOCKED)
            return
        if life == mass.DEAD and outcome.kind != "gone":
            mass.undo(self.mass, page, old_links[:0])
        elif life == mass.READ and not (outcome.kind == "read" and _same(old_links, outcome.links)):
            mass.undo(self.mass, page, old_links)
        if outcome.kind == "read":
            closure.step(self.mass, self.graph.rows, page)
        elif outcome.kind == "gone":
            closure.bury(self.mass, self.graph.rows, page)
        else:
            self._alias(page, outcome.target)

    def hear(self, pages: IdArray) -> None:
        """Let pages wait that were never heard of, though no page read links to them; they have no mass."""
        from surveyor.kernels import mass

        self._make_room(int(pages.max(initial=-1)))
        mass.discover(self.mass, pages, 0, pages.size)

    def _alias(self, page: int, target: int) -> None:
        from surveyor.kernels import closure, mass

        mass.discover(self.mass, np.array([page, target], np.int32), 0, 2)
        target = int(mass.stands_for(self.mass, target))
        if target == page:  # round in a circle: there is no page to read
            mass.turn(self.mass, page, mass.BLOCKED)
        else:
            mass.merge(self.mass, page, target)
        if self.mass.rules[mass.EAGER]:
            closure.close(self.mass, self.graph.rows)

    def close(self) -> None:
        """Push on what exceeds the threshold on pages already read, without limit of effort."""
        from surveyor.kernels.closure import settle

        settle(self.mass, self.graph.rows)

    def sweep(self) -> None:
        """Push every page that was read once."""
        from surveyor.kernels.closure import sweep

        sweep(self.mass, self.graph.rows)

    def coverage(self) -> CoverageInterval:
        """Return the accounts and both bounds."""
        from surveyor.kernels.mass import summary

        summary(self.mass, self._summary)
        self._summary[np.abs(self._summary) < DUST] = 0.0
        now = CoverageInterval(*self._summary.tolist())
        if not self.aliases:
            return now
        silent = max(now.waiting, 0.0) + max(now.blocked, 0.0)
        return replace(now, at_most=min(1.0, now.at_most + (1 - self.damping) * silent))

    @property
    def touched(self) -> IdArray:
        """Waiting pages that became known or whose mass changed in the last event; a copy."""
        from surveyor.kernels import mass

        if self.mass.counts[mass.OVERFLOW]:
            return self.waiting
        pages = self.mass.touched[: self.mass.counts[mass.COUNT]]
        still: IdArray = pages[self.mass.state[pages] & mass.LIFE == mass.WAITING]
        return still

    @property
    def waiting(self) -> IdArray:
        """All known pages that were not read yet."""
        from surveyor.kernels import mass

        return np.flatnonzero(self.mass.state & mass.LIFE == mass.WAITING).astype(np.int32)

    def stands_for(self) -> IdArray:
        """Return, for each page, the page that it is another address of, or itself."""
        from surveyor.kernels import mass

        alias = (self.mass.state & mass.LIFE) == mass.ALIAS
        final = np.arange(alias.size, dtype=np.int32)
        final[alias] = self.mass.settled[alias]
        while not np.array_equal(further := final[final], final):
            final = further
        return final

    @property
    def capacity(self) -> int:
        """One more than the largest page id there is room for."""
        return self._pages

    @property
    def known(self) -> int:
        """How many pages were heard of."""
        from surveyor.kernels.mass import KNOWN

        return int(self.mass.counts[KNOWN])

    @property
    def read(self) -> int:
        """How many pages were read and are not gone."""
        from surveyor.kernels.mass import READS

        return int(self.mass.counts[READS])

    @property
    def link_updates(self) -> int:
        """How many shares of mass were handed over a link."""
        from surveyor.kernels.mass import UPDATES

        return int(self.mass.counts[UPDATES])

    @property
    def state(self) -> ByteArray:
        """The life of each page (`kernels/mass.py` names them), with flags above the low three bits; read-only."""
        view: ByteArray = read_only(self.mass.state)
        return view

    @property
    def residual(self) -> FloatArray:
        """The mass that has arrived on each page and was not passed on; read-only."""
        view: FloatArray = read_only(self.mass.residual)
        return view

    def importance(self) -> FloatArray:
        """Return an estimate of the importance of each page: what it is sure to keep, scaled to sum 1."""
        from surveyor.kernels import mass

        alias = self.mass.state & mass.LIFE == mass.ALIAS
        sure = np.where(alias, 0.0, self.mass.settled) + (1 - self.damping) * np.maximum(self.mass.residual, 0.0)
        return np.maximum(sure, 0.0) / max(float(np.maximum(sure, 0.0).sum()), 1e-300)

    def importance_of(self, page: int) -> float:
        """Return the least importance that a page is sure to have."""
        from surveyor.kernels import mass

        if not 0 <= page < self._pages or self.mass.state[page] & mass.LIFE == mass.ALIAS:
            return 0.0  # what an alias earns, the page it stands for has
        return float(self.mass.settled[page] + (1 - self.damping) * max(self.mass.residual[page], 0.0))

    def _check(self, outcome: Outcome) -> None:
        """Refuse what would make the accounts wrong."""
        page, target = outcome.page, outcome.target
        if outcome.kind not in KINDS:
            raise UsageError(f"no kind of outcome {outcome.kind!r}", hint=f"there are {', '.join(KINDS)}")
        if not 0 <= page < MAX_PAGES or not (0 if outcome.kind == "moved" else -1) <= target < MAX_PAGES:
            raise UsageError(f"no page {target if 0 <= page < MAX_PAGES else page}", hint="page ids start at 0")
        if outcome.kind == "read" and self.graph.links_of(page).size != outcome.links.size:
            raise UsageError(f"the graph does not have the links of page {page}", hint="call graph.put before observe")

    def _make_room(self, largest: int) -> None:
        if largest < self._pages:
            return
        room = max(largest + 1, 2 * self._pages) - self._pages
        residual = np.concatenate([self.mass.residual, np.zeros(room)])
        self.mass = self.mass._replace(
            residual=residual,
            bits=residual.view(np.uint64),
            settled=np.concatenate([self.mass.settled, np.zeros(room)]),
            state=np.concatenate([self.mass.state, np.zeros(room, np.uint8)]),
        )
        self._pages += room


def _same(old: IdArray, new: IdArray) -> bool:
    """Compare links in any order."""
    return old.size == new.size and (np.array_equal(old, new) or np.array_equal(np.sort(old), np.sort(new)))


def check_damping(damping: float) -> None:
    """Refuse a damping with which mass would never settle, or never move."""
    if not 0 < damping < 1:
        raise UsageError(f"damping is {damping:g}", hint="give a number between 0 and 1, such as 0.85")


def _trusted(
    seeds: Sequence[int] | IdArray, weights: Sequence[float] | FloatArray | None
) -> tuple[IdArray, FloatArray]:
    given = np.asarray(seeds)
    if given.size == 0:
        raise UsageError("there are no seeds", hint="name at least one page to start from")
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise UsageError("seeds are not page ids", hint="give whole numbers, one per seed")
    if given.min() < 0 or given.max() >= MAX_PAGES:
        raise UsageError(f"no page {given.min() if given.min() < 0 else given.max()}", hint="page ids start at 0")
    pages = given.astype(np.int32)
    shares = np.ones(pages.size) if weights is None else np.asarray(weights, np.float64)
    if shares.shape != pages.shape or not (np.isfinite(shares).all() and (shares > 0).all()):
        raise UsageError("the weights of the seeds are not one number above 0 for each", hint="drop seeds of weight 0")
    distinct, where = np.unique(pages, return_inverse=True)
    merged = np.bincount(where, shares / shares.max()).astype(np.float64)
    return read_only(distinct), read_only(merged / merged.sum())
