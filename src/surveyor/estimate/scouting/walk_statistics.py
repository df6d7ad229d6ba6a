"""Statistics of independent random walks whose ends are draws from importance: shares, unseen mass, size.

**Shares.** The share of importance on pages of some kind is the probability that a walk ends on one. With n walks,
fixed in advance, the number that do is binomial, and the Clopper–Pearson interval contains the share with probability
at least 95 %. A walk that has not ended counts as 0 for the lower end and as 1 for the upper end.

**Clicks.** Whether a walk ends is drawn independently at each page, so the last link that a walk followed is a random
click: pages by importance, links of a page with equal probability. The share of broken ones is binomial among the
walks whose last move was a click. An unfinished walk may become one of these, or not; both ends allow for it.

**Unseen mass** is the importance of the pages that no walk has visited. Its estimate is that of Good and Turing: the
share of walks that end on a page which no other walk has visited, or that have not ended. Its upper bound splits the
walks: pages visited by the first half are fixed when the second half is drawn, so the number of ends outside of them is
binomial.

**Size.** Of M known unfetched URLs n are drawn without replacement, and k of them are pages. The number of pages among
all M is at least the smallest K with P(at least k of n | K of M) > 5 %: exact, as the hypergeometric tail grows with K.
No upper bound exists without assumptions: a site may have any number of pages behind a link that few walks follow.

**Coverage by pages** (rarefaction). The pages of m walks drawn at random from n cover the end of another walk with a
probability that follows from how many walks have visited that page; its mean over all walks estimates the coverage of
as many pages as m walks visit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.crawler.scout_walks import Walk
from surveyor.estimate.sampling.distributions import beta_quantile

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A share with its exact confidence interval."""

    share: float | None  # among the walks that have ended; None if there is none
    at_least: float
    at_most: float
    count: int  # walks that ended there
    walks: int  # among which they are counted, unfinished ones included

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)


def share_estimate(count: int, unknown: int, trials: int, confidence: float = CONFIDENCE) -> ShareEstimate:
    """Return the share of `count` of `trials` draws; `unknown` of them may be of this kind, too.

    >>> estimate = share_estimate(20, 0, 200)
    >>> estimate.share, round(estimate.at_least, 4), round(estimate.at_most, 4)
    (0.1, 0.0622, 0.1502)
    """
    tail, ended = (1 - confidence) / 2, trials - unknown
    low = beta_quantile(tail, count, trials - count + 1) if trials else 0.0
    most = count + unknown
    high = beta_quantile(1 - tail, most + 1, trials - most) if trials else 1.0
    return ShareEstimate(count / ended if ended else None, low, high, count, trials)


def upper_bound(count: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """Return the one-sided upper bound of a probability, given `count` of `trials`.

    >>> round(upper_bound(0, 100), 4)  # the rule of three
    0.0295
    """
    return beta_quantile(confidence, count + 1, trials - count) if trials else 1.0


@dataclass(frozen=True, slots=True)
class UnseenMass:
    """The importance of the pages that no walk has visited."""

    estimate: float | None  # None if no walk has ended
    at_most: float | None  # None if a limit stopped walks of the first half
    confidence: float = CONFIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)


def unseen_mass(walks: Sequence[Walk], *, is_half_done: bool = True) -> UnseenMass:
    """Estimate and bound the unseen mass; without `is_half_done` there is no bound.

    If a limit stops walks of the first half, the pages that they have visited depend on the other walks, too.
    """
    visitors = _visitors(walks)
    ends = [walk.pages[-1] for walk in walks if walk.ended]
    unseen = sum(visitors[end] == 1 for end in ends) + len(walks) - len(ends)
    estimate = unseen / len(walks) if ends else None
    half = len(walks) // 2
    seen = {page for walk in walks[:half] for page in walk.pages}
    outside = sum(not walk.ended or walk.pages[-1] not in seen for walk in walks[half:])
    return UnseenMass(estimate, upper_bound(outside, len(walks) - half) if is_half_done else None)


def _visitors(walks: Sequence[Walk]) -> Counter[int]:
    """Count the walks that have visited each page."""
    return Counter(page for walk in walks for page in set(walk.pages))


def members_at_least(population: int, drawn: int, members: int, confidence: float = CONFIDENCE) -> int:
    """Return the lower bound of the members of a population, of which `drawn` have `members` members.

    >>> members_at_least(1000, 30, 30), members_at_least(30, 30, 12), members_at_least(1000, 30, 0)
    (907, 12, 0)
    """
    if not members:
        return 0
    low, high = members, population - (drawn - members)  # the bound is in this range
    while low < high:
        middle = (low + high) // 2
        if _hypergeometric_tail(population, middle, drawn, members) > 1 - confidence:
            high = middle
        else:
            low = middle + 1
    return low


def _hypergeometric_tail(population: int, members: int, drawn: int, least: int) -> float:
    """Return the probability that at least `least` of `drawn` are members."""
    whole = _log_choose(population, drawn)
    counts = range(max(least, drawn - (population - members)), min(drawn, members) + 1)
    logs = (_log_choose(members, k) + _log_choose(population - members, drawn - k) - whole for k in counts)
    return math.fsum(map(math.exp, logs))


def _log_choose(whole: int, part: int) -> float:
    return math.lgamma(whole + 1) - math.lgamma(part + 1) - math.lgamma(whole - part + 1)


@dataclass(frozen=True, slots=True, eq=False)
class CoverageCurve:
    """Expected pages visited by 1, 2, 4, … walks, and the estimated coverage of these pages."""

    pages: FloatArray
    coverage: FloatArray


def coverage_curve(walks: Sequence[Walk]) -> CoverageCurve:
    """Return the rarefaction curve of some walks; empty if fewer than two have ended."""
    visitors = _visitors(walks)
    ends = [visitors[walk.pages[-1]] for walk in walks if walk.ended]
    count = len(walks)
    if len(ends) < 2:
        return CoverageCurve(np.empty(0), np.empty(0))
    sizes = sorted({*(1 << power for power in range(count.bit_length()) if 1 << power < count), count - 1})
    others: IntArray = np.array(ends) - 1
    visits: IntArray = np.array(list(visitors.values()))
    pages = [float(np.sum(1 - _missed(count, visits, size))) for size in sizes]
    covered = [float(np.sum(1 - _missed(count - 1, others, size))) / count for size in sizes]
    return CoverageCurve(np.array(pages), np.array(covered))


def _missed(whole: int, members: IntArray, drawn: int) -> FloatArray:
    """Return the probability that none of `drawn` of `whole` is a member, for several numbers of members."""
    by_count = {
        count: math.exp(_log_choose(whole - count, drawn) - _log_choose(whole, drawn))
        if whole - count >= drawn
        else 0.0
        for count in set(members.tolist())
    }
    return np.array([by_count[count] for count in members.tolist()])
