"""Measure engines of a full-text index that rank all matching pages by BM25: SQLite FTS5, Tantivy, and surveyor's own.

    python -m benchmarks.search_engines [--pages 100000] [--words 400] [--engines own,tantivy,fts5]

The pages are random words by Zipf's law. For each query, *best 10* is what the engine needs for its ten best pages by
words only, and *all* what it needs for the scores of all matching pages, which an order by words and importance needs
if the bound of the remaining ones is not low enough. An *update* replaces 1 % of the pages. The last column compares
the scores of all pages before and after half of the pages were replaced by equal ones, which should change nothing.
Times are CPU times (median, largest) of all threads. FTS5 and surveyor also store the texts, and surveyor the sketches
by which it finds near-duplicates.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.table import markdown
from surveyor.search.generation import Generation
from surveyor.search.query import parse, terms_of
from surveyor.search.searcher import Searcher
from surveyor.search.segment import Draft, Segment, Texts
from surveyor.search.state import State

QUERIES = ("wa", "wf", "wby", "wtg", "wf wby", "wu wlo", "wdw wbmm", "wb wc wd")
ROUNDS = 5
VOCABULARY = 200_000
BATCH = 10_000


def letters(number: int) -> str:
    """Return a word of letters, as tokenizers divide others."""
    name = ""
    while True:
        number, digit = divmod(number, 26)
        name = chr(97 + digit) + name
        if not number:
            return f"w{name}"
        number -= 1


def texts(count: int, size: int) -> Iterator[str]:
    """Yield the same random texts each time."""
    rng = np.random.default_rng(1)
    shares = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    words = [letters(number) for number in range(VOCABULARY)]
    for _ in range(count):
        ids = np.minimum(np.searchsorted(shares, rng.random(size) * shares[-1]), VOCABULARY - 1)
        yield " ".join([words[one] for one in ids.tolist()])


class Engine(Protocol):
    """An engine in a folder."""

    def build(self, folder: Path, bodies: list[str]) -> None: ...

    def update(self, bodies: list[str], first: int, last: int) -> None: ...

    def best(self, query: str) -> int: ...

    def all(self, query: str) -> dict[int, float]: ...


class Fts5:
    def build(self, folder: Path, bodies: list[str]) -> None:
        self.database = sqlite3.connect(folder / "fts5.db")
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("CREATE VIRTUAL TABLE pages USING fts5(body)")
        self._add(bodies, 0)

    def _add(self, bodies: list[str], first: int) -> None:
        self.database.executemany("INSERT INTO pages(rowid, body) VALUES (?, ?)", enumerate(bodies, first))
        self.database.commit()

    def update(self, bodies: list[str], first: int, last: int) -> None:
        self.database.execute("DELETE FROM pages WHERE rowid >= ? AND rowid < ?", (first, last))
        self._add(bodies[first:last], first)

    def _ask(self, query: str, more: str) -> list[tuple[int, float]]:
        asked = f"SELECT rowid, bm25(pages) FROM pages WHERE pages MATCH ? {more}"  # noqa: S608
        return self.database.execute(asked, (query,)).fetchall()

    def best(self, query: str) -> int:
        return len(self._ask(query, "ORDER BY rank LIMIT 10"))

    def all(self, query: str) -> dict[int, float]:
        return dict(self._ask(query, ""))


class Tantivy:
    def build(self, folder: Path, bodies: list[str]) -> None:
        self.module: Any = import_module("tantivy")
        builder = self.module.SchemaBuilder()
        builder.add_unsigned_field("page", stored=True, indexed=True, fast=True)
        builder.add_text_field("body", tokenizer_name="whitespace")
        (folder / "tantivy").mkdir()
        self.index: Any = self.module.Index(builder.build(), str(folder / "tantivy"))
        self._add(bodies, 0)

    def _add(self, bodies: list[str], first: int) -> None:
        writer = self.index.writer(200_000_000, num_threads=1)
        for page, body in enumerate(bodies, first):
            if first or self.index.searcher().num_docs:
                writer.delete_documents_by_term("page", page)
            document = self.module.Document()
            document.add_unsigned("page", page)
            document.add_text("body", body)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.searcher = self.index.searcher()

    def update(self, bodies: list[str], first: int, last: int) -> None:
        self._add(bodies[first:last], first)

    def _ask(self, query: str, limit: int) -> Any:
        make, schema = self.module.Query, self.index.schema
        parts = [(self.module.Occur.Must, make.term_query(schema, "body", word)) for word in query.split()]
        return self.searcher.search(make.boolean_query(parts), limit=limit, count=False).hits

    def best(self, query: str) -> int:
        return len(self._ask(query, 10))

    def all(self, query: str) -> dict[int, float]:
        hits = self._ask(query, self.searcher.num_docs)
        pages = self.searcher.fast_field_values("page", [address for _, address in hits])
        return dict(zip(pages, (score for score, _ in hits), strict=True))


class Own:
    def build(self, folder: Path, bodies: list[str]) -> None:
        self.place = folder / "own"
        self.place.mkdir()
        self.state, self.folders = State(), list[Path]()
        for first in range(0, len(bodies), BATCH):
            self._add(bodies[first : first + BATCH], first)
        self._open()

    def _add(self, bodies: list[str], first: int) -> None:
        draft, number = Draft(), len(self.folders)
        for page, body in enumerate(bodies, first):
            draft.add(Texts(page, "", "", "", (), (), body, ""))
            self.state.entries[page] = (number, page - first, 0.0, 0)
        self.folders.append(self.place / f"segment-{number:09d}")
        draft.write(self.folders[-1])

    def _open(self) -> None:
        folder = self.place / f"state-{len(self.folders):09d}"
        self.state.write(folder, [Segment(path) for path in self.folders], groups=False)
        about = {"segments": [path.name for path in self.folders], "state": folder.name}
        self.searcher = Searcher(Generation(self.place, about))

    def update(self, bodies: list[str], first: int, last: int) -> None:
        self._add(bodies[first:last], first)
        self._open()

    def best(self, query: str) -> int:
        found = self.searcher.match(terms_of(parse(query)))
        unknown = np.full(self.searcher.pages, np.nan)
        return len(self.searcher.best(found, unknown, 1.0, 0.0, 10).rows)

    def all(self, query: str) -> dict[int, float]:
        found = self.searcher.match(terms_of(parse(query)))
        return dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))


def seconds_of(work: Callable[[], object]) -> float:
    """Return the CPU time of some work, of all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(name: str, engine: Engine, bodies: list[str], folder: Path) -> list[str]:
    """Return the row of an engine."""
    build = seconds_of(lambda: engine.build(folder, bodies))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    best, whole = [], []
    for query in QUERIES:
        engine.best(query)
        best += [seconds_of(lambda query=query: engine.best(query)) * 1e3 for _ in range(ROUNDS)]  # type: ignore[misc]
        whole += [seconds_of(lambda query=query: engine.all(query)) * 1e3 for _ in range(ROUNDS)]  # type: ignore[misc]
    before = engine.all(QUERIES[4])
    part = len(bodies) // 100
    update = seconds_of(lambda: engine.update(bodies, 0, part))
    engine.update(bodies, part, len(bodies) // 2)
    after = engine.all(QUERIES[4])
    differing = max(abs(after[page] - score) / abs(score) for page, score in before.items())
    return [
        name,
        f"{build:.0f}",
        f"{size / 1e6:.0f}",
        f"{statistics.median(best):.1f}, {max(best):.1f}",
        f"{statistics.median(whole):.1f}, {max(whole):.1f}",
        f"{update:.2f}",
        f"{differing:.1e}",
    ]


ENGINES: dict[str, Callable[[], Engine]] = {"own": Own, "tantivy": Tantivy, "fts5": Fts5}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.search_engines")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--engines", default=",".join(ENGINES))
    options = parser.parse_args()
    bodies = list(texts(options.pages, options.words))
    heads = ["engine", "build, s", "MB", "best 10, ms", "all, ms", "update of 1 %, s", "scores differ after updates"]
    rows = []
    for name in options.engines.split(","):
        place = Path(tempfile.mkdtemp(prefix="surveyor-bench-"))
        try:
            rows.append(measure(name, ENGINES[name](), bodies, place))
            print(rows[-1], flush=True)
        finally:
            shutil.rmtree(place)
    print(markdown(heads, rows))


if __name__ == "__main__":
    main()
