"""WARC files: round trips, what other tools see, rotation, torn tails, erasure."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attack import attack
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.errors import MissingExtra, SurveyError, UsageError
from surveyor.outcome import Exchange, Place, head
from surveyor.store import warc
from surveyor.store.warc import Archive

warcio: Any = pytest.importorskip("warcio")
pytest.importorskip("warcio.checker")

REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Odd:  \xe9 two\r\n\r\n"
LINE = st.binary(max_size=30).map(lambda text: text.replace(b"\r", b"").replace(b"\n", b""))
HEAD = st.builds(head, LINE.filter(bool), st.lists(st.tuples(LINE.filter(bool), LINE), max_size=4))
EXCHANGE = st.builds(
    Exchange,
    st.integers(0, 99).map(lambda page: f"https://example.org/{page}?q=%C3%A9"),
    HEAD,
    HEAD,
    st.binary(max_size=3000),
    st.integers(0, 4 * 10**15).map(lambda micros: micros / 1e6),
    st.sampled_from(["", "192.0.2.7", "2001:db8::1"]),
    st.sampled_from(["", "length", "time"]),
)


def exchange(page: int = 0, body: bytes = b"<p>hello</p>") -> Exchange:
    return Exchange(f"https://example.org/{page}", REQUEST, ANSWER, body, 1_700_000_000.25, "192.0.2.7")


def records(path: Path) -> Iterator[Any]:
    """Read a file as any other tool would."""
    with path.open("rb") as file:
        yield from warcio.ArchiveIterator(file, check_digests="raise")


def end_of(place: Place) -> tuple[str, int]:
    return place.file, place.offset + place.length


@settings(deadline=None, max_examples=60)
@given(st.lists(EXCHANGE, max_size=6), st.sampled_from([1, 1500, 1 << 30]))
def test_gives_back_what_was_written(exchanges: list[Exchange], limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive.open(Path(folder) / "warc", limit=limit)
        places = [archive.write(one) for one in exchanges]
        archive.flush()
        assert [archive.read(place) for place in places] == exchanges  # while it is open
        archive.close()
        archive = Archive.open(Path(folder) / "warc", write=False)
        assert [archive.read(place) for place in reversed(places)] == exchanges[::-1]


def test_other_tools_read_it(tmp_path: Path) -> None:
    archive = Archive.open(tmp_path, software="surveyor/9")
    body = gzip.compress(b"packed by the server" * 99)
    place = archive.write(exchange(body=body))
    archive.close()
    info, response, request = (
        (record.rec_type, record.rec_headers, record.http_headers, record.raw_stream.read())
        for record in records(tmp_path / place.file)
    )
    assert info[0] == "warcinfo"
    assert b"software: surveyor/9" in info[3]
    assert response[0] == "response"
    assert response[3] == body
    assert response[2].get_statuscode() == "200"
    header = response[1].get_header
    assert response[1].protocol == "WARC/1.1"
    assert header("WARC-Date") == "2023-11-14T22:13:20.250000Z"
    assert header("WARC-IP-Address") == "192.0.2.7"
    digest = base64.b32encode(hashlib.sha1(body).digest()).decode()  # noqa: S324  # what WARC files use
    assert header("WARC-Payload-Digest") == f"sha1:{digest}"
    assert request[0] == "request"
    assert request[1].get_header("WARC-Concurrent-To") == header("WARC-Record-ID")
    data = (tmp_path / place.file).read_bytes()
    assert data[: place.offset].startswith(b"\x1f\x8b")
    assert data[place.offset : place.offset + 2] == b"\x1f\x8b"  # a member of its own
    one = next(iter(warcio.ArchiveIterator(io.BytesIO(data[place.offset :]))))
    assert one.rec_type == "response"


def test_begins_a_new_file_when_one_is_full(tmp_path: Path) -> None:
    archive = Archive.open(tmp_path, limit=3000)
    places = [archive.write(exchange(page, os.urandom(800))) for page in range(8)]
    archive.close()
    assert len({place.file for place in places}) > 2
    for path in tmp_path.iterdir():
        kinds = [record.rec_type for record in records(path)]
        assert kinds[0] == "warcinfo"
        assert kinds[1:] == ["response", "request"] * (len(kinds) // 2)
        assert path.stat().st_size < 3000 + 2000


@attack("an archive with a torn tail", area="journal and archives", must_hold="cut back to what the journal holds")
@pytest.mark.parametrize("tail", [0, 1, 200, 900])
def test_cuts_off_what_the_journal_does_not_know(tmp_path: Path, tail: int) -> None:
    archive = Archive.open(tmp_path)
    first, second = archive.write(exchange(1)), archive.write(exchange(2, os.urandom(1000)))
    archive.close()
    path = tmp_path / first.file
    os.truncate(path, second.offset + tail)  # as a killed process leaves it
    archive = Archive.open(tmp_path, end_of(first))
    assert path.stat().st_size == second.offset
    third = archive.write(exchange(3))
    assert third.offset == second.offset
    archive.close()
    assert [record.rec_type for record in records(path)] == ["warcinfo", *["response", "request"] * 2]
    archive = Archive.open(tmp_path, write=False)
    assert archive.read(third) == exchange(3)
    assert archive.read(first) == exchange(1)


def test_files_that_the_journal_does_not_know_are_set_aside(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    for _ in range(2):
        archive = Archive.open(tmp_path)  # nothing was committed
        archive.write(exchange())
        archive.close()
    archive = Archive.open(tmp_path)
    archive.close()
    name = "00000.warc.gz.unfinished"
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, name + "1", "notes.txt"]


@pytest.mark.parametrize("shorten", [None, 100])
def test_a_file_that_was_taken_away_or_is_short_is_left_alone(tmp_path: Path, shorten: int | None) -> None:
    archive = Archive.open(tmp_path)
    place = archive.write(exchange())
    archive.close()
    path = tmp_path / place.file
    if shorten is None:
        path.unlink()
    else:
        os.truncate(path, shorten)
    archive = Archive.open(tmp_path, end_of(place))
    again = archive.write(exchange(1))
    assert again.file == "00001.warc.gz"
    archive.close()
    assert (path.stat().st_size if path.exists() else None) == shorten
    with pytest.raises(SurveyError, match=r"holds no page|No such file"):
        archive.read(place)
    assert archive.read(again) == exchange(1)


def test_a_failed_write_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive.open(tmp_path)
    first = archive.write(exchange(1))
    write, calls = os.write, 0

    def full(file: int, data: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            return write(file, bytes(data[:100]))
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(SurveyError, match="the disk is full"):
            archive.write(exchange(2))
    assert (tmp_path / first.file).stat().st_size == first.offset + first.length
    third = archive.write(exchange(3))
    assert third.offset == first.offset + first.length
    archive.close()
    assert sum(1 for _ in records(tmp_path / first.file)) == 5


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 300_000), min_size=3, max_size=3))
def test_erased_pages_are_gone_and_the_others_stay(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive.open(Path(folder))
        exchanges = [exchange(page, os.urandom(size)) for page, size in enumerate(sizes)]
        places = [archive.write(one) for one in exchanges]
        path = Path(folder) / places[0].file
        whole = path.read_bytes()
        archive.erase([places[1], Place("00077.warc.gz", 0, 10)])
        after = path.read_bytes()
        start, end = places[1].offset, places[1].offset + places[1].length
        assert (after[:start], after[end:]) == (whole[:start], whole[end:])
        assert len(after) == len(whole)
        with pytest.raises(SurveyError, match="holds no page"):
            archive.read(places[1])
        assert [archive.read(places[page]) for page in (0, 2)] == [exchanges[0], exchanges[2]]
        archive.write(exchange(9))
        archive.close()
        kinds = [record.rec_type for record in records(path)]
        assert kinds == ["warcinfo", "response", "request", "metadata", *["response", "request"] * 2]
        assert b"/1\r\n" not in gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("length", [600, 65540 + 18, 65541 + 18, 65558 + 5, 131_099, 131_098, 400_000])
def test_filler_has_just_the_length_asked_for(length: int) -> None:
    filler = warc._filler(length)
    assert len(filler) == length
    (record,) = warcio.ArchiveIterator(io.BytesIO(filler))
    assert record.rec_type == "metadata"
    gzip.decompress(filler)


@attack(
    "headers that contradict the stored body",
    area="journal and archives",
    must_hold="other tools read the record correctly",
)
def test_heads_do_not_belie_the_body() -> None:
    headers = [(b"Transfer-Encoding", b"chunked"), (b"Content-Length", b"99"), (b"A", b"b")]
    assert head(b"HTTP/1.1 200 OK", headers, 5) == (
        b"HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nX-Crawler-Content-Length: 99\r\nA: b\r\n"
        b"Content-Length: 5\r\n\r\n"
    )
    assert head(b"HTTP/1.1 200 OK", [(b"content-length", b"5")], 5) == b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"
    assert head(b"GET / HTTP/1.1", headers[:1]) == b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@attack("damaged archive records", area="journal and archives", must_hold="an error, never wrong content")
def test_damage_is_noticed(tmp_path: Path) -> None:
    archive = Archive.open(tmp_path)
    place = archive.write(exchange(0, os.urandom(5000)))
    archive.close()
    path = tmp_path / place.file
    whole = path.read_bytes()
    for at in (place.offset, place.offset + 2, place.offset + 3000):
        path.write_bytes(whole[:at] + b"\0\0\0" + whole[at + 3 :])
        with pytest.raises(SurveyError, match="holds no page"):
            archive.read(place)
    for wrong in (
        place._replace(offset=place.offset + 7),
        place._replace(length=20),
        Place(place.file, 0, place.offset),
    ):
        path.write_bytes(whole)
        with pytest.raises(SurveyError, match="holds no page"):
            archive.read(wrong)


def test_says_which_package_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive.open(tmp_path)
    place = archive.write(exchange())
    archive.close()
    monkeypatch.setitem(sys.modules, "warcio", None)
    with pytest.raises(MissingExtra, match="warcio"):
        Archive.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [place.file]  # before anything was changed
    archive = Archive.open(tmp_path, write=False)  # only bodies need it
    with pytest.raises(UsageError, match="reading only"):
        archive.write(exchange())


NOT_MODIFIED = b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 12\r\n\r\n'


def test_a_page_with_the_same_body_is_a_revisit_record(tmp_path: Path) -> None:
    archive = Archive.open(tmp_path)
    first = archive.write(exchange(body=b"<p>hello</p>" * 100))
    again = replace(exchange(body=b"<p>hello</p>" * 100), at=1_800_000_000.5, refers=first)
    second = archive.write(again)
    third = archive.write(replace(again, refers=second))  # refers to the response, not to the revisit record
    other = archive.write(replace(again, refers=first, body=b"something else"))
    archive.close()
    archive = Archive.open(tmp_path, write=False)
    assert archive.read(second) == again
    assert archive.read(third) == again
    assert archive.read(other).body == b"something else"
    found = [record for record in records(tmp_path / first.file) if record.rec_type in ("response", "revisit")]
    assert [record.rec_type for record in found] == ["response", "revisit", "revisit", "response"]
    names = ["Record-ID", "Target-URI", "Date", "Payload-Digest"]
    _, *whole = (found[0].rec_headers.get_header(f"WARC-{name}") for name in names)
    for record in found[1:3]:
        assert record.rec_headers.get_header("WARC-Profile") == (
            "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
        )
        refers = ["Refers-To-Target-URI", "Refers-To-Date", "Payload-Digest"]
        assert [record.rec_headers.get_header(f"WARC-{name}") for name in refers] == whole
        assert record.rec_headers.get_header("WARC-Date") == "2027-01-15T08:00:00.500000Z"


def test_other_tools_read_revisit_records(tmp_path: Path) -> None:
    archive = Archive.open(tmp_path)
    first = archive.write(exchange())
    same = archive.write(replace(exchange(), refers=first))
    fresh = archive.write(replace(exchange(), response=NOT_MODIFIED, body=b"", refers=first, not_modified=True))
    archive.close()
    kinds, codes, bodies = [], [], []
    for record in records(tmp_path / first.file):
        if record.rec_type in ("response", "revisit"):
            kinds.append(record.rec_headers.get_header("WARC-Profile", "").rpartition("/")[2] or record.rec_type)
            codes.append(record.http_headers.get_statuscode())
            bodies.append(record.raw_stream.read())
    assert kinds == ["response", "identical-payload-digest", "server-not-modified"]
    assert (codes, bodies) == (["200", "200", "304"], [b"<p>hello</p>", b"", b""])
    assert min(same.length, fresh.length) >= warc.SHORTEST  # they can be erased
    with contextlib.closing(Archive.open(tmp_path, write=False)) as archive:
        read = archive.read(fresh)
        assert (read.response, read.body, read.not_modified) == (ANSWER, b"<p>hello</p>", True)
    checked = warcio.checker.Checker(warcio_arguments(tmp_path / first.file))
    checked.process_all()
    assert checked.exit_value == 0


def warcio_arguments(path: Path) -> Any:
    return types.SimpleNamespace(inputs=[str(path)], verbose=False)


def test_a_page_that_was_not_modified_keeps_its_place_if_the_earlier_record_is_gone(tmp_path: Path) -> None:
    archive = Archive.open(tmp_path)
    first = archive.write(exchange())
    archive.flush()
    archive.erase([first])
    fresh = replace(exchange(), response=NOT_MODIFIED, body=b"", refers=first, not_modified=True)
    assert archive.write(fresh) == first
    full = archive.write(replace(exchange(), refers=first))
    assert archive.read(full).body == b"<p>hello</p>"
    assert archive.read(full).refers is None
    archive.close()


@attack(
    "revisit records that refer to other records",
    area="journal and archives",
    must_hold="only a response of the same URL with the stated digest is returned",
    inputs=6,
)
@pytest.mark.parametrize("goal", ["another page", "a revisit", "itself", "a folder", "nothing", "another body"])
def test_a_revisit_record_refers_to_a_response_of_its_page(tmp_path: Path, goal: str) -> None:
    archive = Archive.open(tmp_path)
    first, other = archive.write(exchange(1)), archive.write(exchange(2))
    changed = archive.write(exchange(1, b"changed"))
    again = archive.write(replace(exchange(1), refers=first))
    end = sum(again[1:])
    places = {
        "another page": other,
        "a revisit": again,
        "itself": Place(first.file, end, 700),
        "a folder": Place("../00000.warc.gz", 0, 9),
        "nothing": Place(first.file, 1 << 40, 9),
        "another body": changed,
    }
    about, _, _ = archive._records_at(first)
    names = [about(f"WARC-{name}") for name in ("Record-ID", "Target-URI", "Date", "Payload-Digest")]
    data = warc._records(replace(exchange(1), refers=first), warc._Earlier(places[goal], *names))
    archive._append(data)
    with pytest.raises(SurveyError):
        archive.read(Place(first.file, end, len(data)))
    archive.close()
