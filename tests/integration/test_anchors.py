"""Contexts of links in a survey: the table of anchors, exports, `explain`, and derived surveys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console import CommandResult
from example_site import HOME, survey_of
from fake_web import page
from surveyor.errors import SurveyError
from surveyor.store.tabular import contexts_of
from surveyor.survey.survey import Survey

MENU = '<nav><a href="/b">Menu</a><a href="/c" rel="nofollow ugc">Login</a></nav>'


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> str:
    answers = {
        HOME: page(HOME, extra=f'{MENU}<p><a href="/a">The first page</a> <a href="https://other.example/">Out</a>'),
        f"{HOME}a": page(f"{HOME}a", extra=f'{MENU}<footer><a href="/">Home</a></footer>'),
        f"{HOME}b": page(f"{HOME}b", extra='<a href="/a"><img alt="A picture"></a>'),
    }
    return str(survey_of(tmp_path_factory.mktemp("anchors") / "a.survey", answers))


QUERY = """SELECT s.url AS source, t.url AS target, text, element, rel, position FROM anchors
    JOIN pages s ON s.id = source JOIN pages t ON t.id = target ORDER BY s.url, t.url"""


def test_the_table_of_anchors(survey: str) -> None:
    with Survey(survey) as opened:
        rows = opened.sql(QUERY).rows
    assert [tuple(str(cell).removeprefix(HOME) for cell in row) for row in rows] == [
        ("", "a", "The first page", "a", "", "main"),
        ("", "b", "Menu", "a", "", "navigation"),
        ("", "c", "Login", "a", "nofollow ugc", "navigation"),
        ("", "https://other.example/", "Out", "a", "", "main"),
        ("a", "", "Home", "a", "", "footer"),
        ("a", "b", "Menu", "a", "", "navigation"),
        ("a", "c", "Login", "a", "nofollow ugc", "navigation"),
        ("b", "a", "A picture", "a", "", "main"),
    ]


def test_anchors_are_exported(survey: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "anchors.jsonl"
    assert CommandResult(capsys, "export", survey, "--out", str(to), "--table", "anchors").code == 0
    rows = [json.loads(line) for line in to.read_text("utf-8").splitlines()]
    assert len(rows) == 8
    assert {row["text"] for row in rows if row["position"] == "footer"} == {"Home"}


def test_explain_shows_how_pages_link(survey: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = CommandResult(capsys, "explain", survey, "/a").out
    assert "“The first page” in the main content" in text
    assert "“A picture” in the main content" in text
    found = json.loads(CommandResult(capsys, "explain", survey, "/b", "--json").out)["explanation"]["contexts"]
    assert found[HOME] == {"text": "Menu", "element": "a", "position": "navigation", "rel": ""}


def test_a_survey_without_a_link_graph_stores_no_contexts(tmp_path: Path) -> None:
    with Survey(survey_of(tmp_path / "a.survey", graph=False, strategy="opic", until="pages=3")) as opened:
        assert not any(visit.contexts for visit in opened.journal.visits())


def test_damaged_contexts_are_reported(tmp_path: Path) -> None:
    folder = survey_of(tmp_path / "a.survey")
    with Survey(folder) as opened:
        home = next(visit for visit in opened.journal.visits() if visit.contexts)
        broken = type(home)(home.page, "fetched", home.links, contexts=b"damaged")

        with pytest.raises(SurveyError, match="damaged"):
            contexts_of(opened.journal, broken)
