"""The journal: round trips, one transaction per batch, crashes, full disks, damage, versions, deletion."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.arrays import MAX_PAGES, IdArray
from surveyor.crawler.ledger import Ledger
from surveyor.errors import SurveyError, UsageError
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import Event, Kind, Outcome, Place, RobotsFile, Visit, was_requested
from surveyor.store import journal_queries
from surveyor.store.database import connect, pack, unpack
from surveyor.store.journal import Journal

PAGES = 40
URLS = [f"https://example.org/{page}" for page in range(PAGES)]
KINDS: Sequence[Kind] = ("fetched", "gone", "blocked", "redirected")
VERSION_1 = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT NOT NULL);
CREATE TABLE visits(visit INTEGER PRIMARY KEY, page INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT, target INTEGER,
  status INTEGER, fetched_at REAL, seconds REAL, hash BLOB, etag TEXT, last_modified TEXT,
  links BLOB, out_of_scope BLOB, nofollow BLOB, title TEXT, language TEXT,
  warc_file TEXT, warc_offset INTEGER, warc_length INTEGER);
CREATE INDEX visits_of_page ON visits(page);
CREATE TABLE robots(origin TEXT PRIMARY KEY, fetched_at REAL, expires_at REAL, status INTEGER, body BLOB);
CREATE TABLE events(event INTEGER PRIMARY KEY, visit INTEGER NOT NULL, at REAL, kind TEXT NOT NULL, detail TEXT);
INSERT INTO meta VALUES ('format', 'surveyor-journal'), ('schema', '1'), ('edition', '0'), ('journal', 'ab');
INSERT INTO urls VALUES (0, 'https://a.example/'), (1, 'https://a.example/b'), (2, 'https://a.example/c');
INSERT INTO visits(visit, page, kind, links, status, title) VALUES (1, 0, 'read', x'0202', 200, 'Home');
INSERT INTO visits(visit, page, kind, target) VALUES (2, 1, 'moved', 2);
INSERT INTO events VALUES (1, 2, 10.5, 'pause', '{}');
"""


def ids(*pages: int) -> IdArray:
    return np.array(pages, np.int32)


PAGE = st.integers(0, PAGES - 1)
IDS = st.lists(PAGE, max_size=9).map(lambda pages: ids(*pages))
PLACE = st.builds(Place, st.sampled_from(["00000.warc.gz", "00001.warc.gz"]), st.integers(0, 2**40), st.integers(1, 9))
OUTCOME = st.builds(Outcome, PAGE, st.sampled_from(KINDS), IDS, st.text(st.characters(exclude_categories=["Cs"])), PAGE)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TIME = st.floats(0, 1e11)
VISIT = st.builds(
    Visit,
    PAGE,
    st.sampled_from(KINDS),
    IDS,
    TEXT,
    st.integers(-1, PAGES - 1),
    st.integers(0, 999),
    TIME,
    TIME,
    st.binary(max_size=20),
    TEXT,
    TEXT,
    IDS,
    IDS,
    TEXT,
    TEXT,
    st.none() | PLACE,
    st.integers(0, 2**40),
    st.binary(max_size=20),
    TIME,
).filter(lambda visit: visit.kind != "redirected" or visit.target >= 0)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal.open(tmp_path / "journal.sqlite", create=True)) as opened:
        yield opened


def sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(st.integers(0, MAX_PAGES - 1), max_size=20), max_size=8))
def test_lists_of_ids_survive_packing(lists: list[list[int]]) -> None:
    packed = pack([ids(*row) for row in lists])
    assert [row is None for row in packed] == [not row for row in lists]
    for row, back in zip(lists, unpack(packed), strict=True):
        assert back.tolist() == row
        assert back.dtype == np.int32
        assert not back.flags.writeable
    assert [unpack([row])[0].tolist() for row in packed] == lists  # each can be read alone


@pytest.mark.parametrize("blob", [b"\x80", b"\xff\xff\xff\xff\xff\x01", b"\x01", b"\xff\xff\xff\xff\x7f"])
def test_damaged_links_are_noticed(journal: Journal, tmp_path: Path, blob: bytes) -> None:
    with pytest.raises(ValueError, match="link"):
        unpack([b"\x02", blob, b"\x02"])
    journal.commit([Outcome(0, "fetched", ids(1))], URLS)
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as raw, raw:
        raw.execute("UPDATE visits SET links = ?", (blob,))
    with pytest.raises(SurveyError, match="damaged"):
        list(journal.outcomes())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(VISIT | OUTCOME, max_size=5), max_size=5))
def test_gives_back_what_was_committed(batches: list[list[Outcome]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        with closing(Journal.open(path, create=True)) as journal:
            journal.commit([], URLS)
            for batch in batches:
                journal.commit(batch)
        flat = [outcome for batch in batches for outcome in batch]
        with closing(Journal.open(path, write=False)) as journal:
            assert journal.position == len(flat)
            assert list(journal.visits()) == flat  # plain outcomes are equal as outcomes
            replayed = list(journal.outcomes())
            assert [was_requested(outcome) for outcome in replayed] == [was_requested(outcome) for outcome in flat]
            assert replayed == [Outcome(o.page, o.kind, o.links, o.reason, o.target) for o in flat]
            assert list(journal.outcomes(since=3)) == replayed[3:]
            assert sum(journal.kinds().values()) == len(flat)
            last = {outcome.page: outcome for outcome in flat}
            assert [page for page, *_ in journal.pages()] == list(range(PAGES))
            for page, url, visit in journal.pages():
                assert url == URLS[page]
                assert visit == last.get(page)
                assert journal.last_visit(page) == last.get(page)
            reads = [outcome for outcome in flat if outcome.page == 0 and outcome.kind == "fetched"]
            assert journal.last_visit(0, "fetched") == (reads[-1] if reads else None)
            number = next((at for at in range(len(flat), 0, -1) if flat[at - 1].page == 0), 0)
            earlier = [outcome for outcome in flat[: max(number - 1, 0)] if outcome.page == 0]
            assert journal.last_visit(0, before=number) == (earlier[-1] if earlier else None)
        sound(path)


def test_reads_in_chunks_while_it_is_written(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_queries, "CHUNK", 3)
    journal.commit([Outcome(page, "gone") for page in range(10)], URLS)
    pages = []
    for visit in journal.visits():
        pages.append(visit.page)
        if visit.page < 5:
            journal.commit([Outcome(20 + visit.page, "gone")])
    assert pages == [*range(10), *range(20, 25)]
    assert list(journal.urls()) == URLS
    assert list(journal.urls(since=7)) == URLS[7:]


def test_visits_differ_by_what_the_server_said() -> None:
    assert Visit(1, "fetched", status=200) != Visit(1, "fetched", status=304)
    assert Visit(1, "fetched", ids(2), nofollow=ids(3)) != Visit(1, "fetched", ids(2))
    assert Visit(1, "fetched", ids(2), status=200) == Outcome(1, "fetched", ids(2))
    assert Visit(1, "fetched", ids(2)) != Outcome(1, "fetched", ids(3))


def test_robots_and_events(journal: Journal) -> None:
    first = RobotsFile("https://a.example", 5.0, 10.0, 200, b"User-agent: *\nDisallow: /x\n\xff")
    journal.commit([Outcome(0, "gone")], URLS, robots=[first], events=[Event("pause", 7.5, {"why": "Ctrl-C"})])
    assert journal.robots("https://a.example") == first
    assert journal.robots("https://b.example") is None
    later = first._replace(fetched_at=11.0, body=b"")
    journal.commit([], robots=[later])
    assert journal.robots("https://a.example") == later
    assert list(journal.events()) == [Event("pause", 7.5, {"why": "Ctrl-C"}, 1)]


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(PAGES, "gone"),
        Outcome(-1, "gone"),
        Outcome(0, "fetched", ids(1, PAGES)),
        Outcome(0, "fetched", ids(-1)),
        Outcome(0, "redirected", target=PAGES),
        Outcome(0, "redirected"),
        Visit(0, "fetched", nofollow=ids(PAGES)),
    ],
)
def test_refuses_pages_without_url(journal: Journal, outcome: Outcome) -> None:
    with pytest.raises(UsageError, match="have URLs"):
        journal.commit([Outcome(0, "gone"), outcome], URLS)
    assert (journal.position, journal.url_count) == (0, 0)
    journal.commit([Outcome(0, "gone")], URLS)


def test_takes_any_text_and_numpy_integers(journal: Journal) -> None:
    page = np.int32(1)
    journal.commit([Visit(page, "fetched", title="\ud800\0é", target=np.int64(2))], URLS)  # type: ignore[arg-type]
    (visit,) = journal.visits()
    assert (visit.page, visit.target, visit.title) == (1, 2, "?\0é")


CHILD = """
import sys
import numpy as np
from pathlib import Path
from surveyor.store.journal import Journal
from surveyor.outcome import Visit
journal = Journal.open(Path(sys.argv[1]), create=True)
links = np.arange(50, dtype=np.int32)
journal.commit([], [f"https://example.org/{page}" for page in range(60)])
batch = 0
while True:
    journal.commit([Visit(n, "fetched", links, title="x" * 200) for n in range(20)], [f"https://new/{batch}"])
    batch += 1
    print(batch, flush=True)  # it is acknowledged
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_kill_9_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    rng = random.Random(5)  # noqa: S311
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    children = []
    for number in range(12):
        path = tmp_path / f"{number}.sqlite"
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, env=environment
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0, 0.06))
            child.kill()
            acknowledged = 1 + sum(1 for line in child.stdout if line.endswith(b"\n"))
        children.append(acknowledged)
        with closing(Journal.open(path)) as journal:
            batches = journal.position // 20
            assert journal.position % 20 == 0  # never half a batch
            assert acknowledged <= batches <= acknowledged + 1
            assert journal.url_count == 60 + batches
            assert sum(1 for _ in journal.visits()) == journal.position
            journal.commit([Outcome(0, "gone")], ["https://after/"])
            assert list(journal.outcomes(since=journal.position - 1)) == [Outcome(0, "gone")]
        sound(path)
    assert len(set(children)) > 3  # they died at different moments


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(Journal.open(path, create=True)) as journal:
        journal.commit([Outcome(page, "gone") for page in range(PAGES)], URLS)
    whole = path.read_bytes()
    for wrong in (b"x" * 100 + whole[100:], b"", b"hello", whole[:5000]):
        path.write_bytes(wrong)
        for write in (True, False):
            with (
                pytest.raises(SurveyError, match="damaged") as caught,
                closing(Journal.open(path, write=write)) as opened,
            ):
                list(opened.visits())
            assert caught.value.exit_code == 4
    path.write_bytes(whole[:12000] + b"\xaa" * 3000 + whole[15000:])
    with pytest.raises(SurveyError, match="damaged"), closing(Journal.open(path)) as opened:
        opened.check()


def test_a_journal_must_exist_or_not(tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match="does not exist"):
        Journal.open(tmp_path / "journal.sqlite")
    (tmp_path / "journal.sqlite").touch()
    with pytest.raises(SurveyError, match="already exists"):
        Journal.open(tmp_path / "journal.sqlite", create=True)
    (tmp_path / "file").touch()
    with pytest.raises(SurveyError, match="cannot be opened"):
        Journal.open(tmp_path / "file" / "journal.sqlite", create=True)
    with pytest.raises(SurveyError, match="cannot be opened"):
        Journal.open(tmp_path)


def test_a_reader_cannot_write(journal: Journal) -> None:
    journal.commit([], URLS)
    with closing(Journal.open(journal.path, write=False)) as reader:
        journal.commit([Outcome(0, "gone")])
        assert list(reader.outcomes()) == [Outcome(0, "gone")]  # beside a writer
        with pytest.raises(SurveyError, match="cannot be written"):
            reader.commit([Outcome(0, "gone")])


def test_two_writers_do_not_mix(journal: Journal) -> None:
    with closing(Journal.open(journal.path)) as other:
        journal.commit([Outcome(0, "gone")], URLS)
        with pytest.raises(SurveyError, match="another program"):
            other.commit([Outcome(1, "gone")], URLS)
    assert list(journal.outcomes()) == [Outcome(0, "gone")]


@pytest.mark.parametrize("write", [True, False])
def test_an_older_version_is_rejected_and_left_unchanged(tmp_path: Path, *, write: bool) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(VERSION_1)
    with pytest.raises(SurveyError, match=r"older surveyor \(version 1; this one reads version 6\)") as caught:
        Journal.open(path, write=write)
    assert "--fresh" in caught.value.hint
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT kind FROM visits ORDER BY visit").fetchall() == [("read",), ("moved",)]
        assert raw.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall() == [("1",)]


def test_the_hash_key_is_drawn_once_and_stays(tmp_path: Path) -> None:
    keys = set()
    for name in ("a.sqlite", "b.sqlite"):
        with closing(Journal.open(tmp_path / name, create=True)) as journal:
            key = journal.hash_key
        for write in (True, False):
            with closing(Journal.open(tmp_path / name, write=write)) as journal:
                assert journal.hash_key == key
        keys.add(key)
    assert [len(key) for key in keys] == [16, 16]


def test_an_earlier_journal_gets_a_hash_key_when_it_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(Journal.open(path, create=True)) as journal:
        journal._connection.execute("DELETE FROM meta WHERE key = 'hash_key'")
    with closing(Journal.open(path, write=False)) as journal:
        assert journal.hash_key != journal.hash_key  # drawn, and not stored
    with closing(Journal.open(path)) as journal:
        key = journal.hash_key
    with closing(Journal.open(path, write=False)) as journal:
        assert journal.hash_key == key
    with closing(Journal.open(path)) as journal:
        journal._connection.execute("UPDATE meta SET value = 'none' WHERE key = 'hash_key'")
        with pytest.raises(SurveyError, match="hash key"):
            _ = journal.hash_key


@pytest.mark.parametrize(
    ("key", "value", "done"),
    [("schema", "99", "newer"), ("schema", "3", "older"), ("schema", "x", "damaged"), ("format", "y", "damaged")],
)
def test_other_versions_are_refused(journal: Journal, key: str, value: str, done: str) -> None:
    journal.close()
    with closing(connect(journal.path, write=True)) as raw:
        raw.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
    with pytest.raises(SurveyError, match=done) as caught:
        Journal.open(journal.path)
    assert caught.value.exit_code == 4


def test_a_deleted_host_leaves_a_journal_that_replays(journal: Journal) -> None:
    secret = "unlikely-words"  # noqa: S105
    place = Place("00000.warc.gz", 10, 20)
    result: list[Outcome] = [
        Visit(0, "fetched", ids(1, 2), title="kept", warc=place),
        Visit(
            1,
            "fetched",
            ids(3),
            status=200,
            title=secret * 50,
            hash=b"1",
            etag=secret,
            warc=Place("00000.warc.gz", 30, 5),
        ),
        Outcome(3, "fetched", ids(0)),  # known from page 1 only
        Outcome(4, "redirected", target=1),
        Visit(1, "gone", status=404),
    ]
    robots = [RobotsFile(f"https://{host}.example", 1.0, 2.0, 200, secret.encode()) for host in "ab"]
    journal.commit(result, URLS[:6], robots=robots)
    before = journal.identity
    journal.delete_host("a.example", [1, 5])
    gone = [Outcome(page, "blocked", reason="deleted") for page in (1, 1, 5)]
    assert list(journal.visits()) == [result[0], gone[0], *result[2:4], gone[1], gone[2]]
    assert journal.visits().__next__().warc == place
    assert journal.last_visit(1) == Visit(1, "blocked", reason="deleted")
    assert journal.robots("https://a.example") is None
    assert journal.robots("https://b.example") is not None
    assert journal.identity != before
    assert journal.archived == ("00000.warc.gz", 35)
    journal.commit([Outcome(2, "gone")])
    graph = GrowingGraph()
    ledger = Ledger(graph, [0])
    for outcome in journal.outcomes():
        keeps = outcome.kind == "blocked"
        old = graph.links_of(outcome.page) if keeps else graph.put(outcome.page, outcome.links)
        ledger.observe(outcome, old)
    now = ledger.coverage()
    assert now.captured + now.moving + now.waiting + now.blocked + now.lost == pytest.approx(1)
    journal.delete_host("b.example", [])
    assert secret.encode() not in b"".join(path.read_bytes() for path in journal.path.parent.iterdir())
    journal.vacuum()
    journal.check()
    assert journal.position == 7


def test_full_sync_and_flush(tmp_path: Path) -> None:
    with closing(Journal.open(tmp_path / "journal.sqlite", create=True, sync="full")) as journal:
        assert journal._ask("PRAGMA synchronous") == [(2,)]
        assert journal._ask("PRAGMA journal_mode") == [("wal",)]
        journal.commit([Outcome(0, "gone")], URLS)
        journal.flush()
        assert (tmp_path / "journal.sqlite-wal").stat().st_size == 0


def test_a_visit_that_refers_to_an_earlier_record_does_not_shorten_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    early, late = Place("00000.warc.gz", 0, 10), Place("00001.warc.gz", 50, 10)
    with closing(Journal.open(path, create=True)) as journal:
        journal.commit([Visit(0, "fetched", warc=early), Visit(1, "fetched", warc=late)], URLS)
        journal.commit([Visit(0, "fetched", status=304, warc=early)])
        assert journal.archived == ("00001.warc.gz", 60)
    with closing(Journal.open(path)) as journal:
        journal.commit([Visit(0, "fetched", status=304, warc=early)])
        assert journal.archived == ("00001.warc.gz", 60)
