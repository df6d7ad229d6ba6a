"""Lists of pages: sitemaps, indexes, feeds, text; gzipped, broken, hostile."""

from __future__ import annotations

import gzip
import json

import pytest
from attack import attack
from hypothesis import given
from hypothesis import strategies as st

from surveyor.web.sitemaps import MOST_BYTES, Listing, list_date, read_listing

MAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
A, B = "https://example.org/a", "https://example.org/b?x=1&y=2"
SITEMAP = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="{MAP}" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
 <url><loc> {A} </loc><lastmod>2026-01-01</lastmod><image:image><image:loc>https://example.org/i.png</image:loc></image:image></url>
 <url><loc>{B.replace("&", "&amp;")}</loc></url><url><loc>{A}</loc></url>
</urlset>"""
INDEX = f'<sitemapindex xmlns="{MAP}"><sitemap><loc>{A}</loc></sitemap><sitemap><loc><![CDATA[{B}]]></loc></sitemap></sitemapindex>'  # noqa: E501
RSS = f'<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><link>https://example.org/</link><atom:link href="https://example.org/feed"/><item><title>x</title><link>{A}</link></item><item><link>/b?x=1&amp;y=2</link></item></channel></rss>'  # noqa: E501
RDF = f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><item><link>{A}</link></item><item><link>{B.replace("&", "&amp;")}</link></item></rdf:RDF>'  # noqa: E501
ATOM = '<feed xmlns="http://www.w3.org/2005/Atom"><link href="/self"/><entry><link rel="edit" href="/edit"/><link href="/a"/></entry><entry><link rel="alternate" href="/b?x=1&amp;y=2"/></entry></feed>'  # noqa: E501
FEED = json.dumps(
    {"version": "https://jsonfeed.org/version/1.1", "items": [{"url": A}, {"id": "1"}, {"url": "/b?x=1&y=2"}]}
)
NEW_YEAR = 1_767_225_600.0
TEXT = f"\ufeff# a list\n{A}\r\n\n  {B}\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (SITEMAP, "sitemap"),
        (INDEX, "index"),
        (RSS, "feed"),
        (RDF, "feed"),
        (ATOM, "feed"),
        (FEED, "feed"),
        (TEXT, "text"),
    ],
)
def test_every_kind_names_its_pages(text: str, kind: str, packed: bool) -> None:
    body = gzip.compress(text.encode()) if packed else text.encode()
    found = read_listing(body, "https://example.org/lists/x")
    assert found is not None
    assert found.kind == kind
    assert (found.lists if kind == "index" else found.pages) == (A, B)


@pytest.mark.parametrize("body", [b"<html><p>hello</html>", b"{}", b'{"items": 3}', b"<", b"<?xml version='1.0'?>"])
def test_what_is_no_list_is_none(body: bytes) -> None:
    assert read_listing(body) is None


@attack("cut and damaged sitemaps", area="sitemaps and lists", must_hold="entries before the damage count")
def test_what_comes_before_a_mistake_counts() -> None:
    cut = SITEMAP[: SITEMAP.index("</urlset>")].encode() + b"<url><loc>https://example.org/c"
    assert read_listing(cut) == Listing("sitemap", (A, B), modified=(NEW_YEAR, 0.0))
    assert read_listing(gzip.compress(cut)[:-9] + b"garbage..") == Listing("sitemap", (A, B), modified=(NEW_YEAR, 0.0))
    assert read_listing(b"\x1f\x8bnonsense") == Listing("text")


@attack(
    "XML entities: billion laughs and external files",
    area="sitemaps and lists",
    must_hold="nothing is expanded, nothing is opened",
)
def test_entities_are_not_expanded_and_nothing_is_fetched() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    assert read_listing(f"{bomb}<urlset xmlns='{MAP}'><url><loc>&b;</loc></url></urlset>".encode()) is None
    outside = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    assert read_listing(f"{outside}<urlset xmlns='{MAP}'><url><loc>&a;</loc></url></urlset>".encode()) is None


@attack(
    "a compressed sitemap beyond the limit",
    area="sitemaps and lists",
    must_hold="cut at the limit; entries before it count",
)
def test_a_list_that_unpacks_to_gigabytes_is_cut() -> None:
    huge = gzip.compress(b"https://example.org/\n" + b"#" * (MOST_BYTES + 1000), 9)
    found = read_listing(huge)
    assert found is not None
    assert found.pages == ("https://example.org/",)


@attack("random bytes as a sitemap", area="sitemaps and lists", must_hold="no exception")
@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"<urlset>{text}".encode()))
def test_nothing_raises(body: bytes) -> None:
    found = read_listing(body, "https://example.org/")
    assert found is None or all(isinstance(url, str) for url in (*found.pages, *found.lists))


@pytest.mark.parametrize("label", ["UTF-88", "hex", "zip", "idna", "undefined", "mbcs", "x" * 1000, "UTF-8", "utf-16"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_declared_encoding_that_is_unknown_is_read_as_utf_8(label: str, quote: str) -> None:
    text = f"<?xml version='1.0' encoding={quote}{label}{quote}?>{SITEMAP.partition('?>')[2]}"
    assert read_listing(text.encode()) == Listing("sitemap", (A, B), modified=(NEW_YEAR, 0.0))


def test_a_declared_encoding_of_the_web_is_used() -> None:
    text = "<?xml version='1.0' encoding='windows-1251'?><rss><item><link>http://a.org/ж</link></item></rss>"
    assert read_listing(text.encode("cp1251")) == Listing("feed", ("http://a.org/ж",))


RDF_DATES = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
    f'xmlns:dc="http://purl.org/dc/elements/1.1/"><item><dc:date>2026-01-01</dc:date><link>{A}</link></item></rdf:RDF>'
)
ATOM_DATES = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><updated>2027-01-01</updated><entry><published>2025-01-01T00:00:00Z'
    f'</published><link href="{A}"/><updated>2026-01-01T01:00:00+01:00</updated></entry></feed>'
)
JSON_DATES = [
    {"url": A, "date_published": "2025-01-01", "date_modified": "2026-01-01T00:00:00Z"},
    {"url": B, "date_modified": 7},
]


@pytest.mark.parametrize(
    "text",
    [
        f"<urlset><url><loc>{A}</loc><lastmod>2026</lastmod></url></urlset>",
        f"<urlset><url><lastmod> 2026-01 </lastmod><loc>{A}</loc></url></urlset>",
        f"<urlset><url><loc>{A}</loc><lastmod>2026-01-01T00:00:00.000Z",
        f"<sitemapindex><sitemap><loc>{A}</loc><lastmod>2026-01-01</lastmod></sitemap></sitemapindex>",
        f"<rss><channel><pubDate>2030-01-01</pubDate><item><link>{A}</link><pubDate>Thu, 01 Jan 2026 01:00:00 +0100"
        "</pubDate></item></channel></rss>",
        RDF_DATES,
        ATOM_DATES,
        json.dumps({"items": JSON_DATES[:1]}),
    ],
)
def test_every_kind_has_dates(text: str) -> None:
    found = read_listing(text.encode(), "https://example.org/lists/x")
    assert found is not None
    if "<loc>" in text and "</" not in text.partition("<lastmod>")[2]:  # cut inside the date
        assert found.modified == ()
    else:
        assert found.modified == (NEW_YEAR,)
    assert (found.pages or found.lists) == (A,)


def test_entries_without_a_date_have_none() -> None:
    both = [
        f"<url><loc>{url}</loc>{date}</url>"
        for url, date in ((A, ""), (B.replace("&", "&amp;"), "<lastmod>2026</lastmod>"))
    ]
    found = read_listing(f"<urlset>{''.join(both)}</urlset>".encode())
    assert found is not None
    assert found.modified == (0.0, NEW_YEAR)
    found = read_listing(json.dumps({"items": JSON_DATES}).encode())
    assert found is not None
    assert found.modified == (NEW_YEAR, 0.0)
    again = f"<urlset><url><loc>{A}</loc><lastmod>2026</lastmod></url><url><loc>{A}</loc></url></urlset>"
    found = read_listing(again.encode())
    assert found is not None
    assert (found.pages, found.modified) == ((A,), (NEW_YEAR,))


@pytest.mark.parametrize("text", ["", "soon", "2026-99-99", "0000", "9" * 99, "2026-01-01T25:00", "-1", "\x00", None])
def test_what_is_no_date(text: str | None) -> None:
    assert list_date(text) == 0.0


@given(st.text(max_size=100))
def test_any_text_has_a_date_or_none(text: str) -> None:
    assert 0 <= list_date(text) < 1e12
