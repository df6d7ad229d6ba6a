"""Caching headers of HTTP (RFC 9110, RFC 9111): until when a page is declared fresh, and which validators are usable.

>>> expiry({"cache-control": "public, max-age=60", "age": "10"}, 1_000.0)
1050.0
>>> http_date("Thu, 01 Jan 1970 00:00:10 GMT")
10.0
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LATEST = 253_402_300_799.0  # seconds since 1970 of the end of the year 9999
MOST_CHARACTERS = 4_000  # of a header
_DIRECTIVE = re.compile(r"""([\w-]{1,40})\s*(?:=\s*(?:"([^"]*)"|([^\s,;"]*)))?""")


def expiry(headers: Mapping[str, str], at: float) -> float:
    """Return the time until which a response received at a time is declared fresh; 0 if it is not.

    Header names are in lower case; repeated headers are joined by newlines. Seconds since 1970.
    """
    control = _directives(headers.get("cache-control", ""))
    if "no-store" in control or "no-cache" in control:
        return 0.0
    if "max-age" in control:
        lifetime = _seconds(control["max-age"])
    elif expires := headers.get("expires", ""):
        until = http_date(expires)
        sent = http_date(headers.get("date", ""))
        lifetime = 0.0 if until is None else until - (at if sent is None else sent)
    else:
        return 0.0
    left = lifetime - _seconds(headers.get("age", ""))
    return min(at + left, LATEST) if left > 0 else 0.0


def usable_validators(etag: str, last_modified: str, at: float) -> tuple[str | None, str | None]:
    """Return the ETag and the date to send with the next request, for a response received at a time.

    A date counts if it is valid and at least a second before the response. A later one is wrong, or the page may have
    changed in the same second: a server that compares dates would answer "not modified" to every request.
    """
    modified = http_date(last_modified)
    return etag or None, last_modified if modified is not None and modified <= at - 1 else None


def http_date(text: str) -> float | None:
    """Return an HTTP date as seconds since 1970, None if it is not one or not between 1970 and 9999."""
    try:
        time = parsedate_to_datetime(text[:100].strip()).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return time if 0 <= time <= LATEST else None


def _directives(text: str) -> dict[str, str]:
    """Return the directives of a Cache-Control header; the first value of a repeated one counts."""
    found: dict[str, str] = {}
    for match in _DIRECTIVE.finditer(text[:MOST_CHARACTERS].lower()):
        found.setdefault(match[1], match[2] or match[3] or "")
    return found


def _seconds(text: str) -> float:
    """Return a number of seconds; 0 if it is invalid. Twelve digits are more than the year 9999."""
    text = text.strip()
    return float(text[:12]) if text.isascii() and text.isdigit() else 0.0
