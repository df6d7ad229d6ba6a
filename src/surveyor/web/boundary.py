"""Exception boundary around all code that parses server responses: no response ends a crawl.

Inside the boundary (`html`, `sitemaps`, `charsets`, `robots`, headers, …) an exception is a bug. Unit tests and fuzzers
call that code directly, so an exception fails them. In a crawl, a bug costs one page: `guarded` calls a parser and
turns an unexpected exception into a `Failure`, whose reason is recorded as the outcome of the page (*blocked*). The
traceback goes to the logger `surveyor.parsing`; a crawl writes it to a log file (`store/logs.py`).

    >>> guarded("https://example.org/", lambda: {}["href"])
    Failure(reason="could not be parsed: KeyError('href')")
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

PREFIX = "could not be parsed"
LONGEST = 200  # maximum characters of a reason
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
