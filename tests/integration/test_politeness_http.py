"""Politeness over real HTTP, checked in the request log of the server."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

import surveyor as sv
from surveyor.crawler.sampling_plan import SamplingPlan
from surveyor.graph.synthetic.generate import WebShape
from surveyor.testing import EmbeddedWeb, WebSettings, running
from surveyor.testing.web_server import Request

DELAY, CRAWL_DELAY = 0.05, 0.25
MOODS = {"robots_rules": 0.2, "robots_agents": 0.1, "robots_delay": 0.15, "robots_error": 0.1, "robots_moved": 0.3}
TROUBLES = {"flaky": 0.1, "strict": 0.1, "down": 0.05, "moved": 0.1, "loops": 0.1}


@pytest.fixture(scope="module", params=["certified", pytest.param("sampled", marks=pytest.mark.slow)])
def logged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[EmbeddedWeb, list[Request]]:
    """Crawl a web, stopped once in between; with a sampled goal, many of the pages are requested for walks."""
    shape = WebShape(pages=400, largest_site=30, topics=3)
    settings = WebSettings.plain(web=shape, rng=3, seeds=3, crawl_delay=CRAWL_DELAY, pace=0.2, **MOODS, **TROUBLES)
    folder = tmp_path_factory.mktemp("polite") / "web.survey"
    with running(settings) as web:
        given: dict[str, Any] = {
            "contact": "me@example.org",
            "proxy": f"http://127.0.0.1:{web.port}",
            "delay": DELAY,
            "scope": "any",
        }
        sampled = sv.Coverage(0.999, confidence=0.95)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SamplingPlan, "_is_promising", lambda _: True)
            for pages in (60, 250):
                goal = sv.Pages(pages) if request.param == "certified" else sampled | sv.Pages(pages)
                survey = sv.crawl(
                    web.seeds, until=goal, out=folder, backoff=0.1, domain_delay=0.0, archive=False, **given
                )
                with survey:
                    walks = survey.sampled
        assert (walks is not None and walks.fetches >= 20) == (request.param == "sampled")
        return web, list(web.log)


def by_host(log: list[Request]) -> dict[str, list[Request]]:
    found: dict[str, list[Request]] = defaultdict(list)
    for request in log:
        found[request.host].append(request)
    return found


def test_the_web_has_hosts_with_rules_and_limits(logged: tuple[EmbeddedWeb, list[Request]]) -> None:
    web, log = logged
    styles = Counter(web.plan.robots_of(host).style for host in by_host(log))
    assert {"rules", "delay", "error", "moved"} <= set(styles), styles
    assert {200, 301, 429, 503} <= {request.status for request in log}


def test_disallowed_pages_are_not_requested(logged: tuple[EmbeddedWeb, list[Request]]) -> None:
    web, log = logged
    forbidden = [one for one in log if not web.plan.robots_of(one.host).allows("surveyor", one.path)]
    assert not [one for one in forbidden if one.path != "/robots.txt"]
    assert all(requests[0].path == "/robots.txt" for host, requests in by_host(log).items() if len(requests) > 1)


def test_delays_are_kept(logged: tuple[EmbeddedWeb, list[Request]]) -> None:
    web, log = logged
    for host, requests in by_host(log).items():
        wanted = max(DELAY, web.plan.robots_of(host).delay("surveyor") or 0.0)
        gaps = [then.time - first.time for first, then in pairwise(requests)]
        assert all(gap >= wanted for gap in gaps), (host, wanted, min(gaps))


def test_hosts_that_asked_for_it_were_left_alone(logged: tuple[EmbeddedWeb, list[Request]]) -> None:
    web, log = logged
    gaps = []
    for host, requests in by_host(log).items():
        asks = {"strict": 429, "flaky": 503}.get(web.plan.role(host))  # with Retry-After: 1
        gaps += [then.time - first.time for first, then in pairwise(requests) if first.status == asks]
    assert gaps
    assert min(gaps) >= 1


def test_every_request_says_who_asks(logged: tuple[EmbeddedWeb, list[Request]]) -> None:
    assert {request.agent for request in logged[1]} == {f"surveyor/{sv.__version__} (me@example.org)"}
