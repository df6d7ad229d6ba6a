"""What the fuzzers found, each as a test of its own."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from attack import attack

import surveyor as sv
from surveyor.crawler.topics.classifier import Classifier
from surveyor.errors import InputError, SurveyError, SurveyorError
from surveyor.outcome import Exchange, Place
from surveyor.store.warc import Archive
from surveyor.web.urls import domain, host, normalise

HUGE = b"Content-Length: 9" + b"9" * 30


@attack(
    "archive records that give an impossible length or no URL",
    area="journal and archives",
    must_hold="one sentence that names the file and the place",
)
@pytest.mark.parametrize(("old", "new"), [(b"Content-Length: 0000000", HUGE), (b"WARC-Target-URI", b"WARC-Target-XXX")])
def test_a_record_that_contradicts_itself(tmp_path: Path, old: bytes, new: bytes) -> None:
    archive = Archive.open(tmp_path)
    place = archive.write(Exchange("https://example.org/", b"GET /", b"HTTP/1.1 200 OK\r\n\r\n", b"x", 1e9, "", ""))
    archive.close()
    data = (tmp_path / place.file).read_bytes()[place.offset :]
    members = []
    while data:
        member = zlib.decompressobj(31)
        members.append(member.decompress(data))
        data = member.unused_data
    changed = members[0].replace(old, new) if old in members[0] else members[0].replace(b"Content-Length: ", HUGE)
    assert changed != members[0]
    data = b"".join(gzip.compress(one) for one in (changed, *members[1:]))
    (tmp_path / place.file).write_bytes(data)
    with pytest.raises(SurveyError, match="holds no page at 0"):
        archive.read(Place(place.file, 0, len(data)))


@attack("hosts of dots alone", area="links and URLs", must_hold="each has a registrable domain: itself")
@pytest.mark.parametrize("url", ["http://./", "http://../a"])
def test_a_host_of_dots_has_a_domain(url: str) -> None:
    known = normalise(url)
    assert known is not None
    assert domain(host(known)) == host(known)


@attack("fragments of 20,000 characters", area="links and URLs", must_hold="the URL without it")
def test_a_long_fragment_does_not_count() -> None:
    assert normalise("https://example.org/a?b#" + "x" * 30_000) == "https://example.org/a?b"
    assert normalise("https://example.org/" + "x" * 30_000 + "#y") is None


@attack("npz archives with text of no characters", area="files from elsewhere", must_hold="rejected in one sentence")
def test_a_format_of_characters_that_do_not_exist(tmp_path: Path) -> None:
    kind = np.frombuffer(b"\xff\xff\xff\xff" * 3, "<U3").reshape(())
    np.savez(tmp_path / "g.npz", format=kind, indptr=np.array([0, 1, 1]), indices=np.array([1]))
    with pytest.raises(InputError, match=r"g\.npz cannot be read as npz"):
        sv.read_graph(tmp_path / "g.npz")


@attack("topics with numbers near the largest", area="files from elsewhere", must_hold="rejected in one sentence")
def test_a_topic_of_extreme_numbers(tmp_path: Path) -> None:
    words = {"terms": ["a", "b"], "idf": [1.1e308, 2.0], "kind": "linear", "intercept": 0.0, "weights": [1.0, -1.0]}
    about = {"format": "surveyor-topic", "schema": 2, "trained": {"pages": 3}, "threshold": 0.5, "quality": None}
    (tmp_path / "topic.json").write_text(json.dumps({**about, **words}))
    with pytest.raises(SurveyorError, match=r"topic\.json is damaged"):
        Classifier.load(tmp_path / "topic.json")
