"""PageRank over pieces: within both stated errors of one graph, and the same bytes however it is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import dense_pagerank
from slow_cases import pairs
from surveyor import Graph, NotConverged, SurveyError, UsageError, pagerank
from surveyor.arrays import FloatArray
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.split import split_graph
from surveyor.graph.pieces.tasks import LocalExecutor, WorkersLost
from surveyor.rank.pieces import sweeps as piece_sweeps
from surveyor.rank.pieces.ranking import PieceOptions, PiecesRanking, rank_with
from surveyor.rank.pieces.worker import PieceWorker, WorkerSetup
from webs import chain, clique_and_cycle, cycle, graphs, random_web, star, stuck_and_pair


def exact_ranks(graph: Graph) -> FloatArray:
    uniform = np.full(graph.pages, 1 / graph.pages)
    return dense_pagerank(graph, 0.85, uniform, uniform)


def scores_of(ranking: PiecesRanking) -> FloatArray:
    """Scores by page number."""
    scores = np.full(ranking.pieces.pages, np.nan)
    for piece in ranking.pieces:
        scores[piece.page_numbers(np.arange(piece.pages))] = ranking.scores(piece.number)
    return scores


class Processes:
    """Workers in this process that exchange arrays like those of a cluster; some steps fail."""

    def __init__(self, setup: WorkerSetup, workers: int, lose: set[int] | None = None) -> None:
        pieces = setup.assigned[0]
        self.setup = setup._replace(assigned=tuple(pieces[place::workers] for place in range(workers)))
        self.lose, self.calls = lose or set(), 0
        self.workers: list[PieceWorker] = []
        self.boxes: list[list[FloatArray]] = []

    def start(self) -> None:
        self.close()
        self.workers = [PieceWorker(self.setup, place) for place in range(len(self.setup.assigned))]

    def run(self, step: int, name: str, arguments: Any) -> list[Any]:
        self.calls += 1
        results: dict[int, Any] = {}
        boxes = []
        for place, worker in enumerate(self.workers):
            if place == 1 and self.calls in self.lose:
                raise WorkersLost("a test")
            inbox = [box[place] for box in self.boxes] if self.boxes else []
            found, out = worker.run(step, name, arguments, inbox)
            again, _ = worker.run(step, name, arguments, inbox) if name != "start" else (found, out)
            assert again == found, "a repeated call changes nothing"
            results |= zip(self.setup.assigned[place], found, strict=True)
            boxes.append(out)
        self.boxes = boxes if boxes[0] else self.boxes
        return [results[piece] for piece in sorted(results)]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()


ADVERSE = {
    "dangling only": Graph.from_arrays(np.empty(0, int), np.empty(0, int), 9),
    "one page": Graph.from_arrays(np.empty(0, int), np.empty(0, int), 1),
    "cycle": cycle(10),
    "star": star(20),
    "chain": chain(12),
    "clique and cycle": clique_and_cycle(6, 11),
    "disconnected": stuck_and_pair(),
    "web": random_web(300, 2000, 3),
    "hosts": Graph.from_arrays(
        np.arange(60),
        (np.arange(60) * 7 + 1) % 60,
        60,
        names=[f"http://{page % 3}.example/{page}" for page in range(60)],
    ),
    "giant host": Graph.from_arrays(
        np.arange(30),
        np.arange(1, 31),
        names=[f"http://{'big' if page else 'small'}.example/{page}" for page in range(31)],
    ),
}


@pytest.mark.parametrize(("name", "count"), pairs(ADVERSE, [1, 3, 40]))
def test_scores_are_within_both_stated_errors(tmp_path: Path, name: str, count: int) -> None:
    graph = ADVERSE[name]
    pieces = split_graph(graph, tmp_path / "pieces", count)
    for tolerance in (1e-3, 1e-11):
        ranking = rank_with(pieces, tolerance=tolerance)
        scores = scores_of(ranking)
        whole = pagerank(graph, tolerance=tolerance)
        assert ranking.error <= tolerance
        assert np.abs(scores - exact_ranks(graph)).sum() <= ranking.error
        assert np.abs(scores - whole.scores).sum() <= ranking.error + whole.error
        best = ranking.top(5)
        numbers = [int(pieces[page >> 32].page_numbers(np.array([page & 0xFFFFFFFF]))[0]) for page in best.tolist()]
        assert numbers == np.lexsort((np.arange(graph.pages), -scores))[:5].tolist()
        assert [ranking.share(int(page)) for page in best] == scores[numbers].tolist()


@given(graphs(), st.integers(1, 5), st.data())
@settings(max_examples=40, deadline=None)
@pytest.mark.slow
def test_personalised_ranks_are_within_the_error(tmp_path_factory, graph: Graph, count: int, data: Any) -> None:  # type: ignore[no-untyped-def]
    pieces = split_graph(graph, tmp_path_factory.mktemp("pieces") / "pieces", count)
    weights = data.draw(st.dictionaries(st.integers(0, graph.pages - 1), st.floats(0.1, 10), min_size=1))
    dangling = data.draw(st.sampled_from(["teleport", "uniform"]))
    damping = data.draw(st.sampled_from([0.0, 0.5, 0.85, 0.99]))
    solver = data.draw(st.sampled_from(["auto", "power", "seidel"]))
    ids = pieces.find_all([str(page) for page in weights])
    teleport = {page: weight for page, weight in zip(ids, weights.values(), strict=True) if page is not None}
    ranking = rank_with(
        pieces, damping, 1e-9, teleport, dangling=dangling, options=PieceOptions(solver=solver, max_sweeps=4000)
    )
    vector = np.zeros(graph.pages)
    vector[list(weights)] = list(weights.values())
    vector /= vector.sum()
    uniform = np.full(graph.pages, 1 / graph.pages)
    exact = dense_pagerank(graph, damping, vector, vector if dangling == "teleport" else uniform)
    assert np.abs(scores_of(ranking) - exact).sum() <= ranking.error <= 1e-9


@pytest.mark.parametrize("workers", [2, 3, 7])
def test_bytes_do_not_depend_on_workers_or_threads(tmp_path: Path, workers: int) -> None:
    pieces = split_graph(random_web(900, 8000, 1), tmp_path / "pieces", 6)
    alone = rank_with(pieces, tolerance=1e-10, options=PieceOptions(threads=1))
    for threads in (None, 3):
        other = rank_with(
            pieces,
            tolerance=1e-10,
            options=PieceOptions(threads=threads),
            executor=lambda setup: Processes(setup, workers),
        )
        assert scores_of(other).tobytes() == scores_of(alone).tobytes()
        assert other.history == alone.history


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_lost_workers_change_nothing(tmp_path: Path, seconds: float) -> None:
    pieces = split_graph(random_web(500, 4000, 1), tmp_path / "pieces", 4)
    alone = rank_with(pieces, tolerance=1e-10)
    for lose in ({1}, {2, 3}, {9}, {5, 20, 21, 22}, set(range(10, 40, 9))):
        options = PieceOptions(checkpoints=tmp_path / f"work-{seconds}-{len(lose)}-{min(lose)}", seconds=seconds)
        other = rank_with(
            pieces,
            tolerance=1e-10,
            options=options,
            executor=lambda setup, lose=lose: Processes(setup, 2, lose),  # type: ignore[misc]
        )
        assert other.recoveries == len(lose)
        assert scores_of(other).tobytes() == scores_of(alone).tobytes()
        assert other.history == alone.history


def test_workers_that_are_always_lost_end_the_run(tmp_path: Path) -> None:
    pieces = split_graph(random_web(50, 400, 1), tmp_path / "pieces", 4)
    with pytest.raises(SurveyError, match="workers were lost 20 times in one step"):
        rank_with(pieces, executor=lambda setup: Processes(setup, 2, set(range(1000))))
    assert [path.name for path in tmp_path.iterdir()] == ["pieces"]


@pytest.mark.parametrize("stop", range(1, 36, 3))
def test_a_killed_run_resumes_from_its_checkpoint(tmp_path: Path, stop: int) -> None:
    pieces = split_graph(random_web(500, 4000, 1), tmp_path / "pieces", 4)
    alone = rank_with(pieces, tolerance=1e-10)
    options = PieceOptions(checkpoints=tmp_path / "work", seconds=0.0)

    class Killed(BaseException):
        pass

    class Stops(Processes):
        def run(self, step: int, name: str, arguments: Any) -> list[Any]:
            if self.calls == stop:
                raise Killed
            return super().run(step, name, arguments)

    with pytest.raises(Killed):
        rank_with(pieces, tolerance=1e-10, options=options, executor=lambda setup: Stops(setup, 2))
    log = tmp_path / "work" / "log.jsonl"
    if log.is_file():
        log.write_text(log.read_text() + '{"step": "pow')  # a torn line
    runs: list[Processes] = []

    def other(setup: WorkerSetup) -> Processes:
        runs.append(Processes(setup, 3))
        return runs[0]

    resumed = rank_with(pieces, tolerance=1e-10, options=options, executor=other)
    assert scores_of(resumed).tobytes() == scores_of(alone).tobytes()
    assert resumed.history == alone.history
    if stop > 20:
        assert runs[0].calls < stop, "steps before the checkpoint are not repeated"


def test_ranks_on_disk_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = split_graph(random_web(500, 4000, 1), tmp_path / "pieces", 4)
    alone = rank_with(pieces, tolerance=1e-10)
    monkeypatch.setattr(piece_sweeps, "HISTORY", 1)
    other = rank_with(
        pieces,
        tolerance=1e-10,
        options=PieceOptions(checkpoints=tmp_path / "work", seconds=0.0),
        executor=lambda setup: Processes(setup, 2, {7, 15, 30}),
    )
    assert other.recoveries == 3
    assert scores_of(other).tobytes() == scores_of(alone).tobytes()
    assert {path.name[:10] for path in (tmp_path / "work").iterdir()} == {"checkpoint", "log.jsonl", "scores"}


def test_too_few_sweeps_carry_their_bound(tmp_path: Path) -> None:
    graph = random_web(300, 2000, 3)
    pieces = split_graph(graph, tmp_path / "pieces", 3)
    with pytest.raises(NotConverged, match="raise max_sweeps") as caught:
        rank_with(pieces, tolerance=1e-9, options=PieceOptions(max_sweeps=4))
    best = caught.value.best
    assert np.abs(scores_of(best) - exact_ranks(graph)).sum() <= best.error


def test_a_graph_without_pages(tmp_path: Path) -> None:
    pieces = split_graph(Graph.from_arrays(np.empty(0, int), np.empty(0, int), 0), tmp_path / "pieces", 3)
    ranking = rank_with(pieces)
    assert (ranking.error, ranking.top().size, ranking.to_dict()["pages"]) == (0.0, 0, [])


def test_temporary_scores_disappear_with_the_ranking(tmp_path: Path) -> None:
    pieces = split_graph(star(9), tmp_path / "pieces", 2)
    ranking = rank_with(pieces)
    assert len(list(tmp_path.iterdir())) == 2
    assert "10 pages in 2 pieces" in repr(ranking)
    assert ranking.to_dict(1)["pages"][0]["name"] == "0"
    del ranking
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"damping": 1.0}, r"damping must be in \[0, 1\)"),
        ({"tolerance": 0.0}, "tolerance must be at least"),
        ({"dangling": "lost"}, "unknown dangling rule 'lost'"),
        ({"teleport": []}, "names no page"),
        ({"teleport": ["nowhere"]}, "no page named 'nowhere'"),
        ({"teleport": {0: -1.0}}, "non-negative"),
        ({"teleport": {0: 0.0}}, "not all zero"),
        ({"teleport": {99 << 32: 1.0}}, "no page"),
        ({"teleport": {-1: 1.0}}, "no page"),
        ({"teleport": {77: 1.0}}, "its piece does not have"),
        ({"options": PieceOptions(solver="push")}, "solver 'push'"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: Any, problem: str) -> None:
    pieces = split_graph(star(9), tmp_path / "pieces", 2)
    with pytest.raises(UsageError, match=problem):
        rank_with(pieces, **arguments)
    assert len(list(tmp_path.iterdir())) == 1


def test_checkpoints_of_other_parameters_and_damage_are_rejected(tmp_path: Path) -> None:
    pieces = split_graph(random_web(500, 4000, 1), tmp_path / "pieces", 2)
    options = PieceOptions(checkpoints=tmp_path / "work", seconds=0.0)
    rank_with(pieces, options=options)
    with pytest.raises(UsageError, match="checkpoints of a ranking with other pieces or parameters"):
        rank_with(pieces, 0.9, options=options)
    next((tmp_path / "work").glob("checkpoint-*/00001.npy")).write_bytes(b"junk")
    with pytest.raises(SurveyError, match="cannot be read"):
        rank_with(pieces, options=options)
    (tmp_path / "work" / "log.jsonl").write_text("{")
    with pytest.raises(SurveyError, match="is damaged"):
        rank_with(pieces, options=options)


def test_steps_out_of_order_are_rejected(tmp_path: Path) -> None:
    from surveyor.rank.pieces.worker import OutOfOrder

    pieces = split_graph(star(9), tmp_path / "pieces", 2)
    setup = WorkerSetup(str(pieces.folder), str(tmp_path), ((0, 1),), 0.85, 5, False, False, False, 1)
    worker = PieceWorker(setup, 0)
    worker.run(0, "start", None, [np.empty(0)])
    for step in (2, 7):
        with pytest.raises(OutOfOrder):
            worker.run(step, "power", [0.1, 0.0], [np.empty(0)])
    worker.run(1, "power", [0.1, 0.0], [np.empty(0)])
    with pytest.raises(OutOfOrder):
        worker.run(0, "power", [0.1, 0.0], [np.empty(0)])
    with pytest.raises(OutOfOrder):
        worker.run(0, "save", 0, [])


def test_the_local_executor_merges_assigned_pieces(tmp_path: Path) -> None:
    split_graph(star(9), tmp_path / "pieces", 2)
    pieces = Pieces.open(tmp_path / "pieces")
    assert scores_of(rank_with(pieces, executor=LocalExecutor)).sum() == pytest.approx(1.0, abs=1e-15)
