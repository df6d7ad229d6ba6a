"""Kill a crawl at random moments, again and again, and see that nothing is lost: `python -m experiments.kill`.

A process crawls an embedded web over HTTP, with checkpoints and an archive, and is sent SIGKILL after a time drawn from
a seed, between its first instruction and a little after it would have ended. Then it is started again, until it ends by
itself; then another survey is begun. (Each is forked from a process that has all code loaded, so that kills fall on
the crawl and not on imports.) After every kill:

- the survey opens, and every visit and URL that was ever seen in its journal is there, unchanged;
- what the journal refers to in the archive can be read back;
- the log of the server shows that nothing was asked for that the journal had before the process was started, that no
  page was answered twice while it ran, and that answers which are not in the journal are at most as many as there may
  be requests under way.

When a survey ends, its pages read are those of a crawl that was never killed, and its ranks are the same within the
errors that both state. The web is finite, and no answer of it depends on how often or how fast it is asked, but for
errors that pass.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surveyor.crawler import session as live
from surveyor.errors import SurveyorError
from surveyor.graph.synthetic.generate import WebShape
from surveyor.store.directory import SurveyFolder
from surveyor.survey.crawl import crawl
from surveyor.survey.survey import Survey
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import EmbeddedWeb, Request, running

AT_ONCE = 8  # requests under way
SHAPE = WebShape(pages=400, smallest_site=3, largest_site=30, topics=4, external=0.4, mutual=0.4, dead=0.05)
WEB = WebSettings(
    web=SHAPE, rng=3, calendar=0.0, sessions=0.0, dying=0.0, strict=0.0, robots_delay=0.0, slow_seconds=0.01,
    huge_bytes=300_000,
)  # fmt: skip
Key = tuple[str, str]  # host, path


class Lost(SurveyorError):
    """Something that was kept is not there, or something was asked for once more."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="look at the survey that is named; the same --seed repeats the run")


@dataclass(slots=True)
class Figures:
    """What was seen."""

    kills: int = 0
    too_early: int = 0  # of these, before there was a survey
    surveys: int = 0  # that came to their end
    visits: int = 0  # in them
    bodies: int = 0  # read back from archives
    asked: int = 0  # requests that the server saw
    late: int = 0  # of these, those of a process that was dead when the server came to accept its connection
    again: int = 0  # answers that were under way at a kill, and were asked for again
    error: float = 0.0  # the largest distance of ranks to those of a crawl that was not killed
    stated: float = 0.0  # what both state as their error


def work(path: Path, seeds: list[str], port: int, run: int) -> None:
    """Crawl until no page is left, with a checkpoint every now and then; the contact says which run it is."""
    live.SAVE_EVERY, live.SAVE_SHARE = 0.3, 0.0
    crawl(
        seeds, out=path, until="pages=1000000", scope="any", contact=f"run{run}@example.org", delay=0.0, backoff=0.02,
        rng=1, concurrency=AT_ONCE, proxy=f"http://127.0.0.1:{port}",
    ).close()  # fmt: skip


def nurse() -> None:
    """Crawl once, so that all code is loaded and compiled; then fork a crawl for each line read, and kill it in time.

    A line has the arguments of `work` and the seconds until the kill; printed are how it ended, and after how long.
    """
    path, *rest, _ = json.loads(sys.stdin.readline())
    work(Path(path), *rest)
    print(0, 0.0, flush=True)
    for line in sys.stdin:
        path, *rest, seconds = json.loads(line)
        began = time.monotonic()
        if (child := os.fork()) == 0:
            code = 1
            try:
                work(Path(path), *rest)
                code = 0
            except BaseException:  # this process must not come back
                traceback.print_exc()
            finally:
                os._exit(code)
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() - began > seconds:
                os.kill(child, signal.SIGKILL)
                ended = os.waitpid(child, 0)
                break
            time.sleep(0.0005)
        print(os.waitstatus_to_exitcode(ended[1]), time.monotonic() - began, flush=True)


class Killer:
    """Starts crawls of one web and kills them."""

    def __init__(self, web: EmbeddedWeb, folder: Path, seed: int) -> None:
        self._web, self._folder, self._rng = web, folder, random.Random(seed)  # noqa: S311
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", "from experiments.kill import nurse; nurse()"]
        self._nurse = subprocess.Popen(  # ourselves  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
        )
        self.figures = Figures()
        self._usual = math.inf
        self._runs = 0
        for name in ("first.survey", "reference.survey"):
            self._begin(name)
            self._run(math.inf)
        self._read, self._ranks, self._error = _result(self._path)

    def kill(self) -> None:
        """Start a crawl and kill it some time later; if it was faster, begin the next survey."""
        ended = self._run(self._rng.uniform(0.0, 1.1 * self._usual))
        if ended:
            self._compare()
            self._begin(f"{self.figures.surveys}.survey")
        else:
            self.figures.kills += 1

    def finish(self) -> None:
        """Let the last survey come to its end."""
        self._run(math.inf)
        self._compare()

    def close(self) -> None:
        """Start no more."""
        self._nurse.communicate()

    def _begin(self, name: str) -> None:
        self._path = self._folder / name
        self._web.reset()
        self._seen = 0  # requests
        self._visits: list[Any] = []
        self._urls: list[str] = []
        self._done: set[Key] = set()
        self._done_before: set[Key] = set()  # when the run before was started
        self._read_back = 0

    def _run(self, seconds: float) -> bool:
        """Crawl, for at most so long; return whether it ended by itself."""
        if self._nurse.stdin is None or self._nurse.stdout is None:
            raise Lost("no process is there to crawl")
        self._runs += 1
        order = [str(self._path), self._web.seeds, self._web.port, self._runs, seconds]
        print(json.dumps(order), file=self._nurse.stdin)
        code, took = map(float, self._nurse.stdout.readline().split() or (1, 0))
        _expect(code in (0, -signal.SIGKILL), f"the crawl failed with {code:.0f}")
        if code == 0 and took and not self._visits:
            self._usual = took
        while self._web._connections:  # what is still on its way arrives
            time.sleep(0.001)
        self._check(ended=code == 0)
        return code == 0

    def _check(self, *, ended: bool) -> None:
        requests = list(self._web.log)[self._seen :]
        self._seen += len(requests)
        self.figures.asked += len(requests)
        late = [request for request in requests if f"run{self._runs}@" not in request.agent]
        self.figures.late += len(late)
        answered = _answered([request for request in requests if request not in late])
        if asked := answered & self._done | _answered(late) & self._done_before:
            raise Lost(f"asked for although the journal has it: {sorted(asked)[:3]}")
        self._done_before = self._done
        if not (self._path / "survey.toml").is_file():
            self.figures.too_early += 1
            _expect(not self._done, f"{self._path} is gone")
            return
        with SurveyFolder.open(self._path, write=False) as folder:  # all stays as the kill left it
            journal = folder.journal
            urls, visits = list(journal.urls()), list(journal.visits())
            _expect(urls[: len(self._urls)] == self._urls, "a URL is not what it was")
            _expect(visits[: len(self._visits)] == self._visits, "a visit is not what it was")
            for visit in visits if ended else visits[self._read_back :]:
                if visit.warc is not None:
                    kept = folder.archive.read(visit.warc)
                    _expect(kept.url == urls[visit.page] and len(kept.body) == visit.size, f"{kept.url} is another")
                    self.figures.bodies += 1
            self._read_back = len(visits)
            self._done = {_key(urls[visit.page]) for visit in visits}
            self._done |= {_key(f"{origin}/robots.txt") for (origin,) in journal._ask("SELECT origin FROM robots")}
            self._urls, self._visits = urls, visits
        lost = answered - self._done
        _expect(len(lost) <= AT_ONCE, f"{len(lost)} answers are not in the journal: {sorted(lost)[:3]}")
        _expect(not (lost and ended), f"a crawl that ended has lost {sorted(lost)[:3]}")
        self.figures.again += len(lost)

    def _compare(self) -> None:
        """Compare a survey that ended with that of the crawl that was not killed."""
        read, ranks, error = _result(self._path)
        _expect(read == self._read, f"other pages were read: {sorted(read ^ self._read)[:3]}")
        _expect(ranks.keys() == self._ranks.keys(), "other pages are known")
        distance = sum(abs(ranks[url] - self._ranks[url]) for url in ranks)
        _expect(distance <= error + self._error, f"ranks differ by {distance:.1e}, and {error:.1e} is stated")
        figures = self.figures
        figures.surveys += 1
        figures.visits += len(self._visits)
        figures.error, figures.stated = max(figures.error, distance), max(figures.stated, error + self._error)


def _answered(requests: list[Request]) -> set[Key]:
    """Return the final responses; raise for pages fetched twice. Transient errors do not count."""
    answered: set[Key] = set()
    for request in requests:
        if request.status in (200, 301, 302, 308) and not request.path.startswith("/rules/"):
            key = request.host, request.path
            moved_robots = request.path == "/robots.txt" and request.status != 200
            _expect(key not in answered or moved_robots, f"answered twice: {key}")
            answered.add(key)
    return answered


def _result(path: Path) -> tuple[set[str], dict[str, float], float]:
    """Return the pages that were read, the rank of each that is known, and the error that is stated."""
    with Survey(path) as survey:
        read = {url for _, url, visit in survey.pages() if visit is not None and visit.kind == "fetched"}
        ranking = survey.rank()
    return read, {ranking.name(page): float(score) for page, score in enumerate(ranking.scores)}, ranking.error


def _key(url: str) -> Key:
    host, _, path = url.partition("://")[2].partition("/")
    return host.partition(":")[0], f"/{path}"


def _expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise Lost(otherwise)


def kill_often(kills: int, folder: Path, *, seed: int = 1, web: WebSettings = WEB) -> Figures:
    """Kill crawls so many times; raise if anything is lost."""
    with running(web) as embedded:
        killer = Killer(embedded, folder, seed)
        try:
            while killer.figures.kills < kills:
                killer.kill()
            killer.finish()
        finally:
            killer.close()
    return killer.figures


def main() -> None:
    """Kill, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        figures = kill_often(given.kills, Path(folder), seed=given.seed)
    for name in Figures.__slots__:
        value = getattr(figures, name)
        print(f"{name:10} {value:>12,}" if isinstance(value, int) else f"{name:10} {value:>12.1e}")
    print(f"{'seconds':10} {time.monotonic() - began:>12.0f}")


if __name__ == "__main__":
    main()
