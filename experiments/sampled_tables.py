"""Fetches for a certified goal before and now, for a sampled goal, and in the best possible order.

*Before* is an earlier version, whose source folder is given. Each version runs in a process of its own
(`sampled_worker.py`). Real graphs are crawled in simulation from several sets of random seeds, sites over HTTP on
loopback from their entry. The best order is that of true importance, which no crawler knows.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.real_sites import sites_of
from experiments.sampled_webs import Web, scenario
from experiments.site_truth import FINE, OTHER, find_truth
from experiments.sites import serving
from surveyor.arrays import FloatArray
from surveyor.graph.csr import Graph

GOALS = (0.5, 0.8, 0.9, 0.95)
SEEDS = 5  # of a set
LONGEST = 900  # seconds of a process
WORKER = Path(__file__).with_name("sampled_worker.py")
HERE = Path(__file__).parents[1] / "src"


class Row(NamedTuple):
    """The fetches for one goal; NaN: not reached."""

    name: str
    goal: float
    before: float  # certified
    now: float  # certified
    sampled: float
    best: float
    true: float  # coverage at the end of the sampled crawl


def run(source: Path, task: dict[str, Any]) -> list[dict[str, Any]]:
    """Let a version do a task; return what it did in time."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, str(WORKER)]
    try:
        done = subprocess.run(  # noqa: S603
            command, input=json.dumps(task), env=environment, capture_output=True, text=True, timeout=LONGEST
        )
        output = done.stdout
        if done.returncode:
            print(done.stderr[-500:], file=sys.stderr)
    except subprocess.TimeoutExpired as late:
        output = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{") and line.endswith("}")]


def best_order(importance: FloatArray, goal: float) -> float:
    """Return the fewest pages that hold a coverage; NaN if all do not."""
    held = np.cumsum(np.sort(importance)[::-1])
    return float(np.searchsorted(held, goal) + 1) if held.size and held[-1] >= goal else float("nan")


def versions(task: dict[str, Any], before: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the versions did, with its name: before, now or sampled."""
    certified = [(goal, False) for goal in GOALS]
    if before is not None:
        yield from (("before", one) for one in run(before, {**task, "goals": certified}))
    for one in run(HERE, {**task, "goals": [*certified, *((goal, True) for goal in GOALS)]}):
        yield ("sampled" if one["sampled"] else "now"), one


def graph_rows(graphs: Iterable[tuple[str, Graph]], before: Path | None, sets: int, rng: int) -> Iterator[Row]:
    """Crawl graphs from some sets of seeds each; yield medians over the sets."""
    for name, graph in graphs:
        found: dict[tuple[str, float], list[float]] = {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "graph.npz")
            np.savez(path, indptr=graph.indptr, indices=graph.indices)
            for number in range(sets):
                draw = np.random.default_rng([rng, number])
                seeds = np.unique(draw.choice(np.flatnonzero(graph.out_degrees > 0), SEEDS)).astype(np.int32)
                task = {"graph": str(path), "seeds": seeds.tolist(), "rng": number}
                truth = scenario(Web(graph, seeds, np.zeros(graph.pages, np.uint8))).truth().scores
                for goal in GOALS:
                    found.setdefault(("best", goal), []).append(best_order(truth, goal))
                for which, one in versions(task, before):
                    fetches = one["fetches"] if one["reached"] else float("nan")
                    found.setdefault((which, one["goal"]), []).append(fetches)
                    if which == "sampled":
                        found.setdefault(("true", one["goal"]), []).append(one["true"])
        for goal in GOALS:
            kinds = ("before", "now", "sampled", "best", "true")
            yield Row(name, goal, *(float(np.median(found.get((kind, goal), [float("nan")]))) for kind in kinds))


def site_rows(root: Path, before: Path | None) -> Iterator[Row]:
    """Crawl sites over HTTP from their entry."""
    sites = sites_of([root], [])
    with serving(sites) as web:
        for site in sites:
            truth = find_truth(web, site.name)
            fetchable = np.isin(truth.statuses, (FINE, OTHER))
            task = {"entry": web.entry(site.name), "host": site.host}
            found = {(which, one["goal"]): one for which, one in versions(task, before)}
            for goal in GOALS:
                fetches = [
                    float(one["fetches"]) if (one := found.get((kind, goal))) and one["ending"] == "reached" else np.nan
                    for kind in ("before", "now", "sampled")
                ]
                true = truth.coverage(found["sampled", goal]["read"]) if ("sampled", goal) in found else np.nan
                best = best_order(truth.importance.scores[fetchable], goal)
                yield Row(site.name, goal, fetches[0], fetches[1], fetches[2], best, true)


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a Markdown table, then the medians of the ratios."""
    yield "| web | goal | before | now | sampled | best order | now/before | sampled/before | true, sampled |"
    yield "|---|" + "--:|" * 8
    done: list[Row] = []
    for row in rows:
        done.append(row)
        numbers = [f"{value:,.0f}" for value in (row.before, row.now, row.sampled, row.best)]
        ratios = [f"{value / row.before:.2f}" for value in (row.now, row.sampled)]
        cells = [row.name, f"{row.goal:.0%}", *numbers, *ratios, f"{row.true:.3f}"]
        yield ("| " + " | ".join(cells) + " |").replace("nan", "–")
    for goal in (*GOALS, None):
        mine = [row for row in done if goal in (None, row.goal)]
        medians = [_median([row.now / row.before for row in mine]), _median([row.sampled / row.before for row in mine])]
        what = "all goals" if goal is None else f"{goal:.0%}"
        yield f"| **median** | {what} | | | | | {medians[0]:.2f} | {medians[1]:.2f} | |"


def _median(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.median(known)) if known else float("nan")
