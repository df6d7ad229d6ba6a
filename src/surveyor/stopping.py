"""Stopping rules: values that are combined with `|` (either) and `&` (both), and the one parser of their text.

    >>> rule = Coverage(0.95) | Pages(5_000)
    >>> str(rule), rule.done(Progress(pages=5_000, at_least=0.7))
    ('coverage 95 % or 5,000 pages', True)
    >>> parse_rule("coverage=95%, pages=5k") == rule
    True

A rule is *done* when it is fulfilled, and *unreachable* when it cannot be fulfilled any more. Only coverage can become
unreachable: blocked or lost mass cannot be captured, so the goal is lost once `best_possible` is below the share. The
crawl still continues towards the best possible coverage until at most `SETTLED` of the mass is in motion; only then is
the rule unreachable. Limits on pages, requests, minutes and bytes are always reached eventually.

Crawls, simulations, samples and community estimates stop at different quantities, but all of them are written
`name=value`, with one set of suffixes, and checked by the tables `CRAWL`, `SAMPLE` and `COMMUNITY`.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import NamedTuple, Protocol

from surveyor.errors import UsageError

SETTLED = 0.01  # with at most this mass in motion, the best possible coverage is practically reached
NO_LIMIT = 2**63 - 1  # pages or requests, if a rule sets no limit
SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
NUMBER = re.compile(r"([+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([%kmgt]?)(b?)", re.ASCII)  # as `float`


class Quantity(NamedTuple):
    """A quantity at which something stops: an example of its value, the suffixes allowed and the range."""

    example: str
    suffixes: str = ""  # allowed after the number
    is_count: bool = False  # a whole number of at least 1
    below: float = math.inf  # values are above 0 and below this
    reason: str = ""  # why the limit itself is excluded
    has_confidence: bool = False  # whether a confidence may follow, as in 0.9@95%

    @property
    def range(self) -> str:
        """The accepted values, for messages."""
        if self.is_count:
            return "a whole number of at least 1"
        return "above 0" if math.isinf(self.below) else f"above 0 and below {self.below:g}"

    def checked(self, name: str, value: object) -> float:
        """Return a value as a number; raise UsageError if it is out of range."""
        hint = f"for example {self.example}"
        if not isinstance(value, Real) or not math.isfinite(value):
            raise UsageError(f"{name} must be a finite number, got {value}", hint=hint)
        number = float(value)
        whole = not self.is_count or (number.is_integer() and number >= 1)
        if not whole or not 0 < number < self.below:
            if self.below == 1 and 1 < number < 100:
                hint = f"write {number / 100:g} for {number:g} %"
            reason = f": {self.reason}" if self.reason and number == self.below else ""
            raise UsageError(f"{name} must be {self.range}, got {number:g}{reason}", hint=hint)
        return number

    def parse(self, name: str, text: str) -> float:
        """Return the value that a text such as `5k` or `90%` states."""
        match = NUMBER.fullmatch(text.strip().lower())
        if match is None or not set(match[2] + match[3]) <= set(self.suffixes):
            raise UsageError(
                f"{name}={text.strip()} is not a number of {name}", hint=f"for example {name}={self.example}"
            )
        number = float(match[1]) / 100 if match[2] == "%" else float(match[1]) * SCALES[match[2]]
        return self.checked(name, round(number, 6) if self.is_count else number)


Quantities = Mapping[str, Quantity]
CRAWL: Quantities = {
    "coverage": Quantity(
        "0.9",
        "%",
        below=1,
        reason="100 % cannot be certified, as some mass always remains on unfetched pages",
        has_confidence=True,
    ),
    "pages": Quantity("5000", "kmg", is_count=True),
    "requests": Quantity("20k", "kmg", is_count=True),
    "minutes": Quantity("10"),
    "bytes": Quantity("2GB", "kmgtb"),
}
SAMPLE: Quantities = {
    "ess": Quantity("400", "km"),
    "width": Quantity("3%", "%", below=1),
    "fetches": Quantity("2000", "kmg", is_count=True),
    "steps": Quantity("100k", "kmg", is_count=True),
    "minutes": Quantity("30"),
}
COMMUNITY: Quantities = {"stable": Quantity("0.001", "%", below=2)}
CONFIDENCE = Quantity("95%", "%", below=1)


class Term(NamedTuple):
    """One condition of a stopping rule."""

    name: str
    value: float
    confidence: float | None = None


def examples(quantities: Quantities) -> str:
    """Return an example of each quantity, for help texts and hints.

    >>> examples(COMMUNITY), examples(SAMPLE)
    ('stable=0.001', 'ess=400, width=3%, fetches=2000, steps=100k or minutes=30')
    """
    *most, last = (f"{name}={quantity.example}" for name, quantity in quantities.items())
    return f"{', '.join(most)} or {last}" if most else last


def parse_alternatives(text: str, quantities: Quantities) -> list[list[Term]]:
    """Parse `name=value` terms: a comma, `|` or `or` separates alternatives, `&` or `and` (tighter) joins conditions.

    >>> [[term[:2] for term in terms] for terms in parse_alternatives("coverage=90% & minutes=10, bytes=2GB", CRAWL)]
    [[('coverage', 0.9), ('minutes', 10.0)], [('bytes', 2000000000.0)]]
    """
    return [
        [_term(term.strip(), quantities) for term in re.split(r"&|\band\b", alternative)]
        for alternative in re.split(r"[,|]|\bor\b", text)
    ]


def parse_limits(text: str, quantities: Quantities) -> dict[str, float]:
    """Parse alternatives of one condition each, as limits by name.

    >>> parse_limits("width=3%, fetches=2k", SAMPLE)
    {'width': 0.03, 'fetches': 2000.0}
    """
    limits: dict[str, float] = {}
    for conditions in parse_alternatives(text, quantities):
        if len(conditions) > 1 or conditions[0].name in limits:
            problem = f"{text.strip()!r} must name each quantity at most once, separated by commas"
            raise UsageError(problem, hint=f"for example {examples(quantities)}")
        limits[conditions[0].name] = conditions[0].value
    return limits


def _term(text: str, quantities: Quantities) -> Term:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise UsageError(f"{text!r} is not a stopping rule", hint=f"write {examples(quantities)}")
    name = name.lower()
    if name not in quantities:
        near = get_close_matches(name, quantities, 1)
        hint = f"did you mean {near[0]}?" if near else f"write {examples(quantities)}"
        raise UsageError(f"there is no stopping rule {name!r}", hint=hint)
    value, at, confidence = value.partition("@")
    if at and not quantities[name].has_confidence:
        raise UsageError(
            f"{name}={value.strip()} cannot have a confidence, got @{confidence.strip()}",
            hint="only coverage can, for example coverage=0.9@95%",
        )
    number = quantities[name].parse(name, value)
    return Term(name, number, _confidence(f"{name}={value.strip()}", confidence.strip()) if at else None)


def _confidence(rule: str, text: str) -> float:
    """Return the confidence that follows the @ of a rule."""
    try:
        return CONFIDENCE.parse("confidence", text)
    except UsageError as error:
        problem = f"the confidence of {rule}@{text} must be above 0 and below 1, such as 95% or 0.95" if text else ""
        hint = f"write {rule}@95%, or {rule} for a certified coverage"
        raise UsageError(problem or f"{rule}@ has no confidence after the @", hint=hint) from error


class ScoutProgress(NamedTuple):
    """The progress of a scout."""

    walks: int
    sample: int  # unfetched URLs to draw
    ended: bool  # no page is left to fetch
    requests: int  # since its start


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
    proves: Callable[[float, float], bool] = lambda _share, _confidence: False  # whether walks prove a coverage
    scout: Callable[[], ScoutProgress | None] = lambda: None  # of the last scout
    listed: Callable[[], int] = lambda: 0  # listed pages that were not requested yet


class Rule(ABC):
    """A condition under which a crawl stops."""

    __slots__ = ()

    @abstractmethod
    def done(self, progress: Progress) -> bool:
        """Return whether the rule is fulfilled."""

    def unreachable(self, progress: Progress) -> bool:  # noqa: ARG002
        """Return whether the rule cannot be fulfilled any more."""
        return False

    def remaining(self, progress: Progress) -> int:  # noqa: ARG002
        """Return how many requests may be in progress without exceeding the rule; NO_LIMIT if it limits none."""
        return NO_LIMIT

    def limits(self) -> tuple[float, int] | None:
        """Return the coverage and the pages, either of which ends the crawl; None if the rule has another form."""
        return None

    def __or__(self, other: Rule) -> Either:
        return Either((*_parts(self, Either), *_parts(other, Either))) if isinstance(other, Rule) else NotImplemented

    def __and__(self, other: Rule) -> Both:
        return Both((*_parts(self, Both), *_parts(other, Both))) if isinstance(other, Rule) else NotImplemented


@dataclass(frozen=True, slots=True)
class Coverage(Rule):
    """Done when the lower bound of coverage reaches this share: the certified bound, or one sampled at a confidence.

    Pages known in advance have no part in the coverage; a crawl that has some requests them before it is done.

    >>> str(Coverage(0.9)), str(Coverage(0.9, confidence=0.95))
    ('coverage 90 %', 'coverage 90 %, sampled at 95 %')
    """

    share: float
    confidence: float | None = None  # None: the bound must be certified

    def __post_init__(self) -> None:
        CRAWL["coverage"].checked("coverage", self.share)
        if self.confidence is not None:
            CONFIDENCE.checked("confidence", self.confidence)

    def done(self, progress: Progress) -> bool:
        """Return whether the lower bound of coverage is large enough, and all listed pages were requested."""
        proven = progress.at_least >= self.share
        if not proven and self.confidence is not None:
            proven = progress.proves(self.share, self.confidence)
        return proven and not progress.listed()

    def unreachable(self, progress: Progress) -> bool:
        """Return whether too much mass is blocked or lost, and nearly all of the rest is captured."""
        return progress.best_possible < self.share and progress.in_motion <= SETTLED

    def limits(self) -> tuple[float, int] | None:
        """Return the share, and no limit on pages; None for a sampled coverage."""
        return (self.share, NO_LIMIT) if self.confidence is None else None

    def __str__(self) -> str:
        sampled = "" if self.confidence is None else f", sampled at {100 * self.confidence:.10g} %"
        return f"coverage {100 * self.share:.10g} %{sampled}"


@dataclass(frozen=True, slots=True)
class Pages(Rule):
    """Done when `count` pages are fetched."""

    count: int

    def __post_init__(self) -> None:
        CRAWL["pages"].checked("pages", self.count)
        object.__setattr__(self, "count", int(self.count))

    def done(self, progress: Progress) -> bool:
        """Return whether enough pages are fetched."""
        return progress.pages >= self.count

    def remaining(self, progress: Progress) -> int:
        """Return the number of pages left: each needs at least one request."""
        return max(0, self.count - progress.pages)

    def limits(self) -> tuple[float, int]:
        """Return the pages, and no limit on coverage."""
        return math.inf, min(self.count, NO_LIMIT - 1)

    def __str__(self) -> str:
        return f"{self.count:,} page{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Requests(Rule):
    """Done when `count` requests were sent: for pages and robots.txt files, retries and redirects included."""

    count: int

    def __post_init__(self) -> None:
        CRAWL["requests"].checked("requests", self.count)
        object.__setattr__(self, "count", int(self.count))

    def done(self, progress: Progress) -> bool:
        """Return whether enough requests were sent."""
        return progress.requests >= self.count

    def remaining(self, progress: Progress) -> int:
        """Return the number of requests left."""
        return max(0, self.count - progress.requests)

    def __str__(self) -> str:
        return f"{self.count:,} request{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Minutes(Rule):
    """Done when the crawl has taken this many minutes."""

    count: float

    def __post_init__(self) -> None:
        CRAWL["minutes"].checked("minutes", self.count)

    def done(self, progress: Progress) -> bool:
        """Return whether the time is up."""
        return progress.seconds >= 60 * self.count

    def __str__(self) -> str:
        return f"{self.count:,.10g} minute{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Bytes(Rule):
    """Done when `count` bytes were received."""

    count: float

    def __post_init__(self) -> None:
        CRAWL["bytes"].checked("bytes", self.count)

    def done(self, progress: Progress) -> bool:
        """Return whether enough bytes were received."""
        return progress.bytes >= self.count

    def __str__(self) -> str:
        for letter in "tgmk":
            if self.count >= SCALES[letter]:
                return f"{self.count / SCALES[letter]:,.6g} {letter.upper() if letter != 'k' else 'k'}B"
        return f"{self.count:g} byte{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class Scouted(Rule):
    """Done when a scout of so many walks and sampled URLs has ended, or has sent so many requests."""

    walks: int
    sample: int
    requests: int

    def done(self, progress: Progress) -> bool:
        """Return whether the scout has ended."""
        scout = self._of(progress)
        return scout is not None and (scout.ended or scout.requests >= self.requests)

    def remaining(self, progress: Progress) -> int:
        """Return the number of requests left."""
        scout = self._of(progress)
        return max(0, self.requests - (0 if scout is None else scout.requests))

    def _of(self, progress: Progress) -> ScoutProgress | None:
        scout = progress.scout()
        return scout if scout is not None and scout[:2] == (self.walks, self.sample) else None

    def __str__(self) -> str:
        return f"{self.walks:,} walks or {self.requests:,} requests"


@dataclass(frozen=True, slots=True)
class Either(Rule):
    """Done when any of the rules is done; unreachable when all are."""

    rules: tuple[Rule, ...]

    def done(self, progress: Progress) -> bool:
        """Return whether any rule is fulfilled."""
        return any(rule.done(progress) for rule in self.rules)

    def unreachable(self, progress: Progress) -> bool:
        """Return whether every rule is unreachable."""
        return all(rule.unreachable(progress) for rule in self.rules)

    def remaining(self, progress: Progress) -> int:
        """Return the fewest requests that any of the rules leaves."""
        return min((rule.remaining(progress) for rule in self.rules), default=NO_LIMIT)

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
    """Done when all of the rules are done; unreachable when any is."""

    rules: tuple[Rule, ...]

    def done(self, progress: Progress) -> bool:
        """Return whether every rule is fulfilled."""
        return all(rule.done(progress) for rule in self.rules)

    def unreachable(self, progress: Progress) -> bool:
        """Return whether any rule is unreachable."""
        return any(rule.unreachable(progress) for rule in self.rules)

    def remaining(self, progress: Progress) -> int:
        """Return the most requests that any of the rules leaves: all of them must be fulfilled."""
        return max((rule.remaining(progress) for rule in self.rules), default=NO_LIMIT)

    def __str__(self) -> str:
        return " and ".join(_inner(rule) for rule in self.rules)


RULES: Mapping[str, type[Coverage | Pages | Requests | Minutes | Bytes]] = {
    "coverage": Coverage,
    "pages": Pages,
    "requests": Requests,
    "minutes": Minutes,
    "bytes": Bytes,
}


def parse_rule(text: str) -> Rule:
    """Parse the stopping rule of a crawl; see `parse_alternatives` for the syntax.

    >>> str(parse_rule("coverage=0.9 & minutes=10, bytes=2GB"))
    '(coverage 90 % and 10 minutes) or 2 GB'
    >>> parse_rule("coverage=0.9@95%")
    Coverage(share=0.9, confidence=0.95)
    """
    either: list[Rule] = []
    for conditions in parse_alternatives(text, CRAWL):
        both = [_rule(term) for term in conditions]
        either.append(both[0] if len(both) == 1 else Both(tuple(both)))
    return either[0] if len(either) == 1 else Either(tuple(either))


def _rule(term: Term) -> Rule:
    if term.confidence is not None:
        return Coverage(term.value, term.confidence)
    return RULES[term.name](term.value)  # type: ignore[arg-type]  # whole where int


def is_limit(rule: Rule) -> bool:
    """Return whether a rule limits requests or time and has no coverage goal: pages may then be fetched repeatedly.

    >>> is_limit(parse_rule("requests=200")), is_limit(parse_rule("coverage=0.9, requests=200"))
    (True, False)
    """
    return (contains(rule, Requests) or contains(rule, Minutes)) and not contains(rule, Coverage)


def as_rule(until: object) -> Rule:
    """Return a rule that is given as a `Rule` or as text; raise for anything else.

    >>> as_rule("pages=5") == as_rule(Pages(5))
    True
    """
    if isinstance(until, Rule):
        return until
    if isinstance(until, str):
        return parse_rule(until)
    number = until if isinstance(until, int) and not isinstance(until, bool) and until > 0 else 5
    raise UsageError(
        f"until must be a stopping rule or its text, got {until!r}",
        hint=f'for example sv.Pages({number}) or "pages={number}"; also coverage, requests, minutes and bytes',
    )


def contains(rule: Rule, kind: type[Rule]) -> bool:
    """Return whether a rule, or a part of it, is of a type."""
    return isinstance(rule, kind) or any(contains(part, kind) for part in getattr(rule, "rules", ()))


def coverage_goal(rule: Rule) -> float | None:
    """Return the coverage goal of a rule, or None.

    >>> coverage_goal(Coverage(0.95) | Pages(5_000)), coverage_goal(Pages(5_000))
    (0.95, None)
    """
    if isinstance(rule, Coverage):
        return rule.share
    parts = [coverage_goal(part) for part in rule.rules] if isinstance(rule, Either) else []
    return min((part for part in parts if part is not None), default=None)


def sampled_goal(rule: Rule) -> tuple[float, float] | None:
    """Return the smallest sampled coverage goal in a rule and its confidence, or None.

    >>> sampled_goal(parse_rule("coverage=0.9@95% & pages=100"))
    (0.9, 0.95)
    """
    if isinstance(rule, Coverage):
        return None if rule.confidence is None else (rule.share, rule.confidence)
    parts = [sampled_goal(part) for part in getattr(rule, "rules", ())]
    return min((part for part in parts if part is not None), default=None)


def scouting_rule(rule: Rule) -> Scouted | None:
    """Return the part of a rule that is a scout, or None."""
    if isinstance(rule, Scouted):
        return rule
    found = [scouting_rule(part) for part in getattr(rule, "rules", ())]
    return next((part for part in found if part is not None), None)


def _parts(rule: Rule, kind: type[Either | Both]) -> tuple[Rule, ...]:
    """Flatten a rule of the same type, so that equal rules compare equal however they were built."""
    return rule.rules if isinstance(rule, kind) else (rule,)


def _inner(rule: Rule) -> str:
    """Return a rule as a part of another, in parentheses if it has several parts.

    >>> str(parse_rule("coverage=0.9@95%, pages=100"))
    '(coverage 90 %, sampled at 95 %) or 100 pages'
    """
    is_compound = isinstance(rule, Either | Both) or (isinstance(rule, Coverage) and rule.confidence is not None)
    return f"({rule})" if is_compound else str(rule)


class ProgressCallback(Protocol):
    """A progress callback for long operations."""

    def __call__(self, stage: str, done: float, total: float, unit: str) -> None:
        """Report that `done` of `total` units of this stage are finished; total 0 means unknown."""


def silent(stage: str, done: float, total: float, unit: str) -> None:
    """Ignore progress reports."""
