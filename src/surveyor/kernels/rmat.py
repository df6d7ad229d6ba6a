"""The links of an R-MAT graph (Chakrabarti, Zhan and Faloutsos 2004), from nothing but the seed and a number.

Each link falls through `scale` levels of a matrix cut in four; ids are shuffled by a one-to-one mix, because
an R-MAT graph as drawn has all its important pages at the front.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.kernels._jit import kernel
from surveyor.kernels.synthetic import draw

if TYPE_CHECKING:
    from surveyor.arrays import IntArray
    from surveyor.kernels.synthetic import Whole

A, B, C = 37356, 49808, 62259  # 0.57, 0.57 + 0.19, 0.57 + 0.19 + 0.19 of 2 ** 16


@kernel
def shuffled(seed: Whole, scale: Whole, page: Whole) -> Whole:
    """Give a page its id: multiply by an odd number and fold, twice, within `scale` bits."""
    mask = (np.uint64(1) << np.uint64(scale)) - np.uint64(1)
    fold = np.uint64((scale + 1) // 2)
    value = np.uint64(page)
    for turn in range(2):
        value = (value * (draw(seed, turn, 1) | np.uint64(1))) & mask
        value ^= value >> fold
    return np.int64(value)


@kernel
def rmat_links(seed: Whole, scale: Whole, start: Whole, sources: IntArray, targets: IntArray) -> None:
    """Write the links numbered from `start` on."""
    for place in range(sources.shape[0]):
        source: Whole = 0
        target: Whole = 0
        bits: Whole = np.uint64(0)
        for level in range(scale):
            if level % 4 == 0:
                bits = draw(seed, start + place, 2 + level)
            luck = np.int64(bits & np.uint64(0xFFFF))
            bits >>= np.uint64(16)
            source, target = 2 * source + (luck >= B), 2 * target + ((luck >= A and luck < B) or luck >= C)
        sources[place] = shuffled(seed, scale, source)
        targets[place] = shuffled(seed, scale, target)
