"""Rounds: read so many pages that matter most to local pages, then judge the frontier anew (FindGlobalPR).

In each round `batch` pages are read; which ones is settled when it begins, so that they do not depend on how fast
hosts answer. (Ties go by a hash of ids, and where several requests are under way pages get ids in the order of
answers.) One that cannot be read is replaced by the next of the same ranking, and counts as asked for; a page that
moved is replaced by the page it stands for. Pages that are gone count as pages without links, as in the paper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.errors import UsageError
from surveyor.outcome import NO_LINKS, was_asked
from surveyor.rank.expansion import Expansion, Select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from surveyor.arrays import FloatArray, IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome

PART = 0.04  # of the local pages are read in a round, or of the pages read so far: fifty rounds for twice as many
SPARE = 4  # times as many pages as a round needs are ranked, to replace those that cannot be read
CALM = 3  # rounds in a row that move the ranks by less than `still` end it


class Rounds:
    """The pages that matter most to local pages first, a batch at a time."""

    parameters: ClassVar[dict[str, Callable[[str], object]]] = {
        "select": str, "local": int, "start": int, "batch": int, "extra": int, "still": float,
    }  # fmt: skip

    def __init__(
        self,
        select: Select = "complement",
        *,
        local: int = 0,
        start: int = 0,
        batch: int = 0,
        extra: int = 0,
        still: float = 0.0,
    ) -> None:
        """Choose by `select`; without more, the seeds are local and a round is 4 % of the pages read.

        Parameters
        ----------
        local : pages with smaller ids are local; 0 for the seeds.
        start : outcomes to wait for before the first round; 0 for those of the seeds.
        batch, extra : pages of a round, and pages to ask for in all rounds; 0 for no limit.
        still : end when three rounds in a row move the ranks of the local pages by less.
        """
        if min(local, start, batch, extra) < 0 or not 0 <= still < math.inf or start < local:
            raise UsageError(
                "the numbers of a strategy in rounds do not fit", hint="none is below 0, and start is at least local"
            )
        self.select, self.local, self.start, self.batch, self.extra, self.still = (
            select, local, start, batch, extra, still,
        )  # fmt: skip
        self.name = select
        Expansion(np.empty(0, np.int32), select)  # refuses what it does not know

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:
        """Start with the seeds, unless the first outcomes come from elsewhere."""
        self._ledger, self._graph = ledger, graph
        first = np.arange(self.local, dtype=np.int32) if self.local else ledger.seeds
        seed = int(rng.integers(2**62))
        self._expansion = Expansion(first, self.select, damping=ledger.damping, seed=seed)
        self._wait = self.start or int(ledger.seeds.size)
        self._pending: dict[int, None] = {}  # released, and not settled
        self._ranking: IdArray = NO_LINKS
        self._next = 0
        self.asked = self.read = 0  # since the first round
        self.rounds: list[tuple[int, int, float, float]] = []  # pages read, asked for, how far ranks moved, their error
        return NOTHING if self.start else Reorder(ledger.seeds, np.full(ledger.seeds.size, np.inf))

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Wait for the end of the round, then choose the next; replace what cannot be read."""
        if self._wait > 0:
            if not self.start and (there := self._moved(outcome)).size:
                return Reorder(there, np.full(1, np.inf))  # of a seed: it is read in its place
            self._wait -= 1
            return self._round() if self._wait == 0 else NOTHING
        self.asked += was_asked(outcome)
        self.read += outcome.kind == "read"
        self._pending.pop(outcome.page, None)
        if outcome.kind != "read" and (instead := self._release(*self._replacement(outcome))).pages.size:
            return instead
        return NOTHING if self._pending else self._round()

    def importance(self) -> FloatArray:
        """Return the ranks of the pages read; others have none."""
        from surveyor.kernels.mass import LIFE, READ

        ranks = np.zeros(self._ledger.capacity)
        read = np.flatnonzero(self._ledger.state & LIFE == READ)
        ranks[read] = self._expansion.by_id(read)
        return ranks

    def _replacement(self, outcome: Outcome) -> tuple[IdArray, int]:
        """Return the page that takes the place of one that could not be read, and its place in the ranking.

        It is the page where it moved, before all others, or the next best.
        """
        there, place = self._moved(outcome), -1
        while not there.size and self._next < self._ranking.size:
            there, place = self._if_waits(int(self._ranking[self._next])), self._next
            self._next += 1
        return there, place

    def _moved(self, outcome: Outcome) -> IdArray:
        """Return where a page has moved, if that page waits to be read."""
        return self._if_waits(outcome.target) if outcome.kind == "moved" else NO_LINKS

    def _if_waits(self, page: int) -> IdArray:
        from surveyor.kernels.mass import LIFE, WAITING

        waits = self._ledger.state[page] & LIFE == WAITING and page not in self._pending
        return np.array([page], np.int32) if waits else NO_LINKS

    def _release(self, pages: IdArray, place: int) -> Reorder:
        """Let pages be read, as many as may still be asked for, in the order of the ranking, where they have places."""
        if self.extra:
            pages = pages[: max(0, self.extra - self.asked - len(self._pending))]
        self._pending.update(dict.fromkeys(pages.tolist()))
        return Reorder(pages, -np.arange(place, place + pages.size, dtype=np.float64))

    def _round(self) -> Reorder:
        """Rank the pages read, judge the frontier, and release the best."""
        from surveyor.kernels.mass import DEAD, LIFE, READ, WAITING

        life = self._ledger.state & LIFE
        read = (life == READ) | (life == DEAD)
        final = self._ledger.stands_for()
        if not self.rounds:
            local = np.unique(final[self._expansion.local])
            self._expansion.local = local[read[local]]
        if not self._expansion.local.size:
            return NOTHING  # of what is not there no rank can be told
        pages = np.flatnonzero(read).astype(np.int32)
        found = self._expansion.learn(self._graph.rows, pages, read.size, final)
        self.rounds.append((self.read, self.asked, self._expansion.moved, self._expansion.error))
        if (self.extra and self.asked >= self.extra) or is_still([one[2] for one in self.rounds], self.still):
            return NOTHING
        count = self.batch or max(1, math.ceil(PART * self._graph.read))
        self._ranking = self._expansion.best(found, SPARE * count, life == WAITING)
        self._next = min(count, self._ranking.size)
        return self._release(self._ranking[: self._next], 0)


def is_still(moved: Sequence[float], still: float) -> bool:
    """Say whether the last rounds moved the ranks by less; `moved` has an entry for the start, too."""
    return len(moved) > CALM and max(moved[-CALM:]) < still
