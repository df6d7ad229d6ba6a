"""The HTML report of a survey: its content, its safety and its bounded size."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from hashlib import sha256
from html import escape, unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack import attack

import surveyor as sv
import surveyor.survey.survey as survey_module
from console import CommandResult, process
from fake_web import Sites, Time, begun, crawled, moved, page, rules
from surveyor.fetch.http import Fetched
from surveyor.outcome import Visit
from surveyor.report import html_page as html
from surveyor.report.numbers import MEANING
from surveyor.report.survey_html import SurveyReport, by_domain, by_reason, render, set_delays, summarize
from surveyor.report.survey_tables import command_of
from test_report import Tags

NASTY = "<script>alert('x')</script>\"&amp;"
HOME, BLOG, OTHER = "https://www.example.org", "https://blog.example.org", "https://www.example.com"


def sites() -> dict[str, Any]:
    """Return two domains with three hosts, and every kind of failure."""
    return {
        f"{HOME}/": page(f"{HOME}/", "/a", "/b?<script>", "/private/x", "/old", f"{BLOG}/", f"{OTHER}/", "/a.zip"),
        f"{HOME}/a": page(f"{HOME}/a", "/", "/gone", "/broken", extra=f"<title>{escape(NASTY)}</title>"),
        f"{HOME}/b?%3Cscript%3E": page(f"{HOME}/b?%3Cscript%3E", "javascript:alert(1)"),
        f"{HOME}/old": moved(f"{HOME}/old", "/a"),
        f"{HOME}/broken": Fetched(f"{HOME}/broken", 500),
        f"{BLOG}/": page(f"{BLOG}/", f"{HOME}/", "/2"),
        f"{BLOG}/2": page(f"{BLOG}/2", f"{HOME}/"),
        f"{OTHER}/": page(f"{OTHER}/", f"{HOME}/"),
        **rules(HOME, "User-agent: *\nDisallow: /private/\n"),
        **rules(BLOG, "User-agent: *\nCrawl-delay: 3\n"),
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "a.survey"
    crawled(path, [f"{HOME}/"], Sites(Time(), sites()), scope="any", delay=1.0, until="coverage=0.99")
    return path


@pytest.fixture(scope="module")
def report(made: Path) -> str:
    return sv.write_report(made).read_text("utf-8")


def words(report: str) -> str:
    """Return the visible text in one line."""
    body = re.sub(r"<(style|svg).*?</\1>", " ", report, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_the_report_shows_coverage_pages_hosts_and_settings(made: Path, report: str) -> None:
    seen = words(report)
    with sv.open(made) as survey:
        coverage, error = survey.coverage, survey.rank().error
    assert error > 0
    for expected in (
        "Survey of www.example.org",
        "goal 99 %",
        MEANING,
        f"{100 * coverage.captured:.2f} % captured",
        f"{100 * coverage.blocked:.2f} % blocked",
        f"{100 * coverage.lost:.2f} % lost",
        "Error of the shares",
        "in total; order proven",
        "To resume the crawl:",
        f"surveyor crawl {HOME}/ --out {made}",
        f"surveyor report {made}",
        "--scope any",
        "--rng 7",
        "robots.txt disallows it (Disallow: /private/) www.example.org",
        "blocked http 500",
        "gone http 404",
        "file type zip",
        "until coverage=0.99 test",
        "damping 0.85 default",
        "Domains",
        "example.com",
        "Responses",
    ):
        assert expected in seen, expected
    assert report.count("<figure") == 5  # two of them plots, which need matplotlib
    assert 'class="mass"' in report
    assert "goal: 99 %" in report


@attack(
    "titles and URLs with HTML and scripts (report of a survey)",
    area="output",
    must_hold="no script but its own, no external resource",
)
def test_it_is_one_harmless_file(report: str) -> None:
    own = files("surveyor.report").joinpath("tables.js").read_text("utf-8")
    digest = b64encode(sha256(own.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'\"" in report  # no other script runs
    report = report.replace(f"<script>{own}</script>", "", 1)
    seen = Tags(report)
    assert not seen.tags & {"script", "img", "iframe", "link", "object", "embed", "form", "base"}
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name == "src"]
    links = [value for name, value in seen.attributes if name == "href"]
    assert f"{HOME}/b?%3Cscript%3E" in links
    assert all(link.startswith(("http://", "https://")) for link in links)
    assert all(value.startswith("#") for name, value in seen.attributes if name == "xlink:href")
    assert NASTY in unescape(report)
    assert "<script" not in report
    assert "default-src 'none'" in report
    assert "@media print" in report
    assert "prefers-color-scheme: dark" in report


@attack("javascript: and data: URLs in the report", area="output", must_hold="not a link")
@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "JAVASCRIPT:x", "//a.org", "https:x"]
)
def test_only_web_urls_become_links(url: str) -> None:
    assert "<a" not in html.link(url)


@attack("URLs with quotes in the report", area="output", must_hold="the attribute stays closed")
def test_a_link_cannot_leave_its_quotes() -> None:
    assert html.link('https://a.org/"><script>') == (
        '<a href="https://a.org/&quot;&gt;&lt;script&gt;" rel="noopener noreferrer">'
        "https://a.org/&quot;&gt;&lt;script&gt;</a>"
    )
    long = "https://a.org/" + "a" * html.LONGEST
    assert "<a" not in html.link(long)
    assert html.link(long).endswith("…")


@pytest.mark.parametrize("plots", [True, False])
def test_the_state_is_derived_once_and_ranked_once(made: Path, monkeypatch: pytest.MonkeyPatch, plots: bool) -> None:
    calls: list[str] = []

    def counted(name: str) -> Any:
        function = getattr(survey_module, name)

        def call(*values: Any, **options: Any) -> Any:
            calls.append(name)
            return function(*values, **options)

        return call

    for name in ("derive", "pagerank", "to_graph"):
        monkeypatch.setattr(survey_module, name, counted(name))
    with sv.open(made) as survey:
        render(SurveyReport(survey, plots=plots))
    assert sorted(calls) == ["derive", "pagerank", "to_graph"]


def test_hosts_are_counted(made: Path) -> None:
    with sv.open(made) as survey:
        ranking, blocked = survey.rank(), survey.blocked_pages(99)
        taken = summarize(survey, ranking, blocked)
        set_delays(survey, taken.hosts)
        by_name = {place.name: place for place in taken.hosts}
        home, blog = by_name["www.example.org"], by_name["blog.example.org"]
        assert (home.fetched, blog.fetched, blog.known) == (3, 2, 2)
        assert (home.delay, blog.delay) == (1.0, 3.0)
        assert home.shortest is not None
        assert blog.shortest is not None
        assert 1.0 <= home.shortest < 3.0 <= blog.shortest
        assert (blog.requests, blog.errors) == (2, 0)
        assert home.errors == 4 + 2  # /broken four times, three of them retried; /gone twice
        assert sum(place.share for place in taken.hosts) == pytest.approx(1)
        assert sum(place.blocked for place in taken.hosts) == pytest.approx(survey.coverage.blocked)
        assert home.blocked > 0
        assert sum(taken.statuses.values()) == sum(place.requests for place in taken.hosts)
        assert [place.name for place in by_domain(taken.hosts)] == ["example.org", "example.com"]
        rows = {row["reason"]: row for row in by_reason(blocked)}
        row = rows["robots.txt disallows it (Disallow: /private/)"]
        assert (row["pages"], row["hosts"]) == (1, ["www.example.org"])
        assert sum(row["mass"] for row in rows.values()) == pytest.approx(survey.coverage.blocked)
        assert {kind: times.size for kind, times in taken.ended.items()} == {"fetched": 6, "redirected": 1, "failed": 6}


def test_pages_that_are_no_longer_in_scope(tmp_path: Path) -> None:
    path = tmp_path / "a.survey"
    answers = {**sites(), **rules(OTHER, "User-agent: *\nDisallow: /\n")}
    crawled(path, [f"{HOME}/"], Sites(Time(), answers), scope="any", until="pages=99")
    assert "www.example.com" in words(sv.write_report(path).read_text("utf-8"))
    begun(path, [f"{HOME}/"], scope="host")[0].close()
    seen = words(sv.write_report(path).read_text("utf-8"))
    assert "0 % 2 2 0 % 2 0 3 s 3.10 s blog.example.org" in seen  # fetched, and no longer in scope
    assert "0 % 0 1 0 % 0 0 1 s – www.example.com" in seen


def test_the_command_has_every_setting_that_is_not_a_default(tmp_path: Path) -> None:
    folder, _ = begun(
        tmp_path / "a.survey",
        ["https://a.org/", "https://b.org/"],
        until="coverage=0.9, pages=5",
        exclude=("*/x/*", "y"),
        archive=False,
        depth=3,
        max_bytes=5000,
        permission={"a.org": "mine"},
        proxy="http://u:secret@p:1/",
    )
    with folder:
        command = command_of(folder.manifest)
    assert command == (
        "surveyor crawl https://a.org/ https://b.org/ --until coverage=0.9 --until pages=5 --exclude '*/x/*' "
        "--exclude y --depth 3 --contact me@example.org --no-archive --max-bytes 5000 --rng 7"
    )


def test_without_matplotlib_there_are_tables_only(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("surveyor.report.svg.find_spec", lambda _: None)
    done = CommandResult(capsys, "report", str(made), "--out", str(tmp_path / "plain.html"))
    assert done.code == 0
    assert "pip install 'surveyor[report]'" in done.err
    plain = (tmp_path / "plain.html").read_text("utf-8")
    assert "<svg viewBox" not in plain
    assert 'class="treemap"' in plain
    assert "pip install 'surveyor[report]'" in unescape(plain)
    assert 'class="mass"' in plain


def test_a_large_survey_makes_a_small_file(tmp_path: Path) -> None:
    """Every table is full, and every cell is as long as it may be and needs escapes."""
    pages = 1500
    tail = "&" * 1900
    urls = [f"https://h{number}.site{number // 2}.example/{tail}{number}" for number in range(pages)]
    folder, _ = begun(tmp_path / "a.survey", urls[:300], scope="any", exclude=["&" * 5000])
    every = np.arange(pages, dtype=np.int32)
    with folder:
        folder.journal.commit([], urls)
        visits = [
            Visit(
                number, "fetched", every[every != number][:20], status=200, fetched_at=1e9 + number, title="<&>" * 5000
            )
            if number % 2
            else Visit(number, "blocked", reason="&" * 5000 + str(number), fetched_at=1e9 + number)
            for number in range(pages)
        ]
        folder.journal.commit(visits)
        with sv.open(tmp_path / "a.survey") as survey:
            text = render(SurveyReport(survey))
    assert 300_000 < len(text.encode()) < 2_000_000


def test_while_a_crawl_is_writing(tmp_path: Path) -> None:
    folder, _ = begun(tmp_path / "a.survey", [f"{HOME}/"], scope="any")
    with folder:
        before = words(render(SurveyReport(sv.open(tmp_path / "a.survey"), plots=False)))
        assert "0 pages fetched of 1 known" in before
        folder.journal.commit([], [f"{HOME}/", f"{HOME}/a"])
        with sv.open(tmp_path / "a.survey") as survey:
            link = np.array([1], np.int32)
            folder.journal.commit([Visit(0, "fetched", link, status=200, fetched_at=1e9)])
            assert "0 pages fetched of 1 known" in words(render(SurveyReport(survey)))  # the journal as of opening
        assert "1 page fetched of 2 known" in words(sv.write_report(tmp_path / "a.survey").read_text("utf-8"))


def test_the_command(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = CommandResult(capsys, "report", str(made), "--json")
    result = done.json()
    assert result["report"] == str(made / "report.html")
    assert result["bytes"] == (made / "report.html").stat().st_size
    assert result["plots"]
    with sv.open(made) as survey:
        assert result["coverage"] == survey.coverage_fields
        assert (result["pages_fetched"], result["pages_known"]) == (survey.pages_fetched, survey.pages_known)
    elsewhere = tmp_path / "b.html"
    done = CommandResult(capsys, "report", str(made), "--out", str(elsewhere))
    assert done.out.startswith(f"{elsewhere}   ")
    assert f"surveyor report {made} --out {elsewhere} --open" in done.err
    assert elsewhere.read_text("utf-8") == (made / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_open_starts_the_browser(made: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser.py"
    browser.write_text(f"import pathlib, sys\npathlib.Path({str(tmp_path / 'seen')!r}).write_text(sys.argv[1])\n")
    command = ["-m", "surveyor", "report", str(made), "--open"]
    shown = process(*command, env={"BROWSER": f"{sys.executable} {browser} %s"})
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "seen").read_text() == (made / "report.html").absolute().as_uri()
    none = process(*command, env={"BROWSER": f"{sys.executable} -c exit(1) %s", "PATH": "", "DISPLAY": ""})
    assert (none.returncode, "no browser" in none.stderr) == (0, True)


@pytest.mark.parametrize(
    ("given", "code", "sentence"),
    [
        (["nowhere.survey"], 4, "nowhere.survey does not exist"),
        ([], 2, "Missing argument 'SURVEY'"),
        (["SURVEY", "--out", "nowhere/report.html"], 2, "nowhere/report.html cannot be written: No such file"),
        (["SURVEY", "--out", "."], 2, ". cannot be written: Is a directory"),
    ],
)
def test_errors_name_the_problem_and_a_hint(
    given: list[str],
    code: int,
    sentence: str,
    made: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CommandResult(capsys, "report", *[str(made) if word == "SURVEY" else word for word in given])
    assert (done.code, done.out) == (code, "")
    assert sentence in done.err
    assert "hint:" in done.err
