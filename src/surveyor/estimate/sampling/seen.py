"""What walks have seen, gathered from compiled walks and from walks over a live web, to judge what they missed."""

from __future__ import annotations

import numpy as np

from surveyor.arrays import IntArray
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.coverage import Seen
from surveyor.estimate.sampling.ground import WalkGraph
from surveyor.estimate.sampling.walk_trace import WalkTrace


def seen_on_graph(neighbours: NeighbourLists, walks: CompiledWalks) -> Seen:
    """Gather what compiled walks have seen."""
    pages, first = np.unique(walks.trace().page, return_index=True)
    sizes = neighbours.starts[pages + 1] - neighbours.starts[pages]
    place = np.repeat(np.arange(pages.size), sizes)
    rows = np.arange(place.size) + np.repeat(neighbours.starts[pages] - (np.cumsum(sizes) - sizes), sizes)
    other, bits = neighbours.pages[rows], neighbours.links[rows]
    met: IntArray = np.full(neighbours.starts.size - 1, np.iinfo(np.int64).max)
    met[pages] = first
    told, read, out = bits & 4 != 0, walks.fetched[other] & (bits & 2 != 0), bits & 1 != 0
    known = told | read
    degree = np.maximum(walks.degrees[pages], 0).astype(np.int64)
    lists = np.concatenate([walks.list_of(page) for page in pages.tolist()])
    owner, frozen = np.repeat(np.arange(pages.size), degree), walks.degrees[lists] >= 0
    drawn, refused = (
        np.bincount(owner[some], minlength=pages.size) for some in (frozen, walks.fetched[lists] & ~frozen)
    )
    return Seen(
        pages, np.bincount(place[out], minlength=pages.size), degree, drawn, refused,
        place[known], told[known], read[known], (read & (met[other] < met[pages][place]))[known],
        out[known],
    )  # fmt: skip


def seen_live(ground: WalkGraph, trace: WalkTrace) -> Seen:
    """Gather what walks over a live web have seen."""
    pages, first = np.unique(trace.page, return_index=True)
    met = dict(zip(pages.tolist(), first.tolist(), strict=True))
    place = {page: at for at, page in enumerate(met)}
    links = {(page, target) for page, near in ground.links.items() for target in near if target in place}
    links |= {(page, target) for target in place for page in ground.told_of(target)}
    rows = [
        (
            place[target], page in ground.told_of(target), target in ground.links.get(page, ()),
            target in ground.links.get(page, ()) and met.get(page, len(trace)) < met[target],
            page in ground.links.get(target, ()),
        )
        for page, target in sorted(links)
    ]  # fmt: skip
    table = np.array(rows, np.int64).reshape(-1, 5).T
    lists = [ground.lists.get(page, []) for page in met]
    return Seen(
        pages, np.array([len(ground.links.get(page, ())) for page in met], np.int64),
        np.array([len(near) for near in lists], np.int64),
        np.array([sum(other in ground.lists for other in near) for near in lists], np.int64),
        np.array([sum(ground.has(other) and other not in ground.lists for other in near) for near in lists], np.int64),
        table[0], *(column.astype(np.bool_) for column in table[1:]),
    )  # fmt: skip
