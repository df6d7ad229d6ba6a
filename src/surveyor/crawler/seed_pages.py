"""Seed URLs with their weights, and listed pages: URLs that are known in advance but are not trusted.

A random surfer jumps to a seed with a probability in proportion to its weight, 1 by default. A page of weight 0 is
*listed*: it is known and queued, but no jump leads to it, so it has no importance until a fetched page links to it, and
neither coverage nor ranks change because of it. Pages without importance come last in every order of the frontier, the
listed ones first, in the order of the list.

A seed is written `URL` or `URL WEIGHT`, on the command line, in settings and in lists; in Python it may also be an
entry of a mapping.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from surveyor.errors import UsageError
from surveyor.web.urls import host, normalise

WEIGHT = re.compile(r"(\S+?),?[ \t]+,?[ \t]*(\S+)")  # a URL, and the word after it
COMMA = re.compile(r"(\S*[^\s,]),([^\s,/]+)")  # without white space: only if each line of a list has this form
NUMERIC = re.compile(r"[-+]?(\d.*|\.\d.*|nan|inf|infinity)", re.IGNORECASE)
LARGEST = 1e12  # ratio of two weights: shares stay far above rounding errors
ADDRESS = r"(\d+\.\d+\.\d+\.\d+|\[[0-9a-fA-F:.]+\]):(?!443(/|$))\d+"  # with a port
LOCAL = re.compile(rf"(localhost(:(?!443(/|$))\d+)?|{ADDRESS})(/|\?|$)", re.IGNORECASE)
RANGE = "a number above 0, or 0 for a page that is only known in advance"
Given = str | Sequence[str] | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SeedPages:
    """Seeds by normalised URL, with their weights where they were given, and listed pages."""

    weights: Mapping[str, float | None] = field(default_factory=dict)  # None: as stored in the survey, or 1
    listed: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Given | Sequence[tuple[str, float | None]]) -> SeedPages:
        """Normalise seeds given as URLs, as `URL WEIGHT`, or as a mapping from URLs to weights.

        Of several weights of a page the largest counts.

        >>> SeedPages.of(["Example.org 3", "https://b.example/"]).weights
        {'https://example.org/': 3.0, 'https://b.example/': None}
        >>> SeedPages.of({"https://example.org/": 1, "https://example.org/orphan": 0}).listed
        ('https://example.org/orphan',)
        """
        if isinstance(given, Mapping):
            pairs: Iterable[tuple[object, object]] = given.items()
        else:
            pairs = map(_split, [given] if isinstance(given, str) else list(given))
        weights: dict[str, float | None] = {}
        for seed, weight in pairs:
            url, number = normalised_seed(seed), _checked(seed, weight)
            weights[url] = number if url not in weights else _larger(weights[url], number)
        trusted = {url: number for url, number in weights.items() if number != 0}
        if weights and not trusted:
            raise UsageError(
                f"no seed has a weight above 0: {_few(weights)} would only be known in advance",
                hint="add a page to start from, without a weight or with one above 0",
            )
        numbers = [number or 1.0 for number in trusted.values()]
        if trusted and max(numbers) / min(numbers) > LARGEST:
            raise UsageError(
                f"the weights of the seeds must differ by a factor of at most {LARGEST:g}, "
                f"got {min(numbers):g} and {max(numbers):g}",
                hint="drop the seeds of tiny weight, or give them weight 0",
            )
        return cls(trusted, tuple(url for url, number in weights.items() if number == 0))

    def with_more(self, found: Mapping[str, float | None]) -> SeedPages:
        """Return these pages and others, such as those of lists, by URL as written."""
        if not (self or found):
            raise UsageError("there are no seeds", hint="pass at least one page to start from")
        return SeedPages.of([*self.weights.items(), *((url, 0.0) for url in self.listed), *found.items()])

    @property
    def urls(self) -> list[str]:
        """The seeds, without listed pages."""
        return list(self.weights)

    def __bool__(self) -> bool:
        return bool(self.weights or self.listed)


def _larger(one: float | None, other: float | None) -> float | None:
    if not one or not other:  # 0 is a listed page, None a seed without a weight
        return one or other or (0.0 if one == other == 0 else None)
    return max(one, other)


def clean_seeds(seeds: Given) -> list[str]:
    """Normalise seed URLs and remove duplicates and listed pages; the default scheme is https.

    >>> clean_seeds(["Example.org", "https://example.org/#top"])
    ['https://example.org/']
    """
    clean = SeedPages.of(seeds).urls
    if not clean:
        raise UsageError("there are no seeds", hint="pass at least one page to start from")
    return clean


def normalised_seed(seed: object) -> str:
    """Return the URL of a seed as written by a user."""
    text = _seed_text(seed)
    url = normalise(text if "://" in text else f"{_assumed_scheme(text)}://{text}")
    if url is None or not host(url):
        raise UsageError(f"{seed!r} is not an http or https URL", hint="write it as https://example.org/")
    return url


def _assumed_scheme(text: str) -> str:
    """Return https, but http for localhost and for an address with a port: a server under development.

    >>> [_assumed_scheme(text) for text in ("localhost:8000/docs", "127.0.0.1:8000", "10.0.0.1", "example.org:80")]
    ['http', 'http', 'https', 'https']
    """
    return "http" if LOCAL.match(text) else "https"


def _seed_text(seed: object) -> str:
    """Return a seed as text; reject a single word, which is more likely a mistake than a host."""
    if not isinstance(seed, str):
        raise UsageError(f"a seed must be a URL, got {seed!r:.200}", hint="write it as https://example.org/")
    text = seed.strip()
    if re.fullmatch(r"[\w-]+", text) and text.lower() != "localhost":
        raise UsageError(
            f"{seed!r} is not an http or https URL",
            hint=f"write it as https://example.org/, or a host as https://{text}/",
        )
    return text


def split_weight(text: str, *, comma: bool = False) -> tuple[str, float | None]:
    """Split `URL WEIGHT` at white space, also with a comma; raise ValueError if the second word is no weight.

    With `comma`, `URL,WEIGHT` is split as well. Without it a comma alone is part of the URL.

    >>> split_weight("https://example.org/  2.5"), split_weight("https://example.org/0,1518")
    (('https://example.org/', 2.5), ('https://example.org/0,1518', None))
    >>> split_weight("https://example.org/,3", comma=True)
    ('https://example.org/', 3.0)
    """
    text = text.strip()
    found = WEIGHT.fullmatch(text) or (COMMA.fullmatch(text) if comma else None)
    if found is None:
        return text, None
    return found[1], as_weight(found[2])


def as_weight(word: str) -> float:
    """Return a weight from text; raise ValueError with the accepted range."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"the weight of a seed must be {RANGE}, got {word!r:.100}")
    return number


def read_lines(lines: Sequence[str]) -> list[tuple[str, float | None]]:
    """Split the lines of a list; raise ValueError with the number of the line that has a wrong weight.

    A comma alone separates only if each line is a URL, a comma and a number, since URLs may contain commas.
    """
    comma = bool(lines) and all(map(_has_comma, lines))
    pairs = []
    for number, line in enumerate(lines, 1):
        try:
            pairs.append(split_weight(line, comma=comma))
        except ValueError as error:
            raise ValueError(f"entry {number:,}: {error}") from None
    return pairs


def _has_comma(line: str) -> bool:
    found = COMMA.fullmatch(line.strip())
    try:
        return found is not None and as_weight(found[2]) >= 0
    except ValueError:
        return False


def _split(seed: Any) -> tuple[object, float | None]:
    if isinstance(seed, tuple) and len(seed) == 2:
        return seed
    if not isinstance(seed, str):
        return seed, None
    if (found := WEIGHT.fullmatch(seed.strip())) and not NUMERIC.fullmatch(found[2]):
        return seed, None  # a URL with a space
    try:
        return split_weight(seed)
    except ValueError as error:
        raise UsageError(
            f"{seed!r}: {error}", hint="write https://example.org/ 3, or a space in a URL as %20"
        ) from None


def _checked(seed: object, weight: object) -> float | None:
    if weight is None:
        return None
    try:
        number = math.nan if isinstance(weight, bool) or not isinstance(weight, Real) else float(weight)
    except OverflowError:  # an integer or fraction that no float holds
        number = math.inf
    if not math.isfinite(number) or number < 0:
        got = "more than a float holds" if number == math.inf and weight != math.inf else f"{weight!r:.100}"
        raise UsageError(f"the weight of a seed must be {RANGE}, got {got} for {seed}", hint="for example 1 or 2.5")
    return number


def written(url: str, weight: float) -> str:
    """Return a seed as it is written: `URL`, or `URL WEIGHT`.

    >>> written("https://example.org/", 1.0), written("https://example.org/", 2.5)
    ('https://example.org/', 'https://example.org/ 2.5')
    """
    return url if weight == 1 else f"{url} {weight:.15g}"


def merged(before: SeedPages, given: SeedPages) -> tuple[SeedPages, list[str]]:
    """Return the pages of a survey with those given now, and the given listed pages that are seeds and stay so."""
    weights = {url: before.weights.get(url) if number is None else number for url, number in given.weights.items()}
    weights = {**before.weights, **weights}
    listed = tuple(url for url in dict.fromkeys((*before.listed, *given.listed)) if url not in weights)
    return SeedPages(weights, listed), [url for url in given.listed if url in before.weights]


def _few(urls: Iterable[str]) -> str:
    some = list(urls)
    return ", ".join(some[:2]) + (f" and {len(some) - 2:,} more" if len(some) > 2 else "")
