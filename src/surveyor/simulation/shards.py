"""Crawl a known graph in shards, in one process, over a network that delays, repeats and loses messages.

Every shard is a `Node`, as in a real sharded crawl, with a journal in memory. Time passes in rounds: in each one, every
shard fetches a few pages, and sends and receives messages. A shard can be killed at any moment: its state is then
restored from its journal. The faults, and so the whole simulation, depend only on the random seed.

    >>> from surveyor.graph.synthetic.generate import synthetic_web
    >>> web = synthetic_web("small").graph
    >>> crawl = ShardedSimulation(web, [0, 1], split(web, 4), rng=7)
    >>> crawl.run(0.8)
    True
    >>> crawl.coverage().at_least >= 0.8
    True
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from surveyor.arrays import ByteArray, FloatArray, IdArray, IntArray
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import CoverageInterval, PushOptions
from surveyor.crawler.replay import EFFORT
from surveyor.crawler.shards.bounds import joint_coverage
from surveyor.crawler.shards.channels import MassBatch
from surveyor.crawler.shards.ledger import ShardLedger
from surveyor.crawler.shards.node import EVENTS, Node, Outgoing, share_of, start_detail
from surveyor.crawler.shards.placement import GraphPlacement, shard_of
from surveyor.crawler.shards.state import ShardCrawl
from surveyor.crawler.sources.graph import GraphSource
from surveyor.crawler.strategies.rankmass import RankMass
from surveyor.graph.csr import Graph
from surveyor.graph.growing import GrowingGraph
from surveyor.graph.hosts_and_domains import SiteIndex
from surveyor.outcome import STATE_EVENTS, Event, FetchResults, Outcome

CRAWL = "simulation"
LEAST_CUT = 0.1  # of the best mass: less waits in the outbox, unless the shard is idle
LEAST_PUSHED = 1e-4  # of all mass
QUIET = 20  # rounds in which nothing happens, after which nothing will


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What the network and the machines do; shares of messages, or of shards per round."""

    delay: int = 1  # longest delay of a message, in rounds
    repeated: float = 0.0
    lost: float = 0.0
    killed: float = 0.0
    resend: int = 8  # rounds after which batches without an acknowledgement are sent again
    unchecked: bool = False  # a control: batches are applied as they come, whatever their number


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOptions:
    """How shards crawl."""

    shards: int | None = None  # by default, one more than the largest shard of a page
    batch: int = 1  # pages that each shard may fetch per round
    damping: float = 0.85
    closure: float = 0.1
    least_cut: float = LEAST_CUT
    share: float | None = None  # of the best mass of all shards, if not that of a crawl
    weights: FloatArray | None = None  # of the seeds


NO_FAULTS, DEFAULTS = Faults(), ShardOptions()


@dataclass(slots=True)
class MemoryJournal:
    """A journal in memory."""

    commits: list[tuple[list[Outcome], list[Event]]] = field(default_factory=list)

    def commit(self, results: FetchResults) -> None:
        """Store results."""
        self.commits.append((list(results.outcomes), list(results.events)))

    def events(self) -> list[Event]:
        """Return the events of shards."""
        return [event for _, events in self.commits for event in events if event.kind in EVENTS]


def split(graph: Graph, shards: int) -> IntArray:
    """Return the shard of each page: by its domain if pages have names, else by blocks of 64 ids."""
    if graph.names is None:
        keys = [str(page // 64) for page in range(graph.pages)]
        return np.array([shard_of(key, shards) for key in keys], np.int64)
    sites = SiteIndex("domains")
    site_of = sites.sites_of(graph.names)
    shard = np.array([shard_of(name, shards) for name in sites.names()] or [0], np.int64)
    return np.where(site_of >= 0, shard[site_of], 0)


class ShardedSimulation:
    """All shards of a crawl of a known graph, and the network between them."""

    def __init__(
        self,
        graph: Graph,
        seeds: Sequence[int] | IdArray,
        owner: IntArray,
        *,
        outcomes: ByteArray | None = None,
        faults: Faults = NO_FAULTS,
        options: ShardOptions = DEFAULTS,
        rng: int = 0,
    ) -> None:
        """`owner` is the shard of each page."""
        self.graph, self.seeds, self.owner, self.faults, self.options = graph, seeds, owner, faults, options
        self.shards, self.batch = options.shards or int(owner.max(initial=0)) + 1, options.batch
        self.rng, self.round = np.random.default_rng(rng), 0
        self.outcomes = outcomes
        self.journals = [MemoryJournal() for _ in range(self.shards)]
        self.sources = [GraphSource(graph, outcomes) for _ in range(self.shards)]
        self._network: list[tuple[int, int, int, bytes]] = []  # when it arrives, a number, the receiver, the message
        self._messages = 0
        self.nodes: list[Node] = []
        for index, journal in enumerate(self.journals):
            start = start_detail(CRAWL, GraphPlacement(owner, index, self.shards), 0)
            journal.commit(FetchResults(events=[Event("shard_start", 0.0, start)]))
            self.nodes.append(self._restored(index))
        self.batches = self.refused = self.kills = self.bytes = 0
        self.reports = [node.report() for node in self.nodes]
        for node in self.nodes:
            self._carry(node, node.begin())

    def _restored(self, index: int) -> Node:
        """Return a node with the state that its journal has."""
        graph, placement = GrowingGraph(self.graph.pages), GraphPlacement(self.owner, index, self.shards)
        strategy = RankMass(self.options.closure)
        ledger = ShardLedger(
            graph,
            self.seeds,
            self.options.weights,
            placement,
            damping=self.options.damping,
            push=PushOptions(self.options.closure, effort=EFFORT),
            pages=self.graph.pages,
        )
        state = ShardCrawl(graph, ledger, strategy, Frontier(ledger), CoverageWalks(ledger))
        state.begin(np.random.default_rng(0))
        journal = self.journals[index]
        for outcomes, events in journal.commits:
            for outcome in outcomes:
                state.apply(outcome)
            for event in events:
                if event.kind in STATE_EVENTS:
                    state.apply_event(event)
        node = Node(state, ledger, journal, journal.events(), lambda: 0.0)
        node.tally.pages = ledger.read
        node.share = share_of(self.shards) if self.options.share is None else self.options.share
        return node

    def kill(self, index: int) -> None:
        """Kill a shard and start it again: what it had not committed is lost."""
        self.kills += 1
        self.nodes[index] = self._restored(index)
        self._carry(self.nodes[index], self.nodes[index].begin())

    @property
    def fetched(self) -> int:
        """Number of pages fetched."""
        return sum(node.ledger.read for node in self.nodes)

    def coverage(self, *, now: bool = True) -> CoverageInterval:
        """Return the joint coverage: by reports made now, or by the last ones, of different ages."""
        reports = [node.report() for node in self.nodes] if now else self.reports
        return joint_coverage(reports, damping=self.options.damping, aliases=False)

    def run(self, goal: float, most: int = 1 << 40) -> bool:
        """Crawl until a joint coverage is certified, or at most so many pages; return whether it is."""
        quiet = 0  # rounds without a fetch or a message
        while self.coverage().at_least < goal and self.fetched < most and quiet < QUIET:
            before = self.fetched, self.batches
            self.step(goal)
            still = before == (self.fetched, self.batches) and not self._network
            quiet = quiet + 1 if still else 0
        return self.coverage().at_least >= goal

    def step(self, goal: float = 1.0, *, cuts: bool = True) -> None:
        """Let one round pass; without `cuts`, no new batch is sent."""
        self.round += 1
        self._deliver()
        for index in np.flatnonzero(self.rng.random(self.shards) < self.faults.killed).tolist():
            self.kill(index)
        if self.round % self.faults.resend == 0:
            for node in self.nodes:
                self._carry(node, Outgoing(node.resend()))
        self.reports = [
            node.report() if self.faults.delay == 1 or self.rng.random() < 0.5 else report
            for node, report in zip(self.nodes, self.reports, strict=True)
        ]
        best = max(report.best for report in self.reports)
        threshold = self._push_depth(goal)
        for node in self.nodes:
            node.best = best
            pages = [] if threshold > 0 else node.take(self.batch).pages
            results = FetchResults(list(self.sources[node.placement.index].answers(pages)))
            if threshold > 0:
                results.events.append(Event("pushed", 0.0, {"threshold": threshold}))
            idle = not pages and not node.has_mail
            floor = 0.0 if idle else self.options.least_cut * best
            self._carry(node, node.step(results, least=min(floor, threshold or floor) if cuts else None))

    def _push_depth(self, goal: float) -> float:
        """Return a threshold to which all shards should push, because that may reach the goal without a fetch."""
        if any(report.corrected for report in self.reports):
            return 0.0
        now = self.coverage(now=False)
        surplus = now.captured + now.moving - goal
        if surplus < 0 or now.moving < LEAST_PUSHED or now.at_least >= goal:
            return 0.0
        return max(surplus, LEAST_PUSHED) / 2 / max(sum(report.known + report.proxies for report in self.reports), 1)

    def _carry(self, node: Node, outgoing: Outgoing) -> None:
        """Put messages on the network, which may lose or repeat them."""
        for batch in outgoing.batches:
            self.batches += 1
            data = batch.to_bytes()
            self.bytes += len(data)
            self._send(batch.receiver, data)
        for sender, number in outgoing.acknowledgements.items():
            self._send(sender, b"%d %d" % (node.placement.index, number))

    def _send(self, receiver: int, message: bytes) -> None:
        copies = 1
        if self.rng.random() < self.faults.lost:
            copies = 0
        elif self.rng.random() < self.faults.repeated:
            copies = 2
        for _ in range(copies):
            self._messages += 1
            at = self.round + int(self.rng.integers(1, self.faults.delay + 1))
            heapq.heappush(self._network, (at, self._messages, receiver, message))

    def _deliver(self) -> None:
        while self._network and self._network[0][0] <= self.round:
            _, _, receiver, message = heapq.heappop(self._network)
            node = self.nodes[receiver]
            if message[:1] != b"[":
                sender, number = map(int, message.split())
                node.acknowledge(sender, number)
                continue
            batch = MassBatch.from_bytes(message)
            if self.faults.unchecked:
                node._stage(batch)  # what a node never does
                continue
            before = node.has_mail
            acknowledged = node.deliver(batch)
            self.refused += bool(acknowledged) and before == node.has_mail
            self._carry(node, Outgoing([], acknowledged))
