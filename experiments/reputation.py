"""Cost and error of domain scores at the scale of the whole web: Table II of the paper.

    python -m experiments.reputation [--pages 9200000] [--folder WEB.graph] [--rounds 3] [--large]

A synthetic web of domains (the preset `domains-2007`) is written to a folder, or read from there. Every score then runs
in a separate process with two threads, which reports its time and the increase of its memory. Level-2 supporters are
counted for random domains, to extrapolate the cost for all, and, unless `--large`, for all: this is the ground truth
for the estimates, over the domains with the most true supporters. The error is the mean of |estimate / truth - 1|, for
TSE over ten seeds. Exact counts are also streamed within 200 MB. With `--large`, for webs larger than memory, only
streamed methods are measured: TSE and PageRank.
*Cold* means that the files were dropped from the page cache before. The output is Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import PRESETS, synthetic_web
from surveyor.rank.domains.external import streamed_exact_supporters, streamed_paths
from surveyor.rank.domains.link_counts import in_degree, supporters, supporters_of, two_link_paths, weighted_in_degree
from surveyor.rank.domains.reach_sketches import bit_vectors, hyperball
from surveyor.rank.domains.reputation import Reputation, Resources
from surveyor.rank.domains.tse import SupporterSample, sampled_supporters, streamed_supporters
from surveyor.rank.pagerank import SolverOptions, pagerank

THREADS = 2
RESOURCES = Resources(threads=THREADS)
LIMITED = Resources(threads=THREADS, memory=200_000_000)  # of exact counts from a stream
SOLVER = SolverOptions(threads=THREADS)
SAMPLED = 20_000  # domains whose supporters are counted to extrapolate the cost of all
LISTS = (1_000, 10_000)
SEEDS = range(7, 17)  # of TSE, whose error is the mean over all; others have one seed
BLOCK = 1 << 22
FILES = ("indptr.npy", "indices.npy", "in_indptr.npy", "in_indices.npy")
TIMEOUT = 3_600
STEPS = (
    "read cold",
    "read",
    "SUPP2 of some",
    "SUPP2",
    "TSE 1e-2",
    "TSE 1e-3",
    "TSE 1e-4",
    "QVS",
    "BV, best 1K",
    "BV, all rounds",
    "HyperBall, 64 registers",
    "IN",
    "WIN",
    "PageRank 1e-6",
    "TSE 1e-4, streamed",
    "TSE 1e-4, streamed, cold",
    "TSE 1e-3, streamed",
    "SUPP2, streamed",
    "QVS, streamed",
)
LARGE = ("read cold", "TSE 1e-4, streamed, cold", "read", "TSE 1e-4, streamed", "PageRank 1e-6")
Result = dict[str, Any]


def scores(step: str, graph: Graph, folder: Path, out: Path) -> Callable[[], Reputation]:
    """Return the computation of a step."""
    parameter = next((float(word.strip(",")) for word in step.split() if word.startswith("1e-")), 0.0)
    if step.startswith("SUPP2, streamed"):
        return lambda: streamed_exact_supporters(folder, out=out / "counts.npy", resources=LIMITED)
    if step.startswith("QVS, streamed"):
        return lambda: streamed_paths(folder, out=out / "counts.npy", resources=LIMITED)
    if "streamed" in step:
        return lambda: streamed_supporters(folder, parameter, out=out / "counts.npy", resources=RESOURCES)
    methods: dict[str, Callable[[], Reputation]] = {
        "TSE": lambda: sampled_supporters(graph, parameter, resources=RESOURCES),
        "SUPP2": lambda: supporters(graph, resources=RESOURCES),
        "QVS": lambda: two_link_paths(graph, threads=THREADS),
        "BV, best": lambda: bit_vectors(graph, top=LISTS[0], resources=RESOURCES),
        "BV, all": lambda: bit_vectors(graph, resources=RESOURCES),
        "HyperBall": lambda: hyperball(graph, 2, keep=[2], resources=RESOURCES).supporters(2),
        "IN": lambda: in_degree(graph),
        "WIN": lambda: weighted_in_degree(graph, threads=THREADS),
        "PageRank": lambda: Reputation("pagerank", pagerank(graph, tolerance=parameter, options=SOLVER).scores),
    }
    return methods[next(name for name in methods if step.startswith(name))]


def run(step: str, folder: Path, out: Path, rounds: int) -> Result:
    """Run one step in this process."""
    if step.startswith("read"):
        return _read(folder, cold="cold" in step)
    graph = Graph.open(folder, verify=False)
    if step == "SUPP2 of some":
        some = np.sort(np.random.default_rng(7).choice(graph.pages, min(SAMPLED, graph.pages), replace=False))
        methods = two_link_paths(graph, threads=THREADS).scores
        supporters_of(graph, some[:10], resources=RESOURCES)  # compiled, and the files are in memory
        (_, results) = _timed(lambda: supporters_of(graph, some, resources=RESOURCES))
        return {**results, "paths": float(methods[some].sum()), "all": float(methods.sum()), "domains": graph.pages}
    _warm_up(step, out)
    work, cold = scores(step, graph, folder, out), "cold" in step
    before = _status("VmRSS")
    if cold:
        _evict(folder)
    _forget_peak()
    result, results = _timed(work)
    results["peak"] = _status("VmHWM") - before
    while not cold and len(results["rounds"]) < rounds and results["seconds"] < 20:
        again = _timed(work)[1]
        results["rounds"] += again["rounds"]
        results["seconds"] = min(results["rounds"])
    if step.startswith("TSE") and "streamed" not in step:
        sample = SupporterSample(graph, resources=RESOURCES)
        sample.grow(result.method["p"])
        results["followed"] = sample.followed
        for seed in SEEDS:
            more = sampled_supporters(graph, result.method["p"], rng=seed, resources=RESOURCES)
            np.save(out / f"{step}, {seed}.npy", more.scores.astype(np.float32))
    if graph.links < 1 << 29:
        np.save(out / f"{step}.npy", result.scores)
    return results


def _timed(work: Callable[[], Any]) -> tuple[Any, Result]:
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    result = work()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return result, {"seconds": seconds, "rounds": [seconds], "cpu": cpu}


def _warm_up(step: str, out: Path) -> None:
    """Compile, or load, what will be timed."""
    small = synthetic_web("domains", links=3_000, names=False).graph
    small.save(out / "warm.graph", replace=True)
    scores(step, small, out / "warm.graph", out)()


def _read(folder: Path, *, cold: bool) -> Result:
    """Read all files of a graph with plain reads."""
    if cold:
        _evict(folder)
    buffer = memoryview(bytearray(BLOCK))

    def read() -> int:
        size = 0
        for name in FILES:
            with (folder / name).open("rb", buffering=0) as file:
                while got := file.readinto(buffer):
                    size += got
        return size

    size, results = _timed(read)
    return {**results, "bytes": size}


def _evict(folder: Path) -> None:
    """Drop the files of a graph from the page cache."""
    os.sync()
    for name in FILES:
        descriptor = os.open(folder / name, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def _forget_peak() -> None:
    with suppress(OSError):  # the peak then includes the start of the process
        Path("/proc/self/clear_refs").write_text("5", "utf-8")


def _in_a_process(step: str, folder: Path, out: Path, rounds: int) -> Result:
    command = [sys.executable, "-m", "experiments.reputation", "--step", step, "--folder", str(folder)]
    command += ["--out", str(out), "--rounds", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)  # noqa: S603
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise SystemExit(f"{step} failed")
    results: Result = json.loads(done.stdout)
    return results


def _open_or_create(pages: int, folder: Path) -> Graph:
    """Open the web, or create it."""
    if not (folder / "graph.json").is_file():
        sys.stderr.write(f"creating a web of {pages:,} domains\n")
        synthetic_web(replace(PRESETS["domains-2007"], pages=pages), folder=folder, names=False)
    return Graph.open(folder, verify=False)


def _errors(out: Path, step: str, truth: FloatArray | None) -> list[str]:
    """Return the error over the domains with the most true supporters, and the overlap of the top lists."""
    paths = [path for path in out.glob(f"{step}*.npy") if path.stem.removeprefix(step).strip(", ").isdecimal()]
    paths = paths or [path for path in [out / f"{step}.npy"] if path.exists()]
    if truth is None or not paths:
        return ["–"] * 2 * len(LISTS)
    cells: list[str] = []
    for count in LISTS:
        best = Reputation("supp", truth).top(count)
        same = step.startswith(("TSE", "BV", "HyperBall", "QVS"))
        found = [np.load(path).astype(np.float64) for path in paths]
        error = np.mean([np.abs(one[best] / truth[best] - 1).mean() for one in found])
        common = np.mean([np.intersect1d(best, Reputation("", one).top(count)).size / count for one in found])
        cells += [f"{100 * error:.2f} %" if same else "–", f"{100 * common:.0f} %"]
    return cells


def _table(results: dict[str, Result], graph: Graph, out: Path) -> None:
    truth = np.load(out / "SUPP2.npy") if (out / "SUPP2.npy").exists() else None
    print("| score | seconds | CPU s | memory MB | error of the 1K | common | of the 10K | common |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for step, found in results.items():
        if step.startswith("read") or step == "SUPP2 of some":
            continue
        memory = f"{found['peak'] / 1e6:,.0f}"
        cells = [step, f"{found['seconds']:.3g}", f"{found['cpu']:.3g}", memory, *_errors(out, step, truth)]
        print("| " + " | ".join(cells) + " |")
    print()
    some = results.get("SUPP2 of some")
    if some:
        whole = some["seconds"] * some["all"] / some["paths"]
        sample = f"SUPP2 of {SAMPLED:,} sampled domains: {some['seconds']:.2f} s for {some['paths']:.3g} paths"
        print(f"{sample}; of all {some['domains']:,}, by {some['all']:.4g} paths: {whole:.0f} s.\n")
        whole = results.get("SUPP2", {"seconds": whole})["seconds"]
        for step in ("TSE 1e-2", "TSE 1e-3", "TSE 1e-4"):
            here = results[step]
            work = here["followed"] + 2 * some["domains"]
            print(
                f"- {step}: {whole / here['seconds']:,.0f} times as fast as SUPP2; it followed 1/"
                f"{some['all'] / here['followed']:,.0f} of the paths; with a hash and a count for each domain it did "
                f"1/{some['all'] / work:,.0f} of the work"
            )
        print(f"- QVS / TSE 1e-4: {results['QVS']['seconds'] / results['TSE 1e-4']['seconds']:.1f}")
    cold, stream = results["read cold"], results["TSE 1e-4, streamed, cold"]
    warm = results["TSE 1e-4, streamed"]
    print(
        f"- files {cold['bytes'] / 1e9:.2f} GB: read cold in {cold['seconds']:.2f} s "
        f"({cold['bytes'] / cold['seconds'] / 1e9:.2f} GB/s), warm in {results['read']['seconds']:.2f} s"
    )
    print(
        f"- TSE 1e-4 streamed, cold / reading all files cold: {stream['seconds'] / cold['seconds']:.2f}; "
        f"warm: {graph.links / warm['seconds'] / 1e6:,.0f} M links/s, {warm['peak'] / 1e6:.0f} MB"
    )


def main() -> None:
    """Create the web, run the steps, print the table."""
    parser = argparse.ArgumentParser("python -m experiments.reputation", description=__doc__)
    parser.add_argument("--pages", type=lambda text: int(float(text)), default=PRESETS["domains-2007"].pages)
    parser.add_argument("--folder", type=Path, help="graph folder to use or create  [a temporary one]")
    parser.add_argument("--rounds", type=int, default=3, help="runs of steps under 20 s; the fastest counts  [3]")
    parser.add_argument("--large", action="store_true", help="only streamed methods")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(run(options.step, options.folder, options.out, options.rounds)))
        return
    with tempfile.TemporaryDirectory(prefix="surveyor-", dir=options.folder and options.folder.parent) as place:
        folder = options.folder or Path(place) / "web.graph"
        graph = _open_or_create(options.pages, folder)
        into, out = graph.in_links.degrees(), graph.out_degrees
        size = f"{graph.pages:,} domains, {graph.links:,} links, mean degree {graph.links / graph.pages:.1f}"
        most = f"maximum in-degree {into.max():,} ({into.max() / graph.pages:.1%} of all domains)"
        print(f"{size}; {most}, out-degree {out.max():,}; {np.mean(out == 0):.0%} without links\n", flush=True)
        del into, out
        results: dict[str, Result] = {}
        for step in LARGE if options.large else STEPS:
            sys.stderr.write(f"  {step}\n")
            results[step] = _in_a_process(step, folder, Path(place), options.rounds)
        _table(results, graph, Path(place))


if __name__ == "__main__":
    main()
