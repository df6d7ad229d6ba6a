"""Long computations and crawls: ordinary commands in child processes, so that each can be copied as a command.

The result of a job on a survey is kept in `SURVEY/view/jobs/KIND` (disposable, as all of `view/`), so that a page is
drawn from a file: a signature on the first line, JSON on the second. What this user has not signed is not shown. A job
runs once per survey and kind, and at most `MOST_JOBS` run at once. When the server ends, its jobs end too; a crawl is
stopped as by Ctrl-C, so that it is saved and can be resumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from surveyor.errors import SurveyError
from surveyor.graph.formats.streams import atomic_write
from surveyor.store import layout, signing

MOST_JOBS = 2  # at once, without crawls
MOST_CRAWLS = 4
MOST_OUTPUT = 64_000_000  # bytes of a result
MOST_ERRORS = 20_000  # bytes of stderr that are read
GRACE = 10.0  # seconds in which a process has to end after SIGTERM
REMEMBERED = 50  # jobs that have ended
VERSION = 1


class Busy(Exception):
    """A job that is not started, because it or too many others run."""


@dataclass(slots=True)
class Job:
    """One run of a command."""

    kind: str
    words: Sequence[str]  # after `surveyor`
    folder: Path | None = None  # the survey, if there is one (perhaps not yet)
    started_at: float = field(default_factory=time.time)
    seconds: float | None = None  # None while it runs
    code: int | None = None
    result: dict[str, Any] | None = None
    problem: str = ""
    hint: str = ""
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)
    task: asyncio.Task[None] | None = field(default=None, repr=False)
    stopped: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.seconds is None

    @property
    def command(self) -> list[str]:
        """The command, as one would type it."""
        return ["surveyor", *(word for word in self.words if word not in ("--json", "--quiet", "--"))]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are stored and shown."""
        return {
            "version": VERSION,
            "kind": self.kind,
            "command": self.command,
            "running": self.is_running,
            "started_at": self.started_at,
            "seconds": time.time() - self.started_at if self.seconds is None else self.seconds,
            "code": self.code,
            "problem": self.problem,
            "hint": self.hint,
            "result": self.result,
        }


class Jobs:
    """The jobs of a server; `tethered` ones also end if the server is killed."""

    def __init__(self, *, tethered: bool = False) -> None:
        self._module = "surveyor.cli.tethered" if tethered else "surveyor"
        self._stdin = asyncio.subprocess.PIPE if tethered else asyncio.subprocess.DEVNULL
        self._jobs: dict[tuple[str, str], Job] = {}
        self._stored: dict[Path, tuple[int, dict[str, Any]]] = {}

    def start(self, kind: str, words: Sequence[str], folder: Path | None = None, key: str = "") -> Job:
        """Start a command in this event loop; raise Busy if it runs already, or too many others do."""
        name = (key or str(folder or ""), kind)
        if name in self._jobs and self._jobs[name].is_running:
            raise Busy(f"{kind} is already running")
        running = [job for job in self._jobs.values() if job.is_running and (job.kind == "crawl") == (kind == "crawl")]
        limit = MOST_CRAWLS if kind == "crawl" else MOST_JOBS
        if len(running) >= limit:
            raise Busy(f"{limit} {'crawls' if kind == 'crawl' else 'computations'} are running already")
        self._forget()
        job = Job(kind, [*words], folder)
        self._jobs[name] = job
        job.task = asyncio.get_running_loop().create_task(self._run(job))
        return job

    def find(self, kind: str, folder: Path | None = None, key: str = "") -> Job | None:
        """Return the last job of a kind in this run of the server, or None."""
        return self._jobs.get((key or str(folder or ""), kind))

    def crawl_into(self, folder_name: str) -> Job | None:
        """Return the last crawl into a folder of this name, which may not exist (yet, or any more)."""
        crawls = (job for (_, kind), job in self._jobs.items() if kind == "crawl")
        return next((job for job in crawls if job.folder is not None and job.folder.name == folder_name), None)

    def state(self, kind: str, folder: Path) -> dict[str, Any] | None:
        """Return the last job of a kind on a survey, as of this run or of an earlier one; None if there is none."""
        job = self.find(kind, folder)
        stored = self._read(_path(folder, kind))
        if job is None or (job.result is None and not job.is_running and not job.problem):
            return stored
        found = job.to_dict()
        if job.result is None and stored is not None:  # the result before is shown while it is computed again
            found["result"] = stored.get("result")
        return found

    def _read(self, path: Path) -> dict[str, Any] | None:
        """Return a stored result; None unless this user has stored it, in this folder."""
        try:
            about = path.lstat()
            if path in self._stored and self._stored[path][0] == about.st_mtime_ns:
                return self._stored[path][1]
            for folder in (path.parent, path.parent.parent):
                if not stat.S_ISDIR(folder.lstat().st_mode):
                    return None
            signature, _, text = layout.read_inside(path.parent, path.name, MOST_OUTPUT).partition(b"\n")
            if not signing.is_signed(_purpose(path), text, signature.decode("ascii", "replace")):
                return None
            found: dict[str, Any] = json.loads(text)
        except (OSError, ValueError, SurveyError):
            return None
        if found["version"] != VERSION or not isinstance(found["result"], dict):
            return None
        self._stored.clear()  # only one at a time: results may be large
        self._stored[path] = (about.st_mtime_ns, found)
        return found

    async def stop(self, job: Job) -> None:
        """End a job, as Ctrl-C would."""
        job.stopped = True
        process = job.process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(asyncio.shield(process.wait()), GRACE)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        if job.task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await job.task

    async def close(self) -> None:
        """End all jobs."""
        await asyncio.gather(*(self.stop(job) for job in self._jobs.values() if job.is_running))

    async def _run(self, job: Job) -> None:
        began = time.monotonic()
        try:
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                job.process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    self._module,
                    *job.words,
                    stdin=self._stdin,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,  # Ctrl-C in the terminal of the server stops the server, which stops it
                )
                if job.stopped:
                    job.process.terminate()
                job.code = await job.process.wait()
                await asyncio.to_thread(_read_result, job, out, err)
        except OSError as error:
            job.problem = f"The command could not be started: {error.strerror or error}"
        except Exception as error:
            job.problem = f"The result could not be read ({type(error).__name__})."
        job.seconds = time.monotonic() - began
        if job.folder is not None and job.result is not None and job.kind != "crawl":
            with contextlib.suppress(OSError):  # the folder may be read-only: then it is kept in memory
                if await asyncio.to_thread(_store, job):
                    job.result = None

    def _forget(self) -> None:
        ended = [name for name, job in self._jobs.items() if not job.is_running]
        for name in ended[: max(0, len(ended) - REMEMBERED)]:
            del self._jobs[name]


def _path(folder: Path, kind: str) -> Path:
    return folder / "view" / "jobs" / kind


def _purpose(path: Path) -> str:
    """Return what a signature of a result is for: this file of this survey, as the folder may come from elsewhere."""
    survey = path.parent.parent.parent
    return f"job {path.name} {survey.resolve()} {survey.stat().st_ino}"


def _store(job: Job) -> bool:
    """Store a result; return whether it could be signed."""
    if job.folder is None or not job.folder.is_dir():
        return False
    path = _path(job.folder, job.kind)
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(exist_ok=True)
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise NotADirectoryError(20, "not a plain folder", str(folder))
    text = json.dumps(job.to_dict()).encode()
    if not (signature := signing.sign(_purpose(path), text)):
        return False
    with atomic_write(path) as draft:
        draft.write_bytes(signature.encode() + b"\n" + text)
    return True


def _read_result(job: Job, out: IO[bytes], err: IO[bytes]) -> None:
    """Read the JSON of a command, or the sentence and the hint that it printed instead."""
    out.seek(0)
    text = out.read(MOST_OUTPUT + 1)
    if len(text) > MOST_OUTPUT:
        job.problem, job.hint = "The result is too large for a page.", f"run it yourself: {shlex.join(job.command)}"
        return
    with contextlib.suppress(ValueError):
        found = json.loads(text.strip().rpartition(b"\n")[2].decode("utf-8", "replace"))  # its texts may hold line ends
        if isinstance(found, dict):
            job.result = found
            return
    err.seek(0)
    lines = [line.rstrip() for line in err.read(MOST_ERRORS).decode("utf-8", "replace").splitlines() if line.strip()]
    hints = [line.strip().removeprefix("hint: ") for line in lines if line.startswith("  hint: ")]
    printed = [line for line in lines if not line.startswith((" ", "compiling"))]
    if job.stopped or job.code in (-15, 130, 143):
        job.problem = "It was stopped."
        return
    job.problem = printed[-1] if printed else f"It ended with exit code {job.code}."
    job.hint = hints[-1] if hints else f"run it yourself: {shlex.join(job.command)}"
