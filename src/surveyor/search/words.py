"""The words of a text as the index has them: folded, stemmed in the language of the page, Chinese in pairs.

*Folding*: compatibility forms are replaced, case is folded, and accents of Latin, Greek and Cyrillic letters removed.
A *word* is a run of letters, digits, marks and underscores. Runs of scripts that put no spaces between words become
overlapping pairs of characters; a single character stays as it is. All other words are reduced to their stems by
Snowball. A word is at most `LONGEST` bytes; the rest of a longer one is ignored.

    >>> fold("Ärzte in Málaga, ＡＢＣ"), pairs("東京都")
    ('arzte in malaga, abc', ['東京', '京都'])
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from surveyor.arrays import optional

LONGEST = 40  # bytes of a word
MOST_STEMS = 200_000  # kept per language
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff"  # Thai, Han, Kana, …
MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff"
STEMMERS = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nb": "norwegian",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
_ACCENTS = re.compile("[\u0300-\u036f]")
_RUN = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}])[\w{MARKS}])+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


class Token(NamedTuple):
    """A word of a text with its place in that text."""

    word: bytes
    start: int
    end: int


def fold(text: str) -> str:
    """Fold case, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", plain))


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of characters of a run; of a single one, itself."""
    return [a + b for a, b in pairwise(run)] or [run]


def language_code(language: str) -> str:
    """Return the language of a tag such as `de-AT`; empty if it is none."""
    code = re.split(r"[-_]", language.strip().lower())[0]
    return code if code.isascii() and code.isalpha() and len(code) in (2, 3) else ""


def words(text: str, language: str = "") -> list[bytes]:
    """Return the words of a text in a language, in order."""
    stems, found = _stems(STEMMERS.get(language, "")), list[bytes]()
    for run in _RUN.findall(fold(text)):
        if _IS_UNSPACED.match(run):
            found += [pair.encode() for pair in pairs(run)]
        else:
            found.append(stems[run])
    return found


def tokens(text: str, language: str = "") -> list[Token]:
    """Return the words of a text and where they are; an unspaced run has one token per character that begins a pair."""
    stems, found = _stems(STEMMERS.get(language, "")), list[Token]()
    folded, places = _folded_with_places(text)
    for match in _RUN.finditer(folded):
        if _IS_UNSPACED.match(match[0]):
            for at, pair in enumerate(pairs(match[0]), match.start()):
                found.append(Token(pair.encode(), places[at], places[at + len(pair) - 1] + 1))
        else:
            found.append(Token(stems[match[0]], places[match.start()], places[match.end() - 1] + 1))
    return found


def is_unspaced(text: str) -> bool:
    """Return whether a text begins with a character of a script without spaces."""
    return _IS_UNSPACED.match(text) is not None


def runs(text: str) -> list[str]:
    """Return the runs of a text that become words, folded."""
    return [str(run) for run in _RUN.findall(fold(text))]


def stem(run: str, language: str) -> bytes:
    """Return a folded word as pages in a language have it."""
    return _stems(STEMMERS.get(language, ""))[run]


def _folded_with_places(text: str) -> tuple[str, range | list[int]]:
    """Return a folded text, and the place of each of its characters in the text."""
    if text.isascii():
        return text.lower(), range(len(text))
    parts: list[str] = []
    places: list[int] = []
    for found in re.finditer(r"\S+\s*|\s+", text):  # a character and its accents are in one part
        part = fold(found[0])
        parts.append(part)
        last = found.end() - 1
        places += [min(found.start() + at, last) for at in range(len(part))]
    return "".join(parts), places


class _Stems(dict[str, bytes]):
    """Stems of words, kept as most words of a text are in others, too."""

    def __init__(self, of: Callable[[str], str]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, run: str) -> bytes:
        stem = self._of(run[: 2 * LONGEST]).encode("utf-8", "replace")[:LONGEST]
        if len(self) < MOST_STEMS and len(run) <= LONGEST:
            self[run] = stem
        return stem


@cache
def _stems(name: str) -> _Stems:
    library: Any = require_library()
    return _Stems(library.stemmer(name).stemWord if name else str)


def require_library() -> Any:
    """Return the Snowball stemmers; raise MissingExtra if they are not installed."""
    return optional("snowballstemmer", "search", "search")
