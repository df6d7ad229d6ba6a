"""Pages of an embedded web as bytes: HTML with titles, text, menus and links written in all the usual ways.

The words of a page come from its language and its topic. A link may be absolute, relative to the host, to the folder
or to a `<base>`, without scheme, in capitals, with a fragment, and it may stand twice. Links in comments and scripts,
to e-mail addresses, and of a page to itself are there to be ignored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

from surveyor.graph.synthetic.sites import TOPICS
from surveyor.testing.web_plan import Link

WORDS = {
    "en": "the and of to in is that for with this from have are was not but they his her about which when",
    "de": "der die das und ist nicht mit von auf für eine wird auch noch über oder nach wenn haben können größer",
    "fr": "le la les et est dans pour avec une des qui pas sur plus être cette même après où très déjà façon",
    "es": "el los las que una con para por como más pero también está año muy entre cuando todo señor niño",
    "it": "il gli che una per con non sono della anche più questo come alla perché essere così città però già",
    "ja": "これ それ です ます から ある いる こと もの ため よう して なる など また その この 日本 時間 世界",
}
SYLLABLES = "bacedifoguhakilomunaperisotavewixoyuza"  # two letters each
MENU = 6  # links that stand in the navigation
FOREIGN = "/static/deep/"  # the folder that a <base> names
GARBAGE = b"\xff\xfe caf\xe9 \x80\xc3 \x93quoted\x94 na\xefve \xe3\x81"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What is at a place: a page with its links, or the reason why there is none."""

    place: str
    kind: str
    status: int = 200
    links: tuple[Link, ...] = ()
    tail: tuple[Link, ...] = ()  # of a huge page, behind its text
    moved_to: str = ""  # a place
    canonical: str = ""  # a place
    media: str = "html"
    title: str = ""
    language: str = "en"
    topic: int = 0
    version: int = 0  # in which it changed last
    based: bool = False
    garbled: bool = False


@cache
def vocabulary(topic: int) -> tuple[str, ...]:
    """Return words that only pages of one topic use, its name first."""
    name = TOPICS[topic] if topic < len(TOPICS) else f"topic-{topic}"
    draws = hashlib.shake_128(f"topic {topic}".encode()).digest(60)
    made = ["".join(SYLLABLES[draw % 19 * 2 :][:2] for draw in draws[at : at + 3]) for at in range(0, 60, 3)]
    return (name, name, name, *made)


def prose(sheet: Sheet, count: int, seed: int) -> list[str]:
    """Return so many words, two of three from the language and one from the topic."""
    common, special = WORDS[sheet.language].split(), vocabulary(sheet.topic)
    draws = hashlib.shake_128(f"{seed}|{sheet.place}".encode()).digest(count)
    return [special[draw % len(special)] if draw % 3 == 0 else common[draw % len(common)] for draw in draws]


def render(sheet: Sheet, url: Callable[[str], str], seed: int, padding: int) -> bytes:
    """Write a page; `url` turns places into URLs, `padding` is the length of a huge page."""
    draws = hashlib.shake_128(f"{seed}|look|{sheet.place}".encode()).digest(
        2 * (len(sheet.links) + len(sheet.tail)) + 8
    )
    words = prose(sheet, 40 + draws[0] // 2, seed)
    host, _, path = sheet.place.partition("/")
    folder = FOREIGN if sheet.based else "/" + path.partition("?")[0].rpartition("/")[0] + "/"
    folder = folder.replace("//", "/")
    head = [f"<title>{escape(sheet.title)}</title>"]
    if sheet.based:
        head.append(f'<base href="{url(host + FOREIGN)}">')
    if sheet.canonical:
        head.append(f'<link rel="canonical" href="{escape(url(sheet.canonical))}">')
    anchors = [
        _anchor(link, host, folder, url, draws[8 + 2 * at], draws[9 + 2 * at], words[at % len(words)])
        for at, link in enumerate(sheet.links + sheet.tail)
    ]
    first, last = anchors[: len(sheet.links)], anchors[len(sheet.links) :]
    parts = [
        f'<!DOCTYPE html>\n<html lang="{sheet.language}">\n<head>\n<meta charset="utf-8">',
        *head,
        "</head>\n<body>",
        "<nav>" + " | ".join(first[:MENU]) + "</nav>",
        f"<h1>{escape(sheet.title)}</h1>",
        *_noise(draws, url(sheet.place), based=sheet.based),
        *_paragraphs(words, first[MENU:]),
    ]
    if sheet.kind == "huge":
        parts.append("<p>" + " ".join(words * (padding // len(" ".join(words)) + 1)) + "</p>")
    parts.append("<footer>" + " ".join(first[:1] + last) + "</footer>\n</body>\n</html>\n")
    body = "\n".join(parts).encode()
    return body.replace(b"</h1>", b"</h1><p>" + GARBAGE + b"</p>", 1) + b"\xe3\x81" if sheet.garbled else body


def _paragraphs(words: Sequence[str], anchors: list[str]) -> list[str]:
    count = max(1, (len(anchors) + 3) // 4)
    size = -(-len(words) // count)
    return [
        "<p>" + " ".join([*words[at * size : (at + 1) * size], *anchors[4 * at : 4 * at + 4]]) + "</p>"
        for at in range(count)
    ]


def _noise(draws: bytes, own: str, *, based: bool) -> list[str]:
    """Write what looks like links and is none."""
    reload = "" if based else ' <a href="">Reload</a>'  # with a <base>, it would lead there
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
    """Write a path as seen from a folder."""
    there, here = path.split("/")[1:], folder.split("/")[1:-1]
    common = 0
    while common < min(len(there) - 1, len(here)) and there[common] == here[common]:
        common += 1
    steps = "../" * (len(here) - common) + "/".join(there[common:])
    return steps if steps and steps[0] not in "?/" else "./" + steps
