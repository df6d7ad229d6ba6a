"""A page's place in a synthetic web, and the links it has for that place.

Every decision is a hash of (seed, where, what for), never the next number of a stream. A page's links can
therefore be written at any time, in any order, on any thread, and come out the same; and copying from
another page needs no memory of it: its links are worked out again. The model is told in
`docs/explanation/synthetic-webs.md`.

A site is a run of pages cut into chapters, a chapter into sections of equal width; the first page of each
leads it. The width is drawn per chapter, so that most sections are small and some are huge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from surveyor.kernels._jit import kernel

if TYPE_CHECKING:
    from surveyor.arrays import BoolArray, FloatArray, IntArray

Whole: TypeAlias = Any  # a Python int, int64 or uint64: Numba keeps them apart, mypy cannot

ORDINARY, HUB, DANGLING, DEAD, FARM, BOOSTED, EXCHANGE = range(7)  # what a page is
PLAIN, LIST, CHAIN, SIDEBAR, SEALED = range(5)  # what a section is
NO_GROUP, IN_FARM, IN_EXCHANGE = range(3)
# What a draw is for: one number each, MENU one per item, CONTENT eight per link, HOT and PARTNER far above.
WIDTH, STYLE, LIFE, COUNT, SKIP, TWIN, RICH, CONTENTS, PARTNER = range(1, 10)
MENU, CONTENT, HOT = 16, 128, 1 << 40
WIDEST_SIDEBAR = 192  # a menu of more pages than this is a list
FAN = 8  # chapters below a chapter


class Rates(NamedTuple):
    """How often things happen; the fields of `WebShape` that links depend on."""

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
    """What is drawn once per site, and the orders in which sites are found."""

    first: IntArray  # first page of each site, and the number of pages
    chapter: IntArray  # pages in a chapter
    menu: IntArray  # pages that the whole site links to
    topic: IntArray
    popular: IntArray  # sites, the most popular first
    topic_first: IntArray  # where a topic begins in topic_sites
    topic_sites: IntArray  # the sites of each topic, the most popular first
    place: IntArray  # where a site stands in topic_sites
    group: IntArray  # farm or exchange that a site belongs to, or -1
    group_kind: IntArray
    group_first: IntArray
    group_sites: IntArray  # members; the first of a farm is the one it boosts
    quiet: BoolArray  # sites that are nobody's partner; filled by `mark_quiet`
    longest: int  # no page has more links than this, repeats counted


class Place(NamedTuple):
    """One site in plain numbers: passing arrays to a function for every page costs more than the page."""

    site: Whole
    first: Whole  # page
    end: Whole  # page after the last
    chapter: Whole
    menu: Whole
    role: Whole  # in a group
    boosted: Whole  # page that the site's farm is for
    twin: Whole  # page that a one-page site swaps its only link with, or -1
    unknown: Any  # a float: how far down in popularity, 0 to 1
    scales: Whole  # sizes of neighbourhoods: 2, 4, 8 … up to the whole site


@kernel
def draw(seed: Whole, where: Whole, purpose: Whole) -> Whole:
    """Return 64 random bits for one decision."""
    value = np.uint64(seed) + np.uint64(where) * np.uint64(0x9E3779B97F4A7C15)
    value ^= np.uint64(purpose) * np.uint64(0xD1B54A32D192ED03)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def chance(seed: Whole, where: Whole, purpose: Whole) -> float:
    """Return a random number above 0 and up to 1 for one decision."""
    return (np.float64(draw(seed, where, purpose) >> np.uint64(11)) + 1.0) * 2.0**-53


@kernel
def chances(seed: Whole, purpose: Whole, out: FloatArray) -> None:
    """Draw a random number for each place of `out`."""
    for place in range(out.shape[0]):
        out[place] = chance(seed, place, purpose)


@kernel
def visit(seed: Whole, sites: Sites, rates: Rates, site: Whole) -> Place:
    """Gather what the pages of a site need to know."""
    first, end = sites.first[site], sites.first[site + 1]
    group, topic = sites.group[site], sites.topic[site]
    role: Whole = np.int64(NO_GROUP)
    boosted: Whole = np.int64(-1)
    if group >= 0:
        role = sites.group_kind[group]
        boosted = sites.first[sites.group_sites[sites.group_first[group]]]
    twin, other = np.int64(-1), site ^ 1
    if end - first == 1 and group < 0 and other < sites.group.shape[0] and sites.group[other] < 0:
        one_page = sites.first[other + 1] - sites.first[other] == 1
        if one_page and chance(seed, min(site, other), TWIN) < rates.sealed:
            twin = sites.first[other]
    low, high = sites.topic_first[topic], sites.topic_first[topic + 1]
    unknown = (sites.place[site] - low + 0.5) / (high - low)
    scales = np.int64(1)
    while (end - first) >> scales:
        scales += 1
    return Place(site, first, end, sites.chapter[site], sites.menu[site], role, boosted, twin, unknown, scales)


@kernel
def section_of(seed: Whole, place: Place, page: Whole) -> tuple[Whole, Whole, Whole, Whole]:
    """Return the chapter (first page, end) and the section (first page, end) that a page is in."""
    chapter = page - (page - place.first) % place.chapter
    chapter_end = min(chapter + place.chapter, place.end)
    width = np.int64(min(2.0 / chance(seed, chapter, WIDTH) ** 1.2, np.float64(place.chapter)))
    section = page - (page - chapter) % width
    return chapter, chapter_end, section, min(section + width, chapter_end)


@kernel
def style_of(seed: Whole, rates: Rates, section: Whole, end: Whole) -> Whole:
    """Say what kind of section it is."""
    if end - section < 2:
        return PLAIN
    luck = chance(seed, section, STYLE)
    if luck < rates.sealed:
        return SEALED
    if luck < rates.sealed + rates.sidebars and end - section <= WIDEST_SIDEBAR:
        return SIDEBAR
    return CHAIN if luck > 1.0 - rates.chains else LIST


@kernel
def kind_of(seed: Whole, rates: Rates, place: Place, page: Whole, section: Whole, style: Whole) -> Whole:
    """Say what a page is."""
    if place.role == IN_FARM:
        return BOOSTED if page == place.boosted else FARM
    if place.role == IN_EXCHANGE and page == place.first:
        return EXCHANGE
    if place.end - place.first == 1:
        if place.twin >= 0:
            return ORDINARY
        # Popular ones are read and have links; the average over all ranks is the rate asked for.
        share = rates.dangling * 1.15 * place.unknown**0.15
    elif page == section or page < place.first + place.menu:
        return HUB
    elif style in (CHAIN, SEALED):
        return ORDINARY  # a gap would cut off the rest of the chain
    elif chance(seed, section, SKIP) < 0.5 * rates.dangling:
        share = 0.95  # files without links come in folders
    else:
        share = 0.55 * rates.dangling
    luck = chance(seed, page, LIFE)
    if luck < rates.dead:
        return DEAD
    return DANGLING if luck < rates.dead + share else ORDINARY


@kernel
def mark_quiet(seed: Whole, sites: Sites, rates: Rates) -> None:
    """Mark the sites that cannot link back: their home page has no links, is a farm's, or has a twin."""
    for site in range(sites.quiet.shape[0]):
        place = visit(seed, sites, rates, site)
        kind = kind_of(seed, rates, place, place.first, place.first, PLAIN)
        sites.quiet[site] = kind in (DANGLING, DEAD, FARM) or place.twin >= 0


@kernel
def content_count(seed: Whole, rates: Rates, page: Whole, section: Whole, kind: Whole) -> Whole:
    """Say how many content links a page has."""
    # Pages of a section look alike: its wealth of links follows the power law, pages vary around it.
    wealth = chance(seed, section, RICH) ** (-1.0 / (rates.content_exponent - 1.0))
    count = min(rates.content * wealth * (0.5 + chance(seed, page, COUNT)), rates.most_links)
    return np.int64(min(count, 3.0) if kind == FARM else count)  # a farm gives away little


@kernel
def add_range(row: IntArray, used: Whole, first: Whole, last: Whole, step: Whole) -> Whole:
    """Link to every step-th page from first to before last; return the links used."""
    for page in range(first, last, step):
        row[used] = page
        used += 1
    return used


@kernel
def chapter_links(place: Place, page: Whole, width: Whole, row: IntArray, used: Whole) -> Whole:
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
def page_links(seed: Whole, rates: Rates, place: Place, page: Whole, row: IntArray) -> tuple[Whole, Whole, Whole]:
    """Write the links a page has for its place in the site; return (links, kind, content links to follow)."""
    chapter, chapter_end, section, section_end = section_of(seed, place, page)
    style = style_of(seed, rates, section, section_end)
    kind = kind_of(seed, rates, place, page, section, style)
    if kind in (DANGLING, DEAD):
        return 0, kind, 0
    if place.twin >= 0:
        row[0] = place.twin
        return 1, kind, 0
    row[0] = section
    used = 1
    if style == SIDEBAR:
        used = add_range(row, used, section, section_end, 1)
    elif style in (CHAIN, SEALED):
        used = add_range(row, used, max(section, page - 1), min(section_end, page + 2), 1)
    if page == section and style not in (CHAIN, SIDEBAR):
        for other in range(section + 1, section_end):
            if chance(seed, other, SKIP) >= rates.unlinked:
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
    items = np.int64(min(rates.contents / chance(seed, chapter, CONTENTS), 32.0))
    used = add_range(row, used, chapter, min(chapter_end, chapter + items * width), width)
    for item in range(place.menu):
        if chance(seed, chapter, MENU + item) < 0.9:
            row[used] = place.first + item
            used += 1
    return used, kind, content_count(seed, rates, page, section, kind)
