"""Attacks on search: files from elsewhere, damage, kills at every write, and hostile queries and texts."""

from __future__ import annotations

import copy
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("snowballstemmer")
pytest.importorskip("resiliparse")

import surveyor as sv
from console import CommandResult
from search_surveys import HOME, Page, Site, random_pages
from surveyor.errors import SurveyError
from surveyor.search import generation, index, segment, state
from surveyor.store.directory import locked

pytestmark = pytest.mark.compiled
EVIL = "\x1b[31m\u202e<script>alert(1)</script> =HYPERLINK(1) \x00\x07 river"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = Site(tmp_path_factory.mktemp("search") / "a.survey", archive=False)
    site.visit(random_pages(np.random.default_rng(2), 40))
    with sv.open(site.path) as survey:
        survey.search("river")
    return site.path


@pytest.fixture
def survey(built: Path, tmp_path: Path) -> Path:
    place = tmp_path / "a.survey"
    shutil.copytree(built, place, ignore=shutil.ignore_patterns("search"))
    with sv.open(place) as opened:
        opened.search("river")
    return place


def results(path: Path, query: str = "river sea", **options: Any) -> list[dict[str, Any]]:
    with sv.open(path) as opened:
        return [page.to_dict() for page in opened.search(query, top=100, **options).pages]


def rebuilt(path: Path, **options: Any) -> list[dict[str, Any]]:
    place = path.with_name("rebuilt.survey")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(path, place, ignore=shutil.ignore_patterns("search"))
    return results(place, **options)


def test_a_copied_index_is_not_used(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy.survey"
    shutil.copytree(built, place)
    with sv.open(place) as opened:
        with pytest.raises(sv.UsageError, match="no index"):
            opened.search("river", update=False)
        found = opened.search("river")
        assert any("built again" in note for note in found.notes)
        assert not opened.search("river").notes or "built again" not in str(opened.search("river").notes)
    assert results(place) == results(built)


@pytest.mark.parametrize("what", ["", "{", "[]", '{"signature": "0"}', '{"version": 1, "segments": ["../.."]}'])
def test_a_damaged_list_of_files(survey: Path, what: str) -> None:
    before = results(survey)
    (survey / "search" / "index.json").write_text(what)
    assert results(survey) == before


@pytest.mark.parametrize("name", ["doc", "terms", "text", "page", "place", "term_start"])
def test_a_damaged_segment_is_built_again(survey: Path, name: str) -> None:
    before = results(survey)
    (path,) = (survey / "search").glob(f"segment-*/{name}.npy")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = os.urandom(len(data) - len(data) // 2)
    path.write_bytes(bytes(data))
    assert results(survey) == before
    path.unlink(missing_ok=True)
    assert results(survey) == before


def test_damage_under_an_open_searcher_is_one_sentence(survey: Path) -> None:
    with sv.open(survey) as opened:
        opened.search("river")
        (path,) = (survey / "search").glob("segment-*/text.npy")
        with path.open("rb+") as file:
            file.seek(200)
            file.write(bytes(5000))
        from surveyor.search.search import _OPENED

        searcher = _OPENED[opened].searcher
        with pytest.raises(SurveyError, match="damaged"):
            [searcher.texts(row) for row in range(searcher.pages)]


@pytest.mark.parametrize("name", ["", "index.json", "segment-000000001", "state-000000002"])
def test_links_are_not_followed(survey: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    place = survey / "search" / name
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    place.symlink_to(outside)
    with pytest.raises(SurveyError, match="symbolic link"):
        results(survey)
    assert [path.name for path in outside.iterdir()] == ["precious"]


def test_an_index_in_use_is_searched_as_it_is(survey: Path) -> None:
    site = Site.__new__(Site)
    site.path, site.archive, site.clock = survey, False, 1.8e9
    with sv.open(survey) as opened:
        site.ids = {url: page for page, url in enumerate(opened.journal.urls())}
    site.visit({HOME: Page("Otters", "")})
    with sv.open(survey) as opened:
        with locked(survey / "search"):
            found = opened.search("otters")
            assert not found.pages
            assert "another surveyor process" in found.notes[0]
        assert len(opened.search("otters").pages) == 1


def moved(site: Site, path: Path) -> Site:
    """Copy a survey without its index."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(site.path, path, ignore=shutil.ignore_patterns("search"))
    found = copy.copy(site)
    found.path, found.ids = path, dict(site.ids)
    return found


def killed(path: Path, at: int) -> bool:
    """Update the index in a process that is killed before its write number `at`; return whether it was."""
    pid = os.fork()
    if pid == 0:
        left = [at]

        def counted(write: Callable[..., Any]) -> Callable[..., Any]:
            def call(*values: Any, **named: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return write(*values, **named)

            return call

        for module, name in ((segment, "save"), (state, "save"), (generation, "write_signed")):
            setattr(module, name, counted(getattr(module, name)))
        for name in ("sync", "clean", "publish"):
            setattr(index, name, counted(getattr(index, name)))
        generation.shutil.rmtree = counted(shutil.rmtree)  # type: ignore[attr-defined]
        index.PUBLISHED = -1.0  # every page is published
        try:
            with sv.open(path) as opened:
                index.update(opened)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("step", [127, pytest.param(5, marks=pytest.mark.slow)])
def test_a_kill_at_any_write_leaves_an_index_that_agrees_with_the_journal(tmp_path: Path, step: int) -> None:
    rng, first = np.random.default_rng(4), Site(tmp_path / "first.survey", archive=False)
    first.visit(random_pages(rng, 8, 10))
    more = random_pages(rng, 6, 10)
    last = moved(first, tmp_path / "last.survey")
    last.visit(more)
    expected = rebuilt(last.path)
    for start in (first, last):  # an index is updated, or built
        kills = 0
        for at in range(0, 10_000, step):
            work = moved(start, tmp_path / "work.survey")
            if start is first:
                with sv.open(work.path) as opened:
                    index.update(opened)
                work.visit(more)
            if not killed(work.path, at):
                break
            kills += 1
            assert results(work.path) == expected
        assert kills >= 2


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", "no word"),
        ("   ", "no word"),
        ("- -- + * ( ) ~ ^ : && || !", "no word"),
        ('""', "no word"),
        ("\x00\x1b\u202e", "no word"),
        ("-river", "no word"),
        ("a" * 1_000_000, "1,000 characters, got 1,000,000"),
        ("a " * 499, None),
        (" ".join(f"w{number}" for number in range(40)), "32 words, got 40"),
    ],
)
def test_queries_are_bounded(survey: Path, query: str, problem: str | None) -> None:
    began = time.process_time()
    with sv.open(survey) as opened:
        if problem is None:
            opened.search(query)
        else:
            with pytest.raises(sv.UsageError, match=problem) as raised:
                opened.search(query)
            assert len(str(raised.value)) < 300
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "query",
    [
        "river OR sea AND NOT (level)",
        "title:river^1000 body:[a TO z] /(a+)+$/",
        "(a+)+$" * 100,
        '"' * 900,
        '"river ' * 100,
        "-" * 900 + "river",
        "rive*r?~2",
        "river\x00\x1b[31m",
        "\ud800 river",
        "é" * 900,
        "東" * 30,
        "' UNION SELECT * FROM pages --",
        "../../etc/passwd",
    ],
)
def test_operators_of_other_engines_are_words(survey: Path, query: str) -> None:
    began = time.process_time()
    with sv.open(survey) as opened:
        try:
            opened.search(query, weight=0)
        except sv.UsageError as error:
            assert "words" in str(error) or "no word" in str(error)  # noqa: PT017
    assert time.process_time() - began < 5


@pytest.mark.slow
def test_hostile_texts_are_escaped_and_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(tmp_path / "a.survey")
    long = "river" * 10_000
    site.visit(
        {
            HOME: Page(EVIL, EVIL, ((f"{HOME}long", EVIL), (f"{HOME}many", "a"))),
            f"{HOME}long": Page("long", f"{long} {'sea ' * 100_000}"),
            f"{HOME}many": Page("many", " ".join(f"w{number}" for number in range(60_000))),
            **{f"{HOME}p{number}": Page("p", "", ((HOME, f"text {number}"),)) for number in range(80)},
        }
    )
    with sv.open(site.path) as opened:
        found = opened.search("river script", weight=0)
        assert found.pages[0].url == HOME
        assert "<script>" not in found._html()
        assert all(len(page.snippet) <= 400 for page in opened.search("sea", top=1000).pages)
        assert len(opened.search("text").pages) == 1
        assert opened.search("text").pages[0].explanation["words"]["text"]["fields"] == {"anchors": 64}
        assert opened.search("sea").pages[0].explanation["words"]["sea"]["fields"]["body"] < 40_000
    for words in (["--explain"], ["--csv"], []):
        printed = CommandResult(capsys, "search", str(site.path), "river", "script", "--weight", "0", *words)
        assert printed.code == 0
        assert "\x1b" not in printed.out
        assert "\u202e" not in printed.out or words == ["--csv"]  # as in all CSV: a pipe gets the text


def test_without_the_extra(survey: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from surveyor.search import words

    words._stems.cache_clear()
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    printed = CommandResult(capsys, "search", str(survey), "river")
    words._stems.cache_clear()
    assert printed.code == 2
    assert printed.err.splitlines() == ["search needs snowballstemmer", "  hint: pip install 'surveyor[search]'"]
