"""A sample of a topic as rows and in words: how it was walked, what it tells, and how far to trust it.

Bounds of intervals are rounded outward, and never written more finely than they are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import count, counted, percent, printable
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surveyor.estimate.sampling.estimates import Distribution, Estimate
    from surveyor.estimate.sampling.sample_result import Sample

KEYS = ("statistic", "of", "category", "value", "low", "high", "level", "standard_error", "ess", "pages")
SHOWN = 12  # categories of a list; the others are told as one line
UNCERTAIN = (
    "Walks visit pages in proportion to how many neighbours they have. Each step therefore counts 1/degree, which "
    "makes every page of the topic that the walks can reach count alike.",
    "An interval is meant to hold the truth in 95 of 100 such samples, if walks are long enough to agree. It knows "
    "nothing of pages that no walk can reach, nor of in-links that nobody told: where back-links are missing, pages "
    "with many in-links are over-represented, and no interval shows that.",
)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One number that was asked for."""

    kind: str  # share, mean, size, relative size or recall
    of: str  # a rule, a property, or what holds pages
    found: Estimate

    @property
    def words(self) -> str:
        """Say what it is of the pages on topic."""
        return {
            "share": f"share with {self.of}",
            "mean": f"mean {self.of}",
            "size": "pages on topic in all",
            "relative size": "share of all pages that is on topic",
            "recall": f"share that {self.of} holds",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Shares of hosts, domains, languages, or of bins of a number."""

    of: str
    found: Distribution

    @property
    def labels(self) -> list[str]:
        """The categories in words."""
        return [_label(label) for label in self.found.labels]


def _label(label: Any) -> str:
    if not isinstance(label, tuple):
        return printable(str(label)) or "(none)"
    low, high = label
    if high == math.inf:
        return f"{low:g} or more"
    return f"{low:g}" if high - low == 1 else f"{low:g} to {high - 1:g}"


def facts(sample: Sample) -> dict[str, str]:
    """Return how it was walked, and how much it is worth."""
    ess, rhat = worth(sample)
    return {
        "topic": sample.topic,
        "method": method(sample.method),
        "walks": f"{count(sample.walks)}, {counted(sample.steps, 'step')}, {counted(sample.fetches, 'page')} asked for",
        "pages on topic": f"{count(sample.distinct_pages)} different ones",
        "precision": f"{percent(sample.precision)} of the pages asked for",
        "effective sample size": count(ess),
        "R-hat": "not known: the walks are too short" if math.isnan(rhat) else f"{rhat:.3f}",
        "back-links": back_links(sample),
        "ended": ending(sample),
    }


def method(name: str) -> str:
    """Say what a method does, and whose it is."""
    from surveyor.estimate.sampling.walk_methods import METHODS

    known = METHODS[name]
    return f"{name}: {known.about}"


def worth(sample: Sample) -> tuple[float, float]:
    """Return the smallest effective sample size and the largest R-hat of what was looked at."""
    if not sample.has_estimates:
        return 0.0, math.nan
    told = sample.diagnostics
    known = [one for one in told.rhat.values() if not math.isnan(one)]
    return min(told.ess.values()), max(known, default=math.nan)


def back_links(sample: Sample) -> str:
    """Say how many of the in-links of sampled pages were known, and from where."""
    about = sample.in_links
    return f"{share_told(sample)}: {about.source}" + ("; weights make up for a part" if about.corrected else "")


def share_told(sample: Sample) -> str:
    """Say how many of the in-links of sampled pages were told."""
    told = sample.in_links.reported
    if sample.in_links.complete:
        return "all told"
    if not told.links:
        return "none told"
    return f"{percent(told.value)} told ({_shares(told.low, told.high)})"


def ending(sample: Sample) -> str:
    """Say why it ended."""
    return {
        "ess": "the effective sample size that was asked for is reached",
        "width": "the interval is as narrow as was asked for",
        "fetches": "as many pages were asked for as were allowed",
        "steps": "as many steps were made as were allowed",
        "lost": "no walk found a page on topic",
        "longest": "it took too many steps",
        "exhausted": "the walks come to no new pages",
        "interrupted": "stopped before its end",
    }[sample.ending]


def table(statistics: Sequence[Statistic]) -> Table:
    """Lay out the numbers, one a row."""
    cells = [[value(one.found), interval(one.found), effective(one.found), one.words] for one in statistics]
    records = [_record(one.kind, one.of, "", one.found) for one in statistics]
    return Table(["estimate", _level(statistics), "effective", "of the pages on topic"], cells, KEYS, records)


def categories_table(breakdown: Breakdown, shown: int | None = None) -> Table:
    """Lay out the shares of categories."""
    shares = breakdown.found.shares[:shown]
    cells = [
        [value(one), interval(one), effective(one), label] for one, label in zip(shares, breakdown.labels, strict=False)
    ]
    records = [
        _record("by", breakdown.of, label, one)
        for one, label in zip(breakdown.found.shares, breakdown.labels, strict=True)
    ]
    return Table(["share", "95 % interval", "effective", breakdown.of], cells, KEYS, records)


def long_table(statistics: Sequence[Statistic], breakdowns: Sequence[Breakdown]) -> Table:
    """Put all numbers and all categories into one table for machines."""
    records = [*table(statistics).records]
    for one in breakdowns:
        records += categories_table(one).records
    return Table(KEYS, [], KEYS, records)


def draws_table(draws: Sequence[str]) -> Table:
    """List pages that were drawn."""
    return Table(["page"], [[printable(url)] for url in draws], ("url",), [[url] for url in draws])


def meaning(sample: Sample) -> list[str]:
    """Say below the numbers what they mean."""
    from surveyor.estimate.sampling.walk_methods import METHODS

    told = "weights make every page count alike that the walks can reach; intervals are at 95 %"
    if not METHODS[sample.method].exact:
        told = "this method is kept as it was published; its weights are known to be wrong, and no interval shows that"
    return [told, "effective: as many independent uniform pages would tell as much"]


def _level(statistics: Sequence[Statistic]) -> str:
    level = statistics[0].found.level if statistics else 0.95
    return f"{100 * level:g} % interval"


def _record(kind: str, of: str, category: str, one: Estimate) -> list[Any]:
    plain = one.to_dict()
    return [kind, of, category, *(plain[key] for key in KEYS[3:])]


def effective(one: Estimate) -> str:
    """Write an effective sample size."""
    return count(one.ess) if math.isfinite(one.ess) else ""


def value(one: Estimate) -> str:
    """Write an estimate as finely as it is known.

    >>> from surveyor.estimate.sampling.estimates import Estimate
    >>> value(Estimate(0.41234, 0.379, 0.445, 0.95, 0.02, 870, 2000, 900, 8, "", True))
    '41.2 %'
    >>> value(Estimate(12.345, 11.2, 13.5, 0.95, 0.5, 870, 2000, 900, 8, ""))
    '12.3'
    """
    if not math.isfinite(one.value):
        return "-"
    scale, unit = (100, " %") if one.is_share else (1, "")
    return f"{scale * one.value:,.{_digits(one)}f}{unit}"


def interval(one: Estimate) -> str:
    """Write an interval, rounded outward.

    >>> from surveyor.estimate.sampling.estimates import Estimate
    >>> interval(Estimate(0.41234, 0.379, 0.4451, 0.95, 0.02, 870, 2000, 900, 8, "", True))
    '37.9 to 44.6 %'
    >>> interval(Estimate(float("inf"), 1234, float("inf"), 0.95, 0.0, 0, 2000, 900, 8, ""))
    '1,234 or more'
    """
    digits = _digits(one)
    scale, unit = (100, " %") if one.is_share else (1, "")
    low, high = _down(scale * one.low, digits), _up(scale * one.high, digits)
    if not math.isfinite(one.low) and not math.isfinite(one.high):
        return "not known"
    if not math.isfinite(one.high):
        return f"{low} or more"
    return f"{low} to {high}{unit}"


def _shares(low: float, high: float) -> str:
    return f"{_down(100 * low, 0)} to {_up(100 * high, 0)} %"


def _digits(one: Estimate) -> int:
    """Return how many decimals are worth writing: two figures of the interval's half."""
    if not (math.isfinite(one.low) and math.isfinite(one.high)):
        return 0
    half = (one.high - one.low) / 2 * (100 if one.is_share else 1)
    least = 1 if one.is_share else 0
    return least if half <= 0 else min(6, max(least, 1 - math.floor(math.log10(half))))


def _down(number: float, digits: int) -> str:
    return f"{math.floor(number * 10**digits + 1e-9) / 10**digits:,.{digits}f}" if math.isfinite(number) else "-"


def _up(number: float, digits: int) -> str:
    return f"{math.ceil(number * 10**digits - 1e-9) / 10**digits:,.{digits}f}" if math.isfinite(number) else "-"
