"""Server responses in WARC files (ISO 28500, version 1.1) that any archive tool can read.

Each fetch is two records, *response* and *request*, with the header as the server sent it and the body as transferred
(content coding kept, transfer coding decoded: `head` records this under `X-Crawler-`). Each record is a separate gzip
member, so that it can be read by itself. A `Place` locates both records of a fetch; the response comes first. Files
are numbered, begin with a *warcinfo* record, and a new one is started when one is full. The archive of a survey that
has or had shards also reads and erases the records of their archives, whose files are called `shards/NNN/warc/NAME`.

A fetch whose body the archive has from an earlier fetch of the page is a *revisit* record without the body, with one of
the two profiles of WARC/1.1: *server-not-modified* for a 304, *identical-payload-digest* for the same bytes. It names
the earlier record by id, URL, date and, in a field of its own (`Surveyor-Refers-To-Place`), by location: `read` returns
the body from there. It never refers to another revisit record.

**Durability.** `flush` syncs to disk before the journal commits the locations. Only records that the journal refers to
count: `Archive.open` truncates whatever follows the last record that the journal knows, complete or torn, and renames
later files to `.unfinished`. A file that is shorter than the journal states, or missing, is left unchanged, and
writing continues in a new one.

**Deletion**: `erase` overwrites both records of a fetch, in place, with one short *metadata* record in a gzip member
of the same length, so that all other locations stay valid.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import io
import os
import re
import struct
import uuid
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from surveyor.errors import MissingExtra, SurveyError, UsageError
from surveyor.outcome import Exchange, Place
from surveyor.store.disk import damaged, disk_errors, sync_folder
from surveyor.store.layout import SHARD_FILE, open_inside

LIMIT = 1 << 30  # bytes after which a new file is started
LARGEST = 1 << 48  # bytes: maximum offset in a file
MOST_UNPACKED = 1 << 30  # bytes of one record after decompression
SHORTEST = 400  # bytes of two records: shorter ones have no room for the record that erases them
BINARY = getattr(os, "O_BINARY", 0)  # Windows would convert line ends
PROFILE = "http://netpreserve.org/warc/1.1/revisit/"
PLACE_FIELD = "Surveyor-Refers-To-Place"
WRITTEN_PLACE = re.compile(r"(\S{1,255}) ([0-9]{1,15}) ([0-9]{1,15})")
NAME = re.compile(r"([0-9]{5,12})\.warc\.gz")
ERASED = (
    "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:{}>\r\nWARC-Date: 1970-01-01T00:00:00Z\r\n"
    "Content-Type: text/plain\r\nContent-Length: {:010d}\r\n\r\nerased"
)


class Archive:
    """The WARC files of a survey; without `write`, for reading only."""

    def __init__(self, folder: Path, number: int, *, write: bool, limit: int, software: str) -> None:
        self.folder = folder
        self._next, self._limit, self._software = number, limit, software
        self._file, self._end = -1, 0  # the file being written, and its length
        self._writer: Any = _warcio().WARCWriter(None, gzip=False, warc_version="1.1") if write else None

    @classmethod
    def open(
        cls,
        folder: Path,
        known: tuple[str, int] | None = None,
        *,
        write: bool = True,
        limit: int = LIMIT,
        software: str = "surveyor",
    ) -> Archive:
        """Open the files of a folder; `known` is the last file and the offset up to which the journal refers to it."""
        last = -1 if known is None else _number(known[0])
        if known is not None and (last < 0 or not 0 <= known[1] <= LARGEST):
            raise SurveyError(
                f"{folder} cannot be the archive of its journal, which names {known[0]!r} up to {known[1]}",
                hint="restore the survey from a copy",
            )
        archive = cls(folder, last + 1, write=write, limit=limit, software=software)
        if not write:
            return archive
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
            for path in sorted(folder.iterdir()):
                if _number(path.name) > last:
                    path.replace(_aside(path))
            if known is not None:
                archive._resume(known[0], known[1])
        return archive

    def write(self, exchange: Exchange) -> Place:
        """Append the records of one fetch; they are durable after the next `flush`.

        Return the location of the earlier records if the server sent no body and those cannot be read: nothing is
        written then.
        """
        if self._writer is None:
            raise UsageError(f"{self.folder} is open for reading only", hint="open the survey for writing")
        earlier = None if exchange.refers is None else self._earlier(exchange.refers)
        if exchange.not_modified and exchange.refers is not None and earlier is None:
            return exchange.refers
        if earlier is not None and not exchange.not_modified and earlier.digest != _digest(exchange.body):
            earlier = None  # the same content, but compressed differently
        records = _records(exchange, earlier)
        with disk_errors(self.folder):
            if self._file < 0 or self._end >= self._limit:
                self._begin()
            place = Place(_name(self._next - 1), self._end, len(records))
            self._append(records)
        return place

    def flush(self) -> None:
        """Sync everything written to disk."""
        if self._file >= 0:
            with disk_errors(self.folder):
                os.fsync(self._file)

    def read(self, place: Place) -> Exchange:
        """Read one fetch and verify its digest; of a revisit, with the body of the earlier fetch.

        A page that was not modified has the response of the earlier fetch.
        """
        about, message, request = self._records_at(place)
        lost = self._lost(place)
        try:
            at = datetime.fromisoformat(about("WARC-Date")).timestamp()
        except (ValueError, TypeError, OverflowError) as error:
            raise lost from error
        url, ip, truncated = (about(f"WARC-{name}", "") for name in ("Target-URI", "IP-Address", "Truncated"))
        first, end, body = message.partition(b"\r\n\r\n")
        kind, origin = about("WARC-Type"), None
        if kind == "revisit":
            origin = _place_in(about(PLACE_FIELD), place)
            if origin is None:
                raise lost
            whole, earlier, _ = self._records_at(origin)
            if whole("WARC-Type") != "response" or whole("WARC-Target-URI") != url:
                raise lost
            old, _, body = earlier.partition(b"\r\n\r\n")
            if about("WARC-Profile") == f"{PROFILE}server-not-modified":
                return Exchange(url, request, old + end, body, at, ip, truncated, origin, not_modified=True)
            if about("WARC-Payload-Digest") != _digest(body):
                raise lost
        elif kind != "response":
            raise lost
        return Exchange(url, request, first + end, body, at, ip, truncated, origin)

    def _lost(self, place: Place) -> SurveyError:
        path = self._path(place)
        return SurveyError(f"{path} holds no page at {place.offset}", hint="it was erased, cut short or damaged")

    def _earlier(self, place: Place) -> _Earlier | None:
        """Return the response record at a location, or the one a revisit record there refers to, if intact."""
        try:
            about, _, _ = self._records_at(place)
            if about("WARC-Type") == "revisit" and (origin := _place_in(about(PLACE_FIELD), place)) is not None:
                place = origin
                about, _, _ = self._records_at(place)
        except (SurveyError, OSError):
            return None
        names = ("Record-ID", "Target-URI", "Date", "Payload-Digest")
        values = [about(f"WARC-{name}") for name in names]
        return _Earlier(place, *values) if about("WARC-Type") == "response" and all(values) else None

    def _records_at(self, place: Place) -> tuple[Any, bytes, bytes]:
        """Return the named fields of the first record of a fetch, its block, and the request; verify the digest."""
        path, lost = self._path(place), self._lost(place)
        with disk_errors(path), open_inside(path.parent, path.name) as file:
            if place.offset + place.length > os.fstat(file.fileno()).st_size:
                raise lost
            file.seek(place.offset)
            data = file.read(place.length)
        try:
            found = _warcio().ArchiveIterator(io.BytesIO(_unpacked(data)), no_record_parse=True)
            records = [(record.rec_headers.get_header, record.raw_stream.read(MOST_UNPACKED)) for record in found]
            (about, message), (_, request) = records
            whole = len(data) == place.length and len(message) == int(about("Content-Length"))
            whole = whole and about("WARC-Block-Digest") in (None, _digest(message))
        except (_warcio().exceptions.ArchiveLoadFailed, zlib.error, ValueError, TypeError, OverflowError) as error:
            raise lost from error
        if not whole or not about("WARC-Target-URI"):
            raise lost
        return about, message, request

    def erase(self, places: Iterable[Place]) -> None:
        """Overwrite the records of fetches permanently; locations in missing files are skipped."""
        for place in places:
            path = self._path(place)
            if path.is_file():
                with disk_errors(path), open_inside(path.parent, path.name, "r+b") as file:
                    if place.length < SHORTEST or place.offset + place.length > os.fstat(file.fileno()).st_size:
                        continue  # there is no such record; these bytes belong to another
                    file.seek(place.offset)
                    file.write(_filler(place.length))
                    file.flush()
                    os.fsync(file.fileno())

    def has(self, place: Place) -> bool:
        """Return whether the file of a location exists."""
        return self._path(place).is_file()

    def close(self) -> None:
        """Sync to disk and close the file."""
        if self._file >= 0:
            self.flush()
            os.close(self._file)
            self._file = -1

    def _path(self, place: Place) -> Path:
        """Return the path of the file of a location; an untrusted journal may name any file."""
        numbers = place.offset, place.length
        own = isinstance(place.file, str) and _number(place.file) >= 0
        of_shard = not own and isinstance(place.file, str) and SHARD_FILE.fullmatch(place.file) is not None
        if not (own or of_shard) or any(type(n) is not int for n in numbers):
            raise damaged(self.folder, f"the journal names {place.file!r} as a file of it")
        if min(numbers) < 0 or max(numbers) > LARGEST:
            raise damaged(self.folder, f"the journal names a record at {place.offset} of {place.length} bytes")
        return (self.folder.parent if of_shard else self.folder) / place.file

    def _resume(self, name: str, end: int) -> None:
        """Truncate a file to what the journal knows and append to it, unless it is missing or too short."""
        path = self.folder / name
        if path.is_file() and path.stat().st_size >= end:
            with open_inside(self.folder, name, "r+b") as file:
                self._file, self._end = os.dup(file.fileno()), end
            os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)

    def _begin(self) -> None:
        """Start the next file."""
        self.close()
        name = _name(self._next)
        about = {"software": self._software, "format": "WARC File Format 1.1"}
        self._writer.out = io.BytesIO()
        self._writer.write_record(self._writer.create_warcinfo_record(name, about))
        first = _packed(self._writer.out.getvalue())
        self._file, self._end = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666), 0
        self._next += 1
        self._append(first)
        sync_folder(self.folder)

    def _append(self, data: bytes) -> None:
        """Write all bytes, or restore the file: a partial record must not precede the next one."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._end)
            os.lseek(self._file, self._end, os.SEEK_SET)
            raise
        self._end += len(data)


class _Earlier(NamedTuple):
    """A response record that a revisit record refers to."""

    place: Place
    record: str
    url: str
    date: str
    digest: str


def _place_in(text: str | None, source: Place) -> Place | None:
    """Return the location in a field of the revisit record at `source`; `Archive` verifies it like any other.

    A shard names its own files, without its folder.
    """
    words = WRITTEN_PLACE.fullmatch(text or "")
    folder = source.file[: source.file.rfind("/") + 1]
    return Place(folder + words[1], int(words[2]), int(words[3])) if words else None


def _records(exchange: Exchange, earlier: _Earlier | None) -> bytes:
    """Return both records of a fetch, compressed; without the body if it is that of an earlier record."""
    date = datetime.fromtimestamp(exchange.at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    about = f"WARC-Date: {date}\r\nWARC-Target-URI: {exchange.url}\r\n"
    about += f"WARC-IP-Address: {exchange.ip}\r\n" if exchange.ip else ""
    cut = f"WARC-Truncated: {exchange.truncated}\r\n" if exchange.truncated else ""
    name, other = f"<urn:uuid:{uuid.uuid4()}>", f"<urn:uuid:{uuid.uuid4()}>"
    if earlier is None:
        answer = _record("response", name, about + cut, exchange.response, exchange.body)
    else:
        profile = "server-not-modified" if exchange.not_modified else "identical-payload-digest"
        about_earlier = (
            f"WARC-Profile: {PROFILE}{profile}\r\nWARC-Refers-To: {earlier.record}\r\n"
            f"WARC-Refers-To-Target-URI: {earlier.url}\r\nWARC-Refers-To-Date: {earlier.date}\r\n"
            f"{PLACE_FIELD}: {' '.join(map(str, earlier.place))}\r\nWARC-Payload-Digest: {earlier.digest}\r\n"
        )
        answer = _record("revisit", name, about + cut + about_earlier, exchange.response, b"")
    question = _record("request", other, f"{about}WARC-Concurrent-To: {name}\r\n", exchange.request, b"")
    return _packed(answer) + _packed(question)


def _record(kind: str, name: str, about: str, head: bytes, body: bytes) -> bytes:
    """Return a record as warcio writes it, in half the time; a request has no payload digest."""
    payload = f"WARC-Payload-Digest: {_digest(body)}\r\n" if kind == "response" else ""
    message = "request" if kind == "request" else "response"
    first = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {name}\r\n{about}"
        f"{payload}WARC-Block-Digest: {_digest(head, body)}\r\n"
        f"Content-Type: application/http; msgtype={message}\r\nContent-Length: {len(head) + len(body)}\r\n\r\n"
    )
    return b"".join((first.encode(), head, body, b"\r\n\r\n"))


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return f"sha1:{base64.b32encode(digest.digest()).decode()}"


def _packed(record: bytes) -> bytes:
    """Return a record as a gzip member; ISA-L is ten times faster than zlib at the same ratio."""
    from isal import isal_zlib

    packed: bytes = isal_zlib.compress(record, 2, 31)
    return packed


def _unpacked(data: bytes) -> bytes:
    """Return the contents of gzip members; raise `zlib.error` on a wrong checksum, where warcio only warns."""
    parts, rest, room = list[bytes](), data, 2 * MOST_UNPACKED
    while rest:
        member = zlib.decompressobj(31)
        parts.append(member.decompress(rest, room))
        room -= len(parts[-1])
        if not member.eof or room <= 0:
            raise zlib.error("a gzip member ends too early, or holds too much")
        rest = member.unused_data
    return b"".join(parts)


def _filler(length: int) -> bytes:
    """Return a gzip member of exactly this length that holds a record without content, as stored blocks."""
    blocks = -(-(length - 18) // 65540)
    size = length - 18 - 5 * blocks
    start = ERASED.format(uuid.uuid4(), 0).encode()
    body = size - len(start) - 4 + len(b"erased")
    text = ERASED.format(uuid.uuid4(), body).encode().ljust(size - 4) + b"\r\n\r\n"
    cuts = [size * block // blocks for block in range(blocks + 1)]
    packed = [b"\x1f\x8b\x08\0\0\0\0\0\0\xff"]
    for first, last in pairwise(cuts):
        packed += [struct.pack("<BHH", last == size, last - first, last - first ^ 0xFFFF), text[first:last]]
    return b"".join([*packed, struct.pack("<II", zlib.crc32(text), size)])


def _name(number: int) -> str:
    return f"{number:05d}.warc.gz"


def _number(name: str) -> int:
    """Return the number of a file, -1 if it is not one of ours."""
    match = NAME.fullmatch(name)
    return int(match[1]) if match else -1


def _aside(path: Path) -> Path:
    """Return an unused name for a file that is set aside."""
    names = (path.with_name(f"{path.name}.unfinished{again or ''}") for again in range(1 << 20))
    return next(name for name in names if not os.path.lexists(name))


def _warcio() -> Any:
    try:
        return importlib.import_module("warcio")
    except ImportError as error:
        raise MissingExtra("keeping what servers answer", "warcio", "crawl") from error
