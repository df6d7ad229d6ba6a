"""Sharded crawls over real HTTP: bounds at every mixed report, kills, merged reading, resharding, politeness."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.sharded_crawl import LocalShards, create, hosts_by_address, settings_for

import surveyor as sv
from surveyor.config import Settings
from surveyor.crawler.replay import derive
from surveyor.crawler.seed_pages import SeedPages
from surveyor.crawler.shards.addresses import AddressLeases
from surveyor.crawler.shards.channels import MassBatch
from surveyor.crawler.shards.description import path_of, read_shards
from surveyor.crawler.shards.ledger import ShardLedger
from surveyor.crawler.shards.node import EVENTS, Node
from surveyor.crawler.shards.prepare import prepare, reshard
from surveyor.crawler.shards.worker import ShardWorker
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import http_settings, politeness_policy, start
from surveyor.errors import SurveyError, UsageError
from surveyor.fetch.client import HttpClient
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.synthetic.generate import WebShape
from surveyor.outcome import FetchResults
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder
from surveyor.testing import EmbeddedWeb, WebSettings, running

SHAPE = WebShape(pages=300, largest_site=30, topics=3)
TROUBLES = {"moved": 0.1, "loops": 0.05, "down": 0.05, "robots_rules": 0.2, "robots_moved": 0.1, "flaky": 0.05}


def web_settings(rng: int, **more: Any) -> WebSettings:
    return WebSettings.plain(web=SHAPE, rng=rng, seeds=3, **TROUBLES, **more)


def crawled(
    folder: Path, web: EmbeddedWeb, until: str, shards: int | None, *, rng: int = 1, kills: int = 0, **faults: float
) -> LocalShards:
    """Crawl a web in shards; all joint reports must be true."""
    settings = settings_for(web, until)
    crawl = LocalShards(
        create(folder, web, settings, shards),
        settings,
        rng=np.random.default_rng(rng),
        kills=kills,
        truth=web.truth(),
        **faults,  # type: ignore[arg-type]
    )
    asyncio.run(crawl.run())
    assert not crawl.wrong
    return crawl


@pytest.mark.parametrize("shards", [1, 4])
def test_bounds_hold_at_every_mixed_report_with_faults_and_kills(tmp_path: Path, shards: int) -> None:
    with running(web_settings(5)) as web:
        folder = tmp_path / "web.survey"
        crawl = crawled(folder, web, "coverage=0.9", shards, kills=4, delay=0.03, lost=0.1, repeated=0.1)
        assert crawl.restarts > 0 or shards == 1  # one shard may be done before it is killed
        assert crawl.checked > 5
        with sv.open(folder) as survey:
            assert survey.coverage.at_least >= 0.9
            low, high = web.truth().coverage(urls_of(survey))
            assert survey.coverage.at_least <= high + 1e-9
            assert low <= survey.coverage.at_most + 1e-9


def urls_of(survey: sv.Survey) -> list[str]:
    return [url for _, url, visit in survey.pages() if visit is not None and visit.kind == "fetched"]


@pytest.mark.slow
def test_ranks_are_those_of_one_process(tmp_path: Path) -> None:
    with running(web_settings(9, canonical=0.3, printed=0.05)) as web:
        crawled(tmp_path / "shards.survey", web, "pages=100000", 3)
        settings = settings_for(web, "pages=100000")
        given = {name: getattr(settings, name) for name in ("proxy", "contact", "delay", "backoff", "scope", "archive")}
        with sv.crawl(web.seeds, until=sv.Pages(100_000), out=tmp_path / "one.survey", **given) as one:
            single = one.rank(tolerance=1e-10)
        with sv.open(tmp_path / "shards.survey") as many:
            ranking = many.rank(tolerance=1e-10)
    scores = {ranking.name(page): float(ranking.scores[page]) for page in range(ranking.scores.size)}
    others = {single.name(page): float(single.scores[page]) for page in range(single.scores.size)}
    assert scores.keys() == others.keys()
    assert sum(abs(scores[url] - others[url]) for url in scores) <= ranking.error + single.error


@pytest.fixture(scope="module")
def web_and_crawl(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A web that was crawled in three shards, to the end."""
    folder = tmp_path_factory.mktemp("sharded") / "web.survey"
    with running(web_settings(6)) as web:
        crawled(folder, web, "coverage=0.95", 3)
        yield web, folder


@pytest.fixture
def crawl_of(web_and_crawl: tuple[EmbeddedWeb, Path], tmp_path: Path) -> tuple[EmbeddedWeb, Path]:
    """A copy of it."""
    web, folder = web_and_crawl
    shutil.copytree(folder, tmp_path / "web.survey")
    return web, tmp_path / "web.survey"


@pytest.mark.slow
def test_a_sharded_survey_opens_like_any_other(crawl_of: tuple[EmbeddedWeb, Path]) -> None:
    _, folder = crawl_of
    with sv.open(folder) as survey:
        visits = 0
        for path in read_shards(folder).paths:  # type: ignore[union-attr]
            with SurveyFolder.open(path, write=False) as shard:
                visits += shard.journal.position
        assert survey.visits == visits > 100
        assert not survey.notice
        assert survey.top(1)[0]["fetched"]
        assert survey.sql("SELECT count(*) FROM visits").rows[0][0] == visits
        ranking, single = survey.rank(), survey.graph()
        assert ranking.scores.size == single.pages


def test_checkpoints_of_shards_restore_the_same_accounts(crawl_of: tuple[EmbeddedWeb, Path]) -> None:
    _, folder = crawl_of
    for path in read_shards(folder).paths:  # type: ignore[union-attr]
        with SurveyFolder.open(path, write=False) as shard:
            assert shard.load_checkpoint() is not None
            restored = derive(shard).crawl.ledger
            shutil.rmtree(path / layout.CHECKPOINT)
            replayed = derive(shard).crawl.ledger
        assert isinstance(restored, ShardLedger)
        assert isinstance(replayed, ShardLedger)
        assert restored.accounts() == replayed.accounts()
        np.testing.assert_array_equal(restored.proxies, replayed.proxies)


@pytest.mark.slow
def test_reading_brings_the_copies_up_to_date(web_and_crawl: tuple[EmbeddedWeb, Path], tmp_path: Path) -> None:
    web, folder = web_and_crawl[0], tmp_path / "late.survey"
    crawled(folder, web, "pages=30", 2)
    with sv.open(folder) as survey:
        before = survey.visits
    crawled(folder, web, "pages=80", None)
    with sv.open(folder) as survey:
        assert survey.visits > before
        assert survey.pages_fetched >= 80


@pytest.mark.parametrize("shards", [1, 5])
def test_resharding_keeps_every_visit_and_needs_no_request(crawl_of: tuple[EmbeddedWeb, Path], shards: int) -> None:
    web, folder = crawl_of
    with sv.open(folder) as survey:
        before = sorted((url, visit.kind, visit.status) for _, url, visit in survey.pages() if visit)
    with SurveyFolder.open(folder) as opened:
        reshard(opened, shards)
    requests = len(web.log)
    crawl = crawled(folder, web, "coverage=0.9", None)
    assert crawl.shards.count == shards
    assert crawl.at_least >= 0.9
    assert len(web.log) == requests
    with sv.open(folder) as survey:
        assert before == sorted((url, visit.kind, visit.status) for _, url, visit in survey.pages() if visit)


@pytest.mark.parametrize("joined", [False, True])
def test_seeds_that_no_visit_names_are_queued(tmp_path: Path, joined: bool) -> None:
    folder = tmp_path / "web.survey"
    with running(web_settings(6)) as web:
        listed = (web.seeds[0] + "listed",)
        pages = SeedPages(dict.fromkeys(web.seeds, 1.0), listed)
        opened, chosen = start(folder, pages, settings_for(web, "pages=1"), {"scope": "argument"}, sharded=True)
        with opened:
            prepare(opened, chosen, 2)
            if joined:
                reshard(opened, 0)
    with sv.open(folder) as survey:
        assert [url for _, url, _ in survey.pages()] == [*web.seeds, *listed]
        assert survey.url_status(web.seeds[2]).kind == "queued"


def test_joined_shards_are_an_ordinary_survey(crawl_of: tuple[EmbeddedWeb, Path]) -> None:
    web, folder = crawl_of
    with pytest.raises(UsageError, match="has shards, so one process cannot crawl it"):
        start(folder, [], settings_for(web, "pages=5"), {})
    with SurveyFolder.open(folder) as opened:
        reshard(opened, 0)
    assert read_shards(folder) is None
    given: dict[str, Any] = {"proxy": f"http://127.0.0.1:{web.port}", "contact": "me@example.org"}
    with sv.crawl(str(folder), until=sv.Coverage(0.9), **given) as survey:
        assert survey.goal_reached


def test_a_lost_shard_is_built_again_from_the_copies(crawl_of: tuple[EmbeddedWeb, Path]) -> None:
    web, folder = crawl_of
    with sv.open(folder) as survey:
        fetched = survey.pages_fetched
    shutil.rmtree(path_of(folder, 1))
    settings = settings_for(web, "coverage=0.9")
    opened, chosen = start(folder, web.seeds, settings, {}, sharded=True)
    with opened, pytest.raises(SurveyError, match="001 is missing"):
        prepare(opened, chosen, None)
    with pytest.warns(UserWarning, match="001"), sv.open(folder) as survey:
        assert survey.pages_fetched == fetched
    with SurveyFolder.open(folder) as opened:
        reshard(opened, 3)
    crawl = crawled(folder, web, "coverage=0.9", None)
    assert crawl.at_least >= 0.9
    assert sum(worker.ledger.read for worker in crawl.workers.values()) == fetched


def test_a_shard_that_is_a_link_to_another_folder_is_refused(crawl_of: tuple[EmbeddedWeb, Path]) -> None:
    _, folder = crawl_of
    shard = path_of(folder, 1)
    shard.rename(folder.parent / "elsewhere")
    shard.symlink_to(folder.parent / "elsewhere")
    with pytest.warns(UserWarning, match="symbolic link"), pytest.raises(SurveyError, match="is a symbolic link"):
        sv.open(folder)


def test_a_shard_older_than_what_it_has_sent_is_recognised(crawl_of: tuple[EmbeddedWeb, Path]) -> None:
    _, folder = crawl_of
    with SurveyFolder.open(path_of(folder, 0), write=False) as shard:
        state = derive(shard)
        ledger = state.crawl.ledger
        assert isinstance(ledger, ShardLedger)
        node = Node(state.crawl, ledger, shard, shard.journal.events(*EVENTS), lambda: 0.0)  # type: ignore[arg-type]
        node.acknowledge(1, node.sender.last[1])
        with pytest.raises(SurveyError, match="shard 0 has lost batches that shard 1 has received"):
            node.acknowledge(1, node.sender.last[1] + 1)


def test_another_scope_builds_the_shards_again(crawl_of: tuple[EmbeddedWeb, Path]) -> None:
    web, folder = crawl_of
    before = read_shards(folder)
    settings = settings_for(web, "coverage=0.9")
    opened, chosen = start(folder, web.seeds, settings, {"damping": "argument"}, sharded=True)
    with opened:
        assert prepare(opened, chosen, None) == before
    opened, chosen = start(
        folder, web.seeds, settings_for(web, "coverage=0.9", damping=0.8), {"damping": "argument"}, sharded=True
    )
    with opened:
        after = prepare(opened, chosen, None)
    assert before is not None
    assert after.crawl != before.crawl


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ({"depth": 3}, "a depth limit"),
        ({"budget": "100"}, "page budgets"),
        ({"strategy": "opic"}, "the strategy opic"),
        ({"until": "coverage=0.9@95%"}, "a sampled coverage"),
    ],
)
def test_settings_that_need_one_process_are_refused(tmp_path: Path, setting: dict[str, Any], what: str) -> None:
    with running(web_settings(5)) as web:
        settings = settings_for(web, **{"until": "pages=5", **setting})
        origins = dict.fromkeys(setting, "argument")
        opened, chosen = start(tmp_path / "web.survey", web.seeds, settings, origins, sharded=True)
        with opened, pytest.raises(UsageError, match=f"{what} is not possible in a sharded crawl"):
            prepare(opened, chosen, 2)


class SharedAddresses:
    """A client whose hosts share a few addresses; it requests all of them from one server."""

    def __init__(self, client: HttpClient, addresses: dict[str, str]) -> None:
        self._client, self._addresses = client, addresses

    async def address(self, host: str) -> str:
        return self._addresses.get(host, "")

    async def fetch(self, request: FetchRequest) -> Fetched:
        return await self._client.fetch(request)


@pytest.mark.parametrize("leased", [True, False], ids=["leases", "without leases, which must fail"])
def test_shards_together_keep_the_delay_of_a_shared_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, leased: bool
) -> None:
    delay = 0.1
    if not leased:
        monkeypatch.setattr(AddressLeases, "may_use", lambda *_: True)
    with running(web_settings(8)) as web:
        settings = settings_for(web, "pages=60", delay=delay)
        addresses = hosts_by_address(list(web.hosts), 6)
        shards = create(tmp_path / "web.survey", web, settings, 3)

        async def run() -> None:
            async with HttpClient(http_settings(settings)) as client:

                def connect(_: int) -> Connection:
                    hosts = Hosts(policy=politeness_policy(settings))
                    return Connection(client=SharedAddresses(client, addresses), hosts=hosts)

                await LocalShards(shards, settings, connect=connect, delay=0.02, lost=0.05, repeated=0.1).run()

        asyncio.run(run())
        by_address: dict[str, list[float]] = defaultdict(list)
        for request in web.log:
            by_address[addresses[request.host]].append(request.time)
    gaps = [after - before for times in by_address.values() for before, after in pairwise(sorted(times))]
    assert len(gaps) > 60
    assert (min(gaps) >= delay - 0.005) == leased


def test_messages_that_are_none_change_nothing(tmp_path: Path) -> None:
    """Random bytes, truncated and altered messages of every kind, and messages of shards that do not exist."""
    settings = Settings(contact="me@example.org", until="pages=5")
    seeds = [f"http://site{number}.example/" for number in range(8)]
    opened, chosen = start(tmp_path / "web.survey", seeds, settings, {"contact": "argument"}, sharded=True)
    with opened:
        shards = prepare(opened, chosen, 2)
    sent, rng = list[tuple[int, bytes]](), np.random.default_rng(8)
    with SurveyFolder.open(path_of(shards.folder, 0)) as folder:
        worker = ShardWorker(folder, chosen, lambda shard, message: sent.append((shard, message)))
        worker._store.commit(FetchResults())
        worker.node.begin()
        before = worker.node.report()
        crawl = worker.node.crawl
        good = [
            b"b" + MassBatch("another", 1, 0, 1, 0, 1, (seeds[0],), (0.1,)).to_bytes(),
            b"b" + MassBatch(crawl, 7, 0, 1, 0, 1, (seeds[0],), (0.1,)).to_bytes(),
            b"a" + json.dumps(["another", 1, 5]).encode(),
            b"a" + json.dumps([crawl, 1, 2.5]).encode(),
            b"h" + json.dumps(["another", 1]).encode(),
            *(
                b"l" + json.dumps(message).encode()
                for message in (
                    ["want", 9, 1, "192.0.2.1", 0.0],
                    ["want", 1, 1, 5, 0.0],
                    ["want", 1, 1, "192.0.2.1"],
                    ["want", [], 1, "192.0.2.1", 0.0],
                    ["grant", 1, 1, "192.0.2.1", 1, 1e400, 0.0],
                    ["other", 1, 1, "192.0.2.1", 0.0],
                )
            ),
            *(kind + b"[" * 100_000 for kind in (b"b", b"a", b"h", b"l")),
        ]
        for message in good:
            worker.receive(message)
        for _ in range(3000):
            data = bytearray(good[int(rng.integers(len(good) - 4))])
            for _ in range(int(rng.integers(1, 4))):
                data[int(rng.integers(1, len(data)))] = int(rng.integers(256))
            worker.receive(bytes(data[: int(rng.integers(1, len(data) + 1))]))
            worker.receive(bytes(rng.integers(0, 256, int(rng.integers(40)), np.uint8)))
        assert worker.failure is None
        assert not worker.node.has_mail
        assert worker.node.report() == before
        assert {shard for shard, _ in sent} <= {0, 1}
