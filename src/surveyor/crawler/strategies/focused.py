"""Focused crawl: fetch the page with the largest product of waiting mass and probability that it is on topic.

The order alone changes: mass moves as in RankMass, and the coverage interval holds as for every order.

- A topic that URLs decide is known for each page: its probability is 1 on topic, and `LEAST` off topic, as such a page
  may still lead to the topic.
- Any other topic is known for fetched pages only. A page that n judged pages link to, k of them on topic, is on topic
  with the estimated probability (k + PRIOR) / (n + 1): pages link to pages like themselves. `PRIOR` is that of a page
  without judged in-links, and weighs as much as one page. A page links to each page once; aliases are merged.

With a probability for each page, given in advance, it can be simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.strategies.rankmass import RankMass
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.errors import UsageError
from surveyor.outcome import NO_LINKS, Outcome

if TYPE_CHECKING:
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph

LEAST = 0.01  # probability of a page off topic
PRIOR = 0.1
Known = Callable[[IdArray], FloatArray]  # whether pages are on topic, 1 or 0, from their URLs


class Focused(RankMass):
    """Largest product of mass and topic probability first."""

    def __init__(
        self, probability: FloatArray | None = None, *, known: Known | None = None, closure: float = 0.1
    ) -> None:
        """Order by a probability for each page, by a function of pages, or by estimates from judged pages."""
        super().__init__(closure)
        self.name = "focused"
        self.probability = None if probability is None else np.asarray(probability, np.float64)
        if self.probability is not None and not (
            self.probability.ndim == 1 and ((self.probability >= 0) & (self.probability <= 1)).all()
        ):
            raise UsageError(
                "probability must be one number from 0 to 1 for each page",
                hint="for example (labels == 3).astype(float)",
            )
        self.known = known
        self._judged = np.zeros(0)  # per page: number of judged pages that link to it
        self._on = np.zeros(0)  # those of them that are on topic
        self._score = np.zeros(0)  # of each fetched page: on topic 1, off topic 0; NaN if it was not judged

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:
        """Rank the waiting pages."""
        self._graph = graph
        first = super().begin(ledger, graph, rng)
        if self.probability is not None and self.probability.size < ledger.capacity:
            self.probability = np.append(self.probability, np.zeros(ledger.capacity - self.probability.size))
        return self._ranked(first.pages)

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:
        """Update the pages whose mass changed; a judged page fetched again passes its score to its new links."""
        changed = super().observe(outcome, old_links).pages
        if outcome.kind == "redirected":
            self._merge(outcome.page, outcome.target)
        if outcome.kind in ("fetched", "gone") and self._score_of(outcome.page) >= 0:
            score = self._score[outcome.page]
            before, after = self._pass_on(old_links, -score, -1.0), self._pass_on(outcome.links, score, 1.0)
            changed = np.union1d(changed, np.concatenate([before, after]))
        return self._ranked(changed)

    def judge(self, pages: IdArray, scores: FloatArray) -> Reorder:
        """Note which fetched pages are on topic; return the new priorities of the pages that they link to."""
        changed = [NO_LINKS]
        self._make_room()
        for page, score in zip(pages.tolist(), scores.tolist(), strict=True):
            if page >= self._score.size:
                continue  # a page out of scope, named by a journal from elsewhere
            links, old = self._graph.links_of(page), self._score_of(page)
            is_new = not old >= 0
            changed.append(self._pass_on(links, score if is_new else score - old, float(is_new)))
            self._score[page] = score
        return self._ranked(np.unique(np.concatenate(changed)))

    def probability_of(self, pages: IdArray) -> FloatArray:
        """Return the probability that pages are on topic."""
        if self.probability is not None:
            return np.maximum(self.probability[pages], LEAST)
        if self.known is not None:
            return np.maximum(self.known(pages), LEAST)
        self._make_room()
        return (self._on[pages] + PRIOR) / (self._judged[pages] + 1.0)

    def _ranked(self, pages: IdArray) -> Reorder:
        pages = pages.astype(np.int32)
        return Reorder(pages, self._ledger.residual[pages] * self.probability_of(pages))

    def _score_of(self, page: int) -> float:
        self._make_room()
        return float(self._score[page]) if page < self._score.size else np.nan

    def _pass_on(self, links: IdArray, on: float, judged: float) -> IdArray:
        """Count a judged page for the pages that it links to; return those that wait."""
        from surveyor.kernels import mass

        ledger = self._ledger
        goals = np.array([mass.redirect_target(ledger.mass, page) for page in links.tolist()], np.int32)
        self._on[goals] += on
        self._judged[goals] += judged
        waiting: IdArray = goals[ledger.state[goals] & mass.STATUS == mass.WAITING]
        return waiting

    def _merge(self, page: int, target: int) -> None:
        """Count the links to a redirected page as links to its target."""
        from surveyor.kernels.mass import redirect_target

        self._make_room()
        final = int(redirect_target(self._ledger.mass, target))
        if final != page:
            for counts in (self._judged, self._on):
                counts[final] += counts[page]
                counts[page] = 0.0

    def _make_room(self) -> None:
        missing = self._ledger.capacity - self._score.size
        if missing > 0:
            self._judged = np.append(self._judged, np.zeros(missing))
            self._on = np.append(self._on, np.zeros(missing))
            self._score = np.append(self._score, np.full(missing, np.nan))
