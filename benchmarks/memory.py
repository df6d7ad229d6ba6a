"""What the kernel says a process uses, and how fast memory is read.

`peak` is the largest resident set (VmHWM), file pages included. `private` is RssAnon: memory that no file
backs, so pages of a memory map, which the kernel can drop at any time, do not count.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np

MB = 1 << 20
STATUS = Path("/proc/self/status")


def status(field: str) -> int:
    """Return one of the sizes in /proc/self/status, in bytes; 0 where there is none."""
    if STATUS.exists():
        for line in STATUS.read_text("utf-8").splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def peak() -> int:
    return status("VmHWM")


def forget_peak() -> None:
    """Begin the peak anew at the present size, where the kernel allows it."""
    with suppress(OSError):  # the peak then includes the start of the process
        Path("/proc/self/clear_refs").write_text("5", "utf-8")


class PrivatePeak:
    """Watches private memory while a `with` block runs."""

    def __init__(self, every: float = 0.005) -> None:
        self.bytes = 0
        self._every = every
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PrivatePeak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, status("RssAnon"))
            if self._done.wait(self._every):
                return


def available() -> int:
    """Return how much memory new processes may take without swapping."""
    import psutil

    return int(psutil.virtual_memory().available)


def read_bandwidth(threads: int, size: int = 1 << 30, repeats: int = 5) -> float:
    """Return bytes per second at which threads together read an array much larger than the caches."""
    array = np.ones(size // 8)
    parts = np.array_split(array, threads)
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            began = time.perf_counter()
            list(pool.map(np.max, parts))  # vectorised, one pass, releases the GIL
            best = min(best, time.perf_counter() - began)
    return array.nbytes / best
