"""The links between the best hosts of a survey, and where to draw them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import map_npy
from surveyor.serve.view.paging import PageQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surveyor.arrays import FloatArray, IntArray
    from surveyor.serve.view.view import View

MOST_LINKS = 900  # drawn: the heaviest
STEPS = 120
CACHED = 8
BLOCK = 200_000  # pages
_lock = threading.Lock()
_known: dict[tuple[str, int, int], tuple[list[dict[str, Any]], list[tuple[int, int, float]]]] = {}


def host_graph(view: View, most: int) -> tuple[list[dict[str, Any]], list[tuple[int, int, float]]]:
    """Return the best hosts with their places (0 to 1) and groups (registrable domains), and the links between them."""
    key = (str(view.generation.folder), view.number, most)
    with _lock:  # the same page twice computes it once
        if key not in _known:
            while len(_known) >= CACHED:
                _known.pop(next(iter(_known)))
            _known[key] = _host_graph(view, most)
        return _known[key]


def _host_graph(view: View, most: int) -> tuple[list[dict[str, Any]], list[tuple[int, int, float]]]:
    if not view.summary()["keeps_graph"]:
        return [], []
    rows = [row for row in view.hosts(PageQuery(sort="share", limit=most))["rows"] if row["share"]]
    if len(rows) < 2:
        return [], []
    sources, targets, weights = host_links(view, [row["id"] for row in rows])
    keep = np.argsort(-weights, kind="stable")[:MOST_LINKS]
    sources, targets, weights = sources[keep], targets[keep], weights[keep]
    domains = {name: place for place, name in enumerate(dict.fromkeys(row["domain"] for row in rows))}
    groups = [min(domains[row["domain"]], 7) for row in rows]
    place = layout(len(rows), np.stack([sources, targets], 1), weights.astype(float))
    nodes = [
        {
            "name": row["host"],
            "share": row["share"],
            "pages": row["pages"],
            "group": group,
            "x": float(x),
            "y": float(y),
        }
        for row, group, (x, y) in zip(rows, groups, place, strict=True)
    ]
    links = zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True)
    return nodes, [(source, target, float(weight)) for source, target, weight in links]


def host_links(view: View, hosts: Sequence[int]) -> tuple[IntArray, IntArray, IntArray]:
    """Return the pairs of different hosts (by place in `hosts`) with links between them, and the number of links."""
    graph = view.links.graph
    host_of = np.asarray(view.column("host")[map_npy(view.generation.folder / "rank" / "page.npy")])
    place = np.full(int(max(int(host_of.max(initial=0)), *hosts)) + 1, -1, np.int32)
    place[np.array(hosts)] = np.arange(len(hosts))
    node_place = place[host_of]
    counts = np.zeros(len(hosts) ** 2, np.int64)
    for first in range(0, graph.pages, BLOCK):  # a part at a time: the graph may be larger than the memory
        last = min(graph.pages, first + BLOCK)
        ends = np.asarray(graph.indptr[first : last + 1]).astype(np.int64)
        degrees = ends[1:] - ends[:-1]
        links = np.asarray(graph.indices[int(ends[0]) : int(ends[-1])])
        sources, targets = np.repeat(node_place[first:last], degrees), node_place[links.astype(np.int64)]
        keep = (sources >= 0) & (targets >= 0) & (sources != targets)
        pairs = sources[keep].astype(np.int64) * len(hosts) + targets[keep]
        counts += np.bincount(pairs, minlength=counts.size)
    found = np.flatnonzero(counts)
    return found // len(hosts), found % len(hosts), counts[found]


def layout(nodes: int, links: np.ndarray[Any, Any], weights: FloatArray) -> FloatArray:
    """Return places in the unit square, by the springs of Fruchterman and Reingold (1991); always the same ones."""
    angle = np.arange(nodes) * 2.399963229728653  # the golden angle: a spiral with the best hosts in the middle
    radius = np.sqrt((np.arange(nodes) + 0.5) / nodes) / 2
    at = np.stack([np.cos(angle), np.sin(angle)], 1) * radius[:, None]
    ideal = 0.8 / np.sqrt(nodes)
    pull = np.log1p(weights) / (np.log1p(weights).max() if weights.size else 1.0)
    for step in range(STEPS):
        apart = at[:, None, :] - at[None, :, :]
        distance = np.sqrt((apart**2).sum(-1)) + 1e-6
        force = (apart * (ideal**2 / distance**2)[:, :, None]).sum(1)
        if links.size:
            along = at[links[:, 1]] - at[links[:, 0]]
            length = np.sqrt((along**2).sum(-1, keepdims=True)) + 1e-6
            spring = along * length / ideal * pull[:, None]
            np.add.at(force, links[:, 0], spring)
            np.add.at(force, links[:, 1], -spring)
        force -= 0.6 * at  # to the middle, so that hosts without links stay near
        size = np.sqrt((force**2).sum(-1, keepdims=True)) + 1e-9
        at += force / size * np.minimum(size, 0.08 * (1 - step / STEPS))
    at -= at.min(0)
    placed: FloatArray = at / np.maximum(at.max(0), 1e-9)
    return placed
