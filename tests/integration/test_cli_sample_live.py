"""`surveyor sample` over HTTP and on surveys: fetch, interrupt, resume, invalid options."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import surveyor as sv
from console import CommandResult, wait_for
from example_site import HOME, survey_of
from fake_web import page, rules
from surveyor.cli.sample_display import waiting
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.testing import EmbeddedWeb, WebSettings, running
from surveyor.web.urls import Urls
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("nowhere")

QUICK = {"slow_seconds": 0.02, "pace": 0.05, "crawl_delay": 0.02}
TOPIC = ["--topic", "tld:example", "--rng", "3"]


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings(**QUICK)) as made:  # type: ignore[arg-type]
        yield made


def polite(web: EmbeddedWeb, delay: str = "0") -> list[str]:
    proxy = ["--proxy", f"http://127.0.0.1:{web.port}"]
    return [*proxy, "--contact", "me@example.org", "--delay", delay, "--backoff", "0.02"]


def test_fetch_resume_and_extend(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", *web.seeds[:2], *TOPIC, "--out", "s.survey", *polite(web), "--share", "url:/arts/"]
    result = CommandResult(capsys, *words, "--until", "fetches=40", "--json")
    fields = result.json()
    assert result.code == 0
    assert (fields["topic"], fields["rng"], fields["ending"]) == ("tld:example", 3, "fetches")
    assert 30 <= fields["fetches"] <= 40
    assert "saving to s.survey     Ctrl-C is safe" in result.err
    assert "robots.txt obeyed, delay 0 s" in result.err
    more = CommandResult(capsys, *words, "--until", "fetches=70", "--json", "--save", "p.csv", "--report", "r.html")
    assert more.json()["fetches"] > fields["fetches"]
    assert "resuming s.survey" in more.err
    without_rng = [word for word in words if word not in ("--rng", "3")]
    again = CommandResult(capsys, *without_rng, "--until", "fetches=70")  # with the recorded seed
    assert again.code == 0
    assert "surveyor s.survey\n" in again.err  # what was fetched
    assert "share with url:/arts/" in again.out
    assert Path("r.html").read_text("utf-8").count("<svg") == 3
    assert web.seeds[0].split("/")[2] in Path("p.csv").read_text("utf-8")
    with sv.open("s.survey") as survey:
        assert survey.pages_fetched <= 70
    other = CommandResult(capsys, "sample", *web.seeds[:2], "--topic", "tld:test", "--out", "s.survey", *polite(web))
    assert (other.code, other.out) == (2, "")
    assert "s.survey was created with --topic tld:example" in other.err


def test_words_and_languages(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    other = web.seeds[0] + "not-trusted"  # a page of weight 0 is only known, so no walk starts there
    Path("seeds.txt").write_text("\n".join([f"{web.seeds[0]} 2.5", *web.seeds[1:], f"{other} 0"]))
    words = ["sample", "--seeds", "seeds.txt", "--topic", "arts", "--rng", "3", *polite(web), "--by", "language"]
    result = CommandResult(capsys, *words, "--until", "fetches=60", "--out", "s.survey", "--mean", "out_degree")
    assert result.code == 0, result.err
    assert "topic                  word:arts\n" in result.out
    with sv.open("s.survey") as survey:
        assert set(survey.manifest.seeds) == {*web.seeds}
    assert re.search(r"^ +[\d.]+ % +[\d.]+ to [\d.]+ % +\d+ +(en|fr|de|es)$", result.out, re.MULTILINE)
    fields = CommandResult(
        capsys, *words, "--until", "fetches=60", "--out", "s.survey", "--recall", "s.survey", "--json"
    ).json()
    recall = next(one for one in fields["estimates"] if one["statistic"] == "recall")
    assert recall["value"] == pytest.approx(1)  # all sampled pages are in the survey


@pytest.mark.slow
def test_interrupted_sample_resumes(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", web.seeds[0], *TOPIC, "--until", "fetches=60", "--out", "s.survey", *polite(web)]
    started = subprocess.Popen(
        [sys.executable, "-m", "surveyor", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    wait_for(Path("s.survey"), 10)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, ""), err
    assert re.search(r"Stopped\. \d+ pages were requested; all of them are saved in s\.survey\.", err)
    assert f"surveyor {shlex.join(words)}\n" in err
    stopped = CommandResult(capsys, *words, "--json").json()
    whole = CommandResult(capsys, *words[: -len(polite(web)) - 1], "whole.survey", *polite(web), "--json").json()
    assert stopped["fetches"] == whole["fetches"]
    assert stopped["estimates"] == whole["estimates"]  # the same as without interruption


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("columns", [80, pytest.param(100, marks=pytest.mark.slow)])
def test_progress_on_a_terminal(web: EmbeddedWeb, columns: int) -> None:
    words = ["sample", web.seeds[0], *TOPIC, "--until", "ess=300,fetches=400", "--share", "url:/arts/"]
    with Terminal(*words, *polite(web, "0.05"), "--out", "s.survey", columns=columns) as shown:
        shown.wait_for(" of 300", 3)
        shown.wait_for("pages requested")
        shown.interrupt()
        assert shown.finish() == 130
    assert "Stopped. " in shown.text
    assert "resume" in shown.text


def test_slowest_host_is_named() -> None:
    now = [0.0]
    hosts, urls = Hosts(1.0, clock=lambda: now[0]), Urls()
    pages = urls.ids(["http://a.example/", "http://b.example/1", "http://b.example/2"]).tolist()
    for name in ("a.example", "b.example"):
        hosts.number(name)
    run: Any = SimpleNamespace(hosts=hosts, state=SimpleNamespace(urls=urls))
    scheduler: Any = SimpleNamespace(pending=set(pages))
    assert waiting(scheduler, run) == ""
    hosts.wait(1, 200.0)
    assert waiting(scheduler, run) == "waiting for b.example, 3 min"
    now[0] = 198.0  # a short wait
    assert waiting(scheduler, run) == ""
    scheduler.pending, now[0] = {pages[0]}, 0.0
    assert waiting(scheduler, run) == ""
    assert len(hosts) == 2


def test_unreadable_seeds(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = web.seeds[0] + "nowhere.html"
    result = CommandResult(capsys, "sample", nothing, *TOPIC, *polite(web), "--out", "s.survey")
    assert (result.code, result.out) == (5, "")
    assert f"no walk could start: {nothing}" in result.err


def test_limit_below_the_number_of_seeds(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", *web.seeds[:3], *TOPIC, "--until", "fetches=2", *polite(web), "--out", "s.survey"]
    result = CommandResult(capsys, *words)
    assert (result.code, result.out) == (2, "")
    assert "fetches must be at least 3" in result.err
    assert not Path("s.survey").exists()
    assert CommandResult(capsys, *words, "--walks", "2").code != 2  # two start pages


def test_changed_random_seed(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", web.seeds[0], *TOPIC, "--until", "fetches=5", *polite(web), "--out", "s.survey"]
    CommandResult(capsys, *words)
    result = CommandResult(capsys, *words, "--rng", "9")
    assert result.code == 2
    assert "s.survey was created with --rng 3, got 9" in result.err
    assert "--fresh" not in result.err  # an option of crawls


def test_seeds_off_topic(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", web.seeds[0], "--topic", "word:xylophonist", "--until", "fetches=25", *polite(web)]
    result = CommandResult(capsys, *words, "--out", "s.survey")
    assert result.code == 3
    assert "8 of 8 walks have not found the topic yet" in result.err
    assert "estimate" not in result.out


def test_no_contact_and_no_archive(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    proxy = ["--proxy", f"http://127.0.0.1:{web.port}"]
    result = CommandResult(capsys, "sample", web.seeds[0], "--topic", "arts", *proxy)
    assert (result.code, "contact" in result.err) == (2, True)
    result = CommandResult(capsys, "sample", web.seeds[0], "--topic", "arts", *polite(web), "--no-archive")
    assert (result.code, "archive" in result.err) == (2, True)
    assert list(Path().glob("*.survey")) == []


# Surveys


@pytest.fixture
def survey() -> str:
    links = {"": ["a", "b", "c"], "a": ["b", ""], "b": ["c", "a"], "c": [""]}
    pages = {
        HOME + name: page(HOME + name, *(HOME + goal for goal in goals), extra=f"<p>solar power {name * 3}</p>")
        for name, goals in links.items()
    }
    return str(survey_of(Path("s.survey"), {**pages, **rules(HOME.rstrip("/"), "")}))


def test_sample_of_a_survey(survey: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(survey, "journal.sqlite").read_bytes()
    words = ["sample", survey, "--topic", "solar power", "--until", "steps=4000", "--share", "word:aaa", "--rng", "3"]
    fields = CommandResult(capsys, *words, "--size", "--json").json()
    share = fields["estimates"][0]
    assert share["low"] == share["value"] == share["high"] == 0.25  # all four pages were drawn
    assert (fields["ending"], fields["distinct_pages"]) == ("complete", 4)
    walked = CommandResult(capsys, *words, "--method", "trial", "--json").json()["estimates"][0]
    assert walked["low"] < 0.25 < walked["high"]
    assert fields["topic"] == 'word:"solar power"'
    assert CommandResult(capsys, *words, "--start", HOME + "b").code == 0
    assert Path(survey, "journal.sqlite").read_bytes() == before
    result = CommandResult(capsys, *words, "--in-links", "x.tsv")
    assert (result.code, "--in-links does not apply to surveys" in result.err) == (2, True)
