"""The error of a crawl that fetched nothing: the first reason, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.errors import NothingFetched
from surveyor.urls import host

if TYPE_CHECKING:
    from surveyor.crawling.survey import Survey


def nothing_fetched(survey: Survey) -> NothingFetched:
    """Return the error: why the first seed that failed could not be fetched."""
    failed = {url: visit.reason for _, url, visit in survey.pages() if visit is not None}
    seeds = survey.manifest.seeds
    first = next((seed for seed in seeds if seed in failed), seeds[0])
    why = failed.get(first) or "there was no answer before the crawl ended"
    problem = why if why.startswith(host(first)) else f"{first}: {why}"
    others = f"All {len(seeds)} seeds failed" if len(seeds) > 1 else "Other seeds: none"
    return NothingFetched(f"{problem}.", hint=f"{advice(why)} {others}, so nothing was fetched.")


def advice(reason: str) -> str:
    """Return what to do about a page that could not be fetched."""
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
