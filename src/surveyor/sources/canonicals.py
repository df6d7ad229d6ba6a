"""Whether the canonical page that a page names exists: one that is gone must not remove the page that names it.

A page that names another one as canonical stands for it from then on, and that cannot be undone. So the canonical page
is asked for first, when its host may be asked, and the answer for the page that names it is held meanwhile. A page is
gone only if that is answered twice. What failed in a way that may pass, what robots.txt disallows, and what lies at an
origin whose robots.txt could not be read at once, is taken to exist.

A canonical page that was fetched this way is not asked for again when its own turn comes soon.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from surveyor.sources.answers import Answer, judge
from surveyor.sources.http import Fetched

KNOWN = 10_000  # canonical pages that are remembered, before all are forgotten
KEPT, KEPT_BYTES = 64, 1_000_000  # answers that are kept for the turn of their page, and the largest of them
ASKED = 2  # times, before a page is gone


@dataclass(slots=True)
class Check:
    """A canonical page that is to be asked for, and the answers that are held until then."""

    url: str
    host: int
    held: list[Answer] = field(default_factory=list)
    asked: int = 0


class Canonicals:
    """Which canonical pages are gone, and which are to be asked for."""

    def __init__(self) -> None:
        self.waiting: dict[str, Check] = {}
        self.fetched: dict[str, Fetched] = {}  # by URL, for their own turn
        self.requests = 0  # that end as no visit, since somebody set it to 0
        self._asking: dict[str, Check] = {}
        self._gone: dict[str, bool] = {}

    def known(self, url: str) -> bool | None:
        """Return whether a canonical page is gone; None if it was not asked for yet."""
        return self._gone.get(url)

    def hold(self, url: str, host: int, answer: Answer) -> None:
        """Hold an answer until the canonical page that it names was asked for."""
        check = self._asking.get(url) or self.waiting.setdefault(url, Check(url, host))
        check.held.append(answer)

    def begin(self, check: Check) -> None:
        """Note that a canonical page is being asked for."""
        self._asking[check.url] = self.waiting.pop(check.url)

    def release(self, check: Check) -> list[Answer]:
        """Give up asking for a canonical page; return the answers to hold no longer."""
        return self.waiting.pop(check.url).held

    def answered(self, check: Check, found: Fetched, *, requests: int | None = None) -> list[Answer]:
        """Take in what came of it, in so many requests that are no visit; return the answers to hold no longer."""
        verdict = judge(found)
        check.asked += 1
        del self._asking[check.url]
        is_page = verdict.kind in ("read", "moved") and len(found.raw) <= KEPT_BYTES
        if requests is None and is_page and len(self.fetched) < KEPT:
            self.fetched[check.url] = found
        else:
            self.requests += found.requests if requests is None else requests
        if verdict.kind == "gone" and check.asked < ASKED:
            self.waiting[check.url] = check
            return []
        if len(self._gone) >= KNOWN:
            self._gone.clear()
        gone = self._gone[check.url] = verdict.kind == "gone" or (verdict.kind == "blocked" and not verdict.again)
        return [replace(answer, canonical_is_gone=gone) for answer in check.held]
