"""The folders of a sharded survey: server responses across resharding, folders that are lost or of another crawl."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from experiments.sharded_crawl import LocalShards, create, settings_for

import surveyor as sv
from surveyor.check.audit import audit
from surveyor.cli import run
from surveyor.crawler.shards.description import is_sharded, path_of, read_shards, recovered
from surveyor.crawler.shards.prepare import prepare, reshard
from surveyor.crawler.start import start
from surveyor.errors import SurveyError
from surveyor.graph.synthetic.generate import WebShape
from surveyor.outcome import Place
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder
from surveyor.testing import EmbeddedWeb, WebSettings, running


def crawl(folder: Path, web: EmbeddedWeb, shards: int | None, until: str = "coverage=0.4") -> LocalShards:
    settings = settings_for(web, until, archive=True)
    crawl = LocalShards(create(folder, web, settings, shards), settings, rng=np.random.default_rng(1))
    asyncio.run(crawl.run())
    return crawl


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A web, and two crawls of it with responses, each in two shards."""
    place = tmp_path_factory.mktemp("folders")
    with running(WebSettings.plain(web=WebShape(pages=300, largest_site=30, topics=2), rng=4, seeds=3)) as web:
        for name in ("one.survey", "other.survey"):
            crawl(place / name, web, 2)
            sv.open(place / name).close()  # copies the visits
        yield web, place


@pytest.fixture
def survey(crawls: tuple[EmbeddedWeb, Path], tmp_path: Path) -> Path:
    shutil.copytree(crawls[1] / "one.survey", tmp_path / "one.survey")
    return tmp_path / "one.survey"


@pytest.fixture
def other(crawls: tuple[EmbeddedWeb, Path]) -> Path:
    return crawls[1] / "other.survey"


def divide(folder: Path, shards: int) -> list[str]:
    with SurveyFolder.open(folder) as opened:
        reshard(opened, shards)
        return opened.notices


def check_responses(folder: Path) -> int:
    """Check that all pages have their own responses, for every way to read them; return their number."""
    with sv.open(folder) as survey:
        assert not survey.notice
        fetched = [(url, visit) for _, url, visit in survey.pages() if visit is not None and visit.kind == "fetched"]
        for url, visit in fetched:
            assert visit.warc is not None
            assert survey.archive.read(visit.warc).url == url
        texts = survey.texts(duplicates=True)
        urls = {one.url for one in texts}
        assert texts.counts.not_archived == 0
        assert urls <= {url for url, _ in fetched}
        assert len(urls) > 10
        assert audit(survey).not_archived == 0
    return len(fetched)


def check_index(folder: Path, target: Path) -> set[str]:
    """Check that an index names files and records that exist; return the names."""
    assert run(["export", str(folder), "--out", str(target), "--quiet"]) == 0
    lines = [json.loads(line.split(" ", 2)[2]) for line in target.read_text().splitlines()]
    assert len(lines) > 10
    for line in lines:
        own = folder / ("" if "/" in line["filename"] else "warc") / line["filename"]
        with own.open("rb") as file:
            file.seek(int(line["offset"]))
            assert file.read(2) == b"\x1f\x8b"
    return {line["filename"] for line in lines}


@pytest.mark.slow
def test_responses_of_shards_are_read_through_the_survey(
    crawls: tuple[EmbeddedWeb, Path], survey: Path, tmp_path: Path
) -> None:
    web, _ = crawls
    pages = check_responses(survey)
    first = {f"shards/00{shard}/warc/00000.warc.gz" for shard in range(2)}
    assert check_index(survey, tmp_path / "a.cdxj") == first
    divide(survey, 3)
    assert [path.name for path in read_shards(survey).paths] == ["002", "003", "004"]  # type: ignore[union-attr]
    assert check_responses(survey) == pages
    crawl(survey, web, None, "coverage=0.95")
    more = check_responses(survey)
    assert more > pages
    divide(survey, 0)
    assert not is_sharded(survey)
    assert check_responses(survey) == more
    given: dict[str, Any] = {"proxy": f"http://127.0.0.1:{web.port}", "contact": "me@example.org", "delay": 0}
    sv.crawl(str(survey), until=sv.Pages(10_000), **given).close()
    assert check_responses(survey) > more
    assert check_index(survey, tmp_path / "b.cdxj") > {*first, "00000.warc.gz"}
    divide(survey, 2)
    assert [path.name for path in read_shards(survey).paths] == ["005", "006"]  # type: ignore[union-attr]
    check_responses(survey)
    assert run(["doctor", str(survey), "--quiet"]) == 0


def test_a_recovered_journal_keeps_the_responses_of_shards(survey: Path) -> None:
    divide(survey, 0)
    pages = check_responses(survey)
    with SurveyFolder.open(survey) as folder:
        folder.note("requests", count=1)
        last = folder.journal.last_commit.number
        folder.journal._connection.execute("UPDATE commits SET digest = x'00' WHERE number = ?", (last,))
    with SurveyFolder.open(survey, from_last_good=True) as folder:
        assert folder.journal.last_commit.number >= last
    assert check_responses(survey) == pages


def test_texts_and_checks_of_the_command_line(survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(survey), "--out", str(tmp_path / "sh.md"), "--until", "tokens=2k"]) == 0
    assert (tmp_path / "sh.md").read_text().count("\n# ") > 1
    capsys.readouterr()
    run(["check", str(survey), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["pages_not_archived"] == 0
    assert not any("archived" in why for why in found["skipped"].values())


def test_erasing_a_host_covers_the_responses_of_shards(crawls: tuple[EmbeddedWeb, Path], survey: Path) -> None:
    web, _ = crawls
    with sv.open(survey) as opened:
        pages = [(url, visit.warc) for _, url, visit in opened.pages() if visit is not None and visit.warc is not None]
        name = urlsplit(pages[0][0]).hostname
        assert name is not None
        of_host = [place for url, place in pages if urlsplit(url).hostname == name]
        others = [place for url, place in pages if urlsplit(url).hostname != name]
    with SurveyFolder.open(survey) as folder:
        assert folder.delete_host(name) >= len(of_host)
        for place in of_host:
            with pytest.raises(SurveyError, match="holds no page"):
                folder.archive.read(place)
        for place in others:
            folder.archive.read(place)
    for path in layout.shard_surveys(survey):
        with SurveyFolder.open(path, write=False) as shard:
            known = [url for _, url, visit in shard.pages() if visit is not None and visit.kind == "fetched"]
            assert not [url for url in known if urlsplit(url).hostname == name]
    before = len(web.log)
    crawl(survey, web, None)  # builds the shards again: their mass depended on the pages
    assert not [entry for entry in [*web.log][before:] if name in str(entry)]


@pytest.mark.parametrize(
    "file",
    [
        "../../00000.warc.gz",
        "shards/../warc/00000.warc.gz",
        "shards/000/warc/../00000.warc.gz",
        "shards/000/00000.warc.gz",
        "shards/000/warc/secret",
        "shards/00a/warc/00000.warc.gz",
        "/shards/000/warc/00000.warc.gz",
        "shards/000/warc/shards/000/warc/00000.warc.gz",
        "shards/000/warc/00000.warc.gz\n",
        "shards\\000\\warc\\00000.warc.gz",
    ],
)
def test_no_other_file_is_read_as_a_response(survey: Path, file: str) -> None:
    (survey / "shards/000/warc/secret").write_bytes(b"x" * 1000)
    with SurveyFolder.open(survey) as folder:
        for act in (folder.archive.read, lambda place: folder.archive.erase([place])):
            with pytest.raises(SurveyError, match="as a file of it"):
                act(Place(file, 0, 500))


def test_a_response_in_a_folder_that_is_a_link_is_refused(survey: Path, tmp_path: Path) -> None:
    warc = survey / "shards/000/warc"
    warc.rename(tmp_path / "elsewhere")
    warc.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SurveyError, match="is a symbolic link"):
        SurveyFolder.open(survey, write=False)


def journal_of(folder: Path) -> tuple[int, int]:
    with SurveyFolder.open(folder, write=False) as opened:
        return opened.journal.position, opened.journal.url_count


@pytest.mark.filterwarnings("default")  # the command line prints them
@pytest.mark.parametrize("case", ["another crawl", "another shard", "other settings", "no shard"])
def test_a_folder_that_is_not_the_shard_is_never_copied_from(
    crawls: tuple[EmbeddedWeb, Path], survey: Path, other: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    web, _ = crawls
    before = journal_of(survey)
    shard = path_of(survey, 1)
    if case == "other settings":
        with SurveyFolder.open(shard) as opened:
            opened.change(seeds=[*opened.manifest.seeds, "http://foreign.example/"])
        why = "has other seeds or settings than the crawl"
    else:
        shutil.rmtree(shard)
        if case == "no shard":
            SurveyFolder.create(shard, SurveyFolder.open(survey, write=False).manifest).close()
        else:
            shutil.copytree(path_of(other, 1) if case == "another crawl" else path_of(survey, 0), shard)
        why = {
            "another crawl": "001 is a shard of another crawl",
            "another shard": "001 is shard 0 of 2, not shard 1 of 2",
            "no shard": "001 is not a shard",
        }[case]
    assert run(["status", str(survey)]) == 0
    assert why in capsys.readouterr().err
    assert journal_of(survey) == before
    opened, chosen = start(survey, [], settings_for(web, "coverage=0.9"), {}, sharded=True)
    with opened, pytest.raises(SurveyError, match=why) as caught:
        prepare(opened, chosen, None)
    assert caught.value.hint.startswith(f"`surveyor cluster reshard {survey} --shards 2`")
    assert caught.value.exit_code == 4
    assert journal_of(survey)[0] == before[0]
    notices = divide(survey, 2)
    assert any(why in notice for notice in notices)
    assert (survey / "shards/aside-001").is_dir() == (case != "other settings")
    assert journal_of(survey)[0] == before[0]
    crawl(survey, web, None)


def test_visits_that_were_not_copied_are_kept_when_another_shard_is_lost(
    crawls: tuple[EmbeddedWeb, Path], tmp_path: Path
) -> None:
    web, _ = crawls
    folder = tmp_path / "one.survey"
    shards = crawl(folder, web, 2).shards
    with SurveyFolder.open(shards.paths[0], write=False) as shard:
        visits = shard.journal.position
    assert visits > 0
    shutil.rmtree(shards.paths[1])
    assert any("001 is missing" in notice for notice in divide(folder, 0))
    assert journal_of(folder)[0] == visits


@pytest.mark.filterwarnings("default")  # the command line prints them
@pytest.mark.parametrize("damage", [None, b"{", b'{"version": 2, "shards": 2, "first": 0, "crawl": "x"}', b"[]"])
def test_shards_without_their_description(
    survey: Path, damage: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    visits = journal_of(survey)[0]
    about = survey / "shards/crawl.json"
    about.unlink()
    if damage is not None:
        about.write_bytes(damage)
    hint = f"`surveyor cluster reshard {survey} --shards 2`"
    assert run(["status", str(survey)]) == 0
    assert re.search("without the latest visits of its shards: .*crawl.json is", capsys.readouterr().err)
    for cluster in ([], ["--cluster", "local:1"]):
        capsys.readouterr()
        assert run(["crawl", str(survey), "--contact", "me@example.org", *cluster]) == 4
        said = capsys.readouterr().err
        assert "crawl.json is missing" in said if damage is None else "crawl.json is damaged: " in said
        assert hint in said.replace("\n", " ")
        assert "doctor" not in said
    if damage is not None and b"crawl" in damage:
        assert "it has no terms" in said
    with SurveyFolder.open(survey) as opened:
        found = recovered(opened)
        assert found is not None
        assert (found.count, found.first) == (2, 0)
    divide(survey, 3)
    assert read_shards(survey).count == 3  # type: ignore[union-attr]
    assert journal_of(survey)[0] == visits
    check_responses(survey)


def test_a_shard_older_than_its_copies_is_named_with_what_to_run(survey: Path) -> None:
    shard = path_of(survey, 1)
    kept = journal_of(survey)[0]
    with SurveyFolder.open(survey) as opened:
        detail = [event.detail for event in opened.journal.events("shards_merged")][-1]
        opened.note("shards_merged", **{**detail, "positions": [detail["positions"][0], 10_000]})
    hint = f"`surveyor cluster reshard {survey} --shards 2`"
    with pytest.warns(UserWarning, match="lost visits") as caught, sv.open(survey):
        pass
    assert f"{shard} has lost visits that were copied before; {hint}" in str(caught[0].message)
    assert any("has lost visits" in notice for notice in divide(survey, 2))
    assert journal_of(survey)[0] == kept
    check_responses(survey)


def test_another_number_of_shards_than_was_copied(survey: Path) -> None:
    about = survey / "shards/crawl.json"
    about.write_text(about.read_text().replace('"shards": 2', '"shards": 3'))
    with (
        pytest.warns(UserWarning, match="has copies of 2 shards, and its crawl.json names 3") as caught,
        sv.open(survey),
    ):
        pass
    assert f"`surveyor cluster reshard {survey} --shards 2`" in str(caught[0].message)
    divide(survey, 2)
    check_responses(survey)


def test_the_command_that_resumes_names_a_cluster(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", str(survey)]) == 0
    assert f"surveyor crawl {survey} --cluster local:" in capsys.readouterr().err
    divide(survey, 0)
    assert run(["status", str(survey)]) == 0
    assert "--cluster" not in capsys.readouterr().err
