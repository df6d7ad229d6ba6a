"""The folder of compiled kernels: one per version of the kernels, shared by all processes of a user.

Numba's cache notices an edit only in the file of the kernel itself, and not a renamed type of its arguments, so the
folder is named by a hash of all kernels and of what compiles them. It is in NUMBA_CACHE_DIR, else in the cache folder
of the user, else, if neither can be written, in the temporary folder. The environment is not changed.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba

config: Any = numba.config
VARIABLE = "NUMBA_CACHE_DIR"
ROOM = 1 << 20  # bytes: upper bound for the kernels of one command


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """Where the compiled kernels of this process are, and where they should be."""

    path: Path | None  # None: nowhere, so that every process compiles again
    wanted: Path


@lru_cache(maxsize=1)
def cache_folder() -> CacheFolder:
    """Choose the folder, once per process."""
    wanted = cache_home() / f"kernels-{fingerprint()}"
    if writable(wanted, 0 if has_kernels(wanted) else ROOM):
        return CacheFolder(wanted, wanted)
    return CacheFolder(_temporary_folder(wanted.name), wanted)


@contextmanager
def cached() -> Iterator[bool]:
    """Let Numba use the folder for the kernels declared in the block; yield whether there is one."""
    before = config.CACHE_DIR
    path = None if config.DISABLE_JIT else cache_folder().path
    config.CACHE_DIR = before if path is None else str(path)
    try:
        yield path is not None
    finally:
        config.CACHE_DIR = before


def has_kernels(folder: Path) -> bool:
    """Return whether a folder has any compiled kernel."""
    return any(folder.rglob("*.nbi"))


def cache_home() -> Path:
    """Return the folder of all caches of kernels on this platform."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "surveyor"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "surveyor"
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises where there is none
    return (home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache") / "surveyor"


def fingerprint() -> str:
    """Return a hash of all kernels, of the versions that compile them, and of whether they check indices."""
    digest = hashlib.sha256(f"{sys.version} numba {numba.__version__} {config.BOUNDSCHECK}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def writable(folder: Path, room: int = ROOM) -> bool:
    """Return whether a folder exists or can be created, and has room for a file of this many bytes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return file.write(bytes(room)) == room
    except OSError:
        return False


def _temporary_folder(name: str) -> Path | None:
    """Return a temporary folder of this user; a new one if the default name is taken; None if there is no room."""
    owner = os.getuid() if hasattr(os, "getuid") else "files"
    try:
        own = Path(tempfile.gettempdir()) / f"surveyor-{owner}" / name
        if writable(own) and (not hasattr(os, "getuid") or own.parent.stat().st_uid == os.getuid()):
            return own
        return Path(tempfile.mkdtemp(prefix="surveyor-"))
    except OSError:
        return None
