"""Links in a survey from elsewhere: what is written stays in the survey, also when a damaged journal is rescued."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from attack import attack

from console import CommandResult
from surveyor.errors import SurveyError
from surveyor.outcome import Outcome, Place, Visit
from surveyor.report import html_page
from surveyor.store import layout, recovery
from surveyor.store.commits import HeadFile, head_path
from surveyor.store.directory import SurveyFolder
from surveyor.store.journal import Journal
from surveyor.store.layout import check_survey
from surveyor.store.logs import log_errors_to
from surveyor.store.manifest import Manifest
from surveyor.store.recovery import examine

AREA = "surveys from elsewhere"
PRECIOUS = b"precious\n" * 4000
URLS = ["https://a.example/", "https://b.example/"]
DAMAGED = "journal.sqlite.damaged"
COPIES = (DAMAGED, f"{DAMAGED}-wal", f"{DAMAGED}-shm", f"{DAMAGED}-head", f"{DAMAGED}-journal")
SHARED = (
    "journal.sqlite",
    "journal.sqlite-wal",
    "journal.sqlite-shm",
    "journal.head",
    "lock",
    "crawl.log",
    "crawl.log.1",
    "report.html",
    "journal.rescued/journal.sqlite",
)
ENTRIES = (
    "notes.txt",
    DAMAGED,
    "crawl.log.1",
    "more",
    "warc/00000.warc.gz.after-last-good",
    "topics/t.json",
    "checkpoint/draft-1/x.npy",
)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    folder = tmp_path / "a.survey"
    with SurveyFolder.create(folder, Manifest(seeds=(URLS[0],), rng=1)) as made:
        for number, url in enumerate(URLS):
            made.commit([Outcome(number, "gone")], [url])
    return folder


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "outside" / "precious"
    path.parent.mkdir()
    path.write_bytes(PRECIOUS)
    return path


def damage(survey: Path) -> None:
    """Change one digest of the chain, with the checksum of its page: only the last commit is lost."""
    with closing(Journal.open(survey / "journal.sqlite")) as journal:
        journal._connection.execute("UPDATE commits SET digest = x'00' WHERE number = 2")
        journal.flush()


@attack(
    "a damaged survey in which a name that the rescue writes to is a link to a file outside, or to none",
    area=AREA,
    must_hold="the survey is refused; the rescue itself takes other names, and the file outside stays as it was",
)
@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("name", COPIES)
def test_a_rescue_writes_to_no_link(survey: Path, precious: Path, name: str, dangling: bool) -> None:
    damage(survey)
    (survey / "journal.head").write_bytes(b"echo written by a survey\n")
    target = precious.with_name("new") if dangling else precious
    (survey / name).symlink_to(target)
    with pytest.raises(SurveyError, match="is a symbolic link") as caught:
        SurveyFolder.open(survey, from_last_good=True)
    assert caught.value.exit_code == 4
    assert recovery.rescue(survey / "journal.sqlite").last_good.number == 1
    assert precious.read_bytes() == PRECIOUS
    assert [*precious.parent.iterdir()] == [precious]
    assert (survey / name).is_symlink()
    assert (survey / f"{DAMAGED}1-head").read_bytes() == b"echo written by a survey\n"


@attack(
    "a damaged survey whose journal names a file outside as its archive",
    area=AREA,
    must_hold="the rescue refuses it: nothing is copied from there, or to there",
)
@pytest.mark.parametrize("absolute", [True, False])
def test_a_rescue_copies_no_tail_of_a_file_outside(survey: Path, precious: Path, absolute: bool) -> None:
    name = str(precious) if absolute else "../../outside/precious"
    with SurveyFolder.open(survey) as folder:
        folder.journal.commit([Visit(0, "gone", warc=Place(name, 0, 9))])
        folder.journal.commit([Outcome(1, "gone")])
        folder.journal._connection.execute("UPDATE commits SET digest = x'00' WHERE number = 4")
    with pytest.raises(SurveyError, match="is not a valid file name in a survey"):
        recovery.rescue(survey / "journal.sqlite")
    assert [*precious.parent.iterdir()] == [precious]


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def dangling(path: Path, target: Path) -> None:
    path.symlink_to(target.with_name("new"))


def pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


@attack(
    "a survey that holds a link or a pipe under any name, also one that surveyor does not use today",
    area=AREA,
    must_hold="it is refused in one sentence (exit code 4)",
)
@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("make", [link, dangling, pipe])
def test_a_survey_is_made_of_plain_files(
    survey: Path, precious: Path, name: str, make: Callable[[Path, Path], None]
) -> None:
    (survey / "notes").mkdir()  # a folder of the user's own
    (survey / "notes.md").write_text("mine")
    check_survey(survey)
    (survey / name).parent.mkdir(parents=True, exist_ok=True)
    make(survey / name, precious)
    for write in (True, False):
        with pytest.raises(SurveyError, match="a survey must contain only plain files and folders") as caught:
            SurveyFolder.open(survey, write=write)
        assert "\n" not in caught.value.problem
        assert caught.value.exit_code == 4


@attack(
    "a survey in which a file that is written in place is a hard link to a file outside",
    area=AREA,
    must_hold="it is refused also by commands that only read (exit code 4), and the file outside stays as it was",
)
@pytest.mark.parametrize("name", SHARED)
def test_hard_links_are_not_written_through(
    survey: Path, precious: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = survey / name
    path.parent.mkdir(exist_ok=True)
    if name.endswith("journal.sqlite"):
        precious.write_bytes((survey / "journal.sqlite").read_bytes())
    before = precious.read_bytes()
    path.unlink(missing_ok=True)
    path.hardlink_to(precious)
    for command in ("status", "report", "doctor", "crawl"):
        result = CommandResult(capsys, command, str(survey))
        assert result.code == 4, command
        assert "has another name (a hard link)" in result.out + result.err
        assert precious.read_bytes() == before
    assert [check.name for check in examine(survey)] == ["files"]


@attack(
    "a head, a log or a report that becomes a hard link after the survey was checked",
    area=AREA,
    must_hold="it is not opened for writing, or replaced by a new file",
)
def test_files_that_are_written_have_one_name(survey: Path, precious: Path) -> None:
    head = head_path(survey / "journal.sqlite")
    for path in (head, survey / "crawl.log", survey / "report.html"):
        path.unlink(missing_ok=True)
        path.hardlink_to(precious)
    with pytest.raises(FileExistsError, match="several hard links"):
        HeadFile(head)
    with log_errors_to(survey / layout.LOG):
        logging.getLogger("surveyor.parsing").error("a page that could not be parsed")
    html_page.write("<p>a report</p>", survey / "report.html")
    assert (survey / "report.html").read_text() == "<p>a report</p>"
    assert precious.read_bytes() == PRECIOUS
    assert precious.stat().st_nlink == 3  # the report has another file now
