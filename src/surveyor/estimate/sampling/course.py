"""The course of a sample: which pages its walks ask for next, wherever these come from, and when it ends.

First the pages are read where walks begin; of one that moved, the page where it is now. A page that cannot be read is
left out, and the walks are dealt out to the others in turn. Then rounds are walked until pages are missing; when all of
these are known, rounds go on. Whether the sample is good enough is asked after certain rounds, whatever happens in
between, so that one that was stopped and gone on with ends where it would have ended.

| kind | what a walk meets |
|---|---|
| read | a page on or off topic, with its links |
| moved | a page off topic with one link: walks that leave the topic for a step or two pass through |
| gone, blocked | a page that cannot be read |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from surveyor.errors import NothingFetched
from surveyor.estimate.sampling.ground import DEAD, OFF, ON, WalkGraph
from surveyor.estimate.sampling.sample_goals import check_intervals
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.estimate.sampling.walking import UNLIMITED, PythonWalks

IDLE = 10_000  # rounds in which walks came to no new page, after which they will hardly come to any
MOVES = 20  # that a page where walks begin may have made


@dataclass(frozen=True, slots=True)
class PageRecord:
    """What a walk meets at a page."""

    kind: int  # OFF, ON or DEAD
    links: Sequence[int] = ()
    moved: int = -1  # where it is now

    @classmethod
    def read(cls, links: Sequence[int], *, on_topic: bool) -> PageRecord:
        """A page that was read."""
        return cls(ON if on_topic else OFF, links)

    @classmethod
    def elsewhere(cls, target: int) -> PageRecord:
        """A page that moved."""
        return cls(OFF, (target,), target)


UNREADABLE = PageRecord(DEAD)


class WalkScheduler:
    """Walks that ask for pages and go on when they were told of them."""

    def __init__(
        self,
        ground: WalkGraph,
        seeds: Sequence[int],
        plan: WalkPlan,
        *,
        fetches: int = UNLIMITED,
        steps: int = UNLIMITED,
        done: Callable[[WalkTrace], object] = lambda _: False,
    ) -> None:
        """Let walks begin at the seeds in turn, ask for so many pages, walk so many steps, and end when it is `done`.

        `done` may say in a word why, which is then the ending.
        """
        self.ground, self.plan, self.fetches, self._most = ground, plan, fetches, steps
        every = list(dict.fromkeys(seeds))
        self._wanted = min(plan.walks, len(every))
        self.seeds, self._others = every[: self._wanted], every[self._wanted :]
        self.ending: str | None = None  # what is done; fetches, exhausted, lost
        self.walking: PythonWalks | None = None
        self.waits: set[int] = set()  # pages that were asked for
        self._first: dict[int, None] = {}  # pages asked for before the walks began
        self._moved: dict[int, int] = {}
        self._done, self._looks, self._last = done, check_intervals(), (0, 0)
        self._look = next(self._looks)

    @property
    def asked(self) -> dict[int, None]:
        """The pages that were asked for, each once, in order."""
        return self._first if self.walking is None else self.walking.asked

    @property
    def unread(self) -> list[int]:
        """Pages where walks were to begin, and that cannot be read."""
        return [seed for seed in self.seeds if self.ground.kind_of.get(self._now(seed), OFF) == DEAD]

    def begin(self) -> list[int]:
        """Return the pages that must be read before walks can begin; if there are none, those that they need next."""
        starts = list(dict.fromkeys(self._now(seed) for seed in self.seeds))
        missing = [page for page in starts if not self.ground.has(page)]
        if len(self._first) + len(missing) > self.fetches:
            self.ending = "fetches"
            return []
        self._first.update(dict.fromkeys(missing))
        self.waits = set(missing)
        if missing:
            return missing
        alive = [page for page in starts if self.ground.kind_of[page] != DEAD]
        if len(alive) < self._wanted and self._others and len(self._first) < self.fetches:
            self.seeds.append(self._others.pop(0))  # instead of one that cannot be read
            return self.begin()
        if not alive:
            self.ending = "lost"
            return []
        dealt = [alive[turn % len(alive)] for turn in range(self.plan.walks)]
        self.walking = PythonWalks(self.ground, dealt, self.plan)
        self.walking.asked.update(self._first)
        return self._go_on(self.walking)

    def learn(self, page: int, met: PageRecord) -> list[int]:
        """Take in a page that was asked for; return the pages that are asked for next, if it was the last of those."""
        self.ground.learn(page, met.kind, met.links)
        self.waits.discard(page)
        if self.walking is None and met.moved >= 0:
            self._moved[page] = met.moved
        if self.waits or self.ending is not None:
            return []
        return self.begin() if self.walking is None else self._go_on(self.walking)

    def trace(self) -> WalkTrace:
        """Return all steps so far."""
        return (self.walking or PythonWalks(self.ground, [], self.plan)).trace()

    def _now(self, page: int) -> int:
        """Return where a page is now."""
        for _ in range(MOVES):
            page = self._moved.get(page, page)
        return page

    def _go_on(self, walking: PythonWalks) -> list[int]:
        """Walk until pages are missing, or to the end."""
        while self.ending is None:
            missing = walking.missing(self.fetches)
            self.ending = self._end(walking)
            if missing:
                self.waits = set(missing)
                return missing
            if self.ending is None:
                walking.round()
                self._look_at(walking)
        return []

    def _look_at(self, walking: PythonWalks) -> None:
        """End it if it is done; asked after certain rounds."""
        if self.ground.round >= self._look:
            self._look += next(self._looks)
            if met := self._done(walking.trace()):
                self.ending = met if isinstance(met, str) else "done"

    def _end(self, walking: PythonWalks) -> str | None:
        """Say whether walks cannot go on."""
        if walking.full:
            return "fetches"
        if walking.steps >= self._most:
            return "steps"
        if all(walk.lost for walk in walking.walks):
            return "lost"
        asked = len(walking.asked)
        if asked > self._last[0]:
            self._last = asked, self.ground.round
        return "exhausted" if self.ground.round - self._last[1] > IDLE else None


def check_begun(course: WalkScheduler, name: Callable[[int], str]) -> None:
    """Raise if not one of the pages where walks begin could be read."""
    if course.walking is None and course.ending == "lost":
        named = ", ".join(name(page) for page in course.seeds[:3])
        raise NothingFetched(
            f"no walk can begin: {named} could not be read", hint="check it in a browser, or begin at another page"
        )
