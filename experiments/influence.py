"""Figure 1 of Davis and Dhillon (KDD 2006): the score of a page, and how much fetching it helps.

    python -m experiments.influence [--data DIR] [--domain debian:python-django-doc] [--plots DIR]

From a local domain alone, each page j of its frontier (or `--candidates` random ones) is fetched by itself; the
objective of the paper is the L1 distance of the local ranks from the true ones afterwards, *Global Diff(f_j)*. It is
compared with the influence of j by stochastic complementation, which is known before j is fetched, and with the number
of links to j. The correlations are Spearman's, of the score with the fall of the distance, and with the size of the
change of the local ranks, which is what the influence estimates. `--plots` writes both panels of the figure as SVG.

Without `--data` the domain is a site of a synthetic web.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.small_domains import real
from experiments.uncertainty import links_of
from surveyor.arrays import FloatArray, IdArray
from surveyor.estimate.community.community_options import local_pages
from surveyor.estimate.community.estimators import KnownLinks, local_rank
from surveyor.graph.csr import Graph
from surveyor.rank.comparison import l1
from surveyor.rank.expansion import complement, outlinks
from surveyor.rank.pagerank import pagerank
from surveyor.report.svg import ONE, alone, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DAMPING, EXACT, TRUTH = 0.85, 1e-10, 1e-12
SITE = "domain:site41.example"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pages of the frontier, fetched one at a time."""

    before: float  # L1 distance of the local ranking from the true ranks
    influence: FloatArray
    links: FloatArray  # from the local pages
    after: FloatArray  # Global Diff(f_j)
    change: FloatArray  # L1 distance of the local ranks before and after

    def correlations(self) -> dict[str, tuple[float, float]]:
        """Return Spearman's correlation of each score with the fall of the distance, and with the change."""
        fall = self.before - self.after
        scores = {"influence": self.influence, "links": self.links}
        return {name: (spearman(one, fall), spearman(one, self.change)) for name, one in scores.items()}


def measure(graph: Graph, local: IdArray, count: int, seed: int = 7) -> Candidates:
    """Fetch each candidate by itself and measure the distance from the true ranks."""
    links = links_of(graph)
    truth = pagerank(graph, DAMPING, TRUTH).scores[local]
    truth = truth / truth.sum()
    known = links(local)
    alone_scores = local_rank(local, links, DAMPING, EXACT)
    everything = np.ones(local.size, np.bool_)
    influence, counts = complement(known, alone_scores, everything, DAMPING), outlinks(known)
    size = known.frontier.size
    chosen = np.sort(np.random.default_rng(seed).permutation(size)[:count])
    after, change = np.empty(chosen.size), np.empty(chosen.size)
    for entry, page in enumerate(known.frontier[chosen].tolist()):
        scores = _with_page(local, page, links)
        after[entry], change[entry] = l1(scores, truth), l1(scores, alone_scores)
    return Candidates(l1(alone_scores, truth), influence[chosen], counts[chosen], after, change)


def _with_page(local: IdArray, page: int, links: KnownLinks) -> FloatArray:
    """Return the ranks of the local pages, summing to 1, if one page more is fetched."""
    pages = np.sort(np.append(local, np.int32(page)))
    ranks = local_rank(pages, links, DAMPING, EXACT)[pages != page]
    return np.asarray(ranks / ranks.sum())


def spearman(one: FloatArray, other: FloatArray) -> float:
    """Return Spearman's rank correlation, with mean ranks for ties; nan for a constant vector.

    >>> round(spearman(np.array([1.0, 2.0, 3.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])), 4)
    0.9487
    """
    left, right = _mean_ranks(one), _mean_ranks(other)
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return float("nan")
    return float(np.corrcoef(left, right)[0, 1])


def _mean_ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(np.round(values, 12), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def plots(found: Candidates) -> Iterable[tuple[str, str]]:
    """Yield the two panels: the distance afterwards, by influence and by number of links."""
    for name, title, score in (
        ("influence", "influence (stochastic complementation)", found.influence),
        ("links", "links from local pages", found.links),
    ):

        def draw(axes: Axes, score: FloatArray = score, title: str = title) -> None:
            axes.semilogx(score, found.after, "o", color=ONE, markersize=3, alpha=0.55, markeredgewidth=0)
            axes.axhline(found.before, color="0.5", linewidth=0.8)
            axes.set_xlabel(title)
            axes.set_ylabel("L1 distance from the true ranks with this page")

        label = f"distance from the true ranks after fetching one page, by {title}"
        yield name, figure(draw, label, label)


def chosen_domain(data: Path | None, name: str | None) -> tuple[str, Graph, IdArray]:
    """Return a local domain of a real web, or a site of a synthetic one."""
    if data is None:
        from surveyor.graph.synthetic.generate import synthetic_web

        graph = synthetic_web("small").graph
        return name or SITE, graph, local_pages(name or SITE, graph.names, graph.pages).indices
    for _, graph, domains in real(data):
        for domain in domains:
            if domain.name == (name or "debian:python-django-doc"):
                return domain.name, graph, domain.pages
    raise SystemExit(f"no domain {name} in {data}: names are those of experiments/small_domains.py")


def main(arguments: Sequence[str] | None = None) -> Candidates:
    """Measure, print the correlations, and plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--domain", help="a domain of experiments/small_domains.py, or a rule for the synthetic web")
    parser.add_argument("--candidates", type=int, default=1_000, help="pages of the frontier, at most")
    parser.add_argument("--plots", type=Path, help="folder for the two panels")
    given = parser.parse_args(arguments)
    name, graph, local = chosen_domain(given.data, given.domain)
    found = measure(graph, local, given.candidates)
    better = (found.after < found.before).mean()
    print(f"{name}: {local.size:,} local pages, {found.after.size:,} candidates, {100 * better:.0f} % of them help")
    print(f"L1 distance before: {found.before:.4f}; with the best candidate: {found.after.min():.4f}")
    for score, (fall, change) in found.correlations().items():
        print(f"{score}: correlation with the fall of the distance {fall:.3f}, with the change of ranks {change:.3f}")
    if given.plots is not None:
        given.plots.mkdir(parents=True, exist_ok=True)
        for panel, text in plots(found):
            (given.plots / f"{panel}.svg").write_text(alone(text), "utf-8")
    return found


if __name__ == "__main__":
    main()
