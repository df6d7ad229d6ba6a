"""Run coroutines for callers of ordinary functions, also where an event loop is running already.

`run_sync` runs a coroutine to its end. In a thread without an event loop it starts one, as `asyncio.run` does, and
Ctrl-C cancels the coroutine. In a notebook the thread has a running loop, which cannot be entered twice, so the
coroutine gets a thread of its own; interrupting the kernel cancels it. A coroutine that catches the cancellation saves
and returns its result; one that does not ends with KeyboardInterrupt.

`in_thread` is the way back, for applications: it awaits an ordinary function that runs in a thread, so that the event
loop of the caller stays free. Cancelling it cancels the coroutines that the function runs, and waits until the
function has saved and returned.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

Result = TypeVar("Result")
SAVED = "interrupted; what was fetched for a survey is saved, and the same call resumes"
TICK = 0.25  # seconds: the kernel of a notebook handles an interrupt only when its event loop wakes up


class Cancellation:
    """Cancels the coroutines of one thread from another thread, also those that start later."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may interrupt its holder
        self._cancel: Callable[[], object] | None = None
        self.requested = False

    def cancel(self) -> None:
        """Cancel the coroutine that is running, and all later ones; a second call cancels again."""
        with self._lock:
            self.requested = True
            if self._cancel is not None:
                self._cancel()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine that can be cancelled; it begins even if that was requested before."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine runs in a task
        with self._lock:
            self._cancel = partial(loop.call_soon_threadsafe, task.cancel)
            if self.requested:
                task.cancel()
        try:
            return await work
        finally:
            with self._lock:
                self._cancel = None


_cancellation: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def run_sync(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to completion, in its own thread if an event loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        cancellation = _cancellation.get()  # of the thread that `in_thread` has started
        return _run(work if cancellation is None else cancellation.run(work))
    cancellation = Cancellation()
    running: Future[Result] = _start(partial(run_sync, work), cancellation)
    task = asyncio.current_task()
    seen = 0 if task is None else task.cancelling()  # `asyncio.run` turns the first Ctrl-C into a cancellation
    interrupted = False
    while not running.done():
        try:
            if interrupted or (task is not None and task.cancelling() > seen):
                interrupted, seen = False, 0 if task is None else task.cancelling()
                cancellation.cancel()
            wait([running], TICK)
        except KeyboardInterrupt:
            interrupted = True
    try:
        return running.result()
    except asyncio.CancelledError:
        if cancellation.requested:
            raise KeyboardInterrupt from None
        raise


async def in_thread(function: Callable[[], Result], discard: Callable[[Result], str] = lambda _: SAVED) -> Result:
    """Await a function that runs in a thread; if cancelled, wait until it has saved.

    The result is then passed to `discard`, and what that returns is the message of the CancelledError: a notebook shows
    it if a cell with `await` is interrupted.
    """
    cancellation = Cancellation()
    running = asyncio.wrap_future(_start(function, cancellation))
    try:
        while not running.done():
            await asyncio.wait([running], timeout=TICK)
    except asyncio.CancelledError:
        cancellation.cancel()
        while not running.done():
            with suppress(asyncio.CancelledError):  # the function is about to return
                await asyncio.wait([running])
        if not running.cancelled() and running.exception() is None:
            raise asyncio.CancelledError(discard(running.result())) from None
        raise
    result: Result = running.result()
    return result


def _start(function: Callable[[], Result], cancellation: Cancellation) -> Future[Result]:
    """Start a function in a thread, with the context of the caller: output of a notebook cell goes to that cell."""

    def call() -> Result:
        _cancellation.set(cancellation)
        return function()

    thread = ThreadPoolExecutor(1, "surveyor")
    try:
        running: Future[Result] = thread.submit(copy_context().run, call)
        return running
    finally:
        thread.shutdown(wait=False)


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on a new event loop, with uvloop if it is installed."""
    try:
        fast: Any = import_module("uvloop")
    except ImportError:
        return asyncio.run(work)
    result: Result = fast.run(work)
    return result
