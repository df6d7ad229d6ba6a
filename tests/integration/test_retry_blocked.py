"""`--again` retries blocked pages as if they had never been requested, and affects nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_web import CONTACT, Sites, Time, crawled, page
from surveyor.config import Settings
from surveyor.crawler.replay import derive
from surveyor.crawler.start import start
from surveyor.fetch.http import Fetched
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey

HOME, X, Y = "http://a.example/", "http://a.example/x", "http://a.example/y"
ROBOTS = "http://a.example/robots.txt"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.survey"


def ask_again(path: Path) -> None:
    folder, _ = start(path, [HOME], Settings(contact=CONTACT), {}, again=True)
    folder.close()


def sites(**answers: Any) -> Sites:
    known = {HOME: page(HOME, X, Y), X: Fetched(X, 403), Y: page(Y, X), **answers}
    return Sites(Time(), known)


def test_a_page_that_was_refused_is_asked_for_again_and_read(path: Path) -> None:
    client = sites()
    crawled(path, [HOME], client)
    with Survey(path) as survey:
        before = survey.coverage
        assert [row["reason"] for row in survey.blocked()] == ["http 403"]
    crawled(path, [HOME], client)
    assert len(client.times(X)) == 1  # not by itself
    client.answers = {**client.answers, X: page(X)}
    ask_again(path)
    with Survey(path) as survey:
        assert survey.blocked() == survey.blocked_pages() == []
        assert survey.coverage.blocked == 0
        assert survey.coverage.waiting == pytest.approx(before.blocked)
        assert survey.pages_queued == 1
    crawled(path, [HOME], client)
    assert len(client.times(X)) == 2
    assert len(client.times(HOME)) == len(client.times(Y)) == 1
    with Survey(path) as survey:
        assert survey.coverage.blocked == 0
        assert survey.pages_fetched == 3


def test_what_fails_again_is_blocked_again(path: Path) -> None:
    client = sites()
    crawled(path, [HOME], client)
    ask_again(path)
    crawled(path, [HOME], client)
    with Survey(path) as survey:
        assert [row["reason"] for row in survey.blocked()] == ["http 403"]
    assert len(client.times(X)) == 2


def test_robots_that_could_not_be_read_is_asked_for_again_and_rules_are_not(path: Path) -> None:
    client = sites(**{ROBOTS: Fetched(ROBOTS, 503)})
    crawled(path, [HOME], client)
    asked = len(client.times(ROBOTS))
    client.answers = {**client.answers, ROBOTS: Fetched(ROBOTS, 200, body=b"User-agent: *\nDisallow: /x")}
    ask_again(path)
    crawled(path, [HOME], client)
    assert len(client.times(ROBOTS)) == asked + 1
    with Survey(path) as survey:
        assert [row["reason"] for row in survey.blocked()] == ["robots.txt disallows it (Disallow: /x)"]
    ask_again(path)
    crawled(path, [HOME], client)
    assert len(client.times(ROBOTS)) == asked + 1
    assert not client.times(X)


def test_a_replay_comes_to_the_state_of_the_crawl_and_an_old_checkpoint_does_not_count(path: Path) -> None:
    client = sites()
    crawled(path, [HOME], client)
    ask_again(path)
    client.answers = {**client.answers, X: page(X, HOME)}
    crawled(path, [HOME], client)
    with SurveyFolder.open(path, write=False) as folder:
        kept = derive(folder)
        replayed = derive(folder, watch=lambda _state, _outcome: None)
    for name in ("residual", "settled", "state"):
        assert np.array_equal(getattr(kept.crawl.ledger.mass, name), getattr(replayed.crawl.ledger.mass, name))
