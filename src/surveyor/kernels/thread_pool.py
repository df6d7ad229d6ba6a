"""A thread pool that runs kernels over blocks.

Kernels release the GIL, so plain threads use all cores. Each task writes only its own block, so the result is the same
for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Result = TypeVar("Result")
Args = ParamSpec("Args")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ThreadPool:
    """Threads for one job; use it in a `with` statement."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = max(1, threads or cores())
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def __enter__(self) -> ThreadPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def submit(self, task: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs) -> Future[Result]:
        """Run one task in the background (immediately when there is a single thread)."""
        if self._pool:
            return self._pool.submit(task, *args, **kwargs)
        done: Future[Result] = Future()
        done.set_result(task(*args, **kwargs))
        return done

    def imap(self, task: Callable[..., Result], items: Iterable[tuple[object, ...]]) -> Iterator[Result]:
        """Yield `task(*item)` in the order of the items, computing a few ahead."""
        waiting: list[Future[Result]] = []
        for item in items:
            waiting.append(self.submit(task, *item))
            if len(waiting) > self.threads:
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()
