"""Cash in a survey from elsewhere: no value is used that a crawl cannot have written."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from crash_recovery import STEADY, Setting
from surveyor.crawler.graphless import opic_of, restore
from surveyor.errors import SurveyError
from surveyor.store.database import connect
from surveyor.store.directory import SurveyFolder

CHANGES = {  # name -> statement, part of the error
    "infinite cash": ("UPDATE cash SET cash = 9e999 WHERE page = 0", "cash that is not a finite amount"),
    "missing cash": ("UPDATE cash SET cash = NULL WHERE page = 0", "invalid cash"),
    "cash as text": ("UPDATE cash SET cash = 'much' WHERE page = 0", "invalid cash"),
    "more cash": ("UPDATE cash SET cash = cash + 0.01 WHERE page = 1", "in total, not 1"),
    "negative cash": ("UPDATE cash SET cash = -0.5 WHERE page = 1", "cash below 0"),
    "negative weight": ("UPDATE cash SET weight = -1 WHERE page = 0", "negative weight"),
    "more weight": ("UPDATE cash SET weight = weight + 1 WHERE page = 0", "weights of its pages sum to"),
    "infinite history": ("UPDATE cash SET history = -9e999 WHERE page = 0", "history that is not a finite amount"),
    "unknown page": ("UPDATE cash SET page = 100000 WHERE page = 3", "no URL"),
    "negative page": ("UPDATE cash SET page = -5 WHERE page = 3", "page of -5"),
    "more rows": (
        "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n LIMIT 9999) "
        "INSERT INTO cash(page) SELECT i FROM n",
        "pages have URLs",
    ),
    "no such status": ("UPDATE cash SET status = 9 WHERE page = 0", "no status"),
    "large status": ("UPDATE cash SET status = 900 WHERE page = 0", "status of"),
    "same place": ("UPDATE cash SET place = 0", "in no order"),
    "place far away": ("UPDATE cash SET place = 2000000000 WHERE page = 0", "in no order"),
    "redirect elsewhere": ("UPDATE cash SET target = 99999 WHERE page = 0", "redirects to a page without cash"),
    "redirects in a circle": ("UPDATE cash SET target = 1 - page WHERE page < 2", "redirect in a circle"),
    "other visit": ("UPDATE cash_state SET value = '[3]' WHERE name = 'visit'", "its cash is that of visit"),
    "NaN in the totals": ("UPDATE cash_state SET value = '[NaN]' WHERE name = 'totals'", "no list of numbers"),
    "few totals": ("UPDATE cash_state SET value = '[1.0]' WHERE name = 'totals'", "totals of its cash are missing"),
    "no counts": ("DELETE FROM cash_state WHERE name = 'counts'", "counts of its cash are missing"),
    "negative turn": ("UPDATE cash_state SET value = '[-1, 0, 0]' WHERE name = 'queue'", "negative"),
    "not JSON": ("UPDATE cash_state SET value = 'x' WHERE name = 'queue'", "damaged"),
}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "a.survey"
    until = "requests=60"
    Setting(STEADY, options={"strategy": "opic", "graph": False, "until": until}).crawl(path, until)
    return path


@pytest.mark.parametrize("name", CHANGES)
def test_changed_cash_is_damage(survey: Path, tmp_path: Path, name: str) -> None:
    statement, problem = CHANGES[name]
    path = tmp_path / "b.survey"
    shutil.copytree(survey, path)
    with closing(connect(path / "journal.sqlite", write=True)) as connection:
        connection.execute(statement)
        assert connection.changes() > 0
    with SurveyFolder.open(path, write=False) as folder:
        for reading in (opic_of, restore):
            with pytest.raises(SurveyError, match=problem):
                reading(folder)


def test_unchanged_cash_is_read(survey: Path) -> None:
    with SurveyFolder.open(survey, write=False) as folder:
        opic = opic_of(folder)
        assert opic is not None
        assert len(restore(folder).urls) == folder.journal.url_count


def test_manifest_and_journal_must_agree(survey: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.survey"
    shutil.copytree(survey, path)
    manifest = path / "survey.toml"
    manifest.write_text(manifest.read_text("utf-8").replace("graph = false", "graph = true"), "utf-8")
    with pytest.raises(SurveyError, match="differ in whether links are stored"):
        SurveyFolder.open(path, write=False)


def test_damaged_survey_is_not_recovered_without_its_cash(survey: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.survey"
    shutil.copytree(survey, path)
    with closing(connect(path / "journal.sqlite", write=True)) as connection:
        connection.execute("UPDATE visits SET reason = 'x' WHERE visit = 2")
    with pytest.raises(SurveyError, match="cannot be computed again"):
        SurveyFolder.open(path, from_last_good=True)
