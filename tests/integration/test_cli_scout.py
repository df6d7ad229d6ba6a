"""`surveyor scout` and `sv.scout` over HTTP on loopback: results, resume, reuse by a crawl, wrong options."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import surveyor as sv
from console import CommandResult, wait_for
from loopback import QUICK, linked, served
from surveyor.cli import crawl_display
from surveyor.cli.crawl_display import CrawlDisplay
from surveyor.crawler.session import Run
from surveyor.estimate.scouting.scout import ScoutOptions, summarise, walk
from surveyor.fetch.event_loops import run_sync
from surveyor.outcome import Outcome
from surveyor.survey.crawl import open_to_crawl
from surveyor.survey.survey import Survey

pytestmark = pytest.mark.usefixtures("nowhere")

HOLLOW = "<html><body><div id=root></div><script src=/app.js></script></body></html>"
SITE: dict[str, str | int] = {
    "/": linked("/docs/a", "/docs/b", "/blog/c", "/dead", "/old"),
    "/docs/a": linked("/", "/docs/b", *[f"/x/{number}" for number in range(40)]),
    "/docs/b": linked("/", "/app"),
    "/blog/c": linked("/dead", "/docs/a"),
    "/app": HOLLOW,
    **{f"/x/{number}": linked("/", f"/x/{number + 1}", "/docs/b") for number in range(60)},
}
MOVES = {"/old": "/docs/b"}
SITEMAP = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{}</urlset>"


def listed(site: str) -> dict[str, str | int]:
    pages = "".join(f"<url><loc>{site}{path[1:]}</loc></url>" for path in SITE)
    return {**SITE, "/sitemap.xml": SITEMAP.format(pages)}


def test_the_report_has_shares_size_and_forecasts(capsys: pytest.CaptureFixture[str]) -> None:
    pages = dict(SITE)
    with served(pages, moves=MOVES) as site:
        pages |= listed(site)
        words = ["scout", site, *QUICK, "--sample", "10", "--walks", "100"]
        first = CommandResult(capsys, *words)
        assert first.code == 0
        for text in ("folder", "clicks that lead to a broken page", "for each row by itself", "no upper bound"):
            assert text in first.out
        assert "forecasts, not bounds" in first.out
        assert f"{len(SITE):,} pages listed in sitemaps" in first.out
        assert f"surveyor crawl {site}" in first.err
        result = CommandResult(capsys, *words, "--json").json()
    assert result["command"] == "scout"
    assert (result["walks"], result["finished"], result["ending"]) == (100, 100, "reached")
    assert result["sitemap_pages"] == len(SITE)
    assert result["folders"][0]["name"].partition("/")[2] == ""
    assert sum(row["count"] for row in result["folders"]) == 100
    assert (
        0 < result["broken_clicks"]["at_least"] < result["broken_clicks"]["share"] < result["broken_clicks"]["at_most"]
    )
    assert result["javascript"]["count"] > 0
    assert result["size"]["at_least"] <= len(SITE)
    assert [row["coverage"] for row in result["forecasts"]] == [0.5, 0.8, 0.9, 0.95]
    assert result["unseen"]["at_most"] > 0


def test_a_crawl_reuses_the_pages_and_csv_lists_the_folders(capsys: pytest.CaptureFixture[str]) -> None:
    log: list[str] = []
    with served(SITE, log, MOVES) as site:
        table = CommandResult(capsys, "scout", site, *QUICK, "--no-sitemap", "--walks", "50", "--sample", "5", "--csv")
        assert table.out.splitlines()[0] == "share,at_least,at_most,count,name"
        scouted = len(log)
        assert "/sitemap.xml" not in log
        assert CommandResult(capsys, "crawl", site, *QUICK, "--until", "pages=1000").code == 3
    pages = [path for path in log if path in SITE or path in MOVES]  # a 404 is confirmed by a second request
    assert len(pages) == len(set(pages))
    assert scouted < len(log)


def test_limits_leave_walks_unfinished_and_a_larger_one_resumes(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "contact": "me@example.org",
        "allow": ["127.0.0.1"],
        "delay": 0,
        "backoff": 0.02,
        "walks": 60,
        "sample": 3,
    }
    with served(SITE, moves=MOVES) as site:
        few = sv.scout(site, out=tmp_path / "a.survey", until="requests=12", sitemaps=False, **options)
        assert few.requests <= 13
        assert few.finished < 60
        assert few.size.sampled == 3
        assert few.unseen.at_most is None
        most = max(few.folders.values(), key=lambda share: share.count)
        assert most.at_most - most.at_least > (60 - few.finished) / 60
        more = sv.scout(site, out=tmp_path / "a.survey", sitemaps=False, **options)
        assert (more.finished, more.walks) == (60, 60)
        assert repr(more).startswith("Scout(a.survey, 60 of 60 walks ended")
        again = sv.scout(site, out=tmp_path / "a.survey", sitemaps=False, **options)
    assert again.requests == more.requests
    assert (again.hosts, again.folders, again.unseen, again.size) == (more.hosts, more.folders, more.unseen, more.size)


@pytest.mark.slow
def test_a_killed_scout_resumes_with_the_same_walks(tmp_path: Path) -> None:
    with served(SITE, moves=MOVES) as site:
        survey = tmp_path / "a.survey"
        words = [sys.executable, "-m", "surveyor", "scout", site, *QUICK, "--delay", "0.05", "--no-sitemap"]
        words += ["--out", str(survey), "--walks", "80", "--quiet"]
        scout = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            wait_for(survey, 8)
        finally:
            os.kill(scout.pid, signal.SIGKILL)
            scout.wait()
        with Survey(survey) as opened:
            before = opened.scout_walks.walks
            secret = opened.scout_walks.secret
        assert any(not walk.ended for walk in before)
        assert subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == 0
        with Survey(survey) as opened:  # from the checkpoint
            after = opened.scout_walks.walks
            assert opened.scout_walks.secret == secret
            result = summarise(opened)
        shutil.rmtree(survey / "checkpoint")
        with Survey(survey) as opened:  # replayed
            assert opened.scout_walks.walks == after
            assert summarise(opened).to_dict() == result.to_dict()
    assert all(walk.ended for walk in after)
    for old, new in zip(before, after, strict=True):
        assert new.pages[: len(old.pages)] == old.pages


@pytest.mark.slow
def test_a_page_to_be_retried_is_fetched_even_if_links_to_it_are_found_meanwhile(tmp_path: Path) -> None:
    pages = {"/": linked("/dead", *[f"/{n}" for n in range(12)]), **{f"/{n}": linked("/dead", "/") for n in range(12)}}
    with served(pages) as site:
        options: dict[str, Any] = {"contact": "me@example.org", "allow": ["127.0.0.1"], "delay": 0, "backoff": 1.5}
        scout = sv.scout(site, out=tmp_path / "a.survey", walks=60, sitemaps=False, **options)
    assert (scout.ending, scout.finished) == ("reached", 60)
    assert scout.unseen.at_most is not None
    assert scout.broken_clicks.count > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--walks", "1"], "must be at least 2, got 1"),
        (["--walks", "20000"], "walks must be from 2 to 10,000, got 20000"),
        (["--sample", "-1"], "must be at least 0, got -1"),
        (["--until", "coverage=0.9"], "there is no stopping rule 'coverage'"),
        (["--until", "requests=none"], "requests=none is not a number of requests"),
    ],
)
def test_wrong_options(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "scout", "https://a.example/", "--contact", "me@example.org", *options)
    assert result.code == 2
    assert message in result.err
    assert not list(Path().iterdir())


def test_a_scout_without_links_is_refused_before_any_request(capsys: pytest.CaptureFixture[str]) -> None:
    log: list[str] = []
    with served(SITE, log, MOVES) as site:
        plain = ["--no-graph", "--strategy", "opic"]
        result = CommandResult(capsys, "scout", site, *QUICK, *plain)
        assert (result.code, list(Path().iterdir()), log) == (2, [], [])
        assert "a scout follows links, which --no-graph does not store" in result.err
        assert "leave out --no-graph" in result.err
        with pytest.raises(sv.UsageError, match="a scout follows links"):
            sv.scout(site, graph=False, strategy="opic", contact="me@example.org")
        assert CommandResult(capsys, "crawl", site, *QUICK, *plain, "--until", "requests=5").code == 0
        log.clear()
        for words in ([], plain):
            result = CommandResult(capsys, "scout", site, *QUICK, *words)
            assert (result.code, log) == (2, [])
            assert "it stores no links, which a scout follows" in result.err
            assert "--fresh" in result.err


def test_a_site_of_one_page_that_needs_javascript(capsys: pytest.CaptureFixture[str]) -> None:
    with served({"/": HOLLOW, "/sitemap.xml": "no list of pages"}) as site:
        result = CommandResult(capsys, "scout", site, *QUICK, "--walks", "10")
    assert "size    1 page: every known URL was requested" in result.out
    assert "scripts are not run: pages that only scripts link to are in no number" in result.out
    assert "extrapolated from 1 page; no rate is known for times" in result.out
    assert "0 pages listed in sitemaps" not in result.out


def test_a_site_with_blocked_pages_is_not_complete(capsys: pytest.CaptureFixture[str]) -> None:
    hidden = {f"/hidden/{number}": linked() for number in range(50)}
    pages = {"/": linked("/open", "/hidden"), "/open": linked("/"), "/hidden": linked(*hidden), **hidden}
    with served({**pages, "/robots.txt": "User-agent: *\nDisallow: /hidden"}) as site:
        words = ["scout", site, *QUICK, "--no-sitemap", "--walks", "20"]
        text, result = CommandResult(capsys, *words).out, CommandResult(capsys, *words, "--json").json()
    assert "at least 2 pages, those fetched: 1 known URL is blocked" in text
    assert "no upper bound" in text
    assert not result["size"]["is_complete"]


def test_sitemaps_count_towards_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    log: list[str] = []
    pages = dict(SITE)
    with served(pages, log, MOVES) as site:
        lists = "".join(f"<sitemap><loc>{site}{number}.xml</loc></sitemap>" for number in range(200))
        pages["/sitemap.xml"] = f"<sitemapindex>{lists}</sitemapindex>"
        pages |= {f"/{number}.xml": SITEMAP.format(f"<url><loc>{site}{number}</loc></url>") for number in range(200)}
        words = ["scout", site, *QUICK, "--walks", "30", "--until", "requests=60"]
        text = CommandResult(capsys, *words).out
        read = sum(path.endswith(".xml") for path in log)
        result = CommandResult(capsys, *words, "--json").json()
    assert (read, result["sitemap_pages"], result["sitemaps_unread"]) == (5, 4, 196)
    assert "4 pages listed in sitemaps, not checked; 196 sitemaps not read" in text
    assert result["requests"] == len(log) <= 60 + 1  # robots.txt is one more


@pytest.mark.slow
def test_pages_fetched_after_the_scout_count_for_size_and_forecasts(capsys: pytest.CaptureFixture[str]) -> None:
    pages = {f"/{n or ''}": linked("/", *[f"/{(7 * n + k) % 60 or ''}" for k in range(1, 9)]) for n in range(60)}
    with served(pages) as site:
        words = ["scout", site, *QUICK, "--no-sitemap", "--walks", "5", "--sample", "20"]
        assert "sampled from" in CommandResult(capsys, *words).out
        assert CommandResult(capsys, "crawl", site, *QUICK, "--until", "coverage=0.9").code == 0
        result = CommandResult(capsys, *words, "--json").json()
    (row,) = (row for row in result["forecasts"] if row["coverage"] == 0.9)
    assert row["certified_pages"] <= result["pages_fetched"]
    assert row["certified_hours"] == 0


@pytest.mark.slow
def test_the_progress_display_counts_the_walks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    display = CrawlDisplay(silent=False)
    monkeypatch.setattr(crawl_display, "LINE_EVERY", 0.0)
    monkeypatch.setattr(display, "_stream", io.StringIO())

    def watch(now: Run, outcome: Outcome | None) -> None:
        display(now, outcome)
        lines.extend(display.lines(now))

    options = {"contact": "me@example.org", "allow": ["127.0.0.1"], "delay": 0}
    with served(SITE, moves=MOVES) as site:
        folder, settings, _ = open_to_crawl(site, tmp_path / "a.survey", options)
        with folder:
            run_sync(walk(folder, settings, ScoutOptions(30, 0), watch=watch))
    walks = [line for line in lines if line.startswith("walks ")]
    assert walks
    assert "of 30 random walks ended" in walks[-1]
    assert not any("next (" in line for line in lines)


def test_nothing_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    with served({"/": 404}) as site:
        result = CommandResult(capsys, "scout", site, *QUICK)
    assert result.code == 5
    assert not list(Path().glob("*.survey"))
