"""A sample of the pages that a survey has read: walks over what is stored, without a fetch.

Walks meet what they would meet live, as `course.py` tells; pages that the survey did not read cannot be read. All
in-links are known from the pages read, and from no others: the sample speaks for the pages that the survey holds, of
those that walks can reach. Whether a page is on topic is found out when a walk first comes to it, or is to begin there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from surveyor.arrays import IdArray
from surveyor.crawler.replay import Derived, derive
from surveyor.errors import NothingFetched, UsageError
from surveyor.estimate.sampling.course import UNREADABLE, PageRecord, WalkScheduler, check_begun
from surveyor.estimate.sampling.ground import ON
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walked import Done, SurveyPages, WalkResult, ground_of, is_on, walked
from surveyor.estimate.sampling.walking import UNLIMITED
from surveyor.graph.csr import Graph
from surveyor.kernels.mass import FETCHED, STATUS
from surveyor.store.directory import SurveyFolder
from surveyor.web.urls import normalise

TRIES = 100  # pages looked at for each walk, at most, to find one on topic
HOW = "the survey: all links of the pages that it has read"


class Stored:
    """The pages of a survey as walks meet them."""

    def __init__(self, folder: Path, topic: Topic) -> None:
        with SurveyFolder.open(folder, write=False) as survey:
            self.state: Derived = derive(survey)
            self.seeds = survey.manifest.seeds
            archived = bool(survey.manifest.settings.get("archive", True))
            moved = {one.page: one.target for one in survey.journal.outcomes() if one.kind == "redirected"}
        life = self.state.crawl.ledger.state & STATUS
        self.read: IdArray = np.flatnonzero(life == FETCHED).astype(np.int32)
        self._is_read = life == FETCHED
        self._moved = {page: target for page, target in moved.items() if not self._is_read[page]}
        self._topic, self._graph = topic, self.state.crawl.graph
        self._into = self._backwards().in_links
        self._judged: dict[int, bool] = {}
        self.ground = ground_of(self.state.urls, topic, self.told)
        self.pages = SurveyPages(folder, self.state.urls, self.ground, speaking=archived)
        if not archived and topic.reads:
            raise UsageError(
                f"{topic.text} is told from what pages say, and {folder} has not kept it",
                hint="choose a topic that URLs tell, or crawl with an archive",
            )

    def _backwards(self) -> Graph:
        """Gather the links of all pages that walks can meet."""
        rows = [self._graph.links_of(page) for page in self.read.tolist()]
        sources = np.append(np.repeat(self.read, [row.size for row in rows]), [*self._moved]).astype(np.int32)
        targets = np.concatenate([*rows, np.fromiter(self._moved.values(), np.int32)])
        return Graph.from_arrays(sources, targets, nodes=len(self.state.urls))

    def told(self, page: int) -> list[int]:
        """Return the pages that link to a page."""
        found: list[int] = self._into.indices[self._into.indptr[page] : self._into.indptr[page + 1]].tolist()
        return found

    def met(self, page: int) -> PageRecord:
        """Say what a page is to a walk."""
        if page in self._moved:
            return PageRecord.elsewhere(self._moved[page])
        if page >= self._is_read.size or not self._is_read[page]:
            return UNREADABLE
        if page not in self._judged:
            self._judged[page] = is_on(self._topic, self.pages.page(page))
        return PageRecord.read(self._graph.links_of(page).tolist(), on_topic=self._judged[page])


def walk_survey(
    folder: Path | str,
    topic: Topic,
    *,
    plan: WalkPlan | None = None,
    starts: Sequence[str] | None = None,
    fetches: int = UNLIMITED,
    steps: int = UNLIMITED,
    done: Done = lambda _trace, _pages: False,
) -> WalkResult:
    """Walk over the pages of a survey until it is done, has met so many pages, or can go no further.

    Walks begin at pages on topic drawn by chance, unless `starts` names others; at the seeds if hardly any is.
    """
    path, plan = Path(folder), plan or WalkPlan()
    stored = Stored(path, topic)
    if not stored.read.size:
        raise NothingFetched(f"{path} has read no page", hint="go on with it first")
    try:
        drawn = _drawn(stored, plan) if starts is None else []
        first = drawn or [_find(stored, url) for url in starts or stored.seeds]
        course = WalkScheduler(
            stored.ground, first, plan, fetches=fetches, steps=steps, done=lambda trace: done(trace, stored.pages)
        )
        wanted = course.begin()
        while wanted:
            wanted = [more for page in wanted for more in course.learn(page, stored.met(page))]
        check_begun(course, stored.pages.url)
        return walked(course, stored.pages, topic, f"survey {path.name}", HOW)
    finally:
        stored.pages.close()


def _drawn(stored: Stored, plan: WalkPlan) -> list[int]:
    """Draw pages on topic by chance; of so many tries some may find none."""
    tries = np.random.default_rng(plan.rng).permutation(stored.read)[: TRIES * plan.walks].tolist()
    return list(islice((page for page in tries if stored.met(page).kind == ON), plan.walks))


def _find(stored: Stored, url: str) -> int:
    page = stored.state.urls.find(normalise(url) or url)
    if page is None:
        raise UsageError(f"the survey knows no page {url}", hint="begin at pages that it has read")
    return page
