"""Time, memory and disk of the view tables of a large survey, and the time of each query over them.

python -m benchmarks.view --pages 1000000
python -m benchmarks.view --survey DIR
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.resume import make
from benchmarks.table import markdown
from surveyor.crawler.sources.graph import Instant
from surveyor.graph.csr import Graph
from surveyor.outcome import Outcome, Visit
from surveyor.serve.view.paging import PageQuery, contains
from surveyor.serve.view.schema import SORTS, STATUSES
from surveyor.serve.view.view import View
from surveyor.store.directory import SurveyFolder
from surveyor.web.link_context import by_page, mark

WORDS = [
    "archive",
    "report",
    "guide",
    "garden",
    "river",
    "winter",
    "market",
    "letter",
    "museum",
    "theory",
    "engine",
    "harbour",
    "island",
    "season",
    "village",
    "music",
    "paper",
    "silver",
    "forest",
    "history",
    "table",
    "window",
    "summer",
    "bridge",
    "corner",
    "number",
    "planet",
    "orange",
    "camera",
    "doctor",
]
LANGUAGES = ("en", "en", "en", "de", "fr", "es", "", "pt-BR")
MARK = mark("a", "main", "")
BEGAN = 1.76e9
Query = Callable[[], Any]
REVISITS = 1_000
ROUNDS = 100


class TitledSource(Instant):
    """The pages of a graph with titles, languages, sizes and times; some are gone, blocked or redirected."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._rng, self._now = graph, np.random.default_rng(7), BEGAN

    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Yield a visit to each page."""
        draws = self._rng.random((len(pages), 3)).tolist()
        for page, (kind, size, wait) in zip(pages, draws, strict=True):
            self._now += 0.05
            common = {"fetched_at": self._now, "seconds": round(0.05 + wait * wait, 4)}
            if kind < 0.02:
                yield Visit(page, "gone", status=404 if kind < 0.015 else 410, **common)
            elif kind < 0.03:
                yield Visit(page, "blocked", reason="robots")
            elif kind < 0.035:
                yield Visit(page, "blocked", reason="HTTP 503", status=503, **common)
            elif kind < 0.045 and page > 10:
                target = int(self._graph.links_of(page)[0]) if self._graph.links_of(page).size else page - 1
                yield Visit(page, "redirected", target=target, status=301, **common)
            else:
                links = self._graph.links_of(page)
                texts = [title(int(link), 2) for link in links[:4].tolist()] + [""] * max(0, links.size - 4)
                yield Visit(
                    page,
                    "fetched",
                    links,
                    status=200,
                    title=title(page, 3 + page % 4),
                    language=LANGUAGES[page % len(LANGUAGES)],
                    size=int(2_000 + 200_000 * size**3),
                    contexts=by_page(page, links, texts, [MARK] * links.size),
                    **common,
                )


def title(page: int, words: int) -> str:
    """Return the title of a page."""
    numbers = ((page + 1) * 2654435761 >> 5 * at & 31 for at in range(1, words + 1))
    return " ".join(WORDS[number % len(WORDS)] for number in numbers).capitalize() + f" {page % 9973}"


def revisit(path: Path, visits: int) -> None:
    """Fetch pages again, with other titles."""
    with SurveyFolder.open(path) as folder:
        pages = np.random.default_rng(3).integers(0, folder.journal.url_count, 5 * visits).tolist()
        found = (folder.journal.last_visit(page, "fetched") for page in dict.fromkeys(pages))
        some = [visit for _, visit in zip(range(visits), (visit for visit in found if visit), strict=False)]
        later = [replace(visit, title=f"{visit.title} again", fetched_at=BEGAN + 1e7) for visit in some]
        folder.commit(later)


def child(*words: str) -> list[str]:
    """Run a step in a process; return its output, with seconds, CPU seconds and megabytes as the last line."""
    began = time.perf_counter()
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with exit code {process.returncode}")
    memory = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    cpu = usage.ru_utime + usage.ru_stime
    return [*lines, f"{time.perf_counter() - began:.1f} s, CPU {cpu:.1f} s, at most {memory:,.0f} MB"]


def measure(path: Path) -> None:
    """Build the tables twice, and run the queries."""
    print(f"full build: {child('surveyor.serve.view.build', str(path))[-1]}", flush=True)
    size = {file: file.stat().st_size for file in (path / "view").rglob("*") if file.is_file()}
    parts = {"all": size, **{name: [file for file in size if name in file.parts] for name in ("graph", "pages")}}
    parts["pages.sqlite"] = [file for file in size if file.name == "pages.sqlite"]
    print("disk in MB:", {name: round(sum(size[file] for file in files) / 1e6) for name, files in parts.items()})
    revisit(path, REVISITS)
    print(f"build after {REVISITS:,} more visits: {child('surveyor.serve.view.build', str(path))[-1]}", flush=True)
    print("\n".join(child("benchmarks.view", "--survey", str(path), "--queries")))


def queries(path: Path) -> None:
    """Print the times of each query over random arguments."""
    rng, rows = np.random.default_rng(5), list[list[str]]()
    with View.open(path) as view:
        best = [row["id"] for row in view.pages(PageQuery(sort="share", limit=1000))["rows"]]
        hosts = [row["host"] for row in view.hosts(PageQuery(sort="pages", limit=1000))["rows"]]
        folders = [row["prefix"] for row in view.folders()["rows"]]

        def one(of: list[Any]) -> Any:
            return of[int(rng.integers(0, len(of)))]

        def any_page() -> int:
            return int(rng.integers(0, view.size)) if rng.random() < 0.5 else int(one(best))

        def sort() -> dict[str, Any]:
            return {"sort": one([*SORTS["pages"]]), "descending": bool(rng.random() < 0.5)}

        def some_filter() -> dict[str, Any]:
            kind = one(["status", "language", "host", "depth", "http_status", "folder", "bytes"])
            values: dict[str, list[Any]] = {"status": [*STATUSES], "language": ["de", "fr", None], "host": hosts}
            values |= {"depth": [*range(12)], "http_status": [200, 404, 503, None], "folder": folders}
            return {kind: one(values.get(kind, [{"at_least": int(rng.integers(0, 200_000))}]))}

        def turned() -> Query:
            """Return a later page of rows: its place is found again by value."""
            query = PageQuery(filters=some_filter(), **sort())
            return partial(view.pages, replace(query, after=view.pages(query)["next"]))

        def pages(**query: Any) -> Query:
            return partial(view.pages, PageQuery(**query))

        steps: dict[str, Callable[[], Query]] = {
            "summary": lambda: view.summary,
            "pages": lambda: pages(**sort()),
            "pages, one filter": lambda: pages(filters=some_filter(), **sort()),
            "pages, two filters": lambda: pages(filters=some_filter() | some_filter(), **sort()),
            "pages, next of one filter": turned,
            "pages, text": lambda: pages(text=f"{one(WORDS)} {rng.integers(0, 99)}"),
            "pages, text of two letters": lambda: pages(text=one([*"abcdefghijklm"]) + one([*"aeiou"])),
            "page by URL": lambda: partial(view.page, view.page(any_page())["page"]["url"]),
            "in_links": lambda: partial(view.in_links, any_page()),
            "out_links": lambda: partial(view.out_links, any_page()),
            "explanation": lambda: partial(view.explanation, any_page()),
            "visits": lambda: partial(view.visits, any_page()),
            "hosts": lambda: partial(view.hosts, PageQuery(sort=one([*SORTS["hosts"]]))),
            "domains": lambda: partial(view.domains, PageQuery(sort=one([*SORTS["domains"]]))),
            "folders": lambda: partial(view.folders, one(folders)),
            "blocked": lambda: view.blocked,
            "frontier": lambda: view.frontier,
            "curve": lambda: view.curve,
            "SQL, pages by status": lambda: partial(
                view.query, "SELECT status, count(*), sum(share) FROM pages GROUP BY 1", seconds=30.0
            ),
        }
        for name, prepared in steps.items():
            prepared()()  # loads code and kernels
            wall, cpu = [], []
            for _ in range(ROUNDS if name[0] != "S" else 10):
                query = prepared()
                began, worked = time.perf_counter(), time.thread_time()
                result = query()
                wall.append(1e3 * (time.perf_counter() - began))
                cpu.append(1e3 * (time.thread_time() - worked))
            times = [f"{np.quantile(values, at):.1f}" for values in (cpu, wall) for at in (0.5, 0.99)]
            rows.append([name, *times, f"{len(json.dumps(result)) / 1e3:.0f}"])
    status = Path("/proc/self/status")
    if status.is_file():  # pages of mapped files can be taken back by the system; others count
        lines = [line.split() for line in status.read_text("ascii").splitlines() if line.startswith("Rss")]
        print("memory in MB:", {name.strip(":"): round(int(size) / 1e3) for name, size, _ in lines})
    print(markdown(["query", "CPU ms, median", "p99", "wall ms, median", "p99", "kB of JSON"], rows))


def answer(run: Callable[..., sqlite3.Cursor], query: str, word: str) -> list[Any]:
    return run(query, (word,)).fetchall()


def compare_text(path: Path) -> None:
    """Print size, build time and query times of FTS5 with trigrams and of LIKE, beside those of the view."""
    with View.open(path) as view, tempfile.TemporaryDirectory() as place:
        database, index = view.generation.folder / "pages.sqlite", Path(place) / "text.sqlite"
        run = sqlite3.connect(index, isolation_level=None).execute
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF"):
            run(statement)
        run("ATTACH ? AS view", (str(database),))
        worked = time.process_time()
        run("CREATE VIRTUAL TABLE found USING fts5(url, title, content='', tokenize='trigram')")
        run("BEGIN")
        run("INSERT INTO found(rowid, url, title) SELECT id, url, title FROM view.pages")
        run("COMMIT")
        print(f"FTS5: CPU {time.process_time() - worked:.1f} s to build, {index.stat().st_size / 1e6:.0f} MB")
        fts = (
            "SELECT id FROM found JOIN view.pages ON id = found.rowid WHERE found MATCH ? ORDER BY share DESC LIMIT 50"
        )
        like = "SELECT id FROM view.pages WHERE url LIKE ?1 OR title LIKE ?1 ORDER BY share DESC LIMIT 50"
        rows = []
        for word in ("harbour", "http", "zzzzqq", "archive archive", "e"):
            words, offsets = view.column("text"), view.column("text_offsets")
            asked: dict[str, Query] = {
                "view": partial(contains, words, offsets, word.encode()),
                "FTS5": partial(answer, run, fts, f'"{word}"'),
                "LIKE": partial(answer, run, like, f"%{word}%"),
            }
            times = []
            for query in asked.values():
                query()
                worked = time.process_time()
                query()
                times.append(f"{1e3 * (time.process_time() - worked):.1f}")
            rows.append([word, *times])
        print(markdown(["word", "view, CPU ms", "FTS5", "LIKE"], rows))


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.view", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--survey", type=Path, help="where the survey is, or is made")
    parser.add_argument("--text", action="store_true", help="compare ways to search words")
    parser.add_argument("--queries", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.queries:
        queries(options.survey)
        return
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        survey = options.survey or Path(place) / "large.survey"
        if not survey.exists():
            make(survey, options.pages, TitledSource)
        if options.text:
            child("surveyor.serve.view.build", str(survey))
            compare_text(survey)
        else:
            measure(survey)


if __name__ == "__main__":
    main()
