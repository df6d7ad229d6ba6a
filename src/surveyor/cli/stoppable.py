"""Work that Ctrl-C and SIGTERM stop in good order."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

Result = TypeVar("Result")
INTERRUPTED = {signal.SIGINT: 130, signal.SIGTERM: 143}  # the exit codes


def run(work: Callable[[], Coroutine[Any, Any, Result]], caught: list[int]) -> tuple[Result | None, int]:
    """Run it to its end, or until a signal, which `caught` then holds; return the result and the exit code.

    What is cancelled may still return something; None if it had not begun.
    """
    from surveyor.sources.http import run as run_loop

    async def told() -> Result | None:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # Windows: Ctrl-C is an exception there, as safe as a crash
            for number in INTERRUPTED:
                loop.add_signal_handler(number, _stop, task, number, caught)
        try:
            return await work()
        except asyncio.CancelledError:  # before it had begun
            return None

    found = run_loop(told())
    return found, INTERRUPTED[signal.Signals(caught[0])] if caught else 0


def _stop(task: asyncio.Task[Any] | None, number: int, caught: list[int]) -> None:
    caught.append(number)
    if task is not None:
        task.cancel()
