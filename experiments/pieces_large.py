"""Build, split and rank a web of a billion links through pieces: `python -m experiments.pieces_large [--links 1e9]`.

Each step runs in a process of its own. Reported are its seconds and the largest memory of it and its children together:
the sum of their resident sets, read ten times a second, and the part that no file backs. Beside the ranks over
pieces, in one process and on two workers, is the ranking of the whole graph, streamed from disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

TOLERANCE = 1e-6
STEPS = ("build", "split", "build from links", "rank whole", "rank pieces", "rank pieces on two workers")
LIMIT = 6e9  # bytes
TICK = 0.1  # seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Rank a web of a billion links through pieces.")
    parser.add_argument("--links", type=float, default=1e9)
    parser.add_argument("--pieces", type=int, default=32)
    parser.add_argument("--memory", type=float, default=1e9, help="bytes for links while building")
    parser.add_argument("--folder", type=Path, help="work folder, kept; default: a temporary one")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.step:
        print(json.dumps(step(given.step, given.folder, int(given.links), given.pieces, int(given.memory))))
        return
    with tempfile.TemporaryDirectory(prefix="surveyor-large-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        print("| step | seconds | memory, GB | of it anonymous, GB | result |\n|---|--:|--:|--:|---|")
        for name in STEPS:
            options = ["--links", str(given.links), "--pieces", str(given.pieces), "--memory", str(given.memory)]
            command = [sys.executable, "-m", "experiments.pieces_large", "--step", name, "--folder", str(folder)]
            seconds, most, anonymous, output = watched([*command, *options])
            verdict = "" if most <= LIMIT else " (above 6)"
            print(
                f"| {name} | {seconds:.0f} | {most / 1e9:.2f}{verdict} | {anonymous / 1e9:.2f} | {output} |", flush=True
            )


def step(name: str, folder: Path, links: int, pieces: int, memory: int) -> str:
    """Do one step; return what it made."""
    from surveyor import Graph, Pieces, build_pieces, pagerank, rank_pieces, split_graph, synthetic_web
    from surveyor.graph.formats.intake import ReadOptions
    from surveyor.graph.pieces.write import WriteOptions

    writing = WriteOptions(memory=memory, replace=True)
    if name == "build":
        graph = synthetic_web("web", links=links, names=False, folder=folder / "web").graph
        return f"{graph.links:,} links, {graph.pages:,} pages"
    if name == "split":
        made = split_graph(Graph.open(folder / "web", verify=False), folder / "pieces", pieces, writing)
        return f"{made.links:,} links, {made.ghosts / made.pages:.2f} values per page exchanged in a sweep"
    if name == "build from links":
        graph = Graph.open(folder / "web", verify=False)
        reading = ReadOptions(nodes=graph.pages, memory=memory)
        source = _edge_file(graph, folder / "links.parquet")
        made = build_pieces(source, folder / "built", pieces, reading, options=writing)
        source.unlink()
        return f"{made.links:,} links"
    if name == "rank whole":
        whole = pagerank(Graph.open(folder / "web", verify=False), tolerance=TOLERANCE)
        return f"{whole.sweeps} sweeps, error {whole.error:.1e}"
    opened = Pieces.open(folder / "pieces", verify=False)
    cluster = "local:2" if "workers" in name else None
    ranking = rank_pieces(opened, tolerance=TOLERANCE, cluster=cluster)
    return f"{ranking.sweeps} sweeps, error {ranking.error:.1e}"


def _edge_file(graph: object, path: Path) -> Path:
    """Write the links to a Parquet file, in the order of their sources."""
    from surveyor import write_graph

    write_graph(graph, path)  # type: ignore[arg-type]
    return path


def watched(command: list[str]) -> tuple[float, float, float, str]:
    """Run a command; return its seconds, its largest resident and anonymous memory with all children, its output."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    most, anonymous = 0.0, 0.0
    while process.poll() is None:
        resident, private = memory_of(process.pid)
        most, anonymous = max(most, resident), max(anonymous, private)
        time.sleep(TICK)
    output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - began, most, anonymous, json.loads(output.splitlines()[-1])


def memory_of(root: int) -> tuple[float, float]:
    """Return the resident and the anonymous memory of a process and its descendants."""
    parents, sizes = {}, {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                lines = (place / "status").read_text("utf-8").splitlines()
            except OSError:
                continue
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
            parents[int(place.name)] = int(fields["PPid"])
            sizes[int(place.name)] = [int(fields.get(name, "0").split()[0]) * 1024 for name in ("VmRSS", "RssAnon")]
    family, size = {root}, 0
    while len(family) > size:
        size = len(family)
        family |= {pid for pid, parent in parents.items() if parent in family}
    found = [sizes[pid] for pid in family if pid in sizes]
    return float(sum(part[0] for part in found)), float(sum(part[1] for part in found))


if __name__ == "__main__":
    main()
