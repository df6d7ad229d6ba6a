"""Stopping rules of a crawl, as values that are combined with `|` (either) and `&` (both).

    >>> rule = Coverage(0.95) | Pages(5_000)
    >>> str(rule), rule.done(Progress(pages=5_000, at_least=0.7))
    ('coverage 95 % or 5,000 pages', True)
    >>> parse("coverage=95%, pages=5k") == rule
    True

A rule is *done* when it is fulfilled, and *hopeless* when it cannot be fulfilled any more. Only coverage can become
hopeless: blocked or lost mass cannot be captured, so once `best_possible` is below the share, the goal is unreachable.
The crawl still continues towards the best possible coverage until at most `SETTLED` of the mass is in motion; only then
is the rule hopeless. Limits on pages, requests, minutes and bytes are always reached eventually.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Protocol

from surveyor.errors import UsageError

SETTLED = 0.01  # with at most this mass in motion, the best possible coverage is practically reached
ENDLESS = 2**63 - 1  # pages, if a rule sets no limit
SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
KEYS = {  # allowed suffixes of a number, and an example
    "coverage": ("%", "0.9 or 90%"),
    "pages": ("kmg", "5000 or 5k"),
    "requests": ("kmg", "20000 or 20k"),
    "minutes": ("", "10"),
    "bytes": ("kmgtb", "2GB"),
}


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a crawl."""

    pages: int
    seconds: float = 0.0
    bytes: int = 0
    at_least: float = 0.0  # lower bound of coverage
    best_possible: float = 1.0  # 1 - blocked - lost: the largest lower bound still reachable
    in_motion: float = 1.0  # waiting + moving mass
    requests: int = 0  # sent: for pages and robots.txt files, retries and redirects included


class Rule(ABC):
    """A condition under which a crawl ends."""

    __slots__ = ()

    @abstractmethod
    def done(self, progress: Progress) -> bool:
        """Return whether the rule is fulfilled."""

    def reached(self, progress: Progress) -> bool:
        """Return whether the goal is reached; the same as `done`."""
        return self.done(progress)

    def hopeless(self, progress: Progress) -> bool:  # noqa: ARG002
        """Return whether the rule cannot be fulfilled any more."""
        return False

    def room(self, progress: Progress) -> int:  # noqa: ARG002
        """Return how many requests may be in progress without exceeding the rule; ENDLESS if it has no such limit."""
        return ENDLESS

    def limits(self) -> tuple[float, int] | None:
        """Return the coverage and the pages, either of which ends the crawl; None if the rule has another form."""
        return None

    def __or__(self, other: Rule) -> Either:
        return Either((*_parts(self, Either), *_parts(other, Either))) if isinstance(other, Rule) else NotImplemented

    def __and__(self, other: Rule) -> Both:
        return Both((*_parts(self, Both), *_parts(other, Both))) if isinstance(other, Rule) else NotImplemented


@dataclass(frozen=True, slots=True)
class Coverage(Rule):
    """Done when the lower bound of coverage reaches this share."""

    share: float

    def __post_init__(self) -> None:
        share = _number(self.share, "coverage", "it is a share, such as 0.9")
        if share == 1:
            problem = "a coverage of 100 % cannot be guaranteed: mass always remains on links not followed"
            raise UsageError(problem, hint="ask for less, such as 0.99")
        if share > 1:
            hint = f"write {share / 100:g} for {share:g} %" if share < 100 else "ask for less than 1, such as 0.99"
            raise UsageError(f"a coverage of {share:g} is more than the whole", hint=hint)
        if share <= 0:
            raise UsageError(f"coverage must be above 0, not {share:g}", hint="it is a share, such as 0.9")

    def done(self, progress: Progress) -> bool:
        """Return whether the lower bound of coverage is large enough."""
        return progress.at_least >= self.share

    def hopeless(self, progress: Progress) -> bool:
        """Return whether too much mass is blocked or lost, and nearly all of the rest is captured."""
        return progress.best_possible < self.share and progress.in_motion <= SETTLED

    def limits(self) -> tuple[float, int]:
        """Return the share, and no limit on pages."""
        return self.share, ENDLESS

    def __str__(self) -> str:
        return f"coverage {100 * self.share:.10g} %"


@dataclass(frozen=True, slots=True)
class Pages(Rule):
    """Done when `count` pages are read."""

    count: int

    def __post_init__(self) -> None:
        count = _number(self.count, "pages", "such as 5000")
        if not count.is_integer() or count < 1:
            raise UsageError(f"pages must be a whole number of at least 1, not {count:g}", hint="such as 5000")
        object.__setattr__(self, "count", int(self.count))

    def done(self, progress: Progress) -> bool:
        """Return whether enough pages are read."""
        return progress.pages >= self.count

    def room(self, progress: Progress) -> int:
        """Return the number of pages left: each needs at least one request."""
        return max(0, self.count - progress.pages)

    def limits(self) -> tuple[float, int]:
        """Return the pages, and no limit on coverage."""
        return math.inf, min(self.count, ENDLESS - 1)

    def __str__(self) -> str:
        return f"{self.count:,} page{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Requests(Rule):
    """Done when `count` requests were sent: for pages and robots.txt files, retries and redirects included."""

    count: int

    def __post_init__(self) -> None:
        count = _number(self.count, "requests", "such as 20000")
        if not count.is_integer() or count < 1:
            raise UsageError(f"requests must be a whole number of at least 1, not {count:g}", hint="such as 20000")
        object.__setattr__(self, "count", int(self.count))

    def done(self, progress: Progress) -> bool:
        """Return whether enough requests were sent."""
        return progress.requests >= self.count

    def room(self, progress: Progress) -> int:
        """Return the number of requests left."""
        return max(0, self.count - progress.requests)

    def __str__(self) -> str:
        return f"{self.count:,} request{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Minutes(Rule):
    """Done when the crawl has taken this many minutes."""

    minutes: float

    def __post_init__(self) -> None:
        if _number(self.minutes, "minutes", "such as 10") <= 0:
            raise UsageError(f"minutes must be above 0, not {self.minutes:g}", hint="such as 10")

    def done(self, progress: Progress) -> bool:
        """Return whether the time is up."""
        return progress.seconds >= 60 * self.minutes

    def __str__(self) -> str:
        return f"{self.minutes:,.10g} minute{'s' * (self.minutes != 1)}"


@dataclass(frozen=True, slots=True)
class Bytes(Rule):
    """Done when `count` bytes were received."""

    count: float

    def __post_init__(self) -> None:
        if _number(self.count, "bytes", "such as 2e9") <= 0:
            raise UsageError(f"bytes must be above 0, not {self.count:g}", hint="such as 2e9")

    def done(self, progress: Progress) -> bool:
        """Return whether enough bytes were received."""
        return progress.bytes >= self.count

    def __str__(self) -> str:
        for letter in "tgmk":
            if self.count >= SCALES[letter]:
                return f"{self.count / SCALES[letter]:,.6g} {letter.upper() if letter != 'k' else 'k'}B"
        return f"{self.count:g} byte{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Either(Rule):
    """Done when any of the rules is done; hopeless when all are."""

    rules: tuple[Rule, ...]

    def done(self, progress: Progress) -> bool:
        """Return whether any rule is fulfilled."""
        return any(rule.done(progress) for rule in self.rules)

    def hopeless(self, progress: Progress) -> bool:
        """Return whether every rule is hopeless."""
        return all(rule.hopeless(progress) for rule in self.rules)

    def room(self, progress: Progress) -> int:
        """Return the smallest room of the rules."""
        return min((rule.room(progress) for rule in self.rules), default=ENDLESS)

    def limits(self) -> tuple[float, int] | None:
        """Return the smallest limits of the rules."""
        limits = [rule.limits() for rule in self.rules]
        known = [limit for limit in limits if limit is not None]
        if len(known) < len(limits):
            return None
        return min(share for share, _ in known), min(pages for _, pages in known)

    def __str__(self) -> str:
        return " or ".join(_inner(rule) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Both(Rule):
    """Done when all of the rules are done; hopeless when any is."""

    rules: tuple[Rule, ...]

    def done(self, progress: Progress) -> bool:
        """Return whether every rule is fulfilled."""
        return all(rule.done(progress) for rule in self.rules)

    def hopeless(self, progress: Progress) -> bool:
        """Return whether any rule is hopeless."""
        return any(rule.hopeless(progress) for rule in self.rules)

    def room(self, progress: Progress) -> int:
        """Return the largest room of the rules: all of them must be fulfilled."""
        return max((rule.room(progress) for rule in self.rules), default=ENDLESS)

    def __str__(self) -> str:
        return " and ".join(_inner(rule) for rule in self.rules)


def uses(rule: Rule, kind: type[Rule]) -> bool:
    """Return whether a rule, or a part of it, is of a type."""
    return isinstance(rule, kind) or any(uses(part, kind) for part in getattr(rule, "rules", ()))


def goal_of(rule: Rule) -> float | None:
    """Return the coverage goal of a rule, or None.

    >>> goal_of(Coverage(0.95) | Pages(5_000)), goal_of(Pages(5_000))
    (0.95, None)
    """
    if isinstance(rule, Coverage):
        return rule.share
    parts = [goal_of(part) for part in rule.rules] if isinstance(rule, Either) else []
    return min((part for part in parts if part is not None), default=None)


def parse(text: str) -> Rule:
    """Parse rules in command-line syntax; a comma or `|` means either, `&` (which binds tighter) means both.

    >>> str(parse("coverage=0.9 & minutes=10, bytes=2GB"))
    '(coverage 90 % and 10 minutes) or 2 GB'
    """
    either: list[Rule] = []
    for alternative in re.split(r"[,|]", text):
        both = [_rule(part.strip()) for part in alternative.split("&")]
        either.append(both[0] if len(both) == 1 else Both(tuple(both)))
    return either[0] if len(either) == 1 else Either(tuple(either))


def rule_of(until: object) -> Rule:
    """Return a rule that is given as a `Rule` or as text; raise for anything else.

    >>> rule_of("pages=5") == rule_of(Pages(5))
    True
    """
    if isinstance(until, Rule):
        return until
    if isinstance(until, str):
        return parse(until)
    number = until if isinstance(until, int) and not isinstance(until, bool) and until > 0 else 5
    raise UsageError(
        f"until must be a stopping rule or its text, not {until!r}",
        hint=f'such as sv.Pages({number}) or "pages={number}"; also coverage, minutes and bytes',
    )


def _rule(text: str) -> Rule:
    key, equals, value = (part.strip().lower() for part in text.partition("="))
    if not equals:
        raise UsageError(f"{text!r} is not a rule to stop by", hint="write coverage=0.9, pages=5000 or requests=20000")
    if key not in KEYS:
        near = get_close_matches(key, KEYS, 1)
        guess = f"did you mean {near[0]}?" if near else f"there are {', '.join(KEYS)}"
        raise UsageError(f"no stopping rule {key!r}", hint=guess)
    letters, example = KEYS[key]
    match = re.fullmatch(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(%?)([kmgt]?)(b?)", value)
    if match is None or not set("".join(match.groups()[1:])) <= set(letters):
        raise UsageError(f"{value!r} is not a number of {key}", hint=f"write {key}={example}")
    number = float(match[1]) * SCALES[match[3]]
    if key == "coverage":
        return Coverage(number / 100 if match[2] else number)
    if key in ("pages", "requests"):
        return (Pages if key == "pages" else Requests)(round(number, 6))  # type: ignore[arg-type]  # raises if not whole
    return Minutes(number) if key == "minutes" else Bytes(number)


def _number(value: object, what: str, hint: str) -> float:
    if not isinstance(value, Real) or not math.isfinite(value):
        raise UsageError(f"{what} must be a finite number, not {value}", hint=hint)
    return float(value)


def _parts(rule: Rule, kind: type[Either | Both]) -> tuple[Rule, ...]:
    """Flatten a rule of the same type, so that equal rules compare equal however they were built."""
    return rule.rules if isinstance(rule, kind) else (rule,)


def _inner(rule: Rule) -> str:
    return f"({rule})" if isinstance(rule, Either | Both) else str(rule)


class ProgressCallback(Protocol):
    """A progress callback for long operations."""

    def __call__(self, stage: str, done: float, total: float, unit: str) -> None:
        """Report that `done` of `total` units of this stage are finished; total 0 means unknown."""


def silent(stage: str, done: float, total: float, unit: str) -> None:
    """Ignore progress reports."""
