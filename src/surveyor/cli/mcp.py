"""`surveyor mcp`: surveys for agents, over the Model Context Protocol."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output

SCOPES = ("prefix", "host", "domain", "any")
PAGES, MINUTES = 1_000, 60.0
LIMITS = ("max_pages", "max_minutes", "scope", "out")


@options.command(
    "mcp",
    kernels=False,
    epilog="\b\nsurveyor mcp docs.example.org.survey\nsurveyor mcp --allow-crawl --max-pages 500 --out surveys",
)
@click.argument("surveys", nargs=-1, type=click.Path(), metavar="[SURVEY]...")
@options.flag("--allow-crawl", "Also offer tools that crawl, within the limits below.")
@options.whole("--max-pages", 1, "N", f"Most pages of all crawls of this server together.  [{PAGES:,}]")
@click.option(
    "--max-minutes",
    type=click.FloatRange(0.05, 10_080),
    metavar="M",
    help=f"Most minutes of all crawls of this server together.  [{MINUTES:g}]",
)
@options.choice("--scope", SCOPES, "Widest scope of a crawl.  [host]")
@options.out("DIR", "Folder for the surveys of crawls.  [the working folder]")
def command(
    output: Output,
    *,
    surveys: tuple[str, ...],
    allow_crawl: bool,
    max_pages: int | None,
    max_minutes: float | None,
    scope: str | None,
    out: str | None,
) -> int:
    """Offer SURVEY... (surveys, or folders of them) to a client of the Model Context Protocol, over stdin and stdout.

    The client starts this command. Its tools list and explain pages, bounds, blocked pages and findings; they only
    read, and no other survey or file. With --allow-crawl it can also crawl: politely, as `surveyor crawl` with your
    settings, never in a private network unless you allow it there, and within your limits. The server ends with its
    client, and saves the crawl that it has started.
    """
    from surveyor.errors import MissingExtra, UsageError

    for package in ("mcp", "mcp_types"):  # the second: version 2 or newer
        if find_spec(package) is None:
            raise MissingExtra("surveyor mcp", "mcp", "mcp")
    if output.mode != "text":
        raise UsageError("surveyor mcp has no --json: stdout is for the protocol, which is JSON", hint="leave it out")
    given = [
        name for name, value in zip(LIMITS, (max_pages, max_minutes, scope, out), strict=True) if value is not None
    ]
    if given and not allow_crawl:
        raise UsageError(f"--{given[0].replace('_', '-')} needs --allow-crawl", hint="without it nothing is crawled")
    if not surveys and not allow_crawl:
        raise UsageError("no survey is named", hint="`surveyor mcp SURVEY`, or --allow-crawl to begin without any")
    from surveyor.integrations.mcp.crawling import Limits
    from surveyor.integrations.mcp.server import run

    limits = None
    if allow_crawl:
        from surveyor.config import load

        if not load()[0].contact:
            hint = "set contact in the settings: `surveyor init`, or SURVEYOR_CONTACT=you@example.org"
            raise UsageError("--allow-crawl needs a contact, which sites see with every request", hint=hint)
        home = Path(out or ".")
        if not home.is_dir():
            raise UsageError(f"{home} is not a folder", hint="create it, or name another one with --out")
        limits = Limits(pages=max_pages or PAGES, minutes=max_minutes or MINUTES, scope=scope or "host", home=home)
    if sys.stdin.isatty():
        output.info("A client of the Model Context Protocol starts this command; Ctrl-D ends it.")
    return run(surveys, limits)
