"""Progress on stderr: bars with rate and remaining time on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TextIO

from surveyor.report.numbers import amount, duration, size

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

LINE_EVERY = 10.0  # seconds, without a terminal
DRAW_AFTER = 0.3  # seconds: shorter work shows nothing
DRAW_EVERY = 0.1


class ProgressMeter:
    """A `ProgressCallback` that draws on stderr."""

    def __init__(self, stream: TextIO, *, silent: bool = False, color: bool = True) -> None:
        self._stream, self._silent, self._color = stream, silent, color
        self._live = not silent and stream.isatty()
        self._stage = ""
        self._began = self._drawn = self._born = time.monotonic()
        self._base = 0.0
        self._bars: Bars | None = None
        self._task: int | None = None

    def __call__(self, stage: str, done: float, total: float, unit: str) -> None:
        """Record that `done` of `total` units of a stage are finished; draw at most every `DRAW_EVERY` seconds."""
        if self._silent:
            return
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._began, self._base = stage, now, done
            self._finish_task()
        elif now - self._drawn < (DRAW_EVERY if self._live else LINE_EVERY):
            return
        if now - self._born < DRAW_AFTER or (not self._live and now - self._drawn < LINE_EVERY):
            return
        self._drawn = now
        text = describe(stage, done - self._base, done, total, unit, now - self._began)
        if self._live:
            self._draw(text, done, total)
        else:
            self._stream.write(text + "\n")
            self._stream.flush()

    def clear(self) -> None:
        """Remove the bar from the screen, so that a line can be printed."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = self._task = None

    def _draw(self, text: str, done: float, total: float) -> None:
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            console = Console(file=self._stream, no_color=not self._color or None)
            columns = (
                BarColumn(24, complete_style="cyan", finished_style="cyan", pulse_style="cyan"),
                TextColumn("{task.description}", markup=False),
            )
            self._bars = Progress(*columns, console=console, transient=True, auto_refresh=False)
            self._bars.start()
        if self._task is None:
            self._task = self._bars.add_task(text, total=total or None)
        self._bars.update(self._task, description=text, completed=done, total=total or None)  # type: ignore[arg-type]
        self._bars.refresh()

    def _finish_task(self) -> None:
        if self._bars is not None and self._task is not None:
            self._bars.remove_task(self._task)  # type: ignore[arg-type]
            self._task = None


def describe(stage: str, gained: float, done: float, total: float, unit: str, seconds: float) -> str:
    """Format progress: stage, amount, rate, remaining time."""
    show = size if unit == "bytes" else amount
    what = "" if unit == "bytes" else f" {unit}"
    parts = [stage, (f"{show(done)} of {show(total)}" if total else show(done)) + what]
    if total:
        parts.append(f"{min(done / total, 1):.0%}".replace("%", " %"))
    if seconds > 0.5 and gained > 0:
        rate = gained / seconds
        parts.append(f"{show(rate)}{what}/s")
        left = (total - done) / rate
        if left > 1 and seconds > 1:
            parts.append(f"{duration(left)} left")
    return "  ".join(parts)


class LiveLines:
    """Lines on a terminal that are redrawn in place."""

    def __init__(self, stream: TextIO, *, color: bool) -> None:
        self._stream, self._color = stream, color
        self._live: Any = None

    def draw(self, lines: list[str]) -> None:
        """Replace the lines; long ones are cut."""
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            console = Console(file=self._stream, no_color=not self._color or None, highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

    def clear(self) -> None:
        """Remove the lines from the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None
