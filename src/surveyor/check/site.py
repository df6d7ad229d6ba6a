"""A survey as an audit sees it: the status of each URL, importance, links with their context, facts of the bodies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.check.findings import Source, source_of
from surveyor.check.page_facts import PageFacts, lines_of, read_facts
from surveyor.check.reachable import Unlinked, unlinked
from surveyor.crawler.seeds import unread_sitemaps
from surveyor.errors import SurveyError, UsageError
from surveyor.fetch.bodies import Decoded, decoded
from surveyor.outcome import Visit
from surveyor.stopping import ProgressCallback, silent
from surveyor.store.tabular import LISTS, contexts_of, last_read
from surveyor.survey.survey import Survey
from surveyor.web.urls import domain, host

LOOPS = ("redirects in a circle", "redirects to itself", "more than 20 redirects")
NOT_ASKED = ("robots", "budget", "deleted", "redirects out of the scope", "redirects temporarily")
REDIRECTS = range(300, 400)


class Site:
    """The pages of a survey, read once."""

    def __init__(self, survey: Survey, *, progress: ProgressCallback = silent) -> None:
        self.survey, self._progress = survey, progress
        self.urls: list[str] = []
        self.last: list[Visit | None] = []
        self._names = survey.tables.urls
        for page, url, visit in survey.pages():
            if page >= len(self._names):  # found since by another process
                break
            self.urls.append(url)
            self.last.append(visit)
        for page in range(len(self.urls), len(self._names)):  # seeds that no commit names yet
            self.urls.append(self._names[page])
            self.last.append(None)
        self.number = {url: page for page, url in enumerate(self.urls)}
        ranked = survey.as_graph()
        own: FloatArray = np.zeros(len(self.urls))
        own[ranked.pages] = survey.ranking.scores
        self.shares = own[self.end_of(np.arange(len(self.urls)))]
        self.shares[self.shares < 0] = 0.0
        self.facts: dict[int, PageFacts] = {}
        self.unread = 0  # fetched pages without an archived body
        self.incomplete: set[int] = set()  # pages whose body was transferred or stored without its end

    def end_of(self, pages: IntArray) -> IntArray:
        """Return the pages at the end of redirects and canonical URLs."""
        ends: IntArray = self._names.canonical(pages.astype(np.int32)).astype(np.int64)
        return ends

    def is_fetched(self, page: int) -> bool:
        """Return whether the latest visit of a page fetched it, under its own URL."""
        visit = self.last[page]
        return visit is not None and visit.kind == "fetched"

    def fetched(self) -> Iterator[tuple[int, Visit]]:
        """Yield the pages that are fetched, with their latest visits."""
        for page, visit in enumerate(self.last):
            if visit is not None and visit.kind == "fetched":
                yield page, visit

    def problem(self, page: int) -> str:
        """Return the rule that a link to this page breaks, without regard to redirects; empty if there is none."""
        visit = self.last[page]
        if visit is None or visit.kind in ("fetched", "redirected"):
            return ""
        if visit.kind == "gone":
            return "broken-link"
        if visit.reason.startswith(LOOPS):
            return "redirect-loop"
        if visit.reason == "redirects to no page":
            return "broken-link"
        failed = visit.status >= 400 or (visit.status == 0 and visit.fetched_at > 0)
        return "failing-link" if failed and not visit.reason.startswith(NOT_ASKED) else ""

    def is_asked(self, canonical: str) -> bool:
        """Return whether the crawl requests a canonical URL, so that a page that keeps its own URL names a bad one."""
        seeds = self.survey.manifest.seeds
        sites = {domain(host(seed)) for seed in seeds}
        return domain(host(canonical)) in sites and self.survey.tables.out_of_scope(canonical) is None

    def hops(self, page: int) -> list[int]:
        """Return the pages that the HTTP redirects of a page lead through, with the last one."""
        found = [page]
        while (visit := self.last[found[-1]]) is not None and visit.kind == "redirected" and len(found) < 25:
            if visit.status not in REDIRECTS or visit.target in found:
                break
            found.append(visit.target)
        return found[1:]

    def links_to(self, targets: Collection[int]) -> dict[int, list[Source]]:
        """Return the pages that link to each target, with the contexts of the links, most important first."""
        wanted: BoolArray = np.zeros(len(self.urls), np.bool_)
        wanted[list(targets)] = True
        found: defaultdict[int, list[Source]] = defaultdict(list)
        for visit in last_read(self.survey.journal):
            if visit.kind != "fetched":
                continue
            every = np.unique(np.concatenate([getattr(visit, name) for name in LISTS.values()]))
            every = every[every < wanted.size]
            hits = every[wanted[every]].tolist()
            if not hits:
                continue
            contexts = contexts_of(self.survey.journal, visit)
            for target in hits:
                if target in contexts:
                    source = source_of(self.urls[visit.page], float(self.shares[visit.page]), contexts[target])
                    found[target].append(source)
        for sources in found.values():
            sources.sort(key=lambda source: (-source.share, source.url))
        return found

    def page_source(self, page: int) -> Source:
        """Return a page as the place of a fault."""
        return source_of(self.urls[page], float(self.shares[page]))

    def read_bodies(self) -> None:
        """Read the facts of all fetched pages whose bodies are archived."""
        pages = [page for page, _ in self.fetched()]
        pages += [page for page, visit in enumerate(self.last) if visit is not None and self._is_alias(visit)]
        for done, page in enumerate(pages):
            body = self._body(page)
            if body is None:
                self.unread += self.is_fetched(page)
            else:
                self.facts[page] = read_facts(body.body, self.urls[page], body.headers)
                if body.cut:
                    self.incomplete.add(page)
            self._progress("reading pages", done + 1, len(pages), "pages")

    @staticmethod
    def _is_alias(visit: Visit) -> bool:
        """Return whether a page was fetched and names another one as canonical."""
        return visit.kind == "redirected" and visit.status == 200

    def _body(self, page: int) -> Decoded | None:
        """Return the decoded body of a page; None if it is not archived."""
        visit = self.last[page]
        if visit is None or visit.warc is None:
            return None
        try:
            return decoded(self.survey.archive.read(visit.warc))
        except (SurveyError, UsageError):
            return None

    def alias_body(self, page: int) -> Decoded | None:
        """Return the body of a page that names another one as canonical; None if there is none."""
        visit = self.last[page]
        return self._body(page) if visit is not None and self._is_alias(visit) else None

    def lines(self, url: str, wanted: Collection[str]) -> dict[str, int]:
        """Return the lines of references in the archived body of a page."""
        page = self.number.get(url)
        body = None if page is None else self._body(page)
        return {} if body is None else lines_of(body.body, url, body.headers, wanted)

    @cached_property
    def unread_sitemaps(self) -> dict[str, str]:
        """The sitemaps that could not be read, and why."""
        return unread_sitemaps(self.survey.journal)

    @cached_property
    def depths(self) -> IntArray:
        """Number of links from the nearest seed, by page; -1 if it is not known."""
        return self.survey.tables.depths()

    @cached_property
    def unlinked(self) -> Unlinked:
        """The listed pages that no link leads to."""
        return unlinked(self)

    def weight(self, pages: Iterable[int]) -> float:
        """Return the importance of several pages together, aliases counted once."""
        ends = np.unique(self.end_of(np.array([*pages], np.int64)))
        return min(1.0, float(self.shares[ends].sum()))
