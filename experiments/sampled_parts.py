"""Topics with pockets, parts and hubs, to see whether samples know what they did not reach.

    python -m experiments.sampled_parts --data FOLDER [--runs 100] [--walk-runs 40] [--pocket-runs 400] [--json]

Topics of real webs (`local_domains` describes the folder): packages of Debian's documentation, categories of
Wikispeedia, ranges of ids of cnr-2000 (its ids are sorted by URL, so that a range is a few hosts), folders of hollins;
and such topics with a *planted* pocket: a small random web that only one to three links connect to the topic. Each
web is the topic and all its neighbours. No topic is selected or changed by any result.

1. *Coverage*: each topic is sampled many times until ess=400, by independent draws (the default for stored pages) and
   by walks. Statistics: two shares (the largest group of pages, and one of about 3 to 10 %), pages with many links, and
   the size. An interval that excludes the truth is *reported* if the sample says that its goal was not reached, and
   silent otherwise.
2. *Pockets*: planted pockets of 3 to 5 %, each sampled 400 times by independent draws, and all of them together 400
   times by each walk: how often is the pocket missed in silence (no page of it, and an interval below its share)?
3. *Endpoints* that counting contradicts: sizes above the pages of the web or below the distinct sampled pages.
4. *Cost*: pages examined or fetched, and steps, in the median.

The output is Markdown; with --json it is one object, and the tables go to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import surveyor as sv
from experiments.chosen_domains import say
from experiments.community_tables import table
from experiments.local_domains import articles, graph_of, lines_of
from surveyor.arrays import BoolArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph

UNTIL = "ess=400"
WALKS = ("trial", "hard", "mixture")
PACKAGES, PLANTED = 8, 6  # topics
RANGE, RANGES = 6_000, 6
CATEGORIES = ("People", "Science", "Geography", "History")
POCKET = (0.03, 0.10)  # share of the group that counts as the small one


@dataclass(frozen=True)
class PartsTopic:
    """A topic and groups of its pages."""

    name: str
    graph: Graph
    topic: BoolArray
    shares: dict[str, BoolArray]
    pocket: str = ""  # of the shares: a planted pocket


@dataclass
class Counts:
    """What samples of one topic by one method did."""

    topic: str
    method: str
    runs: int = 0
    refused: int = 0  # topics that the method rejects at once
    reported: int = 0  # samples that say that their goal was not reached
    intervals: int = 0
    covered: int = 0
    silent: int = 0  # intervals that exclude the truth in samples that say that they are done
    sizes: int = 0
    sizes_covered: int = 0
    sizes_silent: int = 0
    contradicted: int = 0  # endpoints
    pocket_below: int = 0  # samples whose interval is below the share of the pocket, and which do not say so
    pocket_missed: int = 0  # those of them that have no page of the pocket
    fetches: float = 0.0
    steps: float = 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Sample all topics, and print the tables."""
    options = _options(arguments)
    out = sys.stderr if options.json else sys.stdout
    topics = [*real_topics(options.data), *planted_topics(options.data)]
    found: list[Counts] = []
    for topic in topics:
        methods: list[tuple[str, int]] = [(options.method or "", options.runs)]
        methods += [] if options.method else _walk_methods(options)
        for method, runs in methods:
            if not runs:
                continue
            done = sample_many(topic, method, runs)
            found.append(done)
            say(f"{topic.name}, {method or 'default'}: {done.covered} of {done.intervals} shares")
    print(f"# Coverage, {len(topics)} topics\n\n{coverage_table(found)}\n{pooled_table(found)}", file=out, flush=True)
    pockets = []
    for topic in topics:
        if topic.pocket and options.pocket_runs:
            for method in [options.method] if options.method else ["", *WALKS]:
                runs = -(-options.pocket_runs // (PLANTED if method in WALKS else 1))
                pockets.append(sample_many(topic, method, runs, only=topic.pocket))
            say(f"{topic.name}: pockets done")
    print(f"# Planted pockets\n\n{pocket_table(pockets)}", file=out)
    if options.json:
        results = {"coverage": [asdict(one) for one in found], "pockets": [asdict(one) for one in pockets]}
        print(json.dumps({"schema": 1, **results}, indent=1))


def _walk_methods(options: argparse.Namespace) -> list[tuple[str, int]]:
    return [(method, options.walk_runs) for method in WALKS if options.walk_runs]


def sample_many(topic: PartsTopic, method: str, runs: int, only: str = "") -> Counts:
    """Sample a topic many times, and count."""
    counts, cost = Counts(topic.name, method or "default", runs), []
    shares = {only: topic.shares[only]} if only else topic.shares
    how = {"method": method} if method else {}
    pages = int(topic.topic.sum())
    for run in range(runs):
        try:
            sample = sv.sample(topic.graph, topic.topic, until=UNTIL, rng=run, **how)
        except UsageError:  # it cannot be sampled by this method
            counts.refused += 1
            continue
        reported = not sample.reached
        counts.reported += reported
        cost.append((sample.fetches, sample.steps))
        for name, flags in shares.items():
            estimate, truth = sample.share(flags), float(flags[topic.topic].mean())
            covered = estimate.low - 1e-9 <= truth <= estimate.high + 1e-9
            counts.intervals += 1
            counts.covered += covered
            counts.silent += not covered and not reported
            below = name == topic.pocket and estimate.high < truth and not reported
            counts.pocket_below += below
            counts.pocket_missed += below and not flags[sample.trace.page].any()
        try:
            size = sample.size()
        except UsageError:
            continue
        covered = size.low <= pages <= size.high
        counts.sizes += 1
        counts.sizes_covered += covered
        counts.sizes_silent += not covered and not reported
        counts.contradicted += size.low > topic.graph.pages or size.high > topic.graph.pages
        counts.contradicted += size.low < sample.distinct_pages - 1e-9
    if cost:
        counts.fetches, counts.steps = (float(one) for one in np.median(np.array(cost), axis=0))
    return counts


def coverage_table(found: Sequence[Counts]) -> str:
    """Return the counts of each topic and method."""
    rows = [
        [
            one.topic,
            one.method,
            f"{one.refused / one.runs:.0%}",
            f"{one.reported / one.runs:.0%}",
            _share(one.covered, one.intervals),
            _share(one.silent, one.intervals),
            _share(one.sizes_covered, one.sizes),
            _share(one.sizes_silent, one.sizes),
            str(one.contradicted),
            f"{one.fetches:,.0f}",
            f"{one.steps:,.0f}",
        ]
        for one in found
    ]
    heads = [
        "refused",
        "reported",
        "shares covered",
        "silent",
        "sizes covered",
        "silent",
        "contradicted",
        "fetches",
        "steps",
    ]
    return table(["topic", "method", *heads], rows, 2)


def pooled_table(found: Sequence[Counts]) -> str:
    """Return the counts of each method over all topics."""
    rows = []
    for method in dict.fromkeys(one.method for one in found):
        own = [one for one in found if one.method == method]
        total = {
            name: sum(getattr(one, name) for one in own) for name in asdict(own[0]) if name not in ("topic", "method")
        }
        cells = [one.covered / one.intervals for one in own if one.intervals]
        quiet = [1 - one.silent / one.intervals for one in own if one.intervals]
        rows.append(
            [
                method,
                _share(total["covered"], total["intervals"]),
                f"{min(cells):.1%}" if cells else "-",
                f"{min(quiet):.1%}" if quiet else "-",
                _share(total["sizes_covered"], total["sizes"]),
                _share(total["sizes_silent"], total["sizes"]),
                str(total["contradicted"]),
                f"{np.median([one.fetches for one in own]):,.0f}",
                f"{np.median([one.steps for one in own]):,.0f}",
            ]
        )
    heads = ["shares covered", "lowest topic", "lowest covered or reported", "sizes covered", "silent", "contradicted"]
    return table(["method", *heads, "fetches", "steps"], rows, 1)


def pocket_table(found: Sequence[Counts]) -> str:
    """Return how often planted pockets are missed."""
    rows = [
        [
            one.topic,
            one.method,
            str(one.runs),
            f"{one.reported / one.runs:.0%}",
            _share(one.covered, one.intervals),
            str(one.pocket_below),
            str(one.pocket_missed),
        ]
        for one in found
    ]
    heads = ["samples", "reported", "covered", "silently below", "silently missed"]
    return table(["topic", "method", *heads], rows, 2)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


# --- topics ---


def real_topics(data: Path) -> Iterator[PartsTopic]:
    """Yield topics of real webs."""
    yield from _packages(data / "debian-docs")
    yield from _articles(data / "wikispeedia.tar.xz")
    yield from _ranges(data / "cnr-2000")
    yield from _folders(data / "hollins")


def topic_of(name: str, graph: Graph, topic: BoolArray, groups: IntArray) -> PartsTopic:
    """Return a topic in the web of its pages and their neighbours."""
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    touching = topic[sources] | topic[graph.indices]
    near = topic.copy()
    near[sources[touching]] = near[graph.indices[touching]] = True
    number = np.cumsum(near) - 1
    inner = near[sources] & near[graph.indices]
    web = Graph.from_arrays(number[sources[inner]], number[graph.indices[inner]], int(near.sum()))
    topic, groups = topic[near], groups[near]
    own, sizes = np.unique(groups[topic], return_counts=True)
    order = np.argsort(-sizes)
    share = sizes / topic.sum()
    small = [one for one in order if POCKET[0] <= share[one] <= POCKET[1]] or [order[-1]]
    degrees = web.out_degrees + np.diff(web.in_links.indptr)
    shares = {
        "largest group": groups == own[order[0]],
        "small group": groups == own[small[0]],
        "many links": degrees > np.median(degrees[topic]),
    }
    return PartsTopic(name, web, topic, shares)


def _packages(folder: Path) -> Iterator[PartsTopic]:
    with np.load(folder / "graph.csr.npz") as arrays:
        graph = Graph(arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int32))
    lines = lines_of(folder / "pages.tsv.gz")
    site = np.unique([line[1] for line in lines], return_inverse=True)
    names, sizes = site[0], np.bincount(site[1])
    group = np.unique([line[2].rpartition("/")[0] for line in lines], return_inverse=True)[1]
    eligible = [one for one in range(names.size) if 800 <= sizes[one] <= 8_000]
    for one in np.random.default_rng(22).choice(eligible, PACKAGES, replace=False).tolist():
        yield topic_of(f"debian: {names[one]}", graph, site[1] == one, group)


def _articles(path: Path) -> Iterator[PartsTopic]:
    wiki = articles(path)
    for name in CATEGORIES:
        group = np.full(wiki.graph.pages, -1)
        labels: dict[str, int] = {}
        for article, (top, *rest) in wiki.categories:
            if top == name and group[article] < 0:
                group[article] = labels.setdefault(rest[0] if rest else "", len(labels))
        yield topic_of(f"wikispeedia: {name}", wiki.graph, group >= 0, group)


def _ranges(folder: Path) -> Iterator[PartsTopic]:
    graph = sv.read_graph(folder / "cnr-2000.graph")
    group = np.arange(graph.pages) // (RANGE // 20)
    starts = np.random.default_rng(22).choice(graph.pages // RANGE, RANGES, replace=False) * RANGE
    for start in sorted(starts.tolist()):
        topic = np.zeros(graph.pages, np.bool_)
        topic[start : start + RANGE] = True
        yield topic_of(f"cnr-2000: from {start:,}", graph, topic, group)


def _folders(folder: Path) -> Iterator[PartsTopic]:
    links = np.array([line[:2] for line in lines_of(folder / "edges.txt.gz", " ") if line[0].isdigit()]).astype(
        np.int64
    )
    lines = [line for line in lines_of(folder / "links.dat.gz", " ") if line[0].isdigit()]
    urls = {int(line[0]) - 1: line[1] for line in lines}
    pages = max(int(links.max()), max(urls) + 1)
    graph = graph_of(links - 1, pages)
    parts = [urls.get(page, "").split("/") for page in range(pages)]
    first = np.unique(["/".join(part[2:4]) for part in parts], return_inverse=True)
    second = np.unique(["/".join(part[2:5]) for part in parts], return_inverse=True)[1]
    sizes = np.bincount(first[1])
    yield topic_of("hollins: all", graph, np.ones(pages, np.bool_), first[1])
    for one in np.argsort(-sizes)[:3].tolist():
        yield topic_of(f"hollins: {first[0][one]}", graph, first[1] == one, second)


def planted_topics(data: Path) -> Iterator[PartsTopic]:
    """Yield topics with a pocket of 3 to 5 % that one to three links connect to the rest."""
    rng = np.random.default_rng(5)
    bases = [*_articles(data / "wikispeedia.tar.xz"), *_packages(data / "debian-docs")][:PLANTED]
    for number, base in enumerate(bases):
        size = int(base.topic.sum())
        pocket = int(size * rng.uniform(0.032, 0.05))
        bridges = 1 + number % 3
        inner = rng.integers(0, pocket, (6 * pocket, 2)) + base.graph.pages
        pages = base.graph.pages + pocket
        sources = np.repeat(np.arange(base.graph.pages), base.graph.out_degrees)
        ends = rng.choice(np.flatnonzero(base.topic), bridges)
        graph = Graph.from_arrays(
            np.concatenate([sources, inner[:, 0], ends]),
            np.concatenate([base.graph.indices, inner[:, 1], np.arange(bridges) + base.graph.pages]),
            pages,
        )
        topic = np.append(base.topic, np.ones(pocket, np.bool_))
        is_pocket = np.arange(pages) >= base.graph.pages
        shares = {name: np.append(flags, np.zeros(pocket, np.bool_)) for name, flags in base.shares.items()}
        name = f"planted: {base.name}, {bridges} bridge{'s' if bridges > 1 else ''}"
        yield PartsTopic(name, graph, topic, {**shares, "pocket": is_pocket}, "pocket")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of real graphs")
    parser.add_argument("--runs", type=int, default=100, help="samples per topic by the default method  [100]")
    parser.add_argument("--walk-runs", type=int, default=40, help="samples per topic and walk method  [40]")
    parser.add_argument("--pocket-runs", type=int, default=400, help="samples per planted pocket and method  [400]")
    parser.add_argument("--method", help="only this method")
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, tables to stderr")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
