"""Crawl real documentation sites on loopback and compare what comes out with the truth.

    python -m experiments.real_sites --root FOLDER
    python -m experiments.real_sites --site python=FOLDER --site pascal=FOLDER:fpctoc.html

FOLDER of `--root` has a folder (or a symbolic link to one) per site, with an `index.html`; `--site` names one site,
and where readers come in if it is not there. Documentation packages of Debian are such folders.

For each site a table says what is there (`site_truth`): pages, links, and how many links leave it. Then the site is
crawled twice, each time over HTTP and from its entry alone:

- *for all of it*: every page that can be reached must have been read, and nothing else; the ranks must lie within
  their stated error of the true ones;
- *for nine tenths*: the crawl must end by itself with a coverage of at least 0.9, and the true coverage must lie in
  the interval it states.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.site_truth import FINE, OTHER, STATUSES, SiteTruth, find_truth
from experiments.sites import INDEX, Site, SiteServer, serving
from surveyor.errors import UsageError
from surveyor.stopping import Coverage, Pages
from surveyor.survey.crawl import crawl

GOAL = 0.9
ALL = 1 << 40  # pages
TOLERANCE = 1e-9
ROUNDING = 1e-12  # for each sum of shares, which are added in another order


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What a crawl says about a site."""

    read: tuple[str, ...]  # URLs of pages that were read
    ranks: Mapping[str, float]  # of URLs; they sum to 1
    error: float  # the ranks are at most this far from those of the graph that was crawled, in L1
    at_least: float  # coverage
    at_most: float
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far what a crawl says lies from the truth."""

    missing: tuple[str, ...]  # pages that can be reached and were not read
    strange: tuple[str, ...]  # URLs that were read although no page of the truth has them
    distance: float  # between the ranks, in L1
    allowed: float  # the stated errors of both sides
    coverage: float  # true one of the pages read

    @property
    def holds(self) -> bool:
        """Whether all was found, and the ranks are as exact as they claim to be."""
        return not self.missing and not self.strange and self.distance <= self.allowed

    def __repr__(self) -> str:
        found = f"{len(self.missing):,} pages missing, {len(self.strange):,} strange"
        return f"Comparison({found}; ranks {self.distance:.1e} apart, {self.allowed:.1e} allowed)"


def compare(read: Iterable[str], ranks: Mapping[str, float], error: float, truth: SiteTruth) -> Comparison:
    """Compare the pages that a crawl read and their ranks with the truth.

    Files that are not HTML may have been read or not. Ranks of aliases count for the pages they stand for.
    """
    found = set(read)
    scores = truth.importance.scores
    given = [0.0] * len(truth.urls)
    distance = 0.0
    for url, share in ranks.items():
        page = truth.ids.get(url)
        if page is None:
            distance += abs(share)
        else:
            given[int(truth.stands_for[page])] += share
    distance += sum(abs(share - score) for share, score in zip(given, scores.tolist(), strict=True))
    return Comparison(
        missing=tuple(sorted(set(truth.with_status(FINE)) - found)),
        strange=tuple(sorted(found.difference(truth.with_status(FINE, OTHER)))),
        distance=distance,
        allowed=error + truth.importance.error + ROUNDING,
        coverage=truth.coverage(found),
    )


def crawl_site(web: SiteServer, site: Site, out: Path, goal: float | None) -> Surveyed:
    """Crawl a site over HTTP from its entry until a coverage is reached; all of it if there is no goal."""
    began = time.perf_counter()
    survey = crawl(
        web.entry(site.name),
        out=out,
        until=Pages(ALL) if goal is None else Coverage(goal),
        scope="host",  # an entry in a folder would else narrow it to that
        contact="someone@example.org",
        allow=[site.host],
        delay=0,
        backoff=0.05,
        resolver=web.resolver,
        archive=False,
    )
    seconds = time.perf_counter() - began
    with survey:
        ranking = survey.rank(tolerance=TOLERANCE)
        read = tuple(url for _, url, visit in survey.pages() if visit is not None and visit.kind == "fetched")
        ranks = dict(zip(survey.graph().names or (), ranking.scores.tolist(), strict=True))
        coverage = survey.coverage
    return Surveyed(read, ranks, ranking.error, coverage.at_least, coverage.at_most, seconds)


CrawlSite = Callable[[SiteServer, Site, Path, float | None], Surveyed]


def check(web: SiteServer, site: Site, truth: SiteTruth, crawl_it: CrawlSite = crawl_site) -> list[str]:
    """Crawl a site for all of it and for nine tenths; return what is wrong, in sentences."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        whole = crawl_it(web, site, Path(folder, "whole"), None)
        part = crawl_it(web, site, Path(folder, "part"), GOAL)
    compared = compare(whole.read, whole.ranks, whole.error, truth)
    if not compared.holds:
        first = ", ".join([*compared.missing[:3], *compared.strange[:3]])
        wrong.append(f"{site.name}: {compared} {first}")
    for asked, result in (("all", whole), (f"{GOAL:.0%}", part)):
        true = truth.coverage(result.read)
        if not result.at_least - ROUNDING <= true <= result.at_most + ROUNDING:
            wrong.append(
                f"{site.name}: asked for {asked}, {true:.4f} is not in {result.at_least:.4f}–{result.at_most:.4f}"
            )
    if part.at_least < GOAL:
        wrong.append(f"{site.name}: asked for {GOAL:.0%}, ended at {part.at_least:.4f}")
    print(
        f"| {site.name} | {len(whole.read):,} | {compared.distance:.1e} | {compared.allowed:.1e} | {len(part.read):,} "
        f"| {part.at_least:.4f}–{part.at_most:.4f} | {truth.coverage(part.read):.4f} "
        f"| {len(whole.read) / max(whole.seconds, 1e-9):,.0f} |",
        flush=True,
    )
    return wrong


def describe(site: Site, truth: SiteTruth, seconds: float) -> str:
    """Return the row of a table."""
    counts = {name: int((truth.statuses == status).sum()) for status, name in enumerate(STATUSES)}
    cells = [
        site.name,
        *(f"{counts[name]:,}" for name in STATUSES),
        f"{truth.graph.links:,}",
        f"{truth.leaving:.1%}",
        f"{seconds:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def sites_of(roots: Iterable[Path], named: Iterable[str]) -> list[Site]:
    """Return the sites that a command line names."""
    folders = [folder for root in roots for folder in sorted(root.iterdir()) if (folder / INDEX).is_file()]
    sites = [*(Site(folder.name.lower(), folder) for folder in folders), *map(Site.read, named)]
    if not sites:
        raise UsageError("no sites", hint="--root names a folder of folders with an index.html, --site one site")
    return sites


def main() -> None:
    """Print what each site is, and what crawls of it say beside the truth."""
    parser = argparse.ArgumentParser(description="Crawl real sites on loopback and compare with the truth.")
    parser.add_argument("--root", type=Path, action="append", default=[], help="folder with a folder for each site")
    parser.add_argument("--site", action="append", default=[], metavar="NAME=FOLDER[:ENTRY]")
    parser.add_argument("--truth", action="store_true", help="only say what the sites are")
    given = parser.parse_args()
    truths: dict[str, SiteTruth] = {}
    wrong: list[str] = []
    try:
        sites = sites_of(given.root, given.site)
        with serving(sites) as web:
            print("| site | HTML | other files | gone | aliases | links | leave the site | seconds |")
            print("|---|--:|--:|--:|--:|--:|--:|--:|")
            for site in sites:
                start = time.perf_counter()
                truths[site.name] = find_truth(web, site.name, workers=os.cpu_count() or 1)
                print(describe(site, truths[site.name], time.perf_counter() - start), flush=True)
            if not given.truth:
                print("\n| site | read | ranks apart | allowed | read for 90 % | stated | true | pages/s |")
                print("|---|--:|--:|--:|--:|--:|--:|--:|")
                for site in sites:
                    wrong += check(web, site, truths[site.name])
    except UsageError as error:
        parser.error(str(error))
    print("", *wrong, sep="\n")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
