"""A small example site with every kind of outcome, crawled without sockets, for tests of surveys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_web import Sites, Time, crawled, moved, page, rules
from surveyor.fetch.http import Fetched

HOME = "https://a.example/"
LINKS = {
    "": ["library/", "news/", "old", "private/x", "gone", "https://b.example/", "paper.pdf"],
    "library/": ["", "news/", "library/deep"],
    "news/": ["", "library/"],
    "library/deep": ["library/"],
}
ROBOTS = "User-agent: other\nDisallow: /\n\nUser-agent: *\nAllow: /private/open\nDisallow: /private/  # ours\n"


def site(links: dict[str, list[str]] | None = None, extra: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the responses of the site; `links` replaces links of pages, `extra` adds HTML to them."""
    answers: dict[str, Any] = {}
    for path, goals in (LINKS | (links or {})).items():
        head = f"<title>{TITLES.get(path, path)}</title>" + (extra or {}).get(path, "")
        goals = [goal if "://" in goal else HOME + goal for goal in goals]
        answers[HOME + path] = page(HOME + path, *goals, extra=head)
    answers[HOME] = page(
        HOME, *[goal if "://" in goal else HOME + goal for goal in (LINKS | (links or {}))[""]],
        extra=f'<title>{TITLES[""]}</title><a rel=nofollow href="/login">x</a>' + (extra or {}).get("", ""),
    )  # fmt: skip
    return {**answers, HOME + "old": moved(HOME + "old", "/library/"), HOME + "gone": Fetched(HOME + "gone", 404),
            **rules(HOME.rstrip("/"), ROBOTS)}  # fmt: skip


TITLES = {"": "=HYPERLINK(1) & <b>\x01", "news/": "News"}


def survey_of(path: Path, answers: dict[str, Any] | None = None, **settings: Any) -> Path:
    """Crawl the site, completely by default; return the path of the survey."""
    given = {"backoff": 1.0, "delay": 1.0, **settings}
    crawled(path, [HOME], Sites(Time(), site() if answers is None else answers), **given)
    return path
