"""Adaptive OPIC: importance on a changing web, from recent earnings only (Abiteboul et al. 2003).

Cash circulates as in OPIC, but old earnings are discarded. Time is the cash moved so far: moving 1 takes between half a
fetch and one fetch of each page on average (greedy and cycle: half). There are four windows:

- *static*: all fetches, as in OPIC;
- *fixed*: all fetches of the last `size` units of time, and the one before;
- *variable*: the last `size` fetches of each page, which covers more time for pages that are fetched rarely;
- *bao*: one number per page, its earnings in `size` units of time, interpolated at each fetch.

`kernels/opic_cash.py` has the formulas. A small window follows changes faster, a large one has less variance. No bound
on the error of a window is known, except of the static one. A page is measured from its discovery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from surveyor.crawler.strategies.opic import Bound, Opic, Policy, Teleport, spelled
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from surveyor.kernels.opic_cash import Earnings

Window = Literal["static", "fixed", "variable", "bao"]
SIZES = {"static": 1.0, "fixed": 8.0, "variable": 4.0, "bao": 8.0}  # default sizes


class AdaptiveOpic(Opic):
    """OPIC over a window of recent earnings."""

    parameters: ClassVar[dict[str, Callable[[str], object]]] = {"window": str, "size": float, **Opic.parameters}

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
            raise UsageError(
                f"window must be static, fixed, variable or bao, got {window!r}", hint="for example adaptive:bao"
            )
        self.window, self.size = window, SIZES[window] if size is None else float(size)
        if not self.size > 0 or (window == "variable" and (self.size < 2 or self.size % 1)):
            raise UsageError(
                f"size of a {window} window must be above 0 (variable: an integer from 2), got {self.size:g}",
                hint="try 8, or 4 for a variable window",
            )
        kinds = {"policy": policy, "damping": damping, "teleport": teleport, "fairness": fairness}
        self.name = spelled("adaptive", "window", window=window, size=size, **kinds)

    def bound(self) -> Bound:
        """Return that there is no bound, except of the static window."""
        if self.window == "static":
            return super().bound()
        return Bound(None, f"no bound: none is known for a {self.window} window")

    def _earnings(self, pages: int) -> Earnings:
        from surveyor.kernels.opic_cash import BAO, FIXED, PLAIN, VARIABLE, new_earnings

        return new_earnings(
            pages, {"static": PLAIN, "fixed": FIXED, "variable": VARIABLE, "bao": BAO}[self.window], self.size
        )
