"""What the tools of a server share: its surveys, their tables and the processes that it has started."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import SurveyError, UsageError
from surveyor.store import published

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from surveyor.integrations.mcp.arguments import Argument
    from surveyor.integrations.mcp.crawling import Crawls
    from surveyor.serve.jobs import Jobs
    from surveyor.serve.surveys import Surveys
    from surveyor.serve.tables import Tables
    from surveyor.serve.view.view import View

NEW, FRESH = 90.0, 20.0  # seconds to wait for the first tables of a survey, and for those that include its last visits
POLL = 0.1


@dataclass(slots=True)
class Context:
    """One server."""

    surveys: Surveys
    jobs: Jobs
    tables: Tables
    crawls: Crawls | None = None  # None: it only reads

    def folder(self, name: str) -> Path:
        """Return the folder of a survey by its name, which is only looked up; UsageError if there is none."""
        found = self.surveys.folder(name)
        if found is None:
            known = ", ".join([*self.surveys.all()][:10])
            hint = f"the surveys are {known}" if known else "there is none yet; the tool crawl makes one"
            raise UsageError(f"there is no survey named {name[:60]!r}", hint=hint)
        return found

    async def view(self, name: str) -> View:
        """Return the tables of a survey, and wait a while for new ones if it has changed."""
        folder = await asyncio.to_thread(self.folder, name)
        self.tables.want(folder)
        began = time.monotonic()
        while True:
            view, is_current = await asyncio.to_thread(self._open, folder)
            if view is not None and is_current:
                return view
            about, waited = self.tables.progress(folder), time.monotonic() - began
            failed = bool(about["problem"]) and not about["building"]
            if view is not None and (failed or waited > FRESH):
                return view
            if failed:
                raise SurveyError(f"{name} has no tables: {about['problem']}", hint="they are written in its folder")
            if waited > NEW:
                raise SurveyError(f"the tables of {name} are still being built", hint="repeat the call in a minute")
            await asyncio.sleep(POLL)

    def _open(self, folder: Path) -> tuple[View | None, bool]:
        """Return the tables as last built, and whether they will do: those of a running crawl are always behind."""
        from surveyor.serve.view.build import is_due

        view = self.tables.open(folder)
        if view is None:
            return None, False
        return view, published.is_running(published.read(folder)) or not is_due(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: what a client reads about it, and the coroutine that runs it with checked arguments."""

    name: str
    about: str
    run: Callable[..., Any]  # (context, **arguments) -> an awaitable Reply
    arguments: Sequence[Argument] = ()
    fields: Mapping[str, Any]  # JSON schemas of the fields of its result
    writes: bool = False
