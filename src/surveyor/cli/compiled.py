"""Where the machine code of the kernels is kept, and a line when it has to be made.

Numba's cache notices an edit only in the file of the kernel itself, so the folder is named by a hash of all
kernels and of the versions of Python and Numba. The library leaves the environment alone; a program owns
its process and may set it.
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.cli.output import Output

VARIABLE = "NUMBA_CACHE_DIR"
SECONDS = 10  # what compiling all kernels of one command takes on a slow machine


@contextmanager
def kernels(output: Output) -> Iterator[None]:
    """Choose the cache folder before Numba is imported; inside, compiling is announced, once."""
    if VARIABLE not in os.environ and "numba" not in sys.modules:
        folder = cache_folder()
        if not writable(folder):
            folder = _elsewhere(folder)
            output.say(f"{cache_folder()} cannot be written; compiled kernels go to {folder}")
        os.environ[VARIABLE] = str(folder)
    from numba.core import event

    class Listener(event.Listener):
        depth, began, said = 0, 0.0, False  # a kernel may compile another one; Numba holds a lock

        def on_start(self, event: Any) -> None:  # noqa: ARG002
            if not self.said:
                self.said = True
                output.say(f"compiling kernels, once for this version (about {SECONDS} s)")
            if self.depth == 0:
                self.began = time.perf_counter()
            self.depth += 1

        def on_end(self, event: Any) -> None:  # noqa: ARG002
            self.depth -= 1
            if self.depth == 0:
                output.compiling += time.perf_counter() - self.began

    with event.install_listener("numba:compile", Listener()):
        yield


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """Return the folder for this very version of the kernels."""
    return cache_home() / "surveyor" / f"kernels-{fingerprint()}"


def cache_home() -> Path:
    """Return where this platform keeps what can be made again."""
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises where there is none
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def fingerprint() -> str:
    """Hash all kernels and what compiles them."""
    digest = hashlib.sha256(f"{sys.version} numba {version('numba')}".encode())
    for path in sorted((Path(surveyor.__file__).parent / "kernels").glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def writable(folder: Path) -> bool:
    """Say whether a folder exists, or can be made, and takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _elsewhere(folder: Path) -> Path:
    """Return a folder of this user among the temporary files, a new one if the usual name is taken."""
    owner = os.getuid() if hasattr(os, "getuid") else "files"
    kept = Path(tempfile.gettempdir()) / f"surveyor-{owner}" / folder.name
    if writable(kept) and (not hasattr(os, "getuid") or kept.parent.stat().st_uid == os.getuid()):
        return kept
    return Path(tempfile.mkdtemp(prefix="surveyor-"))
