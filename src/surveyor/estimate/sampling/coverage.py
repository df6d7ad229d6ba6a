"""How much of the back-links walks knew, and weights that make up for a part of what they did not know.

A walk goes along links and, as far as they are known, against them. If not all in-links are known, a page is reached
by its in-links and by those of its out-links that were told at the other end, but it is left by all its out-links and
by in-links that are told. So what a page has to show for itself, its frozen degree, is not how often walks come by:
pages that many link to are met too often, and pages that nobody links to seldom or never.

**Coverage.** Whether a source tells a link does not depend on whether the linking page was read before the source was
asked. So of the links from pages read earlier, the share that was told estimates the share that is told of all.

**Weights.** With c the share told, a page is expected to be visited in proportion to

    degree^f * (in + c * out)^(1 - f) * reach

where in + c * out are the links by which it can be reached (out: links that are not returned), and f is the share of
frozen neighbours that walks have drawn from, of those that they go to at all, on average over pages. Pages without a
known in-link are found only if one of their out-links is told: for them reach = 1 - (1 - c)^out, else 1. In-links from
pages that were not read are estimated from those told (Gamma-Poisson, among pages with about as many in-links from
pages that were read). As walks come to know all pages, f tends to 1 and the frozen degree counts; if all links are
told, both are the same.
The form was found by trying: `experiments.back_links` measures what it is good for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.estimate.sampling.distributions import wilson
from surveyor.estimate.sampling.walk_trace import WalkTrace

ENOUGH = 0.3  # in-links told: corrected weights are then off by no more than chance at 400 pages, on most webs
LEAST = 0.05  # below, too few are told to learn from them
FLOOR = 0.05  # of the chance to be reached, and of links to be reached by: no weight grows beyond 20 times
PRIOR = 20  # links that a page's own share told counts for, beside the share of all
GROUPS = 6  # of pages, by the logarithm of in-links seen


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What walks have seen by their end of the pages they stood on, and of links into these.

    A link is known if the source of back-links tells it, or if the linking page was read, be it too late.
    """

    pages: IdArray  # that walks stood on, each once, ascending; entry i of the next four is that of pages[i]
    out: IntArray  # links to other pages
    degree: IntArray  # neighbours in its frozen list
    walked: IntArray  # those of them whose lists are frozen, too
    refused: IntArray  # those that were read, but not drawn from: walks do not go there
    place: IntArray  # of each known link into these pages: where in `pages` its target is
    told: BoolArray  # the source of back-links tells it
    read: BoolArray  # the linking page was read
    earlier: BoolArray  # it was, before the source was asked about the target
    back: BoolArray  # the target links to the linking page, too

    def count(self, chosen: BoolArray) -> FloatArray:
        """Count the chosen links into each page."""
        return np.bincount(self.place[chosen], minlength=self.pages.size).astype(np.float64)


class Coverage(NamedTuple):
    """A share of links that were known, with an interval of 95 %, and the number of links it rests on."""

    value: float
    low: float
    high: float
    links: int


WHOLE, NOTHING = Coverage(1.0, 1.0, 1.0, 0), Coverage(0.0, 0.0, 1.0, 0)


@dataclass(frozen=True, slots=True)
class InLinks:
    """Links into the pages that walks stood on: how many were known, from where, and whether weights make up for it."""

    how: str  # where they are known from
    told: Coverage = WHOLE  # of the in-links, those that a source of back-links tells
    known: Coverage = WHOLE  # of all neighbours, those in the lists that walks drew from
    capped: int = 0  # pages of which the source told as many in-links as it was asked for: there may be more
    corrected: bool = False  # weights make up for a part of what was not known

    @property
    def complete(self) -> bool:
        """Whether all are known, and not only estimated to be."""
        return self.told == WHOLE

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say that a sample is biased for want of in-links, if it is."""
        said = []
        if self.told.value < ENOUGH:
            known = f"{self.told.value:.0%} of the in-links were told" if self.told.links else "no in-links were told"
            more = "; weights make up for a part of it" if self.corrected else ""
            said.append(
                f"{known} ({self.how}): pages that many link to count too much, and intervals do not show it{more};"
                " name a survey, graph or table that knows who links to a page (--in-links)"
            )
        if self.capped:
            said.append(
                f"of {self.capped:,} pages {self.how} told as many in-links as it was asked for, and may know more:"
                " pages that many link to count too much"
            )
        return tuple(said)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "how": self.how, "told": self.told._asdict(), "known": self.known._asdict(), "corrected": self.corrected,
            "capped": self.capped, "complete": self.complete,
        }  # fmt: skip


def weighed(trace: WalkTrace, seen: Seen, how: str, capped: int) -> tuple[WalkTrace, InLinks]:
    """Return steps with weights that make up for in-links not known, as far as they can, and how many were."""
    told, known = in_link_coverage(seen), neighbour_coverage(seen)
    return corrected(trace, seen), InLinks(how, told, known, capped, corrected=True)


def in_link_coverage(seen: Seen) -> Coverage:
    """Estimate the share of in-links, of the pages that walks stood on, that the source of back-links tells.

    If the source tells much of some pages and little of others, as one that tells the first hundred does, links told
    are set against the in-links estimated page by page. Links into the same page may be told or not told together:
    the interval (Wilson's) counts as many links as would be as uncertain if they were independent.

    It holds for sources that tell links of all pages alike. Of one that tells the first hundred the value is too high,
    as pages with many in-links are met before much was read, and the interval does not know that.
    """
    pooled, prior, _ = _shares(seen)
    asked, told = seen.count(seen.earlier), seen.count(seen.earlier & seen.told)
    links = int(asked.sum())
    if not links:
        return NOTHING
    value = pooled
    if LEAST <= pooled < 1:
        apart = float(seen.told.sum()) / max(float(_in_links(seen, pooled)[0].sum()), 1.0)
        value = (prior * pooled + PRIOR * apart) / (prior + PRIOR)
    if 0 < value < 1:
        spread = max(float(((told - pooled * asked) ** 2).sum()), 1e-12)
        worth = min(float(links), pooled * (1 - pooled) * links**2 / spread)
    else:  # all alike: links of a page may be so together, so that pages count
        worth = float((asked > 0).sum())
    return Coverage(value, *wilson(value, worth, 0.95), links)


def neighbour_coverage(seen: Seen) -> Coverage:
    """Estimate the share of all neighbours, of the pages that walks stood on, that are in their frozen lists.

    Without a source of back-links, in-links from pages never read cannot be counted: the value is an upper bound, and
    the interval reaches down to 0.
    """
    told = in_link_coverage(seen)
    frozen = float(seen.degree.sum())

    def share(coverage: float) -> float:
        into, mutual = _in_links(seen, coverage)
        return min(1.0, frozen / max(float((into + seen.out - mutual).sum()), frozen, 1.0))

    low = share(told.low) if told.low >= LEAST else 0.0
    return Coverage(share(told.value), low, share(told.high), told.links)


def expected_visits(seen: Seen) -> FloatArray:
    """Return how often each page is expected to be visited, up to a factor: what its degree should have been."""
    told = in_link_coverage(seen).value
    degree = np.maximum(seen.degree, 1).astype(np.float64)
    drawn, refused = seen.walked, seen.refused
    apt = float(drawn.sum()) / max(float((drawn + refused).sum()), 1.0)  # of neighbours not read yet, as of those read
    settled = float((drawn / np.maximum(drawn + apt * (degree - drawn - refused), 1)).mean()) if degree.size else 1.0
    into, mutual = _in_links(seen, told)
    arrive = np.maximum(into + told * (seen.out - mutual), FLOOR)
    lonely = np.bincount(seen.place, minlength=seen.pages.size) == 0
    reach = np.where(lonely & (told >= LEAST), 1 - (1 - told) ** np.maximum(seen.out, 1), 1.0)
    return degree**settled * arrive ** (1 - settled) * np.maximum(reach, FLOOR)


def corrected(trace: WalkTrace, seen: Seen) -> WalkTrace:
    """Return a trace whose degrees are the expected visits, so that its weights make up for links not known.

    For means and shares: sizes of topics by collisions come out up to 1.6 times too large on large webs.
    """
    return replace(trace, degree=expected_visits(seen)[np.searchsorted(seen.pages, trace.page)])


def _shares(seen: Seen) -> tuple[float, float, FloatArray]:
    """Estimate the share of in-links told: of all pages, how many links of a page that counts for, and of each page.

    Shares of pages have a Beta distribution; how widely they spread is taken from the moments of the counts.
    """
    early, read = seen.earlier, seen.read
    pooled = float(seen.told[early].mean()) if early.any() else 0.0
    asked, told = seen.count(read), seen.count(read & seen.told)
    mean = float(told.sum() / max(asked.sum(), 1))
    chance = mean * (1 - mean)
    excess = float(((told - mean * asked) ** 2).sum()) - chance * float(asked.sum())
    alike = excess / max(chance * float((asked * (asked - 1)).sum()), 1e-9)  # correlation of links into a page
    prior = 1 / min(max(alike, 1e-6), 0.9) - 1
    return pooled, prior, (told + prior * pooled) / (asked + prior)


def _in_links(seen: Seen, coverage: float) -> tuple[FloatArray, FloatArray]:
    """Estimate the in-links of each page, and how many of them are returned."""
    read, known = seen.count(seen.read), seen.count(seen.told | seen.read)
    into, back, out = read.copy(), seen.count(seen.back), seen.out.astype(np.float64)
    if coverage >= LEAST:
        unread = seen.count(seen.told & ~seen.read)
        pooled, _, shares = _shares(seen)
        shares = np.clip(shares * coverage / max(pooled, FLOOR), FLOOR**2, 1.0)
        group = np.minimum(np.log2(read + 1).astype(np.int64), GROUPS)
        for each in np.unique(group):
            own = group == each
            into[own] += _whole(unread[own], shares[own])
    share = min(1.0, float(known.sum()) / max(float(into.sum()), 1.0))
    mutual = np.minimum(np.minimum(back / max(share, FLOOR), out), into)
    return np.maximum(into, 1.0) if coverage < LEAST else into, mutual


def _whole(counts: FloatArray, shares: FloatArray) -> FloatArray:
    """Estimate how many there are of each if a share of them was counted.

    The numbers are Poisson with means that have a Gamma distribution, fitted to the moments of the counts.
    """
    mean = float(counts.mean())
    if not mean:
        return counts
    shape = min(max(mean**2 / max(float(counts.var()) - mean, 1e-9), FLOOR), 1e6)
    return counts + (1 - shares) * (shape + counts) / (shape * float(shares.mean()) / mean + shares)
