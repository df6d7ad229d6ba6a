"""Log options of every command: `--verbose` prints log records to stderr, `--log-json FILE` writes them to a file."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from surveyor.errors import UsageError
from surveyor.store.logs import JsonFormatter, TextFormatter, handling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.cli.output import Output

LEVELS = (logging.INFO, logging.DEBUG)  # of -v and -vv


class _StderrHandler(logging.Handler):
    """Prints records between progress displays."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        self._output.log(self.format(record))


@contextmanager
def logging_to(output: Output, verbose: int, log_json: str | None) -> Iterator[None]:
    """Send log records to stderr and to a JSON lines file during the block.

    The file gets records of all levels, and is appended to if it exists.
    """
    with ExitStack() as stack:
        if verbose:
            level = LEVELS[min(verbose, len(LEVELS)) - 1]
            printed = _StderrHandler(output)
            printed.setFormatter(TextFormatter())
            printed.setLevel(level)
            stack.enter_context(handling(printed, level))
        if log_json is not None:
            try:
                written = logging.FileHandler(log_json, encoding="ascii")
            except OSError as error:
                problem = f"--log-json {log_json} cannot be written: {error.strerror}"
                raise UsageError(problem, hint="name a file in an existing folder") from error
            written.setFormatter(JsonFormatter())
            stack.enter_context(handling(written, logging.DEBUG))
        yield
