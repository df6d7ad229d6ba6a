"""The tables of surveys that pages read: opened once each, and brought up to date by one build at a time.

A page only says which survey it shows (`want`). A survey that was shown in the last minutes and whose journal has grown
since its tables were built is built again in a child process; while a crawl runs, after pauses that keep the cost of
building a small part of the time.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import SurveyorError
from surveyor.serve.surveys import changed_at

if TYPE_CHECKING:
    from surveyor.serve.view.view import View

PERIOD = 1.0  # seconds between two looks
WATCHED = 600.0  # seconds for which a survey counts as shown
PAUSE = 5.0  # least seconds between two builds of a survey
REST = 4.0  # times the duration of a build
MOST_VIEWS = 8  # open at once
GRACE = 5.0
RETIRED = 60.0  # seconds after which no thread reads an old view any more


@dataclass(slots=True)
class _Tables:
    wanted_at: float = 0.0
    built_at: float = float("-inf")
    took: float = 0.0
    journal: float = -1.0  # time of the journal when it was built
    problem: str = ""


class Tables:
    """The tables of all surveys of a server."""

    def __init__(self) -> None:
        self._known: dict[Path, _Tables] = {}
        self._views: dict[Path, tuple[tuple[int, ...], View]] = {}
        self._retired: list[tuple[float, View]] = []
        self._summaries: dict[Path, tuple[tuple[int, ...], dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._building: Path | None = None

    def want(self, folder: Path) -> None:
        """Keep the tables of a survey up to date for a while."""
        with self._lock:
            self._known.setdefault(folder, _Tables()).wanted_at = time.monotonic()

    def open(self, folder: Path) -> View | None:
        """Return the tables of a survey as last built; None if there are none yet."""
        from surveyor.serve.view.view import View

        stamp = _stamp(folder)
        with self._lock:
            self._close_retired()
            known = self._views.get(folder)
            if known is not None and known[0] == stamp:
                return known[1]
            try:
                view = View.open(folder) if stamp else None
            except (SurveyorError, OSError):
                view = None
            if known is not None:
                self._retire(folder)
            if view is not None:
                while len(self._views) >= MOST_VIEWS:
                    self._retire(next(iter(self._views)))
                self._views[folder] = (stamp, view)
            return view

    def summary(self, folder: Path) -> dict[str, Any] | None:
        """Return counts, bounds and blocked importance as the tables have them; None if there are none yet."""
        stamp = _stamp(folder)
        known = self._summaries.get(folder)
        if known is None or known[0] != stamp:
            view = self.open(folder)
            if view is None:
                return None
            known = stamp, {**view.summary(), "blocked": view.reasons()}
            self._summaries[folder] = known
        return known[1]

    def stamp(self, folder: Path) -> tuple[int, ...]:
        """Return what changes when the tables of a survey are replaced."""
        return _stamp(folder)

    def _retire(self, folder: Path) -> None:
        """Close a view later: another thread may be reading it."""
        self._retired.append((time.monotonic(), self._views.pop(folder)[1]))

    def _close_retired(self) -> None:
        while self._retired and time.monotonic() - self._retired[0][0] > RETIRED:
            self._retired.pop(0)[1].close()

    def progress(self, folder: Path) -> dict[str, Any]:
        """Return whether the tables of a survey are being built, and what went wrong."""
        known = self._known.get(folder)
        return {"building": self._building == folder, "problem": "" if known is None else known.problem}

    def begin(self) -> None:
        """Start looking, in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        """Stop looking, and end a build."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), GRACE)
            except TimeoutError:
                self._process.kill()
        with self._lock:
            for _, view in [*self._views.values(), *self._retired]:
                view.close()
            self._views.clear()
            self._retired.clear()

    async def _keep(self) -> None:
        while True:
            due = await asyncio.to_thread(self._due)
            if due is not None:
                await self._build(due)
            await asyncio.sleep(PERIOD)

    def _due(self) -> Path | None:
        now = time.monotonic()
        with self._lock:
            known = list(self._known.items())
        for folder, one in sorted(known, key=lambda entry: -entry[1].wanted_at):
            rested = now - one.built_at > max(PAUSE, REST * one.took)
            if now - one.wanted_at < WATCHED and rested and changed_at(folder) != one.journal and folder.is_dir():
                return folder
        return None

    async def _build(self, folder: Path) -> None:
        one, began = self._known[folder], time.monotonic()
        journal = changed_at(folder)
        self._building = folder
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "surveyor.serve.view.build",
                str(folder),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            _, printed = await self._process.communicate()
            lines = [line for line in printed.decode("utf-8", "replace").splitlines() if line.strip()]
            one.problem = "" if self._process.returncode == 0 else (lines[0] if lines else "The build failed.")[:500]
        except OSError as error:
            one.problem = f"The build could not be started: {error.strerror or error}"
        finally:
            self._building = None
            one.journal, one.built_at = journal, time.monotonic()
            one.took = one.built_at - began


def _stamp(folder: Path) -> tuple[int, ...]:
    """Return what changes when the tables of a survey are replaced; empty without any."""
    try:
        about = (folder / "view" / "view.json").stat()
    except OSError:
        return ()
    return about.st_ino, about.st_mtime_ns
