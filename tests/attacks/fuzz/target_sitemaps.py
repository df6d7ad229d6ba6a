"""Sitemaps, indexes, feeds and plain lists, compressed or not."""

from __future__ import annotations

import gzip
import random
import time
import zlib

from surveyor.web.sitemaps import read_listing
from surveyor.web.urls import normalise

NAME = "sitemaps"
SLOW = 3.0  # seconds of processor time for at most 64 kB
MAP = b"http://www.sitemaps.org/schemas/sitemap/0.9"
TOKENS = [
    *(
        b"<?xml version='1.0' encoding='",
        b"UTF-88",
        b"utf-16",
        b"utf-7",
        b"idna",
        b"punycode",
        b"'?>",
        b"<urlset>",
        b"<url>",
    ),
    *(b"<loc>", b"</loc>", b"<sitemapindex><sitemap>", b"<rss><channel><item><link>", b"<feed><entry><link href='"),
    *(b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"<![CDATA[", b"]]>", b'{"items": [{"url": "', b'"\\ud800"', b"null"),
    *(b"1e999", b"[" * 500, b'{"a":' * 300, b"http://example.org/", b"\n", b"\x1f\x8b\x08", b"\xff\xfe", b"xmlns:n='"),
    *(b"<a>" * 70, b"\0", b"<lastmod>2030-01-01</lastmod>", b"<?xml-stylesheet?>", b"xml:base='http://h/'"),
]


def seeds() -> list[bytes]:
    plain = [
        b"<?xml version='1.0' encoding='utf-8'?><urlset xmlns='%s'><url><loc>https://example.org/a</loc></url></urlset>"
        % MAP,
        b"<sitemapindex xmlns='%s'><sitemap><loc>https://example.org/s.xml</loc></sitemap></sitemapindex>" % MAP,
        b"<rss version='2.0'><channel><item><link>https://example.org/i</link></item></channel></rss>",
        b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/e'/></entry></feed>",
        b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "https://example.org/j"}]}',
        b"https://example.org/1\nhttps://example.org/2\n",
    ]
    return [*plain, gzip.compress(plain[0], mtime=0)]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change what is inside the compression, or compress a plain one."""
    if data[:2] != b"\x1f\x8b":
        return gzip.compress(data, 1, mtime=0) if rng.random() < 0.1 else data.replace(b"utf-8", rng.choice(TOKENS))
    try:
        inner = bytearray(zlib.decompressobj(31).decompress(data, 1 << 16))
    except zlib.error:
        return data
    at = rng.randint(0, len(inner))
    inner[at:at] = rng.choice(TOKENS)
    return gzip.compress(bytes(inner), 1, mtime=0)


def run(data: bytes) -> None:
    began = time.process_time()
    found = read_listing(data, "https://example.org/dir/")
    took = time.process_time() - began
    assert took < SLOW, f"{took:.1f} s for {len(data):,} bytes"
    if found is not None:
        assert found.kind in ("sitemap", "index", "feed", "text"), found.kind
        for url in (*found.pages, *found.lists):
            assert isinstance(url, str)
            normalise(url)
