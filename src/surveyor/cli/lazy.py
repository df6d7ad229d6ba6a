"""The commands by name; the module of a command is imported when it runs, so that `--help` is fast."""

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

GROUPS: dict[str, Table] = {  # commands with subcommands
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
    "scout": ("scout", "Estimate shares, size and cost of a crawl from a few hundred fetches."),
    "watch": ("watch", "Keep a survey fresh: re-visit its pages when they are due, within a daily budget."),
    "status": ("status", "Show the coverage of a survey; `surveyor SURVEY` does the same."),
    "graph": ("", "Build, inspect, convert and condense link graphs."),
    "rank": ("rank", "Rank the pages of a survey or graph, with a proven error."),
    "top": ("rank:list_top", "List the top pages."),
    "domains": ("domains", "Rank domains by reputation, and assign page budgets."),
    "community": ("community", "Estimate the global rank of the pages of a site from a few pages around it."),
    "sample": ("sample", "Sample the pages on a topic by random walks, and estimate shares and means over them."),
    "topic": ("", "Train and test topic classifiers for `surveyor sample`."),
    "explain": ("explain", "Show the links that the score of a page comes from, or the status of a URL."),
    "report": ("report", "Write the report of a survey as one HTML file."),
    "sql": ("sql", "Query the pages, links, ranks and visits of a survey."),
    "diff": ("diff", "Show the differences between two surveys, or since a time."),
    "export": ("export", "Export a survey as Parquet, CSV, JSON lines, GEXF, GraphML or CDXJ."),
    "try": ("try_page", "Preview how a crawl would fetch one page."),
    "simulate": ("simulate", "Compare crawl strategies on a known graph."),
    "demo": ("demo", "Crawl a synthetic web on this machine, kill and resume it, compare with the ground truth."),
    "init": ("config_commands:init", "Write a surveyor.toml, so that `surveyor crawl` needs no options."),
    "config": ("", "Show settings and their origins."),
    "doctor": ("doctor", "Check the installation, or the integrity of a survey or graph."),
    "completion": ("doctor:completion", "Print the completion script of a shell."),
}


class LazyGroup(click.Group):
    """A group with names and help lines of its commands, which are imported when they run."""

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
        """Find the command, or raise UsageError with the most similar one."""
        if self.table is COMMANDS and (meant := implied_command(args[0])):
            args = [meant, *args]
        if args[0] not in self.table and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.table, 1)
            guess = f" Did you mean {near[0]}?" if near else f" Commands: {', '.join(self.table)}."
            raise click.UsageError(f"There is no command {args[0]}.{guess}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; end silently if stdout is closed (`| head`)."""
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
    """Return a command with subcommands."""
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


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}

surveyor = LazyGroup(
    COMMANDS,
    name="surveyor",
    context_settings=SETTINGS,
    no_args_is_help=False,
    invoke_without_command=True,
    help="Crawl the web in order of importance with certified coverage, rank it, sample it.",
    epilog="Try it: surveyor demo. `surveyor URL` crawls, `surveyor SURVEY` shows the status.",
)
surveyor.callback = _help_when_alone
click.version_option(__version__, prog_name="surveyor", message="%(prog)s %(version)s")(surveyor)
