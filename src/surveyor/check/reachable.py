"""Listed pages that no link leads to, for a reader: one who follows every link of the pages that were read.

A crawl gives no importance to a page by links marked nofollow, links out of scope and links of a page that names
another one as canonical. A reader follows them all the same. Pages of the site that the settings leave out (`exclude`,
`include`, `depth`) may hold links, too, and are counted by the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, IntArray
from surveyor.crawler.replay import scope_of
from surveyor.fetch.responses import LEFT
from surveyor.store.tabular import LISTS, last_read
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import read_page
from surveyor.web.urls import domain, host

if TYPE_CHECKING:
    from surveyor.check.site import Site

LEFT_OUT = ("excluded by ", "not included")  # reasons of the scope that the settings give
MOST_REASONS = 3  # named


class Unlinked(NamedTuple):
    """Listed pages without a link, and the pages that may hold one."""

    pages: tuple[int, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()  # pages of the site out of scope, by reason, most frequent first
    not_followed: int = 0  # pages of the site that only nofollow links lead to, which were not read

    @property
    def why_unknown(self) -> str:
        """Why it is not known that no link leads to the pages; empty if it is."""
        if not self.pages or not self.left_out:
            return ""
        number = sum(count for _, count in self.left_out)
        more = ", …" if len(self.left_out) > MOST_REASONS else ""
        named = ", ".join(why for why, _ in self.left_out[:MOST_REASONS])
        return f"pages of the site out of scope: {number:,} ({named}{more}), which may hold links"


def unlinked(site: Site) -> Unlinked:
    """Return the fetched listed pages that readers do not reach from the start."""
    listed = [site.number[row["url"]] for row in site.survey.orphans()]
    if not listed:
        return Unlinked()
    found: BoolArray = (site.depths >= 0) | (site.shares > 0)
    named: BoolArray = np.zeros(found.size, np.bool_)
    later: dict[int, list[IntArray]] = {}  # links of pages that are not found yet
    for page, targets in _links(site, found.size):
        if found[page]:
            named[targets] = True
        else:
            later.setdefault(page, []).append(targets)
    while (new := np.flatnonzero(named & ~found)).size:
        found[new] = True
        for page in new.tolist():
            for targets in later.pop(page, ()):
                named[targets] = True
    pages = tuple(page for page in listed if not found[page])
    if not pages:
        return Unlinked()
    reasons = Counter(_unread(site, [page for page in np.flatnonzero(found).tolist() if site.last[page] is None]))
    not_followed = reasons.pop("", 0)
    return Unlinked(pages, tuple(reasons.most_common()), not_followed)


def _links(site: Site, known: int) -> Iterator[tuple[int, IntArray]]:
    """Yield the pages that were read with the pages that their links and redirects lead to."""
    for visit in last_read(site.survey.journal):
        if visit.kind == "fetched" and visit.page < known:
            every = np.concatenate([getattr(visit, name) for name in LISTS.values()]).astype(np.int64)
            yield visit.page, every[every < known]
    for page, last in enumerate(site.last):
        if last is not None and last.kind == "redirected":
            yield page, np.array([last.target, *_links_of_alias(site, page)], np.int64)
        elif last is not None and last.reason == LEFT:
            yield page, last.out_of_scope.astype(np.int64)


def _links_of_alias(site: Site, page: int) -> list[int]:
    """Return the known pages that a page with another canonical URL links to, which the journal does not have."""
    body = site.alias_body(page)
    if body is None:
        return []
    read = guarded(site.urls[page], read_page, body.body, site.urls[page], headers=body.headers, text=False)
    links = () if isinstance(read, Failure) else read.links
    return [site.number[link.url] for link in links if link.url in site.number]


def _unread(site: Site, pages: list[int]) -> Iterator[str]:
    """Yield why pages of the site were not read that may hold links; empty if only nofollow links lead to one."""
    scope = scope_of(site.survey.manifest)
    sites = {domain(host(seed)) for seed in site.survey.manifest.seeds}
    for url in (site.urls[page] for page in pages):
        why = scope.why_not(url)
        if domain(host(url)) not in sites or scope.is_file(url):
            continue
        if why is None:
            yield "" if scope.depth is None else f"more than {scope.depth} links from the seeds"
        elif why.startswith(LEFT_OUT):
            yield why
