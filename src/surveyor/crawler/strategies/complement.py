"""Stochastic complement: read the pages that would change the ranks of the seeds (or of local pages) most.

SC-SELECT of Davis and Dhillon, KDD 2006, evaluated exactly (`rank/complement.py`), in rounds (`rounds.py`).
"""

from __future__ import annotations

from typing import Any

from surveyor.crawler.strategies.rounds import Rounds


class Complement(Rounds):
    """The largest change of the ranks of local pages first."""

    def __init__(self, **numbers: Any) -> None:
        """Accept the parameters of `Rounds` except `select`."""
        super().__init__("complement", **numbers)
