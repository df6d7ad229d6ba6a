"""In-links, split votes and two-link paths over pieces, bit-identical to those of the graph in one part.

Votes are floating-point numbers whose sum depends on their order: each piece sums them in the order of the page
numbers of their sources, as `rank/domains/link_counts.py` does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.graph.pieces.tasks import Place, Tasks

Kind = Literal["win", "qvs"]


def in_degrees(tasks: Tasks) -> None:
    """Write the in-degree of each page."""
    tasks.run(write_in_degrees, "in")


def sums_over_in_links(tasks: Tasks, kind: Kind) -> None:
    """Write, for each page, the sum of the votes (`win`) or in-degrees (`qvs`) of the pages that link to it."""
    tasks.run(send_weights, kind)
    tasks.run(sum_weights, kind)
    tasks.drop("number", "weight")


def write_in_degrees(place: Place, name: str) -> None:
    """Write the in-degrees of a piece."""
    place.write(name, np.diff(place.piece.indptr))


def write_out_degrees(place: Place, name: str) -> None:
    """Write the out-degrees of a piece."""
    place.write(name, place.piece.out_degrees.astype(np.int64))


def send_weights(place: Place, kind: Kind) -> None:
    """Send the page numbers and the weights of the pages of a piece."""
    place.send("number", place.numbers)
    place.send("weight", _weights(place, kind))


def sum_weights(place: Place, kind: Kind) -> None:
    """Sum the weights of the pages that link to each page of a piece."""
    from surveyor.kernels.sketches import Adjacency
    from surveyor.kernels.supporter_counts import sum_in_order

    piece = place.piece
    numbers = np.concatenate([place.numbers, place.received("number", np.int64)])
    weights = np.concatenate([_weights(place, kind), place.received("weight", np.float64)])
    order = np.argsort(numbers)
    ranks = np.empty(order.size, np.int32)
    ranks[order] = np.arange(order.size)
    sums = np.empty(piece.pages)
    sum_in_order(Adjacency(piece.indptr.view(np.uint64), piece.indices.view(np.uint32)), ranks, weights[order], sums)
    place.write(kind, sums)


def _weights(place: Place, kind: Kind) -> FloatArray:
    if kind == "qvs":
        return np.diff(place.piece.indptr).astype(np.float64)
    degrees = place.piece.out_degrees
    return np.divide(1.0, degrees, out=np.zeros(degrees.size), where=degrees > 0)
