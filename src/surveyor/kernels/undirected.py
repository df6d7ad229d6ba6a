"""Links in both directions as one list of neighbours: each once, in ascending order, without the page itself."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from surveyor.kernels._jit import kernel

Whole: TypeAlias = Any


@kernel
def ascending(row: Whole) -> Whole:
    """Return a row in ascending order; most are."""
    for place in range(1, row.size):
        if row[place] < row[place - 1]:
            return np.sort(row)
    return row


@kernel
def merge(
    starts: Whole, targets: Whole, in_starts: Whole, sources: Whole, where: Whole, neighbours: Whole, links: Whole
) -> None:
    """Count the neighbours of each page into `where` (one later), or, if there is room for them, write them down.

    Bits of `links`: 1 if the page links to the neighbour, 2 if the neighbour links to the page.
    """
    for page in range(starts.size - 1):
        out = ascending(targets[starts[page] : starts[page + 1]])
        into = ascending(sources[in_starts[page] : in_starts[page + 1]])
        i, j, count = 0, 0, 0
        while i < out.size or j < into.size:
            if j == into.size or (i < out.size and out[i] <= into[j]):
                other = out[i]
            else:
                other = into[j]
            kind = 0
            while i < out.size and out[i] == other:
                kind, i = kind | 1, i + 1
            while j < into.size and into[j] == other:
                kind, j = kind | 2, j + 1
            if other != page:
                if neighbours.size:
                    neighbours[where[page] + count], links[where[page] + count] = other, kind
                count += 1
        if not neighbours.size:
            where[page + 1] = where[page] + count
