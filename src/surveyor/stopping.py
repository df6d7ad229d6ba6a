"""When a crawl is done: rules as values, combined with `|` (either) and `&` (both).

    >>> rule = Coverage(0.95) | Pages(5_000)
    >>> str(rule), rule.done(Standing(pages=5_000, at_least=0.7))
    ('coverage 95 % or 5,000 pages', True)
    >>> parse("coverage=95%, pages=5k") == rule
    True

A rule is *done* when it is fulfilled, and *hopeless* when it never will be. Only coverage can become
hopeless: what is blocked or lost cannot be captured any more, so once `best_possible` lies below the share
asked for, the goal is out of reach. A crawl still goes on towards the best there is until hardly any mass
(`SETTLED`) is in motion; only then is it told to give up. Pages, requests, minutes and bytes are always reached in
the end.
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

SETTLED = 0.01  # with no more mass than this in motion, the best possible coverage is as good as reached
ENDLESS = 2**63 - 1  # pages, where a rule sets no limit
SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
KEYS = {  # the letters that may follow a number, and an example
    "coverage": ("%", "0.9 or 90%"),
    "pages": ("kmg", "5000 or 5k"),
    "requests": ("kmg", "20000 or 20k"),
    "minutes": ("", "10"),
    "bytes": ("kmgtb", "2GB"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a crawl has come."""

    pages: int
    seconds: float = 0.0
    bytes: int = 0
    at_least: float = 0.0  # coverage guaranteed now
    best_possible: float = 1.0  # 1 - blocked - lost: the largest guarantee still within reach
    in_motion: float = 1.0  # waiting + moving mass
    requests: int = 0  # sent: for pages and robots.txt files, retries and redirects included


class Rule(ABC):
    """A condition under which a crawl ends."""

    __slots__ = ()

    @abstractmethod
    def done(self, standing: Standing) -> bool:
        """Return whether the rule is fulfilled."""

    def reached(self, standing: Standing) -> bool:
        """Return whether the goal is reached; another word for done."""
        return self.done(standing)

    def hopeless(self, standing: Standing) -> bool:  # noqa: ARG002
        """Return whether going on can no longer fulfil the rule."""
        return False

    def room(self, standing: Standing) -> int:  # noqa: ARG002
        """Return how many requests may be under way without going beyond the rule; ENDLESS if it counts none."""
        return ENDLESS

    def limits(self) -> tuple[float, int] | None:
        """Return the coverage and the pages either of which ends the crawl; None if the rule is not of that form."""
        return None

    def __or__(self, other: Rule) -> Either:
        return Either((*_parts(self, Either), *_parts(other, Either))) if isinstance(other, Rule) else NotImplemented

    def __and__(self, other: Rule) -> Both:
        return Both((*_parts(self, Both), *_parts(other, Both))) if isinstance(other, Rule) else NotImplemented


@dataclass(frozen=True, slots=True)
class Coverage(Rule):
    """Done when this share of all importance is guaranteed to be captured."""

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

    def done(self, standing: Standing) -> bool:
        """Return whether the guarantee is large enough."""
        return standing.at_least >= self.share

    def hopeless(self, standing: Standing) -> bool:
        """Return whether too much is blocked or lost, and nearly all the rest is captured."""
        return standing.best_possible < self.share and standing.in_motion <= SETTLED

    def limits(self) -> tuple[float, int]:
        """Return the share; pages are not limited."""
        return self.share, ENDLESS

    def __str__(self) -> str:
        return f"coverage {100 * self.share:.10g} %"


@dataclass(frozen=True, slots=True)
class Pages(Rule):
    """Done when so many pages are read."""

    count: int

    def __post_init__(self) -> None:
        count = _number(self.count, "pages", "such as 5000")
        if not count.is_integer() or count < 1:
            raise UsageError(f"pages must be a whole number of at least 1, not {count:g}", hint="such as 5000")
        object.__setattr__(self, "count", int(self.count))

    def done(self, standing: Standing) -> bool:
        """Return whether enough pages are read."""
        return standing.pages >= self.count

    def room(self, standing: Standing) -> int:
        """Return how many pages are missing: each needs one request at least."""
        return max(0, self.count - standing.pages)

    def limits(self) -> tuple[float, int]:
        """Return the pages; coverage is not limited."""
        return math.inf, min(self.count, ENDLESS - 1)

    def __str__(self) -> str:
        return f"{self.count:,} page{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Requests(Rule):
    """Done when so many requests were sent: for pages and robots.txt files, retries and redirects included."""

    count: int

    def __post_init__(self) -> None:
        count = _number(self.count, "requests", "such as 20000")
        if not count.is_integer() or count < 1:
            raise UsageError(f"requests must be a whole number of at least 1, not {count:g}", hint="such as 20000")
        object.__setattr__(self, "count", int(self.count))

    def done(self, standing: Standing) -> bool:
        """Return whether enough requests were sent."""
        return standing.requests >= self.count

    def room(self, standing: Standing) -> int:
        """Return how many requests are left."""
        return max(0, self.count - standing.requests)

    def __str__(self) -> str:
        return f"{self.count:,} request{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Minutes(Rule):
    """Done when the crawl has taken so long."""

    minutes: float

    def __post_init__(self) -> None:
        if _number(self.minutes, "minutes", "such as 10") <= 0:
            raise UsageError(f"minutes must be above 0, not {self.minutes:g}", hint="such as 10")

    def done(self, standing: Standing) -> bool:
        """Return whether the time is up."""
        return standing.seconds >= 60 * self.minutes

    def __str__(self) -> str:
        return f"{self.minutes:,.10g} minute{'s' * (self.minutes != 1)}"


@dataclass(frozen=True, slots=True)
class Bytes(Rule):
    """Done when so many bytes have been received."""

    count: float

    def __post_init__(self) -> None:
        if _number(self.count, "bytes", "such as 2e9") <= 0:
            raise UsageError(f"bytes must be above 0, not {self.count:g}", hint="such as 2e9")

    def done(self, standing: Standing) -> bool:
        """Return whether enough bytes have come."""
        return standing.bytes >= self.count

    def __str__(self) -> str:
        for letter in "tgmk":
            if self.count >= SCALES[letter]:
                return f"{self.count / SCALES[letter]:,.6g} {letter.upper() if letter != 'k' else 'k'}B"
        return f"{self.count:g} byte{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Either(Rule):
    """Done when any of the rules is; hopeless when all are."""

    rules: tuple[Rule, ...]

    def done(self, standing: Standing) -> bool:
        """Return whether any rule is fulfilled."""
        return any(rule.done(standing) for rule in self.rules)

    def hopeless(self, standing: Standing) -> bool:
        """Return whether no rule can be fulfilled any more."""
        return all(rule.hopeless(standing) for rule in self.rules)

    def room(self, standing: Standing) -> int:
        """Return the smallest room of the rules."""
        return min((rule.room(standing) for rule in self.rules), default=ENDLESS)

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
    """Done when all of the rules are; hopeless when any is."""

    rules: tuple[Rule, ...]

    def done(self, standing: Standing) -> bool:
        """Return whether every rule is fulfilled."""
        return all(rule.done(standing) for rule in self.rules)

    def hopeless(self, standing: Standing) -> bool:
        """Return whether some rule can no longer be fulfilled."""
        return any(rule.hopeless(standing) for rule in self.rules)

    def room(self, standing: Standing) -> int:
        """Return the largest room of the rules: all of them are to be met."""
        return max((rule.room(standing) for rule in self.rules), default=ENDLESS)

    def __str__(self) -> str:
        return " and ".join(_inner(rule) for rule in self.rules)


def uses(rule: Rule, kind: type[Rule]) -> bool:
    """Say whether a rule is of a kind, or made of such."""
    return isinstance(rule, kind) or any(uses(part, kind) for part in getattr(rule, "rules", ()))


def goal_of(rule: Rule) -> float | None:
    """Return the coverage that a rule asks for, if it does.

    >>> goal_of(Coverage(0.95) | Pages(5_000)), goal_of(Pages(5_000))
    (0.95, None)
    """
    if isinstance(rule, Coverage):
        return rule.share
    parts = [goal_of(part) for part in rule.rules] if isinstance(rule, Either) else []
    return min((part for part in parts if part is not None), default=None)


def parse(text: str) -> Rule:
    """Read rules as the command line has them; a comma or `|` means either, `&` (which binds tighter) both.

    >>> str(parse("coverage=0.9 & minutes=10, bytes=2GB"))
    '(coverage 90 % and 10 minutes) or 2 GB'
    """
    either: list[Rule] = []
    for alternative in re.split(r"[,|]", text):
        both = [_rule(part.strip()) for part in alternative.split("&")]
        either.append(both[0] if len(both) == 1 else Both(tuple(both)))
    return either[0] if len(either) == 1 else Either(tuple(either))


def rule_of(until: object) -> Rule:
    """Return a rule given as such or in words; anything else is an error.

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
        return (Pages if key == "pages" else Requests)(round(number, 6))  # type: ignore[arg-type]  # refuses what is not whole
    return Minutes(number) if key == "minutes" else Bytes(number)


def _number(value: object, what: str, hint: str) -> float:
    if not isinstance(value, Real) or not math.isfinite(value):
        raise UsageError(f"{what} must be a finite number, not {value}", hint=hint)
    return float(value)


def _parts(rule: Rule, kind: type[Either | Both]) -> tuple[Rule, ...]:
    """Unfold a rule of the same kind, so that however it was built, equal rules are equal."""
    return rule.rules if isinstance(rule, kind) else (rule,)


def _inner(rule: Rule) -> str:
    return f"({rule})" if isinstance(rule, Either | Both) else str(rule)


class Progress(Protocol):
    """Called now and then by long work."""

    def __call__(self, stage: str, done: float, total: float, unit: str) -> None:
        """Say that `done` of `total` units of this stage are finished; total 0 means unknown."""


def silent(stage: str, done: float, total: float, unit: str) -> None:
    """Show nothing."""
