"""Focused crawls: the order is importance times topic probability, and the certificate holds as for every order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from crash_recovery import rows
from fake_web import Sites, Time, crawled, moved, page
from slow_cases import one_in, pairs
from surveyor.arrays import FloatArray
from surveyor.crawler.strategies.focused import LEAST, PRIOR, Focused
from surveyor.errors import SurveyError, UsageError
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey

HOME = "https://a.example/"
SOLAR, OTHER = "solar power at home", "cats and dogs"


def web() -> dict[str, Any]:
    """Return a site of two halves, each a tree of 2 levels below the home page; one half is about solar power."""
    answers: dict[str, Any] = {HOME: page(HOME, "s/", "c/", extra="<title>all</title>")}
    for half, text in (("s", SOLAR), ("c", OTHER)):
        top = f"{HOME}{half}/"
        answers[top] = page(top, *(f"{n}/" for n in range(8)), extra=text)
        for n in range(8):
            place = f"{top}{n}/"
            answers[place] = page(place, *(f"{m}" for m in range(4)), HOME, extra=text)
            answers |= {f"{place}{m}": page(f"{place}{m}", place, extra=text) for m in range(4)}
    answers[HOME + "s/3/1"] = moved(HOME + "s/3/1", "/s/3/2")
    answers[HOME + "s/7/"] = page(HOME + "s/7/", extra=OTHER)
    return answers


def survey(path: Path, **settings: Any) -> Survey:
    crawled(path, [HOME], Sites(Time(), web()), **settings)
    return sv.open(path)


def order(found: Survey) -> list[str]:
    urls = {page: url for page, url, _ in found.pages()}
    return [urls[visit.page] for visit in found._folder.journal.visits(0)]


TOPICS = ["word:solar", 'words:"solar power",sun', "prefix:https://a.example/s/", "not:word:cats", "url:/s/"]


@pytest.mark.parametrize("topic", TOPICS)
def test_pages_on_topic_come_first_with_the_same_certificate(tmp_path: Path, topic: str) -> None:
    with survey(tmp_path / "a", topic=topic) as found, survey(tmp_path / "b") as plain:
        first = order(found)[:30]
        about = sum("/s/" in url for url in first)
        assert about >= 26
        assert about >= 6 + sum("/s/" in url for url in order(plain)[:30])
        assert found.coverage.at_least == pytest.approx(plain.coverage.at_least, abs=1e-4)  # both are complete
        assert sorted(order(found)) == sorted(order(plain))
        on = found.topic
        assert on is not None
        assert on["judged"] == found.pages_fetched
        assert on["on_topic"] == (35 if topic.startswith("word") else 36)  # one page of the half is about cats
        assert 0.2 < on["at_least"] < 0.8


@pytest.mark.parametrize(("topic", "pages"), pairs(TOPICS[:3], [3, 12, 30]))
def test_the_interval_contains_the_true_coverage(tmp_path: Path, topic: str, pages: int) -> None:
    with survey(tmp_path / "a") as whole:
        ranking = whole.rank(tolerance=1e-9)
        true = {ranking.name(node): float(ranking.scores[node]) for node in range(ranking.scores.size)}
    with survey(tmp_path / "b", topic=topic, until=f"pages={pages}") as part:
        urls = [url for _, url, visit in part.pages() if visit is not None and visit.kind == "fetched"]
        covered = sum(true[url] for url in urls)
        assert part.coverage.at_least - ranking.error <= covered <= part.coverage.at_most + ranking.error


@pytest.mark.parametrize("topic", one_in(3, TOPICS[:3]))
def test_a_stopped_crawl_resumes_and_replays_identically(tmp_path: Path, topic: str) -> None:
    with survey(tmp_path / "whole", topic=topic) as whole:
        expected, coverage, about = order(whole), whole.coverage, whole.topic
    for pages in range(2, 60, 7):
        survey(tmp_path / "part", topic=topic, until=f"pages={pages}").close()
    with survey(tmp_path / "part", topic=topic) as part:
        assert order(part) == expected
        assert part.coverage == coverage
        assert part.topic == about
    assert [row[1:5] for row in rows(tmp_path / "part")["visits"]] == [
        row[1:5] for row in rows(tmp_path / "whole")["visits"]
    ]


def test_topics_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="orders by importance"):
        survey(tmp_path / "a", topic="word:solar", strategy="breadth")
    with pytest.raises(UsageError, match="unknown topic rule"):
        survey(tmp_path / "a", topic="wrd:solar")
    with pytest.raises(UsageError, match="cannot crawl without a link graph"):
        survey(tmp_path / "a", topic="word:solar", graph=False)
    survey(tmp_path / "b", topic="word:solar", until="pages=3").close()
    with pytest.raises(UsageError, match="topic of a survey whose pages were judged by their content cannot change"):
        survey(tmp_path / "b", topic="word:cats")
    survey(tmp_path / "c", topic="prefix:https://a.example/s/", until="pages=9").close()
    with survey(tmp_path / "c", topic="prefix:https://a.example/c/", until="pages=30") as other:
        assert sum("/c/" in url for url in order(other)[9:]) > 15


@pytest.mark.parametrize("detail", [{"on": [10**9], "off": []}, {"on": [-1], "off": []}, {"on": ["x"], "off": []}, {}])
def test_an_event_that_means_nothing_is_damage(tmp_path: Path, detail: dict[str, Any]) -> None:
    survey(tmp_path / "a", topic="word:solar", until="pages=3").close()
    with SurveyFolder.open(tmp_path / "a") as folder:
        folder.note("topic", **detail)
    with pytest.raises(SurveyError, match="damaged"), sv.open(tmp_path / "a") as found:
        assert found.coverage


def test_a_survey_from_elsewhere_sets_no_topic(tmp_path: Path) -> None:
    survey(tmp_path / "a", topic="url:(a+)+$", until="pages=5").close()
    manifest = tmp_path / "a" / "survey.toml"
    manifest.write_text(manifest.read_text("utf-8").replace("rng = 7", "rng = 8"), "utf-8")
    with sv.open(tmp_path / "a") as foreign:
        assert foreign.topic == {"rule": "url:(a+)+$", "judged": 0, "on_topic": 0, "at_least": 0.0}
        assert foreign.coverage.at_least > 0


def test_a_topic_from_elsewhere_has_to_be_given_again(tmp_path: Path) -> None:
    survey(tmp_path / "a", topic="word:solar", until="pages=5").close()
    manifest = tmp_path / "a" / "survey.toml"
    manifest.write_text(manifest.read_text("utf-8").replace('signature = "', 'signature = "0'), "utf-8")
    with pytest.raises(UsageError, match="which came with the survey and is ignored") as refused:
        survey(tmp_path / "a", until="pages=9")
    assert "--topic word:solar" in str(refused.value.hint)
    with survey(tmp_path / "a", topic="word:solar", until="pages=9") as found:
        assert found.pages_fetched == 9


@pytest.mark.parametrize("seed", range(4))
def test_simulated_with_known_probabilities(seed: int) -> None:
    made = sv.synthetic_web("small", rng=seed)
    on: FloatArray = (made.site % 7 == 0).astype(np.float64)
    race = sv.simulate(made.graph, [Focused(on), "rankmass"], sv.Pages(200), rng=1)
    focused, plain = race.runs
    truth = sv.pagerank(made.graph, tolerance=1e-7, teleport=np.bincount(race.seeds, minlength=made.graph.pages) + 0.0)
    mass = [float((truth.scores * on)[run.order].sum()) for run in (focused, plain)]
    assert mass[0] > mass[1]
    for run in (focused, plain):
        assert (run.at_least <= run.true + race.truth_error).all()
        assert (run.true <= run.at_most + race.truth_error).all()


def test_probabilities_are_those_of_the_pages_that_link(tmp_path: Path) -> None:
    with survey(tmp_path / "a", topic="word:solar", until="pages=20") as found:
        state = found._derived.crawl
        strategy = state.strategy
        assert isinstance(strategy, Focused)
        judged = {page: True for event in found._folder.journal.events("topic") for page in event.detail["on"]}
        judged |= {page: False for event in found._folder.journal.events("topic") for page in event.detail["off"]}
        for waiting in state.ledger.waiting.tolist():
            parents = [is_on for page, is_on in judged.items() if waiting in state.graph.links_of(page)]
            expected = (sum(parents) + PRIOR) / (len(parents) + 1)
            assert strategy.probability_of(np.array([waiting], np.int32))[0] == pytest.approx(expected)
    assert Focused(np.zeros(3)).probability is not None
    assert LEAST > 0
    with pytest.raises(UsageError, match="probability must be one number from 0 to 1"):
        Focused(np.array([2.0]))
