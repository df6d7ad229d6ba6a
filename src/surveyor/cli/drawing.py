"""Lines on a terminal that are drawn anew in their place."""

from __future__ import annotations

from typing import Any, TextIO


class Drawing:
    """What stands on a terminal until it is cleared."""

    def __init__(self, stream: TextIO, *, color: bool) -> None:
        self._stream, self._color = stream, color
        self._live: Any = None

    def draw(self, lines: list[str]) -> None:
        """Draw lines in place of those that were drawn before; long ones are cut."""
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            console = Console(file=self._stream, no_color=not self._color or None, highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

    def clear(self) -> None:
        """Take the lines off the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None
