"""What walks over a live web or a survey have come to: all that a sample is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import IdArray, IntArray, read_only
from surveyor.errors import SurveyorError, UsageError
from surveyor.sampling.archived import said, told
from surveyor.sampling.course import IDLE, Course
from surveyor.sampling.ground import ON, Ground
from surveyor.sampling.page import SampledPage
from surveyor.sampling.trail import Trail
from surveyor.store.survey import Folder

if TYPE_CHECKING:
    from surveyor.urls import Urls
    from surveyor.visit import Visit

Topic = Callable[[SampledPage], object]  # may have `text`, `digest`, and `free` if URLs alone decide


@dataclass(slots=True)
class MetPages:
    """The pages that walks met, by number; what they say is read from the survey, while it is open or later."""

    folder: Path
    urls: Urls
    ground: Ground
    writes: Folder | None = field(default=None, repr=False)  # the survey while the sample is taken
    speaking: bool = True  # what pages say is in the archive
    _reads: Folder | None = field(default=None, repr=False)

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
        visit = folder.journal.last_visit(page, "read")
        return SampledPage(self.urls[page]) if visit is None else page_of(folder, self.urls[page], visit)

    def intra(self, page: int) -> float:
        """Return the share of a page's links that lead to pages on topic; NaN if it has none."""
        links, ground = self.ground.links.get(page, frozenset()), self.ground
        if not ground.free:
            raise UsageError(
                "which links stay on topic is not known, as most of the pages that they lead to were not read",
                hint="choose a topic that URLs tell, or sample a graph",
            )
        if not links:
            return float("nan")
        return sum(ground.kind(link) == ON for link in links) / len(links)

    def close(self) -> None:
        """Close the survey; it is opened again if need be."""
        self.writes = None
        if self._reads is not None:
            self._reads.close()
        self._reads = None

    def _open(self) -> Folder:
        if self.writes is not None:
            return self.writes
        if self._reads is None:
            self._reads = Folder.open(self.folder, write=False)
        return self._reads


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """How far walks have come, and by what."""

    trail: Trail
    ending: str  # what is done (of `done`), fetches, exhausted, lost or interrupted
    asked: IdArray  # pages that were asked for, each once
    starts: IdArray  # where each walk began
    lost: IntArray  # walks that never found the topic
    unread: IdArray  # seeds that could not be read
    pages: MetPages

    @property
    def remark(self) -> str:
        """What to say about an end that is not the one asked for; empty if it is."""
        count = self.starts.size
        if self.ending == "lost":
            return f"none of {count} walks came to a page on topic"
        if self.ending == "exhausted":
            return f"walks came to no new page for {IDLE:,} rounds, after {self.asked.size:,} pages"
        return f"{self.lost.size} of {count} walks came to no page on topic" if self.lost.size else ""


Done = Callable[[Trail, MetPages], object]  # says that a sample is done, or in a word by what


def walked(course: Course, pages: MetPages) -> Walked:
    """Sum up a course."""
    walking = course.walking
    walks = [] if walking is None else walking.walks
    return Walked(
        course.trail(), course.ending or "interrupted",
        asked=_ids(course.asked), starts=_ids([walk.start for walk in walks]),
        lost=np.array([walk.number for walk in walks if walk.lost], np.int64), unread=_ids(course.unread),
        pages=pages,
    )  # fmt: skip


def _ids(pages: Iterable[int]) -> IdArray:
    ids: IdArray = read_only(np.fromiter(pages, np.int32))
    return ids


def is_free(topic: Topic) -> bool:
    """Say whether URLs alone decide what is on topic."""
    return bool(getattr(topic, "free", False))


def text_of(topic: Topic) -> str:
    """Return a topic in words, as it is kept."""
    return str(getattr(topic, "text", getattr(topic, "__name__", type(topic).__name__)))


def is_on(topic: Topic, page: SampledPage) -> bool:
    """Ask a topic about a page."""
    try:
        return bool(topic(page))
    except SurveyorError:
        raise
    except Exception as error:  # whatever a topic of the user's does
        problem = f"the topic {text_of(topic)} failed on {page.url}: {type(error).__name__}: {error}"
        raise UsageError(problem, hint="mend it; run the same command again to go on") from error


def page_of(folder: Folder, url: str, visit: Visit) -> SampledPage:
    """Return a page as a visit found it; what it says is read when first asked for, from the archive if need be."""
    named = np.unique(np.concatenate([visit.links, visit.out_of_scope, visit.nofollow]))
    read = partial(said, folder, visit.page) if visit.exchange is None else partial(told, visit.exchange)
    return SampledPage(url, int((named != visit.page).sum()), read)
