"""The survey folder: atomic creation, lock, crashes, resuming, deletion of hosts, export."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.errors import MissingExtra, SurveyError, UsageError
from surveyor.outcome import Exchange, Outcome, Place, RobotsFile, Visit
from surveyor.store import directory as module
from surveyor.store import tabular
from surveyor.store.directory import SurveyFolder
from surveyor.store.journal import Journal
from surveyor.store.manifest import Manifest, toml

URLS = [
    *("https://a.example/", "https://b.example:8080/x", "https://a.example/y", "http://a.example/z"),
    "https://c.example/",
]
MANIFEST = Manifest(
    seeds=tuple(URLS[:2]),
    rng=81733,
    settings={"damping": 0.85, "other": {"hosts": ["a.example"], "depth": 3}, "quoted": 'rank"mass', "none": None},
    origins={"damping": "default", "strategy": "--strategy"},
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
SCALAR = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
TABLE = st.recursive(
    st.dictionaries(TEXT, SCALAR | st.lists(SCALAR, max_size=3) | st.datetimes(timezones=st.just(UTC)), max_size=4),
    lambda inner: st.dictionaries(TEXT, SCALAR | inner, max_size=4),
    max_leaves=6,
)


@pytest.fixture
def survey(tmp_path: Path) -> Iterator[SurveyFolder]:
    with SurveyFolder.create(tmp_path / "a.survey", MANIFEST) as opened:
        yield opened


def ids(*pages: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(pages, np.int32)


def exchange(page: int, text: str = "hello") -> Exchange:
    return Exchange(URLS[page], b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", text.encode(), 1.5)


def child(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, env=environment)


@settings(deadline=None, max_examples=150)
@given(TABLE)
def test_toml_is_read_as_it_was_written(table: dict[str, Any]) -> None:
    assert tomllib.loads(toml(table)) == table


def test_a_survey_is_a_folder(survey: SurveyFolder) -> None:
    result = tomllib.loads((survey.folder / "survey.toml").read_text("utf-8"))
    assert result["seeds"] == URLS[:2]
    assert result["rng"] == 81733
    assert result["settings"] == {"damping": 0.85, "quoted": 'rank"mass', "other": {"hosts": ["a.example"], "depth": 3}}
    assert result["origins"]["strategy"] == "--strategy"
    assert isinstance(result["created"], datetime)
    place = survey.archive.write(exchange(0))
    survey.commit([Visit(0, "fetched", ids(1), status=200, warc=place)], URLS)
    assert repr(survey) == "SurveyFolder(a.survey, 5 pages known, 1 visits)"
    assert survey.size() > 1000
    with SurveyFolder.open(survey.folder, write=False) as reader:  # beside the writer
        assert [(page, url, visit is not None) for page, url, visit in reader.pages()] == [
            (page, url, page == 0) for page, url in enumerate(URLS)
        ]
        assert reader.archive.read(place) == exchange(0)
        assert reader.manifest.seeds == MANIFEST.seeds
        assert reader.manifest.created == MANIFEST.created


def test_seeds_and_settings_can_be_changed(survey: SurveyFolder) -> None:
    survey.change(seeds=(*URLS[:2], URLS[4]), settings={"damping": 0.9})
    survey.note("pause", why="Ctrl-C")
    assert [(event.kind, event.detail.get("settings")) for event in survey.journal.events()] == [
        ("settings_changed", {"damping": 0.9}),
        ("pause", None),
    ]
    survey.close()
    with SurveyFolder.open(survey.folder) as again:
        assert again.manifest.seeds == (*URLS[:2], URLS[4])
        assert again.manifest.settings == {"damping": 0.9}
        assert again.manifest.origins == MANIFEST.origins
    with pytest.raises(UsageError, match=r"cannot be stored in survey\.toml"):
        toml({"a": object()})


def test_without_bodies(tmp_path: Path) -> None:
    with SurveyFolder.create(tmp_path / "a.survey", MANIFEST, keep=False) as survey:
        survey.commit([Outcome(0, "gone")], URLS)
        assert not (survey.folder / "warc").exists()
        with pytest.raises(UsageError, match="has no server responses"):
            _ = survey.archive


def test_a_checkpoint_is_of_this_journal(survey: SurveyFolder) -> None:
    assert survey.load_checkpoint() is None
    survey.commit([Outcome(0, "gone")], URLS)
    assert survey.save_checkpoint({"state": np.arange(3)}, {"used": 3})
    survey.commit([Outcome(1, "gone")])
    found = survey.load_checkpoint()
    assert found is not None
    assert (found.position, found.arrays["state"].tolist(), found.about) == (1, [0, 1, 2], {"used": 3})
    survey.journal.delete_host("a.example", [0])
    assert survey.load_checkpoint() is None


def test_a_host_can_be_deleted(survey: SurveyFolder) -> None:
    places = [survey.archive.write(exchange(page, f"words of page {page}")) for page in range(3)]
    survey.commit(
        [Visit(page, "fetched", ids(3), title=f"title {page}", warc=place) for page, place in enumerate(places)],
        URLS,
        robots=[RobotsFile("https://a.example", 1, 2, 200, b"x"), RobotsFile("https://b.example:8080", 1, 2, 200)],
    )
    survey.save_checkpoint({"state": np.arange(3)})
    assert survey.delete_host("a.example") == 3
    assert survey.delete_host("a.example") == 3  # again, as after a crash
    lives = {page: (visit and visit.kind, visit and visit.title) for page, _, visit in survey.pages()}
    assert lives == {
        0: ("blocked", ""),
        1: ("fetched", "title 1"),
        2: ("blocked", ""),
        3: ("blocked", ""),
        4: (None, None),
    }
    assert survey.archive.read(places[1]) == exchange(1, "words of page 1")
    for page in (0, 2):
        with pytest.raises(SurveyError, match="holds no page"):
            survey.archive.read(places[page])
    assert survey.journal.robots("https://a.example") is None
    assert survey.journal.robots("https://b.example:8080") is not None
    assert survey.load_checkpoint() is None
    assert [dict(event.detail) for event in survey.journal.events()] == [{"host": "a.example", "pages": 3}] * 2


HOLD = """
import sys
from pathlib import Path
from surveyor.store.directory import SurveyFolder
with SurveyFolder.open(Path(sys.argv[1])):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_one_process_writes(survey: SurveyFolder) -> None:
    with pytest.raises(
        SurveyError, match=rf"^another surveyor process \(pid {os.getpid()}, started \d\d:\d\d\) is writing"
    ) as caught:
        SurveyFolder.open(survey.folder)
    assert caught.value.exit_code == 4
    assert f"`surveyor status {survey.folder}`" in caught.value.hint
    survey.close()
    for end in ("kill -9", "close"):
        with child(HOLD, survey.folder) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"open\n"
            with pytest.raises(SurveyError, match=rf"pid {other.pid}, started"):
                SurveyFolder.open(survey.folder)
            SurveyFolder.open(survey.folder, write=False).close()
            if end == "kill -9":
                other.kill()
        SurveyFolder.open(survey.folder).close()
    (survey.folder / "lock").write_text("")
    assert module._clock(0.0) < "1971"


CRAWL = """
import sys
import numpy as np
from pathlib import Path
from surveyor.outcome import Visit
from surveyor.store.directory import SurveyFolder
from surveyor.outcome import Exchange
survey = SurveyFolder.open(Path(sys.argv[1]))
rng = np.random.default_rng(survey.journal.position)
batch = 0
while True:
    visits = []
    for page in range(5):
        body = rng.bytes(3000)
        place = survey.archive.write(Exchange("https://a.example/", b"GET\\r\\n\\r\\n", b"HTTP\\r\\n\\r\\n", body, 1.0))
        visits.append(Visit(page, "fetched", warc=place, hash=body[:8]))
    survey.commit(visits)
    batch += 1
    print(batch, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
@pytest.mark.slow
def test_kill_9_of_a_crawl_that_keeps_bodies(survey: SurveyFolder) -> None:
    rng = random.Random(3)  # noqa: S311
    survey.commit([], URLS)
    survey.close()
    expected = 0
    for _ in range(10):  # each resumes where the previous one was killed
        with child(CRAWL, survey.folder) as crawl:
            assert crawl.stdout is not None
            crawl.stdout.readline()
            time.sleep(rng.uniform(0, 0.05))
            crawl.kill()
            expected += 5 * (1 + sum(1 for line in crawl.stdout if line.endswith(b"\n")))
        with SurveyFolder.open(survey.folder) as opened:
            assert expected <= opened.journal.position <= expected + 5
            expected = opened.journal.position
    with SurveyFolder.open(survey.folder) as opened:
        opened.journal.check()
        assert opened.journal.archived is not None
        assert (opened.folder / "warc" / "00000.warc.gz").stat().st_size == opened.journal.archived[1]
        visits = list(opened.journal.visits())
        assert len(visits) == expected
        for visit in visits:
            assert visit.warc is not None
            assert opened.archive.read(visit.warc).body[:8] == visit.hash


def test_a_full_disk_takes_all_of_a_batch_or_nothing(survey: SurveyFolder) -> None:
    big = [Visit(page, "fetched", title="x" * 30_000) for page in range(5)]
    survey.commit([Outcome(0, "gone")], URLS)
    pages = survey.journal._ask("PRAGMA page_count")[0][0]
    survey.journal._ask(f"PRAGMA max_page_count = {pages + 20}")
    with pytest.raises(SurveyError, match=r"the disk is full: .* nothing of the last one") as caught:
        survey.commit(big, ["https://new/"])
    assert caught.value.exit_code == 4
    assert (survey.journal.position, survey.journal.url_count) == (1, 5)
    assert list(survey.journal.outcomes()) == [Outcome(0, "gone")]
    survey.journal._ask("PRAGMA max_page_count = 100000")
    survey.commit(big, ["https://new/"])
    assert survey.journal.position == 6
    survey.journal.check()


MOUNTED = 'mount -t tmpfs -o size=600k tmpfs "$1" && exec "$2" -c "$3" "$1"'
FULL = """
import sys
from pathlib import Path
from surveyor.store.journal import Journal
from surveyor.outcome import Visit
from surveyor.errors import SurveyError
path = Path(sys.argv[1]) / "journal.sqlite"
journal = Journal.open(path, create=True)
journal.commit([], ["https://example.org/"])
batches = 0
try:
    while True:
        journal.commit([Visit(0, "fetched", title="x" * 900) for _ in range(10)])
        batches += 1
except SurveyError as error:
    assert "the disk is full" in error.problem, error
assert batches > 5 and journal.position == 10 * batches
journal.close()
journal = Journal.open(path, write=False)
assert sum(1 for _ in journal.visits()) == 10 * batches
journal.check()
"""
READ_ONLY = """
import subprocess, sys
from pathlib import Path
from surveyor.outcome import Outcome
from surveyor.errors import SurveyError
from surveyor.store.directory import SurveyFolder
from surveyor.store.manifest import Manifest
folder = Path(sys.argv[1]) / "a.survey"
with SurveyFolder.create(folder, Manifest(seeds=(), rng=1)) as survey:
    survey.commit([Outcome(0, "gone")], ["https://example.org/"])
subprocess.run(["mount", "-o", "remount,ro", sys.argv[1]], check=True)
with SurveyFolder.open(folder, write=False) as survey:
    assert list(survey.journal.outcomes()) == [Outcome(0, "gone")]
new = folder.with_name("b")
for attempt in (lambda: SurveyFolder.open(folder), lambda: SurveyFolder.create(new, Manifest(seeds=(), rng=1))):
    try:
        attempt()
    except SurveyError as error:
        assert "cannot be read or written: Read-only file system" in error.problem, error
    else:
        raise AssertionError("it wrote")
"""


@pytest.mark.parametrize("code", [FULL, READ_ONLY], ids=["full", "read-only"])
def test_a_real_disk(tmp_path: Path, code: str) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rm", "true"], check=False).returncode:
        pytest.skip("needs a mount of its own")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [unshare, "-rm", "sh", "-c", MOUNTED, "sh", str(tmp_path), sys.executable, code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", "damaged"),
        ("seeds = [", "damaged"),
        ('format = "other"\nversion = 1\ncreated = 2026-01-01T00:00:00Z', "damaged"),
        ('format = "surveyor-survey"\nversion = 99', "newer surveyor"),
        ('format = "surveyor-survey"\nversion = 1\ncreated = "today"', "damaged"),
        ('format = "surveyor-survey"\nversion = "x"', "damaged"),
    ],
)
def test_a_manifest_that_is_damaged_or_newer(survey: SurveyFolder, text: str, printed: str) -> None:
    survey.close()
    (survey.folder / "survey.toml").write_text(text)
    with pytest.raises(SurveyError, match=printed) as caught:
        SurveyFolder.open(survey.folder)
    assert caught.value.exit_code == 4
    (survey.folder / "survey.toml").write_text(MANIFEST.to_toml())
    SurveyFolder.open(survey.folder).close()  # the lock was freed


def test_a_folder_that_is_no_survey(tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match="does not exist"):
        SurveyFolder.open(tmp_path / "nothing")
    with pytest.raises(SurveyError, match="is not a survey"):
        SurveyFolder.open(tmp_path)
    (tmp_path / "file").touch()
    for taken in (tmp_path, tmp_path / "file"):
        with pytest.raises(UsageError, match="already exists"):
            SurveyFolder.create(taken, MANIFEST)
    with pytest.raises(SurveyError, match=r"cannot be read or written: Not a directory"):
        SurveyFolder.create(tmp_path / "file" / "a.survey", MANIFEST)
    (tmp_path / "empty").mkdir()
    SurveyFolder.create(tmp_path / "empty", MANIFEST).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]  # no drafts


def test_a_survey_is_created_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "open", stop)
    with pytest.raises(KeyboardInterrupt):
        SurveyFolder.create(tmp_path / "a.survey", MANIFEST)
    assert list(tmp_path.iterdir()) == []


def test_tables(survey: SurveyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    visits = [
        Visit(0, "fetched", ids(1, 2), status=200, fetched_at=1.5, title="old", size=7),
        Visit(0, "fetched", ids(2, 3), status=200, fetched_at=2.5, nofollow=ids(4), out_of_scope=ids(1), title="new"),
        Visit(0, "blocked", reason="error", status=503),  # its links stay
        Visit(1, "redirected", target=2, hash=b"\0\1", warc=Place("00000.warc.gz", 3, 4)),
        Visit(2, "fetched", ids(0)),
        Visit(2, "gone", status=410),
    ]
    survey.commit(visits, URLS)
    links = [row for batch in tabular.link_batches(survey.journal) for row in zip(*batch.values(), strict=True)]
    assert links == [
        (0, 2, "followed"),
        (0, 3, "followed"),
        (0, 4, "nofollow"),
        (0, 1, "out of scope"),
    ]
    path = tmp_path / "visits.parquet"
    tabular.write_parquet(path, tabular.VISITS, tabular.batched(tabular.VISITS, tabular.visit_rows(survey.journal)))
    result = parquet.read_table(path).to_pylist()
    assert [row["visit"] for row in result] == [1, 2, 3, 4, 5, 6]
    assert result[0]["fetched_at"] == datetime.fromtimestamp(1.5, UTC)
    assert (result[3]["redirected_to"], result[3]["hash"], result[3]["warc_offset"]) == (2, b"\0\1", 3)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pyarrow"):
        tabular.write_parquet(path, tabular.VISITS, [])


def test_mistakes_of_ours_are_not_explained_away(survey: SurveyFolder) -> None:
    survey.close()
    with pytest.raises(apsw.ConnectionClosedError):
        survey.journal.commit([])
