"""One page over HTTP, against real servers on loopback: what comes back, and every way in which it may not."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from attack import attack

from surveyor.errors import UsageError
from surveyor.fetch.client import HttpClient
from surveyor.fetch.encodings import ENCODINGS, TooLarge, Unreadable, decoder_of
from surveyor.fetch.event_loops import run_sync
from surveyor.fetch.http import (
    Fetched,
    FetchRequest,
    HttpSettings,
    accepts,
    retry_after,
    retry_delay,
)

AGENT = "test/1.0 (+https://example.org/bot)"
PAGE = b"<html><a href=/b>b</a></html>"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def within(work: Awaitable[Any], seconds: float = 20) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, seconds)

    return run_sync(bounded())


def client(resolver: Any = None, now: float = 0.0, **changes: Any) -> HttpClient:
    settings = {"allow": ("127.0.0.1", "[::1]"), "first_byte": 5, "connect": 5, "page": 10, **changes}
    return HttpClient(HttpSettings(AGENT, **settings), resolver=resolver, clock=lambda: now)


@asynccontextmanager
async def site(handler: Handler, host: str = "127.0.0.1", **tcp: Any) -> AsyncIterator[str]:
    """Serve with aiohttp."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)  # type: ignore[arg-type]
    await runner.setup()
    place = web.TCPSite(runner, host, 0, **tcp)
    await place.start()
    address = runner.addresses[0]
    name = f"[{address[0]}]" if ":" in address[0] else address[0]
    try:
        yield f"http{'s' if tcp.get('ssl_context') else ''}://{name}:{address[1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def peer(answer: bytes | Peer) -> AsyncIterator[str]:
    """Serve bytes that need not be HTTP; the connection is closed after them."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if callable(answer):
                await answer(reader, writer)
            else:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def get(handler: Handler, path: str = "/", request: dict[str, Any] | None = None, **changes: Any) -> Fetched:
    async def work() -> Fetched:
        async with site(handler) as root, client(**changes) as http:
            return await http.fetch(FetchRequest(root + path, **(request or {})))

    fetched: Fetched = within(work())
    return fetched


def hear(answer: bytes | Peer, **changes: Any) -> Fetched:
    async def work() -> Fetched:
        async with peer(answer) as root, client(**changes) as http:
            return await http.fetch(FetchRequest(root + "/"))

    fetched: Fetched = within(work())
    return fetched


def replying(body: bytes = PAGE, kind: str = "text/html", status: int = 200, **headers: str) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, status=status, headers={"Content-Type": kind, **named})

    return handle


def test_a_page_with_all_that_is_known_of_it() -> None:
    page = get(replying(ETag='"1"', Last_Modified="Thu, 01 Jan 1970 00:00:00 GMT"), "/a?b=%7e")
    assert (page.status, page.reason, page.version, page.error, page.ip) == (200, "OK", "1.1", "", "127.0.0.1")
    assert page.body is page.raw
    assert page.body == PAGE
    assert page.url.endswith("/a?b=%7e")
    assert (b"ETag", b'"1"') in page.headers
    assert (page.etag, page.last_modified, page.not_modified) == ('"1"', "Thu, 01 Jan 1970 00:00:00 GMT", False)
    assert page.timings.connect is not None
    assert page.timings.first_byte is not None
    assert 0 <= page.timings.connect <= page.timings.first_byte <= page.timings.total
    assert "200, 29 bytes" in repr(page)


def test_what_is_sent() -> None:
    seen: dict[str, str] = {}

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.update(request.headers, method=request.method)
        return web.Response(body=PAGE, content_type="text/html")

    settings: dict[str, Any] = {
        "sender": "me@example.org",
        "headers": {"X-Extra": "1"},
        "auth": {"127.0.0.1": ("me", "secret")},
    }
    get(handle, request={"headers": {"X-Own": "2"}}, **settings)
    assert seen["method"] == "GET"
    assert (seen["User-Agent"], seen["From"]) == (AGENT, "me@example.org")
    assert (seen["X-Extra"], seen["X-Own"], seen["Authorization"]) == ("1", "2", "Basic bWU6c2VjcmV0")
    assert seen["Accept-Encoding"] == ", ".join(ENCODINGS)
    assert "secret" not in repr(HttpSettings(AGENT, **settings))


@attack("links with credentials and servers that set cookies", area="links and URLs", must_hold="neither is ever sent")
def test_credentials_in_a_url_and_cookies_are_never_sent() -> None:
    async def work() -> None:
        seen: list[web.Request] = []

        async def handle(request: web.Request) -> web.StreamResponse:
            seen.append(request)
            return web.Response(body=PAGE, content_type="text/html", headers={"Set-Cookie": "a=b"})

        async with site(handle) as root, client() as http:
            page = await http.fetch(FetchRequest(root.replace("//", "//me:secret@") + "/#part"))
            await http.fetch(FetchRequest(root))
        assert page.url == f"{root}/"
        assert not any({"Authorization", "Cookie"} & set(request.headers) for request in seen)

    within(work())


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


@attack(
    "replies that are not HTTP: SSH banners, binary, wrong lengths, broken chunks, huge headers, nothing",
    area="headers and bodies",
    must_hold="one reason each; what was received is kept",
)
@pytest.mark.parametrize(
    ("answer", "error", "body"),
    [
        (OK + b"\r\nuntil the end", "", b"until the end"),
        (b"HTTP/1.1 200 OK\r\n\r\nbare", "", b"bare"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", "", b"old"),
        (OK + b"Content-Length: 10\r\n\r\nfive", "reset", b"five"),
        (OK + b"Content-Length: 4\r\n\r\nfour and more", "protocol", b""),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "", b"abc"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "reset", b"abc"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", "protocol", None),
        (OK + b"X-Huge: " + b"x" * 100_000 + b"\r\n\r\n", "protocol", b""),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "protocol", b""),
        (b"\x00\x01\x02\xff" * 100, "protocol", b""),
        (b"HTTP/1.1 999999 No\r\n\r\n", "protocol", b""),
        (b"", "reset", b""),
    ],
)
def test_answers_that_are_not_quite_http(answer: bytes, error: str, body: bytes | None) -> None:
    page = hear(answer)
    assert page.error == error, page.detail
    assert body is None or page.body == body
    assert bool(page.detail) == bool(error)


MIXTURES = 60


@attack(
    "random mixtures of HTTP fragments",
    area="headers and bodies",
    must_hold="the fetch returns a status or a reason, never an exception",
    inputs=MIXTURES,
)
def test_no_bytes_make_a_fetch_raise() -> None:
    rng = random.Random(7)  # noqa: S311
    parts = [
        OK,
        b"\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Location: http://[\r\n",
        b"\xff\xfe: \x00\r\n",
    ]
    parts += [
        b"Transfer-Encoding: chunked\r\n",
        b"HTTP/1.1 302 Found\r\n",
        b"5\r\nabcde\r\n",
        b"\x1f\x8b\x08\x00",
        b": \r\n",
    ]

    async def work() -> None:
        async with client(first_byte=1, page=2) as http:
            for _ in range(MIXTURES):
                noise = b"".join(rng.choices(parts, k=rng.randint(1, 7))) + rng.randbytes(rng.randint(0, 9))
                async with peer(noise) as root:
                    page = await http.fetch(FetchRequest(root))
                    assert page.error or page.status

    within(work())


@attack(
    "bodies larger than the limit, announced or not", area="headers and bodies", must_hold="reading stops at the limit"
)
@pytest.mark.parametrize(
    ("headers", "pieces"), [({"Content-Length": "5000"}, 5), ({}, 5), ({"Content-Length": "1001"}, 2)]
)
def test_no_more_is_read_than_there_is_room_for(headers: dict[str, str], pieces: int) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "text/html", **headers})
        await reply.prepare(request)
        for _ in range(pieces):
            await reply.write(b"x" * 1000)
        return reply

    page = get(handle, max_bytes=1000)
    assert (page.error, page.status) == ("too-large", 200)
    assert len(page.body) == (0 if headers else 1000)


def encoded(name: str, body: bytes) -> bytes:
    if name == "zstd":
        return bytes(pytest.importorskip("zstandard").compress(body))
    if name == "br":
        return bytes(pytest.importorskip("brotli", minversion="1.2").compress(body))
    return gzip.compress(body) if name == "gzip" else zlib.compress(body)


@attack(
    "compression bombs, cut streams and false encodings (gzip, deflate, zstd, Brotli)",
    area="headers and bodies",
    must_hold="decoding stops at the limit in bounded memory",
)
@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd", "br"])
def test_encodings_are_undone_within_bounds(name: str) -> None:
    body = random.Random(7).randbytes(50_000) + PAGE * 2000  # noqa: S311
    data = encoded(name, body)
    page = get(replying(data, Content_Encoding=name))
    assert (page.error, page.body == body, page.raw == data) == ("", True, True)
    cut = get(replying(data[:-9], Content_Encoding=name))
    assert (cut.error, cut.status, body.startswith(cut.body)) == ("decode", 200, True)
    assert get(replying(b"not encoded at all, but it says so" * 9, Content_Encoding=name)).error == "decode"
    bomb = get(replying(encoded(name, bytes(20_000_000)), Content_Encoding=name), max_decoded=100_000)
    assert (bomb.error, len(bomb.body)) == ("too-large", 100_000)
    assert len(decoder_of(name).feed(encoded(name, bytes(20_000_000)), 100_000)) < 9_000_000  # type: ignore[union-attr]


@attack(
    "stacked, unknown and repeated content encodings",
    area="headers and bodies",
    must_hold="at most three layers; otherwise a reason",
)
def test_odd_encodings() -> None:
    raw = zlib.compress(PAGE)[2:-4]
    assert get(replying(raw, Content_Encoding="deflate")).body == PAGE
    assert get(replying(gzip.compress(PAGE) * 2 + b"rest", Content_Encoding="x-gzip")).body == PAGE * 2
    assert get(replying(gzip.compress(zlib.compress(PAGE)), Content_Encoding="deflate, gzip")).body == PAGE
    assert get(replying(PAGE, Content_Encoding="UTF-8")).body == PAGE
    assert get(replying(b"", Content_Encoding="gzip")).error == ""
    assert get(replying(PAGE, Content_Encoding="compress")).error == "decode"
    with pytest.raises(Unreadable, match="4 times"):
        decoder_of("gzip, gzip, gzip, gzip")
    with pytest.raises(TooLarge, match="before it is decoded again"):
        decoder_of("gzip, gzip").feed(gzip.compress(bytes(9999)), 100)  # type: ignore[union-attr]


def test_bodies_of_other_types_are_not_waited_for() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "Image/PNG; x=y"})
        await reply.prepare(request)
        await asyncio.sleep(60)
        return reply

    page = get(endless)
    assert (page.status, page.skipped, page.body, page.error) == (200, "image/png", b"", "")
    assert page.timings.total < 5
    text = replying(b"User-agent: *", "text/plain")
    assert get(text).skipped == "text/plain"
    assert get(text, request={"types": ("*/*",)}).body == b"User-agent: *"
    assert accepts(("text/html",), "")
    assert not accepts(("text/html",), "text/htmlx")


@attack(
    "Location headers that are missing, empty, relative or not URLs",
    area="redirects",
    must_hold="no exception; a target only if it is a URL",
)
@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b?c", "http://HERE/b?c"),
        ("b", "http://HERE/x/b"),
        ("//other.example/b", "http://other.example/b"),
        ("https://me:secret@other.example:443/ä#x", "https://other.example/%C3%A4"),
        ("mailto:me@example.org", None),
        ("http://[", None),
        (None, None),
    ],
)
def test_redirects_are_answers(location: str | None, target: str | None) -> None:
    page = get(replying(b"", status=301, **({"Location": location} if location else {})), "/x/y")
    here = page.url.split("/")[2]
    assert page.status == 301
    assert page.target == (target and target.replace("HERE", here))
    assert page.error == ("" if target else "protocol")


def test_pages_that_have_not_changed() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        same = "1" in request.headers.get("If-None-Match", "") or "If-Modified-Since" in request.headers
        return web.Response(status=304 if same else 200, headers={"ETag": '"1"', "Content-Type": "text/html"})

    page = get(handle, request={"etag": '"1"'})
    assert (page.status, page.not_modified, page.body, page.error, page.etag) == (304, True, b"", "", '"1"')
    assert get(handle, request={"last_modified": "Thu, 01 Jan 1970 00:00:00 GMT"}).not_modified
    assert not get(handle, request={"etag": '"2"'}).not_modified
    assert not get(replying(b"", status=304)).not_modified
    assert get(handle, request={"etag": "1\r\nX: y"}).status == 200  # not sent


def test_retry_after() -> None:
    assert get(replying(status=503, Retry_After="120")).retry_after == 120
    assert get(replying(status=429, Retry_After="Thu, 01 Jan 1970 00:01:00 GMT"), now=15).retry_after == 45
    assert get(replying()).retry_after is None
    assert retry_after("Sunday, 06-Nov-94 08:49:37 GMT", now=784111770) == 7
    assert retry_after("Sun Nov  6 08:49:37 1994", now=784111770) == 7
    assert retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now=1e9) == 0
    assert retry_after("9" * 5000, now=0) == 1e10
    for wrong in ("", "-5", "1.5", "soon", "٣", "Thu, 99 Foo 1970 00:00:00 GMT", "Fri, 31 Dec 99999 23:59:59 GMT"):
        assert retry_after(wrong, now=0) is None


def test_when_another_try_is_worth_it() -> None:
    assert [retry_delay(tries, "offline") for tries in (1, 2, 3, 9)] == [10, 40, 160, 300]
    assert [retry_delay(1, status) for status in (200, 404, 429, 501, 503)] == [None, None, 10, None, 10]
    assert [retry_delay(1, word) for word in ("", "too-large", "forbidden-address", "decode")] == [None] * 4
    assert Fetched("http://a.example/", error="dns").may_pass
    assert Fetched("http://a.example/", status=503).may_pass
    assert not Fetched("http://a.example/", status=200).may_pass


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"user_agent": "mybot/1.0"}, "does not say who asks"),
        ({"user_agent": "bot me@example.org\r\nX: y"}, "cannot be sent"),
        ({"page": 0}, "page must be"),
        ({"connect": float("nan")}, "connect must be"),
        ({"headers": {"User-Agent": "Mozilla"}}, "cannot be set"),
        ({"headers": {"Accept-Encoding": "br"}}, "cannot be set"),
        ({"headers": {"X": "a\nb"}}, "cannot be sent"),
        ({"headers": {"X y": "a"}}, "not the name"),
        ({"allow": ("http://a.example/",)}, "not a host"),
        ({"auth": {"a/b": ("me", "x")}}, "not a host"),
        ({"proxy": "socks5://a.example"}, "not a URL"),
        ({"ca_file": "/nowhere.pem"}, "no file"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        HttpSettings(**{"user_agent": "bot me@example.org", **changes})
