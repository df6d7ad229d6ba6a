"""Estimates of the global rank against dense systems, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from surveyor.errors import UsageError
from surveyor.estimate.community.estimators import SPREAD, UNSEEN, estimate
from surveyor.kernels.crawled_graph import CrawledGraph, build_crawled_graph
from test_complement import places, rows_of, stationary

DAMPING = 0.85


def case(number: int) -> tuple[np.ndarray, CrawledGraph, np.ndarray, np.ndarray]:
    """Return a random web, the links of its fetched pages, the indices of the local ones, and batches."""
    rng = np.random.default_rng(number)
    size = int(rng.integers(4, 30))
    links = rng.random((size, size)) < rng.uniform(0.05, 0.4)
    links[rng.random(size) < 0.2] = False
    np.fill_diagonal(links, val=False)
    read = rng.random(size) < rng.uniform(0.4, 1.0)
    read[0] = True
    found = build_crawled_graph(rows_of(links), places(read))
    local = np.flatnonzero((rng.random(found.pages.size) < 0.5) | (np.arange(found.pages.size) == 0)).astype(np.int32)
    batch_of = rng.integers(0 if number % 3 else 1, 4, found.pages.size) * (number % 5 != 0)
    batch_of[local] = 0
    return links, found, local, batch_of


def shares(ranks: np.ndarray, local: np.ndarray) -> np.ndarray:
    """Ranks of local pages, summing to 1."""
    return np.asarray(ranks[local] / ranks[local].sum())


def dense_returns(
    links: np.ndarray, found: CrawledGraph, local: np.ndarray, batch_of: np.ndarray, leaves: float
) -> tuple[np.ndarray, np.ndarray]:
    """How much more than parents pages of batches link to local pages, earlier ones, and the rest: all, by parent."""
    pages = found.pages
    sums = np.zeros((2, 3, pages.size))
    for place, page in enumerate(pages):
        earlier = batch_of < batch_of[place]
        parents = [other for other in np.flatnonzero(earlier) if links[pages[other], page]]
        if batch_of[place] == 0:
            continue
        for parent in parents:
            for which, other in enumerate((place, int(parent))):
                row = links[int(pages[other])]
                inner = row[pages[local]].sum()
                extra = row[pages[earlier]].sum() - inner
                shares = np.array([inner, extra, row.sum() - inner - extra]) / max(row.sum(), 1)
                sums[which, :, parent] += shares / len(parents)
    factors = (sums[0].sum(axis=1) + np.array([leaves**2, 1, 1])) / (sums[1].sum(axis=1) + 1)
    return factors, (sums[0] + factors[:, None]) / (sums[1] + 1)


def dense_pool(
    links: np.ndarray, found: CrawledGraph, local: np.ndarray, batch_of: np.ndarray
) -> tuple[float, np.ndarray]:
    """The part of the returning rank that is divided like links of batches, and how; chosen by likelihood."""
    shares = links / np.maximum(links.sum(axis=1), 1)[:, None]
    pages = found.pages
    fits = dict.fromkeys((1.0, 0.5, 0.0), 0.0)  # the first of equal ones counts
    for place in np.flatnonzero(batch_of > 0):
        before = np.flatnonzero((batch_of > 0) & (batch_of < batch_of[place]))
        pool = shares[np.ix_(pages[before], pages[local])].sum(axis=0)
        if not pool.sum():
            continue
        parents = [other for other in np.flatnonzero(batch_of < batch_of[place]) if links[pages[other], pages[place]]]
        copied = shares[np.ix_(pages[parents], pages[local])].sum(axis=0)
        even = np.full(local.size, 1 / local.size)
        copied = copied / copied.sum() if copied.sum() else even
        for part in fits:
            expected = SPREAD * even + (1 - SPREAD) * (part * pool / pool.sum() + (1 - part) * copied)
            fits[part] += float(shares[pages[place]][pages[local]] @ np.log(expected))
    pool = shares[np.ix_(pages[batch_of > 0], pages[local])].sum(axis=0)
    if not pool.sum():
        return 0.0, pool
    return max(fits, key=lambda part: round(fits[part], 12)), pool / pool.sum()


def dense_copying(
    links: np.ndarray, found: CrawledGraph, local: np.ndarray, factors: np.ndarray, batch_of: np.ndarray
) -> np.ndarray:
    """Ranks where pages of the frontier link like the mean of their parents, or in part like pages of batches."""
    part, pool = dense_pool(links, found, local, batch_of)
    pages, frontier = found.pages, found.frontier
    ids = np.concatenate([pages, frontier])
    kind = np.where(np.isin(np.arange(ids.size), local), 0, np.where(np.arange(ids.size) < pages.size, 1, 2))
    steps = np.zeros((ids.size, ids.size))
    for at, page in enumerate(pages):
        steps[at] = links[page][ids] / max(links[page].sum(), 1)
    spread = steps[: pages.size] * factors[kind].T
    spread /= np.maximum(spread.sum(axis=1), 1)[:, None]
    for at, page in enumerate(frontier, pages.size):
        steps[at] = spread[links[pages, page]].mean(axis=0)
        to_local = steps[at][local].sum()
        steps[at][local] *= 1 - part
        steps[at][local] += part * to_local * pool if part else 0.0
    jumps = np.where(kind == 2, UNSEEN, 1.0)
    return np.asarray(np.linalg.solve(np.eye(ids.size) - DAMPING * steps.T, jumps))


@pytest.mark.parametrize("number", range(60))
def test_against_dense_systems(number: int) -> None:
    links, found, local, batch_of = case(number)
    inner = links[np.ix_(found.pages, found.pages)]
    crawled = shares(stationary(inner, np.full(len(inner), 1 / len(inner))), local)
    got = estimate(found, local, batch_of, "crawled", tolerance=1e-12)
    assert np.abs(got.scores - crawled).sum() <= got.error <= 1e-11

    ids = np.concatenate([found.pages, found.frontier])
    seen = links[np.ix_(ids, ids)].copy()
    seen[found.pages.size :] = False  # pages of the frontier, without links
    frontier = stationary(seen, np.full(ids.size, 1 / ids.size))
    got = estimate(found, local, batch_of, "frontier", tolerance=1e-12)
    assert np.abs(got.scores - shares(frontier, local)).sum() <= got.error <= 1e-11

    ranks = frontier[: found.pages.size]
    away = found.leaving / np.maximum(links[found.pages].sum(axis=1), 1)
    leaves = (ranks * away)[local].sum() / ranks[local].sum()
    factors, of_parents = dense_returns(links, found, local, batch_of, leaves)
    copying = shares(dense_copying(links, found, local, of_parents, batch_of), local)
    batches = np.unique(batch_of[batch_of > 0]).size
    share = 1 / batches if batches else 0.0
    got = estimate(found, local, batch_of, "auto", tolerance=1e-12)
    # What leaves is known to 1e-6 only, and is squared.
    assert np.abs(got.scores - (1 - share) * copying - share * crawled).sum() <= 1e-5
    assert list(got.return_factors.values()) == pytest.approx(list(factors), abs=1e-5)
    assert got.weights == {"copying": 1 - share, "crawled": share}
    assert got.scores.sum() == pytest.approx(1)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9])
def test_the_proven_error_holds(tolerance: float) -> None:
    for number in range(20):
        _, found, local, batch_of = case(number)
        for method in ("auto", "crawled", "frontier"):
            exact = estimate(found, local, batch_of, method, tolerance=1e-13)
            rough = estimate(found, local, batch_of, method, tolerance=tolerance)
            slack = 1e-5 if method == "auto" else 0.0  # of what leaves
            assert np.abs(exact.scores - rough.scores).sum() <= rough.error + exact.error + slack
            assert rough.error <= tolerance


def test_returns_by_hand() -> None:
    # Local pages 0 and 1 link to each other; 0 also to 2, 1 also to 3. Read: 2 (batch 1), which links to 0 and 4.
    links = np.zeros((5, 5), np.bool_)
    for source, target in [(0, 1), (1, 0), (0, 2), (1, 3), (2, 0), (2, 4)]:
        links[source, target] = True
    found = build_crawled_graph(rows_of(links), np.array([0, 1, 2], np.int32))
    got = estimate(found, np.array([0, 1], np.int32), np.array([0, 0, 1]), "auto")
    # The parent of 2 is 0: half of its links are local, none lead to other pages read, half to the rest. So do those
    # of 2. Of what is assumed, the second and third are 1, and the first is the square of the part that leaves.
    ranks = stationary(links & np.array([[1], [1], [1], [0], [0]], bool), np.full(5, 0.2))
    leaves = ranks[1] / 2 / (ranks[0] + ranks[1])
    expected = {"local": (0.5 + leaves**2) / 1.5, "extra": 1.0, "unfetched": 1.0}
    assert got.return_factors == pytest.approx(expected, abs=1e-5)
    assert got.weights == {"copying": 0.0, "crawled": 1.0}
    assert "1 pages fetched in 1 batches" in got.explanation


def test_without_a_frontier_all_agree() -> None:
    rng = np.random.default_rng(3)
    links = (rng.random((12, 12)) < 0.3) & ~np.eye(12, dtype=bool)
    found = build_crawled_graph(rows_of(links), np.arange(12, dtype=np.int32))
    local, batch_of = np.array([4, 1, 7], np.int32), np.array([0] * 8 + [1, 1, 2, 2])
    truth = shares(stationary(links, np.full(12, 1 / 12)), local)
    for method in ("auto", "crawled", "frontier"):
        assert estimate(found, local, batch_of, method).scores == pytest.approx(truth, abs=1e-8)


def test_pages_that_link_back_raise_what_they_link_to() -> None:
    """A page that is known only by its links into the local domain counts, though most of its links lead nowhere."""
    links = np.zeros((4, 4), np.bool_)
    links[0, 1] = links[1, 0] = links[3, 1] = True
    found = build_crawled_graph(rows_of(links), np.array([0, 1, 3], np.int32))
    found = found._replace(leaving=np.array([0, 0, 9]))
    local, start = np.array([0, 1], np.int32), np.zeros(3, np.int64)
    for method in ("auto", "frontier"):
        scores = estimate(found, local, start, method).scores
        assert scores[1] / scores[0] == pytest.approx((1 + 0.085 + DAMPING) / (1 + DAMPING * 1.085))


def test_nothing_local_and_a_wrong_name() -> None:
    found = build_crawled_graph(rows_of(np.zeros((2, 2), np.bool_)), np.array([0], np.int32))
    assert estimate(found, np.empty(0, np.int32), np.zeros(1, np.int64)).scores.size == 0
    assert estimate(found, np.zeros(1, np.int32), np.zeros(1, np.int64)).scores.tolist() == [1.0]
    with pytest.raises(UsageError, match="unknown estimator 'best'"):
        estimate(found, np.zeros(1, np.int32), np.zeros(1, np.int64), "best")  # type: ignore[arg-type]
