"""The boundary around all code that interprets what servers send: no response ends a crawl.

Inside it (`links`, `listings`, `charsets`, `robots`, headers, …) an exception is a bug, and unit tests and fuzzers run
there, where it fails them. Outside it a bug must cost one page and not the crawl: `guarded` calls an interpreter, and
an unexpected exception becomes a `Failure`, whose reason is recorded as the outcome of the page (*blocked*). The
traceback goes to the logger `surveyor.parsing`; `log_to` writes it to a file of bounded size for as long as a crawl
runs. Without a handler nothing is printed.

    >>> guarded("https://example.org/", lambda: {}["href"])
    Failure(reason="could not be parsed: KeyError('href')")
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

PREFIX = "could not be parsed"
LONGEST = 200  # characters of a reason
LOG_FILE, LOG_BYTES = "crawl.log", 1_000_000  # one older file of the same size is kept beside it
Result = TypeVar("Result")
Given = ParamSpec("Given")

logging.getLogger("surveyor").addHandler(logging.NullHandler())  # else tracebacks would be printed by default
_LOG = logging.getLogger("surveyor.parsing")


class Failure(NamedTuple):
    """What a response is if its interpreter raised, and why."""

    reason: str


def guarded(
    url: str, interpret: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result | Failure:
    """Interpret what a server sent for a URL; an exception becomes a failure, and its traceback is logged."""
    try:
        return interpret(*args, **kwargs)
    except Exception as error:  # whatever it is: that is what the boundary is for
        return failed(url, error)


def failed(url: str, error: Exception) -> Failure:
    """Log an exception that an interpreter raised, and return it as a failure."""
    _LOG.error("%s %s", url, PREFIX, exc_info=error)
    return failure(_described(error))


def failure(why: str) -> Failure:
    """Return a failure that has no traceback, such as a parser that was stopped."""
    return Failure(f"{PREFIX}: {why}"[:LONGEST])


def _described(error: Exception) -> str:
    try:
        return repr(error)
    except Exception:  # what it was raised with may be the trouble
        return type(error).__name__


class _File(RotatingFileHandler):
    """A log file that is opened only if it is a plain file with one name: a survey may come from elsewhere."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self.baseFilename, flags, 0o644)
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            os.close(descriptor)
            raise FileExistsError(errno.EEXIST, "it is not a plain file, or has another name", self.baseFilename)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), "utf-8", "backslashreplace", write_through=True)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # named by the library
        """Do nothing: a log that cannot be written must not end, or clutter, a crawl."""


@contextmanager
def log_to(folder: Path) -> Iterator[None]:
    """Write what surveyor logs to `crawl.log` in a folder; the file is made with the first message."""
    handler = _File(folder / LOG_FILE, maxBytes=LOG_BYTES, backupCount=1, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("surveyor")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
