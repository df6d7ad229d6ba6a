"""Real topics: political blogs, articles of an encyclopedia by category, and the documentation of programs.

Wikispeedia's topics are its top categories, and subtopics the largest category below. In `polblogs`, all is on topic
at first; then the blogs that link most to the other camp are taken off it, until no link on topic crosses: two camps
with bridges off topic, with no link touched. In `debian-docs`, the packages about web services in Python are the topic,
and pages count by package.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.local_domains import GROUPS, Articles, articles, graph_of, lines_of
from experiments.topic_webs import TopicWeb
from surveyor.arrays import BoolArray
from surveyor.graph.csr import Graph

CATEGORIES = ("Citizenship", "People", "Science")


def real(data: Path, *, quick: bool = False) -> Iterator[TopicWeb]:
    """Yield the topics of the real webs that a folder holds."""
    readers: dict[str, Callable[[Path], Iterator[TopicWeb]]] = {"polblogs": _blogs, "wikispeedia.tar.xz": _articles}
    if not quick:
        readers["debian-docs"] = _documentation
    for name, read in readers.items():
        if (data / name).exists():
            yield from read(data / name)


def _blogs(folder: Path) -> Iterator[TopicWeb]:
    lines = lines_of(folder / "nodes.tsv.gz")
    links = np.array([line[:2] for line in lines_of(folder / "edges.tsv.gz")]).astype(np.int64)
    graph, right = graph_of(links, len(lines)), np.array([line[2] == "conservative" for line in lines])
    hosts = [line[1].split("/")[0] for line in lines]
    blogspot = np.array([host.endswith("blogspot.com") for host in hosts])
    labels = np.array(
        ["blogspot" if own else _known(host.rsplit(".", 1)[-1]) for own, host in zip(blogspot, hosts, strict=True)]
    )
    told = {"blogspot": blogspot, "camp": right}
    yield TopicWeb("polblogs: all", graph, np.ones(graph.pages, np.bool_), told, labels, (150, 500))
    topic = without_bridges(graph, right)
    yield TopicWeb("polblogs: camps", graph, topic, told, labels, (150, 500))


def _known(top: str) -> str:
    return top if top in ("com", "net", "org") else "other"


def without_bridges(graph: Graph, camp: BoolArray) -> BoolArray:
    """Take the pages with most links across off the topic until no link on topic crosses; say which are left."""
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    pairs = np.column_stack([sources, graph.indices])[camp[sources] != camp[graph.indices]]
    topic = np.ones(graph.pages, np.bool_)
    while pairs.size:
        worst = int(np.argmax(np.bincount(pairs.ravel(), minlength=graph.pages)))
        topic[worst] = False
        pairs = pairs[(pairs != worst).all(axis=1)]
    return topic


def _articles(path: Path) -> Iterator[TopicWeb]:
    for web in article_topics(articles(path), CATEGORIES):
        yield replace(web, name=f"wikispeedia: {web.name}")


def article_topics(found: Articles, names: Iterable[str]) -> Iterator[TopicWeb]:
    """Yield top categories as topics; articles count by the category below."""
    below: dict[str, dict[int, str]] = defaultdict(dict)
    for article, (top, *rest) in found.categories:
        below[top].setdefault(article, rest[0] if rest else "none")
    every = range(found.graph.pages)
    for name in names:
        topic = np.isin(every, list(below[name]))
        labels = np.array([below[name].get(page, "") for page in every])
        subtopic = labels == Counter(below[name].values()).most_common(1)[0][0]
        yield TopicWeb(name, found.graph, topic, {"subtopic": subtopic}, labels, (200, 800))


def _documentation(folder: Path) -> Iterator[TopicWeb]:
    with np.load(folder / "graph.csr.npz") as arrays:
        graph = Graph(arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int32))
    lines = lines_of(folder / "pages.tsv.gz")
    site = np.array([line[1] for line in lines])
    topic = np.array([name.startswith(GROUPS["pyweb"]) for name in site])
    told = {"subtopic": np.array([name.startswith("python3.11") for name in site])}
    yield TopicWeb("debian-docs: Python and the web", graph, topic, told, site, (600, 2_500))
