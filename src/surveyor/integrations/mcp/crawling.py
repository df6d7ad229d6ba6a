"""The tools that crawl, within limits that the user has set for all crawls of a server together.

A crawl is an ordinary `surveyor crawl` in another process, with the settings of the user: contact, delays, proxy. A
client chooses an address, a goal and limits; no part of what it sends becomes an option or a path. The address is
passed in a list of seeds, as an address on the command line would also be allowed in a private network. A survey is
resumed only if this server has started it; a survey of the user is never continued or replaced.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.crawler.start import folder_for, unused
from surveyor.errors import UsageError
from surveyor.integrations.mcp.arguments import Argument
from surveyor.integrations.mcp.context import Tool
from surveyor.integrations.mcp.replies import Reply, one_line
from surveyor.report.numbers import counted, share_at_least, share_at_most
from surveyor.serve.status import sentence, snapshot
from surveyor.store import layout, published
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.integrations.mcp.context import Context
    from surveyor.serve.jobs import Job, Jobs

SCOPES = ("prefix", "host", "domain", "any")  # from narrow to wide
PAGES, MINUTES, SCOPE = 1_000, 60.0, "host"  # defaults
APPEARS = 10.0  # seconds for a survey to appear
OVERTIME = 30.0  # seconds after its minutes until a crawl is stopped from outside
LEAST_MINUTES = 0.05
STATES = ("status", "running", "pages", "known", "queued", "requests", "rate", "left", "coverage", "ending", "messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What all crawls of a server together may do."""

    pages: int = PAGES
    minutes: float = MINUTES
    scope: str = SCOPE  # the widest
    home: Path = Path()  # folder of the surveys

    def scope_of(self, asked: str | None) -> str:
        """Return the scope of a crawl; UsageError for one that is wider."""
        if asked is None:
            return self.scope if SCOPES.index(self.scope) < SCOPES.index("host") else "host"
        if SCOPES.index(asked) > SCOPES.index(self.scope):
            raise UsageError(f"scope must be at most {self.scope}, got {asked}", hint="the user has set this limit")
        return asked


@dataclass(slots=True)
class Crawl:
    """One run of a crawl."""

    url: str
    folder: Path
    job: Job
    pages: int  # granted, and those of the survey before
    before: int
    minutes: float
    scope: str
    counted: bool = False  # in what is used


class Crawls:
    """The crawls of a server, one at a time."""

    def __init__(self, jobs: Jobs, limits: Limits) -> None:
        self.limits, self._jobs = limits, jobs
        self._used_pages, self._used_seconds = 0, 0.0
        self._folders: dict[tuple[str, str], Path] = {}  # by address and scope
        self.last: Crawl | None = None
        self._lists = tempfile.TemporaryDirectory(prefix="surveyor-mcp-")
        self._lock = asyncio.Lock()
        self._ending: asyncio.Task[None] | None = None

    def left(self) -> dict[str, Any]:
        """Return what the limits still allow, besides the running crawl."""
        last = self.last
        if last is not None and not last.counted and not last.job.is_running:
            last.counted = True
            self._used_pages += max(0, _pages_of(last) - last.before)
            self._used_seconds += last.job.seconds or 0.0
        running = last if last is not None and last.job.is_running else None
        pages = self.limits.pages - self._used_pages - (running.pages if running else 0)
        minutes = self.limits.minutes - self._used_seconds / 60 - (running.minutes if running else 0.0)
        return {"pages": max(0, pages), "minutes": round(max(0.0, minutes), 2), "scope": self.limits.scope}

    async def start(
        self, url: str, coverage: float | None, pages: int | None, minutes: float | None, scope: str
    ) -> Crawl:
        """Start a crawl, or resume the one of this address; wait until its survey is there, or it has failed."""
        async with self._lock:
            if self.last is not None and self.last.job.is_running:
                raise UsageError("a crawl is running already", hint="see crawl_status, or stop it with crawl_stop")
            left = self.left()
            granted = min(pages or self.limits.pages, left["pages"])
            allowed = min(minutes or self.limits.minutes, left["minutes"])
            if granted < 1 or allowed < LEAST_MINUTES:
                used = f"{counted(self._used_pages, 'page')} and {self._used_seconds / 60:.1f} minutes are used"
                limit = f"of {counted(self.limits.pages, 'page')} and {self.limits.minutes:g} minutes"
                raise UsageError(f"the limit of the user is reached: {used}, {limit}", hint="the user can raise it")
            folder, before = await asyncio.to_thread(self._place, url, scope)
            goal = f"pages={before + granted}, minutes={allowed:.12g}"
            goal += f", coverage={coverage:g}" if coverage is not None else ""
            job = self._jobs.start("crawl", self._words(url, scope, folder, goal), folder)
            self.last = crawl = Crawl(url, folder, job, granted, before, allowed, scope)
        asyncio.get_running_loop().call_later(60 * allowed + OVERTIME, self._end, crawl)
        for _ in range(int(APPEARS / 0.1)):
            state = await asyncio.to_thread(published.read, crawl.folder)
            if not crawl.job.is_running or (published.is_running(state) and layout.is_survey(crawl.folder)):
                break
            await asyncio.sleep(0.1)
        return crawl

    def _place(self, url: str, scope: str) -> tuple[Path, int]:
        """Return the folder of a crawl, and the pages that it has."""
        folder = self._folders.get((url, scope))
        if folder is None:
            folder = unused(self.limits.home.absolute() / folder_for([url], None, scope=scope).name)
        state = published.read(folder) if layout.is_survey(folder) else None
        return folder, 0 if state is None else int(state["pages"])

    def _words(self, url: str, scope: str, folder: Path, goal: str) -> list[str]:
        """Return the command of a crawl."""
        if layout.is_survey(folder):
            return ["crawl", "--json", "--quiet", "--until", goal, "--", str(folder)]
        self._folders[url, scope] = folder
        seeds = Path(self._lists.name) / f"{len(self._folders)}.txt"
        seeds.write_text(f"{url} 1\n", "utf-8")  # with its weight, as the address may end with a comma and digits
        options = ["--seeds", str(seeds), "--out", str(folder), "--scope", scope, "--until", goal]
        return ["crawl", "--json", "--quiet", *options]

    def _end(self, crawl: Crawl) -> None:
        if crawl.job.is_running:
            self._ending = asyncio.get_running_loop().create_task(self._jobs.stop(crawl.job))

    async def stop(self) -> None:
        """Stop the crawl that is running, as Ctrl-C would."""
        if self.last is not None and self.last.job.is_running:
            await self._jobs.stop(self.last.job)

    def close(self) -> None:
        """Remove the lists of seeds."""
        self._lists.cleanup()


def _pages_of(crawl: Crawl) -> int:
    """Return the pages that a survey has; if that is not known, all that were granted."""
    state = published.read(crawl.folder)
    if state is not None:
        return int(state["pages"])
    return crawl.before + crawl.pages if layout.is_survey(crawl.folder) else crawl.before


def address_of(text: str) -> str:
    """Return an address in normal form; UsageError if it is none of http or https."""
    given = text.strip()
    url = normalise(given) if given.isprintable() and re.match(r"https?://", given, re.IGNORECASE) else None
    if url is None or any(char.isspace() for char in url):
        raise UsageError(
            f"url must be an address of http or https, got {text[:60]!r}", hint="https://docs.example.org/"
        )
    return url


async def crawl(
    context: Context, url: str, coverage: float | None, pages: int | None, minutes: float | None, scope: str | None
) -> Reply:
    """Start a crawl."""
    crawls = _crawls(context)
    started = await crawls.start(address_of(url), coverage, pages, minutes, crawls.limits.scope_of(scope))
    return await _state(context, started)


async def crawl_status(context: Context) -> Reply:
    """Return the state of the last crawl."""
    return await _state(context, _last(context))


async def crawl_stop(context: Context) -> Reply:
    """Stop the crawl that is running."""
    last = _last(context)
    await _crawls(context).stop()
    return await _state(context, last)


def _crawls(context: Context) -> Crawls:
    assert context.crawls is not None  # noqa: S101  # else these tools are not offered
    return context.crawls


def _last(context: Context) -> Crawl:
    last = _crawls(context).last
    if last is None:
        raise UsageError("no crawl was started", hint="start one with the tool crawl")
    return last


async def _state(context: Context, crawl: Crawl) -> Reply:
    state: dict[str, Any] = {}
    if layout.is_survey(crawl.folder):
        context.surveys.add(crawl.folder)
        state = await asyncio.to_thread(snapshot, context, crawl.folder)
    name = context.surveys.name_of(crawl.folder)
    job = crawl.job
    failed = bool(job.problem) and not job.stopped
    says = f"The crawl {'failed' if failed else 'is running' if job.is_running else 'has ended'}."
    if state:
        says = f"{sentence(state)} {counted(state['pages'], 'page')} in the survey {name}."
        if state["coverage"]:
            at_least, at_most = state["coverage"]["at_least"], state["coverage"]["at_most"]
            says += f" Coverage from {share_at_least(at_least)} to {share_at_most(at_most)}."
    data = {"survey": name, "url": crawl.url, "is_running": job.is_running, "problem": job.problem, "hint": job.hint}
    data |= {"granted": {"pages": crawl.pages, "minutes": round(crawl.minutes, 2), "scope": crawl.scope}}
    data |= {"pages_before": crawl.before, "left": _crawls(context).left()}
    data |= {"state": {field: state[field] for field in STATES} if state else None}
    printed = [job.problem, job.hint] if failed else []
    web = [f"address: {one_line(crawl.url)}", *printed, *(state.get("messages") or [])[-5:]]
    return Reply(
        says=says, data=data, web=web, from_the_web=["url", "problem", "hint", "state.messages"], failed=failed
    )


STATE = {
    "survey": {"type": "string", "description": "Name for the other tools; empty until the first page."},
    "is_running": {"type": "boolean"},
    "granted": {"type": "object"},
    "left": {"type": "object", "description": "What the limits of the user still allow."},
    "state": {"type": ["object", "null"]},
}


def tools(limits: Limits) -> tuple[Tool, ...]:
    """Return the tools that crawl, which name the limits."""
    amount = f"at most {counted(limits.pages, 'page')} and {limits.minutes:g} minutes for all crawls together"
    return (
        Tool(
            name="crawl",
            run=crawl,
            about="Crawl a site politely into a new survey, or resume the crawl that this server made of the same "
            f"address. The user has set limits: {amount}, scope {limits.scope}. One crawl runs at a time; it returns "
            "at once, and crawl_status follows it.",
            arguments=[
                Argument(name="url", kind="text", about="Address where the crawl begins.", most=2_000, required=True),
                Argument(
                    name="coverage",
                    kind="number",
                    about="Goal: stop at this certified coverage of importance, such as 0.9.",
                    least=0.001,
                    most=0.999,
                ),
                Argument(name="pages", kind="whole", about="Most pages to fetch.", least=1, most=limits.pages),
                Argument(
                    name="minutes", kind="number", about="Most minutes.", least=LEAST_MINUTES, most=limits.minutes
                ),
                Argument(
                    name="scope",
                    kind="text",
                    about="Pages of this folder (prefix), host, domain, or any.",
                    most=10,
                    values=SCOPES,
                ),
            ],
            fields=STATE,
            writes=True,
        ),
        Tool(name="crawl_status", run=crawl_status, about="The state of the last crawl.", fields=STATE),
        Tool(
            name="crawl_stop",
            run=crawl_stop,
            about="Stop the crawl that is running; what it has fetched is saved.",
            fields=STATE,
            writes=True,
        ),
    )
