"""Established domains: what a farm can and cannot get, and trust against an obvious iteration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.rank.domains.established import DAMPING, VotedLinks, establish


@st.composite
def webs(draw: st.DrawFn) -> tuple[VotedLinks, IntArray]:
    """Draw links between a few domains, with votes and one or two pages each, and trusted domains."""
    size = draw(st.integers(2, 12))
    sites = st.integers(0, size - 1)
    pairs = st.tuples(sites, sites, st.integers(1, 9), st.integers(0, 1))
    links = [link for link in draw(st.lists(pairs, max_size=40)) if link[0] != link[1]]
    columns = np.array(links, np.int64).reshape(-1, 4).T
    seeds = np.array(sorted(draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=3))))
    first = 2 * columns[0]  # each domain has two pages
    return VotedLinks.of(columns[0], columns[1], columns[2], (first, first + columns[3]), size), seeds


def single(sources: IntArray, targets: IntArray, domains: int) -> VotedLinks:
    """Return links of one vote and one page each: the page of a domain has the same id."""
    return VotedLinks.of(sources, targets, np.ones(sources.size, np.int64), (sources, sources), domains)


def obvious(links: VotedLinks, seeds: IntArray) -> FloatArray:
    """Return what each domain receives, by the definition and many steps."""
    given = np.bincount(links.sources, links.votes, links.domains)
    start = np.zeros(links.domains)
    start[seeds] = 1 / seeds.size
    exempt = start > 0

    def received(flow: FloatArray, exempt: BoolArray) -> FloatArray:
        parts: list[list[tuple[bool, float]]] = [[] for _ in range(links.domains)]
        columns = links.sources, links.targets, links.votes, links.first < links.last
        for source, target, votes, several in zip(*columns, strict=True):
            parts[target].append((bool(exempt[source] and several), flow[source] * votes / given[source]))
        sums = [sum(part for _, part in mine) - max([part for safe, part in mine if not safe] + [0]) for mine in parts]
        return np.array(sums)

    flow = start
    for _ in range(150):
        flow = DAMPING * received(flow, exempt) + (1 - DAMPING) * start
    return received(flow, np.zeros(links.domains, np.bool_))


@given(webs())
def test_trust_is_that_of_the_definition(web: tuple[VotedLinks, IntArray]) -> None:
    links, seeds = web
    found = establish(links, seeds)
    assert found.trust == pytest.approx(obvious(links, seeds), abs=2e-5)
    assert not np.isin(found.established, seeds).any()
    assert (found.trust[found.established] > 0).all()
    known = np.union1d(found.established, seeds)
    assert np.isin(found.via[found.via >= 0] // 2, known).all()
    assert np.isin(found.via[found.via >= 0], links.first).all()
    assert (found.via[known] == -1).all()


@given(webs(), st.integers(2, 30), st.integers(0, 10**6), st.booleans())
def test_domains_behind_one_page_or_one_untrusted_domain_have_no_trust(
    web: tuple[VotedLinks, IntArray], size: int, seed: int, hacks_a_seed: bool
) -> None:
    links, seeds = web
    rng, old = np.random.default_rng(seed), links.domains
    inside = rng.integers(old, old + size, (2, 10 * size))
    gate = next((one for one in range(old) if (one in seeds) == hacks_a_seed), None)
    if gate is None:
        return
    entries = np.arange(old, old + min(size, 3))
    page = 2 * gate + int(rng.integers(0, 2))
    sources = np.concatenate([links.sources, inside[0], np.full(entries.size, gate)])
    targets = np.concatenate([links.targets, inside[1], entries])
    first = np.concatenate([links.first, 2 * inside[0], np.full(entries.size, page)])
    last = np.concatenate([links.last, 2 * inside[0] + 1, np.full(entries.size, page + int(not hacks_a_seed))])
    spoilt = VotedLinks.of(sources, targets, np.ones(sources.size, np.int64), (first, last), old + size)
    found = establish(spoilt, seeds)
    assert (found.trust[old:] == 0).all()
    groups = set(found.via[old:].tolist()) - {-1}
    assert len(groups) <= 1  # all share one budget
    known = np.union1d(found.established, seeds)
    if gate in known:
        assert groups == {page}


def test_links_of_two_pages_of_a_seed_count() -> None:
    """The seed links to a and b; each of them links to c, whose other link is of the seed."""
    sources, targets = np.array([0, 0, 1, 2, 0]), np.array([1, 2, 3, 3, 3])
    for last, trusted in ((0, []), (9, [3])):
        pages = np.zeros(5, np.int64), np.array([last, last, 0, 0, last])
        links = VotedLinks.of(sources, targets, np.ones(5, np.int64), pages, 4)
        assert establish(links, np.array([0])).established.tolist() == trusted


def test_the_trust_of_a_farm_is_bounded_by_what_flows_in() -> None:
    """Two hacked domains: the farm gets d / (1 - d) times the smaller contributions, whatever its size."""
    rng = np.random.default_rng(3)
    honest = rng.integers(0, 40, (2, 400))
    trusts = []
    for size in (5, 50, 500):
        clique = np.array([(40 + a, 40 + b) for a in range(size) for b in rng.integers(0, size, 8) if a != b]).T
        sources = np.concatenate([honest[0], clique[0], [10, 20, 10, 20]])
        targets = np.concatenate([honest[1], clique[1], [40, 40, 41, 41]])
        links = single(sources, targets, 40 + size)
        found = establish(links, np.array([0, 1, 2]))
        trusts.append(float(found.trust[40:].sum()))
        outside = 2 * float(found.trust[[10, 20]].max())  # more than either gives
        assert trusts[-1] < DAMPING / (1 - DAMPING) * outside
    assert max(trusts) < 0.1


def test_only_eligible_domains_and_no_more_than_asked_for() -> None:
    names = np.array([0, 0, 0, 1, 2, 3])
    pages = np.zeros(6, np.int64), np.ones(6, np.int64)
    links = VotedLinks.of(names, np.array([1, 2, 3, 2, 3, 1]), np.ones(6, np.int64), pages, 4)
    assert establish(links, np.array([0])).established.size == 3
    assert establish(links, np.array([0]), 1).established.size == 1
    few = establish(links, np.array([0]), masses=np.array([1.0, 0.1, 1.0, 1.0]), least=0.5)
    assert sorted(few.established.tolist()) == [2, 3]
    assert few.via[1] >= 0
    nothing = np.empty(0, np.int64)
    empty = VotedLinks.of(nothing, nothing, nothing, (nothing, nothing), 0)
    assert establish(empty, np.empty(0, np.int64)).established.size == 0
