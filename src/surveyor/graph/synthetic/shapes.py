"""Parameters of synthetic webs, and five named presets.

The presets were fitted to real graphs and are frozen: experiments use them unchanged, so that no result is
tuned by the generator. A better model gets a new name.
"""

from __future__ import annotations

from dataclasses import dataclass


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
