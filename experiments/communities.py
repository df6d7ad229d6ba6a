"""Tables 1 and 2 of Davis and Dhillon, *Estimating the global PageRank of web communities* (KDD 2006), and more.

    python -m experiments.communities [--quick] [--data DIR] [--pages 4000000] [--seeds 3] [--plots DIR]
        [--json]

For local domains inside larger webs (`chosen_domains`): how far the estimated global rank of their pages is from the
true one, before and after n/4, n and 2n further pages were read, for each way to choose these pages and each estimator
(`community_errors`). The mean over the seeds has Student's 95 % interval behind it where it is not zero. Then, for each
family of domains, the means beside those of the paper, which are of other webs: the form can be compared, not the
figures. "best" counts the domains on which no other choice is more than a hundredth better. Ratios of means over
domains come with 95 % intervals from drawing the domains anew.

The output is Markdown, written as it comes; with `--json` it is one object, and the tables go to stderr.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from experiments import community_tables as tables
from experiments.chosen_domains import Web, kind_of, made, real, say
from experiments.community_errors import SELECTORS, Run, back_links, run
from experiments.community_plots import plot
from experiments.community_tables import Found
from experiments.local_domains import Domain
from surveyor.errors import MissingExtra
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.comparison import tie_share
from surveyor.report.svg import alone

QUICK = 60_000  # pages
SEED = 7


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    options = _options(arguments)
    out = sys.stderr if options.json else sys.stdout
    found: list[Found] = []
    for web in _webs(options):
        say(f"{web.name}: {web.graph!r}, ranking")
        print(f"\n# {web.name}: {web.graph.pages:,} pages, {web.graph.links:,} links\n", file=out, flush=True)
        for domain in web.domains:
            found.append(measured(web, domain, options.seeds))
            print(tables.domain_table(found[-1]), file=out, flush=True)
            if options.plots is not None:
                _draw(options.plots, found[-1])
    by_family = tables.families(found)
    for title, family in by_family.items():
        print(tables.family_table(title, family), file=out)
    for told in (tables.versus_table, tables.estimator_table, tables.back_table):
        print(told(by_family), file=out)
    print(tables.target_line(found), file=out, flush=True)
    if options.json:
        print(json.dumps({"schema": 1, "domains": [one.to_dict() for one in found]}, indent=1))


def measured(web: Web, domain: Domain, seeds: int) -> Found:
    """Run every choice with every seed on one local domain, as many at a time as there are cores."""
    truth = web.truth(domain)
    tasks = [(web, domain, select, SEED + seed, seed == 0) for select in SELECTORS for seed in range(seeds)]
    runs: list[Run] = []
    with ThreadPool() as pool:
        for one in pool.imap(run, tasks):
            say(f"  {domain.name}: {one.select}, seed {one.seed}: {one.extra:,} pages in {one.seconds:.1f} s")
            runs.append(one)
    return Found(
        domain.name, kind_of(domain), web.made, domain.part == "tuning", truth.size, web.graph.pages, tie_share(truth),
        runs, back_links(web, domain, SEED),
    )  # fmt: skip


def _webs(options: argparse.Namespace) -> Iterator[Web]:
    if options.data is None:
        say("no folder of real graphs was given (--data): only a made-up web is used")
    else:
        for web in real(options.data):
            yield replace(web, domains=web.domains[:1]) if options.quick else web
    yield made(min(options.pages, QUICK) if options.quick else options.pages)


def _draw(folder: Path, found: Found) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", found.name)
    try:
        (folder / f"{name}.svg").write_text(alone(plot(found)), "utf-8")
    except MissingExtra as missing:
        say(str(missing))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small web, and one domain of each real one")
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--pages", type=int, default=4_000_000, help="of the made-up web")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each choice")
    parser.add_argument("--plots", type=Path, help="folder for one figure per domain")
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, tables to stderr")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
