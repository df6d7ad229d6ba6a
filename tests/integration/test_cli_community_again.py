"""`surveyor community` repeated: suggested commands give the same numbers, ignored options are reported."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from community_web import HOST, SITE, web
from console import CommandResult
from example_site import HOME, survey_of
from fake_web import page, rules
from surveyor.fetch.http import Fetched
from surveyor.testing import EmbeddedWeb, WebSettings, running

pytestmark = pytest.mark.usefixtures("nowhere", "tiny_communities")

RULE = f"host:{HOST}"
OUT = "http://none.example/"  # cannot be fetched
B = "https://b.example/"


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddedWeb]:
    with running(WebSettings()) as made:
        yield made


def polite(web: EmbeddedWeb) -> list[str]:
    proxy = ["--proxy", f"http://127.0.0.1:{web.port}"]
    return [*proxy, "--contact", "me@example.org", "--delay", "0", "--backoff", "0.02"]


def site(*out: str) -> dict[str, Any]:
    """Return a site of two pages that links to others, and a page outside that links back."""
    return {
        HOME: page(HOME, HOME + "docs/", B),
        HOME + "docs/": page(HOME + "docs/", HOME, *out),
        B: page(B, HOME + "docs/"),
        **rules(HOME.rstrip("/"), ""),
        **rules(B.rstrip("/"), ""),
        OUT: Fetched(OUT, 503),
    }


def suggested(done: CommandResult) -> dict[str, list[str]]:
    """Return the commands of next steps, by their last option."""
    commands = [shlex.split(line.partition("   surveyor ")[2]) for line in done.err.splitlines()]
    return {words[-2]: words for words in commands if len(words) > 2}


def test_next_steps_give_the_same_numbers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    web().save(tmp_path / "web.graph")
    (tmp_path / "back.tsv").write_text(f"https://other.example.com/\t{SITE[2]}\t3\n")
    more = ["--extra", "2", "--select", "random", "--rounds", "2", "--estimator", "crawled", "--until", "stable=1e-05"]
    more += ["--back-links", "back.tsv", "--damping", "0.5", "--rng", "0"]
    done = CommandResult(capsys, "community", "web.graph", "--local", HOST, *more)
    steps = suggested(done)
    assert set(steps) == {"--explain", "--save", "--report"}
    for words in steps.values():
        assert words[:-2] == ["community", "web.graph", "--local", HOST, *more]
    first = CommandResult(capsys, "community", "web.graph", "--local", HOST, *more, "--json").json()
    again = CommandResult(capsys, *steps["--save"], "--json").json()
    assert again["pages"] == first["pages"]
    assert again["pages"] != CommandResult(capsys, "community", "web.graph", "--local", HOST, "--json").json()["pages"]


def test_next_steps_of_a_replay(capsys: pytest.CaptureFixture[str]) -> None:
    survey_of(Path("s.survey"), site(), scope="any")
    words = ["community", "s.survey", "--local", "host:a.example", "--known", "all", "--replay"]
    done = CommandResult(capsys, *words)
    assert (done.code, "ignored" in done.err) == (0, False)
    assert suggested(done)["--save"] == [*words, "--save", "global.csv"]
    late = CommandResult(capsys, *words, "--extra", "5", "--rounds", "2")
    assert "! --extra, --rounds ignored: a replay with --known all requests no page" in late.err
    assert late.out == done.out


@pytest.mark.parametrize("more", [[], ["--replay"]])
def test_a_page_to_explain_is_looked_for_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    def worked(*_: object, **__: object) -> None:
        raise AssertionError("the work started")

    survey_of(Path("s.survey"), site(), scope="any")
    for place in (
        "surveyor.estimate.community.community_survey.open_community_survey",
        "surveyor.estimate.community.community.expand",
    ):
        monkeypatch.setattr(place, worked)
    for wrong in ("/nope", "https://a.example/nope", B, "#2"):
        done = CommandResult(capsys, "community", "s.survey", "--local", "host:a.example", "--explain", wrong, *more)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"{wrong} is not a local page\n")
    unread = CommandResult(
        capsys, "community", "s.survey", "--local", "host:a.example", "--back-links", "none.tsv", *more
    )
    assert (unread.code, unread.err.splitlines()[0][:33]) == (2, "the back-links in none.tsv cannot")
    several = CommandResult(capsys, "community", "s.survey", "--local", "all", "--explain", "/", *more)
    assert several.err.startswith("/ is the path of 2 local pages\n")
    assert [one.name for one in tmp_path.iterdir() if one.name != "config"] == ["s.survey"]


def test_a_page_to_explain_is_found_however_it_is_spelt(capsys: pytest.CaptureFixture[str]) -> None:
    survey_of(Path("s.survey"), site(), scope="any")
    words = ["community", "s.survey", "--local", "host:a.example", "--extra", "0", "--out", "c.survey"]
    for text, name in (
        ("/docs", HOME + "docs/"),
        (HOME + "docs", HOME + "docs/"),
        ("HTTPS://A.example:443/docs/#top", HOME + "docs/"),
        ("https://a.example", HOME),
        ("/", HOME),
    ):
        assert CommandResult(capsys, *words, "--explain", text, "--json").json()["explained"]["name"] == name
    refused = CommandResult(capsys, *words, "--explain", "/nope")  # checked against the existing community
    assert (refused.code, refused.err.splitlines()[0]) == (2, "/nope is not a local page")


def test_what_was_known_before_counts_where_nothing_can_be_fetched(
    served: EmbeddedWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    survey_of(Path("s.survey"), site(OUT), scope="any")
    words = ["community", "s.survey", "--local", "host:a.example", *polite(served)]
    result = "! the requested page outside could not be fetched"
    done = CommandResult(capsys, *words, "--out", "all.survey")
    assert done.code == 0
    assert f"{result}; the estimate uses 1 page outside known before\n" in done.err
    assert "1 page outside requested in 1 round by explore, 0 fetched; stopped early" in done.out
    lone = CommandResult(capsys, *words, "--out", "local.survey", "--known", "local")
    assert lone.code == 3
    assert f"{result}\n" in lone.err


def test_ignored_options_of_an_existing_community(served: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    survey_of(Path("s.survey"), site(OUT), scope="any")
    words = ["community", "s.survey", "--local", "host:a.example", *polite(served), "--out"]
    less, start = (
        "! --extra 0 ignored: 1 page was requested before\n",
        "! --known local ignored",
    )
    first = CommandResult(capsys, *words, "all.survey", "--extra", "1")
    again = CommandResult(capsys, *words, "all.survey", "--extra", "0", "--known", "local")
    assert (less in first.err, less in again.err, start in again.err) == (False, True, True)
    assert again.out == first.out
    for _ in range(2):  # unchanged options
        same = CommandResult(capsys, *words, "local.survey", "--known", "local", "--extra", "1")
        assert "ignored" not in same.err


def test_local_pages_by_topic(served: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    from surveyor.crawler.topics.page_content import words
    from surveyor.estimate.sampling.sample_pages import archived_pages
    from surveyor.store.directory import SurveyFolder

    CommandResult(capsys, "crawl", served.seeds[0], *polite(served), "--until", "pages=25", "--out", "t.survey")
    with SurveyFolder.open(Path("t.survey"), write=False) as folder:
        texts = {page.url: set(words(f"{page.title} {page.text}")) for page in archived_pages(folder)}
    counts = {word: sum(word in text for text in texts.values()) for word in set().union(*texts.values())}
    word = min(word for word, count in counts.items() if 5 <= count < len(texts) and word.isalpha())
    done = CommandResult(
        capsys, "community", "t.survey", "--local", f"words:{word}", "--replay", "--json", "--top", "99"
    )
    result = done.json()
    assert (done.code, result["local"], result["local_pages"]) == (0, f"word:{word}", counts[word])
    assert {row["name"] for row in result["pages"]} == {url for url, text in texts.items() if word in text}
