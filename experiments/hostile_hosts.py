"""Hosts that attack whoever crawls them: one fault each, written as the bytes that a server would send.

Each fault is an answer to a request (`Talk`), the path at which it is met, and what a crawl may record of that page
(`outcome`, a regular expression over its kind and reason). Faults of robots.txt have an answer for that file too.
"""

from __future__ import annotations

import asyncio
import gzip
import importlib
import random
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache

from experiments.colliding_urls import colliding_urls

TRAP = 1 << 30
END = 1 << 20  # pieces after which even an endless answer ends
READ = r"fetched"
ANY = r"fetched|blocked: .+|gone: .+"
PRIVATE = ("169.254.169.254/latest/meta-data/", "168.63.129.16/machine", "localhost:1/", "10.0.0.1/", "[::1]:1/")


@dataclass(frozen=True, slots=True)
class Talk:
    """A request, and the connection to answer on."""

    target: str
    origin: str  # of this host
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def page(self, body: bytes | str, *headers: str, status: str = "200 OK") -> None:
        """Send a whole answer; HTML unless a header says otherwise."""
        data = body.encode() if isinstance(body, str) else body
        kind = [] if any(one.lower().startswith("content-type") for one in headers) else ["Content-Type: text/html"]
        lines = [f"HTTP/1.1 {status}", *kind, *headers, f"Content-Length: {len(data)}", "", ""]
        await self.send("\r\n".join(lines).encode("latin-1") + data)

    async def moved(self, target: str) -> None:
        """Send a redirect."""
        await self.page("", f"Location: {target}", status="302 Found")

    def reset(self) -> None:
        """End the connection so that the client sees a reset."""
        plain: socket.socket = self.writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


PageResponse = Callable[[Talk], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that a host does wrong, and what may be recorded of the page where it is met."""

    name: str
    answer: PageResponse
    outcome: str = READ
    path: str = "/"
    robots: PageResponse | None = None  # 404 without one
    secure: bool = False  # linked to as https
    listed: bool = False  # in a list at /list.xml, which the crawl begins with
    prepare: Callable[[str], object] | None = None  # makes what takes long, before the host of this origin is served
    most: int = 40  # requests that a crawl may make of it; traps take as many pages as the budget allows


def html(body: str | bytes, *headers: str, status: str = "200 OK") -> PageResponse:
    """Return an answer that is one page."""

    async def answer(talk: Talk) -> None:
        await talk.page(body, *headers, status=status)

    return answer


def raw(data: bytes) -> PageResponse:
    """Return an answer of bytes after which the connection is closed."""

    async def answer(talk: Talk) -> None:
        await talk.send(data)
        talk.writer.close()

    return answer


def dripping(head: bytes, piece: bytes, seconds: float, times: int = 600) -> PageResponse:
    """Return an answer that comes in small pieces, slowly."""

    async def answer(talk: Talk) -> None:
        await talk.send(head)
        for _ in range(times):
            await talk.send(piece)
            await asyncio.sleep(seconds)

    return answer


@cache
def packed(encoding: str, size: int) -> bytes:
    """Return so many zeros, encoded; where the library is missing, as gzip under a false name."""
    names = {"br": "brotli", "zstd": "zstandard", "gzip": "gzip"}
    try:
        library = importlib.import_module(names[encoding])
    except ImportError:
        library = gzip
    return bytes(library.compress(bytes(size)))


def bomb(name: str, encoding: str, size: int = 100_000_000) -> Fault:
    """Return a fault: a small page that decodes to a large one."""

    async def answer(talk: Talk) -> None:
        await talk.page(packed(encoding, size), f"Content-Encoding: {encoding}")

    return Fault(name, answer, ANY, prepare=lambda _: packed(encoding, size))


async def robots_404(talk: Talk) -> None:
    """Say that there is no robots.txt."""
    await talk.page("", status="404 Not Found")


async def _next_hop(talk: Talk) -> None:
    number = int(talk.target.rpartition("/")[2] or 0)
    await talk.moved(f"/hop/{number + 1}")


async def _loop(talk: Talk) -> None:
    await talk.moved("/b" if talk.target == "/a" else "/a")


async def _reset(talk: Talk) -> None:
    talk.reset()


async def _empty(talk: Talk) -> None:
    talk.writer.close()


async def _calendar(talk: Talk) -> None:
    number = int(talk.target.rpartition("/")[2] or 0)
    await talk.page(f"<title>Day {number}</title><a href=/day/{number + 1}>tomorrow</a><a href=/day/{number - 1}>x</a>")


async def _sessions(talk: Talk) -> None:
    tokens = [f"{random.getrandbits(64):x}" for _ in range(3)]
    await talk.page("".join(f"<a href='/shop?visit={token}'>shop</a>" for token in tokens))


async def _canonical(talk: Talk) -> None:
    if talk.target == "/gone":
        await talk.page("", status="404 Not Found")
    else:
        await talk.page("<link rel=canonical href=/gone><title>Here</title><p>A page with text.")


async def _refresh(talk: Talk) -> None:
    other = "/two" if talk.target == "/one" else "/one"
    await talk.page(f"<meta http-equiv=refresh content='0; url={other}'><title>{talk.target}</title>")


async def _many_links(talk: Talk) -> None:
    if talk.target != "/":
        await talk.page("<p>one of many")
        return
    await talk.page("".join(f"<a rel=nofollow href=/link/{number}>x</a>" for number in range(50_000)))


@cache
def colliding(origin: str) -> list[str]:
    """Return 10,000 URLs of a host whose hashes are neighbours."""
    return colliding_urls(f"{origin}/", 10_000)


async def _flood(talk: Talk) -> None:
    urls = colliding(talk.origin) if talk.target == "/" else []
    await talk.page("".join(f"<a rel=nofollow href='{url}'>x</a>" for url in urls))


async def _private(talk: Talk) -> None:
    await talk.page("".join(f"<a href='http://{place}'>x</a>" for place in PRIVATE))


async def _unknown_encoding(talk: Talk) -> None:
    if talk.target == "/list.xml":
        loc = f"<url><loc>{talk.origin}/</loc></url>"
        await talk.page(f"<?xml version='1.0' encoding='UTF-88'?><urlset>{loc}</urlset>", "Content-Type: text/xml")
    else:
        await talk.page("<p>a page of a list")


async def _robots_away(talk: Talk) -> None:
    await talk.moved("http://169.254.169.254/robots.txt")


async def _robots_circle(talk: Talk) -> None:
    await talk.moved(f"/robots.txt?{random.getrandbits(32)}")


def faults() -> list[Fault]:
    """Return every fault; each is served on a host of its own."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    rules = "User-agent: *\n" + "".join(f"Disallow: /*{number:x}*a\n" for number in range(46_000))
    noise = random.Random(7).randbytes(200_000)  # noqa: S311
    entity = f"<!DOCTYPE x [<!ENTITY a0 '{'a' * 1000}'>"
    entity += "".join(f"<!ENTITY a{number + 1} '&a{number};&a{number};'>" for number in range(30))
    return [
        Fault("link in SVG without href", html('<svg><a xlink:href="/x"><text>x</text></a></svg>')),
        Fault("Link header with an empty rel", html("<p>x", 'Link: </>; rel=""')),
        Fault("sitemap in an unknown encoding", _unknown_encoding, listed=True),
        Fault("110 kB of <a<a<a", html("<a" * 55_000), ANY),
        Fault("46,000 wildcard rules in robots.txt", html("<p>x"), ANY, robots=html(rules, "Content-Type: text/plain")),
        Fault("10,000 URLs with neighbouring hashes", _flood, prepare=colliding),
        Fault("redirects to ever new URLs", _next_hop, r"redirected.*|blocked: .+", "/hop/0"),
        Fault("redirects in a circle", _loop, r"redirected.*|blocked: .+", "/a"),
        Fault("slow headers", dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 1.0), r"blocked: .+"),
        Fault("slow body", dripping(head + b"Content-Length: 9999\r\n\r\n", b"<p>x", 1.0), ANY),
        bomb("gzip bomb", "gzip"),
        bomb("Brotli bomb", "br"),
        bomb("zstd bomb", "zstd"),
        Fault("Content-Length too long", raw(head + b"Content-Length: 5000\r\n\r\n<p>short"), ANY),
        Fault(
            "endless chunked body",
            dripping(head + b"Transfer-Encoding: chunked\r\n\r\n", b"4000\r\n" + b"x" * 16384 + b"\r\n", 0.0, END),
            ANY,
        ),
        Fault("chunks that are none", raw(head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n"), ANY),
        Fault(
            "endless headers",
            dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: bbbbbbbbbbbbbbbb\r\n" * 100, 0.0, END),
            r"blocked: .+",
        ),
        Fault(
            "one header of a megabyte",
            raw(b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 1_000_000 + b"\r\n\r\n"),
            r"blocked: .+",
        ),
        Fault("5,000 cookies", html("<p>x", *(f"Set-Cookie: a{n}=b" for n in range(5_000))), ANY),
        Fault("random bytes as HTML", html(noise), ANY),
        Fault(
            "invalid UTF-8 and lone surrogates",
            html(
                b"<title>\xed\xa0\x80\xff</title><a href='/\xff'>&#xD800;</a>", "Content-Type: text/html; charset=utf-8"
            ),
            READ,
        ),
        Fault(
            "unknown and dangerous charsets", html(b"<meta charset=idna><p>x", "Content-Type: text/html; charset=utf-7")
        ),
        Fault("100,000 nested elements", html("<div>" * 100_000), ANY),
        Fault("a million tags", html("<p>" * 1_000_000), ANY),
        Fault("50,000 links", _many_links),
        Fault(
            "XML entities as XHTML", html(entity + "]><html>&a29;</html>", "Content-Type: application/xhtml+xml"), ANY
        ),
        Fault("calendar without end", _calendar, READ, "/day/0", most=TRAP),
        Fault("a new session in each link", _sessions, READ, "/shop", most=TRAP),
        Fault("each path is a page with a deeper one", html("<a href='deeper/'>x</a>"), READ, most=TRAP),
        Fault("server errors for ever", html("", status="500 Internal Server Error"), r"blocked: .+"),
        Fault(
            "Retry-After of 30 years",
            html("", "Retry-After: 946080000", status="429 Too Many Requests"),
            r"blocked: .+",
        ),
        Fault("robots.txt redirects to a private address", html("<p>x"), r"blocked: .+|read", robots=_robots_away),
        Fault("robots.txt redirects without end", html("<p>x"), ANY, robots=_robots_circle),
        Fault(
            "endless robots.txt",
            html("<p>x"),
            ANY,
            robots=dripping(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"Disallow: /x\n" * 1000, 0.0, END),
        ),
        Fault("links to private and metadata addresses", _private),
        Fault("connections that are reset", _reset, r"blocked: .+"),
        Fault("empty replies", _empty, r"blocked: .+"),
        Fault("no TLS on an https link", raw(b"HTTP/1.1 400 no\r\n\r\n"), r"blocked: .+", secure=True),
        Fault("HTTP/0.9", raw(b"<p>just the page</p>"), r"blocked: .+"),
        Fault("another protocol", raw(b"SSH-2.0-OpenSSH_9.6\r\n"), r"blocked: .+"),
        Fault("redirect to a file", html("", "Location: file:///etc/passwd", status="302 Found"), r"blocked: .+"),
        Fault(
            "page that needs JavaScript",
            html("<div id=root></div><noscript>Enable JavaScript</noscript><script src=/app.js></script>"),
            r"fetched: needs JavaScript",
        ),
        Fault("canonical page that is gone", _canonical, READ, "/page"),
        Fault("refresh in a circle", _refresh, READ, "/one"),
        Fault(
            "title with escapes and a formula", html("<title>=HYPERLINK(1)\x1b[2J\x07<script>alert(1)</script></title>")
        ),
        Fault("ten gigabytes announced", raw(head + b"Content-Length: 10000000000\r\n\r\n" + b"x" * 1000), ANY),
    ]
