"""How often a topic is right about pages whose label is known: counts, and shares with intervals.

Precision is the share of pages that truly are on topic among those taken for it, recall the share that is found, F1
lies between them, accuracy is the share of right verdicts. Intervals are Wilson's at 95 %. That of F1 = 2p/(1 + p)
follows from p, the share of pages right among all that are, or are taken to be, on topic.

Pages of one site are alike: an interval tells how far chance in the choice of pages goes, not how a topic does
elsewhere. In a cross-validation it is approximate, as all folds share most of what they learn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from surveyor.estimate.sampling.distributions import wilson

MEASURES = ("precision", "recall", "f1", "accuracy")


class Share(NamedTuple):
    """A share and its interval; no value where there is nothing to count."""

    value: float | None
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """Return it for JSON."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Quality:
    """Verdicts beside labels."""

    hits: int  # on topic, and taken for it
    false: int  # taken for it wrongly
    missed: int  # on topic, and not taken for it
    passed: int  # rightly not taken for it
    folds: int = 0  # of a cross-validation; 0 if no page was trained on

    @classmethod
    def of(cls, labels: Sequence[bool], verdicts: Sequence[bool], folds: int = 0) -> Quality:
        """Count."""
        pairs = list(zip(map(bool, labels), map(bool, verdicts), strict=True))
        cases = ((True, True), (False, True), (True, False), (False, False))
        hits, false, missed, passed = map(pairs.count, cases)
        return cls(hits, false, missed, passed, folds)

    @property
    def precision(self) -> Share:
        """Of pages taken for the topic, the share that is on it."""
        return share(self.hits, self.hits + self.false)

    @property
    def recall(self) -> Share:
        """Of pages on topic, the share that is found."""
        return share(self.hits, self.hits + self.missed)

    @property
    def accuracy(self) -> Share:
        """The share of right verdicts."""
        return share(self.hits + self.passed, self.hits + self.false + self.missed + self.passed)

    @property
    def f1(self) -> Share:
        """The harmonic mean of precision and recall."""
        part = share(self.hits, self.hits + self.false + self.missed)
        return Share(*(None if p is None else 2 * p / (1 + p) for p in part))  # type: ignore[arg-type]  # bounds are numbers

    def to_dict(self) -> dict[str, Any]:
        """Return counts and shares for JSON."""
        counts = {"hits": self.hits, "false": self.false, "missed": self.missed, "passed": self.passed}
        return {**counts, "folds": self.folds, **{name: getattr(self, name).to_dict() for name in MEASURES}}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Quality:
        """Read it back; shares follow from counts."""
        counts = [told[name] for name in ("hits", "false", "missed", "passed", "folds")]
        if not all(isinstance(count, int) and count >= 0 for count in counts):
            raise ValueError("counts are whole numbers")
        return cls(*counts)


def share(hits: int, of: int) -> Share:
    """Return a share with its interval.

    >>> share(0, 0)
    Share(value=None, low=0.0, high=1.0)
    """
    return Share(hits / of, *wilson(hits / of, of, 0.95)) if of else Share(None, 0.0, 1.0)
