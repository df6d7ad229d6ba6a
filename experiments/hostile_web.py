"""Crawl a thousand real pages on loopback while dozens of other hosts do everything wrong; print what came of it.

    python -m experiments.hostile_web --docs /usr/share/doc --pages 1000 [--warc FOLDER]

`--docs` is a folder of documentation packages (as Debian installs them: `apt-get install python3-doc sqlite3-doc`).
The pages are served by honest hosts, which link to hostile hosts with one fault each (`hostile_hosts`). The command
line crawls them in a process of its own. Checked, with exit code 1 if it does not hold:

- every honest page was fetched, and every fault is reported with an outcome that fits;
- the exit code is 3: the crawl ended because nothing was left, not because its goal was reached;
- memory and time stay within bounds;
- no connection was attempted but to loopback, and no name but localhost was looked up. An audit hook in the crawling
  process records each attempt and refuses those to other addresses, so that none leaves this machine.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from experiments.hostile_hosts import PRIVATE, faults
from experiments.hostile_server import (
    HONEST,
    HOSTILE,
    HostileWeb,
    host_of_archives,
    hosts_of_docs,
    serving,
)
from surveyor.errors import UsageError

MEMORY = 1_500_000_000  # bytes of the crawling process, at most
SECONDS = 900.0  # for the whole crawl, on a busy machine
QUERY = "select url, kind, reason, redirected_to from pages where kind <> 'out of scope' and kind <> 'queued'"
SUMMARY = "select kind, count(*) as pages from pages group by kind order by kind"


@dataclass
class Outcome:
    """What a crawl of a hostile web came to."""

    code: int
    seconds: float
    memory: int  # bytes at most
    pages: dict[str, str]  # kind and reason by URL
    attempts: list[str]  # connections and look-ups that did not concern loopback
    errors: str  # the end of what was printed to stderr
    summary: dict[str, int] = field(default_factory=dict)


def command(web: HostileWeb, out: Path, timeout: float, budget: int) -> list[str]:
    """Return the words of the command that crawls the web."""
    inside = [f"{HONEST}*", f"{HOSTILE}*", *(f"{place.partition('/')[0]}/*" for place in PRIVATE)]
    given: list[tuple[str, object]] = [
        *(("include", pattern) for pattern in inside),
        *(("allow", address) for address in web.addresses),
        *(("seeds", f"{web.origin(number)}/list.xml") for number, fault in enumerate(web.faults) if fault.listed),
        *(("out", out), ("scope", "any"), ("delay", 0), ("backoff", 0.1), ("timeout", timeout), ("budget", budget)),
        *(("until", "pages=1000000"), ("contact", "someone@example.org"), ("rng", 7)),
    ]
    return ["crawl", *web.seeds, *(str(word) for name, value in given for word in (f"--{name}", value)), "--json"]


def crawl(web: HostileWeb, folder: Path, *, timeout: float, budget: int) -> Outcome:
    """Crawl the web with the command line, in a process of its own."""
    out, log = folder / "web.survey", folder / "attempts.log"
    words = command(web, out, timeout, budget)
    began = time.monotonic()
    with (folder / "stderr").open("wb") as errors:
        ours = [sys.executable, "-m", "experiments.hostile_web", "--record", str(log), "--", *words]
        child = subprocess.Popen(ours, stdout=subprocess.DEVNULL, stderr=errors)  # our own command  # noqa: S603
        memory, code = _wait(child, SECONDS)
    seconds = time.monotonic() - began
    printed = (folder / "stderr").read_text("utf-8", "replace")
    attempts = log.read_text("utf-8").splitlines() if log.is_file() else ["no record of connections was kept"]
    rows = _rows(out, QUERY)
    pages = {row["url"]: f"{row['kind']}: {row['reason']}" if row["reason"] else str(row["kind"]) for row in rows}
    summary = {str(row["kind"]): int(row["pages"]) for row in _rows(out, SUMMARY)}
    return Outcome(code, seconds, memory, pages, attempts, printed[-2000:], summary)


def _wait(child: subprocess.Popen[bytes], seconds: float) -> tuple[int, int]:
    """Wait for a process; return the most memory it had and its exit code. One that takes too long is killed."""
    end = time.monotonic() + seconds
    while True:
        number, status, used = os.wait4(child.pid, os.WNOHANG)
        if number:
            child.returncode = os.waitstatus_to_exitcode(status)
            return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024), child.returncode
        if time.monotonic() > end:
            child.kill()
            end = float("inf")
        time.sleep(0.05)


def _rows(survey: Path, query: str) -> list[dict[str, Any]]:
    ours = [sys.executable, "-m", "surveyor", "sql", str(survey), query, "--json"]
    done = subprocess.run(ours, capture_output=True, check=False)  # our own command  # noqa: S603
    if done.returncode:
        return []
    result = json.loads(done.stdout)
    return [row if isinstance(row, dict) else dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]


def problems(web: HostileWeb, found: Outcome) -> list[str]:
    """Return what does not hold, in sentences."""
    wrong = []
    missing = sorted(url for url in web.honest_pages() if not found.pages.get(url, "").startswith("fetched"))
    if missing:
        which = ", ".join(f"{url} ({found.pages.get(url, 'unknown')})" for url in missing[:5])
        wrong.append(f"{len(missing)} honest pages were not fetched: {which}")
    for number, fault in enumerate(web.faults):
        if not re.fullmatch(fault.outcome, reported(web, found, number), re.DOTALL):
            wrong.append(f"{fault.name}: reported as {reported(web, found, number)!r}, expected {fault.outcome}")
        if web.requests[f"{HOSTILE}{number + 1}"] > fault.most:
            wrong.append(f"{fault.name}: {web.requests[f'{HOSTILE}{number + 1}']:,} requests, more than {fault.most}")
    if any("links to private" in fault.name for fault in web.faults):
        result = {f"http://{place}": found.pages.get(f"http://{place}", "not reported") for place in PRIVATE}
        wrong += [f"{url}: {text}" for url, text in result.items() if not text.startswith("blocked")]
    if found.code != 3:
        wrong.append(f"the exit code is {found.code}, not 3: {found.errors[-500:]}")
    if found.memory > MEMORY:
        wrong.append(f"{found.memory / 1e6:,.0f} MB of memory, more than {MEMORY / 1e6:,.0f}")
    if found.seconds > SECONDS:
        wrong.append(f"the crawl took more than {SECONDS:.0f} seconds")
    wrong += [f"left loopback: {attempt}" for attempt in found.attempts[:5]]
    return wrong


def reported(web: HostileWeb, found: Outcome, fault: int) -> str:
    """Return what the survey says of the page where a fault is met."""
    return found.pages.get(web.entry(fault), "not reported")


def show(web: HostileWeb, found: Outcome) -> None:
    """Print the table."""
    kinds: dict[str, Counter[str]] = {}
    for url, text in found.pages.items():
        kinds.setdefault(urlsplit(url).hostname or "", Counter())[text.partition(":")[0]] += 1
    print("| host | requests | outcomes | reported of its first page |\n|---|--:|---|---|")
    names = [f"*{host.name}*: {len(host.pages):,} pages" for host in web.honest] + [one.name for one in web.faults]
    for number, (name, address) in enumerate(zip(names, web.addresses, strict=True)):
        fault = number - len(web.honest)
        text = reported(web, found, fault) if fault >= 0 else found.pages.get(web.seeds[number], "not reported")
        counted = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.get(address, Counter()).items()))
        shown = re.sub(r"[\x00-\x1f|]", " ", text)[:110]
        print(f"| {name} | {web.requests[address]:,} | {counted or '–'} | {shown} |")
    honest = sum(found.pages.get(url, "").startswith("fetched") for url in web.honest_pages())
    print(
        f"\n{honest:,} of {len(web.honest_pages()):,} honest pages fetched, {len(web.faults)} faults on as many hosts; "
        f"{sum(web.requests.values()):,} requests in {found.seconds:.0f} s, {found.memory / 1e6:,.0f} MB, "
        f"exit code {found.code}, {len(found.attempts)} attempts to leave loopback"
    )


def recorded(log: Path, words: Sequence[str]) -> int:
    """Run a command line; record and refuse connections and look-ups that are not about loopback."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg") and isinstance(args[1], tuple):
            if not ipaddress.ip_address(str(args[1][0]).partition("%")[0]).is_loopback:
                os.write(file, f"{event} {args[1]}\n".encode())
                raise ConnectionRefusedError(f"{args[1][0]} is not loopback")
        elif event in ("socket.getaddrinfo", "socket.gethostbyname") and not _is_literal(args[0]):
            os.write(file, f"{event} {args[0]!r}\n".encode())
            raise socket.gaierror(socket.EAI_NONAME, f"{args[0]!r} is not looked up")

    sys.addaudithook(watch)
    sys.argv[1:] = words
    try:
        runpy.run_module("surveyor", run_name="__main__")
    except SystemExit as ending:
        return int(ending.code or 0)
    return 0


def _is_literal(host: object) -> bool:
    try:
        return host in (None, "localhost", b"localhost") or bool(
            ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host))
        )
    except ValueError:
        return False


def main() -> None:
    """Serve, crawl, print the table and what does not hold."""
    if sys.argv[1:2] == ["--record"]:
        raise SystemExit(recorded(Path(sys.argv[2]), sys.argv[4:]))
    parser = argparse.ArgumentParser(description="Crawl real pages among hostile hosts, on loopback.")
    parser.add_argument("--docs", type=Path, default=Path("/usr/share/doc"), help="folder of documentation packages")
    parser.add_argument("--warc", type=Path, help="folder of WARC files, whose pages are served too")
    parser.add_argument("--pages", type=int, default=1000, help="honest pages, at least")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds that a page may take")
    parser.add_argument("--keep", type=Path, help="folder to keep the survey in")
    given = parser.parse_args()
    honest = [*hosts_of_docs(given.docs, given.pages), *([host_of_archives(given.warc)] if given.warc else [])]
    if sum(len(host.pages) for host in honest) < given.pages:
        parser.error(f"{given.docs} holds too few pages; install more documentation packages, or ask for fewer pages")
    budget = max(len(host.pages) for host in honest) + 400
    with tempfile.TemporaryDirectory() as folder, serving(HostileWeb(honest, faults())) as web:
        place = given.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        try:
            found = crawl(web, place, timeout=given.timeout, budget=budget)
        except UsageError as error:
            parser.error(str(error))
        show(web, found)
        wrong = problems(web, found)
    print("", *wrong, sep="\n")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
