r"""Parse robots.txt and decide which URLs it permits, and at which crawl delay (RFC 9309). Text in, verdicts out.

The groups that name our product token are merged; if there are none, the groups for `*` apply. The longest matching
rule decides; among equally long rules Allow wins. Unknown lines are ignored, also inside a group. As the RFC says, a
missing file (4xx) permits everything; a server that fails or cannot be reached (5xx, 429, no response) permits nothing.
`/robots.txt` itself is always permitted.

No library is used because a verdict has to name its rule, and existing libraries match `User-agent: sur` to us or let
an unknown line end a group. docs/reference/robots.md checks this module against the RFC clause by clause.

    >>> rules = Robots.from_text(b"User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n")
    >>> rules.permits("https://example.org/a"), rules.why("https://example.org/private/a"), rules.crawl_delay
    (True, 'robots.txt disallows it (Disallow: /private/)', 2.0)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from surveyor.web.robots_rules import Rule, RuleSet, Verdict

TOKEN = "surveyor"  # noqa: S105  # our product token
LARGEST = 500 * 1024  # bytes parsed of a robots.txt: the minimum that the RFC requires
MISSPELT = {"dissallow", "dissalow", "disalow", "diasllow", "disallaw"}
KINDS = {"user-agent": "agent", "useragent": "agent", "sitemap": "sitemap", "crawl-delay": "delay"} | {
    "allow": "allow", "disallow": "disallow", "request-rate": "rate", **dict.fromkeys(MISSPELT, "disallow")
}  # fmt: skip
# known lines and their values; a space may replace the colon
LINE = re.compile(
    rf"^[^\S\n]*+({'|'.join(KINDS)})(?:[^\S\n]*+:|[^\S\n ]*+(?=[ #\n]|\Z))([^#\n]*)", re.MULTILINE | re.IGNORECASE
)
ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
OCTETS = [chr(octet) if 0x20 < octet < 0x7F else f"%{octet:02X}" for octet in range(256)]
SPECIAL = {"*": "%2A", "$": "%24"}  # literal in a URL, special in a rule
DELIMITERS = {mark: f"%{ord(mark):02X}" for mark in ":/?#[]@"}  # in a query, equivalent whether escaped or not

State = Literal["rules", "absent", "unreachable"]


@dataclass(slots=True)
class Group:
    """The rules and the crawl delay for one user agent."""

    rules: list[tuple[bool, str, str, int]] = field(default_factory=list)  # fields of Rule, in the order of the file
    delay: float | None = None


@dataclass(frozen=True)
class Robots:
    """The rules of one origin (scheme, host and port)."""

    state: State
    text: str = ""
    token: str = field(default=TOKEN, kw_only=True)

    @classmethod
    def from_text(cls, body: bytes, *, token: str = TOKEN) -> Robots:
        """Parse a file; beyond the size limit it is ignored, including the line that crosses the limit."""
        cut = body[:LARGEST]
        if len(body) > LARGEST:
            cut = cut[: max(cut.rfind(b"\n"), cut.rfind(b"\r")) + 1]
        return cls("rules", cut.decode("utf-8", "replace").lstrip("\ufeff"), token=token)

    @classmethod
    def from_answer(cls, status: int | None, body: bytes, *, token: str = TOKEN) -> Robots:
        """Return the rules for the response to a robots.txt request, after redirects; None means no response."""
        if status is not None and 200 <= status < 300:
            return cls.from_text(body, token=token)
        if status is not None and 300 <= status < 500 and status != 429:
            return cls("absent", token=token)
        return cls("unreachable", token=token)

    def permits(self, url: str) -> bool:
        """Return whether a URL of this origin may be fetched."""
        return not self.why(url)

    def rule_for(self, url: str) -> Rule | None:
        """Return the rule that decides about a URL; None if no rule matches, or if there are too many to search."""
        return self.verdict(url).rule

    def verdict(self, url: str) -> Verdict:
        """Return the rule that decides about a URL, or the limit that prevented a decision, and the steps taken."""
        return Verdict() if self.state != "rules" else self._ours[0].decide(_spellings(url))

    @property
    def crawl_delay(self) -> float | None:
        """Seconds between two requests, by Crawl-delay or Request-rate; None if neither is set."""
        return self._ours[1] if self.state == "rules" else None

    @property
    def limit(self) -> str:
        """Why no rule of the file is evaluated and nothing is permitted; empty if rules are evaluated."""
        return self._ours[0].limit if self.state == "rules" else ""

    @property
    def sitemaps(self) -> list[str]:
        """Sitemaps listed in the file, for any agent."""
        return [value for _, kind, value in _lines(self.text) if kind == "sitemap" and value]

    def why(self, url: str) -> str:
        """Return the reason why a URL may not be fetched; empty if it may."""
        if self.state == "absent" or _target(url).partition("?")[0] == "/robots.txt":
            return ""
        if self.state == "unreachable":
            return "robots.txt could not be read, so nothing may be"
        rule, limit, _ = self.verdict(url)
        if limit:
            return f"{limit}, so it may not be read"
        return "" if rule is None or rule.allows else f"robots.txt disallows it ({rule})"

    @cached_property
    def _ours(self) -> tuple[RuleSet, float | None]:
        """The rules that apply to us, merged and indexed, and the crawl delay."""
        ours = self.token.lower()
        groups = _groups(self.text, {ours, "*"})
        group = groups.get(ours) or groups.get("*") or Group()
        return RuleSet(group.rules), group.delay


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, kind and value of each known line."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    number, before = 1, 0
    for found in LINE.finditer(text):
        start = found.start()
        number += text.count("\n", before, start)
        before = start
        name, value = found.groups()
        if (kind := KINDS.get(name.lower())) is not None:  # None for non-ASCII letters that match ignoring case
            yield number, kind, value.strip()


def _groups(text: str, tokens: Set[str]) -> dict[str, Group]:
    """Return the groups for these product tokens, by token in lower case.

    Other agents that a group lists, of which there may be thousands, are not stored.
    """
    groups: dict[str, Group] = {}
    listed: dict[str, Group] = {}  # the agents of the group being parsed
    is_open = False  # no rule yet, so more agents may follow
    for line, kind, value in _lines(text):
        if kind == "agent":
            if not is_open:
                listed = {}
            if (token := _token(value)) in tokens:
                listed[token] = groups.setdefault(token, Group())
            is_open = True
        elif kind in ("allow", "disallow"):
            is_open = False
            if value and listed:
                rule = kind == "allow", value, _pattern(value), line
                for group in listed.values():
                    group.rules.append(rule)
        elif kind in ("delay", "rate") and (seconds := _seconds(kind, value)) is not None:
            for group in listed.values():
                group.delay = max(seconds, group.delay or 0.0)
    return groups


def _token(value: str) -> str:
    """Return the product token of a User-agent line: surveyor for `Surveyor/1.0`; empty if there is none."""
    if re.match(r"\*(\s|$)", value):
        return "*"
    end = re.search(r"[^A-Za-z_-]", value)
    return value[: end.start() if end else None].lower()


def _seconds(kind: str, value: str) -> float | None:
    if kind == "delay":
        found = re.fullmatch(r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9})\s*s?", value.lower())
        return float(found[1]) if found else None
    found = re.match(r"(\d{1,9})/(\d{1,9})([smhd]?)(\s|$)", value.lower())  # requests/period
    if found is None or not int(found[1]):
        return None
    return int(found[2]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[found[3]] / int(found[1])


def _pattern(value: str) -> str:
    """Return the pattern of a rule; a missing leading slash is added, and an absolute URL is reduced to its path."""
    if value[0] not in "/*":
        value = re.sub(r"^https?://[^/]*", "", value)
        if not value.startswith(("/", "*")):
            value = f"/{value}"
    if "$" in value:
        value = value[:-1].replace("$", SPECIAL["$"]) + value[-1]
    return _canonical(value)


def _canonical(text: str) -> str:
    """Normalise percent-encoding: escape octets that are not printable ASCII, decode unreserved characters."""

    def once(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        return character if character in PLAIN else found[0].upper()

    if "%" in text:
        text = ESCAPE.sub(once, text)
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    return "".join(map(OCTETS.__getitem__, text.encode("utf-8", "replace")))


def _target(url: str) -> str:
    """Return the path and query of a URL."""
    rest = url.partition("://")[2].partition("#")[0]
    start = re.search(r"[/?]", rest)
    target = rest[start.start() :] if start else ""
    return target if target.startswith("/") else f"/{target}"


def _spellings(url: str) -> set[str]:
    """Return the normalised path and query, in all variants: a rule may escape delimiters of a query or not."""
    target = _canonical(_target(url))
    for mark, escape in SPECIAL.items():
        target = target.replace(mark, escape)
    path, question, query = target.partition("?")
    if not query:
        return {target}
    plain = escaped = query
    for mark, escape in DELIMITERS.items():
        plain, escaped = plain.replace(escape, mark), escaped.replace(mark, escape)
    return {target, path + question + plain, path + question + escaped}
