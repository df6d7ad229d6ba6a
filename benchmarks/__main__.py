"""Run the benchmarks: tables to stdout, talk to stderr."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import signal
import sys
import tempfile
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import graphs, handbook, memory
from benchmarks.community import SIZES as LOCAL
from benchmarks.community import community, community_line, community_table, community_verdicts
from benchmarks.crawling import crawling, crawling_table, crawling_verdicts, selection, selection_verdicts
from benchmarks.harmonic import harmonic, harmonic_table, harmonic_verdicts
from benchmarks.peers import TOOLS
from benchmarks.race import race, say
from benchmarks.scaling import SIZES, StepFailed, scaling, scaling_table, scaling_verdicts, step
from benchmarks.startup import startup
from benchmarks.table import bandwidth_line, proof_lines, results_table, verdict_table
from benchmarks.targets import Verdict, verdicts
from benchmarks.walks import SIZES as WALKED
from benchmarks.walks import walks, walks_table, walks_verdicts

PARTS = ("startup", "race", "scaling", "crawling", "harmonic", "community", "walks")
PACKAGES = (
    "surveyor",
    "numpy",
    "numba",
    "scipy",
    "pyarrow",
    "graphblas-algorithms",
    "suitesparse-graphblas",
    "networkit",
    "igraph",
    "scikit-network",
    "rustworkx",
    "networkx",
    "aiohttp",
    "Scrapy",
)
RULES = """\
Every tool runs in a process of its own with {threads} threads where it has such a setting, in turn over
{rounds} rounds; the minimum counts (three runs a turn of what takes under 0.5 s, a single run of builds
over 10 s). Damping 0.85, uniform teleport, dangling pages lead everywhere. Rank times are those of the loosest
setting, in quarters of a decade, whose true L1 distance to the exact ranks is at most 1e-6 or 1e-11; igraph
has one setting. A build ends when ranking can begin: both directions for surveyor, the transposed and weighted
matrix for SciPy; igraph, scikit-network and NetworkX leave turning the links round to every ranking, so their
builds are shorter than complete. Peak memory is the resident set of the whole process, interpreter and arrays
included; "above start" leaves out what was there before."""


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that temporary files go
    report: dict[str, Any] = {"machine": _machine(), "threads": options.threads}
    judged: list[Verdict] = []
    print(f"# surveyor beside its peers\n\n{report['machine']}\n\n{_versions()}\n")
    for part in PARTS if options.part == "all" else (options.part,):
        judged += RUN[part](options, report)
    missed = [one for one in judged if not one.met]
    print(f"## Targets\n\n{len(judged) - len(missed)} of the {len(judged)} measured here are met.\n")
    for one in missed:
        print(f"- {one.what}: {one.value:.3g}, target {one.target:g}, {one.words}")
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def _startup(options: argparse.Namespace, report: dict[str, Any]) -> list[Verdict]:
    found = startup(2 if options.quick else 5)
    print("## Start\n")
    for one in found:
        target = f" (target {one.target:g} s: {one.words})" if one.target else ""
        print(f"- {one.what}: {one.measured}{target}")
    print(flush=True)
    report["startup"] = [asdict(one) for one in found]
    return _judged("start", found)


def _race(options: argparse.Namespace, report: dict[str, Any]) -> list[Verdict]:
    data = graphs.data_folder(options.data)
    names = list(options.graphs or (graphs.QUICK if options.quick else graphs.FULL))
    tools = options.tools or [name for name in TOOLS if name != "NetworkX" or not options.quick]
    rounds = options.rounds or (2 if options.quick else 3)
    print("## Load, build, rank\n\n" + RULES.format(threads=options.threads, rounds=rounds) + "\n", flush=True)
    report["race"], judged = {}, list[Verdict]()
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as work:
        for name in names:
            say(f"{name}: preparing")
            try:
                graph = graphs.prepare(name, data, Path(work))
            except graphs.Absent:
                print(f"### {name}\n\nskipped: not in {data} (give --data or set SURVEYOR_DATA)\n", flush=True)
                if options.quick and "small-web" not in names:
                    names.append("small-web")
                continue
            bandwidth = _bandwidth(options.threads)
            results = race(graph, tools, rounds, options.threads)
            bandwidth = max(bandwidth, _bandwidth(options.threads))
            found = verdicts(graph, results)
            print(f"### {name}: {graph.pages:,} pages, {graph.links:,} links ({graph.kind})\n")
            print(results_table(results) + "\n\n" + verdict_table("surveyor / best peer", found) + "\n")
            for result in (one for one in results if one.tool == "surveyor" and one.facts):
                lines = [*proof_lines(result), bandwidth_line(graph, result, bandwidth)]
                print("\n".join(f"- {line}" for line in lines if line) + "\n", flush=True)
            report["race"][name] = {
                "pages": graph.pages,
                "links": graph.links,
                "kind": graph.kind,
                "bandwidth": bandwidth,
                "results": [asdict(one) for one in results],
                "verdicts": [asdict(one) for one in found],
            }
            judged += _judged(name, found)
            shutil.rmtree(graph.folder)
    return judged


def _bandwidth(threads: int) -> float:
    """Measure how fast memory is read, in a process of its own; 0 where that fails."""
    try:
        return float(step("bandwidth", threads)["bandwidth"])
    except StepFailed as problem:
        say(f"bandwidth not measured: {problem}")
        return 0.0


def _scaling(options: argparse.Namespace, report: dict[str, Any]) -> list[Verdict]:
    most = options.most_links or (3_000_000 if options.quick else SIZES[-1])
    print("## Scaling\n", flush=True)
    rows = scaling(most, options.threads, options.rounds or (2 if options.quick else 3))
    found = scaling_verdicts(rows)
    print(scaling_table(rows) + "\n\n" + verdict_table("measured / allowed", found) + "\n", flush=True)
    report["scaling"] = {"rows": rows, "verdicts": [asdict(one) for one in found]}
    return _judged("scaling", found)


def _crawling(options: argparse.Namespace, report: dict[str, Any]) -> list[Verdict]:
    print("## Crawling\n", flush=True)
    pages = 1_000 if options.quick else handbook.PAGES
    found = crawling(pages, options.rounds or (2 if options.quick else 3))
    if found is None:
        print("skipped: there is no nginx (Debian: apt install nginx-light)\n", flush=True)
    chosen = selection(100_000 if options.quick else 1_000_000)
    judged = [*(crawling_verdicts(found) if found else ()), *selection_verdicts(chosen)]
    if found:
        print(f"{pages:,} pages:\n\n{crawling_table(found)}\n")
    print(verdict_table("measured / allowed", judged) + "\n", flush=True)
    report["crawling"] = {"rounds": found, "selection": chosen, "verdicts": [asdict(one) for one in judged]}
    return _judged("crawling", judged)


def _harmonic(options: argparse.Namespace, report: dict[str, Any]) -> list[Verdict]:
    links = options.most_links or (1_000_000 if options.quick else 20_000_000)
    print(f"## Harmonic centrality\n\nA synthetic web of domains, about {links:,} links.\n", flush=True)
    rows = harmonic(links, options.rounds or (1 if options.quick else 2), options.threads)
    found = harmonic_verdicts(rows)
    print(harmonic_table(rows) + "\n\n" + verdict_table("surveyor / peer", found) + "\n", flush=True)
    report["harmonic"] = {"rows": rows, "verdicts": [asdict(one) for one in found]}
    return _judged("harmonic", found)


def _community(options: argparse.Namespace, report: dict[str, Any]) -> list[Verdict]:
    sizes = LOCAL["quick" if options.quick else "full"]
    print("## Local pages in a large web\n", flush=True)
    rows = []
    turns = options.rounds or (1 if options.quick else 2)
    for row in community(sizes, options.tools or list(TOOLS), turns, options.threads):
        print(community_line(row), flush=True)
        rows.append(row)
    found = community_verdicts(rows)
    print("\n" + community_table(rows) + "\n\n" + verdict_table("measured / allowed", found) + "\n", flush=True)
    report["community"] = {"rows": rows, "verdicts": [asdict(one) for one in found]}
    return _judged("community", found)


def _walks(options: argparse.Namespace, report: dict[str, Any]) -> list[Verdict]:
    links = options.most_links or WALKED["quick" if options.quick else "full"]
    print(f"## Random walks\n\nA synthetic web, about {links:,} links.\n", flush=True)
    rows = list(walks(links, options.rounds or (2 if options.quick else 3), options.threads))
    found = walks_verdicts(rows)
    print(walks_table(rows) + "\n\n" + verdict_table("measured / allowed", found) + "\n", flush=True)
    report["walks"] = {"rows": rows, "verdicts": [asdict(one) for one in found]}
    return _judged("walks", found)


RUN = {
    "startup": _startup,
    "race": _race,
    "scaling": _scaling,
    "crawling": _crawling,
    "harmonic": _harmonic,
    "community": _community,
    "walks": _walks,
}


def _judged(where: str, found: list[Verdict]) -> list[Verdict]:
    """Keep what has a target, and say where it was measured."""
    return [replace(one, what=f"{where}, {one.what}") for one in found if one.target is not None]


def _machine() -> str:
    import psutil

    total = psutil.virtual_memory().total
    load = psutil.getloadavg()[0]
    busy = ". **Others are using this machine: do not quote these numbers**" if load > 0.25 * psutil.cpu_count() else ""
    return (
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {psutil.cpu_count()} cores, "
        f"{total / 2**30:.0f} GiB ({memory.available() / 2**30:.0f} free), load {load:.1f}{busy}"
    )


def _versions() -> str:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} absent")
    return ", ".join(found)


def _options() -> argparse.Namespace:
    def names(known: Any) -> Any:
        def parse(text: str) -> list[str]:
            chosen = text.split(",")
            if unknown := [name for name in chosen if name not in known]:
                raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(known)}")
            return chosen

        return parse

    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="?", default="all", choices=("all", *PARTS))
    parser.add_argument("--data", help="folder of real graphs  [SURVEYOR_DATA, or data]")
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds: a few minutes")
    parser.add_argument("--rounds", type=int, help="rounds over all tools  [3]")
    parser.add_argument("--threads", type=int, default=2, help="threads of every tool  [2]")
    parser.add_argument("--graphs", type=names(graphs.SOURCES), help="some of the graphs, with commas")
    parser.add_argument(
        "--tools", type=names(TOOLS), help="some of the tools, with commas  [all; NetworkX not when quick]"
    )
    parser.add_argument("--most-links", type=int, help="largest size of the scaling part  [100000000]")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
