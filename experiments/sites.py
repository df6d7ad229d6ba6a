"""Real sites on loopback: folders of HTML files, each served over HTTP/1.1 under a host of its own.

What a web server does with files is done here too: a folder is its `index.html`; a folder without the slash at its
end moves there (301), keeping its query; what is not there is 404, and so is a folder without an `index.html`. Content
types follow from endings. `a.html` may lie there as `a.html.gz` only, and is then sent as gzip. Symbolic links are
followed as long as they lead to places inside the root. A query changes nothing but the URL.

    >>> from tempfile import TemporaryDirectory
    >>> from urllib.request import ProxyHandler, build_opener
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "index.html").write_text("<h1>Hello</h1>")
    ...     with serving([Site("docs", Path(folder))]) as web:
    ...         opener = build_opener(ProxyHandler({"http": f"http://127.0.0.1:{web.port}"}))
    ...         answer = opener.open(web.entry("docs"), timeout=10)
    ...         answer.status, answer.headers["Content-Type"], answer.read()
    (200, 'text/html', b'<h1>Hello</h1>')
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from mimetypes import MimeTypes
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from surveyor.errors import UsageError
from surveyor.testing.web_server import LOOPBACK, Connection, HttpRequest, HttpResponse, LoopbackResolver, head_of

INDEX = "index.html"
TYPES = MimeTypes()  # what Python knows by itself: the same on every machine


@dataclass(frozen=True, slots=True)
class Site:
    """A folder of files, and the page at which readers come in."""

    name: str
    root: Path
    entry: str = INDEX  # a path below the root

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.root.resolve())
        if not (self.root / self.entry).is_file():
            hint = f"say where readers come in: {self.name}={self.root}:start.html"
            raise UsageError(f"the site {self.name} has no {self.entry}", hint=hint)

    @property
    def host(self) -> str:
        """The name under which it is served."""
        return f"{self.name}.docs.example"

    @classmethod
    def read(cls, text: str) -> Site:
        """Read `name=folder` or `name=folder:entry`."""
        name, equals, rest = text.partition("=")
        if not equals or not name.replace("-", "").isalnum() or not name.isascii():
            raise UsageError(f"{text!r} is not a site", hint="write name=folder, or name=folder:start.html")
        folder, colon, entry = rest.partition(":")
        return cls(name.lower(), Path(folder), entry if colon else INDEX)


class Found(NamedTuple):
    """What a server has to say about a path."""

    status: int  # 200, 301 or 404
    file: Path | None = None
    kind: str = ""  # content type
    zipped: bool = False
    target: str = ""  # path and query, of a redirect


class SiteServer:
    """Answers for several sites; counts the answers of each by status."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.sites = {site.host: site for site in sites}
        if len(self.sites) < len(sites):
            raise UsageError("two sites have the same name", hint="the name is the host")
        self.resolver = LoopbackResolver(list(self.sites))
        self.port = 0  # known when it is served
        self.answers: dict[str, Counter[int]] = {host: Counter() for host in self.sites}

    def origin(self, host: str) -> str:
        """Return how all URLs of a host begin, without the slash."""
        return f"http://{host}:{self.port}"

    def entry(self, name: str) -> str:
        """Return the URL at which readers of a site come in."""
        site = next(site for site in self.sites.values() if site.name == name)
        path = site.entry.removesuffix(INDEX) if site.entry == INDEX else site.entry
        return f"{self.origin(site.host)}/{quote(path)}"

    def find(self, host: str, target: str) -> Found:
        """Look up what is served for a path with its query."""
        path, mark, query = target.partition("?")
        root = self.sites[host].root
        name = unquote(path, errors="surrogateescape")
        if "\0" in name or ".." in name.split("/") or "//" in name:
            return Found(404)
        file = root / name.lstrip("/")
        if _is_inside(file, root) and file.is_dir():
            if not name.endswith("/"):
                return Found(301, target=f"{path}/{mark}{query}")
            file /= INDEX
        elif name.endswith("/"):
            return Found(404)
        kind, encoding = TYPES.guess_type(file.name)
        kind = "application/octet-stream" if encoding or not kind else kind
        if _is_inside(file, root) and file.is_file():
            return Found(200, file, kind)
        packed = file.with_name(f"{file.name}.gz")
        if _is_inside(packed, root) and packed.is_file():
            return Found(200, packed, kind, zipped=True)
        return Found(404)

    def answer(self, asked: HttpRequest) -> HttpResponse:
        """PageResponse a request."""
        if asked.host not in self.sites:
            return HttpResponse(421, head_of(421, 0))
        found = self.find(asked.host, asked.target)
        self.answers[asked.host][found.status] += 1
        if found.file is None:
            body = f"<!DOCTYPE html><title>{found.status}</title>\n".encode()
            location = self.origin(asked.host) + found.target if found.target else ""
            head = head_of(found.status, len(body), ("Content-Type", "text/html"), ("Location", location))
            return HttpResponse(found.status, head, body)
        body = found.file.read_bytes()
        encoding = "gzip" if found.zipped else ""
        return HttpResponse(
            200, head_of(200, len(body), ("Content-Type", found.kind), ("Content-Encoding", encoding)), body
        )


def _is_inside(file: Path, root: Path) -> bool:
    """Say whether there is such a file and no symbolic link leads out of the root."""
    try:
        return file.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError, ValueError):  # not there, a circle of links, no name for a file
        return False


@contextmanager
def serving(sites: Sequence[Site], *, port: int = 0) -> Iterator[SiteServer]:
    """Serve sites from a thread while the context lasts."""
    web = SiteServer(sites)
    connections: set[Connection] = set()
    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(
        loop.create_server(lambda: Connection(web.answer, connections), LOOPBACK, port, backlog=1024)
    )
    web.port = listening.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, name="sites", daemon=True)
    thread.start()
    try:
        yield web
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        listening.close()
        for connection in list(connections):
            connection.drop()
        loop.run_until_complete(listening.wait_closed())
        loop.run_until_complete(asyncio.sleep(0))  # lets the connections notice
        loop.close()
