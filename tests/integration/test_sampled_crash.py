"""A sampled crawl that is killed while it walks has the same walks and the same bound afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from loopback import QUICK, linked, served
from surveyor.crawler.session import Run
from surveyor.fetch.http import Fetched
from surveyor.survey.survey import Survey

pytestmark = pytest.mark.usefixtures("nowhere")

HOME, PAGES = "http://a.example/", 1500
CONFIDENCE, GOAL = 0.95, "coverage=0.8@95%"


def targets(number: int) -> list[int]:
    """Return the links of a page: ten important pages, and twelve that no other page links to."""
    return sorted({*range(10), *range(12 * number + 1, min(12 * number + 13, PAGES))} - {number})


def fake_site() -> dict[str, Fetched]:
    names = [HOME, *(f"{HOME}{number}" for number in range(1, PAGES))]
    return {name: page(name, *(names[target] for target in targets(number))) for number, name in enumerate(names)}


def walks_of(path: Path) -> list[tuple[int, int, float]]:
    """Return where the walks of a survey are: page, step and value."""
    with Survey(path) as survey:
        walks = survey._derived.crawl.walks
        return list(zip(walks._page, walks._step, walks._value, strict=True))


def bound_of(path: Path) -> tuple[float, int, int]:
    """Return the sampled bound of a survey, its walks and how many have finished; zeros without walks."""
    with sv.open(path) as survey:
        sampled = survey.sampled
        return (0.0, 0, 0) if sampled is None else (sampled.at_least, sampled.walks, sampled.finished)


@pytest.mark.slow
def test_a_crash_after_any_commit_of_the_walks_keeps_them(tmp_path: Path) -> None:
    site, whole = fake_site(), tmp_path / "a.survey"
    images: list[tuple[Path, list[tuple[int, int, float]], float]] = []

    def watch(run: Run, outcome: object) -> None:
        walks = run.state.crawl.walks
        if outcome is not None and walks.unfinished:
            copy = tmp_path / f"{len(images)}.survey"
            shutil.copytree(whole, copy)
            now = list(zip(walks._page, walks._step, walks._value, strict=True))
            images.append((copy, now, walks.at_least(CONFIDENCE)))

    crawled(whole, [HOME], Sites(Time(), site), watch, until=GOAL, concurrency=1)
    final, bound = walks_of(whole), bound_of(whole)
    assert len(images) >= 10
    assert bound[0] >= 0.8
    assert any(unfinished != final[: len(unfinished)] for _, unfinished, _ in images)
    for number, (copy, walks, at_least) in enumerate(images):
        assert walks_of(copy) == walks
        with Survey(copy) as survey:
            assert survey._derived.crawl.walks.at_least(CONFIDENCE) == at_least
        if number % 5 == 0:  # the rest of the crawl: the same walks end where they would have ended
            crawled(copy, [HOME], Sites(Time(), site), until=GOAL, concurrency=1)
            common = min(len(walks), len(final))
            assert walks_of(copy)[:common] == final[:common]
            assert bound_of(copy)[0] >= 0.8
            shutil.rmtree(copy / "checkpoint", ignore_errors=True)
            assert walks_of(copy)[:common] == final[:common]


@pytest.mark.slow
def test_a_process_killed_while_it_walks_resumes_with_the_same_bound(tmp_path: Path) -> None:
    survey, log = tmp_path / "a.survey", list[str]()
    pages: dict[str, str | int] = {
        "/" if number == 0 else f"/{number}": linked(*("/" if one == 0 else f"/{one}" for one in targets(number)))
        for number in range(PAGES)
    }
    with served(pages, log) as site:
        words = [sys.executable, "-m", "surveyor", "crawl", site, *QUICK, "--delay", "0.02", "--until", GOAL]
        words += ["--out", str(survey), "--quiet"]
        crawl = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 120
            while not (survey.is_dir() and has_unfinished_walks(survey)):
                assert crawl.poll() is None, "the crawl ended before the kill"
                assert time.monotonic() < end
                time.sleep(0.02)
        finally:
            os.kill(crawl.pid, signal.SIGKILL)
            crawl.wait()
        before, fetched = bound_of(survey), len(log)
        assert before[1] > before[2]  # some walks are unfinished
        shutil.copytree(survey, tmp_path / "replayed.survey")
        shutil.rmtree(tmp_path / "replayed.survey" / "checkpoint", ignore_errors=True)
        assert bound_of(tmp_path / "replayed.survey") == before
        places = walks_of(survey)
        assert subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == 0
    finished = walks_of(survey)
    assert len(finished) >= len(places)
    for (_, step, value), (_, last, total) in zip(places, finished, strict=False):
        assert (step <= last, value <= total) == (True, True)
    after = bound_of(survey)
    assert after[0] >= max(0.8, before[0])
    assert len(log) > fetched
    repeated = len(log) - len(set(log)) - log.count("/robots.txt") + 1
    assert repeated <= 8  # requests in progress at the kill


def has_unfinished_walks(path: Path) -> bool:
    """Return whether the journal of a running crawl has walks that wait for pages."""
    try:
        _, walks, finished = bound_of(path)
    except sv.SurveyorError:
        return False
    return finished < walks
