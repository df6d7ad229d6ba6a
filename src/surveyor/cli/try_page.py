"""`surveyor try`: preview one page as a crawl would see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options, settings
from surveyor.cli.options import given_options
from surveyor.cli.settings import FETCHING
from surveyor.report.numbers import count, duration, size

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.crawler.preview import Preview, RobotsPreview

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
ENDINGS = {
    "fetched": "A crawl would fetch it",
    "redirected": "A crawl would treat it as an alias of another page",
    "gone": "A crawl would request it a second time, and then record it as gone",
    "blocked": "A crawl would record it as blocked",
}
ROBOTS_STATES = {
    "rules": "",
    "absent": "missing, so every page is allowed",
    "unreachable": "could not be fetched, so no page is allowed",
}


@options.command("try", epilog="\b\nsurveyor try https://docs.example.org/library/ --contact me@example.org")
@click.argument("url", metavar="URL")
@options.top(5, "Links of each kind to list.")
@settings.some_options(*NAMES)
def command(output: Output, *, url: str, top: int, **given: Any) -> int:
    """Preview the page URL as a crawl would see it: robots.txt, redirects, status, type, links.

    Nothing is saved. robots.txt is fetched first and obeyed, and the delay is kept. The exit code is 5 if the page
    could not be fetched. Settings can also be set in surveyor.toml or in SURVEYOR_… environment variables.
    """
    from surveyor.config import load
    from surveyor.crawler.preview import fetch_preview
    from surveyor.fetch.event_loops import run_sync

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


def preview_facts(preview: Preview) -> dict[str, str]:
    """Return the facts of a preview by name."""
    facts = {}
    for robots in preview.robots:
        facts["robots.txt" if len(preview.robots) == 1 else robots.url] = robots_line(robots)
        if robots.crawl_delay is not None:
            facts["Crawl-delay"] = f"{robots.crawl_delay:g} s requested, {robots.delay:g} s applied"
    for number, hop in enumerate(preview.hops, 1):
        if hop.target is not None:
            facts["redirect" if number == 1 else f"redirect {number}"] = f"{hop.status}, {hop.url} -> {hop.target}"
    if preview.hops:
        last = preview.hops[-1]
        status = f"{last.status}" if last.status else "no response"
        facts["status"] = ", ".join(filter(None, [status, last.trouble, duration(last.seconds)]))
        facts["type"] = preview.content_type or "not stated"
        facts["size"] = size(preview.size)
    page = {
        "title": preview.title,
        "language": preview.language,
        "charset": preview.charset,
        "canonical": preview.canonical,
        "directives": ", ".join(preview.directives),
    }
    facts |= {name: text for name, text in page.items() if text}
    facts["scope"] = preview.scope
    if preview.fetched:
        facts["links"] = ", ".join(f"{count(number)} {where}" for where, number in preview.counts().items()) or "none"
    return facts


def robots_line(robots: RobotsPreview) -> str:
    """Return whether robots.txt allows a page, and the deciding line."""
    if robots.state != "rules":
        answer = "" if robots.status is None else f" (status {robots.status})"
        return ROBOTS_STATES[robots.state] + (answer or (f" ({robots.why})" if robots.why else ""))
    verdict = "allows it" if robots.permits else "disallows it"
    if robots.permits and robots.rule.partition(", ")[2].lower().startswith("dis"):
        verdict = "disallows it, overridden by [permission]"
    return f"{verdict} ({robots.rule or 'no matching line'})"


def ending(preview: Preview) -> str:
    """Return the outcome that a crawl would record."""
    words = ENDINGS[preview.kind]
    if preview.kind == "blocked" and preview.again:
        words = "A crawl would retry it a few times, and then record it as blocked"
    return f"{words}: {preview.reason}." if preview.reason else f"{words}."
