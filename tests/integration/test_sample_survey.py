"""Samples of a survey take the same steps as walks over the true graph with all in-links."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from sample_crawls import CALM, FREE, ROUGH, Links, Sampled, by_url, everything, graph_of, half, halves, plain_walk
from surveyor.crawler.topics.page_content import SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import NothingFetched, UsageError
from surveyor.estimate.sampling.sample_goals import WalkLimits
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walks import walk_survey
from surveyor.outcome import Outcome
from surveyor.store.directory import SurveyFolder

PLAN = WalkPlan(rng=5, window=100)
ALL = "pages=100000"


@pytest.fixture(scope="module")
def web() -> Sampled:
    return Sampled(CALM, concurrency=5, options={"archive": True})


@pytest.fixture(scope="module")
def survey(web: Sampled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "a.survey"
    web.crawl(path, ALL)
    return path


def test_steps_equal_walks_over_the_true_graph(web: Sampled, survey: Path) -> None:
    truth, asked = web.web.truth(), len(web.client.asked)
    done = walk_survey(survey, halves, PLAN, starts=web.web.seeds, limits=WalkLimits(fetches=200))
    assert done.ending == "fetches"
    assert by_url(done) == plain_walk(truth, list(web.web.seeds), half, in_links=Links(truth), fetches=200)
    assert len(web.client.asked) == asked
    kinds = set(graph_of(done).kinds.values())
    assert kinds == {0, 1, 2}
    on_topic = done.pages.page(int(done.trace.page[done.trace.on_topic][0]))
    assert on_topic.text
    assert half(on_topic.url)


def test_url_topic(web: Sampled, survey: Path) -> None:
    truth = web.web.truth()
    done = walk_survey(survey, FREE, WalkPlan("hard", rng=5), starts=web.web.seeds, limits=WalkLimits(fetches=100))
    expected = plain_walk(
        truth, list(web.web.seeds), half, method="hard", free=True, window=0, in_links=Links(truth), fetches=100
    )
    assert by_url(done) == expected
    shares = [done.pages.topic_link_share(page) for page in done.trace.page[done.trace.on_topic].tolist()]
    assert 0 <= np.nanmin(shares) < np.nanmax(shares) <= 1


def test_draws_from_a_survey_estimate_links_within_a_topic_that_needs_content(survey: Path) -> None:
    found = sv.sample(survey, halves, until="ess=100000")
    assert found.complete
    size, share = found.size(), found.mean("topic_link_share")
    assert size.low == size.high == found.distinct_pages
    with SurveyFolder.open(survey, write=False) as folder:
        latest = {outcome.page: outcome for outcome in folder.journal.outcomes() if outcome.kind == "fetched"}
    url, shares = found.source.url, []
    for number, outcome in latest.items():
        near = [other for other in outcome.links.tolist() if other in latest and other != number]
        if half(url(number)) and near:
            shares.append(sum(half(url(other)) for other in near) / len(near))
    assert share.value == pytest.approx(np.mean(shares), abs=0.02)  # at most ten links of a page are classified
    assert found.to_dict()["reach"]["kind"] == "uniform"


def test_pages_that_were_not_fetched(tmp_path: Path) -> None:
    sampled = Sampled(ROUGH, concurrency=5, options={"archive": True})
    sampled.crawl(tmp_path / "a.survey", "pages=60")
    done = walk_survey(
        tmp_path / "a.survey", everything, PLAN, limits=WalkLimits(done=lambda trace, _pages: len(trace) > 2000)
    )
    with SurveyFolder.open(tmp_path / "a.survey", write=False) as folder:
        latest: dict[int, Outcome] = {outcome.page: outcome for outcome in folder.journal.outcomes()}
    graph = graph_of(done)
    for page_id, kind in graph.kinds.items():
        outcome = latest.get(page_id)
        assert kind == {"fetched": 1, "redirected": 0}.get("" if outcome is None else outcome.kind, 2)
        if outcome is not None and outcome.kind == "fetched":
            assert graph.links[page_id] == set(outcome.links.tolist())
    assert {0, 1, 2} == set(graph.kinds.values())
    assert done.ending == "done"
    assert len(set(done.trace.page.tolist())) > 40


def test_only_visited_pages_are_classified(web: Sampled, survey: Path) -> None:
    classified: list[str] = []

    @Topic.of
    def short(page: SampledPage) -> bool:
        classified.append(page.url)
        return len(page.text) % 2 == 0

    done = walk_survey(survey, short, PLAN, starts=web.web.seeds, limits=WalkLimits(fetches=50))
    assert done.requested.size <= 50
    assert len(classified) == len(set(classified)) <= 2 * done.requested.size  # as many again to check the walks


def test_random_start_pages_on_topic(survey: Path, web: Sampled) -> None:
    started = [
        [done.pages.url(page) for page in done.trace.page[:8].tolist()]
        for done in (walk_survey(survey, halves, WalkPlan(rng=rng), limits=WalkLimits(fetches=60)) for rng in (1, 1, 2))
    ]
    assert started[0] == started[1] != started[2]
    assert all(map(half, started[0]))
    assert len(set(started[0])) == 8
    from_seeds = walk_survey(
        survey, Topic.of(lambda page: page.url in web.web.seeds), WalkPlan(walks=3), limits=WalkLimits(fetches=300)
    )
    assert from_seeds.lost.size == 0


def test_given_start_pages(survey: Path, web: Sampled) -> None:
    start = web.web.truth().links(web.web.seeds[0])[0]
    done = walk_survey(survey, everything, WalkPlan(walks=3), starts=[start], limits=WalkLimits(fetches=20))
    assert {done.pages.url(page) for page in done.trace.page[:3].tolist()} == {start}
    with pytest.raises(UsageError, match=r"start page http://nowhere\.example/ is not in the survey"):
        walk_survey(survey, everything, starts=["http://nowhere.example/"])


def test_survey_without_fetched_pages(tmp_path: Path) -> None:
    crawled(tmp_path / "a.survey", ["http://a.example/"], Sites(Time(), {}))
    with pytest.raises(NothingFetched, match="has no fetched page"):
        walk_survey(tmp_path / "a.survey", everything)


def test_single_page(tmp_path: Path) -> None:
    home = "http://a.example/"
    crawled(tmp_path / "a.survey", [home], Sites(Time(), {home: page(home)}))
    done = walk_survey(
        tmp_path / "a.survey", everything, limits=WalkLimits(done=lambda trace, _pages: len(trace) > 100)
    )
    assert done.ending == "done"
    assert set(done.trace.page.tolist()) == {0}
