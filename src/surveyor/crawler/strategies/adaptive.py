"""Adaptive OPIC: importance on a web that changes, from recent earnings only (Abiteboul et al. 2003).

Cash circulates as in OPIC, but what a page earned long ago is forgotten. Time is the cash moved so far: to move 1
takes between half a read and one read of each page on average (greedy and cycle: half). Three ways to remember:

- *fixed*: all reads of the last `size` units of time, and the one before;
- *variable*: the last `size` reads of each page: more memory for pages that are read seldom;
- *bao*: one number for each page, what it earns in `size` units of time, brought up to date at each read.

`kernels/earnings.py` has the formulas. A small window follows changes, a large one averages more: no bound on the
error is known, so `certificate` has only the trivial one. A page is measured from its discovery on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from surveyor.crawler.strategies.opic import Opic, Policy, Teleport
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.kernels.earnings import Earnings

Window = Literal["fixed", "variable", "bao"]
SIZES = {"fixed": 8.0, "variable": 4.0, "bao": 8.0}  # of windows when not said


class AdaptiveOpic(Opic):
    """OPIC that forgets."""

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
            raise UsageError(f"no window {window!r}", hint="fixed, variable or bao")
        self.window, self.size = window, SIZES[window] if size is None else float(size)
        if not self.size > 0 or (window == "variable" and (self.size < 2 or self.size % 1)):
            raise UsageError(f"a {window} window of size {self.size:g}", hint="try 8, or 4 for a variable window")
        self.name = "adaptive" if window == "bao" else f"adaptive:{window}"

    def certificate(self) -> float:
        """Return 2, the largest distance there is: no better bound is known for a window."""
        return 2.0

    def _earnings(self, pages: int) -> Earnings:
        from surveyor.kernels.earnings import BAO, FIXED, VARIABLE, new_earnings

        return new_earnings(pages, {"fixed": FIXED, "variable": VARIABLE, "bao": BAO}[self.window], self.size)
