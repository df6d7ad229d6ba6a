"""Watch three changing hosts over loopback HTTP, with kills, clock jumps, a vanishing host and lying ETags.

    python -m experiments.watch_live --minutes 30

The server, in this process, has one address per host: an honest one, one whose ETags never change, and one that stops
listening for a quarter of the time. `surveyor watch` runs as a process of its own; it is killed (SIGKILL) and started
again; its wall clock jumps by a day or an hour while it runs. A table of verdicts follows, from the log of the server
and the journal; the exit code is 1 if one fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surveyor.store.journal import Journal
from surveyor.testing.web_server import Connection, HttpRequest, HttpResponse, head_of

HONEST, LYING, VANISHING = "127.0.0.1", "127.0.0.2", "127.0.0.3"
DELAY = 0.2  # seconds
SLACK = 0.02  # seconds: the server sees a request later than the client sends it
RATE_PER_SECOND = 1.0  # requests, of the budget
BURST_SHARE = 144  # of the requests of a day that may come at once
LAUNCH = """
import pathlib, time
real, place = time.time, pathlib.Path({place!r})
time.time = lambda: real() + float(place.read_text())
from surveyor.cli import main
main()
"""


class Sent(NamedTuple):
    """A request as the server saw it; version -1: no page."""

    host: str
    path: str
    at: float  # of a monotonic clock
    status: int
    conditional: bool
    version: int


@dataclass
class Site:
    """A host whose pages change at random times."""

    host: str
    pages: int
    fastest: float  # mean seconds between two changes of the first page
    slowest: float
    seed: int
    began: float = field(default_factory=time.monotonic)
    log: list[Sent] = field(default_factory=list)
    server: asyncio.Server | None = None
    port: int = 0
    connections: set[Connection] = field(default_factory=set)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        means = np.geomspace(self.fastest, self.slowest, self.pages)
        self._changes = [np.cumsum(rng.exponential(mean, 10 + int(2e4 / mean))) for mean in means]

    def version(self, page: int) -> int:
        """Return the version of a page now."""
        return int(np.searchsorted(self._changes[page], time.monotonic() - self.began))

    async def listen(self) -> None:
        """Accept connections, at the same port as before."""
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Connection(self.answer, self.connections), self.host, self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def vanish(self) -> None:
        """Refuse connections, and drop the open ones."""
        if self.server is not None:
            self.server.close()
            for connection in list(self.connections):
                connection.drop()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Respond to a request and log it."""
        response, version = self._answer(request)
        conditional = "if-none-match" in request.headers
        self.log.append(Sent(self.host, request.target, time.monotonic(), response.status, conditional, version))
        return response

    def _answer(self, request: HttpRequest) -> tuple[HttpResponse, int]:
        name = request.target.strip("/") or "0"
        if not name.isdigit() or int(name) >= self.pages:
            return HttpResponse(404, head_of(404, 0)), -1
        page = int(name)
        version = self.version(page)
        tag = '"always"' if self.host == LYING else f'"{version}"'
        if request.headers.get("if-none-match") == tag:
            return HttpResponse(304, head_of(304, None, ("ETag", tag))), version
        links = "".join(f'<a href="/{other}">x</a>' for other in ((2 * page + 1), (2 * page + 2)) if other < self.pages)
        text = f"<title>{page}</title><p>The text of page {page} as of version {version}, and {version} again.</p>"
        body = (text + links).encode()
        headers = ("Content-Type", "text/html"), ("ETag", tag)
        return HttpResponse(200, head_of(200, len(body), *headers), body), version


@dataclass
class Process:
    """A running command, and the memory that it used."""

    process: subprocess.Popen[bytes]
    began: float = field(default_factory=time.monotonic)
    memory: list[tuple[float, int]] = field(default_factory=list)  # seconds since its start, KiB

    def weigh(self) -> None:
        """Record the resident memory."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text("utf-8").splitlines()
        except OSError:
            return
        found = [int(line.split()[1]) for line in lines if line.startswith("VmRSS")]
        if found:
            self.memory.append((time.monotonic() - self.began, found[0]))


def command(folder: Path, *words: str) -> list[str]:
    """Return a command line of surveyor whose wall clock is shifted by the number in `shift`."""
    launch = LAUNCH.format(place=str(folder / "shift"))
    return [sys.executable, "-c", launch, *words]


async def run_watch(folder: Path, minutes: float, sites: Sequence[Site], rng: random.Random) -> list[Process]:
    """Watch for some minutes, with kills, jumps and a vanishing host; return the processes."""
    end, processes = time.monotonic() + 60 * minutes, list[Process]()
    began = time.monotonic()
    kills = sorted(began + 60 * minutes * share for share in (0.12, 0.3, 0.45))
    jumps = {
        began + 60 * minutes * 0.2: 86_400.0,
        began + 60 * minutes * 0.38: 0.0,
        began + 60 * minutes * 0.6: -3600.0,
    }
    down, up = began + 60 * minutes * 0.25, began + 60 * minutes * 0.5
    vanishing = sites[2]
    rate = f"{round(RATE_PER_SECOND * 86_400)}/day"
    audit = f"{minutes / 1440 / 15:.6f}"
    words = ("watch", str(folder / "s"), "--rate", rate, "--audit-days", audit, "--json", "--delay", str(DELAY))
    is_down = False
    with (folder / "changes.jsonl").open("ab") as lines, (folder / "errors.txt").open("ab") as errors:
        while time.monotonic() < end:
            if not processes or processes[-1].process.poll() is not None:
                process = subprocess.Popen(command(folder, *words), stdout=lines, stderr=errors)  # noqa: S603
                processes.append(Process(process))
            await asyncio.sleep(0.5)
            now = time.monotonic()
            processes[-1].weigh()
            if kills and now >= kills[0]:
                kills.pop(0)
                processes[-1].process.kill()
                processes[-1].process.wait()
                await asyncio.sleep(rng.random())
            for at in [at for at in jumps if now >= at]:
                (folder / "shift").write_text(str(jumps.pop(at)), "utf-8")
            if not is_down and down <= now < up:
                is_down = True
                await vanishing.vanish()
            if is_down and now >= up:
                is_down = False
                await vanishing.listen()
        processes[-1].process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(processes[-1].process.wait)
    return processes


class Verdict(NamedTuple):
    """One row of the table."""

    what: str
    found: str
    passed: bool


def verdicts(
    folder: Path, sites: Sequence[Site], processes: Sequence[Process], began: float, up: float
) -> list[Verdict]:
    """Judge the logs and the journal."""
    logs = {site.host: [sent for sent in site.log if sent.at >= began] for site in sites}
    every = sorted((sent for log in logs.values() for sent in log), key=lambda sent: sent.at)
    gaps = [second.at - first.at for log in logs.values() for first, second in pairwise(log)]
    with closing(Journal.open(folder / "s" / "journal.sqlite", write=False)) as journal:
        journal.check()
        audits, lying = list(journal.events("audit")), list(journal.events("lying"))
        urls = list(journal.urls())
        runs = len(list(journal.events("watch")))
    audited = {site.host: sum(site.host in urls[event.detail["page"]] for event in audits) for site in sites}
    unneeded = {site.host: 0 for site in sites}
    for site in sites:
        seen: dict[str, int] = {}
        for sent in site.log:
            if sent.version >= 0 and sent.status == 200:
                unneeded[site.host] += sent.at >= began and seen.get(sent.path) == sent.version
                seen[sent.path] = sent.version
    times = np.array([sent.at for sent in every])
    day = RATE_PER_SECOND * 86_400
    room = day / BURST_SHARE + RATE_PER_SECOND * (times[:, None] - times[None, :]) + 2
    index = np.arange(times.size)
    excess = float(np.max(np.where(index[:, None] >= index, index[:, None] - index + 1 - room, -np.inf)))
    last_lie = [sent for sent in logs[LYING] if sent.conditional]
    after_lie = [sent for sent in logs[LYING] if not last_lie or sent.at > last_lie[-1].at]
    returned = [sent for sent in logs[VANISHING] if sent.at >= up and sent.version >= 0]
    long = max(processes, key=lambda one: len(one.memory))
    settled = [size for seconds, size in long.memory if seconds >= 0.3 * long.memory[-1][0]]
    growth = (max(settled[-10:]) - settled[0]) / 1024 if settled else 0.0
    code = processes[-1].process.returncode
    honest = [sent for sent in logs[HONEST] if sent.version >= 0]
    modified = sum(sent.status == 304 for sent in honest)
    kills = len(processes) - 1
    liars = {event.detail["host"] for event in lying}
    facts: list[tuple[str, str, bool]] = [
        ("requests of the watch", f"{len(every):,} in {runs} runs, {kills} kills", len(every) > 50),
        ("shortest gap between requests to a host", f"{min(gaps):.3f} s of {DELAY} s", min(gaps) >= DELAY - SLACK),
        ("requests above the budget in any window", f"{max(excess, 0.0):.1f}", excess <= 0),
        (
            "unneeded downloads of the honest host",
            f"{unneeded[HONEST]} beside {modified} answers 304; {audited[HONEST]} audits",
            unneeded[HONEST] <= audited[HONEST] + kills,  # a response that was received before a kill is repeated
        ),
        ("audits", f"{len(audits)} of {len(every)} requests", len(audits) <= 0.15 * len(every)),
        ("lying hosts found", ", ".join(sorted(liars)) or "none", liars == {LYING}),
        ("unconditional requests to it afterwards", str(len(after_lie)), len(after_lie) > 0),
        ("pages fetched after the host was back", str(len(returned)), len(returned) > 0),
        ("growth of memory in the longest run", f"{growth:.1f} MiB of {settled[-1] / 1024:.0f}", growth < 10),
        ("exit code after SIGTERM", str(code), code == 143),
        ("journal", "every commit verified", journal is not None),
    ]
    return [Verdict(*fact) for fact in facts]


async def experiment(minutes: float, pages: int, folder: Path) -> int:
    """Run everything and print the table."""
    span = 60 * minutes
    sites = [Site(host, pages, span / 20, 4 * span, seed) for seed, host in enumerate((HONEST, LYING, VANISHING))]
    for site in sites:
        await site.listen()
    (folder / "shift").write_text("0", "utf-8")
    seeds = [f"http://{site.host}:{site.port}/0" for site in sites]
    words = ["crawl", *seeds, "--out", str(folder / "s"), "--contact", "me@example.org", "--delay", str(DELAY)]
    words += ["--until", "pages=100000", "--scope", "host", "--quiet", "--json"]
    compiled = ["watch", str(folder / "s"), "--once", "--rate", "1/day", "--quiet"]  # compiles and caches the kernels
    for line in (words, compiled):
        process = await asyncio.create_subprocess_exec(*command(folder, *line), stdout=subprocess.DEVNULL)
        await process.wait()
    began = time.monotonic()
    processes = await run_watch(folder, minutes, sites, random.Random(7))  # noqa: S311
    rows = verdicts(folder, sites, processes, began, began + span * 0.5)
    for site in sites:
        await site.vanish()
    width = max(len(row.what) for row in rows)
    for row in rows:
        print(f"{row.what:<{width}}  {'yes' if row.passed else 'NO ':<3}  {row.found}")
    text = (folder / "changes.jsonl").read_text("utf-8")
    kinds = [json.loads(line)["event"] for line in text.splitlines() if line.endswith("}")]
    print("changes printed:", {kind: kinds.count(kind) for kind in sorted(set(kinds))})
    return 0 if all(row.passed for row in rows) else 1


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument(
        "--pages", type=int, default=150, help="per host; the schedule visits a page at most every 10 minutes"
    )
    parser.add_argument("--folder", type=Path, help="kept; by default a temporary one")
    options = parser.parse_args()
    os.environ.setdefault("NO_COLOR", "1")
    if options.folder is not None:
        options.folder.mkdir(parents=True)
        sys.exit(asyncio.run(experiment(options.minutes, options.pages, options.folder)))
    with tempfile.TemporaryDirectory() as name:
        sys.exit(asyncio.run(experiment(options.minutes, options.pages, Path(name))))


if __name__ == "__main__":
    main()
