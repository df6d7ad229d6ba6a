"""The read side of a survey: graph, ranks, history and tables; and a survey as the source of another crawl."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import surveyor as sv
from console import CommandResult
from example_site import survey_of
from fake_web import MemoryJournal
from journal_source import JournalSource
from surveyor.config import Settings
from surveyor.crawler.loop import crawl
from surveyor.crawler.replay import derive
from surveyor.crawler.start import start
from surveyor.store.directory import SurveyFolder
from surveyor.testing import EmbeddedWeb, PerfectCrawler, WebSettings, running
from surveyor.web.urls import normalise

QUICK = {"slow_seconds": 0.02, "pace": 0.05, "crawl_delay": 0.02}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedWeb, Path]]:
    """Return a web with all its features and a survey of it."""
    path = tmp_path_factory.mktemp("surveys") / "a.survey"
    with running(WebSettings(**QUICK)) as web:  # type: ignore[arg-type]
        survey = sv.crawl(
            web.seeds,
            until="coverage=0.9",
            out=path,
            contact="me@example.org",
            scope="any",
            delay=0,
            backoff=0.02,
            allow=web.hosts,
            resolver=web.resolver,
            rng=5,
        )
        assert survey.ending == "reached"
        survey.close()
        yield web, path


def test_it_agrees_with_the_ground_truth(made: tuple[EmbeddedWeb, Path]) -> None:
    web, path = made
    crawler = PerfectCrawler(normalise=lambda url: normalise(url) or url, longest=10_000_000)
    truth = web.truth(crawler=crawler)
    with sv.open(path) as survey:
        history = survey.history()
        assert history.pages.size == survey.pages_fetched
        assert history.at_least[-1] == survey.coverage.at_least >= 0.9
        assert (np.diff(history.at_least) >= 0).all()
        read: list[str] = []
        for count, page in enumerate(history.pages.tolist()):
            read.append(survey.url(page))
            if count % 40 == 0:
                low, high = truth.coverage(read)
                assert history.at_least[count] <= high + 1e-9
                assert history.at_most[count] >= low - 1e-9
        best = survey.top(5)
        true = truth.importance.scores[[truth.ids[row["url"]] for row in best]]
        assert np.abs([row["share"] for row in best] - true).max() < 0.02
        assert "at least 9" in repr(survey)
        assert "<table>" in survey._repr_html_()


def test_its_graph_is_that_of_the_pages_read(made: tuple[EmbeddedWeb, Path]) -> None:
    with sv.open(made[1]) as survey:
        whole, crawled = survey.graph(), survey.graph(frontier=False)
        assert crawled.pages == survey.pages_fetched < whole.pages <= survey.pages_known
        ranking = survey.rank(crawled_only=True, teleport="uniform")
        assert ranking.teleport == "uniform"
        assert ranking.scores.size == crawled.pages
        blocked, refused = survey.blocked(), survey.blocked_pages(3)
        assert sum(row["mass"] for row in blocked) == pytest.approx(survey.coverage.blocked, abs=1e-9)
        assert refused[0]["mass"] >= refused[1]["mass"]
        leaving = survey.links_by_scope()
        assert leaving[0]["where"] == "in scope"
        assert sum(row["mass"] for row in leaving) == pytest.approx(1)
        survey.refresh()
        assert survey.graph() == whole


def test_tables(made: tuple[EmbeddedWeb, Path], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with sv.open(made[1]) as survey:
        pages, links, ranks, hosts, visits = (parquet.read_table(path) for path in survey.to_parquet(tmp_path))
        kinds = pages["kind"].to_pylist()
        assert kinds.count("fetched") == survey.pages_fetched
        assert visits.num_rows == survey.visits
        assert ranks.num_rows == survey.graph().pages
        assert sum(hosts["share"].to_pylist()) == pytest.approx(1)
        assert set(links["kind"].to_pylist()) <= {"followed", "nofollow", "out of scope"}


@pytest.mark.parametrize("strategy", ["rankmass", "breadth", "random"])
def test_a_survey_plays_the_web(made: tuple[EmbeddedWeb, Path], strategy: str) -> None:
    """Another strategy fetches the same pages in the end, and sends no request."""
    web, path = made
    asked = len(web.log)
    with SurveyFolder.open(path, write=False) as folder:
        pages = {page: visit for page, _, visit in folder.pages() if visit is not None}
        state = derive(folder)
        read = {page for page, visit in pages.items() if visit.kind == "fetched"}
        again = path.with_name(f"{strategy}.survey")
        settings = Settings(strategy=strategy, contact="me@example.org", scope="any", rng=1)
        other, _ = start(again, folder.manifest.seeds, settings, {})
        with other:
            other.commit([], state.urls.added(0))
            replayed, journal = derive(other), MemoryJournal()
            source = JournalSource(pages.get)
            ending = asyncio.run(crawl(replayed.crawl, source, journal, sv.Pages(10**9), tally=replayed.tally))
    assert ending == "exhausted"
    assert {outcome.page for outcome in journal.outcomes if outcome.kind == "fetched"} == read
    assert len(web.log) == asked


def test_scripts_find_urls_where_they_look_for_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = survey_of(tmp_path / "a.survey")
    pages = CommandResult(capsys, "top", str(path), "--json").json()["pages"]
    assert [page["url"] for page in pages] == [page["name"] for page in pages]
    assert pages[0]["url"].startswith("https://a.example/")
