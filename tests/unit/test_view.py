"""The view of a survey: equal to the survey, however it was built; pages of rows, facets and links."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from surveyor.crawler.shards import folder as shards
from surveyor.errors import UsageError
from surveyor.outcome import Visit
from surveyor.rank.explain import explain
from surveyor.serve.view import build as builds
from surveyor.serve.view.build import build, is_due
from surveyor.serve.view.paging import PageQuery
from surveyor.serve.view.schema import FACETS, SORTS, TABLES
from surveyor.serve.view.view import View
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey
from view_surveys import grow, made, url

pytestmark = pytest.mark.compiled
OTHER = {"kind": "status", "status": "http_status", "size": "bytes", "redirected_to": "redirected_to"}  # names


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    survey, rng = made(tmp_path_factory.mktemp("view") / "a.survey"), np.random.default_rng(5)
    for _ in range(3):
        grow(survey, rng, 60)
        build(survey)
    return survey


def every_row(view: View, table: str = "pages", **query: Any) -> list[dict[str, Any]]:
    ask: Callable[[PageQuery], dict[str, Any]] = getattr(view, table)
    rows: list[dict[str, Any]] = []
    after = ""
    while True:
        found = ask(PageQuery(after=after, limit=7, **query))
        assert found["first"] == len(rows)
        rows += found["rows"]
        after = found["next"]
        if not after:
            assert found["total"] == len(rows)
            return rows


def rows_of(survey: Survey, table: str) -> list[dict[str, Any]]:
    return [
        dict(zip(batch, row, strict=True))
        for batch in survey.tables.batches(table)
        for row in zip(*(v.tolist() if isinstance(v, np.ndarray) else v for v in batch.values()), strict=True)
    ]


def content(view: View) -> dict[str, Any]:
    every = [table for table in TABLES if table != "words"]
    tables = {table: sorted(view._ask(f"SELECT * FROM {table}"), key=repr) for table in every}  # noqa: S608
    summary = {name: value for name, value in view.summary().items() if name != "as_of"}
    return {**tables, "words": sorted(view._ask("SELECT kind, value FROM words")), "summary": summary}


def test_every_column_is_that_of_the_survey(path: Path) -> None:
    with View.open(path) as view, sv.open(path) as survey:
        rows = every_row(view, sort="url")
        by_id = {row["id"]: row for row in rows}
        expected = rows_of(survey, "pages")
        assert sorted(by_id) == [row["id"] for row in expected]
        ranks = {row["id"]: row for row in rows_of(survey, "ranks")}
        ledger = survey.state.crawl.ledger
        seen = Counter(visit.page for visit in survey.journal.visits())
        for row in expected:
            found = by_id[row["id"]]
            for name in ("url", "host", "domain", "reason", "language", "title", "depth", "in_links", "out_links"):
                assert found[name] == row[name], (name, row["url"])
            for name, ours in OTHER.items():
                assert found[ours] == row[name], (name, row["url"])
            assert found["seconds"] == row["seconds"]
            at = found["fetched_at"]
            assert (None if at is None else round(at * 1e6)) == row["fetched_at"]
            for name in ("share", "score", "position"):
                assert found[name] == ranks.get(row["id"], {}).get(name), name
            waits = row["kind"] in ("queued", "blocked")
            assert found["mass"] == (max(0.0, float(ledger.residual[row["id"]])) if waits else None)
            assert found["visits"] == seen[row["id"]]
            assert row["url"].startswith(found["folder"])
        assert {row["status"] for row in rows} >= {"fetched", "queued", "blocked", "gone", "redirected"}
        assert [view.page(row["url"])["page"] for row in rows] == [by_id[row["id"]] for row in rows]


def test_hosts_blocked_and_bounds_are_those_of_the_survey(path: Path) -> None:
    with View.open(path) as view, sv.open(path) as survey:
        hosts = {row["host"]: row for row in every_row(view, "hosts", sort="host")}
        for row in rows_of(survey, "hosts"):
            found = hosts.pop(row["host"])
            assert found["share"] == pytest.approx(row["share"], abs=1e-12)
            assert {name: found[name] for name in row if name != "share"} == {n: row[n] for n in row if n != "share"}
        assert not hosts
        assert sum(row["pages"] for row in every_row(view, "domains", sort="pages")) == len(every_row(view))
        assert view.blocked()["reasons"] == survey.blocked()
        blocked = [(row["url"], row["mass"], row["reason"]) for row in view.blocked(limit=1000)["rows"]]
        theirs = [(row["url"], row["mass"], row["reason"]) for row in survey.blocked_pages(1000)]
        assert set(blocked) <= set(theirs)  # theirs has pages that were fetched before they were blocked, too
        assert [row[1] for row in blocked] == sorted((row[1] for row in blocked), reverse=True)
        assert all(view.page(one[0])["page"]["status"] != "blocked" for one in set(theirs) - set(blocked))
        assert view.summary()["coverage"] == survey.coverage_fields
        assert view.summary()["fetched"] == survey.pages_fetched
        history, curve = survey.history(), view.curve()
        assert curve["at_least"] == history.at_least.tolist()
        assert curve["pages"] == list(range(1, len(history.pages) + 1))
        few = view.curve(points=10)
        assert len(few["pages"]) == 10
        assert (few["at_most"][0], few["at_most"][-1]) == (history.at_most[0], history.at_most[-1])
        queue = survey.state.crawl.frontier.queued()
        order = sorted(zip((-queue.priorities).tolist(), queue.pages.tolist(), strict=True))
        assert [row["id"] for row in view.frontier(limit=1000)["rows"]] == [page for _, page in order]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_a_build_in_steps_is_the_build_at_once(tmp_path: Path, seed: int) -> None:
    survey, rng = made(tmp_path / "a.survey"), np.random.default_rng(seed)
    build(survey)
    for step in range(4):
        grow(survey, rng, 25, at=1.7e9 + 1000 * step)
        build(survey)
        copy = tmp_path / f"copy{step}.survey"
        shutil.copytree(survey, copy, ignore=shutil.ignore_patterns("view"))
        build(copy)
        with View.open(survey) as one, View.open(copy) as other:
            first, second = content(one), content(other)
            first["summary"]["name"] = second["summary"]["name"]
            first.pop("meta"), second.pop("meta")
            assert first == second
            for sort in SORTS["pages"]:
                assert every_row(one, sort=sort) == every_row(other, sort=sort)
            for text in ("alpha", "y/"):
                assert every_row(one, text=text) == every_row(other, text=text)


def test_deleted_hosts_and_new_scopes_are_built_again(tmp_path: Path) -> None:
    survey = made(tmp_path / "a.survey")
    grow(survey, np.random.default_rng(1), 60)
    build(survey)
    assert not is_due(survey)
    with SurveyFolder.open(survey) as folder:
        folder.delete_host("b.example")
    assert not (survey / "view").exists()
    assert is_due(survey)
    build(survey)
    with View.open(survey) as view:
        deleted = every_row(view, filters={"host": "b.example"})
        assert {(row["status"], row["title"]) for row in deleted} <= {("blocked", None), ("out of scope", None)}
    with SurveyFolder.open(survey) as folder:
        folder.change(settings={**folder.manifest.settings, "scope": "host"})
        folder.note("scope_changed")
    assert is_due(survey)
    build(survey)
    with View.open(survey) as view, sv.open(survey) as opened:
        reasons = {row["id"]: row["reason"] for row in rows_of(opened, "pages")}
        assert {row["id"]: row["reason"] for row in every_row(view)} == reasons


def test_a_sharded_survey_has_the_view_of_its_merged_journal(tmp_path: Path) -> None:
    survey, rng = made(tmp_path / "a.survey"), np.random.default_rng(8)
    grow(survey, rng, 60)
    build(survey)
    with View.open(survey) as view:
        before = content(view)
    with SurveyFolder.open(survey) as folder:
        shards.build(folder, 2)
    assert is_due(survey)  # it has an event of the division
    build(survey)
    with View.open(survey) as view:
        after = content(view)
    for found in (before, after):
        found.pop("meta")
    assert before == after


def test_a_long_path_is_cut_in_the_middle(tmp_path: Path) -> None:
    survey = made(tmp_path / "a.survey")
    with SurveyFolder.open(survey) as folder:
        names = [url(0), *(f"https://a.example/chain/{number}" for number in range(40))]
        links = [np.array([page + 1], np.int32) for page in range(40)]
        folder.commit([Visit(page, "fetched", own, status=200) for page, own in enumerate(links)], names)
    build(survey)
    with View.open(survey) as view:
        found = view.explanation(40)["explanation"]
        assert (found["path_pages"], len(found["path"])) == (41, 20)
        assert (found["path"][0], found["path"][-1]) == (names[0], names[40])
        assert view.page(40)["page"]["depth"] == 40


def test_empty_surveys_have_a_view(tmp_path: Path) -> None:
    survey = made(tmp_path / "a.survey")
    build(survey)
    with View.open(survey) as view:
        assert view.pages()["rows"] == view.hosts()["rows"] == view.folders()["rows"] == view.blocked()["rows"] == []
        assert view.frontier()["total"] == 0
        assert view.curve()["pages"] == []
        assert view.query("select count(*) from pages")["rows"] == [[0]]
        assert view.pages(PageQuery(text="x", filters={"status": "fetched"}))["total"] == 0


def test_without_a_link_graph_pages_have_the_importance_of_the_strategy(tmp_path: Path) -> None:
    from example_site import survey_of

    survey = survey_of(tmp_path / "a.survey", graph=False, strategy="opic", archive=False)
    build(survey)
    with View.open(survey) as view, sv.open(survey) as opened:
        importance = opened.importance()
        shares = dict(zip(importance.pages.tolist(), importance.shares.tolist(), strict=True))
        assert {row["id"]: row["share"] for row in every_row(view) if row["share"] is not None} == shares
        assert view.summary()["importance"].startswith("opic")
        assert view.summary()["coverage"] is None
        with pytest.raises(UsageError, match="no-graph"):
            view.in_links(0)


FILTERS: list[dict[str, Any]] = [
    {},
    {"status": "fetched"},
    {"status": ["queued", "blocked"], "host": "a.example"},
    {"language": None},
    {"bytes": {"at_least": 1000}, "status": "fetched"},
    {"folder": "https://a.example/x/"},
    {"http_status": 503, "domain": "no.example"},
    {"depth": 2, "type": "pdf"},
]


def selects(row: dict[str, Any], filters: dict[str, Any]) -> bool:
    for name, wanted in filters.items():
        value = row[name]
        if name == "folder":
            fits = value.startswith(wanted)
        elif isinstance(wanted, dict):
            fits = value is not None and value >= wanted["at_least"]
        else:
            fits = value in wanted if isinstance(wanted, list) else value == wanted
        if not fits:
            return False
    return True


@pytest.mark.parametrize("sort", SORTS["pages"])
@pytest.mark.parametrize("descending", [False, True])
def test_paging_returns_each_row_once_in_both_directions(path: Path, sort: str, descending: bool) -> None:
    with View.open(path) as view:
        whole = view.rows_of("pages", list(range(view.size)))
        natural = SORTS["pages"][sort]

        def place(row: dict[str, Any]) -> Any:
            value = row[sort]
            value = value.lower().encode() if isinstance(value, str) else -value if natural else value
            return value, row["id"]

        for filters in FILTERS:
            chosen = [row for row in whole if selects(row, filters)]
            known = sorted((row for row in chosen if row[sort] not in (None, "")), key=place)
            if descending != natural:
                known.reverse()
            expected = known + [row for row in chosen if row[sort] in (None, "")]
            found = every_row(view, filters=filters, sort=sort, descending=descending)
            assert [row["id"] for row in found] == [row["id"] for row in expected], filters
            query: dict[str, Any] = {"filters": filters, "sort": sort, "descending": descending, "limit": 4}
            page = view.pages(PageQuery(**query))
            ids: list[int] = []
            while page["next"]:
                page = view.pages(PageQuery(after=page["next"], **query))
            while True:
                ids = [row["id"] for row in page["rows"]] + ids
                if not page["previous"]:
                    break
                page = view.pages(PageQuery(after=page["previous"], **query))
            assert ids == [row["id"] for row in expected], filters


def test_facets_count_the_pages_that_all_other_filters_select(path: Path) -> None:
    with View.open(path) as view:
        whole = view.rows_of("pages", list(range(view.size)))
        for filters in FILTERS:
            for text in ("", "alpha", "/x"):
                found = view.pages(PageQuery(filters=filters, text=text))
                has = [r for r in whole if text in f"{r['url']}\n{r['title'] or ''}".lower()]
                assert found["total"] == sum(selects(row, filters) for row in has)
                for kind in FACETS:
                    others = {name: wanted for name, wanted in filters.items() if name != kind}
                    counts = Counter(row[kind] for row in has if selects(row, others))
                    shown = {entry["value"]: entry["pages"] for entry in found["facets"][kind]}
                    assert len(shown) == min(20, len(counts)), kind
                    assert shown.items() <= counts.items(), kind
                    assert sorted(shown.values())[::-1] == [n for _, n in counts.most_common(20)]


@pytest.mark.parametrize(
    "text", ["ALPHA", "ä", "\u202e", "100 %", "%", "_", "a.example/x", "\n", "t" * 50, "page1", "zeta\t"]
)
def test_texts_are_found_as_substrings(path: Path, text: str) -> None:
    with View.open(path) as view:
        whole = view.rows_of("pages", list(range(view.size)))
        expected = {r["id"] for r in whole if any(text.lower() in (r[n] or "").lower() for n in ("url", "title"))}
        assert {row["id"] for row in every_row(view, text=text)} == expected


def test_folders_add_up(path: Path) -> None:
    with View.open(path) as view:
        whole = view.rows_of("pages", list(range(view.size)))
        left = [row["prefix"] for row in view.folders()["rows"]]
        assert sum(row["pages"] for row in view.folders()["rows"]) == len(whole)
        while left:
            found = view.folders(left.pop())
            inside = [row for row in whole if row["folder"].startswith(found["folder"]["prefix"])]
            assert found["folder"]["pages"] == len(inside)
            assert found["folder"]["share"] == pytest.approx(sum(row["share"] or 0.0 for row in inside))
            left += [row["prefix"] for row in found["rows"]]
        assert sum(row["share"] for row in view.summary()["folders"]) == pytest.approx(1.0)


def test_a_treemap_of_many_hosts_has_a_rest() -> None:
    prefixes = [f"https://host{number}.example/" for number in range(200)]
    sums = {"own_share": np.full(200, 1 / 200), "own_pages": np.full(200, 3)}
    found = builds._top_folders(prefixes, sums)
    assert len(found) == 61
    assert found[-1] == {"name": "", "pages": 420, "share": pytest.approx(0.7)}


def test_links_are_those_of_the_survey(path: Path) -> None:
    with View.open(path) as view, sv.open(path) as survey:
        ranked, contexts = survey.as_graph(), 0
        for node, page in enumerate(ranked.pages.tolist()):
            expected = explain(ranked.graph, survey.ranking, node, top=1000)
            rows: list[dict[str, Any]] = []
            after = ""
            while True:
                found = view.in_links(page, limit=3, after=after)
                rows, after = rows + found["rows"], found["next"]
                if not after:
                    break
            assert found["total"] == len(rows)
            made_up = {link.name: (link.fraction, link.links) for link in expected.links}
            assert not expected.templates
            assert {row["url"]: row["links"] for row in rows} == {name: links for name, (_, links) in made_up.items()}
            if expected.share:
                fractions = {name: fraction for name, (fraction, _) in made_up.items()}
                assert {row["url"]: row["fraction"] for row in rows} == pytest.approx(fractions)
            known = survey.link_contexts(expected.name, [row["url"] for row in rows])
            shown = {row["url"]: row["context"] for row in rows if row["context"]}
            assert shown == {name: context._asdict() for name, context in known.items()}
            contexts += len(shown)
            mine = view.explanation(page, top=1000)["explanation"]
            theirs = expected.to_dict()
            for name in ("share", "position", "in_links", "dangling", "teleport", "path", "other_links"):
                assert mine[name] == pytest.approx(theirs[name]), name
            assert [link["id"] for link in mine["origins"]] == [int(ranked.pages[o.page]) for o in expected.origins]
        assert contexts > 50


def test_out_links_and_visits_are_those_of_the_journal(path: Path) -> None:
    with View.open(path) as view, sv.open(path) as survey:
        everything = list(survey.journal.visits())
        for page in range(view.size):
            own = [visit for visit in everything if visit.page == page][::-1]
            found = view.visits(page, limit=1000)["rows"]
            assert [(row["kind"], row["fetched_at"]) for row in found] == [(v.kind, v.fetched_at or None) for v in own]
            last = next((visit for visit in own if visit.kind == "fetched"), None)
            rows: list[dict[str, Any]] = []
            after = ""
            while True:
                links = view.out_links(page, limit=2, after=after)
                rows, after = rows + links["rows"], links["next"]
                if not after:
                    break
            expected = {} if last is None else dict.fromkeys(last.links.tolist(), "followed")
            expected |= {} if last is None else dict.fromkeys(last.out_of_scope.tolist(), "out of scope")
            assert {row["id"]: row["kind"] for row in rows} == expected
            assert all(row["context"]["text"] == f"to {row['id']}" for row in rows)


@pytest.mark.parametrize(
    "query",
    [
        PageQuery(sort="nothing"),
        PageQuery(limit=0),
        PageQuery(limit=10**9),
        PageQuery(after="x"),
        PageQuery(after="W10"),
        PageQuery(filters={"nothing": 1}),
        PageQuery(filters={"depth": "x"}),
        PageQuery(filters={"url": {"at_least": 1}}),
        PageQuery(filters={"depth": {"least": 1}}),
        PageQuery(text="x" * 2000),
    ],
)
def test_wrong_queries_get_a_sentence(path: Path, query: PageQuery) -> None:
    with View.open(path) as view, pytest.raises(UsageError):
        view.pages(query)


def test_tokens_of_another_order_are_refused(path: Path) -> None:
    with View.open(path) as view:
        token = view.pages(PageQuery(sort="url", limit=3))["next"]
        for sort, descending in (("title", None), ("url", True), ("share", None)):
            with pytest.raises(UsageError, match="token"):
                view.pages(PageQuery(sort=sort, descending=descending, after=token))
        with pytest.raises(UsageError, match="not a known URL"):
            view.page("https://nowhere.example/")
        with pytest.raises(UsageError, match="no page"):
            view.page(10**12)


def test_paging_continues_after_a_new_build(tmp_path: Path) -> None:
    survey, rng = made(tmp_path / "a.survey"), np.random.default_rng(2)
    grow(survey, rng, 40)
    build(survey)
    with View.open(survey) as view:
        first = view.pages(PageQuery(sort="url", limit=20))
    grow(survey, rng, 40)
    build(survey)
    with View.open(survey) as view:
        rest = every_row(view, sort="url")
        after = view.pages(PageQuery(sort="url", limit=1000, after=first["next"]))["rows"]
        last = first["rows"][-1]["url"].lower()
        assert [row["url"] for row in after] == [row["url"] for row in rest if row["url"].lower() > last]


def test_the_curve_of_the_crawl_is_preferred(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.survey"
    shutil.copytree(path, copy, ignore=shutil.ignore_patterns("view"))
    build(copy)
    (copy / "live").mkdir()
    curve = copy / "live" / "curve.tsv"
    with View.open(copy) as view:
        computed = view.curve()
        rows = [f"{page}\t{page}\t{page / 100}\t0.9\t{'nan' if page < 10 else 0.3}\n" for page in range(1, 11)]
        curve.write_text("".join(rows))
        assert view.curve()["at_least"] == [page / 100 for page in range(1, 11)]
        assert view.curve()["sampled"] == [*[None] * 9, 0.3]
        curve.write_text("".join(rows[:9]))  # a crawl of seconds
        assert view.curve() == computed
        for wrong in ("", "1\t2\n", "a\tb\tc\td\te\n", "\xff", "1\t1\t1\t1\t1\n" * 400_000):
            curve.write_text(wrong, encoding="latin-1")
            assert view.curve() == computed
        curve.unlink()
        curve.symlink_to(path / "survey.toml")
        assert view.curve() == computed


def test_urls_are_what_the_tests_mean() -> None:
    assert len({url(n) for n in range(400)}) > 300
    assert any(url(n).lower() == url(m).lower() for n in range(400) for m in range(n) if url(n) != url(m))
