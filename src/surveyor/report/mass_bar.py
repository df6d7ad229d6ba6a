"""The five accounts of all importance as a picture: one bar, and what each part of it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.report.page import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.crawler.ledger import CoverageInterval

ACCOUNTS = {  # colour of the page, meaning
    "captured": ("one", "settled on pages that were read"),
    "moving": ("eight", "on its way, on pages already read"),
    "waiting": ("seven", "on known pages that were not read yet"),
    "blocked": ("two", "on pages that may not or cannot be read"),
    "lost": ("six", "on pages that are gone"),
}
WIDTH, HEIGHT, OVER = 1000, 40, 6  # of the drawing; how far the mark of the goal stands out


def mass_bar(coverage: CoverageInterval, goal: float | None, notes: Mapping[str, str]) -> list[str]:
    """Draw where all importance is, with the goal as a mark; `notes` stand behind what the accounts mean."""
    shares = {name: max(0.0, getattr(coverage, name)) for name in ACCOUNTS}
    rows = "".join(_row(name, share, notes.get(name, "")) for name, share in shares.items())
    mark = " The mark is the goal." if goal is not None else ""
    return [
        _bar(shares, goal),
        f'<table class="accounts"><tbody>{rows}</tbody></table>',
        f'<p class="soft">Where all importance is: five accounts that sum to 100 %, always.{mark}</p>',
    ]


def _bar(shares: Mapping[str, float], goal: float | None) -> str:
    whole, at, parts = sum(shares.values()) or 1.0, 0.0, []
    for name, share in shares.items():
        width = WIDTH * share / whole
        parts.append(
            f'<rect x="{at:.2f}" width="{width:.2f}" height="{HEIGHT}" fill="var(--{ACCOUNTS[name][0]})">'
            f"<title>{name} {100 * share:.2f} %</title></rect>"
        )
        at += width
    if goal is not None:
        tall = HEIGHT + 2 * OVER
        parts.append(f'<rect x="{WIDTH * goal - 1.5:.1f}" y="{-OVER}" width="3" height="{tall}" fill="var(--ink)"/>')
    label = ", ".join(f"{name} {100 * share:.2f} %" for name, share in shares.items())
    return (
        f'<svg class="mass" viewBox="0 {-OVER} {WIDTH} {HEIGHT + 2 * OVER}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )


def _row(name: str, share: float, note: str) -> str:
    color, meaning = ACCOUNTS[name]
    swatch = f'<rect width="10" height="10" fill="var(--{color})"/>'
    more = f' <span class="soft">({text(note)})</span>' if note else ""
    return (
        f'<tr><td><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">{swatch}</svg></td>'
        f"<td>{100 * share:.2f} %</td><td>{name}</td><td>{meaning}{more}</td></tr>\n"
    )
