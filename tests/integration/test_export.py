"""A survey for other programs: what they read is what it holds, and nothing is written over."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from attack import attack

import surveyor as sv
from console import CommandResult
from example_site import HOME, survey_of
from surveyor.outcome import Place
from surveyor.store.directory import SurveyFolder
from surveyor.survey.export import sort_key
from surveyor.testing import WebSettings, running


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey_of(tmp_path_factory.mktemp("export") / "a.survey")


@attack("titles and URLs that are spreadsheet formulas", area="output", must_hold="exported CSV holds no formula")
def test_csv_holds_pages_with_ranks_and_no_formulas(survey: Path, tmp_path: Path) -> None:
    with sv.open(survey) as opened:
        (path,) = opened.export(tmp_path / "pages.csv")
        (raw,) = opened.export(tmp_path / "raw.csv", raw=True)
        best = opened.top(100)
        (top,) = opened.export(tmp_path / "top.csv", top=3)
    rows = read_csv(path)
    assert len(rows) == 10
    assert rows[0]["title"].startswith("'=HYPERLINK(1) & <b>")
    ranked = {row["url"]: float(row["share"]) for row in rows if row["share"]}
    assert ranked == {row["url"]: row["share"] for row in best}
    assert read_csv(raw)[0]["title"].startswith("=HYPERLINK")
    listed = read_csv(top)
    assert [row["url"] for row in listed] == [row["url"] for row in best[:3]]
    assert [row["position"] for row in listed] == ["1", "2", "3"]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_json_lines(survey: Path, tmp_path: Path) -> None:
    with sv.open(survey) as opened:
        (path,) = opened.export(tmp_path / "pages.jsonl")
        (visits,) = opened.export(tmp_path / "visits.ndjson", table="visits")
        count = opened.visits
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[0]["url"] == HOME
    assert rows[0]["position"] == 1
    assert {row["share"] for row in rows if row["kind"] == "out of scope"} == {None}
    assert len(visits.read_text("utf-8").splitlines()) == count


def test_parquet(survey: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with sv.open(survey) as opened:
        paths = opened.export(tmp_path / "tables")
        (one,) = opened.export(tmp_path / "pages.parquet")
        shares = {row["url"]: row["share"] for row in opened.top(100)}
    assert [path.name for path in paths] == [
        "pages.parquet",
        "links.parquet",
        "ranks.parquet",
        "hosts.parquet",
        "visits.parquet",
    ]
    ranks = parquet.read_table(paths[2]).to_pylist()
    assert sum(row["share"] for row in ranks) == pytest.approx(1)
    rows = parquet.read_table(one).to_pylist()
    assert {row["url"]: row["share"] for row in rows if row["share"] is not None} == shares
    duckdb = pytest.importorskip("duckdb")
    query = f"select count(*) from '{paths[0]}' join '{paths[2]}' using (id)"  # noqa: S608  # of files of our own
    assert duckdb.sql(query).fetchall() == [(6,)]


@pytest.mark.parametrize("kind", ["gexf", "graphml"])
def test_graphs_to_draw(survey: Path, tmp_path: Path, kind: str) -> None:
    networkx = pytest.importorskip("networkx")
    read = getattr(networkx, f"read_{kind}")
    with sv.open(survey) as opened:
        (path,) = opened.export(tmp_path / f"a.{kind}")
        (small,) = opened.export(tmp_path / f"b.{kind}", top=2)
        (hosts,) = opened.export(tmp_path / f"hosts.{kind}", level="hosts")
        shares, graph = {row["url"]: row["share"] for row in opened.top(100)}, opened.graph()
    drawn = read(path)
    assert {facts["url"]: facts["share"] for _, facts in drawn.nodes(data=True)} == shares
    titles = {facts["url"]: facts["title"] for _, facts in drawn.nodes(data=True)}
    assert titles[f"{HOME}news/"] == "News"
    assert titles[HOME].startswith("=HYPERLINK(1) & <b>")
    names = networkx.get_node_attributes(drawn, "url")
    links = {(names[a], names[b]) for a, b in drawn.edges()}
    assert links == {
        (graph.name(page), graph.name(goal)) for page in range(graph.pages) for goal in graph.links_of(page).tolist()
    }
    assert {facts["position"] for _, facts in read(small).nodes(data=True)} == {1, 2}
    ((_, facts),) = read(hosts).nodes(data=True)
    assert (facts["label"], facts["pages"], facts["fetched"]) == ("a.example", 6, 4)


def test_links_between_hosts_are_counted(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    with running(WebSettings.plain()) as web:
        path = tmp_path / "w.survey"
        given = {"scope": "any", "delay": 0, "allow": web.hosts, "resolver": web.resolver, "rng": 1}
        with sv.crawl(web.seeds, until="pages=40", out=path, contact="me@example.org", **given) as survey:  # type: ignore[arg-type]
            (file,) = survey.export(tmp_path / "h.gexf", level="hosts", top=10_000)
            query = (
                "select count(*) from links join pages a on a.id = source join pages b on b.id = target "
                "where links.kind = 'followed' and a.host <> b.host"
            )
            ((between,),) = survey.sql(query, engine="sqlite").rows
    drawn = networkx.read_gexf(file)
    assert sum(facts["weight"] for *_, facts in drawn.edges(data=True)) == between > 0


def test_an_index_of_the_archive_leads_to_every_record(survey: Path, tmp_path: Path) -> None:
    with sv.open(survey) as opened:
        (index,) = opened.export(tmp_path / "index.cdxj")
    lines = index.read_text("utf-8").splitlines()
    assert lines == sorted(lines)
    assert len(lines) == 6  # all that answered
    with SurveyFolder.open(survey, write=False) as folder:
        for line in lines:
            key, at, result = line.split(" ", 2)
            record = json.loads(result)
            place = Place(record["filename"], int(record["offset"]), int(record["length"]))
            assert folder.archive.read(place).url == record["url"]
            assert key == sort_key(record["url"])
            assert len(at) == 14
    with sv.open(survey_of(tmp_path / "b.survey", archive=False)) as opened:
        (empty,) = opened.export(tmp_path / "none.cdxj")
    assert empty.read_text() == ""


def test_nothing_is_written_over(survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "pages.csv"
    there.write_text("mine")
    done = CommandResult(capsys, "export", str(survey), "--out", str(there))
    assert (done.code, done.err) == (
        2,
        f"{there} already exists\n  hint: choose another name, or overwrite it with --replace\n",
    )
    assert there.read_text() == "mine"
    result = CommandResult(capsys, "export", str(survey), "--out", str(there), "--replace", "--json").json()
    assert result["files"] == [{"path": str(there), "bytes": there.stat().st_size}]
    assert there.read_text().startswith("id,url,")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "ranks.parquet").write_text("mine")
    assert CommandResult(capsys, "export", str(survey), "--out", str(tmp_path / "t")).code == 2
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["ranks.parquet"]


def test_a_disk_that_takes_no_more_leaves_no_half_file(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr("surveyor.survey.export.write_csv_rows", full)
    with sv.open(survey) as opened, pytest.raises(sv.UsageError, match="cannot be written: full"):
        opened.export(tmp_path / "pages.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--out", "a.docx"], "is not a known format"),
        (["--out", "a.csv", "--format", "xls"], "'xls' is not one of"),
        (["--out", "a.csv", "--table", "page"], "'page' is not one of"),
        (["--out", "a.csv", "--table", "links", "--top", "5"], "top is for pages and graphs"),
        (["--out", "nowhere/a.csv"], "cannot be written"),
        ([], "Missing option '--out'"),
    ],
)
def test_wrong_words(
    survey: Path, words: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(survey.parent)
    done = CommandResult(capsys, "export", "a.survey", *words)
    assert (done.code, done.out) == (2, "")
    assert text in done.err
    assert "hint:" in done.err
