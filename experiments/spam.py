"""Spam resistance of domain scores on graphs with known bad domains.

    python -m experiments.spam [--domains 100000] [--seeds 5] [--data DIR] [--out FOLDER] [--parts synthetic,real]

For each graph and score: the number of bad domains among the first 10, 100, 1,000 and 10,000; the position of the
first; the area under that curve up to the budget (the number of domains that would get a large budget), as a fraction
of the worst case; the difference of level-2 supporters to each other score at the budget, with its bootstrap interval,
and a `?` if it is not significant; the score of the last domain within the budget, which an attacker must reach; and
the computing time. Spam is planted in several synthetic webs: counts are means, the first position is the median.
Domains that were planted together are drawn together.

The synthetic webs use the preset `domains`. Real graphs are used if DIR holds them. The output is Markdown; with --out
also `spam.csv`, `spam.json` and, if matplotlib is installed, `spam.html` with the curves.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.spam_statistics import Difference, compare_by_bootstrap, positions_plot
from experiments.spam_webs import Case, log, planted, real
from surveyor.arrays import IntArray
from surveyor.errors import MissingExtra
from surveyor.graph.csr import Graph
from surveyor.rank.bad_domains import BadDomains, bad_domains_in, positions_in, top_lists
from surveyor.rank.domains.link_counts import in_degree, supporters, two_link_paths, weighted_in_degree
from surveyor.rank.domains.reach_sketches import harmonic
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.domains.tse import sampled_supporters
from surveyor.rank.pagerank import Ranking, pagerank
from surveyor.report.domain_scores import spam_plot, top_table
from surveyor.report.html_page import document, figure, write
from surveyor.report.tables import plain_lines

RANKS = (10, 100, 1_000, 10_000)
BEST = "SUPP2"
SAMPLED = (0.01, 0.001)
UNDRAWN = ("QVS",)  # at most eight lines can be distinguished
TOP = 15
REGISTERS = 256  # of each counter of the harmonic centrality
RNG = 7


@dataclass(frozen=True, slots=True)
class Run:
    """One score on one graph."""

    spam: BadDomains
    positions: IntArray  # of each bad domain, in the order of the case
    top: IntArray
    entry: float  # the score of the last domain within the budget
    popular: Mapping[str, int]  # domains of a list within the budget
    seconds: float


def scores(case: Case) -> dict[str, Callable[[], Reputation | Ranking]]:
    """Return a function for each score of a graph."""
    graph = case.graph
    trusted = np.zeros(graph.pages)
    trusted[case.trusted] = 1.0
    sampled = {f"TSE {p:g}": lambda p=p: sampled_supporters(graph, p=p, rng=RNG) for p in SAMPLED}
    return {
        "IN": lambda: in_degree(graph),
        "WIN": lambda: weighted_in_degree(graph),
        "PageRank": lambda: pagerank(graph),
        "QVS": lambda: two_link_paths(graph),
        BEST: lambda: supporters(graph, depth=2),
        **sampled,
        "harmonic": lambda: harmonic(graph, registers=REGISTERS, rng=RNG),
        "trust": lambda: pagerank(graph, teleport=trusted),
    }


def order(graph: Graph, result: Reputation | Ranking) -> IntArray:
    """Return all domains, best first; ties are broken by in-links, then by id."""
    if isinstance(result, Reputation):
        return result.top(graph.pages)
    return np.lexsort((np.arange(graph.pages), -graph.in_links.degrees(), -result.scores))


def run_all(case: Case) -> dict[str, Run]:
    """Run every score on one graph."""
    case.graph.in_links  # noqa: B018  # computed once, before the timed part
    runs = {}
    for name, score in scores(case).items():
        start = time.perf_counter()
        result = score()
        seconds = time.perf_counter() - start
        best = order(case.graph, result)
        popular = {known: bad_domains_in(known, best, ids).count(case.budget) for known, ids in case.popular.items()}
        bad = bad_domains_in(name, best, case.bad)
        entry = float(result.scores[best[case.budget - 1]])
        runs[name] = Run(bad, positions_in(best, case.bad), best[:TOP], entry, popular, seconds)
    return runs


def differences(cases: Sequence[Case], runs: Sequence[Mapping[str, Run]]) -> dict[str, Difference]:
    """Compare the supporters with each other score, over the bad domains of all graphs together."""
    first = cases[0].budget
    groups = np.concatenate([number * 1_000_000 + case.groups for number, case in enumerate(cases)])
    whole = {name: np.concatenate([run[name].positions for run in runs]) for name in runs[0]}
    best = (BEST, whole.pop(BEST))
    return {
        name: compare_by_bootstrap(best, (name, positions), first, groups=groups, rng=RNG)
        for name, positions in whole.items()
    }


def table(name: str, cases: Sequence[Case]) -> dict[str, Any]:
    """Run all scores on the graphs of one kind, print the table and return it."""
    log(name)
    runs = [run_all(case) for case in cases]
    first, graphs = cases[0].budget, len(cases)
    compared = differences(cases, runs)
    domains, links = (round(statistics.mean(sizes)) for sizes in zip(*[_sizes(case) for case in cases], strict=True))
    bad = sum(case.bad.size for case in cases) / graphs
    many = f", {graphs} graphs" if graphs > 1 else ""
    print(f"\n### {name}: {domains:,} domains, {links:,} links, {bad:,.0f} bad{many}; budget {first:,}\n")
    ranks = [rank for rank in RANKS if rank <= domains]
    popular = list(cases[0].popular)
    heads = [
        "score",
        *(f"first {rank:,}" for rank in ranks),
        "first bad",
        "area",
        f"{BEST} − this",
        "entry",
        *popular,
        "seconds",
    ]
    print(f"| {' | '.join(heads)} |\n|---|{'--:|' * (len(heads) - 1)}")
    for score in runs[0]:
        rows = [run[score] for run in runs]
        cells = [_number(statistics.mean(row.spam.count(rank) for row in rows)) for rank in ranks]
        cells += [_first(rows), f"{statistics.mean(row.spam.area(first) for row in rows):.3f}"]
        cells.append(_difference(compared.get(score), graphs))
        cells.append(_entry(statistics.mean(row.entry for row in rows)))
        cells += [f"{rows[0].popular[known]:,}" for known in popular]
        cells.append(f"{statistics.mean(row.seconds for row in rows):.2g}")
        print(f"| {score} | {' | '.join(cells)} |", flush=True)
    if cases[0].graph.names is not None:
        shown = top_lists({score: run.top for score, run in runs[0].items()}, cases[0].bad, TOP)
        print("\n```text", *plain_lines(top_table(list(runs[0]), shown, cases[0].graph.name)), "```", sep="\n")
    return {
        "name": name,
        "graphs": graphs,
        "domains": domains,
        "links": links,
        "bad": bad,
        "budget": first,
        "scores": [
            {
                **run[score].spam.to_dict(RANKS),
                "graph": number,
                "seconds": run[score].seconds,
                "entry": run[score].entry,
                "area_to_budget": run[score].spam.area(first),
                "popular": dict(run[score].popular),
            }
            for number, run in enumerate(runs)
            for score in run
        ],
        "differences": [difference.to_dict() for difference in compared.values()],
        "first": [run.spam for score, run in runs[0].items() if score not in UNDRAWN],
    }


def _sizes(case: Case) -> tuple[int, int]:
    return case.graph.pages, case.graph.links


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _entry(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _first(rows: Sequence[Run]) -> str:
    firsts = [row.spam.first for row in rows if row.spam.first is not None]
    return f"{statistics.median(firsts):,.0f}" if firsts else "–"


def _difference(difference: Difference | None, graphs: int) -> str:
    if difference is None:
        return ""
    low, mean, high = (value / graphs for value in (difference.low, difference.difference, difference.high))
    if low == mean == high == 0:
        return "the same"
    return f"{mean:+,.1f} ({low:+,.1f} to {high:+,.1f}){'' if difference.significant else ' ?'}"


def write_all(folder: Path, tables: Sequence[dict[str, Any]]) -> None:
    """Write the figures of all graphs as CSV and JSON, and the curves as a page."""
    folder.mkdir(parents=True, exist_ok=True)
    curves = [(each["name"], each.pop("first"), each["budget"]) for each in tables]
    (folder / "spam.json").write_text(json.dumps({"schema": 1, "tables": tables}, indent=1) + "\n")
    with (folder / "spam.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["web", "graph", "score", *(f"bad_in_{rank}" for rank in RANKS), "first_bad", "area", "seconds"]
        )
        for each in tables:
            writer.writerows(_record(each["name"], row) for row in each["scores"])
    try:
        parts = list(_figures(curves))
    except MissingExtra as missing:
        log(str(missing))
        return
    write(document("Bad domains in rankings", parts), folder / "spam.html")


def _record(name: str, row: Mapping[str, Any]) -> list[Any]:
    counts = [row["bad_among_first"].get(str(rank), "") for rank in RANKS]
    return [name, row["graph"], row["score"], *counts, row["first_bad"], row["area_to_budget"], row["seconds"]]


def _figures(curves: Sequence[tuple[str, Sequence[BadDomains], int]]) -> Iterator[str]:
    for name, rankings, budget in curves:
        end = 10 * budget
        yield figure(spam_plot(rankings, end), name, f"Bad domains up to each rank; budget {budget:,}.")
        yield figure(positions_plot(rankings, end), name, "Positions of the bad domains.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--domains", type=int, default=100_000, help="of the synthetic webs")
    parser.add_argument("--seeds", type=int, default=5, help="number of webs of each kind")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of real graphs")
    parser.add_argument("--out", type=Path, help="folder for CSV, JSON and the curves")
    parser.add_argument("--parts", default="synthetic,real", help="parts to run, separated by commas")
    options = parser.parse_args(arguments)
    seeds = range(RNG, RNG + options.seeds)
    for _, cases in planted(1_000, [RNG]):
        run_all(cases[0])  # compile before timing
        break
    tables = []
    if "synthetic" in options.parts:
        tables += [table(name, cases) for name, cases in planted(options.domains, seeds)]
    if "real" in options.parts:
        tables += [table(name, cases) for name, cases in real(options.data, seeds)]
    if options.out is not None:
        write_all(options.out, tables)


if __name__ == "__main__":
    main()
