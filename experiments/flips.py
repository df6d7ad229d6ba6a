"""Flip single bits of a survey or graph on disk, and see that no output changes unless damage is reported.

    python -m experiments.flips --flips 300

An embedded web is crawled over HTTP into a survey with checkpoints and an archive; its folder is copied while the crawl
is running (with a write-ahead log that holds the latest commits) and after it has ended, and its graph is saved. Then
each trial takes a copy, flips one random bit in one place, and runs what reads it: coverage and reasons (`status`),
`top`, all tables (`sql`), `export`, the graph (`rank`), a resume (open for writing, replay), and `doctor`. It counts as

    unchanged   every output is the same: the bit is in a byte that is not read, or in a copy that is passed over
    reported    at least one of the readers raised a SurveyorError, and all others gave the same output as before
    SILENT      an output changed, and nothing was reported by the reader that gave it
    CRASH       a reader raised something else

Places are the journal with its head, its `-wal` file (with and without the `-shm` file that a kill leaves), the
checkpoints, a graph folder, and the archive. Two flips in three fall on a byte of all files of the place, the third on
a byte of a file chosen first, so that small files are hit too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surveyor.crawler import session as live
from surveyor.crawler.replay import derive
from surveyor.errors import SurveyorError
from surveyor.graph.csr import Graph
from surveyor.graph.folder import describe
from surveyor.graph.synthetic.generate import WebShape
from surveyor.rank.pagerank import pagerank
from surveyor.store.directory import SurveyFolder
from surveyor.store.recovery import examine
from surveyor.survey.crawl import crawl
from surveyor.survey.survey import Survey
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import running

PLACES = ("journal", "wal", "checkpoint", "graph", "archive")
PAGES = 120
WEB = WebSettings(
    web=WebShape(pages=PAGES, smallest_site=3, largest_site=20, topics=3, external=0.4, mutual=0.4, dead=0.05),
    rng=3,
    calendar=0.0,
    sessions=0.0,
    dying=0.0,
    strict=0.0,
    robots_delay=0.0,
    slow_seconds=0.0,
    huge_bytes=20_000,
)
FLUSHED_AT, COPIED_AT = 35, 70  # outcomes, when the log of the running crawl is cleared, and its folder is copied
Reader = Callable[[Path], object]


@dataclass(slots=True)
class Figures:
    """What was seen in one place."""

    counts: Counter[str] = field(default_factory=Counter)
    by_doctor: int = 0  # flips that `doctor` found, needed or not
    silent: list[str] = field(default_factory=list)


def make(folder: Path, web: WebSettings = WEB) -> dict[str, Path]:
    """Crawl a web; return the folder for each place."""
    live.SAVE_EVERY, live.SAVE_SHARE = 0.0, 0.0
    done, running_copy = folder / "done.survey", folder / "running.survey"
    seen = 0

    def watch(run: Any, outcome: object) -> None:
        nonlocal seen
        seen += outcome is not None
        if outcome is not None and seen == FLUSHED_AT:
            run.folder.journal.flush()  # what SQLite does by itself when the log is long
        if outcome is not None and seen == COPIED_AT:
            shutil.copytree(done, running_copy)

    with running(web) as embedded:
        crawl(
            embedded.seeds,
            out=done,
            until="pages=1000000",
            scope="any",
            contact="flips@example.org",
            delay=0.0,
            backoff=0.02,
            rng=1,
            concurrency=4,
            proxy=f"http://127.0.0.1:{embedded.port}",
            watch=watch,
        ).close()
    with Survey(done) as survey:
        survey.graph().save(folder / "graph")
    return {place: {"wal": running_copy, "graph": folder / "graph"}.get(place, done) for place in PLACES}


def files_of(place: str, folder: Path) -> list[Path]:
    """Return the files of a place in which bits are flipped."""
    patterns = {
        "journal": ["journal.sqlite", "journal.head"],
        "wal": ["journal.sqlite-wal"],
        "checkpoint": ["checkpoint/*/*"],
        "graph": ["*"],
        "archive": ["warc/*.warc.gz"],
    }
    return sorted(path for pattern in patterns[place] for path in folder.glob(pattern) if path.stat().st_size)


def flip(files: list[Path], rng: random.Random) -> str:
    """Flip one bit in one of the files; return which."""
    sizes = [path.stat().st_size for path in files]
    path = rng.choice(files) if rng.random() < 1 / 3 else rng.choices(files, sizes)[0]
    bit = rng.randrange(8 * path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))
    return f"{path.parent.name}/{path.name} byte {bit // 8} bit {bit % 8}"


def _status(path: Path) -> object:
    with Survey(path) as survey:
        pages = survey.pages_fetched, survey.pages_known, survey.pages_queued, survey.visits, survey.bytes
        return survey.coverage.to_dict(), survey.blocked(), pages, survey.journal.kinds(), survey.links_by_scope()


def _top(path: Path) -> object:
    with Survey(path) as survey:
        return survey.top(50), survey.ranking.scores.tobytes()


def _sql(path: Path) -> object:
    with Survey(path) as survey:
        made = {name: [repr(batch) for batch in survey.tables.batches(name)] for name in TABLES}
        return made, survey.sql("select count(*), sum(size) from visits", engine="sqlite").rows


def _export(path: Path) -> object:
    with Survey(path) as survey, tempfile.TemporaryDirectory() as folder:
        files = survey.export(Path(folder) / "pages.csv")
        return [file.read_bytes() for file in files]


def _history(path: Path) -> object:
    with Survey(path) as survey:
        result = survey.history()
        return result.pages.tobytes(), result.at_least.tobytes(), result.at_most.tobytes()


def _resume(path: Path) -> object:
    with SurveyFolder.open(path) as folder:
        state = derive(folder)
        ledger, waiting = state.crawl.ledger, state.crawl.frontier.queued()
        known = len(state.urls)
        accounts = [array[:known].tobytes() for array in (ledger.residual, ledger.state)]
        robots = sorted(folder.journal.answered())
        last = folder.journal.position, folder.journal.archived, robots
        return accounts, waiting.pages.tobytes(), waiting.priorities.tobytes(), last


def _bodies(path: Path) -> object:
    with SurveyFolder.open(path, write=False) as folder:
        return [folder.archive.read(visit.warc) for visit in folder.journal.visits() if visit.warc is not None]


def _rank(path: Path) -> object:
    graph = Graph.open(path)
    return pagerank(graph).scores.tobytes(), [str(name) for name in graph.names or ()]


def _info(path: Path) -> object:
    about = describe(path)
    graph = Graph.open(path)
    return graph.pages, graph.links, graph.in_links.indices.tobytes(), json.dumps(about["provenance"], sort_keys=True)


TABLES = ("pages", "links", "ranks", "hosts", "visits", "robots", "events")
SURVEY: dict[str, Reader] = {
    "status": _status,
    "top": _top,
    "sql": _sql,
    "export": _export,
    "history": _history,
    "resume": _resume,
}
READERS: Mapping[str, dict[str, Reader]] = {
    "journal": SURVEY,
    "wal": SURVEY,
    "checkpoint": SURVEY,
    "graph": {"rank": _rank, "info": _info},
    "archive": {"bodies": _bodies},
}


def outputs(readers: Mapping[str, Reader], path: Path) -> dict[str, str]:
    """Run the readers, each on its own; return a digest of what each gives, or what it reports."""
    found = {}
    for name, reader in readers.items():
        try:
            found[name] = hashlib.blake2b(repr(reader(path)).encode(), digest_size=16).hexdigest()
        except SurveyorError as error:
            found[name] = f"reported: {error.problem}"
        except Exception as error:  # the finding
            found[name] = f"crash: {type(error).__name__}: {error}"
    return found


def judge(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Say what a flip did."""
    changed = [name for name in before if after[name] != before[name]]
    if any(after[name].startswith("crash") for name in changed):
        return "CRASH"
    if any(not after[name].startswith("reported") for name in changed):
        return "SILENT"
    return "reported" if changed else "unchanged"


def flip_often(place: str, source: Path, flips: int, work: Path, seed: int = 1) -> Figures:
    """Flip so many bits of a place, one at a time."""
    rng, figures = random.Random(f"{place} {seed}"), Figures()  # noqa: S311
    trial = work / f"trial-{source.name}"  # always the same, as outputs may name it
    readers = READERS[place]

    def copy(number: int) -> None:
        shutil.rmtree(trial, ignore_errors=True)
        ignore = shutil.ignore_patterns("*-shm") if number % 2 else None
        shutil.copytree(source, trial, ignore=ignore)

    copy(0)
    before = outputs(readers, trial)
    for name, digest in before.items():
        if digest.startswith(("reported", "crash")):
            raise SystemExit(f"{place}: {name} fails without a flip: {digest}")
    for number in range(flips):
        copy(number)
        where = flip(files_of(place, trial), rng)
        if place != "graph":
            figures.by_doctor += any(check.fine is not True for check in examine(trial))
        after = outputs(readers, trial)
        verdict = judge(before, after)
        figures.counts[verdict] += 1
        if verdict.isupper():
            changed = {name: after[name] for name in before if after[name] != before[name]}
            figures.silent.append(f"{verdict} {place}: {where}: {changed}")
    shutil.rmtree(trial, ignore_errors=True)
    return figures


def main() -> int:
    """Flip, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--flips", type=int, default=300, help="in each place")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--places", default=",".join(PLACES), help="some of them, with commas")
    given = parser.parse_args()
    bad = list[str]()
    with tempfile.TemporaryDirectory() as folder:
        sources = make(Path(folder))
        print(f"{'place':<11} {'flips':>6} {'unchanged':>10} {'reported':>9} {'SILENT':>7} {'CRASH':>6} {'doctor':>7}")
        for place in given.places.split(","):
            began = time.monotonic()
            figures = flip_often(place, sources[place], given.flips, Path(folder), given.seed)
            counts = figures.counts
            row = [counts[name] for name in ("unchanged", "reported", "SILENT", "CRASH")]
            print(
                f"{place:<11} {given.flips:>6} {row[0]:>10} {row[1]:>9} {row[2]:>7} {row[3]:>6} "
                f"{figures.by_doctor:>7}   {time.monotonic() - began:.0f} s",
                flush=True,
            )
            bad += figures.silent
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
