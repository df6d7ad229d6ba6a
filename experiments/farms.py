"""Default budgets against farms of spam domains: what a farm takes of a crawl, and what that costs honest pages.

    python -m experiments.farms [--pages 1000] [--seeds 1,2] [--delay 1] [--budget star]
    python -m experiments.farms --rerank 1000000

Each web of `farm_webs` is crawled for `--pages` requests with the strategy rankmass, once without budgets and once with
`--budget`, by the code of a live crawl with a simulated clock and a client that answers from memory. *Honest coverage*
is the true importance of the honest pages fetched: PageRank of the honest web with jumps to the seeds. The same webs
without a farm show the cost of budgets. With `--rerank`, the time of one ranking of a domain graph of this size is
measured for each score. The output is Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.farm_webs import FARMS, LARGE, LOOSE, SMALL, Farm, FarmWeb
from surveyor.config import Settings
from surveyor.crawler.session import create_hosts, run
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import start
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import PRESETS, synthetic_web
from surveyor.rank.domains.established import VotedLinks, establish
from surveyor.rank.domains.link_counts import in_degree, supporters
from surveyor.rank.domains.tse import sampled_supporters
from surveyor.stopping import parse_rule
from surveyor.survey.survey import Survey

WEBS = {"large": LARGE, "small": SMALL, "loose": LOOSE}
RANKS = 10_000  # established domains of a re-ranking
ERROR = 0.1
TURNS = 20  # of the event loop after which nothing can happen without the clock
ANSWER = 0.05  # simulated seconds between two looks at the clock


class Clock:
    """A simulated clock that advances when the crawl waits."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    async def wait(self, something: asyncio.Event, until: float) -> None:
        """Wait for an event, or advance the time."""
        for _ in range(TURNS):
            if something.is_set():
                return
            await asyncio.sleep(0)
        if until < math.inf:
            self.now = max(self.now, until)


def crawl(web: FarmWeb, pages: int, budget: str, delay: float) -> bool:
    """Crawl a web; return whether the crawl warns that its budgets cannot hold a farm."""
    with tempfile.TemporaryDirectory(prefix="surveyor-") as place:
        settings = Settings(
            contact="me@example.org", scope="any", budget=budget, delay=delay, until=f"pages={pages}", archive=False
        )
        folder, settings = start(Path(place) / "a.survey", web.seeds, settings, {})
        with folder:
            clock = Clock()
            hosts = create_hosts(folder, settings, clock)
            connection = Connection(web, None, hosts, clock.wait, 0.0)
            asyncio.run(run(folder, settings, parse_rule(settings.until), connection=connection))
        with Survey(folder.folder) as survey:
            return survey.unguarded is not None


def compare(name: str, farm: Farm | None, seed: int, options: argparse.Namespace) -> list[float]:
    """Crawl a web without and with budgets; return farm shares and honest coverages, and whether the last one warns."""
    found, warns = list[float](), False
    for budget in ("none", options.budget):
        web = FarmWeb(WEBS[name], farm, seed)
        warns = crawl(web, options.pages, budget, options.delay)
        found += [sum(url.startswith("http://farm") for url in web.log), web.coverage(len(web.log)), len(web.log)]
    return [*found, warns]


def tables(options: argparse.Namespace) -> None:
    """Print what each farm takes."""
    print(
        "| web | farm | seed | farm, no budget | of | farm, budget | of | honest, no budget | honest, budget | warns |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|---|")
    for name in options.webs.split(","):
        for label, farm in [("none", None), *FARMS.items()]:
            for seed in map(int, options.seeds.split(",")):
                free, before, asked, held, after, kept, warns = compare(name, farm, seed, options)
                cells = [name, label, seed, f"{free:.0f}", f"{asked:.0f}", f"{held:.0f}", f"{kept:.0f}"]
                print(
                    "| "
                    + " | ".join(map(str, [*cells, f"{before:.2%}", f"{after:.2%}", "yes" if warns else "no"]))
                    + " |",
                    flush=True,
                )


def _of_two_pages(graph: Graph) -> VotedLinks:
    """Return the links of a domain graph with one vote each, as if two pages had each of them."""
    rows, pages = graph.in_links, np.zeros(graph.links, np.int32)
    return VotedLinks(rows.indptr, rows.indices, np.ones(graph.links, np.int64), pages, pages + 1)


def rerank(domains: int) -> None:
    """Print the time of one ranking of a domain graph by each score."""
    graph = synthetic_web(replace(PRESETS["domains-2007"], pages=domains), names=False).graph
    print(f"{graph.pages:,} domains, {graph.links:,} links\n\n| step | seconds | p |\n|---|--:|--:|")
    rows = graph.in_links
    links = _of_two_pages(graph)
    small = synthetic_web("domains", links=3_000, names=False).graph
    sampled_supporters(small)
    supporters(small)
    establish(_of_two_pages(small), np.arange(3))
    seeds = np.argsort(-rows.degrees(), kind="stable")[:3]
    steps: dict[str, Callable[[], object]] = {
        "established domains": lambda: establish(links, seeds, RANKS),
        "in-degree": lambda: in_degree(graph).top(RANKS),
        f"TSE, {ERROR:.0%} at rank {RANKS:,}": lambda: sampled_supporters(graph, top=RANKS, error=ERROR),
        "TSE, p = 0.01": lambda: sampled_supporters(graph, 0.01),
        "SUPP2, exact": lambda: supporters(graph),
    }
    for name, step in steps.items():
        began = time.perf_counter()
        result = step()
        seconds = time.perf_counter() - began
        p = getattr(result, "method", {}).get("p")
        print(f"| {name} | {seconds:.2f} | {'' if p is None else f'{p:.3g}'} |", flush=True)


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser("python -m experiments.farms", description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000, help="requests of a crawl  [1000]")
    parser.add_argument("--seeds", default="1,2", help="random seeds of the webs  [1,2]")
    parser.add_argument("--webs", default=",".join(WEBS), help="honest webs  [large,small,loose]")
    parser.add_argument("--delay", type=float, default=0.0, help="simulated seconds between requests to a host  [0]")
    parser.add_argument("--budget", default="star", help="the budget to compare with none  [star]")
    parser.add_argument("--rerank", type=int, metavar="DOMAINS", help="measure the time of one ranking instead")
    options = parser.parse_args()
    if options.rerank:
        rerank(options.rerank)
    else:
        tables(options)


if __name__ == "__main__":
    main()
