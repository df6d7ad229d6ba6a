"""Ranks of pieces on real Ray with two nodes on loopback: the same bytes, also when processes are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_processes import OneNode, descendants, listening
from surveyor import Graph, MissingExtra, UsageError, pagerank
from surveyor.cluster import session as sessions
from surveyor.cluster.doctor import Machine, examine, problems, versions
from surveyor.cluster.ranking import rank_pieces
from surveyor.cluster.session import Node, Session, local_variables
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.split import split_graph
from surveyor.rank.pieces.ranking import PieceOptions, PiecesRanking
from webs import chain, random_web, star, stuck_and_pair

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("cluster")]  # one cluster at a time

GRAPHS = {
    "web": random_web(3000, 30_000, 1),
    "dangling only": Graph.from_arrays(np.empty(0, int), np.empty(0, int), 5),
    "disconnected": stuck_and_pair(),
    "chain": chain(40),
    "star": star(40),
    "giant host": Graph.from_arrays(
        np.arange(30), np.arange(1, 31), names=[f"http://{'b' if page else 'a'}.example/{page}" for page in range(31)]
    ),
}


def bytes_of(ranking: PiecesRanking) -> list[bytes]:
    return [ranking.scores(piece).tobytes() for piece in range(len(ranking.pieces))]


def find(word: str, without: str = "\0") -> list[int]:
    return [pid for pid, command in descendants().items() if word in command and without not in command]


def test_bytes_on_one_and_two_nodes_are_those_of_one_process(cluster: Session, tmp_path: Path) -> None:
    assert len(cluster.nodes()) == 2
    compare_with_one_process(cluster, tmp_path, ("web", "dangling only", "giant host"))


@pytest.mark.slow
def test_bytes_of_other_graphs_are_those_of_one_process(cluster: Session, tmp_path: Path) -> None:
    compare_with_one_process(cluster, tmp_path, tuple(GRAPHS))


def compare_with_one_process(cluster: Session, tmp_path: Path, names: tuple[str, ...]) -> None:
    for number, graph in enumerate(GRAPHS[name] for name in names):
        for count in (1, 5) if number == 0 else (5,):
            pieces = split_graph(graph, tmp_path / f"{number}-{count}", count)
            alone = rank_pieces(pieces, tolerance=1e-10)
            two = rank_pieces(pieces, tolerance=1e-10, cluster=cluster)
            assert bytes_of(two) == bytes_of(alone)
            assert two.history == alone.history
            if (number, count) == (0, 5):
                one = rank_pieces(pieces, tolerance=1e-10, cluster=OneNode(cluster))
                assert bytes_of(one) == bytes_of(alone)
            whole = pagerank(graph, tolerance=1e-10)
            scores = np.empty(graph.pages)
            for piece in pieces:
                scores[piece.page_numbers(np.arange(piece.pages))] = two.scores(piece.number)
            assert np.abs(scores - whole.scores).sum() <= two.error + whole.error


def test_nothing_listens_outside_loopback(cluster: Session) -> None:
    ray = sessions.load_ray()

    class Waiting:
        def pid(self) -> int:
            return os.getpid()

    actor = ray.remote(num_cpus=0)(Waiting).remote()  # a worker process, whose ports count too
    pid = ray.get(actor.pid.remote())
    processes = {**descendants(), os.getpid(): "this process"}
    assert pid in processes
    found = listening(processes)
    for part in ("gcs_server", "raylet/raylet", "ray::Waiting", "this process"):
        assert any(part in socket.command for socket in found), part
    assert [socket for socket in found if not socket.address.is_loopback] == []
    assert not any("dashboard.py" in socket.command for socket in found), "its process serves no page"
    ray.kill(actor)
    assert cluster.nodes()[0].address == "127.0.0.1"


CLIENT = "import sys, ray._raylet as r; r.GcsClient(address=sys.argv[1]).internal_kv_get(b'x', None, timeout=5)"


def test_clients_without_the_token_are_refused(cluster: Session) -> None:
    assert cluster.nodes()
    command = [sys.executable, "-c", CLIENT, sessions.load_ray().get_runtime_context().gcs_address]
    changes: list[dict[str, str]] = [{}, {"RAY_AUTH_TOKEN": "00" * 32}, {"RAY_AUTH_MODE": "disabled"}]
    clients = [
        subprocess.Popen(command, env={**os.environ, **local_variables(), **change}, stderr=subprocess.PIPE, text=True)
        for change in changes
    ]
    for change, client in zip(changes, clients, strict=True):
        _, problem = client.communicate(timeout=60)
        assert client.returncode == (1 if change else 0), problem
        assert "uthentication" in problem or not change


class KillingSession:
    """A session that kills processes at some moment after the first start of actors."""

    def __init__(self, session: Session, victim: str, moment: Callable[[], object]) -> None:
        self.session, self.victim, self.moment, self.starts = session, victim, moment, 0

    def restore(self) -> None:
        self.session.restore()

    def nodes(self) -> list[Node]:
        self.starts += 1
        if self.starts == 1:
            threading.Thread(target=self.kill, daemon=True).start()
        return self.session.nodes()

    def kill(self) -> None:
        self.moment()
        for pid in find(self.victim, "--head")[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def steps_at(log: Path, lines: int, ended: Callable[[], bool] = lambda: False) -> None:
    """Wait until a log has so many lines."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not ended():
        if log.is_file() and log.read_text().count("\n") >= lines:
            return
        time.sleep(0.002)


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


ACTOR, RAYLET = "ray::PieceActor", "raylet/raylet"


def test_killed_actors_and_nodes_change_nothing(cluster: Session, tmp_path: Path) -> None:
    pieces = split_graph(random_web(20_000, 300_000, 2), tmp_path / "pieces", 6)
    alone = rank_pieces(pieces, tolerance=1e-12)
    for victim in (ACTOR, RAYLET):
        work = tmp_path / victim.replace("/", "-")

        ranking = rank_pieces(
            pieces,
            tolerance=1e-12,
            cluster=KillingSession(cluster, victim, partial(steps_at, work / "log.jsonl", 12)),
            options=PieceOptions(checkpoints=work, seconds=0.0),
        )
        assert bytes_of(ranking) == bytes_of(alone)
        assert ranking.history == alone.history
        assert ranking.recoveries >= 1
    cluster.restore()
    assert len(cluster.nodes()) == 2, "a local worker is started again"


def test_the_doctor_reports_all_machines(cluster: Session, tmp_path: Path) -> None:
    found = examine(cluster, str(tmp_path))
    assert len(found.machines) == 2
    for machine in found.machines:
        assert machine.versions == versions()
        assert machine.readable
        assert machine.memory > 0
        assert abs(machine.clock) <= machine.uncertainty + 0.1
    assert not [problem for problem in found.problems if "clock" in problem or "read" in problem]
    missing = examine(cluster, str(tmp_path / "none"), 3)
    assert "the cluster has 2 of 3 machines" in missing.problems
    assert sum("cannot read" in problem for problem in missing.problems) == 2


def test_problems_are_named() -> None:
    here = {"python": "3.11.7", "ray": "2.60.0"}
    bad = Machine(
        "10.0.0.5", 4, {"python": "3.12.1", "ray": "2.60.0"}, 10**8, "spill", 10**9, -7.5, 0.1, readable=False
    )
    good = Machine("10.0.0.6", 4, here, 10**10, "spill", 10**11, 0.3, 0.4, readable=True)
    assert problems([good], here, "x") == []
    assert problems([bad, good], here, "web.pieces") == [
        "10.0.0.5 has python 3.12.1, and this machine 3.11.7",
        "10.0.0.5 has only 0.1 GB of memory available",
        "10.0.0.5 has only 1.0 GB free in spill",
        "the clock of 10.0.0.5 differs by -7.5 s",
        "10.0.0.5 cannot read web.pieces",
    ]
    assert problems([], here) == ["no machine of the cluster has a free core"]


@pytest.mark.slow
def test_the_command_starts_and_stops_workers(tmp_path: Path) -> None:
    split_graph(GRAPHS["web"], tmp_path / "pieces", 3)
    found: list[Any] = []
    for more in ([], ["--cluster", "local:1"]):
        command = [
            sys.executable,
            "-m",
            "surveyor",
            "rank",
            "pieces",
            "--json",
            "--out",
            f"{len(found)}.parquet",
            *more,
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        found.append(json.loads(done.stdout))
    assert found[0]["pages"] == found[1]["pages"]
    assert found[0]["ranking"]["error"] == found[1]["ranking"]["error"]
    assert (tmp_path / "0.parquet").read_bytes() == (tmp_path / "1.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.parquet", "1.parquet", "pieces"]


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("local", "must have a number of workers in"),
        ("local:0", "must have a number of workers in"),
        ("local:65", "must have a number of workers in"),
        ("local:x", "must have a number of workers in"),
        ("somewhere", "must be auto, local:N or HOST:PORT"),
        ("ray://127.0.0.1:1", "must be auto, local:N or HOST:PORT"),
        ("127.0.0.1:1", "no cluster answers at 127.0.0.1:1"),
        ("127.0.0.1:99999", "no cluster answers at"),
    ],
)
def test_wrong_addresses(address: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem), Session(address):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"--cluster needs ray\n  hint: pip install 'surveyor\[ray\]'"):
        Session("local:2").__enter__()


def test_ranking_without_a_cluster_imports_no_ray(tmp_path: Path) -> None:
    split_graph(star(5), tmp_path / "pieces", 2)
    code = f"import sys, surveyor as sv; sv.rank_pieces({str(tmp_path / 'pieces')!r}); sys.exit('ray' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [ACTOR, RAYLET])
def test_twenty_kills_at_random_moments(cluster: Session, tmp_path: Path, victim: str) -> None:
    pieces = split_graph(random_web(20_000, 300_000, 2), tmp_path / "pieces", 6)
    alone = rank_pieces(pieces, tolerance=1e-12)
    rng = np.random.default_rng(23)
    recoveries = 0
    for number in range(25):
        work = tmp_path / f"work{number}"
        # One moment in five is while processes start; the others are between steps and inside them.
        moment = partial(time.sleep, rng.uniform(0, 3)) if number % 5 == 0 else partial(later, work, rng)
        options = PieceOptions(checkpoints=work, seconds=0.0 if number % 2 else 1e9)
        killing = KillingSession(cluster, victim, moment)
        ranking = rank_pieces(pieces, tolerance=1e-12, cluster=killing, options=options)
        assert bytes_of(ranking) == bytes_of(alone)
        assert ranking.history == alone.history
        recoveries += ranking.recoveries
    assert recoveries >= 15, "most kills hit a running computation"


def later(work: Path, rng: np.random.Generator) -> None:
    steps_at(work / "log.jsonl", int(rng.integers(1, 30)))
    time.sleep(float(rng.uniform(0, 0.01)))


@pytest.mark.slow
def test_twenty_kills_of_the_whole_cluster(tmp_path: Path) -> None:
    pieces = split_graph(random_web(20_000, 300_000, 2), tmp_path / "pieces", 6)
    alone = rank_pieces(pieces, tolerance=1e-12)
    code = (
        "import surveyor as sv, sys\n"
        "options = sv.PieceOptions(checkpoints=sys.argv[2], seconds=0.0)\n"
        "sv.rank_pieces(sys.argv[1], tolerance=1e-12, cluster='local:2', options=options)"
    )
    rng = np.random.default_rng(23)
    resumed = 0
    for number in range(20):
        work = tmp_path / f"work{number}"
        command = [sys.executable, "-c", code, str(pieces.folder), str(work)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        steps_at(work / "log.jsonl", int(rng.integers(1, 80)), partial(has_ended, process))
        for pid in [process.pid, *descendants(process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        saved = sum("checkpoint" in line for line in (work / "log.jsonl").read_text().splitlines())
        ranking = rank_pieces(
            Pieces.open(pieces.folder), tolerance=1e-12, options=PieceOptions(checkpoints=work, seconds=0.0)
        )
        assert bytes_of(ranking) == bytes_of(alone)
        assert ranking.history == alone.history
        resumed += saved > 0
    assert resumed >= 5
