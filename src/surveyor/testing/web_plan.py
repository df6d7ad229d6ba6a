"""Who plays what in an embedded web: the one place where its features are handed out.

A *place* is a URL without scheme and port, such as "www.site0.example/cars/0/". Every choice is a hash of the seed,
the purpose and the thing chosen, so that switching one feature leaves the others as they are.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from surveyor.errors import UsageError
from surveyor.graph.synthetic.generate import KINDS, SyntheticWeb, synthetic_web
from surveyor.graph.synthetic.shapes import WebShape
from surveyor.testing.web_robots import Robots, Style, robots
from surveyor.testing.web_settings import WebSettings

Thing = TypeVar("Thing", bound=Hashable)

CALENDAR = "calendar.trap.example"
NOWHERE = "nowhere.lost.example"  # no resolver knows it
SPAM = frozenset({"farm", "boosted", "exchange"})
MOVES = (301, 302, 308)
LANGUAGES = ("en", "en", "en", "de", "fr", "es", "it", "ja")
ROLES = ("sessions", "soft", "slow", "flaky", "down", "reset", "strict")  # a host plays at most one
STYLES: tuple[Style, ...] = ("rules", "agents", "delay", "error", "moved")
HEAVY = frozenset({"down", "reset", "error"})  # these take a whole host away
LARGE = 40  # pages: larger hosts are spared what is heavy


class Link(NamedTuple):
    """A link to a place."""

    place: str
    nofollow: bool = False


class Move(NamedTuple):
    """A redirect."""

    status: int
    place: str


class Plan:
    """The hosts and pages of a web, their roles, and the links that features add."""

    def __init__(self, settings: WebSettings) -> None:
        self.settings = settings
        self.base = _base(settings.web, settings.rng)
        names = self.base.graph.names or ()
        self.places = [_place(name) for name in names]
        self.page_of = {place: page for page, place in enumerate(self.places)}
        self.kinds = [KINDS[kind] for kind in self.base.kind.tolist()]
        self.sites = [self.places[page].partition("/")[0] for page in self.base.first_page[:-1].tolist()]
        self.site_of = dict(zip(self.sites, range(len(self.sites)), strict=True))
        self.seeds = self._seeds()
        self.roles = self._roles()
        self.robots = self._robots()
        self.zipped = set(self.choose("gzip", self.sites, settings.gzip))
        self.languages = {host: LANGUAGES[int(8 * self.luck("language", domain_of(host)))] for host in self.sites}
        self.extra: defaultdict[int, list[Link]] = defaultdict(list)
        self.moves: dict[str, Move] = {}
        self._hand_out_pages()
        self._hand_out_hosts()
        self.hosts = (*self.sites, CALENDAR) if settings.calendar else tuple(self.sites)

    def luck(self, purpose: str, *thing: object) -> float:
        """Draw a number from 0 to 1 for a thing; the same one every time."""
        key = "|".join(map(str, (self.settings.rng, purpose, *thing))).encode()
        return int.from_bytes(hashlib.blake2b(key, digest_size=7).digest(), "big") / 2**56

    def choose(self, purpose: str, things: Sequence[Thing], share: float) -> list[Thing]:
        """Choose a share of some things, at least one unless the share is 0."""
        count = math.ceil(share * len(things)) if share else 0
        return sorted(things, key=lambda thing: self.luck(purpose, thing))[:count] if count else []

    def robots_of(self, host: str) -> Robots:
        """Return the robots.txt of a host."""
        return self.robots.get(host) or robots("missing")

    def role(self, host: str) -> str:
        """Return what is special about a host, or nothing."""
        return self.roles.get(host, "")

    def _seeds(self) -> list[int]:
        homes = self.base.first_page[:-1]
        usable = np.array([self.kinds[page] in ("ordinary", "hub") for page in homes.tolist()])
        homes = homes[usable]
        popular = np.argsort(-np.diff(self.base.graph.in_links.indptr)[homes], kind="stable")
        if not 1 <= self.settings.seeds <= homes.size:
            raise UsageError(f"{self.settings.seeds} seeds", hint=f"give a number from 1 to {homes.size}")
        return [int(page) for page in homes[popular[: self.settings.seeds]]]

    def _cast(self, role: str, share: float, taken: set[str]) -> list[str]:
        """Choose hosts for a role: not those of seeds, none twice, and with some pages as long as there are such."""
        sizes = dict(zip(self.sites, np.diff(self.base.first_page).tolist(), strict=True))
        spared = {self.host(page) for page in self.seeds} | taken
        most = LARGE if role in HEAVY or role == "sessions" else len(self.places)
        free = [host for host in self.sites if host not in spared and sizes[host] <= most]
        free.sort(key=lambda host: (sizes[host] < 5, self.luck(role, host)))
        return free[: math.ceil(share * len(self.sites))]

    def _roles(self) -> dict[str, str]:
        roles: dict[str, str] = {}
        for role in ROLES:
            roles.update(dict.fromkeys(self._cast(role, getattr(self.settings, role), set(roles)), role))
        return roles

    def _robots(self) -> dict[str, Robots]:
        settings, files = self.settings, dict[str, Robots]()
        for style in STYLES:
            for host in self._cast(style, getattr(settings, f"robots_{style}"), {*files, *self.roles}):
                place = f"{self.host(self.seeds[0])}/rules/{host}.txt" if style == "moved" else ""
                files[host] = robots(style, delay=settings.crawl_delay, place=place)
        missing = set(self.choose("missing", self.sites, settings.robots_missing))
        plain = {host: robots("missing" if host in missing else "open") for host in self.sites}
        return plain | files

    def _hand_out_pages(self) -> None:
        """Choose the pages that are special, and give others links to what is made up here."""
        settings = self.settings
        living = [page for page, kind in enumerate(self.kinds) if kind != "dead"]
        dead = [page for page, kind in enumerate(self.kinds) if kind == "dead"]
        degrees = self.base.graph.out_degrees.tolist()
        linking = [page for page in living if degrees[page]]
        plain = [page for page in linking if self.kinds[page] in ("ordinary", "hub") and page not in self.seeds]

        def places(purpose: str, pages: list[int]) -> set[str]:
            return {self.places[page] for page in self.choose(purpose, pages, getattr(settings, purpose))}

        self.dying = places("dying", plain)
        self.returning = places("returning", dead)
        self.garbled = places("garbled", living)
        self.based = places("based", linking)
        self.changing = places("changing", plain)
        self.own_canonical = places("canonical", living)
        strange = [page for page in plain if domain_of(self.host(page)) != domain_of(self.host(self.seeds[0]))]
        self.forged = places("forged", strange) - self.own_canonical
        self.moved = self.choose("moved", plain, settings.moved)
        self.old = {page: self._old_address(page) for page in self.moved}
        for page in self.choose("printed", plain, settings.printed):
            self.extra[page].append(Link(self.places[page] + "?print=1"))
        for page in self.choose("documents", plain, settings.documents):
            host = self.host(page)
            self.extra[page] += [Link(f"{host}/files/report-{page}.pdf"), Link(f"{host}/files/photo-{page}.html")]
        for page in self.choose("huge", plain, settings.huge):
            self.extra[page].append(Link(f"{self.host(page)}/archive/all-{page}.html"))
        for page in self.choose("calendar", plain, settings.calendar):
            month = 1 + int(12 * self.luck("month", page))
            self.extra[page].append(Link(f"{CALENDAR}/cal/2026/{month}"))
        for page in self.choose("nowhere", plain, settings.nowhere):
            self.extra[page].append(Link(f"{NOWHERE}/page-{page}.html"))

    def _old_address(self, page: int) -> str:
        """Make up a chain of one to three redirects to a page; return its beginning."""
        place, steps = self.places[page], 1 + int(3 * self.luck("steps", page))
        for step in range(steps):
            away = self.luck("away", page, step) < 0.3
            host = self.sites[int(len(self.sites) * self.luck("where", page, step))] if away else self.host(page)
            old = f"{host}/old/{page}/{steps - step}"
            self.moves[old] = Move(MOVES[int(3 * self.luck("status", page, step))], place)
            place = old
        return place

    def _hand_out_hosts(self) -> None:
        for host in self.choose("loops", self.sites, self.settings.loops):
            for step in range(3):
                self.moves[f"{host}/loop/{step}"] = Move(MOVES[step], f"{host}/loop/{(step + 1) % 3}")
            self.moves[f"{host}/loop/self"] = Move(302, f"{host}/loop/self")
            self.extra[self.page_of[f"{host}/"]] += [Link(f"{host}/loop/0"), Link(f"{host}/loop/self")]
        for host, role in self.roles.items():
            if role == "soft":
                self.extra[self.page_of[f"{host}/"]] += [Link(f"{host}/missing/{number}.html") for number in (1, 2)]
        for host, file in self.robots.items():
            if file.style in ("rules", "agents", "moved"):
                names = ("1", "2", "open")
                self.extra[self.page_of[f"{host}/"]] += [Link(f"{host}/private/{name}.html") for name in names]

    def host(self, page: int) -> str:
        """Return the host of a page of the synthetic web."""
        return str(self.sites[int(self.base.site[page])])


@lru_cache(maxsize=2)  # tests ask for the same one again and again, with other features
def _base(web: str | WebShape, rng: int) -> SyntheticWeb:
    return synthetic_web(web, rng=rng, names=True)


def _place(name: str) -> str:
    place = name.removeprefix("https://")
    return place if "/" in place else place + "/"


def domain_of(host: str) -> str:
    """Return the registrable domain of a host of this web: the last two labels."""
    return ".".join(host.split(".")[-2:])
