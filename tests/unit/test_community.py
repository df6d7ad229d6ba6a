"""Estimated global rank of local pages over a graph and with back-links; invalid arguments."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import surveyor as sv
from oracles import dense_pagerank
from surveyor import UsageError
from surveyor.estimate.community.estimators import all_estimates
from surveyor.estimate.community.known_graph import ExpansionPlan, add_back_links, expand, rows_of
from surveyor.graph.back_links import LinkingPage
from surveyor.graph.synthetic.generate import synthetic_web
from surveyor.kernels.crawled_graph import build_crawled_graph

pytestmark = pytest.mark.usefixtures("tiny_communities")

WEB = synthetic_web("small")
LOCAL = np.sort(np.random.default_rng(8).permutation(WEB.graph.pages)[:300]).astype(np.int32)


def truth() -> np.ndarray:
    even = np.full(WEB.graph.pages, 1 / WEB.graph.pages)
    ranks = dense_pagerank(WEB.graph, 0.85, even, even)[LOCAL]
    return np.asarray(ranks / ranks.sum())


def test_scores_against_a_dense_pagerank() -> None:
    found = sv.community(WEB.graph, LOCAL, extra="n", truth=True)
    assert found.truth is not None
    assert np.abs(found.truth - truth()).sum() < 1e-8
    for scores in (found.local_scores, found.scores, *(one.scores for one in found.estimates.values())):
        assert scores.shape == (300,)
        assert scores.sum() == pytest.approx(1, abs=1e-12)
    alone = build_crawled_graph(rows_of(WEB.graph), LOCAL)
    even = np.full(300, 1 / 300)
    expected = dense_pagerank(sv.Graph(alone.indptr, alone.indices), 0.85, even, even)
    assert np.abs(found.local_scores - expected).sum() < 1e-8
    assert found.errors[0] == pytest.approx(found.compare("local").l1, abs=1e-4)
    assert found.errors[-1] == pytest.approx(found.compare("crawled").l1, abs=1e-4)
    assert found.compare().l1 < found.compare("local").l1
    assert found.extra.size == 300
    assert found.ending == "complete"
    assert found.rounds[-1].requested == 300


def test_positions_and_rows_match_the_scores() -> None:
    found = sv.community(WEB.graph, LOCAL, extra=100)
    best = found.top(5)
    assert [row["position"] for row in best] == [1, 2, 3, 4, 5]
    assert [row["share"] for row in best] == pytest.approx(np.sort(found.scores)[::-1][:5], rel=1e-5)
    assert sorted(found.positions.tolist()) == sorted(found.local_positions.tolist()) == list(range(1, 301))
    row = found.largest_changes(1)[0]
    assert abs(row["share"] - row["local_share"]) == pytest.approx(np.abs(found.scores - found.local_scores).max())
    assert row["change"] == row["local_position"] - row["position"]
    columns = found.columns()
    assert columns["name"][0] == best[0]["name"]
    assert found.to_dict(3)["pages"] == found.top(3)
    assert found.to_polars().height == 300
    assert "<table>" in found._repr_html_()


def test_movers_are_outside_pages_that_link_to_local_ones() -> None:
    found = sv.community(WEB.graph, LOCAL, extra="n")
    for mover in found.movers(count=5):
        assert mover.page not in LOCAL
        assert np.isin(WEB.graph.links_of(mover.page), LOCAL).any()
    one = found.movers(page=found.top(1)[0]["name"], count=3)
    assert all(found.top(1)[0]["id"] in WEB.graph.links_of(mover.page) for mover in one)
    with pytest.raises(UsageError, match="is not a local page"):
        found.movers(page=int(np.setdiff1d(np.arange(1500), LOCAL)[0]))


def test_no_extra_pages() -> None:
    found = sv.community(WEB.graph, LOCAL, extra=0)
    assert found.extra.size == 0
    assert "no page was fetched in rounds" in found.notes[-1]
    assert found.ending == "complete"
    assert np.allclose(found.estimates["crawled"].scores, found.local_scores, atol=1e-8)


def outside() -> np.ndarray:
    """The pages that link into the local domain."""
    into = np.isin(WEB.graph.indices, LOCAL)
    sources = np.repeat(np.arange(WEB.graph.pages), WEB.graph.out_degrees)
    return np.setdiff1d(sources[into], LOCAL)


def test_back_links_of_all_neighbours_replace_fetching_them(tmp_path: Path) -> None:
    sources = outside()
    table = tmp_path / "back.tsv"
    names = WEB.graph.names
    assert names is not None
    lines = [
        f"{names[int(page)]}\t{names[int(target)]}\t{WEB.graph.out_degrees[page]}\n"
        for page in sources
        for target in WEB.graph.links_of(int(page))
    ]
    table.write_text("source\ttarget\tlinks\n# all of them\n" + "".join(lines))
    plain = sv.community(WEB.graph, LOCAL, extra=0, truth=True)
    by_file = sv.community(WEB.graph, LOCAL, extra=0, truth=True, back_links=table)
    by_graph = sv.community(WEB.graph, LOCAL, extra=0, truth=True, back_links=WEB.graph)
    read = sv.community(WEB.graph, LOCAL, extra=0, truth=True, known=sources)
    for method in ("crawled", "frontier"):
        scores = read.estimates[method].scores
        assert np.allclose(by_file.estimates[method].scores, by_graph.estimates[method].scores, atol=1e-9)
        if method == "crawled":  # of fetched pages all targets are known, of others only those in the table
            assert np.abs(by_file.estimates[method].scores - scores).sum() < 0.05
    assert by_file.compare("frontier").l1 < 0.6 * plain.compare("frontier").l1
    assert f"{sources.size:,} pages that were not fetched" in by_file.notes[0]


def test_rows_of_pages_known_by_back_links() -> None:
    rows, web = rows_of(sv.Graph.from_arrays(np.array([0, 1, 0]), np.array([1, 0, 2]), 4)), 4
    found = build_crawled_graph(rows, np.array([0, 1], np.int32))
    back = {
        "two": LinkingPage(("one", "elsewhere"), 3),
        "new": LinkingPage(("zero", "one", "two")),
        "one": LinkingPage(("zero",), 9),  # was fetched
        "idle": LinkingPage(("two",)),  # links to no local page
    }
    names = {"zero": 0, "one": 1, "two": 2}
    grown, size, new, _ = add_back_links(rows, web, found, {0, 1}, back, names.get)
    assert (size, new.tolist()) == (6, [2, 5])
    again = build_crawled_graph(grown, np.array([0, 1, 2, 5], np.int32))
    targets = [again.indices[a:b].tolist() for a, b in pairwise(again.indptr)]
    assert targets == [[1, 2], [0], [1], [0, 1, 2]]
    assert again.leaving.tolist() == [0, 0, 2, 0]  # one of three links leads to a known page
    assert again.frontier.tolist() == [4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("https://a.example/\n", "line 1 of .* is not a link"),
        ("a\tb\tmany\n", "line 1 of .* is not a link"),
    ],
)
def test_malformed_back_links(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "back.tsv").write_text(text)
    with pytest.raises(UsageError, match=message):
        sv.community(WEB.graph, LOCAL, extra=0, back_links=tmp_path / "back.tsv")


def test_back_links_without_new_pages(tmp_path: Path) -> None:
    (tmp_path / "back.tsv").write_text(
        "# links\nfrom\tto\n-\thttps://a.example/\nhttps://a.example/\thttps://b.example/\n"
    )
    found = sv.community(WEB.graph, LOCAL, extra=0, back_links=tmp_path / "back.tsv")
    assert found.notes[0].startswith("the back-links add no page")


def test_two_spellings_of_a_url_are_one_page(tmp_path: Path) -> None:
    names = WEB.graph.names
    assert names is not None
    local = [names[int(page)] for page in LOCAL[:3]]
    once = f"https://new.example/\t{local[0]}\t4\nhttps://new.example/\t{local[1]}\t4\n"
    twice = f"https://new.example\t{local[0]}\nHTTPS://new.example/#top\t{local[1]}\t4\nhttps://new.example/\t{local[0]}#x\n"
    found = []
    for text in (once, twice):
        (tmp_path / "back.tsv").write_text(text)
        found.append(sv.community(WEB.graph, LOCAL, extra=0, back_links=tmp_path / "back.tsv"))
    assert found[0].notes == found[1].notes
    assert found[0].notes[0].startswith("1 page that was not fetched links to local pages")
    assert np.array_equal(found[0].scores, found[1].scores)
    assert (np.diff(found[1].known.pages) > 0).all()


def test_back_links_follow_redirects() -> None:
    rows, web = rows_of(sv.Graph.from_arrays(np.array([0, 1]), np.array([1, 0]), 4)), 4
    found = build_crawled_graph(rows, np.array([0, 1], np.int32))
    addresses = {"one": 1, "old one": 1, "zero": 0}
    back = {"old one": LinkingPage(("zero",)), "new": LinkingPage(("old one",), 1)}
    grown = add_back_links(rows, web, found, {0, 1}, back, addresses.get)
    assert grown.pages.tolist() == [5]  # the other was fetched, under its target URL
    assert grown.rows.targets[grown.rows.start[5] : grown.rows.end[5]].tolist() == [1]


def test_missing_local_pages() -> None:
    found = sv.community(WEB.graph, [0, 1, 99999], extra=0)
    assert found.notes[0] == "1 of the local pages is not in the graph"
    for given in (5, None, {1, 2}):
        with pytest.raises(UsageError, match="local must be a rule or a list of pages, got"):
            sv.community(WEB.graph, given)  # type: ignore[arg-type]


def test_estimates_need_fetched_local_pages() -> None:
    done = expand(WEB.graph, LOCAL, ExpansionPlan(20, batch=20))
    other = np.setdiff1d(np.arange(1500, dtype=np.int32), done.known.pages)[:3]
    with pytest.raises(UsageError, match="not among the fetched pages"):
        all_estimates(done.known, other, done.batch_of, 0.85, 1e-6)


def test_missing_back_link_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.tsv cannot be read: No such file"):
        sv.community(WEB.graph, LOCAL, extra=0, back_links=tmp_path / "none.tsv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select": "best"}, "unknown select 'best'"),
        ({"estimator": "oracle"}, "unknown estimator 'oracle'"),
        ({"rounds": 0}, "rounds must be an integer of at least 1, got 0"),
        ({"damping": 1.0}, r"damping must be in \(0, 1\), got 1"),
        ({"damping": 0.0}, r"damping must be in \(0, 1\), got 0"),
        ({"rng": -1}, "rng must be an integer of at least 0, got -1"),
        ({"rounds": 2.5}, "rounds must be an integer of at least 1, got 2.5"),
        ({"known": [9999]}, "no page 9999"),
        ({"known": [-1]}, "no page -1"),
        ({"stable": -1.0}, "stable must be at least 0, got -1"),
        ({"extra": "lots"}, "extra must be .* got 'lots'"),
        ({"extra": -5}, "extra must be .* got '-5'"),
        ({"contact": "me@example.org"}, "contact applies to surveys only"),
        ({"replay": True}, "replay applies to surveys only"),
    ],
)
def test_invalid_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sv.community(WEB.graph, LOCAL, **options)  # type: ignore[arg-type]


def test_local_pages_that_are_none_or_all() -> None:
    with pytest.raises(UsageError, match="no page of this graph matches local"):
        sv.community(WEB.graph, "host:nowhere.example")
    with pytest.raises(UsageError, match="no page is left outside"):
        sv.community(WEB.graph, np.ones(WEB.graph.pages, np.bool_))


def test_a_domain_without_links_to_other_pages() -> None:
    graph = sv.Graph.from_edges([("a", "b"), ("b", "a"), ("c", "a")])
    found = sv.community(graph, ["a", "b"])
    assert found.ending == "no_frontier"
    assert found.extra.size == 0
    assert found.scores.tolist() == pytest.approx([0.5, 0.5])
