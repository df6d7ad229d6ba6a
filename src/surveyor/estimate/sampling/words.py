"""Words of a text, folded: what counts as the same word wherever words are looked for.

Case is folded (`Straße` is `strasse`), letters are spelt in one way (full width as half width), Latin, Greek and
Cyrillic letters lose their accents (`café` is `cafe`, `ё` is `е`), and what is not a letter or a digit only parts
words. Marks of other scripts stay: they are vowels there.

Chinese, Japanese, Thai, Lao, Khmer and Burmese put no blanks between words. There each character is a word of its own,
so that a run of them is found wherever it stands.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_DROPPED = re.compile("[\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff]")  # accents, soft hyphens, what has no width
_ASCII = re.compile("[a-z0-9]+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def words(text: str) -> list[str]:
    """Return the words of a text, folded, in their order.

    >>> words("Caf\u00e9-STRA\u00dfE, 24 h"), words("AI\u7814\u7a76")
    (['cafe', 'strasse', '24', 'h'], ['ai', '研', '究'])
    """
    if text.isascii():
        return _ASCII.findall(text.lower())
    spelt = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return _pattern().findall(unicodedata.normalize("NFC", _DROPPED.sub("", spelt)))


def is_unspaced(word: str) -> bool:
    """Say whether a word is one character of a script that puts no blanks between words."""
    return _IS_UNSPACED.match(word) is not None


@cache
def _pattern() -> re.Pattern[str]:
    """Return what a word is: a character with its marks where there are no blanks, else letters, digits and marks."""
    points = [point for point in range(0x300, 0x1E950) if unicodedata.category(chr(point)) in ("Mn", "Mc")]
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in _runs(points))
    return re.compile(f"[{UNSPACED}][{marks}]*|(?:(?![{UNSPACED}])[^\\W_]|[{marks}])+")


def _runs(points: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for point in points:
        if runs and runs[-1][1] == point - 1:
            runs[-1] = runs[-1][0], point
        else:
            runs.append((point, point))
    return runs
