"""Text of numbers, of bounds and of the five mass accounts.

Bounds are rounded outward: an upper bound is never shown smaller than it is.

>>> count(1234567), percent(0.0202), at_most(9.31e-7), duration(252), size(38_000_000)
('1,234,567', '2.02 %', '9.4e-7', '4 min', '38 MB')
"""

from __future__ import annotations

import math
import unicodedata
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.crawler.coverage_walks import SampledCoverage
    from surveyor.crawler.ledger import CoverageInterval

WIDTH = 28  # of a bar
EIGHTHS = " ▏▎▍▌▋▊▉"
MEANING = "relative to the seeds, the damping, the scope and the links as fetched"


def count(number: float) -> str:
    """Format a number with thousands separators."""
    return f"{round(number):,}"


def counted(number: int, one: str, many: str = "") -> str:
    """Format a number with its noun: 1 page, 2 pages."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def amount(number: float) -> str:
    """Format a large number with a suffix: 25.3 M."""
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= scale:
            value = number / (1e3 if letter == "k" else scale)
            return f"{value:.3g} {letter}" if value < 100 else f"{value:.0f} {letter}"
    return f"{number:,.0f}" if number == round(number) or abs(number) >= 100 else f"{number:.2g}"


def percent(share: float) -> str:
    """Format a share with three significant digits: 2.02 %."""
    value = 100 * share
    if value == 0:
        return "0 %"
    if abs(value) < 1e-5:
        return f"{value:.2e} %"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f} %"


def share_at_least(share: float) -> str:
    """Format a lower bound of a share, rounded down: 78.4 %."""
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"


def share_at_most(share: float) -> str:
    """Format an upper bound of a share, rounded up: 96.8 %."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f} %"


def at_most(bound: float, digits: int = 2) -> str:
    """Format an upper bound, rounded up."""
    if bound == 0 or not math.isfinite(bound):
        return f"{bound:g}"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(bound))
    return f"{rounded:.{digits - 1}e}"


def estimate_bound(error: float | None, reason: str) -> str:
    """Describe the bound on the L1 error of an estimate of importance, which is at most 2."""
    if error is None:
        return reason
    return "error at most 2, the largest possible" if error >= 2 else f"error at most {at_most(error)} in total"


def tiny(number: float) -> str:
    """Format a small number: 1e-6."""
    return f"{number:g}".replace("e-0", "e-")


def duration(seconds: float) -> str:
    """Format a duration: 340 ms, 1.2 s, 4 min, 2 h 5 min."""
    if seconds < 1:
        return f"{max(1, round(seconds * 1000))} ms" if seconds > 0 else "0 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def size(bytes_: float) -> str:
    """Format a number of bytes: 38 MB."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if bytes_ >= scale:
            value = bytes_ / scale
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{bytes_:.0f} bytes"


UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})  # categories of Unicode


def printable(text: str) -> str:
    r"""Escape control characters, separators of lines and invalid UTF-8: text from the web cannot control a terminal.

    >>> print(printable("one\u2028two\x1b[31m"))
    one\u2028two\x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(_escaped(char) if unicodedata.category(char) in UNSEEN else char for char in text)


def _escaped(char: str) -> str:
    if 0xDC80 <= ord(char) <= 0xDCFF:  # a byte that was not UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


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


def sampled_bound(sampled: SampledCoverage) -> str:
    """Return the sampled lower bound, rounded down, with its confidence: 91.0 % at least (sampled, 95 %)."""
    return f"{share_at_least(sampled.at_least)} at least (sampled, {confidence_level(sampled.confidence)})"


def sampled_line(sampled: SampledCoverage, width: int = WIDTH) -> str:
    """Draw the sampled lower bound, followed by its confidence and the number of walks."""
    walks = counted(sampled.walks, "walk")
    if waiting := sampled.walks - sampled.finished:
        walks += f", {count(waiting)} unfinished"
    share, level = sampled.at_least, confidence_level(sampled.confidence)
    return f"sampled   {bar(share, width)} {share_at_least(share):>7}  at least ({level}; {walks})"


def both_bounds(coverage: CoverageInterval, sampled: SampledCoverage | None) -> str:
    """Return the certified bounds; if the sampled bound is higher, after it."""
    if sampled is None:
        return interval(coverage)
    if sampled.at_least <= coverage.at_least:
        return f"{interval(coverage)} (certified)"
    return f"{sampled_bound(sampled)}, certified {interval(coverage)}"


def confidence_level(confidence: float) -> str:
    """Format a confidence: 95 %."""
    return f"{100 * confidence:.10g} %"


def sampled_meaning(confidence: float) -> str:
    """Say how often the two bounds may be wrong.

    >>> sampled_meaning(0.95)
    'certified: always true; sampled, 95 %: wrong at most once in 20 crawls'
    """
    crawls = math.floor(1 / (1 - confidence) + 1e-9)
    return f"certified: always true; sampled, {confidence_level(confidence)}: wrong at most once in {crawls:,} crawls"


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
