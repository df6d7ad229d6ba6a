"""Settings and plan of an embedded web: which hosts and pages have which features, decided in one place.

A *place* is a URL without scheme and port, such as "www.site0.example/cars/0/". Every choice is a hash of the random
seed, the purpose and the item, so switching one feature leaves the others unchanged. robots.txt files are data here:
whether they allow a URL is computed from the rules, not from their text, so that parsers can be tested against them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from surveyor.errors import UsageError
from surveyor.graph.synthetic.generate import KINDS, SyntheticWeb, WebShape, synthetic_web

Style = Literal["missing", "open", "rules", "agents", "delay", "error", "moved"]

PRIVATE = ((False, "/private/"), (True, "/private/open.html"), (False, "/*-9.html$"))
REMARK = "# which pages robots may read\nthis line means nothing\n"
Item = TypeVar("Item", bound=Hashable)

CALENDAR = "calendar.trap.example"
NOWHERE = "nowhere.lost.example"  # does not resolve
SPAM = frozenset({"farm", "boosted", "exchange"})
MOVES = (301, 302, 308)
LANGUAGES = ("en", "en", "en", "de", "fr", "es", "it", "ja")
ROLES = ("sessions", "soft", "slow", "flaky", "down", "reset", "strict")  # a host has at most one
STYLES: tuple[Style, ...] = ("rules", "agents", "delay", "error", "moved")
HEAVY = frozenset({"down", "reset", "error"})  # these make a whole host unavailable
LARGE = 40  # pages: larger hosts get no heavy role
LIMITS = frozenset({"rng", "port", "seeds", "web", "slow_seconds", "pace", "crawl_delay", "huge_bytes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Size and features of an embedded web.

    Shares are between 0 and 1. A share above 0 selects at least one of the hosts or pages that qualify, by the random
    seed; links need not lead there. Hosts of seeds get no special role, so a web of one host has none.
    0 switches a feature off; `WebSettings.plain()` has none.

    >>> WebSettings.plain(calendar=0.01).calendar, WebSettings.plain().moved
    (0.01, 0.0)
    """

    web: str | WebShape = "small"  # preset or shape of the synthetic web of pages and links
    rng: int = 7
    port: int = 0  # 0 selects a free port
    seeds: int = 3  # number of seed URLs: the home pages with the most in-links

    # Shares of links
    nofollow: float = 0.5  # of links from and to farms and exchanges: with rel=nofollow

    # Shares of pages
    based: float = 0.1  # with a <base> element
    canonical: float = 0.3  # with their own URL as canonical
    forged: float = 0.005  # with a canonical URL on another domain, which crawlers must ignore
    printed: float = 0.03  # with a print version whose canonical URL is the page
    moved: float = 0.05  # with an old URL that redirects here in up to three hops, some across hosts
    dying: float = 0.01  # that respond once and are gone afterwards
    returning: float = 0.3  # of the gone pages: those that respond to a second request
    documents: float = 0.01  # that link to a PDF served as HTML, and to a PNG with an .html name
    huge: float = 0.001  # that link to a page above any sensible size limit
    garbled: float = 0.03  # with bytes that are invalid in their encoding
    changing: float = 0.1  # with a different link in each version of the web
    calendar: float = 0.005  # that link to an endless calendar
    nowhere: float = 0.002  # that link to a host that does not resolve

    # Shares of hosts
    loops: float = 0.02  # with redirect loops
    soft: float = 0.02  # that respond 200 to unknown paths (soft 404)
    sessions: float = 0.005  # that add ?sid=… to internal links
    slow: float = 0.02  # that take `slow_seconds` per response
    flaky: float = 0.02  # where a third of the pages respond 500 or 503 to the first request
    down: float = 0.01  # that always respond 500 or 503
    reset: float = 0.01  # that drop the connection
    strict: float = 0.01  # that respond 429 to more than one request per `pace`
    gzip: float = 0.5  # that compress responses if the client accepts gzip
    robots_rules: float = 0.1  # with folders that robots.txt disallows
    robots_agents: float = 0.02  # with rules per user agent
    robots_delay: float = 0.02  # with a Crawl-delay of `crawl_delay`
    robots_error: float = 0.01  # whose robots.txt responds 503: everything is disallowed
    robots_moved: float = 0.02  # whose robots.txt redirects to another host
    robots_missing: float = 0.5  # of the other hosts: those without robots.txt

    slow_seconds: float = 0.2
    pace: float = 0.5  # seconds
    crawl_delay: float = 0.5  # seconds
    huge_bytes: int = 3_000_000  # of text between the first and the last links of a huge page

    def __post_init__(self) -> None:
        for name in SHARES:
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise UsageError(f"{name} must be between 0 and 1, got {share:g}", hint="pass a share")

    @classmethod
    def plain(cls, **changes: Any) -> WebSettings:
        """Return settings with all features off, except those in `changes`."""
        return cls(**{**dict.fromkeys(SHARES, 0.0), **changes})


SHARES = tuple(field.name for field in fields(WebSettings) if field.name not in LIMITS)


@dataclass(frozen=True, slots=True)
class Group:
    """Group of a robots.txt file: agents, and rules as (allowed, pattern)."""

    agents: tuple[str, ...]
    rules: tuple[tuple[bool, str], ...]
    delay: float | None = None

    def text(self) -> str:
        """Return the group as robots.txt lines."""
        lines = [f"User-agent: {agent}" for agent in self.agents]
        lines += [f"{'Allow' if allowed else 'Disallow'}: {pattern}" for allowed, pattern in self.rules]
        lines += [] if self.delay is None else [f"Crawl-delay: {self.delay:g}"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """robots.txt of one host, as data; with style "moved" it redirects to `place`."""

    style: Style
    groups: tuple[Group, ...] = ()
    place: str = ""

    @property
    def status(self) -> int:
        """HTTP status of /robots.txt."""
        return {"missing": 404, "error": 503, "moved": 302}.get(self.style, 200)

    def text(self) -> str:
        """Return the text of the file."""
        return REMARK + "\n".join(group.text() for group in self.groups)

    def allows(self, agent: str, target: str) -> bool:
        """Return whether an agent (product token) may fetch a path with its query, by RFC 9309.

        The longest matching rule wins, Allow wins ties, and a 5xx response disallows everything.
        """
        if target == "/robots.txt":
            return True
        if self.style == "error":
            return False
        matches = [(len(pattern), allowed) for allowed, pattern in self._rules(agent) if _matches(pattern, target)]
        return max(matches, default=(0, True))[1]

    def delay(self, agent: str) -> float | None:
        """Return the Crawl-delay of an agent in seconds, if any."""
        return max((group.delay for group in self._groups(agent) if group.delay is not None), default=None)

    def _groups(self, agent: str) -> list[Group]:
        mine = [group for group in self.groups if agent.lower() in map(str.lower, group.agents)]
        return mine or [group for group in self.groups if "*" in group.agents]

    def _rules(self, agent: str) -> list[tuple[bool, str]]:
        return [rule for group in self._groups(agent) for rule in group.rules if rule[1]]


def robots_file(style: Style, *, delay: float = 0.0, place: str = "") -> RobotsFile:
    """Return the robots.txt of a host of this style."""
    if style in ("rules", "moved"):
        return RobotsFile(style, (Group(("*",), PRIVATE),), place)
    if style == "delay":
        return RobotsFile(style, (Group(("*",), ((False, ""),), delay),))
    if style == "agents":
        groups = (
            Group(("otherbot",), ((False, "/"),)),
            Group(("Surveyor", "friendlybot"), PRIVATE[:1]),
            Group(("*",), ((False, "/"),)),
            Group(("surveyor",), PRIVATE[1:2]),  # groups of the same agent are merged
        )
        return RobotsFile(style, groups)
    return RobotsFile(style, () if style in ("missing", "error") else (Group(("*",), ((False, ""),)),))


def _matches(pattern: str, target: str) -> bool:
    body = pattern.removesuffix("$")
    end = r"\Z" if pattern.endswith("$") else ""
    return re.match(".*".join(map(re.escape, body.split("*"))) + end, target) is not None


class Link(NamedTuple):
    """Link to a place."""

    place: str
    nofollow: bool = False


class Move(NamedTuple):
    """Redirect."""

    status: int
    place: str


class Plan:
    """Hosts and pages of an embedded web, their roles, and the links that features add."""

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
        self.zipped = set(self.select("gzip", self.sites, settings.gzip))
        self.languages = {host: LANGUAGES[int(8 * self.uniform("language", domain_of(host)))] for host in self.sites}
        self.extra: defaultdict[int, list[Link]] = defaultdict(list)
        self.moves: dict[str, Move] = {}
        self._assign_pages()
        self._assign_hosts()
        self.hosts = (*self.sites, CALENDAR) if settings.calendar else tuple(self.sites)

    def uniform(self, purpose: str, *key: object) -> float:
        """Return a number in [0, 1) that depends only on the random seed, the purpose and the key."""
        text = "|".join(map(str, (self.settings.rng, purpose, *key))).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / 2**56

    def select(self, purpose: str, items: Sequence[Item], share: float) -> list[Item]:
        """Select a share of the items, at least one unless the share is 0."""
        count = math.ceil(share * len(items)) if share else 0
        return sorted(items, key=lambda item: self.uniform(purpose, item))[:count] if count else []

    def robots_of(self, host: str) -> RobotsFile:
        """Return the robots.txt of a host."""
        return self.robots.get(host) or robots_file("missing")

    def role(self, host: str) -> str:
        """Return the role of a host, or an empty string."""
        return self.roles.get(host, "")

    def _seeds(self) -> list[int]:
        homes = self.base.first_page[:-1]
        usable = np.array([self.kinds[page] in ("ordinary", "hub") for page in homes.tolist()])
        homes = homes[usable]
        popular = np.argsort(-np.diff(self.base.graph.in_links.indptr)[homes], kind="stable")
        if not 1 <= self.settings.seeds <= homes.size:
            raise UsageError(
                f"seeds must be between 1 and {homes.size}, got {self.settings.seeds}", hint="pass another number"
            )
        return [int(page) for page in homes[popular[: self.settings.seeds]]]

    def _hosts_for(self, role: str, share: float, taken: set[str]) -> list[str]:
        """Select hosts for a role: no seed hosts, none twice, those with at least five pages first."""
        sizes = dict(zip(self.sites, np.diff(self.base.first_page).tolist(), strict=True))
        excluded = {self.host(page) for page in self.seeds} | taken
        most = LARGE if role in HEAVY or role == "sessions" else len(self.places)
        free = [host for host in self.sites if host not in excluded and sizes[host] <= most]
        free.sort(key=lambda host: (sizes[host] < 5, self.uniform(role, host)))
        return free[: math.ceil(share * len(self.sites))]

    def _roles(self) -> dict[str, str]:
        roles: dict[str, str] = {}
        for role in ROLES:
            roles.update(dict.fromkeys(self._hosts_for(role, getattr(self.settings, role), set(roles)), role))
        return roles

    def _robots(self) -> dict[str, RobotsFile]:
        settings, files = self.settings, dict[str, RobotsFile]()
        for style in STYLES:
            for host in self._hosts_for(style, getattr(settings, f"robots_{style}"), {*files, *self.roles}):
                place = f"{self.host(self.seeds[0])}/rules/{host}.txt" if style == "moved" else ""
                files[host] = robots_file(style, delay=settings.crawl_delay, place=place)
        missing = set(self.select("missing", self.sites, settings.robots_missing))
        plain = {host: robots_file("missing" if host in missing else "open") for host in self.sites}
        return plain | files

    def _assign_pages(self) -> None:
        """Select the special pages, and add links to generated pages."""
        settings = self.settings
        alive = [page for page, kind in enumerate(self.kinds) if kind != "dead"]
        dead = [page for page, kind in enumerate(self.kinds) if kind == "dead"]
        degrees = self.base.graph.out_degrees.tolist()
        with_links = [page for page in alive if degrees[page]]
        plain = [page for page in with_links if self.kinds[page] in ("ordinary", "hub") and page not in self.seeds]

        def places(purpose: str, pages: list[int]) -> set[str]:
            return {self.places[page] for page in self.select(purpose, pages, getattr(settings, purpose))}

        self.dying = places("dying", plain)
        self.returning = places("returning", dead)
        self.garbled = places("garbled", alive)
        self.based = places("based", with_links)
        self.changing = places("changing", plain)
        self.own_canonical = places("canonical", alive)
        strange = [page for page in plain if domain_of(self.host(page)) != domain_of(self.host(self.seeds[0]))]
        self.forged = places("forged", strange) - self.own_canonical
        self.moved = self.select("moved", plain, settings.moved)
        self.old = {page: self._old_address(page) for page in self.moved}
        for page in self.select("printed", plain, settings.printed):
            self.extra[page].append(Link(self.places[page] + "?print=1"))
        for page in self.select("documents", plain, settings.documents):
            host = self.host(page)
            self.extra[page] += [Link(f"{host}/files/report-{page}.pdf"), Link(f"{host}/files/photo-{page}.html")]
        for page in self.select("huge", plain, settings.huge):
            self.extra[page].append(Link(f"{self.host(page)}/archive/all-{page}.html"))
        for page in self.select("calendar", plain, settings.calendar):
            month = 1 + int(12 * self.uniform("month", page))
            self.extra[page].append(Link(f"{CALENDAR}/cal/2026/{month}"))
        for page in self.select("nowhere", plain, settings.nowhere):
            self.extra[page].append(Link(f"{NOWHERE}/page-{page}.html"))

    def _old_address(self, page: int) -> str:
        """Add a chain of one to three redirects to a page; return its first place."""
        place, steps = self.places[page], 1 + int(3 * self.uniform("steps", page))
        for step in range(steps):
            away = self.uniform("away", page, step) < 0.3
            host = self.sites[int(len(self.sites) * self.uniform("where", page, step))] if away else self.host(page)
            old = f"{host}/old/{page}/{steps - step}"
            self.moves[old] = Move(MOVES[int(3 * self.uniform("status", page, step))], place)
            place = old
        return place

    def _assign_hosts(self) -> None:
        for host in self.select("loops", self.sites, self.settings.loops):
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


@lru_cache(maxsize=2)  # tests reuse one web with different features
def _base(web: str | WebShape, rng: int) -> SyntheticWeb:
    return synthetic_web(web, rng=rng, names=True)


def _place(name: str) -> str:
    place = name.removeprefix("https://")
    return place if "/" in place else place + "/"


def domain_of(host: str) -> str:
    """Return the registrable domain of a host of this web: the last two labels."""
    return ".".join(host.split(".")[-2:])
