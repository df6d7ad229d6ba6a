"""The cache folder of compiled kernels, and a message when kernels are compiled.

Numba's cache notices an edit only in the file of the kernel itself, so the folder is named by a hash of all kernels
and of the versions of Python and Numba. The library never changes the environment; the command line may, as it owns
its process.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import surveyor
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.cli.output import Output

VARIABLE = "NUMBA_CACHE_DIR"
ROOM = 1 << 20  # bytes: upper bound for the kernels of one command
REPORTED_AFTER = 0.3  # seconds of compiling
SECONDS = 10  # to compile all kernels of one command on a slow machine


@contextmanager
def kernels(output: Output) -> Iterator[None]:
    """Choose the cache folder before Numba is imported, and report compiling inside the block, once."""
    if VARIABLE not in os.environ and "numba" not in sys.modules:
        folder = cache_folder()
        if not writable(folder, 0 if has_kernels(folder) else ROOM):
            folder = _fallback_folder(folder)
            output.info(f"{cache_folder()} cannot be written or is full; compiled kernels go to {folder}")
        os.environ[VARIABLE] = str(folder)
    from numba.core import event

    class Listener(event.Listener):
        depth, began, spent, announced = 0, 0.0, 0.0, False  # a kernel may compile another one; Numba holds a lock

        def on_start(self, event: Any) -> None:  # noqa: ARG002
            if self.depth == 0:
                self.announce(now=VARIABLE in os.environ and not has_kernels(Path(os.environ[VARIABLE])))
                self.began = time.perf_counter()
            self.depth += 1

        def on_end(self, event: Any) -> None:  # noqa: ARG002
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.perf_counter() - self.began
                output.compiling += time.perf_counter() - self.began
                self.announce(now=self.spent > REPORTED_AFTER)

        def announce(self, *, now: bool) -> None:
            if now and not self.announced:
                self.announced = True
                output.info(f"compiling kernels (about {SECONDS} s); they are cached for later runs")

    listener = Listener()
    with event.install_listener("numba:compile", listener), _careful_cache(output, listener):
        yield


@contextmanager
def _careful_cache(output: Output, listener: Any) -> Iterator[None]:
    """Use kernels that cannot be saved, and count loading of kernels as compiling."""
    from numba.core import caching

    numba_cache: Any = caching.Cache
    load, save, warned = numba_cache.load_overload, numba_cache.save_overload, False

    def loaded(cache: Any, *key: Any) -> Any:
        began = time.perf_counter()
        try:
            return load(cache, *key)
        finally:
            if listener.depth == 0:
                output.compiling += time.perf_counter() - began

    def saved(cache: Any, *entry: Any) -> None:
        nonlocal warned
        try:
            save(cache, *entry)
        except OSError as error:
            if not warned:
                warned = True
                output.warn(
                    f"compiled kernels cannot be saved in {os.environ.get(VARIABLE, 'the cache')} "
                    f"({error.strerror or error}), so every run compiles them again\n"
                    f"  hint: free space there, or set another folder with {VARIABLE} or XDG_CACHE_HOME"
                )

    numba_cache.load_overload, numba_cache.save_overload = loaded, saved
    try:
        yield
    finally:
        numba_cache.load_overload, numba_cache.save_overload = load, save


def has_kernels(folder: Path) -> bool:
    """Return whether a folder has any compiled kernel."""
    return any(folder.rglob("*.nbi"))


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """Return the cache folder for this version of the kernels."""
    return cache_home() / "surveyor" / f"kernels-{fingerprint()}"


def cache_home() -> Path:
    """Return the cache folder of the user on this platform."""
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises where there is none
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def fingerprint() -> str:
    """Return a hash of all kernels and of the versions that compile them."""
    digest = hashlib.sha256(f"{sys.version} numba {version('numba')}".encode())
    for path in sorted((Path(surveyor.__file__).parent / "kernels").glob("*.py")):
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


def _fallback_folder(folder: Path) -> Path:
    """Return a temporary folder of this user; a new one if the default name is taken."""
    owner = os.getuid() if hasattr(os, "getuid") else "files"
    try:
        own = Path(tempfile.gettempdir()) / f"surveyor-{owner}" / folder.name
        if writable(own) and (not hasattr(os, "getuid") or own.parent.stat().st_uid == os.getuid()):
            return own
        return Path(tempfile.mkdtemp(prefix="surveyor-"))
    except OSError as error:
        raise UsageError(
            f"compiled kernels can be saved neither in {folder} nor in the temporary folder ({error})",
            hint=f"free space, or set a folder with {VARIABLE}",
        ) from error
