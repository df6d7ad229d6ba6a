"""Work that Ctrl-C and SIGTERM stop within two seconds, with all that was committed saved.

A signal cancels the work, which then winds up in the event loop. Where the loop is busy (a long replay, a large page),
or where winding up takes longer than `GRACE`, an alarm interrupts the main thread wherever it is: a journal commit that
is under way is rolled back, and everything before it counts.
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
GRACE = 1.2  # seconds for winding up in good order


def run(work: Callable[[], Coroutine[Any, Any, Result]], caught: list[int]) -> tuple[Result | None, int]:
    """Run it to its end, or until a signal, which `caught` then holds; return the result and the exit code.

    What is cancelled may still return something; None if it had not begun, or could not wind up in time.
    """
    from surveyor.fetch.http import run_sync

    async def stopping() -> Result | None:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # Windows: Ctrl-C is an exception there, as safe as a crash
            for number in INTERRUPTED:
                loop.add_signal_handler(number, _stop, task, number, caught)
                signal.signal(number, _arm)  # beside the handler of the loop, which runs only when the loop does
        try:
            return await work()
        except asyncio.CancelledError:  # before it had begun
            return None

    found: Result | None = None
    with _alarm():
        try:
            found = run_sync(stopping())
        except _Overdue as overdue:
            caught.append(overdue.number)
        except Exception:
            if not _rung:
                raise
            caught.append(_rung[0])  # a callback from C dropped the interruption, and something failed for that reason
    return found, INTERRUPTED[signal.Signals(caught[0])] if caught else 0


def _stop(task: asyncio.Task[Any] | None, number: int, caught: list[int]) -> None:
    caught.append(number)
    if task is not None:
        task.cancel()


class _Overdue(KeyboardInterrupt):
    """Winding up took too long."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


_signals: list[int] = []  # that arrived, the first one first
_rung: list[int] = []  # the first of them, once the time was over


def _arm(number: int, _frame: object) -> None:
    """Allow a while for winding up."""
    _signals.append(number)
    if len(_signals) == 1 and sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, GRACE)


def _ring(_number: int, _frame: object) -> NoReturn:
    _rung.append(_signals[0])
    raise _Overdue(_signals[0])


@contextmanager
def _alarm() -> Iterator[None]:
    """Interrupt the main thread when the time that `_arm` allows is over."""
    if sys.platform == "win32":
        yield
        return
    _signals.clear()
    _rung.clear()
    before = {number: signal.getsignal(number) for number in INTERRUPTED}
    ringing = signal.signal(signal.SIGALRM, _ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, ringing)
        for number, handler in before.items():
            signal.signal(number, handler)
