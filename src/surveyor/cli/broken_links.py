"""Broken links reported while a site is crawled for `surveyor check`: the first ones, with a page that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.report.numbers import printable

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.crawler.session import Run
    from surveyor.outcome import Outcome

MOST = 10  # lines; the crawl is in order of importance, so the first ones matter most


class BrokenLinks:
    """Returns a line for each of the first pages that are gone and that a page fetched in this run links to."""

    def __init__(self) -> None:
        self._sources: IdArray = np.full(1024, -1, np.int32)  # first page that links to each page; -1 if none is known
        self._count = 0

    def __call__(self, run: Run, outcome: Outcome) -> str:
        """Record an outcome; return a line if it is a broken link."""
        if self._count > MOST:
            return ""
        if outcome.kind == "fetched":
            self._add(outcome.links, outcome.page)
        elif outcome.kind == "redirected":
            self._add(np.array([outcome.target], np.int32), self._source(outcome.page))
        elif outcome.kind == "gone" and (source := self._source(outcome.page)) >= 0:
            self._count += 1
            if self._count > MOST:
                return "more broken links are listed at the end"
            urls = run.state.urls
            return printable(f"broken: {urls[outcome.page]} ({outcome.reason}), linked from {urls[source]}")
        return ""

    def _source(self, page: int) -> int:
        return int(self._sources[page]) if page < self._sources.size else -1

    def _add(self, links: IdArray, source: int) -> None:
        if not links.size:
            return
        if (largest := int(links.max())) >= self._sources.size:
            more: IdArray = np.full(2 * largest + 1 - self._sources.size, -1, np.int32)
            self._sources = np.concatenate([self._sources, more])
        self._sources[links[self._sources[links] < 0]] = source
