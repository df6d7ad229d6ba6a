"""Domain scores and condensing on real Ray: the same bytes on one and two nodes, also when an actor is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_processes import OneNode, descendants
from console import CommandResult
from surveyor import Graph, Pieces, UsageError, build_pieces, condense_pieces, domains, score_pieces, write_graph
from surveyor.cluster.executors import executors
from surveyor.cluster.ranking import RayExecutor
from surveyor.cluster.session import Session
from surveyor.graph.condense import condense
from surveyor.graph.formats.intake import ReadOptions
from surveyor.graph.names import Names
from surveyor.graph.pieces.build import build_with
from surveyor.graph.pieces.condense import condense_with
from surveyor.graph.pieces.split import join, split_graph
from surveyor.rank.domains.scores import DomainOptions, Domains
from surveyor.rank.pieces.domains import score_with
from webs import random_web

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("cluster")]  # one cluster at a time
SCORES = ("tse", "supp", "in", "win", "qvs", "harmonic")
OPTIONS = DomainOptions(p=0.4)


@pytest.fixture(scope="module")
def pages() -> Graph:
    graph = random_web(2000, 16_000, 1)
    hosts = np.random.default_rng(1).integers(0, 150, graph.pages)
    names = [f"http://w{page % 3}.s{host}.example/{page}" for page, host in enumerate(hosts.tolist())]
    return Graph(graph.indptr, graph.indices, names=Names.of(names))


def bytes_of(result: Domains) -> dict[str, bytes]:
    return {
        name: score.raw.tobytes() + np.concatenate(score.intervals()).tobytes() for name, score in result.scores.items()
    }


@pytest.mark.slow
def test_one_and_two_nodes_give_the_bytes_of_one_process(cluster: Session, pages: Graph, tmp_path: Path) -> None:
    pieces = split_graph(pages, tmp_path / "pages", 5)
    whole = condense(pages)
    sites = condense_pieces(pieces, tmp_path / "two", 4, cluster=cluster)
    assert join(sites.pieces) == whole.graph
    one = condense_pieces(pieces, tmp_path / "one", 4, cluster=OneNode(cluster))
    alone = condense_pieces(pieces, tmp_path / "alone", 4)
    assert one.pieces.checksum == sites.pieces.checksum == alone.pieces.checksum
    expected = bytes_of(domains(whole.graph, SCORES, options=OPTIONS))
    assert bytes_of(score_pieces(sites.pieces, SCORES, options=OPTIONS)) == expected
    assert bytes_of(score_pieces(sites.pieces, SCORES, cluster=cluster, options=OPTIONS)) == expected
    assert bytes_of(score_pieces(sites.pieces, SCORES, cluster=OneNode(cluster), options=OPTIONS)) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone", "one", "pages", "two"]


def test_an_error_of_a_task_is_raised_here(cluster: Session, tmp_path: Path) -> None:
    pieces = split_graph(random_web(50, 200, 1), tmp_path / "pages", 2)
    with executors(cluster) as executor, pytest.raises(UsageError, match="p must be in"):
        score_with(pieces, "tse", options=DomainOptions(p=2.0), executor=executor)
    with pytest.raises(UsageError, match="cluster must be auto, local:N or HOST:PORT"):
        score_pieces(pieces, "in", cluster="here")


class Killing:
    """An executor on real actors, one of which is killed soon after some steps have begun."""

    def __init__(self, session: Session, setup: Any, moments: set[int], killed: list[int]) -> None:
        self.executor, self.moments, self.killed, self.calls = RayExecutor(session, setup), moments, killed, 0

    def start(self) -> None:
        self.executor.start()

    def run(self, step: int, name: str, arguments: Any) -> list[Any]:
        self.calls += 1
        if self.calls in self.moments:
            threading.Timer(float(np.random.default_rng().uniform(0, 0.1)), self.kill).start()
        return self.executor.run(step, name, arguments)

    def kill(self) -> None:
        for pid in [pid for pid, command in descendants().items() if "ray::PieceActor" in command][:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)

    def close(self) -> None:
        self.executor.close()


@pytest.mark.slow
def test_killed_actors_change_no_piece_that_is_written(cluster: Session, pages: Graph, tmp_path: Path) -> None:
    write_graph(pages, tmp_path / "names.tsv")
    alone, killed = build_pieces(tmp_path / "names.tsv", tmp_path / "alone", 5), list[int]()
    for turn in range(8):  # three steps each
        again = build_with(
            tmp_path / "names.tsv",
            tmp_path / str(turn),
            5,
            executor=lambda setup: Killing(cluster, setup, {1, 2, 3, 4, 5}, killed),
        )
        assert again.checksum == alone.checksum
    assert len(killed) >= 20


@pytest.mark.slow
def test_killed_actors_change_nothing(cluster: Session, pages: Graph, tmp_path: Path) -> None:
    pieces = split_graph(pages, tmp_path / "pages", 5)
    whole, killed = condense(pages).graph, list[int]()
    expected = bytes_of(domains(whole, SCORES, options=OPTIONS))
    alone = condense_pieces(pieces, tmp_path / "alone", 4).pieces
    for turn in range(6):  # steps: 3 of condensing, about 40 of scores
        sites = condense_with(
            pieces, tmp_path / str(turn), 4, executor=lambda setup: Killing(cluster, setup, {1, 3, 5}, killed)
        )
        assert sites.pieces.checksum == alone.checksum
        moments = set(np.random.default_rng().choice(35, 5, replace=False).tolist())
        ours = score_with(
            sites.pieces,
            SCORES,
            options=OPTIONS,
            executor=lambda setup, moments=moments: Killing(cluster, setup, moments, killed),  # type: ignore[misc]
        )
        assert bytes_of(ours) == expected
    assert len(killed) >= 20


@pytest.mark.slow
def test_pieces_written_on_workers_are_those_of_one_process(cluster: Session, pages: Graph, tmp_path: Path) -> None:
    pages.save(tmp_path / "web")
    write_graph(pages, tmp_path / "names.tsv")
    write_graph(pages.with_names(None), tmp_path / "ids.txt")
    for number, source in enumerate(("names.tsv", "ids.txt", "web")):
        reading = ReadOptions(nodes=pages.pages if source == "ids.txt" else None)
        made = [
            build_pieces(tmp_path / source, tmp_path / f"{number}-{place}", 5, reading, cluster=machines)
            for place, machines in enumerate((None, cluster, *([] if number else [OneNode(cluster)])))
        ]
        assert len({pieces.checksum for pieces in made}) == 1
        assert all(path.read_bytes() == same.read_bytes() for path, same in files_of(made[0], made[1]))
        assert join(Pieces.open(made[1].folder)).links == pages.links
    assert sorted(path.name for path in tmp_path.iterdir() if "work" in path.name or "draft" in path.name) == []


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_commands_write_pieces_on_the_cluster(pages: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages.save(tmp_path / "web")
    for number, (command, source, *rest) in enumerate(
        (("split", str(tmp_path / "web")), ("build", "synthetic:small", "--links", "20000"))
    ):
        made = []
        for where in ([], ["--cluster", "auto"]):
            folder = str(tmp_path / f"{number}{len(where)}")
            done = CommandResult(capsys, "graph", command, source, folder, "--pieces", "3", "--json", *rest, *where)
            assert done.code == 0, done.err
            made.append(json.loads(done.out)["provenance"])
        assert made[0] == made[1]
        assert Pieces.open(tmp_path / f"{number}0").checksum == Pieces.open(tmp_path / f"{number}2").checksum


def files_of(one: Pieces, other: Pieces) -> list[tuple[Path, Path]]:
    paths = sorted(path.relative_to(one.folder) for path in one.folder.rglob("*") if path.is_file())
    assert paths == sorted(path.relative_to(other.folder) for path in other.folder.rglob("*") if path.is_file())
    return [(one.folder / path, other.folder / path) for path in paths]
