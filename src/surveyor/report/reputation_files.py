"""Scores of all domains as a file, which appears when it is complete.

    .csv, .csv.gz, .parquet   the columns that a list has as CSV; best first
    .npy                      the scores alone, by id

Estimates of a graph that was read as a stream are written by id, without positions: to put all in order takes memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report.column_files import ROWS, readable, write_columns, write_scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.arrays import AnyIntArray, FloatArray
    from surveyor.report.reputations import Told
    from surveyor.store import tabular


def write_domains(told: Told, path: str | Path) -> Path:
    """Write all domains in the format of the suffix."""
    path = Path(path)
    if path.name.lower().endswith(".npy"):
        return write_scores(path, told.domains.main.scores)
    names = _columns(told)
    return write_columns(path, names, _batches(told, names))


def _columns(told: Told) -> tabular.Columns:
    """Return the names and kinds of the columns, in order."""
    names = {} if told.domains.mode == "streamed" else {"position": "int64"}
    names |= {"id": "int64"} | ({} if told.domains.graph.names is None else {"domain": "string"})
    names |= {"score": "float64", "low": "float64", "high": "float64", "in_links": "int64", "out_links": "int64"}
    names |= {"trust": "float64", "popularity": "float64", "spam_mass": "float64"} if told.domains.trust else {}
    names |= dict.fromkeys(list(told.domains.scores)[1:], "float64")
    names |= {"pages": "int64"} if told.plan is not None else {}
    return names | ({"bad": "int32"} if told.bad is not None else {})


def _batches(told: Told, names: tabular.Columns) -> Iterator[tabular.Batch]:
    main, trust = told.domains.main, told.domains.trust
    ranked = "position" in names
    order = main.top(main.domains) if ranked else np.arange(main.domains)
    marks = None if trust is None else (trust.trust.marks(), trust.popularity.marks())
    for start in range(0, order.size, ROWS):
        nodes = order[start : start + ROWS]
        places = np.arange(start + 1, start + 1 + nodes.size) if ranked else told.places(nodes)
        parts = dict(_parts(told, nodes, places, marks))
        yield {name: parts[name] for name in names}


def _parts(
    told: Told, nodes: AnyIntArray, places: AnyIntArray, marks: tuple[FloatArray, FloatArray] | None
) -> Iterator[tuple[str, Any]]:
    """Yield the columns of some domains."""
    domains, main, graph = told.domains, told.domains.main, told.domains.graph
    low, high = main.intervals(nodes)
    yield "position", places
    yield "id", nodes
    if graph.names is not None:
        yield "domain", readable(graph.names[node] for node in nodes.tolist())
    yield "score", main.raw[nodes].astype(np.float64) * main.unit
    yield "low", low
    yield "high", high
    yield "in_links", graph.in_links.indptr[nodes + 1] - graph.in_links.indptr[nodes]
    yield "out_links", graph.indptr[nodes + 1] - graph.indptr[nodes]
    if domains.trust and marks:
        yield "trust", marks[0][nodes]
        yield "popularity", marks[1][nodes]
        yield "spam_mass", domains.trust.masses(nodes)
    for name in list(domains.scores)[1:]:
        yield name, domains.scores[name].raw[nodes].astype(np.float64) * domains.scores[name].unit
    if told.plan is not None:
        yield "pages", told.pages(places, nodes)
    if told.bad is not None:
        yield "bad", np.isin(nodes, told.bad).astype(np.int32)
