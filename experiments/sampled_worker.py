"""Crawl a graph or a site for several goals, with whichever version of surveyor is on the path.

A process of its own for `sampled_tables.py`: reads JSON from standard input, writes a line of JSON for each goal. It
uses only what earlier versions have, too.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import surveyor as sv
from surveyor.graph.csr import Graph
from surveyor.testing.web_server import LoopbackResolver


def goal_of(goal: float, *, sampled: bool) -> sv.Coverage:
    """Return the stopping rule."""
    return sv.Coverage(goal, confidence=0.95) if sampled else sv.Coverage(goal)


def simulated(task: dict[str, Any], goal: float, *, sampled: bool) -> dict[str, Any]:
    """Crawl a graph that is stored as arrays."""
    with np.load(task["graph"]) as arrays:
        graph = Graph(arrays["indptr"], arrays["indices"])
    race = sv.simulate(graph, ["rankmass"], goal_of(goal, sampled=sampled), seeds=task["seeds"], rng=task["rng"])
    run = race.runs[0]
    return {"fetches": int(run.order.size), "true": float(run.true[-1]), "reached": bool(run.reached)}


def crawled(task: dict[str, Any], goal: float, *, sampled: bool) -> dict[str, Any]:
    """Crawl a site that is served on loopback."""
    until = f"coverage={goal}@95%" if sampled else f"coverage={goal}"
    with tempfile.TemporaryDirectory() as folder:
        survey = sv.crawl(
            task["entry"],
            out=Path(folder, "site.survey"),
            until=until,
            scope="host",
            contact="someone@example.org",
            allow=[task["host"]],
            delay=0,
            backoff=0.05,
            resolver=LoopbackResolver([task["host"]]),
            archive=False,
            concurrency=1,  # one page at a time, as with a delay: the order depends on no timing
        )
        with survey:
            read = [url for _, url, visit in survey.pages() if visit is not None and visit.kind == "fetched"]
            certified = survey.coverage.at_least
            ending = str(survey.ending)
    return {"fetches": len(read), "read": read, "certified": certified, "ending": ending}


def main() -> None:
    """Do all goals of a task."""
    task = json.load(sys.stdin)
    do = simulated if "graph" in task else crawled
    for goal, sampled in task["goals"]:
        began = time.process_time()
        done = do(task, goal, sampled=sampled)
        seconds = time.process_time() - began
        print(json.dumps({"goal": goal, "sampled": sampled, "seconds": seconds, **done}), flush=True)


if __name__ == "__main__":
    main()
