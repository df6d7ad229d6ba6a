"""Attempts to lead a crawl into the network that it runs in: every connection and look-up is recorded."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import sys
from pathlib import Path
from typing import Any

import aiohappyeyeballs
import pytest
from aiohttp import web
from attack import attack

import surveyor as sv
from surveyor.config import Settings
from surveyor.crawler.preview import fetch_preview
from surveyor.crawler.session import run
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import allow_named_hosts, start
from surveyor.errors import NothingFetched
from surveyor.fetch import special_addresses as special
from surveyor.fetch.addresses import AddressBook, forbidden, named_entry
from surveyor.fetch.client import HttpClient
from surveyor.fetch.http import FetchRequest, HttpSettings
from surveyor.stopping import parse_rule
from test_addresses import Recorder
from test_http import site, within

AGENT = "test/1.0 (+https://example.org/bot)"
PUBLIC = "93.184.215.14"
BLOCKS = [*special.IPV4, *special.IPV6, *special.CLOUDS]
REFUSED = [block for block in BLOCKS if not block.reachable]
NAT64_NETWORK = "64:ff9b::/96"
SPELLINGS = [  # of 168.63.129.16 and of 127.0.0.1
    *["168.63.129.16", "2822734096", "0xA83F8110", "0250.077.0201.020", "168.63.33040", "0xa8.0x3f.0x81.0x10"],
    *["[::ffff:168.63.129.16]", "[64:ff9b::168.63.129.16]", "[2002:a83f:8110::1]", "[::168.63.129.16]"],
    *["[2a00:1450::5efe:a83f:8110]", "168。63。129。16", "１６８.63.129.16"],
    *["127.0.0.1", "2130706433", "0x7f.1", "0177.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "[::]", "0"],
    *["169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "169.254.170.2"],
]
NAMES = [
    *special.METADATA_NAMES,
    "metadata.google.internal.",
    "METADATA.GOOG",
    "localhost",
    "a.localhost",
    "localhost.",
]


class Connector:
    """Stands where aiohttp connects: records the addresses, and lets only those through that a test serves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *open_ports: int) -> None:
        self.made: list[tuple[str, int]] = []
        self.open_ports, self._connect = set(open_ports), aiohappyeyeballs.start_connection
        monkeypatch.setattr(aiohappyeyeballs, "start_connection", self.start)

    async def start(self, addr_infos: Any, **rest: Any) -> socket.socket:
        self.made += [info[4][:2] for info in addr_infos]
        if all(info[4][1] in self.open_ports for info in addr_infos):
            return await self._connect(addr_infos=addr_infos, **rest)
        raise OSError(errno.ECONNREFUSED, "not from a test")


def fetched(url: str, resolver: Any = None, **settings: Any) -> Any:
    async def work() -> Any:
        async with HttpClient(HttpSettings(AGENT, **settings), resolver=resolver or Recorder()) as http:
            return await http.fetch(FetchRequest(url))

    return within(work())


def beyond(network: str) -> list[str]:
    """Return the addresses just before and just after a network."""
    block = ipaddress.ip_network(network)
    kind: Any = type(block.network_address)
    numbers = int(block.network_address) - 1, int(block.broadcast_address) + 1
    return [str(kind(number)) for number in numbers if 0 <= number < 1 << block.max_prefixlen]


@attack(
    "addresses of every block of the IANA registries and cloud agents",
    area="addresses",
    must_hold="refused at both ends and in the middle",
)
@pytest.mark.parametrize("block", REFUSED, ids=lambda block: block.network)
def test_every_block_of_the_registries_is_refused_at_both_ends(block: special.Block) -> None:
    network = ipaddress.ip_network(block.network)
    for address in (network[0], network[-1], network[network.num_addresses // 2]):
        assert forbidden(str(address)), address


@pytest.mark.parametrize("block", REFUSED, ids=lambda block: block.network)
def test_one_address_beyond_a_block_is_judged_by_the_block_that_it_lies_in(block: special.Block) -> None:
    """So no block reaches too far: an address beside it is refused only if another row or rule says so."""
    rows = [ipaddress.ip_network(one.network) for one in REFUSED]
    for text in beyond(block.network):
        address = ipaddress.ip_address(text)
        listed = any(address in network for network in rows if network.version == address.version)
        outside = address.version == 6 and address not in ipaddress.ip_network(special.GLOBAL_6)
        translated = address.version == 6 and address in ipaddress.ip_network(NAT64_NETWORK)
        assert bool(forbidden(text)) == (listed or (outside and not translated)), text


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.kind == "public"], ids=lambda block: block.network)
def test_blocks_that_are_globally_reachable_are_not_refused(block: special.Block) -> None:
    network = ipaddress.ip_network(block.network)
    if block.network == NAT64_NETWORK:  # as the address that it holds
        assert not forbidden(f"64:ff9b::{PUBLIC}")
        assert forbidden("64:ff9b::10.0.0.1") == "private"
    else:
        assert not forbidden(str(network[0]))
        assert not forbidden(str(network[-1]))


@attack(
    "refused addresses in decimal, octal, hexadecimal, IPv6 and Unicode, and metadata host names, also by proxy",
    area="addresses",
    must_hold="no connection, no look-up of metadata names",
)
@pytest.mark.parametrize("host", [*SPELLINGS, *NAMES])
@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
def test_no_spelling_of_a_refused_address_is_connected_to(
    host: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector, resolver = Connector(monkeypatch), Recorder(**{name: ["127.0.0.1"] for name in ("localhost",)})
    resolver.table |= {"a.localhost": ["127.0.0.1"], "localhost.": ["127.0.0.1"]}
    answer = fetched(f"http://{host}/", resolver, proxy=proxy)
    assert answer.error in ("forbidden-address", "protocol"), answer
    assert connector.made == []
    assert not set(resolver.asked) & set(special.METADATA_NAMES)


@attack(
    "a host with one private address among public ones, with and without a proxy",
    area="addresses",
    must_hold="no connection",
)
@pytest.mark.parametrize("bad", ["10.0.0.1", "168.63.129.16", "::1", "fd00:ec2::254", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
def test_one_refused_address_among_public_ones_refuses_the_host(
    bad: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = Connector(monkeypatch)
    resolver = Recorder(evil_org=[PUBLIC, bad, "1.1.1.1"])
    answer = fetched("http://evil.org/", resolver, proxy=proxy)
    assert answer.error == "forbidden-address"
    assert (connector.made, resolver.asked) == ([], ["evil.org"])


@attack(
    "DNS rebinding",
    area="addresses",
    must_hold="only the address that was checked is connected to",
)
def test_a_name_that_changes_its_address_is_connected_to_as_it_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: public when it is fetch_preview up, private from then on."""

    class Rebinding(Recorder):
        async def resolve(self, host: str, port: int) -> list[str]:
            await super().resolve(host, port)
            return [PUBLIC] if len(self.asked) == 1 else ["127.0.0.1"]

    async def work() -> None:
        resolver = Rebinding(evil_org=[PUBLIC])
        async with HttpClient(HttpSettings(AGENT, dns_ttl=0.0), resolver=resolver) as http:
            assert (await http.fetch(FetchRequest("http://evil.org/"))).error == "refused"
            assert connector.made == [(PUBLIC, 80)]
            assert (await http.fetch(FetchRequest("http://evil.org/"))).error == "forbidden-address"
        assert connector.made == [(PUBLIC, 80)]

    connector = Connector(monkeypatch)
    within(work())


def test_behind_a_proxy_names_that_exist_nowhere_are_not_looked_up_and_others_are_left_to_it() -> None:
    async def work() -> None:
        resolver = Recorder(intranet_org=["10.0.0.1"], public_org=[PUBLIC])
        book = AddressBook(resolver, allow=["intranet.org:81"])
        for host in ("a.example", "b.test", "c.invalid", "localhost", "10.0.0.1"):
            await book.judge_behind_proxy(host, 80)
        assert resolver.asked == []
        assert (await book.judge_behind_proxy("intranet.org", 80)).error == "forbidden-address"
        assert (await book.judge_behind_proxy("intranet.org", 81)).error == ""
        assert (await book.judge_behind_proxy("public.org", 80)).error == ""
        assert (await book.judge_behind_proxy("unknown.org", 80)).error == ""
        assert resolver.asked == ["intranet.org", "public.org", "unknown.org"]

    within(work())


def test_a_look_up_that_hangs_beside_a_proxy_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        async def resolve(self, _host: str, _port: int) -> list[str]:
            await asyncio.sleep(3600)
            return []

    async def work() -> None:
        book = AddressBook(Hanging())
        assert (await book.judge_behind_proxy("slow.org", 80)).error == ""
        book.close()

    monkeypatch.setattr("surveyor.fetch.addresses.LOCAL_LOOKUP", 0.01)
    within(work())


# Seeds that are local


@pytest.mark.parametrize(
    ("url", "entry"),
    [
        ("http://localhost:8000/", "localhost:8000"),
        ("http://127.0.0.1:8765/", "127.0.0.1:8765"),
        ("http://192.168.1.5/", "192.168.1.5:80"),
        ("https://[fd00::1]/", "[fd00::1]:443"),
        ("http://168.63.129.16/", ""),
        ("http://169.254.169.254/", ""),
        ("http://[::ffff:169.254.169.254]/", ""),
        ("http://[fd00:ec2::254]/", ""),
        ("http://metadata.google.internal/", ""),
        ("http://wiki.example.org/", ""),
        ("http://0.0.0.0/", ""),
        ("ftp://localhost/", ""),
    ],
)
def test_a_seed_permits_its_own_host_and_port_if_it_is_spelled_as_a_local_one(url: str, entry: str) -> None:
    assert named_entry(url) == entry


def serving(pages: dict[str, str]) -> Any:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        found = pages.get(request.path)
        asked.append(f"{request.url.port}{request.path}")
        if found is None:
            return web.Response(status=404)
        if found.startswith("->"):
            return web.Response(status=302, headers={"Location": found[2:]})
        return web.Response(text=found, content_type="text/html")

    asked: list[str] = []
    answer.asked = asked  # type: ignore[attr-defined]
    return answer


def crawl_local(tmp_path: Path, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Crawl a site on loopback from a seed that names it; {OTHER} in its pages is a second server on loopback."""

    async def work() -> None:
        other = serving({"/": "secret", "/robots.txt": "", "/x": "secret"})
        async with site(other) as there:
            here = serving({path: text.replace("{OTHER}", there) for path, text in pages.items()})
            async with site(here) as root:
                Connector(monkeypatch, *(int(one.rpartition(":")[2]) for one in (root, there)))
                given: dict[str, Any] = {"contact": "me@example.org", "delay": 0.0, "backoff": 0.01, "scope": "any"}
                chosen, origins = allow_named_hosts(Settings(**given), dict.fromkeys(given, "argument"), [f"{root}/"])
                folder, chosen = start(tmp_path / "a.survey", [f"{root}/"], chosen, origins)
                with folder:
                    await run(folder, chosen, parse_rule("pages=50"), connection=Connection(patience=0.0))
        result.update(other=other.asked, asked=here.asked, manifest=folder.manifest)

    result: dict[str, Any] = {}
    within(work(), 60)
    return result


@attack(
    "a local seed whose pages, robots.txt, redirects, base or canonical lead to another local port or host",
    area="addresses",
    must_hold="no request there",
)
@pytest.mark.parametrize(
    "pages",
    [
        {"/": '<a href="{OTHER}/x">a link to another port</a>'},
        {"/": "<a href=/b>b</a>", "/b": "->{OTHER}/x"},
        {"/": "<a href=/b>b</a>", "/robots.txt": "->{OTHER}/x"},
        {"/": '<a href="http://127.0.0.2:1/x">another host</a>'},
        {"/": '<a href="http://2130706433:1/x">another port, in decimal</a>'},
        {"/": '<base href="{OTHER}/"><a href="x">by its base</a>'},
        {"/": '<link rel="canonical" href="{OTHER}/x">'},
    ],
)
def test_a_local_seed_leads_to_no_other_local_host_or_port(
    pages: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = crawl_local(tmp_path, pages, monkeypatch)
    assert found["other"] == []
    assert found["asked"]  # the seed itself was fetched
    entry = found["manifest"].settings["allow"]
    assert len(entry) == 1
    assert found["manifest"].origins["allow"] == "seed"


def test_python_permits_a_seed_that_it_is_given_and_no_seed_from_elsewhere(tmp_path: Path) -> None:
    async def serve() -> None:
        handler = serving({"/": "hello", "/robots.txt": ""})
        async with site(handler) as root:
            given: dict[str, Any] = {"contact": "me@example.org", "delay": 0.0}
            look = await fetch_preview(f"{root}/", Settings(**given))
            assert look.fetched
            for _ in range(2):  # the second time it is resumed

                def crawl() -> int:
                    with sv.crawl(f"{root}/", out=tmp_path / "a.survey", until="pages=5", **given) as survey:
                        return survey.pages_fetched

                assert await asyncio.to_thread(crawl) == 1
            folder, chosen = start(tmp_path / "b.survey", [f"{root}/"], Settings(**given), {})  # as from a list
            folder.close()
            assert chosen.allow == ()

    within(serve(), 60)


@pytest.mark.slow
@attack(
    "a local seed URL in a project file",
    area="addresses",
    must_hold="refused; only one on the command line is allowed",
)
def test_a_seed_in_a_project_file_permits_nothing_and_one_on_the_command_line_does(tmp_path: Path) -> None:
    async def surveyor(*words: str) -> int:
        words = (sys.executable, "-m", "surveyor", "crawl", *words, "--backoff", "0.01", "--delay", "0", "--quiet")
        words = (*words, "--contact", "me@example.org")
        return await (await asyncio.create_subprocess_exec(*words, cwd=tmp_path)).wait()

    async def serve() -> None:
        handler = serving({"/": "hello", "/robots.txt": ""})
        async with site(handler) as root:
            (tmp_path / "surveyor.toml").write_text(f'seeds = ["{root}/"]\n')
            assert await surveyor("--out", "a.survey") == NothingFetched.exit_code
            assert handler.asked == []
            assert await surveyor(f"{root}/", "--out", "b.survey", "--until", "pages=1") == 0
            assert [one.partition("/")[2] for one in handler.asked] == ["robots.txt", ""]

    within(serve(), 120)
