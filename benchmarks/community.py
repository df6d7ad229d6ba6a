"""Local pages inside a large web: reading around them in fifty rounds, beside a PageRank of all of it.

`python -m benchmarks community`

A synthetic web; the local pages are those of random sites of 200 to 5,000 pages, up to the given number. They
grow by twice their number in fifty rounds (stochastic complementation), from a graph in memory: ranks and scores, no
network. Beside that stand cold PageRanks of the whole web to a true error of 1e-6, by surveyor and by its peers, built
before the clock starts, one tool at a time; then one scoring of the whole frontier at the end beside one cold PageRank
(1e-6) of the pages read. Last, how the time grows with the number of local pages. Every run is a process of its own.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import memory
from benchmarks.graphs import ROOT, Input
from benchmarks.peers import DAMPING, THREADS, TOOLS, Ids
from benchmarks.process import Lost, Process, environment
from benchmarks.race import BUILD, HEADROOM, RANK, say
from benchmarks.search import loosest
from benchmarks.table import markdown
from benchmarks.targets import Verdict

if TYPE_CHECKING:
    from surveyor import Graph

ROUNDS, TIMES = 50, 2  # rounds, for so many times the local pages
OF_SITES = (200, 5_000)  # pages of the sites that are local
SIZES = {  # pages of the web, local pages that are compared with it, and others
    "full": (5_000_000, 100_000, (10_000, 30_000, 300_000, 1_000_000)),
    "quick": (300_000, 10_000, (1_000, 3_000, 30_000)),
}
ERROR, TRUTH = 1e-6, 1e-11
RANKING, SCORING = 3.0, 1.0  # targets: rounds / fastest peer, scoring / PageRank of the pages read
LONG = 60.0  # seconds; what takes longer is not repeated
TIMEOUT = 1800.0
Row = dict[str, Any]


def community(sizes: tuple[int, int, Sequence[int]], tools: Sequence[str], turns: int, threads: int) -> Iterator[Row]:
    """Yield what was measured, step by step: rankings of the whole web, then growing domains, the main one first."""
    pages, main, others = sizes
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as work:
        folder = Path(work)
        say(f"community: a web of {pages:,} pages")
        made = _step("make", threads, folder, pages)
        yield {"step": "web", **made}
        web = Input("community", "web", folder, made["pages"], made["links"])
        for name in tools:
            say(f"community: PageRank by {name}")
            yield {"step": "rank", "tool": name, **_ranked(name, web, turns, threads)}
        (folder / "sources.npy").unlink()
        (folder / "targets.npy").unlink()
        for size in (main, *others):
            best: Row = {}
            for turn in range(turns):
                say(f"community: {size:,} local pages, turn {turn + 1}")
                row = _step("grow", threads, folder, size)
                if not best or row["seconds"] < best["seconds"]:
                    best = {**row, **{key: min(row[key], best.get(key, math.inf)) for key in ("scoring", "ranking")}}
                if row["seconds"] > LONG:
                    break
            yield {"step": "grow", "main": size == main, **best}


def community_line(row: Row) -> str:
    """Describe one step."""
    if row["step"] == "web":
        return f"A synthetic web of {row['pages']:,} pages and {row['links']:,} links.\n"
    if row["step"] == "rank":
        text = row.get("failed") or f"{row['seconds']:.2f} s (true error {row['error']:.1e})"
        return f"- PageRank of the whole web by {row['tool']}: {text}"
    return (
        f"- {row['local']:,} local pages, {row['rounds']} rounds to {row['read']:,} pages read: {row['seconds']:.2f} s;"
        f" one scoring of {row['frontier']:,} pages {row['scoring']:.3f} s, PageRank of the pages read "
        f"{row['ranking']:.3f} s"
    )


def community_table(rows: Sequence[Row]) -> str:
    """Return how the time grows with the local pages."""
    grown = sorted((row for row in rows if row["step"] == "grow"), key=lambda row: int(row["local"]))
    header = [
        "local pages",
        "pages read",
        "their links",
        "frontier",
        "seconds",
        "µs per page and round",
        "M links pushed",
        "peak MB",
    ]
    cells = (
        [
            f"{row['local']:,}",
            f"{row['read']:,}",
            f"{row['links']:,}",
            f"{row['frontier']:,}",
            f"{row['seconds']:.2f}",
            f"{1e6 * _each(row):.3f}",
            f"{row['followed'] / 1e6:.1f}",
            f"{row['peak'] >> 20:,}",
        ]
        for row in grown
    )
    return markdown(header, cells)


def community_verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Compare with the targets."""
    grown = [row for row in rows if row["step"] == "grow"]
    main = next((row for row in grown if row["main"]), None)
    if main is None:
        return []
    ranked = {row["tool"]: row["seconds"] for row in rows if row["step"] == "rank" and "seconds" in row}
    ours, peers = ranked.pop("surveyor", None), sorted(ranked.items(), key=lambda item: item[1])
    found = []
    if peers:
        text = f"{main['seconds']:.2f} s, best peer {peers[0][1]:.2f} s ({peers[0][0]})"
        ratio = main["seconds"] / peers[0][1]
        found.append(Verdict(f"{main['local']:,} local pages / PageRank of the web by a peer", text, ratio, RANKING))
    if ours:
        text = f"{main['seconds']:.2f} s, surveyor {ours:.2f} s"
        found.append(Verdict("… by surveyor", text, main["seconds"] / ours, None))
    text = f"{main['scoring']:.3f} s, {main['ranking']:.3f} s"
    found.append(Verdict("one scoring / PageRank of the pages read", text, main["scoring"] / main["ranking"], SCORING))
    if len(grown) > 1:
        each = [_each(row) for row in sorted(grown, key=lambda row: int(row["local"]))]
        text = " → ".join(f"{1e6 * one:.3g}" for one in each) + " µs"
        found.append(Verdict("time per page and round, largest / smallest", text, max(each) / min(each), None))
        sizes, seconds = np.log([row["local"] for row in grown]), np.log([row["seconds"] for row in grown])
        slope = float(np.polyfit(sizes, seconds, 1)[0])
        found.append(Verdict("slope of log time against log local pages", f"{slope:.3f}", slope, None))
    return found


def _each(row: Row) -> float:
    """Return seconds per page read at the end and round."""
    return float(row["seconds"] / row["read"] / row["rounds"])


def _ranked(name: str, web: Input, turns: int, threads: int) -> Row:
    """Time a cold PageRank of the whole web at the loosest accuracy that does."""
    if web.links > TOOLS[name].most_links:
        return {"failed": f"skipped: over {TOOLS[name].most_links // 10**6} M links"}
    if memory.available() < HEADROOM + 200 * web.links:
        return {"failed": "skipped: too little free memory"}
    try:
        with Process(name, web, "arrays", threads) as process:
            built = process.ask("arrays", BUILD)
            if "failed" in built:
                return built
            one = TOOLS[name].one_accuracy
            found = loosest(lambda accuracy: process.ask("rank", RANK, accuracy=accuracy), ERROR, one_accuracy=one)
            if found.accuracy is None:
                return {"failed": f"not reached: best error {found.error:.0e}"}
            again = [process.ask("rank", RANK, accuracy=found.accuracy) for _ in range(turns - 1)]
    except Lost as problem:
        return {"failed": str(problem)}
    seconds = [answer["seconds"] for answer in (found.answer, *again) if "seconds" in answer]
    return {"seconds": min(seconds), "error": found.error, "build": built["seconds"]}


def _step(name: str, threads: int, folder: Path, size: int) -> Row:
    command = [sys.executable, "-m", "benchmarks.community", name, str(folder), str(size)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(threads), capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-500:]}")
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def make(folder: Path, pages: int) -> Row:
    """Write the web: as a graph folder, as pairs of ids, its ranks, and where its sites begin."""
    from dataclasses import replace

    from surveyor import SolverOptions, pagerank, synthetic_web
    from surveyor.graph.synthetic.generate import PRESETS

    web = synthetic_web(replace(PRESETS["web"], pages=pages), folder=folder / "graph", names=False)
    graph = web.graph
    np.save(folder / "sources.npy", np.repeat(np.arange(graph.pages, dtype=np.int32), graph.out_degrees))
    np.save(folder / "targets.npy", graph.indices)
    np.save(folder / "ranks.npy", pagerank(graph, DAMPING, TRUTH, options=SolverOptions(threads=THREADS)).scores)
    np.save(folder / "first.npy", web.first_page)
    return {"pages": graph.pages, "links": graph.links}


def grow(folder: Path, size: int) -> Row:
    """Let local pages grow, then score the frontier once, and rank the pages read from nothing."""
    from surveyor import Graph
    from surveyor.estimate.community.known_graph import ExpansionPlan, expand

    graph = Graph.open(folder / "graph", verify=False)
    graph.indices.sum()  # into memory
    local = local_pages(np.load(folder / "first.npy"), size)
    _timed(*_grown(graph, local[:200], ExpansionPlan(100)))  # compile
    memory.forget_peak()
    began = time.perf_counter()
    grown = expand(graph, local, ExpansionPlan(TIMES * local.size, batch=-(-TIMES * local.size // ROUNDS)))
    seconds = time.perf_counter() - began
    peak = memory.peak()
    known = grown.known
    scoring, ranking = _timed(known, grown.expansion)
    return {
        "local": local.size,
        "read": known.pages.size,
        "links": known.indices.size,
        "frontier": known.frontier.size,
        "rounds": len(grown.rounds) - 1,
        "seconds": seconds,
        "followed": grown.expansion.followed,
        "scoring": scoring,
        "ranking": ranking,
        "peak": peak,
    }


def local_pages(first: Any, size: int) -> Ids:
    """Choose random sites that fit, until there are about this many pages."""
    sizes, parts, left = np.diff(first), [], size
    least, most = OF_SITES
    order = np.random.default_rng(7).permutation(np.flatnonzero((sizes >= least) & (sizes <= most)))
    for site in order:
        if sizes[site] <= left:
            parts.append(np.arange(first[site], first[site + 1], dtype=np.int32))
            left -= int(sizes[site])
    return np.sort(np.concatenate(parts))


def _grown(graph: Graph, local: Ids, plan: Any) -> tuple[Any, Any]:
    from surveyor.estimate.community.known_graph import expand

    grown = expand(graph, local, plan)
    return grown.known, grown.expansion


def _timed(known: Any, expansion: Any) -> tuple[float, float]:
    """Return the quickest of three scorings, and of three rankings of links that were turned round before."""
    from surveyor import Graph, SolverOptions, pagerank

    graph = Graph(known.indptr, known.indices)
    graph.in_links  # noqa: B018
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        began = time.perf_counter()
        expansion.scores(known)
        middle = time.perf_counter()
        pagerank(graph, DAMPING, ERROR, options=SolverOptions(threads=THREADS))
        times[0].append(middle - began)
        times[1].append(time.perf_counter() - middle)
    return min(times[0]), min(times[1])


def main() -> None:
    name, folder, size = sys.argv[1:]
    print(json.dumps({"make": make, "grow": grow}[name](Path(folder), int(size))))


if __name__ == "__main__":
    main()
