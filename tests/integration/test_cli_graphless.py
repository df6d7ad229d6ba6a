"""Commands on a survey without a link graph: those that work, and those that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console import CommandResult
from loopback import QUICK, SMALL, served

pytestmark = pytest.mark.usefixtures("nowhere")
SURVEY = "a.survey"
OPIC = ["--strategy", "opic", "--no-graph"]


@pytest.fixture
def site() -> Iterator[str]:
    with served({**SMALL, "/robots.txt": "", "/c": 404}) as url:
        yield url


def crawl(capsys: pytest.CaptureFixture[str], *words: str, out: str = SURVEY) -> CommandResult:
    return CommandResult(capsys, "crawl", *words, "--out", out, *QUICK)


def test_crawl_status_top_and_sql(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = crawl(capsys, site, *OPIC, "--until", "requests=40")
    assert first.code == 0
    assert "Goal reached (40 requests)" in first.out
    assert "importance by opic" in first.out
    assert "captured" not in first.out + first.err
    more = crawl(capsys, site, *OPIC, "--until", "requests=60", "--json")
    assert more.code == 0
    assert more.json()["coverage"] is None
    assert more.json()["pages"][0]["url"] == site
    status = CommandResult(capsys, "status", SURVEY)
    assert status.code == 0
    assert "no link graph is stored (--no-graph)" in status.out
    assert "3 fetched" in status.out
    assert CommandResult(capsys, "status", SURVEY, "--json").json()["coverage"] is None
    top = CommandResult(capsys, "top", SURVEY, "--importance", "opic", "--json").json()
    assert top["importance"]["method"] == "opic"
    assert abs(sum(row["share"] for row in top["pages"]) - 1) < 1e-9
    pages = CommandResult(capsys, "sql", SURVEY, "select url, kind from pages order by id", "--json").json()
    assert [row[1] for row in pages["rows"]] == ["fetched", "fetched", "fetched", "gone"]
    visits = CommandResult(capsys, "sql", SURVEY, "select count(*) from visits where status = 200", "--json").json()
    assert 40 < visits["rows"][0][0] < 60
    assert CommandResult(capsys, "sql", SURVEY, "select host, fetched, share from hosts").code == 0
    assert CommandResult(capsys, "doctor", SURVEY).code == 0


@pytest.mark.parametrize(
    "command",
    [
        "rank SURVEY",
        "top SURVEY",
        "top SURVEY --blocked",
        "top SURVEY --importance adaptive:fixed",
        "explain SURVEY /a",
        "report SURVEY",
        "export SURVEY --out pages.csv",
        "export SURVEY --out tables",
        "export SURVEY --out links.graphml --format graphml",
        "graph build SURVEY folder",
        "domains SURVEY",
        "status SURVEY --by-scope",
        "diff SURVEY SURVEY",
        "community SURVEY --local all",
        "sql SURVEY select(count(*))from\tlinks",
        "sql SURVEY select\t*from\tranks",
    ],
)
@pytest.mark.slow
def test_commands_that_need_links_are_refused(site: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert crawl(capsys, site, *OPIC, "--until", "requests=20").code == 0
    result = CommandResult(capsys, *(word.replace("SURVEY", SURVEY).replace("\t", " ") for word in command.split(" ")))
    assert result.code == 2
    assert f"{SURVEY} was crawled with --no-graph" in result.err
    assert f"surveyor top {SURVEY} --importance opic" in result.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--no-graph", "--until", "pages=5"], "strategy rankmass cannot crawl without a link graph"),
        ([*OPIC], "the goal coverage 95 % needs the link graph"),
        ([*OPIC, "--until", "pages=5", "--depth", "3"], "--depth needs the link graph"),
        ([*OPIC, "--until", "pages=5", "--budget", "100"], "--budget needs the link graph"),
        (["--no-graph", "--strategy", "adaptive:fixed", "--until", "pages=5"], "strategy adaptive:fixed cannot crawl"),
    ],
)
def test_settings_that_need_links_are_refused(
    site: str, options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = crawl(capsys, site, *options)
    assert result.code == 2
    assert problem in result.err
    assert not Path(SURVEY).exists()


def test_a_survey_keeps_its_mode(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    until = ["--until", "requests=20"]
    assert crawl(capsys, site, *OPIC, *until).code == 0
    assert crawl(capsys, site, "--strategy", "opic", *until, out="b.survey").code == 0
    cases = [
        (
            crawl(capsys, site, "--graph", *until),
            "a.survey was crawled without a link graph and cannot be resumed with",
        ),
        (crawl(capsys, site, *OPIC, *until, out="b.survey"), "b.survey was crawled with a link graph and cannot be"),
        (crawl(capsys, site, "--strategy", "opic:cycle", *until), "strategy cannot change in a survey without a link"),
        (crawl(capsys, site, "--damping", "0.5", *until), "damping cannot change in a survey without a link graph"),
        (crawl(capsys, site, "--exclude", "*/a", *until), "exclude cannot change in a survey without a link graph"),
        (crawl(capsys, f"{site}new", "--add-seeds", *until), "seeds cannot be added to a.survey"),
    ]
    for result, problem in cases:
        assert result.code == 2
        assert problem in result.err
    again = CommandResult(capsys, "crawl", SURVEY, "--until", "requests=30", *QUICK)  # the mode is remembered
    assert again.code == 0


def test_pages_are_fetched_once_with_a_limit_of_pages(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = crawl(capsys, site, *OPIC, "--until", "pages=50", "--json")
    assert (result.code, result.json()["ending"], result.json()["pages_fetched"]) == (3, "exhausted", 3)
