"""What changed between two surveys: only what is certain is called so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import surveyor as sv
from console import CommandResult
from example_site import HOME, LINKS, site, survey_of
from fake_web import moved, page
from surveyor.fetch.http import Fetched
from surveyor.survey.diff import Difference

WITHOUT_NEWS = {path: [goal for goal in goals if goal != "news/"] for path, goals in LINKS.items()}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey_of(tmp_path_factory.mktemp("compared") / "old.survey", harmless(site()))


def harmless(answers: dict[str, Any]) -> dict[str, Any]:
    """Let everything be read, so that nothing stays uncaptured."""
    answers[f"{HOME}robots.txt"] = Fetched(f"{HOME}robots.txt", 404)
    answers[f"{HOME}private/x"] = answers[f"{HOME}library/deep"]
    return answers


def found(old: Path, new: Path) -> Difference:
    with sv.open(old) as before, sv.open(new) as after:
        return before.diff(after)


def urls(difference: Difference, kind: str) -> list[str]:
    return [change.url.removeprefix(HOME) for change in difference.changes[kind]]


def test_nothing_changed(old: Path, tmp_path: Path) -> None:
    difference = found(old, survey_of(tmp_path / "new.survey", harmless(site())))
    assert not any(difference.changes.values())
    assert (difference.overlap, difference.kendall, difference.l1, difference.differing) == (1, 1, 0, {})
    assert repr(difference).startswith("Difference(none; margin ")


def test_changes_are_reported(old: Path, tmp_path: Path) -> None:
    links = WITHOUT_NEWS | {"": [*WITHOUT_NEWS[""], "fresh"], "fresh": ["library/"]}
    answers = harmless(site(links, {"library/": "<p>more</p>"}))
    answers[f"{HOME}library/deep"] = Fetched(f"{HOME}library/deep", 410)
    difference = found(old, survey_of(tmp_path / "new.survey", answers))
    assert urls(difference, "new") == ["fresh"]
    assert urls(difference, "unlinked") == ["news/"]
    assert urls(difference, "gone") == ["library/deep"]
    assert set(urls(difference, "changed")) == {"", "library/"}
    assert "library/" in urls(difference, "risen") + urls(difference, "fallen")
    for kind in ("risen", "fallen"):
        for change in difference.changes[kind]:
            assert change.old_share is not None
            assert change.new_share is not None
            assert abs(change.new_share - change.old_share) > difference.margin
            assert (change.new_share > change.old_share) == (kind == "risen")


def test_what_is_not_captured_is_no_change(old: Path, tmp_path: Path) -> None:
    links = LINKS | {"": [*LINKS[""], "fresh"], "fresh": []}
    part = survey_of(tmp_path / "part.survey", harmless(site(links)), until="pages=2", concurrency=1)
    difference = found(old, part)
    with sv.open(part) as opened:
        coverage = opened.coverage
    assert difference.margin >= coverage.waiting + coverage.blocked + coverage.moving
    assert not difference.changes["risen"]
    assert not difference.changes["fallen"]
    assert difference.changes["perhaps fallen"] or difference.changes["perhaps risen"]
    assert not difference.changes["unlinked"]
    back = found(
        part, survey_of(tmp_path / "whole.survey", harmless(site(links | {"news/": ["hidden"], "hidden": []})))
    )
    assert urls(back, "first seen") == ["hidden"]  # it may have been there
    assert not back.changes["new"]


@pytest.mark.slow
def test_a_web_that_stays_as_it_is_has_no_changes(tmp_path: Path) -> None:
    """However little of it either survey has read."""
    links = {"": ["library/", "news/"], "news/": ["a", "b", ""], "a": ["b"], "b": ["a", "library/"], "library/": []}
    parts = [
        survey_of(tmp_path / f"{pages}.survey", harmless(site(links)), until=f"pages={pages}", concurrency=1)
        for pages in (1, 2, 3, 5, 100)
    ]
    for one in parts:
        for other in parts:
            difference = found(one, other)
            certain = ("new", "gone", "redirected", "blocked", "unlinked", "risen", "fallen", "changed")
            assert not any(difference.changes[kind] for kind in certain)


def test_a_page_behind_one_that_is_blocked_may_have_been_there(tmp_path: Path) -> None:
    before = survey_of(tmp_path / "old.survey")  # robots.txt forbids a page of it
    after = survey_of(tmp_path / "new.survey", site(LINKS | {"news/": ["hidden"], "hidden": []}))
    assert urls(found(before, after), "first seen") == ["hidden"]
    assert urls(found(after, before), "not seen") == ["hidden"]


def test_redirected_and_blocked(old: Path, tmp_path: Path) -> None:
    answers = harmless(site()) | {f"{HOME}news/": Fetched(f"{HOME}news/", 403)}
    answers[f"{HOME}library/deep"] = Fetched(f"{HOME}library/deep", 301, target=f"{HOME}library/")
    difference = found(old, survey_of(tmp_path / "new.survey", answers))
    assert urls(difference, "blocked") == ["news/"]
    assert "library/deep" in urls(difference, "redirected")


def test_links_broken_and_repaired_titles_and_canonicals(tmp_path: Path) -> None:
    def surveyed(name: str, links: list[str], title: str, goal: str, gone: str) -> Path:
        answers = harmless(site(LINKS | {"": [*links, "alias"]}, {"news/": f"<!-- {name} -->"}))
        answers[f"{HOME}news/"] = page(f"{HOME}news/", "/", extra=f"<title>{title}</title>")
        answers[f"{HOME}alias"] = moved(f"{HOME}alias", goal)
        answers |= {f"{HOME}{lost}": Fetched(f"{HOME}{lost}", 404) for lost in gone.split()}
        return survey_of(tmp_path / f"{name}.survey", answers)

    before = surveyed("a", ["library/", "news/", "lost", "fixed"], "Old", "/library/", "lost fixed")
    after = surveyed("b", ["library/", "news/", "typo", "fixed"], "New", "/news/", "typo")
    difference = found(before, after)
    assert urls(difference, "broken link") == ["typo"]
    assert urls(difference, "retitled") == ["news/"]
    assert urls(difference, "other canonical") == ["alias"]
    assert "lost" in urls(difference, "repaired link")  # no page links to it any more
    same = found(before, before)
    assert not any(same.changes.values())


def test_moves_within_the_error_are_one_line(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = survey_of(tmp_path / "part.survey", harmless(site()), until="pages=2", concurrency=1)
    moves = [change for kind in ("perhaps risen", "perhaps fallen") for change in found(old, part).changes[kind]]
    done = CommandResult(capsys, "diff", str(old), str(part))
    assert f"{len(moves)} moves within the error bound are not listed (--csv lists them)\n" in done.out
    assert len(moves) > 1
    listed = CommandResult(capsys, "diff", str(old), str(part), "--csv").out
    assert listed.count("perhaps ") == len(moves)


def test_other_terms_are_said_first(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = survey_of(tmp_path / "new.survey", harmless(site()), damping=0.5, exclude=["*/news/*"])
    done = CommandResult(capsys, "diff", str(old), str(new))
    assert done.code == 0
    first = done.err.splitlines()
    assert "different exclude: none before, */news/* now" in first[0]
    assert "different damping: 0.85 before, 0.5 now" in first[1]
    assert "measure different things" in first[2]
    assert "do not count as risen or fallen" in done.out
    assert found(old, new).differing["damping"] == (0.85, 0.5)


def test_command(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = survey_of(tmp_path / "new.survey", harmless(site(WITHOUT_NEWS)))
    done = CommandResult(capsys, "diff", str(old), str(new), "-n", "1")
    assert "1 unlinked" in done.out
    assert re.search(rf"unlinked +{HOME}news/", done.out)
    assert "surveyor explain" in done.err
    result = CommandResult(capsys, "diff", str(old), str(new), "-n", "1", "--json").json()
    assert result["counts"]["unlinked"] == 1
    assert result["new_coverage"]["at_least"] > 0.9
    assert all(len(changes) <= 1 for changes in result["changes"].values())
    lines = CommandResult(capsys, "diff", str(old), str(new), "--csv").out.splitlines()
    assert lines[0] == "kind,old_share,new_share,old_position,new_position,url"
    assert len(lines) == 1 + sum(result["counts"].values())
    same = CommandResult(capsys, "diff", str(old), str(old))
    assert "No page differs." in same.out
    assert CommandResult(capsys, "diff", str(old), "nowhere.survey").code == 4
