"""A crawl in shards over a simulated network: invariants I1 to I4 against dense oracles, with faults and controls."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from typing import Any

import numpy as np
import pytest

from cluster_processes import Socket, listening
from oracles import importance_from_each
from slow_cases import one_in
from surveyor import Graph
from surveyor.arrays import ByteArray, FloatArray, IdArray
from surveyor.cluster.metrics import served
from surveyor.crawler.shards.bounds import Report, in_flight, joint_coverage
from surveyor.crawler.shards.channels import WINDOW, MassBatch
from surveyor.crawler.shards.director import Director
from surveyor.crawler.shards.metrics import exposition
from surveyor.crawler.shards.node import Node
from surveyor.crawler.shards.placement import UrlPlacement, shard_of
from surveyor.errors import InputError, SurveyError, UsageError
from surveyor.outcome import FetchResults, Outcome
from surveyor.simulation.shards import Faults, ShardedSimulation, ShardOptions, split
from surveyor.stopping import parse_rule
from surveyor.web.urls import Urls
from webs import random_web

ROUNDING = 1e-12
HARSH = Faults(delay=6, repeated=0.2, lost=0.2, killed=0.05, resend=4)
STATUS, FETCHED, BLOCKED = 7, 2, 3


def made(
    seed: int, shards: int, *, pages: int = 60, faults: Faults = HARSH, failures: bool = True
) -> tuple[ShardedSimulation, FloatArray, FloatArray]:
    """Return a sharded crawl of a random web; the importance of its pages, and that with all jumps to each page."""
    rng = np.random.default_rng([seed, 9])
    graph = random_web(pages, 5 * pages, seed)
    outcomes = rng.choice(3, pages, p=[0.8, 0.1, 0.1]).astype(np.uint8)
    outcomes[:3] = 0
    if not failures:
        outcomes[:] = 0
    weights = rng.integers(1, 5, 3).astype(np.float64)
    owner = rng.integers(0, shards, pages)
    options = ShardOptions(shards=shards, weights=weights)
    crawl = ShardedSimulation(graph, [0, 1, 2], owner, outcomes=outcomes, faults=faults, options=options, rng=seed)
    return crawl, *importances(links_of(graph, outcomes), weights, pages)


def links_of(graph: Graph, outcomes: ByteArray) -> dict[int, IdArray]:
    """Return the links of pages; pages that are gone have none."""
    return {page: graph.links_of(page) for page in range(graph.pages) if outcomes[page] != 1}


def importances(links: dict[int, IdArray], weights: FloatArray, pages: int = 60) -> tuple[FloatArray, FloatArray]:
    """Return the importance of each page, and that with all jumps to each page, of a web with these links."""
    counts = np.zeros((pages, pages))
    for page, targets in links.items():
        counts[page, targets] = 1
    teleport = np.zeros(pages)
    teleport[: weights.size] = weights / weights.sum()
    each = importance_from_each(counts, 0.85, teleport)
    return teleport @ each, each


def check_identity(crawl: ShardedSimulation, truth: FloatArray, each: FloatArray) -> None:
    """I1: importance is settled mass, and residuals and mass in flight times the importance from their pages."""
    total = np.zeros(truth.size)
    for node in crawl.nodes:
        settled, residual = node.ledger.mass.settled[: truth.size], node.ledger.residual[: truth.size]
        total += settled + residual @ each + node.ledger.accounts().pool * truth
    for sender, receiver in itertools.permutations(range(crawl.shards), 2):
        cuts = channel(crawl, sender, "shard_cut", "to", receiver)
        gots = channel(crawl, receiver, "shard_got", "from", sender)
        for pages, masses in cuts[len(gots) :]:
            total += np.array(masses) @ each[np.array(pages)]
    assert np.abs(total - truth).max() < ROUNDING


Entries = tuple[tuple[int, ...], tuple[float, ...]]


def channel(crawl: ShardedSimulation, index: int, kind: str, side: str, other: int) -> list[Entries]:
    """Return pages and masses of the batches of one channel, as one side has them in its journal."""
    events = [event for event in crawl.journals[index].events() if event.kind == kind]
    chosen = [event.detail for event in events if event.detail[side] == other]
    assert [detail["number"] for detail in chosen] == list(range(1, len(chosen) + 1))
    return [(tuple(detail["pages"]), tuple(detail["masses"])) for detail in chosen]


def check_channels(crawl: ShardedSimulation) -> None:
    """I3: what one side has received is what the other has sent, bit for bit."""
    for sender, receiver in itertools.permutations(range(crawl.shards), 2):
        gots = channel(crawl, receiver, "shard_got", "from", sender)
        assert channel(crawl, sender, "shard_cut", "to", receiver)[: len(gots)] == gots


def fetched_by(node: Node) -> frozenset[int]:
    return frozenset(np.flatnonzero(node.ledger.state & STATUS == FETCHED).tolist())


def lower(report: Report) -> float:
    return report.accounts.captured + 0.15 * report.accounts.moving


@pytest.mark.parametrize(("seed", "shards"), one_in(3, [(2, 2), (1, 1), (4, 8), (3, 4), (5, 3), (6, 5)]))
def test_invariants_under_faults(seed: int, shards: int) -> None:
    crawl, truth, each = made(seed, shards)
    rng = np.random.default_rng([seed, 1])
    ever = [[(node.report(), fetched_by(node))] for node in crawl.nodes]
    for _ in range(120):
        crawl.step()
        check_identity(crawl, truth, each)
        for node, past in zip(crawl.nodes, ever, strict=True):
            report = node.report()
            assert abs(report.accounts.imbalance) < ROUNDING  # I2
            assert lower(report) >= lower(past[-1][0]) - ROUNDING  # I4
            past.append((report, fetched_by(node)))
        mixed = [past[int(rng.integers(len(past)))] for past in ever]
        bounds = joint_coverage([report for report, _ in mixed], damping=0.85, aliases=False)
        true = truth[sorted(set().union(*(pages for _, pages in mixed)))].sum()
        assert bounds.at_least - ROUNDING <= true <= bounds.at_most + ROUNDING
    check_channels(crawl)
    assert crawl.kills > 0
    assert shards == 1 or crawl.refused > 0
    assert crawl.coverage().at_least > 0.3


@pytest.mark.parametrize("shards", [2, 5])
def test_a_restored_shard_has_exactly_the_state_that_it_had(shards: int) -> None:
    crawl, _, _ = made(7, shards, faults=Faults(delay=3, lost=0.1))
    for _ in range(60):
        crawl.step()
    for index, node in enumerate(crawl.nodes):
        other = crawl._restored(index)
        for name in ("residual", "settled", "totals"):
            np.testing.assert_array_equal(getattr(node.ledger.mass, name), getattr(other.ledger.mass, name))
        np.testing.assert_array_equal(node.ledger.state & STATUS, other.ledger.state & STATUS)
        assert other.report().accounts == node.report().accounts
        assert other.sender.last == node.sender.last
        assert other.receiver.last == node.receiver.last
        held = {(batch.receiver, batch.number): batch for batch in other.sender.unacknowledged()}
        assert all(held[batch.receiver, batch.number] == batch for batch in node.sender.unacknowledged())


def lost_or_gained(faults: Faults) -> float:
    """Return the mass that all shards together have lost or gained at the end of a crawl, with nothing in flight."""
    crawl, _, _ = made(11, 4, pages=120, faults=faults)
    for _ in range(150):
        crawl.step()
    for _ in range(60):
        crawl.step(cuts=False)
    return abs(in_flight([node.report() for node in crawl.nodes]))


def test_without_numbers_repeated_and_lost_batches_break_the_accounts() -> None:
    assert lost_or_gained(Faults(delay=3, repeated=0.05, lost=0.05)) < ROUNDING
    assert lost_or_gained(Faults(delay=3, repeated=0.05, unchecked=True)) > 1e-6
    assert lost_or_gained(Faults(delay=3, lost=0.05, unchecked=True, resend=1 << 30)) > 1e-6


@pytest.mark.parametrize(("seed", "shards"), [(21, 2), (22, 4), (23, 6)])
def test_corrections_are_certified_by_consistent_cuts(seed: int, shards: int) -> None:
    crawl, _, _ = made(seed, shards, failures=False, faults=Faults(delay=5, lost=0.1, repeated=0.1, killed=0.02))
    weights, rng = np.asarray(crawl.options.weights), np.random.default_rng([seed, 2])
    web = links_of(crawl.graph, np.zeros(crawl.graph.pages, np.uint8))
    entered: dict[int, dict[int, tuple[frozenset[int], dict[int, IdArray]]]] = {}
    reports: dict[int, dict[int, Report]] = {}
    epoch, checked, negative = 0, 0, 0.0

    def watched(node: Node) -> None:
        enter = node.enter

        def note(number: int) -> None:
            if number > node.epoch:
                pages = fetched_by(node)
                known = {page: node.ledger.graph.links_of(page).copy() for page in pages}
                entered.setdefault(number, {})[node.placement.index] = pages, known
            enter(number)

        node.enter = note  # type: ignore[assignment,method-assign]

    for turn in range(160):
        crawl.step()
        for node in crawl.nodes:
            if "enter" not in vars(node):  # it is new, or was killed
                watched(node)
        node = crawl.nodes[int(rng.integers(shards))]
        if turn > 30 and (pages := sorted(fetched_by(node))):
            page = int(rng.choice(pages))
            web[page] = rng.choice(60, int(rng.integers(0, 6)), replace=False).astype(np.int32)
            web[page] = web[page][web[page] != page]
            crawl._carry(node, node.step(FetchResults([Outcome(page, "fetched", web[page])])))
        if turn % 8 == 0:
            epoch += 1
            crawl.nodes[int(rng.integers(shards))].enter(epoch)  # the others hear of it from batches, or below
        if turn % 8 == 5:
            for node in crawl.nodes:
                node.enter(epoch)
        for node in crawl.nodes:
            negative = max(negative, node.report().accounts.negative)
            if (report := node.report_of(epoch)) is not None:
                reports.setdefault(epoch, {})[node.placement.index] = report
        for number in [number for number, found in reports.items() if len(found) == shards]:
            found = list(reports.pop(number).values())
            fetched = sorted(set().union(*(pages for pages, _ in entered[number].values())))
            links = web | {page: ids for _, known in entered[number].values() for page, ids in known.items()}
            true = importances(links, weights)[0][fetched].sum()
            bounds = joint_coverage(found, damping=0.85, aliases=False, consistent=True)
            assert bounds.at_least - ROUNDING <= true <= bounds.at_most + ROUNDING
            checked += 1
    assert checked >= 10
    assert negative > 1e-6
    assert any(node.ledger.corrected for node in crawl.nodes)
    with pytest.raises(UsageError, match="several ages"):
        joint_coverage([node.report() for node in crawl.nodes], damping=0.85, aliases=False)


def small(links: list[tuple[int, int]], owner: list[int]) -> ShardedSimulation:
    """Return a sharded crawl of a small web from page 0 that fetches nothing by itself."""
    sources, targets = zip(*links, strict=True)
    graph = Graph.from_arrays(np.array(sources), np.array(targets), len(owner))
    return ShardedSimulation(graph, [0], np.array(owner), options=ShardOptions(batch=0))


def settle(crawl: ShardedSimulation, *outcomes: tuple[int, Outcome], rounds: int = 60) -> None:
    for shard, outcome in outcomes:
        crawl._carry(crawl.nodes[shard], crawl.nodes[shard].step(FetchResults([outcome]), least=0.0))
    for _ in range(rounds):
        crawl.step()


def ids(*pages: int) -> IdArray:
    return np.array(pages, np.int32)


def test_redirects_across_shards_forward_their_mass() -> None:
    crawl = small([(0, 1)], [0, 1, 0])  # 0 links to 1, which redirects to 2
    settle(crawl, (0, Outcome(0, "fetched", ids(1))))
    settle(crawl, (1, Outcome(1, "redirected", target=2)))
    assert crawl.nodes[0].ledger.residual[2] == pytest.approx(0.85)
    assert crawl.nodes[1].ledger.accounts().waiting == 0
    settle(crawl, (0, Outcome(2, "fetched")))
    assert crawl.coverage().at_least == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("shards", [2, 3])
def test_redirects_in_a_circle_are_blocked_and_lose_nothing(shards: int) -> None:
    crawl = small([(0, 1)], [0, *range(shards)])  # 0 links to 1, and 1, 2, … redirect to each other in a circle
    settle(crawl, (0, Outcome(0, "fetched", ids(1))))
    for page in range(1, shards + 1):
        settle(crawl, (page - 1, Outcome(page, "redirected", target=page % shards + 1)))
    settle(crawl, rounds=200)
    blocked = sum(node.ledger.accounts().blocked for node in crawl.nodes)
    assert blocked == pytest.approx(0.85)
    assert not crawl._network
    assert in_flight([node.report() for node in crawl.nodes]) == pytest.approx(0)
    assert any(int(node.ledger.state[page]) & STATUS == BLOCKED for node in crawl.nodes for page in (1, 2))


def batch(**values: Any) -> MassBatch:
    given = {"sender": 1, "receiver": 0, "incarnation": 2, "epoch": 0, "number": 1, "names": ("5",), "masses": (0.1,)}
    return MassBatch(crawl="simulation", **{**given, **values})


@pytest.mark.parametrize(
    "foreign",
    [{"incarnation": 1}, {"receiver": 1}, {"sender": 0}, {"sender": 2}, {"number": 1}, {"number": 3}, {"number": 99}],
    ids=str,
)
def test_batches_of_a_replaced_process_or_out_of_turn_change_nothing(foreign: dict[str, int]) -> None:
    crawl = small([(0, 1)], [0, 1, 0, 0, 0, 0])
    node = crawl.nodes[0]
    node.deliver(batch())
    node.step(FetchResults())
    before = node.report().accounts
    assert before.received == 0.1
    node.deliver(batch(**{"number": 2, **foreign}))
    node.step(FetchResults())
    assert node.report().accounts == before


def test_a_sender_that_runs_ahead_neither_fills_the_memory_nor_shuts_out_its_successor() -> None:
    node = small([(0, 1)], [0, 1, 0, 0, 0, 0]).nodes[0]
    for number in range(2, 300):
        node.deliver(batch(number=number, incarnation=2))
    assert len(node._early) < WINDOW
    node.deliver(batch(number=10_000, incarnation=1 << 50))
    node.deliver(batch(number=1))
    assert node.has_mail


def test_batches_of_another_crawl_are_refused() -> None:
    node = small([(0, 1)], [0, 1]).nodes[0]
    node.deliver(MassBatch("another", 1, 0, 2, 0, 1, ("0",), (0.1,)))
    assert not node.has_mail


def test_batches_with_pages_of_another_shard_are_never_stored() -> None:
    node = small([(0, 1)], [0, 1]).nodes[0]
    with pytest.raises(SurveyError, match="shard 1 has sent pages to shard 0 that belong to another one"):
        node.deliver(batch(names=("0", "1"), masses=(0.1, 0.1), epoch=3))
    assert not node.has_mail
    assert node.epoch == 0
    node.deliver(batch(names=("0",)))
    assert node.has_mail


@pytest.mark.parametrize("name", ["", "5", "mailto:me@example.org", "/etc/passwd", "http://\ud800.example/"])
def test_batches_with_names_that_are_no_urls_add_no_page(name: str) -> None:
    urls = Urls()
    place = UrlPlacement(urls, shard_of("example.org", 2), 2)
    with pytest.raises(InputError, match="a batch of mass is damaged"):
        place.owns(["https://example.org/", name])
    assert place.owns(["https://www.example.org/a", "http://example.org/"])
    assert not place.owns(["https://example.org/", "https://example.com/"])
    assert not len(urls)


def test_masses_arrive_bit_for_bit() -> None:
    masses = tuple(np.random.default_rng(3).random(1000) * 10.0 ** np.arange(-300, 0).repeat(4)[:1000])
    sent = batch(names=tuple(map(str, range(1000))), masses=tuple(map(float, masses)), hops=(1,) * 1000)
    assert MassBatch.from_bytes(sent.to_bytes()) == sent


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"[" * 5000, batch().to_bytes().replace(b"0.1", b"NaN"), b'["a",1,0,2,0,1,["5"],[],[]]']
)
def test_damaged_batches_are_rejected(data: bytes) -> None:
    with pytest.raises(InputError, match="a batch of mass is damaged"):
        MassBatch.from_bytes(data)


def test_order_costs_few_reads() -> None:
    from surveyor.graph.synthetic.generate import synthetic_web

    web = synthetic_web("small").graph
    reads = {}
    for shards in (1, 8):
        crawl = ShardedSimulation(web, [0, 400], split(web, shards), options=ShardOptions(shards=shards))
        assert crawl.run(0.9)
        reads[shards] = crawl.fetched
    assert reads[8] <= 1.12 * reads[1]


def test_metrics_are_the_reports_of_all_shards() -> None:
    crawl, _, _ = made(3, 4)
    director = Director(4, parse_rule("coverage=0.9"), 0.85)
    empty = exposition(director)
    assert "surveyor_coverage_at_least{" not in empty
    assert "\nsurveyor_shards_reporting 0\n" in empty
    for _ in range(40):
        crawl.step()
    reports = [node.report() for node in crawl.nodes]
    for report in reports:
        director.update([report])
    text, found = exposition(director, 2), dict[str, float]()
    for line in text.splitlines():
        if not line.startswith("#"):
            sample = re.fullmatch(r"([a-z_]+(?:\{[a-z]+=\"[a-z0-9]+\"(?:,[a-z]+=\"[a-z0-9]+\")*\})?) (\S+)", line)
            assert sample is not None, line
            assert sample[1] not in found
            found[sample[1]] = float(sample[2])
    now = director.coverage()
    assert now is not None
    assert found["surveyor_coverage_at_least"] == now.at_least
    assert found["surveyor_coverage_at_most"] == now.at_most
    assert found["surveyor_process_restarts_total"] == 2
    for report in reports:
        assert found[f'surveyor_pages_fetched_total{{shard="{report.shard}"}}'] == report.fetched
        assert found[f'surveyor_mass{{shard="{report.shard}",account="waiting"}}'] == report.accounts.waiting
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {name.partition("{")[0] for name in found} == named


def test_metrics_are_served_on_loopback() -> None:
    async def reading() -> tuple[bytes, bytes, list[Socket]]:
        async with served("0", lambda: "surveyor_shards 3\n") as port:
            open_now = [one for one in listening({os.getpid(): ""}) if one.port == port]
            with pytest.raises(UsageError, match=f"metrics cannot be served at 127.0.0.1:{port}"):
                async with served(str(port), str):
                    pass
            answers = []
            for path in (b"/metrics", b"/other"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                answers.append(await reader.read())
                writer.close()
            return answers[0], answers[1], open_now

    found, other, sockets = asyncio.run(reading())
    assert found.startswith(b"HTTP/1.1 200")
    assert found.endswith(b"\r\n\r\nsurveyor_shards 3\n")
    assert other.startswith(b"HTTP/1.1 404")
    assert [str(socket.address) for socket in sockets] == ["127.0.0.1"]
