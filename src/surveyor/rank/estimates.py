"""Estimates of the global rank of local pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.graph.csr import Graph
from surveyor.kernels.known import Known
from surveyor.rank.pagerank import pagerank

Method = Literal["auto", "crawled", "frontier"]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """An estimate of the global rank of local pages."""

    scores: FloatArray  # by local page, summing to 1
    error: float  # proven, of the solving alone: how far the estimate is from the truth nobody can prove
    method: str
    weights: Mapping[str, float] = field(default_factory=dict)  # of what it was combined from
    why: str = ""


def estimate(
    known: Known,
    local: IdArray,
    batch_of: IntArray,  # noqa: ARG001
    method: Method = "auto",
    *,
    damping: float = 0.85,
    tolerance: float = 1e-9,
) -> Estimate:
    """Estimate the global rank of local pages, by place."""
    pages = known.pages.size
    leaving = known.leaving if method != "crawled" else np.zeros(pages, np.int64)
    degrees = known.degrees
    indptr = np.concatenate([[0], np.cumsum(degrees + leaving), [int((degrees + leaving).sum())]])
    indices = np.full(int(indptr[-1]), pages, np.int32)
    inner = np.arange(known.indices.size) + np.repeat(indptr[:-2] - known.indptr[:-1], degrees)
    indices[inner] = known.indices
    ranking = pagerank(Graph(indptr, indices), damping, tolerance)
    scores = ranking.scores[local]
    total = float(scores.sum())
    return Estimate(scores / total, 2 * ranking.error / total, "crawled" if method == "crawled" else "frontier")
