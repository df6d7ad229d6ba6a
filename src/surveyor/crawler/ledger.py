"""Where all importance is during a crawl: five accounts that always sum to 1.

Importance is PageRank with jumps to the trusted seeds. It starts as a unit of mass on the seeds. Each page that
is read settles a part 1 − d (d is the damping) of the mass that has reached it and hands the rest to its links;
a page without links hands it back to the seeds. Every unit is

- *captured*: settled on fetched pages,
- *moving*: in transit, on pages already read or back to the seeds,
- *waiting*: on known pages that are not fetched yet,
- *blocked*: on pages that may not or cannot be read now (robots, budget, a temporary error), or
- *lost*: on pages that are permanently gone.

**Coverage** is the share of importance that the fetched pages hold. It is bounded from both sides, without knowledge of
the rest of the web:

    captured + (1 − d)·moving − N  ≤  coverage  ≤  1 − lost − (1 − d)·(waiting + blocked) + N

because importance = settled + Σ residual_i · (importance with all jumps to i), and each page keeps at least 1 − d
of its own residual wherever its links lead. N is the size of negative residuals: 0 unless a fetched page
again had changed, and then the lower bound may fall. (Mass returning to the seeds, and all but a part 1 − d of the
mass on pages that are gone, counts for neither bound.)

**Assumptions**: the bounds hold for every web in which fetched pages have exactly the links as fetched, aliases are
merged (a page that linked to both keeps both links), pages gone have no links, and all other pages have arbitrary
links.

**Aliases**: on a real web a waiting or blocked page may turn out to be another URL of a fetched page, so that its
mass was covered before. A ledger with `aliases` allows for this, and only mass on pages gone lowers its upper bound:
1 − lost + N (of mass that has just arrived on pages gone, 1 − d counts as lost).

**Closure**: mass on pages already read can be pushed further without a download. After each page the ledger does so
wherever it exceeds about `closure` times the largest mass that can be fetched now, within `effort` link updates per
fetched page on average. That is the largest waiting mass, or the mass of recently fetched pages if it is smaller: then
the pages with more mass wait for a retry. (A falling threshold is followed with some lag; `close` follows it at once,
and `deepen` pushes to a given threshold, where that may reach the goal of a crawl.) RankMass: Cho and
Schonfeld 2007; the push: Andersen, Chung and Lang 2006. 17 bytes per page; time linear in the link updates.

    >>> from surveyor.graph.growing import GrowingGraph
    >>> graph = GrowingGraph()
    >>> ledger = Ledger(graph, [0])
    >>> old = graph.put(0, np.array([1, 2], np.int32))
    >>> ledger.observe(Outcome(0, "fetched", graph.links_of(0)), old)
    False
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
from surveyor.errors import UsageError, check_range
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import NO_LINKS, Kind, Outcome

KINDS = get_args(Kind)
DUST = 1e-15  # rounding error: an account below this is empty
TOUCHED = 1 << 16  # pages whose changes are listed; beyond, all waiting pages count as changed


@dataclass(frozen=True, slots=True, repr=False)
class CoverageInterval:
    """Bounds on the coverage of the fetched pages, and the five accounts."""

    at_least: float
    at_most: float
    captured: float
    moving: float
    waiting: float
    blocked: float
    lost: float

    def to_dict(self) -> dict[str, float]:
        """Return the fields as a dict."""
        return asdict(self)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value:.4f}" for name, value in asdict(self).items())
        return f"CoverageInterval({numbers})"


@dataclass(frozen=True, slots=True)
class PushOptions:
    """When and how far a ledger pushes mass that is moving."""

    closure: float = 0.1  # pages above this part of the mean residual of queued pages are pushed
    eager: bool = True  # push after each outcome; otherwise only in `close` and `sweep`
    effort: float = math.inf  # link updates per page, on average
    precision: float = 1e-4  # mass that may stay in motion when no page is queued

    def __post_init__(self) -> None:
        for name, value in (("closure", self.closure), ("precision", self.precision)):
            check_range(name, value, "(0, inf]", hint="for example 0.1")
        check_range("effort", self.effort, "[0, inf]", hint="link updates per page, or inf")


PUSH = PushOptions()


class Ledger:
    """The accounts of one crawl."""

    def __init__(
        self,
        graph: GrowingGraph,
        seeds: Sequence[int] | IdArray,
        weights: Sequence[float] | FloatArray | None = None,
        *,
        damping: float = 0.85,
        push: PushOptions = PUSH,
        pages: int = 1024,
        aliases: bool = False,
    ) -> None:
        """Put all mass on the seeds, by weight or evenly.

        With `aliases`, any page without a response may be an alias of a fetched page; without, only pages whose outcome
        says so are. `pages` is the initial capacity, which grows as needed.
        """
        from surveyor.kernels.mass import new_mass

        check_damping(damping)
        self.graph = graph
        self.damping, self.aliases = damping, aliases
        self.seeds, self.teleport = _trusted(seeds, weights)
        self._pages = max(pages, int(self.seeds.max()) + 1, graph.size)
        rules = damping, push.closure, push.precision, push.effort, float(push.eager)
        self._summary = np.empty(7)
        self._is_reported = True  # whether a strategy has seen the touched pages
        self.mass = new_mass(self._pages, self.seeds, self.teleport, rules, TOUCHED)
        self.listed: IdArray = NO_LINKS  # pages known in advance that no jump leads to

    def observe(self, outcome: Outcome, old_links: IdArray) -> bool:
        """Update the accounts for an outcome; the graph already holds its links, `old_links` are the previous ones.

        Return whether the outcome contradicts an earlier one: the page was fetched or gone, and has changed.
        """
        from surveyor.kernels import mass

        self._check(outcome)
        self._make_room(max(outcome.page, outcome.target, self.graph.size - 1))
        self._start_event()
        self._is_reported = True
        page, life = outcome.page, self.mass.state[outcome.page] & mass.STATUS
        if life == mass.REDIRECTED:
            return False  # its mass was merged into another page
        if outcome.kind == "blocked":
            if life in (mass.UNKNOWN, mass.WAITING):
                mass.set_status(self.mass, page, mass.BLOCKED)
            return False
        revived = life == mass.GONE and outcome.kind != "gone"
        changed = life == mass.FETCHED and not (outcome.kind == "fetched" and _same(old_links, outcome.links))
        if revived or changed:
            mass.retract(self.mass, page, old_links[:0] if revived else old_links)
        if outcome.kind == "fetched":
            mass.step(self.mass, self.graph.rows, page)
        elif outcome.kind == "gone":
            mass.record_gone(self.mass, self.graph.rows, page)
        else:
            self._alias(page, outcome.target)
        return bool(revived or changed)

    def announce(self, pages: IdArray) -> None:
        """Add the listed pages, except seeds; once, before the first page."""
        self._make_room(int(pages.max(initial=-1)))
        self.hear(pages)
        self.listed = np.setdiff1d(pages, self.seeds).astype(np.int32)

    def hear(self, pages: IdArray) -> None:
        """Add unknown pages as waiting, without mass, though no fetched page links to them."""
        from surveyor.kernels import mass

        self._make_room(int(pages.max(initial=-1)))
        mass.discover(self.mass, pages, 0, pages.size)

    def _alias(self, page: int, target: int) -> None:
        from surveyor.kernels import mass

        mass.discover(self.mass, np.array([page, target], np.int32), 0, 2)
        target = int(mass.redirect_target(self.mass, target))
        if target == page:  # a loop of aliases: there is no page to read
            mass.set_status(self.mass, page, mass.BLOCKED)
        else:
            mass.merge(self.mass, page, target)
        if self.mass.rules[mass.EAGER]:
            mass.close(self.mass, self.graph.rows)

    def close(self) -> None:
        """Push all mass above the threshold on pages already read, without limit of effort."""
        from surveyor.kernels.mass import settle

        settle(self.mass, self.graph.rows)

    def deepen(self, threshold: float) -> None:
        """Push all mass above a threshold on pages already read, without limit of effort."""
        from surveyor.kernels.mass import LEAST_MOVING, deepen

        least = (
            LEAST_MOVING / 2 / max(self._known_anywhere, 1)
        )  # of a threshold that a crawl uses; less takes much longer
        self._start_event()
        deepen(self.mass, self.graph.rows, max(threshold, least))

    def _start_event(self) -> None:
        """Clear the touched pages, unless they are of pushes that no outcome has followed yet."""
        from surveyor.kernels.mass import clear_touched

        if self._is_reported:
            clear_touched(self.mass)
        self._is_reported = False

    def sweep(self) -> None:
        """Push the mass of every fetched page, once."""
        from surveyor.kernels.mass import sweep

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
        """Waiting pages that were discovered or whose mass changed by the last outcome and pushes before it; a copy."""
        from surveyor.kernels import mass

        if self.mass.counts[mass.OVERFLOW]:
            return self.waiting
        pages = self.mass.touched[: self.mass.counts[mass.COUNT]]
        still: IdArray = pages[self.mass.state[pages] & mass.STATUS == mass.WAITING]
        return still

    @property
    def waiting(self) -> IdArray:
        """All known pages that are not fetched yet."""
        from surveyor.kernels import mass

        return np.flatnonzero(self.mass.state & mass.STATUS == mass.WAITING).astype(np.int32)

    def stands_for(self) -> IdArray:
        """Return, for each page, the page it is an alias of, or itself."""
        from surveyor.kernels import mass

        alias = (self.mass.state & mass.STATUS) == mass.REDIRECTED
        final = np.arange(alias.size, dtype=np.int32)
        final[alias] = self.mass.settled[alias]
        while not np.array_equal(further := final[final], final):
            final = further
        return final

    @property
    def capacity(self) -> int:
        """Number of pages there is room for: one more than the largest page id."""
        return self._pages

    @property
    def known(self) -> int:
        """Number of known pages."""
        from surveyor.kernels.mass import KNOWN

        return int(self.mass.counts[KNOWN])

    @property
    def _known_anywhere(self) -> int:
        """Number of known pages of the whole crawl, roughly."""
        return self.known

    @property
    def read(self) -> int:
        """Number of pages that were fetched and are not gone."""
        from surveyor.kernels.mass import FETCHES

        return int(self.mass.counts[FETCHES])

    @property
    def link_updates(self) -> int:
        """Number of times a share of mass was pushed over a link."""
        from surveyor.kernels.mass import UPDATES

        return int(self.mass.counts[UPDATES])

    @property
    def state(self) -> ByteArray:
        """State of each page (constants in `kernels/mass.py`), with flags above the low three bits; read-only."""
        view: ByteArray = read_only(self.mass.state)
        return view

    @property
    def residual(self) -> FloatArray:
        """Mass that has arrived on each page and was not pushed further; read-only."""
        view: FloatArray = read_only(self.mass.residual)
        return view

    def importance(self) -> FloatArray:
        """Estimate the importance of each page: its lower bound, scaled to sum 1."""
        from surveyor.kernels import mass

        alias = self.mass.state & mass.STATUS == mass.REDIRECTED
        sure = np.where(alias, 0.0, self.mass.settled) + (1 - self.damping) * np.maximum(self.mass.residual, 0.0)
        return np.maximum(sure, 0.0) / max(float(np.maximum(sure, 0.0).sum()), 1e-300)

    def importance_of(self, page: int) -> float:
        """Return a lower bound on the importance of a page."""
        from surveyor.kernels import mass

        if not 0 <= page < self._pages or self.mass.state[page] & mass.STATUS == mass.REDIRECTED:
            return 0.0  # the mass of an alias belongs to its target
        return float(self.mass.settled[page] + (1 - self.damping) * max(self.mass.residual[page], 0.0))

    def _check(self, outcome: Outcome) -> None:
        """Reject outcomes that would make the accounts wrong."""
        self._check_ids(outcome)
        page = outcome.page
        if outcome.kind == "fetched" and self.graph.links_of(page).size != outcome.links.size:
            raise UsageError(f"the graph does not have the links of page {page}", hint="call graph.put before observe")

    def _check_ids(self, outcome: Outcome) -> None:
        """Reject kinds and page ids that do not exist."""
        page, target = outcome.page, outcome.target
        if outcome.kind not in KINDS:
            raise UsageError(f"no kind of outcome {outcome.kind!r}", hint=f"there are {', '.join(KINDS)}")
        if not 0 <= page < MAX_PAGES or not (0 if outcome.kind == "redirected" else -1) <= target < MAX_PAGES:
            raise UsageError(f"no page {target if 0 <= page < MAX_PAGES else page}", hint="page ids start at 0")

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
    """Return whether two lists of links are equal, in any order."""
    return old.size == new.size and (np.array_equal(old, new) or np.array_equal(np.sort(old), np.sort(new)))


def check_damping(damping: float) -> None:
    """Reject a damping with which mass would never settle or never move."""
    check_range("damping", damping, "(0, 1)", hint="it is the probability of following a link, such as 0.85")


def _trusted(
    seeds: Sequence[int] | IdArray, weights: Sequence[float] | FloatArray | None
) -> tuple[IdArray, FloatArray]:
    given = np.asarray(seeds)
    if given.size == 0:
        raise UsageError("there are no seeds", hint="pass at least one page to start from")
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
