"""Workbooks: text as text, the limits of Excel, and what happens without the library."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from surveyor.errors import MissingExtra, UsageError
from surveyor.store import spreadsheet
from surveyor.store.spreadsheet import MOST_CHARACTERS, write_xlsx

SPACE = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}


def cells(path: Path) -> list[list[str]]:
    with zipfile.ZipFile(path) as archive:
        root = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))  # noqa: S314  # our own file
    return [["".join(cell.itertext()) for cell in row] for row in root.findall(".//m:row", SPACE)]


def test_values_are_written_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    rows: list[list[object]] = [
        ["=1+1", 2, 0.5],
        ["http://a.example/", None, -3],
        ["@SUM(A1)", 0, 1],
        ["{=A1}", 0, 1],
        ["a\0\ud800b", 0, 1],
    ]
    assert write_xlsx(tmp_path / "a.xlsx", ["text", "count", "share"], rows, "pages") == 0
    assert cells(tmp_path / "a.xlsx") == [
        ["text", "count", "share"],
        ["=1+1", "2", "0.5"],
        ["http://a.example/", "-3"],
        ["@SUM(A1)", "0", "1"],
        ["{=A1}", "0", "1"],
        ["a\ufffd\ufffdb", "0", "1"],
    ]


def test_long_texts_are_cut_and_counted(tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    texts = ["a" * MOST_CHARACTERS, "b" * (MOST_CHARACTERS + 1), "😀" * MOST_CHARACTERS]
    assert write_xlsx(tmp_path / "a.xlsx", ["text"], [[text] for text in texts], "text") == 2
    written = [row[0] for row in cells(tmp_path / "a.xlsx")[1:]]
    assert written[0] == texts[0]
    assert written[1] == "b" * (MOST_CHARACTERS - 1) + "…"
    assert len(written[2].encode("utf-16-le")) // 2 <= MOST_CHARACTERS
    assert written[2].startswith("😀😀")


def test_too_many_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xlsxwriter")
    monkeypatch.setattr(spreadsheet, "MOST_ROWS", 3)
    write_xlsx(tmp_path / "a.xlsx", ["n"], [[1], [2]], "pages")
    with pytest.raises(UsageError, match="at most 2 rows"):
        write_xlsx(tmp_path / "a.xlsx", ["n"], [[1], [2], [3]], "pages")


def test_a_folder_that_does_not_exist_is_an_error_of_the_system(tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    with pytest.raises(OSError, match="No such file"):
        write_xlsx(tmp_path / "none" / "a.xlsx", ["n"], [], "pages")


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingExtra, match=r"surveyor\[xlsx\]"):
        write_xlsx(tmp_path / "a.xlsx", ["n"], [], "pages")


def test_texts_without_resiliparse_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from surveyor.web.page_text import require_library

    monkeypatch.setitem(sys.modules, "resiliparse.extract.html2text", None)
    with pytest.raises(MissingExtra, match=r"surveyor\[text\]"):
        require_library()
