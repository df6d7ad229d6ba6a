"""Domain graphs with known bad domains: spam planted in synthetic webs, and real graphs with labels.

The real graphs are read from a folder with the sub-folders `cc2024-labelled` (cuts of Common Crawl's 2024 domain
graph, TSV), `walk-domains` (Canadian web archives, JSON), `newsseo` (links and labels of news sites, CSV) and
`lists` (blacklists and lists of popular domains); missing files are reported and skipped.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from surveyor.arrays import IntArray
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.graph.synthetic.generate import PRESETS, synthetic_web
from surveyor.graph.synthetic.spam import buy_links, plant_clique, plant_exchange, plant_farm
from surveyor.rank.bad_domains import Labels, host_of, read_labels
from surveyor.web import urls

CLIQUES = (150, 300, 600)
FARMS = (100, 300, 1_000, 3_000)
THROUGH = 3  # intermediaries of a farm aimed at two steps
EXCHANGES = ((300, 16), (1_000, 32), (3_000, 54))  # members, and partners of each: about the root
BOUGHT = (1, 2, 3, 5, 10)  # links to a target, ten targets for each
TARGETS = 10
SELLERS = 0.01  # the share of domains, by in-links, that sell
TRUSTED = 10  # domains

Planted = tuple[Graph, list[IntArray]]  # a graph and the members of each group
Plant = Callable[[Graph, np.random.Generator], Planted]


@dataclass(frozen=True, slots=True)
class Case:
    """A graph, its bad domains, and which of them were created together."""

    graph: Graph
    bad: IntArray
    groups: IntArray  # one number per bad domain
    trusted: IntArray
    popular: Mapping[str, IntArray] = field(default_factory=dict)  # by the name of the list

    @property
    def budget(self) -> int:
        """Number of domains with a large budget: a power of ten up to a twentieth of all, at least 100 if possible."""
        return int(min(max(100, 10 ** np.floor(np.log10(max(self.graph.pages / 20, 1)))), self.graph.pages))


def planted(domains: int, seeds: Iterable[int]) -> Iterator[tuple[str, list[Case]]]:
    """Yield each kind of spam, planted in synthetic webs of several seeds."""
    attacks: dict[str, Plant] = {
        "cliques of new domains": cliques,
        "cliques of existing domains": partial(cliques, new=False),
        "farms": farms,
        "farms aimed at two steps": partial(farms, through=THROUGH),
        "exchanges": exchanges,
        "bought links": bought,
    }
    seeds = list(seeds)
    yield "farms and exchanges of the preset", [_preset(domains, seed) for seed in seeds]
    for name, plant in attacks.items():
        yield name, [_attacked(domains, seed, plant) for seed in seeds]


def cliques(graph: Graph, rng: np.random.Generator, *, new: bool = True) -> Planted:
    """Plant cliques of several sizes."""
    groups = []
    for count in CLIQUES:
        graph, members = plant_clique(graph, count, rng, new=new)
        groups.append(members)
    return graph, groups


def farms(graph: Graph, _rng: np.random.Generator, *, through: int = 0) -> Planted:
    """Plant farms of several sizes."""
    groups = []
    for size in FARMS:
        graph, members = plant_farm(graph, size, through=through)
        groups.append(members)
    return graph, groups


def exchanges(graph: Graph, rng: np.random.Generator) -> Planted:
    """Plant exchanges of several sizes."""
    groups = []
    for count, partners in EXCHANGES:
        graph, members = plant_exchange(graph, count, partners, rng)
        groups.append(members)
    return graph, groups


def bought(graph: Graph, rng: np.random.Generator) -> Planted:
    """Let new domains buy a few links each from domains with many in-links."""
    degrees = np.where(graph.out_degrees > 0, graph.in_links.degrees(), -1)
    sellers = np.argsort(-degrees, kind="stable")[: max(int(SELLERS * graph.pages), max(BOUGHT))]
    sold = [rng.choice(sellers, count, replace=False) for count in BOUGHT for _ in range(TARGETS)]
    graph, targets = buy_links(graph, sold)
    return graph, [targets[place : place + 1] for place in range(targets.size)]


def real(data: Path, seeds: Iterable[int]) -> Iterator[tuple[str, list[Case]]]:
    """Yield the real graphs that a folder holds."""
    if not data.is_dir():
        log(f"no folder {data}: only synthetic webs are used")
        return
    popular = _popular(data / "lists")
    cuts = {"link_spam": ("scam casino site", "link spam"), "news_credibility_network": ("unreliable",)}
    for cut, bad in cuts.items():
        nodes = data / "cc2024-labelled" / f"{cut}.nodes.tsv.gz"
        if _there(nodes):
            graph = domain_graph(_pairs(nodes.with_name(f"{cut}.edges.tsv.gz"), "\t"))
            yield f"Common Crawl 2024, {cut}", [_labelled(graph, read_labels(nodes, label=2).labelled(*bad), popular)]
    labels = data / "newsseo" / "labels_attributes.csv.gz"
    if _there(labels):
        files = [labels.with_name(name) for name in ("outlinks.csv.gz", "link_schemes.csv.gz")]
        graph = domain_graph(pair for file in files for pair in _pairs(file, ",", head=True))
        yield "news sites, least reliable", [_labelled(graph, read_labels(labels, hosts=False).labelled("1"), popular)]
    archives = sorted((data / "walk-domains").glob("*.json.gz"))
    if not archives:
        log(f"no archives in {data / 'walk-domains'}: skipped")
        return
    graph = domain_graph(_archived(archives))
    hosts = data / "lists" / "stevenblack-hosts.txt.gz"
    if _there(hosts):
        yield "Canadian web archives, blacklisted", [_labelled(graph, read_labels(hosts, hosts=False), popular)]
        yield "Canadian web archives, blacklisted by host", [_labelled(graph, read_labels(hosts), popular)]
    cases = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        first, groups = cliques(graph, rng)
        attacked, more = farms(first, rng)
        cases.append(_case((attacked, groups + more), rng, _trusted(graph, popular)))
    yield "Canadian web archives, cliques and farms planted", cases


def domain_graph(pairs: Iterable[tuple[str, str]]) -> Graph:
    """Return a graph of registrable domains from links between hosts; ids are in the order of the names."""
    cache: dict[str, str] = {}

    def domain(name: str) -> str:
        if name not in cache:
            host = host_of(name)
            cache[name] = "" if host is None else urls.domain(host)
        return cache[name]

    links = {(domain(one), domain(other)) for one, other in pairs}
    kept = sorted((one, other) for one, other in links if one and other and one != other)
    names = sorted({name for link in kept for name in link})
    ids = {name: place for place, name in enumerate(names)}
    ends = np.array([(ids[one], ids[other]) for one, other in kept], np.int64).reshape(-1, 2)
    return Graph.from_arrays(ends[:, 0], ends[:, 1], len(names), names)


def log(text: str) -> None:
    """Print a line to stderr."""
    print(text, file=sys.stderr, flush=True)


def _preset(domains: int, seed: int) -> Case:
    web = synthetic_web(replace(PRESETS["domains"], pages=domains), rng=seed, names=False)
    groups = [*web.farms, *web.exchanges]
    bad = np.concatenate(groups)
    numbers = np.repeat(np.arange(len(groups)), [group.size for group in groups])
    return Case(web.graph, bad, numbers, _most_linked(web.graph, bad))


def _attacked(domains: int, seed: int, plant: Plant) -> Case:
    shape = replace(PRESETS["domains"], pages=domains, farms=0.0, exchanges=0.0)
    graph = synthetic_web(shape, rng=seed, names=False).graph
    rng = np.random.default_rng(seed)
    return _case(plant(graph, rng), rng, _most_linked(graph, np.empty(0, np.int64)))


def _case(attacked: Planted, rng: np.random.Generator, trusted: IntArray) -> Case:
    """Renumber the domains at random, so that ties are not broken by the order of planting."""
    graph, groups = attacked
    new_ids = rng.permutation(graph.pages)
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    mixed = Graph.from_arrays(new_ids[sources], new_ids[graph.indices], graph.pages)
    numbers = np.repeat(np.arange(len(groups)), [members.size for members in groups])
    bad, once = np.unique(np.concatenate(groups), return_index=True)  # a domain may have been drawn twice
    return Case(mixed, new_ids[bad], numbers[once], new_ids[trusted])


def _most_linked(graph: Graph, bad: IntArray) -> IntArray:
    """Return the domains with most in-links that are not bad."""
    degrees = graph.in_links.degrees()
    degrees[bad] = -1
    return np.argsort(-degrees, kind="stable")[:TRUSTED]


def _labelled(graph: Graph, labels: Labels, popular: Mapping[str, Labels]) -> Case:
    names = _names(graph)
    found = labels.in_graph(names)
    if found.warning:
        log(found.warning)
    trusted = _trusted(graph, {name: _without(known, labels) for name, known in popular.items()})
    good = {name: np.setdiff1d(known.in_graph(names).ids, found.ids) for name, known in popular.items()}
    return Case(graph, found.ids, np.arange(found.ids.size), trusted, good)


def _names(graph: Graph) -> Names:
    return Names.of([]) if graph.names is None else graph.names


def _without(known: Labels, bad: Labels) -> Labels:
    return replace(known, domains={name: "" for name in known.domains if name not in bad.domains})


def _trusted(graph: Graph, popular: Mapping[str, Labels]) -> IntArray:
    """Return the most popular domains of a list that the graph holds; without a list, those with most in-links."""
    names = _names(graph)
    for known in popular.values():
        places = [place for name in known.domains if (place := names.find(name)) is not None]
        if len(places) >= TRUSTED:
            return np.array(places[:TRUSTED])
    return _most_linked(graph, np.empty(0, np.int64))


def _popular(folder: Path) -> dict[str, Labels]:
    files = {"Majestic": "majestic_10k.csv.gz", "Alexa": "alexa-100k-2015.csv.gz"}
    return {name: read_labels(folder / file, hosts=False) for name, file in files.items() if _there(folder / file)}


def _there(path: Path) -> bool:
    if not path.exists():
        log(f"no {path.name} in {path.parent}: skipped")
    return path.exists()


def _pairs(path: Path, separator: str, *, head: bool = False) -> Iterator[tuple[str, str]]:
    with gzip.open(path, "rb") as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig"), delimiter=separator)
        if head:
            next(rows, None)
        yield from ((row[0], row[1]) for row in rows if len(row) > 1)


def _archived(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        with gzip.open(path, "rb") as file:
            yield from ((link["src"], link["dst"]) for link in json.load(file)["links"])
