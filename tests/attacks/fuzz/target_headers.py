"""Header lines, through everything that interprets one."""

from __future__ import annotations

from surveyor.fetch.addresses import locate
from surveyor.fetch.encodings import Unreadable, decoder_of
from surveyor.fetch.http import Fetched, accepts, is_sendable, media_type, retry_after
from surveyor.fetch.responses import joined, judge
from surveyor.web.html import read_page

NAME = "headers"
URL = "https://example.org/dir/page"
TOKENS = [
    *(b"Link: ", b'<a>; rel="canonical"', b'rel=""', b"rel=", b"X-Robots-Tag: ", b"noindex", b"surveyor: none", b"\n"),
    *(b"unavailable_after: ", b"Wed, 21 Oct 2015 07:28:00 GMT", b"9999-12-31T23:59:59-14:00", b"Retry-After: ", b"1e9"),
    *(
        b"Content-Type: ",
        b"text/html; charset=",
        b"utf-16",
        b"utf-7",
        b"idna",
        b"Content-Encoding: ",
        b"gzip, br, zstd",
    ),
    *(b"Location: ", b"http://[", b"Content-Language: ", b"ETag: ", b"Content-Length: ", b"Set-Cookie: ", b"-0001"),
    *(b"+9999", b"24:60:60", b"\x85", b"\xb2", b";" * 50, b"," * 50, b"Transfer-Encoding: chunked", b"HTTP/1.1 999 \n"),
]
DATED = (b"retry-after", b"last-modified", b"expires", b"date")


def seeds() -> list[bytes]:
    return [
        b'200\nLink: </a>; rel="canonical", <b>; rel=next\nX-Robots-Tag: surveyor: noindex, nofollow\n',
        b"503\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\nContent-Type: text/html; charset=iso-8859-1\n",
        b'301\nLocation: //h.example/x\nETag: W/"x"\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\n',
        b"200\nContent-Encoding: deflate, gzip\nX-Robots-Tag: unavailable_after: 25 Jun 2030 15:00:00 PST\n",
    ]


def run(data: bytes) -> None:
    first, _, rest = data.partition(b"\n")
    pairs = tuple((name.strip(), value.strip()) for name, _, value in (x.partition(b":") for x in rest.split(b"\n")))
    headers = joined(pairs)
    text = headers.get("content-type", "")
    body = "<title>é</title><a href=x>".encode()
    page = read_page(body, URL, content_type=text, headers=headers)
    assert page.canonical is None or page.canonical.startswith(("http://", "https://"))
    read_page(b"", URL, content_type="none/none", headers=headers)
    for name, value in pairs:
        try:
            decoded = value.decode()
        except UnicodeDecodeError:
            decoded = value.decode("latin-1")
        is_sendable(decoded)
        accepts(("text/*",), decoded)
        media_type(decoded)
        if name.lower() in DATED:
            wait = retry_after(decoded, 1e9)
            assert wait is None or 0 <= wait < 1e12
        if name.lower() == b"content-encoding":
            try:
                decoder = decoder_of(decoded)
                if decoder is not None:
                    decoder.feed(b"\x1f\x8b\x08\x00", 100)
            except Unreadable:
                pass
        if name.lower() == b"location" and (place := locate(decoded, URL)):
            assert place.url.startswith(("http://", "https://"))
    status = int(first[:3]) if first[:3].isdigit() else None
    verdict = judge(Fetched(URL, status, headers=pairs, body=body, detail="x"))
    assert verdict.kind in ("fetched", "redirected", "gone", "blocked")
