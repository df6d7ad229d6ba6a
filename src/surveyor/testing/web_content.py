"""Content of an embedded web: pages, redirects, documents and traps, and their HTML.

The words of a page depend on its language and topic. A link may be absolute, relative to the host, the folder or a
`<base>`, without scheme, in capitals, with a fragment, and may occur twice. Links in comments and scripts, e-mail
addresses and links of a page to itself must be ignored by crawlers. Everything that depends on the client or the time
(transient errors, rate limits) is in `web_server`.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape

from surveyor.graph.synthetic.generate import TOPICS
from surveyor.testing.web_plan import CALENDAR, SPAM, Link, Plan, WebSettings

WORDS = {
    "en": "the and of to in is that for with this from have are was not but they his her about which when",
    "de": "der die das und ist nicht mit von auf für eine wird auch noch über oder nach wenn haben können größer",
    "fr": "le la les et est dans pour avec une des qui pas sur plus être cette même après où très déjà façon",
    "es": "el los las que una con para por como más pero también está año muy entre cuando todo señor niño",
    "it": "il gli che una per con non sono della anche più questo come alla perché essere così città però già",
    "ja": "これ それ です ます から ある いる こと もの ため よう して なる など また その この 日本 時間 世界",
}
SYLLABLES = "bacedifoguhakilomunaperisotavewixoyuza"  # two letters each
MENU = 6  # links in the navigation
FOREIGN = "/static/deep/"  # path of a <base> element
GARBAGE = b"\xff\xfe caf\xe9 \x80\xc3 \x93quoted\x94 na\xefve \xe3\x81"
SESSION = re.compile(r"[?&]sid=([0-9a-f]{8})")
MONTH = re.compile(r"/cal/(\d{1,9})/(\d{1,2})(?:\?day=(\d{1,2}))?")
GENERATED = re.compile(
    r"/(?:private/(?P<private>1|2|open)|archive/all-(?P<huge>\d+)|files/photo-(?P<image>\d+))\.html"
    r"|/files/report-(?P<document>\d+)\.pdf"
)
EDGE = 20  # links at each end of a huge page
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU"
    b"\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82"
)
PDF = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\nstream\n" + zlib.compress(bytes(range(256)) * 8).replace(b"<", b".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of a place: a page with its links, a redirect, or an error."""

    place: str
    kind: str
    status: int = 200
    links: tuple[Link, ...] = ()
    tail: tuple[Link, ...] = ()  # links of a huge page after its text
    redirect: str = ""  # a place
    canonical: str = ""  # a place
    media: str = "html"
    title: str = ""
    language: str = "en"
    topic: int = 0
    version: int = 0  # of the web, in which it changed last
    based: bool = False
    garbled: bool = False


@cache
def vocabulary(topic: int) -> tuple[str, ...]:
    """Return words that occur on pages of one topic only, the name of the topic first."""
    name = TOPICS[topic] if topic < len(TOPICS) else f"topic-{topic}"
    draws = hashlib.shake_128(f"topic {topic}".encode()).digest(60)
    made = ["".join(SYLLABLES[draw % 19 * 2 :][:2] for draw in draws[at : at + 3]) for at in range(0, 60, 3)]
    return (name, name, name, *made)


def prose(content: Content, count: int, seed: int) -> list[str]:
    """Return `count` words, two thirds from the language and one third from the topic."""
    common, special = WORDS[content.language].split(), vocabulary(content.topic)
    draws = hashlib.shake_128(f"{seed}|{content.place}".encode()).digest(count)
    return [special[draw % len(special)] if draw % 3 == 0 else common[draw % len(common)] for draw in draws]


def render(content: Content, url: Callable[[str], str], seed: int, padding: int) -> bytes:
    """Return a page as HTML; `url` maps places to URLs, `padding` is the length of a huge page."""
    draws = hashlib.shake_128(f"{seed}|look|{content.place}".encode()).digest(
        2 * (len(content.links) + len(content.tail)) + 8
    )
    words = prose(content, 40 + draws[0] // 2, seed)
    host, _, path = content.place.partition("/")
    folder = FOREIGN if content.based else "/" + path.partition("?")[0].rpartition("/")[0] + "/"
    folder = folder.replace("//", "/")
    head = [f"<title>{escape(content.title)}</title>"]
    if content.based:
        head.append(f'<base href="{url(host + FOREIGN)}">')
    if content.canonical:
        head.append(f'<link rel="canonical" href="{escape(url(content.canonical))}">')
    anchors = [
        _anchor(link, host, folder, url, draws[8 + 2 * at], draws[9 + 2 * at], words[at % len(words)])
        for at, link in enumerate(content.links + content.tail)
    ]
    first, last = anchors[: len(content.links)], anchors[len(content.links) :]
    parts = [
        f'<!DOCTYPE html>\n<html lang="{content.language}">\n<head>\n<meta charset="utf-8">',
        *head,
        "</head>\n<body>",
        "<nav>" + " | ".join(first[:MENU]) + "</nav>",
        f"<h1>{escape(content.title)}</h1>",
        *_noise(draws, url(content.place), based=content.based),
        *_paragraphs(words, first[MENU:]),
    ]
    if content.kind == "huge":
        parts.append("<p>" + " ".join(words * (padding // len(" ".join(words)) + 1)) + "</p>")
    parts.append("<footer>" + " ".join(first[:1] + last) + "</footer>\n</body>\n</html>\n")
    body = "\n".join(parts).encode()
    return body.replace(b"</h1>", b"</h1><p>" + GARBAGE + b"</p>", 1) + b"\xe3\x81" if content.garbled else body


def _paragraphs(words: Sequence[str], anchors: list[str]) -> list[str]:
    count = max(1, (len(anchors) + 3) // 4)
    size = -(-len(words) // count)
    return [
        "<p>" + " ".join([*words[at * size : (at + 1) * size], *anchors[4 * at : 4 * at + 4]]) + "</p>"
        for at in range(count)
    ]


def _noise(draws: bytes, own: str, *, based: bool) -> list[str]:
    """Return markup that looks like links but contains none."""
    reload = "" if based else ' <a href="">Reload</a>'  # with a <base> it would be a link
    kinds = (
        f'<a href="mailto:someone@mail.example">Mail</a> <a name="top">Top</a>{reload}',
        f'<a href="{escape(own)}#top">Here</a> <a href="javascript:void(0)">Menu</a>',
        '<!-- <a href="/commented-out.html">old</a> -->',
        "<script>document.write('<a href=\"/written.html\">new</a>');</script>",
    )
    return [kind for at, kind in enumerate(kinds) if draws[1] >> at & 1]


def _anchor(link: Link, host: str, folder: str, url: Callable[[str], str], draw: int, more: int, word: str) -> str:
    where, _, path = link.place.partition("/")
    full = url(link.place)
    if where != host:
        href = full[5:] if draw % 5 == 0 else full
    else:
        near = _relative("/" + path, folder)
        href = (full, full, "/" + path, "/" + path, full[5:], near, near, near)[draw % 8]
    if more % 16 == 0 and href is full:
        scheme, _, rest = href.partition("://")
        name, slash, tail = rest.partition("/")
        href = f"{scheme.upper()}://{name.upper()}{slash}{tail}"
    href += f"#part-{more % 7}" if more % 11 == 0 else ""
    rel = ' rel="nofollow"' if link.nofollow else ""
    quote = "'" if more % 13 == 0 else '"'
    return f"<a href={quote}{escape(href)}{quote}{rel}>{word}</a>"


def _relative(path: str, folder: str) -> str:
    """Return a path relative to a folder."""
    there, here = path.split("/")[1:], folder.split("/")[1:-1]
    common = 0
    while common < min(len(there) - 1, len(here)) and there[common] == here[common]:
        common += 1
    steps = "../" * (len(here) - common) + "/".join(there[common:])
    return steps if steps and steps[0] not in "?/" else "./" + steps


class WebPages:
    """Content of an embedded web: a pure function of place, version and settings.

    >>> pages = WebPages(WebSettings.plain(calendar=0.01), port=8080)
    >>> [link.place.partition("/")[2] for link in pages.content("calendar.trap.example/cal/2026/12").links]
    ['', 'cal/2026/11', 'cal/2027/1', 'cal/2026/12?day=5', 'cal/2026/12?day=20']
    """

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
        """All places except those of the calendar (endless) and of sessions (too many)."""
        made = [link.place for links in self.plan.extra.values() for link in links]
        return [
            *self.plan.places,
            *dict.fromkeys([place for place in made if "/cal/" not in place]),
            *self.plan.old.values(),
        ]

    def body(self, content: Content) -> bytes:
        """Return the response body."""
        if content.media == "png":
            return PNG + content.place.encode()
        if content.media == "pdf":
            return PDF + content.place.encode() + b"\nendstream\n%%EOF\n"
        return render(content, self.url, self.settings.rng, self.settings.huge_bytes)

    def content(self, place: str, version: int = 0) -> Content:
        """Return the content of a place in a version of the web."""
        plan, (host, _, rest) = self.plan, place.partition("/")
        target = "/" + rest
        session = SESSION.search(target) if plan.role(host) == "sessions" else None
        known = place[: -len(session[0])] if session and place.endswith(session[0]) else place
        if (page := plan.page_of.get(known)) is not None:
            return self._page(page, place, session[1] if session else "", version)
        if place in plan.moves:
            move, kind = plan.moves[place], "loop" if "/loop/" in place else "redirect"
            return Content(place=place, kind=kind, status=move.status, redirect=move.place)
        if host == CALENDAR and plan.settings.calendar:
            return self._calendar(place, target)
        if place.endswith("?print=1") and Link(place) in plan.extra.get(plan.page_of.get(place[:-8], -1), ()):
            page = plan.page_of[place[:-8]]
            content = self._styled(place, "print", page, (Link(place[:-8]), Link(f"{host}/")))
            return replace(content, canonical=place[:-8])
        if (match := GENERATED.fullmatch(target)) and (generated := self._generated(place, host, match)):
            return generated
        if plan.role(host) == "soft":
            home = plan.page_of[f"{host}/"]
            return replace(self._styled(place, "soft-404", home, (Link(f"{host}/"),)), title="Page not found")
        return Content(place=place, kind="missing", status=404, title="Not found")

    def _page(self, page: int, place: str, session: str, version: int) -> Content:
        """Return the content of a page of the synthetic web."""
        plan, kind, known = self.plan, self.plan.kinds[page], self.plan.places[page]
        host = known.partition("/")[0]
        if kind == "dead":
            if known in plan.returning:
                return self._styled(place, "returning", page, (Link(f"{host}/"),))
            return Content(
                place=place, kind=kind, status=410 if plan.uniform("dead", page) < 0.3 else 404, title="Gone"
            )
        changed = version if known in plan.changing else 0
        links = self._row(page, changed) + plan.extra.get(page, [])
        if plan.role(host) == "sessions":
            session = session or f"{int(plan.uniform('session', page) * 2**32):08x}"
            own = [link for link in links if link.place.startswith(f"{host}/") and link.place in plan.page_of]
            links = [link._replace(place=f"{link.place}?sid={session}") if link in own else link for link in links]
        content = self._styled(place, kind, page, tuple(links))
        return replace(
            content,
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
        """Return the links of a page, some to old URLs; one differs between versions."""
        plan, targets = self.plan, self.plan.base.graph.links_of(page).tolist()
        if version and targets:
            at = int(len(targets) * plan.uniform("which", page, version))
            other = int(len(plan.places) * plan.uniform("other", page, version))
            targets[at] = other if other != page and other not in targets else targets[at - 1]
        links = []
        for target in targets:
            spam = plan.kinds[page] in SPAM or plan.kinds[target] in SPAM
            nofollow = spam and plan.uniform("nofollow", page, target) < plan.settings.nofollow
            address = plan.uniform("address", page, target) if target in plan.old else 1.0
            if address < 0.55:
                links.append(Link(plan.old[target], nofollow))
            if address > 0.4:
                links.append(Link(plan.places[target], nofollow))
        return links

    def _styled(self, place: str, kind: str, page: int, links: tuple[Link, ...]) -> Content:
        """Return a page with the language and topic of its host."""
        plan, host = self.plan, place.partition("/")[0]
        topic = int(plan.base.topic[page])
        title = f"{vocabulary(topic)[0].capitalize()}: {place.rpartition('/')[2] or 'home'} – {host}"
        return Content(place=place, kind=kind, links=links, title=title, language=plan.languages[host], topic=topic)

    def _calendar(self, place: str, target: str) -> Content:
        if target == "/":
            return Content(place=place, kind="calendar", links=(Link(f"{CALENDAR}/cal/2026/1"),), title="Calendar")
        if not (match := MONTH.fullmatch(target)) or not 1 <= int(match[2]) <= 12:
            return Content(place=place, kind="missing", status=404, title="Not found")
        year, month = int(match[1]), int(match[2])
        here = f"{CALENDAR}/cal/{year}/{month}"
        if match[3]:
            targets = [here]
        else:
            months = [12 * year + month - 2, 12 * year + month]
            near = [f"{CALENDAR}/cal/{at // 12}/{at % 12 + 1}" for at in months if at >= 12]
            targets = [f"{CALENDAR}/", *near, f"{here}?day=5", f"{here}?day=20"]
        title = f"Calendar {year}-{month:02}"
        return Content(place=place, kind="calendar", links=tuple(map(Link, targets)), title=title)

    def _generated(self, place: str, host: str, match: re.Match[str]) -> Content | None:
        """Return the content of a page that a feature added, or None."""
        plan = self.plan
        kind = match.lastgroup or ""
        page = plan.page_of[f"{host}/"] if kind == "private" else int(match[kind])
        if Link(place) not in plan.extra.get(page, ()):
            return None
        if kind == "private":
            return self._styled(place, kind, page, (Link(f"{host}/"), Link(f"{host}/private/2.html")))
        if kind in ("image", "document"):
            return Content(place=place, kind=kind, media="png" if kind == "image" else "pdf")
        drawn = [int(len(plan.places) * plan.uniform("huge", page, at)) for at in range(2 * EDGE)]
        ends = [tuple(Link(plan.places[target]) for target in part) for part in (drawn[:EDGE], drawn[EDGE:])]
        return replace(self._styled(place, kind, page, ends[0]), tail=ends[1])
