"""The truth about an embedded web is what an independent explorer finds over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest

import surveyor as sv
from reference_crawler import Client, Clock, Explorer
from surveyor.errors import UsageError
from surveyor.outcome import Outcome
from surveyor.testing import EmbeddedWeb, PerfectCrawler, Truth, WebSettings, running
from surveyor.testing.web_content import SESSION


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    """A web with everything, whose clock leaps so that no host feels hurried."""
    with running(WebSettings(slow_seconds=0.001), clock=Clock(10.0)) as web:
        yield web


@pytest.fixture(scope="module")
def truth(web: EmbeddedWeb) -> Truth:
    return web.truth()


@pytest.fixture(scope="module", params=[7, pytest.param(1, marks=pytest.mark.slow)])
def finite(request: pytest.FixtureRequest) -> Iterator[EmbeddedWeb]:
    with running(WebSettings(rng=request.param, slow_seconds=0.001, calendar=0.0), clock=Clock(10.0)) as web:
        yield web


@pytest.fixture(scope="module")
def explored(finite: EmbeddedWeb) -> dict[str, tuple[str, list[str]]]:
    finite.reset()
    with Client(finite) as client:
        explorer = Explorer(client)
        explorer.explore()
    return explorer.found


def test_the_truth_is_what_an_explorer_finds(finite: EmbeddedWeb, explored: dict[str, tuple[str, list[str]]]) -> None:
    truth = finite.truth()
    assert truth.exact
    assert truth.bound == truth.unseen == 0
    assert set(truth.urls) == set(explored)
    for page, (url, kind, reason) in enumerate(zip(truth.urls, truth.kinds, truth.reasons, strict=True)):
        status, links = explored[url]
        if reason == "loop":
            assert (status, kind) == ("redirected", "loop")
            continue
        assert truth.status(url) == status, url
        if status == "redirected":
            assert truth.target(url) == truth.target(links[0])
            assert truth.graph.links_of(page).size == 0
        else:
            assert sorted(truth.target(link) for link in links) == sorted(truth.links(url)), url
    assert {"fetched", "gone", "blocked", "redirected"} == {truth.status(url) for url in truth.urls}
    assert set(truth.reasons) == {"", "robots", "error", "loop"}
    assert any("?sid=" in url for url in truth.urls) or finite.settings.rng == 1  # no link leads there


def test_the_ledger_brackets_the_truth(finite: EmbeddedWeb, explored: dict[str, tuple[str, list[str]]]) -> None:
    truth = finite.truth()
    for completion in (truth, finite.truth(crawler=PerfectCrawler(behind=True))):
        graph, seeds = sv.GrowingGraph(), [truth.ids[url] for url in finite.seeds]
        push = sv.PushOptions(precision=1e-9)  # an unexplored URL may redirect to an explored one, as in a live crawl
        ledger = sv.Ledger(graph, seeds, push=push, pages=len(truth.urls), aliases=True)
        read: list[str] = []
        for count, (url, (status, links)) in enumerate(explored.items()):
            page, goals = truth.ids[url], np.array([truth.ids[link] for link in links], np.int32)
            old = graph.put(page, goals if status == "fetched" else goals[:0])
            target = int(goals[0]) if status == "redirected" else -1
            ledger.observe(Outcome(page, status, graph.links_of(page), target=target), old)  # type: ignore[arg-type]
            read += [url] if status == "fetched" else []
            if count % 100 == 0:
                at_least, at_most = completion.coverage(read)
                assert ledger.coverage().at_least <= at_most + 1e-12
                assert ledger.coverage().at_most >= at_least - 1e-12
        ledger.close()
        end = ledger.coverage()
        assert end.waiting == 0
        if completion is truth:  # where what the ledger blocks is not kept but comes back, but for 1 − d
            assert completion.coverage(read)[0] == pytest.approx(end.captured / (1 - 0.85 * end.blocked), abs=1e-7)


def test_importance_is_pagerank_of_the_graph(web: EmbeddedWeb, truth: Truth) -> None:
    teleport = np.zeros(len(truth.urls))
    teleport[[truth.alias_of[truth.ids[url]] for url in web.seeds]] = 1
    ranking = sv.pagerank(truth.graph, tolerance=1e-12, teleport=teleport)
    assert truth.importance.scores.sum() == pytest.approx(1, abs=1e-12)
    assert np.array_equal(ranking.scores, truth.importance.scores)
    assert truth.importance.scores[truth.statuses == 3].sum() == 0
    assert truth.coverage(truth.urls)[1] == 1
    assert truth.coverage([]) == pytest.approx((0, 0), abs=1e-11)


@pytest.mark.parametrize("depth", [2, 5, 10])
def test_a_cut_web_brackets_what_lies_behind(web: EmbeddedWeb, truth: Truth, depth: int) -> None:
    cut = web.truth(depth=depth)
    assert cut.status("http://unheard.example/") == "unknown"
    assert 0 < cut.unseen <= cut.bound == 0.85 ** (depth + 1)
    for start in range(4):
        read = list(truth.urls[start::4])
        at_least, at_most = cut.coverage(read)
        true_least, true_most = truth.coverage(read)
        assert at_least <= true_least <= true_most <= at_most
        assert at_most - at_least <= 0.85 * cut.unseen + 1e-11


def test_sessions_multiply_pages_until_they_are_normalised(web: EmbeddedWeb, truth: Truth) -> None:
    with_ids = [url for url in truth.urls if "?sid=" in url]
    assert len({SESSION.sub("", url) for url in with_ids}) < len(with_ids)
    normal = web.truth(crawler=PerfectCrawler(normalise=lambda url: SESSION.sub("", url)))
    assert not any("sid=" in url for url in normal.urls)
    assert {SESSION.sub("", url) for url in truth.urls} == set(normal.urls)


def test_scope_and_seeds(web: EmbeddedWeb) -> None:
    host = urlsplit(web.seeds[0]).netloc
    inside = web.truth(web.seeds[:1], PerfectCrawler(scope=lambda url: urlsplit(url).netloc == host))
    assert inside.exact
    assert {urlsplit(url).netloc for url in inside.urls} == {host}
    assert inside.importance.scores.sum() == pytest.approx(1)
    old = next(web.pages.url(place) for place, move in web.plan.moves.items() if place.split("/")[0] not in move.place)
    assert web.truth([old], PerfectCrawler(scope=lambda url: url == old)).reasons == ("scope",)
    with pytest.raises(UsageError, match="out of scope"):
        web.truth(crawler=PerfectCrawler(scope=lambda _url: False))
    assert "URLs: " in repr(inside)
