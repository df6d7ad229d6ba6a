"""Errors of estimates of the global rank of local domains where the whole web is known.

    python -m experiments.estimators [--data DIR] [--seeds 7 11 13 17] [--back-links] [--pages]

For each local domain of `local_domains.py`, SC-SELECT fetches pages around it, 4 % of its pages at a time; after no
page, n/4, n and 2n pages the estimates are compared with the true ranks: PageRank of the whole web (damping 0.85,
uniform teleport), scaled to sum 1 over the domain. The distance is L1. The estimator was designed on the *tuning*
domains only. The *test* domains were evaluated twice: before factors of single parents were added, and at the end.
*Fresh* domains are in webs, or in parts of webs, that were evaluated only at the end. Domains without links to other
pages are omitted: all estimates are equal there.

`auto` is *safe* on a domain if its error is at most 1.1 times that of the better of the other two, or at most 0.0001
above it. With `--back-links`, a tenth, three tenths or all of the outside pages that link to the domain are known in
addition, without being fetched. `--pages` prints every domain. The output is Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from experiments.local_domains import Domain, Web, real, synthetic
from surveyor.arrays import FloatArray, IdArray
from surveyor.estimate.community.estimators import Method, estimate
from surveyor.estimate.community.known_graph import ExpansionPlan, expand, rows_of
from surveyor.graph.csr import Graph
from surveyor.kernels.crawled_graph import build_crawled_graph
from surveyor.rank.pagerank import pagerank

STEPS = (0.0, 0.25, 1.0, 2.0)  # extra pages, as multiples of the local ones
SHARES = (0.0, 0.1, 0.3, 1.0)  # of the outside pages that link to the domain, known by back-links
METHODS: tuple[Method, ...] = ("crawled", "frontier", "auto")
SAFE, ABOVE = 1.1, 1e-4

Errors = dict[str, float]  # by method
Found = dict[tuple[float, float], Errors]  # by extra pages and share of back-links


def measure(graph: Graph, truth: FloatArray, domain: Domain, shares: Iterable[float] = (0.0,)) -> Found | None:
    """Return the errors on one domain; None if no link leaves it."""
    local, rows = domain.pages, rows_of(graph)
    done = expand(graph, local, ExpansionPlan(round(max(STEPS) * local.size)))
    if not done.extra.size:
        return None
    batch_of = done.batch_of[np.searchsorted(done.known.pages, done.extra)]
    right = truth[local] / truth[local].sum()
    linking = _linking(graph, local)
    found: Found = {}
    for share in shares:
        known = linking[: round(share * linking.size)]
        for step in STEPS:
            count = int(np.searchsorted(batch_of, _last_batch(step, local.size), side="right"))
            extra = np.setdiff1d(done.extra[:count], known)
            pages = np.unique(np.concatenate([local, known, extra])).astype(np.int32)
            read = build_crawled_graph(rows, pages)
            rounds = np.zeros(pages.size, np.int64)
            order = np.argsort(done.extra)
            rounds[np.searchsorted(pages, extra)] = batch_of[order[np.searchsorted(done.extra, extra, sorter=order)]]
            places = np.searchsorted(pages, local).astype(np.int32)
            found[step, share] = {
                method: float(np.abs(estimate(read, places, rounds, method).scores - right).sum()) for method in METHODS
            }
    return found


def _last_batch(step: float, pages: int) -> int:
    return round(step * pages / ExpansionPlan(0).batch_size(pages))


def _linking(graph: Graph, local: IdArray) -> IdArray:
    """Return the outside pages that link to the domain, shuffled."""
    into = graph.in_links
    sources = [into.indices[into.indptr[page] : into.indptr[page + 1]] for page in local]
    outside = np.setdiff1d(np.unique(np.concatenate(sources)), local)
    return np.random.default_rng(7).permutation(outside).astype(np.int32)


def run(webs: Iterable[Web], *, back_links: bool, pages: bool) -> None:
    """Measure all domains and print tables."""
    rows: dict[tuple[str, str, str], list[Found]] = defaultdict(list)
    for name, graph, domains in webs:
        truth = pagerank(graph, tolerance=1e-10).scores
        for domain in domains:
            if back_links and domain.part == "tuning":
                continue
            found = measure(graph, truth, domain, SHARES if back_links else (0.0,))
            if found is None:
                continue
            rows[domain.part, domain.family, name.split()[0]].append(found)
            sys.stderr.write(f"{domain.part} {domain.name}: {found[1.0, 0.0]}\n")
            if pages:
                cells = [f"{found[step, 0.0][method]:.4f}" for step in STEPS for method in METHODS]
                sys.stdout.write(_row([domain.part, domain.name, f"{domain.pages.size:,}", *cells]))
    sys.stdout.write("\n")
    if back_links:
        _back_links([found for group in rows.values() for found in group])
    else:
        _by_group(rows)


def _by_group(rows: dict[tuple[str, str, str], list[Found]]) -> None:
    for part in ("tuning", "test", "fresh"):
        groups = {f"{web}, {family}": found for (where, family, web), found in sorted(rows.items()) if where == part}
        if not groups:
            continue
        everything = [one for found in groups.values() for one in found]
        heads = [f"+{step:g}n {method}" for step in STEPS for method in METHODS]
        sys.stdout.write(f"Mean L1 error, {part} domains\n\n" + _row(["", "domains", *heads]))
        sys.stdout.write(_row(["---"] + ["--:"] * (1 + len(heads))))
        for label, found in {**groups, "all": everything}.items():
            means = [np.mean([one[step, 0.0][method] for one in found]) for step in STEPS for method in METHODS]
            sys.stdout.write(_row([label, str(len(found)), *(f"{mean:.4f}" for mean in means)]))
        sys.stdout.write("\n" + _row([f"auto, {part}", *(f"+{step:g}n" for step in STEPS)]))
        sys.stdout.write(_row(["---"] + ["--:"] * len(STEPS)))
        sys.stdout.write(_row(["safe", *(f"{_safe(everything, step):.0%}" for step in STEPS)]))
        for what, middle in (("mean", np.mean), ("median", np.median)):
            falls = [
                middle([one[step, 0.0]["auto"] for one in everything])
                / middle([one[step, 0.0]["crawled"] for one in everything])
                for step in STEPS
            ]
            sys.stdout.write(_row([f"{what} error against crawled", *(f"{fall - 1:+.0%}" for fall in falls)]))
        sys.stdout.write("\n")


def _safe(found: list[Found], step: float) -> float:
    errors = [one[step, 0.0] for one in found]
    return float(np.mean([e["auto"] <= max(SAFE * _better(e), _better(e) + ABOVE) for e in errors]))


def _better(errors: Errors) -> float:
    return min(errors["crawled"], errors["frontier"])


def _back_links(found: list[Found]) -> None:
    heads = [f"+{step:g}n {method}" for step in STEPS for method in METHODS]
    sys.stdout.write(f"Mean L1 error with back-links, {len(found)} domains\n\n" + _row(["known", *heads]))
    sys.stdout.write(_row(["---"] + ["--:"] * len(heads)))
    for share in SHARES:
        means = [np.mean([one[step, share][method] for one in found]) for step in STEPS for method in METHODS]
        sys.stdout.write(_row([f"{share:.0%}", *(f"{mean:.4f}" for mean in means)]))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--seeds", type=int, nargs="*", default=[7, 11, 13, 17], help="of synthetic webs")
    parser.add_argument("--back-links", action="store_true", help="measure the effect of known back-links")
    parser.add_argument("--pages", action="store_true", help="print every domain")
    given = parser.parse_args()
    webs = [synthetic(tuple(given.seeds))] + ([real(given.data)] if given.data else [])
    run((web for group in webs for web in group), back_links=given.back_links, pages=given.pages)


if __name__ == "__main__":
    main()
