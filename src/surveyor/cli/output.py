"""Output of a command: results to stdout, messages to stderr.

Results are text, one JSON object or CSV. Messages are progress, warnings and suggested commands. With `--quiet` only
results, warnings and errors are printed.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from surveyor.cli.progress import ProgressMeter
    from surveyor.graph.csr import Graph
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.report.tables import Table

SCHEMA = 3  # of every JSON object; increased when a field is removed or changes its meaning

Mode = Literal["text", "json", "csv"]


class Output:
    """Output of one run of a command."""

    def __init__(self, mode: Mode = "text", *, quiet: bool = False, color: bool = True) -> None:
        self.mode, self.quiet, self.color = mode, quiet, color
        self.compiling = 0.0  # seconds spent on compiling kernels, which a second run does not need
        self._meter: ProgressMeter | None = None

    def info(self, *texts: str) -> None:
        """Print messages to stderr, unless quiet."""
        for text in () if self.quiet else texts:
            self._err(text)

    def warn(self, *texts: str) -> None:
        """Print warnings to stderr, even when quiet."""
        for text in texts:
            self._err(f"! {text}")

    def log(self, text: str) -> None:
        """Print a log record, whose text is escaped already, to stderr."""
        self._print(text)

    def graph_notes(self, graph: Graph | Pieces) -> None:
        """Warn of malformed lines, and print the notes of the reader."""
        from surveyor.report.graphs import malformed

        if left_out := malformed(graph):
            self.warn(left_out)
        for note in graph.provenance.get("notes") or []:
            self.info(f"note: {note}")

    def line(self, text: str = "") -> None:
        """Print a line of the result, in text mode."""
        if self.mode == "text":
            from surveyor.report.numbers import printable

            sys.stdout.write(printable(text) + "\n")

    def lines(self, texts: Iterable[str]) -> None:
        """Print lines of the result, in text mode."""
        for text in texts:
            self.line(text)

    def paragraphs(self, texts: Iterable[str]) -> None:
        """Print lines of the result, wrapped to the terminal, in text mode."""
        for text in texts:
            self.lines(wrap(text, self.width, subsequent_indent="  ") if self.width else [text])

    def summary(self, facts: Mapping[str, str]) -> None:
        """Print names and values as the result of a command that writes files, unless quiet."""
        if not self.quiet:
            self.facts(facts)

    def facts(self, facts: Mapping[str, str]) -> None:
        """Print names and values in two columns, in text mode."""
        width = max(map(len, facts), default=0)
        for name, value in facts.items():
            self.line(f"{name:<{width}}  {value}".rstrip())

    def table(self, table: Table) -> None:
        """Print a table as text or CSV; JSON objects have their own rows."""
        from surveyor.report import tables

        if self.mode == "csv":
            tables.write_csv(table, self.stream(), escape=sys.stdout.isatty())
        elif self.mode == "text":
            tables.write_text(table, sys.stdout, rich=sys.stdout.isatty(), color=self.color)

    def stream(self) -> TextIO:
        """Return stdout for a file format: a pipe gets the bytes that --out writes."""
        if not sys.stdout.isatty() and hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
        return sys.stdout

    @property
    def width(self) -> int | None:
        """Width of the terminal on stdout; None for a pipe or a file."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def object(self, command: str, fields: Mapping[str, Any]) -> None:
        """Print the JSON object of a command, in JSON mode."""
        if self.mode == "json":
            document = {"schema": SCHEMA, "command": command, **fields}
            sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")

    def next_steps(self, steps: Mapping[str, list[str]]) -> None:
        """Print suggested commands with their purposes."""
        if self.mode == "text" and steps:
            width = max(map(len, steps))
            self.info("")
            for why, words in steps.items():
                self.info(f"  {why:<{width}}   {shlex.join(words)}")

    @contextmanager
    def timed(self) -> Iterator[list[float]]:
        """Yield a list that contains the seconds of the block, without compiling, when it has ended."""
        seconds: list[float] = []
        began, compiling = time.perf_counter(), self.compiling
        yield seconds
        seconds.append(time.perf_counter() - began - (self.compiling - compiling))

    @contextmanager
    def progress(self) -> Iterator[ProgressMeter]:
        """Yield a progress meter that draws on stderr during the block."""
        from surveyor.cli.progress import ProgressMeter

        self._meter = ProgressMeter(sys.stderr, silent=self.quiet, color=self.color)
        try:
            yield self._meter
        finally:
            self._meter.clear()
            self._meter = None

    def _err(self, text: str) -> None:
        from surveyor.report.numbers import printable

        self._print("\n".join(printable(line) for line in text.split("\n")))

    def _print(self, text: str) -> None:
        if self._meter is not None:
            self._meter.clear()
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
