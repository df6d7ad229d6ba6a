"""`surveyor try`: preview one page as a crawl would see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options, settings
from surveyor.cli.suggestions import FETCHING, given_options

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.crawler.preview import Preview

NAMES = (
    "contact",
    "scope",
    "include",
    "exclude",
    "depth",
    "delay",
    "allow",
    "follow_nofollow",
    "timeout",
    "max_bytes",
    "proxy",
    "ca_file",
)


@options.command("try", epilog="\b\nsurveyor try https://docs.example.org/library/ --contact me@example.org")
@click.argument("url", metavar="URL")
@options.top(5, "Links of each kind to list.")
@settings.some_options(*NAMES)
def command(output: Output, *, url: str, top: int, **given: Any) -> int:
    """Preview the page URL as a crawl would see it: robots.txt, redirects, status, type, links.

    Nothing is saved. robots.txt is fetched first and obeyed, and the delay is kept. The exit code is 5 if the page
    could not be fetched. Settings can also be set in surveyor.toml or in SURVEYOR_… variables.
    """
    from surveyor.config import load
    from surveyor.crawler.preview import fetch_preview
    from surveyor.fetch.http import run_sync
    from surveyor.report.previews import ending, preview_facts

    flags = {name: value for name, value in given.items() if value is not None and value != ()}
    chosen = settings.with_contact(output, load(flags)[0])
    found = run_sync(fetch_preview(url, chosen, say=output.info))
    output.object("try", found.to_dict())
    output.line(found.final)
    output.facts(preview_facts(found))
    show_links(output, found, top)
    output.line()
    output.line(ending(found))
    advise(output, found)
    return 0 if found.fetched else 5


def show_links(output: Output, found: Preview, number: int) -> None:
    """Print some links of each kind."""
    for kind in ("in scope", "out of scope", "nofollow"):
        links = [link for link in found.links if link.where == kind]
        if not links:
            continue
        output.line()
        output.line(f"{kind}:")
        for link in links[:number]:
            output.line(f"  {link.url}" + (f"  ({link.why})" if link.why else ""))
        if len(links) > number:
            output.line(f"  and {len(links) - number:,} more")


def advise(output: Output, found: Preview) -> None:
    """Print the next steps."""
    target = found.hops[-1].target if found.hops else None
    if found.fetched:
        output.next_steps({"crawl from here": ["surveyor", "crawl", found.final, *given_options(FETCHING)]})
    elif target is not None:
        output.next_steps({"its redirect target": ["surveyor", "try", target, *given_options(FETCHING)]})
    elif not found.hops or found.hops[-1].status is None:
        from surveyor.survey.crawl import advice

        output.info(f"  hint: {advice(found.reason)}")
