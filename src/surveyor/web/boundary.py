"""Exception boundary around all code that parses server responses: no response ends a crawl.

Inside the boundary (`html`, `sitemaps`, `charsets`, `robots`, headers, …) an exception is a bug. Unit tests and fuzzers
call that code directly, so an exception fails them. In a crawl, a bug costs one page: `guarded` calls a parser and
turns an unexpected exception into a `Failure`, whose reason is recorded as the outcome of the page (*blocked*). The
traceback goes to the logger `surveyor.parsing`. During a crawl `log_to` writes it to a file of bounded size. Without a
handler nothing is printed.

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
LONGEST = 200  # maximum characters of a reason
LOG_BYTES = 1_000_000  # of a log file, plus one rotated file of the same size
Result = TypeVar("Result")
Given = ParamSpec("Given")

logging.getLogger("surveyor").addHandler(logging.NullHandler())  # otherwise logging prints tracebacks by default
_LOG = logging.getLogger("surveyor.parsing")


class Failure(NamedTuple):
    """The result of a parser that raised, with the reason."""

    reason: str


def guarded(
    url: str, interpret: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result | Failure:
    """Call a parser for the response of a URL; log an exception and return it as a `Failure`."""
    try:
        return interpret(*args, **kwargs)
    except Exception as error:  # the boundary catches every exception
        return failed(url, error)


def failed(url: str, error: Exception) -> Failure:
    """Log an exception that a parser raised and return it as a failure."""
    _LOG.error("%s %s", url, PREFIX, exc_info=error)
    return failure(_described(error))


def failure(why: str) -> Failure:
    """Return a failure without a traceback, such as a parser that was stopped."""
    return Failure(f"{PREFIX}: {why}"[:LONGEST])


def _described(error: Exception) -> str:
    try:
        return repr(error)
    except Exception:  # the repr of its arguments may raise
        return type(error).__name__


class _File(RotatingFileHandler):
    """A log file that is opened only if it is a regular file with one hard link: the survey may be untrusted."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self.baseFilename, flags, 0o644)
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            os.close(descriptor)
            raise FileExistsError(errno.EEXIST, "it is not a plain file, or has another name", self.baseFilename)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), "utf-8", "backslashreplace", write_through=True)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # name set by logging
        """Do nothing: a log that cannot be written must not end a crawl or print to its terminal."""


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Write log records of surveyor to a file, which the first record creates."""
    handler = _File(path, maxBytes=LOG_BYTES, backupCount=1, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("surveyor")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
