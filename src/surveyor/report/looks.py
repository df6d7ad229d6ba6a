"""A page as a crawl would see it, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.report.numbers import count, duration, size

if TYPE_CHECKING:
    from surveyor.crawler.preview import Look, RobotsLook

ENDINGS = {
    "read": "A crawl would read it",
    "moved": "A crawl would take it for another page",
    "gone": "A crawl would ask a second time, and then take it to be gone",
    "blocked": "A crawl could not read it",
}
STANDINGS = {
    "rules": "",
    "absent": "there is none, so all may be read",
    "unreachable": "it could not be read, so nothing else may be",
}


def look_facts(look: Look) -> dict[str, str]:
    """Return what was found, a line for each fact."""
    facts = {}
    for robots in look.robots:
        facts["robots.txt" if len(look.robots) == 1 else robots.url] = robots_line(robots)
        if robots.crawl_delay is not None:
            facts["Crawl-delay"] = f"{robots.crawl_delay:g} s asked for, {robots.delay:g} s kept"
    for number, hop in enumerate(look.hops, 1):
        if hop.target is not None:
            facts["redirect" if number == 1 else f"redirect {number}"] = f"{hop.status}, {hop.url} -> {hop.target}"
    if look.hops:
        last = look.hops[-1]
        status = f"{last.status}" if last.status else "no answer"
        facts["status"] = ", ".join(filter(None, [status, last.trouble, duration(last.seconds)]))
        facts["type"] = look.content_type or "not said"
        facts["size"] = size(look.size)
    page = {
        "title": look.title, "language": look.language, "charset": look.charset, "canonical": look.canonical,
        "asks for": ", ".join(look.wishes),
    }  # fmt: skip
    facts |= {name: text for name, text in page.items() if text}
    facts["scope"] = look.scope
    if look.fetched:
        facts["links"] = ", ".join(f"{count(number)} {where}" for where, number in look.counts().items()) or "none"
    return facts


def robots_line(robots: RobotsLook) -> str:
    """Say whether a page may be read, and which line decides."""
    if robots.standing != "rules":
        answer = "" if robots.status is None else f" (status {robots.status})"
        return STANDINGS[robots.standing] + (answer or (f" ({robots.why})" if robots.why else ""))
    verdict = "allows it" if robots.permits else "disallows it"
    if robots.permits and robots.rule.partition(", ")[2].lower().startswith("dis"):
        verdict = "disallows it, but it is yours by [permission]"
    return f"{verdict} ({robots.rule or 'no line speaks of it'})"


def ending(look: Look) -> str:
    """Say what a crawl would make of the page."""
    words = ENDINGS[look.kind]
    if look.kind == "blocked" and look.again:
        words = "A crawl would try it again a few times, and then leave it"
    return f"{words}: {look.reason}." if look.reason else f"{words}."
