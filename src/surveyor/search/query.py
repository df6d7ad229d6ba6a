"""Queries: words, "quoted phrases", and -excluded words. All other signs separate words.

>>> parse('tall "sea level" -ice -"north pole"')
Query(wanted=('tall', 'sea level'), phrases=('sea level',), excluded=('ice', 'north pole'))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from surveyor.errors import UsageError
from surveyor.search.words import is_unspaced, pairs, runs

LONGEST = 1_000  # characters
MOST_WORDS = 32
EXAMPLE = "for example: surveyor search SURVEY 'sea level'"
_PART = re.compile(r'(?:(?<=\s)|^)(-?)"([^"]*)"|(\S+)')


@dataclass(frozen=True, slots=True)
class Query:
    """The parts of a query as texts."""

    wanted: tuple[str, ...]  # words and phrases that a page should have
    phrases: tuple[str, ...] = ()  # those of them that it must have word by word
    excluded: tuple[str, ...] = ()  # words and phrases that it must not have


@dataclass(frozen=True, slots=True)
class Terms:
    """The words of a query, folded."""

    words: tuple[str, ...]  # distinct, in order
    phrases: tuple[tuple[str, ...], ...]  # of two words or more
    excluded: tuple[tuple[str, ...], ...]  # of one word or more


def parse(text: str) -> Query:
    """Divide a query into its parts."""
    if len(text) > LONGEST:
        raise UsageError(f"a query may have {LONGEST:,} characters, got {len(text):,}", hint=EXAMPLE)
    wanted: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    for minus, phrase, word in _PART.findall(text):
        if word:
            is_out = word.startswith("-")
            (excluded if is_out else wanted).append(word[1:] if is_out else word)
        elif minus:
            excluded.append(phrase)
        else:
            wanted.append(phrase)
            phrases.append(phrase)
    return Query(tuple(filter(None, wanted)), tuple(filter(None, phrases)), tuple(filter(None, excluded)))


def terms_of(query: Query) -> Terms:
    """Return the words of a query; UsageError if it has none or too many."""
    words = dict.fromkeys(word for part in query.wanted for word in _words(part))
    exact = [*query.phrases, *(run for part in query.wanted for run in runs(part) if is_unspaced(run))]
    phrases = dict.fromkeys(tuple(_words(part)) for part in exact)
    excluded = dict.fromkeys(tuple(_words(part)) for part in query.excluded)
    total = len(words) + sum(map(len, excluded))
    if total > MOST_WORDS:
        raise UsageError(f"a query may have {MOST_WORDS} words, got {total}", hint=EXAMPLE)
    if not words:
        raise UsageError("the query has no word to search for", hint=EXAMPLE)
    long = tuple(phrase for phrase in phrases if len(phrase) > 1)
    return Terms(tuple(words), long, tuple(filter(None, excluded)))


def _words(text: str) -> list[str]:
    found: list[str] = []
    for run in runs(text):
        found += pairs(run) if is_unspaced(run) else [run]
    return found
