"""Sharded crawls in Ray actors on loopback: SIGKILL of the processes of shards, resume on another number of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.sharded_crawl import create, settings_for

import surveyor as sv
from cluster_processes import descendants
from surveyor.cluster.crawl import ShardedRun, ShardHost, check_version
from surveyor.cluster.metrics import served
from surveyor.cluster.session import Session
from surveyor.config import Settings
from surveyor.crawler.shards.director import Director
from surveyor.crawler.shards.metrics import exposition
from surveyor.crawler.start import start
from surveyor.errors import UsageError
from surveyor.graph.synthetic.generate import WebShape
from surveyor.stopping import parse_rule
from surveyor.testing import EmbeddedWeb, WebSettings, running

pytestmark = pytest.mark.xdist_group("cluster")  # one cluster at a time
SHAPE = WebShape(pages=400, largest_site=30, topics=3)


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    """A web with pages that are blocked, gone or redirected."""
    with running(WebSettings.plain(web=SHAPE, rng=4, seeds=3, moved=0.1, robots_rules=0.2, down=0.05)) as made:
        yield made


def crawl(
    web: EmbeddedWeb, folder: Path, until: str, workers: int, *, kills: int = 0, pages: list[str] | None = None
) -> tuple[str, int]:
    """Crawl in three shards and kill processes at random moments; return the ending and the number of restarts.

    With `pages`, the metrics are served and read over HTTP all the time.
    """
    settings = settings_for(web, until, delay=0.02)
    shards = create(folder, web, settings, None if folder.exists() else 3)
    run, rng = ShardedRun(shards, settings, parse_rule(until), workers), np.random.default_rng(workers)
    left, killed = kills, set[int]()

    def watch(director: Director) -> None:
        nonlocal left
        alive = [process for process in run.processes.values() if process not in killed]
        if left and director.is_complete and alive and rng.random() < 0.4:
            left -= 1
            killed.add(alive[int(rng.integers(len(alive)))])
            os.kill(max(killed & set(alive)), signal.SIGKILL)

    async def reading(port: int) -> None:
        while pages is not None:
            pages.append(await asyncio.to_thread(text_at, port))
            await asyncio.sleep(0.05)

    async def crawling() -> str:
        async with served(None if pages is None else "0", lambda: exposition(run.director, run.restarts)) as port:
            reader = asyncio.create_task(reading(port))
            try:
                return await asyncio.wait_for(run.run(watch), 300)
            finally:
                reader.cancel()

    return asyncio.run(crawling()), run.restarts


def text_at(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text: str = response.read().decode()
        return text


def values_of(text: str, name: str) -> list[float]:
    return [float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]


def check(web: EmbeddedWeb, folder: Path) -> None:
    """Compare the coverage of a survey with the truth."""
    with sv.open(folder) as survey:
        assert survey.coverage.at_least >= 0.85
        fetched = [url for _, url, visit in survey.pages() if visit is not None and visit.kind == "fetched"]
        low, high = web.truth().coverage(fetched)
        assert survey.coverage.at_least <= high + 1e-9
        assert low <= survey.coverage.at_most + 1e-9


@pytest.mark.usefixtures("cluster")
@pytest.mark.slow
def test_killed_processes_lose_nothing_and_another_number_resumes(web: EmbeddedWeb, tmp_path: Path) -> None:
    folder = tmp_path / "web.survey"
    texts = list[str]()
    assert crawl(web, folder, "pages=40", 2, pages=texts)[0] == "reached"
    assert values_of(texts[0], "surveyor_shards") == [3]
    fetched = [sum(values_of(text, "surveyor_pages_fetched_total")) for text in texts]
    assert fetched == sorted(fetched), "a counter never falls"
    with sv.open(folder) as survey:
        assert 0 < fetched[-1] <= survey.pages_fetched
    bounds = [low for text in texts for low in values_of(text, "surveyor_coverage_at_least")]
    assert bounds == sorted(bounds)
    assert 0 < bounds[-1] < 1
    assert len(values_of(texts[-1], "surveyor_mass")) == 3 * 7
    ending, restarts = crawl(web, folder, "coverage=0.85", 1, kills=1)
    assert ending == "reached"
    assert restarts >= 1
    check(web, folder)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("workers", [1, 2])
def test_many_kills_lose_nothing(web: EmbeddedWeb, tmp_path: Path, workers: int) -> None:
    folder = tmp_path / "web.survey"
    ending, restarts = crawl(web, folder, "coverage=0.85", workers, kills=5)
    assert ending == "reached"
    assert restarts >= 3
    check(web, folder)


@pytest.mark.usefixtures("cluster")
@pytest.mark.slow
def test_an_error_of_a_shard_ends_the_crawl_with_its_advice(web: EmbeddedWeb, tmp_path: Path) -> None:
    settings = settings_for(web, "pages=5")
    shards = create(tmp_path / "web.survey", web, settings, 2)
    shutil.rmtree(shards.paths[1])
    opened, _ = start(shards.paths[1], web.seeds, settings, {})
    opened.close()
    with pytest.raises(UsageError, match="001 is not a shard") as found:
        asyncio.run(ShardedRun(shards, settings, parse_rule("pages=5"), 2).run())
    assert found.value.problem.endswith("is not a shard")
    assert found.value.hint == "crawl with --shards"


class SentTo:
    """In place of an actor: keeps the messages that it is sent."""

    def __init__(self) -> None:
        self.messages = list[bytes]()
        self.receive = self

    def options(self, **_: Any) -> SentTo:
        return self

    def remote(self, _: int, message: bytes) -> None:
        self.messages.append(message)


def test_an_overtaken_call_does_not_bring_back_a_dead_actor() -> None:
    old, new = SentTo(), SentTo()

    async def run() -> None:
        host = ShardHost({}, Settings(contact="me@example.org"), None, sv.__version__)
        await host.connect(1, {5: new})
        await host.connect(0, {5: old})
        host._post(5, b"x")

    asyncio.run(run())
    assert (old.messages, new.messages) == ([], [b"x"])


def test_other_versions_are_refused() -> None:
    check_version(sv.__version__)
    with pytest.raises(UsageError, match=f"has surveyor {sv.__version__}, and the machine of the command 0.0.9"):
        check_version("0.0.9")


@pytest.mark.slow
def test_killed_machines_lose_nothing(cluster: Session, web: EmbeddedWeb, tmp_path: Path) -> None:
    until, rng, killed = "coverage=0.85", np.random.default_rng(5), list[int]()
    settings = settings_for(web, until, delay=0.5)
    shards = create(tmp_path / "web.survey", web, settings, 4)
    run = ShardedRun(shards, settings, parse_rule(until), 2, restore=cluster.restore)
    at = 10

    def watch(director: Director) -> None:
        nonlocal at
        pages = director.progress().pages
        if not director.is_complete or len(killed) == 3 or pages < at:
            return
        raylets = [
            pid for pid, command in descendants().items() if "raylet/raylet" in command and "--head" not in command
        ]
        if raylets:  # not that of the driver
            killed.append(raylets[0])
            os.kill(raylets[0], signal.SIGKILL)
            at = pages + int(rng.integers(20, 60))

    ending = asyncio.run(asyncio.wait_for(run.run(watch), 300))
    assert ending == "reached"
    assert killed
    assert run.restarts
    check(web, tmp_path / "web.survey")


@pytest.mark.slow
def test_a_killed_head_ends_the_command_which_then_resumes(web: EmbeddedWeb, tmp_path: Path) -> None:
    folder = tmp_path / "web.survey"
    options = {"cluster": "local:2", "shards": "4", "until": "coverage=0.85", "out": str(folder)}
    options |= {"proxy": f"http://127.0.0.1:{web.port}", "contact": "me@example.org", "scope": "any"}
    options |= {"delay": "0.5", "domain-delay": "0", "backoff": "0.05"}
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    command = [sys.executable, "-m", "surveyor", "crawl", *web.seeds, *given]
    before = len(web.log)
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            heads = list[int]()
            while process.poll() is None and (len(web.log) < before + 40 or not heads):
                time.sleep(0.05)
                commands = descendants(process.pid).items()
                heads = [pid for pid, words in commands if "raylet/raylet" in words and "--head" in words]
            os.kill(heads[0], signal.SIGKILL)
            _, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 4
    assert errors.splitlines()[-2:] == [
        "the local cluster has stopped: the worker of this process was killed",
        "  hint: run the same command again",
    ]
    assert "Traceback" not in errors
    with sv.open(folder) as survey:
        fetched = survey.pages_fetched
        assert fetched > 0
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    with sv.open(folder) as survey:
        assert survey.pages_fetched > fetched
    check(web, folder)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_crawls_from_python(web: EmbeddedWeb, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "contact": "me@example.org",
        "proxy": f"http://127.0.0.1:{web.port}",
        "scope": "any",
        "archive": False,
    }
    options |= {"delay": 0, "domain_delay": 0, "backoff": 0.05, "cluster": "auto"}
    out = str(tmp_path / "web.survey")
    with sv.crawl(web.seeds, until="coverage=0.5", out=out, shards=3, **options) as survey:
        assert survey.goal_reached
        assert survey.ending == "reached"
        fetched = survey.pages_fetched
        assert survey.coverage.at_least >= 0.5
    with pytest.raises(UsageError, match="has 3 shards, got --shards 2"):
        sv.crawl(out, shards=2, **options)
    with sv.crawl(out, until=sv.Coverage(0.8), **options) as survey:
        assert survey.pages_fetched > fetched
        assert survey.coverage.at_least >= 0.8
    with pytest.raises(UsageError, match="has shards, so one process cannot crawl it"):
        sv.crawl(out)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"shards": 2}, "shards needs a cluster"),
        ({"cluster": "there"}, "cluster must be auto, local:N or HOST:PORT"),
        ({"cluster": "local:1", "from_last_good": True}, "from_last_good is not possible with cluster"),
        ({"cluster": "local:1", "watch": print}, "watch is not possible with cluster"),
    ],
)
def test_crawls_from_python_that_are_not_possible(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        sv.crawl("http://127.0.0.1:9/", contact="me@example.org", **options)
