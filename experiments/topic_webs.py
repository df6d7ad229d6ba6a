"""Webs with known answers and topics in them, synthetic and real: the test data of the sampling experiments.

Synthetic, with the preset `web`: *sites*, all pages of the sites of one subject; *pages*, most pages of these sites and
a few of all others, as keywords would select them, so that many neighbours of a page on topic are off topic; *half*,
about half of the web; and *camps*, the topic *pages* without the links between its two halves, which are connected only
by pages off topic. The subtopic of a page depends on its site and, to some degree, on its in-links: in real webs, pages
with many in-links differ from the rest.

Real: the topics of Wikispeedia are its top categories, and subtopics the largest category below. In `polblogs`, all
pages are on topic first; then the blogs with the most links to the other camp are removed from the topic until no link
on topic crosses: two camps with bridges off topic, without changing a link. In `debian-docs`, the packages about web
services in Python are the topic, and pages are grouped by package.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.local_domains import GROUPS, Articles, articles, graph_of, lines_of
from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.estimate.sampling.compiled_walks import NeighbourLists
from surveyor.graph.csr import Graph

PAGES, QUICK = 300_000, 30_000
SEED = 7
DOMAINS, DOMAIN_SHARES = ("com", "org", "net", "edu", "uk"), (0.52, 0.16, 0.12, 0.1, 0.1)
OUT_DEGREE_EDGES = (0, 1, 3, 6, 11, 21, 41, np.inf)
CATEGORIES = ("Citizenship", "People", "Science")
MAX_OFF_TOPIC = {  # consecutive steps off topic by method
    "hard": 0,
    "nonbacktracking": 0,
    "hard-paper": 0,
    "mixture": 1,
    "neighbourhood-paper": 1,
    "trial": 2,
    "trial-paper": 2,
    "webwalker": 1 << 20,
}


@dataclass(frozen=True, eq=False)
class TopicWeb:
    """A web, a topic in it, and properties of its pages."""

    name: str
    graph: Graph
    topic: BoolArray
    shares: dict[str, BoolArray]  # binary properties
    labels: npt.NDArray[np.str_]  # a category of each page, such as its domain
    fetches: tuple[int, ...]  # budgets at which methods are compared

    @cached_property
    def neighbours(self) -> NeighbourLists:
        """The neighbours of each page in both link directions."""
        return NeighbourLists.of(self.graph)

    @cached_property
    def properties(self) -> dict[str, FloatArray]:
        """The values of all properties; NaN where undefined."""
        out = self.graph.out_degrees
        on_topic = np.zeros(self.graph.pages)
        np.add.at(on_topic, np.repeat(np.arange(self.graph.pages), out), self.topic[self.graph.indices])
        with np.errstate(invalid="ignore"):
            topic_link_share = on_topic / out
        return {
            **{name: flags.astype(np.float64) for name, flags in self.shares.items()},
            "log out-degree": np.log(np.maximum(out, 1)),
            "topic link share": topic_link_share,
        }

    @cached_property
    def out_degree_bins(self) -> IntArray:
        """The bin of the out-degree of each page."""
        return np.searchsorted(OUT_DEGREE_EDGES, self.graph.out_degrees, side="right") - 1

    @cached_property
    def target(self) -> BoolArray:
        """The pages to estimate: the largest part of the topic whose pages are linked, or share a neighbour."""
        return self.component("mixture")

    def component(self, method: str) -> BoolArray:
        """Return the largest part of the topic within which a method reaches every page from every page."""
        return largest_component(self.neighbours, self.topic, MAX_OFF_TOPIC[method])

    def starts(self, count: int, rng: np.random.Generator, among: BoolArray | None = None) -> IntArray:
        """Draw start pages in proportion to their in-links, as a search engine would list them."""
        pages = np.flatnonzero(self.target if among is None else among)
        in_links = np.diff(self.graph.in_links.indptr)[pages] + 1.0
        return rng.choice(pages, count, p=in_links / in_links.sum())

    def truth(self, values: FloatArray, among: BoolArray | None = None) -> float:
        """Return the mean of values over the target pages."""
        return float(np.nanmean(values[self.target if among is None else among]))


def largest_component(neighbours: NeighbourLists, topic: BoolArray, max_off_topic: int) -> BoolArray:
    """Return the largest set of pages on topic that are connected over at most so many pages off topic."""
    degrees, remaining = np.diff(neighbours.starts), topic.copy()
    best = np.zeros_like(topic)
    while remaining.sum() > best.sum():
        pages = np.flatnonzero(remaining)
        component = reachable(neighbours, topic, int(pages[np.argmax(degrees[pages])]), max_off_topic)
        remaining &= ~component
        best = component if component.sum() > best.sum() else best
    return best


def reachable(neighbours: NeighbourLists, topic: BoolArray, start: int, max_off_topic: int) -> BoolArray:
    """Return the pages on topic that a walk reaches with at most so many consecutive steps off topic."""
    distance = np.full(topic.size, max_off_topic + 1)  # steps since the topic was left
    distance[start] = 0
    front = np.array([start])
    while front.size:
        first, count = neighbours.starts[front], neighbours.starts[front + 1] - neighbours.starts[front]
        entries = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())
        near = neighbours.pages[entries]
        steps = np.where(topic[near], 0, np.repeat(distance[front], count) + 1)
        closer = steps < distance[near]
        np.minimum.at(distance, near[closer], steps[closer])
        front = np.unique(near[closer])
    reached: BoolArray = topic & (distance == 0)
    return reached


# --- synthetic webs ---


def synthetic_topics(pages: int = PAGES, seed: int = SEED) -> Iterator[TopicWeb]:
    """Yield the topics of a synthetic web."""
    from surveyor.graph.synthetic.generate import PRESETS, synthetic_web

    web = synthetic_web(replace(PRESETS["web"], pages=pages), rng=seed, names=False)
    graph, rng = web.graph, np.random.default_rng(seed)
    size, sites = np.bincount(web.topic) / graph.pages, web.site_topic.size
    subject = int(np.argmin(np.abs(size - 0.03)))
    rank = np.argsort(np.argsort(np.bincount(graph.indices, minlength=graph.pages), kind="stable")) / graph.pages
    subtopic = rng.random(graph.pages) < np.where(rng.random(sites) < 0.35, 0.6, 0.0)[web.site] + 0.25 * rank
    camp = (rng.random(sites) < 0.4)[web.site]
    labels = np.array(DOMAINS)[rng.choice(len(DOMAINS), int(web.site_domain.max()) + 1, p=DOMAIN_SHARES)][web.domain]
    uniform, larger = rng.random(graph.pages), np.cumsum(np.sort(size)[::-1]) < 0.52
    half = np.argsort(-size)[larger]
    topics = {
        "sites": web.topic == subject,
        "pages": uniform < np.where(web.topic == subject, 0.6, 0.003),
        "half": uniform < np.where(np.isin(web.topic, half), 0.8, 0.2),
    }
    fetches = (600, 2_500) if pages > QUICK else (200, 600)
    for name, topic in topics.items():
        shares = {"subtopic": subtopic, "camp": camp}
        yield TopicWeb(f"synthetic: {name}", graph, topic, shares, labels, fetches)
    topic = topics["pages"]
    split = without_cross_links(graph, topic, camp)
    yield TopicWeb("synthetic: camps", split, topic, {"camp": camp}, labels, fetches)


def without_cross_links(graph: Graph, topic: BoolArray, camp: BoolArray) -> Graph:
    """Remove the links on topic from one camp to the other."""
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    cross = topic[sources] & topic[graph.indices] & (camp[sources] != camp[graph.indices])
    return Graph.from_arrays(sources[~cross], graph.indices[~cross], graph.pages)


# --- real webs ---


def real_topics(data: Path, *, quick: bool = False) -> Iterator[TopicWeb]:
    """Yield the topics of the real webs in a folder."""
    readers: dict[str, Callable[[Path], Iterator[TopicWeb]]] = {"polblogs": _blogs, "wikispeedia.tar.xz": _articles}
    if not quick:
        readers["debian-docs"] = _documentation
    for name, read in readers.items():
        if (data / name).exists():
            yield from read(data / name)


def _blogs(folder: Path) -> Iterator[TopicWeb]:
    lines = lines_of(folder / "nodes.tsv.gz")
    links = np.array([line[:2] for line in lines_of(folder / "edges.tsv.gz")]).astype(np.int64)
    graph, conservative = graph_of(links, len(lines)), np.array([line[2] == "conservative" for line in lines])
    hosts = [line[1].split("/")[0] for line in lines]
    blogspot = np.array([host.endswith("blogspot.com") for host in hosts])
    labels = np.array(
        ["blogspot" if own else _tld(host.rsplit(".", 1)[-1]) for own, host in zip(blogspot, hosts, strict=True)]
    )
    shares = {"blogspot": blogspot, "camp": conservative}
    yield TopicWeb("polblogs: all", graph, np.ones(graph.pages, np.bool_), shares, labels, (150, 500))
    topic = without_bridges(graph, conservative)
    yield TopicWeb("polblogs: camps", graph, topic, shares, labels, (150, 500))


def _tld(name: str) -> str:
    return name if name in ("com", "net", "org") else "other"


def without_bridges(graph: Graph, camp: BoolArray) -> BoolArray:
    """Return a topic without links between two camps: pages with the most such links are removed first."""
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    cross = np.column_stack([sources, graph.indices])[camp[sources] != camp[graph.indices]]
    topic = np.ones(graph.pages, np.bool_)
    while cross.size:
        worst = int(np.argmax(np.bincount(cross.ravel(), minlength=graph.pages)))
        topic[worst] = False
        cross = cross[(cross != worst).all(axis=1)]
    return topic


def _articles(path: Path) -> Iterator[TopicWeb]:
    for web in article_topics(articles(path), CATEGORIES):
        yield replace(web, name=f"wikispeedia: {web.name}")


def article_topics(wiki: Articles, names: Iterable[str]) -> Iterator[TopicWeb]:
    """Yield top categories as topics; articles are labelled by the category below."""
    subcategories: dict[str, dict[int, str]] = defaultdict(dict)
    for article, (top, *rest) in wiki.categories:
        subcategories[top].setdefault(article, rest[0] if rest else "none")
    pages = range(wiki.graph.pages)
    for name in names:
        topic = np.isin(pages, list(subcategories[name]))
        labels = np.array([subcategories[name].get(page, "") for page in pages])
        subtopic = labels == Counter(subcategories[name].values()).most_common(1)[0][0]
        yield TopicWeb(name, wiki.graph, topic, {"subtopic": subtopic}, labels, (200, 800))


def _documentation(folder: Path) -> Iterator[TopicWeb]:
    with np.load(folder / "graph.csr.npz") as arrays:
        graph = Graph(arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int32))
    lines = lines_of(folder / "pages.tsv.gz")
    site = np.array([line[1] for line in lines])
    topic = np.array([name.startswith(GROUPS["pyweb"]) for name in site])
    shares = {"subtopic": np.array([name.startswith("python3.11") for name in site])}
    yield TopicWeb("debian-docs: Python and the web", graph, topic, shares, site, (600, 2_500))
