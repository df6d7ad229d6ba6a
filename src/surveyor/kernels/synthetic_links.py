"""All links of the pages of a synthetic web, rising and distinct: content, other sites, and writing them out.

Content links follow the copying model: a link is what a page just before has in the same place, which may
itself be copied, or a new one. New links go to a favourite of the neighbourhood, to a page near by, or to
another site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.kernels import synthetic
from surveyor.kernels._jit import kernel
from surveyor.kernels.synthetic import chance, draw, page_links, visit

if TYPE_CHECKING:
    from surveyor.arrays import ByteArray, IdArray, IntArray
    from surveyor.kernels.synthetic import Place, Rates, Sites, Whole

CONTENT, HOT, PARTNER = synthetic.CONTENT, synthetic.HOT, synthetic.PARTNER
IN_EXCHANGE, IN_FARM = synthetic.IN_EXCHANGE, synthetic.IN_FARM
COPY_FROM = 8  # a page copies from one of this many pages before it
PARTNERS = 4  # sites that may be partners at each scale of popularity


@kernel
def write_pages(
    seed: Whole,
    sites: Sites,
    rates: Rates,
    page: Whole,
    last: Whole,
    kinds: ByteArray,
    ends: IntArray,
    out: IdArray,
) -> Whole:
    """Write the rising, distinct links of pages up to `last`; stop when `out` may be too small, say where.

    `kinds` and `ends` (links written after each page) have one place per page from `page` on.
    """
    start, links = page, 0
    row = np.empty(sites.longest, np.int64)
    starts, popular, akin = sites.first, sites.popular, sites.popular
    place = visit(seed, sites, rates, np.searchsorted(starts, page, side="right") - 1)
    fresh = True
    while page < last and links + row.shape[0] <= out.shape[0]:
        if page == place.end:
            place, fresh = visit(seed, sites, rates, place.site + 1), True
        if fresh:
            topic, fresh = sites.topic[place.site], False
            akin = sites.topic_sites[sites.topic_first[topic] : sites.topic_first[topic + 1]]
        used, kind, more = page_links(seed, rates, place, page, row)
        for slot in range(CONTENT, CONTENT + 8 * more, 8):
            target, where = content_link(seed, rates, place, page, slot)
            row[used] = target if target >= 0 else outside(seed, rates, starts, akin, popular, where, slot + 3)
            used += 1
        if page == place.first and used:
            used = home_links(seed, sites, rates, place, row, used)
        kinds[page - start] = kind
        links = keep_distinct(row, used, page, out, links)
        ends[page - start] = links
        page += 1
    return page


@kernel
def count_links(seed: Whole, sites: Sites, rates: Rates, step: Whole, run: Whole) -> Whole:
    """Count the links of `run` pages out of every `step`, to foresee the number of links without writing."""
    pages, links = sites.first[-1], 0
    kinds, ends = np.empty(run, np.uint8), np.empty(run, np.int64)
    out = np.empty(run * sites.longest, np.int32)
    for page in range(0, pages, step):
        last = min(page + run, pages)
        write_pages(seed, sites, rates, page, last, kinds, ends, out)
        links += ends[last - page - 1]
    return links


@kernel
def content_link(seed: Whole, rates: Rates, place: Place, page: Whole, slot: Whole) -> tuple[Whole, Whole]:
    """Choose what one content link copies or finds; return (target, page it comes from), -1 for outside."""
    first, alone = place.first, place.end - place.first == 1
    low = page - page % 64 if alone else first  # one-page sites copy from their neighbours
    where = page
    while where > low:
        bits = draw(seed, where, slot)
        if np.float64(bits >> np.uint64(11)) * 2.0**-53 >= rates.copying:
            break
        where = max(low, where - 1 - np.int64(bits % np.uint64(COPY_FROM)))
    bits = draw(seed, where, slot + 1)  # 16, 15, 1 and 32 of them for four decisions
    if alone or np.float64(bits & np.uint64(0xFFFF)) < 65536.0 * rates.external:
        return -1, where
    if np.float64(bits >> np.uint64(16) & np.uint64(0x7FFF)) < 32768.0 * rates.favourites:
        return favourite(seed, place, where, bits >> np.uint64(32)), where
    luck = (np.float64(bits >> np.uint64(32)) + 1.0) * 2.0**-32
    distance = np.int64(min(rates.reach / luck, np.float64(place.end - first)))
    target = where + distance if bits >> np.uint64(31) & np.uint64(1) else where - distance
    return target if first <= target < place.end else first + distance % (place.end - first), where


@kernel
def favourite(seed: Whole, place: Place, page: Whole, bits: Whole) -> Whole:
    """Choose a favourite of the neighbourhood of a page, of any size from two pages to the site."""
    # Neighbourhoods of 2 ** scale pages, all scales alike: one that is twice as large has a favourite with
    # twice the links and there are half as many of them, a power law of exponent 2 with locality.
    scale = 1 + np.int64(bits & np.uint64(0xFFFF)) * place.scales // 65536
    rank = np.int64(min(65536.0 / (np.float64(bits >> np.uint64(16)) + 1.0), 16.0))
    block = place.first + ((page - place.first) >> scale << scale)
    choice = draw(seed, block, HOT + 32 * scale + rank) >> np.uint64(64 - scale)
    hot = block + np.int64(choice)
    return hot if hot < place.end else place.first + (hot - place.first) % (place.end - place.first)


@kernel
def outside(
    seed: Whole, rates: Rates, first: IntArray, akin: IntArray, popular: IntArray, where: Whole, slot: Whole
) -> Whole:
    """Choose a page of another site: akin in topic or at large, popular sites first, mostly their home."""
    sites = akin if chance(seed, where, slot + 1) < rates.same_topic else popular
    rank = chance(seed, where, slot + 2) ** (1.0 / (1.0 - rates.popularity))
    other = sites[min(np.int64(rank * sites.shape[0]), sites.shape[0] - 1)]
    deep = 2.0 * chance(seed, where, slot + 3)
    if deep > 1.0:
        return first[other]
    pages = first[other + 1] - first[other]
    return first[other] + min(np.int64(pages * deep * deep * deep), pages - 1)


@kernel
def home_links(seed: Whole, sites: Sites, rates: Rates, place: Place, row: IntArray, used: Whole) -> Whole:
    """Link a home page to partner sites that link back, and to the group its site is in."""
    topic, group = sites.topic[place.site], sites.group[place.site]
    low, count = sites.topic_first[topic], sites.topic_first[topic + 1] - sites.topic_first[topic]
    rank, span = sites.place[place.site] - low, np.int64(1)
    while span < count and place.role != IN_FARM and place.twin < 0:
        for turn in range(PARTNERS):
            # x -> x ^ mask pairs the sites of a topic at every scale of popularity, and both sides know it.
            mask = span + np.int64(draw(seed, topic, PARTNER + (span * PARTNERS + turn << 20)) % np.uint64(span))
            other = rank ^ mask
            if other >= count or chance(seed, low + min(rank, other), PARTNER + (mask << 20)) >= rates.mutual:
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
def keep_distinct(row: IntArray, used: Whole, page: Whole, out: IdArray, links: Whole) -> Whole:
    """Write the rising, distinct links of a page without itself; return the links written in all."""
    # Shell's sort: rows are short and made of rising pieces, and the sort of NumPy takes seconds to compile.
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
