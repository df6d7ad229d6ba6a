"""How much each page of the frontier would move the ranks of local pages: stochastic complementation, exactly.

Were page j read, of which only the links to it are known, and did it link as the average link does (`s`), then one
step from the ranks f changes them by

    x + c·v + g·z      (docs/explanation/global-rank.md has the derivation)

x ≤ 0 is what pages lose that share a parent with j, c·v what all lose to one more page, g·z what flows back from j.
The sum of absolute changes over the local pages is known for c·v + g·z from a sorted table; only where x is not 0
it is corrected. Pages with the same parents have the same score, which is worked out once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, KeyArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.known import Known


class Terms(NamedTuple):
    """What the change of ranks is made of, for each page of the frontier (c, g) and each local page (v, z)."""

    base: FloatArray  # sum over local pages of |c·v + g·z|
    c: FloatArray
    g: FloatArray
    v: FloatArray  # by place
    z: FloatArray


@kernel
def flows(known: Known, ranks: FloatArray, plus: float, flow: FloatArray, stuck: FloatArray) -> None:
    """Sum up, for each page of the frontier, rank / (links + plus) of its parents, and the rank of those without.

    A parent that links to no page read gives all its rank (with plus 0 too).
    """
    for page in range(known.frontier.shape[0]):
        total, lost = 0.0, 0.0
        for entry in range(known.parents_indptr[page], known.parents_indptr[page + 1]):
            parent = known.parents[entry]
            links = known.indptr[parent + 1] - known.indptr[parent]
            total += ranks[parent] / max(links + plus, 1.0)
            lost += ranks[parent] if links == 0 else 0.0
        flow[page] = total
        stuck[page] = lost


@kernel
def same_parents(known: Known, keys: KeyArray, table: IdArray, twin: IdArray) -> None:
    """Write, for each page of the frontier, the first one that has the same parents.

    `keys` are random, one per place; `table` has room for twice as many pages, a power of two, and holds -1.
    """
    mask = np.uint64(table.shape[0] - 1)
    for page in range(known.frontier.shape[0]):
        first, last = known.parents_indptr[page], known.parents_indptr[page + 1]
        key = np.uint64(0)
        for entry in range(first, last):
            key += keys[known.parents[entry]]
        slot = (key ^ (key >> np.uint64(32))) & mask
        while table[slot] >= 0:
            other = table[slot]
            start = known.parents_indptr[other]
            same = known.parents_indptr[other + 1] - start == last - first
            for step in range(last - first):
                if not same:
                    break
                same = known.parents[start + step] == known.parents[first + step]
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = page
        twin[page] = table[slot]


@kernel
def corrected(
    known: Known, local: BoolArray, leak: FloatArray, terms: Terms, twin: IdArray, first: int, last: int,
    lost: FloatArray, met: IdArray, scores: FloatArray,
) -> None:  # fmt: skip
    """Score some pages of the frontier: the table's sum, corrected where siblings lose rank.

    `leak` is what each page read takes from each page it links to, were it to link to one more. `lost` holds zeros
    before and after; `met` is scratch. Twins of another page are left for it to be copied from.
    """
    for page in range(first, last):
        if twin[page] != page:
            continue
        siblings = 0
        for entry in range(known.parents_indptr[page], known.parents_indptr[page + 1]):
            parent = known.parents[entry]
            amount = leak[parent]
            if amount == 0.0:
                continue
            for link in range(known.indptr[parent], known.indptr[parent + 1]):
                sibling = known.indices[link]
                if not local[sibling]:
                    continue
                if lost[sibling] == 0.0:
                    met[siblings] = sibling
                    siblings += 1
                lost[sibling] += amount
        total = 0.0
        for entry in range(siblings):
            sibling = met[entry]
            rest = terms.c[page] * terms.v[sibling] + terms.g[page] * terms.z[sibling]
            total += abs(rest - lost[sibling]) - abs(rest)
            lost[sibling] = 0.0
        scores[page] = terms.base[page] + total
