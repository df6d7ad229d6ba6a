"""Read files of any compression as blocks of whole lines; write files atomically.

Plain files are memory-mapped. Compressed ones (gzip of any number of members, Zstandard, bzip2, xz; recognised by
their first bytes, not by their names) are decompressed by a thread that reads ahead. A truncated or corrupt file
raises an InputError that names it.
"""

from __future__ import annotations

import bz2
import importlib
import io
import lzma
import mmap
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from surveyor.arrays import ByteArray
from surveyor.errors import InputError, MissingExtra, UsageError
from surveyor.stopping import ProgressCallback, silent

BLOCK = 1 << 21  # bytes of text parsed at a time: its numbers still fit the caches
LONGEST = 1 << 26  # a longer "line" is not text
HEAD = 1 << 16
RATIO, FREE = 500, 1 << 28  # limits of decompression: multiple of the file size, or bytes
MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
STEP = 1 << 13  # bytes of a Zstandard file decompressed at a time: they may expand 32,768 times
WINDOW = 1 << 27  # bytes of memory that a Zstandard file may require, as in the zstd command
COMPRESSED = (".gz", ".zst", ".bz2", ".xz")

Item = TypeVar("Item")


def library(name: str, feature: str) -> Any:
    """Import an optional package; if it is missing, raise an error that names the extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(feature, name.split(".")[0], "formats") from error


def compression(path: Path) -> str:
    """Return gz, zst, bz2 or xz by the first bytes of a file; empty if it is not compressed."""
    try:
        with path.open("rb") as file:
            start = file.read(6)
    except OSError as error:
        raise unreadable(path, error) from error
    return next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "")


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error for a file that cannot be opened."""
    return InputError(f"{path} cannot be read: {error.strerror or error}", hint="check the name of the file")


@contextmanager
def spooled(source: str | Path) -> Iterator[Path]:
    """Yield a file that can be read several times: the source, or a temporary copy of a pipe or of `-`."""
    path = Path(source)
    if str(source) != "-" and (path.is_file() or path.is_dir() or not path.exists()):
        yield path
        return
    if str(source) != "-" and not (path.is_fifo() or path.is_socket()):
        raise InputError(f"{path} is a device", hint="pass a file, a folder or a pipe")
    with tempfile.TemporaryDirectory(prefix="surveyor-") as folder:
        copy = Path(folder) / ("stdin" if str(source) == "-" else path.name)
        try:
            with copy.open("wb") as file:
                if str(source) == "-":
                    shutil.copyfileobj(sys.stdin.buffer, file, BLOCK)
                else:
                    with path.open("rb") as pipe:
                        shutil.copyfileobj(pipe, file, BLOCK)
        except OSError as error:
            raise unreadable(path, error) from error
        try:
            yield copy
        except InputError as error:
            problem = error.problem.replace(str(copy), str(source))
            raise InputError(problem, hint=error.hint) from error


def reject_pipe(path: Path, what: str) -> None:
    """Reject a pipe where a file is read more than once, also when a survey is resumed."""
    if path.is_fifo():
        raise InputError(
            f"{path} is a pipe, and {what} are read more than once",
            hint="write them to a file and pass the file",
        )


def plain_suffix(path: Path) -> str:
    """Return the lower-case suffix of a file, without that of its compression."""
    name = path.name.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return Path(name).suffix


@contextmanager
def decompressed(path: Path) -> Iterator[tuple[Any, BinaryIO]]:
    """Open a file; yield the decompressed stream, and the file itself, whose position measures progress.

    A pipe (`<(command)` in a shell) can be read only once, so a copy of it is opened.
    """
    if path.is_fifo():
        with spooled(path) as copy, decompressed(copy) as both:
            yield both
        return
    kind = compression(path)
    try:
        with path.open("rb") as file:
            if kind == "gz":
                igzip: Any = importlib.import_module("isal.igzip")
                yield _bounded(path, igzip.IGzipFile(fileobj=file, mode="rb"), file), file
            elif kind == "zst":
                yield _bounded(path, _Zstandard(file), file), file
            elif kind:
                yield _bounded(path, (bz2.BZ2File if kind == "bz2" else lzma.LZMAFile)(file), file), file
            else:
                yield file, file
    except OSError as error:
        if kind and not error.errno:
            raise _damaged(path, kind, error) from error
        raise unreadable(path, error) from error
    except (EOFError, lzma.LZMAError) as error:
        raise _damaged(path, kind, error) from error
    except Exception as error:
        if type(error).__name__ in ("ZstdError", "IsalError", "error"):
            raise _damaged(path, kind, error) from error
        raise


def _damaged(path: Path, kind: str, error: Exception) -> InputError:
    hint = "fetch or copy the file again" + ("; `gzip -t` tests one" if kind == "gz" else "")
    return InputError(f"{path} is truncated or damaged ({error})", hint=hint)


def _bounded(path: Path, stream: Any, file: BinaryIO) -> BinaryIO:
    return io.BufferedReader(_Bounded(path, stream, file), HEAD)


class _Bounded(io.RawIOBase):
    """A decompressed stream that raises an error if a few bytes expand to very many, unlike any text of links."""

    def __init__(self, path: Path, stream: Any, file: BinaryIO) -> None:
        self._path, self._stream, self._file, self._count = path, stream, file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        count: int = self._stream.readinto(buffer)
        self._count += count
        if self._count > max(FREE, RATIO * self._file.tell()):
            raise InputError(
                f"{self._path} expands to more than {RATIO} times its size",
                hint="it is probably a decompression bomb; if it is a graph, decompress it first",
            )
        return count


class _Zstandard(io.RawIOBase):
    """A sequence of Zstandard frames; unlike the reader of the package it rejects a truncated frame."""

    def __init__(self, file: BinaryIO) -> None:
        self._zstandard = library("zstandard", "reading .zst files")
        self._file, self._ready = file, memoryview(b"")
        self._frame: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        rest = b""
        while not self._ready:
            chunk = rest or self._file.read(STEP)
            if not chunk:
                if self._frame is not None:
                    raise EOFError("the file ended before the end of its data")
                return 0
            self._frame = self._frame or self._zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
            self._ready, rest = memoryview(self._frame.decompress(chunk)), b""
            if self._frame.eof:
                rest, self._frame = self._frame.unused_data, None
                if rest and self._ready:
                    self._file.seek(-len(rest), os.SEEK_CUR)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def head(path: Path, size: int = HEAD) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with decompressed(path) as (stream, _):
        text: bytes = stream.read(size)
    return text


def line_blocks(path: Path, *, skip: int = 0, progress: ProgressCallback = silent) -> Iterator[ByteArray]:
    """Yield a file, after its first `skip` bytes, as blocks of whole lines that all end with a newline."""
    kind = compression(path)
    return _ahead(_unpacked_lines(path, skip, progress)) if kind else _mapped_lines(path, skip, progress)


def _mapped_lines(path: Path, skip: int, progress: ProgressCallback) -> Iterator[ByteArray]:
    total = path.stat().st_size
    if skip >= total:
        return
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    text = np.frombuffer(mapped, np.uint8)
    at = skip
    while at < total:
        end = min(at + BLOCK, total)
        while end < total and text[end - 1] != 10:
            near = text[end : end + HEAD].tobytes()
            cut = near.find(b"\n")
            end += cut + 1 if cut >= 0 else len(near)
            _check_length(path, end - at)
        yield _ended(text[at:end])
        at = end
        if hasattr(mapped, "madvise") and at > 8 * BLOCK:
            mapped.madvise(mmap.MADV_DONTNEED, 0, (at - 4 * BLOCK) // mmap.PAGESIZE * mmap.PAGESIZE)
        progress("reading", at, total, "bytes")


def _unpacked_lines(path: Path, skip: int, progress: ProgressCallback) -> Iterator[ByteArray]:
    total = path.stat().st_size
    with decompressed(path) as (stream, file):
        stream.read(skip)
        rest = b""
        while True:
            buffer = bytearray(max(BLOCK, 2 * len(rest)))
            buffer[: len(rest)] = rest
            filled = len(rest)
            while filled < len(buffer) and (count := stream.readinto(memoryview(buffer)[filled:])):
                filled += count
            last = filled < len(buffer)
            end = filled if last else buffer.rfind(b"\n", 0, filled) + 1
            rest = bytes(memoryview(buffer)[end:filled])
            _check_length(path, len(rest))
            if end:
                yield _ended(np.frombuffer(buffer, np.uint8, end))
            progress("reading", file.tell(), total, "bytes")
            if last:
                return


def _check_length(path: Path, size: int) -> None:
    if size > LONGEST:
        raise InputError(
            f"{path} has a line of more than {LONGEST >> 20} MB", hint="it is probably not a text of links"
        )


def _ended(block: ByteArray) -> ByteArray:
    return block if block[-1] == 10 else np.append(block, np.uint8(10))


def _ahead(items: Iterator[Item], depth: int = 4) -> Iterator[Item]:
    """Compute the next few items in a thread while one is used."""
    done = object()
    with ThreadPoolExecutor(1) as pool:
        waiting = [pool.submit(next, items, done) for _ in range(depth)]
        while (item := waiting.pop(0).result()) is not done:
            waiting.append(pool.submit(next, items, done))
            yield item  # type: ignore[misc]  # it is not `done`


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a draft that replaces the file on success and is removed on failure."""
    draft = path.with_name(
        f".draft-{secrets.token_hex(8)}-{path.name}"
    )  # unpredictable: no symbolic link can be placed there
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}", hint="check the folder and its free space"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def compressed_writer(path: Path) -> Iterator[Callable[[Any], object]]:
    """Open a file for writing, compressed according to its suffix; yield the write function."""
    if path.suffix == ".gz":
        igzip: Any = importlib.import_module("isal.igzip")
        opened: Any = igzip.open(path, "wb")
    elif path.suffix == ".zst":
        opened = library("zstandard", "writing .zst files").open(path, "wb")
    elif path.suffix in (".bz2", ".xz"):
        opened = (bz2 if path.suffix == ".bz2" else lzma).open(path, "wb")
    else:
        opened = path.open("wb")
    with opened as file:
        yield file.write
