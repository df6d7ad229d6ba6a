"""Honest and hostile hosts on loopback, each at an address of its own (127.0.1.x, 127.0.2.x) and one port.

Honest hosts serve folders of real pages, and a list of all of them at `/`, which also links to every hostile host.
Linux answers at every address of 127.0.0.0/8; elsewhere they have to be set up first.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from experiments.hostile_hosts import Fault, Talk, robots_404
from experiments.sites import Found, Site, SiteServer
from surveyor.errors import UsageError

HONEST, HOSTILE = "127.0.1.", "127.0.2."
PATIENCE = 30.0  # seconds for one request
FEWEST = 20  # pages of a folder that makes a host


@dataclass
class HonestHost:
    """Real pages: files below a folder, or bodies by path."""

    name: str
    root: Path | None = None
    pages: dict[str, bytes] = field(default_factory=dict)  # by path; of files the bodies are read when asked for


@dataclass
class HostileWeb:
    """The hosts, where they are, and what they were asked for."""

    honest: Sequence[HonestHost]
    faults: Sequence[Fault]
    port: int = 0
    requests: Counter[str] = field(default_factory=Counter)  # by address

    def __post_init__(self) -> None:
        if len(self.honest) > 250 or len(self.faults) > 250:
            raise UsageError("more hosts than addresses", hint="at most 250 of each kind")
        self._files = {
            number: SiteServer([Site("x", host.root, entry=next(iter(host.pages)).lstrip("/"))])
            for number, host in enumerate(self.honest)
            if host.root is not None
        }

    @property
    def addresses(self) -> list[str]:
        """Return the addresses of all hosts, the honest ones first."""
        honest = [f"{HONEST}{number + 1}" for number in range(len(self.honest))]
        return honest + [f"{HOSTILE}{number + 1}" for number in range(len(self.faults))]

    @property
    def seeds(self) -> list[str]:
        """Return where a crawl begins: the lists of the honest hosts."""
        return [f"http://{HONEST}{number + 1}:{self.port}/" for number in range(len(self.honest))]

    def origin(self, fault: int) -> str:
        """Return how the URLs of a hostile host begin."""
        return f"http{'s' * self.faults[fault].secure}://{HOSTILE}{fault + 1}:{self.port}"

    def entry(self, fault: int) -> str:
        """Return the page of a hostile host that honest ones link to."""
        return self.origin(fault) + self.faults[fault].path

    def honest_pages(self) -> set[str]:
        """Return the URLs of all honest pages but for the lists."""
        return {
            f"http://{HONEST}{number + 1}:{self.port}{quote(path)}"
            for number, host in enumerate(self.honest)
            for path in host.pages
        }

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """PageResponse the requests of one connection."""
        address = str(writer.get_extra_info("sockname")[0])
        number = int(address.rpartition(".")[2]) - 1
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ValueError):
            if not address.startswith(HONEST) and self.faults[number].secure:
                await asyncio.wait_for(reader.read(1000), PATIENCE)
                self.requests[address] += 1
                await self.faults[number].answer(Talk("/", "", writer))
            while not writer.is_closing():
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
                self.requests[address] += 1
                words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                if len(words) != 3:
                    break
                talk = Talk(words[1], f"http://{address}:{self.port}", writer)
                if address.startswith(HONEST):
                    await self._honest(number, talk)
                else:
                    fault = self.faults[number]
                    is_robots = talk.target.startswith("/robots.txt")
                    answer = (fault.robots or robots_404) if is_robots else fault.answer
                    await asyncio.wait_for(answer(talk), PATIENCE)
        writer.close()

    async def _honest(self, number: int, talk: Talk) -> None:
        host = self.honest[number]
        if talk.target == "/":
            links = [f"<li><a href='{escape(quote(path))}'>{escape(path)}</a>" for path in host.pages]
            links += [f"<li><a href='{self.entry(fault)}'>{fault}</a>" for fault in range(len(self.faults))]
            await talk.page(f"<title>{escape(host.name)}</title><ul>{''.join(links)}</ul>")
        elif body := host.pages.get(talk.target):
            await talk.page(body)
        else:
            found = self._files[number].find("x.docs.example", talk.target) if number in self._files else Found(404)
            if found.file is None:
                moved = f"Location: {found.target}" if found.target else "X-Found: no"
                await talk.page("", moved, status="301 Moved" if found.target else "404 Not Found")
            else:
                packed = ["Content-Encoding: gzip"] if found.zipped else []
                await talk.page(found.file.read_bytes(), f"Content-Type: {found.kind}", *packed)


def hosts_of_docs(folder: Path, pages: int) -> list[HonestHost]:
    """Return hosts of the documentation packages in a folder, the largest first, until there are enough pages."""
    found = []
    for package in sorted(folder.iterdir()):
        if not package.is_symlink() and package.is_dir():
            files = [file for file in sorted(package.rglob("*.html")) if file.is_file() and not file.is_symlink()]
            if len(files) >= FEWEST:
                names = {f"/{file.relative_to(package).as_posix()}": b"" for file in files}
                found.append(HonestHost(package.name, package, names))
    found.sort(key=lambda host: -len(host.pages))
    chosen: list[HonestHost] = []
    for host in found:
        if sum(len(one.pages) for one in chosen) < pages:
            chosen.append(host)
    return chosen


def host_of_archives(folder: Path) -> HonestHost:
    """Return one host of all HTML pages in the WARC files of a folder."""
    warcio: Any = importlib.import_module("warcio")
    host = HonestHost("archives")
    for path in sorted(folder.rglob("*.warc.gz")):
        with path.open("rb") as file, suppress(warcio.exceptions.ArchiveLoadFailed):
            for record in warcio.ArchiveIterator(file):
                headers = record.http_headers
                if record.rec_type != "response" or not headers or headers.get_statuscode() != "200":
                    continue
                body = record.content_stream().read()
                if body and "html" in (headers.get_header("Content-Type") or ""):
                    host.pages[f"/archived/{len(host.pages)}.html"] = body
    return host


@contextmanager
def serving(web: HostileWeb) -> Iterator[HostileWeb]:
    """Serve the hosts from a thread while the context lasts."""
    loop = asyncio.new_event_loop()
    servers: list[asyncio.Server] = []

    async def start() -> None:
        for address in web.addresses:
            server = await asyncio.start_server(web.handle, address, web.port, backlog=256, limit=1 << 18)
            web.port = server.sockets[0].getsockname()[1]  # that of the first is free at the other addresses too
            servers.append(server)

    async def stop() -> None:
        for server in servers:
            server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    loop.run_until_complete(start())
    for number, fault in enumerate(web.faults):
        if fault.prepare is not None:
            fault.prepare(web.origin(number))
    thread = threading.Thread(target=loop.run_forever, name="hostile-web", daemon=True)
    thread.start()
    try:
        yield web
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
