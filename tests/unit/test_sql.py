"""SQL over a survey: the same answers from both engines, and no way out of it."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest
from attack import attack

import surveyor as sv
from console import CommandResult
from example_site import HOME, survey_of
from surveyor.survey import sql as engines
from surveyor.survey.tables import TABLES

pytest.importorskip("duckdb")
ENGINES = ("duckdb", "sqlite")
FOREVER = "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t"


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey_of(tmp_path_factory.mktemp("sql") / "a.survey")


QUERIES = [
    "select host, sum(share) s from pages join ranks using (id) group by 1 order by s desc",
    *(f"select * from {table} order by 1, 2, 3" for table in TABLES),  # noqa: S608  # names are ours
    "select kind, reason, count(*) n from pages group by kind, reason order by n desc, kind, reason nulls first",
    "select p.url, t.url from pages p join pages t on t.id = p.redirected_to order by 1",
    "select url from pages left join ranks using (id) where position is null order by url",
    "select count(*) from links where in_scope",
    "select count(*) from links where not in_scope",
    "select avg(share), max(fetched_at), 1.5, 'a', null from pages join ranks using (id)",
    "values (1, 'x'), (2, 'y');",
    "select url from pages where 1 = 0",
]


@pytest.mark.parametrize("query", QUERIES)
def test_both_engines_answer_alike(survey: Path, query: str) -> None:
    with sv.open(survey) as opened:
        one, other = opened.sql(query, engine="duckdb"), opened.sql(query, engine="sqlite")
    assert one.engine == "duckdb" != other.engine
    assert len(one) == len(other)
    for left, right in zip(one.rows, other.rows, strict=True):
        assert left == pytest.approx(right) if all(isinstance(cell, float) for cell in left) else left == right
    assert [name.lower() for name in one.columns] == [name.lower() for name in other.columns] or "(" in query


def test_tables_agree_with_the_survey(survey: Path) -> None:
    with sv.open(survey) as opened:
        kinds = dict(opened.sql("select url, kind from pages").rows)
        assert kinds == {
            HOME: "fetched",
            f"{HOME}library/": "fetched",
            f"{HOME}news/": "fetched",
            f"{HOME}library/deep": "fetched",
            f"{HOME}old": "redirected",
            f"{HOME}gone": "gone",
            f"{HOME}private/x": "blocked",
            f"{HOME}paper.pdf": "out of scope",
            f"{HOME}login": "out of scope",
            "https://b.example/": "out of scope",
        }
        why = dict(opened.sql("select url, reason from pages where kind = 'out of scope'").rows)
        assert why == {
            f"{HOME}paper.pdf": "file type pdf",
            f"{HOME}login": "only nofollow links lead here",
            "https://b.example/": "other host",
        }
        depths = dict(opened.sql("select url, depth from pages where depth is not null").rows)
        assert depths == {
            HOME: 0,
            f"{HOME}library/": 1,
            f"{HOME}news/": 1,
            f"{HOME}gone": 1,
            f"{HOME}private/x": 1,
            f"{HOME}library/deep": 2,
        }
        ranks = opened.sql("select url, share from pages join ranks using (id) order by position").rows
        assert ranks == [(row["url"], row["share"]) for row in opened.top(100)]
        ((pages, fetched, share),) = opened.sql("select pages, fetched, share from hosts where host = 'a.example'").rows
        assert (pages, fetched) == (9, 4)
        assert share == pytest.approx(1)
        links = opened.sql("select kind, count(*) from links where source = 0 group by 1 order by 1").rows
        assert links == [("followed", 5), ("nofollow", 1), ("out of scope", 2)]
        degrees = opened.sql("select in_links, out_links from pages where id = 0").rows
        assert degrees == [(2, 5)]


def test_results_in_python(survey: Path) -> None:
    with sv.open(survey) as opened:
        found = opened.sql("select url, share from pages join ranks using (id) order by position", limit=2)
    assert (found.columns, len(found), found.more) == (("url", "share"), 2, True)
    assert found.to_dict()["url"][0] == HOME
    assert repr(found) == "QueryResult(2+ rows: url, share)"
    assert "<th>url</th>" in found._repr_html_()
    frame = pytest.importorskip("polars") and found.to_polars()
    assert frame.columns == ["url", "share"]
    assert frame.height == 2


# No way out

HOSTILE = [
    "attach '{}/evil.db' as evil",
    "copy (select * from pages) to '{}/evil.csv'",
    "vacuum into '{}/evil.db'",
    "export database '{}/evil'",
    "pragma journal_mode = delete",
    "pragma writable_schema = on",
    "set enable_external_access = true",
    "reset lock_configuration",
    "install httpfs",
    "load sqlite",
    "select load_extension('{}/evil.so')",
    "select * from read_csv('{}/secret.csv')",
    "select * from read_text('{}/secret.csv')",
    "select * from '{}/secret.csv'",
    "select * from glob('{}/*')",
    "select readfile('{}/secret.csv')",
    "select writefile('{}/evil', 'x')",
    "select * from secret",  # a variable of Python
    "select getenv('HOME')",
    "insert into pages (id) values (99)",
    "update pages set url = 'x'",
    "delete from pages",
    "drop table pages",
    "create table evil (page integer)",
    "create temp table evil as select * from pages",
    "select 1; delete from pages",
    "call pragma_database_list()",
    "begin",
    "explain analyze copy (select 1) to '{}/evil.csv'",
]


@attack("SQL that writes, attaches or reads files", area="output", must_hold="refused by both engines")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("query", HOSTILE)
def test_nothing_but_the_tables_can_be_touched(survey: Path, engine: str, query: str, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    secret = {"a": [1]}
    before = {path: path.stat().st_mtime_ns for path in survey.rglob("*") if "-" not in path.name}
    with sv.open(survey) as opened, pytest.raises(sv.UsageError) as caught:
        opened.sql(query.format(tmp_path), engine=engine)  # type: ignore[arg-type]
    assert "\n" not in caught.value.problem
    assert secret
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert before == {path: path.stat().st_mtime_ns for path in survey.rglob("*") if "-" not in path.name}


def test_the_guards_are_those_that_hold() -> None:
    """Both engines would do harm if they were not shut: the test above can fail."""
    for engine in ENGINES:
        database = engines.open_database(engine)  # type: ignore[arg-type]
        try:
            query = "pragma user_version = 3" if engine == "sqlite" else "set threads = 1"
            getattr(database, "_connection").execute(query)  # noqa: B009  # what a query may not reach
            database.lock()
            with pytest.raises(Exception, match=r"authorized|locked"):
                getattr(database, "_connection").execute(query)  # noqa: B009
        finally:
            database.close()


@attack("a SQL query without end", area="output", must_hold="stopped at its time limit")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_without_end_is_stopped(survey: Path, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "sql", str(survey), FOREVER, "--seconds", "0.2", "--engine", engine)
    assert result.code == 2
    assert "the query was stopped after 0.2 s" in result.err
    assert "--seconds" in result.err


@attack(
    "SQL functions whose single step takes minutes", area="output", must_hold="not available, or limited to seconds"
)
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("select printf('%.*c', 1000000000, 'x')", "the function printf is not available here"),
        ("select FORMAT('%1000000000d', 1)", "the function FORMAT is not available here"),
        ("select instr(zeroblob(9000000), zeroblob(4000000) || x'01')", "the query failed: string or blob too big"),
        ("select replace(zeroblob(9000000), zeroblob(4000000) || x'01', '')", "the query failed: string or blob too"),
    ],
)
def test_no_step_of_sqlite_is_endless(survey: Path, query: str, problem: str) -> None:
    began = time.process_time()
    with sv.open(survey) as opened, pytest.raises(sv.UsageError) as caught:
        opened.sql(query, engine="sqlite", seconds=0.2)
    assert caught.value.problem.startswith(problem)
    assert time.process_time() - began < 10  # without the limits, minutes


# What goes wrong


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("query", "problem", "hint"),
    [
        ("select * from pagess", "there is no table 'pagess'", "did you mean pages? known: pages, links"),
        ("select ur from pages", "there is no column 'ur'", "did you mean url? known: id, url"),
        ("select p.ur from pages p", "there is no column 'ur'", "did you mean url?"),
        ("select share from pages", "there is no column 'share'", "it is a column of ranks and hosts"),
        ("select * from pages join ranks using (idd)", "there is no column 'idd'", "did you mean id?"),
        ("selec url from pages", "the query failed: ", "lists tables and columns"),
        ("select fo(url) from pages", "the query failed: ", "lists tables and columns"),
        ("delete from pages", "a survey is read-only", "lists tables and columns"),
        ("  ;", "the query is empty", "lists tables and columns"),
    ],
)
def test_wrong_queries_get_one_sentence(survey: Path, engine: str, query: str, problem: str, hint: str) -> None:
    with sv.open(survey) as opened, pytest.raises(sv.UsageError) as caught:
        opened.sql(query, engine=engine)  # type: ignore[arg-type]
    assert caught.value.problem.startswith(problem)
    assert hint in caught.value.hint


def test_without_duckdb(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with sv.open(survey) as opened:
        assert opened.sql("select count(*) from visits").engine == "sqlite"
        with pytest.raises(sv.MissingExtra, match="duckdb"):
            opened.sql("select 1", engine="duckdb")
        with pytest.raises(sv.UsageError, match=r"engine must be duckdb or sqlite, got .oracle"):
            opened.sql("select 1", engine="oracle")  # type: ignore[arg-type]
        with pytest.raises(sv.UsageError, match="seconds must be more than 0, got 0"):
            opened.sql("select 1", seconds=0)


def test_command(survey: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    listed = CommandResult(capsys, "sql", str(survey))
    assert listed.code == 0
    assert "share, score, position" in listed.out
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert CommandResult(capsys, "sql", str(survey), "-", "--json").json()["tables"]["ranks"] == list(TABLES["ranks"])
    monkeypatch.setattr("sys.stdin", io.StringIO("select 7 as n"))
    assert CommandResult(capsys, "sql", str(survey), "-", "--json").json()["rows"] == [[7]]
    query = "select url, position from pages join ranks using (id) order by position"
    shown = CommandResult(capsys, "sql", str(survey), query, "-n", "2")
    assert shown.out.count("\n") == 3
    assert "These are the first 2 rows" in shown.err
    fields = CommandResult(capsys, "sql", str(survey), query, "-n", "2", "--json").json()
    assert (fields["columns"], len(fields["rows"])) == (["url", "position"], 6)
    csv = CommandResult(capsys, "sql", str(survey), query, "--csv")
    assert csv.out.splitlines()[:2] == ["url,position", f"{HOME},1"]
    assert CommandResult(capsys, "sql", str(survey), "select 1 where 1 = 0").err == "The result is empty.\n"
    assert CommandResult(capsys, "sql", "nowhere.survey").code == 4
    assert CommandResult(capsys, "sql", str(survey), "select").code == 2
