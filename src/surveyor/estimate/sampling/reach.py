"""What a sample did not reach: the evidence of its starts.

Steps of a walk say nothing about parts of the topic that the walk cannot enter; only starts do. Independent uniform
starts miss a part that holds a share u of the topic with probability (1 - u)^n. Starts that were given, such as seed
URLs, are no random draws of the topic: how many parts they miss is unknown, only whether they are in one part.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import IdArray
from surveyor.estimate.sampling.diagnostics import stuck_walks
from surveyor.estimate.sampling.distributions import clopper_pearson
from surveyor.estimate.sampling.parts import Parts, groups_of_walks, largest_missed, start_pages_of
from surveyor.estimate.sampling.walk_trace import WalkTrace

if TYPE_CHECKING:
    from surveyor.estimate.sampling.estimates import Estimate

NEGLIGIBLE = 0.01  # share of the topic that may be unreachable without a warning that the goal is not reached
ONE_SIDED = 0.9  # level of a two-sided interval whose upper bound has 95 %
FEW_STARTS = 4  # with fewer distinct start pages, hardly any unconnected part would be noticed


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of the topic a sample could reach, and how that is known."""

    kind: str = "given"  # starts: uniform (every page drawn independently), drawn (at random on topic) or given
    starts: int = 0  # distinct start pages on topic
    groups: int = 1  # sets of walks that are in unconnected parts, or never visited a common page
    outside: int = 0  # starts that are not in the largest of these sets
    low: float = 0.0  # share of the topic not reached, with 95 % confidence
    high: float = 1.0
    known: bool = False  # whether low and high hold for this topic, and not only if its starts were drawn at random
    parts: int | None = None  # of the topic, if they are known
    missed: int = 0  # pages in parts without a walk, if the parts are known
    missed_share: float = 0.0
    probes: int = 0  # short walks from independent uniform starts
    unmet: int = 0  # probes that visited no page of the walks
    contradictions: tuple[str, ...] = field(default=())  # estimates that independent draws do not agree with

    @property
    def conclusive(self) -> bool:
        """Whether the starts show that little is missed, or at least nothing that contradicts it."""
        if self.kind == "uniform":
            return True
        return not self.contradictions and (self.high <= NEGLIGIBLE if self.known else self.groups <= 1)

    @property
    def text(self) -> str:
        """One line for the terminal."""
        if self.kind == "uniform":
            if self.high == 0:
                return "all pages on topic were drawn"
            return f"{self.starts:,} independent draws: a part of {_percent(self.high)} or more is missed once in 20"
        starts = f"{self.starts:,} start page{'s' if self.starts != 1 else ''}"
        if self.known:
            what = "" if self.parts is None else f" in {self.parts:,} part{'s' if self.parts != 1 else ''}"
            return (
                f"{starts}; at most {_percent(self.high)} of the topic{what} was not reached, by {self.probes:,} probes"
            )
        if self.groups > 1:
            return f"{starts}; walks in {self.groups:,} groups that never met, of unknown shares of the topic"
        unless = "" if self.kind == "drawn" else ", if the starts are like random pages of it"
        return f"{starts}, one part; up to {_percent(self.high)} of the topic may be in other parts{unless}"

    @property
    def _range(self) -> str:
        low, high = _percent(self.low), _percent(self.high)
        return high if low == high else f"{low} to {high}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why the sample may not describe the whole topic."""
        found = []
        if self.known and self.kind != "uniform" and self.high > NEGLIGIBLE:
            reason = f"{self.missed:,} pages on topic are in parts that these walks cannot reach" if self.missed else ""
            if self.unmet:
                probes = f"{self.unmet:,} of {self.probes:,} probes from random pages on topic never met the walks"
                reason = f"{reason}; {probes}" if reason else probes
            found.append(f"{self._range} of the topic were not reached ({reason}); use method uniform")
        if self.groups > 1 and self.kind != "uniform":
            found.append(
                f"the walks form {self.groups} groups that never visited a common page: the topic may have parts that"
                " do not connect, and how large each is cannot be seen from them; walk longer, use a larger reach, or"
                " sample each part by its own starts"
            )
        if self.kind == "given" and not self.known and self.groups <= 1 and 0 < self.starts < FEW_STARTS:
            found.append(
                f"the walks have {self.starts} distinct start page{'s' if self.starts > 1 else ''}: a part of the topic"
                " that is not linked to them is missed, and this sample cannot show it; give four or more start pages"
                " that are far apart"
            )
        found += [
            f"the walks missed pages on topic, by the comparison with independent draws ({line}); use method uniform"
            for line in self.contradictions
        ]
        return tuple(found)

    def widen(self, share: Estimate) -> Estimate:
        """Return the estimate of a share with an interval for the whole topic, whatever the missed pages are."""
        missed = self.missed_share
        if not missed:
            return share
        low, high = (1 - missed) * share.low, (1 - missed) * share.high + missed
        return replace(share, low=low, high=max(high, share.value))

    def enlarge(self, size: Estimate, at_most: float) -> Estimate:
        """Return the estimate of the size of the reached part as one of the whole topic."""
        if not self.known:
            return size
        share = max(self.high - self.missed_share, 0.0)  # not reached, of the parts with walks
        low, high = size.low + self.missed, size.high / (1 - share) + self.missed if share < 1 else math.inf
        value = min(size.value + self.missed, at_most)
        return replace(size, value=value, low=low, high=max(min(high, at_most), value))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {**asdict(self), "contradictions": list(self.contradictions), "conclusive": self.conclusive}

    @classmethod
    def uniform(cls, draws: int, *, complete: bool) -> Reach:
        """Return the reach of independent draws."""
        return cls("uniform", draws, high=0.0 if complete else largest_missed(draws), known=True)

    @classmethod
    def of_walks(cls, trace: WalkTrace, *, drawn: bool) -> Reach:
        """Return the reach that the starts of walks show: those whose walks never met the others are outside."""
        kind, groups = "drawn" if drawn else "given", groups_of_walks(trace)
        if not groups.size:
            return cls(kind)
        pages = start_pages_of(trace)
        distinct, first = np.unique(pages, return_index=True)
        sizes = np.bincount(groups[first])
        outside = int(distinct.size - sizes.max())
        low, high = clopper_pearson(outside / distinct.size, distinct.size, ONE_SIDED)
        moved = np.setdiff1d(np.unique(trace.walk[trace.on_topic]), stuck_walks(trace)).size
        count = int(np.unique(groups).size)
        return cls(kind, int(distinct.size), count if moved else 1, outside, low if outside else 0.0, high)

    def on_graph(self, parts: Parts, first: IdArray, probes: int, unmet: int) -> Reach:
        """Return the reach on a graph whose parts are known, with probes from uniform starts in those with walks."""
        among = np.unique(parts.of_page[first])
        missed = int(parts.sizes.sum() - parts.sizes[among].sum())
        share = missed / int(parts.sizes.sum())
        low, high = clopper_pearson(unmet / probes, probes, ONE_SIDED)
        if probes == int(parts.sizes[among].sum()):  # from every page
            low = high = unmet / probes
        return replace(
            self,
            groups=int(among.size),
            low=share + (1 - share) * low,
            high=share + (1 - share) * high,
            known=True,
            parts=int(parts.sizes.size),
            missed=missed,
            missed_share=share,
            probes=probes,
            unmet=unmet,
        )


def _percent(share: float) -> str:
    percent = 100 * share
    digits = 0 if percent >= 10 else min(4, 1 - math.floor(math.log10(percent))) if percent > 0 else 0
    return f"{percent:.{digits}f} %"
