"""Options of a community: how many pages to fetch around the local pages, which ones, and how to estimate."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from surveyor.arrays import IdArray
from surveyor.errors import UsageError
from surveyor.estimate.community.estimators import Method
from surveyor.rank.expansion import SELECTORS, Select

if TYPE_CHECKING:
    from surveyor.graph.back_links import BackLinks
    from surveyor.graph.csr import Graph
    from surveyor.survey.survey import Survey

Start = Literal["all", "local"]
EXTRA, SELECT, DAMPING, RNG = "2n", "complement", 0.85, 7
NUMBER = re.compile(r"(?P<times>\d+(?:\.\d+)?|\.\d+)?\s*\*?\s*n|(?P<pages>\d{1,3}(?:,\d{3})+|\d[\d_]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class CommunityOptions:
    """Options of `sv.community`; None is the default, or for an existing community survey the recorded value."""

    extra: int | str | None = None  # pages to request around the local ones: a number, or "2n", "0.5n"
    select: str | None = None  # score by which they are selected
    rng: int | None = None
    rounds: int | None = None  # selection rounds; by default each round requests 4 % of the local pages
    estimator: Method = "auto"
    stable: float = 0.0  # stop when three consecutive rounds change the local ranks by less (L1)
    start: Start | Sequence[int] | IdArray | None = None  # pages known at the start besides the local ones
    back_links: Graph | Survey | BackLinks | Path | str | None = None
    truth: bool = False  # rank the whole graph and compare
    replay: bool = False  # use only the pages that the survey has fetched
    out: Path | str | None = None  # folder of the survey of fetched pages
    damping: float | None = None

    @classmethod
    def split(cls, keywords: Mapping[str, Any]) -> tuple[CommunityOptions, dict[str, Any]]:
        """Return the options among keyword arguments, and the rest: settings of a crawl."""
        names = {field.name for field in fields(cls)}
        options = cls(**{name: value for name, value in keywords.items() if name in names})
        return options, {name: value for name, value in keywords.items() if name not in names}

    @property
    def selector(self) -> Select:
        """The score by which pages are selected."""
        chosen: Any = self.select or SELECT
        return chosen  # type: ignore[no-any-return]

    def extra_pages(self, local: int) -> int:
        """Return the number of pages to request for so many local pages."""
        return extra_pages(EXTRA if self.extra is None else self.extra, local)

    def check(self) -> None:
        """Raise an error for a value that is out of range."""
        self.extra_pages(1)
        if self.select is not None and self.select not in SELECTORS:
            raise UsageError(f"unknown select {self.select!r}", hint=f"choose {', '.join(SELECTORS)}")
        if self.estimator not in get_args(Method):
            raise UsageError(f"unknown estimator {self.estimator!r}", hint=f"choose {', '.join(get_args(Method))}")
        if self.rounds is not None and (not isinstance(self.rounds, int | np.integer) or self.rounds < 1):
            raise UsageError(
                f"rounds must be an integer of at least 1, got {self.rounds}",
                hint="omit it for rounds of 4 % of the local pages",
            )
        if self.damping is not None and not 0 < self.damping < 1:
            raise UsageError(f"damping must be between 0 and 1, got {self.damping}", hint="the default is 0.85")
        if self.rng is not None and not (isinstance(self.rng, int | np.integer) and 0 <= self.rng < 2**63):
            raise UsageError(f"rng must be an integer of at least 0, got {self.rng}", hint="the default is 7")
        if not 0 <= self.stable < math.inf:
            raise UsageError(f"stable must be at least 0, got {self.stable}", hint="such as stable=0.001")
        if isinstance(self.start, str) and self.start not in get_args(Start):
            raise UsageError(f"start must be all or local, got {self.start!r}", hint="omit it for the default")


def extra_pages(extra: str | int, local: int) -> int:
    """Return the number of extra pages: as given, or as a multiple of the number of local pages.

    >>> extra_pages("2n", 150), extra_pages("0.5n", 15), extra_pages("1_500", 10), extra_pages(0, 10)
    (300, 8, 1500, 0)
    """
    match = NUMBER.fullmatch(str(extra).strip())
    if match is None or isinstance(extra, bool):
        raise UsageError(
            f"extra must be a number of pages or a multiple of n, got {str(extra)!r}",
            hint="such as 1500, or 2n for twice the number of local pages; 0 requests no page",
        )
    if match["pages"]:
        return int(re.sub("[_,]", "", match["pages"]))
    return math.ceil(round(float(match["times"] or 1) * local, 6))  # rounded: 1.1 * 100 must be 110
