"""Rules of robots.txt that a survey from elsewhere brings along do not replace those of the host."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from attack import attack

from fake_web import Answers, Sites, Time, crawled, page, rules
from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.outcome import RobotsFile
from surveyor.store.directory import SurveyFolder

SITE = "http://a.org"
ROBOTS = f"{SITE}/robots.txt"
FAKE = b"User-agent: *\nAllow: /"


def site() -> Sites:
    """Return a site that forbids one page."""
    answers: dict[str, Answers] = {url: page(url, "/next", "/secret") for url in (f"{SITE}/", f"{SITE}/next")}
    answers[f"{SITE}/secret"] = page(f"{SITE}/secret")
    return Sites(Time(), {**answers, **rules(SITE, "User-agent: *\nDisallow: /secret")})


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other user"))
    return tmp_path / "a.survey"


FORGED = [(1.0, 1e300), (0.0, math.inf), (-60.0, DAY), (0.0, DAY), (DAY / 2, 2 * DAY)]


@attack(
    "a survey from elsewhere whose journal holds a permissive robots.txt, also one that never expires",
    area="surveys from elsewhere",
    must_hold="robots.txt is fetched again, its rules hold, and later resumes never use the forged rules",
)
@pytest.mark.parametrize(("fetched", "expires"), FORGED)
def test_a_forged_robots_txt(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fetched: float, expires: float
) -> None:
    client = site()
    crawled(path, [f"{SITE}/"], client, until="pages=1")
    with SurveyFolder.open(path) as folder:
        now = client.time.now
        folder.commit([], robots=[RobotsFile(SITE, now + fetched, now + expires, 200, FAKE)])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "this user"))
    client.time.now += 10
    assert len(client.times(ROBOTS)) == 1
    crawled(path, [f"{SITE}/"], client, until="requests=1")  # signs the survey
    client.time.now += DAY / 2 + 60  # by then, what was of the future is not any more
    crawled(path, [f"{SITE}/"], client)
    assert len(client.times(ROBOTS)) >= 2
    assert client.times(f"{SITE}/next")
    assert not client.times(f"{SITE}/secret")


@attack(
    "stored robots.txt rules with impossible times",
    area="surveys from elsewhere",
    must_hold="they hold for a day after they were fetched at most, and not before",
)
@pytest.mark.parametrize(
    ("fetched", "expires", "holds"),
    [
        (-60.0, 1e300, True),
        (-DAY + 60, math.inf, True),
        (-DAY, 1e300, False),
        (60.0, DAY, False),
        (math.nan, 1e300, False),
        (-60.0, math.nan, False),
    ],
)
def test_stored_rules_hold_for_a_day(fetched: float, expires: float, holds: bool) -> None:
    time = Time()
    kept = RobotsFile(SITE, time.now + fetched, time.now + expires, 200, FAKE)
    hosts = Hosts(1.0, clock=time, resolves=False, stored={SITE: kept}.get)
    number = hosts.number("a.org")
    hosts.wake()
    assert hosts.step(number, SITE) == ("page" if holds else "robots")
    time.now += DAY
    assert hosts.step(number, SITE) == "robots"


@pytest.mark.parametrize("wrong", ["soon", None, b"1"])
def test_times_that_are_no_numbers(wrong: object) -> None:
    time = Time()
    kept = RobotsFile(SITE, wrong, wrong, 200, FAKE)  # type: ignore[arg-type]
    hosts = Hosts(1.0, clock=time, resolves=False, stored={SITE: kept}.get)
    number = hosts.number("a.org")
    hosts.wake()
    assert hosts.step(number, SITE) == "robots"
