"""Options that several commands share, so that a word means the same everywhere."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from surveyor.cli.lazy import SETTINGS
from surveyor.cli.output import Mode, Output

Function = TypeVar("Function", bound=Callable[..., Any])

#: Names of the graph formats, kept here so that help needs no import; a test compares them with the readers.
FORMATS = (
    "surveyor", "commoncrawl", "snap", "tsv", "csv", "parquet", "matrixmarket", "npz", "graphml", "gexf",
    "bvgraph",
)  # fmt: skip

DANGLING = ("teleport", "uniform")
SHARED = ("json", "csv", "quiet", "no_color", "debug")
SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class Whole(click.ParamType[int]):
    """A whole number that is not too small."""

    name = "integer"

    def __init__(self, at_least: int) -> None:
        self.at_least = at_least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        if number < self.at_least:
            self.fail(f"{number} is below {self.at_least}.", param, ctx)
        return number


class Amount(click.ParamType[int]):
    """A number such as 20000, 15m, 1.5G or 2GB."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number with an optional scale."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([\d_]+(?:\.\d+)?(?:e\d+)?)\s*([kmgt]?)i?b?", str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is not an amount; write 20000, 15m or 2GB.", param, ctx)
        return int(float(match[1]) * SCALES[match[2]])


class Share(click.ParamType[float]):
    """A share such as 0.01 or 1%."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a share."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{value!r} is not a share; write 0.01 or 1%.", param, ctx)


def command(
    name: str, *, table: bool = False, kernels: bool = True, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command whose function gets an `Output` first; `table` adds --csv, `kernels` allows Numba."""

    def make(function: Callable[..., Any]) -> click.Command:
        @functools.wraps(function)
        def call(*, json: bool, quiet: bool, no_color: bool, debug: bool, **options: Any) -> Any:  # noqa: ARG001  # run() reads --debug
            csv = options.pop("csv", False)
            if json and csv:
                raise click.UsageError("--json and --csv exclude each other.", click.get_current_context())
            mode: Mode = "json" if json else "csv" if csv else "text"
            output = Output(mode, quiet=quiet, color=not no_color)
            if not kernels:
                return function(output, **options)
            from surveyor.cli import kernel_cache

            with kernel_cache.kernels(output):
                return function(output, **options)

        shared = [
            click.option("--json", is_flag=True, help="Print one JSON object (with a schema number)."),
            *([click.option("--csv", is_flag=True, help="Print the table as CSV.")] if table else []),
            click.option("--quiet", "-q", is_flag=True, help="Print only the data asked for, and errors."),
            click.option("--no-color", is_flag=True, help="No colours (NO_COLOR does the same)."),
            click.option("--debug", is_flag=True, help="Show where an error arose."),
        ]
        decorated = stacked(*shared)(call)
        made = click.command(name, click.Command, context_settings=SETTINGS, **settings)(decorated)
        made.params.sort(key=lambda option: option.name in SHARED)  # what all commands share comes last
        return made

    return make


def stacked(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Apply several options as one, in the order given."""

    def apply(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


threads = click.option("--threads", type=Whole(1), metavar="N", help="Threads.  [all cores]")


def top(default: int, about: str) -> Callable[[Function], Function]:
    """Return the option `--top/-n`, the length of a list."""
    return click.option("--top", "-n", type=Whole(1), default=default, show_default=True, metavar="N", help=about)


def format_option(name: str, what: str) -> Callable[[Function], Function]:
    """Make an option that names a graph format."""
    about = f"Format of {what}; see below.  [by its name]"
    return click.option(name, type=click.Choice(FORMATS), metavar="NAME", help=about)


@contextmanager
def format_means(option: str) -> Iterator[None]:
    """Replace --input-format in hints of the library by the option of this command."""
    from surveyor.errors import SurveyorError

    try:
        yield
    except SurveyorError as error:
        error.hint = re.sub(r"(?<!build )--input-format", option, error.hint)
        raise


def below_two(context: click.Context, option: click.Parameter, value: float) -> float:
    """Refuse a tolerance that any ranking meets."""
    if not value < 2:
        raise click.BadParameter(f"{value:g} is not below 2, and no two rankings differ by more.", context, option)
    return value


def examples(*lines: str) -> str:
    """Make the end of a help text: formats, then lines to copy."""
    return "\b\n" + "\n".join(["Formats: " + ", ".join(FORMATS), *lines])


graph_argument = click.argument("graph", type=click.Path(), metavar="GRAPH|SURVEY")

#: How to rank; the names are those of `pagerank`.
ranking = stacked(
    click.option("--tolerance", type=float, default=1e-6, show_default=True, metavar="ERROR", callback=below_two,
                 help="Proven error wanted, in total over all pages."),
    click.option("--damping", type=float, metavar="D",
                 help="Probability of following a link.  [0.85, or that of the survey]"),
    click.option("--trusted", type=click.Path(), metavar="FILE",
                 help="Jump only to these pages: names, or ids as #3, one a line."),
    click.option("--teleport", type=click.Choice(("seeds", "uniform")),
                 help="Where jumps go.  [to the seeds of a survey; in a graph, anywhere]"),
    click.option("--crawled-only", is_flag=True, help="Of a survey, only the pages that were read."),
    click.option("--dangling", type=click.Choice(DANGLING), default=DANGLING[0], show_default=True,
                 help="Where the rank of pages without links goes."),
    click.option("--max-sweeps", type=Whole(1), default=1000, show_default=True, metavar="N",
                 help="Give up after so many sweeps, with exit code 3."),
    threads,
)  # fmt: skip
