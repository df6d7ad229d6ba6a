"""Server responses in WARC files (ISO 28500, version 1.1) that any archive tool can read.

Each fetch is two records, *response* and *request*, with the header as the server sent it and the body as transferred
(content coding kept, transfer coding decoded: `head` records this under `X-Crawler-`). Each record is a separate gzip
member, so that it can be read by itself. A `Place` locates both records of a fetch; the response comes first. Files
are numbered, begin with a *warcinfo* record, and a new one is started when one is full.

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
from typing import Any

from surveyor.errors import MissingExtra, SurveyError, UsageError
from surveyor.outcome import Exchange, Place
from surveyor.store.disk import damaged, disk_errors, sync_folder
from surveyor.store.layout import open_inside

LIMIT = 1 << 30  # bytes after which a new file is started
LARGEST = 1 << 48  # bytes: maximum offset in a file
MOST_UNPACKED = 1 << 30  # bytes of one record after decompression
SHORTEST = 400  # bytes of two records: shorter ones have no room for the record that erases them
BINARY = getattr(os, "O_BINARY", 0)  # Windows would convert line ends
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
        """Append the records of one fetch; they are durable after the next `flush`."""
        if self._writer is None:
            raise UsageError(f"{self.folder} is open for reading only", hint="open the survey for writing")
        records = _records(exchange)
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
        """Read one fetch and verify its digest."""
        path = self._path(place)
        lost = SurveyError(f"{path} holds no page at {place.offset}", hint="it was erased, cut short or damaged")
        with disk_errors(path), open_inside(self.folder, place.file) as file:
            if place.offset + place.length > os.fstat(file.fileno()).st_size:
                raise lost
            file.seek(place.offset)
            data = file.read(place.length)
        try:
            found = _warcio().ArchiveIterator(io.BytesIO(_unpacked(data)), no_record_parse=True)
            records = [(record.rec_headers.get_header, record.raw_stream.read(MOST_UNPACKED)) for record in found]
            (about, message), (_, request) = records
            at = datetime.fromisoformat(about("WARC-Date")).timestamp()
            whole = len(data) == place.length and len(message) == int(about("Content-Length"))
            whole = whole and about("WARC-Block-Digest") in (None, _digest(message))
        except (_warcio().exceptions.ArchiveLoadFailed, zlib.error, ValueError, TypeError, OverflowError) as error:
            raise lost from error
        first, end, body = message.partition(b"\r\n\r\n")
        if not whole or about("WARC-Type") != "response" or not about("WARC-Target-URI"):
            raise lost
        ip, truncated = about("WARC-IP-Address", ""), about("WARC-Truncated", "")
        return Exchange(about("WARC-Target-URI"), request, first + end, body, at, ip, truncated)

    def erase(self, places: Iterable[Place]) -> None:
        """Overwrite the records of fetches permanently; locations in missing files are skipped."""
        for place in places:
            path = self._path(place)
            if path.is_file():
                with disk_errors(path), open_inside(self.folder, place.file, "r+b") as file:
                    if place.length < SHORTEST or place.offset + place.length > os.fstat(file.fileno()).st_size:
                        continue  # there is no such record; these bytes belong to another
                    file.seek(place.offset)
                    file.write(_filler(place.length))
                    file.flush()
                    os.fsync(file.fileno())

    def close(self) -> None:
        """Sync to disk and close the file."""
        if self._file >= 0:
            self.flush()
            os.close(self._file)
            self._file = -1

    def _path(self, place: Place) -> Path:
        """Return the path of the file of a location; an untrusted journal may name any file."""
        numbers = place.offset, place.length
        if not isinstance(place.file, str) or _number(place.file) < 0 or any(type(n) is not int for n in numbers):
            raise damaged(self.folder, f"the journal names {place.file!r} as a file of it")
        if min(numbers) < 0 or max(numbers) > LARGEST:
            raise damaged(self.folder, f"the journal names a record at {place.offset} of {place.length} bytes")
        return self.folder / place.file

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


def _records(exchange: Exchange) -> bytes:
    """Return both records of a fetch, compressed."""
    date = datetime.fromtimestamp(exchange.at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    about = f"WARC-Date: {date}\r\nWARC-Target-URI: {exchange.url}\r\n"
    about += f"WARC-IP-Address: {exchange.ip}\r\n" if exchange.ip else ""
    cut = f"WARC-Truncated: {exchange.truncated}\r\n" if exchange.truncated else ""
    name, other = f"<urn:uuid:{uuid.uuid4()}>", f"<urn:uuid:{uuid.uuid4()}>"
    answer = _record("response", name, about + cut, exchange.response, exchange.body)
    question = _record("request", other, f"{about}WARC-Concurrent-To: {name}\r\n", exchange.request, b"")
    return _packed(answer) + _packed(question)


def _record(kind: str, name: str, about: str, head: bytes, body: bytes) -> bytes:
    """Return a record as warcio writes it, in half the time; a request has no payload digest."""
    payload = f"WARC-Payload-Digest: {_digest(body)}\r\n" if kind == "response" else ""
    first = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {name}\r\n{about}"
        f"{payload}WARC-Block-Digest: {_digest(head, body)}\r\n"
        f"Content-Type: application/http; msgtype={kind}\r\nContent-Length: {len(head) + len(body)}\r\n\r\n"
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
