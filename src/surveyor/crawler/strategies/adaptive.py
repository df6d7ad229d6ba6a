"""Adaptive OPIC: importance on a changing web, from recent earnings only (Abiteboul et al. 2003).

Cash circulates as in OPIC, but old earnings are discarded. Time is the cash moved so far: moving 1 takes between half a
fetch and one fetch of each page on average (greedy and cycle: half). There are three windows:

- *fixed*: all fetches of the last `size` units of time, and the one before;
- *variable*: the last `size` fetches of each page, which covers more time for pages that are fetched rarely;
- *bao*: one number per page, its earnings in `size` units of time, interpolated at each fetch.

`kernels/opic_cash.py` has the formulas. A small window follows changes faster, a large one has less variance. No bound
on the error is known, so `certificate` returns the trivial one. A page is measured from its discovery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from surveyor.crawler.strategies.opic import Opic, Policy, Teleport
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.kernels.opic_cash import Earnings

Window = Literal["fixed", "variable", "bao"]
SIZES = {"fixed": 8.0, "variable": 4.0, "bao": 8.0}  # default sizes


class AdaptiveOpic(Opic):
    """OPIC over a window of recent earnings."""

    def __init__(
        self,
        window: Window = "bao",
        size: float | None = None,
        *,
        policy: Policy = "greedy",
        damping: float | None = None,
        teleport: Teleport = "trusted",
        fairness: float = 0.05,
    ) -> None:
        super().__init__(policy, damping, teleport, fairness)
        if window not in get_args(Window):
            raise UsageError(f"window must be fixed, variable or bao, got {window!r}", hint="for example adaptive:bao")
        self.window, self.size = window, SIZES[window] if size is None else float(size)
        if not self.size > 0 or (window == "variable" and (self.size < 2 or self.size % 1)):
            raise UsageError(
                f"size of a {window} window must be above 0 (variable: an integer from 2), got {self.size:g}",
                hint="try 8, or 4 for a variable window",
            )
        self.name = "adaptive" if window == "bao" else f"adaptive:{window}"

    def certificate(self) -> float:
        """Return 2, the largest possible L1 distance: no better bound is known for a window."""
        return 2.0

    def _earnings(self, pages: int) -> Earnings:
        from surveyor.kernels.opic_cash import BAO, FIXED, VARIABLE, new_earnings

        return new_earnings(pages, {"fixed": FIXED, "variable": VARIABLE, "bao": BAO}[self.window], self.size)
