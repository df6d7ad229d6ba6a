"""Which addresses may be connected to, and how they are found and remembered."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any

import ada_url
import pytest
from attack import attack
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.fetch.addresses import (
    PLAIN,
    AddressBook,
    Found,
    SystemResolver,
    forbidden,
    host_key,
    literal,
    locate,
)

PRIVATE = {
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "169.254.1.1": "link-local",
    "169.254.169.254": "cloud agent",
    "168.63.129.16": "cloud agent",
    "100.64.0.1": "shared",
    "100.127.255.255": "shared",
    "0.0.0.0": "unspecified",  # noqa: S104
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "192.0.2.1": "reserved",
    "198.18.0.1": "reserved",
    "203.0.113.7": "reserved",
}
NAT64 = IPv6Network("64:ff9b::/96")
PUBLIC = ["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "169.253.0.1", "11.0.0.1", "223.255.255.255"]


class Recorder:
    """A resolver that answers from a table and remembers what it was asked."""

    def __init__(self, **table: list[str] | Exception) -> None:
        self.table = {name.replace("_", "."): answer for name, answer in table.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        await asyncio.sleep(0)
        answer = self.table.get(host, OSError("no such host"))
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(make(), 10))


@attack(
    "private, loopback, link-local and other special IPv4 networks",
    area="addresses",
    must_hold="refused, with the kind of network as the reason",
)
@pytest.mark.parametrize(("address", "kind"), PRIVATE.items())
def test_special_networks_are_forbidden(address: str, kind: str) -> None:
    assert forbidden(address) == kind


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_not(address: str) -> None:
    assert forbidden(address) == ""


def carried(address: str) -> list[str]:
    number = int(IPv4Address(address))
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    return [
        f"::ffff:{address}",
        f"::ffff:0:{address}",
        f"::{address}",
        f"64:ff9b::{address}",
        f"2002:{high}:{low}::1",
        f"2a00:1450::5efe:{high}:{low}",
        f"2a00:1450::200:5efe:{high}:{low}",
    ]


@attack(
    "special IPv4 addresses inside IPv6 (mapped, NAT64, 6to4, ISATAP: seven forms each)",
    area="addresses",
    must_hold="refused",
)
@pytest.mark.parametrize("address", PRIVATE)
def test_ipv6_forms_of_special_networks_are_forbidden(address: str) -> None:
    assert [form for form in carried(address) if not forbidden(form)] == []


@pytest.mark.parametrize("address", PUBLIC)
def test_ipv6_forms_of_public_addresses_are_refused_unless_they_are_globally_reachable(address: str) -> None:
    """NAT64 reaches the IPv4 internet, and ISATAP may lie in any network; the other forms reach nothing."""
    refused = [form for form in carried(address) if forbidden(form)]
    assert refused == [form for form in carried(address) if not form.startswith(("64:ff9b::", "2a00:"))]


@attack("special IPv6 networks", area="addresses", must_hold="refused, with the kind of network as the reason")
@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fc00::1", "private"),
        ("fdff::1", "private"),
        ("fec0::1", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("ff02::1", "multicast"),
        ("64:ff9b:1::1", "private"),
        ("2001::1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("3fff::1", "reserved"),
        ("100::1", "reserved"),
        ("5f00::1", "reserved"),
        ("localhost", "unreadable"),
        ("", "unreadable"),
        ("2a00:1450:4001:80b::200e", ""),
        ("2606:4700::1111", ""),
    ],
)
def test_networks_of_ipv6(address: str, kind: str) -> None:
    assert forbidden(address) == kind


@settings(deadline=None)
@given(st.ip_addresses())
def test_nothing_is_public_that_python_calls_special(address: Any) -> None:
    special = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    carries = address.version == 6 and (address.ipv4_mapped or address in NAT64)  # is what it carries
    if (special or address.is_reserved or address.is_unspecified) and not carries:
        assert forbidden(str(address))


@attack(
    "loopback written as a number, in octal, hexadecimal or full-width digits",
    area="addresses",
    must_hold="recognised as 127.0.0.1",
)
@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1",
        "http://127.1/",
        "http://１２７.0.0.1/",
        "http://127.0.0.1./",
    ],
)
def test_every_way_to_write_an_ipv4_address_is_seen_through(url: str) -> None:
    place = locate(url)
    assert place
    assert literal(place.host) == "127.0.0.1"


@pytest.mark.parametrize(
    "url", ["ftp://a.example/", "mailto:a@b.example", "http://", "http://256.1.1.1/", "x", "http://a b/"]
)
def test_only_http_urls_lead_anywhere(url: str) -> None:
    assert locate(url) is None


def test_credentials_and_fragments_are_dropped() -> None:
    place = locate("https://me:secret@a.example/x?y=@#z")
    assert place
    assert (place.url, place.host, place.port) == ("https://a.example/x?y=@", "a.example", 443)


@settings(max_examples=50, deadline=None)
@given(st.from_regex(PLAIN, fullmatch=True))
def test_the_short_cut_for_plain_urls_changes_nothing(url: str) -> None:
    quick, full = locate(url), ada_url.URL(url)
    assert quick
    assert (quick.url, quick.host) == (full.href, full.hostname)
    assert quick.port == int(full.port or (443 if url.startswith("https") else 80))


def test_hosts_are_written_as_in_urls() -> None:
    assert host_key("EXAMPLE.org:80") == "example.org:80"
    assert host_key("[::1]:8000") == "[::1]:8000"
    assert host_key("0:0::1") == "[::1]"
    for wrong in ("", "http://a.example/", "a.example/x", "me@a.example", "a b", "a.example:x"):
        with pytest.raises(UsageError, match="not a host"):
            host_key(wrong)


def test_a_host_is_asked_for_once_until_it_expires() -> None:
    async def work() -> None:
        now = 0.0
        resolver = Recorder(a_example=["1.1.1.1"])
        book = AddressBook(resolver, ttl=100, negative_ttl=10, clock=lambda: now)
        answers = await asyncio.gather(*[book.find("a.example", 80) for _ in range(20)])
        assert answers == [Found(("1.1.1.1",))] * 20
        assert (await book.find("b.example", 80)).error == "dns"
        assert (await book.find("b.example", 80)).detail == "b.example does not resolve now: no such host"
        assert resolver.asked == ["a.example", "b.example"]
        now = 11.0
        await book.find("a.example", 80)
        await book.find("b.example", 80)
        assert resolver.asked == ["a.example", "b.example", "b.example"]
        now = 101.0
        await book.find("a.example", 80)
        assert resolver.asked[-1] == "a.example"

    run(work)


def test_the_book_forgets_the_oldest() -> None:
    async def work() -> None:
        resolver = Recorder()
        book = AddressBook(resolver, size=2)
        for host in ("a", "b", "c", "c", "b", "a"):
            await book.find(host, 80)
        assert resolver.asked == ["a", "b", "c", "a"]

    run(work)


def test_who_stops_waiting_takes_nothing_from_the_others() -> None:
    async def work() -> None:
        gate = asyncio.Event()

        class Slow:
            async def resolve(self, _host: str, _port: int) -> list[str]:
                await gate.wait()
                return ["1.1.1.1"]

        book = AddressBook(Slow())
        first, second = (asyncio.create_task(book.find("a.example", 80)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert (await second).addresses == ("1.1.1.1",)

    run(work)


@attack("a name with one public and one private address", area="addresses", must_hold="the host is refused")
def test_one_forbidden_address_refuses_the_host() -> None:
    async def work() -> None:
        book = AddressBook(Recorder(a_example=["1.1.1.1", "10.0.0.1"], b_example=["x"]), allow=["a.example:8080"])
        refused = await book.find("a.example", 80)
        assert refused == Found((), "forbidden-address", "a.example resolves to 10.0.0.1, a private address")
        assert (await book.find("a.example", 8080)).addresses == ("1.1.1.1", "10.0.0.1")
        assert (await book.find("b.example", 80)).error == "forbidden-address"

    run(work)


def test_literal_addresses_are_judged_and_not_looked_up() -> None:
    async def work() -> None:
        resolver = Recorder()
        book = AddressBook(resolver, allow=["127.0.0.1:8000", "::1"])
        assert (await book.find("169.254.169.254", 80)).detail == "169.254.169.254 is a cloud agent address"
        assert (await book.find("[::ffff:a00:1]", 80)).error == "forbidden-address"
        assert (await book.find("127.0.0.1", 80)).error == "forbidden-address"
        assert (await book.find("127.0.0.1", 8000)).addresses == ("127.0.0.1",)
        assert (await book.find("[::1]", 80)).addresses == (str(ip_address("::1")),)
        assert resolver.asked == []

    run(work)


@attack("local names and addresses behind a proxy", area="addresses", must_hold="refused before the proxy is asked")
def test_what_a_proxy_will_look_up_is_judged_by_its_name() -> None:
    book = AddressBook(Recorder(), allow=["localhost:8000"])
    assert book.judge("a.example", 80) == Found()
    assert book.judge("1.1.1.1", 80) == Found()
    for host in ("localhost", "x.localhost.", "10.0.0.1", "[::1]"):
        assert book.judge(host, 80).error == "forbidden-address"
    assert book.judge("localhost", 8000) == Found()


def test_names_that_cannot_be_names_are_failures_to_resolve() -> None:
    async def work() -> None:
        resolver = SystemResolver(threads=1)
        book = AddressBook(resolver)
        assert (await book.find("a" * 64 + ".example", 80)).error == "no-host"
        assert await resolver.resolve("127.0.0.1", 80) == ["127.0.0.1"]
        book.close()
        resolver.close()

    run(work)


def test_an_unknown_name_is_distinguished_from_a_failed_lookup() -> None:
    async def work() -> None:
        unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        later = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        book = AddressBook(Recorder(a_example=unknown, b_example=later, c_example=[]))
        assert (await book.find("a.example", 80)) == Found((), "no-host", "a.example does not resolve (no such host)")
        assert (await book.find("b.example", 80)).error == "dns"
        assert (await book.find("c.example", 80)).error == "no-host"

    asyncio.run(work())
