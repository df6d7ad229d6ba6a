"""Webs with a farm of spam domains that hangs on hacked pages, served from memory.

The honest part is a synthetic web. The farm has as many domains as anyone asks for, each with endless pages: page n of
a domain links to five later pages of its own, and to home pages of other farm domains as its *shape* says. Hacked
honest pages link to the first domains of the farm. Everything follows from the random seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.graph.synthetic.generate import SyntheticWeb, WebShape, synthetic_web
from surveyor.rank.pagerank import pagerank

OWN = 5  # links of a farm page to later pages of its domain
DEEPEST = 10**9
HTML = ((b"content-type", b"text/html"),)
LARGE = WebShape(pages=4_000, largest_site=300, topics=6, farms=0.0, exchanges=0.0)
SMALL = WebShape(pages=450, largest_site=40, topics=4, external=0.3, farms=0.0, exchanges=0.0)
LOOSE = WebShape(pages=4_000, largest_site=60, topics=12, external=0.03, farms=0.0, exchanges=0.0)
Shape = Callable[[int, int], list[int]]  # the farm domains that page n of a domain links to


@dataclass(frozen=True, slots=True)
class Farm:
    """A farm: its shape, and the honest pages that link to it."""

    shape: Shape
    entries: int = 1  # farm domains that each hacked page links to
    hacked: int = 1  # honest pages that link to the farm, each of another domain except on one "site"
    where: str = "page"  # random "page"s, popular "home" pages, a "seed", an "inner" page of its domain, or one "site"
    back: bool = False  # whether farm pages also link to popular honest domains
    moves: bool = False  # whether home pages of the farm redirect


def cheap(count: int) -> Shape:
    """Each page links to ten random domains of many."""
    return lambda domain, page: [int(one) for one in _rng(domain, page).integers(0, count, 10)]


def clique(count: int) -> Shape:
    """Each page links to all other domains."""
    return lambda domain, _page: [one for one in range(count) if one != domain]


def aimed(count: int, through: int = 3) -> Shape:
    """Boosters link to a few intermediaries, which link to a target and to the boosters."""

    def links(domain: int, page: int) -> list[int]:
        if domain == 0:  # the target leads to boosters
            return [1 + through + int(one) for one in _rng(domain, page).integers(0, count, 20)]
        if domain <= through:
            return [0, *(1 + through + int(one) for one in _rng(domain, page).integers(0, count, 20))]
        return [*range(1, 1 + through), 1 + through + int(_rng(domain, page).integers(0, count))]

    return links


def chain(domain: int, _page: int) -> list[int]:
    """Each domain links to the next one, without end."""
    return [domain + 1]


def alone(_domain: int, _page: int) -> list[int]:
    """A single domain of endless pages."""
    return []


FARMS: dict[str, Farm] = {
    "2,000 cheap domains": Farm(cheap(2_000)),
    "20,000 cheap domains, 50 entries": Farm(cheap(20_000), entries=50),
    "clique of 100": Farm(clique(100)),
    "clique of 100, links back": Farm(clique(100), back=True),
    "aimed at two steps": Farm(aimed(1_000)),
    "chain without end": Farm(chain),
    "one endless domain": Farm(alone),
    "2,000 cheap domains, two domains hacked, redirects": Farm(cheap(2_000), entries=5, hacked=2, moves=True),
    "popular home page hacked": Farm(cheap(2_000), entries=5, where="home"),
    "home page of a seed hacked": Farm(cheap(2_000), where="seed"),
    "two domains hacked": Farm(cheap(2_000), entries=5, hacked=2),
    "three domains hacked": Farm(clique(200), entries=5, hacked=3),
    "inner page of a seed hacked, 3 entries": Farm(cheap(2_000), entries=3, where="inner"),
    "inner page of a seed and two domains hacked": Farm(clique(200), entries=5, hacked=3, where="inner"),
    "ten pages of a site hacked": Farm(cheap(2_000), entries=3, hacked=10, where="site"),
    "home page of a seed hacked, 3 entries": Farm(cheap(2_000), entries=3, where="seed"),
}


def _rng(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


@dataclass(eq=False)
class FarmWeb:
    """A client that serves a web, and what is true of its honest part."""

    shape: WebShape
    farm: Farm | None
    rng: int
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        web = synthetic_web(self.shape, rng=self.rng, names=True)
        names = list(web.graph.names or ())
        self.urls = [name if "/" in name.removeprefix("https://") else name + "/" for name in names]
        self.page_of = {url: page for page, url in enumerate(self.urls)}
        self.web = web
        degrees = web.graph.in_links.degrees()
        homes = web.first_page[:-1]
        usable = homes[web.graph.out_degrees[homes] > 0]
        self.popular = usable[np.argsort(-degrees[usable], kind="stable")]
        self.seed_pages = self.popular[:3]
        self.seeds = [self.urls[page] for page in self.seed_pages.tolist()]
        self.truth = _truth(web, self.seed_pages)
        self.hacked = {} if self.farm is None else self._hack(self.farm)

    def _hack(self, farm: Farm) -> dict[int, list[int]]:
        """Choose the hacked pages among those that a crawl finds, and the farm domains that each links to."""
        entries = list(range(farm.entries))
        if farm.where == "seed":
            return {int(self.seed_pages[0]): entries}
        linked = np.flatnonzero((self.truth > 0) & (self.web.graph.out_degrees > 0))
        pages = np.random.default_rng([self.rng, 5]).permutation(linked).tolist()
        first = self._of_domain(_domain(self.seeds[0]), pages)
        inner = [page for page in first if self.urls[page] not in self.seeds]
        others = [page for page in pages if _domain(self.urls[page]) not in set(map(_domain, self.seeds))]
        if farm.where == "site":
            largest = Counter(_domain(self.urls[page]) for page in others).most_common(1)[0][0]
            mine = self._of_domain(largest, others)[: farm.hacked]
            return {page: [farm.entries * place + one for one in entries] for place, page in enumerate(mine)}
        found = inner[:1] if farm.where == "inner" else []
        for page in self.popular[3:].tolist() if farm.where == "home" else others:
            taken = {*map(_domain, self.seeds), *(_domain(self.urls[one]) for one in found)}
            if _domain(self.urls[page]) not in taken and len(found) < farm.hacked:
                found.append(page)
        return dict.fromkeys(found, entries)

    def _of_domain(self, name: str, pages: Sequence[int]) -> list[int]:
        """Return the pages of a domain."""
        return [page for page in pages if _domain(self.urls[page]) == name]

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Answer a request."""
        url = request.url
        if url.endswith("/robots.txt"):
            return Fetched(url, 404)
        self.log.append(url)
        if self.farm is not None and self.farm.moves and is_farm(url) and url.endswith("/"):
            return Fetched(url, 301, target=f"{url}1")
        links = self._farm_links(url) if is_farm(url) else self._honest_links(url)
        if links is None:
            return Fetched(url, 404)
        body = "".join(f'<a href="{link}">x</a>' for link in links).encode()
        return Fetched(url, status=200, headers=HTML, body=body, raw=body)

    async def address(self, _host: str) -> str:
        """Return the address of a host: unknown, so each host is paced by itself."""
        return ""

    def _honest_links(self, url: str) -> list[str] | None:
        page = self.page_of.get(url)
        if page is None:
            return None
        links = [self.urls[target] for target in self.web.graph.links_of(page).tolist()]
        return links + [farm_url(entry) for entry in self.hacked.get(page, [])]

    def _farm_links(self, url: str) -> list[str] | None:
        if self.farm is None:
            return None
        host, _, path = url.partition("://")[2].partition("/")
        domain, page = int(host.removeprefix("farm").partition(".")[0]), int(path or 0)
        own = [farm_url(domain, OWN * page + step) for step in range(1, OWN + 1)] if OWN * page < DEEPEST else []
        back = [self.urls[one] for one in self.popular[:3].tolist()] if self.farm.back else []
        return own + [farm_url(other) for other in self.farm.shape(domain, page)] + back

    def farm_share(self) -> float:
        """Return the share of requests that went to the farm."""
        return sum(map(is_farm, self.log)) / max(len(self.log), 1)

    def coverage(self, most: int) -> float:
        """Return the true importance, without the farm, of the honest pages among the first `most` requests."""
        pages = {self.page_of[url] for url in self.log[:most] if url in self.page_of}
        return float(self.truth[sorted(pages)].sum())


def _truth(web: SyntheticWeb, seeds: Sequence[int] | np.ndarray) -> FloatArray:
    teleport = np.zeros(web.graph.pages)
    teleport[seeds] = 1 / len(seeds)
    return pagerank(web.graph, 0.85, 1e-9, teleport).scores


def farm_url(domain: int, page: int = 0) -> str:
    """Return the URL of a page of a farm domain."""
    return f"http://farm{domain}.example/{page or ''}"


def is_farm(url: str) -> bool:
    """Return whether a URL is of the farm."""
    return url.startswith("http://farm")


def _domain(url: str) -> str:
    return ".".join(url.split("/")[2].split(".")[-2:])
