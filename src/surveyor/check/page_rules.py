"""Rules about pages: what search engines and readers find on them, and how they are reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from surveyor.check.findings import Finding, Source
from surveyor.check.link_rules import finding
from surveyor.check.page_facts import PageFacts
from surveyor.check.site import Site
from surveyor.crawler.replay import listed_in_scope
from surveyor.outcome import Visit
from surveyor.web.javascript import NEEDS_JAVASCRIPT
from surveyor.web.near_duplicates import groups

DEEP = 4  # links from the nearest seed: more are deep
IMPORTANT = 0.25  # share of the fetched pages that count as important
SLOW = 2.0  # seconds
HEAVY = 1_000_000  # bytes as transferred
THIN = 20  # words: fewer are thin
MOST_NAMED = 3  # pages of a group in its message


def indexed(site: Site) -> Iterator[tuple[int, Visit, PageFacts]]:
    """Yield the fetched HTML pages that may be indexed and do not need a script."""
    for page, visit in site.fetched():
        facts = site.facts.get(page)
        if facts is not None and facts.is_html and not facts.noindex and visit.reason != NEEDS_JAVASCRIPT:
            yield page, visit, facts


def single(site: Site, rule: str, page: int, message: str) -> Finding:
    """Return a fault of one page."""
    source = site.page_source(page)
    return Finding(rule, source.url, message, source.share, (source,))


def texts(site: Site) -> Iterator[Finding]:
    """Find missing and repeated titles and descriptions, missing headings, thin and repeated content."""
    every = [*indexed(site)]
    whole = [(page, facts) for page, _, facts in every if page not in site.incomplete]
    for page, facts in whole:
        if not facts.title:
            yield single(site, "missing-title", page, "no title")
        if not facts.description:
            yield single(site, "missing-description", page, "no description")
        if not facts.has_heading:
            yield single(site, "missing-heading", page, "no first-level heading")
        if facts.words < THIN:
            yield single(site, "thin-page", page, f"{facts.words} word{'s' * (facts.words != 1)} of text")
    yield from _repeated(site, "duplicate-title", "title", {page: facts.title for page, _, facts in every})
    described = {page: facts.description for page, _, facts in every}
    yield from _repeated(site, "duplicate-description", "description", described)
    long = sorted((site.urls[page], page) for page, facts in whole if facts.sketch.size)
    for members in groups([site.facts[page].sketch for _, page in long]):  # the same ones in every crawl of the site
        pages = [long[member][1] for member in members]
        yield _group(site, "near-duplicate", pages, "nearly the same text", site.urls[pages[0]])


def _repeated(site: Site, rule: str, what: str, texts: dict[int, str]) -> Iterator[Finding]:
    pages: defaultdict[str, list[int]] = defaultdict(list)
    for page, text in texts.items():
        if text:
            pages[text.casefold()].append(page)
    for text, same in pages.items():
        if len(same) > 1:
            yield _group(site, rule, same, f"the {what} “{texts[same[0]][:100]}”", text)


def _group(site: Site, rule: str, pages: list[int], what: str, subject: str) -> Finding:
    """Return a fault that several pages share; it is reported for the most important of them."""
    sources = sorted(map(site.page_source, pages), key=lambda source: (-source.share, source.url))
    more = f" and {len(sources) - MOST_NAMED} more" if len(sources) > MOST_NAMED else ""
    named = ", ".join(source.url for source in sources[1:MOST_NAMED])
    message = f"{len(sources)} pages have {what}: also {named}{more}"
    return finding(site, rule, sources[0].url, message, sources, subject=subject)


def delivery(site: Site) -> Iterator[Finding]:
    """Find slow and heavy pages, pages that need JavaScript, and important pages that are deep."""
    for page, visit in site.fetched():
        if visit.seconds > SLOW:
            yield single(site, "slow-page", page, f"{visit.seconds:.1f} s to load")
        if visit.size > HEAVY:
            yield single(site, "heavy-page", page, f"{visit.size / 1e6:.1f} MB as transferred")
        if visit.reason == NEEDS_JAVASCRIPT:
            yield single(site, "needs-javascript", page, "empty until a script has run")
    pages = np.array([page for page, _ in site.fetched()], np.int64)
    if pages.size:
        least = np.quantile(site.shares[pages], 1 - IMPORTANT)
        for page in pages[(site.depths[pages] > DEEP) & (site.shares[pages] >= least)].tolist():
            yield single(site, "deep-page", page, f"{site.depths[page]} links from the start")


def canonicals(site: Site) -> Iterator[Finding]:
    """Find canonical URLs that contradict each other or lead nowhere."""
    for page, facts in site.facts.items():
        if len(facts.canonicals) > 1:
            yield single(site, "canonical-conflict", page, f"names {', '.join(facts.canonicals[:3])} as canonical")
            continue
        named = facts.canonicals[0] if facts.canonicals else site.urls[page]
        goal = site.number.get(named)
        if goal is None and site.is_fetched(page) and site.is_asked(named):
            yield single(site, "canonical-conflict", page, f"its canonical URL {named} cannot be fetched")
        if goal is None or goal == page:
            continue
        if message := _conflict(site, page, goal):
            yield single(site, "canonical-conflict", page, f"its canonical URL {site.urls[goal]} {message}")


def _conflict(site: Site, page: int, goal: int) -> str:
    """Return what is wrong with a canonical page; empty if nothing is."""
    visit, facts = site.last[goal], site.facts.get(goal)
    if visit is None:
        return ""
    if problem := site.problem(goal):
        return f"cannot be fetched ({visit.reason or problem})"
    if site.hops(goal):
        return f"redirects to {site.urls[site.hops(goal)[-1]]}"
    if facts is None:
        return ""
    if facts.noindex:
        return "asks not to be indexed"
    further = site.number.get(facts.canonicals[0]) if len(facts.canonicals) == 1 else None
    if further is not None and further != goal:
        return "names this page as canonical" if further == page else f"names {site.urls[further]} as canonical"
    return ""


def noindex(site: Site) -> Iterator[Finding]:
    """Find links to pages that ask not to be indexed."""
    pages = [page for page, facts in site.facts.items() if facts.noindex and site.is_fetched(page)]
    for page, sources in site.links_to(pages).items():
        yield finding(site, "linked-noindex", site.urls[page], "asks not to be indexed", sources)


def translations(site: Site) -> Iterator[Finding]:
    """Find translations that do not name the page in return."""
    for page, facts in site.facts.items():
        missing = []
        for language, url in facts.hreflang:
            other = site.number.get(url)
            there = None if other is None or other == page else site.facts.get(other)
            if there is None or not there.is_html or other in site.incomplete:
                continue
            if site.urls[page] not in {back for _, back in there.hreflang}:
                missing.append(f"{url} ({language})")
        if missing:
            yield single(site, "hreflang-return", page, f"not named in return by {', '.join(missing[:3])}")


def listed(site: Site) -> Iterator[Finding]:
    """Find wrong entries of sitemaps, and sitemaps that cannot be read."""
    for url, why in site.unread_sitemaps.items():
        yield Finding("sitemap-error", url, f"cannot be read: {why}", 0.0, (Source(url),))
    for url in listed_in_scope(site.survey.manifest):
        page = site.number.get(url)
        visit = None if page is None else site.last[page]
        if page is None or visit is None:
            continue
        facts = site.facts.get(page)
        message = ""
        if site.problem(page):
            message = f"listed, but {visit.reason}"
        elif visit.kind == "redirected":
            verb = "redirects to" if site.hops(page) else "names as canonical"
            message = f"listed, but {verb} {site.urls[int(site.end_of(np.array([page]))[0])]}"
        elif facts is not None and facts.noindex:
            message = "listed, but asks not to be indexed"
        if message:
            yield single(site, "sitemap-error", page, message)


def orphans(site: Site) -> Iterator[Finding]:
    """Find listed pages that no link leads to."""
    unread = site.unlinked.not_followed
    more = f"; not read: {unread:,} that only nofollow links lead to" if unread else ""
    for page in site.unlinked.pages:
        url = site.urls[page]
        yield Finding("orphan", url, f"no links lead to it from the start{more}", 0.0, (Source(url),))
