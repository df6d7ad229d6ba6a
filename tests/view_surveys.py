"""Surveys with scripted journals, for tests of their views: re-visits, redirects, gone and blocked pages."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from surveyor.config import Settings
from surveyor.crawler.start import start
from surveyor.outcome import Outcome, Visit
from surveyor.store.directory import SurveyFolder
from surveyor.web.link_context import by_page, mark

HOSTS = ("a.example", "www.a.example", "b.example", "c.co.uk", "blog.c.co.uk")
TITLES = ("", "Alpha", "alpha", "Ärger", "Beta 100 %", "<b>x</b>", "\u202etxt", "zeta\tone")
LANGUAGES = ("", "en", "de")
MARK = mark("a", "footer", "")


def url(number: int) -> str:
    """Return a URL; some differ only in case."""
    host = HOSTS[number % 5 if number % 7 else 0]
    path = ("", "x/", "x/y/", "X/y/", "deep/" * (number % 17))[number % 5]
    name = ("", f"page{number}", f"Page{number - 1}.PDF", f"i.html?q={number}")[number % 4]
    return f"https://{host}/{path}{name}" if number else "https://a.example/"


def made(path: Path, **settings: object) -> Path:
    """Create a survey with one seed and no visits."""
    chosen = {
        "contact": "me@example.org",
        "rng": 7,
        "archive": False,
        "scope": "any",
        "until": "pages=1000",
        **settings,
    }
    folder, _ = start(path, [url(0)], Settings(**chosen), {})  # type: ignore[arg-type]
    folder.close()
    return path


def grow(path: Path, rng: np.random.Generator, visits: int, *, at: float = 1.7e9) -> None:
    """Append visits of every kind to known pages, and the new URLs that they link to."""
    with SurveyFolder.open(path) as folder:
        names = dict.fromkeys(folder.journal.urls())
        outcomes: list[Outcome] = []
        new: list[str] = []
        if not names:
            names[url(0)] = None
            new.append(url(0))
        for step in range(visits):
            more = [one for one in dict.fromkeys(url(int(n)) for n in rng.integers(0, 400, 4)) if one not in names]
            names.update(dict.fromkeys(more))
            new += more
            outcomes.append(_visit(int(rng.integers(0, max(1, len(names) // 2))), len(names), rng, at + step))
        folder.commit(outcomes, new)


def _visit(page: int, known: int, rng: np.random.Generator, at: float) -> Outcome:
    kind, links = int(rng.integers(0, 12)), np.unique(rng.integers(0, known, 5)).astype(np.int32)
    links = links[links != page]
    common = {"fetched_at": at, "seconds": float(rng.integers(1, 4)) / 4, "size": int(rng.integers(0, 3)) * 1000}
    if kind == 0:
        return Visit(page, "gone", status=404, **common)  # type: ignore[arg-type]
    if kind == 1:
        return Visit(page, "blocked", reason="robots")
    if kind == 2:
        return Visit(page, "blocked", reason="HTTP 503", status=503, **common)  # type: ignore[arg-type]
    if kind == 3 and known > 3:
        return Visit(page, "redirected", target=(page + 1) % known, status=301, **common)  # type: ignore[arg-type]
    outside, links = links[:1], links[1:]
    every = np.sort(np.concatenate([outside, links]))
    return Visit(
        page,
        "fetched",
        links,
        status=200,
        out_of_scope=outside,
        title=TITLES[int(rng.integers(0, len(TITLES)))],
        language=LANGUAGES[int(rng.integers(0, 3))],
        contexts=by_page(page, every, [f"to {link}" for link in every.tolist()], [MARK] * every.size),
        **common,  # type: ignore[arg-type]
    )
