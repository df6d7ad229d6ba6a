"""Domain scores over pieces: the bytes of one graph, whatever the cut, the workers and the losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slow_cases import pairs
from surveyor import Graph, SurveyError, UsageError, domains
from surveyor.graph.names import Names
from surveyor.graph.pieces import tasks as task_module
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.split import split_graph
from surveyor.graph.pieces.tasks import TaskSetup, TaskWorker, WorkersLost
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.domains.scores import DomainOptions, Domains
from surveyor.rank.pieces import supporters
from surveyor.rank.pieces.domains import score_with
from webs import chain, clique_and_cycle, cycle, graphs, random_web, star, stuck_and_pair

SCORES = ("tse", "supp", "in", "win", "qvs", "harmonic")
SAMPLED = DomainOptions(p=0.4)


def named(graph: Graph, hosts: int, seed: int = 1) -> Graph:
    """The same graph with names whose hosts are cut in another order than that of the ids."""
    names = [f"h{host}.example" for host in np.random.default_rng(seed).permutation(graph.pages) % hosts]
    urls = [f"https://{host}/{page}" for page, host in enumerate(names)]
    return Graph(graph.indptr, graph.indices, names=Names.of(urls))


def hub(pages: int) -> Graph:
    """Every page links to page 3, which links to every second one."""
    others = np.array([page for page in range(pages) if page != 3])
    sources, targets = np.append(others, np.full(others[::2].size, 3)), np.append(np.full(others.size, 3), others[::2])
    return Graph.from_arrays(sources, targets, pages)


ADVERSE = {
    "no links": Graph.from_arrays(np.empty(0, int), np.empty(0, int), 9),
    "no pages": Graph.from_arrays(np.empty(0, int), np.empty(0, int), 0),
    "one page": Graph.from_arrays(np.empty(0, int), np.empty(0, int), 1),
    "cycle": cycle(10),
    "star": star(20),
    "chain": chain(12),
    "clique and cycle": clique_and_cycle(6, 11),
    "disconnected": stuck_and_pair(),
    "hub": hub(70),
    "web": random_web(200, 1500, 3),
    "hosts": named(random_web(200, 1500, 3), 12),
    "giant host": named(random_web(60, 300, 4), 1),
}


def assert_same(ours: Domains, whole: Domains) -> None:
    """Compare bytes, intervals and the listed domains."""
    assert list(ours.scores) == list(whole.scores)
    for name, score in whole.scores.items():
        assert_same_score(ours.scores[name], score)
    assert [row.to_dict() for row in ours.top(12)] == [row.to_dict() for row in whole.top(12)]


def assert_same_score(ours: Reputation, whole: Reputation) -> None:
    assert ours.raw.dtype == whole.raw.dtype
    assert ours.raw.tobytes() == whole.raw.tobytes()
    for mine, theirs in zip(ours.intervals(), whole.intervals(), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert ours.top(5).tolist() == whole.top(5).tolist()
    assert {**ours.method, "mode": ""} == {**whole.method, "mode": ""}


@pytest.mark.parametrize(("name", "count"), pairs(ADVERSE, [1, 3]))
def test_scores_are_those_of_one_graph(tmp_path: Path, name: str, count: int) -> None:
    graph = ADVERSE[name]
    pieces = split_graph(graph, tmp_path / "pieces", count)
    assert_same(score_with(pieces, SCORES), domains(graph, SCORES))
    assert_same(score_with(pieces, "tse", options=SAMPLED), domains(graph, "tse", options=SAMPLED))
    assert [path.name for path in tmp_path.iterdir()] == ["pieces"], "work folders are removed with their results"


@pytest.mark.parametrize("graph", [star(9), hub(12), named(chain(7), 3)], ids=["star", "hub", "chain"])
@pytest.mark.slow
def test_more_pieces_than_pages(tmp_path: Path, graph: Graph) -> None:
    pieces = split_graph(graph, tmp_path / "pieces", 20)
    assert min(piece.pages for piece in pieces.counts) == 0
    assert_same(score_with(pieces, SCORES), domains(graph, SCORES))


@given(graphs(), st.integers(1, 6), st.integers(1, 24), st.integers(0, 2**64), st.sampled_from([0.05, 0.5, 1.0]))
@settings(max_examples=15, deadline=None)
@pytest.mark.slow
def test_any_cut_and_random_seed(tmp_path_factory, graph: Graph, count: int, hosts: int, rng: int, p: float) -> None:  # type: ignore[no-untyped-def]
    graph = named(graph, hosts, rng % 1000)
    pieces = split_graph(graph, tmp_path_factory.mktemp("pieces") / "pieces", count)
    options = DomainOptions(p=p, threads=2)
    ours = score_with(pieces, SCORES, rng=rng, options=options)
    assert_same(ours, domains(graph, SCORES, rng=rng, options=options))


def test_the_sample_grows_as_in_one_graph(tmp_path: Path) -> None:
    graph = random_web(5000, 60_000, 8)
    pieces = split_graph(graph, tmp_path / "pieces", 4)
    for top, error in ((50, 0.2), (10, 0.05), (4000, 0.3)):
        ours, whole = score_with(pieces, "tse", top=top, error=error), domains(graph, "tse", top=top, error=error)
        assert_same(ours, whole)
    assert 0 < domains(graph, "tse", top=50, error=0.2).main.method["p"] < 1


def test_lists_beyond_the_memory_are_counted_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = named(random_web(500, 5000, 2), 40)
    pieces = split_graph(graph, tmp_path / "pieces", 3)
    found: list[int] = []
    count = supporters.PieceSample._count

    def counted(self: supporters.PieceSample, first: int, last: int) -> None:
        found.append(first)
        count(self, first, last)

    monkeypatch.setattr(supporters.PieceSample, "_count", counted)
    monkeypatch.setattr(supporters, "PIECE", 100)  # links of a block of rows
    little = score_with(pieces, ("supp", "tse"), options=DomainOptions(p=0.7, memory=20_000, threads=1))
    assert len(found) > 8
    assert_same(little, domains(graph, ("supp", "tse"), options=DomainOptions(p=0.7)))


def test_ranks_are_within_both_errors(tmp_path: Path) -> None:
    graph = named(random_web(400, 3000, 5), 30)
    ours, whole = score_with(split_graph(graph, tmp_path / "pieces", 4), "pagerank"), domains(graph, "pagerank")
    assert np.abs(ours.main.scores - whole.main.scores).sum() <= ours.main.method["error"] + whole.main.method["error"]


class Losing:
    """Several workers in this process, one of which is lost in some steps, before or after its work."""

    def __init__(self, setup: TaskSetup, workers: int, lose: set[int]) -> None:
        pieces = setup.assigned[0]
        self.setup = setup._replace(assigned=tuple(pieces[place::workers] for place in range(workers)))
        self.lose, self.calls, self.workers = lose, 0, list[TaskWorker]()

    def start(self) -> None:
        self.close()
        self.workers = [self.setup.worker(place) for place in range(len(self.setup.assigned))]

    def run(self, step: int, name: str, arguments: Any) -> list[Any]:
        self.calls += 1
        results: dict[int, Any] = {}
        for place, worker in enumerate(self.workers):
            if place == 1 and self.calls in self.lose and self.calls % 2:
                raise WorkersLost("before its work")
            found, _ = worker.run(step, name, arguments, ())
            results |= zip(self.setup.assigned[place], found, strict=True)
        if self.calls in self.lose:
            raise WorkersLost("after its work")
        return [results[piece] for piece in sorted(results)]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()


@pytest.mark.slow
def test_lost_workers_change_nothing(tmp_path: Path) -> None:
    graph = named(random_web(300, 2000, 6), 20)
    pieces = split_graph(graph, tmp_path / "pieces", 5)
    whole = domains(graph, SCORES, options=SAMPLED)
    for lose in ({1, 2, 3}, set(range(4, 40, 3))):
        ours = score_with(pieces, SCORES, options=SAMPLED, executor=lambda setup, lose=lose: Losing(setup, 2, lose))  # type: ignore[misc]
        assert_same(ours, whole)


def test_workers_that_are_always_lost_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_module, "ATTEMPTS", 3)
    pieces = split_graph(star(9), tmp_path / "pieces", 2)
    with pytest.raises(SurveyError, match="workers were lost 3 times in one step"):
        score_with(pieces, "in", executor=lambda setup: Losing(setup, 2, set(range(99))))
    assert [path.name for path in tmp_path.iterdir()] == ["pieces"]


def test_what_cannot_be_computed_names_what_can(tmp_path: Path) -> None:
    pieces = split_graph(star(9), tmp_path / "pieces", 2)
    with pytest.raises(UsageError, match="bv cannot be computed over a graph in pieces") as error:
        score_with(pieces, ("in", "bv"))
    assert "tse, supp, in, win, pagerank, harmonic, qvs" in error.value.hint
    with pytest.raises(UsageError, match="depth must be 2 over a graph in pieces, got 3"):
        score_with(pieces, "tse", options=DomainOptions(depth=3))
    with pytest.raises(UsageError, match="unknown score 'x'"):
        score_with(pieces, "x")
    assert list(score_with(pieces, "all").scores) == ["tse", "in", "win", "pagerank", "harmonic", "qvs"]


def test_results_find_domains_by_name(tmp_path: Path) -> None:
    graph = named(random_web(50, 300, 7), 9)
    ours = score_with(split_graph(graph, tmp_path / "pieces", 3), "in")
    assert graph.names is not None
    for name in graph.names:
        assert ours[name].to_dict() == domains(graph, "in")[name].to_dict()
    with pytest.raises(UsageError, match="no page named"):
        ours.graph.page("https://nowhere.example/")
    plain = score_with(split_graph(star(5), tmp_path / "plain", 2), "in").graph
    assert (plain.name(3), plain.pages, plain.links) == ("3", 6, star(5).links)
    with pytest.raises(UsageError, match="the graph has no names"):
        plain.page("a")


def test_numbers_with_gaps_are_not_ids(tmp_path: Path) -> None:
    from surveyor.cluster.building import build_pieces

    path = tmp_path / "links.txt"
    path.write_text("5000000000 7\n7 9000000000\n9000000000 5000000000\n12 7\n")
    pieces = build_pieces(path, tmp_path / "pieces", 2)
    assert isinstance(pieces, Pieces)
    result = score_with(pieces, ("in", "win"))
    assert sorted(result.main.scores.tolist()) == [0, 1, 1, 2]
