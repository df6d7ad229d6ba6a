"""Fingerprints of findings depend on the rule and its subject, not on the ranking or the order of the crawl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console import CommandResult
from fake_web import Sites, Time, crawled, page
from planted_site import HOME, good, words
from surveyor.check.audit import audit
from surveyor.check.findings import Finding
from surveyor.survey.survey import Survey

GROUPS = ("duplicate-title", "duplicate-description", "near-duplicate")
TEXT = words("common", 400)
TWINS = ("twin-a", "twin-b", "twin-c")


def site(first: str) -> dict[str, Any]:
    """Return a site whose twins share title, description and text; the home page links to `first` most."""
    order = [first, *(name for name in TWINS if name != first)]
    menu = "".join(f'<p><a href="/{name}">to {name}</a></p>' for name in order)
    more = "".join(f'<p><a href="/more-{number}">more</a></p>' for number in range(6))
    pages = {"": good("", menu + more)}
    for name in TWINS:
        html = good(name, title="One Title", text=f"{TEXT} {name}")
        pages[name] = html.replace(f"About {name}", "One description")
    for number in range(6):
        pages[f"more-{number}"] = good(f"more-{number}", f'<a href="/{first}">to {first}</a>')
    return {HOME + path: page(HOME + path, extra=html) for path, html in pages.items()}


def survey_with(path: Path, first: str) -> Path:
    crawled(path, [HOME], Sites(Time(), site(first)), scope="host")
    return path


def groups(path: Path) -> dict[str, Finding]:
    with Survey(path) as survey:
        return {one.rule: one for one in audit(survey).findings if one.rule in GROUPS}


def test_groups_keep_their_fingerprints_when_the_ranking_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [survey_with(tmp_path / f"{name}.survey", name) for name in TWINS]
    found = [groups(path) for path in paths]
    for name, own in zip(TWINS, found, strict=True):
        assert own.keys() == set(GROUPS)
        assert {one.url for one in own.values()} == {HOME + name}  # the most important page stands for its group
        assert {one.pages for one in own.values()} == {3}
    assert all(len({own[rule].fingerprint for own in found}) == 1 for rule in GROUPS)
    assert len({one.fingerprint for one in found[0].values()}) == len(GROUPS)
    old = tmp_path / "old.json"
    old.write_text(CommandResult(capsys, "check", str(paths[0]), "--json").out, "utf-8")
    new = json.loads(CommandResult(capsys, "check", str(paths[2]), "--json", "--baseline", str(old)).out)
    assert new["findings"] == []
    assert new["known"] == len(GROUPS)


def test_a_resource_of_two_kinds_is_two_faults(tmp_path: Path) -> None:
    url = "http://a.example/x"
    home = page(HOME, extra=good("", f'<img alt="" src="{url}"><script src="{url}"></script>'))
    crawled(tmp_path / "a.survey", [HOME], Sites(Time(), {HOME: home}), scope="host")
    with Survey(tmp_path / "a.survey") as survey:
        found = [one for one in audit(survey).findings if one.rule == "mixed-content"]
    assert [one.url for one in found] == [url, url]
    assert len({one.fingerprint for one in found}) == 2
