r"""Which line of a robots.txt forbids a page: for people, who want to see the rule and not only the verdict.

>>> rules = Rules("User-agent: *\nDisallow: /a\nDisallow: /a/b  # more\n\nUser-agent: other\nDisallow: /\n")
>>> rules.against("https://example.org/a/b/c"), rules.against("https://example.org/b")
('Disallow: /a/b', '')
"""

from __future__ import annotations

import re
from typing import Any

from surveyor.robots import TOKEN

LINE = re.compile(r"\s*(user-?agent|disallow)\s*:\s*([^#\s][^#]*)", re.IGNORECASE)


class Rules:
    """The lines of a robots.txt that forbid something to us."""

    def __init__(self, text: str, *, token: str = TOKEN) -> None:
        from protego import Protego

        groups = _groups(text)
        lines = groups.get(token.lower(), groups.get("*", []))
        longest = sorted(dict.fromkeys(lines), key=len, reverse=True)
        self._each: list[tuple[str, Any]] = [
            (line, Protego.parse(f"User-agent: *\nDisallow: {line}\n")) for line in longest
        ]

    def against(self, url: str) -> str:
        """Return the rule that forbids a URL: of those that match the longest; empty if none does."""
        return next((f"Disallow: {line}" for line, rule in self._each if not rule.can_fetch(url, "*")), "")


def _groups(text: str) -> dict[str, list[str]]:
    """Return what is disallowed to each agent, by its name in small letters."""
    groups: dict[str, list[str]] = {}
    agents: list[str] = []
    heads = False  # whether the lines before name agents
    for name, value in (found.groups() for found in map(LINE.match, text.splitlines()) if found):
        if name.lower() == "disallow":
            heads = False
            for agent in agents:
                groups[agent].append(value.strip())
        else:
            agents = [*agents, value.strip().lower()] if heads else [value.strip().lower()]
            heads = True
            groups.setdefault(agents[-1], [])
    return groups
