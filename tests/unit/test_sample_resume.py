"""Resuming a live sample: changed options, topics that raise, damaged journals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sample_crawls import CALM, Links, Sampled, everything, halves
from surveyor.crawler.topics.page_content import SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import SurveyError, UsageError
from surveyor.estimate.sampling.walk_methods import DEFAULT_METHOD
from surveyor.store.directory import SurveyFolder


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"topic": everything}, "created with --topic halves"),
        ({"method": "hard-paper"}, f"created with --method {DEFAULT_METHOD}"),
        ({"walks": 4}, "created with --walks 8, got 4"),
        ({"window": 0}, "created with --window 100, got 0"),
        ({"in_links": Links}, "created without --in-links"),
        ({"rng": 6}, "created with --rng 5, got 6"),
        ({"seeds": ["http://www.site1.example/"]}, "created with seeds http"),
        ({"exclude": ("*/x/*",)}, "created without --exclude"),
        ({"archive": False}, "depends on the text of pages, and archive is off"),
        ({"method": "random"}, "method must be one of .* 'random'"),
        ({"walks": 0}, "walks must be an integer from 1 to 100,000, got 0"),
        ({"reach": 10**11}, "reach must be an integer from 1 to 10,000, got 100000000000"),
        ({"in_links": 7}, "in_links must be .* got int"),
    ],
)
def test_changed_options_are_rejected(tmp_path: Path, changed: dict[str, Any], problem: str) -> None:
    sampled = Sampled(CALM)
    path = tmp_path / "a.survey"
    sampled.sample(path, fetches=5)
    requests = len(sampled.client.asked)
    settings: dict[str, Any] = {name: changed.pop(name) for name in ("rng", "exclude", "archive") if name in changed}
    sampled.options = settings
    topic = changed.pop("topic", halves)
    if changed.get("in_links") is Links:
        changed = {"in_links": Links(sampled.web.truth())}
    with pytest.raises(UsageError, match=problem):
        sampled.sample(path, topic, fetches=20, **changed)
    assert len(sampled.client.asked) == requests


def test_survey_that_is_not_a_sample(tmp_path: Path) -> None:
    sampled = Sampled(CALM)
    sampled.crawl(tmp_path / "a.survey", "pages=5")
    with pytest.raises(UsageError, match="is a survey, but not a sample"):
        sampled.sample(tmp_path / "a.survey")


def test_topic_that_raises_is_named(tmp_path: Path) -> None:
    @Topic.of
    def broken(page: SampledPage) -> bool:
        return bool(1 / len(page.text[:0]))

    with pytest.raises(UsageError, match=r"the topic broken failed on http://\S+: ZeroDivisionError"):
        Sampled(CALM).sample(tmp_path / "a.survey", broken)


@pytest.mark.parametrize("detail", [{}, {"page": 0, "sources": [10**6]}, {"page": "x", "sources": 7}])
def test_damaged_journal(tmp_path: Path, detail: dict[str, Any]) -> None:
    sampled = Sampled(CALM)
    source, path = Links(sampled.web.truth()), tmp_path / "a.survey"
    sampled.sample(path, fetches=5, in_links=source)
    with SurveyFolder.open(path) as folder:
        folder.note("in_links", **detail)
    with pytest.raises(SurveyError, match=r"is damaged, or not the journal of a survey \(an event"):
        sampled.sample(path, fetches=20, in_links=source)
