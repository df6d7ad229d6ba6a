"""Asynchronous work that Ctrl-C and SIGTERM stop within two seconds; everything committed is saved.

A signal cancels the task, which then cleans up in the event loop. If the loop is busy (a long replay, a large page), or
if the cleanup takes longer than `GRACE`, an alarm interrupts the main thread wherever it is: an unfinished journal
commit is rolled back, and all earlier ones remain.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

Result = TypeVar("Result")
INTERRUPTED = {signal.SIGINT: 130, signal.SIGTERM: 143}  # the exit codes
GRACE = 1.2  # seconds for a regular cleanup


def run(work: Callable[[], Coroutine[Any, Any, Result]], caught: list[int]) -> tuple[Result | None, int]:
    """Run a coroutine until it ends or a signal arrives, which is added to `caught`; return result and exit code.

    A cancelled coroutine may still return a result; None if it was not started, or did not clean up in time.
    """
    from surveyor.fetch.event_loops import run_sync

    async def stopping() -> Result | None:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # Windows: Ctrl-C is an exception there, as safe as a crash
            for number in INTERRUPTED:
                loop.add_signal_handler(number, _stop, task, number, caught)
                signal.signal(number, _arm)  # the handler of the loop runs only when the loop does
        try:
            return await work()
        except asyncio.CancelledError:  # before it was started
            return None

    found: Result | None = None
    with _alarm():
        try:
            found = run_sync(stopping())
        except _Overdue as overdue:
            caught.append(overdue.number)
        except Exception:
            if not _expired:
                raise
            caught.append(_expired[0])  # a C callback swallowed the interrupt, and something else failed
    return found, INTERRUPTED[signal.Signals(caught[0])] if caught else 0


def _stop(task: asyncio.Task[Any] | None, number: int, caught: list[int]) -> None:
    caught.append(number)
    if task is not None:
        task.cancel()


class _Overdue(KeyboardInterrupt):
    """The cleanup took too long."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


_signals: list[int] = []  # received, in order
_expired: list[int] = []  # the first signal, after the grace period


def _arm(number: int, _frame: object) -> None:
    """Start the grace period."""
    _signals.append(number)
    if len(_signals) == 1 and sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, GRACE)


def _expire(_number: int, _frame: object) -> NoReturn:
    _expired.append(_signals[0])
    raise _Overdue(_signals[0])


@contextmanager
def _alarm() -> Iterator[None]:
    """Interrupt the main thread at the end of the grace period."""
    if sys.platform == "win32":
        yield
        return
    _signals.clear()
    _expired.clear()
    before = {number: signal.getsignal(number) for number in INTERRUPTED}
    alarm_handler = signal.signal(signal.SIGALRM, _expire)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, alarm_handler)
        for number, handler in before.items():
            signal.signal(number, handler)
