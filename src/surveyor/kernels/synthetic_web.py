"""Links of synthetic webs: a model of sites with chapters and sections, and R-MAT.

Every decision is a hash of (seed, index, stream), never the next number of a generator. The links of a page can
therefore be generated at any time, in any order, on any thread, with the same result; and copying from another page
needs no memory of it: its links are computed again. `docs/explanation/synthetic-webs.md` describes the model.

A site is a run of pages cut into chapters, a chapter into sections of equal width; the first page of each leads it.
The width is drawn per chapter, so that most sections are small and some are huge. Content links follow the copying
model: a link is what an earlier page has in the same slot, which may itself be copied, or a new one. New links go to a
favourite of the neighbourhood, to a nearby page, or to another site.

R-MAT (Chakrabarti, Zhan and Faloutsos 2004): each link descends `scale` levels of a matrix cut in four; ids are
shuffled by a bijective mix, because an unshuffled R-MAT graph has all its important pages at the front.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, BoolArray, ByteArray, IdArray, IntArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.hash_random import random_bits, random_unit

ORDINARY, HUB, DANGLING, DEAD, FARM, BOOSTED, EXCHANGE = range(7)  # kinds of pages
PLAIN, LIST, CHAIN, SIDEBAR, SEALED = range(5)  # kinds of sections
NO_GROUP, IN_FARM, IN_EXCHANGE = range(3)
# Streams of random numbers: one each, MENU one per item, CONTENT eight per link, HOT and PARTNER far above.
WIDTH, STYLE, LIFE, COUNT, SKIP, TWIN, RICH, CONTENTS, PARTNER = range(1, 10)
MENU, CONTENT, HOT = 16, 128, 1 << 40
WIDEST_SIDEBAR = 192  # pages; wider sections are lists
FAN = 8  # child chapters of a chapter


class Rates(NamedTuple):
    """The fields of `WebShape` that links depend on."""

    dangling: float
    dead: float
    unlinked: float
    sealed: float
    sidebars: float
    chains: float
    external: float
    same_topic: float
    popularity: float
    mutual: float
    contents: float
    reach: float
    favourites: float
    copying: float
    content: float
    content_exponent: float
    most_links: float


class Sites(NamedTuple):
    """What is drawn once per site, and the orders of sites by popularity."""

    first: IntArray  # first page of each site, and the number of pages
    chapter: IntArray  # pages in a chapter
    menu: IntArray  # pages that the whole site links to
    topic: IntArray
    popular: IntArray  # sites, the most popular first
    topic_first: IntArray  # the first index of each topic in topic_sites
    topic_sites: IntArray  # the sites of each topic, the most popular first
    place: IntArray  # the index of each site in topic_sites
    group: IntArray  # farm or exchange that a site belongs to, or -1
    group_kind: IntArray
    group_first: IntArray
    group_sites: IntArray  # members; the first of a farm is the one it boosts
    quiet: BoolArray  # sites without partners; filled by `mark_without_back_links`
    longest: int  # maximum number of links of a page, duplicates included


class SiteContext(NamedTuple):
    """The scalars of one site: passing arrays to a function for every page would cost more than the page."""

    site: AnyInt
    first: AnyInt  # page
    end: AnyInt  # page after the last
    chapter: AnyInt
    menu: AnyInt
    role: AnyInt  # in a group
    boosted: AnyInt  # page that the site's farm is for
    twin: AnyInt  # page that a one-page site exchanges its only link with, or -1
    obscurity: float  # rank by popularity within the topic, from 0 to 1
    scales: AnyInt  # sizes of neighbourhoods: 2, 4, 8 … up to the whole site


@kernel
def site_context(seed: AnyInt, sites: Sites, rates: Rates, site: AnyInt) -> SiteContext:
    """Return the scalars of a site."""
    first, end = np.int64(sites.first[site]), np.int64(sites.first[site + 1])
    group, topic = sites.group[site], sites.topic[site]
    role: AnyInt = np.int64(NO_GROUP)
    boosted: AnyInt = np.int64(-1)
    if group >= 0:
        role = sites.group_kind[group]
        boosted = sites.first[sites.group_sites[sites.group_first[group]]]
    twin, other = np.int64(-1), site ^ 1
    if end - first == 1 and group < 0 and other < sites.group.shape[0] and sites.group[other] < 0:
        one_page = sites.first[other + 1] - sites.first[other] == 1
        if one_page and random_unit(seed, min(site, other), TWIN) < rates.sealed:
            twin = np.int64(sites.first[other])
    low, high = sites.topic_first[topic], sites.topic_first[topic + 1]
    obscurity = (sites.place[site] - low + 0.5) / (high - low)
    scales = np.int64(1)
    while (end - first) >> scales:
        scales += 1
    return SiteContext(site, first, end, sites.chapter[site], sites.menu[site], role, boosted, twin, obscurity, scales)


@kernel
def section_of(seed: AnyInt, place: SiteContext, page: AnyInt) -> tuple[AnyInt, AnyInt, AnyInt, AnyInt]:
    """Return the chapter (first page, end) and the section (first page, end) that a page is in."""
    chapter = page - (page - place.first) % place.chapter
    chapter_end = min(chapter + place.chapter, place.end)
    width = np.int64(min(2.0 / random_unit(seed, chapter, WIDTH) ** 1.2, np.float64(place.chapter)))
    section = page - (page - chapter) % width
    return chapter, chapter_end, section, min(section + width, chapter_end)


@kernel
def style_of(seed: AnyInt, rates: Rates, section: AnyInt, end: AnyInt) -> AnyInt:
    """Return the kind of a section."""
    if end - section < 2:
        return PLAIN
    random = random_unit(seed, section, STYLE)
    if random < rates.sealed:
        return SEALED
    if random < rates.sealed + rates.sidebars and end - section <= WIDEST_SIDEBAR:
        return SIDEBAR
    return CHAIN if random > 1.0 - rates.chains else LIST


@kernel
def kind_of(seed: AnyInt, rates: Rates, place: SiteContext, page: AnyInt, section: AnyInt, style: AnyInt) -> AnyInt:
    """Return the kind of a page."""
    if place.role == IN_FARM:
        return BOOSTED if page == place.boosted else FARM
    if place.role == IN_EXCHANGE and page == place.first:
        return EXCHANGE
    if place.end - place.first == 1:
        if place.twin >= 0:
            return ORDINARY
        # Popular ones are crawled and have links; the average over all ranks is `rates.dangling`.
        share = rates.dangling * 1.15 * place.obscurity**0.15
    elif page == section or page < place.first + place.menu:
        return HUB
    elif style in (CHAIN, SEALED):
        return ORDINARY  # a gap would cut off the rest of the chain
    elif random_unit(seed, section, SKIP) < 0.5 * rates.dangling:
        share = 0.95  # files without links come in folders
    else:
        share = 0.55 * rates.dangling
    random = random_unit(seed, page, LIFE)
    if random < rates.dead:
        return DEAD
    return DANGLING if random < rates.dead + share else ORDINARY


@kernel
def mark_without_back_links(seed: AnyInt, sites: Sites, rates: Rates) -> None:
    """Mark the sites that cannot link back: their home page has no links, is in a farm, or has a twin."""
    for site in range(sites.quiet.shape[0]):
        place = site_context(seed, sites, rates, site)
        kind = kind_of(seed, rates, place, place.first, place.first, PLAIN)
        sites.quiet[site] = kind in (DANGLING, DEAD, FARM) or place.twin >= 0


@kernel
def content_count(seed: AnyInt, rates: Rates, page: AnyInt, section: AnyInt, kind: AnyInt) -> AnyInt:
    """Return the number of content links of a page."""
    # Pages of a section are similar: the mean of a section follows the power law, pages vary around it.
    mean = random_unit(seed, section, RICH) ** (-1.0 / (rates.content_exponent - 1.0))
    count = min(rates.content * mean * (0.5 + random_unit(seed, page, COUNT)), rates.most_links)
    return np.int64(min(count, 3.0) if kind == FARM else count)  # farms have few external links


@kernel
def add_range(row: IntArray, used: AnyInt, first: AnyInt, last: AnyInt, step: AnyInt) -> AnyInt:
    """Link to range(first, last, step); return the links used."""
    for page in range(first, last, step):
        row[used] = page
        used += 1
    return used


@kernel
def chapter_links(place: SiteContext, page: AnyInt, width: AnyInt, row: IntArray, used: AnyInt) -> AnyInt:
    """Link the first page of a chapter to its sections and to the chapters above and below it."""
    size = place.chapter
    used = add_range(row, used, page, min(page + size, place.end), width)
    number = (page - place.first) // size
    if number:
        row[used] = place.first + (number - 1) // FAN * size
        used += 1
    below = place.first + (FAN * number + 1) * size
    return add_range(row, used, below, min(place.end, below + FAN * size), size)


@kernel
def page_links(
    seed: AnyInt, rates: Rates, place: SiteContext, page: AnyInt, row: IntArray
) -> tuple[AnyInt, AnyInt, AnyInt]:
    """Write the structural links of a page; return (links, kind, number of content links)."""
    chapter, chapter_end, section, section_end = section_of(seed, place, page)
    style = style_of(seed, rates, section, section_end)
    kind = kind_of(seed, rates, place, page, section, style)
    if kind in (DANGLING, DEAD):
        return 0, kind, 0
    if place.twin >= 0:
        row[0] = place.twin
        return 1, kind, 0
    row[0] = section
    used: AnyInt = 1
    if style == SIDEBAR:
        used = add_range(row, used, section, section_end, 1)
    elif style in (CHAIN, SEALED):
        used = add_range(row, used, max(section, page - 1), min(section_end, page + 2), 1)
    if page == section and style not in (CHAIN, SIDEBAR):
        for other in range(section + 1, section_end):
            if random_unit(seed, other, SKIP) >= rates.unlinked:
                row[used] = other
                used += 1
    if kind == FARM:
        row[used] = place.boosted
        used += 1
    if style == SEALED and page > place.first:
        return used, kind, 0
    width = section_end - section
    if page == chapter:
        used = chapter_links(place, page, width, row, used)
    items = np.int64(min(rates.contents / random_unit(seed, chapter, CONTENTS), 32.0))
    used = add_range(row, used, chapter, min(chapter_end, chapter + items * width), width)
    for item in range(place.menu):
        if random_unit(seed, chapter, MENU + item) < 0.9:
            row[used] = place.first + item
            used += 1
    return used, kind, content_count(seed, rates, page, section, kind)


COPY_FROM = 8  # a page copies from one of this many previous pages
PARTNERS = 4  # potential partner sites at each scale of popularity


class PageRows(NamedTuple):
    """The output of `write_pages`, from its first page on."""

    kinds: ByteArray  # of each page
    ends: IntArray  # links written after each page
    targets: IdArray


@kernel
def write_pages(seed: AnyInt, sites: Sites, rates: Rates, page: AnyInt, last: AnyInt, out: PageRows) -> AnyInt:
    """Write the ascending, distinct links of the pages up to `last`; return the first page not written.

    It stops early when the targets may not fit.
    """
    kinds, ends, targets = out.kinds, out.ends, out.targets
    start: AnyInt = page
    links: AnyInt = 0
    row = np.empty(sites.longest, np.int64)
    starts, popular, same_topic = sites.first, sites.popular, sites.popular
    place = site_context(seed, sites, rates, np.searchsorted(starts, page, side="right") - 1)
    fresh = True
    while page < last and links + row.shape[0] <= targets.shape[0]:
        if page == place.end:
            place, fresh = site_context(seed, sites, rates, place.site + 1), True
        if fresh:
            topic, fresh = sites.topic[place.site], False
            same_topic = sites.topic_sites[sites.topic_first[topic] : sites.topic_first[topic + 1]]
        used, kind, more = page_links(seed, rates, place, page, row)
        for slot in range(CONTENT, CONTENT + 8 * more, 8):
            target, where = content_link(seed, rates, place, page, slot)
            row[used] = (
                target if target >= 0 else external_link(seed, rates, starts, same_topic, popular, where, slot + 3)
            )
            used += 1
        if page == place.first and used:
            used = home_links(seed, sites, rates, place, row, used)
        kinds[page - start] = kind
        links = write_distinct(row, used, page, targets, links)
        ends[page - start] = links
        page += 1
    return page


@kernel
def count_links(seed: AnyInt, sites: Sites, rates: Rates, step: AnyInt, run: AnyInt) -> AnyInt:
    """Count the links of `run` pages out of every `step`, to predict the total number of links."""
    pages, links = sites.first[-1], 0
    kinds, ends = np.empty(run, np.uint8), np.empty(run, np.int64)
    out = PageRows(kinds, ends, np.empty(run * sites.longest, np.int32))
    for page in range(0, pages, step):
        last = min(page + run, pages)
        write_pages(seed, sites, rates, page, last, out)
        links += ends[last - page - 1]
    return links


@kernel
def content_link(seed: AnyInt, rates: Rates, place: SiteContext, page: AnyInt, slot: AnyInt) -> tuple[AnyInt, AnyInt]:
    """Choose one content link, copied or new; return (target, source page), target -1 for another site."""
    first, alone = place.first, place.end - place.first == 1
    low = page - page % 64 if alone else first  # one-page sites copy from their neighbours
    where = page
    while where > low:
        bits = random_bits(seed, where, slot)
        if np.float64(bits >> np.uint64(11)) * 2.0**-53 >= rates.copying:
            break
        where = max(low, where - 1 - np.int64(bits % np.uint64(COPY_FROM)))
    bits = random_bits(seed, where, slot + 1)  # 16, 15, 1 and 32 bits for four decisions
    if alone or np.float64(bits & np.uint64(0xFFFF)) < 65536.0 * rates.external:
        return -1, where
    if np.float64(bits >> np.uint64(16) & np.uint64(0x7FFF)) < 32768.0 * rates.favourites:
        return favourite_page(seed, place, where, bits >> np.uint64(32)), where
    random = (np.float64(bits >> np.uint64(32)) + 1.0) * 2.0**-32
    distance = np.int64(min(rates.reach / random, np.float64(place.end - first)))
    target = where + distance if bits >> np.uint64(31) & np.uint64(1) else where - distance
    return target if first <= target < place.end else first + distance % (place.end - first), where


@kernel
def favourite_page(seed: AnyInt, place: SiteContext, page: AnyInt, bits: AnyInt) -> AnyInt:
    """Choose a favourite of the neighbourhood of a page, of any size from two pages to the site."""
    # Neighbourhoods of 2 ** scale pages, all scales equally likely: one of twice the size has a favourite with
    # twice the links, and there are half as many of them: a power law of exponent 2 with locality.
    scale = 1 + np.int64(bits & np.uint64(0xFFFF)) * place.scales // 65536
    rank = np.int64(min(65536.0 / (np.float64(bits >> np.uint64(16)) + 1.0), 16.0))
    block = place.first + ((page - place.first) >> scale << scale)
    choice = random_bits(seed, block, HOT + 32 * scale + rank) >> np.uint64(64 - scale)
    hot = block + np.int64(choice)
    return hot if hot < place.end else place.first + (hot - place.first) % (place.end - place.first)


@kernel
def external_link(
    seed: AnyInt, rates: Rates, first: IntArray, same_topic: IntArray, popular: IntArray, where: AnyInt, slot: AnyInt
) -> AnyInt:
    """Choose a page of another site: of the same topic or any, by popularity, mostly the home page."""
    sites = same_topic if random_unit(seed, where, slot + 1) < rates.same_topic else popular
    rank = random_unit(seed, where, slot + 2) ** (1.0 / (1.0 - rates.popularity))
    other = sites[min(np.int64(rank * sites.shape[0]), sites.shape[0] - 1)]
    deep = 2.0 * random_unit(seed, where, slot + 3)
    if deep > 1.0:
        return np.int64(first[other])
    pages = first[other + 1] - first[other]
    return np.int64(first[other] + min(np.int64(pages * deep * deep * deep), pages - 1))


@kernel
def home_links(seed: AnyInt, sites: Sites, rates: Rates, place: SiteContext, row: IntArray, used: AnyInt) -> AnyInt:
    """Link a home page to partner sites that link back, and to the group its site is in."""
    topic, group = sites.topic[place.site], sites.group[place.site]
    low, count = sites.topic_first[topic], sites.topic_first[topic + 1] - sites.topic_first[topic]
    rank, span = sites.place[place.site] - low, np.int64(1)
    while span < count and place.role != IN_FARM and place.twin < 0:
        for turn in range(PARTNERS):
            # x -> x ^ mask pairs the sites of a topic at every scale of popularity, symmetrically.
            mask = span + np.int64(random_bits(seed, topic, PARTNER + (span * PARTNERS + turn << 20)) % np.uint64(span))
            other = rank ^ mask
            if other >= count or random_unit(seed, low + min(rank, other), PARTNER + (mask << 20)) >= rates.mutual:
                continue
            partner = sites.topic_sites[low + other]
            if not sites.quiet[partner]:
                row[used] = sites.first[partner]
                used += 1
        span *= 2
    if place.role == IN_EXCHANGE or place.boosted == place.first:
        for member in range(sites.group_first[group], sites.group_first[group + 1]):
            row[used] = sites.first[sites.group_sites[member]]
            used += 1
    return used


@kernel
def write_distinct(row: IntArray, used: AnyInt, page: AnyInt, out: IdArray, links: AnyInt) -> AnyInt:
    """Write the ascending, distinct links of a page without itself; return the total number of links written."""
    # Shell sort: rows are short sequences of ascending runs, and the sort of NumPy takes seconds to compile.
    for gap in (9841, 3280, 1093, 364, 121, 40, 13, 4, 1):
        for place in range(gap, used if used > 2 * gap or gap == 1 else gap):
            value, hole = row[place], place
            while hole >= gap and row[hole - gap] > value:
                row[hole] = row[hole - gap]
                hole -= gap
            row[hole] = value
    before = np.int64(-1)
    for place in range(used):
        if row[place] != before and row[place] != page:
            out[links] = row[place]
            links += 1
        before = row[place]
    return links


RMAT_A, RMAT_B, RMAT_C = 37356, 49808, 62259  # 0.57, 0.57 + 0.19, 0.57 + 0.19 + 0.19 of 2 ** 16


@kernel
def shuffled_id(seed: AnyInt, scale: AnyInt, page: AnyInt) -> AnyInt:
    """Return the shuffled id of a page: multiply by an odd number and fold, twice, within `scale` bits."""
    mask = (np.uint64(1) << np.uint64(scale)) - np.uint64(1)
    fold = np.uint64((scale + 1) // 2)
    value = np.uint64(page)
    for turn in range(2):
        value = (value * (random_bits(seed, turn, 1) | np.uint64(1))) & mask
        value ^= value >> fold
    return np.int64(value)


@kernel
def rmat_links(seed: AnyInt, scale: AnyInt, start: AnyInt, sources: IntArray, targets: IntArray) -> None:
    """Write the links numbered from `start` on."""
    for place in range(sources.shape[0]):
        source: AnyInt = 0
        target: AnyInt = 0
        bits: AnyInt = np.uint64(0)
        for level in range(scale):
            if level % 4 == 0:
                bits = random_bits(seed, start + place, 2 + level)
            random = np.int64(bits & np.uint64(0xFFFF))
            bits >>= np.uint64(16)
            source, target = (
                2 * source + (random >= RMAT_B),
                2 * target + ((random >= RMAT_A and random < RMAT_B) or random >= RMAT_C),
            )
        sources[place] = shuffled_id(seed, scale, source)
        targets[place] = shuffled_id(seed, scale, target)
