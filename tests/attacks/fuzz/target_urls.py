"""URLs: normalisation, and what is derived from a normalised URL."""

from __future__ import annotations

import re

from surveyor.fetch.addresses import forbidden, literal, locate
from surveyor.web.references import Addresses, resolve
from surveyor.web.urls import LONGEST, Urls, domain, host, normalise, origin

NAME = "urls"
TOKENS = [
    *(b"http://", b"https://", b"//", b"/../", b"/./", b"..", b"%2e", b"%2F", b"%41", b"%%41", b"%c3%bc", b"@", b":80"),
    *(b":443", b":65536", b"[::1]", b"[::ffff:1.2.3.4]", b"[", b"]", b"0x7f.1", b"2130706433", b"xn--", b"xn--a"),
    *(
        "bücher".encode(),
        "１".encode(),
        "。".encode(),
        b"?utm_source=",
        b"&sid=",
        b";jsessionid=1",
        b"#x",
        b"\\",
        b"\t",
    ),
    *(b"javascript:", b"data:,", b"file:///", b"localhost", b".co.uk", b"a" * 64, b"a." * 130, b"/" * 40, b"x" * 2000),
]
BASES = ("https://example.org/dir/page?q=1", "http://[2001:db8::1]:8080/", "http://a.b.co.uk")


def seeds() -> list[bytes]:
    urls = ["../%7Ejoe/?b=2&utm_source=x&a=1#top", "HTTP://Bücher.example:80/shop/list", "//u:p@h.example:81/;x?y#z"]
    urls += ["http://[::1]:8000/", "http://0177.0.0.1/%e4%ff", "/a/./b/../c;jsessionid=12?sid=0123456789abcdef0", ""]
    return [url.encode() for url in urls]


def run(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    drop = len(data) % 3 > 0
    found = {normalise(text, base, drop_tracking=drop) for base in (None, BASES[len(data) % 3], text[: len(text) // 2])}
    for url in found - {None}:
        check(url or "", drop=drop)
    reference = resolve(text, BASES[0])
    assert reference is None or reference.startswith(("http://", "https://"))
    spelt = Addresses(normalise).seen_from(BASES[0])[text]
    if not re.search("[\ud800-\udfff]", text):  # which no parser takes, be it in the fragment
        assert spelt is None or spelt == normalise(text, BASES[0]), (spelt, normalise(text, BASES[0]))


def check(url: str, *, drop: bool) -> None:
    assert url.isascii()
    assert 0 < len(url) <= LONGEST
    assert url.startswith(("http://", "https://"))
    assert normalise(url, drop_tracking=drop) == url, (url, normalise(url, drop_tracking=drop))
    name = host(url)
    assert name
    assert origin(url).endswith(url.split("/")[2])
    assert domain(name)
    place = locate(url)
    assert place is not None, url
    assert place.host == name, (place, name)
    if address := literal(name):
        forbidden(address)
    if len(url) % 8 == 0:
        urls = Urls(2)
        assert urls.ids([url, url]).tolist() == [0, 0]
        assert urls.find(url) == 0
