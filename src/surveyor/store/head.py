"""The head of a journal: its last commit, stored in a separate file.

SQLite silently drops the frames of a write-ahead log from the first bad one on, so missing commits can only be
detected from data stored elsewhere. `journal.head` has two slots of 64 bytes that are written alternately, after each
commit: magic, edition, commit number, digest of the chain (`chain.py`), CRC-32.

    journal behind its head     commits are missing: damage
    journal ahead of its head   the process was killed between commit and head, or one slot is damaged: no damage
                                if the chain of the journal contains the head

Each slot has the edition of the journal. An operation that rewrites history (deletion of a host) first writes the new
head into one slot and then commits, so that one of the slots is right whenever the process is killed.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"SVYHEAD1"
LAYOUT = struct.Struct("<8sQQ16s20xI")
SLOT = LAYOUT.size
FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Head:
    """The last commit of a journal."""

    edition: int
    number: int  # number of commits so far
    digest: bytes

    def to_bytes(self) -> bytes:
        """Return the bytes of a slot."""
        return _sealed(LAYOUT.pack(MAGIC, self.edition, self.number, self.digest, 0))


def _sealed(slot: bytes) -> bytes:
    return slot[:-4] + zlib.crc32(slot[:-4]).to_bytes(4, "little")


def head_path(journal: Path) -> Path:
    """Return the path of the head of a journal."""
    return journal.with_suffix(".head")


def read_heads(path: Path) -> list[Head]:
    """Return the heads whose slots are intact; none if the file is missing or a symbolic link."""
    try:
        file = os.open(path, os.O_RDONLY | FLAGS | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return []
    try:
        data = os.read(file, 2 * SLOT) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    finally:
        os.close(file)
    slots = [data[start : start + SLOT] for start in (0, SLOT)]
    whole = [slot for slot in slots if len(slot) == SLOT and slot == _sealed(slot) and slot.startswith(MAGIC)]
    return [Head(*LAYOUT.unpack(slot)[1:4]) for slot in whole]


class HeadFile:
    """The head file, open for writing."""

    def __init__(self, path: Path, *, full_sync: bool = False) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | FLAGS | getattr(os, "O_NONBLOCK", 0), 0o666)
        self._full_sync = full_sync
        about = os.fstat(self._file)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:  # a hard link: another file would change too
            os.close(self._file)
            raise FileExistsError(errno.EEXIST, "it is not a plain file, or has another name (a hard link)", str(path))

    def write(self, head: Head, *, both: bool = False) -> None:
        """Write the head into the next slot, or into both."""
        for slot in (0, 1) if both else (head.number % 2,):
            self._put(slot, head)

    def announce(self, head: Head, number: int) -> None:
        """Write a head that is valid after the next commit, and keep the one of commit `number`."""
        self._put((number + 1) % 2, head)
        os.fsync(self._file)

    def _put(self, slot: int, head: Head) -> None:
        os.lseek(self._file, slot * SLOT, os.SEEK_SET)
        os.write(self._file, head.to_bytes())
        if self._full_sync:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
