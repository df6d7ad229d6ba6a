"""A page as a crawl would see it, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.report.numbers import count, duration, size

if TYPE_CHECKING:
    from surveyor.crawler.preview import Preview, RobotsPreview

ENDINGS = {
    "fetched": "A crawl would read it",
    "redirected": "A crawl would take it for another page",
    "gone": "A crawl would ask a second time, and then take it to be gone",
    "blocked": "A crawl could not read it",
}
ROBOTS_STATES = {
    "rules": "",
    "absent": "there is none, so all may be read",
    "unreachable": "it could not be read, so nothing else may be",
}


def preview_facts(preview: Preview) -> dict[str, str]:
    """Return what was found, a line for each fact."""
    facts = {}
    for robots in preview.robots:
        facts["robots.txt" if len(preview.robots) == 1 else robots.url] = robots_line(robots)
        if robots.crawl_delay is not None:
            facts["Crawl-delay"] = f"{robots.crawl_delay:g} s asked for, {robots.delay:g} s kept"
    for number, hop in enumerate(preview.hops, 1):
        if hop.target is not None:
            facts["redirect" if number == 1 else f"redirect {number}"] = f"{hop.status}, {hop.url} -> {hop.target}"
    if preview.hops:
        last = preview.hops[-1]
        status = f"{last.status}" if last.status else "no answer"
        facts["status"] = ", ".join(filter(None, [status, last.trouble, duration(last.seconds)]))
        facts["type"] = preview.content_type or "not said"
        facts["size"] = size(preview.size)
    page = {
        "title": preview.title, "language": preview.language, "charset": preview.charset,
        "canonical": preview.canonical, "asks for": ", ".join(preview.directives),
    }  # fmt: skip
    facts |= {name: text for name, text in page.items() if text}
    facts["scope"] = preview.scope
    if preview.fetched:
        facts["links"] = ", ".join(f"{count(number)} {where}" for where, number in preview.counts().items()) or "none"
    return facts


def robots_line(robots: RobotsPreview) -> str:
    """Say whether a page may be read, and which line decides."""
    if robots.state != "rules":
        answer = "" if robots.status is None else f" (status {robots.status})"
        return ROBOTS_STATES[robots.state] + (answer or (f" ({robots.why})" if robots.why else ""))
    verdict = "allows it" if robots.permits else "disallows it"
    if robots.permits and robots.rule.partition(", ")[2].lower().startswith("dis"):
        verdict = "disallows it, but it is yours by [permission]"
    return f"{verdict} ({robots.rule or 'no line speaks of it'})"


def ending(preview: Preview) -> str:
    """Say what a crawl would make of the page."""
    words = ENDINGS[preview.kind]
    if preview.kind == "blocked" and preview.again:
        words = "A crawl would try it again a few times, and then leave it"
    return f"{words}: {preview.reason}." if preview.reason else f"{words}."
