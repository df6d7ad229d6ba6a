"""Live progress in the output of a notebook cell: one line with a bar, updated in place.

Outside a notebook nothing is shown, and IPython is never imported: it is used only if the process runs in its kernel.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surveyor.crawler.session import Run
    from surveyor.crawler.watching import Watch

UPDATE_EVERY = 0.4  # seconds
RECENT = 30.0  # seconds over which the rate is measured
WIDTH, HEIGHT = 240, 10  # pixels of the bar
CAPTURED, POSSIBLE, REST = "#2a78b5", "#bcd7ec", "#e9e9e9"  # its parts: certified, possible, impossible
State = tuple[list[str], tuple[float, float] | None]  # facts, and bounds of the coverage


class Cell:
    """One output of a notebook cell that is replaced by each `show`."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, facts: list[str], bounds: tuple[float, float] | None = None) -> None:
        """Show some facts, after a bar for a lower and an upper bound."""
        from IPython import display as ipython

        text = "   ".join(facts)
        content = {"text/plain": text, "text/html": f"<div>{_bar(*bounds) if bounds else ''}{escape(text)}</div>"}
        if self._handle is None:
            display: Any = ipython.display
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class CellDisplay:
    """Progress of a crawl or a watch; outside a notebook, or if it is not wanted, it does nothing."""

    def __init__(self, *, shown: bool = True, goal: str = "") -> None:
        self._goal = goal  # instead of that of the crawl; its coverage is then not of interest
        self._cell = Cell() if shown and in_notebook() else None
        self._next = time.monotonic()
        self._past: deque[tuple[float, int]] = deque()  # time and number of pages or requests
        self._last: Callable[[], State] | None = None

    def crawl(self, run: Run) -> None:
        """Show a crawl: both bounds of the coverage, pages, pages per second, hosts."""
        self._draw(lambda: self._crawl_state(run))

    def watch(self, run: Watch) -> None:
        """Show a watch: requests and what they found."""
        self._draw(lambda: (self._watch_facts(run), None))

    def end(self, ending: str) -> None:
        """Show the last state, and how the work ended."""
        if self._cell is not None and self._last is not None:
            facts, bounds = self._last()
            note = "interrupted and saved; the same call resumes" if ending == "interrupted" else ending
            self._cell.show([*facts, note], bounds)

    def _draw(self, state: Callable[[], State]) -> None:
        if self._cell is None:
            return
        self._last, now = state, time.monotonic()
        if now >= self._next:
            self._cell.show(*state())
            self._next = time.monotonic() + UPDATE_EVERY

    def _crawl_state(self, run: Run) -> State:
        tally, bounds = run.state.tally, None if self._goal else _bounds(run)
        facts = [] if bounds is None else [f"{_down(bounds[0])} at least, {_up(bounds[1])} at most"]
        facts += [_count(tally.pages, "page"), self._rate(tally.pages), _count(len(run.hosts), "host")]
        pause = run.hosts.paused_until - run.hosts.clock()
        if pause > 0:
            return [*facts, f"the network is down, retry in {pause:.0f} s"], bounds
        held = run.waiting.sentence() if run.waiting is not None else ""
        return [*facts, held or f"goal {self._goal or run.until}"], bounds

    def _watch_facts(self, run: Watch) -> list[str]:
        found = ", ".join(f"{number:,} {kind}" for kind, number in run.watched.found.items() if kind)
        requests = f"{run.budget.spent():,} of {run.budget.per_day:,} requests in 24 h"
        return [requests, found or "no change yet"]

    def _rate(self, pages: int) -> str:
        now = time.monotonic()
        self._past.append((now, pages))
        while now - self._past[0][0] > RECENT:
            self._past.popleft()
        then, before = self._past[0]
        return f"{(pages - before) / (now - then):.1f}/s" if now - then > UPDATE_EVERY else "-/s"


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _bounds(run: Run) -> tuple[float, float] | None:
    """Return the certified bounds of the coverage; None without a link graph."""
    if not run.folder.journal.keeps_graph:
        return None
    coverage = run.state.crawl.ledger.coverage()
    return coverage.at_least, coverage.at_most


def _bar(at_least: float, at_most: float) -> str:
    """Return a bar as SVG."""
    parts = ((1.0, REST), (min(1.0, at_most), POSSIBLE), (max(0.0, at_least), CAPTURED))
    drawn = "".join(f'<rect width="{WIDTH * part:.1f}" height="{HEIGHT}" fill="{color}"/>' for part, color in parts)
    return f'<svg width="{WIDTH}" height="{HEIGHT}" style="margin-right:1em">{drawn}</svg>'


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _down(share: float) -> str:
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"


def _up(share: float) -> str:
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f} %"
