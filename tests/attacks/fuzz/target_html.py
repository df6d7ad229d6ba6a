"""HTML pages in any charset: links, text, canonical, directives of the page; slow inputs are findings."""

from __future__ import annotations

import time

from surveyor.web.html import MOST_LINKS, MOST_TEXT, read_page

NAME = "html"
URL = "https://example.org/dir/page?q=1"
SLOW = 3.0  # seconds of processor time for at most 64 kB
TYPES = (
    *("", "text/html", "text/html; charset=utf-8", "text/html; charset=iso-8859-1", "application/xhtml+xml"),
    *("text/html; charset=utf-16", "text/html; charset=shift_jis", "text/plain", "text/html; charset=gb18030"),
    *("text/html; charset=iso-2022-jp", "image/svg+xml", "text/html; charset=utf-7", "application/pdf", "text/html;"),
)
TOKENS = [
    *(b"<a href=", b"<a ", b"<a", b"</a>", b"<svg>", b'xlink:href="/x"', b"<math>", b"<base href=", b"<area href=/x>"),
    *(
        b"<meta name=robots content=",
        b"<meta http-equiv=refresh content='0;url=",
        b"<meta charset=",
        b"utf-16",
        b"rel=",
    ),
    *(b"<link rel=canonical href=", b"<title>", b"</title>", b"<template>", b"<frameset>", b"<frame src=x>", b"<!--"),
    *(b"-->", b"<script>", b"</script>", b"<style>", b"<noscript>", b"<table>", b"<select>", b"<iframe src=x>", b"&#x"),
    *(
        b"&#xD800;",
        b"&#0;",
        b"&amp",
        b"&notit;",
        b"<![CDATA[",
        b"]]>",
        b"<?xml version='1.0' encoding='",
        b"<html lang=",
    ),
    *(
        b"<b><i>",
        b"</p>",
        b"</br>",
        b"<plaintext>",
        b"<foreignObject>",
        b"<form>",
        b"<a href>",
        b"<link href>",
        b"<base>",
    ),
    *(
        b"unavailable_after: 2030-01-01",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\x1b$B",
        b"<a href='\t/x\n'>",
        b"<<",
    ),
]


def seeds() -> list[bytes]:
    return [
        b"\x01<html lang=en><head><title>Hi</title><base href=/b/><link rel=canonical href=c></head><a href=x>y</a>",
        b"\x02<svg><a href=/s><text>t</text></a></svg><map><area href=/area></map><iframe src=f></iframe>",
        b"\x00<meta charset=windows-1252><meta name=robots content='none'><a rel=nofollow href=/n>\xe4</a>",
        b"\x05" + "<p>ü<a href=x>".encode("utf-16-le"),
        b"\x03<meta http-equiv=refresh content='5; url=/r'><table><tr><td><a href=//h/>x</table><template><a href=t>",
        b"\x07plain text http://a.example/",
        b"\x01<script>'<a href=no>'</script><!-- <a href=no> --><noscript><a href=yes></noscript><select><option>",
    ]


def run(data: bytes) -> None:
    kind, body = TYPES[(data[0] if data else 0) % len(TYPES)], data[1:]
    began = time.process_time()
    page = read_page(body, URL, content_type=kind)
    again = read_page(body, URL, content_type=kind, text=False) if len(data) % 4 == 0 else page
    took = time.process_time() - began
    assert took < SLOW, f"{took:.1f} s for {len(body):,} bytes"
    assert page.links == again.links
    assert len(page.links) <= MOST_LINKS
    assert all(link.url.startswith(("https://", "http://")) for link in page.links)
    assert all("#" not in link.url for link in page.links)
    assert page.canonical is None or page.canonical.startswith(("https://", "http://"))
    assert len(page.text) <= MOST_TEXT
    assert len(page.title) <= 1_000
    (page.title + page.text + page.language).encode()  # no lone surrogates: they cannot be stored
    "".join(link.url for link in page.links).encode()
