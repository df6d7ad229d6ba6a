"""Pages of `surveyor serve` over a large survey: their time over HTTP, beside datasette; and a crawl that many follow.

    python -m benchmarks.view --pages 1000000 --survey DIR                         (makes a survey; several minutes)
    python -m benchmarks.serve --survey DIR [--requests 100] [--datasette PROGRAM]
    python -m benchmarks.serve --streams 200 [--pages 3000] [--rounds 5]

The first form asks for every page with random arguments, in random order, one request at a time, and prints median and
99th percentile of the time until the last byte, the CPU time of the server per request, and its memory. With datasette
(the program of a virtual environment of its own), the pages that both have are asked for in turn, on the same
`pages.sqlite`. The second form crawls a generated site from memory at full speed, with and without event streams on its
overview in turn, and prints the ratios of the times. All servers listen on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from benchmarks import memory
from benchmarks.publishing import HOST, Memory
from benchmarks.table import markdown
from benchmarks.view import WORDS
from surveyor.config import Settings
from surveyor.crawler import session
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import start
from surveyor.serve.view.schema import FACETS, SORTS
from surveyor.serve.views.sql import EXAMPLES
from surveyor.stopping import Pages

TICK = os.sysconf("SC_CLK_TCK")
SLICE = "select * from pages where id >"
IDLE = 2.0  # seconds after which a server may have closed a connection
PATIENCE = 1800.0  # seconds for the tables of a large survey
Make = Callable[[], str]


class Timed(NamedTuple):
    """The requests for one kind of page."""

    seconds: list[float]
    cpu: list[float]
    statuses: list[int]


class Server:
    """A server process and a connection to it."""

    def __init__(self, command: list[str], cwd: Path, address: str = "") -> None:
        """Start it; without an address, it prints its own."""
        pipe = subprocess.DEVNULL if address else subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        if not address and self.process.stdout is not None:
            address = self.process.stdout.readline().strip()
        self.address = urlsplit(address)
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def get(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body of a response."""
        if self._connection is None or time.monotonic() - self._used_at > IDLE:
            self._connection = http.client.HTTPConnection(self.address.hostname or "", self.address.port, timeout=120)
        try:
            self._connection.request("GET", path)
            answer = self._connection.getresponse()
            body = answer.read()
            self._used_at = time.monotonic()
            return answer.status, body
        except (OSError, http.client.HTTPException):
            self._connection = None
            raise

    def wait(self, path: str) -> None:
        """Wait until a page is there."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.get(path)[0] == 200:
                    return
            time.sleep(0.5)
        raise TimeoutError(f"{path} was not there within {PATIENCE:.0f} s")

    @property
    def cpu(self) -> float:
        """CPU time of the process itself, in seconds."""
        return self._times(11)

    @property
    def children(self) -> float:
        """CPU time of the processes that it started and that have ended, in seconds."""
        return self._times(13)

    def _times(self, first: int) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[first]) + int(fields[first + 1])) / TICK

    def memory(self, field: str) -> float:
        """Return one of the sizes in /proc/PID/status, in MB."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text("utf-8").splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024 / memory.MB
        return 0.0

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def surveyor(*surveys: Path) -> Iterator[Server]:
    """Run `surveyor serve`."""
    words = [sys.executable, "-m", "surveyor", "serve", "--port", "0", *map(str, surveys)]
    server = Server(words, Path.cwd())
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def datasette(program: str, database: Path) -> Iterator[Server]:
    """Run datasette on a database that does not change."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    limits = ["--setting", "sql_time_limit_ms", "20000", "--setting", "facet_time_limit_ms", "20000"]
    words = [program, "serve", "-i", str(database), "--host", "127.0.0.1", "--port", str(port), *limits]
    server = Server(words, database.parent, f"http://127.0.0.1:{port}/")
    try:
        yield server
    finally:
        server.close()


def pages_of(server: Server, name: str, draw: random.Random) -> dict[str, Make]:
    """Return for every page a function that draws its address."""
    root = f"/s/{name}"
    total = json.loads(server.get(f"{root}/pages.json?limit=1")[1])["total"]
    known = [json.loads(server.get(f"{root}/page.json?id={draw.randrange(total)}")[1])["page"] for _ in range(30)]
    hosts = [page["host"] for page in known]
    roots = ["/".join(page["url"].split("/")[:3]) + "/" for page in known]
    facets = json.loads(server.get(f"{root}/pages.json?limit=1")[1])["facets"]
    sorts = list(SORTS["pages"])

    def some(path: str, **parameters: Callable[[], object]) -> Make:
        return lambda: f"{root}/{path}?{urlencode({key: value() for key, value in parameters.items()})}"

    def facet() -> str:
        kind = draw.choice([kind for kind in FACETS if facets.get(kind)])
        value = draw.choice(facets[kind])["value"]
        return f"{kind}={quote('none' if value is None else str(value))}"

    def following() -> str:
        sort = draw.choice(sorts)
        after = ""
        for _ in range(3):
            after = json.loads(server.get(f"{root}/pages.json?sort={sort}&after={quote(after)}")[1])["next"]
        return f"{root}/pages?sort={sort}&after={quote(after)}"

    def word() -> str:
        return f"{draw.choice(WORDS)} {draw.choice(WORDS)}" if draw.random() < 0.5 else draw.choice(WORDS)

    return {
        "surveys": lambda: "/",
        "start": lambda: "/start",
        "overview": lambda: f"{root}/",
        "pages": lambda: f"{root}/pages",
        "pages, any order": some("pages", sort=lambda: draw.choice(sorts), order=lambda: draw.choice(("up", "down"))),
        "pages, one filter": lambda: f"{root}/pages?{facet()}",
        "pages, two filters and an order": lambda: f"{root}/pages?{facet()}&{facet()}&sort={draw.choice(sorts)}",
        "pages, text": some("pages", text=word),
        "pages of a host, text": some("pages", text=word, host=lambda: draw.choice(hosts)),
        "pages, fourth part of any order": following,
        "page": some("page", id=lambda: draw.randrange(total)),
        "page, random": some("page", random=lambda: 1),
        "map": lambda: f"{root}/map",
        "map, a host": some("map", prefix=lambda: draw.choice(roots)),
        "hosts": some("hosts", sort=lambda: draw.choice(list(SORTS["hosts"]))),
        "hosts, text": some("hosts", text=lambda: draw.choice(hosts)[:6]),
        "domains": some("hosts", level=lambda: "domains"),
        "blocked": lambda: f"{root}/blocked",
        "frontier": lambda: f"{root}/blocked?show=frontier",
        **{view: some(view) for view in ("fix", "community", "sample", "freshness", "compare", "settings")},
        "SQL": some("sql", q=lambda: f"{SLICE} {draw.randrange(total)} limit 100"),
        "SQL, examples": some("sql", q=lambda: draw.choice(list(EXAMPLES.values()))),
    }


def measure(server: Server, makes: dict[str, Make], requests: int, draw: random.Random) -> dict[str, Timed]:
    """Ask for every page that often, in random order; the first request of each is not counted."""
    found: dict[str, Timed] = defaultdict(lambda: Timed([], [], []))
    for make in makes.values():
        server.get(make())
    turns = [name for name in makes for _ in range(requests)]
    draw.shuffle(turns)
    for name in turns:
        path = makes[name]()
        cpu, began = server.cpu, time.perf_counter()
        status, _ = server.get(path)
        found[name].seconds.append(time.perf_counter() - began)
        found[name].cpu.append(server.cpu - cpu)
        found[name].statuses.append(status)
    return {name: found[name] for name in makes}


def row(name: str, timed: Timed) -> tuple[str, ...]:
    """Return a row of the table of pages."""
    ordered = sorted(timed.seconds)
    late = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    bad = sum(status != 200 for status in timed.statuses)
    return (
        name,
        f"{1000 * statistics.median(ordered):.0f} ms",
        f"{1000 * late:.0f} ms",
        f"{1000 * statistics.fmean(timed.cpu):.0f} ms",
        f"{bad} not 200" if bad else "",
    )


def time_pages(folder: Path, requests: int, seed: int) -> None:
    """Print the table of all pages of a survey."""
    draw = random.Random(seed)  # noqa: S311
    with surveyor(folder) as server:
        listed = json.loads(server.get("/surveys.json")[1])
        name = listed["surveys"][0]["name"]
        server.wait(f"/s/{name}/pages.json?limit=1")
        before = server.memory("VmRSS")
        found = measure(server, pages_of(server, name, draw), requests, draw)
        rows = [row(page, timed) for page, timed in found.items()]
        print(markdown((f"page, {requests} requests each", "median", "99 %", "CPU", ""), rows))
        every = Timed([], [], [])
        for one in found.values():
            every.seconds.extend(one.seconds)
            every.cpu.extend(one.cpu)
            every.statuses.extend(one.statuses)
        print("\n" + " | ".join(row("all", every)))
        sizes = {field: server.memory(field) for field in ("VmHWM", "VmRSS", "RssAnon", "RssFile")}
        print(
            f"memory: {before:.0f} MB before, then " + ", ".join(f"{key} {size:.0f} MB" for key, size in sizes.items())
        )


def compare(folder: Path, program: str, requests: int, seed: int) -> None:
    """Print the pages that datasette has too, asked for in turn."""
    draw = random.Random(seed)  # noqa: S311
    database = sorted((folder / "view").glob("**/pages.sqlite"))[-1]
    with surveyor(folder) as ours, datasette(program, database) as theirs:
        name = json.loads(ours.get("/surveys.json")[1])["surveys"][0]["name"]
        ours.wait(f"/s/{name}/pages.json?limit=1")
        theirs.wait("/pages.json")
        total = json.loads(ours.get(f"/s/{name}/pages.json?limit=1")[1])["total"]
        hosts = [one["host"] for one in json.loads(ours.get(f"/s/{name}/hosts.json")[1])["rows"]]

        def both(our: str, their: str) -> tuple[str, str]:
            return f"/s/{name}/{our}", f"/pages/{their}"

        def host() -> tuple[str, str]:
            chosen = quote(draw.choice(hosts))
            return both(f"pages?host={chosen}", f"pages?host={chosen}&_sort_desc=share&_size=50&_facet=status")

        def word() -> tuple[str, str]:
            chosen = draw.choice(WORDS)
            return both(
                f"pages?text={chosen}", f"pages?title__contains={chosen}&_sort_desc=share&_size=50&_facet=status"
            )

        def page() -> tuple[str, str]:
            chosen = draw.randrange(total)
            return both(f"page?id={chosen}", f"pages/{chosen}")

        def sql() -> tuple[str, str]:
            query = quote(draw.choice(list(EXAMPLES.values())))
            return f"/s/{name}/sql?q={query}", f"/pages.json?sql={query}"

        kinds: dict[str, Callable[[], tuple[str, str]]] = {
            "pages by share, counts by status": lambda: both("pages", "pages?_sort_desc=share&_size=50&_facet=status"),
            "pages of a host by share": host,
            "pages whose title has a word": word,
            "one page (ours with its links)": page,
            "hosts by share": lambda: both("hosts", "hosts?_sort_desc=share&_size=50"),
            "SQL examples": sql,
        }
        rows = []
        for kind, make in kinds.items():
            timed: tuple[list[float], list[float]] = ([], [])
            bad = [0, 0]
            for turn in range(requests + 1):
                paths = make()
                for side in (0, 1) if turn % 2 else (1, 0):
                    began = time.perf_counter()
                    status, _ = (ours, theirs)[side].get(paths[side])
                    if turn:  # the first is not counted
                        timed[side].append(time.perf_counter() - began)
                        bad[side] += status != 200
            medians = [statistics.median(times) for times in timed]
            said = ", ".join(f"{who} {n} not 200" for who, n in zip(("ours", "datasette"), bad, strict=True) if n)
            rows.append(
                (kind, *(f"{1000 * value:.0f} ms" for value in medians), f"{medians[1] / medians[0]:.1f}", said)
            )
        print(markdown((f"{requests} requests each, in turn", "surveyor", "datasette", "ratio", ""), rows))
        print(f"memory: surveyor {ours.memory('VmHWM'):.0f} MB, datasette {theirs.memory('VmHWM'):.0f} MB")


class Followers:
    """Readers of an event stream, in a thread."""

    def __init__(self, server: Server, path: str, number: int) -> None:
        self._sockets = [self._open(server, path) for _ in range(number)]
        self.received, self._ends = 0, False
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    @staticmethod
    def _open(server: Server, path: str) -> socket.socket:
        made = socket.create_connection((server.address.hostname or "", server.address.port or 0))
        made.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.address.netloc}\r\n\r\n".encode())
        return made

    def _read(self) -> None:
        import selectors

        with selectors.DefaultSelector() as ready:
            for one in self._sockets:
                ready.register(one, selectors.EVENT_READ)
            while not self._ends:
                for key, _ in ready.select(0.2):
                    block = os.read(key.fd, 1 << 16)
                    self.received += len(block)
                    if not block:
                        ready.unregister(key.fileobj)

    def close(self) -> None:
        self._ends = True
        self._thread.join()
        for one in self._sockets:
            one.close()


def crawl(folder: Path, pages: int) -> None:
    """Crawl from memory, as a process of its own; print wall and CPU time."""
    client = Memory(pages)
    settings = Settings(contact="me@example.org", delay=0.0, archive=False, rng=1)
    survey, chosen = start(folder, [HOST + client.site.paths[0]], settings, {})
    with survey:
        began, cpu = time.monotonic(), os.times()
        asyncio.run(session.run(survey, chosen, Pages(pages), connection=Connection(client=client)))
        used = sum(os.times()[:4]) - sum(cpu[:4])
        print(json.dumps({"seconds": time.monotonic() - began, "cpu": used}))


def stream(streams: int, pages: int, rounds: int) -> None:
    """Print how much longer a crawl takes that so many event streams follow."""
    found: dict[int, list[dict[str, float]]] = {0: [], 1: [], streams: []}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        with surveyor(root) as server:
            for turn in range(-1, rounds):
                for number in list(found) if turn % 2 else [*reversed(found)]:
                    one = followed(root, server, number, pages, f"{turn + 1}-{number}")
                    if turn >= 0:  # the first compiles kernels
                        found[number].append(one)
    rows = []
    for what in ("seconds", "cpu", "server cpu", "tables cpu", "received"):
        values = {number: [one[what] for one in runs] for number, runs in found.items()}
        cells = [f"{statistics.median(ones):.2f}" for ones in values.values()]
        ratios = [b / a for a, b in zip(values[0], values[streams], strict=True) if a]
        known = what in ("seconds", "cpu") and ratios
        cells.append(f"{statistics.median(ratios):.3f} ({min(ratios):.3f}–{max(ratios):.3f})" if known else "")
        rows.append((what, *cells))
    header = (
        f"crawl of {pages:,} pages, {rounds} rounds",
        "no stream",
        "1 stream",
        f"{streams} streams",
        "ratio to none",
    )
    print(markdown(header, rows))
    print(f"load of this machine: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}")


def followed(root: Path, server: Server, streams: int, pages: int, name: str) -> dict[str, float]:
    """Run one crawl with so many streams; return its times, and those of the server."""
    folder = root / f"{name}.survey"
    words = [sys.executable, "-m", "benchmarks.serve", "--crawl", str(folder), "--pages", str(pages)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    server.wait(f"/s/{name}/overview.json")
    cpu, children = server.cpu, server.children
    followers = Followers(server, f"/s/{name}/events", streams)
    said, _ = child.communicate()
    used, built = server.cpu - cpu, server.children - children
    followers.close()
    return {**json.loads(said), "server cpu": used, "tables cpu": built, "received": followers.received / memory.MB}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.serve", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--survey", type=Path)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--datasette", metavar="PROGRAM")
    parser.add_argument("--rng", type=int, default=7)
    parser.add_argument("--streams", type=int)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--crawl", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.crawl:
        crawl(options.crawl, options.pages)
        return
    print(f"load of this machine: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}")
    if options.survey and options.datasette:
        compare(options.survey, options.datasette, options.requests, options.rng)
    elif options.survey:
        time_pages(options.survey, options.requests, options.rng)
    if options.streams:
        stream(options.streams, options.pages, options.rounds)


if __name__ == "__main__":
    main()
