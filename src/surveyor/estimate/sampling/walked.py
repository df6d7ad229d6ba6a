"""What walks have come to, wherever they went: all that a sample is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import IdArray, IntArray, read_only
from surveyor.errors import SurveyorError, UsageError
from surveyor.estimate.sampling.archived import page_of
from surveyor.estimate.sampling.course import WalkScheduler
from surveyor.estimate.sampling.diagnostics import count_jumps, stuck_walks
from surveyor.estimate.sampling.ground import OFF, ON, WalkGraph
from surveyor.estimate.sampling.page import SampledPage
from surveyor.estimate.sampling.properties import Pages, check_known
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.store.directory import SurveyFolder
from surveyor.web.urls import host

if TYPE_CHECKING:
    from surveyor.estimate.sampling.in_link_coverage import LinkObservations
    from surveyor.web.urls import Urls


@dataclass(slots=True)
class SurveyPages:
    """The pages that walks met, by number; what they say is read from the survey, while it is open or later."""

    folder: Path
    urls: Urls
    ground: WalkGraph
    writes: SurveyFolder | None = field(default=None, repr=False)  # the survey while the sample is taken
    speaking: bool = True  # what pages say is in the archive
    _reads: SurveyFolder | None = field(default=None, repr=False)

    @property
    def count(self) -> int:
        """How many pages are known by number."""
        return len(self.urls)

    def url(self, page: int) -> str:
        """Return the URL of a page."""
        return self.urls[page]

    def page(self, page: int) -> SampledPage:
        """Return a page as it was last read; one that never was has its URL only."""
        folder = self._open()
        visit = folder.journal.last_visit(page, "fetched")
        return SampledPage(self.urls[page]) if visit is None else page_of(folder, self.urls[page], visit)

    def intra(self, page: int) -> float:
        """Return the share of a page's links that lead to pages on topic; NaN if it has none."""
        links, ground = self.ground.links.get(page, frozenset()), self.ground
        check_known(("intra",), free=ground.free)
        if not links:
            return float("nan")
        return sum(ground.kind(link) == ON for link in links) / len(links)

    def close(self) -> None:
        """Close the survey; it is opened again if need be."""
        self.writes = None
        if self._reads is not None:
            self._reads.close()
        self._reads = None

    def _open(self) -> SurveyFolder:
        if self.writes is not None:
            return self.writes
        if self._reads is None:
            self._reads = SurveyFolder.open(self.folder, write=False)
        return self._reads


@dataclass(frozen=True, slots=True, eq=False)
class WalkResult:
    """How far walks have come, and by what."""

    trace: WalkTrace
    ending: str  # what is done (of `done`), fetches, steps, exhausted, lost or interrupted
    asked: IdArray  # pages that were asked for, each once
    lost: IntArray  # walks that never found the topic
    pages: Pages
    plan: WalkPlan
    topic: str  # in words
    where: str
    how: str  # in-links are known
    unread: tuple[str, ...] = ()  # pages where walks were to begin, and that cannot be read
    seen: Callable[[], LinkObservations] | None = None  # what walks saw of in-links; None if all are known
    capped: int = 0  # pages of which as many in-links were told as were asked for

    @property
    def remarks(self) -> tuple[str, ...]:
        """What went wrong with the walks themselves."""
        trace, walks, lost, told = self.trace, self.plan.walks, self.lost.size, list[str]()
        if unread := len(self.unread):
            named = ", ".join(self.unread[:3]) + (", …" if unread > 3 else "")
            told.append(f"walks could not begin at {named}, which could not be read, and began elsewhere")
        if lost:
            who = "no walk" if lost == walks else f"{lost} of {walks} walks never"
            told.append(f"{who} found a page on topic ({self.topic}): begin at pages that are, or try a wider rule")
        found = np.unique(trace.walk).size
        if searching := walks - lost - found:
            who = f"{searching} of {walks} walks {'has' if searching == 1 else 'have'}"
            told.append(f"{who} not found the topic so far: walk longer, or begin at pages on it")
        if (still := stuck_walks(trace)) and len(still) < found:
            who = "a walk was" if len(still) == 1 else f"{len(still)} walks were"
            steps = int(np.isin(trace.walk, still).sum())
            told.append(
                f"{who} left out that never moved: no neighbour of the first page is on topic ({steps:,} steps); use"
                " other seeds"
            )
        if self.ending == "longest":
            told.append(f"the goal was not reached in {len(trace):,} steps: the topic may be too small, or in parts")
        if self.ending == "exhausted":
            told.append("walks came to no new page for a long time: what can be reached is smaller than the goal asks")
        if jumped := count_jumps(trace):
            told.append(
                f"walks jumped {jumped:,} times away from hosts that had half of the last moves, so that pages there"
                " count too little: leave the window out (--window 0) if these hosts are no traps"
            )
        return tuple(told)


Done = Callable[[WalkTrace, Pages], object]  # says that a sample is done, or in a word by what


def walked(course: WalkScheduler, pages: SurveyPages, topic: Topic, where: str, how: str) -> WalkResult:
    """Sum up a course."""
    lost = np.empty(0, np.int64) if course.walking is None else course.walking.lost
    asked: IdArray = read_only(np.fromiter(course.asked, np.int32))
    return WalkResult(
        course.trace(), course.ending or "interrupted", asked, lost, pages, course.plan,
        topic.text, where, how, tuple(pages.url(page) for page in course.unread),
    )  # fmt: skip


def ground_of(urls: Urls, topic: Topic, told: Callable[[int], Iterable[int]]) -> WalkGraph:
    """Return the ground of walks over pages with URLs; whether a URL is on topic is asked once, if it can tell."""
    verdicts: dict[int, int] = {}

    def guess(page: int) -> int:
        if page not in verdicts:
            verdicts[page] = ON if is_on(topic, SampledPage(urls[page])) else OFF
        return verdicts[page]

    return WalkGraph(told, urls.__getitem__, guess if topic.free else None, lambda page: host(urls[page]))


def is_on(topic: Topic, page: SampledPage) -> bool:
    """Ask a topic about a page."""
    try:
        return topic(page)
    except SurveyorError:
        raise
    except Exception as error:  # whatever a topic of the user's does
        problem = f"the topic {topic.text} failed on {page.url}: {type(error).__name__}: {error}"
        raise UsageError(problem, hint="mend it; run the same command again to go on") from error
