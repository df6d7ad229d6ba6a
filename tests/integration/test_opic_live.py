"""Live crawls with OPIC that fetch pages repeatedly: requests, conditional requests, resuming, and what is reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import surveyor as sv
from console import CommandResult
from fake_web import Sites, Time, crawled, page
from loopback import linked, served
from oracles import dense_pagerank
from slow_cases import one_in
from surveyor.crawler.replay import derive
from surveyor.outcome import Outcome
from surveyor.store.directory import SurveyFolder
from webs import random_web

HOME = "http://a.example/"
GRAPH = random_web(60, 360, 8)
STRATEGIES = ["opic", "opic:cycle", "opic:random", "adaptive:static", "adaptive:fixed", "adaptive:variable", "adaptive"]


def url(page: int) -> str:
    return f"{HOME}{page}" if page else HOME


def web(*, changed: int = -1) -> Sites:
    """The pages of the graph with ETags; one page answers with other links from its fourth request on."""
    answers = {}
    for one in range(GRAPH.pages):
        links = [url(link) for link in GRAPH.links_of(one).tolist()]
        first = page(url(one), *links, etag=f'"{one}"')
        answers[url(one)] = [first] * 3 + [page(url(one), *links[1:], etag='"new"')] if one == changed else first
    return Sites(Time(), answers, seconds=0.01)


def visits(path: Path) -> list[tuple[int, str]]:
    with SurveyFolder.open(path, write=False) as folder:
        return [(one.page, one.kind) for one in folder.journal.outcomes(0)]


@pytest.mark.parametrize("strategy", one_in(3, STRATEGIES))
@pytest.mark.slow
def test_a_limit_of_requests_is_used_up(tmp_path: Path, strategy: str) -> None:
    client = web()
    ending = crawled(tmp_path / "a", [HOME], client, until="requests=200", strategy=strategy, delay=0.5)
    assert (ending, len(client.log)) == ("reached", 200)
    again = [request for request in client.requests if request.etag]
    assert len(again) == 199 - len({one for one, _ in visits(tmp_path / "a")})  # every repeated request is conditional
    with sv.open(tmp_path / "a") as survey:
        found = survey.importance(strategy)
        assert (found.total_fetches, found.method) == (199, strategy)
        assert (
            found.fetches[np.argsort(found.pages)].tolist()
            == np.bincount([one for one, _ in visits(tmp_path / "a")], minlength=found.pages.size).tolist()
        )
    once = web()
    assert crawled(tmp_path / "b", [HOME], once, until="pages=1000", strategy=strategy, delay=0.5) == "exhausted"
    assert len(once.log) == 1 + len(set(visits(tmp_path / "b")))


@pytest.mark.parametrize("strategy", ["opic", "adaptive:variable"])
@pytest.mark.slow
def test_a_resumed_crawl_equals_an_uninterrupted_one(tmp_path: Path, strategy: str) -> None:
    crawled(tmp_path / "whole", [HOME], web(changed=1), until="requests=150", strategy=strategy, delay=0.5)
    client = web(changed=1)
    for requests in (40, 41, 100, 150):
        crawled(tmp_path / "parts", [HOME], client, until=f"requests={requests}", strategy=strategy, delay=0.5)
    assert visits(tmp_path / "parts") == visits(tmp_path / "whole")
    seen: list[Outcome] = []
    for name in ("whole", "parts"):
        with SurveyFolder.open(tmp_path / name, write=False) as folder:
            kept, replayed = derive(folder), derive(folder, watch=lambda _, outcome: seen.append(outcome))
            first, second = (state.crawl.strategy.importance().tobytes() for state in (kept, replayed))  # type: ignore[attr-defined]
            queues = [state.crawl.frontier.queued() for state in (kept, replayed)]
        assert first == second
        assert [queue.pages.tolist() for queue in queues] == [queues[0].pages.tolist()] * 2
        assert [queue.priorities.tolist() for queue in queues] == [queues[0].priorities.tolist()] * 2
    assert len(seen) == 2 * 149


def test_a_crawl_that_fetched_each_page_once_can_start_to_fetch_repeatedly(tmp_path: Path) -> None:
    """A checkpoint of the one is not used for the other."""
    client = web()
    assert crawled(tmp_path / "a", [HOME], client, until="pages=1000", strategy="opic", delay=0.5) == "exhausted"
    before = len(client.log)
    assert crawled(tmp_path / "a", [HOME], client, until="requests=200", strategy="opic", delay=0.5) == "reached"
    assert before < 62 < len(client.log) == 200
    assert crawled(tmp_path / "a", [HOME], client, until="pages=1000", strategy="opic", delay=0.5) == "exhausted"
    assert len(client.log) == 200


@pytest.mark.slow
def test_the_bound_is_withdrawn_when_links_change(tmp_path: Path) -> None:
    names = {"a": -1, "b": 1}
    for name, changed in names.items():
        crawled(tmp_path / name, [HOME], web(changed=changed), until="requests=400", strategy="opic", delay=0.5)
    with sv.open(tmp_path / "a") as survey:
        found = survey.importance()
        jumps = np.zeros(60)
        jumps[0] = 1
        order = [int(one["url"].removeprefix(HOME) or 0) for one in found.top(60)]
        truth = dense_pagerank(GRAPH, 0.85, jumps, jumps)
        assert found.error is not None
        assert np.abs(found.shares - truth[order]).sum() <= found.error < 1
        assert np.corrcoef(found.fetches, truth[order])[0, 1] > 0.99
        assert found.to_dict(3)["top"] == found.top(3)
        assert "error at most" in repr(found)
        assert found.top(1)[0]["url"] in found._repr_html_()
        assert found.to_polars().height == found.pages.size
    with sv.open(tmp_path / "b") as survey:
        assert survey.importance().error is None
        assert survey.importance().reason == "no bound: links have changed (1 page)"
        assert survey.importance("adaptive:bao").reason == "no bound: none is known for a bao window"
        with pytest.raises(sv.UsageError, match="method must be opic or adaptive"):
            survey.importance("rankmass")


def test_another_strategy_has_the_estimate_of_a_replay(tmp_path: Path) -> None:
    crawled(tmp_path / "a", [HOME], web(), until="pages=40", strategy="rankmass", delay=0.5)
    with sv.open(tmp_path / "a") as survey:
        assert survey.own_importance is None
        found = survey.importance()
        assert (found.method, found.total_fetches) == ("opic", 40)
        assert found.shares.sum() == pytest.approx(1)


def test_the_commands_report_the_importance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crawl of a real site by the command, over HTTP."""
    monkeypatch.chdir(tmp_path)
    links = {one: [f"/{link}" if link else "/" for link in GRAPH.links_of(one).tolist()] for one in range(60)}
    texts = {one: f"Words of page {one}, which differ from those of all other pages. " * 9 for one in links}
    pages = {f"/{one}" if one else "/": linked(*links[one], text=texts[one]) for one in links}
    log: list[str] = []
    with served(pages, log) as site:
        words = ("--until", "requests=200", "--delay", "0", "--concurrency", "1", "--contact", "me@example.org")
        assert CommandResult(capsys, "crawl", site, "--strategy", "opic", *words, "--out", "a").code == 0
    assert len(log) == 200
    status = CommandResult(capsys, "status", "a", "--json").json()["importance"]
    assert (status["method"], status["fetches"], status["reason"]) == ("opic", 199, "")
    assert 0 < status["error"] <= 2
    assert "importance   opic, error at most" in CommandResult(capsys, "status", "a").out
    top = CommandResult(capsys, "top", "a", "--importance", "opic", "-n", "5", "--json").json()
    assert (top["importance"], len(top["pages"])) == (status, 5)
    jumps = np.eye(60)[0]
    best = int(dense_pagerank(GRAPH, 0.85, jumps, jumps).argmax())
    assert f"{site}{best or ''}" in [one["url"] for one in top["pages"][:2]]  # the two best are nearly equal
    text = CommandResult(capsys, "top", "a", "--importance", "adaptive:fixed").out
    assert "no bound: none is known for a fixed window" in text
    assert CommandResult(capsys, "report", "a").code == 0
    assert "importance by opic" in (tmp_path / "a" / "report.html").read_text("utf-8")
