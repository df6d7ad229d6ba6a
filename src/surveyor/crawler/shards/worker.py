"""One shard that crawls over HTTP: a node, a source of pages, and messages to and from the other shards.

The caller carries messages, which may be lost, repeated or late: batches of mass, acknowledgements, and requests for
addresses that hosts of several shards share; those of one step are sent as one, a line each. A worker reports when it
is asked; it decides nothing about the crawl.

An exchange is synced to disk in a thread of its own, while pages are fetched, parsed and committed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from surveyor.crawler.pending import Waiting
from surveyor.crawler.queues import Batch, HostQueues
from surveyor.crawler.replay import Derived, derive
from surveyor.crawler.session import (
    STOPPED,
    RunStore,
    create_hosts,
    finish_requests,
    is_readable,
    restore_waits,
)
from surveyor.crawler.shards.addresses import AddressLeases
from surveyor.crawler.shards.bounds import Report
from surveyor.crawler.shards.channels import MassBatch
from surveyor.crawler.shards.director import Orders
from surveyor.crawler.shards.ledger import ShardLedger
from surveyor.crawler.shards.node import EVENTS, Node, Outgoing
from surveyor.crawler.sources.live import REAL, Connection, FetchOptions, LiveSource, PageLookup
from surveyor.crawler.start import http_settings
from surveyor.errors import InputError, SurveyError, UsageError
from surveyor.fetch.http import sent_by
from surveyor.fetch.parser import Parser
from surveyor.outcome import Event, FetchResults, Visit
from surveyor.store import layout
from surveyor.store.logs import log_errors_to

if TYPE_CHECKING:
    from surveyor.config import Settings
    from surveyor.store.directory import SurveyFolder
    from surveyor.web.urls import Urls

Post = Callable[[int, bytes], None]  # sends a message to a shard; it may be lost
TICK = 0.05  # seconds between two looks at messages
CUT_EVERY = 0.1  # seconds between two cuts
RESEND_EVERY = 2.0  # seconds after which batches without an acknowledgement are sent again
LEAST_CUT = 0.1  # of the best mass: less waits in the outbox, unless the shard is idle
BATCH, ACKNOWLEDGED, ADDRESS, HELLO = b"b", b"a", b"l", b"h"  # first byte of a message


class ShardWorker:
    """A shard that crawls."""

    def __init__(self, folder: SurveyFolder, settings: Settings, post: Post, *, connection: Connection = REAL) -> None:
        """Restore the state of an open shard; `post` sends messages."""
        self._folder, self._settings, self._post, self._connection = folder, settings, post, connection
        made: list[HostQueues] = []
        self.hosts = create_hosts(folder, settings) if connection.hosts is None else connection.hosts
        if folder.journal.url_count:
            self.hosts.resumed()

        def by_host(pages: int, urls: Urls) -> HostQueues:
            made.append(HostQueues(pages, self.hosts, urls.__getitem__, urls.host_ids))
            return made[-1]

        sent = sent_by(http_settings(settings)) if settings.archive else None
        self.state: Derived = derive(folder, by_host, sent=sent)
        self.queues = made[-1]
        ledger = self.state.crawl.ledger
        if not isinstance(ledger, ShardLedger):
            raise UsageError(f"{folder.folder} is not a shard", hint="crawl with --shards")
        self.ledger = ledger
        self._store = RunStore(folder, self.state, self.hosts.clock)
        self.node = Node(self.state.crawl, ledger, self._store, folder.journal.events(*EVENTS), self.hosts.clock)
        self.node.tally = self.state.tally
        self.leases = AddressLeases(
            ledger.placement.index,
            ledger.placement.shards,
            self.node.incarnation + 1,
            settings.timeout + settings.delay,
        )
        self.hosts.shared = self.leases
        self.orders = Orders(holds=True)  # until the driver has seen all shards
        self.stopping = asyncio.Event()
        self._source: LiveSource | None = None
        self.failure: SurveyError | None = None
        self._idle = False
        self._outbox: defaultdict[int, list[bytes]] = defaultdict(list)  # messages, by receiver
        self._sync: asyncio.Future[None] | None = None  # of the last exchange

    def receive(self, message: bytes) -> None:
        """Accept messages from another shard; a message that is not understood is dropped."""
        for line in message.split(b"\n"):
            self._receive(line)
        self._send()
        if self.node.has_mail and self._is_starved:
            self._wake()

    def _receive(self, message: bytes) -> None:
        kind, data = message[:1], message[1:]
        try:
            if kind == BATCH:
                for sender, number in self.node.deliver(MassBatch.from_bytes(data)).items():
                    self._acknowledge(sender, number)
            elif kind == ACKNOWLEDGED:
                crawl, receiver, number = json.loads(data)
                if crawl == self.node.crawl and type(receiver) is int and type(number) is int:
                    self.node.acknowledge(receiver, number)
            elif kind == HELLO:
                crawl, sender = json.loads(data)
                if crawl == self.node.crawl and type(sender) is int:
                    self._acknowledge(sender, self.node.receiver.last.get(sender, 0))
            elif kind == ADDRESS:
                self.leases.receive(json.loads(data), self.hosts.clock())
        except (InputError, ValueError, TypeError, RecursionError):
            return
        except SurveyError as error:
            self.failure = error

    def follow(self, orders: Orders) -> list[Report]:
        """Follow orders; return the report of now, and that made on entering their epoch, if it is ready."""
        if orders.best < self.orders.best or orders.holds != self.orders.holds or orders.threshold > 0:
            self._wake()
        self.orders = orders
        self.node.best = orders.best
        self.node.enter(orders.epoch)
        entered = self.node.report_of(orders.epoch)
        return [self.node.report(idle=self._idle), *([] if entered is None else [entered])]

    async def run(self) -> None:
        """Crawl until `stopping` is set or the task is cancelled; then save."""
        async with AsyncExitStack() as stack:
            stack.enter_context(log_errors_to(self._folder.folder / layout.LOG))
            gc.freeze()  # as in a crawl by one process
            stack.callback(gc.unfreeze)
            client = self._connection.client
            if client is None:
                from surveyor.fetch.client import HttpClient

                http = http_settings(self._settings)
                shards = self.ledger.placement.shards
                http = replace(http, connections=self._slots(shards))
                made = HttpClient(http, resolver=self._connection.resolver, clock=self.hosts.clock)
                client = await stack.enter_async_context(made)
            parser = Parser() if self._connection.wait is None else None
            if parser is not None:
                stack.push_async_callback(parser.close)
            source = self._source = LiveSource(
                client,
                self.state.reader,
                self.hosts,
                PageLookup(self._place_of, self._last_visit, partial(is_readable, self.ledger)),
                options=FetchOptions(self._settings.backoff),
                wait=self._connection.wait,
                parser=parser,
            )
            stack.push_async_callback(source.close)
            waiting = Waiting(self.state, self.hosts, self.queues, source, patient=self._settings.patient)
            self._store.commit(FetchResults())  # the seeds
            self._carry(self.node.begin())
            for shard in range(self.ledger.placement.shards):
                if shard != self.ledger.placement.index:
                    self._outbox[shard].append(
                        HELLO + json.dumps([self.node.crawl, self.ledger.placement.index]).encode()
                    )
            self._send()
            restore_waits(self._folder, self.queues, self.state.crawl.frontier, source)
            try:
                await self._crawl(source, waiting)
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is not None:
                    task.uncancel()
            await finish_requests(self.state.crawl, source, self._store, self.state.tally, STOPPED)
            await self._finish_exchange()
            if self.node.exchange(FetchResults()):
                self._begin_sync()
                await self._finish_exchange()
            if not self._store.is_slow:
                self._store.save()

    def _place_of(self, page: int) -> tuple[str, int]:
        return self.state.urls[page], self.queues.host(page)

    def _last_visit(self, page: int) -> Visit | None:
        return self._folder.journal.last_visit(page, "fetched") if self.state.crawl.graph.has(page) else None

    def _slots(self, shards: int) -> int:
        """Return the number of concurrent requests of this shard."""
        return max(1, -(-self._settings.concurrency // shards))

    async def _crawl(self, source: LiveSource, waiting: Waiting) -> None:
        node, frontier, clock = self.node, self.state.crawl.frontier, self.hosts.clock
        slots = self._slots(self.ledger.placement.shards)
        cut_at, resend_at = 0.0, time.monotonic() + RESEND_EVERY  # by then it is known what has arrived
        self._folder.journal.syncs_later = True
        while not self.stopping.is_set():
            if self.failure is not None:
                raise self.failure
            self._store.checkpoint()
            leased = Batch()
            if not self.orders.holds:
                if source.pending or source.held:
                    busy = source.in_progress - source.pending
                    source.start(Batch(room=slots - busy + source.held))
                free = slots - (source.in_progress - source.pending - source.held)
                leased = replace(node.take(free), room=None)
            again_at = frontier.again_at
            source.start(leased)
            self._send_requests_for_addresses()
            results = await source.results(0.0 if leased.refused else min(again_at, clock() + TICK))
            results.outcomes[:0] = leased.refused
            if not (leased or source.in_progress or results.outcomes or results.retries):
                given_up = waiting.abandon(again_at)
                results = results if given_up is None else given_up
            now = time.monotonic()
            waits = node.has_mail or len(frontier) or node.sender.unacknowledged()
            self._idle = not (source.in_progress or self._sync or waits)
            if self.orders.threshold > 0:
                results.events.append(Event("pushed", clock(), {"threshold": self.orders.threshold}))
                self.orders, cut_at = replace(self.orders, threshold=0.0), 0.0
            if self._sync is not None and self._sync.done():
                await self._finish_exchange()
            if self._sync is None and (now >= cut_at or (node.has_mail and self._is_starved)):
                cut_at = now + CUT_EVERY
                least = 0.0 if self._idle or self.orders.holds else LEAST_CUT * max(node.best, node.best_here)
                if node.exchange(results, least=least):
                    self._begin_sync()
            else:
                node.commit(results)
            if now >= resend_at:
                self._carry(Outgoing(node.resend()))
                resend_at = now + RESEND_EVERY
            self._send()

    @property
    def _is_starved(self) -> bool:
        """Whether nothing is being fetched: what others send may change that."""
        return self._source is not None and not self._source.in_progress

    def _wake(self) -> None:
        if self._source is not None:
            self._source.wake()

    def _begin_sync(self) -> None:
        """Sync the last exchange in a thread."""
        self._sync = asyncio.get_running_loop().run_in_executor(None, self._folder.journal.sync)
        self._sync.add_done_callback(lambda _: self._wake())

    async def _finish_exchange(self) -> None:
        """Wait until the last exchange is on disk, and send its batches and acknowledgements."""
        if self._sync is not None:
            sync, self._sync = self._sync, None
            await sync
            self._carry(self.node.stored())
            self._send()

    def _carry(self, outgoing: Outgoing) -> None:
        for batch in outgoing.batches:
            self._outbox[batch.receiver].append(BATCH + batch.to_bytes())
        for sender, number in outgoing.acknowledgements.items():
            self._acknowledge(sender, number)

    def _acknowledge(self, sender: int, number: int) -> None:
        values = [self.node.crawl, self.ledger.placement.index, number]
        self._outbox[sender].append(ACKNOWLEDGED + json.dumps(values).encode())

    def _send_requests_for_addresses(self) -> None:
        for receiver, message in self.leases.messages(self.hosts.clock()):
            if receiver == self.ledger.placement.index:
                self.leases.receive(message, self.hosts.clock())
            else:
                self._outbox[receiver].append(ADDRESS + json.dumps(message).encode())

    def _send(self) -> None:
        """Send all messages, those to one shard as one."""
        outbox, self._outbox = self._outbox, defaultdict(list)
        for receiver, messages in outbox.items():
            self._post(receiver, b"\n".join(messages))
