"""Random walks that estimate how much of the unsettled importance the fetched pages hold.

The certified bound assumes that unfetched pages never link back. Walks find out whether they do. With the invariant of
the ledger, importance = settled + Σ residual_i · (importance with all jumps to i), the coverage of a frozen set R of
fetched pages is

    C = captured + Σ residual_i · P_i(R)

where P_i(R) is the probability that a walk from i ends in R: it ends at each page with probability 1 − d, else follows
a random link; a page without links, or one that is gone, leads to a seed. A walk starts at i in proportion to the
residual, blocked pages excluded. For the first `DISCOUNTED` pages its end is not drawn: each page of R adds its
probability, (1 − d)·d^t. After that the end is drawn, with the rest of the weight. So Y is in [0, 1], has the mean
Σ residual_i · P_i(R) / Σ residual_i, and varies less than a single end.

A walk that needs the links of an unfetched page waits until that page is fetched, by an ordinary visit. No walk is
dropped, replaced or evaluated again for a larger R: walks fetch pages around themselves, so that would be biased. A
page that turns out to be an alias counts as its target. A page that is changed or lost after it was fetched
invalidates all walks: they are discarded.

**State.** The walks are a function of the journal: an event `epoch` has the random secret, the accounts and the starts
that were drawn; an event `walks` starts some of them; their steps follow from the secret and the links as fetched.
So does the growth of the accounts (`growth`), from which a resumed crawl decides as if it had not been stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.sampled_bound import MOST_EPOCHS, PRECISION, Epoch, is_proven, lower_bound
from surveyor.outcome import NO_LINKS, Outcome

if TYPE_CHECKING:
    from surveyor.crawler.ledger import Ledger

DISCOUNTED = 8  # pages of a walk that count with their probability
START, STEP, END = range(3)  # random numbers of a page of a walk
NEVER = np.iinfo(np.int32).max
GROWTH = 1.1  # of the fetched pages, from one record of the accounts to the next


@dataclass(frozen=True, slots=True)
class SampledCoverage:
    """A lower bound of coverage that holds with a stated confidence at every moment of a crawl."""

    at_least: float  # the larger of this bound and the certified one, at most the certified upper bound
    confidence: float
    walks: int
    finished: int
    epochs: int
    fetches: int  # pages that walks waited for

    def to_dict(self) -> dict[str, float]:
        """Return the fields as a dict."""
        return asdict(self)


class CoverageWalks:
    """The walks of a crawl, and the fetched pages in order."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._order: IdArray = np.full(ledger.capacity, NEVER, np.int32)  # by page: how many were fetched before it
        self._fetched = 0
        self.growth: list[tuple[int, float, float]] = []  # fetched pages, captured and moving mass, from time to time
        self._jumps: FloatArray = np.cumsum(ledger.teleport)
        self.used = 0  # epochs that were discarded
        self.fetches = 0  # pages that walks waited for
        self._fetches_before = 0  # the same, when the last epoch started
        self.epochs: list[Epoch] = []
        self._starts: list[int] = []  # of walks that are not started yet
        self._page: list[int] = []  # of each walk
        self._step: list[int] = []
        self._value: list[float] = []
        self._waiting: dict[int, list[int]] = {}  # walks by the unfetched page that they wait for
        self._stuck: dict[int, list[int]] = {}  # the same, of pages that cannot be fetched
        self._best: dict[float, float] = {}  # bounds shown earlier, by confidence
        self._version = 0  # changes with each event and step
        self._bounds: dict[float, tuple[int, float]] = {}
        self._proofs: dict[tuple[float, float], tuple[int, bool]] = {}

    def observe(self, outcome: Outcome, *, changed: bool) -> None:
        """Move the walks that wait for a page; `changed`: the page was fetched before, with other links or status."""
        if changed:
            self.discard()
        page = outcome.page
        if outcome.kind == "fetched":
            if self._order.size <= page:
                room = max(page + 1, 2 * self._order.size) - self._order.size
                self._order = np.concatenate([self._order, np.full(room, NEVER, np.int32)])
            if self._order[page] == NEVER:
                self._order[page] = self._fetched
                self._fetched += 1
            if (pages := self._ledger.read) >= GROWTH * (self.growth[-1][0] if self.growth else 1 / GROWTH):
                now = self._ledger.coverage()
                self.growth.append((pages, now.captured, now.moving))
        waiting = [*self._stuck.pop(page, ()), *self._waiting.pop(page, ())]
        self.fetches += bool(waiting) and outcome.kind != "blocked"
        for walk in waiting:
            self._move(walk)

    def freeze(self, detail: Mapping[str, Any]) -> None:
        """Start an epoch with the pages fetched so far; one of another damping is discarded at once.

        Beyond `MOST_EPOCHS` it is ignored.
        """
        self._version += 1
        self._starts.clear()
        if self.is_full:
            return
        self._starts, self._fetches_before = list(detail["starts"]), self.fetches
        self.epochs.append(
            Epoch(self._fetched, detail["captured"], detail["unsettled"], len(self._page), detail["secret"])
        )
        if detail["damping"] != self._ledger.damping:
            self.discard()

    def launch(self, detail: Mapping[str, Any]) -> None:
        """Start the next walks of the epoch."""
        if not self.epochs:
            return
        for confidence, bound in detail["bounds"]:
            self._best[confidence] = max(bound, self._best.get(confidence, 0.0))
        for _ in range(min(detail["count"], len(self._starts))):
            self._page.append(self._starts.pop(0))
            self._step.append(0)
            self._value.append(0.0)
            self._move(len(self._page) - 1)
        self._version += 1

    def discard(self) -> None:
        """Forget all walks, because what they found is no longer true."""
        if not self.epochs:
            return
        self.used += len(self.epochs)
        for things in (self.epochs, self._starts, self._page, self._step, self._value):
            things.clear()
        self._waiting.clear()
        self._stuck.clear()
        self._best.clear()
        self._version += 1

    def draw(self, secret: str, count: int, failing: IdArray) -> dict[str, Any]:
        """Return the details of an epoch with the current accounts, and draw its starts.

        No walk starts on a blocked or failing page, so their mass counts as not covered; a negative residual lowers
        the captured mass.
        """
        from surveyor.kernels import mass

        ledger = self._ledger
        state, residual = ledger.state & mass.STATUS, ledger.residual
        drawn = (residual > 0) & (state != mass.BLOCKED) & (state != mass.UNKNOWN)
        drawn[failing] = False
        pages = np.flatnonzero(drawn).astype(np.int32)
        pool = max(float(mass.total(ledger.mass, mass.POOL)), 0.0)
        pages = np.concatenate([pages, ledger.seeds])
        cumulated = np.cumsum(
            np.concatenate([residual[pages[: pages.size - ledger.seeds.size]], pool * ledger.teleport])
        )
        first, total = len(self._page), float(cumulated[-1])
        places = [hashed_unit(secret, first + walk, 0, START) * total for walk in range(count)]
        chosen = pages[np.minimum(np.searchsorted(cumulated, places, "right"), pages.size - 1)]
        negative = float(np.maximum(-residual, 0.0).sum()) + max(-float(mass.total(ledger.mass, mass.POOL)), 0.0)
        captured = min(float(mass.total(ledger.mass, mass.CAPTURED)) - negative, 1.0 - PRECISION)
        return {
            "secret": secret,
            "damping": ledger.damping,
            "pages": self._fetched,
            "captured": captured,
            "unsettled": total,
            "starts": chosen.tolist(),
        }

    def settled_on_first(self, count: int) -> float:
        """Return the mass settled on the first fetched pages."""
        from surveyor.kernels import mass

        size = min(self._order.size, self._ledger.capacity)
        state, settled = self._ledger.mass.state[:size], self._ledger.mass.settled[:size]
        return float(settled[(self._order[:size] < count) & (state & mass.STATUS == mass.FETCHED)].sum())

    @property
    def is_full(self) -> bool:
        """Whether no further epoch is possible."""
        return self.used + len(self.epochs) >= MOST_EPOCHS

    @property
    def wanted(self) -> IdArray:
        """Pages that walks wait for and that can be fetched."""
        return np.fromiter(self._waiting, np.int32, len(self._waiting)) if self._waiting else NO_LINKS

    def active_without(self, held: Collection[int]) -> int:
        """Return the number of walks that wait for a page that can be fetched and is not one of `held`."""
        return sum(len(walks) for page, walks in self._waiting.items() if page not in held)

    @property
    def count(self) -> int:
        """Number of walks."""
        return len(self._page)

    @property
    def unfinished(self) -> int:
        """Number of walks that wait for a page, which may be blocked."""
        return sum(map(len, self._waiting.values())) + sum(map(len, self._stuck.values()))

    def proves(self, coverage: float, confidence: float) -> bool:
        """Return whether the walks prove a coverage."""
        if self._best.get(confidence, 0.0) >= coverage:
            return True
        key = coverage, confidence
        if self._proofs.get(key, (-1, False))[0] != self._version:
            proven = is_proven(coverage, confidence, self.epochs, self.values, self.used)
            self._proofs[key] = self._version, proven
        return self._proofs[key][1]

    @property
    def fetches_per_walk(self) -> float:
        """Pages that walks of the last epoch waited for, per walk."""
        return (self.fetches - self._fetches_before) / max(1, self.count - self.epochs[-1].first)

    @property
    def left(self) -> int:
        """Number of starts that were drawn and not used."""
        return len(self._starts)

    @property
    def values(self) -> FloatArray:
        """The certain part of Y of each walk, in order of their start."""
        return np.array(self._value, np.float64)

    def at_least(self, confidence: float) -> float:
        """Return the sampled lower bound of coverage; 0 without walks."""
        version, bound = self._bounds.get(confidence, (-1, 0.0))
        if version != self._version:
            bound = lower_bound(confidence, self.epochs, self.values, self.used)
            self._bounds[confidence] = self._version, bound
        return max(bound, self._best.get(confidence, 0.0))

    def summary(self, confidence: float) -> SampledCoverage | None:
        """Return the sampled coverage; None if there are no walks."""
        if not self.count:
            return None
        certified = self._ledger.coverage()
        return SampledCoverage(
            min(max(certified.at_least, self.at_least(confidence)), certified.at_most),
            confidence,
            self.count,
            self.count - self.unfinished,
            len(self.epochs),
            self.fetches,
        )

    def _move(self, walk: int) -> None:
        """Follow a walk until it ends or needs an unfetched page."""
        from surveyor.kernels import mass

        ledger, damping = self._ledger, self._ledger.damping
        epoch = next(epoch for epoch in reversed(self.epochs) if epoch.first <= walk)
        self._version += 1
        while True:
            page = self._page[walk]
            if page >= ledger.capacity:  # in a journal that was tampered with
                self._stuck.setdefault(page, []).append(walk)
                return
            page = int(mass.redirect_target(ledger.mass, page))
            status = int(ledger.mass.state[page] & mass.STATUS)
            step = self._step[walk]
            known = status in (mass.FETCHED, mass.GONE)
            covered = status == mass.FETCHED and self._order[page] < epoch.pages
            if step >= DISCOUNTED and hashed_unit(epoch.secret, walk, step, END) < 1 - damping:
                self._value[walk] += damping**DISCOUNTED * covered
                return
            if not known:
                self._page[walk] = page
                waits = self._waiting if status == mass.WAITING else self._stuck
                waits.setdefault(page, []).append(walk)
                return
            if step < DISCOUNTED:
                self._value[walk] += (1 - damping) * damping**step * covered
            links = ledger.graph.links_of(page) if status == mass.FETCHED else NO_LINKS
            drawn = hashed_unit(epoch.secret, walk, step, STEP)
            if links.size:
                following = links[min(int(drawn * links.size), links.size - 1)]
            else:
                following = ledger.seeds[min(int(np.searchsorted(self._jumps, drawn, "right")), ledger.seeds.size - 1)]
            self._page[walk], self._step[walk] = int(following), step + 1


def hashed_unit(secret: str, walk: int, step: int, purpose: int) -> float:
    """Return a random number in [0, 1) that depends on its arguments only."""
    digest = hashlib.blake2b(f"{walk}:{step}:{purpose}".encode(), key=secret.encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53
