"""OPIC: importance computed online, while pages are fetched and without storing links (Abiteboul et al. 2003).

Cash circulates as pages are fetched: a page distributes its cash over its links, and a part 1 − damping of it through a
virtual page to the teleport pages. The earnings of a page are proportional to its PageRank. `kernels/opic_cash.py`
explains how pages that are discovered, gone or redirected are handled, and why no cash is ever created or lost.

Under a stopping rule that limits requests or time and has no coverage goal, pages are fetched again and again, by
policy; otherwise each page is fetched once.

- `policy`: *greedy* fetches the page with most cash next, so that pages are refetched in proportion to their
  importance, except a share `fairness` of the fetches, which goes to each page in turn; *cycle* fetches the page
  fetched or discovered longest ago; *random* any page.
- `damping`: by default that of the ledger.
- `teleport`: *trusted* jumps to the seeds (link farms and traps never get free cash), *uniform* to all known pages.

The estimate is G(H) of `kernels/opic_cash.py`. Greedy fetches few pages often while others are not fetched yet, so
there a prior of the size of all cash is added, less of it as the share of known pages that were never fetched falls
below two thirds: three quarters of it are the teleport vector, which the estimate as printed in the paper contains as
the initial cash, one quarter is the cash where it is now. The weights were chosen by experiment
(docs/explanation/crawl-order.md).

The estimate converges to PageRank with jumps to the teleport pages, also from pages without links, with an error
that decreases as 1 / (cash moved); `bound` bounds it while pages keep their links. For a changing web,
`adaptive.py` discards old earnings. About 95 bytes per page; the time of a fetch is proportional to its links.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, get_args

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.errors import UsageError, check_range
from surveyor.outcome import NO_LINKS, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from surveyor.kernels.mass import Rows
    from surveyor.kernels.opic_cash import Cash, Earnings
    from surveyor.kernels.opic_visits import PriorityChanges
    from surveyor.kernels.priority_queues import Queue

Policy = Literal["greedy", "cycle", "random"]
Teleport = Literal["trusted", "uniform"]
DEFAULTS = {"policy": "greedy", "teleport": "trusted", "fairness": 0.05, "window": "bao"}
LARGE = 1 << 17  # pages above which room grows by a quarter instead of doubling
ROUNDING = 4e-16  # rounding error of each number that a fetch changes
LARGEST = 2.0  # L1 distance of two distributions
PRIOR = 1.5  # weight of the prior, in units of all cash and per share of unread pages; at most 1
HELD = 0.25  # part of the prior that is the cash on the pages; the rest is the teleport vector


class Bound(NamedTuple):
    """A bound on the L1 error of an estimate, or the reason why there is none."""

    error: float | None
    reason: str = ""


def spelled(name: str, first: str, **values: object) -> str:
    """Return the name of a strategy with the arguments that are not defaults; `first` may be given without its name.

    >>> spelled("opic", "policy", policy="greedy"), spelled("opic", "policy", policy="cycle", damping=0.5)
    ('opic', 'opic:policy=cycle,damping=0.5')
    """
    given = {key: value for key, value in values.items() if value is not None and DEFAULTS.get(key) != value}
    if list(given) == [first]:
        return f"{name}:{given[first]}"
    words = ",".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in given.items()
    )
    return f"{name}:{words}" if words else name


class Seeds(Protocol):
    """The part of a ledger that OPIC uses."""

    @property
    def seeds(self) -> IdArray:
        """The seed pages."""

    @property
    def teleport(self) -> FloatArray:
        """Their weights."""

    @property
    def damping(self) -> float:
        """The probability of following a link."""

    @property
    def capacity(self) -> int:
        """Number of pages to make room for."""


class Opic:
    """Order by cash; the importance of a page is its share of all cash earned."""

    cash: Cash
    changes: PriorityChanges
    rereads: Literal["limited"] = "limited"
    parameters: ClassVar[dict[str, Callable[[str], object]]] = {
        "policy": str,
        "damping": float,
        "teleport": str,
        "fairness": float,
    }

    def __init__(
        self,
        policy: Policy = "greedy",
        damping: float | None = None,
        teleport: Teleport = "trusted",
        fairness: float = 0.05,
    ) -> None:
        if policy not in get_args(Policy):
            raise UsageError(f"policy must be greedy, cycle or random, got {policy!r}", hint="for example opic:cycle")
        if teleport not in get_args(Teleport):
            raise UsageError(f"teleport must be trusted or uniform, got {teleport!r}", hint="the default is trusted")
        check_range("damping", damping, "(0, 1)", hint="for example 0.85")
        check_range("fairness", fairness, "[0, 1)", hint="give a share of the fetches, such as 0.05")
        self.policy, self.teleport, self.fairness = policy, teleport, fairness
        self.damping: float = math.nan if damping is None else damping  # set from the ledger in `begin`
        self.name = spelled("opic", "policy", policy=policy, damping=damping, teleport=teleport, fairness=fairness)

    def begin(self, ledger: Seeds, graph: object, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Give all cash to the seeds; the graph is not needed."""
        from surveyor.kernels import opic_visits
        from surveyor.kernels.opic_cash import new_cash

        if math.isnan(self.damping):
            self.damping = ledger.damping
        uniform, pages = self.teleport == "uniform", max(ledger.capacity, int(ledger.seeds.max()) + 1)
        self.cash = new_cash(pages, self.damping, self._earnings(pages), uniform=uniform)
        policy = (opic_visits.GREEDY, opic_visits.CYCLE, opic_visits.RANDOM)[get_args(Policy).index(self.policy)]
        self.changes = opic_visits.new_priority_changes(pages, policy, self.fairness, int(rng.integers(1 << 63)))
        self._target = np.arange(pages, dtype=np.int32)  # redirect target of each page, or itself
        self._redirects = 0
        self._queue: Queue | None = None
        listed = getattr(ledger, "listed", NO_LINKS)  # known pages that no jump leads to
        first = np.concatenate([ledger.seeds, listed])
        weights = np.ones(first.size) if uniform else np.append(ledger.teleport, np.zeros(listed.size))
        self._make_pairs(first.size)
        with np.errstate(over="ignore"):  # random numbers wrap on purpose
            opic_visits.start_opic(self.cash, self.changes, first, weights)
        return self._reorder()

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Distribute the cash of the page; return the priorities that changed."""
        from surveyor.kernels import opic_visits
        from surveyor.kernels.opic_cash import BLOCKED, GONE, KNOWN, link_set_of

        # Writable, or the kernels would be compiled for both kinds.
        named = np.array(outcome.links if outcome.kind == "fetched" else NO_LINKS, np.int32)
        links = self.final_targets(named)
        self._make_room(max(outcome.page, outcome.target, int(links.max(initial=0))) + 1)
        self._make_pairs(links.size + 2)
        page = target = outcome.page
        if outcome.kind == "redirected":
            target = int(self.final_targets(np.array([outcome.target]))[0])
            self._redirects += self._target[page] == page
        self._target[page] = target
        with np.errstate(over="ignore"):
            if target != page:
                opic_visits.redirect(self.cash, self.changes, page, target)
            else:  # a page that redirects in a loop is blocked
                state = {"fetched": KNOWN, "gone": GONE}.get(outcome.kind, BLOCKED)
                link_set = np.uint64(link_set_of(named, 0, named.size))  # kernels return ints
                opic_visits.visit(self.cash, self.changes, page, links, (0, links.size), state, link_set)
        return self._reorder()

    def run(self, rows: Rows, fetches: int, gone: BoolArray | None = None) -> IdArray:
        """Fetch `fetches` pages of known rows in one kernel, instead of calling `observe`; return them in order.

        Pages are fetched repeatedly. Rows may differ in the next call, for a changing web.
        """
        from surveyor.kernels import opic_visits
        from surveyor.kernels.priority_queues import new_queue

        gone = np.zeros(rows.start.size, np.bool_) if gone is None else gone
        if self._queue is None:
            self._queue = new_queue(self._target.size)
            opic_visits.apply_changes(self._queue, self.changes)
        self._make_room(rows.start.size)
        if self._queue.priority.size < self._target.size:
            larger = new_queue(self._target.size)
            opic_visits.copy_queue(larger, self._queue)
            self._queue = larger
        taken, done = np.empty(fetches, np.int32), 0
        while done < fetches:
            with np.errstate(over="ignore"):
                now = opic_visits.run_opic(self.cash, self.changes, rows, gone, self._queue, taken[done:])
            done += now
            if not now and not self._make_pairs(rows.start.size + 2):
                break
        return taken[:done]

    def importance(self) -> FloatArray:
        """Return the estimated PageRank of each page; it sums to 1."""
        shares = self.ahead() + self._prior()
        if not shares.any():  # nothing has been earned yet
            shares = self._jumps()
        if not shares.any():  # and there is no teleport page
            shares = np.minimum(self.cash.state, 1).astype(np.float64)
        return shares / float(shares.sum())

    def certificate(self) -> float:
        """Return an upper bound on the L1 distance of `importance` from PageRank; 2, the largest, if there is none."""
        error = self.bound().error
        return LARGEST if error is None else error

    def bound(self) -> Bound:
        """Return an upper bound on the L1 distance of `importance` from PageRank of the links as fetched.

        It holds whatever the links of pages not fetched yet are. There is none once a page had other links when it was
        fetched again.
        """
        from surveyor.kernels.opic_cash import CHANGED

        if changed := int(self.cash.counts[CHANGED]):
            return Bound(None, f"no bound: links have changed ({changed:,} page{'s' * (changed != 1)})")
        return Bound(self._error_bound())

    @property
    def reads(self) -> int:
        """Number of outcomes that moved cash."""
        from surveyor.kernels.opic_cash import FETCHES

        return int(self.cash.counts[FETCHES])

    def ahead(self) -> FloatArray:
        """Return the earnings of each page, with PLAIN earnings one step of the power method ahead."""
        from surveyor.kernels.opic_cash import estimate

        ahead = np.zeros(self._target.size)
        estimate(self.cash, ahead)
        return ahead

    def _prior(self) -> FloatArray:
        """Return what is added to PLAIN earnings of greedy while many known pages are not fetched yet."""
        from surveyor.kernels.opic_cash import KIND, KNOWN, PLAIN

        if self.policy != "greedy" or self.cash.earnings.counts[KIND] != PLAIN:
            return np.zeros(self._target.size)
        known = self.cash.state == KNOWN
        unread = np.count_nonzero(known & (self.cash.earnings.fetches == 0)) / max(int(np.count_nonzero(known)), 1)
        return min(1.0, PRIOR * unread) * ((1 - HELD) * self._jumps() + HELD * self._held())

    def _held(self) -> FloatArray:
        """Return the cash of each page, with its share of the jumps."""
        from surveyor.kernels.opic_cash import BETA, OUT

        weight = np.where(self.cash.state & OUT, 0.0, self.cash.weight)
        held: FloatArray = self.cash.cash + weight * (self.cash.totals[BETA] - self.cash.settled)
        return held

    def _error_bound(self) -> float:
        """Return the bound of the earnings, one step ahead, plus the distance of the estimate from them."""
        from surveyor.kernels.opic_cash import FETCHES, MISPLACED, TIME

        if not self._jumps().any() or self.cash.totals[TIME] == 0:
            return LARGEST
        ahead, history = self.ahead(), self.cash.earnings.history
        added = float(np.abs(self.importance() - ahead / max(float(ahead.sum()), 1e-300)).sum())
        rounding = ROUNDING * float(self.cash.counts[FETCHES]) * (1 + float(history.max()))
        apart = self.damping * float(np.abs(ahead - history).sum()) + 2 * float(self.cash.totals[MISPLACED]) + rounding
        return min(LARGEST, added + apart / ((1 - self.damping) * float(history.sum())))

    def _earnings(self, pages: int) -> Earnings:
        from surveyor.kernels.opic_cash import new_earnings

        return new_earnings(pages)

    def _jumps(self) -> FloatArray:
        """Return the current teleport vector."""
        from surveyor.kernels.opic_cash import LEAST, OUT

        weights = np.where(self.cash.state & OUT, 0.0, self.cash.weight)
        total = float(weights.sum())
        return weights / total if total > LEAST else np.zeros(weights.size)

    def _reorder(self) -> Reorder:
        from surveyor.kernels.opic_visits import CHANGED

        changed = self.changes.plan[CHANGED]
        return Reorder(self.changes.pages[:changed].copy(), self.changes.priorities[:changed].copy())

    def final_targets(self, pages: IdArray) -> IdArray:
        """Return the final targets of redirected pages."""
        while self._redirects:
            known = np.minimum(pages, self._target.size - 1)
            further = np.where(pages == known, self._target[known], pages)
            if np.array_equal(further, pages):
                break
            pages = further
        return pages

    def redirects_of(self, pages: IdArray) -> IdArray:
        """Return the page that each page redirects to, or itself."""
        return self._target[pages]

    def restore_redirects(self, pages: IdArray, targets: IdArray) -> None:
        """Let pages redirect to other pages; raise ValueError if that makes a cycle."""
        self._target[pages], self._redirects = targets, pages.size
        ends = self._target
        for _ in range(pages.size.bit_length() + 1):  # path doubling
            ends = ends[ends]
        if not np.array_equal(self._target[ends], ends):
            raise ValueError("pages redirect in a circle")

    def weight_of(self, page: int) -> float:
        """Return the weight of a page in jumps."""
        return float(self.cash.weight[page]) if page < self.cash.weight.size else 0.0

    def _make_room(self, pages: int) -> None:
        from surveyor.kernels.opic_visits import with_room

        size = self._target.size
        if pages > size:
            room = max(pages, size + max(size // 4, min(size, LARGE)))
            self._target = np.concatenate([self._target, np.arange(size, room, dtype=np.int32)])
            self.cash, self.changes = with_room(self.cash, self.changes, self._target.size)

    def _make_pairs(self, needed: int) -> bool:
        """Make room for `needed` pairs of a window, if there is one; return whether it had to grow."""
        from surveyor.kernels.opic_cash import lacks_pairs, with_pairs

        lacking = False
        while lacks_pairs(self.cash.earnings, needed):
            self.cash = self.cash._replace(earnings=with_pairs(self.cash.earnings))
            lacking = True
        return lacking
