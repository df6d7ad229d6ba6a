"""Whom the client connects to and whom never, and how it keeps and loses connections: on loopback, all of it."""

from __future__ import annotations

import asyncio
import errno
import shutil
import socket
import ssl
import struct
import subprocess
from pathlib import Path
from typing import Any

import aiohappyeyeballs
import pytest
from aiohttp import web
from aiohttp.resolver import ThreadedResolver
from attack import attack

from surveyor.fetch import client as clients
from surveyor.fetch.http import Fetched, FetchRequest
from test_addresses import Recorder
from test_http import PAGE, Peer, client, hear, peer, replying, site, within


class Connections:
    """Stands where aiohttp connects: records the addresses, and lets none but loopback through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failure: OSError | float | None = None) -> None:
        self.made: list[str] = []
        self._failure, self._connect = failure, aiohappyeyeballs.start_connection
        monkeypatch.setattr(aiohappyeyeballs, "start_connection", self.start)

    async def start(self, addr_infos: Any, **rest: Any) -> socket.socket:
        addresses = [info[4][0] for info in addr_infos]
        self.made += addresses
        if isinstance(self._failure, float):
            await asyncio.sleep(self._failure)
        if self._failure is None and set(addresses) <= {"127.0.0.1", "::1"}:
            return await self._connect(addr_infos=addr_infos, **rest)
        raise self._failure if isinstance(self._failure, OSError) else OSError(errno.ECONNREFUSED, "not from a test")


def ask(url: str, resolver: Recorder | None = None, **changes: Any) -> Fetched:
    async def work() -> Fetched:
        async with client(resolver or Recorder(), **{"allow": (), **changes}) as http:
            return await http.fetch(FetchRequest(url))

    fetched: Fetched = within(work())
    return fetched


@attack(
    "links to loopback, private, metadata and IPv6-embedded addresses",
    area="addresses",
    must_hold="no name is resolved and no socket connects",
)
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.1/",
        "http://10.0.0.1:8080/",
        "http://169.254.169.254/latest/meta-data/",
        "https://192.168.0.1/",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://255.255.255.255/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
    ],
)
def test_no_connection_is_made_to_a_forbidden_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connections, resolver = Connections(monkeypatch), Recorder()
    page = ask(url, resolver)
    assert (page.error, page.status, page.ip) == ("forbidden-address", None, "")
    assert "address" in page.detail
    assert (resolver.asked, connections.made) == ([], [])


@attack("names that resolve to a private address", area="addresses", must_hold="no socket connects")
@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:7f00:1"])
def test_nor_to_a_name_that_resolves_to_one(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connections, resolver = Connections(monkeypatch), Recorder(a_example=["1.1.1.1", address])
    page = ask("http://a.example/", resolver, allow=("b.example", "a.example:8080"))
    assert (page.error, resolver.asked, connections.made) == ("forbidden-address", ["a.example"], [])


@attack(
    "DNS rebinding: a name that resolves to loopback at the second look-up",
    area="addresses",
    must_hold="only the first, public address is connected to",
)
def test_the_judged_addresses_are_the_ones_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    connections, resolver = Connections(monkeypatch), Recorder(a_example=["1.1.1.1"])

    async def work() -> None:
        async with client(resolver, dns_ttl=0) as http:
            assert (await http.fetch(FetchRequest("http://a.example/"))).error == "refused"
            resolver.table["a.example"] = ["127.0.0.1"]  # rebinding
            assert (await http.fetch(FetchRequest("http://a.example/"))).error == "forbidden-address"

    within(work())
    assert connections.made == ["1.1.1.1"]


@attack("a resolver that returns an address which was not judged", area="addresses", must_hold="the socket is refused")
def test_a_socket_is_only_made_for_a_judged_address(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response()

    async def work() -> None:
        async with site(handle) as root, client(Recorder(a_example=["1.1.1.1"])) as http:
            lie = await ThreadedResolver().resolve("127.0.0.1", int(root.split(":")[2]))

            async def resolve(*_: Any, **__: Any) -> Any:
                return lie

            monkeypatch.setattr(clients._Pinned, "resolve", resolve)
            page = await http.fetch(FetchRequest(f"http://a.example:{root.split(':')[2]}/"))
            assert page.error == "forbidden-address"
            assert "not judged" in page.detail

    within(work())
    assert asked == []
    with pytest.raises(PermissionError):
        clients._checked_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 80)))


@attack(
    "redirects to private and metadata addresses", area="addresses", must_hold="the hop is refused without a connection"
)
@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/", "http://a.example/", "http://127.0.0.1:1/", "http://[::1]/"]
)
def test_every_hop_is_judged(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connections = Connections(monkeypatch)

    async def work() -> None:
        resolver = Recorder(a_example=["10.0.0.1"])
        async with (
            site(replying(b"", status=302, Location=target)) as root,
            client(resolver, allow=(root.removeprefix("http://"),)) as http,
        ):
            first = await http.fetch(FetchRequest(root))
            page = await http.fetch(FetchRequest(first.target or ""))
        assert (page.error, page.url) == ("forbidden-address", target)

    within(work())
    assert connections.made == ["127.0.0.1"]


def test_names_that_the_user_allows_may_lead_to_loopback() -> None:
    async def work() -> None:
        resolver = Recorder(a_example=["127.0.0.1"])
        async with site(replying()) as root:
            port = root.rpartition(":")[2]
            async with client(resolver, allow=(f"A.example:{port}",)) as http:
                page = await http.fetch(FetchRequest(f"http://a.example:{port}/"))
        assert (page.status, page.ip, page.body) == (200, "127.0.0.1", PAGE)

    within(work())


def test_ipv6_loopback() -> None:
    async def work() -> None:
        try:
            async with site(replying(), host="::1") as root, client() as http:
                page = await http.fetch(FetchRequest(root))
        except OSError:
            pytest.skip("no IPv6 here")
        assert (page.status, page.ip) == (200, "::1")

    within(work())


@pytest.mark.parametrize(
    ("failure", "addresses", "error"),
    [
        (OSError(errno.ECONNREFUSED, "refused"), ["1.1.1.1"], "refused"),
        (OSError(errno.EHOSTUNREACH, "no route"), ["1.1.1.1"], "refused"),
        (OSError(errno.ENETUNREACH, "no network"), ["1.1.1.1"], "offline"),
        (OSError(errno.ENETUNREACH, "no network"), ["2606:4700::1111"], "refused"),
        (OSError(errno.EMFILE, "too many files"), ["1.1.1.1"], "offline"),
        (OSError(errno.ETIMEDOUT, "late"), ["1.1.1.1"], "timeout-connect"),
        (OSError(errno.ECONNRESET, "reset"), ["1.1.1.1"], "reset"),
        (30.0, ["1.1.1.1"], "timeout-connect"),
    ],
)
def test_no_connection(
    failure: OSError | float, addresses: list[str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Connections(monkeypatch, failure)
    page = ask("https://a.example/", Recorder(a_example=addresses), connect=0.1)
    assert (page.error, page.status, page.timings.connect) == (error, None, None)
    assert page.detail


def test_a_refused_connection_on_loopback() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        page = ask(f"http://127.0.0.1:{free.getsockname()[1]}/", allow=("127.0.0.1",))
    assert page.error == "refused"


def test_hosts_without_an_address() -> None:
    class Silent(Recorder):
        async def resolve(self, _host: str, _port: int) -> list[str]:
            await asyncio.sleep(30)
            return []

    assert ask("http://nowhere.example/").detail == "nowhere.example does not resolve now: no such host"
    assert ask("http://nowhere.example/", Recorder(nowhere_example=[])).error == "no-host"
    late = ask("http://nowhere.example/", Silent(), connect=0.1)
    assert (late.error, late.timings.total < 3) == ("dns", True)


@attack("URLs that cannot be requested", area="links and URLs", must_hold="an error as data, no exception")
@pytest.mark.parametrize(
    "url", ["ftp://a.example/", "file:///etc/passwd", "", "a.example", "http://a b/", "http://[::1"]
)
def test_urls_that_cannot_be_asked_for(url: str) -> None:
    page = ask(url)
    assert (page.url, page.error) == (url, "protocol")


def test_stopping_a_fetch_leaves_nothing_behind() -> None:
    async def work() -> None:
        async def wait(_: web.Request) -> web.StreamResponse:
            await asyncio.sleep(30)
            return web.Response()

        async with site(wait) as root, client(connections=1) as http:
            task = asyncio.create_task(http.fetch(FetchRequest(root)))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await http.fetch(FetchRequest("http://10.0.0.1/"))).error == "forbidden-address"  # there is a place

    within(work())


def test_connections_are_used_again_and_limited() -> None:
    async def work() -> None:
        peers: set[Any] = set()
        busy = most = 0

        async def handle(request: web.Request) -> web.StreamResponse:
            nonlocal busy, most
            assert request.transport
            peers.add(request.transport.get_extra_info("peername"))
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0.002)
            busy -= 1
            return web.Response(body=PAGE, content_type="text/html")

        async with site(handle) as root, client(connections=3) as http:
            pages = await asyncio.gather(*[http.fetch(FetchRequest(f"{root}/{i}")) for i in range(30)])
        assert [page.error for page in pages] == [""] * 30
        assert len(peers) == most == 3

    within(work())


def test_a_connection_that_was_closed_while_idle_is_no_failure() -> None:
    asked = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.readuntil(b"\r\n\r\n")  # the second request gets no answer
        asked += 1

    async def work() -> None:
        async with peer(once) as root, client() as http:
            assert [(await http.fetch(FetchRequest(root))).body for _ in range(2)] == [b"ok", b"ok"]
        assert asked == 1

    within(work())


def test_a_new_connection_that_is_closed_is_not_tried_again() -> None:
    asked = 0

    async def close(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1

    page = hear(close)
    assert (page.error, page.status, asked) == ("reset", None, 1)


async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def stall_in_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nfirst part")
    await reader.read()


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


@attack(
    "slow loris: no headers, a stalled body, a reset",
    area="connections",
    must_hold="the fetch ends at its time limit with a reason; bytes received are kept",
)
@pytest.mark.parametrize(
    ("answer", "changes", "error"),
    [
        (stall, {"first_byte": 0.1}, "timeout-first-byte"),
        (stall, {"page": 0.1}, "timeout-page"),
        (stall_in_body, {"page": 0.2}, "timeout-page"),
        (reset, {}, "reset"),
    ],
)
def test_silence_and_resets(answer: Peer, changes: dict[str, Any], error: str) -> None:
    page = hear(answer, **changes)
    assert page.error == error
    assert page.detail
    assert page.timings.total < 3
    assert page.body == (b"first part" if answer is stall_in_body else b"")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl here")
    folder = tmp_path_factory.mktemp("tls")
    key, file = folder / "key.pem", folder / "cert.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = subprocess.run(
        [program, "req", "-x509", *kind, *names, "-keyout", key, "-out", file],
        capture_output=True,
        timeout=30,
        check=False,
    )
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    return key, file


def test_secure_connections(certificate: tuple[Path, Path]) -> None:
    key, file = certificate
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, key)

    async def work() -> None:
        resolver = Recorder(a_example=["127.0.0.1"])
        async with site(replying(), ssl_context=context) as root:
            async with client() as http:
                unknown = await http.fetch(FetchRequest(root))
                assert (unknown.error, unknown.status) == ("tls", None)
                assert "certificate" in unknown.detail
                assert (await http.fetch(FetchRequest(root.replace("https", "http")))).error in ("reset", "protocol")
            async with client(resolver, ca_file=file, allow=("127.0.0.1", "a.example")) as http:
                assert (await http.fetch(FetchRequest(root))).body == PAGE
                assert (await http.fetch(FetchRequest(root.replace("127.0.0.1", "a.example")))).error == "tls"
        async with site(replying()) as root, client() as http:
            assert (await http.fetch(FetchRequest(root.replace("http", "https")))).error == "tls"

    within(work())


def test_a_proxy_is_asked_instead_of_the_host() -> None:
    lines: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append((await reader.readuntil(b"\r\n\r\n")).splitlines()[0])
        status = b"407 No" if lines[-1].startswith(b"CONNECT") else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\nok")

    async def work() -> None:
        async with peer(proxy) as root:
            resolver = Recorder()
            async with client(resolver, allow=(), proxy=root) as http:
                page = await http.fetch(FetchRequest("http://a.example/x"))
                assert (page.body, page.ip, resolver.asked) == (b"ok", "", [])
                for host in ("localhost", "10.0.0.1"):
                    assert (await http.fetch(FetchRequest(f"http://{host}/"))).error == "forbidden-address"
                assert (await http.fetch(FetchRequest("https://a.example/"))).error == "refused"
        async with client(proxy=root) as http:
            assert (await http.fetch(FetchRequest("http://a.example/x"))).error == "offline"
        assert lines == [b"GET http://a.example/x HTTP/1.1", b"CONNECT a.example:443 HTTP/1.1"]

    within(work())
