r"""What a robots.txt permits, and how fast: text in, verdicts out (RFC 9309).

The rules are parsed by Protego: groups for our product token or else for `*`, the longest match, `*` and `$`.
What the RFC says about answers other than a text is here: no such file (4xx) permits everything, a server that
fails or cannot be reached (5xx, 429, no answer) permits nothing. `/robots.txt` itself is always permitted.

    >>> rules = Robots.from_text(b"User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n")
    >>> rules.permits("https://example.org/private/a"), rules.permits("https://example.org/a"), rules.crawl_delay
    (False, True, 2.0)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

TOKEN = "surveyor"  # noqa: S105  # our product token
LARGEST = 500 * 1024  # bytes that are read of a robots.txt: what the RFC asks for at least

Standing = Literal["rules", "absent", "unreachable"]


@dataclass(frozen=True)
class Robots:
    """The rules of one origin (scheme, host and port)."""

    standing: Standing
    text: str = ""
    token: str = field(default=TOKEN, kw_only=True)

    @classmethod
    def from_text(cls, body: bytes, *, token: str = TOKEN) -> Robots:
        """Take the rules of a file; what is beyond the size limit does not count, the last line then neither."""
        cut = body[:LARGEST]
        if len(body) > LARGEST:
            cut = cut[: cut.rfind(b"\n") + 1]
        return cls("rules", cut.decode("utf-8", "replace").lstrip("\ufeff"), token=token)

    @classmethod
    def from_answer(cls, status: int | None, body: bytes, *, token: str = TOKEN) -> Robots:
        """Take what a server answered when asked for the file, after redirects; None is no answer."""
        if status is not None and 200 <= status < 300:
            return cls.from_text(body, token=token)
        if status is not None and 300 <= status < 500 and status != 429:
            return cls("absent", token=token)
        return cls("unreachable", token=token)

    def permits(self, url: str) -> bool:
        """Say whether a URL of this origin may be read."""
        if self.standing == "absent" or urlsplit(url).path == "/robots.txt":
            return True
        return self.standing == "rules" and bool(self._parsed.can_fetch(url, self.token))

    @property
    def crawl_delay(self) -> float | None:
        """Seconds between two requests that the file asks for."""
        delay = self._parsed.crawl_delay(self.token) if self.standing == "rules" else None
        return None if delay is None or not delay >= 0 else float(delay)

    @property
    def sitemaps(self) -> list[str]:
        """Sitemaps that the file names."""
        return list(self._parsed.sitemaps) if self.standing == "rules" else []

    def why(self, url: str) -> str:
        """Say in words why a URL may not be read; empty if it may."""
        if self.permits(url):
            return ""
        if self.standing == "unreachable":
            return "robots.txt could not be read, so nothing may be"
        return "robots.txt disallows it"

    @cached_property
    def _parsed(self) -> Any:
        from protego import Protego

        return Protego.parse(self.text)
