"""The rule `orphan` of `surveyor check`: what a link is, and when it is not known that there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_web import Sites, Time, crawled, moved, page
from planted_site import HOME, canonical, good
from surveyor.check.audit import AuditResult, audit
from surveyor.check.rules import selected
from surveyor.crawler.seed_pages import SeedPages
from surveyor.survey.survey import Survey

LINK = '<a href="/orphan">o</a>'


def judged(
    path: Path, home: str, others: dict[str, Any], listed: tuple[str, ...] = ("orphan",), **settings: Any
) -> AuditResult:
    """Judge a site of a home page, listed pages and further ones."""
    bodies = {"": good("", home), "orphan": good("orphan"), **others}
    answers = {
        HOME + path: page(HOME + path, extra=one) if isinstance(one, str) else one for path, one in bodies.items()
    }
    seeds: Any = SeedPages.of({HOME: 1.0} | {HOME + one: 0.0 for one in listed})
    crawled(path, seeds, Sites(Time(), answers), **{"scope": "host", **settings})
    with Survey(path) as survey:
        assert survey.pages_queued == 0
        assert sum(row["pages"] for row in survey.blocked()) == 0
        return audit(survey, selected(["orphan"]))


@pytest.mark.parametrize(
    ("home", "others", "settings"),
    [
        ("", {}, {}),
        ('<a href="/b">b</a>', {"b": good("b")}, {}),
        ("", {"orphan": good("orphan", LINK)}, {}),
        ("", {}, {"exclude": ["*/private/*"], "depth": 3}),  # which no page of the site matches
        ('<a href="/x/a.pdf">b</a><a href="https://b.example/x/b">c</a>', {}, {"exclude": ["*/x/*"]}),
        ('<a href="/docs/b">b</a>', {"docs/b": good("b")}, {"include": ["*/docs/*", "*/orphan"]}),
    ],
    ids=["no page", "another page", "itself", "no page left out", "a file and another site left out", "all included"],
)
def test_a_listed_page_without_a_link_is_an_orphan(
    home: str, others: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    found = judged(tmp_path / "a.survey", home, others, **settings)
    assert not found.skipped
    (one,) = found.findings
    assert (one.url, one.message) == (f"{HOME}orphan", "no links lead to it from the start")


@pytest.mark.parametrize(
    ("home", "others", "listed"),
    [
        ('<a rel=nofollow href="/orphan">o</a>', {}, ()),
        ('<a href="/b">b</a>', {"b": good("b", LINK, head="<meta name=robots content=nofollow>")}, ()),
        ('<a href="/b">b</a>', {"b": good("b", LINK, head=canonical(""))}, ()),
        ('<a rel=nofollow href="/b">b</a>', {"b": good("b", LINK)}, ("b",)),
        ('<a rel=nofollow href="/b">b</a>', {"b": moved(f"{HOME}b", f"{HOME}orphan")}, ("b",)),
    ],
    ids=["nofollow link", "nofollow page", "other canonical URL", "two links", "nofollow link to a redirect"],
)
def test_links_without_importance_lead_to_a_page(
    home: str, others: dict[str, Any], listed: tuple[str, ...], tmp_path: Path
) -> None:
    found = judged(tmp_path / "a.survey", home, others, ("orphan", *listed))
    assert not found.findings
    assert not found.skipped


def test_links_of_orphans_count_for_no_page(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.survey", "", {"b": good("b", LINK)}, ("orphan", "b"))
    assert [one.url for one in found.findings] == [f"{HOME}b", f"{HOME}orphan"]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"exclude": ["*/x/*"]}, "excluded by */x/*"),
        ({"include": ["*/orphan"]}, "not included"),
        ({"depth": 0}, "more than 0 links from the seeds"),
    ],
)
def test_pages_that_the_settings_leave_out_may_hold_a_link(settings: dict[str, Any], why: str, tmp_path: Path) -> None:
    found = judged(tmp_path / "a.survey", '<a href="/x/b">b</a>', {"x/b": good("b", LINK)}, **settings)
    assert not found.findings
    assert found.skipped == {"orphan": f"pages of the site out of scope: 1 ({why}), which may hold links"}


def test_a_link_beyond_the_depth_of_the_crawl_leads_to_a_page(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.survey", '<a href="/b">b</a>', {"b": good("b", LINK)}, depth=1)
    assert not found.findings
    assert not found.skipped


def test_pages_behind_nofollow_links_that_were_not_read_are_counted(tmp_path: Path) -> None:
    (one,) = judged(tmp_path / "a.survey", '<a rel=nofollow href="/b">b</a>', {"b": good("b", LINK)}).findings
    assert one.message == "no links lead to it from the start; not read: 1 that only nofollow links lead to"
