"""A folder for the files that a fuzz target needs, in memory where the system has such a place."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def scratch() -> Path:
    """Return a folder of this process, removed at its end."""
    memory = Path("/dev/shm")  # noqa: S108  # a new folder with a random name is made in it
    folder = Path(tempfile.mkdtemp(prefix="surveyor-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
