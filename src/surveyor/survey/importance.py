"""Importance as OPIC estimates it from the fetches of a survey, with the bound on its error.

A crawl with the strategy `opic` or `adaptive` keeps this estimate up to date. For any other survey, the journal is
replayed under the method that is asked for, which gives the estimate that it would have after the same fetches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray, read_only
from surveyor.crawler.replay import Derived, derive
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.opic import Opic
from surveyor.errors import UsageError
from surveyor.frames import Tabular, draw_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.crawler.strategies.strategy import Strategy
    from surveyor.store.directory import SurveyFolder
    from surveyor.web.urls import Urls

METHODS = ("opic", "adaptive")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Importance(Tabular):
    """Estimated importance of the known pages in scope, best first; pages that redirect are not among them."""

    method: str  # name of the strategy: opic, adaptive:fixed, …
    pages: IdArray  # ids in the journal
    shares: FloatArray  # of all importance; they sum to 1
    fetches: IntArray  # of each page
    names: Urls  # URL of each page id
    error: float | None  # the L1 distance to PageRank of the links as fetched is at most this; None: no bound is known
    reason: str  # why there is no bound; "" if there is one

    def __post_init__(self) -> None:
        for name in ("pages", "shares", "fetches"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def total_fetches(self) -> int:
        """Number of fetches of all pages."""
        return int(self.fetches.sum())

    def top(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the best pages, best first: url, share and number of fetches."""
        columns = (column[: max(count, 0)].tolist() for column in (self.pages, self.shares, self.fetches))
        rows = zip(*columns, strict=True)
        return [{"url": self.names[page], "share": share, "fetches": fetches} for page, share, fetches in rows]

    def summary(self) -> dict[str, Any]:
        """Return the method, its bound and the number of fetches as plain values."""
        fields: dict[str, Any] = {"method": self.method, "error": self.error, "reason": self.reason}
        return {**fields, "fetches": self.total_fetches, "pages": self.pages.size}

    def to_dict(self, count: int = 10) -> dict[str, Any]:
        """Return the summary, and the best pages as `top`."""
        return {**self.summary(), "top": self.top(count)}

    def _columns(self) -> dict[str, Any]:
        urls = [self.names[page] for page in self.pages.tolist()]
        return {"id": self.pages, "url": urls, "share": self.shares, "fetches": self.fetches}

    def _draw(self, axes: Axes) -> None:
        draw_shares(axes, self.shares)

    def __repr__(self) -> str:
        bound = self.reason if self.error is None else f"error at most {self.error:.2g}"
        return f"Importance({self.method}, {self.pages.size:,} pages, {self.total_fetches:,} fetches, {bound})"

    def _html(self) -> str:
        rows = "".join(
            f"<tr><td>{row['share']:.3%}</td><td>{row['fetches']:,}</td><td>{escape(row['url'])}</td></tr>"
            for row in self.top()
        )
        return f"<p>{escape(repr(self))}</p><table><tr><th>share</th><th>fetches</th><th>page</th></tr>{rows}</table>"


def of_crawl(state: Derived) -> Importance | None:
    """Return the estimate of a crawl; None if its strategy has no such estimate."""
    return _importance(state, state.crawl.strategy) if isinstance(state.crawl.strategy, Opic) else None


def of_survey(folder: SurveyFolder, state: Derived, method: str) -> Importance:
    """Return the estimate of a survey by a method: that of its own strategy, if possible, or else of a replay."""
    if method.partition(":")[0] not in METHODS:
        raise UsageError(
            f"method must be {' or '.join(METHODS)}, with or without arguments, got {method!r}",
            hint="for example opic, or adaptive:window=fixed,size=8",
        )
    asked = by_name(method)
    own = state.crawl.strategy
    same_kind = type(own) is type(asked) and ":" not in method
    if not (isinstance(own, Opic) and (same_kind or _name(own) == _name(asked))):
        state = derive(folder, make=partial(_given, asked))
    return _importance(state, state.crawl.strategy)


def _given(strategy: Strategy, _: object) -> Strategy:
    return strategy


def _name(strategy: Strategy) -> str:
    return str(getattr(strategy, "name", ""))


def _importance(state: Derived, strategy: Strategy) -> Importance:
    assert isinstance(strategy, Opic)  # noqa: S101
    from surveyor.kernels.opic_cash import KNOWN, OUT, REDIRECTED

    life, shares = strategy.cash.state, strategy.importance()
    pages = np.flatnonzero((life & KNOWN > 0) & (life & REDIRECTED == 0))
    pages = pages[np.lexsort((pages, -shares[pages]))]
    fetches = np.where(life & OUT, 0, strategy.cash.earnings.fetches)[pages].astype(np.int64)
    bound = strategy.bound()
    return Importance(
        _name(strategy), np.asarray(pages, np.int32), shares[pages], fetches, state.urls, bound.error, bound.reason
    )
