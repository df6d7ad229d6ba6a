"""Pages that are made to break or to stall a parser: name, body and headers of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, islice, product
from string import ascii_lowercase

HTML = {"content-type": "text/html; charset=utf-8"}
Hostile = tuple[str, bytes, Mapping[str, str]]


def names(many: int) -> list[str]:
    """Return the shortest names that differ: a, b, …, aa, ab, …"""
    every = ("".join(letters) for length in count(1) for letters in product(ascii_lowercase, repeat=length))
    return list(islice(every, many))


REPEATED = {  # what is repeated, and how often
    "tags that never end": ("<a", 55_000),
    "tags that never end, spaced": ("<a ", 40_000),
    "tags in attribute values": ("<a x=<", 20_000),
    "quotes that never end": ('<a x="', 20_001),
    "single quotes that never end": ("<a x='", 20_001),
    "equals signs as names": ("<a =", 30_000),
    "slashes in tags": ("<a/", 40_000),
    "end tags without a name": ("</", 60_000),
    "less-than signs": ("<", 500_000),
    "spaced less-than signs": ("< ", 500_000),
    "comments that never end": ("<!--", 40_000),
    "declarations": ("<!", 60_000),
    "processing instructions": ("<?", 60_000),
    "scripts in scripts": ("<script>", 30_000),
    "script tags that never end": ("<script ", 30_000),
    "titles": ("<title>", 30_000),
    "nested blocks": ("<div>", 29_000),
    "very many nested blocks": ("<div>", 200_000),
    "nested lists": ("<ul><li>", 14_500),
    "nested tables": ("<table><td>", 14_500),
    "forms in tables": ("<table><form>", 14_500),
    "text in tables": ("x<table>", 29_000),
    "nested links": ("<a href=x>", 29_000),
    "links in paragraphs": ("<a href=x><p>", 14_500),
    "nested buttons": ("<button>", 29_000),
    "unclosed formatting": ("<p><b>", 14_500),
    "font tags": ("<font color=a><p>", 14_500),
    "nobr": ("<nobr>", 29_000),
    "nested drawings": ("<svg>", 29_000),
    "drawings with pages inside": ("<svg><foreignObject>", 14_500),
    "formulas": ("<math><mi>", 14_500),
    "links in drawings": ('<svg><a xlink:href="/x">', 14_500),
    "templates": ("<template>", 29_000),
    "framesets": ("<frameset>", 29_000),
    "select boxes": ("<select><option>", 14_500),
    "ruby": ("<ruby><rt>", 14_500),
    "objects": ("<applet><object><marquee>", 9_000),
    "bases": ("<base href=/x>", 29_000),
    "refreshes": (f'<meta http-equiv=refresh content="{"1" * 4_000}">', 1_000),
    "robots directives": (f'<meta name=robots content="{"noindex," * 1_000}">', 500),
    "unfinished entities": ("&amp", 300_000),
    "unfinished numbers": ("&#", 300_000),
    "zero bytes": ("\0", 1_000_000),
    "spaces": (" ", 5_000_000),
}


def hostile_pages() -> Iterator[Hostile]:
    """Yield more than 60 pages."""
    for name, (what, times) in REPEATED.items():
        yield name, (what * times).encode(), HTML
    attributes = names(40_000)
    yield "very many attributes", f"<a {' '.join(attributes)}>".encode(), HTML
    yield "very many attributes, two words long", f"<a {' '.join(attributes[:5_000])}>".encode(), HTML
    parts = [" ".join(attributes[at : at + 90]) for at in range(0, len(attributes), 90)]
    yield "attributes gathered on the root", "".join(f"<html {part}>" for part in parts).encode(), HTML
    yield "attributes gathered on the body", "".join(f"<BODY {part}>" for part in parts).encode(), HTML
    yield "formatting with identities", "".join(f"<p><b id={at}>" for at in range(490)).encode(), HTML
    yield "much formatting with identities", "".join(f"<p><b id={at}>" for at in range(9_000)).encode(), HTML
    yield "stray end tags deep inside", ("<div>" * 1_400 + "</p>" * 1_500).encode(), HTML
    yield "formatting closed deep inside", ("<b>" * 300 + "<div>" * 1_200 + "</b>" * 1_400).encode(), HTML
    yield "a long address", f'<a href="{"a" * 5_000_000}">'.encode(), HTML
    yield "a long way up", f'<a href="{"../" * 300_000}">'.encode(), HTML
    yield "very many links", "".join(f"<a href=/é{at}>" for at in range(60_000)).encode(), HTML
    yield "costly links of a small page", "".join(f"<a href='/é/../{at}?ü'>" for at in range(2_990)).encode(), HTML
    yield "a base with a deep path", f'<base href="http://a.org/{"d/" * 63_000}"><a href=x>'.encode(), HTML
    for length, many in ((40_000, 2_900), (320, 2_990), (27, 2_900)):
        base, links = f'<base href="http://a.org/{"é" * length}/">', "".join(f'<a href="{at}é">' for at in range(many))
        yield f"a base of {length:,} characters and many links", f"{base}{links}".encode(), HTML
    lower = "%c3%a9" * 27
    links = "".join(f'<a href="{at}">' for at in range(2_900))
    yield "a base of escapes and many links", f'<base href="http://a.org/{lower}/">{links}'.encode(), HTML
    yield "bytes of no charset", bytes(range(128, 256)) * 2_000, {"content-type": "text/html"}
    yield "a charset that is a codec", b"<a href=/x>\xff", {"content-type": "text/html; charset=hex"}
    yield "halves of characters", b"<a href='\xed\xa0\x80&#xD800;'>" * 1_000, HTML
    odd = {**HTML, "link": '</>; rel=""', "x-robots-tag": ":,unavailable_after: 9999-12-31T23:59:59-23:59"}
    yield "headers that say nothing", b"<a href=/x>", odd
