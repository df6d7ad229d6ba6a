"""The robots.txt files of an embedded web, as data: their text, and what they permit.

The verdicts follow RFC 9309 (the longest matching rule wins, Allow wins ties, groups of one agent are merged, an
answer of 5xx forbids everything). They are worked out from the data and not from the text, so that a parser can be
tested against them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Style = Literal["missing", "open", "rules", "agents", "delay", "error", "moved"]

PRIVATE = ((False, "/private/"), (True, "/private/open.html"), (False, "/*-9.html$"))
REMARK = "# which pages robots may read\nthis line means nothing\n"


@dataclass(frozen=True, slots=True)
class Group:
    """Rules for some agents: (allowed, pattern)."""

    agents: tuple[str, ...]
    rules: tuple[tuple[bool, str], ...]
    delay: float | None = None

    def text(self) -> str:
        """Return the lines of this group."""
        lines = [f"User-agent: {agent}" for agent in self.agents]
        lines += [f"{'Allow' if allowed else 'Disallow'}: {pattern}" for allowed, pattern in self.rules]
        lines += [] if self.delay is None else [f"Crawl-delay: {self.delay:g}"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Robots:
    """One host's robots.txt; that of style "moved" lies at `place`."""

    style: Style
    groups: tuple[Group, ...] = ()
    place: str = ""

    @property
    def status(self) -> int:
        """What /robots.txt answers."""
        return {"missing": 404, "error": 503, "moved": 302}.get(self.style, 200)

    def text(self) -> str:
        """Return the file."""
        return REMARK + "\n".join(group.text() for group in self.groups)

    def allows(self, agent: str, target: str) -> bool:
        """Say whether an agent (its product token) may read a path with its query."""
        if target == "/robots.txt":
            return True
        if self.style == "error":
            return False
        matches = [(len(pattern), allowed) for allowed, pattern in self._rules(agent) if _fits(pattern, target)]
        return max(matches, default=(0, True))[1]

    def delay(self, agent: str) -> float | None:
        """Return the seconds that an agent is asked to wait between requests, if any."""
        return max((group.delay for group in self._groups(agent) if group.delay is not None), default=None)

    def _groups(self, agent: str) -> list[Group]:
        mine = [group for group in self.groups if agent.lower() in map(str.lower, group.agents)]
        return mine or [group for group in self.groups if "*" in group.agents]

    def _rules(self, agent: str) -> list[tuple[bool, str]]:
        return [rule for group in self._groups(agent) for rule in group.rules if rule[1]]


def robots(style: Style, *, delay: float = 0.0, place: str = "") -> Robots:
    """Make the file of a host of this style."""
    if style in ("rules", "moved"):
        return Robots(style, (Group(("*",), PRIVATE),), place)
    if style == "delay":
        return Robots(style, (Group(("*",), ((False, ""),), delay),))
    if style == "agents":
        groups = (
            Group(("otherbot",), ((False, "/"),)),
            Group(("Surveyor", "friendlybot"), PRIVATE[:1]),
            Group(("*",), ((False, "/"),)),
            Group(("surveyor",), PRIVATE[1:2]),  # groups of one agent count together
        )
        return Robots(style, groups)
    return Robots(style, () if style in ("missing", "error") else (Group(("*",), ((False, ""),)),))


def _fits(pattern: str, target: str) -> bool:
    body = pattern.removesuffix("$")
    end = r"\Z" if pattern.endswith("$") else ""
    return re.match(".*".join(map(re.escape, body.split("*"))) + end, target) is not None
