"""What a command says: results to stdout, talk to stderr.

Results are text, one JSON object or CSV. Talk is what surrounds them: progress, warnings, next steps.
`--quiet` leaves the data asked for, warnings and errors.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from surveyor.cli.meter import Meter
    from surveyor.graph.csr import Graph
    from surveyor.report.tables import Table

SCHEMA = 1  # of every JSON object printed; raised when a field changes its meaning or goes

Mode = Literal["text", "json", "csv"]


class Output:
    """The voice of one run of a command."""

    def __init__(self, mode: Mode = "text", *, quiet: bool = False, color: bool = True) -> None:
        self.mode, self.quiet, self.color = mode, quiet, color
        self.compiling = 0.0  # seconds spent on compiling kernels, which a second run does not need
        self._meter: Meter | None = None

    def say(self, text: str) -> None:
        """Talk: a line on stderr, unless quiet."""
        if not self.quiet:
            self._err(text)

    def warn(self, text: str) -> None:
        """Warn on stderr, even when quiet."""
        self._err(f"! {text}")

    def caveats(self, graph: Graph) -> None:
        """Warn of lines that were left out, and tell what the reader noted."""
        from surveyor.report.graphs import malformed

        if left_out := malformed(graph):
            self.warn(left_out)
        for note in graph.provenance.get("notes") or []:
            self.say(f"note: {note}")

    def line(self, text: str = "") -> None:
        """Print a line of the result, in text mode."""
        if self.mode == "text":
            from surveyor.report.numbers import printable

            sys.stdout.write(printable(text) + "\n")

    def summary(self, facts: Mapping[str, str]) -> None:
        """Print facts, one a line, as the result of a command that makes something; not when quiet."""
        if not self.quiet:
            self.facts(facts)

    def facts(self, facts: Mapping[str, str]) -> None:
        """Print names and values in two columns, in text mode."""
        width = max(map(len, facts), default=0)
        for name, value in facts.items():
            self.line(f"{name:<{width}}  {value}".rstrip())

    def table(self, table: Table) -> None:
        """Print a table as text or CSV; JSON objects carry their own rows."""
        from surveyor.report import tables

        if self.mode == "csv":
            terminal = sys.stdout.isatty()
            if not terminal and hasattr(sys.stdout, "reconfigure"):
                sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # as --out writes
            tables.write_csv(table, sys.stdout, escape=terminal)
        elif self.mode == "text":
            tables.write_text(table, sys.stdout, rich=sys.stdout.isatty(), color=self.color)

    @property
    def width(self) -> int | None:
        """Columns of the terminal that results go to; None for a pipe or a file."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def object(self, command: str, fields: Mapping[str, Any]) -> None:
        """Print the one JSON object of a command, in JSON mode."""
        if self.mode == "json":
            document = {"schema": SCHEMA, "command": command, **fields}
            sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")

    def next_steps(self, steps: Mapping[str, list[str]]) -> None:
        """Suggest commands that can be copied."""
        if self.mode == "text" and steps:
            width = max(map(len, steps))
            self.say("")
            for why, words in steps.items():
                self.say(f"  {why:<{width}}   {shlex.join(words)}")

    @contextmanager
    def timed(self) -> Iterator[list[float]]:
        """Give a list that holds the seconds the block took, without compiling, when it has ended."""
        seconds: list[float] = []
        began, compiling = time.perf_counter(), self.compiling
        yield seconds
        seconds.append(time.perf_counter() - began - (self.compiling - compiling))

    @contextmanager
    def progress(self) -> Iterator[Meter]:
        """Give a meter that draws on stderr while the block runs."""
        from surveyor.cli.meter import Meter

        self._meter = Meter(sys.stderr, silent=self.quiet, color=self.color)
        try:
            yield self._meter
        finally:
            self._meter.clear()
            self._meter = None

    def _err(self, text: str) -> None:
        from surveyor.report.numbers import printable

        if self._meter is not None:
            self._meter.clear()
        sys.stderr.write("\n".join(printable(line) for line in text.split("\n")) + "\n")
        sys.stderr.flush()
