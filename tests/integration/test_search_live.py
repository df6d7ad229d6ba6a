"""Search while a crawl runs in another process, and the command line of search."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("snowballstemmer")
pytest.importorskip("resiliparse")

import surveyor as sv
from console import CommandResult
from loopback import QUICK, linked, served

pytestmark = pytest.mark.compiled


@pytest.mark.slow
def test_a_page_fetched_during_a_crawl_is_found(tmp_path: Path) -> None:
    pages: dict[str, str | int] = {
        "/": linked(*(f"/p{number}" for number in range(60)), title="Home"),
        **{
            f"/p{number}": linked("/", title=f"Page {number}", text=f"About otters, number {number}. ")
            for number in range(60)
        },
    }
    place = tmp_path / "a.survey"
    with served(pages) as home:
        options = [word if word != "0" else "0.2" for word in QUICK]
        crawl = subprocess.Popen(
            [sys.executable, "-m", "surveyor", "crawl", home, "--out", str(place), *options, "--archive", "--quiet"]
        )
        try:
            counts: list[int] = []
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and len(set(counts)) < 3:
                time.sleep(0.3)
                if (place / "journal.sqlite").exists():
                    with sv.open(place) as survey:
                        counts.append(survey.search("otters").total if survey.visits else 0)
            assert crawl.poll() is None  # it was still running
        finally:
            crawl.terminate()
            crawl.wait(30)
    assert counts == sorted(counts)
    assert max(counts) > 0


@pytest.mark.slow
def test_searches_in_threads_of_one_process_agree(tmp_path: Path) -> None:
    place = crawled(tmp_path)
    found: list[list[str]] = []

    def search() -> None:
        with sv.open(place) as survey:
            found.append([page.url for page in survey.search("otters").pages])

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert found[0]
    assert all(urls == found[0] for urls in found)


def crawled(folder: Path) -> Path:
    pages: dict[str, str | int] = {
        "/": linked("/a", "/b", title="Home"),
        "/a": linked("/", title="Otters", text="The otter lives in the river. " * 4),
        "/b": linked("/", title="Beavers", text="The beaver builds dams, the otter does not. " * 4),
    }
    place = folder / "site.survey"
    with served(pages) as home:
        given = {"delay": 0, "contact": "me@example.org", "allow": ["127.0.0.1"], "archive": True}
        sv.crawl([home], until="pages=10", out=place, **given).close()  # type: ignore[arg-type]
    return place


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(crawled(tmp_path))
    printed = CommandResult(capsys, "search", place, "otters", "--weight", "0", "--explain")
    assert printed.code == 0
    assert printed.out.splitlines()[0] == "  1. Otters"
    assert "otters: " in printed.out
    assert "title 1, body 4" in printed.out
    assert "2 of 2 results among 3 pages" in printed.out
    assert "surveyor explain" in printed.err
    printed = CommandResult(capsys, "search", place, "otters", "river", "--json")
    assert printed.json()["command"] == "search"
    assert [page["title"] for page in printed.json()["pages"]] == ["Otters"]
    printed = CommandResult(capsys, "search", place, "otters", "--csv", "--top", "1")
    assert [row["title"] for row in csv.DictReader(printed.out.splitlines())] == ["Otters"]
    printed = CommandResult(capsys, "search", place, "riverr")
    assert "No page has riverr; showing river." in printed.err
    printed = CommandResult(capsys, "search", place, "zebra")
    assert (printed.code, printed.out.splitlines()[0]) == (0, "none of 3 pages matches")
    with sv.open(place) as survey:
        json.dumps(survey.search("otters").to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["river", "--weight", "2"], "weight must be in [0, 1], got 2"),
        (["river", "--top", "5000"], "top must be in [1, 1,000], got 5,000"),
        (["river", "--rank", "global"], "needs a file of ranks"),
        (["river", "--since", "yesterday"], "yesterday"),
        (["--", "-river"], "no word to search for"),
        (["a" * 2000], "1,000 characters, got 2,000"),
    ],
)
def test_wrong_options(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path_factory.getbasetemp() / "wrong" / "site.survey"
    if not place.exists():
        place.parent.mkdir()
        crawled(place.parent)
    printed = CommandResult(capsys, "search", str(place), *words)
    assert printed.code == 2
    assert expected in printed.err
    assert "  hint: " in printed.err
