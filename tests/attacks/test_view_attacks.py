"""Attacks on the view of a survey: files from elsewhere, interrupted builds, and SQL that must not do harm."""
# ruff: noqa: S608  # the statements are attacks

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest

from surveyor.errors import SurveyError, UsageError
from surveyor.serve.view import build as builds
from surveyor.serve.view.build import build, main
from surveyor.serve.view.generation import current
from surveyor.serve.view.view import View
from surveyor.store.directory import SurveyFolder, locked
from view_surveys import grow, made

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    survey = made(tmp_path_factory.mktemp("attacks") / "a.survey")
    grow(survey, np.random.default_rng(3), 80)
    build(survey)
    return survey


@pytest.fixture
def survey(built: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "a.survey"
    shutil.copytree(built, copy, ignore=shutil.ignore_patterns("view"))
    build(copy)
    return copy


def is_valid(survey: Path) -> bool:
    with SurveyFolder.open(survey, write=False) as folder:
        return current(survey, folder.journal.identity) is not None


def tables(survey: Path) -> Path:
    (found,) = (survey / "view").glob("tables-*")
    return found


def test_a_copied_view_is_not_used(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.survey"
    shutil.copytree(built, copy)  # files and signature are the same, but not the inodes
    assert is_valid(built)
    assert not is_valid(copy)
    with pytest.raises(SurveyError, match="no tables"):
        View.open(copy)
    build(copy)
    assert is_valid(copy)


def test_a_moved_survey_keeps_its_view(survey: Path) -> None:
    moved = survey.rename(survey.with_name("b.survey"))
    assert is_valid(moved)


@pytest.mark.parametrize("name", ["pages.sqlite", "pages/share.npy", "graph/indices.npy", "hosts/order_share.npy"])
def test_changed_files_are_not_used(survey: Path, name: str) -> None:
    path = tables(survey) / name
    data, about = bytearray(path.read_bytes()), path.stat()
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))  # as a careful forger would
    assert not is_valid(survey)


def test_missing_and_additional_files_are_not_used(survey: Path) -> None:
    extra = tables(survey) / "more.npy"
    extra.write_bytes(b"")
    assert not is_valid(survey)
    extra.unlink()
    (tables(survey) / "pages" / "share.npy").unlink()
    assert not is_valid(survey)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"signature": 1}',
        "[" * 100_000,
        '{"signature": "' + "0" * 64 + '", "version": 1}',
        "\xff",
    ],
)
def test_a_forged_description_is_not_used(survey: Path, text: str) -> None:
    (survey / "view" / "view.json").write_text(text, "latin-1")
    assert not is_valid(survey)


def test_a_description_signed_by_another_account_is_not_used(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(survey.parent / "another"))
    assert not is_valid(survey)
    build(survey)
    assert is_valid(survey)


def test_a_description_cannot_name_other_files(survey: Path) -> None:
    path = survey / "view" / "view.json"
    about = json.loads(path.read_text())
    for name in ("../../elsewhere", "/etc", tables(survey).name + "/pages"):
        path.write_text(json.dumps({**about, "tables": name}))
        assert not is_valid(survey)


@pytest.mark.parametrize("name", ["", "view.json", "tables-000000001", "draft-1", "lock"])
def test_links_are_refused(survey: Path, tmp_path: Path, name: str) -> None:
    place, outside = survey / "view" / name, tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(outside)
    with pytest.raises(SurveyError, match="symbolic link"):
        build(survey)
    with pytest.raises(SurveyError, match="symbolic link"):
        View.open(survey)
    assert (outside / "kept").read_text() == "x"


def test_without_a_key_nothing_is_published(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(survey / "view")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null/none")
    with pytest.raises(SurveyError, match="signed"):
        build(survey)
    assert {path.name for path in (survey / "view").iterdir()} <= {"lock"}


def test_two_builders_do_not_meet(survey: Path) -> None:
    with locked(survey / "view"), pytest.raises(SurveyError, match="another surveyor process"):
        build(survey)


@pytest.mark.parametrize("stage", ["write_pages", "write_arrays", "_ranking", "publish"])
def test_a_killed_build_leaves_the_old_tables(survey: Path, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tables(survey)
    grow(survey, np.random.default_rng(4), 30, at=1.8e9)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with View.open(survey) as reader:
        seen = reader.pages()
        monkeypatch.setattr(builds, stage, killed)
        with pytest.raises(KeyboardInterrupt):
            build(survey)
        monkeypatch.undo()
        assert tables(survey) == before
        assert is_valid(survey)
        (survey / "view" / "draft-999").mkdir()  # as after SIGKILL
        build(survey)
        assert reader.pages() == seen  # of the old generation, which it has open
    with View.open(survey) as view:
        assert view.as_of > seen["as_of"]
        assert view.number == reader.number + 1
    assert {path.name for path in (survey / "view").iterdir()} == {"lock", "view.json", tables(survey).name}


def test_a_damaged_database_gets_a_sentence(survey: Path) -> None:
    with View.open(survey) as view:
        path = tables(survey) / "pages.sqlite"
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (path.stat().st_size - 4096))
        with pytest.raises((SurveyError, UsageError)):
            view.pages()
        with pytest.raises((SurveyError, UsageError)):
            view.query("select * from pages")


def test_the_command_reports_errors_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 4
    assert "does not exist" in capsys.readouterr().err
    assert main([]) == 2
    assert main(["--help"]) == 2


FOREVER = "with recursive t(n) as (select 1 union all select n + 1 from t) "
ENDLESS = [
    f"{FOREVER} select count(*) from t",
    f"{FOREVER} select max(hex(zeroblob(8000)) || n) from t",
    "select count(*) from pages a, pages b, pages c, pages d, pages e",
    "select a.url from pages a, pages b, pages c, pages d, pages e order by random()",
    f"{FOREVER} select group_concat(n) from t group by n % 7",
    f"{FOREVER} select sum(length(replace(hex(zeroblob(8000)), '0', '01'))) from t",
    "select count(*) from pages a, pages b, pages c where a.url || b.url || c.url like '%a%e%a%e%a%e%q%z%'",
]


@pytest.mark.parametrize("query", ENDLESS)
def test_endless_queries_are_stopped(built: Path, query: str) -> None:
    with View.open(built) as view:
        began = time.monotonic()
        with pytest.raises(UsageError, match=r"stopped after|too big"):
            view.query(query, seconds=0.2)
        assert time.monotonic() - began < 20  # on a busy machine; the test below has the longest single step


@pytest.mark.parametrize(
    "query",
    [
        "select zeroblob(1000000000)",
        "select randomblob(20001)",
        "select printf('%.*c', 1000000000, 'x')",  # this takes half a minute if it is run, without a step in between
        "select format('%1000000000d', 1)",
        "select replace(hex(zeroblob(9000)), '0', hex(zeroblob(9000)))",
        "select hex(zeroblob(19999))",
        "select " + ", ".join("1" for _ in range(200)),
        "select " + " union all select ".join("1" for _ in range(200)),
        "select " + "(" * 300 + "1" + ")" * 300,
        "select '" + "x" * 20_000 + "'",
        "select 1 where 'a' like '" + "%a" * 200 + "'",
    ],
)
def test_large_values_and_statements_are_refused(built: Path, query: str) -> None:
    with View.open(built) as view, pytest.raises(UsageError):
        view.query(query)


@pytest.mark.parametrize(
    "query",
    [
        "attach 'other.sqlite' as x",
        "pragma query_only = off",
        "pragma table_info(pages)",
        "delete from pages",
        "insert into pages(id) values (1)",
        "update pages set url = ''",
        "create table x(y)",
        "create temp table x(y)",
        "create temp view x as select 1",
        "drop table pages",
        "vacuum into 'copy.sqlite'",
        "begin",
        "select load_extension('x')",
        "select readfile('/etc/passwd')",
        "select writefile('x', 'y')",
        "select edit('x')",
        "select fts3_tokenizer('simple')",
        "select 1; select 2",
        "select 1; drop table pages",
        "explain select 1; pragma x",
        "select * from pragma_database_list",
        "with x as (select 1) delete from pages",
        "reindex",
        "analyze",
        "",
        ";",
        "select 1 \x00 ; drop table pages",
        "nonsense",
        "select * from nothing",
        "select nothing from pages",
    ],
)
def test_only_reads_are_allowed(built: Path, query: str) -> None:
    with View.open(built) as view:
        before = (tables(built) / "pages.sqlite").read_bytes()
        with pytest.raises(UsageError):
            view.query(query)
        assert (tables(built) / "pages.sqlite").read_bytes() == before
        assert not Path("other.sqlite").exists()
        assert is_valid(built)


def test_results_are_limited(built: Path) -> None:
    with View.open(built) as view:
        many = view.query("select a.url from pages a, pages b", rows=10)
        assert (len(many["rows"]), many["more"]) == (10, True)
        wide = view.query(f"{FOREVER} select hex(zeroblob(9000)) from t", seconds=20.0)
        assert len(wide["rows"]) == 222  # 18 kB each
        assert wide["more"]
        for wrong in ({"seconds": 0.0}, {"seconds": 1e9}, {"rows": 0}, {"rows": 10**9}):
            with pytest.raises(UsageError):
                view.query("select 1", **wrong)
        assert view.query("select 1e999, x'ff', null, 'é'")["rows"] == [[None, "ff", None, "é"]]


def test_the_longest_step_between_two_checks_of_the_time_is_short(built: Path) -> None:
    """A query is interrupted between steps; the worst step compares two halves of the largest value."""
    with View.open(built) as view:
        began = time.process_time()
        with pytest.raises(UsageError, match="stopped"):
            view.query(
                f"{FOREVER} select sum(instr(hex(zeroblob(9900)), substr(hex(zeroblob(5000)), 2) || '1')) from t",
                seconds=0.1,
            )
        assert time.process_time() - began < 3.0


def test_queries_see_what_the_tables_have(built: Path) -> None:
    with View.open(built) as view:
        found = view.query("select status, count(*) n from pages group by 1 order by 1;")
        assert found["columns"] == ["status", "n"]
        with sqlite3.connect(tables(built) / "pages.sqlite") as plain:
            counts = plain.execute("select status, count(*) from pages group by 1 order by 1").fetchall()
        assert [tuple(row) for row in found["rows"]] == counts
