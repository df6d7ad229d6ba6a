"""Synthetic webs, generated from a random seed, as substitutes for real crawls.

    >>> web = synthetic_web("small")
    >>> web.graph.name(0)
    'https://www.site0.example/'

Pages are grouped in sites and sites in domains, with power-law sizes; ids are in host order, as in a crawl sorted by
URL. Links are mostly inside a site (menus, sections, neighbours, copied lists); the others prefer popular sites and
sites of the same topic. Link farms and link exchanges are planted and labelled. The model and its fit to real graphs
are described in `docs/explanation/synthetic-webs.md`.

The same shape, size and seed give the same bytes for any number of threads. Memory without a folder is 4 bytes per
link; with a folder it is bounded by the builder, plus about 40 bytes per page.

The five presets were fitted to real graphs and are frozen: experiments use them unchanged, so that no result is tuned
by the generator. A better model gets a new name.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, FloatArray, IdArray, IntArray, read_only
from surveyor.errors import UsageError, check_range
from surveyor.graph.build import Builder
from surveyor.graph.csr import Graph
from surveyor.graph.folder import build_folder
from surveyor.graph.names import Names
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.stopping import ProgressCallback, silent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from surveyor.kernels.synthetic_web import Rates, Sites

__all__ = ["KINDS", "PRESETS", "SyntheticWeb", "WebShape", "rmat", "synthetic_web"]
KINDS = ("ordinary", "hub", "dangling", "dead", "farm", "boosted", "exchange")  # as numbered in the kernels
BATCH = 1 << 15  # pages whose links are generated at a time
SAMPLE = 100_000  # pages whose links are used to predict the total number of links
NAMED = 100_000  # pages: webs up to this size get names by default
MEMORY = 1 << 29  # bytes of links in memory when building into a folder
SIZE, DOMAIN, TOPIC, FAME, CHAPTER, MENU, MEMBER, GROUP = range(1, 9)
SITE_DRAWS = 0x5EED
SMALL = 64  # pages: only sites up to this size join a farm, as real ones are cheap
_TOPIC_WORDS = """
    arts books cars cities cooking crafts economy film games garden health history jobs kids law maps music news pets
    photos physics plants poems radio sailing schools shops software sports stars travel weather
"""
TOPICS = tuple(_TOPIC_WORDS.split())
HOSTS = ("www", "blog", "docs", "shop", "forum", "wiki", "news", "mail")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebShape:
    """Parameters of a synthetic web; shares are between 0 and 1."""

    pages: int  # approximately; the last site is truncated
    smallest_site: int = 1  # pages
    largest_site: int = 1 << 16  # pages, and at most a twentieth of the web unless all sites are this large
    site_exponent: float = 1.7  # power law of site sizes: smaller means more large sites
    chapter: int = 128  # pages of the smallest chapters; a few sites have chapters 16 times as long
    menu: float = 9.0  # pages that every page of a site links to, on average
    contents: float = 0.4  # scale of the number of sections that every page of a chapter links to
    topics: int = 32  # subjects; a domain has one
    same_topic: float = 0.7  # share of links to other sites that stay in the topic
    popularity: float = 0.85  # the site of rank r gets links in proportion to r ** -popularity
    external: float = 0.1  # share of content links that leave the site
    mutual: float = 0.1  # probability that two potential partner sites link to each other
    reach: float = 2.0  # half of the new links inside a site go to pages less than twice this far
    favourites: float = 0.85  # share of new links inside a site that go to favourites of a neighbourhood
    copying: float = 0.5  # share of content links copied from a previous page
    content: float = 1.0  # scale of the number of content links of a page
    content_exponent: float = 1.85  # its power law
    most_links: int = 1000  # and its maximum
    sidebars: float = 0.5  # share of sections whose pages all link to each other
    chains: float = 0.2  # share of sections of "next" and "previous" pages
    sealed: float = 0.04  # share of sections that link only to themselves
    dangling: float = 0.25  # share of pages without links among those that may be (leaders always link)
    dead: float = 0.02  # share of pages that are linked to but gone
    unlinked: float = 0.25  # share of pages that the first page of their section does not link to
    farms: float = 0.01  # share of pages in link farms
    exchanges: float = 0.01  # share of sites in link exchanges


PRESETS: dict[str, WebShape] = {
    # for demonstrations and tests
    "small": WebShape(pages=1_500, largest_site=300, topics=6, farms=0.05, exchanges=0.05),
    # one site
    "site": WebShape(
        pages=6_000,
        smallest_site=6_000,
        largest_site=6_000,
        content=0.5,
        external=0.0,
        topics=1,
        dangling=0.45,
        farms=0.0,
        exchanges=0.0,
    ),
    # a crawl of many sites
    "web": WebShape(pages=1_500_000),
    # domain graph: every site is one page
    "domains": WebShape(
        pages=400_000,
        smallest_site=1,
        largest_site=1,
        chapter=1,
        menu=0.0,
        content=1.0,
        content_exponent=1.5,
        most_links=4_000,
        topics=16,
        same_topic=0.5,
        popularity=0.9,
        mutual=0.5,
        dangling=0.75,
        sealed=0.0,
    ),
    # the same at a tenth of the size of IRLbot's crawl of 2007, with its mean degree (20) and skew: the most popular
    # domain has links from 3 % of all
    "domains-2007": WebShape(
        pages=9_200_000,
        smallest_site=1,
        largest_site=1,
        chapter=1,
        menu=0.0,
        content=0.45,
        content_exponent=1.5,
        most_links=4_000,
        topics=16,
        same_topic=0.5,
        popularity=0.76,
        mutual=0.5,
        dangling=0.75,
        sealed=0.0,
    ),
}


# Streams of random numbers per site; the seed is changed first, so that page and site draws never coincide.


@dataclass(frozen=True)
class SyntheticWeb:
    """A graph with its ground truth, which real graphs do not have."""

    graph: Graph
    kind: ByteArray  # of each page, an index into `KINDS`
    first_page: IntArray  # of each site; the last entry is the number of pages
    site_domain: IntArray  # site -> domain
    site_topic: IntArray  # site -> topic
    farms: tuple[IntArray, ...]  # sites of each farm; the home page of the first is the one it boosts
    exchanges: tuple[IntArray, ...]  # sites of each exchange; their home pages all link to each other
    shape: WebShape
    rng: int

    @cached_property
    def site(self) -> IntArray:
        """The site of each page."""
        return np.repeat(np.arange(self.site_topic.size), np.diff(self.first_page))

    @cached_property
    def domain(self) -> IntArray:
        """The domain of each page."""
        return self.site_domain[self.site]

    @cached_property
    def topic(self) -> IntArray:
        """The topic of each page."""
        return self.site_topic[self.site]

    def pages_of_kind(self, *kinds: str) -> IntArray:
        """Return the pages that carry one of these labels."""
        return np.flatnonzero(np.isin(self.kind, [KINDS.index(kind) for kind in kinds]))

    def __repr__(self) -> str:
        counts = f"{self.graph.pages:,} pages, {self.graph.links:,} links, {self.site_topic.size:,} sites"
        return f"SyntheticWeb({counts}, rng={self.rng})"


def synthetic_web(
    preset: str | WebShape = "small",
    *,
    links: int | None = None,
    rng: int = 7,
    folder: Path | None = None,
    names: bool | None = None,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> SyntheticWeb:
    """Generate a web; with `links`, of about that many links; with `folder`, written there in bounded memory.

    Webs of up to 100,000 pages get names unless `names` is set; names take a second and 60 MB per million
    pages.
    """
    from surveyor.kernels.synthetic_web import IN_FARM

    shape = _shape(preset)
    seed = np.uint64(np.random.SeedSequence(rng).generate_state(1, np.uint64)[0])
    if links is not None:
        shape = _scaled(shape, links, seed)
    sites, domain, rates = _plan(shape, seed)
    named = shape.pages <= NAMED if names is None else names
    table = Names.of(urls(sites, domain, whole_domains=shape.largest_site == 1)) if named else None
    provenance = {
        "synthetic": preset if isinstance(preset, str) else "custom",
        "rng": rng,
        "shape": asdict(shape),
    }
    kind = np.empty(shape.pages, np.uint8)
    batches = _batches(seed, sites, rates, _ranges(shape.pages), kind, threads)
    if folder is None:
        graph = _gather(batches, shape.pages, table, provenance, progress)
    else:
        graph = _stream(batches, shape.pages, table, provenance, Path(folder), threads, progress)
    groups = [sites.group_sites[a:b] for a, b in zip(sites.group_first, sites.group_first[1:], strict=False)]
    farms = int((sites.group_kind == IN_FARM).sum())
    return SyntheticWeb(
        graph,
        _lock(kind),
        _lock(sites.first),
        _lock(domain),
        _lock(sites.topic),
        tuple(map(_lock, groups[:farms])),
        tuple(map(_lock, groups[farms:])),
        shape,
        rng,
    )


def rmat(scale: int, links_per_page: int, *, rng: int = 7, threads: int | None = None) -> Graph:
    """Generate an R-MAT graph of 2 ** scale pages: no sites, no locality, the adverse case of benchmarks.

    Probabilities are 0.57, 0.19, 0.19 and 0.05 (Graph 500); ids are shuffled; duplicates are merged.
    """
    from surveyor.kernels.synthetic_web import rmat_links

    check_range("scale", scale, "[1, 30]", hint="the graph has 2 ** scale pages")
    seed = np.random.SeedSequence(rng).generate_state(1, np.uint64)[0]
    links = links_per_page << scale
    with Builder(expected_links=links, memory=None, threads=threads) as builder:
        for start in range(0, links, 1 << 20):
            sources = np.empty(min(1 << 20, links - start), np.int64)
            targets = np.empty_like(sources)
            with np.errstate(over="ignore"):
                rmat_links(seed, scale, start, sources, targets)
            builder.add(sources, targets)
        return builder.finish(1 << scale)


def _shape(preset: str | WebShape) -> WebShape:
    if isinstance(preset, WebShape):
        return preset
    if preset not in PRESETS:
        raise UsageError(f"unknown preset {preset!r} of a synthetic web", hint=f"choose one of {', '.join(PRESETS)}")
    return PRESETS[preset]


def _plan(shape: WebShape, seed: Any) -> tuple[Sites, IntArray, Rates]:
    """Generate the sites, their domains, and the rates at which links are drawn."""
    from surveyor.kernels.synthetic_web import Rates, mark_without_back_links

    sites, domain = lay_out(shape, int(seed))
    # All floats: the kernels are compiled once for all webs.
    rates = Rates(*(float(getattr(shape, name)) for name in Rates._fields))
    with np.errstate(over="ignore"):  # hashes wrap on purpose; only uncompiled kernels would warn
        mark_without_back_links(seed, sites, rates)
    return sites, domain, rates


def _scaled(shape: WebShape, links: int, seed: Any) -> WebShape:
    """Adjust the number of pages until a sample of them predicts this many links."""
    from surveyor.kernels.synthetic_web import count_links

    one_site = shape.smallest_site == shape.pages
    shape = replace(shape, pages=max(1, min(shape.pages, links // 10)))  # a small web needs no large sample
    best, nearest = shape, np.inf
    for _ in range(8):
        sites, _domains, rates = _plan(shape, seed)
        run = 4  # few at a time, since the pages of a section are alike
        step = max(run, run * shape.pages // SAMPLE)
        with np.errstate(over="ignore"):
            predicted = max(1, count_links(seed, sites, rates, step, run)) * step / run
        if abs(predicted - links) < nearest:
            best, nearest = shape, abs(predicted - links)
        if nearest < 0.03 * links:
            break
        pages = max(1, round(shape.pages * links / predicted))
        sized = {"smallest_site": pages, "largest_site": pages} if one_site else {}
        shape = replace(shape, pages=pages, **sized)
    return best


def _ranges(pages: int) -> list[tuple[int, int]]:
    return [(start, min(start + BATCH, pages)) for start in range(0, pages, BATCH)]


def _batches(
    seed: Any, sites: Sites, rates: Rates, ranges: list[tuple[int, int]], kind: ByteArray, threads: int | None
) -> Iterator[tuple[IntArray, IdArray]]:
    """Yield (degrees, targets) of each range of pages, in order."""
    with ThreadPool(threads) as pool:
        yield from pool.imap(partial(_write_range, seed, sites, rates, kind), ranges)


def _write_range(
    seed: Any, sites: Sites, rates: Rates, kind: ByteArray, page: int, last: int
) -> tuple[IntArray, IdArray]:
    from surveyor.kernels.synthetic_web import PageRows, write_pages

    degrees: list[IntArray] = []
    targets: list[IdArray] = []
    while page < last:
        out = np.empty(sites.longest + 24 * (last - page), np.int32)
        ends = np.empty(last - page, np.int64)
        with np.errstate(over="ignore"):
            stop = int(write_pages(seed, sites, rates, page, last, PageRows(kind[page:last], ends, out)))
        degrees.append(np.diff(ends[: stop - page], prepend=0))
        targets.append(out[: ends[stop - page - 1]].copy())
        page = stop
    return np.concatenate(degrees), np.concatenate(targets)


def _gather(
    batches: Iterator[tuple[IntArray, IdArray]],
    pages: int,
    names: Names | None,
    provenance: Mapping[str, Any],
    progress: ProgressCallback,
) -> Graph:
    """Collect all rows into one graph in memory."""
    indptr = np.zeros(pages + 1, np.int64)
    done, rows = 0, []
    for degrees, targets in batches:
        indptr[done + 1 : done + 1 + degrees.size] = degrees
        done += degrees.size
        rows.append(targets)
        progress("writing", done, pages, "pages")
    np.cumsum(indptr, out=indptr)
    return Graph(indptr, np.concatenate(rows), names=names, provenance=provenance)


def _stream(
    batches: Iterator[tuple[IntArray, IdArray]],
    pages: int,
    names: Names | None,
    provenance: Mapping[str, Any],
    folder: Path,
    threads: int | None,
    progress: ProgressCallback,
) -> Graph:
    """Stream all rows through a builder into a graph folder; they are already sorted, so no sort is needed."""
    done = 0
    with Builder(memory=MEMORY, scratch=folder.parent, threads=threads) as builder:
        for degrees, targets in batches:
            sources = np.repeat(np.arange(done, done + degrees.size), degrees)
            builder.add(sources, targets)
            done += degrees.size
            progress("writing", done, pages, "pages")
        return build_folder(builder, folder, nodes=pages, names=names, provenance=provenance, progress=progress)


def _lock(array: Any) -> Any:
    return read_only(np.ascontiguousarray(array))


def lay_out(shape: WebShape, seed: int) -> tuple[Sites, IntArray]:
    """Draw the sites of a web; return them and the domain of each."""
    from surveyor.kernels.synthetic_web import WIDEST_SIDEBAR, Sites

    sizes = _sizes(shape, seed)
    count = sizes.size
    first = np.concatenate([[0], np.cumsum(sizes)])
    domain = _domains(shape, seed, count)
    # The share of a topic of rank r is proportional to about r ** -0.5: none is empty, none dominates.
    topic = (shape.topics * _random_units(seed, TOPIC, count)[domain] ** 2).astype(np.int64).clip(0, shape.topics - 1)
    chapter = _power(_random_units(seed, CHAPTER, count), 1.8, shape.chapter, 16 * shape.chapter)
    menu = (-shape.menu * np.log(_random_units(seed, MENU, count))).astype(np.int64)
    fame = np.sqrt(sizes) / _random_units(seed, FAME, count)
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
    """Generate a name per page: URLs under reserved example domains, or domains alone."""
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


def _random_units(seed: int, stream: int, count: int) -> FloatArray:
    from surveyor.kernels.hash_random import fill_random_units

    units = np.empty(count)
    with np.errstate(over="ignore"):  # hashes wrap on stream; only uncompiled kernels would warn
        fill_random_units(np.uint64(seed ^ SITE_DRAWS), stream, units)
    return units


def _power(units: FloatArray, exponent: float, low: int, high: int) -> IntArray:
    return np.minimum(low * units ** (-1 / (exponent - 1)), high).astype(np.int64)


def _sizes(shape: WebShape, seed: int) -> IntArray:
    """Draw site sizes until they sum to all pages; the last is truncated."""
    low, high = shape.smallest_site, shape.largest_site
    if low < high:
        high = max(low, min(high, shape.pages // 20))
    count = 1024
    while True:
        sizes = _power(_random_units(seed, SIZE, count), shape.site_exponent, low, high)
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
    hosts = _power(_random_units(seed, DOMAIN, count), 2.3, 1, max(1, min(200, count // 10)))
    return np.repeat(np.arange(count), hosts)[:count]


def _groups(shape: WebShape, seed: int, sizes: IntArray, domain: IntArray) -> tuple[list[IntArray], list[int]]:
    """Choose the members of farms and exchanges among small sites, one per domain."""
    from surveyor.kernels.synthetic_web import IN_EXCHANGE, IN_FARM

    starts: BoolArray = np.diff(domain, prepend=-1) > 0
    free = np.flatnonzero((sizes <= SMALL) & starts)
    free = free[np.argsort(_random_units(seed, MEMBER, sizes.size)[free], kind="stable")]
    scale = _random_units(seed, GROUP, sizes.size)
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
