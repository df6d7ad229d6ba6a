"""Communities over real HTTP: politeness, and resume after SIGKILL."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiments.communities_live import DELAY, main

import surveyor as sv
from community_crawls import ROUGH, SHAPE
from surveyor.config import Settings
from surveyor.estimate.community.community_options import CommunityOptions
from surveyor.estimate.community.community_survey import CrawledCommunity, crawl_community, open_community_survey
from surveyor.fetch.event_loops import run_sync
from surveyor.store.directory import SurveyFolder
from surveyor.testing import EmbeddedWeb, WebSettings, running
from surveyor.web.urls import host

# no retries: the order of pages would depend on the clock
STEADY = WebSettings.plain(rng=4, web=replace(SHAPE, dead=0.0), seeds=3, moved=0.1, robots_rules=0.4)
CHILD = """
import os, signal, sys
from surveyor.estimate.community.community_options import CommunityOptions
from surveyor.estimate.community.community_survey import crawl_community, open_community_survey
from surveyor.survey.derived_survey import CopiedOutcomes
from surveyor.config import Settings
from surveyor.fetch.event_loops import run_sync
from experiments.communities_live import DELAY, main
base, out, proxy, early = sys.argv[1:]
if early:
    CopiedOutcomes._waits = lambda _: os.kill(os.getpid(), signal.SIGKILL)
given = {"proxy": proxy, "concurrency": 1, "contact": "me@example.org", "delay": 0.0}
options, origins = CommunityOptions(extra="2n", out=out), dict.fromkeys(given, "test")
with open_community_survey(base, "all", options, settings=Settings(**given), origins=origins) as community:
    run_sync(crawl_community(community))
"""


def given(web: EmbeddedWeb, **more: Any) -> dict[str, Any]:
    proxy = f"http://127.0.0.1:{web.port}"
    return {"proxy": proxy, "contact": "me@example.org", "delay": 0.0, "backoff": 0.02, "archive": False, **more}


def based(web: EmbeddedWeb, path: Path, **more: Any) -> Path:
    sv.crawl(web.seeds[0], until="pages=100000", out=path, **given(web, **more)).close()
    return path


def crawled(web: EmbeddedWeb, base: Path, out: Path, extra: str, **more: Any) -> CrawledCommunity:
    chosen = given(web, **more)
    where = dict.fromkeys(chosen, "test")
    options = CommunityOptions(extra=extra, out=out)
    with open_community_survey(base, "all", options, settings=Settings(**chosen), origins=where) as community:
        return run_sync(crawl_community(community))


def visits(path: Path) -> list[tuple[int, str]]:
    with SurveyFolder.open(path, write=False) as folder:
        return [(outcome.page, outcome.kind) for outcome in folder.journal.outcomes()]


def test_failures_are_replaced_and_robots_obeyed(tmp_path: Path) -> None:
    with running(replace(ROUGH, port=0, robots_rules=0.9)) as web:  # one request at a time: some pages are forbidden
        base = based(web, tmp_path / "base.survey")
        before = len(web.log)
        done = crawled(web, base, tmp_path / "around.survey", "2n", archive=True, concurrency=1)
        log = list(web.log)[before:]
        with SurveyFolder.open(tmp_path / "around.survey", write=False) as folder:
            found = list(folder.journal.visits(done.record.start))
            urls = list(folder.journal.urls())
            bodies = [folder.archive.read(visit.warc) for visit in found if visit.warc is not None]
    asked = {visit.page for visit in found if visit.kind != "blocked" or visit.fetched_at}
    assert (done.ending, done.requested.size) == ("complete", 2 * done.record.local)
    assert asked == set(done.requested.tolist())
    refused = [visit for visit in found if visit.page not in asked]
    assert any(visit.reason.startswith("robots") for visit in refused)
    assert {visit.kind for visit in found} == {"fetched", "gone", "redirected", "blocked"}
    assert len(found) == len({visit.page for visit in found}) == len(asked) + len(refused)
    forbidden = [one for one in log if not web.plan.robots_of(one.host).allows("surveyor", one.path)]
    assert [one for one in forbidden if one.path != "/robots.txt"] == []
    assert "/robots.txt" not in {one.path for one in log if one.host == host(web.seeds[0])}  # known from the base
    assert all(kept.url in urls for kept in bodies)
    assert len(bodies) >= done.fetched.size
    expanded = done.expanded()
    assert set(done.fetched.tolist()) <= set(expanded.known.pages.tolist())
    assert expanded.rounds[-1].requested == done.requested.size


@pytest.fixture
def web() -> Iterator[EmbeddedWeb]:
    with running(STEADY) as served:
        yield served


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL")
@pytest.mark.slow
def test_resume_after_sigkill(tmp_path: Path, web: EmbeddedWeb) -> None:
    base, out = based(web, tmp_path / "base.survey"), tmp_path / "killed.survey"
    kept = (base / "journal.sqlite").read_bytes()
    whole = crawled(web, base, tmp_path / "whole.survey", "2n", concurrency=1)
    command = [sys.executable, "-c", CHILD, str(base), str(out), f"http://127.0.0.1:{web.port}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([*command, "early"], env=environment, check=False).returncode < 0
    assert not out.exists()  # killed before the folder was renamed
    done = 0
    for pages in (20, 30):
        child, seen = subprocess.Popen([*command, ""], env=environment), len(web.log)
        while len(web.log) < seen + pages and child.poll() is None:
            time.sleep(0.001)
        child.kill()
        assert child.wait() < 0
        there = visits(out)
        assert there == visits(tmp_path / "whole.survey")[: len(there)]
        assert done < len(there) < len(visits(tmp_path / "whole.survey"))
        done = len(there)
    last = crawled(web, base, out, "2n", concurrency=1)
    assert visits(out) == visits(tmp_path / "whole.survey")
    assert last.requested.tolist() == whole.requested.tolist()
    assert (base / "journal.sqlite").read_bytes() == kept


@pytest.mark.slow
def test_the_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    figures = main(["--quick"])
    for one in figures:
        assert one.forbidden == 0
        assert one.shortest_gap >= DELAY
        assert 0 < one.fetched <= one.requested == 2 * one.pages
        assert one.l1["auto"] < one.l1["local"] < 2
    assert sum(one.blocked for one in figures) > 0
    result = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in result[1:3]] == [one.host for one in figures]
    assert result[-2].endswith("better in 2 of 2")
