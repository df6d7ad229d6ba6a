"""Running crawls over HTTP on loopback: what they publish, and what commands do to them."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import surveyor as sv
from console import CommandResult
from loopback import SMALL, served
from surveyor.crawler.session import Run
from surveyor.errors import SurveyError, UsageError
from surveyor.outcome import Outcome
from surveyor.store import published
from surveyor.store.directory import SurveyFolder
from surveyor.testing import EmbeddedWeb, WebSettings, running

pytestmark = pytest.mark.usefixtures("nowhere")

FOREVER = "pages=100000"


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings(slow_seconds=0.02, pace=0.05, crawl_delay=0.02)) as made:
        yield made


class Crawling:
    """A crawl or watch in another thread."""

    def __init__(self, work: Callable[..., Any], *args: Any, **options: Any) -> None:
        self.result: Any = None
        self.error: BaseException | None = None

        def target() -> None:
            try:
                self.result = work(*args, **options)
            except BaseException as error:
                self.error = error

        self._thread = threading.Thread(target=target)
        self._thread.start()

    def __enter__(self) -> Crawling:
        return self

    def __exit__(self, *_: object) -> None:
        while self._thread.is_alive():  # a test that failed leaves it running
            if published.is_running(published.read("s")):
                published.send("s", "stop")
            self._thread.join(0.5)

    def join(self) -> Any:
        """Return the result."""
        self._thread.join(120)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def crawling(web: EmbeddedWeb, *, resume: bool = False, **options: Any) -> Crawling:
    """Start a crawl of this web, or resume it."""
    given = {"contact": "me@example.org", "delay": 0.03, "backoff": 0.02, "scope": "any", "rng": 3, **options}
    proxy = f"http://127.0.0.1:{web.port}"
    return Crawling(sv.crawl, [] if resume else list(web.seeds), out="s", proxy=proxy, **given)


def state_when(is_so: Callable[[dict[str, Any]], bool], seconds: float = 60.0) -> dict[str, Any]:
    """Return the first published state that is so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := published.read("s")) is not None and is_so(found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"never so: {published.read('s')}")


def steer(command: str, value: str | None = None) -> dict[str, Any]:
    return published.wait_until_taken("s", published.send("s", command, value), 30.0)


def test_the_state_agrees_with_the_journal_at_the_end(web: EmbeddedWeb) -> None:
    with crawling(web, until=FOREVER) as crawl:
        early = state_when(lambda state: state["pages"] >= 5)
        assert early["status"] == "running"
        assert early["goal"] == "100,000 pages"
        assert early["listening"]
        assert 1 <= len(early["next"]) <= 10
        masses = [page["mass"] for page in early["next"] if "waits here" in page["why"]]
        assert masses == sorted(masses, reverse=True)
        assert early["hosts_waiting"]
        assert steer("goal", "coverage=0.55")["goal"] == "coverage 55 %"
        survey = crawl.join()
    last = published.read("s")
    assert last is not None
    assert (last["status"], last["ending"], last["listening"]) == ("ended", "reached", False)
    assert not published.is_running(last)
    with survey, SurveyFolder.open(Path("s"), write=False) as folder:
        assert (last["pages"], last["bytes"], last["requests"]) == folder.journal.cost()
        assert last["known"] == survey.pages_known
        assert last["queued"] == survey.pages_queued
        coverage = survey.coverage
        blocked = {row["reason"]: (row["pages"], row["mass"]) for row in survey.blocked()}
    assert coverage.at_least >= 0.55
    assert last["coverage"]["at_least"] == pytest.approx(coverage.at_least, abs=1e-12)
    assert last["coverage"]["at_most"] == pytest.approx(coverage.at_most, abs=1e-12)
    assert {row["reason"]: row["pages"] for row in last["blocked"]} == {why: row[0] for why, row in blocked.items()}
    assert sum(row["mass"] for row in last["blocked"]) == pytest.approx(coverage.blocked, abs=1e-9)
    assert last["statuses"]["fetched"] <= last["pages"]  # a page may be fetched twice
    assert last["statuses"]["blocked"] == sum(row["pages"] for row in last["blocked"])
    assert sum(last["http"].values()) >= last["pages"]
    curve = published.curve("s")
    assert curve.pages[-1] == last["pages"]
    assert curve.at_least[-1] == pytest.approx(coverage.at_least)
    assert (curve.at_least <= curve.at_most).all()
    assert (curve.seconds[1:] >= curve.seconds[:-1]).all()


def test_a_pause_makes_no_request_and_a_resumed_crawl_reaches_its_goal(web: EmbeddedWeb) -> None:
    web.log.clear()
    with crawling(web, until=FOREVER, delay=0.2) as crawl:
        state_when(lambda state: state["pages"] >= 20)
        assert steer("pause")["status"] == "paused"
        state_when(lambda state: state["status"] == "paused" and not state["in_progress"])
        sent, paused = len(web.log), published.read("s")
        time.sleep(2.0)
        assert len(web.log) == sent
        still = state_when(lambda state: state["written_at"] > time.time() - 2)  # it is alive
        assert paused is not None
        goal = still["pages"] + 100
        assert steer("goal", f"pages={goal}")["status"] == "paused"
        assert steer("resume")["status"] == "running"
        assert crawl.join().ending == "reached"
    assert len(web.log) > sent
    last = published.read("s")
    assert last is not None
    assert last["pages"] >= goal
    assert [taken["command"] for taken in last["taken"]] == ["pause", "goal", "resume"]


@pytest.mark.slow
def test_a_pause_does_not_count_towards_a_limit_of_minutes(web: EmbeddedWeb) -> None:
    began = time.monotonic()
    with crawling(web, until="minutes=0.1") as crawl:  # 6 s
        state_when(lambda state: state["pages"] >= 3)
        steer("pause")
        time.sleep(4.0)
        state_when(lambda state: state["status"] == "paused")
        steer("resume")
        assert crawl.join().ending == "reached"
    assert time.monotonic() - began > 9.5


def test_a_stopped_crawl_is_saved_and_resumes(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    with crawling(web, until=FOREVER) as crawl:
        state_when(lambda state: state["pages"] >= 20)
        done = CommandResult(capsys, "steer", "s", "stop")
        assert (done.code, done.out.strip()) == (0, "Stopping: the crawl saves what it has.")
        with crawl.join() as survey:
            assert survey.ending == "interrupted"
            pages = survey.pages_fetched
    last = published.read("s")
    assert last is not None
    assert (last["status"], last["ending"], last["pages"]) == ("ended", "interrupted", pages)
    done = CommandResult(capsys, "steer", "s", "resume")
    assert (done.code, "no crawl or watch is running in s" in done.err) == (4, True)
    with crawling(web, resume=True, until=f"pages={pages + 10}") as crawl:
        assert crawl.join().ending == "reached"
    again = published.read("s")
    assert again is not None
    assert (again["before"], again["ending"]) == (pages, "reached")
    curve = published.curve("s")
    assert curve.pages[0] < pages < curve.pages[-1]  # over both runs
    assert (curve.seconds[1:] >= curve.seconds[:-1]).all()


@pytest.mark.parametrize(
    "goal",
    ["coverage=0.5", *(pytest.param(goal, marks=pytest.mark.slow) for goal in ("coverage=0.6@90%", "pages=400"))],
)
def test_a_new_goal_is_reached_and_recorded(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str], goal: str) -> None:
    legs: set[int] = set()

    def watch(run: Run, _outcome: Outcome | None) -> None:
        legs.add(id(run.state))

    with crawling(web, until=FOREVER, watch=watch, delay=0.1) as crawl:
        state_when(lambda state: state["pages"] >= 20)
        done = CommandResult(capsys, "steer", "s", f"goal={goal}", "--json").json()
        assert done["running"]
        assert crawl.join().goal_reached
        assert str(crawl.result.goal) == published.read("s")["goal"] == done["goal"]  # type: ignore[index]
    assert len(legs) == 1  # nothing was replayed
    with SurveyFolder.open(Path("s"), write=False) as folder:
        assert folder.manifest.settings["until"] == goal
        assert folder.manifest.authentic
        fetched = folder.journal.cost()[0]
    assert goal != "pages=400" or 400 <= fetched < 420
    assert CommandResult(capsys, "status", "s", "--json").json()["goal"] == goal


@pytest.mark.slow
def test_goals_that_a_survey_cannot_have_change_nothing(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    with crawling(web, until=FOREVER, strategy="opic", graph=False) as crawl:
        state = state_when(lambda state: state["pages"] >= 5)
        assert state["coverage"] is None
        assert state["next"]
        done = CommandResult(capsys, "steer", "s", "goal=coverage=0.9")
        assert (done.code, "needs the link graph" in done.err) == (2, True)
        assert steer("goal", "pages=40")["goal"] == "40 pages"
        assert crawl.join().ending == "reached"
    with SurveyFolder.open(Path("s"), write=False) as folder:
        assert folder.manifest.settings["until"] == "pages=40"


@pytest.mark.slow
def test_a_goal_that_needs_another_queue_resumes_in_place(web: EmbeddedWeb) -> None:
    """OPIC fetches pages repeatedly until a number of requests, but not until a coverage."""
    runs: list[tuple[int, bool]] = []

    def watch(run: Run, _outcome: Outcome | None) -> None:
        if not runs or runs[-1][0] != id(run.state):
            runs.append((id(run.state), run.state.crawl.frontier.rereads))

    with crawling(web, until="coverage=0.99", strategy="opic", watch=watch) as crawl:
        state_when(lambda state: state["pages"] >= 10)
        steer("goal", "requests=150")
        assert crawl.join().ending == "reached"
    assert [rereads for _, rereads in runs] == [False, True]
    last = published.read("s")
    assert last is not None
    assert last["requests"] >= 150


@pytest.mark.slow
def test_damaged_commands_are_ignored_with_a_message(web: EmbeddedWeb) -> None:
    with crawling(web, until=FOREVER) as crawl:
        state_when(lambda state: state["pages"] >= 5)
        commands = Path("s/live/commands")
        (commands / f"{1:020d}-00000000.json").write_text('{"command": "format the disk"}')
        (commands / f"{2:020d}-00000000.json").mkdir()
        (commands / f"{3:020d}-00000000.json").write_bytes(os.urandom(50_000))
        (commands / "pause").write_text("pause")
        found = state_when(lambda state: len(state["messages"]) >= 3)
        assert sum("ignored" in text for text in found["messages"]) == 3
        assert found["status"] == "running"
        state_when(lambda state: state["pages"] > found["pages"])
        published.discard(Path("s"))  # it may be deleted at any time
        steer_again = state_when(lambda state: state["pages"] > found["pages"])
        assert steer_again["status"] == "running"
        steer("stop")
        assert crawl.join().ending == "interrupted"


def test_a_crawl_continues_where_nothing_can_be_published(web: EmbeddedWeb, caplog: pytest.LogCaptureFixture) -> None:
    with crawling(web, until="pages=3") as crawl:
        crawl.join()
    published.discard(Path("s"))
    Path("s/live").write_text("a file in place of the folder")
    with caplog.at_level(logging.WARNING, "surveyor.crawler"), crawling(web, resume=True, until="pages=60") as crawl:
        assert crawl.join().ending == "reached"
    failures = [record for record in caplog.records if "cannot be published" in record.getMessage()]
    assert len(failures) == 1
    assert Path("s/live").read_text() == "a file in place of the folder"


def test_a_survey_from_elsewhere_steers_nothing(web: EmbeddedWeb) -> None:
    """Commands that came with a survey are discarded, and its curve is checked."""
    with crawling(web, until="pages=3") as crawl:
        crawl.join()
    (Path("s/live/commands") / f"{1:020d}-00000000.json").write_text('{"command": "goal", "value": "pages=1"}')
    Path("s/live/curve.tsv").write_text("1\t1\t0\t1\t\n9999999\t2\t0\t1\t\n")
    Path("s/live/state.json").write_text(json.dumps({"pid": 1}))
    with crawling(web, resume=True, until="pages=30") as crawl:
        assert crawl.join().pages_fetched >= 30
    last = published.read("s")
    assert last is not None
    assert (last["taken"], last["messages"]) == ([], last["messages"])
    assert published.curve("s").pages.max() == last["pages"]


def test_the_status_shows_what_is_running(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    with crawling(web, until=FOREVER) as crawl:
        state_when(lambda state: state["pages"] >= 10)
        printed = CommandResult(capsys, "status", "s")
        assert "crawl is running, " in printed.out
        assert "surveyor steer s pause" in printed.err
        CommandResult(capsys, "steer", "s", "pause")
        printed = CommandResult(capsys, "status", "s")
        assert "crawl is paused, " in printed.out
        assert "surveyor steer s resume" in printed.err
        live = CommandResult(capsys, "status", "s", "--json").json()["live"]
        assert (live["running"], live["command"], live["status"]) == (True, "crawl", "paused")
        CommandResult(capsys, "steer", "s", "stop")
        crawl.join()
    assert "is paused" not in CommandResult(capsys, "status", "s").out
    stopped = {"running": False, "command": None, "status": "stopped", "rate": None, "left": None}
    assert CommandResult(capsys, "status", "s", "--json").json()["live"] == stopped


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("s", "pause"), 4, "s is not a survey"),
        (("s", "halt"), 2, "command must be one of pause, resume, stop, goal, got 'halt'"),
        (("s", "goal"), 2, "goal needs a stopping rule"),
        (("s", "goal=coverage=7"), 2, "coverage"),
        (("s", "pause=1"), 2, "pause takes no value, got '1'"),
    ],
)
def test_wrong_arguments(words: tuple[str, ...], code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = CommandResult(capsys, "steer", *words)
    assert (done.code, text in done.err) == (code, True), done.err


@pytest.mark.slow
def test_a_watch_publishes_and_is_paused_and_stopped() -> None:
    log: list[str] = []
    with served(dict(SMALL), log) as site:
        options: dict[str, Any] = {"contact": "me@example.org", "allow": ["127.0.0.1"], "delay": 0.0, "backoff": 0.02}
        with sv.crawl(site, out="s", until="pages=100", **options):
            pass
        with Crawling(sv.watch, "s", rate="1000000/day", delay=0.0, contact="me@example.org") as watch:
            state = state_when(lambda state: state["command"] == "watch" and state["status"] == "running")
            assert state["goal"] == "1,000,000 requests a day"
            with pytest.raises(UsageError, match="a watch has no goal"):
                steer("goal", "pages=5")
            assert steer("pause")["status"] == "paused"
            state_when(lambda state: not state["in_progress"])
            asked = len(log)
            time.sleep(2.0)
            assert len(log) == asked
            steer("resume")
            steer("stop")
            assert watch.join().ending == "interrupted"
    last = published.read("s")
    assert last is not None
    assert (last["command"], last["status"], last["ending"]) == ("watch", "ended", "interrupted")


def test_deleting_a_host_deletes_what_is_published(web: EmbeddedWeb) -> None:
    with crawling(web, until="pages=5") as crawl:
        crawl.join()
    with SurveyFolder.open(Path("s")) as folder:
        folder.delete_host("nowhere.example")
    assert not Path("s/live").exists()


def test_nothing_runs_in_a_survey_in_shards(web: EmbeddedWeb) -> None:
    with crawling(web, until="pages=5") as crawl:
        crawl.join()
    Path("s/shards").mkdir()
    Path("s/shards/crawl.json").write_text("{}")
    with pytest.raises(SurveyError, match="a sharded crawl takes no commands"):
        published.send("s", "pause")
