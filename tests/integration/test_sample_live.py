"""Live samples: same steps as walks over the true graph for any order of responses, stopping, kill and resume."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crash_recovery import Image
from sample_crawls import CALM, FREE, ROUGH, Links, Sampled, by_url, everything, graph_of, half, halves, plain_walk
from slow_cases import one_in, pairs
from surveyor.crawler.topics.page_content import SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import NothingFetched, UsageError
from surveyor.estimate.sampling import walk_scheduler
from surveyor.estimate.sampling.sample import sample_of
from surveyor.estimate.sampling.sample_goals import SampleGoal
from surveyor.estimate.sampling.sample_survey import EVENT, SampleRecord
from surveyor.estimate.sampling.walk_methods import DEAD, DEFAULT_METHOD
from surveyor.estimate.sampling.walk_scheduler import WalkScheduler
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.outcome import was_requested
from surveyor.store.directory import SurveyFolder
from surveyor.survey.derived_survey import recorded
from surveyor.survey.survey import Survey
from surveyor.testing.web_plan import WebSettings
from surveyor.web.urls import domain, host

UNLIMITED = 10**6


def a_third(url: str, source: str) -> bool:
    return len(url + source) % 3 == 0


def knows(sampled: Sampled, share: str) -> Links | None:
    truth = sampled.web.truth()
    return {"none": None, "some": Links(truth, a_third), "all": Links(truth)}[share]


# Steps


@pytest.mark.parametrize(("reported", "concurrency"), pairs(["none", "some", "all"], [1, 5]))
def test_steps_equal_walks_over_the_true_graph(tmp_path: Path, reported: str, concurrency: int) -> None:
    sampled = Sampled(CALM, concurrency=concurrency, seed=concurrency)
    source, seeds = knows(sampled, reported), list(sampled.web.seeds)
    done = sampled.sample(tmp_path / "a.survey", in_links=source, limit=UNLIMITED, fetches=120)
    assert done.ending == "fetches"
    assert by_url(done) == plain_walk(sampled.web.truth(), seeds, half, in_links=source, fetches=120)
    assert {0, 1, 2} == set(graph_of(done).kinds.values())  # including pages that are gone
    assert set(done.trace.walk.tolist()) == set(range(8))


@pytest.mark.parametrize("method", ["mixture", "hard", "nonbacktracking", "trial", "webwalker", "hard-paper"])
def test_every_method(tmp_path: Path, method: str) -> None:
    sampled = Sampled(CALM, concurrency=3)
    truth, seeds = sampled.web.truth(), list(sampled.web.seeds)
    done = sampled.sample(tmp_path / "a.survey", method=method, walks=4, window=20, fetches=90)
    assert by_url(done) == plain_walk(truth, seeds, half, method=method, walks=4, window=20, fetches=90)


def test_url_topic_needs_fewer_fetches(tmp_path: Path) -> None:
    sampled = Sampled(CALM, concurrency=3)
    truth, seeds = sampled.web.truth(), list(sampled.web.seeds)
    sampled.options = {"archive": False}
    done = sampled.sample(tmp_path / "a.survey", FREE, method="hard", fetches=60)
    assert by_url(done) == plain_walk(truth, seeds, half, method="hard", free=True, fetches=60)
    read = [done.pages.url(page) for page in done.requested.tolist()]
    assert sum(map(half, read)) >= len(read) - 3  # except start pages
    assert not np.isnan(
        [done.pages.topic_link_share(page) for page in done.trace.page[done.trace.on_topic].tolist()]
    ).all()


@pytest.mark.parametrize("method", one_in(3, ["mixture", "trial", "hard"]))
def test_links_within_a_topic_that_needs_content(tmp_path: Path, method: str) -> None:
    """Targets of links are classified only where a walk drew them; their share is estimated from these draws."""
    sampled = Sampled(CALM, concurrency=5, options={"archive": True})
    how: dict[str, Any] = {
        "in_links": Links(sampled.web.truth()),
        "limit": UNLIMITED,
        "done": lambda trace, _: len(trace) >= 6_000,
    }
    done = sampled.sample(tmp_path / "a.survey", halves, method=method, **how)
    found, graph = sample_of(done, SampleGoal(steps=6_000)), graph_of(done)
    estimate = found.mean("topic_link_share")
    shares = []
    for page in set(found.trace.page[found.trace.on_topic].tolist()):
        readable = [other for other in graph.links[page] if graph.kinds.get(other, 0) != DEAD]
        if readable:
            shares.append(sum(half(found.source.url(other)) for other in readable) / len(readable))
    assert abs(estimate.value - np.mean(shares)) < 4 * estimate.standard_error + 0.02
    assert 0 < estimate.standard_error < 0.05
    assert not np.isnan(found.values("topic_link_share")).all()


def test_topic_rules(tmp_path: Path) -> None:
    """Words are searched in the text of pages, fetched now or archived."""
    sampled = Sampled(ROUGH, concurrency=3)
    path, topic = tmp_path / "a.survey", Topic.parse("word:the")
    text = sampled.sample(path, topic, fetches=80)
    on_topic = {page: kind == 1 for page, kind in graph_of(text).kinds.items()}
    assert {page for page, on in on_topic.items() if on} == {
        page for page in on_topic if "the" in text.pages.page(page).text.casefold().split()
    }
    assert 10 < sum(on_topic.values()) < 60
    assert by_url(sampled.sample(path, topic, fetches=80)) == by_url(text)
    free = Topic.parse(f"host:{host(sampled.web.seeds[0])}")
    on_host = sampled.sample(tmp_path / "b.survey", free, method="hard", fetches=30)
    assert {host(on_host.pages.url(page)) for page in on_host.trace.page.tolist()} == {host(sampled.web.seeds[0])}


@pytest.mark.slow
def test_order_of_responses_does_not_matter(tmp_path: Path) -> None:
    """With redirects, blocked pages and failures."""
    found = []
    for seed, concurrency in ((1, 1), (2, 4), (3, 9)):
        sampled = Sampled(ROUGH, concurrency=concurrency, seed=seed)
        done = sampled.sample(tmp_path / f"{seed}.survey", in_links=knows(sampled, "some"), fetches=150)
        found.append((by_url(done), {done.pages.url(page) for page in done.requested.tolist()}))
        with SurveyFolder.open(tmp_path / f"{seed}.survey", write=False) as folder:
            visits = list(folder.journal.visits())
            assert {visit.page for visit in visits} == set(done.requested.tolist())
            assert len(visits) == done.requested.size <= 150
            assert {visit.kind for visit in visits} == {"fetched", "gone", "redirected", "blocked"}
            assert any(visit.reason.startswith("robots") and not was_requested(visit) for visit in visits)
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) > 100


def test_redirects_are_passed_through(tmp_path: Path) -> None:
    sampled = Sampled(replace(CALM, moved=0.3), concurrency=2)
    done = sampled.sample(tmp_path / "a.survey", everything, fetches=200)
    with SurveyFolder.open(tmp_path / "a.survey", write=False) as folder:
        redirected = {visit.page: visit.target for visit in folder.journal.visits() if visit.kind == "redirected"}
    graph = graph_of(done)
    assert len(redirected) > 5
    assert all(graph.links[page] == {target} for page, target in redirected.items())
    assert not set(done.trace.page.tolist()) & set(redirected)
    assert any(page in graph.lists for page in redirected)  # a walk drew from it


def test_redirected_and_gone_seeds(tmp_path: Path) -> None:
    sampled = Sampled(replace(CALM, moved=0.3), concurrency=2)
    truth = sampled.web.truth()
    statuses = {url: truth.status(url) for url in truth.urls}
    old = next(url for url, status in statuses.items() if status == "redirected")
    gone = next(url for url, status in statuses.items() if status == "gone")
    fine = sampled.web.seeds[0]
    for method in (DEFAULT_METHOD, "webwalker"):
        done = sampled.sample(tmp_path / method, everything, seeds=[old, gone, fine], method=method, fetches=60)
        started = [done.pages.url(page) for page in done.trace.page[:8].tolist()]
        assert started == [truth.target(old), fine] * 4
        assert done.remarks == (f"seeds that could not be fetched were replaced: {gone}",)
        assert done.lost.size == 0
        assert done.requested.size <= 60


# Endings


@pytest.mark.parametrize("fetches", [1, 3, 4, 17, 50])
def test_limit_of_fetches(tmp_path: Path, fetches: int) -> None:
    sampled = Sampled(ROUGH, concurrency=5)
    done = sampled.sample(tmp_path / "a.survey", fetches=fetches)
    asked = {url for url in sampled.client.asked if not url.endswith("/robots.txt")}
    assert done.ending == "fetches"
    assert len(asked) <= done.requested.size <= fetches
    more = sampled.sample(tmp_path / "a.survey", fetches=fetches + 20)  # a larger goal
    assert by_url(more)[: len(done.trace)] == by_url(done)
    assert fetches < more.requested.size <= fetches + 20
    assert len([url for url in set(sampled.client.asked) if not url.endswith("/robots.txt")]) <= fetches + 20


def test_resumed_sample_ends_at_the_same_step(tmp_path: Path) -> None:
    seen: list[int] = []

    def enough(trace: WalkTrace, pages: Any) -> str:
        seen.append(len(trace))
        assert pages.page(int(trace.page[0])).text
        return "ess" if len(trace) > 400 else ""

    sampled = Sampled(CALM, concurrency=4)
    done = sampled.sample(tmp_path / "a.survey", done=enough, until="ess=400")
    first, asked = list(seen), len(sampled.client.asked)
    again = sampled.sample(tmp_path / "a.survey", done=enough)
    assert done.ending == again.ending == "ess"
    assert by_url(done) == by_url(again)
    assert seen == first * 2
    assert len(sampled.client.asked) == asked  # no request was repeated
    with SurveyFolder.open(tmp_path / "a.survey", write=False) as folder:
        record = recorded(folder, EVENT, SampleRecord)
    assert record is not None
    assert record.until == "ess=400"


def test_a_small_site_is_exhausted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_scheduler, "MAX_IDLE_ROUNDS", 300)
    sampled = Sampled(CALM, concurrency=4, options={"scope": "host"})
    seed = sampled.web.seeds[0]
    done = sampled.sample(tmp_path / "a.survey", everything, seeds=[seed])
    assert done.ending == "exhausted"
    assert any("no new page" in remark for remark in done.remarks)
    assert {host(url) for url in sampled.client.asked} == {host(seed)}  # never out of scope
    assert {host(done.pages.url(page)) for page in done.requested.tolist()} == {host(seed)}


def test_lost_walks(tmp_path: Path) -> None:
    @Topic.of
    def never(_page: SampledPage) -> bool:
        return False

    sampled = Sampled(CALM, concurrency=4, options={"scope": "host"})
    done = sampled.sample(tmp_path / "a.survey", never, walks=3, seeds=sampled.web.seeds[:1])
    assert (done.ending, len(done.trace), done.lost.tolist()) == ("lost", 0, [0, 1, 2])
    assert len(done.remarks) == 1
    assert "no walk found a page on topic (never)" in done.remarks[0]


def test_unreadable_seeds(tmp_path: Path) -> None:
    sampled = Sampled(CALM)
    truth = sampled.web.truth()
    gone = [url for url in truth.urls if truth.status(url) == "gone"][:2]
    with pytest.raises(NothingFetched, match=rf"no walk could start: {gone[0]}, {gone[1]} could not"):
        sampled.sample(tmp_path / "a.survey", seeds=gone)


@pytest.mark.slow
def test_jumps_leave_traps(tmp_path: Path) -> None:
    web = replace(CALM, calendar=0.05)
    shares = {}
    for window in (0, 12):
        sampled = Sampled(web, concurrency=4)
        trap = "http://calendar.trap.example/cal/2026/1"
        seeds = [*sampled.web.seeds[:1], trap]
        done = sampled.sample(
            tmp_path / str(window), everything, seeds=seeds, walks=4, method="webwalker", window=window, fetches=150
        )
        met = Counter(host(done.pages.url(page)) == "calendar.trap.example" for page in done.trace.page.tolist())
        shares[window] = met[True] / len(done.trace)
        assert (done.trace.segment.max() > 0) == (window > 0)
    assert shares[12] < shares[0]


@pytest.mark.parametrize(("method", "window"), [(None, 0), ("webwalker", 100)])
def test_default_window(tmp_path: Path, method: str | None, window: int) -> None:
    Sampled(CALM).sample(tmp_path / "a.survey", method=method, window=None, fetches=3)
    with SurveyFolder.open(tmp_path / "a.survey", write=False) as folder:
        record = recorded(folder, EVENT, SampleRecord)
    assert record is not None
    assert record.window == window


# Kill and resume


@pytest.mark.parametrize(
    ("web", "concurrency", "when"), [(CALM, 1, "after"), (ROUGH, 4, "after"), (ROUGH, 4, "before")]
)
@pytest.mark.slow
def test_killed_at_commits(tmp_path: Path, web: WebSettings, concurrency: int, when: str) -> None:
    """Also between an in-link event and the next page."""
    sampled = Sampled(web, concurrency=concurrency, seed=2)
    images: list[Image] = []
    commits = iter(range(1 << 20))

    def keep(folder: SurveyFolder) -> None:
        if next(commits) % 17 == 3:
            images.append(sampled.image(folder, tmp_path / f"{len(images)}.survey"))

    source, hook = knows(sampled, "some"), {when: keep}
    whole = sampled.sample(tmp_path / "a.survey", in_links=source, fetches=70, **hook)  # type: ignore[arg-type]
    assert len(images) > 4
    for number, image in enumerate(images):
        sampled.go_back(image, seed=number)  # responses arrive in another order
        again = sampled.sample(image.folder, in_links=knows(sampled, "some"), fetches=70)
        assert by_url(again) == by_url(whole)
        assert again.ending == "fetches"
        with SurveyFolder.open(image.folder, write=False) as folder:
            pages = [visit.page for visit in folder.journal.visits()]
        assert len(pages) == len(set(pages)) == whole.requested.size  # no page was fetched twice


@pytest.mark.slow
def test_answers_of_an_in_link_source_are_recorded(tmp_path: Path) -> None:
    class Broken(Links):
        def in_links(self, url: str, limit: int) -> list[str]:
            raise RuntimeError(f"no answer for {url} of {limit}")

    sampled = Sampled(CALM, concurrency=3)
    path = tmp_path / "a.survey"
    source = knows(sampled, "all")
    whole = sampled.sample(path, in_links=source, fetches=60)
    assert source is not None
    assert len(source.asked) == len(set(source.asked)) == len(graph_of(whole).lists)
    broken = Broken(sampled.web.truth())
    assert by_url(sampled.sample(path, in_links=broken, fetches=60)) == by_url(whole)
    with pytest.raises(UsageError, match=r"the in-link source truth failed for http://\S+: RuntimeError: no"):
        sampled.sample(path, in_links=broken, fetches=90)
    more = sampled.sample(path, in_links=knows(sampled, "all"), fetches=90)  # the failure loses nothing
    straight = sampled.sample(tmp_path / "b.survey", in_links=knows(sampled, "all"), fetches=90)
    assert by_url(more) == by_url(straight)


def test_pages_known_from_an_in_link_source_only(tmp_path: Path) -> None:
    """The survey can still be read like any other."""
    sampled = Sampled(CALM, concurrency=3)
    seed, truth = sampled.web.seeds[0], sampled.web.truth()
    done = sampled.sample(tmp_path / "a.survey", everything, seeds=[seed], in_links=Links(truth), fetches=25)
    with Survey(tmp_path / "a.survey") as survey:
        linked = {page for visit in survey.journal.visits() for page in visit.links.tolist()}
        alone = [page for page in done.requested.tolist() if page not in linked and done.pages.url(page) != seed]
        assert alone
        assert survey.pages_fetched > 10
        assert survey.coverage.captured + survey.coverage.waiting > 0
        assert survey.top(3)
        assert survey.manifest.settings["strategy"] == "breadth"


@pytest.mark.slow
def test_crawling_the_folder_does_not_change_the_sample(tmp_path: Path) -> None:
    whole = Sampled(CALM, concurrency=3).sample(tmp_path / "whole.survey", fetches=100)
    sampled = Sampled(CALM, concurrency=3, options={"archive": True})
    path = tmp_path / "a.survey"
    sampled.sample(path, fetches=40)
    sampled.crawl(path, "pages=80")
    assert by_url(sampled.sample(path, fetches=100)) == by_url(whole)


def test_cancelled_sample_resumes(tmp_path: Path) -> None:
    path, seen = tmp_path / "a.survey", count()

    def stop(_scheduler: WalkScheduler) -> None:
        if next(seen) == 30 and (task := asyncio.current_task()) is not None:
            task.cancel()

    sampled = Sampled(CALM, concurrency=4)
    stopped = sampled.sample(path, fetches=60, watch=stop)
    assert stopped.ending == "interrupted"
    done = sampled.sample(path, fetches=60, seeds=[])
    assert by_url(done)[: len(stopped.trace)] == by_url(stopped)
    assert len(stopped.trace) < len(done.trace)
    assert by_url(done) == by_url(Sampled(CALM).sample(tmp_path / "b.survey", fetches=60))


def test_domain_budgets(tmp_path: Path) -> None:
    sampled = Sampled(CALM, options={"budget": "flat:4"})
    done = sampled.sample(tmp_path / "a.survey", everything, fetches=60)
    asked = Counter(domain(host(url)) for url in set(sampled.client.asked) if not url.endswith("/robots.txt"))
    assert max(asked.values()) == 4
    assert by_url(sampled.sample(tmp_path / "a.survey", everything, fetches=60)) == by_url(done)
    sampled.options = {"budget": "flat:20"}  # pages over budget stay blocked; later ones have more room
    more = sampled.sample(tmp_path / "a.survey", everything, fetches=90)
    assert by_url(more)[: len(done.trace)] == by_url(done)
    assert more.requested.size > done.requested.size


def test_watch_callback(tmp_path: Path) -> None:
    steps: list[int] = []

    def watch(scheduler: WalkScheduler) -> None:
        steps.append(len(scheduler.trace()))

    done = Sampled(CALM).sample(tmp_path / "a.survey", fetches=40, watch=watch)
    assert steps[0] < 8
    assert steps == sorted(steps)
    assert steps[-1] == len(done.trace)
