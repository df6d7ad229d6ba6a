"""Text and tables of a scout: shares with exact intervals, size, unseen mass and forecasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import counted, duration, percent, share_at_least, share_at_most
from surveyor.report.tables import Formats, Table, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.estimate.scouting.scout import Scout, SizeBound
    from surveyor.estimate.scouting.walk_statistics import ShareEstimate

SHARES: Formats = {
    "share": lambda share: "-" if share is None else percent(share),
    "at_least": share_at_least,
    "at_most": share_at_most,
    "count": str,
    "name": str,
}
FORECASTS: Formats = {
    "coverage": lambda share: f"{100 * share:g} %",
    "certified_pages": lambda pages: "-" if pages is None else f"{pages:,}",
    "certified_hours": lambda hours: _time(hours),
    "sampled_pages": lambda pages: "-" if pages is None else f"{pages:,}",
    "sampled_hours": lambda hours: _time(hours),
    "reason": str,
}
TITLES = {
    "at_least": "at least",
    "at_most": "at most",
    "count": "walks",
    "certified_pages": "pages, certified",
    "certified_hours": "time",
    "sampled_pages": "pages, sampled",
    "sampled_hours": "time",
    "reason": "",
}


def shares_table(shares: Mapping[str, ShareEstimate], title: str) -> Table:
    """Return shares of importance as a table; `title` is that of the names."""
    rows: list[dict[str, Any]] = [{"name": name, **share.to_dict()} for name, share in shares.items()]
    return table_of(rows, SHARES, titles={**TITLES, "name": title})


def general_shares(scout: Scout) -> dict[str, ShareEstimate]:
    """Return the shares of broken links and of pages that need JavaScript, by name."""
    return {"clicks that lead to a broken page": scout.broken_clicks, "pages that need JavaScript": scout.javascript}


def forecast_table(scout: Scout) -> Table:
    """Return the forecasts as a table."""
    return table_of([one.to_dict() for one in scout.forecasts], FORECASTS, titles=TITLES)


def forecast_note(scout: Scout) -> str:
    """Return what the forecasts are, and what their times follow from."""
    rate = scout.pages_per_second
    pace = "; no rate is known for times" if rate is None else f", at {rate:.3g} pages per second"
    return f"forecasts, not bounds: extrapolated from {counted(scout.pages_fetched, 'page')}{pace}"


def walk_lines(scout: Scout) -> list[str]:
    """Return how many walks the shares are from, and how unfinished ones are counted."""
    finished = f"{scout.finished:,} of {counted(scout.walks, 'random walk')} from the seeds ended"
    fetched = f"{counted(scout.pages_fetched, 'page')} fetched, {scout.requests:,} requests"
    left = scout.walks - scout.finished
    both = f"; the other {left:,} count as no for each lower end and as yes for each upper end" if left else ""
    return [f"{finished}{both}.", f"{fetched}."]


def unseen_line(scout: Scout) -> str:
    """Return the estimate and the bound of the unseen mass."""
    unseen = scout.unseen
    if unseen.estimate is None:
        return "unknown: no walk ended"
    bound = "no bound: a limit stopped the first walks"
    if unseen.at_most is not None:
        bound = f"at most {share_at_most(unseen.at_most)} with {100 * unseen.confidence:g} % confidence"
    return f"{percent(unseen.estimate)} of importance on pages that no walk visited (Good-Turing), {bound}"


def size_lines(scout: Scout) -> list[str]:
    """Return the lower bound of the size, its basis, and what the sitemaps list."""
    size = scout.size
    lines = [_size_line(size, scout.pages_fetched)]
    if not size.is_complete:
        lines.append("no upper bound: none exists without assumptions about the pages that no link led to yet")
    if scout.sitemap_pages is not None:
        unread = f"; {counted(scout.sitemaps_unread, 'sitemap')} not read" if scout.sitemaps_unread else ""
        lines.append(f"{counted(scout.sitemap_pages, 'page')} listed in sitemaps, not checked{unread}")
    if scout.javascript.count:
        lines.append("scripts are not run: pages that only scripts link to are in no number above or below")
    return lines


def _size_line(size: SizeBound, fetched: int) -> str:
    if size.is_complete:
        return f"{counted(size.at_least, 'page')}: every known URL was requested"
    if size.reason:
        return f"at least {counted(size.at_least, 'page')}, those fetched: {size.reason}"
    basis = f"{size.pages:,} of {size.sampled:,} sampled from {size.unfetched:,} unfetched URLs are pages"
    if fetched >= size.at_least:
        return f"at least {counted(size.at_least, 'page')}, those fetched"
    return f"at least {counted(size.at_least, 'page')} with {100 * size.confidence:g} % confidence ({basis})"


def _time(hours: float | None) -> str:
    return "-" if hours is None else duration(3600 * hours)
