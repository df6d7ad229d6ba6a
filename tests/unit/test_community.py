"""Global rank of local pages: over a graph, over a survey that is replayed, with back-links; and what is told of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import surveyor as sv
from oracles import dense_pagerank
from surveyor import UsageError
from surveyor.estimate.community import back_links as links
from surveyor.estimate.community.concluding import all_estimates, jackknife
from surveyor.estimate.community.estimators import estimate
from surveyor.estimate.community.known_graph import Plan, expand, rows_of
from surveyor.graph.back_links import Linking
from surveyor.graph.synthetic.generate import synthetic_web
from surveyor.kernels.crawled_graph import build_crawled_graph

WEB = synthetic_web("small")
LOCAL = np.sort(np.random.default_rng(8).permutation(WEB.graph.pages)[:300]).astype(np.int32)


def truth() -> np.ndarray:
    even = np.full(WEB.graph.pages, 1 / WEB.graph.pages)
    ranks = dense_pagerank(WEB.graph, 0.85, even, even)[LOCAL]
    return np.asarray(ranks / ranks.sum())


def test_all_numbers_are_of_the_local_pages() -> None:
    found = sv.community(WEB.graph, LOCAL, extra="n", truth=True)
    assert found.truth is not None
    assert np.abs(found.truth - truth()).sum() < 1e-8
    for scores in (found.local, found.scores, *(one.scores for one in found.estimates.values())):
        assert scores.shape == (300,)
        assert scores.sum() == pytest.approx(1, abs=1e-12)
    alone = build_crawled_graph(rows_of(WEB.graph), LOCAL)
    even = np.full(300, 1 / 300)
    expected = dense_pagerank(sv.Graph(alone.indptr, alone.indices), 0.85, even, even)
    assert np.abs(found.local - expected).sum() < 1e-8
    assert found.errors[0] == pytest.approx(found.compared("local").l1, abs=1e-4)
    assert found.errors[-1] == pytest.approx(found.compared("crawled").l1, abs=1e-4)
    assert found.compared().l1 < found.compared("local").l1
    assert found.extra.size == 300
    assert found.ending == "spent"
    assert found.rounds[-1].asked == 300


def test_positions_and_rows_fit_the_scores() -> None:
    found = sv.community(WEB.graph, LOCAL, extra=100)
    best = found.top(5)
    assert [row["position"] for row in best] == [1, 2, 3, 4, 5]
    assert [row["share"] for row in best] == pytest.approx(np.sort(found.scores)[::-1][:5], rel=1e-5)
    assert sorted(found.positions.tolist()) == sorted(found.local_positions.tolist()) == list(range(1, 301))
    row = found.moves(1)[0]
    assert abs(row["share"] - row["local_share"]) == pytest.approx(np.abs(found.scores - found.local).max())
    assert row["moved"] == row["local_position"] - row["position"]
    columns = found.columns()
    assert columns["name"][0] == best[0]["name"]
    assert found.to_dict(3)["pages"] == found.top(3)
    assert found.to_polars().height == 300
    assert "<table>" in found._repr_html_()


def test_movers_are_pages_outside_that_link_in() -> None:
    found = sv.community(WEB.graph, LOCAL, extra="n")
    for mover in found.movers(count=5):
        assert mover.page not in LOCAL
        assert np.isin(WEB.graph.links_of(mover.page), LOCAL).any()
    one = found.movers(page=found.top(1)[0]["name"], count=3)
    assert all(found.top(1)[0]["page"] in WEB.graph.links_of(mover.page) for mover in one)
    with pytest.raises(UsageError, match="is no local page"):
        found.movers(page=int(np.setdiff1d(np.arange(1500), LOCAL)[0]))


def test_jackknife_is_the_spread_of_answers_with_batches_left_out() -> None:
    done = expand(WEB.graph, LOCAL, Plan(120, batch=30))
    rows = rows_of(WEB.graph)
    spread = jackknife(
        done.known, LOCAL, done.batch_of, "crawled", lambda pages: build_crawled_graph(rows, pages), 0.85
    )
    answers = []
    for batch in range(1, 5):
        kept = build_crawled_graph(rows, done.known.pages[done.batch_of != batch])
        places = np.searchsorted(kept.pages, LOCAL).astype(np.int32)
        answers.append(estimate(kept, places, np.zeros(kept.pages.size, np.int64), "crawled", tolerance=1e-9).scores)
    centre = np.mean(answers, axis=0)
    expected = np.sqrt(3 / 4 * np.square(np.array(answers) - centre).sum(axis=0))
    assert spread is not None
    assert np.allclose(spread, expected, atol=1e-6)
    assert spread.sum() > 1e-4
    assert (
        jackknife(
            done.known, LOCAL, np.zeros_like(done.batch_of), "crawled", lambda p: build_crawled_graph(rows, p), 0.85
        )
        is None
    )


def test_no_extra_pages_is_an_estimate_from_known_links() -> None:
    found = sv.community(WEB.graph, LOCAL, extra=0)
    assert found.extra.size == 0
    assert found.spread is None
    assert found.ending == "spent"
    assert np.allclose(found.estimates["crawled"].scores, found.local, atol=1e-8)


def outside() -> np.ndarray:
    """The pages that link into the local domain."""
    into = np.isin(WEB.graph.indices, LOCAL)
    sources = np.repeat(np.arange(WEB.graph.pages), WEB.graph.out_degrees)
    return np.setdiff1d(sources[into], LOCAL)


def test_back_links_of_all_pages_around_are_as_good_as_reading_them(tmp_path: Path) -> None:
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
    read = sv.community(WEB.graph, LOCAL, extra=0, truth=True, start=sources)
    for method in ("crawled", "frontier"):
        scores = read.estimates[method].scores
        assert np.allclose(by_file.estimates[method].scores, by_graph.estimates[method].scores, atol=1e-9)
        if method == "crawled":  # pages that were read know all their goals, the others only those that are known
            assert np.abs(by_file.estimates[method].scores - scores).sum() < 0.05
    assert by_file.compared("frontier").l1 < 0.6 * plain.compared("frontier").l1
    assert f"{sources.size:,} pages that were not read" in by_file.notes[0]


def test_a_page_with_back_links_has_the_links_told_and_others() -> None:
    rows, web = rows_of(sv.Graph.from_arrays(np.array([0, 1, 0]), np.array([1, 0, 2]), 4)), 4
    found = build_crawled_graph(rows, np.array([0, 1], np.int32))
    back = {
        "two": Linking(("one", "elsewhere"), 3),
        "new": Linking(("zero", "one", "two")),
        "one": Linking(("zero",), 9),  # was read
        "idle": Linking(("two",)),  # links to no local page
    }
    names = {"zero": 0, "one": 1, "two": 2}
    grown, size, new, _ = links.added(rows, web, found, {0, 1}, back, names.get)
    assert (size, new.tolist()) == (6, [2, 5])
    again = build_crawled_graph(grown, np.array([0, 1, 2, 5], np.int32))
    told = [again.indices[a:b].tolist() for a, b in pairwise(again.indptr)]
    assert told == [[1, 2], [0], [1], [0, 1, 2]]
    assert again.leaving.tolist() == [0, 0, 2, 0]  # of three links one leads to a known page
    assert again.frontier.tolist() == [4]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://a.example/\n", "line 1 of .* is no link"),
        ("a\tb\tmany\n", "line 1 of .* is no link"),
    ],
)
def test_wrong_back_links_are_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "back.tsv").write_text(text)
    with pytest.raises(UsageError, match=told):
        sv.community(WEB.graph, LOCAL, extra=0, back_links=tmp_path / "back.tsv")


def test_back_links_that_tell_nothing_new_are_noted(tmp_path: Path) -> None:
    (tmp_path / "back.tsv").write_text(
        "# links\nfrom\tto\n-\thttps://a.example/\nhttps://a.example/\thttps://b.example/\n"
    )
    found = sv.community(WEB.graph, LOCAL, extra=0, back_links=tmp_path / "back.tsv")
    assert found.notes[0].startswith("no back-link is new")


def test_a_page_under_two_spellings_is_one_page(tmp_path: Path) -> None:
    names = WEB.graph.names
    assert names is not None
    local = [names[int(page)] for page in LOCAL[:3]]
    once = f"https://new.example/\t{local[0]}\t4\nhttps://new.example/\t{local[1]}\t4\n"
    twice = f"https://new.example\t{local[0]}\nHTTPS://new.example/#top\t{local[1]}\t4\nhttps://new.example/\t{local[0]}#x\n"
    found = []
    for text in (once, twice):
        (tmp_path / "back.tsv").write_text(text)
        found.append(sv.community(WEB.graph, LOCAL, extra=0, back_links=tmp_path / "back.tsv"))
    assert found[0].notes == found[1].notes == ("1 page that was not read is known to link to local ones",)
    assert np.array_equal(found[0].scores, found[1].scores)
    assert (np.diff(found[1].known.pages) > 0).all()


def test_another_address_of_a_page_is_that_page() -> None:
    rows, web = rows_of(sv.Graph.from_arrays(np.array([0, 1]), np.array([1, 0]), 4)), 4
    found = build_crawled_graph(rows, np.array([0, 1], np.int32))
    addresses = {"one": 1, "old one": 1, "zero": 0}
    back = {"old one": Linking(("zero",)), "new": Linking(("old one",), 1)}
    grown = links.added(rows, web, found, {0, 1}, back, addresses.get)
    assert grown.pages.tolist() == [5]  # the other was read, at its address
    assert grown.rows.targets[grown.rows.start[5] : grown.rows.end[5]].tolist() == [1]


def test_local_pages_that_are_missing_are_noted() -> None:
    found = sv.community(WEB.graph, [0, 1, 99999], extra=0)
    assert found.notes == ("1 of the pages that were to be local is not in the graph",)
    for given in (5, None, {1, 2}):
        with pytest.raises(UsageError, match="is no way to say which pages are local"):
            sv.community(WEB.graph, given)  # type: ignore[arg-type]


def test_local_pages_that_were_not_read_are_no_local_pages() -> None:
    done = expand(WEB.graph, LOCAL, Plan(20, batch=20))
    other = np.setdiff1d(np.arange(1500, dtype=np.int32), done.known.pages)[:3]
    with pytest.raises(UsageError, match="no longer among the pages read"):
        all_estimates(done.known, other, done.batch_of, 0.85, 1e-6)


def test_missing_back_links_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.tsv cannot be read: No such file"):
        sv.community(WEB.graph, LOCAL, extra=0, back_links=tmp_path / "none.tsv")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"select": "best"}, "no selection 'best'"),
        ({"estimator": "oracle"}, "no estimator 'oracle'"),
        ({"rounds": 0}, "0 rounds"),
        ({"damping": 1.0}, "damping 1.0 is not between"),
        ({"damping": 0.0}, "damping 0.0 is not between"),
        ({"rng": -1}, "rng is -1"),
        ({"rounds": 2.5}, "2.5 rounds"),
        ({"start": [9999]}, "no page 9999"),
        ({"start": [-1]}, "no page -1"),
        ({"still": -1.0}, "cannot move by less"),
        ({"extra": "lots"}, "'lots' is no number of extra pages"),
        ({"extra": -5}, "'-5' is no number of extra pages"),
        ({"contact": "me@example.org"}, "contact is for surveys"),
        ({"replay": True}, "replay is for surveys"),
    ],
)
def test_bad_input_is_told_in_a_sentence(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        sv.community(WEB.graph, LOCAL, **settings)  # type: ignore[arg-type]


def test_local_pages_that_are_none_or_all_are_told() -> None:
    with pytest.raises(UsageError, match="no page of this graph is local"):
        sv.community(WEB.graph, "host:nowhere.example")
    with pytest.raises(UsageError, match="nothing outside to learn from"):
        sv.community(WEB.graph, np.ones(WEB.graph.pages, np.bool_))


def test_a_domain_without_links_out_has_nothing_to_learn_from() -> None:
    graph = sv.Graph.from_edges([("a", "b"), ("b", "a"), ("c", "a")])
    found = sv.community(graph, ["a", "b"])
    assert found.ending == "nothing"
    assert found.extra.size == 0
    assert found.scores.tolist() == pytest.approx([0.5, 0.5])
