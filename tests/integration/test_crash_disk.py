"""Disk errors during a crawl: one-sentence errors, and the crawl can be resumed when the cause is removed."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from experiments import kill

from crash_recovery import STEADY, Image, Setting, accounts, difference, read_urls, rows
from surveyor.crawler import session as live
from surveyor.errors import SurveyError
from surveyor.graph.synthetic.generate import WebShape
from surveyor.store import warc
from surveyor.store.database import connect
from surveyor.store.directory import SurveyFolder
from surveyor.testing.web_plan import WebSettings

HALF, ALL = "pages=15", "pages=100000"
ARCHIVED = {"archive": True}
SMALL = WebShape(pages=120, smallest_site=3, largest_site=20, topics=3, external=0.4, mutual=0.4, dead=0.05)
FINITE = WebSettings(
    web=SMALL,
    rng=3,
    seeds=2,
    calendar=0.0,
    sessions=0.0,
    dying=0.0,
    strict=0.0,
    robots_delay=0.0,
    slow_seconds=0.001,
    huge_bytes=10_000,
)


@pytest.fixture
def setting() -> Setting:
    return Setting(STEADY)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A crawl to which nothing happened."""
    path = tmp_path / "whole.survey"
    Setting(STEADY).crawl(path, ALL)
    return path


@contextmanager
def refused(printed: str) -> Iterator[None]:
    """Expect one sentence, and what to do."""
    with pytest.raises(SurveyError) as caught:
        yield
    assert re.search(printed, caught.value.problem)
    assert caught.value.exit_code == 4
    assert caught.value.hint
    assert "\n" not in caught.value.problem


def assert_same(path: Path, whole: Path) -> None:
    assert difference(rows(whole), rows(path)) == ""
    assert accounts(path) == accounts(whole)


# ---- kill -9 -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
@pytest.mark.slow
def test_kill_9(tmp_path: Path) -> None:
    """What is checked after each kill is in `experiments/kill.py`, which does it 200 times if it is run alone."""
    figures = kill.kill_often(10, tmp_path, web=FINITE)
    assert figures.kills == 10
    assert figures.surveys >= 1
    assert figures.visits > 100
    assert figures.bodies > 50
    assert figures.error <= figures.stated < 1e-6


HOLD = """
import sys
from pathlib import Path
from surveyor.store.directory import SurveyFolder
with SurveyFolder.open(Path(sys.argv[1])):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_the_lock_error_names_the_writing_process(tmp_path: Path, setting: Setting, whole: Path) -> None:
    path = tmp_path / "a.survey"
    setting.crawl(path, HALF)
    before = rows(path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with refused(rf"^another surveyor process \(pid {other.pid}, started [\d:]+\) is writing"):
            setting.crawl(path, ALL)
        other.kill()
    assert rows(path) == before
    setting.crawl(path, ALL)
    assert_same(path, whole)


# ---- a disk that is full or read-only ------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["[Errno 28] No space left on device", "[Errno 30] Read-only file system"])
def test_an_archive_that_cannot_be_written(
    tmp_path: Path, setting: Setting, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Every write fails from some moment on, in the middle of a record."""
    whole, path = tmp_path / "whole.survey", tmp_path / "a.survey"
    Setting(STEADY, options=ARCHIVED).crawl(whole, ALL)
    setting.options = ARCHIVED
    error = OSError(int(trouble[7:9]), trouble[11:])
    printed = "the disk is full: .* nothing of the last one" if error.errno == 28 else f"written: {error.strerror}$"
    room = [30_000]

    def write(file: int, data: Any) -> int:
        if room[0] <= 0:
            raise error
        room[0] -= len(data) // 2
        return os.write(file, data[: max(1, len(data) // 2)])

    with monkeypatch.context() as patch:
        patch.setattr(warc, "os", _Other(os, write=write))
        for _ in range(2):  # trying again changes nothing
            with refused(printed):
                setting.crawl(path, ALL)
    assert 0 < len(rows(path)["visits"]) < len(rows(whole)["visits"])
    setting.crawl(path, ALL)
    without_places = {name: [row[:16] for row in table] for name, table in rows(path).items()}
    assert difference({name: [row[:16] for row in table] for name, table in rows(whole).items()}, without_places) == ""
    with SurveyFolder.open(path) as folder:
        kept = [visit for visit in folder.journal.visits() if visit.warc is not None]
        assert len(kept) > 20
        assert [folder.archive.read(visit.warc).url for visit in kept if visit.warc] == [
            list(folder.journal.urls())[visit.page] for visit in kept
        ]


class _Other:
    """A module with some things replaced."""

    def __init__(self, module: Any, **other: Any) -> None:
        self._module, self._other = module, other

    def __getattr__(self, name: str) -> Any:
        return self._other.get(name) or getattr(self._module, name)


def test_a_journal_that_cannot_grow(tmp_path: Path, setting: Setting, whole: Path) -> None:
    path = tmp_path / "a.survey"

    def limit(folder: SurveyFolder) -> None:
        if folder.journal.position == 0:
            pages = folder.journal._ask("PRAGMA page_count")[0][0]
            folder.journal._ask(f"PRAGMA max_page_count = {pages}")

    with refused("the disk is full: .* has all earlier batches"):
        setting.crawl(path, ALL, after=limit)
    assert 0 < len(rows(path)["visits"]) < len(rows(whole)["visits"])
    setting.crawl(path, ALL)
    assert_same(path, whole)


REAL = """
import subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from crash_recovery import STEADY, Setting, accounts, difference, rows
from surveyor.errors import SurveyError

def remount(how):
    subprocess.run(["mount", "-o", f"remount,{how}", sys.argv[1]], check=True)

def refused(said):
    try:
        setting.crawl(path, "pages=100000")
    except SurveyError as error:
        assert error.exit_code == 4 and said in error.problem, error
    else:
        raise AssertionError("it continued")

path, whole = Path(sys.argv[1]) / "a.survey", Path(sys.argv[3])
setting = Setting(STEADY)
refused("the disk is full")
refused("the disk is full")
seen = rows(path)
assert 0 < len(seen["visits"]) < len(rows(whole)["visits"]), len(seen["visits"])
remount("ro")
refused("Read-only file system")
assert rows(path) == seen
remount("rw,size=64m")
setting.crawl(path, "pages=100000")
assert difference(rows(whole), rows(path)) == "", difference(rows(whole), rows(path))
assert accounts(path) == accounts(whole)
"""
MOUNTED = 'mount -t tmpfs -o size=120k tmpfs "$1" && exec "$2" -c "$3" "$1" "$4" "$5"'


@pytest.mark.slow
def test_a_real_disk(tmp_path: Path, whole: Path) -> None:
    """A crawl on a small disk until it is full, tried again, on a read-only disk, and then on a larger one."""
    unshare, small = shutil.which("unshare"), tmp_path / "small"
    if unshare is None or subprocess.run([unshare, "-rm", "true"], check=False).returncode:
        pytest.skip("needs a mount of its own")
    small.mkdir()
    here = str(Path(__file__).parents[1])
    command = [unshare, "-rm", "sh", "-c", MOUNTED, "sh", str(small), sys.executable, REAL, here, str(whole)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write(tmp_path: Path, setting: Setting, whole: Path) -> None:
    path = tmp_path / "a.survey"
    setting.crawl(path, HALF)
    files = [path / "lock", path / "journal.sqlite", path]
    for file in files:
        file.chmod(0o555)
    with refused("Permission denied"):
        setting.crawl(path, ALL)
    for file in files:
        file.chmod(0o755)
    setting.crawl(path, ALL)
    assert_same(path, whole)


# ---- files that are damaged ----------------------------------------------------------------------------------------


def test_a_journal_that_is_damaged(tmp_path: Path, setting: Setting, whole: Path) -> None:
    """Pages are overwritten one at a time, or the end is missing: the error is reported, and a copy can be resumed."""
    path = tmp_path / "a.survey"
    setting.crawl(path, HALF)
    shutil.rmtree(path / "checkpoint")
    now, memory = setting.clock.now, setting.web._visits.copy()
    file, rng, result = path / "journal.sqlite", random.Random(5), 0  # noqa: S311
    good = file.read_bytes()
    for start in range(0, len(good), 4096):
        for data in (good[:start] + rng.randbytes(4096) + good[start + 4096 :], good[: start + 100]):
            file.write_bytes(data)
            with refused("journal.sqlite is damaged, or not the journal of a survey"):
                setting.crawl(path, ALL)
            result += 1
    assert result > 10
    file.write_bytes(good)
    setting.clock.now, setting.web._visits = now, memory
    setting.crawl(path, ALL)
    assert_same(path, whole)


def test_a_few_bytes_of_a_journal(tmp_path: Path, setting: Setting) -> None:
    """What is not reported lies where nothing is read, and changes nothing."""
    path, other = tmp_path / "a.survey", tmp_path / "b.survey"
    setting.crawl(path, HALF)
    shutil.rmtree(path / "checkpoint")
    good, rng, result = (path / "journal.sqlite").read_bytes(), random.Random(6), 0  # noqa: S311
    expected = accounts(path)
    for _ in range(40):
        shutil.copytree(path, other)
        start = rng.randrange(100, len(good) - 40)
        (other / "journal.sqlite").write_bytes(good[:start] + rng.randbytes(40) + good[start + 40 :])
        try:
            assert accounts(other) == expected
            setting.crawl(other, "pages=16")
        except SurveyError:
            result += 1
        shutil.rmtree(other)
    assert result > 30


def test_a_log_that_is_missing(tmp_path: Path, setting: Setting, whole: Path) -> None:
    """Without its -wal file a journal is one from some time ago: that is reported, and a resume from there works."""
    images: list[Image] = []

    def keep(folder: SurveyFolder) -> None:
        if folder.journal.position == 10 and not images:
            folder.journal.flush()  # what SQLite does by itself now and then
        if folder.journal.position >= 15 and not images:
            images.append(setting.image(folder, tmp_path / "a.survey"))

    setting.crawl(tmp_path / "first.survey", HALF, after=keep)
    path = images[0].folder
    for name in ("journal.sqlite-wal", "journal.sqlite-shm"):
        (path / name).unlink()
    for _ in range(2):
        with refused(r"is damaged.*commits? .* cannot be read; the last good one ends with visit 10"):
            setting.crawl(path, ALL)
        with refused("is damaged"):
            rows(path)
    setting.go_back(images[0])
    setting.crawl(path, "pages=10", from_last_good=True)
    assert [row[0] for row in rows(path)["visits"]] == list(range(1, 11))
    assert (path / "journal.sqlite.damaged").is_file()
    setting.crawl(path, ALL)
    assert read_urls(path) == read_urls(whole)
    (path / "journal.sqlite").write_bytes(b"")
    with refused("is damaged"):
        setting.crawl(path, ALL)
    (path / "journal.sqlite").unlink()
    with refused("does not exist"):
        setting.crawl(path, ALL)


def test_a_checkpoint_that_is_damaged_is_not_needed(tmp_path: Path, setting: Setting, whole: Path) -> None:
    path, rng = tmp_path / "a.survey", random.Random(7)  # noqa: S311
    setting.crawl(path, HALF)
    for number, file in enumerate(sorted(path.glob("checkpoint/*/*"))):
        data = bytearray(file.read_bytes())
        data[rng.randrange(len(data))] ^= 1 + number % 255
        file.write_bytes(data[: len(data) - number % 2])
    setting.crawl(path, ALL)
    assert_same(path, whole)


@pytest.mark.parametrize(
    ("file", "old", "new", "printed"),
    [
        ("survey.toml", "seeds =", "seeds ==", "survey.toml is damaged"),
        ("survey.toml", "version = 1", "version = 9", "was created by a newer surveyor"),
        ("journal.sqlite", "6", "9", "is from a newer surveyor"),
    ],
)
def test_what_is_damaged_or_newer_is_left_alone(
    tmp_path: Path, setting: Setting, whole: Path, file: str, old: str, new: str, printed: str
) -> None:
    path = tmp_path / "a.survey"
    setting.crawl(path, HALF)

    def change(old: str, new: str) -> None:
        if file == "journal.sqlite":
            with closing(connect(path / file, write=True)) as connection:
                connection.execute("UPDATE meta SET value = ? WHERE key = 'schema' AND value = ?", (new, old))
        else:
            (path / file).write_text((path / file).read_text().replace(old, new))

    change(old, new)
    with refused(printed):
        setting.crawl(path, ALL)
    with refused(printed):
        accounts(path)
    change(new, old)
    setting.crawl(path, ALL)
    assert_same(path, whole)


def test_a_full_disk_saves_no_checkpoint_and_the_crawl_continues(
    tmp_path: Path, setting: Setting, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(live, "SAVE_SHARE", 0.0)
    path = tmp_path / "a.survey"

    def block(folder: SurveyFolder) -> None:  # a file where the folder would be
        (folder.folder / "checkpoint").touch()

    setting.crawl(path, ALL, before=block)
    assert (path / "checkpoint").is_file()
    (path / "checkpoint").unlink()  # readers refuse a survey with it
    assert_same(path, whole)
