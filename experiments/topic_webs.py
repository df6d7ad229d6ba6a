"""Webs of which all is known, and topics in them, made up and real: what focused sampling is measured on.

Made up, on the preset `web`: *sites*, all pages of the sites of one subject; *pages*, most pages of these sites and a
few of all others, as keywords would find them, so that many neighbours of a page on topic are off it; *half*, about
half of the web; and *camps*, the topic *pages* without the links between its two halves, which are joined by pages off
topic only. Whether a page is of the subtopic goes by its site, and to some degree by how many pages link to it: in real
webs, what is linked to often is not like the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.estimate.sampling.compiled_walks import NeighbourLists
from surveyor.graph.csr import Graph

PAGES, QUICK = 300_000, 30_000
SEED = 7
DOMAINS, SHARES = ("com", "org", "net", "edu", "uk"), (0.52, 0.16, 0.12, 0.1, 0.1)
EDGES = (0, 1, 3, 6, 11, 21, 41, np.inf)  # of out-degrees
OFF = {"hard": 0, "nonbacktracking": 0, "hard-paper": 0, "mixture": 1, "neighbourhood-paper": 1, "trial": 2,
       "trial-paper": 2, "webwalker": 1 << 20}  # fmt: skip


@dataclass(frozen=True, eq=False)
class TopicWeb:
    """A web, a topic in it, and what is asked of its pages."""

    name: str
    graph: Graph
    topic: BoolArray
    shares: dict[str, BoolArray]  # properties that a page has or has not
    labels: npt.NDArray[np.str_]  # a category of each page, such as its domain
    fetches: tuple[int, ...]  # at which methods are compared

    @cached_property
    def neighbours(self) -> NeighbourLists:
        """Who is linked with whom."""
        return NeighbourLists.of(self.graph)

    @cached_property
    def numbers(self) -> dict[str, FloatArray]:
        """What is asked of each page; NaN where there is no answer."""
        out = self.graph.out_degrees
        stay = np.zeros(self.graph.pages)
        np.add.at(stay, np.repeat(np.arange(self.graph.pages), out), self.topic[self.graph.indices])
        with np.errstate(invalid="ignore"):
            intra = stay / out
        return {
            **{name: flags.astype(np.float64) for name, flags in self.shares.items()},
            "log out-degree": np.log(np.maximum(out, 1)),
            "links that stay": intra,
        }

    @cached_property
    def out_degree_bins(self) -> IntArray:
        """The bin of the out-degree of each page."""
        return np.searchsorted(EDGES, self.graph.out_degrees, side="right") - 1

    @cached_property
    def target(self) -> BoolArray:
        """The pages to tell of: the largest part of the topic whose pages are linked, or share a neighbour."""
        return self.part("mixture")

    def part(self, method: str) -> BoolArray:
        """Return the largest part of the topic in which a method gets from each page to each."""
        return largest_part(self.neighbours, self.topic, OFF[method])

    def starts(self, count: int, rng: np.random.Generator, among: BoolArray | None = None) -> IntArray:
        """Choose pages to start from, as a search engine would list them: often linked to."""
        pages = np.flatnonzero(self.target if among is None else among)
        linked = np.diff(self.graph.in_links.indptr)[pages] + 1.0
        return rng.choice(pages, count, p=linked / linked.sum())

    def truth(self, values: FloatArray, among: BoolArray | None = None) -> float:
        """Return the mean of values over the pages to tell of."""
        return float(np.nanmean(values[self.target if among is None else among]))


def largest_part(neighbours: NeighbourLists, topic: BoolArray, off: int) -> BoolArray:
    """Return the largest set of pages on topic that are joined by links over at most so many pages off topic."""
    degrees, left = np.diff(neighbours.starts), topic.copy()
    best = np.zeros_like(topic)
    while left.sum() > best.sum():
        pages = np.flatnonzero(left)
        found = joined(neighbours, topic, int(pages[np.argmax(degrees[pages])]), off)
        left &= ~found
        best = found if found.sum() > best.sum() else best
    return best


def joined(neighbours: NeighbourLists, topic: BoolArray, start: int, off: int) -> BoolArray:
    """Return the pages on topic that a walk gets to from one if it may make so many steps off topic in a row."""
    away = np.full(topic.size, off + 1)  # steps since the topic was left
    away[start] = 0
    front = np.array([start])
    while front.size:
        first, count = neighbours.starts[front], neighbours.starts[front + 1] - neighbours.starts[front]
        places = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())
        near = neighbours.pages[places]
        steps = np.where(topic[near], 0, np.repeat(away[front], count) + 1)
        nearer = steps < away[near]
        np.minimum.at(away, near[nearer], steps[nearer])
        front = np.unique(near[nearer])
    reached: BoolArray = topic & (away == 0)
    return reached


def made_up(pages: int = PAGES, seed: int = SEED) -> Iterator[TopicWeb]:
    """Yield the made-up topics."""
    from surveyor.graph.synthetic.generate import PRESETS, synthetic_web

    web = synthetic_web(replace(PRESETS["web"], pages=pages), rng=seed, names=False)
    graph, rng = web.graph, np.random.default_rng(seed)
    size, sites = np.bincount(web.topic) / graph.pages, web.site_topic.size
    subject = int(np.argmin(np.abs(size - 0.03)))
    rank = np.argsort(np.argsort(np.bincount(graph.indices, minlength=graph.pages), kind="stable")) / graph.pages
    subtopic = rng.random(graph.pages) < np.where(rng.random(sites) < 0.35, 0.6, 0.0)[web.site] + 0.25 * rank
    camp = (rng.random(sites) < 0.4)[web.site]
    labels = np.array(DOMAINS)[rng.choice(len(DOMAINS), int(web.site_domain.max()) + 1, p=SHARES)][web.domain]
    chance, larger = rng.random(graph.pages), np.cumsum(np.sort(size)[::-1]) < 0.52
    half = np.argsort(-size)[larger]
    found = {
        "sites": web.topic == subject,
        "pages": chance < np.where(web.topic == subject, 0.6, 0.003),
        "half": chance < np.where(np.isin(web.topic, half), 0.8, 0.2),
    }
    fetches = (600, 2_500) if pages > QUICK else (200, 600)
    for name, topic in found.items():
        told = {"subtopic": subtopic, "camp": camp}
        yield TopicWeb(f"made up: {name}", graph, topic, told, labels, fetches)
    topic = found["pages"]
    yield TopicWeb("made up: camps", parted(graph, topic, camp), topic, {"camp": camp}, labels, fetches)


def parted(graph: Graph, topic: BoolArray, camp: BoolArray) -> Graph:
    """Leave out the links on topic from one camp to the other."""
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    across = topic[sources] & topic[graph.indices] & (camp[sources] != camp[graph.indices])
    return Graph.from_arrays(sources[~across], graph.indices[~across], graph.pages)
