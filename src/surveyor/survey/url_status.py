"""Status of one URL in a survey and its reason: fetched, queued, blocked, gone, redirected, out of scope or unknown."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.errors import UsageError
from surveyor.survey.tables import STATUSES
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
class UrlStatus:
    """Status of one URL; `kind` is fetched, queued, blocked, gone, redirected, out of scope or unknown."""

    url: str
    kind: str
    reason: str = ""  # why it was not fetched
    rule: str = ""  # the matching line of robots.txt, if any
    target: str = ""  # where it redirects to, or its canonical URL
    status: int = 0  # HTTP status of the last response
    fetched_at: float = 0.0  # Unix time of the last request
    title: str = ""
    mass: float = 0.0  # importance waiting on it, if it was not fetched
    queue_position: int = 0  # 1 = next; 0 = not in the queue
    queue_length: int = 0
    failures: int = 0  # failed requests
    last_error: str = ""  # why the last request failed
    nearest: tuple[str, ...] = ()  # similar known URLs, if it is unknown

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def resolve(tables: Tables, text: str) -> str:
    """Resolve text to a URL: a URL with or without its scheme, or the path of exactly one known page."""
    if text.startswith("/") and not text.startswith("//"):
        return _by_path(tables, text)
    candidates = [text] if "://" in text else [f"https://{text}", f"http://{text}"]
    urls = [url for candidate in candidates if (url := normalise(candidate)) is not None]
    if not urls:
        raise UsageError(f"PAGE must be a URL or a path, got {text!r}", hint="example: https://example.org/ or /path")
    return next((url for url in urls if tables.urls.find(url) is not None), urls[0])


def _by_path(tables: Tables, text: str) -> str:
    """Return the only known URL with this path; out-of-scope and redirected pages count only if there is no other."""
    known = tables.urls.added(0)
    path = (normalise(f"http://a.example{text}") or f"http://a.example{text}").removeprefix("http://a.example")
    pages = [page for page, url in enumerate(known) if url.endswith(path) and _path(url) == path]
    pages = [page for page in pages if STATUSES[tables.statuses[page]] not in ("out of scope", "redirected")] or pages
    if len(pages) == 1:
        return known[pages[0]]
    if pages:
        some = ", ".join(known[page] for page in pages[:NEAREST])
        raise UsageError(f"{len(pages)} known pages have the path {text}", hint=f"pass one of the URLs {some}")
    near = difflib.get_close_matches(path, {_path(url) for url in known}, NEAREST)
    hint = f"similar paths: {', '.join(near)}" if near else "pass a full URL"
    raise UsageError(f"no known page has the path {text}", hint=hint)


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def status_of(journal: Journal, state: Derived, tables: Tables, url: str) -> UrlStatus:
    """Return the status of a normalised URL."""
    page = state.urls.find(url)
    if page is None:
        return UrlStatus(url, "unknown", tables.out_of_scope(url) or "", nearest=tuple(_nearest(state, url)))
    kind, visit = STATUSES[tables.statuses[page]], journal.last_visit(page)
    fields: dict[str, Any] = {}
    if visit is not None:
        fields = {"reason": visit.reason, "status": visit.status, "fetched_at": visit.fetched_at, "title": visit.title}
    if kind in ("queued", "blocked"):
        fields["mass"] = max(0.0, float(state.crawl.ledger.residual[page]))
    if kind == "queued":
        fields |= _queued(journal, state, page) | {"reason": ""}
    elif kind == "blocked" and fields.get("reason", "").startswith("robots"):
        fields["rule"] = _rule(journal, url)
    elif kind == "redirected":
        fields["target"] = state.urls[int(state.urls.canonical(np.array([page], np.int32))[0])]
    elif kind == "out of scope":
        fields["reason"] = tables.scope_reason(url)
    return UrlStatus(url, kind, **fields)


def _rule(journal: Journal, url: str) -> str:
    """Return the line of robots.txt that matches a page."""
    file = journal.robots(origin(url))
    rule = None if file is None else Robots.from_answer(file.status or None, file.body).rule_for(url)
    return "" if rule is None else f"line {rule.line}, {rule}"


def _queued(journal: Journal, state: Derived, page: int) -> dict[str, Any]:
    """Return the position of a page in the queue, and its failed requests."""
    queue = state.crawl.frontier.queued()
    own = queue.priorities[queue.pages == page]
    last: Event | None = None
    for event in journal.events():
        if event.kind == "retry" and event.detail.get("page") == page:
            last = event
    failed = {}
    if last is not None:
        failed = {"failures": int(last.detail["tries"]), "last_error": str(last.detail.get("why", ""))}
    position = int(np.count_nonzero(queue.priorities > own[0])) + 1 if own.size else 0
    return {"queue_position": position, "queue_length": int(queue.pages.size), **failed}


def _nearest(state: Derived, url: str) -> list[str]:
    """Return the most similar known URLs, among those with the longest common prefix."""
    bare = url.partition("://")[2].rstrip("/").removeprefix("www.")

    def prefix_distance(known: str) -> tuple[int, int]:
        other = known.partition("://")[2].rstrip("/").removeprefix("www.")
        pairs = enumerate(zip(bare, other, strict=False))
        common = next((at for at, (a, b) in pairs if a != b), min(len(bare), len(other)))
        return -common, abs(len(other) - len(bare))

    candidates = sorted(state.urls.added(0), key=prefix_distance)[:CANDIDATES]
    matcher = difflib.SequenceMatcher(b=url, autojunk=False)

    def dissimilarity(known: str) -> float:
        matcher.set_seq1(known)
        return -matcher.ratio()

    return sorted(candidates, key=dissimilarity)[:NEAREST]
