"""Options shared by several commands, and suggested commands that repeat the options of the current one.

An option has one name, type and meaning in all commands.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
from click.shell_completion import CompletionItem

from surveyor.cli.lazy import SETTINGS
from surveyor.cli.output import Mode, Output

if TYPE_CHECKING:
    from collections.abc import Collection

Function = TypeVar("Function", bound=Callable[..., Any])

#: Names of the graph formats, repeated here so that --help needs no import; a test compares them with the readers.
FORMATS = (
    "surveyor",
    "commoncrawl",
    "snap",
    "tsv",
    "csv",
    "parquet",
    "matrixmarket",
    "npz",
    "graphml",
    "gexf",
    "bvgraph",
    "wat",
)

#: Names of the strategies, repeated here for the same reason; a test compares them with the library.
STRATEGIES = (
    "breadth",
    "rankmass",
    "windowed",
    "sweep",
    "printed",
    "opic",
    "adaptive",
    "tracking",
    "cho",
    "outlinks",
    "random",
    "complement",
    "flow",
    "rounds",
)
#: Values of settings that are text: all of them for `scope`, examples for the others.
SETTING_VALUES = {
    "scope": ("host", "domain", "prefix", "any"),
    "strategy": STRATEGIES,
    "until": ("coverage=0.95", "coverage=0.95@95%", "pages=5000", "requests=10000", "minutes=60", "bytes=1GB"),
    "budget": ("500", "star", "star,score=supp", "star:10-10000@10000"),
}
DANGLING = ("teleport", "uniform")
SHARED = ("json", "csv", "quiet", "verbose", "log_json", "no_color", "debug")
SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
PIPE = re.compile(r"/(dev|proc/self)/(fd/|stdin$)|/proc/\d+/fd/")
#: Options of `options.ranking`.
RANKING = ("damping", "trusted", "teleport", "crawled_only", "dangling", "tolerance", "max_sweeps")


class Whole(click.ParamType[int]):
    """An integer with a minimum."""

    name = "integer"

    def __init__(self, at_least: int) -> None:
        self.at_least = at_least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse an integer."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"must be an integer, got {value!r}.", param, ctx)
        if number < self.at_least:
            self.fail(f"must be at least {self.at_least}, got {number}.", param, ctx)
        return number


def matching(values: Sequence[str], incomplete: str) -> list[CompletionItem]:
    """Return the values with this prefix, for completion."""
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


class Suggested(click.ParamType[str]):
    """Free text with suggested values, which help lists and completion offers."""

    name = "text"

    def __init__(self, *values: str) -> None:
        self.values = values

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the suggested values with this prefix."""
        return matching(self.values, incomplete)


class Amount(click.ParamType[int]):
    """A number such as 20000, 15m, 1.5G or 2GB."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a number with an optional unit prefix."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([\d_]+(?:\.\d+)?(?:e\d+)?)\s*([kmgt]?)i?b?", str(value).strip().lower())
        if match is None:
            self.fail(f"must be an amount such as 20000, 15m or 2GB, got {value!r}.", param, ctx)
        return int(float(match[1]) * SCALES[match[2]])


class Share(click.ParamType[float]):
    """A share such as 0.01 or 1%."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a share."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"must be a share such as 0.01 or 1%, got {value!r}.", param, ctx)


def flag(*names_and_help: str) -> Callable[[Function], Function]:
    """Return an option without a value, by its names and its help."""
    *names, about = names_and_help
    return click.option(*names, is_flag=True, help=about)


def path(name: str, metavar: str, about: str, **settings: Any) -> Callable[[Function], Function]:
    """Return an option whose value is a path."""
    return click.option(name, type=click.Path(), metavar=metavar, help=about, **settings)


class OutOption(click.Option):
    """The option for what a command writes: --out, which may also be written --to or --into."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the help of --out only."""
        aliases, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = aliases


def out(metavar: str, about: str, **settings: Any) -> Callable[[Function], Function]:
    """Return the option --out, whose value is the path of a file or folder to write."""
    names = ("--out", "--to", "--into")
    return click.option(*names, "out", cls=OutOption, type=click.Path(), metavar=metavar, help=about, **settings)


def choice(name: str, values: Sequence[str], about: str, **settings: Any) -> Callable[[Function], Function]:
    """Return an option whose value is one of these."""
    return click.option(name, type=click.Choice(values), help=about, **settings)


def many(name: str, metavar: str, about: str) -> Callable[[Function], Function]:
    """Return an option that may be repeated."""
    return click.option(name, multiple=True, metavar=metavar, help=about)


def whole(name: str, at_least: int, metavar: str, about: str, **settings: Any) -> Callable[[Function], Function]:
    """Return an option whose value is an integer with a minimum."""
    return click.option(name, type=Whole(at_least), metavar=metavar, help=about, **settings)


CSV = flag("--csv", "Print the table as CSV.")
SHARED_OPTIONS = (
    flag("--json", "Print one JSON object (with a schema number)."),
    CSV,
    flag("--quiet", "-q", "Print only results, warnings and errors."),
    click.option(
        "--verbose", "-v", count=True, show_default=False, help="Print log records to stderr: -v INFO, -vv DEBUG."
    ),
    path("--log-json", "FILE", "Append log records of all levels as JSON lines to FILE."),
    flag("--no-color", "No colours (NO_COLOR does the same)."),
    flag("--debug", "Print the traceback of an error."),  # read by `cli.run`
)


def command(
    name: str, *, table: bool = False, kernels: bool = True, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Create a command whose function gets an `Output` first; `table` adds --csv, `kernels` prepares Numba."""

    def make(function: Callable[..., Any]) -> click.Command:
        @stacked(*SHARED_OPTIONS if table else [option for option in SHARED_OPTIONS if option is not CSV])
        @functools.wraps(function)
        def call(**options: Any) -> Any:
            shared = {option: options.pop(option, None) for option in SHARED}
            _check_exclusive(shared, ("json", "csv"), ("quiet", "verbose"))
            mode: Mode = "json" if shared["json"] else "csv" if shared["csv"] else "text"
            output = Output(mode, quiet=bool(shared["quiet"]), color=not shared["no_color"])
            with ExitStack() as stack:
                stack.enter_context(_warnings_to(output))
                if shared["verbose"] or shared["log_json"] is not None:
                    from surveyor.store.logs import logging_to

                    verbose = int(shared["verbose"] or 0)
                    stack.enter_context(logging_to(output.log, output.warn, verbose, shared["log_json"]))
                if kernels:
                    from surveyor.cli import kernel_cache

                    stack.enter_context(kernel_cache.kernels(output))
                return function(output, **options)

        made = click.command(name, click.Command, context_settings=SETTINGS, **settings)(call)
        made.params.sort(key=lambda option: option.name in SHARED)  # shared options come last
        return made

    return make


@contextmanager
def _warnings_to(output: Output) -> Iterator[None]:
    """Print the warnings of the library like those of the command line."""
    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category is UserWarning:
            output.warn(str(message))
        else:
            before(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _check_exclusive(values: dict[str, Any], *pairs: tuple[str, str]) -> None:
    for first, second in pairs:
        if values[first] and values[second]:
            problem = f"--{first} and --{second} exclude each other."
            raise click.UsageError(problem, click.get_current_context())


def stacked(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Combine several options into one decorator, in this order."""

    def apply(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


threads = whole("--threads", 1, "N", "Number of threads.  [all cores]")


def top(default: int, about: str) -> Callable[[Function], Function]:
    """Return the option `--top/-n`, the length of a list."""
    return click.option("--top", "-n", type=Whole(1), default=default, metavar="N", help=about)


def format_option(name: str, what: str) -> Callable[[Function], Function]:
    """Return an option whose value is a graph format."""
    about = f"Format of {what}: {', '.join(FORMATS)}.  [from the file name]"
    return click.option(name, type=click.Choice(FORMATS), metavar="NAME", help=about)


@contextmanager
def input_format_hint(option: str) -> Iterator[None]:
    """Replace --input-format in hints of the library by the option of this command."""
    from surveyor.errors import SurveyorError

    try:
        yield
    except SurveyorError as error:
        error.hint = re.sub(r"(?<!build )--input-format", option, error.hint)
        raise


def check_tolerance(context: click.Context, option: click.Parameter, value: float) -> float:
    """Reject a tolerance of 2 or more, which every ranking meets, and one that none meets."""
    if not 0 < value < 2:
        problem = f"must be above 0 and below 2, the largest possible error; got {value:g}."
        raise click.BadParameter(problem, context, option)
    return value


def examples(*lines: str) -> str:
    """Return the epilog of a help text: example commands."""
    return "\b\n" + "\n".join(lines)


cluster = click.option(
    "--cluster",
    type=Suggested("local:2", "auto"),
    metavar="WHERE",
    help="Ray cluster: auto, HOST:PORT, or local:2 for two workers on this machine.  [none]",
)

graph_argument = click.argument("graph", type=click.Path(), metavar="GRAPH|SURVEY")

#: Options of a ranking; the names are those of `pagerank`.
ranking = stacked(
    click.option(
        "--tolerance",
        type=float,
        default=1e-6,
        metavar="ERROR",
        callback=check_tolerance,
        help="Maximum proven L1 error of all shares together.",
    ),
    click.option(
        "--damping", type=float, metavar="D", help="Probability of following a link.  [0.85, or that of the survey]"
    ),
    path(
        "--trusted", "FILE", "Teleport only to these pages: names, or ids as #3, one per line, with weights after them."
    ),
    choice("--teleport", ("seeds", "uniform"), "Target of random jumps.  [seeds in a survey, uniform in a graph]"),
    flag("--crawled-only", "In a survey, rank only fetched pages."),
    choice("--dangling", DANGLING, "Where the rank of pages without links goes.", default=DANGLING[0]),
    whole("--max-sweeps", 1, "N", "Stop after this many sweeps, with exit code 3.", default=1000),
    threads,
)


def current_command(*more: str, without: Collection[str] = ()) -> list[str]:
    """Return the current command line with more words, and without some of its flags."""
    program, *words = command_line()
    return [program, *(_reusable(word) for word in words if word not in without), *more]


def command_line() -> list[str]:
    """Return the current command line as it was typed."""
    return ["surveyor", *(click.get_current_context().obj or ())]


def _reusable(word: str) -> str:
    """Return an argument in a form that works later; a pipe such as `<(command)` does not exist any more then."""
    name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{name}{equals}FILE" if PIPE.match(value) else word


def given_options(names: Collection[str]) -> list[str]:
    """Return those of the named options that are set on the command line, as words."""
    context = click.get_current_context()
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        if not isinstance(option, click.Option) or name not in names or not given:
            continue
        flag, value = option.opts[0], context.params[name]
        if option.is_flag:
            words += [flag] if value else option.secondary_opts[:1]
            continue
        for one in value if option.multiple else [value]:
            words += [flag, *(_reusable(str(part)) for part in (one if option.nargs > 1 else [one]))]
    return words
