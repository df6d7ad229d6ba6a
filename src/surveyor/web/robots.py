r"""Parse robots.txt and decide which URLs it permits, and at which crawl delay (RFC 9309). Text in, verdicts out.

The groups that name our product token are merged; if there are none, the groups for `*` apply. The longest matching
rule decides; among equally long rules Allow wins, then the first in the file. Unknown lines are ignored, also inside a
group. As the RFC says, a missing file (4xx) permits everything; a server that fails or cannot be reached (5xx, 429, no
response) permits nothing. `/robots.txt` itself is always permitted.

No library is used because a verdict has to name its rule, and existing libraries match `User-agent: sur` to us or let
an unknown line end a group. docs/reference/robots.md checks this module against the RFC clause by clause.

    >>> rules = Robots.from_text(b"User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n")
    >>> rules.permits("https://example.org/a"), rules.why("https://example.org/private/a"), rules.crawl_delay
    (True, 'robots.txt disallows it (Disallow: /private/)', 2.0)

**Cost.** A host may send tens of thousands of rules, so an index compares only candidates:

- Rules without wildcards are in a sorted list. The longest prefix of a URL is found by bisection, and each rule stores
  the best of all rules that are prefixes of it. Rules that end in `$` are in a dict.
- Rules with wildcards are indexed by an n-gram (*gram*) of three characters, or one, that a URL must contain to match.
  Each rule is filed under the least used of its grams. Rules whose gram is in the URL are compared, best first.
- Rules that match the same URLs are merged; the one of highest precedence is kept.

Every verdict counts its steps, each at most about a nanosecond. If a verdict would take more than `STEPS`, or the file
has more than `WILDCARDS` different wildcard rules, nothing is permitted and `Verdict.limit` gives the reason.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

TOKEN = "surveyor"  # noqa: S105  # our product token
LARGEST = 500 * 1024  # bytes parsed of a robots.txt: the minimum that the RFC requires
MISSPELT = {"dissallow", "dissalow", "disalow", "diasllow", "disallaw"}
KINDS = {
    "user-agent": "agent",
    "useragent": "agent",
    "sitemap": "sitemap",
    "crawl-delay": "delay",
    "allow": "allow",
    "disallow": "disallow",
    "request-rate": "rate",
    **dict.fromkeys(MISSPELT, "disallow"),
}
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
            return "robots.txt could not be fetched, so no page is allowed"
        rule, limit, _ = self.verdict(url)
        if limit:
            return f"{limit}, so it may not be fetched"
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


WILDCARDS = 10_000  # maximum rules with wildcards, after merging
STEPS = 1_600_000  # maximum for one verdict: less than two milliseconds
PER_GRAM, PER_RULE, PER_MATCH, PER_PIECE = 80, 300, 600, 150  # steps per gram of a URL, rule, match, piece
GRAM, PIECES, LONG, CROWD = 3, 8, 64, 4  # gram length; pieces and characters examined; rules that crowd a gram
FEW = 16  # up to this many wildcard rules are compared without the gram index
HIGHEST = (1 << 32) - 1  # above every line number
STARS = re.compile(r"\*{2,}")
NO_RULE = -1  # below the rank of every rule


class Rule(NamedTuple):
    """One Allow or Disallow line."""

    allows: bool
    value: str  # as written
    pattern: str  # as compared: normalised octets, `*`, and `$` at the end
    line: int = 0  # of the file, from 1

    @property
    def weight(self) -> tuple[int, bool]:
        """Precedence: the octets of the pattern, then whether it allows."""
        return len(self.pattern), self.allows

    def __str__(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {self.value}"


class Verdict(NamedTuple):
    """The rule that decides about a URL, if any, or the limit that prevented a decision."""

    rule: Rule | None = None
    limit: str = ""
    steps: int = 0


class RuleSet:
    """All rules of one file that apply to us."""

    def __init__(self, rules: Iterable[tuple[bool, str, str, int]]) -> None:
        """Merge and index rules, given as field tuples: there may be many, and few are needed as `Rule` objects."""
        self.limit = ""  # why no rule is evaluated
        self._rules: dict[int, tuple[bool, str, str, int]] = {}  # by rank
        self._exact: dict[str, int] = {}  # rank of the best rule that matches exactly this text
        prefixes: dict[str, int] = {}
        wild: dict[str, int] = {}
        for rule in rules:
            allows, _, text, line = rule
            rank = (2 * len(text) + allows) << 32 | (HIGHEST - line)
            table = self._exact
            if "*" in text:
                table, text = _reduced(text, prefixes, wild)
            elif text[-1] == "$":
                text = text[:-1]
            else:
                table = prefixes
            if (before := table.get(text, NO_RULE)) < rank:
                table[text] = rank
                self._rules[rank] = rule
                if before != NO_RULE:
                    del self._rules[before]
        if len(wild) > WILDCARDS:
            self.limit = f"robots.txt has more than {WILDCARDS:,} rules with wildcards"
            self._rules, self._exact, prefixes, wild = {}, {}, {}, {}
        self._index_prefixes(prefixes)
        self._index_wild(wild)

    def __len__(self) -> int:
        return len(self._rules)

    def decide(self, targets: set[str]) -> Verdict:
        """Return the rule that decides about a path and query, given in all equivalent spellings."""
        if self.limit:
            return Verdict(None, self.limit)
        best = NO_RULE
        for target in targets:
            best = max(best, self._exact.get(target, NO_RULE), self._prefix(target))
        above = bisect_left(self._wild_ranks, -best)  # number of wildcard rules that outrank `best`
        steps = 0
        if above:
            candidates, steps = self._candidates(targets, above)
            for place in candidates if steps <= STEPS else ():
                least, pattern = self._wild[place]
                for target in targets:
                    if least <= len(target) and steps <= STEPS:
                        is_match, cost = match(pattern, target, STEPS - steps)
                        steps += cost
                        if is_match:
                            return Verdict(Rule(*self._rules[-self._wild_ranks[place]]), steps=steps)
        if steps > STEPS:
            return Verdict(None, "robots.txt has too many rules with wildcards that may apply to this URL", steps)
        return Verdict(None if best == NO_RULE else Rule(*self._rules[best]), steps=steps)

    def _prefix(self, target: str) -> int:
        """Return the rank of the best rule without wildcards that is a prefix of a target."""
        place = bisect_right(self._prefixes, target) - 1  # all rules that are prefixes are this one or prefixes of it
        while place >= 0 and not target.startswith(self._prefixes[place]):
            place = self._parents[place]
        return self._best[place] if place >= 0 else NO_RULE

    def _candidates(self, targets: set[str], above: int) -> tuple[Sequence[int], int]:
        """Return those of the first `above` wildcard rules whose gram is in a target, best first, and the steps taken.

        Up to `FEW` rules are all returned: comparing them is faster than looking up grams.
        """
        if above <= FEW:
            return range(above), PER_RULE * above
        candidates: set[int] = set()
        steps = PER_GRAM * sum(map(len, targets))
        if steps > STEPS:
            return (), steps
        found = set[str]().union(*targets) & self._grams[1].keys()
        if self._grams[GRAM]:
            cuts = {target[at : at + GRAM] for target in targets for at in range(len(target) - GRAM + 1)}
            found |= cuts & self._grams[GRAM].keys()
        for gram in found:
            places = self._grams[len(gram)][gram]
            count = bisect_left(places, above)
            if (steps := steps + PER_RULE * count) > STEPS:
                break
            candidates.update(places[:count])
        return sorted(candidates), steps

    def _index_prefixes(self, prefixes: dict[str, int]) -> None:
        """Sort rules without wildcards and store for each its longest proper prefix among them."""
        self._prefixes = sorted(prefixes)
        self._parents: list[int] = []
        self._best: list[int] = []
        above: list[int] = []  # the prefixes of the last rule, and the rule itself
        for place, prefix in enumerate(self._prefixes):
            while above and not prefix.startswith(self._prefixes[above[-1]]):
                above.pop()
            parent = above[-1] if above else NO_RULE
            self._parents.append(parent)
            self._best.append(max(prefixes[prefix], self._best[parent] if above else NO_RULE))
            above.append(place)

    def _index_wild(self, wild: dict[str, int]) -> None:
        """Sort wildcard rules, best first, and file each under one of its grams."""
        patterns = sorted(wild, key=wild.__getitem__, reverse=True)
        self._wild_ranks = [-wild[pattern] for pattern in patterns]
        self._wild = [(len(pattern) - pattern.count("*") - (pattern[-1] == "$"), pattern) for pattern in patterns]
        self._grams: dict[int, dict[str, list[int]]] = {GRAM: {}, 1: {}}
        for place, pattern in enumerate(patterns):
            pieces = pattern.removesuffix("$").split("*", PIECES)[:PIECES]  # of half a million, a few suffice
            long = [piece[:LONG] for piece in pieces if len(piece) >= GRAM]
            table = self._grams[GRAM if long else 1]
            grams = [piece[-GRAM:] for piece in long] or [character for piece in pieces[1:] for character in piece]
            if long and min([len(table.get(gram, ())) for gram in grams]) > CROWD:
                grams = [piece[at : at + GRAM] for piece in long for at in range(len(piece) - GRAM + 1)]
            fewest = min(grams, key=lambda gram: len(table.get(gram, ())))
            table.setdefault(fewest, []).append(place)


def match(pattern: str, target: str, most: int = STEPS) -> tuple[bool, int]:
    """Return whether a target matches a wildcard pattern, and the steps taken; more than `most` steps is no match.

    Each piece is searched for from the end of the one before it (leftmost match), without backtracking.
    """
    is_whole = pattern[-1] == "$"
    first, *rest = pattern[: len(pattern) - is_whole].split("*")
    steps = PER_MATCH
    if not target.startswith(first):
        return False, steps
    at = len(first)
    last = rest.pop() if is_whole else ""
    for piece in rest:
        steps += PER_PIECE + max(0, len(target) - at - len(piece) + 1) * len(piece)  # worst-case cost of the search
        if steps > most or (found := target.find(piece, at)) < 0:
            return False, steps
        at = found + len(piece)
    return target.endswith(last) and len(target) - len(last) >= at, steps


def _reduced(pattern: str, prefixes: dict[str, int], wild: dict[str, int]) -> tuple[dict[str, int], str]:
    """Return the table of a pattern and the shortest equivalent pattern: `/a*$` is the prefix `/a`."""
    body = pattern.removesuffix("$")
    if body[-1] == "*":
        body = pattern = body.rstrip("*")
        if "*" not in body:
            return prefixes, body
    return wild, STARS.sub("*", pattern) if "**" in pattern else pattern
