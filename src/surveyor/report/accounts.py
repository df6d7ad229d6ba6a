"""Text and bars of the five mass accounts and of the coverage interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.report.numbers import percent, share_at_least, share_at_most

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.crawler.ledger import CoverageInterval

WIDTH = 28  # of a bar
EIGHTHS = " ▏▎▍▌▋▊▉"
MEANING = "relative to the seeds, the damping, the scope and the links as fetched"


def bar(share: float, width: int = WIDTH) -> str:
    """Draw a share, to an eighth of a character.

    >>> bar(0.5, 4), bar(0.03, 4)
    ('██  ', '▏   ')
    """
    eighths = max(0, min(8 * width, round(8 * width * share)))
    if share > 0:
        eighths = max(1, eighths)
    full, part = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[part] if part else "")).ljust(width)


def known_bar(at_least: float, at_most: float, width: int = WIDTH) -> str:
    """Draw the lower bound, and in grey up to the upper bound.

    >>> known_bar(0.5, 0.8, 10), known_bar(0.25, 1.0, 2)
    ('█████░░░  ', '▌░')
    """
    sure = bar(at_least, width).rstrip()
    return sure.ljust(max(len(sure), min(width, round(width * at_most))), "░").ljust(width)


def interval(coverage: CoverageInterval) -> str:
    """Return the coverage bounds, rounded outward."""
    return f"{share_at_least(coverage.at_least)} at least, {share_at_most(coverage.at_most)} at most"


def account_lines(coverage: CoverageInterval, notes: Mapping[str, str]) -> list[str]:
    """Draw the five accounts, followed by `notes`."""
    lines = []
    for name in ("captured", "moving", "waiting", "blocked", "lost"):
        share = max(0.0, getattr(coverage, name))
        note = notes.get(name, "")
        lines.append(f"{name:<9} {bar(share)} {100 * share:5.1f} %  {note}".rstrip())
    return lines


def kind_of(reason: str) -> str:
    """Return the category of a reason: robots, budget, deleted or errors."""
    if reason.startswith("robots"):
        return "robots"
    if reason in ("budget", "deleted"):
        return reason
    return "errors"


def by_kind(masses: Mapping[str, float]) -> str:
    """Return the blocked mass by category: robots 2.1 %, errors 0.6 %."""
    kinds: dict[str, float] = {}
    for reason, mass in masses.items():
        kinds[kind_of(reason)] = kinds.get(kind_of(reason), 0.0) + mass
    most = sorted(kinds.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{kind} {percent(mass)}" for kind, mass in most if mass > 0)
