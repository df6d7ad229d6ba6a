"""PageRank flow: read the page to which most rank would flow from the pages read.

PF-SELECT of Davis and Dhillon, KDD 2006, in rounds (`rounds.py`): Σ rank / (links + 1) over the pages that link to it.
"""

from __future__ import annotations

from typing import Any

from surveyor.crawler.strategies.rounds import Rounds


class Flow(Rounds):
    """The largest flow of rank first."""

    def __init__(self, **numbers: Any) -> None:
        """Accept the parameters of `Rounds` except `select`."""
        super().__init__("flow", **numbers)
