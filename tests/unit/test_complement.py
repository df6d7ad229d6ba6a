"""Scores of the frontier against chains built densely, page by page."""

from __future__ import annotations

import numpy as np
import pytest

from surveyor.arrays import read_only
from surveyor.kernels.crawled_graph import CrawledGraph, build_crawled_graph
from surveyor.kernels.mass import Rows
from surveyor.rank import expansion as scores

DAMPING = 0.85


def rows_of(links: np.ndarray) -> Rows:
    """The links of a dense matrix as rows."""
    ends = np.cumsum(links.sum(axis=1))
    targets = np.nonzero(links)[1].astype(np.int32)
    return Rows(read_only(np.concatenate([[0], ends[:-1]])), read_only(ends), read_only(targets))


def places(read: np.ndarray) -> np.ndarray:
    """The ids of pages that are marked."""
    return np.flatnonzero(read).astype(np.int32)


def stationary(links: np.ndarray, teleport: np.ndarray) -> np.ndarray:
    """PageRank by a dense solve."""
    steps = np.array([row / row.sum() if row.any() else teleport for row in links])
    ranks = np.linalg.solve(np.eye(len(links)) - DAMPING * steps.T, (1 - DAMPING) * teleport)
    return np.asarray(ranks / ranks.sum())


def influence(
    links: np.ndarray, parents: np.ndarray, ranks: np.ndarray, teleport: np.ndarray, newcomer: float
) -> np.ndarray:
    """S f - f: one step of the stochastic complement of the chain with one more page."""
    size = len(links)
    into = links.sum(axis=0)
    typical = into / into.sum() if into.any() else np.full(size, 1 / size)
    jumps = np.append((1 - newcomer) * teleport, newcomer)
    columns = np.zeros((size + 1, size + 1))
    for page in range(size):
        column = np.append(links[page], parents[page]).astype(float)
        columns[:, page] = column / column.sum() if column.any() else jumps
    columns[:size, size] = typical
    chain = DAMPING * columns + (1 - DAMPING) * jumps[:, None]
    inner = chain[:size, :size] + np.outer(chain[:size, size], chain[size, :size]) / (1 - chain[size, size])
    return np.asarray(inner @ ranks - ranks)


def case(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, float | None]:
    """A random web, which pages are read and which are local; jumps uniform, personal, or to one page."""
    rng = np.random.default_rng(number)
    size = int(rng.integers(2, 26))
    links = rng.random((size, size)) < rng.uniform(0.02, 0.35)
    links[rng.random(size) < 0.2] = False  # dangling
    if number % 4 == 0 and size > 5:
        links[:, -2] = links[:, -1]  # two pages with the same parents
    np.fill_diagonal(links, val=False)
    read = np.zeros(size, np.bool_)
    read[rng.choice(size, int(rng.integers(1, size)), replace=False)] = True
    pages = np.flatnonzero(read)
    local = np.isin(pages, rng.choice(pages, int(rng.integers(1, pages.size + 1)), replace=False))
    if number % 3 == 0:
        return links, read, local, None, None
    teleport = rng.random(pages.size) if number % 3 == 1 else np.eye(pages.size)[rng.integers(pages.size)]
    return links, read, local, teleport / teleport.sum(), float(rng.random() * 0.3) if number % 3 == 1 else 0.0


@pytest.mark.parametrize("block", range(8))
def test_complement_is_the_change_of_the_dense_chain(block: int) -> None:
    compared = 0
    for number in range(block * 60, block * 60 + 60):
        links, read, local, teleport, newcomer = case(number)
        found, inner = build_crawled_graph(rows_of(links), places(read)), links[np.ix_(read, read)].astype(float)
        jumps = np.full(len(inner), 1 / len(inner)) if teleport is None else teleport
        ranks = stationary(inner, jumps)
        given = scores.complement(found, ranks, local, DAMPING, teleport=teleport, newcomer=newcomer)
        share = 1 / (len(inner) + 1) if newcomer is None else newcomer
        for page, score in zip(found.frontier, given, strict=True):
            change = influence(inner, links[read][:, page], ranks, jumps, share)
            truth = np.abs(change[local]).sum()
            assert abs(change.sum()) < 1e-14
            assert abs(score - truth) <= 1e-11 * truth + 1e-15
            compared += 1
    assert compared >= 130  # over 1,000 in all blocks


def test_flow_and_the_others_are_sums_over_parents() -> None:
    for number in range(100):
        links, read, _, _, _ = case(number)
        found, inner = build_crawled_graph(rows_of(links), places(read)), links[np.ix_(read, read)]
        ranks = np.random.default_rng(number).random(len(inner))
        flow, cho, count = scores.flow(found, ranks), scores.flow(found, ranks, plus=0.0), scores.outlinks(found)
        for entry, page in enumerate(found.frontier):
            parents = np.flatnonzero(links[read][:, page])
            degrees = inner[parents].sum(axis=1)
            assert flow[entry] == pytest.approx(sum(ranks[parents] / (degrees + 1)), rel=1e-12)
            assert cho[entry] == pytest.approx(sum(ranks[parents] / np.maximum(degrees, 1)), rel=1e-12)
            assert count[entry] == parents.size


def test_known_is_what_the_rows_of_pages_read_say() -> None:
    for number in range(200):
        links, read, _, _, _ = case(number)
        rng = np.random.default_rng(number)
        final = np.arange(len(links), dtype=np.int32)
        moved = np.flatnonzero(~read & (rng.random(len(links)) < 0.3))
        final[moved] = rng.integers(len(links), size=moved.size)
        final = final[final]
        found = build_crawled_graph(rows_of(links), places(read), None if number % 2 else final)
        result = dense(found, len(links))
        expected = np.zeros((len(links), len(links)))
        for page, target in zip(*np.nonzero(links), strict=True):
            goal = target if number % 2 else final[target]
            if read[page] and goal != page:
                expected[page, goal] += 1
        assert (result == expected).all()
        assert (found.leaving == expected[read][:, ~read].sum(axis=1)).all()
        assert (np.sort(found.frontier) == np.flatnonzero(~read & (expected.sum(axis=0) > 0))).all()


def dense(found: CrawledGraph, size: int) -> np.ndarray:
    """All links that are known, by id."""
    links = np.zeros((size, size))
    for place, page in enumerate(found.pages):
        for entry in range(found.indptr[place], found.indptr[place + 1]):
            links[page, found.pages[found.indices[entry]]] += 1
    for entry, page in enumerate(found.frontier):
        for at in range(found.parents_indptr[entry], found.parents_indptr[entry + 1]):
            links[found.pages[found.parents[at]], page] += 1
    return links


def test_threads_do_not_change_a_byte() -> None:
    rng = np.random.default_rng(5)
    links = rng.random((400, 400)) < 0.02
    np.fill_diagonal(links, val=False)
    found = build_crawled_graph(rows_of(links), places(rng.random(400) < 0.4))
    ranks, local = rng.random(found.pages.size), rng.random(found.pages.size) < 0.5
    one, four = (scores.complement(found, ranks, local, threads=threads) for threads in (1, 4))
    assert one.tobytes() == four.tobytes()


def test_nothing_outside_has_no_scores() -> None:
    found = build_crawled_graph(rows_of(np.array([[False, True], [True, False]])), np.arange(2, dtype=np.int32))
    assert scores.complement(found, np.full(2, 0.5), np.ones(2, np.bool_)).size == 0
    assert scores.flow(found, np.full(2, 0.5)).size == 0
