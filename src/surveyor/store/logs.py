r"""Log files and log formats; records come from loggers under `surveyor`.

    surveyor.parsing    ERROR    an exception of a parser, with its traceback (`web/boundary.py`)
    surveyor.fetch      DEBUG    each fetched, redirected, gone or blocked page; robots.txt files
                        INFO     retries, backoff
                        WARNING  excluded hosts, robots.txt that cannot be fetched, a network that is down
    surveyor.crawler    DEBUG    checkpoints used and saved
                        WARNING  a checkpoint that cannot be saved
    surveyor.store      DEBUG    commits of the journal
                        WARNING  recovery of a damaged journal

A record may have `fields`, a dict of values for programs: `logger.info("…", extra={"fields": {…}})`. URLs, titles and
reasons come from the web: formatters escape control characters, so a record is one line that cannot control a terminal
or imitate another record.

    >>> escape_control("a\n\x1b[31mb")
    'a\\n\\x1b[31mb'
"""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from surveyor.errors import UsageError

LOG_BYTES = 1_000_000  # of a log file, plus one rotated file of the same size
LEVELS = (logging.INFO, logging.DEBUG)  # of -v and -vv
ROOT = logging.getLogger("surveyor")
ROOT.addHandler(logging.NullHandler())  # without a handler, logging would print warnings to stderr


def escape_control(text: str) -> str:
    """Escape all characters that are not printable, including line ends and invalid UTF-8."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


class TextFormatter(logging.Formatter):
    """One line per record: time, level, logger, message; lines of a traceback follow, indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        time = datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S")
        lines = [f"{time} {record.levelname} {record.name}: {escape_control(record.getMessage())}"]
        if record.exc_info:
            lines += [f"    {escape_control(line)}" for line in self.formatException(record.exc_info).split("\n")]
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """One JSON object per record: time (UTC), level, logger, message, and `fields` and `traceback` if there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if fields := getattr(record, "fields", None):
            document["fields"] = fields
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)  # ASCII: control characters are escaped


def _open_regular(path: str, access: int) -> int:
    """Open or create a regular file with one hard link for appending; links are not followed, pipes do not block."""
    with suppress(FileNotFoundError):
        _check_regular(os.lstat(path), path)  # before opening, which may have an effect on a device
    flags = access | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o644)
    try:
        _check_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(info: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise FileExistsError(errno.EEXIST, "it is not a regular file", path)
    if info.st_nlink > 1:
        raise FileExistsError(errno.EEXIST, "it has several hard links", path)


class _SafeFile(RotatingFileHandler):
    """A log file that is opened only if it is a regular file with one hard link: the survey may be untrusted."""

    def _open(self) -> TextIOWrapper:
        return self._stream(_open_regular(self.baseFilename, os.O_WRONLY))

    def _stream(self, descriptor: int) -> TextIOWrapper:
        return TextIOWrapper(os.fdopen(descriptor, "ab"), "utf-8", "backslashreplace", write_through=True)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # name set by logging
        """Do nothing: a log that cannot be written must not end a crawl or print to its terminal."""


@contextmanager
def log_errors_to(path: Path) -> Iterator[None]:
    """Write error records of surveyor to a file of bounded size, which the first record creates."""
    handler = _SafeFile(path, maxBytes=LOG_BYTES, backupCount=1, delay=True)
    handler.setFormatter(TextFormatter())
    handler.setLevel(logging.ERROR)
    with handling(handler):
        yield


class _JsonFile(_SafeFile):
    """The file of `--log-json`: new, empty or a log; after an error it warns once and stops."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        self._path, self._warn, self._failed = path, warn, False
        super().__init__(path)

    def _open(self) -> TextIOWrapper:
        descriptor = _open_regular(self.baseFilename, os.O_RDWR)
        if os.fstat(descriptor).st_size:
            os.lseek(descriptor, 0, os.SEEK_SET)
            if not _is_record(os.read(descriptor, LOG_BYTES).partition(b"\n")[0]):
                os.close(descriptor)
                raise FileExistsError(errno.EEXIST, "it exists and is not a log of surveyor", self._path)
        return self._stream(descriptor)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless an earlier one could not be written."""
        if not self._failed:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  # name set by logging
        """Warn that the log ends here; the command continues."""
        self._fail(sys.exc_info()[1])

    def close(self) -> None:
        """Close the file."""
        try:
            super().close()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: BaseException | None) -> None:
        if not self._failed:
            self._failed = True
            why = getattr(error, "strerror", None) or error
            self._warn(f"--log-json {self._path} cannot be written: {why}; the log ends here")


def _is_record(line: bytes) -> bool:
    """Return whether a line is a record as `JsonFormatter` writes it."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.keys() >= {"time", "level", "logger", "message"}


class _Printer(logging.Handler):
    """Prints records through a function, which keeps them apart from progress displays."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        super().__init__()
        self._print_line = print_line

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        self._print_line(self.format(record))


@contextmanager
def logging_to(
    print_line: Callable[[str], None], warn: Callable[[str], None], verbose: int, log_json: str | None
) -> Iterator[None]:
    """Print log records (`--verbose`) and append them to a JSON lines file (`--log-json`) during the block.

    The file gets records of all levels. If it cannot be written any more, `warn` is called once.
    """
    with ExitStack() as stack:
        if verbose:
            level = LEVELS[min(verbose, len(LEVELS)) - 1]
            printed = _Printer(print_line)
            printed.setFormatter(TextFormatter())
            printed.setLevel(level)
            stack.enter_context(handling(printed, level))
        if log_json is not None:
            written = _json_file(log_json, warn)
            written.setFormatter(JsonFormatter())
            stack.enter_context(handling(written, logging.DEBUG))
        yield


def _json_file(path: str, warn: Callable[[str], None]) -> _JsonFile:
    if path in ("", "-"):
        raise UsageError(f"--log-json must name a file, got {path!r}", hint="use --verbose to print records to stderr")
    try:
        return _JsonFile(path, warn)
    except OSError as error:
        problem = f"--log-json {path} cannot be written: {error.strerror}"
        raise UsageError(problem, hint="name a new file, or an earlier log, in an existing folder") from error


@contextmanager
def handling(handler: logging.Handler, level: int | None = None) -> Iterator[None]:
    """Add a handler to the loggers of surveyor, and lower their level if needed; undo both at the end."""
    before = ROOT.level
    ROOT.addHandler(handler)
    if level is not None and level < ROOT.getEffectiveLevel():
        ROOT.setLevel(level)
    try:
        yield
    finally:
        ROOT.setLevel(before)
        ROOT.removeHandler(handler)
        handler.close()
