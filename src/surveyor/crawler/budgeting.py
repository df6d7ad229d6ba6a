"""Updates of page budgets during a crawl: by the settings when it starts, by reputation as it grows.

Budgets by reputation start at the minimum for all domains. The domains are ranked again whenever the number of pages
fetched has grown by half, and when the queue is empty. With these geometric steps, all rankings and replays together
cost no more than a few passes over the journal.

**Automatic budgets** (`star`) have to hold in a crawl of a thousand pages, in which a farm can outnumber all others.
Let N be half as many pages again as were fetched, at least 1,000. With each ranking,

- trusted domains (those of the seeds, and those that seeds redirect to) are not limited;
- *established* domains, which trusted ones reach through independent links (`rank/domains/established.py`), may take
  what a star plan over their ranks gives, at least 3 % of N and three times their share of the mass, and at most
  `MULTIPLE` times that share; a domain that would get fewer than `OWN` pages is not established. So the established
  domains of a farm together get a multiple of the mass that flows into the farm, however many they are;
- all other domains that are known through the same page share a budget of 3 % of N. Those known through all pages of
  one domain have 10 % together, and at most `MULTIPLE` times the share of the mass on it and on all of them. Those
  known through a page of a trusted domain may take twice their share of the mass, if that is more;
- domains discovered since the ranking share 0.5 % of N.

So a farm on a hacked page takes 3 % of N, however many domains it has. On the site of a seed, only the mass limits it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.budgets import (
    EVENT,
    FIRST,
    GROWTH,
    LEAST_SIZE,
    MOST,
    MULTIPLE,
    OWN,
    REASON,
    DomainBudgets,
    Limits,
    Plan,
    chosen,
    from_file,
    latest,
    limits_of,
    ranked_at,
)
from surveyor.crawler.domain_graph import BestDomains, Established, score_of
from surveyor.outcome import Event
from surveyor.stopping import Either, Progress
from surveyor.web.urls import domain, host

if TYPE_CHECKING:
    from surveyor.config import Settings
    from surveyor.crawler.replay import Derived
    from surveyor.store.directory import SurveyFolder

Rank = Callable[["SurveyFolder", int], Sequence[str]]  # returns the given number of domains, best first


class Budgeting:
    """Sets the limits of a survey and schedules their updates."""

    def __init__(self, folder: SurveyFolder, settings: Settings, rank: Rank | None, clock: Callable[[], float]) -> None:
        self._folder, self._clock = folder, clock
        self._choice, self._last = chosen(settings), latest(folder)
        plan = self._choice.plan
        self._rank = rank or BestDomains(score_of(plan or Plan()))

    @property
    def ranks(self) -> bool:
        """Whether limits depend on ranks."""
        return self._choice.ranks

    @property
    def again_at(self) -> float:
        """Number of fetched pages at which domains are ranked again."""
        if not self.ranks or self._last is None:
            return math.inf
        return max(FIRST, GROWTH * ranked_at(self._last))

    def begin(self, state: Derived) -> bool:
        """Set limits from the current settings if they changed; return whether domains were opened."""
        plan, file, last = self._choice.plan, self._choice.file, self._last
        same = last is not None and last.detail["spec"] == self._choice.spec
        if (plan is None and last is None) or (same and file is None):
            return False
        if plan is None:
            limits = Limits(MOST)
        elif file is not None:
            kept = last is not None and same and not file.exists()
            limits = limits_of(last) if last is not None and kept else from_file(file, plan)
        else:
            limits = self._by_rank(plan, state)
        unchanged = same and last is not None and last.detail["digest"] == limits.digest
        return False if unchanged else self._set(limits, state)

    def renew(self, state: Derived) -> bool:
        """Rank domains by the pages fetched so far and set limits; return whether domains were opened."""
        plan, last = self._choice.plan, self._last
        if plan is None or last is None or not self.ranks or state.tally.pages <= ranked_at(last):
            return False
        return self._set(self._by_rank(plan, state), state)

    def limit(self, state: Derived) -> None:
        """Set the budgets of the frontier of a state."""
        if self._last is not None and self._choice.plan is not None:
            gate = DomainBudgets(limits_of(self._last), state.urls)
            state.crawl.frontier.limit(gate, gate.spent(self._folder))

    def _by_rank(self, plan: Plan, state: Derived) -> Limits:
        seeds = [domain(host(seed)) for seed in self._folder.manifest.seeds]
        started = bool(self._folder.journal.position)
        if plan.kind != "auto":
            best = self._rank(self._folder, plan.reach) if plan.reach and started else ()
            return Limits.by_rank(plan, best, seeds)
        if not started:  # nothing is known, so all other domains share the pages until the first ranking
            return Limits(FIRST, dict.fromkeys(seeds, MOST), {})
        pages = plan.times * max(LEAST_SIZE, int(GROWTH * state.tally.pages))
        ledger = state.crawl.ledger
        final = ledger.stands_for()
        seeds += [domain(host(state.urls[page])) for page in final[ledger.seeds].tolist()]  # where seeds redirect to
        if isinstance(self._rank, BestDomains):
            mass, least = ledger.mass, OWN / (MULTIPLE * pages)
            held = np.where(final == np.arange(final.size), mass.settled + mass.residual, 0.0)
            found = self._rank.established(self._folder, seeds, plan.reach, held, least)
        else:
            best = self._rank(self._folder, plan.reach)
            found = Established(best, [1.0] * len(best), {}, {})
        return Limits.automatic(plan, pages, found, seeds)

    def _set(self, limits: Limits, state: Derived) -> bool:
        """Record limits, with the domains that are below their limit again."""
        rooms = sorted(_with_room(DomainBudgets(limits, state.urls), self._folder, state))
        detail = {
            "spec": self._choice.spec,
            "fetched": state.tally.pages,
            "default": limits.rest,
            "pages": dict(limits.pages),
            "digest": limits.digest,
            "reopened": rooms,
            **({} if limits.groups is None else {"groups": dict(limits.groups)}),
        }
        self._folder.journal.commit([], events=[Event(EVENT, self._clock(), detail)])
        self._last = latest(self._folder)
        return bool(rooms)


def _with_room(gate: DomainBudgets, folder: SurveyFolder, state: Derived) -> set[str]:
    """Return the domains with pages blocked by their budget that are now below it."""
    from surveyor.kernels.mass import BLOCKED, STATUS

    life, spent = state.crawl.ledger.state & STATUS, gate.spent(folder)
    pages = [one.page for one in folder.journal.blocked() if one.reason == REASON and life[one.page] == BLOCKED]
    names = {gate.name(page) for page in pages}
    return {name for name in names if spent.get(gate.number(name), 0) < gate.limit(gate.number(name))}


@dataclass(frozen=True, slots=True)
class OrRank(Either):
    """Stopping rule that is also met when domains are due to be ranked again."""

    again_at: float  # pages

    def done(self, progress: Progress) -> bool:
        """Return whether to stop, for either reason."""
        return Either.done(self, progress) or progress.pages >= self.again_at
