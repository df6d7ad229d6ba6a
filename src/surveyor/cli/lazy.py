"""The commands by name. A command's module is imported when it runs, so that `--help` is instant."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from surveyor import __version__

Table = dict[str, tuple[str, str]]  # name -> (module or module:function, one line of help)

GROUPS: dict[str, Table] = {  # commands that have commands
    "graph": {
        "build": ("graph:build", "Build a graph folder from a file of links, a survey or a synthetic web."),
        "info": ("graph:info", "Show pages, links, degrees, size and source of a graph."),
        "convert": ("graph:convert", "Convert a graph to another format."),
        "condense": ("graph:condense", "Condense a graph or survey to its hosts or domains."),
    },
    "topic": {
        "train": ("topic:train", "Train a topic classifier from pages on and off topic."),
        "test": ("topic:test", "Count the pages on topic in a survey or in files, and compare with labels."),
    },
    "config": {
        "show": ("config_commands:show", "Show every setting here, or in a survey, and its origin."),
        "list": (
            "config_commands:list_settings",
            "List all settings: kind, default, meaning, flag, variable, example.",
        ),
        "trust": ("config_commands:trust", "Trust the settings file of this folder, or a survey."),
    },
}
COMMANDS: Table = {
    "crawl": ("crawl", "Fetch pages in order of importance; `surveyor URL` does the same."),
    "status": ("status", "Say how much of what matters a survey holds; `surveyor SURVEY` does the same."),
    "graph": ("", "Build, inspect, convert and condense link graphs."),
    "rank": ("rank", "Rank the pages of a survey or graph, with a proven error."),
    "top": ("top", "List the best pages."),
    "domains": ("domains", "List the domains that deserve trust, and how many pages each may take."),
    "community": ("community", "Estimate the global rank of local pages from few pages around them."),
    "sample": ("sample", "Sample the pages on a topic by random walks, and estimate shares and means over them."),
    "topic": ("", "Train and test topic classifiers for samples."),
    "explain": ("explain", "Show where the score of a page comes from."),
    "report": ("report", "Write a survey as one HTML file, to keep or to send."),
    "sql": ("sql", "Query the pages, links, ranks and visits of a survey."),
    "diff": ("diff", "Say what changed between two surveys."),
    "export": ("export", "Write a survey for other programs: Parquet, CSV, JSON lines, GEXF, GraphML, CDXJ."),
    "try": ("try_page", "Look at one page as a crawl would, without a crawl."),
    "simulate": ("simulate", "Race crawling strategies over a known graph."),
    "demo": ("demo", "Crawl a small web on this machine, be killed, go on, compare with the truth."),
    "init": ("init", "Write a surveyor.toml, so that `surveyor crawl` needs no options."),
    "config": ("", "Show settings, and where each came from."),
    "doctor": ("doctor", "Check this installation."),
    "completion": ("completion", "Print the completion script of a shell."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and help line, and imports one when it runs."""

    def __init__(self, table: Table, **settings: Any) -> None:
        super().__init__(**settings)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if name not in self.table:
            return None
        if self.table is COMMANDS and name in GROUPS:
            return group(name)
        module, _, function = self.table[name][0].partition(":")
        command: click.Command = getattr(import_module(f"surveyor.cli.{module}"), function or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may be meant."""
        if self.table is COMMANDS and (meant := implied_command(args[0])):
            args = [meant, *args]
        if args[0] not in self.table and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.table, 1)
            guess = f" Did you mean {near[0]}?" if near else f" There are {', '.join(self.table)}."
            raise click.UsageError(f"No command {args[0]}.{guess}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader that has seen enough (`| head`) ends it in silence."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  # open until exit: the last flush goes there
            return 0
        return result


def implied_command(word: str) -> str:
    """Return the command implied by a first argument that is not one: `crawl` for a URL, `status` for a survey."""
    if word in COMMANDS or word.startswith("-"):
        return ""
    if "://" in word:
        return "crawl"
    from surveyor.store import layout

    if layout.is_survey(word) or word.rstrip("/").endswith(".survey"):  # no host has such a name
        return "status"
    looks_like_host = "." in word.partition("/")[0].strip(".") and not Path(word).exists()
    return "crawl" if looks_like_host else ""


def group(name: str) -> LazyGroup:
    """Make a command that has commands."""
    return LazyGroup(
        GROUPS[name],
        name=name,
        context_settings=SETTINGS,
        no_args_is_help=False,
        invoke_without_command=True,
        help=COMMANDS[name][1],
        callback=_help_when_alone,
    )


def _help_when_alone() -> None:
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

surveyor = LazyGroup(
    COMMANDS,
    name="surveyor",
    context_settings=SETTINGS,
    no_args_is_help=False,
    invoke_without_command=True,
    help="Crawl the part of the web that matters, know how much of it you have, and rank it.",
    epilog="Try it: surveyor demo. A URL alone is crawled, a survey alone is looked at.",
)
surveyor.callback = _help_when_alone
click.version_option(__version__, prog_name="surveyor", message="%(prog)s %(version)s")(surveyor)
