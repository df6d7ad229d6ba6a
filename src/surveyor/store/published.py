"""State of a running crawl or watch, published in the survey, and commands for it: the folder `live/`.

    live/state.json   counts, bounds, rates and what is fetched next, replaced about once a second
    live/curve.tsv    pages, seconds, both bounds and the sampled bound, over all runs; at most `MOST_POINTS` rows
    live/commands/    a file per command that was sent and not taken yet

A crawl publishes (`crawler/publishing.py`) and takes commands (`crawler/steering.py`) wherever it was started; any
process that may read the folder can follow it, and any that may write there can steer it. Nothing in the folder counts
for the crawl: it may be deleted at any time, and a file that is damaged, or not a plain file, reads as if there were
none. A survey from elsewhere may hold anything here, so sizes, types and names are checked before use, links are not
followed, and commands that were there before a crawl began are never obeyed.

The end of a process leaves its last state behind. `is_running` therefore asks whether the process of a state exists
(on this machine) and whether the state is recent.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shlex
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from surveyor.errors import SurveyError, UsageError
from surveyor.stopping import parse_rule
from surveyor.store.layout import LIVE, SHARDS, SHARDS_FILE, is_survey, open_inside, read_inside, shard_surveys

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray

STATE, CURVE, COMMANDS, DRAFT = "state.json", "curve.tsv", "commands", "draft"
VERSION = 1
LONGEST_STATE, LONGEST_CURVE, LONGEST_COMMAND = 1_000_000, 1_000_000, 10_000  # bytes
MOST_POINTS = 2_000  # rows of the curve
ENOUGH = 10  # rows below which the curve says little: the crawl took seconds
MOST_COMMANDS = 100  # taken at a time
STALE = 30.0  # seconds after which a state that was not replaced is that of a process that is gone
STALE_HERE = 120.0  # the same if its process exists on this machine: it may be compiling kernels, or hang
TAKING = 10.0  # seconds within which a running crawl takes a command
VERBS = ("pause", "resume", "stop", "goal")
STATUSES = ("running", "paused", "stopping", "ended")
NAME = re.compile(r"\d{20}-[0-9a-f]{8}\.json", re.ASCII)
POLL = 0.1  # seconds


class Command(NamedTuple):
    """A command for a running crawl."""

    id: str
    command: str  # one of VERBS
    value: str = ""  # the stopping rule of `goal`


class Curve(NamedTuple):
    """The growth of the coverage: one entry per point, in the order of time."""

    pages: FloatArray
    seconds: FloatArray  # of crawling, in all runs together
    at_least: FloatArray  # NaN without a link graph
    at_most: FloatArray
    sampled: FloatArray  # NaN while there is no sampled bound


def read(folder: Path | str) -> dict[str, Any] | None:
    """Return the state last published in a survey; None if there is none that is valid."""
    try:
        state = json.loads(_read(Path(folder), STATE, LONGEST_STATE), parse_constant=_reject)
        return state if _is_valid(state) else None
    except (OSError, SurveyError, ValueError, RecursionError):
        return None


def is_running(state: Mapping[str, Any] | None, *, now: float | None = None) -> bool:
    """Return whether the crawl or watch of a state is still running."""
    if state is None or state["status"] == "ended":
        return False
    age = abs((time.time() if now is None else now) - state["written_at"])
    return age <= STALE if state["machine"] != machine() else age <= STALE_HERE and _exists(state["pid"])


def curve(folder: Path | str) -> Curve:
    """Return the growth of the coverage of a survey; empty if none was recorded."""
    import numpy as np

    rows = list(read_points(Path(folder)))
    table = np.array(rows, np.float64).reshape(len(rows), len(Curve._fields))
    return Curve(*(np.ascontiguousarray(column) for column in table.T))


def has_curve(folder: Path | str) -> bool:
    """Return whether the growth of the coverage was recorded at enough points; a crawl of seconds has few."""
    return bool(curve(folder).pages.size >= ENOUGH)


def send(folder: Path | str, command: str, value: str | None = None) -> str:
    """Send a command to the crawl or watch that is running in a survey; return the id of the command.

    `goal` needs a stopping rule as its value. The command is taken within about a second (see `wait_until_taken`).
    """
    folder = Path(folder)
    if command not in VERBS:
        raise UsageError(f"command must be one of {', '.join(VERBS)}, got {command!r}", hint="for example pause")
    if (value is None) == (command == "goal"):
        problem = "goal needs a stopping rule" if value is None else f"{command} takes no value, got {value!r}"
        raise UsageError(problem, hint='for example goal with "coverage=0.9"')
    if value is not None:
        parse_rule(value)
    if not is_survey(folder):
        raise SurveyError(f"{folder} is not a survey", hint="create one with `surveyor crawl URL --out FOLDER`")
    if (folder / SHARDS / SHARDS_FILE).is_file() or shard_surveys(folder):
        raise SurveyError(f"{folder} has shards, and a sharded crawl takes no commands", hint="Ctrl-C stops it")
    if not is_running(read(folder)):
        raise SurveyError(
            f"no crawl or watch is running in {folder}",
            hint=f"`surveyor crawl {shlex.quote(str(folder))}` resumes the crawl",
        )
    name = f"{time.time_ns():020d}-{secrets.token_hex(4)}.json"
    text = json.dumps({"command": command, **({} if value is None else {"value": value})})
    try:
        place = _folder(folder, COMMANDS)
        draft = f".{name}"
        with open_inside(place, draft, "xb") as file:
            file.write(text.encode())
        (place / draft).replace(place / name)
    except OSError as error:
        why = error.strerror or error
        raise SurveyError(
            f"{folder / LIVE / COMMANDS} cannot be written: {why}", hint="only users who may write there can steer it"
        ) from error
    return name


def wait_until_taken(folder: Path | str, sent: str, seconds: float = TAKING) -> dict[str, Any]:
    """Wait until a command is taken; return the state since then. Raise an error if it was refused, or not taken."""
    end = time.monotonic() + seconds
    while True:
        state = read(folder)
        for taken in state["taken"] if state is not None else ():
            if taken["id"] == sent:
                if taken["problem"]:
                    raise UsageError(taken["problem"], hint="the crawl continues as before")
                assert state is not None  # noqa: S101
                return state
        if time.monotonic() >= end or not is_running(state):
            break
        time.sleep(POLL)
    with suppress(OSError, SurveyError):  # it must not be obeyed later, when the user no longer expects it
        (_folder(Path(folder), COMMANDS) / sent).unlink(missing_ok=True)
    if is_running(state):
        raise SurveyError(
            f"the crawl in {folder} did not take the command within {seconds:g} s, and it was withdrawn",
            hint="it may be busy with a large page: repeat the command",
        )
    raise SurveyError(f"the crawl in {folder} has ended", hint="resume it with `surveyor crawl`")


def prepare(folder: Path) -> None:
    """Make the folder ready for a run: create it, and discard commands and drafts that were left there."""
    (folder / LIVE).mkdir(exist_ok=True)
    (_folder(folder) / COMMANDS).mkdir(exist_ok=True)
    place = _folder(folder, COMMANDS)
    with os.scandir(place) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)  # noqa: PTH108  # a link itself, never its target


def write_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Replace the published state; it is not flushed to disk, as nothing depends on it."""
    text = json.dumps(state, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    _replace(folder, STATE, text.encode("utf-8", "replace"))  # a reason may hold bytes that are no UTF-8


def read_points(folder: Path) -> Iterator[tuple[float, ...]]:
    """Yield the rows of the curve up to the first that is damaged."""
    with suppress(OSError, SurveyError, ValueError):
        before = -math.inf
        for line in _read(folder, CURVE, LONGEST_CURVE).decode("ascii").splitlines():
            row = tuple(float(word) if word else math.nan for word in line.split("\t"))
            if len(row) != len(Curve._fields) or not (row[0] >= 0 and before <= row[1] < math.inf):
                return
            before = row[1]
            yield row


def write_points(folder: Path, rows: list[tuple[float, ...]]) -> None:
    """Replace the curve."""
    _replace(folder, CURVE, "".join(map(_row, rows)).encode())


def append_point(folder: Path, row: tuple[float, ...]) -> None:
    """Append a row to the curve."""
    with open_inside(_folder(folder), CURVE, "a+b") as file:
        file.write(_row(row).encode())


def take_commands(folder: Path, stuck: set[str]) -> Iterator[Command | str]:
    """Remove the commands that were sent, and yield them in their order; for a wrong one, yield what is wrong with it.

    Files without the name of a command are ignored, and those that cannot be removed are added to `stuck`, so that they
    are not taken again.
    """
    place = _folder(folder, COMMANDS)
    names = sorted(name for name in os.listdir(place) if NAME.fullmatch(name) and name not in stuck)  # noqa: PTH208
    for name in names[:MOST_COMMANDS]:
        try:
            found = _command(name, read_inside(place, name, LONGEST_COMMAND))
        except (OSError, SurveyError):
            found = f"command {name} is not a plain file of at most {LONGEST_COMMAND:,} bytes: ignored"
        try:
            (place / name).unlink()
        except OSError:
            stuck.add(name)
        yield found


def discard(folder: Path) -> None:
    """Remove what is published about a survey."""
    if not (folder / LIVE).is_symlink():
        shutil.rmtree(folder / LIVE, ignore_errors=True)


def machine() -> str:
    """Return the name of this machine, to which process ids refer."""
    return socket.gethostname()[:255]


def _command(name: str, data: bytes) -> Command | str:
    try:
        found = json.loads(data)
        command, value = found["command"], found.get("value", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return f"command {name} is not valid JSON of a command: ignored"
    if command not in VERBS or not isinstance(value, str) or bool(value) != (command == "goal"):
        return f"command {name} is not one of {', '.join(VERBS)} with its value: ignored"
    return Command(name, command, value)


def _folder(survey: Path, *inner: str) -> Path:
    """Return a published folder; raise OSError if it, or one above it, is a link or no folder."""
    path = survey
    for name in (LIVE, *inner):
        path = path / name
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise NotADirectoryError(20, "not a plain folder", str(path))
    return path


def _read(survey: Path, name: str, longest: int) -> bytes:
    return read_inside(_folder(survey), name, longest)


def _replace(survey: Path, name: str, data: bytes) -> None:
    """Replace a file atomically: readers see the old content or the new one."""
    place = _folder(survey)
    draft = place / DRAFT
    draft.unlink(missing_ok=True)  # of a process that was killed; the only writer is the one with the lock
    with open_inside(place, DRAFT, "xb") as file:
        file.write(data)
    draft.replace(place / name)


def _row(values: tuple[float, ...]) -> str:
    return "\t".join("" if math.isnan(value) else f"{value:.10g}" for value in values) + "\n"


def _exists(pid: int) -> bool:
    """Return whether there is a process; on Windows that is not known without risk to it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


LONGEST_TEXT = 20_000  # of a URL or a message
LARGEST = 2.0**53  # of a number: readers format it, and may multiply it
SLACK = 1e-6  # of a share, which is rounded
Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    """Return whether this is text of Unicode: half of a surrogate pair cannot be printed."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _share(value: Any) -> bool:
    return _number(value) and -SLACK <= value <= 1 + SLACK


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _several(check: Check, most: int) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(check, value))


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(_text(name) and _count(number) for name, number in value.items())


def _fields(**checks: Check) -> Check:
    return lambda value: (
        isinstance(value, dict) and all(name in value and check(value[name]) for name, check in checks.items())
    )


_SAMPLED = _fields(at_least=_share, confidence=_share, walks=_count)
_COVERAGE = _fields(
    **dict.fromkeys(("at_least", "at_most", "captured", "moving", "waiting", "blocked", "lost"), _share),
    sampled=_optional(_SAMPLED),
)
FIELDS: Mapping[str, Check] = {
    "version": lambda value: value == VERSION,
    "pid": lambda value: _count(value) and 0 < value < 1 << 31,
    "machine": _text,
    "command": lambda value: value in ("crawl", "watch", "scout"),
    "started_at": _number,
    "written_at": _number,
    "status": lambda value: value in STATUSES,
    "ending": _optional(_text),
    "goal": _text,
    "strategy": _text,
    **dict.fromkeys(("pages", "before", "known", "queued", "requests", "bytes", "hosts", "in_progress"), _count),
    "coverage": _optional(_COVERAGE),
    "blocked": _several(_fields(reason=_text, pages=_count, mass=_number), 1_000),
    "statuses": _counts,
    "http": _counts,
    "rate": _number,
    "left": _optional(_number),
    "best_possible": _optional(_share),
    "next": _several(_fields(url=_text, mass=_number, why=_text), 10),
    "recent": _several(_fields(url=_text, kind=_text, status=_count, seconds=_number, at=_number), 10),
    "hosts_waiting": _several(
        _fields(host=_text, queued=_count, mass=_number, again_in=_number, delay=_number, why=_text), 20
    ),
    "messages": _several(_text, 100),
    "taken": _several(_fields(id=_text, command=_text, value=_text, problem=_text), 100),
    "listening": lambda value: isinstance(value, bool),
}


def _is_valid(state: Any) -> bool:
    return _fields(**FIELDS)(state)
