"""Text of a page preview: facts, the verdict of robots.txt, and the outcome in a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.report.numbers import count, duration, size

if TYPE_CHECKING:
    from surveyor.crawler.preview import Preview, RobotsPreview

ENDINGS = {
    "fetched": "A crawl would fetch it",
    "redirected": "A crawl would treat it as an alias of another page",
    "gone": "A crawl would request it a second time, and then record it as gone",
    "blocked": "A crawl would record it as blocked",
}
ROBOTS_STATES = {
    "rules": "",
    "absent": "missing, so every page is allowed",
    "unreachable": "it could not be fetched, so no page is allowed",
}


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
