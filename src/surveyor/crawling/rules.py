r"""Which line of a robots.txt decides about a URL.

The parser does not tell, so it is asked: the line that decides is the one which, turned into its opposite, turns the
verdict. Only lines that match the URL by themselves are tried.

    >>> robots = Robots.from_text(b"User-agent: *\nDisallow: /\nAllow: /docs/\n")
    >>> deciding_rule(robots, "https://example.org/docs/a"), deciding_rule(robots, "https://example.org/b").line
    (Rule(line=3, text='Allow: /docs/', agents=('*',)), 2)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from surveyor.robots import Robots

RULE = re.compile(r"\s*(allow|dis+al+ow)\b[\s:]*([^#]*)", re.IGNORECASE)
AGENT = re.compile(r"\s*user[- ]?agent\s*:?\s*([^#]*)", re.IGNORECASE)
MOST = 200  # matching lines that are tried; a file that has more is not written for people


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of a robots.txt, and for whom it is."""

    line: int  # from 1
    text: str
    agents: tuple[str, ...]

    def __str__(self) -> str:
        return f"line {self.line}, {self.text}, for {', '.join(self.agents) or 'nobody'}"


def deciding_rule(robots: Robots, url: str) -> Rule | None:
    """Return the line by which a URL is permitted or not; None if no line speaks of it."""
    if robots.standing != "rules":
        return None
    lines = robots.text.splitlines()
    found = [(number, match) for number, line in enumerate(lines) if (match := RULE.match(line)) and match[2].strip()]
    speaking = [(number, match) for number, match in found if _speaks(match[2].strip(), url)]
    verdict = robots.permits(url)
    for number, match in speaking[:MOST]:
        opposite = "Disallow" if match[1].lower() == "allow" else "Allow"
        turned = "\n".join([*lines[:number], f"{opposite}: {match[2].strip()}", *lines[number + 1 :]])
        if Robots("rules", turned, token=robots.token).permits(url) != verdict:
            return Rule(number + 1, lines[number].partition("#")[0].strip(), _agents(lines, number))
    return None


def _speaks(pattern: str, url: str) -> bool:
    return not Robots("rules", f"User-agent: *\nDisallow: {pattern}\n").permits(url)


def _agents(lines: list[str], number: int) -> tuple[str, ...]:
    """Return the agents of the group that a line is in: the last ones named before it, without a rule between."""
    agents: list[str] = []
    ruled = True
    for line in lines[:number]:
        if match := AGENT.match(line):
            agents = [match[1].strip()] if ruled else [*agents, match[1].strip()]
            ruled = False
        elif RULE.match(line) or re.match(r"\s*crawl", line, re.IGNORECASE):
            ruled = True
    return tuple(agents)
