"""The main text of a page, and a hash of it that changes when the content does, not when boilerplate does.

Navigation, side bars, advertisements and footers are left out by Resiliparse (extra `text`). It was chosen by
measurement ([When to revisit a page](../explanation/revisits.md)). Without it, and where it finds no main text, the
text is all visible text. Timestamps (a date with a time of day, a time with seconds) and white space do not count.

    >>> without_timestamps("Generated 2026-11-18 20:13:05, 3 items"), without_timestamps("Opens at 20:13")
    ('Generated , 3 items', 'Opens at 20:13')

**Hash.** 16 bytes: two that identify the method (library, its version, and the version of this module), fourteen of
the text. Hashes of two methods are not comparable; see `outcome.has_changed`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

from surveyor.outcome import TEXT_METHOD as METHOD
from surveyor.web.html import read_page
from surveyor.web.markup import decode, tame

SIZE = 16  # bytes of a hash
REVISION = 1  # of this module; increase it when the text changes
MOST_TEXT = 1_000_000  # characters

_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d"
_SECONDS = r":[0-5]\d(?:[.,]\d{1,9})?"
_ZONE = r"(?:\s?(?:[ap]\.?m\b\.?|Z\b|(?:GMT|UTC|CES?T|MES?Z|[ECMP][SD]T)\b|[+-]\d\d:?\d\d\b))*"
_MONTH = r"[^\W\d_]{3,10}\.?"
_DAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s)?"
_DATE = (
    rf"{_DAY}(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}"  # 2026-11-18
    r"|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"  # 18.11.2026
    rf"|\d{{1,2}}\.?\s{_MONTH},?\s\d{{4}}"  # 18 Nov 2026
    rf"|{_MONTH}\s\d{{1,2}},?\s\d{{4}})"  # November 18, 2026
)
_TIMESTAMP = re.compile(
    rf"\b{_DATE}(?:T|,?\s(?:[-|]\s)?(?:at\s|um\s|à\s)?){_CLOCK}(?:{_SECONDS})?{_ZONE}"
    rf"|\b{_CLOCK}{_SECONDS}{_ZONE}"
    rf"|\b{_DAY}{_MONTH}\s\d{{1,2}}\s{_CLOCK}{_SECONDS}\s\d{{4}}",
    re.IGNORECASE,
)


def without_timestamps(text: str) -> str:
    """Remove timestamps; dates without a time and times without seconds may be content."""
    return _TIMESTAMP.sub("", text)


def main_text(body: bytes, url: str, headers: Mapping[str, str]) -> str:
    """Return the main text of a response; plain text as it is, all visible text where there is no main text."""
    content_type = headers.get("content-type", "").lower()
    kind = content_type.partition(";")[0].strip()
    extract = _extractor()
    if extract is not None and (not kind or "html" in kind or "xml" in kind):
        pieces = tame(decode(body, content_type).text)[0]
        text = " ".join(" ".join(map(extract, pieces))[:MOST_TEXT].split())
        if text:
            return text
    return read_page(body, url, headers=headers).text


def text_hash(body: bytes, url: str, headers: Mapping[str, str]) -> bytes:
    """Return the hash of the main text of a response; empty if it has no text."""
    text = " ".join(without_timestamps(main_text(body, url, headers)).split())
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=SIZE - METHOD).digest()
    return _method() + digest if text else b""


@cache
def _extractor() -> Callable[[str], str] | None:
    try:
        extract: Any = importlib.import_module("resiliparse.extract.html2text").extract_plain_text
    except ImportError:
        return None
    options = dict.fromkeys(("preserve_formatting", "list_bullets", "alt_texts", "comments", "post_meta"), False)
    return partial(extract, main_content=True, **options)


@cache
def _method() -> bytes:
    """Return the identity of the method: a change of the library must not count as a change of every page."""
    library = f"resiliparse {version('resiliparse')}" if _extractor() else "visible"
    return blake2b(f"{library} {REVISION}".encode(), digest_size=METHOD).digest()
