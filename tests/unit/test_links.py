from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from ada_url import join_url
from attack import attack
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.web.html import MOST_LINKS, MOST_TEXT, Link, Page, read_page
from surveyor.web.markup import MOST_TAGS, PIECE

URL = "https://example.org/dir/page?q=1"


def links(html: str, url: str = URL) -> list[str]:
    return [link.url for link in read_page(html.encode(), url).links]


def test_links_of_all_kinds_in_document_order() -> None:
    html = """<link rel=next href=n><link rel="PREV x" href=p><link rel=canonical href=c><link rel=stylesheet href=s>
    <meta http-equiv=Refresh content="5; URL='r'"><a href="a&amp;b">x</a><map><area href=/area></map>
    <iframe src=frame></iframe><noscript><a href=noscript>x</a></noscript><a>none</a><!-- <a href=comment> -->
    <script>"<a href=script>"</script><template><a href=template></a></template>"""
    names = ["n", "p", "r", "a&b", "/area", "frame", "noscript"]
    assert links(html) == [join_url(URL, name) for name in names]
    assert links("<frameset><frame src=f></frameset>") == ["https://example.org/dir/f"]


def test_only_http_and_each_address_once() -> None:
    html = "".join(
        f"<a href='{name}'>" for name in ["x#1", "x#2", "mailto:a@b", "javascript:1", "data:,", "http://[", "#a"]
    )
    assert links(html) == ["https://example.org/dir/x", URL]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/other/", "https://example.org/other/x"),
        ("//cdn.example/a/b", "https://cdn.example/a/x"),
        ("javascript:1", "https://example.org/dir/x"),
        ("http://[", "https://example.org/dir/x"),
        ("", "https://example.org/dir/x"),
    ],
)
def test_the_first_base_counts_wherever_it_stands(base: str, expected: str) -> None:
    assert links(f"<a href=x></a><base target=y><base href='{base}'><base href=/second/>") == [expected]


NAMES = st.lists(
    st.sampled_from(["/", "a", "B.c", ".", "..", "?", "=", "&", "#", "x y", "%41", "ä", ":", "\\", "-", "~"])
)


@given(
    NAMES.map("".join),
    st.sampled_from([URL, "http://h.example", "https://h.example:81/a/b/?x=/y#z", "http://h/a/../b/"]),
)
@settings(max_examples=300, deadline=None)
def test_addresses_are_resolved_as_the_parser_does(name: str, base: str) -> None:
    try:
        full = join_url(base, name).partition("#")[0]
    except ValueError:
        full = ""
    assert links(f"<a href='{name}'>", base) == ([full] if full.startswith("http") else [])


def test_links_that_pass_nothing_on() -> None:
    html = b"<a rel=nofollow href=a><a rel='x UGC' href=b><a rel=sponsored href=c><a rel=noopener href=d><a rel href=e>"
    page = read_page(html + b"<a rel=nofollow href=f><a href=f>", URL)
    assert [link.follow for link in page.links] == [False, False, False, True, True, True]
    assert not any(link.follow for link in read_page(b"<a href=a><meta name=robots content=nofollow>", URL).links)


@pytest.mark.parametrize(
    ("meta", "header", "expected"),
    [
        ("<meta name=ROBOTS content='NoIndex, x'>", "", "i"),
        ("<meta name=robots content=none>", "", "if"),
        ("<meta name=surveyor content=noarchive><meta name=robots content=nofollow>", "", "fa"),
        ("<meta name=googlebot content=none><meta name=robots>", "", ""),
        ("", "noindex, noarchive", "ia"),
        ("", "googlebot: noindex, nofollow", ""),
        ("", "googlebot: noindex\nnofollow", "f"),
        ("", "googlebot: none, Surveyor: nofollow, noarchive", "fa"),
        ("", "max-snippet: 5, noindex", "i"),
        ("", "unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex", "it"),
        ("", "other: unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noindex", ""),
        ("", "surveyor: unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, noindex", "it"),
        ("<meta name=robots content='unavailable_after: 2010-06-25T17:00:00+02:00'>", "", "t"),
        ("<meta name=robots content='unavailable_after: 2010-06-25T15:00:00Z'>", "unavailable_after: 2011-01-01", "t"),
        ("", "unavailable_after: 25 Jun 2010 15:00:00 -0000", "t"),
        ("", "unavailable_after: some day, unavailable_after:, unavailable_after", ""),
    ],
)
def test_robots_directives(meta: str, header: str, expected: str) -> None:
    page = read_page(meta.encode(), URL, headers={"X-Robots-Tag": header})
    assert (page.noindex, page.nofollow, page.noarchive) == tuple(letter in expected for letter in "ifa")
    assert page.unavailable_after == (datetime(2010, 6, 25, 15, tzinfo=UTC) if "t" in expected else None)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0;url=x", ["x"]),
        ('3 ; URL = "x y" z', ["x%20y"]),
        ("1,x", ["x"]),
        ("5 x", ["x"]),
        ("5", []),
        ("5;", []),
        ("", []),
        ("soon", []),
        (" " * 5_000, []),
    ],
)
def test_a_refresh_is_a_link(content: str, expected: list[str]) -> None:
    assert links(f"<meta http-equiv=refresh content='{content}'>") == [join_url(URL, name) for name in expected]


def test_canonical_addresses() -> None:
    header = {"link": '<style>; rel=preload, </h>; title="x"; rel="canonical"'}
    assert read_page(b"", URL, headers=header).canonical == "https://example.org/h"
    page = read_page(b"<base href=/b/><link rel=canonical href=c#x><link rel=canonical href=d>", URL, headers=header)
    assert page.canonical == "https://example.org/b/c"
    assert read_page(b"<link rel=canonical href=mailto:x>", URL).canonical is None
    assert read_page(b"", URL, headers={"Link": "<x>; rel=next, <y"}).canonical is None
    assert read_page(b"", URL, headers={"Link": "<x>; REL=canonical"}).canonical == "https://example.org/dir/x"


def test_title_language_and_text() -> None:
    html = """<html lang=EN-gb><head><title> A
    &amp; B </title><title>second</title><style>p {}</style></head>
    <body>Dr<b>op</b> c<i>a</i>p<p>one</p>two<div>three</div><b>four</b>
    <script>no</script><noscript>no<div>no</div></noscript>H<sub>2</sub>O<br>end<!-- no --><ul><li>a<li>b</ul>
    <svg><title>no</title></svg><style>no</style></body>"""
    page = read_page(html.encode(), URL, headers={"Content-Language": "de"})
    assert page.title == "A & B"
    assert page.language == "en-gb"
    assert page.text == "Drop cap one two three four H2O end a b"
    assert read_page(b"x", URL, headers={"Content-Language": "de-AT, en"}).language == "de-at"
    assert read_page(b"<meta http-equiv=content-language content='fr, en'>", URL).language == "fr"
    assert read_page(b"<p>a<style>no</style><!-- x -->", URL).text == "a"


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        ("ä".encode(), "", "utf-8"),
        ("<meta charset=latin1>ä".encode("utf-8-sig"), "text/html; charset=koi8-r", "utf-8"),
        (b"\xff\xfe" + "ä".encode("utf-16-le"), "", "utf-16-le"),
        (b"\xfe\xff" + "ä".encode("utf-16-be"), "text/html;charset=utf-8", "utf-16-be"),
        ("<meta charset=utf-8>ä".encode("cp1252"), "text/html; Charset='ISO-8859-1'", "cp1252"),
        ("<!-- <meta charset=koi8-r> --><meta charset='Windows-1252'>ä".encode("cp1252"), "", "cp1252"),
        ("<meta http-equiv=content-type content='text/html; charset=gb2312'>中".encode("gbk"), "", "gb18030"),
        ("<?xml version='1.0' encoding='shift_jis'?>語".encode("cp932"), "", "cp932"),
        ("<meta charset=utf-16>ä".encode(), "", "utf-8"),
        ("<meta charset=nonsense>ä".encode(), "text/html; charset=base64", "utf-8"),
        ("ä".encode() + "ä".encode()[:1], "", "utf-8"),
    ],
)
def test_charsets(body: bytes, content_type: str, expected: str) -> None:
    page = read_page(body, URL, content_type=content_type)
    assert page.charset == expected
    assert page.text[:1] in "ä中語"
    assert page.text


def test_charsets_are_guessed() -> None:
    text = "Это страница на русском языке, и никто не сказал, в какой она кодировке. " * 20
    page = read_page(text.encode("cp1251"), URL)
    assert (page.charset, page.text) == ("cp1251", text.strip())
    assert read_page(b"\x00\xff\xfe\x81\x8d" * 50, URL).charset


def test_only_html_is_parsed() -> None:
    page = read_page(b"<a href=x>  y", URL, headers={"Content-Type": "text/plain", "X-Robots-Tag": "noindex"})
    assert (page.links, page.text, page.noindex) == ((), "<a href=x> y", True)
    assert read_page(b"%PDF <a href=x>", URL, content_type="application/pdf") == Page(charset="")
    assert read_page(b"<a href=x />", URL, content_type="application/xhtml+xml").links
    assert read_page(b"x" * MOST_TEXT + b"y", URL, content_type="text/plain").cut


@attack("a page with more links than the limit", area="pages", must_hold="links stop at the limit, reported as cut")
def test_many_links_are_cut() -> None:
    page = read_page("".join(f"<a href=/{number}>x</a>" for number in range(100_000)).encode(), URL)
    assert page.cut
    assert page.links[:: MOST_LINKS - 1] == (
        Link("https://example.org/0"),
        Link(f"https://example.org/{MOST_LINKS - 1}"),
    )
    assert not read_page(b"<a href=x>", URL).cut


@attack(
    "a million nested elements, 100,000 attributes, unclosed comments and scripts",
    area="pages",
    must_hold="text and time are bounded",
)
@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 30_000,
        "<div>" * 1_000_000,
        "<div>" * 15_000 + "</p>" * 100_000,
        "<a href=x><div>" * 50_000,
        "".join(f"<p><b id={number}>" for number in range(20_000)),
        "".join(f"<p><FONT\tid={number}>" for number in range(20_000)),
        "<a " + " ".join(f"a{number}" for number in range(100_000)) + " href=x>",
        "<a " + "".join(f"a{number}='>'" for number in range(100_000)) + " href=x>",
        "<div><script>x</script>" * 50_000,
        "<div a='><div>" * 300_000,
        "<template>" * 300_000,
        "<script>" * 300_000,
        "<!--" * 300_000,
        "<" * 1_000_000,
        "word " * 200_000,
    ],
    ids=lambda html: html[:12],
)
def test_hostile_pages_are_bounded(html: str) -> None:
    start = time.process_time()
    page = read_page(html.encode(), URL)
    assert len(page.text) <= MOST_TEXT
    assert time.process_time() - start < 20  # three at most on an idle machine; minutes or no memory without the limits


@attack(
    "pages beyond the limits of tags, attributes and text",
    area="pages",
    must_hold="what is left out is reported as cut",
)
@pytest.mark.parametrize(
    "html",
    [
        "<p>" * (MOST_TAGS + 2),
        "<a " + " ".join(f"a{number}" for number in range(100_000)) + " href=x>",
        "<p>x" * 30_001 + "<script>" + "<p>" * 2 * PIECE + "</script>" + "<p>x",
        "word " * 200_000,
    ],
    ids=lambda html: html[:12],
)
def test_what_is_left_out_is_said(html: str) -> None:
    assert read_page(html.encode(), URL).cut


FILLERS = [
    "<p>x</p>",
    "<ul><li title='<a href=/title>'>x</ul>",
    "<!-- <p><a href=/comment> -->",
    "<script>'<p><a href=/script>'</script>",
    "<TEMPLATE><a href=/template></a></TEMPLATE>",
    "<p title=it's>x</p>",
    "<a href='/more'\">x</a>",
    "<table><tr><td>x</table>",
]


@pytest.mark.parametrize("filler", FILLERS)
def test_long_pages_are_read_in_pieces_to_their_end(filler: str) -> None:
    head = "<html lang=en><base href=/base/><title>Hi</title><a href=first>begin</a>"
    page = read_page(f"{head}{filler * 20_000}<title>no</title><a href=last>end</a>".encode(), URL)
    short = read_page(f"{head}{filler * 3}<title>no</title><a href=last>end</a>".encode(), URL)
    assert (page.links, page.title, page.language) == (short.links, "Hi", "en")
    assert page.links[-1].url == "https://example.org/base/last"
    assert 3 * page.text.count("x") == 20_000 * short.text.count("x")
    assert (page.text[:5], page.text[-3:]) == ("begin", "end")
    assert not page.cut


def test_formatting_read_as_span_keeps_links_and_text() -> None:
    html = "<p>a<b>b</b><a href=x><STRONG class=y>c</STRONG></a></p>" * 400 + "<blockquote>d<br/>e</blockquote>"
    page = read_page(html.encode(), URL)
    assert not page.cut
    assert len(page.links) == 1
    assert page.text == "abc " * 400 + "d e"


@attack("zero bytes, lone brackets, invalid UTF-8", area="pages", must_hold="no exception and no invented link")
@pytest.mark.parametrize("body", [b"", b"\0" * 999, b"<" * 999, b"&" * 999, b"<a href=", b"<!--" * 99, b"\xff" * 999])
def test_broken_pages_are_read(body: bytes) -> None:
    assert read_page(body, URL).links == ()
    assert read_page(body, "no url").links == ()


PIECES = st.sampled_from([
    b"<a href=", b"<base href=", b"<meta name=robots content=", b"<svg>", b"<title>", b"<template>", b"<frameset>",
    b">", b"'", b'"', b"<noscript>", b"</noscript>", b"<style>", b"</style>", b"<table>", b"<select>", b"\0", b"\xff",
    b"x", b"http://", b"unavailable_after:", b"</body>", b"<html lang=x>", b"&#xD800;", b"<iframe src=x>",
    b"<!--", b"-->",
])  # fmt: skip


@attack(
    "random HTML fragments with random headers and base URLs",
    area="pages",
    must_hold="no exception; every link is an absolute http(s) URL",
)
@given(st.one_of(st.binary(), st.lists(PIECES).map(b"".join)), st.text(), st.text())
@settings(max_examples=300, deadline=None)
def test_nothing_raises(body: bytes, header: str, url: str) -> None:
    headers = {"X-Robots-Tag": header, "Link": header, "Content-Language": header}
    page = read_page(body, URL, content_type=header, headers=headers)
    assert all(link.url.startswith(("https://", "http://")) for link in page.links)
    assert isinstance(read_page(body, url, headers=headers), Page)


@pytest.mark.parametrize(
    "html",
    [
        b'<svg><a xlink:href="/x">x</a></svg>',
        b"<svg><a xlink:href>x</a></svg>",
        b"<svg><iframe xlink:src=a></iframe><link xlink:href=a rel=canonical><base xlink:href=x></svg>",
        b"<math><a xlink:href=x href>x</a></math><svg><title>x</title></svg><html xml:lang>",
        b"<area href><a href><frame src><meta name><meta content><link rel=next href>",
        b"<a href=&#xD800;><a href='\xed\xa0\x80'><title>&#xDFFF;&#0;</title>",
        b"<base href='http://['><a href='http://a.org:99999/'><a href='https://xn--a/'>",
    ],
)
def test_attributes_that_a_selector_finds_need_not_be_there(html: bytes) -> None:
    page = read_page(html + b"<p><a href=/last>x</a>", URL)
    assert page.links[-1].url == "https://example.org/last"


@pytest.mark.parametrize("value", ['</>; rel=""', "<>; rel=", "<http://[>; rel=canonical", "</>;rel", '</>; rel="'])
def test_a_link_header_may_say_nothing(value: str) -> None:
    page = read_page(b"<a href=/x>x</a>", URL, headers={"Link": value})
    assert (page.canonical, len(page.links)) == (None, 1)


@pytest.mark.parametrize("label", ["UTF-88", "hex", "zip", "idna", "undefined", "unicode_escape", "rot13", "\x00", ""])
def test_labels_of_codecs_that_are_none_of_the_web_are_not_used(label: str) -> None:
    for html, kind in (("é", f"text/html; charset={label}"), (f"<meta charset='{label}'>é", "text/html")):
        page = read_page(html.encode(), URL, content_type=kind)
        assert (page.charset, page.text) == ("utf-8", "é")
