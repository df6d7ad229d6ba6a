"""A sampled page as topics and properties see it, and the normalised words of its text.

**Words** are case-folded (`Straße` is `strasse`) and NFKD-normalised (full width equals half width). Latin, Greek and
Cyrillic letters lose their diacritics (`café` is `cafe`, `ё` is `е`). All other characters that are neither letters nor
digits separate words. Combining marks of other scripts stay, because they are vowels there.

Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without spaces. There each character is a word, so that any
sequence of characters is found wherever it occurs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property

from surveyor.web.urls import domain, host

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_REMOVED = re.compile("[\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff]")  # diacritics, soft hyphens, zero width
_ASCII = re.compile("[a-z0-9]+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True)
class PageContent:
    """The content of a page: title, language, visible text and links."""

    title: str = ""
    language: str = ""
    text: str = ""
    links: tuple[str, ...] = ()
    is_readable: bool = True  # False if the response is missing, or is no text


@dataclass(frozen=True, eq=False)
class SampledPage:
    """A page that a walk visited; its content is loaded on first use, and is empty for a page of a graph."""

    url: str  # or name
    out_degree: int = 0  # distinct links to other pages
    load: Callable[[], PageContent] = field(default=PageContent, repr=False)

    @cached_property
    def content(self) -> PageContent:
        """The content of the page."""
        return self.load()

    @property
    def title(self) -> str:
        """The title."""
        return self.content.title

    @property
    def is_readable(self) -> bool:
        """Whether its content could be read."""
        return self.content.is_readable

    @property
    def language(self) -> str:
        """The declared language, such as `de`."""
        return self.content.language

    @property
    def text(self) -> str:
        """The visible text."""
        return self.content.text

    @property
    def links(self) -> tuple[str, ...]:
        """The URLs that it links to."""
        return self.content.links

    @property
    def host(self) -> str:
        """The host of its URL; empty for a name that is not a URL."""
        return host(self.url) if "://" in self.url else ""

    @property
    def domain(self) -> str:
        """The registrable domain of its URL; empty for a name that is not a URL."""
        return domain(self.host) if self.host else ""


def words(text: str) -> list[str]:
    """Return the normalised words of a text in order.

    >>> words("Caf\u00e9-STRA\u00dfE, 24 h"), words("AI\u7814\u7a76")
    (['cafe', 'strasse', '24', 'h'], ['ai', '研', '究'])
    """
    if text.isascii():
        return _ASCII.findall(text.lower())
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return _word_pattern().findall(unicodedata.normalize("NFC", _REMOVED.sub("", decomposed)))


def is_unspaced(word: str) -> bool:
    """Return whether a word is one character of a script that is written without spaces."""
    return _IS_UNSPACED.match(word) is not None


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of a word: an unspaced character with its marks, or letters, digits and marks."""
    points = [point for point in range(0x300, 0x1E950) if unicodedata.category(chr(point)) in ("Mn", "Mc")]
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in _ranges(points))
    return re.compile(f"[{UNSPACED}][{marks}]*|(?:(?![{UNSPACED}])[^\\W_]|[{marks}])+")


def _ranges(points: list[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for point in points:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1] = ranges[-1][0], point
        else:
            ranges.append((point, point))
    return ranges
