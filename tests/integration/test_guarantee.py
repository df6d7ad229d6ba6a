"""Coverage bounds of crawls over HTTP, and regressions found by the experiment."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from experiments.guarantee import STRATEGIES, Crawled, Plan, crawled, crawls, summary, table
from experiments.witness import Moment, trespasses

from surveyor import GrowingGraph, Ledger, Outcome
from surveyor.crawler.ledger import CoverageInterval
from surveyor.crawler.queues import Batch
from surveyor.crawler.sources.live import FetchOptions, LiveSource, PageLookup
from surveyor.crawler.strategies import NAMES
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.fetch.responses import Reader, judge
from surveyor.testing import running
from surveyor.testing.web_server import Request
from surveyor.web.html import read_page
from surveyor.web.scope import Scope
from surveyor.web.urls import Urls

compiled = pytest.mark.compiled


@compiled
@pytest.mark.slow
def test_what_is_shown_is_true_at_every_moment() -> None:
    done = list(crawls(3, ("rankmass", "tracking", "opic"), each=1, rng=0))
    assert [one.violations for one in done] == [(), (), ()]
    assert sum(one.moments for one in done) > 300
    assert "3 webs, 3 crawls" in summary(done)
    assert len(list(table(done))) == 2 + 3


def test_all_strategies_take_part() -> None:
    assert set(NAMES) <= set(STRATEGIES)
    assert {name.partition(":")[0] for name in STRATEGIES} == set(NAMES)


@compiled
@pytest.mark.parametrize("shift", [0.5, -0.5])
def test_what_is_not_true_is_noticed(monkeypatch: pytest.MonkeyPatch, shift: float) -> None:
    honest = Ledger.coverage

    def boast(ledger: Ledger) -> CoverageInterval:
        now = honest(ledger)
        return replace(now, at_least=now.at_least + max(shift, 0), at_most=now.at_most + min(shift, 0))

    monkeypatch.setattr(Ledger, "coverage", boast)
    one = _small(rng=2)
    assert any("outside" in result for result in one.violations)


def _small(rng: int) -> Crawled:
    plan = replace(Plan.draw(rng), scope="host")
    with running(plan.web) as web:
        return crawled(plan, web, plan.truths(web), "breadth", rng=rng)


@compiled
def test_moments_follow_the_truth() -> None:
    plan = Plan.draw(4)
    with running(plan.web) as web:
        moment = Moment(plan.truths(web)[0])
        truth = web.truth(damping=plan.damping)
        urls = [url for url in moment.ids if moment.statuses[moment.ids[url]] == 0][:40]
        for count, url in enumerate(urls):
            moment.hold(url, 1)
            assert moment.interval() == pytest.approx(moment.slowly(urls[: count + 1]), abs=1e-12)
        moment.hold(urls[7], -1)
        assert moment.interval() == pytest.approx(moment.slowly(urls[:7] + urls[8:]), abs=1e-12)
        before = moment.interval()
        moment.bury(urls[0])
        assert moment.interval() == pytest.approx(moment.slowly(urls[:7] + urls[8:]), abs=1e-12)
        assert moment.interval() != before
        assert not moment.read(urls[1], ["http://elsewhere.example/"])
        alone = Moment([truth])
        assert alone.slowly(truth.urls[:30]) == pytest.approx(truth.coverage(truth.urls[:30]), abs=1e-12)


def test_trespasses_are_found() -> None:
    plan = Plan.draw(4)
    with running(plan.web) as web:
        shut = next(host for host, role in web.plan.roles.items() if role == "down")
        ruled = next(host for host, file in web.plan.robots.items() if file.style == "rules")
        asked = [(shut, "/robots.txt"), (shut, "/"), (ruled, "/"), (ruled, "/private/1.html"), (ruled, "/robots.txt")]
        web.log.extend(Request(0.0, host, path, 200, "surveyor") for host, path in asked)
        assert trespasses(web) == [f"asked {shut} for /", f"asked {ruled} for /private/1.html"]


# What was found: each of these was false once.


@pytest.mark.parametrize("blocked", [False, True])
def test_an_address_that_has_not_answered_may_be_that_of_a_page_read(blocked: bool) -> None:
    """A home page links to a page and to its old address; all importance is on pages read before that is known."""
    known = {}
    for aliases in (False, True):
        graph = GrowingGraph()
        ledger = Ledger(graph, [0], aliases=aliases)
        for page, links in ((0, [1, 2]), (1, [0])):
            old = graph.put(page, np.array(links, np.int32))
            ledger.observe(Outcome(page, "fetched", graph.links_of(page)), old)
        if blocked:
            ledger.observe(Outcome(2, "blocked"), graph.links_of(2))
        known[aliases] = ledger.coverage().at_most
        ledger.observe(Outcome(2, "redirected", target=1), graph.put(2, np.empty(0, np.int32)))
        ledger.close()
        assert ledger.coverage().at_least > 0.999
    assert known[False] < 0.95
    assert known[True] == 1


def test_a_canonical_of_another_domain_gets_no_importance() -> None:
    page = read_page(b"<link rel=canonical href=https://b.example/><a href=c>", "https://a.example/")
    assert [link.url for link in page.links] == ["https://a.example/c"]


@pytest.mark.parametrize("error", ["too-large", "decode"])
def test_a_page_of_which_nothing_was_read_is_not_read(error: str) -> None:
    fetched = Fetched("http://a.example/", status=200, error=error, detail="why")  # type: ignore[arg-type]
    assert (judge(fetched).kind, judge(fetched).reason) == ("blocked", "why")
    assert judge(replace(fetched, body=b"<a href=b>")).kind == "fetched"


class Script:
    """A client that answers one after the other of these statuses."""

    def __init__(self, statuses: Sequence[int]) -> None:
        self._statuses = iter(statuses)

    async def fetch(self, request: FetchRequest) -> Fetched:
        return Fetched(request.url, status=next(self._statuses))


def outcomes(*statuses: int, recall: tuple[int, bool] | None = None) -> tuple[str, int]:
    """Return what becomes of a page that answers so, and how often it was asked."""

    async def work() -> tuple[str, int]:
        urls, hosts = Urls(), Hosts(0.0)
        page = int(urls.ids(["http://a.example/"])[0])
        host = hosts.number("a.example")
        reader = Reader(urls, Scope("any", ()), [page])
        source = LiveSource(
            Script(statuses), reader, hosts, PageLookup(lambda _: (urls[page], host)), options=FetchOptions(0.001)
        )
        if recall is not None:
            source.restore_retry(page, recall[0], missing=recall[1])
        for count in range(1, len(statuses) + 1):
            hosts.lease(host, "page")
            source.start(Batch(pages=[page]))
            results = await source.results(math.inf)
            if results.outcomes:
                return results.outcomes[0].kind, count
            assert [retry.page for retry in results.retries] == [page]
            retry = next(event for event in results.events if event.kind == "retry")
            assert retry.detail["missing"] == (404 in statuses[:count])
        raise AssertionError("the page got no outcome")

    return asyncio.run(work())


def test_a_page_is_gone_only_if_that_was_answered_twice() -> None:
    assert outcomes(404, 404) == ("gone", 2)
    assert outcomes(404, 200) == ("fetched", 2)
    assert outcomes(503, 404, 200) == ("fetched", 3)
    assert outcomes(429, 404, 404) == ("gone", 3)
    assert outcomes(404, 503, 404) == ("gone", 3)
    assert outcomes(503, 503, 503, 404, 503) == ("blocked", 5)


def test_a_restart_forgets_neither_tries_nor_that_a_page_was_gone() -> None:
    assert outcomes(404, recall=(1, True)) == ("gone", 1)
    assert outcomes(404, 200, recall=(1, False)) == ("fetched", 2)
