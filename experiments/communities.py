"""Tables 1 and 2 of Davis and Dhillon, *Estimating the global PageRank of web communities* (KDD 2006), and more.

    python -m experiments.communities [--quick] [--data DIR] [--pages 4000000] [--seeds 3] [--plots DIR]
        [--json]

For local domains inside larger webs (`chosen_domains`): the distance of the estimated global rank of their pages from
the true one, before and after n/4, n and 2n extra pages, for each selector and each estimator (`community_errors`).
The mean over the seeds is followed by the half-width of Student's 95 % interval if it is not zero. Then, for each
family of domains, the means and those of the paper, which are for other webs: only the pattern can be compared.
"best" counts the domains on which no other selector is more than 1 % better. Ratios of means over domains have
bootstrap 95 % intervals.

The output is Markdown, written incrementally; with `--json` it is one object, and the tables are written to stderr.
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
from experiments.chosen_domains import Web, kind_of, real, say, synthetic
from experiments.community_errors import SELECTORS, Run, back_links, run
from experiments.community_plots import plot
from experiments.community_tables import DomainRuns
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
    found: list[DomainRuns] = []
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
    for make_table in (tables.versus_table, tables.estimator_table, tables.back_table):
        print(make_table(by_family), file=out)
    print(tables.target_line(found), file=out, flush=True)
    if options.json:
        print(json.dumps({"schema": 1, "domains": [one.to_dict() for one in found]}, indent=1))


def measured(web: Web, domain: Domain, seeds: int) -> DomainRuns:
    """Run every selector with every seed on one local domain, in parallel."""
    truth = web.truth(domain)
    tasks = [(web, domain, select, SEED + seed, seed == 0) for select in SELECTORS for seed in range(seeds)]
    runs: list[Run] = []
    with ThreadPool() as pool:
        for one in pool.imap(run, tasks):
            say(f"  {domain.name}: {one.select}, seed {one.seed}: {one.extra:,} pages in {one.seconds:.1f} s")
            runs.append(one)
    return DomainRuns(
        name=domain.name,
        kind=kind_of(domain),
        synthetic=web.synthetic,
        tuned=domain.part == "tuning",
        pages=truth.size,
        web=web.graph.pages,
        ties=tie_share(truth),
        runs=runs,
        back=back_links(web, domain, SEED),
    )


def _webs(options: argparse.Namespace) -> Iterator[Web]:
    if options.data is None:
        say("no folder of real graphs was given (--data): only a synthetic web is used")
    else:
        for web in real(options.data):
            yield replace(web, domains=web.domains[:1]) if options.quick else web
    yield synthetic(min(options.pages, QUICK) if options.quick else options.pages)


def _draw(folder: Path, found: DomainRuns) -> None:
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
    parser.add_argument("--pages", type=int, default=4_000_000, help="of the synthetic web")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each selector")
    parser.add_argument("--plots", type=Path, help="folder for one figure per domain")
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, tables to stderr")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
