"""What is at each place of an embedded web: a pure function of the place, the version and the settings.

    >>> from surveyor.testing.web_settings import WebSettings
    >>> pages = WebPages(WebSettings.plain(calendar=0.01), port=8080)
    >>> [link.place.partition("/")[2] for link in pages.sheet("calendar.trap.example/cal/2026/12").links]
    ['', 'cal/2026/11', 'cal/2027/1', 'cal/2026/12?day=5', 'cal/2026/12?day=20']

What depends on who asks, when and how often (errors that pass, limits of pace) is the server's business.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import replace

from surveyor.testing.web_html import Sheet, render, vocabulary
from surveyor.testing.web_plan import CALENDAR, SPAM, Link, Plan
from surveyor.testing.web_settings import WebSettings

SESSION = re.compile(r"[?&]sid=([0-9a-f]{8})")
MONTH = re.compile(r"/cal/(\d{1,9})/(\d{1,2})(?:\?day=(\d{1,2}))?")
MADE = re.compile(r"/(?:private/(?P<private>1|2|open)|archive/all-(?P<huge>\d+)|files/photo-(?P<image>\d+))\.html"
                  r"|/files/report-(?P<document>\d+)\.pdf")  # fmt: skip
EDGE = 20  # links at each end of a huge page
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU"
    b"\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82"
)
PDF = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\nstream\n" + zlib.compress(bytes(range(256)) * 8).replace(b"<", b".")


class WebPages:
    """The content of a web, served at a port."""

    def __init__(self, settings: WebSettings, port: int = 80) -> None:
        self.settings, self.plan = settings, Plan(settings)
        self.port = port

    def url(self, place: str) -> str:
        """Return the URL of a place."""
        host, _, path = place.partition("/")
        return f"http://{host}/{path}" if self.port == 80 else f"http://{host}:{self.port}/{path}"

    def place(self, url: str) -> str:
        """Return the place of a URL."""
        host, _, path = url.removeprefix("http://").partition("/")
        return f"{host.partition(':')[0]}/{path}"

    @property
    def places(self) -> list[str]:
        """All places but those of the calendar and of sessions, which have no end or too many."""
        made = [link.place for links in self.plan.extra.values() for link in links]
        return [
            *self.plan.places,
            *dict.fromkeys([place for place in made if "/cal/" not in place]),
            *self.plan.old.values(),
        ]

    def body(self, sheet: Sheet) -> bytes:
        """Write what is at a place."""
        if sheet.media == "png":
            return PNG + sheet.place.encode()
        if sheet.media == "pdf":
            return PDF + sheet.place.encode() + b"\nendstream\n%%EOF\n"
        return render(sheet, self.url, self.settings.rng, self.settings.huge_bytes)

    def sheet(self, place: str, version: int = 0) -> Sheet:
        """Return what is at a place in a version of the web."""
        plan, (host, _, rest) = self.plan, place.partition("/")
        target = "/" + rest
        session = SESSION.search(target) if plan.role(host) == "sessions" else None
        known = place[: -len(session[0])] if session and place.endswith(session[0]) else place
        if (page := plan.page_of.get(known)) is not None:
            return self._page(page, place, session[1] if session else "", version)
        if place in plan.moves:
            status, goal = plan.moves[place]
            return Sheet(place=place, kind="loop" if "/loop/" in place else "redirect", status=status, moved_to=goal)
        if host == CALENDAR and plan.settings.calendar:
            return self._calendar(place, target)
        if place.endswith("?print=1") and Link(place) in plan.extra.get(plan.page_of.get(place[:-8], -1), ()):
            page = plan.page_of[place[:-8]]
            sheet = self._dress(place, "print", page, (Link(place[:-8]), Link(f"{host}/")))
            return replace(sheet, canonical=place[:-8])
        if (match := MADE.fullmatch(target)) and (made := self._made(place, host, match)):
            return made
        if plan.role(host) == "soft":
            home = plan.page_of[f"{host}/"]
            return replace(self._dress(place, "soft-404", home, (Link(f"{host}/"),)), title="Page not found")
        return Sheet(place=place, kind="missing", status=404, title="Not found")

    def _page(self, page: int, place: str, session: str, version: int) -> Sheet:
        """Describe a page of the synthetic web."""
        plan, kind, known = self.plan, self.plan.kinds[page], self.plan.places[page]
        host = known.partition("/")[0]
        if kind == "dead":
            if known in plan.returning:
                return self._dress(place, "returning", page, (Link(f"{host}/"),))
            return Sheet(place=place, kind=kind, status=410 if plan.luck("dead", page) < 0.3 else 404, title="Gone")
        changed = version if known in plan.changing else 0
        links = self._row(page, changed) + plan.extra.get(page, [])
        if plan.role(host) == "sessions":
            session = session or f"{int(plan.luck('session', page) * 2**32):08x}"
            own = [link for link in links if link.place.startswith(f"{host}/") and link.place in plan.page_of]
            links = [link._replace(place=f"{link.place}?sid={session}") if link in own else link for link in links]
        sheet = self._dress(place, kind, page, tuple(links))
        return replace(
            sheet,
            version=changed,
            based=known in plan.based,
            garbled=known in plan.garbled,
            canonical=self._canonical(known, host),
        )

    def _canonical(self, known: str, host: str) -> str:
        plan = self.plan
        if known in plan.own_canonical and plan.role(host) != "sessions":
            return known
        seed = plan.places[plan.seeds[0]]
        return seed if known in plan.forged else ""

    def _row(self, page: int, version: int) -> list[Link]:
        """Return the links of the synthetic web, some to old addresses; one is another in each version."""
        plan, targets = self.plan, self.plan.base.graph.links_of(page).tolist()
        if version and targets:
            at = int(len(targets) * plan.luck("which", page, version))
            other = int(len(plan.places) * plan.luck("other", page, version))
            targets[at] = other if other != page and other not in targets else targets[at - 1]
        links = []
        for target in targets:
            spam = plan.kinds[page] in SPAM or plan.kinds[target] in SPAM
            nofollow = spam and plan.luck("nofollow", page, target) < plan.settings.nofollow
            address = plan.luck("address", page, target) if target in plan.old else 1.0
            if address < 0.55:
                links.append(Link(plan.old[target], nofollow))
            if address > 0.4:
                links.append(Link(plan.places[target], nofollow))
        return links

    def _dress(self, place: str, kind: str, page: int, links: tuple[Link, ...]) -> Sheet:
        """Give a page the language and topic of its host."""
        plan, host = self.plan, place.partition("/")[0]
        topic = int(plan.base.topic[page])
        title = f"{vocabulary(topic)[0].capitalize()}: {place.rpartition('/')[2] or 'home'} – {host}"
        return Sheet(place=place, kind=kind, links=links, title=title, language=plan.languages[host], topic=topic)

    def _calendar(self, place: str, target: str) -> Sheet:
        if target == "/":
            return Sheet(place=place, kind="calendar", links=(Link(f"{CALENDAR}/cal/2026/1"),), title="Calendar")
        if not (match := MONTH.fullmatch(target)) or not 1 <= int(match[2]) <= 12:
            return Sheet(place=place, kind="missing", status=404, title="Not found")
        year, month = int(match[1]), int(match[2])
        here = f"{CALENDAR}/cal/{year}/{month}"
        if match[3]:
            goals = [here]
        else:
            months = [12 * year + month - 2, 12 * year + month]
            near = [f"{CALENDAR}/cal/{at // 12}/{at % 12 + 1}" for at in months if at >= 12]
            goals = [f"{CALENDAR}/", *near, f"{here}?day=5", f"{here}?day=20"]
        return Sheet(place=place, kind="calendar", links=tuple(map(Link, goals)), title=f"Calendar {year}-{month:02}")

    def _made(self, place: str, host: str, match: re.Match[str]) -> Sheet | None:
        """Describe a page that a feature added, if it was."""
        plan = self.plan
        kind = match.lastgroup or ""
        page = plan.page_of[f"{host}/"] if kind == "private" else int(match[kind])
        if Link(place) not in plan.extra.get(page, ()):
            return None
        if kind == "private":
            return self._dress(place, kind, page, (Link(f"{host}/"), Link(f"{host}/private/2.html")))
        if kind in ("image", "document"):
            return Sheet(place=place, kind=kind, media="png" if kind == "image" else "pdf")
        drawn = [int(len(plan.places) * plan.luck("huge", page, at)) for at in range(2 * EDGE)]
        ends = [tuple(Link(plan.places[goal]) for goal in part) for part in (drawn[:EDGE], drawn[EDGE:])]
        return replace(self._dress(place, kind, page, ends[0]), tail=ends[1])
