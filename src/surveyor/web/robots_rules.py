r"""An index over the rules of one robots.txt that finds the deciding rule for a URL at bounded cost.

The longest matching rule decides; among equally long rules Allow wins, then the first in the file. A host may send tens
of thousands of rules, so only candidates are compared:

- Rules without wildcards are in a sorted list. The longest prefix of a URL is found by bisection, and each rule stores
  the best of all rules that are prefixes of it. Rules that end in `$` are in a dict.
- Rules with wildcards are indexed by an n-gram (*gram*) of three characters, or one, that a URL must contain to match.
  Each rule is filed under the least used of its grams. Rules whose gram is in the URL are compared, best first.
- Rules that match the same URLs are merged; the one of highest precedence is kept.

**Limits.** Every verdict counts its steps, each at most about a nanosecond. If a verdict would take more than `STEPS`,
or the file has more than `WILDCARDS` different wildcard rules, nothing is permitted and `Verdict.limit` gives the
reason.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

WILDCARDS = 10_000  # maximum rules with wildcards, after merging
STEPS = 1_600_000  # maximum for one verdict: less than two milliseconds
PER_GRAM, PER_RULE, PER_MATCH, PER_PIECE = 80, 300, 600, 150  # steps per gram of a URL, rule, match, piece
GRAM, PIECES, LONG, CROWD = 3, 8, 64, 4  # gram length; pieces and characters examined; rules that crowd a gram
FEW = 16  # up to so many wildcard rules are compared without the gram index
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
