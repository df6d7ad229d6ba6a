"""What people read: numbers, tables, explanations and the HTML report."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import numpy as np
import pytest
from attack import attack
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.rank.explain import explain
from surveyor.rank.pagerank import pagerank
from surveyor.report import html_page, numbers
from surveyor.report.explanation import link_rows, origin_rows, rows_table, title_line
from surveyor.report.ranking import (
    RankingReport,
    check_names,
    check_suffix,
    error_plot,
    near_ties,
    page_table,
    ranking_html,
    read_start,
    share_plot,
    top_pages,
    write_ranks_file,
)
from surveyor.report.tables import Table, plain_lines, write_csv, write_text
from surveyor.store.tabular import unescape_cell

if TYPE_CHECKING:
    from pathlib import Path

    from surveyor.rank.pagerank import Ranking

NASTY = "<script>alert('x')</script><img src=x onerror=\"alert(1)\">&amp;"
CONTROL = "red\x1b[31m\u202ename\udcff"


@pytest.fixture(scope="module")
def graph() -> Graph:
    names = ["hub", NASTY, CONTROL, "leaf", "lonely"]
    links = [
        ("hub", NASTY),
        (NASTY, "hub"),
        (CONTROL, "hub"),
        ("hub", CONTROL),
        (CONTROL, "leaf"),
        ("lonely", "hub"),
    ]
    ids = {name: page for page, name in enumerate(names)}
    pairs = np.array([(ids[a], ids[b]) for a, b in links])
    return Graph.from_arrays(pairs[:, 0], pairs[:, 1], names=names)


@pytest.fixture(scope="module")
def ranking(graph: Graph) -> Ranking:
    return pagerank(graph, tolerance=1e-9)


def test_formatted_numbers() -> None:
    assert numbers.count(1234567) == "1,234,567"
    assert [numbers.counted(n, "page") for n in (0, 1, 2)] == ["0 pages", "1 page", "2 pages"]
    assert [numbers.amount(n) for n in (7, 9_999, 25_300_000, 812e9)] == ["7", "9,999", "25.3 M", "812 G"]
    shares = {1: "100 %", 0.0202: "2.02 %", 0.00041: "0.0410 %", 0: "0 %", 1e-9: "1.00e-07 %"}
    assert {share: numbers.percent(share) for share in shares} == shares
    times = {0: "0 s", 0.34: "340 ms", 1.2: "1.2 s", 75: "75 s", 252: "4 min", 7500: "2 h 5 min"}
    assert {seconds: numbers.duration(seconds) for seconds in times} == times
    assert [numbers.size(b) for b in (12, 1500, 38_000_000)] == ["12 bytes", "1.5 kB", "38 MB"]


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_an_upper_bound_is_never_shown_smaller(bound: float) -> None:
    shown = Decimal(numbers.at_most(bound))
    assert Decimal(bound) <= shown <= Decimal(bound) * Decimal("1.1")


@attack("random text with terminal escapes", area="output", must_hold="nothing printed holds control characters")
@settings(max_examples=40)
@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    assert all(char.isprintable() or char.isspace() for char in numbers.printable(text))
    assert "\x1b" not in numbers.printable(text)


def test_score_runs_from_0_to_100_and_orders_as_shares_do(graph: Graph, ranking: Ranking) -> None:
    pages = top_pages(graph, ranking, 99)
    assert pages[0].score == 100
    assert pages[-1].score == 0
    assert [page.score for page in pages] == sorted((page.score for page in pages), reverse=True)


def test_pages_carry_both_degrees(graph: Graph, ranking: Ranking) -> None:
    best = top_pages(graph, ranking, 1)[0]
    assert (best.name, best.in_links, best.out_links, best.position) == ("hub", 3, 2, 1)


def test_order_is_proven_only_where_scores_differ_by_more_than_the_error(ranking: Ranking) -> None:
    cycle = pagerank(Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a")]))
    assert [near_ties(cycle, number) for number in (0, 1, 2, 3, 99)] == [0, 1, 2, 2, 2]
    assert near_ties(ranking, 1) == 0
    loose = replace(ranking, error=1.0)
    assert near_ties(loose, 99) == ranking.scores.size - 1


def test_table_as_text_and_csv(graph: Graph, ranking: Ranking) -> None:
    table = page_table(top_pages(graph, ranking, 5))
    lines = plain_lines(table)
    assert lines[0].split() == ["score", "share", "in-links", "page"]
    assert "\x1b" not in "".join(lines)
    stream = io.StringIO()
    write_csv(table, stream)
    header, first, *_ = stream.getvalue().splitlines()
    assert header == "position,id,score,share,in_links,out_links,name"
    assert float(first.split(",")[3]) == ranking.scores[0]


def test_csv_is_exact_or_safe_for_a_terminal() -> None:
    table = Table(("page",), [("a",)], ("page", "share"), [("b\x1b[31m", 0.5)])
    exact, safe = io.StringIO(), io.StringIO()
    write_csv(table, exact)
    write_csv(table, safe, escape=True)
    assert [unescape_cell(cell) for cell in exact.getvalue().splitlines()[1].split(",")] == ["b\x1b[31m", "0.5"]
    assert safe.getvalue() == "page,share\nb\\x1b[31m,0.5\n"


@pytest.mark.parametrize("width", [20, 30, 50, 80])
def test_the_page_is_shown_on_a_narrow_terminal(
    width: int, graph: Graph, ranking: Ranking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    write_text(page_table(top_pages(graph, ranking, 5)), stream, rich=True, color=False)
    for word in ("score", "page", "hub", "lonely"):
        assert word in stream.getvalue()
    assert ("in-links" in stream.getvalue()) == (width >= 50)
    assert max(map(len, stream.getvalue().splitlines())) <= width


@attack("names with terminal markup and escape sequences", area="output", must_hold="printed literally")
def test_rich_table_takes_markup_and_escapes_literally() -> None:
    stream = io.StringIO()
    table = Table(("score", "page"), [("1", "[red]a[/red]\x1b[31m")], ("score", "page"), [(1, "a")])
    write_text(table, stream, rich=True, color=False)
    assert "[red]a[/red]\\x1b[31m" in stream.getvalue()


def test_explanation_parts_sum_to_one(graph: Graph, ranking: Ranking) -> None:
    for page in range(graph.pages):
        explanation = explain(graph, ranking, page, top=1)
        for rows in (link_rows(explanation), origin_rows(explanation)):
            table = rows_table(rows, "from")
            assert math.isclose(sum(record[1] for record in table.records), 1, abs_tol=1e-6)
        assert f"of 5   {explanation.in_links} in-link" in title_line(ranking, explanation)


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _report(graph: Graph, ranking: Ranking, title: str = "A web") -> RankingReport:
    return RankingReport(title, graph, ranking, explain(graph, ranking, 0), "surveyor rank a.graph")


def check_harmless(page: str) -> None:
    """Nothing runs, nothing is fetched, and hostile names are shown as text."""
    seen = Tags(page)
    assert len(page) < 2_000_000
    assert not seen.tags & {"script", "img", "iframe", "link", "a", "object", "embed"}
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in {"src", "href"}]
    assert all(value.startswith("#") for name, value in seen.attributes if name == "xlink:href")
    assert NASTY in "".join(seen.words)
    assert "\x1b" not in page
    assert "red\\x1b[31m\\u202ename\\xff" in page
    assert "@import" not in page


@attack(
    "page names with HTML and scripts (report of a ranking)", area="output", must_hold="no script, no external resource"
)
def test_report_is_one_harmless_file(graph: Graph, ranking: Ranking, tmp_path: Path) -> None:
    path = html_page.write(ranking_html(_report(graph, ranking, title=NASTY)), tmp_path / "report.html")
    page = path.read_text("utf-8")
    check_harmless(page)
    assert page.count("<svg") == 2
    assert "surveyor rank a.graph" in page


def test_report_is_the_same_every_time_and_follows_dark_mode(graph: Graph, ranking: Ranking) -> None:
    page = ranking_html(_report(graph, ranking))
    assert page == ranking_html(_report(graph, ranking))
    assert "prefers-color-scheme: dark" in page
    for plot in (share_plot(graph, ranking), error_plot(ranking)):
        assert "var(--one)" in plot
        assert "#0" not in plot.replace('xlink:href="#', "")


def test_report_without_plots(graph: Graph, ranking: Ranking) -> None:
    page = ranking_html(RankingReport("A web", graph, ranking, explain(graph, ranking, 0), "", plots=False))
    assert "<svg" not in page
    assert "Top pages" in page


def test_scores_are_written_and_read_back(graph: Graph, ranking: Ranking, tmp_path: Path) -> None:
    for name in ("ranks.csv", "ranks.csv.gz", "ranks.npy"):
        start = read_start(graph, write_ranks_file(graph, ranking, tmp_path / name))
        assert np.array_equal(start.scores, ranking.scores)
        assert start.known == start.ranks == graph.pages
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(write_ranks_file(graph, ranking, tmp_path / "ranks.parquet"))
    assert table.column_names == ["id", "share", "name"]
    files = ["ranks.csv", "ranks.csv.gz", "ranks.npy", "ranks.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_common_crawl_ranks_start_a_graph_that_has_changed(tmp_path: Path) -> None:
    old = Graph.from_edges([("a.example", "b.example"), ("b.example", "a.example"), ("c.example", "a.example")])
    ranking = pagerank(old)
    path = write_ranks_file(old, ranking, tmp_path / "ranks.txt.gz")
    new = Graph.from_edges([("new.example", "a.example"), ("b.example", "c.example")])
    start = read_start(new, path)
    assert start.scores[new.page("a.example")] == pytest.approx(ranking.share("a.example"))
    assert start.scores[new.page("new.example")] == 1 / 4
    assert (start.ranks, start.known) == (3, 3)


def test_parquet_ranks_start_a_ranking(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    named = Graph.from_edges([("a", "b"), ("b", "a"), ("c", "a")])
    for graph in (named, Graph(named.indptr, named.indices)):
        ranking = pagerank(graph)
        start = read_start(graph, write_ranks_file(graph, ranking, tmp_path / "ranks.parquet"))
        assert np.array_equal(start.scores, ranking.scores)
    with pytest.raises(InputError, match="none of the 3 ranks"):
        read_start(Graph.from_edges([("x", "y")]), tmp_path / "ranks.parquet")


def test_common_crawl_ranks_are_rejected_where_names_are_not_hosts(tmp_path: Path) -> None:
    graph = Graph.from_edges([("https://www.site73.example/", "https://b.example/")])
    with pytest.raises(UsageError, match="hosts or domains"):
        write_ranks_file(graph, pagerank(graph), tmp_path / "ranks.txt.gz")
    check_names(graph, "ranks.csv")
    check_names(Graph.from_edges([("a.example", "b.example")]), "ranks.txt")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.npy", "no"),
        ("a.npy", ""),
        ("a.csv", "x,y\n1,2\n"),
        ("a.csv", ""),
        ("a.csv", "id,share,name\n0\n"),
        ("a.csv", "id,share\n0,0.5\n"),
        ("a.txt", "no"),
        ("a.parquet", ""),
    ],
)
def test_files_that_hold_no_ranks_are_rejected(name: str, text: str, graph: Graph, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        read_start(graph, tmp_path / name)
    assert caught.value.hint


def test_scores_of_another_graph_and_unknown_suffixes_are_rejected(graph: Graph, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(99))
    with pytest.raises(InputError, match="99 scores"):
        read_start(graph, tmp_path / "a.npy")
    with pytest.raises(UsageError, match=r"ranks\.xyz has no known suffix"):
        check_suffix("ranks.xyz")
