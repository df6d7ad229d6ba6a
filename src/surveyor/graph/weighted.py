"""Building graphs that keep weights, self-links or several links between the same pages.

Links are sorted by two stable counting sorts, so that the weights of duplicate links are added in the order given and
the result has the same bytes every time. All links are in memory: about 40 bytes each while it is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surveyor.arrays import MAX_PAGES, AnyIntArray, FloatArray, IdArray, IntArray, real_numbers
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Extra, Graph


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRows:
    """The links of a graph, with what a plain graph does not have."""

    indptr: IntArray
    indices: IdArray
    extra: Extra
    provenance: dict[str, Any]


def build_weighted(
    sources: AnyIntArray,
    targets: AnyIntArray,
    nodes: int | None,
    weights: FloatArray | None,
    *,
    self_links: bool = False,
    multi_links: bool = False,
) -> WeightedRows:
    """Sort links; with weights, those of equal links are added, so that `multi_links` then changes nothing."""
    from surveyor.kernels.weighted_links import merge_links

    froms, tos, largest = _checked(sources, targets, nodes)
    pages = largest + 1 if nodes is None else nodes
    seen = froms.size
    chosen = np.ones(seen, np.bool_) if self_links else froms != tos
    values = None if weights is None else _weights(weights, seen)
    if values is not None:
        chosen &= values > 0
    if not chosen.all():
        froms, tos = froms[chosen], tos[chosen]
        values = None if values is None else values[chosen]
    order = sort_links(froms, tos, pages)
    provenance = {"links_read": int(seen), "self_links_dropped": int(seen - froms.size)}
    if values is None and multi_links:
        froms, indices = froms[order], tos[order]
    else:
        indices, sums = np.empty(froms.size, np.int32), np.empty(froms.size)
        ones = np.ones(froms.size) if values is None else values
        count = merge_links(froms, tos, ones, order, indices, sums)
        froms, indices = froms[:count], indices[:count]
        values = None if values is None else sums[:count]
        if values is not None and not np.isfinite(values).all():
            raise UsageError("the weights of links between the same pages add up to infinity", hint="scale the weights")
    provenance["repeats_merged"] = int(order.size - froms.size)
    indptr = np.zeros(pages + 1, np.int64)
    np.cumsum(np.bincount(froms, minlength=pages), out=indptr[1:])
    same = froms == indices
    same[1:] |= (froms[1:] == froms[:-1]) & (indices[1:] == indices[:-1])
    return WeightedRows(indptr, indices, Extra(values, multigraph=bool(same.any())), provenance)


def sort_links(sources: IdArray, targets: IdArray, pages: int) -> IntArray:
    """Return the order of links by source, then by target, then as given."""
    from surveyor.kernels.weighted_links import count_ids, place_by

    order = np.arange(sources.size)
    for ids in (targets, sources):
        counts = np.zeros(pages + 1, np.int64)
        count_ids(ids, counts[1:])
        new = np.empty_like(order)
        place_by(ids, order, np.cumsum(counts), new)
        order = new
    return order


def transposed(graph: Graph, values: FloatArray) -> FloatArray:
    """Return a value per link in the order of the in-links."""
    from surveyor.kernels.weighted_links import transpose_values

    out = np.empty(graph.links)
    transpose_values(graph.indptr, graph.indices, values, graph.in_links.indptr[:-1].copy(), out)
    return out


def transposed_probabilities(graph: Graph) -> FloatArray:
    """Return the probability of following each link, in the order of the in-links."""
    from surveyor.kernels.weighted_links import link_probabilities

    assert graph.weights is not None, "checked by the caller"  # noqa: S101
    probabilities = np.empty(graph.links)
    link_probabilities(graph.indptr, graph.weights, probabilities)
    return transposed(graph, probabilities)


def _checked(sources: AnyIntArray, targets: AnyIntArray, nodes: int | None) -> tuple[IdArray, IdArray, int]:
    """Return checked ids as int32, and the largest."""
    if sources.shape != targets.shape or sources.ndim != 1:
        raise UsageError(
            f"{len(sources):,} sources but {len(targets):,} targets", hint="pass one source and one target per link"
        )
    ends = []
    for ids in (sources, targets):
        if ids.dtype.kind not in "iu" and ids.size:
            raise UsageError(f"page ids must be integers, got {ids.dtype}", hint="for names use sv.as_graph")
        limit = MAX_PAGES if nodes is None else nodes
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < limit:
            wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
            raise InputError(
                f"a link has page id {wrong:,}, but page ids must be from 0 to {limit - 1:,}",
                hint="page ids start at 0; pass the right number of pages, or omit it",
            )
        ends.append(ids.astype(np.int32))
    return ends[0], ends[1], int(max(ends[0].max(initial=-1), ends[1].max(initial=-1)))


def _weights(weights: FloatArray, links: int) -> FloatArray:
    values = real_numbers(weights, "weights", hint="pass one number per link")
    if values.shape != (links,):
        raise UsageError(f"{values.size:,} weights for {links:,} links", hint="pass one weight per link")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        wrong = values[~(np.isfinite(values) & (values >= 0))][0]
        raise UsageError(f"weights must be finite and at least 0, got {wrong}", hint="leave weights out to ignore them")
    return values
