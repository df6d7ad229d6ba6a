"""What an embedded web is made of: its size, how much of it misbehaves, and how badly.

Shares are between 0 and 1. A share above 0 means at least one of the hosts or pages that qualify, chosen by the seed;
whether links lead there is another matter. (Hosts of seeds are spared, so a web of one host has no special hosts.)
0 switches a feature off; `WebSettings.plain()` has none.

    >>> WebSettings.plain(calendar=0.01).calendar, WebSettings.plain().moved
    (0.01, 0.0)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from surveyor.errors import UsageError
from surveyor.graph.synthetic.shapes import WebShape

LIMITS = frozenset({"rng", "port", "seeds", "web", "slow_seconds", "pace", "crawl_delay", "huge_bytes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Which web to make up, and which features it has."""

    web: str | WebShape = "small"  # the pages and links of a synthetic web
    rng: int = 7
    port: int = 0  # to listen on; 0 takes any that is free
    seeds: int = 3  # home pages with the most links to them, from which a crawl would start

    # Shares of links
    nofollow: float = 0.5  # of links of and to farms and exchanges, those that say rel=nofollow

    # Shares of pages
    based: float = 0.1  # that resolve their links against a <base>
    canonical: float = 0.3  # that name themselves as canonical
    forged: float = 0.005  # that name a page of another domain as canonical, which nobody should believe
    printed: float = 0.03  # with a print version, whose canonical is the page
    moved: float = 0.05  # with an old address that redirects here, in up to three steps, some over other hosts
    dying: float = 0.01  # that answer once and are gone from then on
    returning: float = 0.3  # of the pages that are gone: those that are back when asked a second time
    documents: float = 0.01  # that link to a PDF that says it is HTML, and to a PNG with an .html name
    huge: float = 0.001  # that link to a page longer than anyone should read
    garbled: float = 0.03  # whose bytes do not fit their encoding
    changing: float = 0.1  # that have another link in each version of the web
    calendar: float = 0.005  # that link to a calendar without end
    nowhere: float = 0.002  # that link to a host without address

    # Shares of hosts
    loops: float = 0.02  # with addresses that redirect in a circle
    soft: float = 0.02  # that answer 200 to any address they do not know
    sessions: float = 0.005  # that add ?sid=… to their own links
    slow: float = 0.02  # that take `slow_seconds` for each answer
    flaky: float = 0.02  # where a third of the pages answers 500 or 503 when first asked
    down: float = 0.01  # that answer 500 or 503, always
    reset: float = 0.01  # that drop the connection
    strict: float = 0.01  # that answer 429 to whoever asks more than once per `pace`
    gzip: float = 0.5  # that compress, if the client can
    robots_rules: float = 0.1  # with folders that robots.txt forbids
    robots_agents: float = 0.02  # with other rules for other agents
    robots_delay: float = 0.02  # that ask for `crawl_delay`
    robots_error: float = 0.01  # whose robots.txt answers 503: nothing may be read
    robots_moved: float = 0.02  # whose robots.txt redirects to another host
    robots_missing: float = 0.5  # of the others: those without one

    slow_seconds: float = 0.2
    pace: float = 0.5  # seconds
    crawl_delay: float = 0.5  # seconds
    huge_bytes: int = 3_000_000  # of text between the first and the last links of a huge page

    def __post_init__(self) -> None:
        for name in SHARES:
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise UsageError(f"{name} is {share:g}", hint="give a share between 0 and 1")

    @classmethod
    def plain(cls, **changes: Any) -> WebSettings:
        """Return settings of a web that behaves, but for these changes."""
        return cls(**{**dict.fromkeys(SHARES, 0.0), **changes})


SHARES = tuple(field.name for field in fields(WebSettings) if field.name not in LIMITS)
