"""Changes within one survey since a time: kinds, times, the command, and the Atom feed."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack import attack
from hypothesis import given
from hypothesis import strategies as st

from console import CommandResult
from example_site import HOME, survey_of
from surveyor.errors import UsageError
from surveyor.outcome import Visit
from surveyor.report.atom import MOST_ENTRIES, atom_feed
from surveyor.store.directory import SurveyFolder
from surveyor.store.journal import Journal
from surveyor.survey.changes import KINDS, Changes, PageChange, changes, since_time

URLS = [f"https://a.example/{page}" for page in range(9)]
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal.open(tmp_path / "journal.sqlite", create=True)) as opened:
        opened.commit([], URLS)
        yield opened


def read(page: int, at: float, text: bytes = b"m1one", **fields: Any) -> Visit:
    return Visit(page, "fetched", fetched_at=at, **{"hash": b"h" + text, "text_hash": text, **fields})


def kinds(journal: Journal, since: float = 100.0) -> dict[int, tuple[str, float]]:
    found = changes(journal, since)
    return {URLS.index(change.url): (change.kind, change.at) for change in found.pages}


def test_each_kind_of_change(journal: Journal) -> None:
    links = np.array([1], np.int32)
    journal.commit([*(read(page, 10.0 + page) for page in range(6)), Visit(6, "gone", fetched_at=20.0)])
    journal.commit(
        [
            read(0, 101.0, b"m1two"),  # another text
            read(1, 102.0, hash=b"other bytes"),  # the same text
            read(2, 103.0, b"", hash=b"other bytes"),
            read(3, 104.0, links=links),
            Visit(4, "gone", fetched_at=105.0),
            Visit(5, "redirected", fetched_at=106.0, target=0),
            read(6, 107.0),
            read(7, 108.0),
        ]
    )
    assert kinds(journal) == {
        0: ("changed", 101.0),
        2: ("perhaps changed", 103.0),
        3: ("links only", 104.0),
        4: ("gone", 105.0),
        5: ("redirected", 106.0),
        6: ("back", 107.0),
        7: ("new", 108.0),
    }
    assert set(KINDS) == {kind for kind, _ in kinds(journal).values()}
    assert changes(journal, 100.0).visited == 8
    assert {kind for kind, _ in kinds(journal, 0.0).values()} == {"new"}  # gone, and unknown before: no change
    assert kinds(journal, 109.0) == {}


def test_the_last_visits_before_and_after_are_compared(journal: Journal) -> None:
    journal.commit([read(0, 1.0, b"m1old"), read(0, 2.0), read(1, 3.0), read(2, 4.0)])
    journal.commit([Visit(0, "blocked", reason="http 503", fetched_at=99.0)])
    journal.commit([read(0, 101.0, b"m1two"), read(1, 102.0, b"m1two")])
    journal.commit([read(0, 201.0, b"m1new"), read(0, 301.0, b"m1new"), read(1, 302.0)])
    journal.commit([Visit(0, "blocked", reason="http 503", fetched_at=400.0)])
    assert kinds(journal) == {0: ("changed", 201.0)}  # page 1 is as it was; found new at 201, confirmed at 301
    assert kinds(journal, 250.0) == {1: ("changed", 302.0)}


def test_each_change_keeps_its_kind_whenever_the_period_begins(journal: Journal) -> None:
    journal.commit([read(0, 100.0), read(0, 200.0, b"m1two"), read(0, 300.0, b"m1two"), read(0, 400.0)])
    journal.commit([Visit(0, "gone", fetched_at=500.0), Visit(0, "gone", fetched_at=600.0), read(0, 700.0)])
    expected = [("back", 700.0), ("gone", 500.0), ("changed", 400.0), ("changed", 200.0), ("new", 100.0)]
    for since, number in ((0.0, 5), (101.0, 4), (201.0, 3), (650.0, 1), (701.0, 0)):
        found = changes(journal, since, each=True)
        assert [(change.kind, change.at) for change in found.pages] == expected[:number]


def test_a_clock_that_was_wrong_hides_nothing(journal: Journal) -> None:
    journal.commit([read(0, 10.0), read(1, 9e9), read(2, 11.0)])
    journal.commit([read(0, 101.0, b"m1two"), read(1, 102.0, b"m1two"), read(2, 90.0, b"m1two")])
    found = kinds(journal)
    assert found[0] == ("changed", 101.0)
    assert 2 not in found  # visited before, by the clock of that time


@given(st.data())
def test_no_change_without_a_difference(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.sampled_from([b"m1a", b"m1b"]), min_size=1, max_size=6))
    after = data.draw(st.lists(st.sampled_from([b"m1a", b"m1b"]), min_size=1, max_size=6))
    visits = [read(0, 1.0 + at, text) for at, text in enumerate(texts)]
    visits += [read(0, 101.0 + at, text) for at, text in enumerate(after)]
    fake: Any = type("", (), {})()
    fake.position_at = lambda _: len(texts)
    fake.visits = lambda start: iter(visits[start:])
    fake.last_result = lambda _, before: visits[before - 2]
    fake.urls = lambda: iter(URLS)
    found = changes(fake, 100.0).pages
    assert bool(found) == (texts[-1] != after[-1])
    if found:
        same = next(at for at in range(len(after)) if set(after[at:]) == {after[-1]})
        assert found[0].at == 101.0 + same


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("7d", 1e9 - 7 * 86_400),
        ("1.5h", 1e9 - 5400),
        ("90min", 1e9 - 5400),
        ("2w", 1e9 - 14 * 86_400),
        ("2001-09-09", datetime(2001, 9, 9, tzinfo=UTC).timestamp()),
        ("2001-09-09T01:46:40Z", 1e9),
        ("2001-09-09T03:46:40+02:00", 1e9),
        ("999999w", 0.0),
    ],
)
def test_times(text: str, at: float) -> None:
    assert since_time(text, 1e9) == at


@pytest.mark.parametrize(
    "text", ["", "soon", "7", "7x", "-7d", "2026-13-01", "1950-01-01", "0001-01-01T00:00:00+23:00"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="since must be"):
        since_time(text, 1e9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = survey_of(tmp_path / "a.survey")
    with SurveyFolder.open(path) as folder:
        urls = list(folder.journal.urls())
        page = urls.index(f"{HOME}library/")
        last = folder.journal.last_visit(page, "fetched")
        assert last is not None
        again = Visit(page, "fetched", last.links, fetched_at=5e9, hash=b"other", title="A < B \x07")
        folder.journal.commit([again])
    return path


def test_command(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = tmp_path / "feed.xml"
    done = CommandResult(capsys, "diff", str(path), "--since", "2100-01-01", "--atom", str(feed))
    assert done.code == 0
    assert "1 page visited since 2100-01-01 00:00; 1 page changed" in done.out
    assert f"perhaps changed   {HOME}library/" in done.out
    root = ET.fromstring(feed.read_text("utf-8"))  # noqa: S314
    assert [entry.findtext(f"{ATOM}title") for entry in root.iter(f"{ATOM}entry")] == ["perhaps changed: A < B \ufffd"]
    found = CommandResult(capsys, "diff", str(path), "--since", "2100-01-01", "--json").json()
    assert found["counts"] == {"perhaps changed": 1}
    assert found["changes"][0]["url"] == f"{HOME}library/"
    assert 0 < found["changes"][0]["importance"] < 1
    lines = CommandResult(capsys, "diff", str(path), "--since", "2100-01-01", "--csv").out.splitlines()
    assert lines[0] == "kind,at,importance,old_title,title,url"
    assert len(lines) == 2
    nothing = CommandResult(capsys, "diff", str(path), "--since", "2200-01-01").out
    assert "0 pages visited since 2200-01-01 00:00; none has changed" in nothing


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "one survey with itself"),
        (["other.survey", "--since", "7d"], "one survey with itself"),
        (["other.survey", "--atom", "x"], "atom needs --since"),
        (["--since", "soon"], "since must be a time"),
    ],
)
def test_wrong_arguments(path: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str) -> None:
    done = CommandResult(capsys, "diff", str(path), *words)
    assert done.code == 2
    assert problem in done.err


HOSTILE = "]]>\x00\x1b[31m</title><script>&quot;'\"\ud800\uffff\u202e"
CHANGE = st.builds(
    PageChange,
    st.sampled_from(list(KINDS)),
    st.sampled_from(
        ["https://a.example/", "https://b.example/?a&b=<c>", "https://[::1]/", f"https://c.example/{HOSTILE}"]
    ),
    st.floats(0, 1e13),
    st.none() | st.floats(0, 1),
    st.text() | st.just(HOSTILE),
    st.text() | st.just(HOSTILE),
)


@attack("hostile titles and URLs in a feed", area="output", must_hold="the feed is well-formed and complete")
@given(st.lists(CHANGE, max_size=5), st.text())
def test_any_change_gives_a_valid_feed(some: list[PageChange], title: str) -> None:
    feed = atom_feed(Changes(1.0, 9, tuple(some)), ["https://a.example/"], title=title)
    root = ET.fromstring(feed.encode())  # noqa: S314
    assert root.tag == f"{ATOM}feed"
    entries = root.findall(f"{ATOM}entry")
    assert len(entries) == len(some)
    assert not root.findall(".//script")
    for element in (root, *entries):  # what RFC 4287 requires of each
        for name in ("id", "title", "updated"):
            assert len(element.findall(f"{ATOM}{name}")) == 1
        assert (element.findtext(f"{ATOM}id") or "").startswith("tag:")
        datetime.fromisoformat(element.findtext(f"{ATOM}updated") or "")
    assert root.find(f"{ATOM}author/{ATOM}name") is not None
    for entry in entries:
        link = entry.find(f"{ATOM}link")
        assert link is not None
        assert link.get("href")


def test_entries_keep_their_ids_and_differ() -> None:
    one, other = (PageChange("changed", URLS[0], at) for at in (1e9, 2e9))
    first = atom_feed(Changes(0.0, 1, (one,)), URLS[:1])
    both = atom_feed(Changes(5.0, 1, (one, other)), URLS[:1])
    ids = [[node.text for node in ET.fromstring(feed).iter(f"{ATOM}id")] for feed in (first, both)]  # noqa: S314
    assert ids[0][0] == ids[1][0]  # of the feed
    assert ids[0][1] == ids[1][2]  # the latest comes first
    assert len(set(ids[1])) == 3
    assert ids[0][1] is not None
    assert ids[0][1].startswith("tag:a.example,2001-09-09:surveyor:")


def test_a_feed_is_bounded() -> None:
    many = tuple(PageChange("new", URLS[0], float(at)) for at in range(MOST_ENTRIES + 5))
    root = ET.fromstring(atom_feed(Changes(0.0, 1, many), []))  # noqa: S314
    assert len(root.findall(f"{ATOM}entry")) == MOST_ENTRIES
    assert root.findtext(f"{ATOM}updated") == "1970-01-01T00:16:44Z"
