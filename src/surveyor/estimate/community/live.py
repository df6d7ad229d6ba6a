"""A community that is read live: pages outside are asked for that matter most to the ranks of the local ones.

It is a crawl like any other, with robots.txt, delays, tries, archive and resume, of a survey that began with what
another one has read (`beginning.py`). Its strategy works in rounds (`strategies/rounds.py`), so which pages are read
does not depend on how fast hosts answer, but for ties, and is the same as in a simulation (`known_graph.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray, read_only
from surveyor.crawler import session as live
from surveyor.crawler.replay import Derived, derive
from surveyor.crawler.sources.live import PATIENCE, Connection
from surveyor.crawler.strategies.rounds import Rounds, is_still
from surveyor.estimate.community.beginning import Community, Terms
from surveyor.estimate.community.known_graph import Expanded, Round
from surveyor.estimate.community.result import Ending
from surveyor.kernels import mass
from surveyor.outcome import Outcome, was_asked
from surveyor.rank.expansion import Expansion
from surveyor.stopping import parse_rule

if TYPE_CHECKING:
    from surveyor.crawler.sources.live import Wait
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client
    from surveyor.fetch.politeness.hosts import Hosts


@dataclass(frozen=True, slots=True, eq=False)
class Crawled:
    """How far a community has come: all that a result is made of."""

    state: Derived
    terms: Terms
    ending: Ending
    asked: IdArray  # extra pages that were asked for, in the order in which they counted
    read: IdArray  # those of them that could be read
    times: FloatArray  # seconds since the first of them was asked for, of each asked for

    @property
    def local(self) -> IdArray:
        """The local pages: those with the first numbers."""
        return np.arange(self.terms.local, dtype=np.int32)

    @property
    def remark(self) -> str:
        """What to say about an end that is not the one asked for; empty if it is."""
        told = {
            "nothing": f"no page of {self.terms.rule} links to a page that is not read: "
            "there is nothing outside to learn from",
            "exhausted": f"no page is left to ask for outside after {self.asked.size:,} of them",
        }
        return told.get(self.ending, "")

    def expanded(self, *, tolerance: float = 1e-6) -> Expanded:
        """Return what the pages read tell, as a simulation would; gone ones count as pages without links."""
        ledger, graph, terms = self.state.crawl.ledger, self.state.crawl.graph, self.terms
        life = ledger.state & mass.STATUS
        expansion = Expansion(self.local, terms.select, damping=ledger.damping, tolerance=tolerance)
        pages = np.flatnonzero((life == mass.FETCHED) | (life == mass.GONE)).astype(np.int32)
        known = expansion.learn(graph.rows, pages, ledger.capacity, ledger.stands_for())
        strategy = self.state.crawl.strategy
        told = strategy.rounds if isinstance(strategy, Rounds) else []
        since = np.append(0.0, self.times)
        rounds = tuple(Round(read, asked, moved, error, float(since[asked])) for read, asked, moved, error in told)
        batch: IntArray = np.zeros(ledger.capacity, np.int64)
        batch[self.asked] = np.searchsorted([one.asked for one in rounds], np.arange(self.asked.size), side="right")
        return Expanded(known, expansion, batch[known.pages], self.asked, rounds)


async def run(
    community: Community,
    *,
    client: Client | None = None,
    resolver: Resolver | None = None,
    hosts: Hosts | None = None,
    wait: Wait | None = None,
    watch: live.Watch = lambda _run, _outcome: None,
    patience: float = PATIENCE,
) -> Crawled:
    """Ask for the extra pages that are still to be asked for; cancel it to stop in good order."""
    folder, terms = community.folder, community.terms
    if not terms.outside or community.asked >= community.extra:
        return _crawled(community, derive(folder), "spent" if terms.outside else "nothing")
    latest: list[live.Run] = []

    def both(now: live.Run, outcome: Outcome | None) -> None:
        latest[:] = [now]
        watch(now, outcome)

    connection = Connection(client, resolver, hosts, wait, patience)
    rule = parse_rule(community.settings.until)
    ending = await live.run(folder, community.settings, rule, connection=connection, watch=both)
    state = latest[-1].state
    if ending == "interrupted":
        return _crawled(community, state, ending)
    strategy = state.crawl.strategy
    calm = isinstance(strategy, Rounds) and is_still([moved for _, _, moved, _ in strategy.rounds], strategy.still)
    return _crawled(
        community, state, "spent" if community.asked >= community.extra else "still" if calm else "exhausted"
    )


def _crawled(community: Community, state: Derived, ending: Ending) -> Crawled:
    since = [visit for visit in community.folder.journal.visits(community.terms.start) if was_asked(visit)]
    times = np.array([visit.fetched_at - since[0].fetched_at for visit in since])
    read = np.array([visit.page for visit in since if visit.kind == "fetched"], np.int32)
    asked = np.array([visit.page for visit in since], np.int32)
    return Crawled(state, community.terms, ending, read_only(asked), read_only(read), read_only(times))
