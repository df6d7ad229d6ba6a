"""The sites of a synthetic web: sizes, domains, topics, popularity, farms, exchanges and names.

Everything is drawn per site, so it takes a few dozen bytes per site and negligible time compared with the links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.arrays import BoolArray, FloatArray, IntArray
    from surveyor.graph.synthetic.shapes import WebShape
    from surveyor.kernels.synthetic_web import Sites

# Purpose of a draw per site; the seed is changed first, so that page draws and site draws never coincide.
SIZE, DOMAIN, TOPIC, FAME, CHAPTER, MENU, MEMBER, GROUP = range(1, 9)
SITE_DRAWS = 0x5EED
SMALL = 64  # pages: only sites up to this size join a farm, as real ones are cheap
TOPICS = (
    "arts", "books", "cars", "cities", "cooking", "crafts", "economy", "film", "games", "garden",
    "health", "history", "jobs", "kids", "law", "maps", "music", "news", "pets", "photos", "physics",
    "plants", "poems", "radio", "sailing", "schools", "shops", "software", "sports", "stars", "travel",
    "weather",
)  # fmt: skip
HOSTS = ("www", "blog", "docs", "shop", "forum", "wiki", "news", "mail")


def lay_out(shape: WebShape, seed: int) -> tuple[Sites, IntArray]:
    """Draw the sites of a web; return them and the domain of each."""
    from surveyor.kernels.synthetic_web import WIDEST_SIDEBAR, Sites

    sizes = _sizes(shape, seed)
    count = sizes.size
    first = np.concatenate([[0], np.cumsum(sizes)])
    domain = _domains(shape, seed, count)
    # The share of a topic of rank r is proportional to about r ** -0.5: none is empty, none dominates.
    topic = (shape.topics * _luck(seed, TOPIC, count)[domain] ** 2).astype(np.int64).clip(0, shape.topics - 1)
    chapter = _power(_luck(seed, CHAPTER, count), 1.8, shape.chapter, 16 * shape.chapter)
    menu = (-shape.menu * np.log(_luck(seed, MENU, count))).astype(np.int64)
    fame = np.sqrt(sizes) / _luck(seed, FAME, count)
    popular = np.argsort(-fame, kind="stable")
    rank = np.empty(count, np.int64)
    rank[popular] = np.arange(count)
    topic_sites = np.lexsort((rank, topic))
    place = np.empty(count, np.int64)
    place[topic_sites] = np.arange(count)
    groups, kinds = _groups(shape, seed, sizes, domain)
    group = np.full(count, -1, np.int64)
    for number, members in enumerate(groups):
        group[members] = number
    menu = np.minimum(menu, np.minimum(sizes // 3, 64))
    chapter = np.minimum(chapter, sizes)
    most = max((members.size for members in groups), default=0)
    sites = Sites(
        first,
        chapter,
        menu,
        topic,
        popular,
        np.searchsorted(topic[topic_sites], np.arange(shape.topics + 1)),
        topic_sites,
        place,
        group,
        np.array(kinds, np.int64),
        np.concatenate([[0], np.cumsum([members.size for members in groups])]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *groups]),
        np.zeros(count, np.bool_),
        int(2 * chapter.max() + shape.most_links + menu.max() + most + WIDEST_SIDEBAR + 256),
    )
    return sites, domain


def urls(sites: Sites, domain: IntArray, *, whole_domains: bool) -> Iterator[str]:
    """Generate a name per page: URLs under names reserved for examples, or domains alone."""
    before, host = -1, 0
    for site in range(domain.size):
        host = host + 1 if domain[site] == before else 0
        before = int(domain[site])
        name = f"site{before}.{'test' if before % 5 == 4 else 'example'}"
        prefix = HOSTS[host] if host < len(HOSTS) else f"host{host}"
        if whole_domains:
            yield name
            continue
        topic = int(sites.topic[site])
        folder = TOPICS[topic] if topic < len(TOPICS) else f"topic-{topic}"
        yield f"https://{prefix}.{name}/"
        size = int(sites.chapter[site])
        for page in range(1, int(sites.first[site + 1] - sites.first[site])):
            chapter, rest = divmod(page, size)
            yield f"https://{prefix}.{name}/{folder}/{chapter}/" + (f"page-{rest}.html" if rest else "")


def _luck(seed: int, purpose: int, count: int) -> FloatArray:
    from surveyor.kernels.hash_random import fill_random_units

    luck = np.empty(count)
    with np.errstate(over="ignore"):  # hashes wrap on purpose; only uncompiled kernels would warn
        fill_random_units(np.uint64(seed ^ SITE_DRAWS), purpose, luck)
    return luck


def _power(luck: FloatArray, exponent: float, low: int, high: int) -> IntArray:
    return np.minimum(low * luck ** (-1 / (exponent - 1)), high).astype(np.int64)


def _sizes(shape: WebShape, seed: int) -> IntArray:
    """Draw site sizes until they sum to all pages; the last is truncated."""
    low, high = shape.smallest_site, shape.largest_site
    if low < high:
        high = max(low, min(high, shape.pages // 20))
    count = 1024
    while True:
        sizes = _power(_luck(seed, SIZE, count), shape.site_exponent, low, high)
        ends = np.cumsum(sizes)
        if ends[-1] >= shape.pages:
            break
        count *= 4
    sizes = sizes[: int(np.searchsorted(ends, shape.pages)) + 1]
    sizes[-1] -= int(sizes.sum()) - shape.pages
    return sizes


def _domains(shape: WebShape, seed: int, count: int) -> IntArray:
    """Assign a domain number to each site: most domains have one host, some have many, none over a tenth of them."""
    if shape.largest_site == 1:
        return np.arange(count)
    hosts = _power(_luck(seed, DOMAIN, count), 2.3, 1, max(1, min(200, count // 10)))
    return np.repeat(np.arange(count), hosts)[:count]


def _groups(shape: WebShape, seed: int, sizes: IntArray, domain: IntArray) -> tuple[list[IntArray], list[int]]:
    """Choose the members of farms and exchanges among small sites, one per domain."""
    from surveyor.kernels.synthetic_web import IN_EXCHANGE, IN_FARM

    starts: BoolArray = np.diff(domain, prepend=-1) > 0
    free = np.flatnonzero((sizes <= SMALL) & starts)
    free = free[np.argsort(_luck(seed, MEMBER, sizes.size)[free], kind="stable")]
    scale = _luck(seed, GROUP, sizes.size)
    groups: list[IntArray] = []
    kinds: list[int] = []
    for kind, wanted, weight, low, high in (
        (IN_FARM, shape.farms * shape.pages, sizes, 8, 512),
        (IN_EXCHANGE, shape.exchanges * sizes.size, np.ones_like(sizes), 3, 24),
    ):
        while wanted > 0 and free.size >= 4 * low:
            members = int(min(low / scale[len(groups)], high, free.size // 4))
            groups.append(free[:members])
            kinds.append(kind)
            free = free[members:]
            wanted -= int(weight[groups[-1]].sum())
    return groups, kinds
