"""How much of the in-links was known to the walks of a sample, and what that means for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surveyor.sampling.coverage import Coverage, Seen, corrected, in_link_coverage, is_biased, neighbour_coverage
from surveyor.sampling.trail import Trail

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
        cap = (
            f"of {self.capped:,} pages {self.how} told as many in-links as it was asked for, and may know more: pages"
            " that many link to count too much; ask it for more of them",
        )
        if not is_biased(self.told):
            return cap if self.capped else ()
        known = f"{self.told.value:.0%} of the in-links were told" if self.told.links else "no in-links were told"
        more = "; weights make up for a part of it" if self.corrected else ""
        return (
            f"{known} ({self.how}): pages that many link to count too much, and intervals do not show it{more}; name a"
            " survey, graph or table that knows who links to a page (--in-links)",
            *(cap if self.capped else ()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "how": self.how, "told": self.told._asdict(), "known": self.known._asdict(), "corrected": self.corrected,
            "capped": self.capped, "complete": self.complete,
        }  # fmt: skip


def weighed(trail: Trail, seen: Seen, how: str, capped: int) -> tuple[Trail, InLinks]:
    """Return steps with weights that make up for in-links not known, as far as they can, and how many were."""
    told, known = in_link_coverage(seen), neighbour_coverage(seen)
    return corrected(trail, seen), InLinks(how, told, known, capped, corrected=True)
