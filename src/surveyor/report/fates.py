"""What became of a URL, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from surveyor.report.numbers import count, counted, percent

if TYPE_CHECKING:
    from surveyor.survey.url_status import Fate


def fate_lines(fate: Fate) -> list[str]:
    """Say what became of a page and why, in a line or two."""
    asked = f"{datetime.fromtimestamp(fate.fetched_at, UTC):%Y-%m-%d %H:%M} UTC" if fate.fetched_at else ""
    status = f"status {fate.status}" if fate.status else ""
    behind = f"{percent(fate.mass)} of all importance waits on it"
    told = {
        "read": ["read", fate.reason, asked, status, fate.title and f"“{fate.title}”"],
        "waiting": ["not read yet", behind, _place(fate)],
        "blocked": [f"not read: {fate.reason or 'it may not be'}", asked, status, behind],
        "gone": ["gone", fate.reason, asked],
        "moved": [f"stands for {fate.target}", _why_moved(fate), asked],
        "out of scope": [f"out of scope: {fate.reason}", "links to it are kept and carry no importance"],
    }
    lines = [", ".join(filter(None, told[fate.kind]))]
    if fate.rule:
        lines.append(f"robots.txt: {fate.rule}")
    if fate.tries:
        lines.append(f"tried {counted(fate.tries, 'time')}, the last time: {fate.trouble}")
    return lines


def _place(fate: Fate) -> str:
    return f"position {count(fate.queue)} of {count(fate.queued)} in the queue" if fate.queue else "being tried again"


def _why_moved(fate: Fate) -> str:
    if 300 <= fate.status < 400:
        return f"a redirect ({fate.status})"
    return "it names that page as canonical" if fate.status else ""
