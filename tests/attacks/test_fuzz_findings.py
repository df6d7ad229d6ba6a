"""What the fuzzers found, each as a test of its own."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from attack import attack

from surveyor.errors import SurveyError
from surveyor.store.warc import Archive
from surveyor.urls import domain, host, normalise
from surveyor.visit import Exchange, Place

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
