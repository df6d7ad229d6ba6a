"""The error of a crawl that fetched nothing: the first reason, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.errors import NothingFetched
from surveyor.fetch.responses import LEFT
from surveyor.web.urls import host

if TYPE_CHECKING:
    from surveyor.survey.survey import Survey

NOT_TRIED = "it was not fetched before the crawl ended"


def nothing_fetched(survey: Survey) -> NothingFetched:
    """Return the error: why the first seed that was requested, or its redirect target, could not be fetched."""
    pages = {page: (url, visit) for page, url, visit in survey.pages()}
    tried = {url: page for page, (url, visit) in pages.items() if visit is not None}
    seeds = survey.manifest.seeds
    first = next((seed for seed in seeds if seed in tried), seeds[0])
    page = tried.get(first)
    url, visit = pages[page] if page is not None else (first, None)
    met = {page}
    while visit is not None and visit.kind == "redirected" and visit.target in pages and visit.target not in met:
        met.add(visit.target)
        url, visit = pages[visit.target]
    why = NOT_TRIED if visit is None else visit.reason or "it redirects in a circle"
    if visit is not None and why == LEFT and visit.out_of_scope.size and int(visit.out_of_scope[0]) in pages:
        why = f"redirects to {pages[int(visit.out_of_scope[0])][0]}, out of the scope"
    problem = why if why.startswith(host(url)) else f"{url}: {why}"
    by = f" ({first} redirects there)" if url != first else ""
    others = f"All {len(seeds)} seeds failed" if len(seeds) > 1 else "Other seeds: none"
    return NothingFetched(f"{problem}{by}.", hint=f"{advice(why)} {others}, so nothing was fetched.")


def advice(reason: str) -> str:
    """Return what to do about a page that could not be fetched."""
    if reason == NOT_TRIED:
        return "Allow more by --until."
    if reason.endswith("out of the scope"):
        return "Start from there, or choose another --scope."
    if "redirects" in reason:
        return "Check the address in a browser; start from the page it shows."
    if "no such host" in reason:
        return "Check the spelling."
    if reason.startswith("robots.txt could not be read"):
        return "Without its robots.txt nothing of a site may be read; try again later."
    if reason.startswith("robots"):
        return "The site does not want to be crawled there; start elsewhere, or ask its owner."
    if "ertificate" in reason or "SSL" in reason:
        return "Check the certificate; --ca-file trusts one of your own."
    if "address" in reason:
        return "--allow HOST permits a host in a private network."
    return "Try again later, or check the address in a browser."
