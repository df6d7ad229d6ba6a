"""Leases of shared addresses, with messages that are lost, repeated, late or out of order, and shards that restart."""

from __future__ import annotations

import heapq
import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from slow_cases import pairs
from surveyor.crawler.shards.addresses import FIRST, TERM, AddressLeases
from surveyor.fetch.politeness.policy import Gate

ADDRESS = "127.0.0.9"
LONGEST = 1.0  # of a request and its delay
DELAY = 0.2


class Network:
    """Shards that all want one address, in a clock of their own."""

    def __init__(self, rng: int, shards: int = 3, *, lost: float = 0.0) -> None:
        self.rng, self.lost, self.now = np.random.default_rng(rng), lost, 10.0
        self.gates = [Gate(0) for _ in range(shards)]
        self.leases = [AddressLeases(shard, shards, FIRST, LONGEST) for shard in range(shards)]
        self.incarnations = [FIRST] * shards
        self.ends = [0.0] * shards  # of the request in progress
        self.requests: list[tuple[float, int]] = []
        self._mail: list[tuple[float, int, int, Any]] = []

    def run(self, seconds: float, *, idle: float = 0.0, kills: float = 0.0) -> None:
        """Let all shards request the address whenever they may; `idle` is the share of steps that want nothing."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.01
            while self._mail and self._mail[0][0] <= self.now:
                _, _, receiver, message = heapq.heappop(self._mail)
                self.leases[receiver].receive(message, self.now)
            for shard in range(len(self.leases)):
                if self.rng.random() < kills:
                    self._restart(shard)
                self._step(shard, wants=self.rng.random() >= idle)

    def _restart(self, shard: int) -> None:
        self.incarnations[shard] += 1
        self.leases[shard] = AddressLeases(shard, len(self.leases), self.incarnations[shard], LONGEST)
        self.gates[shard] = Gate(0, free_at=self.now + DELAY)  # a restarted shard waits a delay before its requests
        self.ends[shard] = 0.0

    def _step(self, shard: int, *, wants: bool) -> None:
        gate = self.gates[shard]
        if gate.held and self.now >= self.ends[shard]:
            gate.held, gate.free_at = 0, self.now + DELAY
        if wants and gate.is_open(self.now) and self.leases[shard].may_use(ADDRESS, gate, self.now):
            gate.held = 1
            self.ends[shard] = self.now + float(self.rng.uniform(0.01, LONGEST - DELAY - 0.05))
            self.requests.append((self.now, shard))
        for receiver, message in self.leases[shard].messages(self.now):
            copies = 0 if self.rng.random() < self.lost else 1 + (self.rng.random() < 0.2)
            for _ in range(1 if receiver == shard else copies):
                late = 0.0 if receiver == shard else float(self.rng.exponential(0.05))
                heapq.heappush(self._mail, (self.now + late, len(self._mail), receiver, message))


@pytest.mark.parametrize(("rng", "faults"), pairs(range(20), [(0.0, 1), (0.2, 2), (0.5, 4)]))
def test_lost_messages_delay_no_shard_for_long(rng: int, faults: tuple[float, int]) -> None:
    lost, turns = faults
    network = Network(rng, lost=lost)
    network.run(100.0, idle=0.3)
    times = [time for time, _ in network.requests]
    assert min(after - before for before, after in pairwise(times)) >= DELAY
    assert max(after - before for before, after in pairwise(times)) < TERM + 2 * LONGEST
    for shard in range(3):
        own = [time for time, by in network.requests if by == shard]
        assert len(own) > 3
        assert max(after - before for before, after in pairwise(own)) < turns * (TERM + 2 * LONGEST)


@pytest.mark.parametrize("rng", range(20))
def test_no_request_overtakes_the_delay_after_restarts(rng: int) -> None:
    network = Network(rng, lost=0.2)
    network.run(120.0, idle=0.3, kills=0.001)
    assert max(network.incarnations) > FIRST
    times = [time for time, _ in network.requests]
    assert len(times) > 30
    assert min(after - before for before, after in pairwise(times)) >= DELAY


def test_requests_at_once_without_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AddressLeases, "may_use", lambda *_: True)
    network = Network(1)
    network.run(5.0)
    times = [time for time, _ in network.requests]
    assert min(after - before for before, after in pairwise(times)) < DELAY


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"5",
        b"{}",
        b'"want1"',
        b"[" * 5000,
        b'["want", 0, 2, "127.0.0.9"]',
        b'["want", 0, 2, "127.0.0.9", NaN]',
        b'["want", 0, 2, "127.0.0.9", 1%s]' % (b"0" * 400),
        b'["want", 3, 2, "127.0.0.9", 1.0]',
        b'["want", true, 2, "127.0.0.9", 1.0]',
        b'["want", 0, 2, ["127.0.0.9"], 1.0]',
        b'["release", 0, 2, "127.0.0.9", 1]',
        b'["release", 0, 2, "127.0.0.9", 1, Infinity]',
        b'["recall", 0, 2, "127.0.0.9", null]',
        b'["grant", 0, 2, "127.0.0.9", 1, 1.0, "x"]',
        b'["lend", 0, 2, "127.0.0.9", 1]',
    ],
)
def test_damaged_messages_are_rejected(data: bytes) -> None:
    with pytest.raises((ValueError, TypeError, RecursionError)):  # what a shard drops
        AddressLeases(0, 3, FIRST, LONGEST).receive(json.loads(data), 1.0)
