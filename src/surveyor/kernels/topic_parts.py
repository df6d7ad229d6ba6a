"""The parts of a topic: sets of pages on topic that are connected over at most so many pages off topic."""

from __future__ import annotations

import numpy as np

from surveyor.arrays import BoolArray, IdArray, IntArray
from surveyor.kernels._jit import kernel, kernel_without_refcounts


@kernel_without_refcounts
def root_of(parent: IdArray, page: int) -> int:
    """Return the representative of a page, and halve the path to it."""
    while parent[page] != page:
        parent[page] = parent[parent[page]]
        page = parent[page]
    return page


@kernel
def connect(starts: IntArray, pages: IdArray, topic: BoolArray, off: int) -> IdArray:
    """Return a representative for each page; pages on topic share it if at most `off` pages in a row separate them.

    A link is on such a path if the distances of its ends to the topic sum to at most `off`.
    """
    size = topic.size
    distance = np.full(size, off + 1, np.int32)
    queue = np.empty(size, np.int32)
    last = 0
    for page in range(size):
        if topic[page]:
            distance[page] = 0
            queue[last] = page
            last += 1
    first = 0
    while first < last:
        page = queue[first]
        first += 1
        if distance[page] >= off:
            break
        for place in range(starts[page], starts[page + 1]):
            near = pages[place]
            if distance[near] > distance[page] + 1:
                distance[near] = distance[page] + 1
                queue[last] = near
                last += 1
    parent = np.arange(size).astype(np.int32)
    for page in range(size):
        if distance[page] > off:
            continue
        for place in range(starts[page], starts[page + 1]):
            near = pages[place]
            if near < page and distance[page] + distance[near] <= off:
                one, other = root_of(parent, page), root_of(parent, near)
                if one != other:
                    parent[max(one, other)] = min(one, other)
    for page in range(size):
        parent[page] = root_of(parent, page)
    return parent
