"""Budgets over a crash: a crawl that is killed at any commit and resumed ends as if it had never been killed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from crash_recovery import STEADY, Setting, accounts, difference, rows, sums
from surveyor.crawler import budgeting, budgets
from surveyor.crawler import session as live
from surveyor.crawler.budgets import Limits
from surveyor.store.directory import SurveyFolder
from surveyor.web.urls import domain, host
from test_crash import ALL, whole_run


def asked(path: Path) -> Counter[str]:
    """Count the pages of each domain that were asked for."""
    with SurveyFolder.open(path, write=False) as folder:
        urls = list(folder.journal.urls())
        return Counter(domain(host(urls[page])) for page in folder.journal.asked().tolist())


def limits(path: Path) -> list[Limits]:
    with SurveyFolder.open(path, write=False) as folder:
        return [budgets.limits_of(event) for event in budgets.events(folder)]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank domains soon, for a small crawl."""
    monkeypatch.setattr(budgeting, "FIRST", 12)
    monkeypatch.setattr(budgeting, "LEAST_SIZE", 30)


@pytest.mark.parametrize("budget", ["flat:2", "star:2-9@4+1,score=in", "star"])
@pytest.mark.slow
def test_killed_after_any_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str) -> None:
    monkeypatch.setattr(live, "save", lambda *_: False)
    setting = Setting(STEADY, options={"budget": budget})
    images = whole_run(setting, tmp_path, ALL)
    path = tmp_path / "a.survey"
    expected, result = rows(path), accounts(path)
    assert sums(setting.state).items() <= result.items()
    assert any(row[3] == "budget" for row in expected["visits"])
    for name, count in asked(path).items():
        assert count <= max(each.of(name) for each in limits(path))
    opened = [name for row in expected["events"] if row[3] == "budgets" for name in json.loads(row[4])["reopened"]]
    assert bool(opened) == (len(limits(path)) > 2) == budget.startswith("star")
    for number, image in enumerate(images[::3]):
        setting.go_back(image)
        setting.crawl(image.folder, ALL)
        assert difference(expected, rows(image.folder)) == ""
        assert number % 4 or accounts(image.folder) == result


@pytest.mark.parametrize("strategy", ["rankmass", "opic", "windowed", "breadth"])
@pytest.mark.slow
def test_a_checkpoint_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    monkeypatch.setattr(live, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(live, "SAVE_SHARE", 0.0)
    setting = Setting(STEADY, options={"budget": "star:2-9@4,score=in", "strategy": strategy})
    images = whole_run(setting, tmp_path, ALL, every=9)
    path = tmp_path / "a.survey"
    expected, result = rows(path), accounts(path)
    spent = setting.state.crawl.frontier.spent
    for image in images:
        setting.go_back(image)
        setting.crawl(image.folder, ALL)
        assert difference(expected, rows(image.folder)) == ""
        assert accounts(image.folder) == result
        assert sorted(setting.state.crawl.frontier.spent.values()) == sorted(spent.values())
