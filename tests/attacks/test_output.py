"""Titles and URLs that try to drive a spreadsheet, a terminal or a browser."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from attack import attack
from hypothesis import given
from hypothesis import strategies as st

import surveyor as sv
from console import CommandResult
from example_site import HOME, survey_of
from fake_web import page, rules
from surveyor.report.survey_html import write_report
from surveyor.store.tabular import FORMULA, escape_cell, unescape_cell

TITLES = [
    '=HYPERLINK("http://evil.example","x")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\uff1d1+1",
    "'=1",
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m red",
    "\u202egpj.exe",
    "\u2066hidden\u2069",
    "a\x00b\x08c",
    "\x7f",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></textarea><svg onload=alert(1)>",
    "{{7*7}}${7*7}",
    "[red]markup[/red]",
    "javascript:alert(1)",
    "&lt;script&gt;",
    "a,b;c\td",
]
QUERY = "select url, title from pages"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a survey of a site whose titles and addresses are attacks."""
    answers: dict[str, Any] = {**rules(HOME.rstrip("/"), "")}
    paths = [f"p{number}" for number in range(len(TITLES))]
    answers[HOME] = page(HOME, *[HOME + path for path in paths], HOME + "=1+1", HOME + "%1b%5b2J")
    for path, title in zip(paths, TITLES, strict=True):
        spelt = "".join(f"&#{ord(char)};" for char in title)
        body = f"<meta charset=utf-8><title>{title if title.isprintable() else spelt}</title><a href=/>x</a>".encode()
        answers[HOME + path] = page(HOME + path, body=body, raw=body)
    return survey_of(tmp_path_factory.mktemp("hostile") / "a.survey", answers)


@attack(
    "hostile titles in CSV",
    area="output",
    inputs=len(TITLES),
    must_hold="no cell is a formula or holds a control character",
)
@pytest.mark.parametrize("words", [["sql", QUERY], ["top"], ["top", "--blocked"], ["rank"], ["status"]])
def test_csv(hostile: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, words[0], str(hostile), *words[1:], "--csv")
    assert result.code == 0, result.err
    cells = [cell for row in csv.reader(io.StringIO(result.out)) for cell in row]
    assert len(cells) > 2
    for cell in cells:
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", cell)
        assert not cell.startswith(FORMULA) or re.fullmatch(r"-?[0-9.e+-]+", cell)


@attack("hostile titles in CSV files", area="output", inputs=len(TITLES), must_hold="no cell of any file is a formula")
@pytest.mark.parametrize("table", ["pages", "visits"])
def test_csv_files(hostile: Path, tmp_path: Path, table: str) -> None:
    with sv.open(hostile) as survey:
        (file,) = survey.export(tmp_path / "a.csv", table=table)
        (raw,) = survey.export(tmp_path / "raw.csv", table=table, raw=True)
    with file.open(encoding="utf-8", newline="") as made, raw.open(encoding="utf-8", newline="") as exact:
        cells, others = ([cell for row in csv.reader(one) for cell in row] for one in (made, exact))
    assert not [cell for cell in cells if cell.startswith(FORMULA)]
    assert [cell for cell in others if cell.startswith("=HYPERLINK")]


@attack(
    "hostile titles on a terminal",
    area="output",
    inputs=len(TITLES),
    must_hold="no control character or bidirectional override is printed; JSON is exact",
)
@pytest.mark.parametrize("words", [["sql", QUERY, "-n", "100"], ["top", "-n", "100"], ["explain", HOME], ["status"]])
def test_terminal(hostile: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, words[0], str(hostile), *words[1:])
    assert result.code == 0, result.err
    for text in (result.out, result.err):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    if words[0] == "sql":
        rows = json.loads(CommandResult(capsys, "sql", str(hostile), QUERY, "--json").out)["rows"]
        assert {"@SUM(1)", "\u202egpj.exe", "<script>alert(1)</script>"} <= {title for _, title in rows}


class Tags(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@attack(
    "hostile titles in the HTML report",
    area="output",
    inputs=len(TITLES),
    must_hold="no script but its own, no event handler or foreign image, and links lead to http and https alone",
)
def test_html(hostile: Path, tmp_path: Path) -> None:
    text = write_report(hostile, tmp_path / "r.html").read_text("utf-8")
    own = files("surveyor.report").joinpath("tables.js").read_text("utf-8")
    text = text.replace(f"<script>{own}</script>", "", 1)  # the policy permits no other
    tags = Tags()
    tags.feed(text)
    assert "&lt;script&gt;alert(1)" in text
    for tag, attributes in tags.found:
        assert tag not in ("script", "iframe", "object", "embed", "img", "base", "form")
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "http").startswith(("http://", "https://", "#", "http"))


@attack(
    "any text in a CSV cell", area="output", must_hold="no formula, no control character, and the text can be restored"
)
@given(st.text() | st.text("\\'=xu0126ae\x1b\x85\r\u202e\u2066"))
def test_any_cell(text: str) -> None:
    written = escape_cell(text)
    assert not written.startswith(FORMULA)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", written)
    assert unescape_cell(written) == text
