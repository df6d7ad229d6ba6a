"""Crawl status of one URL and its reason: read, waiting, blocked, gone, moved, out of scope or unknown."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.errors import UsageError
from surveyor.survey.tables import LIVES
from surveyor.web.robots import Robots
from surveyor.web.urls import normalise, origin

if TYPE_CHECKING:
    from surveyor.crawler.replay import Derived
    from surveyor.outcome import Event
    from surveyor.store.journal import Journal
    from surveyor.survey.tables import Tables

NEAREST = 3  # similar URLs listed
CANDIDATES = 200  # URLs compared with difflib


@dataclass(frozen=True, slots=True)
class Fate:
    """Status of one URL; `kind` is read, waiting, blocked, gone, moved, out of scope or unknown."""

    url: str
    kind: str
    reason: str = ""  # why it was not read
    rule: str = ""  # the matching line of robots.txt, if any
    target: str = ""  # where it redirects to, or its canonical URL
    status: int = 0
    fetched_at: float = 0.0  # Unix time of the last request
    title: str = ""
    mass: float = 0.0  # importance waiting on it, if it was not read
    queue: int = 0  # its position in the queue
    queued: int = 0  # number of queued pages
    tries: int = 0  # failed requests
    trouble: str = ""  # why the last one failed
    nearest: tuple[str, ...] = ()  # similar known URLs, if it is unknown

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def find(tables: Tables, text: str) -> str:
    """Resolve text to a URL: a URL with or without its scheme, or the path of exactly one known page."""
    urls = tables.urls
    if text.startswith("/") and not text.startswith("//"):
        return _by_path(tables, text)
    given = [text] if "://" in text else [f"https://{text}", f"http://{text}"]
    spelt = [url for one in given if (url := normalise(one)) is not None]
    if not spelt:
        raise UsageError(f"{text!r} is not the URL of a page", hint="write it as https://example.org/, or as /path")
    return next((url for url in spelt if urls.find(url) is not None), spelt[0])


def _by_path(tables: Tables, text: str) -> str:
    """Return the only known URL with this path; pages out of scope or moved count only if there is no other."""
    every = tables.urls.added(0)
    wanted = (normalise(f"http://a.example{text}") or f"http://a.example{text}").removeprefix("http://a.example")
    pages = [page for page, url in enumerate(every) if url.endswith(wanted) and _path(url) == wanted]
    pages = [page for page in pages if LIVES[tables.lives[page]] not in ("out of scope", "moved")] or pages
    if len(pages) == 1:
        return every[pages[0]]
    if pages:
        some = ", ".join(every[page] for page in pages[:NEAREST])
        raise UsageError(f"{text} is the path of {len(pages)} pages", hint=f"name one: {some}")
    near = difflib.get_close_matches(wanted, {_path(url) for url in every}, NEAREST)
    raise UsageError(f"no page has the path {text}", hint=f"near: {', '.join(near)}" if near else "name a whole URL")


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def fate(journal: Journal, state: Derived, tables: Tables, url: str) -> Fate:
    """Return the status of a URL."""
    page = state.urls.find(url)
    if page is None:
        return Fate(url, "unknown", tables.out_of_scope(url) or "", nearest=tuple(_nearest(state, url)))
    kind, visit = LIVES[tables.lives[page]], journal.last_visit(page)
    fields: dict[str, Any] = {}
    if visit is not None:
        fields = {"reason": visit.reason, "status": visit.status, "fetched_at": visit.fetched_at, "title": visit.title}
    if kind in ("waiting", "blocked"):
        fields["mass"] = max(0.0, float(state.crawl.ledger.residual[page]))
    if kind == "waiting":
        fields |= _waiting(journal, state, page) | {"reason": ""}
    elif kind == "blocked" and fields.get("reason", "").startswith("robots"):
        fields["rule"] = _rule(journal, url)
    elif kind == "moved":
        fields["target"] = state.urls[int(state.urls.canonical(np.array([page], np.int32))[0])]
    elif kind == "out of scope":
        fields["reason"] = tables.why_outside(url)
    return Fate(url, kind, **fields)


def _rule(journal: Journal, url: str) -> str:
    """Return the line of robots.txt that matches a page."""
    kept = journal.robots(origin(url))
    rule = None if kept is None else Robots.from_answer(kept.status or None, kept.body).rule_for(url)
    return "" if rule is None else f"line {rule.line}, {rule}"


def _waiting(journal: Journal, state: Derived, page: int) -> dict[str, Any]:
    """Return the position of a page in the queue, and its number of tries."""
    standing = state.crawl.frontier.standing()
    own = standing.priorities[standing.pages == page]
    last: Event | None = None
    for event in journal.events():
        if event.kind == "retry" and event.detail.get("page") == page:
            last = event
    tried = {} if last is None else {"tries": int(last.detail["tries"]), "trouble": str(last.detail.get("why", ""))}
    place = int(np.count_nonzero(standing.priorities > own[0])) + 1 if own.size else 0
    return {"queue": place, "queued": int(standing.pages.size), **tried}


def _nearest(state: Derived, url: str) -> list[str]:
    """Return the most similar known URLs, among those with the longest common prefix."""
    bare = url.partition("://")[2].rstrip("/").removeprefix("www.")

    def alike(known: str) -> tuple[int, int]:
        other = known.partition("://")[2].rstrip("/").removeprefix("www.")
        same = next(
            (at for at, (a, b) in enumerate(zip(bare, other, strict=False)) if a != b), min(len(bare), len(other))
        )
        return -same, abs(len(other) - len(bare))

    some = sorted(state.urls.added(0), key=alike)[:CANDIDATES]
    by_letters = difflib.SequenceMatcher(b=url, autojunk=False)

    def unlike(known: str) -> float:
        by_letters.set_seq1(known)
        return -by_letters.ratio()

    return sorted(some, key=unlike)[:NEAREST]
