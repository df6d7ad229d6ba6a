"""Default folders: one name for each place, which any file system takes; new seeds never slip into a survey."""

from __future__ import annotations

import os
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surveyor as sv
from console import CommandResult
from loopback import QUICK, SMALL, linked, served
from surveyor.crawler.start import LONGEST, folder_for, site_name
from surveyor.estimate.sampling.sample_survey import sample_folder

pytestmark = pytest.mark.usefixtures("nowhere")
PLACES = [
    "http://localhost/", "http://localhost:8000/", "http://localhost:9000/", "http://localhost/8000/",
    "https://example.org/", "https://example.org/docs/", "https://example.org/blog/", "https://example.org/docs/a/",
    "https://example.org/docs-a/", "https://example.org/docs_a/", "https://example.org/Docs/",
    "https://example.org:8080/docs/", "https://example.org/8080/docs/", "https://example.org//docs/",
    "https://example.org/%C3%A4/", "https://example.org/%C3%B6/", "https://example.org/" + "a" * 300 + "/",
    "https://example.org/" + "a" * 301 + "/", "http://[::1]/", "http://[::1]:8000/", "http://[::1:8000]/",
    "https://docs.example.org/", "https://docs-8000/", "https://docs:8000/", "https://example.org/../", "http://-a.org/",
]  # fmt: skip


def test_every_place_has_a_name_of_its_own() -> None:
    names = [site_name(place, prefix=True) for place in PLACES]
    for (one, first), (other, second) in combinations(zip(PLACES, names, strict=True), 2):
        assert first.lower() != second.lower(), (one, other)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name)
        assert len(name) <= LONGEST
    assert names == [site_name(place, prefix=True) for place in PLACES]


def test_names_are_readable() -> None:
    assert str(folder_for(["https://example.org/"], None)) == "example.org.survey"
    assert str(folder_for(["http://localhost:8000/"], None)) == "localhost_8000.survey"
    assert str(folder_for(["https://example.org/docs/start"], None)) == "example.org_docs.survey"
    assert str(folder_for(["https://example.org/docs/"], None, scope="host")) == "example.org.survey"
    assert str(folder_for(["https://example.org/docs/"], "mine")) == "mine"
    assert str(sample_folder(["http://localhost:8000/"], "tld:uk")) == "localhost_8000-sample-tld-uk.survey"
    long = [sample_folder(["https://a.org/"], "word:" + "a" * 80 + end).name for end in "xy"]
    assert len(set(long)) == 2


SEGMENT = st.text(st.characters(codec="utf-8", exclude_characters="/?#"), min_size=1, max_size=8)


@given(st.lists(SEGMENT, max_size=4), st.lists(SEGMENT, max_size=4))
def test_paths_that_differ_have_names_that_differ(one: list[str], other: list[str]) -> None:
    first, second = (site_name("/".join(["https://example.org", *path, ""]), prefix=True) for path in (one, other))
    assert (first.lower() == second.lower()) == (one == other)
    assert os.sep not in first


def test_two_ports_are_two_surveys(capsys: pytest.CaptureFixture[str]) -> None:
    with served(SMALL) as first, served(SMALL) as second:
        for url in (first, second):
            assert CommandResult(capsys, "crawl", url, *QUICK, "--until", "pages=2").code == 0
        ports = [url.rpartition(":")[2].strip("/") for url in (first, second)]
        assert sorted(path.name for path in Path().glob("*.survey")) == sorted(f"127.0.0.1_{p}.survey" for p in ports)
        for url, port in zip((first, second), ports, strict=True):
            with sv.open(f"127.0.0.1_{port}.survey") as survey:
                assert survey.manifest.seeds == (url,)


def test_new_seeds_need_to_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    pages = {**SMALL, "/docs/": linked("/"), "/x": linked("/")}
    with served(pages) as url:
        words = ["--out", "a b.survey", *QUICK]
        assert CommandResult(capsys, "crawl", url, *words, "--until", "pages=2").code == 0
        kept = {path.name: path.read_bytes() for path in Path("a b.survey").iterdir() if path.name == "survey.toml"}
        with sv.open("a b.survey") as survey:
            before = survey.visits
        wrong = CommandResult(capsys, "crawl", f"{url}docs/", *words)
        assert wrong.code == 2
        assert wrong.err.count("\n") == 2
        assert f"a b.survey is a survey of {url}, and {url}docs/ is not among its seeds" in wrong.err
        assert f"`surveyor crawl {url}docs/ --out 'a b.survey' --contact me@example.org --add-seeds`" in wrong.err
        assert f"`surveyor crawl {url}docs/ --out 'a b-2.survey' --contact me@example.org`" in wrong.err
        with sv.open("a b.survey") as survey:
            assert (survey.visits, survey.manifest.seeds) == (before, (url,))
        assert kept == {"survey.toml": Path("a b.survey/survey.toml").read_bytes()}
        added = CommandResult(capsys, "crawl", f"{url}docs/", *words, "--add-seeds", "--until", "pages=3", "--json")
        assert (added.code, added.json()["seeds"]) == (0, [url, f"{url}docs/"])
        subset = CommandResult(capsys, "crawl", f"{url}docs/", *words, "--until", "pages=4")
        assert subset.code == 0
        for named in (["a b.survey"], ["--out", "a b.survey"]):
            again = CommandResult(capsys, "crawl", *named, *QUICK, "--until", "pages=4", "--json")
            assert (again.code, again.json()["seeds"]) == (0, [url, f"{url}docs/"])
        assert [path.name for path in Path().glob("*.survey")] == ["a b.survey"]


def test_fewer_seeds_are_another_survey_unless_the_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with served(SMALL) as first, served(SMALL) as second:
        assert CommandResult(capsys, "crawl", first, second, *QUICK, "--until", "pages=2").code == 0
        (folder,) = Path().glob("*.survey")
        wrong = CommandResult(capsys, "crawl", first, *QUICK)
        stem = folder.name.removesuffix(".survey")
        assert (wrong.code, wrong.err) == (
            2,
            f"{folder} is a survey of {first}, {second}, not of {first} alone\n"
            f"  hint: `surveyor crawl {folder}` resumes it, "
            f"`surveyor crawl {first} --out {stem}-2.survey --contact me@example.org` starts another survey\n",
        )
        with pytest.raises(sv.UsageError, match="alone"):
            sv.crawl(first, until="pages=2", contact="me@example.org", delay=0)
        for words in ([first, "--out", str(folder)], [str(folder)], [first, second]):
            again = CommandResult(capsys, "crawl", *words, *QUICK, "--until", "pages=3")
            assert again.code == 0, again.err


def test_another_survey_is_suggested_under_the_name_of_its_own_host(capsys: pytest.CaptureFixture[str]) -> None:
    with served(SMALL) as first:
        assert CommandResult(capsys, "crawl", first, "--out", "a.survey", *QUICK, "--until", "pages=2").code == 0
        wrong = CommandResult(capsys, "crawl", "https://b.example/", "--out", "a.survey", *QUICK)
        assert "`surveyor crawl https://b.example/ --out b.example.survey --contact me@example.org` starts" in wrong.err


def test_new_seeds_in_python() -> None:
    with served({**SMALL, "/docs/": linked("/")}) as url:
        settings: dict[str, Any] = {"contact": "me@example.org", "allow": ["127.0.0.1"], "delay": 0, "out": "a.survey"}
        sv.crawl(url, until="pages=2", **settings).close()
        with pytest.raises(sv.UsageError, match="is not among its seeds"):
            sv.crawl(f"{url}docs/", until="pages=2", **settings)
        with sv.crawl([url, f"{url}docs/"], until="pages=3", add_seeds=True, **settings) as survey:
            assert survey.manifest.seeds == (url, f"{url}docs/")
        del settings["out"]
        with sv.crawl("a.survey", until="pages=4", **settings) as survey:
            assert survey.pages_fetched == 4
