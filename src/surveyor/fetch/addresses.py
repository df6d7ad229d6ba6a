"""Resolve hosts and check their addresses (protection against SSRF).

A page may link or redirect to `http://169.254.169.254/` or to a name that resolves to `10.0.0.1`. Therefore each host
is resolved once, every address is checked, and connections are made only to those addresses, never to the result of a
second lookup (DNS rebinding).

    >>> forbidden("10.1.2.3"), forbidden("::ffff:169.254.169.254"), forbidden("93.184.215.14")
    ('private', 'cloud agent', '')

All addresses that are not globally reachable are refused, and so are cloud agents (tables: `special_addresses.py`) and
IPv6 addresses that embed such an IPv4 address (NAT64, ISATAP, …). One refused address among several refuses the host:
no legitimate host mixes them. Hosts that the user allows (`allow`, "host" or "host:port") are not checked.

`AddressBook` caches results and failures for a limited time and sends one query for concurrent requests for the same
host. The `Resolver` is an argument.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Literal, NamedTuple, Protocol

import ada_url

from surveyor.errors import UsageError
from surveyor.fetch import special_addresses as special

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NETWORKS_4 = [
    (ipaddress.IPv4Network(block.network), block.kind)
    for block in (*special.CLOUDS, *special.IPV4)
    if "." in block.network and not block.reachable
]
NETWORKS_6 = [
    (ipaddress.IPv6Network(block.network), block.kind)
    for block in (*special.CLOUDS, *special.IPV6)
    if ":" in block.network and not block.reachable
]
CARRIERS = [(ipaddress.IPv6Network(network), behind) for network, behind in special.CARRIERS]
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
GLOBAL_6 = ipaddress.IPv6Network(special.GLOBAL_6)
NO_HOST = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}  # permanent errors
OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
PLAIN = re.compile(  # URLs certainly in WHATWG form: most are, and parsing takes 30 µs
    rf"(https?)://((?:(?!xn--)[a-z0-9-]+\.)*(?!xn--)[a-z][a-z0-9-]*|{OCTET}\.{OCTET}\.{OCTET}\.{OCTET})"
    r"(?::([1-9]\d{3}|[1-5]\d{4}))?(?!.*(?:/\.|%2[Ee]))/[A-Za-z0-9/._~!$&()*+,;=:@%?-]*",
    re.ASCII,
)
LOCAL_LOOKUP = 2.0  # timeout in seconds of a local lookup when a proxy is used


def forbidden(text: str) -> str:
    """Return the kind of network for which an address is refused; empty if it is public."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "unreadable"
    return _kind_4(address) if isinstance(address, ipaddress.IPv4Address) else _kind_6(address)


def _kind_4(address: ipaddress.IPv4Address) -> str:
    return next((kind for network, kind in NETWORKS_4 if address in network), "")


def _kind_6(address: ipaddress.IPv6Address) -> str:
    for network, behind in CARRIERS:
        if address in network and (kind := _kind_4(ipaddress.IPv4Address(int(address) >> behind & 0xFFFFFFFF))):
            return "loopback" if int(address) == 1 else kind
    if kind := next((kind for network, kind in NETWORKS_6 if address in network), ""):
        return kind
    if address in NAT64:
        return ""
    if address not in GLOBAL_6:
        return "reserved"
    if int(address) >> 32 & 0xFFFFFFFF in special.ISATAP:
        return _kind_4(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return ""


def literal(host: str) -> str:
    """Return the host of a URL as an IP address; empty if it is a name."""
    text = host[1:-1] if host.startswith("[") else host
    if not (text[-1:].isdigit() or ":" in text):  # fast path for names
        return ""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class Place:
    """A URL that can be requested: without credentials and fragment, its host in WHATWG form."""

    url: str
    host: str
    port: int


def locate(url: str, base: str | None = None) -> Place | None:
    """Parse a URL into a `Place`; return None if it is not a URL of http or https.

    >>> locate("HTTP://me:secret@0x7f.1:80/a b#c")
    Place(url='http://127.0.0.1/a%20b', host='127.0.0.1', port=80)
    """
    if base is None and (plain := PLAIN.fullmatch(url)):
        scheme, host, port = plain.groups()
        return Place(url, host, int(port) if port else 443 if scheme == "https" else 80)
    try:
        found = ada_url.URL(url, base) if base else ada_url.URL(url)
        if found.protocol not in ("http:", "https:") or not found.hostname:
            return None
        if "@" in found.href or "#" in found.href:
            found.username = found.password = found.hash = ""
        port = int(found.port) if found.port else 443 if found.protocol == "https:" else 80
        return Place(found.href, found.hostname, port)
    except (ValueError, UnicodeError):
        return None


def host_key(entry: str) -> str:
    """Normalise "host" or "host:port" to the form of hosts in URLs.

    >>> host_key("Bücher.example:8080"), host_key("::1"), host_key("127.1")
    ('xn--bcher-kva.example:8080', '[::1]', '127.0.0.1')
    """
    found = re.fullmatch(r"(.*?)(?::([0-9]{1,5}))?", entry.strip()) if entry.count(":") < 2 or "]" in entry else None
    host, port = (found[1], found[2]) if found else (f"[{entry.strip()}]", None)
    try:
        name = ada_url.URL(f"http://{host}/")
    except ValueError:
        name = None
    if name is None or name.host != name.hostname or name.username or name.pathname != "/" or name.search or name.hash:
        raise UsageError(f"{entry!r} is not a host", hint='write "host" or "host:port", such as "localhost:8000"')
    return name.hostname if port is None else f"{name.hostname}:{int(port)}"


class Resolver(Protocol):
    """Resolves a host name to addresses."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host; raise OSError if the lookup fails."""


class SystemResolver:
    """Resolves with `getaddrinfo` in its own threads: slow names would soon occupy all threads of the event loop.

    A lookup cannot be interrupted. The threads are daemons, so that a hanging lookup does not delay the exit of the
    process (a `ThreadPoolExecutor` joins its threads at exit).
    """

    def __init__(self, threads: int = 16) -> None:
        self._most = threads
        self._threads: list[Thread] = []
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._open = 0  # lookups in progress or waiting

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host in the order of preference of the system."""
        loop = asyncio.get_running_loop()
        job = _Job(loop, loop.create_future(), host, port)
        self._open += 1
        if len(self._threads) < min(self._most, self._open):
            self._threads.append(Thread(target=_work, args=(self._jobs,), name="resolve", daemon=True))
            self._threads[-1].start()
        self._jobs.put(job)
        try:
            return await job.answer
        finally:
            self._open -= 1

    def close(self) -> None:
        """Stop the threads, each after its current lookup."""
        for _ in self._threads:
            self._jobs.put(None)


class _Job(NamedTuple):
    """A host to look up, and the future for the result."""

    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[list[str]]
    host: str
    port: int


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    """Look up hosts from a queue until it returns None."""
    while (job := jobs.get()) is not None:
        if job.answer.cancelled():
            continue
        answer: list[str] | Exception
        try:
            answer = list(dict.fromkeys(str(entry[4][0]) for entry in _ask_system(job.host, job.port)))
        except Exception as error:  # passed on to the caller
            answer = error
        with suppress(RuntimeError):  # the event loop is closed
            job.loop.call_soon_threadsafe(_settle, job.answer, answer)


def _settle(future: asyncio.Future[list[str]], answer: list[str] | Exception) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _ask_system(host: str, port: int) -> list[tuple[object, object, object, object, tuple[object, ...]]]:
    return [(*entry,) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@dataclass(frozen=True, slots=True)
class Found:
    """The addresses of a host, or the error if there are none that may be used."""

    addresses: tuple[str, ...] = ()
    error: Literal["", "dns", "no-host", "forbidden-address"] = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    found: Found
    verdict: str  # why the host is refused unless it is allowed; empty if it is not
    until: float


class AddressBook:
    """A cache of resolved and checked hosts."""

    def __init__(
        self,
        resolver: Resolver,
        *,
        allow: Iterable[str] = (),
        ttl: float = 300.0,
        negative_ttl: float = 30.0,
        size: int = 100_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._resolver, self._allow = resolver, frozenset(map(host_key, allow))
        self._ttl, self._negative_ttl, self._size, self._clock = ttl, negative_ttl, size, clock
        self._known: dict[str, _Known] = {}  # oldest first
        self._asked: dict[str, asyncio.Task[_Known]] = {}

    def allows(self, host: str, port: int) -> bool:
        """Return whether the user allows this host, whatever it resolves to."""
        return host in self._allow or f"{host}:{port}" in self._allow

    async def find(self, host: str, port: int) -> Found:
        """Resolve the host of a URL and check all its addresses."""
        if by_name := self._refused_by_name(host, port):
            return by_name
        known = await self._know(host, port)
        if known.verdict and not self.allows(host, port):
            return Found((), "forbidden-address", f"{host} {known.verdict}")
        return known.found

    def judge(self, host: str, port: int) -> Found:
        """Check a host that a proxy will resolve, by its name alone: an IP address, or a name of this machine."""
        if by_name := self._refused_by_name(host, port):
            return by_name
        is_local = _is_localhost(host)
        address = literal(host) or ("127.0.0.1" if is_local else "")
        verdict = _verdict([address], is_literal=not is_local) if address else ""
        if verdict and not self.allows(host, port):
            return Found((), "forbidden-address", f"{host} {verdict}")
        return Found()

    async def judge_behind_proxy(self, host: str, port: int) -> Found:
        """Check a host that a proxy will resolve, by its name and by the addresses that it resolves to locally.

        A host that does not resolve locally within `LOCAL_LOOKUP` is left to the proxy. Reserved names
        (`special_addresses.UNRESOLVED`) are not looked up, so that no useless query leaves the machine.
        """
        judged = self.judge(host, port)
        is_name = not literal(host) and not _is_localhost(host) and _top_level(host) not in special.UNRESOLVED
        if judged.error or not is_name or self.allows(host, port):
            return judged
        try:
            async with asyncio.timeout(LOCAL_LOOKUP):
                verdict = (await self._know(host, port)).verdict
        except TimeoutError:
            return judged
        return Found((), "forbidden-address", f"{host} {verdict}") if verdict else judged

    def _refused_by_name(self, host: str, port: int) -> Found | None:
        cloud = special.METADATA_NAMES.get(host.rstrip("."))
        if cloud is None or self.allows(host, port):
            return None
        return Found((), "forbidden-address", f"{host} is the address of a metadata service ({cloud})")

    async def find_any(self, host: str, port: int) -> Found:
        """Resolve a host that the user chose, such as a proxy, without a check."""
        return (await self._know(host, port)).found

    def close(self) -> None:
        """Cancel the lookups in progress."""
        for task in self._asked.values():
            task.cancel()

    async def _know(self, host: str, port: int) -> _Known:
        known = self._known.get(host)
        if known is not None and self._clock() < known.until:
            return known
        task = self._asked.get(host)
        if task is None:
            task = self._asked[host] = asyncio.create_task(self._ask(host, port))
            task.add_done_callback(lambda _: self._asked.pop(host, None))
        return await asyncio.shield(task)  # a cancelled caller must not cancel the lookup for others

    async def _ask(self, host: str, port: int) -> _Known:
        address = literal(host)
        try:
            answer = [address] if address else await self._resolver.resolve(host, port)
            kind, problem = _failure(None) if not answer else ("dns", "")
        except (OSError, UnicodeError) as error:  # a label that is too long raises UnicodeError
            answer, (kind, problem) = [], _failure(error)
        if problem:
            known = _Known(Found((), kind, f"{host} {problem}"), "", self._clock() + self._negative_ttl)
        else:
            found = Found(tuple(answer))
            known = _Known(found, _verdict(answer, is_literal=bool(address)), self._clock() + self._ttl)
        self._known.pop(host, None)
        self._known[host] = known
        if len(self._known) > self._size:
            del self._known[next(iter(self._known))]
        return known


def named_entry(url: str) -> str:
    """Return the `allow` entry ("host:port") that a seed URL implies; empty unless its host is written as a local one.

    A name that resolves to a private address implies none: its owner, not the user, controls what it resolves to.

    >>> named_entry("http://localhost:8000/a"), named_entry("https://[::1]/"), named_entry("http://192.168.1.5/")
    ('localhost:8000', '[::1]:443', '192.168.1.5:80')
    >>> named_entry("http://169.254.169.254/"), named_entry("https://example.org/")
    ('', '')
    """
    place = locate(url)
    if place is None:
        return ""
    address = literal(place.host)
    is_local = forbidden(address) in special.NAMED_KINDS if address else _is_localhost(place.host)
    return f"{place.host}:{place.port}" if is_local else ""


def _is_localhost(host: str) -> bool:
    return _top_level(host) == special.LOCALHOST


def _top_level(host: str) -> str:
    return host.rstrip(".").rpartition(".")[2].lower()


def _failure(error: Exception | None) -> tuple[Literal["dns", "no-host"], str]:
    """Return the error and its text for a failed lookup: no such host, or a temporary failure."""
    if error is None or isinstance(error, UnicodeError) or getattr(error, "errno", None) in NO_HOST:
        return "no-host", "does not resolve (no such host)"
    return "dns", f"does not resolve now: {error}"


def _verdict(addresses: list[str], *, is_literal: bool) -> str:
    for address in addresses:
        if kind := forbidden(address):
            an = f"a{'n' * (kind[0] in 'aeiou')} {kind} address"
            return f"is {an}" if is_literal else f"resolves to {address}, {an}"
    return ""
