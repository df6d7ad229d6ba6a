"""Rules about links: broken and redirected targets, missing fragments, resources loaded by http."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from surveyor.check.findings import MOST_SOURCES, Finding, Source, template_of
from surveyor.check.page_facts import NOT_LOADED, is_place
from surveyor.check.site import Site
from surveyor.web.javascript import NEEDS_JAVASCRIPT
from surveyor.web.urls import domain, host


def finding(site: Site, rule: str, url: str, message: str, sources: list[Source], *, subject: str = "") -> Finding:
    """Return a fault on several pages, with the most important ones."""
    pages = dict.fromkeys(source.url for source in sources)
    weight = site.weight(site.number[page] for page in pages)
    listed = tuple(sources[:MOST_SOURCES])
    return Finding(rule, url, message, weight, listed, len(pages), template_of(sources), subject=subject)


def broken_and_redirected(site: Site) -> Iterator[Finding]:
    """Find links to pages that do not exist, fail or redirect."""
    faults: dict[int, tuple[str, str]] = {}
    for page, visit in enumerate(site.last):
        if visit is None:
            continue
        if rule := site.problem(page):
            faults[page] = rule, visit.reason
        elif visit.kind == "redirected" and (hops := site.hops(page)):
            end = site.urls[hops[-1]]
            if rule := site.problem(hops[-1]):
                last = site.last[hops[-1]]
                faults[page] = rule, f"redirects to {end}: {last.reason if last else ''}"
            elif len(hops) > 1:
                way = " → ".join(site.urls[hop] for hop in hops)
                faults[page] = "redirect-chain", f"{len(hops)} redirects: {way}"
            else:
                faults[page] = "redirected-link", f"redirects to {end}"
    sources = site.links_to(faults)
    for page, (rule, message) in faults.items():
        if page in sources:
            yield finding(site, rule, site.urls[page], message, sources[page])


def missing_fragments(site: Site) -> Iterator[Finding]:
    """Find links to places that their target pages do not have."""
    sources: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for page, facts in site.facts.items():
        if not site.is_fetched(page):
            continue
        for url, fragment in facts.fragments:
            target = site.number.get(url)
            if target is not None:
                sources[target, fragment].append(page)
    for (target, fragment), pages in sources.items():
        end = site.hops(target)[-1] if site.hops(target) else target
        visit, there = site.last[end], site.facts.get(end)
        if visit is None or there is None or not there.is_html or visit.reason == NEEDS_JAVASCRIPT:
            continue
        if end in site.incomplete:  # the place may be in the part that is missing
            continue
        if not is_place(there, fragment):
            found = sorted(map(site.page_source, pages), key=lambda source: (-source.share, source.url))
            message = f"{site.urls[end]} has no element with the id {fragment!r}"
            yield finding(site, "missing-fragment", f"{site.urls[target]}#{fragment}", message, found)


def insecure(site: Site) -> Iterator[Finding]:
    """Find resources of http on pages of https, and links to http pages of the same site."""
    mixed: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for page, facts in site.facts.items():
        if site.urls[page].startswith("https:") and site.is_fetched(page):
            for kind, url in facts.resources:
                if url.startswith("http:") and kind not in NOT_LOADED:
                    mixed[kind, url].append(page)
    for (kind, url), pages in mixed.items():
        found = sorted(map(site.page_source, pages), key=lambda source: (-source.share, source.url))
        yield finding(site, "mixed-content", url, f"{kind} loaded by http", found, subject=f"{kind} {url}")
    secure = {domain(host(url)) for page, _ in site.fetched() if (url := site.urls[page]).startswith("https:")}
    plain = [
        page for page, url in enumerate(site.urls) if url.startswith("http:") and secure and domain(host(url)) in secure
    ]
    sources = site.links_to(plain) if plain else {}
    for page, every in sources.items():
        from_secure = [source for source in every if source.url.startswith("https:")]
        if from_secure:
            yield finding(site, "insecure-link", site.urls[page], "links from https to http", from_secure)
