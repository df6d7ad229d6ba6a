"""What happened to a page that was asked for: the one kind of event that a crawl is made of.

Failures are data. Links are page ids: cleaned, distinct, in scope, without the page itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from surveyor.arrays import IdArray, read_only

Kind = Literal["read", "gone", "blocked", "moved"]
NO_LINKS: IdArray = read_only(np.empty(0, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One event: a page was read, is gone for good, may not or cannot be read now, or moved elsewhere."""

    page: int
    kind: Kind
    links: IdArray = field(default_factory=lambda: NO_LINKS)  # of a page read
    reason: str = ""  # of a page blocked: "robots", "budget", "error", …; of one read: "needs JavaScript"
    target: int = -1  # of a page moved: the page that it stands for

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Outcome)
            and (self.page, self.kind, self.reason, self.target) == (other.page, other.kind, other.reason, other.target)
            and np.array_equal(self.links, other.links)
        )

    __hash__ = None  # type: ignore[assignment]  # holds an array


def was_asked(outcome: Outcome) -> bool:
    """Say whether a page was asked for, and not only refused."""
    return outcome.kind != "blocked" or getattr(outcome, "fetched_at", 0.0) > 0
