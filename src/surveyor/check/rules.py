"""The table of rules: id, severity, what a fault is, why it matters, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal, NamedTuple, cast, get_args

from surveyor.errors import UsageError

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # most severe first
OFF = "off"  # in place of a severity in the settings


class Rule(NamedTuple):
    """One rule of an audit."""

    id: str
    severity: Severity
    what: str
    why: str
    fix: str
    needs_bodies: bool = False  # read from the archived bodies of pages
    needs_requests: str = ""  # the option that requests what it needs
    needs_complete: bool = False  # judged only if no page is left that may hold a link


_LINKS = (
    Rule(
        "broken-link",
        "error",
        "A link leads to a page that does not exist.",
        "Readers reach an error page, and the link passes no importance.",
        "Correct or remove the link, or redirect the old URL.",
    ),
    Rule(
        "failing-link",
        "error",
        "A link leads to a page that could not be fetched: an error of the server, or no answer.",
        "Readers reach an error page now; it may be temporary.",
        "Repair the page, then crawl again with --again.",
    ),
    Rule(
        "redirect-loop",
        "error",
        "A link leads to redirects in a circle, or to more than 20 of them.",
        "No browser shows the page.",
        "Correct the redirects of the server.",
    ),
    Rule(
        "redirect-chain",
        "warning",
        "A link leads through two or more redirects.",
        "Each redirect costs the reader a round trip; search engines follow only a few.",
        "Link to the final URL, and let the first redirect lead there.",
    ),
    Rule(
        "redirected-link",
        "note",
        "A link leads to a redirect.",
        "It costs the reader a round trip, and breaks when the redirect is removed.",
        "Link to the target of the redirect.",
    ),
    Rule(
        "missing-fragment",
        "warning",
        "A link names a place (#fragment) that its target page does not have.",
        "Readers arrive at the top of the page instead of the place.",
        "Correct the fragment, or add the id to the target.",
        needs_bodies=True,
    ),
    Rule(
        "insecure-link",
        "note",
        "A page of https links to http pages of the same site.",
        "The request can be read and changed on its way.",
        "Link to https.",
        needs_bodies=True,
    ),
    Rule(
        "external-broken",
        "error",
        "A link leads to a page of another site that does not exist or does not answer.",
        "Readers reach an error page.",
        "Correct or remove the link.",
        needs_requests="--external",
    ),
    Rule(
        "broken-resource",
        "error",
        "An image, style sheet or script does not exist.",
        "The page is displayed incompletely.",
        "Correct the URL, or add the file.",
        needs_bodies=True,
        needs_requests="--resources",
    ),
    Rule(
        "certificate-expiry",
        "error",
        "The TLS certificate of a host of the site has expired, or expires within 21 days.",
        "Browsers then refuse the whole site.",
        "Renew the certificate; automate the renewal.",
        needs_requests="--certificates",
    ),
    Rule(
        "mixed-content",
        "error",
        "A page of https loads an image, style sheet, script or frame by http.",
        "Browsers block scripts and styles of http, and warn about the page.",
        "Load it by https.",
        needs_bodies=True,
    ),
)
_INDEXING = (
    Rule(
        "orphan",
        "warning",
        "A listed page that no link leads to.",
        "Readers do not find it, and it has no importance.",
        "Link to it from a related page, or remove it from the sitemap.",
        needs_complete=True,
    ),
    Rule(
        "sitemap-error",
        "warning",
        "A sitemap lists a page that is gone, redirected, not to be indexed, or a duplicate, or cannot be read.",
        "Search engines trust a sitemap less, the more wrong entries it has.",
        "Remove the entry, or list the final URL; repair a sitemap that cannot be read.",
    ),
    Rule(
        "canonical-conflict",
        "warning",
        "The canonical URL of a page is broken, redirected, not to be indexed, or named twice differently.",
        "Search engines choose a URL themselves.",
        "Name one canonical URL that can be fetched and names itself.",
        needs_bodies=True,
    ),
    Rule(
        "linked-noindex",
        "note",
        "Pages link to a page that asks not to be indexed.",
        "Importance is passed to a page that search engines do not show.",
        "Remove noindex, or the links, if the page matters.",
        needs_bodies=True,
    ),
    Rule(
        "hreflang-return",
        "warning",
        "A page names a translation that does not name it in return.",
        "Search engines ignore pairs of hreflang without a return link.",
        "Add the return link, or correct the URL.",
        needs_bodies=True,
    ),
)
_CONTENT = (
    Rule(
        "missing-title",
        "warning",
        "A page has no title.",
        "Search results and tabs show the URL instead.",
        "Add a title that names the content.",
        needs_bodies=True,
    ),
    Rule(
        "duplicate-title",
        "warning",
        "Several pages have the same title.",
        "Readers cannot distinguish them in search results.",
        "Give each page a title of its own.",
        needs_bodies=True,
    ),
    Rule(
        "missing-description",
        "note",
        "A page has no description.",
        "Search engines show an arbitrary passage.",
        "Add <meta name=description> with a sentence or two.",
        needs_bodies=True,
    ),
    Rule(
        "duplicate-description",
        "note",
        "Several pages have the same description.",
        "It says nothing about the single page.",
        "Describe each page by itself, or remove the description.",
        needs_bodies=True,
    ),
    Rule(
        "missing-heading",
        "note",
        "A page has no first-level heading.",
        "Screen readers and readers who skim use it to find the content.",
        "Add one <h1>.",
        needs_bodies=True,
    ),
    Rule(
        "near-duplicate",
        "note",
        "Several pages have nearly the same text.",
        "They compete with each other in search results.",
        "Merge them, or name one of them as canonical.",
        needs_bodies=True,
    ),
    Rule(
        "thin-page",
        "note",
        "A page has fewer than 20 words.",
        "Readers find nothing there.",
        "Add content, merge it with another page, or ask not to index it.",
        needs_bodies=True,
    ),
    Rule(
        "deep-page",
        "warning",
        "An important page is more than four links from the start.",
        "Readers and search engines reach it late.",
        "Link to it from a page nearer to the start.",
    ),
    Rule(
        "slow-page",
        "warning",
        "A page took more than two seconds to load.",
        "Readers leave.",
        "Cache it, or make the server faster.",
    ),
    Rule(
        "heavy-page",
        "warning",
        "The HTML of a page is larger than 1 MB as transferred.",
        "It loads slowly on mobile connections.",
        "Split the page, or compress it.",
    ),
    Rule(
        "needs-javascript",
        "warning",
        "A page is empty until a script has run.",
        "Crawlers and readers without scripts see nothing.",
        "Render the content on the server.",
    ),
)
RULES: dict[str, Rule] = {rule.id: rule for rule in (*_LINKS, *_INDEXING, *_CONTENT)}


def selected(
    only: Iterable[str] = (), without: Iterable[str] = (), switched: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Rule]:
    """Return the rules to apply, all if `only` is empty; `switched` has *off* or a severity by rule.

    A rule in `only` applies even if it is switched off.

    >>> rules = selected(switched={"thin-page": "off", "orphan": "error"})
    >>> "thin-page" in rules, rules["orphan"].severity
    (False, 'error')
    """
    only, without = [*only], [*without]
    for name in (*only, *without, *switched):
        if name not in RULES:
            near = get_close_matches(name, RULES, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(RULES)}"
            raise UsageError(f"there is no rule {name!r}", hint=hint)
    chosen = only or [name for name in RULES if switched.get(name) != OFF]
    return {
        name: rule._replace(severity=cast("Severity", value)) if (value := switched.get(name, OFF)) != OFF else rule
        for name, rule in RULES.items()
        if name in chosen and name not in without
    }


def at_least(severity: Severity) -> frozenset[Severity]:
    """Return the severities that are at least this one.

    >>> sorted(at_least("warning"))
    ['error', 'warning']
    """
    return frozenset(SEVERITIES[: SEVERITIES.index(severity) + 1])
