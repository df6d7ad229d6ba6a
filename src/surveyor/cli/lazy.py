"""The commands by name; the module of a command is imported when it runs, so that `--help` is fast."""

from __future__ import annotations

import os
import re
import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from surveyor import __version__

LOCAL = re.compile(r"localhost(:\d+)?(/|\?|$)|\[[0-9a-fA-F:.]+\](:\d+)?(/|\?|$)", re.IGNORECASE)
Table = dict[str, tuple[str, str]]  # name -> (module or module:function, one line of help)

GROUPS: dict[str, Table] = {  # commands with subcommands
    "graph": {
        "build": ("graph:build", "Build a graph folder from a file of links, a survey or a synthetic web."),
        "split": ("pieces:split", "Split a graph into pieces, for ranking on several machines."),
        "info": ("graph:info", "Show pages, links, degrees, size and source of a graph."),
        "convert": ("graph:convert", "Convert a graph to another format."),
        "condense": ("graph:condense", "Condense a graph or survey to its hosts or domains."),
    },
    "cluster": {
        "doctor": ("cluster:doctor", "Check versions, memory, disks and clocks of the machines of a cluster."),
        "reshard": ("reshard:command", "Divide a survey into another number of shards, or join its shards."),
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
    "steer": ("steer", "Pause, resume or stop a running crawl or watch, or change the goal of a crawl."),
    "graph": ("", "Build, inspect, convert and condense link graphs."),
    "rank": ("rank", "Rank the pages of a survey or graph, with a proven error."),
    "top": ("rank:list_top", "List the top pages."),
    "domains": ("domains", "Rank domains by reputation, and assign page budgets."),
    "community": ("community", "Estimate the global rank of the pages of a site from a few pages around it."),
    "sample": ("sample", "Sample the pages on a topic by random walks, and estimate shares and means over them."),
    "cluster": ("", "Check a Ray cluster; divide surveys into shards."),
    "topic": ("", "Train and test topic classifiers for `surveyor sample`."),
    "check": ("check", "Report what to fix on a site, most important first."),
    "explain": ("explain", "Show the links that the score of a page comes from, or the status of a URL."),
    "report": ("report", "Write the report of a survey as one HTML file."),
    "serve": ("serve", "Serve a page over surveys: start, follow and steer crawls, and look into them."),
    "mcp": ("mcp", "Offer surveys to agents, over the Model Context Protocol; crawl within limits if allowed."),
    "search": ("search", "Search the pages of a survey by words and importance."),
    "sql": ("sql", "Query the pages, links, ranks and visits of a survey."),
    "diff": ("diff", "Show the differences between two surveys, or since a time."),
    "export": ("export", "Export a survey as tables, texts, a sitemap, a graph or an index of its archive."),
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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line whose options may come before the command, the URL or the survey."""
        if self.table is COMMANDS and args and args[0].startswith("-"):
            args = self._command_first(ctx, args)
        return super().parse_args(ctx, args)

    def _command_first(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the options before a command, a URL or a survey behind it."""
        for place, word in enumerate(args):
            implied = "" if word.startswith("-") else implied_command(word)
            command = None if word.startswith("-") else self.get_command(ctx, implied or word)
            if isinstance(command, LazyGroup):
                inner = command.get_command(ctx, args[place + 1]) if place + 1 < len(args) else None
                if inner is not None and _are_options(inner, args[:place]):
                    return [word, args[place + 1], *args[:place], *args[place + 2 :]]
            elif command is not None and _are_options(command, args[:place]):
                return [*([implied] if implied else []), word, *args[:place], *args[place + 1 :]]
        return args

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


def _are_options(command: click.Command, words: list[str]) -> bool:
    """Return whether words are options of a command with their values; an unknown option may have one."""
    takes_value = {
        name: isinstance(option, click.Option) and not option.is_flag and not option.count
        for option in command.params
        for name in (*option.opts, *option.secondary_opts)
    }
    left = list(words)
    while left:
        name, equals, _ = left.pop(0).partition("=")
        if not name.startswith("-"):
            return False
        if equals or not left:
            if not equals and takes_value.get(name):
                return False
        elif takes_value.get(name, not left[0].startswith("-")):
            left.pop(0)
    return True


def implied_command(word: str) -> str:
    """Return the command implied by a first argument that is not one: `crawl` for a URL, `status` for a survey."""
    if word in COMMANDS or word.startswith("-"):
        return ""
    if "://" in word:
        return "crawl"
    from surveyor.store import layout

    if layout.is_survey(word) or word.rstrip("/").endswith(".survey"):  # no host has such a name
        return "status"
    if LOCAL.match(word):
        return "crawl"
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
