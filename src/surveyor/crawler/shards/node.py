"""One shard of a crawl: its state, its journal, and its channels to the other shards.

A node does no input or output but commits. The caller carries the batches and acknowledgements that it returns, in any
way: late, repeatedly, in any order, or not at all. One commit stores the outcomes of a step, the batches that are cut
and those that were received (a group commit); only then do they count. They are sent and acknowledged once the caller
has synced the journal to disk and says so (`stored`); outcomes may be committed while that takes place. A replay of the
journal restores the node, the batches that were not acknowledged included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surveyor.crawler.loop import Journal as Journaled
from surveyor.crawler.loop import Recorded, Tally, record
from surveyor.crawler.queues import Batch
from surveyor.crawler.shards.bounds import Report
from surveyor.crawler.shards.channels import MOST_ENTRIES, MassBatch, Receiver, Sender
from surveyor.crawler.shards.ledger import Cut, ShardLedger
from surveyor.crawler.shards.placement import Placement
from surveyor.errors import SurveyError, UsageError
from surveyor.outcome import Event, FetchResults

SHARE, SHARE_OF_TWO = 0.5, 0.25  # of the best mass of all shards: pages with less are not fetched
ACKED_EVERY = 64  # batches to one shard after which the journal records that they have arrived
EVENTS = ("shard_start", "shard_cut", "shard_got", "shard_epoch", "shard_acked")  # of the journal of a shard


@dataclass(slots=True)
class Exchange:
    """What a commit has stored that others are to know once it is on disk."""

    batches: list[MassBatch]
    received: Mapping[int, int]  # number of the last batch, by sender
    reports: dict[int, Report]  # of epochs that were entered


@dataclass(slots=True)
class Outgoing:
    """What to carry to other shards."""

    batches: list[MassBatch] = field(default_factory=list)
    acknowledgements: dict[int, int] = field(default_factory=dict)  # number of the last batch on disk, by sender


class Node:
    """One shard."""

    def __init__(
        self,
        state: Recorded,
        ledger: ShardLedger,
        journal: Journaled,
        events: Iterable[Event],
        clock: Callable[[], float],
    ) -> None:
        """Take a state that was replayed from the journal, with its `EVENTS`; the first commit starts an incarnation.

        The events must be at least those that the journal had on disk.
        """
        self.state, self.ledger, self._journal, self._clock = state, ledger, journal, clock
        self.placement: Placement = ledger.placement
        self.share = share_of(self.placement.shards)
        self.best = 0.0  # mass of the best page of all shards, as last reported
        self.epoch = 0
        self._reports: dict[int, Report] = {}  # at the end of each epoch
        self._entered: dict[int, Report] = {}  # of epochs whose start is not committed yet
        self._exchange: Exchange | None = None  # committed, but not on disk yet
        self._staged: list[Event] = []
        self._early: dict[tuple[int, int], MassBatch] = {}
        self._cuts = self._gots = 0
        self.tally = Tally()
        self._restore(list(events))

    def _restore(self, events: list[Event]) -> None:
        """Restore the channels from the events of the journal."""
        starts = [event for event in events if event.kind == "shard_start"]
        if not starts:
            raise UsageError("the journal is not that of a shard", hint="create it with `surveyor crawl --shards`")
        self.crawl = str(starts[0].detail["crawl"])
        self.incarnation = len(starts)  # the one about to begin is the next: `begin` commits it
        self.sender, self.receiver = Sender(), Receiver(self.crawl, self.placement.index, self.placement.shards)
        for event in events:
            if event.kind == "shard_acked":
                self.sender.acknowledge(int(event.detail["to"]), int(event.detail["number"]))
        for event in events:
            if event.kind == "shard_cut":
                self.sender.restore(event, self._batch)
                self._cuts += 1
            elif event.kind == "shard_got":
                detail = event.detail
                self.receiver.restore(int(detail["from"]), int(detail["number"]), int(detail["incarnation"]))
                self._gots += 1
            elif event.kind == "shard_epoch":
                self.epoch = int(event.detail["epoch"])
        self.receiver.stored(self.receiver.staged)

    def begin(self) -> Outgoing:
        """Start an incarnation; return what all others are to know: the batches that are on disk here."""
        self.incarnation += 1
        event = Event("shard_start", self._clock(), start_detail(self.crawl, self.placement, self.incarnation))
        record(self.state, FetchResults(events=[event]), self._journal, self.tally)
        last = self.receiver.last
        others = (shard for shard in range(self.placement.shards) if shard != self.placement.index)
        return Outgoing([], {shard: last.get(shard, 0) for shard in others})

    def take(self, count: int) -> Batch:
        """Lease pages that have at least a share of the best mass anywhere."""
        best = max(self.best, self.best_here)
        return self.state.frontier.take(count, self.share * best if best > 0 else -np.inf)

    @property
    def best_here(self) -> float:
        """The largest mass of a page that can be fetched here now."""
        return max(self.state.frontier.best_available, 0.0)

    def deliver(self, batch: MassBatch) -> dict[int, int]:
        """Accept a batch for the next commit if it is the next of its channel; return what is acknowledged anyway."""
        verdict = self.receiver.judge(batch)
        if verdict == "early":
            self._early[batch.sender, batch.number] = batch
        if verdict == "known":
            return {batch.sender: min(batch.number, self.receiver.last.get(batch.sender, 0))}
        while verdict == "apply":
            self._stage(batch)
            following = self._early.pop((batch.sender, batch.number + 1), None)
            if following is None:
                break
            batch = following
            verdict = self.receiver.judge(batch)
        return {}

    def _stage(self, batch: MassBatch) -> None:
        names = list(batch.names)
        if not self.placement.owns(names):  # a journal with such a batch could not be replayed
            raise SurveyError(
                f"shard {batch.sender} has sent pages to shard {self.placement.index} that belong to another one",
                hint="install the same versions on all machines (see `surveyor cluster doctor`), and resume",
            )
        self.enter(batch.epoch)
        pages = self.placement.ids(names)
        detail = {
            "from": batch.sender,
            "number": batch.number,
            "incarnation": batch.incarnation,
            "pages": pages.tolist(),
            "masses": list(batch.masses),
            "hops": list(batch.hops),
        }
        self._staged.append(Event("shard_got", self._clock(), detail))
        self.receiver.stage(batch)

    def acknowledge(self, receiver: int, number: int) -> None:
        """Record that a shard has batches up to a number on disk."""
        if number > self.sender.last.get(receiver, 0):
            raise SurveyError(
                f"shard {self.placement.index} has lost batches that shard {receiver} has received",
                hint="`surveyor cluster reshard` builds the shards again, from all visits that are left",
            )
        self.sender.acknowledge(receiver, number)

    @property
    def has_mail(self) -> bool:
        """Whether received batches wait for a commit."""
        return bool(self._staged)

    def step(self, results: FetchResults, *, least: float | None = None) -> Outgoing:
        """Commit results and an exchange with a journal that syncs every commit; return what to carry."""
        self.exchange(results, least=least)
        return self.stored()

    def commit(self, results: FetchResults) -> None:
        """Commit and apply results."""
        record(self.state, results, self._journal, self.tally)

    def exchange(self, results: FetchResults, *, least: float | None = None) -> bool:
        """Commit and apply results, received batches and, unless `least` is None, cuts of mass above `least`.

        Return whether the commit has to be synced; `stored` is then due before the next exchange.
        """
        assert self._exchange is None, "the last exchange is on disk"  # noqa: S101
        staged, self._staged = self._staged, []
        reports, self._entered = self._entered, {}
        received = self.receiver.staged
        cuts = [] if least is None else self._cut_events(least)
        arrived = self._arrived() if staged or cuts else []
        results.events[:] = [*results.events, *staged, *cuts, *arrived]
        self.commit(results)
        self._gots += sum(event.kind == "shard_got" for event in staged)
        self._cuts += len(cuts)
        if not (staged or cuts):
            return False
        self._exchange = Exchange([self._batch(event) for event in cuts], received, reports)
        return True

    def stored(self) -> Outgoing:
        """Return what to carry after the last exchange, which is on disk now."""
        if self._exchange is None:
            return Outgoing()
        done, self._exchange = self._exchange, None
        self._reports = done.reports or self._reports
        for batch in done.batches:
            self.sender.add(batch)
        return Outgoing(done.batches, self.receiver.stored(done.received))

    def _arrived(self) -> list[Event]:
        """Return events that record which batches have arrived, so that a restart does not send them again."""
        found = self.sender.to_record(ACKED_EVERY)
        return [Event("shard_acked", self._clock(), {"to": to, "number": number}) for to, number in found]

    def _cut_events(self, least: float) -> list[Event]:
        cuts = [cut for cut in self.ledger.cuts(least) if self.sender.has_room(cut.to)]
        return [Event("shard_cut", self._clock(), self._cut_detail(cut)) for cut in cuts]

    def _cut_detail(self, cut: Cut) -> dict[str, Any]:
        return {
            "to": cut.to,
            "number": self.sender.next_number(cut.to),
            "epoch": self.epoch,
            "incarnation": self.incarnation,
            "pages": cut.pages[:MOST_ENTRIES].tolist(),
            "masses": cut.masses[:MOST_ENTRIES].tolist(),
            "hops": cut.hops[:MOST_ENTRIES] if any(cut.hops) else [],
        }

    def _batch(self, event: Event) -> MassBatch:
        """Return the batch of a cut."""
        detail, names = event.detail, self.placement.names(np.array(event.detail["pages"], np.int32))
        return MassBatch(
            self.crawl,
            self.placement.index,
            int(detail["to"]),
            int(detail["incarnation"]),
            int(detail["epoch"]),
            int(detail["number"]),
            tuple(names),
            tuple(detail["masses"]),
            tuple(detail["hops"]),
        )

    def resend(self) -> list[MassBatch]:
        """Return all batches that are not acknowledged."""
        return [self._renewed(batch) for batch in self.sender.unacknowledged()]

    def _renewed(self, batch: MassBatch) -> MassBatch:
        """Return a batch as this incarnation sends it."""
        return replace(batch, incarnation=self.incarnation)

    def enter(self, epoch: int) -> None:
        """Enter an epoch; the report of the state before it is given out once that is on disk: epochs never go back."""
        if epoch > self.epoch:
            self._entered[epoch] = replace(self.report(), epoch=epoch)
            self._staged.append(Event("shard_epoch", self._clock(), {"epoch": epoch}))
            self.epoch = epoch

    def report_of(self, epoch: int) -> Report | None:
        """Return the report made on entering an epoch; None if that was long ago, or is not on disk yet."""
        return self._reports.get(epoch)

    def report(self, *, idle: bool = False) -> Report:
        """Return the report of the state now."""
        return Report(
            shard=self.placement.index,
            incarnation=self.incarnation,
            epoch=self.epoch,
            accounts=self.ledger.accounts(),
            corrected=self.ledger.corrected,
            best=self.best_here,
            fetched=self.ledger.read,
            known=self.ledger.known,
            proxies=self.ledger.proxies.size,
            requests=self.tally.requests,
            bytes=self.tally.bytes,
            idle=idle,
            cuts=self._cuts,
            gots=self._gots,
        )


def share_of(shards: int) -> float:
    """Return the share of the best mass from which on pages are fetched; it costs pages, and saves waiting.

    Many shards need a large one, as each fetches its own best pages; two wait for each other rather often.
    """
    return SHARE if shards > 2 else SHARE_OF_TWO


def start_detail(crawl: str, placement: Placement, incarnation: int) -> dict[str, Any]:
    """Return the detail of an event `shard_start`."""
    return {"crawl": crawl, "shard": placement.index, "shards": placement.shards, "incarnation": incarnation}
