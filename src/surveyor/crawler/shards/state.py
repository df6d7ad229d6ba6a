"""The state of one shard, derived from its journal: a crawl whose mass also comes from and goes to other shards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.loop import Crawl
from surveyor.crawler.shards.ledger import ShardLedger
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.outcome import SHARD_EVENTS, Event


@dataclass(frozen=True, slots=True)
class ShardCrawl(Crawl):
    """The state of one shard; its ledger is a `ShardLedger`."""

    def apply_event(self, event: Event) -> None:
        """Update the state for an event that changes it."""
        if event.kind not in SHARD_EVENTS:
            Crawl.apply_event(self, event)
            return
        ledger = self.ledger
        assert isinstance(ledger, ShardLedger)  # noqa: S101  # by construction
        detail = event.detail
        pages: IdArray = np.array(detail["pages"], np.int32)
        masses: FloatArray = np.array(detail["masses"], np.float64)
        if event.kind == "shard_cut":
            ledger.send(pages, masses)
        else:
            ledger.receive(pages, masses, detail["hops"] or [0] * pages.size)
        touched = ledger.report_touched()
        self.frontier.update(self.massless_last(Reorder(touched, ledger.residual[touched])))
