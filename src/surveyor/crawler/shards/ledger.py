"""The accounts of one shard: those of a ledger, and proxies that stand for the pages of other shards.

A page of another shard that a page here links or redirects to is a *proxy*. The mass that reaches it waits in the
account `OUTBOX` until a batch is *cut*: then it is subtracted here, and it is added to the page itself when the other
shard has *got* the batch. Mass that returns to the seeds goes to the seeds of all shards, by their weights, so a seed
of another shard is a proxy as well. A shard starts with the mass of its own seeds. So in every shard, at every moment,

    settled + residuals + pool  =  start + received − sent        (to rounding)

and importance = Σ over all shards (settled + Σ residual_i · PPR_i) + Σ in flight · PPR of its page, because a cut and
the matching receipt move the same mass of the same page.

Amounts are subtracted as recorded in the event, not as recomputed: a replay under other rules conserves mass, too.

A page may be a proxy of a page that redirects back to this shard. Mass that arrives at a redirected page is forwarded,
and each batch counts how often its mass was forwarded; after `MOST_HOPS` the redirects lead in a circle, and the page
is blocked, as in a single ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.ledger import DUST, Ledger
from surveyor.crawler.shards.placement import Placement
from surveyor.errors import UsageError
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import Outcome

MOST_HOPS = 10  # redirects from one shard to another that mass follows
SENT, RECEIVED, SENT_NEGATIVE, RECEIVED_NEGATIVE = range(4)  # flows


class Cut(NamedTuple):
    """Mass to send to one shard: proxies, amounts, and how often the mass was forwarded."""

    to: int
    pages: IdArray
    masses: FloatArray
    hops: list[int]


@dataclass(frozen=True, slots=True)
class Accounts:
    """The mass of one shard, by account, and its flows since the start."""

    captured: float
    moving: float  # on fetched pages
    pool: float  # returning to the seeds
    waiting: float
    blocked: float
    lost: float  # settled on pages that are gone
    dying: float  # on pages that are gone, not settled yet
    outbox: float
    negative: float  # total size of negative residuals
    start: float
    sent: float
    received: float
    sent_negative: float
    received_negative: float

    @property
    def imbalance(self) -> float:
        """Error of the accounts: 0, to rounding."""
        held = self.captured + self.moving + self.pool + self.waiting + self.blocked + self.lost + self.dying
        return held + self.outbox + self.sent - self.received - self.start


class ShardLedger(Ledger):
    """The accounts of one shard."""

    def __init__(
        self,
        graph: GrowingGraph,
        seeds: Sequence[int] | IdArray,
        weights: Sequence[float] | FloatArray | None,
        placement: Placement,
        **options: Any,
    ) -> None:
        """Take the seeds of all shards; only those of this shard get mass. The options are those of `Ledger`.

        If the pages of the placement are not known yet, a checkpoint is about to set everything that depends on them.
        """
        super().__init__(graph, seeds, weights, **options)
        self.placement = placement
        self._proxies: IdArray = np.empty(1024, np.int32)
        self._count = 0
        self._hops: dict[int, int] = {}  # of forwarded mass on proxies; 0 for all others
        self._flows = np.zeros((4, 2))  # sums with their rounding compensations
        self._start = 0.0
        self.corrected = False  # whether there ever was negative mass here
        if placement.knows_pages:
            self._place(self.seeds, seeds=True)
        self._start = self._total("WAITS")

    def observe(self, outcome: Outcome, old_links: IdArray) -> bool:
        """Update the accounts for an outcome, as in `Ledger`; unknown pages of other shards become proxies."""
        targets = np.append(outcome.links, outcome.target) if outcome.kind == "redirected" else outcome.links
        self._place(targets.astype(np.int32, copy=False))
        changed = super().observe(outcome, old_links)
        self._notice()
        return changed

    def announce(self, pages: IdArray) -> None:
        """Add the listed pages of this shard, except seeds; once, before the first page."""
        own: IdArray = pages[self.placement.owners(pages) == self.placement.index] if pages.size else pages
        super().announce(own)

    def hear(self, pages: IdArray) -> None:
        """Add unknown pages of this shard as waiting, without mass."""
        self._place(pages)
        super().hear(pages)

    def _place(self, pages: IdArray, *, seeds: bool = False) -> None:
        """Make unknown pages of other shards proxies."""
        from surveyor.kernels import mass

        if not pages.size:
            return
        self._make_room(int(pages.max()))
        known = mass.WAITING if seeds else mass.UNKNOWN
        new = pages[self.mass.state[pages] & mass.STATUS == known]
        foreign = np.unique(new[self.placement.owners(new) != self.placement.index])
        if not foreign.size:
            return
        mass.make_proxies(self.mass, foreign)
        if self._count + foreign.size > self._proxies.size:
            room = np.empty(2 * (self._count + foreign.size), np.int32)
            room[: self._count] = self._proxies[: self._count]
            self._proxies = room
        self._proxies[self._count : self._count + foreign.size] = foreign
        self._count += foreign.size

    def cuts(self, least: float = 0.0) -> list[Cut]:
        """Return what to send to each shard: proxies with more mass than `least`."""
        pages = self._proxies[: self._count]
        chosen = pages[np.abs(self.mass.residual[pages]) > least]
        owners = self.placement.owners(chosen)
        return [self._cut_to(int(to), chosen[owners == to]) for to in np.unique(owners)]

    def _cut_to(self, to: int, pages: IdArray) -> Cut:
        masses: FloatArray = self.mass.residual[pages].copy()
        return Cut(to, pages, masses, [self._hops.get(page, 0) for page in pages.tolist()])

    def send(self, pages: IdArray, masses: FloatArray) -> None:
        """Subtract mass that is sent to another shard."""
        from surveyor.kernels import shard_mass

        self._start_event()
        self._place(pages)
        shard_mass.withdraw(self.mass, pages, masses)
        self._flow(SENT, masses)
        for page in pages.tolist() if self._hops else ():
            self._hops.pop(page, None)
        self._notice()

    def receive(self, pages: IdArray, masses: FloatArray, hops: Sequence[int]) -> None:
        """Add mass that another shard has sent, and push it on."""
        from surveyor.kernels import mass, shard_mass

        self._make_room(int(pages.max(initial=-1)))
        if (self.placement.owners(pages) != self.placement.index).any():
            raise UsageError(
                "a batch has pages of another shard", hint="all shards must have the same number of shards"
            )
        self._start_event()
        redirected = pages[self.mass.state[pages] & mass.STATUS == mass.REDIRECTED]
        if redirected.size:
            counts = dict(zip(pages.tolist(), hops, strict=True))
            for page in redirected.tolist():
                self._forward(page, counts[page] + 1)
        shard_mass.deposit(self.mass, pages, masses)
        self._flow(RECEIVED, masses)
        if self.mass.rules[mass.EAGER]:
            mass.close(self.mass, self.graph.rows)
        self._notice()

    def _forward(self, page: int, hops: int) -> None:
        """Count a redirect to another shard; beyond the limit the page is blocked."""
        from surveyor.kernels import mass, shard_mass

        goal = int(mass.redirect_target(self.mass, page))
        if self.mass.state[goal] & mass.STATUS != mass.PROXY:
            return
        if hops > MOST_HOPS:
            shard_mass.stop_redirect(self.mass, page)
        else:
            self._hops[goal] = max(self._hops.get(goal, 0), hops)

    def report_touched(self) -> IdArray:
        """Return the waiting pages whose mass changed since the last outcome."""
        touched = self.touched
        self._is_reported = True
        return touched

    @property
    def known(self) -> int:
        """Number of known pages of this shard."""
        return super().known - self._count

    @property
    def _known_anywhere(self) -> int:
        """Number of known pages of the whole crawl, if its shards are of one size."""
        return self.known * self.placement.shards

    @property
    def proxies(self) -> IdArray:
        """Known pages of other shards."""
        return self._proxies[: self._count]

    def accounts(self) -> Accounts:
        """Return all accounts and flows."""
        names = ("CAPTURED", "MOVING", "POOL", "WAITS", "BLOCKS", "LOST", "DYING", "OUTBOX", "NEGATIVE")
        sent, received, sent_negative, received_negative = (self._flows[:, 0] + self._flows[:, 1]).tolist()
        captured, moving, pool, waiting, blocked, lost, dying, outbox, negative = map(self._total, names)
        return Accounts(
            captured=captured,
            moving=moving,
            pool=pool,
            waiting=waiting,
            blocked=blocked,
            lost=lost,
            dying=dying,
            outbox=outbox,
            negative=negative,
            start=self._start,
            sent=sent,
            received=received,
            sent_negative=sent_negative,
            received_negative=received_negative,
        )

    def _total(self, name: str) -> float:
        from surveyor.kernels import mass

        return float(mass.total(self.mass, getattr(mass, name)))

    def _notice(self) -> None:
        """Record whether there is negative mass."""
        if not self.corrected:
            self.corrected = self._total("NEGATIVE") - min(self._total("POOL"), 0.0) > DUST

    def _flow(self, kind: int, masses: FloatArray) -> None:
        """Add to the sum of a flow and to that of its negative parts, with compensation (Neumaier)."""
        lowered: FloatArray = -masses[masses < 0]
        for place, values in ((kind, masses), (kind + 2, lowered)):
            total, rest = self._flows[place].tolist()
            for value in values.tolist():
                after = total + value
                rest += (total - after) + value if abs(total) >= abs(value) else (value - after) + total
                total = after
            self._flows[place] = total, rest
        self.corrected |= bool(self._flows[kind + 2].sum() > DUST)
