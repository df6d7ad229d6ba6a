"""Domains and their scores: as rows of a list, in words, and all of them as a file.

    .csv, .csv.gz, .parquet   id, domain, score, low, high, in_links, and what else was asked for; best first
    .npy                      the scores alone, by id

Estimates of a graph that was read as a stream are written by id, since putting all in order takes memory.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.errors import UsageError
from surveyor.graph.formats.streams import aside, packing
from surveyor.report.numbers import count, counted, percent
from surveyor.report.tables import Table
from surveyor.store import columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.arrays import AnyIntArray, IntArray
    from surveyor.budgets import Plan
    from surveyor.rank.domains import Domain, Domains
    from surveyor.rank.reputation import Reputation

ROWS = 1 << 16  # written at a time
WORDS = {
    "tse": "supporters", "supp": "supporters", "bv": "supporters", "in": "in-links", "win": "split votes",
    "pagerank": "share", "harmonic": "harmonic", "qvs": "paths",
}  # fmt: skip
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npy")


@dataclass(frozen=True, slots=True)
class Told:
    """What a list of domains says of each: its score, pages it may take, and whether it is on a list of bad ones."""

    domains: Domains
    plan: Plan | None = None
    bad: IntArray | None = None

    def pages(self, rows: list[Domain]) -> list[int]:
        """Return the budgets of domains in a list."""
        return [] if self.plan is None else self.plan.pages(np.array([row.position for row in rows])).tolist()

    def records(self, rows: list[Domain]) -> list[dict[str, Any]]:
        """Return the rows as JSON shows them."""
        budgets = self.pages(rows)
        bad = set() if self.bad is None else set(self.bad.tolist())
        told = [_finite(row.to_dict()) for row in rows]
        for place, record in enumerate(told):
            record["domain"] = record.pop("name")
            if self.plan is not None:
                record["pages"] = budgets[place]
            if self.bad is not None:
                record["bad"] = record["id"] in bad
        return told

    def table(self, rows: list[Domain]) -> Table:
        """Lay the best domains out, for people and for machines."""
        main, records = self.domains.main, self.records(rows)
        exact = main.certainty.confidence == 1
        titles = ["", WORDS[main.kind], *([] if exact else [f"{main.certainty.confidence:.0%} between"])]
        titles += ["in-links"] if main.kind != "in" else []
        titles += ["trust", "popularity", "spam mass"] if self.domains.trust else []
        titles += ["budget"] if self.plan else []
        cells = [
            [count(row.position), figure(main.kind, row.score), *([] if exact else [between(main.kind, row)]),
             *([count(row.in_links)] if main.kind != "in" else []),
             *([f"{row.trust:.0f}", f"{row.popularity:.0f}", f"{row.spam_mass:.2f}"] if self.domains.trust else []),
             *([count(record["pages"])] if self.plan else []),
             f"{'! ' if record.get('bad') else ''}{row.name}"]
            for row, record in zip(rows, records, strict=True)
        ]  # fmt: skip
        keys = list(records[0]) if records else ["position", "domain", "score"]
        return Table([*titles, "domain"], cells, keys, [tuple(record.get(key) for key in keys) for record in records])


def figure(kind: str, score: float) -> str:
    """Write a score."""
    return percent(score) if kind == "pagerank" else f"{score:,.2f}" if kind in ("win", "harmonic") else count(score)


def between(kind: str, row: Domain) -> str:
    """Write the ends of an interval."""
    return f"{figure(kind, row.low)} - {figure(kind, row.high) if np.isfinite(row.high) else '…'}"


def how(told: Reputation, domains: int) -> str:
    """Say in a line how a score came about and how sure it is."""
    method = told.method
    if told.kind == "tse":
        if method["p"] >= 1:
            return f"level-{method['depth']} supporters, all {count(domains)} domains walked from: exact"
        error = method.get("error", np.inf)
        reached = f"; error {percent(error)} (one standard deviation) at rank {count(method['top'])}"
        sampled = f"{count(method['sampled'])} of {counted(domains, 'domain')} sampled (p = {method['p']:.2g})"
        return f"level-{method['depth']} supporters: {sampled}{reached if np.isfinite(error) else ''}"
    if told.kind == "pagerank":
        return f"PageRank; proven error at most {method['error']:.1e} in total"
    if told.kind == "harmonic":
        return f"harmonic centrality from counters of {method.get('registers', '')} registers"
    if told.kind == "bv":
        return f"level-{method['depth']} supporters from bit vectors, {counted(method['rounds'], 'round')}"
    words = {
        "supp": f"level-{method.get('depth')} supporters, counted",
        "in": "in-links, counted",
        "win": "in-links, each worth 1 / links of the linking domain",
        "qvs": "paths of two links, counted",
    }
    return words[told.kind]


def check_file(path: str) -> None:
    """Refuse a name that tells no format, before the work is done."""
    if not path.lower().endswith(SUFFIXES):
        raise UsageError(f"the name {path} tells no format for scores", hint=f"end it in one of {', '.join(SUFFIXES)}")


def write_domains(told: Told, path: str | Path) -> Path:
    """Write all domains in the format of the suffix; the file appears when it is complete."""
    path, main = Path(path), told.domains.main
    if path.name.lower().endswith(".npy"):
        with aside(path) as draft, draft.open("wb") as file:
            np.save(file, main.scores)
        return path
    names = _columns(told)
    if path.name.lower().endswith(".parquet"):
        columns.write(path, names, _batches(told, names))
        return path
    with aside(path) as draft, packing(draft) as write:
        write((",".join(names) + "\n").encode())
        for batch in _batches(told, names):
            text = io.StringIO()
            values = [part.tolist() if isinstance(part, np.ndarray) else part for part in batch.values()]
            csv.writer(text, lineterminator="\n").writerows(zip(*values, strict=True))
            write(text.getvalue().encode("utf-8", "surrogateescape"))
    return path


def _columns(told: Told) -> columns.Columns:
    names = {} if told.domains.mode == "streamed" else {"position": "int64"}
    names |= {"id": "int64"} | ({} if told.domains.graph.names is None else {"domain": "string"})
    names |= {"score": "float64", "low": "float64", "high": "float64", "in_links": "int64"}
    names |= {f"{kind}": "float64" for kind in list(told.domains.scores)[1:]}
    names |= {"trust": "float64", "popularity": "float64", "spam_mass": "float64"} if told.domains.trust else {}
    names |= {"pages": "int64"} if told.plan is not None and "position" in names else {}
    return names | ({"bad": "int32"} if told.bad is not None else {})


def _batches(told: Told, names: columns.Columns) -> Iterator[columns.Batch]:
    domains, main = told.domains, told.domains.main
    order = np.arange(main.domains) if "position" not in names else main.top(main.domains)
    for start in range(0, order.size, ROWS):
        nodes = order[start : start + ROWS]
        places = np.arange(start + 1, start + 1 + nodes.size)
        yield {name: values for name, values in _parts(told, domains, nodes, places) if name in names}


def _parts(told: Told, domains: Domains, nodes: AnyIntArray, places: AnyIntArray) -> Iterator[tuple[str, Any]]:
    """Yield the columns of some domains, in the order of `_columns`."""
    main, graph = domains.main, domains.graph
    low, high = main.intervals(nodes)
    yield "position", places
    yield "id", nodes
    if graph.names is not None:
        raw = (graph.names[node].encode("utf-8", "surrogateescape") for node in nodes.tolist())
        yield "domain", [name.decode("utf-8", "replace") for name in raw]
    yield "score", main.raw[nodes].astype(np.float64) * main.unit
    yield "low", low
    yield "high", high
    yield "in_links", graph.in_links.indptr[nodes + 1] - graph.in_links.indptr[nodes]
    for kind in list(domains.scores)[1:]:
        yield kind, domains.scores[kind].raw[nodes].astype(np.float64) * domains.scores[kind].unit
    if domains.trust:
        yield "trust", domains.trust.trust.scores[nodes]
        yield "popularity", domains.trust.popularity.scores[nodes]
        yield "spam_mass", domains.trust.masses(nodes)
    if told.plan is not None:
        yield "pages", told.plan.pages(places)
    if told.bad is not None:
        yield "bad", np.isin(nodes, told.bad).astype(np.int32)


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in record.items()
    }
