"""PageRank of Spark's GraphX beside pieces on a Ray cluster, on the same graph and as many cores.

    python -m benchmarks.spark --python ENVIRONMENT/bin/python [--links 20e6] [--rounds 2]

Spark runs in an environment of its own that has `pyspark` and finds Java, in local mode, bound to loopback. Measured is
an iteration: the difference of two runs of different length, so that starting, reading and partitioning do not count.
Both sides iterate power steps over all links; the ranks are compared at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.cluster import Some, workers
from benchmarks.race import say
from benchmarks.table import markdown
from surveyor import Graph, pagerank, split_graph, synthetic_web
from surveyor.cluster.ranking import RayExecutor
from surveyor.cluster.session import Session
from surveyor.graph.pieces.write import WriteOptions

FEW, MANY = 2, 12  # iterations
TIMEOUT = 3600.0
PROGRAM = """
import json, sys, time
from pyspark import SparkConf, SparkContext

links, out, cores, few, many = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
conf = SparkConf().setMaster(f"local[{cores}]").set("spark.ui.enabled", "false")
conf.set("spark.driver.memory", "12g")
conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
spark = SparkContext(conf=conf)
spark.setLogLevel("ERROR")
graphx = spark._jvm.org.apache.spark.graphx
level = spark._jvm.org.apache.spark.storage.StorageLevel.MEMORY_ONLY()
tag = getattr(getattr(spark._jvm.scala.reflect, "ClassTag$"), "MODULE$").Int()
graph = graphx.GraphLoader.edgeListFile(spark._jsc.sc(), links, False, 4 * cores, level, level)
counted = graph.edges().count()
seconds = {}
for iterations in (few, few, many):  # the first also compiles
    start = time.perf_counter()
    ranks = graphx.lib.PageRank.run(graph, iterations, 0.15, tag, tag).vertices()
    ranks.count()
    seconds[iterations] = time.perf_counter() - start
ranks.saveAsTextFile(out)
print(json.dumps({"links": counted, "seconds": (seconds[many] - seconds[few]) / (many - few)}))
"""


def spark(python: Path, graph: Graph, work: Path, cores: int) -> tuple[float, float]:
    """Return the seconds of an iteration of GraphX, and the L1 distance of its ranks from ours."""
    links, out = work / "links.txt", work / "ranks"
    shutil.rmtree(out, ignore_errors=True)  # of the last round
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    targets = graph.indices
    with links.open("w", encoding="ascii") as file:
        for start in range(0, graph.links, 1 << 20):
            rows = np.column_stack([sources[start : start + (1 << 20)], targets[start : start + (1 << 20)]])
            np.savetxt(file, rows, fmt="%d")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(work)}
    given = [links, out, cores, FEW, MANY]
    done = subprocess.run(
        [python, "-c", PROGRAM, *map(str, given)],
        capture_output=True,
        check=False,
        timeout=TIMEOUT,
        env=environment,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"Spark failed: {done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    ranks = np.zeros(graph.pages)
    for part in sorted(out.glob("part-*")):
        rows = np.loadtxt((line.strip("()\n") for line in part.open(encoding="ascii")), delimiter=",", ndmin=2)
        ranks[rows[:, 0].astype(np.int64)] = rows[:, 1]
    ours = pagerank(graph, tolerance=1e-6).scores
    return float(found["seconds"]), float(np.abs(ranks / ranks.sum() - ours / ours.sum()).sum())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Compare with Spark's PageRank.")
    parser.add_argument("--python", type=Path, required=True, help="interpreter of an environment with pyspark")
    parser.add_argument("--links", type=float, default=20e6)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as folder, Session(f"local:{given.cores}") as session:
        work = Path(folder)
        graph = synthetic_web("web", links=int(given.links), names=False, folder=work / "web").graph
        pieces = split_graph(graph, work / "pieces", 4 * given.cores, WriteOptions())
        for _ in range(given.rounds):
            ours = workers(pieces, partial(RayExecutor, Some(session, given.cores)))
            began = time.perf_counter()
            theirs, distance = spark(given.python, graph, work, given.cores)
            say(f"ours {1000 * ours:.0f} ms, Spark {1000 * theirs:.0f} ms, all {time.perf_counter() - began:.0f} s")
            for name, seconds in (("pieces on Ray", ours), ("GraphX on Spark", theirs)):
                best[name] = min(seconds, best.get(name, seconds))
    rows = [[name, f"{1000 * seconds:.0f}", f"{seconds / best['pieces on Ray']:.1f}"] for name, seconds in best.items()]
    print(f"{graph.links:,} links, {graph.pages:,} pages, {given.cores} workers\n")
    print(markdown(["way", "ms an iteration", "ratio"], rows))
    print(f"L1 distance of the ranks after {MANY} iterations of Spark: {distance:.3f}")


if __name__ == "__main__":
    main()
