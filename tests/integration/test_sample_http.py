"""Live samples over HTTP: same steps as walks over the true graph, politeness, kill and resume, hostile sources."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import surveyor as sv
from console import CommandResult
from sample_crawls import CALM, ROUGH, Links, by_url, everything, half, halves, plain_walk
from surveyor.config import Settings
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.topics.rules import Topic
from surveyor.estimate.sampling.sample_goals import WalkLimits
from surveyor.estimate.sampling.sample_pages import SurveyPages
from surveyor.estimate.sampling.sample_survey import SampleOptions, open_sample_survey
from surveyor.estimate.sampling.walk_scheduler import WalkResult
from surveyor.estimate.sampling.walks import walk_live
from surveyor.fetch.event_loops import run_sync
from surveyor.store.directory import SurveyFolder
from surveyor.testing import EmbeddedWeb, WebSettings, running
from surveyor.web.urls import host

CHILD = """
import sys
from sample_crawls import halves
from surveyor.config import Settings
from surveyor.fetch.event_loops import run_sync
from surveyor.estimate.sampling.walks import walk_live
from surveyor.estimate.sampling.sample_goals import WalkLimits
from surveyor.estimate.sampling.sample_survey import SampleOptions, open_sample_survey
out, proxy, *seeds = sys.argv[1:]
given = {"proxy": proxy, "contact": "me@example.org", "delay": 0.0, "backoff": 0.02, "rng": 5, "concurrency": 4}
chosen = Settings(**given)
where = dict.fromkeys(given, "test")
options = SampleOptions(window=100)
with open_sample_survey(seeds, halves, options, out=out, settings=chosen, origins=where) as sample:
    run_sync(walk_live(sample, WalkLimits(fetches=150)))
"""


def given(web: EmbeddedWeb, **more: Any) -> dict[str, Any]:
    proxy = f"http://127.0.0.1:{web.port}"
    return {"proxy": proxy, "contact": "me@example.org", "delay": 0.0, "backoff": 0.02, "rng": 5, **more}


def sampled(
    web: EmbeddedWeb, out: Path, topic: Topic = halves, *, fetches: int = 150, resolver: Any = None, **options_: Any
) -> WalkResult:
    chosen = options_.pop("chosen", None) or given(web, concurrency=options_.pop("concurrency", 4))
    seeds = options_.pop("seeds", web.seeds)
    where = dict.fromkeys(chosen, "test")
    options = SampleOptions(window=100, **options_)
    with open_sample_survey(seeds, topic, options, out=out, settings=Settings(**chosen), origins=where) as sample:
        return run_sync(walk_live(sample, WalkLimits(fetches=fetches), connection=Connection(resolver=resolver)))


@pytest.fixture
def web() -> Iterator[EmbeddedWeb]:
    with running(replace(CALM, port=0)) as served:
        yield served


@pytest.mark.parametrize("concurrency", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_steps_equal_walks_over_the_true_graph(tmp_path: Path, web: EmbeddedWeb, concurrency: int) -> None:
    truth, seeds = web.truth(), list(web.seeds)
    for name, source in (("none", None), ("all", Links(truth))):
        done = sampled(web, tmp_path / name, concurrency=concurrency, in_links=source, limit=10**6, fetches=100)
        assert by_url(done) == plain_walk(truth, seeds, half, in_links=source, fetches=100)


@pytest.mark.slow
def test_politeness(tmp_path: Path) -> None:
    with running(replace(ROUGH, port=0, gzip=0.5)) as web:
        done = sampled(web, tmp_path / "a.survey")
        log = list(web.log)
        forbidden = [one for one in log if not web.plan.robots_of(one.host).allows("surveyor", one.path)]
    assert [one for one in forbidden if one.path != "/robots.txt"] == []
    with SurveyFolder.open(tmp_path / "a.survey", write=False) as folder:
        visits = list(folder.journal.visits())
        kept = {folder.archive.read(visit.warc).url for visit in visits if visit.warc is not None}
    assert {visit.kind for visit in visits} == {"fetched", "gone", "redirected", "blocked"}
    asked = {f"http://{one.host}:{web.port}{one.path}" for one in log if one.path != "/robots.txt"}
    assert asked <= {done.pages.url(page) for page in done.requested.tolist()}
    assert {done.pages.url(page) for page in done.trace.page.tolist()} <= kept
    pages = {page: done.pages.page(page) for page in set(done.trace.page.tolist())}
    assert all(page.text and page.title and half(page.url) for page in pages.values())
    assert isinstance(done.pages, SurveyPages)
    done.pages.close()


def test_survey_can_be_read_by_other_commands(
    tmp_path: Path, web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.survey"
    done = sampled(web, path, in_links=Links(web.truth()), fetches=60)
    assert CommandResult(capsys, "status", str(path)).code in (0, 3)
    top = CommandResult(capsys, "top", str(path), "--json")
    assert top.code == 0
    assert CommandResult(capsys, "export", str(path), "--out", str(tmp_path / "pages.csv")).code == 0
    assert by_url(sampled(web, path, in_links=Links(web.truth()), fetches=60)) == by_url(done)


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL")
@pytest.mark.slow
def test_killed_process_resumes(tmp_path: Path) -> None:
    steady = WebSettings.plain(rng=4, web=CALM.web, seeds=3, moved=0.1, robots_rules=0.4)
    with running(steady) as web:
        whole, out = sampled(web, tmp_path / "whole.survey"), tmp_path / "killed.survey"
        command = [sys.executable, "-c", CHILD, str(out), f"http://127.0.0.1:{web.port}", *web.seeds]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = 0
        for pages in (20, 30, 40):
            child, seen = subprocess.Popen(command, env=environment), len(web.log)
            while len(web.log) < seen + pages and child.poll() is None:
                time.sleep(0.001)
            child.kill()
            assert child.wait() < 0
            with SurveyFolder.open(out, write=False) as folder:
                there = folder.journal.position
            assert done < there < whole.requested.size
            done = there
        again = sampled(web, out)
    assert by_url(again) == by_url(whole)
    assert again.requested.size == whole.requested.size


class Hostile:
    """An in-link source that returns private addresses, pages out of scope, and invalid URLs."""

    def __init__(self, *urls: str) -> None:
        self.urls = urls

    def in_links(self, url: str, limit: int) -> Iterable[str]:  # noqa: ARG002
        yield from self.urls
        yield f"{url}?from=nowhere"
        yield "http://user:word@127.0.0.1/"
        yield "file:///etc/passwd"
        yield "\x00"


def test_hostile_in_link_source(tmp_path: Path, web: EmbeddedWeb) -> None:
    """No private address is requested, although the source reports links from there."""
    allowed = tuple(f"{name}:{web.port}" for name in web.hosts)
    chosen = {**given(web, concurrency=4), "proxy": "", "allow": allowed}
    with running(WebSettings.plain()) as inside:
        port = inside.port
        source = Hostile(
            f"http://127.0.0.1:{port}/",
            f"http://localhost:{port}/",
            f"http://[::1]:{port}/",
            f"http://2130706433:{port}/",
            f"http://0x7f.1:{port}/admin",
            f"http://[::ffff:127.0.0.1]:{port}/",
            "http://169.254.169.254/latest/",
            f"http://intern.example:{port}/",
        )
        resolver = _Resolver(web)
        done = sampled(
            web,
            tmp_path / "a.survey",
            everything,
            in_links=source,
            chosen=chosen,
            resolver=resolver,
        )
        assert list(inside.log) == []
    assert {one.host for one in web.log} <= set(web.hosts)
    met = {done.pages.url(page) for page in done.requested.tolist()}
    assert f"http://127.0.0.1:{port}/" in met  # requested by a walk, and blocked
    assert {host(done.pages.url(page)) for page in done.trace.page.tolist()} <= set(web.hosts)
    assert len(set(done.trace.page.tolist())) > 10


def test_pages_out_of_scope_are_not_requested(tmp_path: Path, web: EmbeddedWeb) -> None:
    seed = web.seeds[0]
    others = [url for url in web.urls if host(url) != host(seed)][:20]
    chosen = given(web, concurrency=4, scope="host")
    done = sampled(
        web, tmp_path / "a.survey", everything, in_links=Hostile(*others), chosen=chosen, seeds=[seed], fetches=20
    )
    assert {one.host for one in web.log} == {host(seed)}
    assert {host(done.pages.url(page)) for page in done.requested.tolist()} == {host(seed)}


class _Resolver:
    """Resolves the hosts of a web, and one host to a private address."""

    def __init__(self, web: EmbeddedWeb) -> None:
        self._web = web

    async def resolve(self, name: str, port: int) -> list[str]:
        if name in ("intern.example", "localhost"):
            return ["127.0.0.1"]
        return await self._web.resolver.resolve(name, port)


def test_named_local_page_is_sampled(tmp_path: Path) -> None:
    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # named by the library
            found = self.path.endswith((".txt", "/missing")) is False
            body = b"".join(b"<a href=/%d>x</a>" % page for page in range(5)) if found else b""
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        seed, out = f"http://127.0.0.1:{server.server_port}/0", tmp_path / "out.survey"
        found = sv.sample([seed], until="fetches=5", walks=2, out=out, contact="me@example.org", delay=0.0)
        server.shutdown()
    assert found.distinct_pages > 1
    with SurveyFolder.open(out, write=False) as kept:
        assert kept.manifest.settings["allow"] == [f"127.0.0.1:{server.server_port}"]
