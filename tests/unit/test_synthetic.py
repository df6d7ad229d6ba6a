"""Synthetic webs: byte-identical, correctly labelled, of the documented shape."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from experiments.synthetic_fit import exponent, main, measure, table

from oracles import first_bad_row
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic import generate as synthetic
from surveyor.graph.synthetic.generate import KINDS, PRESETS, SyntheticWeb, WebShape, rmat, synthetic_web

if TYPE_CHECKING:
    from pathlib import Path

# The presets are frozen: published results name them. A new model gets a new name, never a new checksum.
FROZEN = {
    ("small", None): (15_624, 2874753224),
    ("site", None): (106_852, 2392047206),
    ("web", 200_000): (205_560, 1610650384),
    ("domains", 200_000): (202_942, 1495954601),
    ("domains-2007", 200_000): (202_631, 1091309176),
}
MIXED = replace(PRESETS["small"], pages=5_000, largest_site=1_000)
FEW_DOMAINS = replace(PRESETS["domains"], pages=3_000, most_links=200, sealed=0.02, farms=0.03, exchanges=0.03)


compiled_only = pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="minutes without a compiler")


@pytest.fixture(scope="module")
def small() -> SyntheticWeb:
    return synthetic_web("small")


@pytest.fixture(scope="module", params=["small", "mixed", "domains"])
def labelled(request: pytest.FixtureRequest) -> SyntheticWeb:
    shapes = {"small": PRESETS["small"], "mixed": MIXED, "domains": FEW_DOMAINS}
    return synthetic_web(shapes[request.param], rng=3)


@pytest.mark.parametrize(("name", "links"), FROZEN)
def test_frozen_presets_never_change(name: str, links: int | None) -> None:
    graph = synthetic_web(name, links=links, names=False).graph
    assert (graph.links, zlib.crc32(graph.indices.tobytes())) == FROZEN[name, links]


def test_the_seed_determines_the_web() -> None:
    first, again, other = (synthetic_web(rng=rng, names=False).graph for rng in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("shape", [MIXED, FEW_DOMAINS])
def test_threads_and_batches_do_not_matter(shape: WebShape, monkeypatch: pytest.MonkeyPatch) -> None:
    one = synthetic_web(shape, threads=1, names=False)
    monkeypatch.setattr(synthetic, "BATCH", 777)
    many = synthetic_web(shape, threads=3, names=False)
    assert one.graph == many.graph
    assert np.array_equal(one.kind, many.kind)


def test_rows_are_ascending_without_duplicates_or_self_links(labelled: SyntheticWeb) -> None:
    assert first_bad_row(labelled.graph.indptr, labelled.graph.indices) == -1


def test_a_folder_has_the_same_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "MEMORY", 1 << 17)  # so small that links are spilled
    web = synthetic_web(MIXED, folder=tmp_path / "web", names=True)
    assert web.graph == synthetic_web(MIXED, names=True).graph
    assert Graph.open(tmp_path / "web") == web.graph
    assert web.graph.provenance["rng"] == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["web"]


@pytest.mark.parametrize(
    ("name", "links"), [("small", 50_000), ("site", 30_000), ("web", 600_000), ("domains", 200_000)]
)
@compiled_only
def test_links_scales_a_preset(name: str, links: int) -> None:
    web = synthetic_web(name, links=links, names=False)
    assert abs(web.graph.links - links) < 0.1 * links
    assert (web.site_topic.size == 1) == (name == "site")


def test_pages_sites_domains_and_topics_nest(labelled: SyntheticWeb) -> None:
    web = labelled
    assert web.site.size == web.domain.size == web.topic.size == web.kind.size == web.graph.pages
    for outer in (web.site, web.domain):
        assert (np.diff(outer) >= 0).all(), "ids are in the order of hosts"
    for domain in range(0, int(web.domain[-1]) + 1, 7):
        assert np.unique(web.topic[web.domain == domain]).size == 1


def test_dangling_and_dead_pages_have_no_links_and_others_do(labelled: SyntheticWeb) -> None:
    silent = np.isin(labelled.kind, [KINDS.index("dangling"), KINDS.index("dead")])
    degrees = labelled.graph.out_degrees
    assert not degrees[silent].any()
    assert (degrees[~silent] > 0).mean() > 0.98  # a site of one page may have no site to link to
    assert 0 < labelled.pages_of_kind("dead").size < 0.05 * labelled.graph.pages


def test_every_page_of_a_farm_links_to_the_page_it_boosts(labelled: SyntheticWeb) -> None:
    assert labelled.farms
    members = np.concatenate(labelled.farms)
    for farm in labelled.farms:
        boosted = int(labelled.first_page[farm[0]])
        assert KINDS[labelled.kind[boosted]] == "boosted"
        pages = np.flatnonzero(np.isin(labelled.site, farm))
        assert set(pages) - {boosted} <= set(labelled.graph.in_links_of(boosted))
        homes = set(labelled.first_page[farm[1:]])
        assert homes <= set(labelled.graph.links_of(boosted)), "it shares what it has got"
        assert np.unique(labelled.site_domain[farm]).size == farm.size
    assert np.array_equal(labelled.pages_of_kind("farm", "boosted"), np.flatnonzero(np.isin(labelled.site, members)))


def test_the_sites_of_an_exchange_all_link_to_each_other(labelled: SyntheticWeb) -> None:
    assert labelled.exchanges
    for exchange in labelled.exchanges:
        homes = labelled.first_page[exchange]
        assert (labelled.kind[homes] == KINDS.index("exchange")).all()
        for home in homes:
            assert set(homes) - {home} <= set(labelled.graph.links_of(int(home)))


def test_names_are_urls(small: SyntheticWeb) -> None:
    names = list(small.graph.names or [])
    assert len(set(names)) == small.graph.pages
    assert names[0] == "https://www.site0.example/"
    hosts = [name.split("/")[2] for name in names]
    assert all(host.endswith((".example", ".test")) for host in hosts)
    assert len(set(hosts)) == small.site_topic.size
    domains = synthetic_web(FEW_DOMAINS).graph.names
    assert domains is not None
    assert domains[4] == "site4.test"
    assert synthetic_web(names=False).graph.names is None


def test_results_are_read_only_and_have_a_repr(small: SyntheticWeb) -> None:
    assert repr(small) == "SyntheticWeb(1,500 pages, 15,624 links, 167 sites, rng=7)"
    with pytest.raises(ValueError, match="read-only"):
        small.kind[0] = 1


@compiled_only
def test_a_scaled_web_has_the_documented_shape() -> None:
    web = synthetic_web("web", links=1_000_000, names=False)
    found = measure(web.graph, web.site)
    ranges = {
        "links per page": (12, 18),
        "in exponent": (1.9, 2.3),
        "out exponent": (2.0, 2.5),
        "dangling": (0.1, 0.2),
        "no in-links": (0.005, 0.04),
        "reciprocal": (0.22, 0.45),
        "intra-site": (0.9, 0.97),
        "near": (0.6, 0.85),
        "sweeps": (90, 110),
        "ratio": (0.83, 0.85),
    }
    for name, (low, high) in ranges.items():
        assert low <= (found[name] or 0) <= high, (name, found[name])


def test_rmat_is_the_opposite_of_a_web() -> None:
    graph = rmat(10, 8)
    assert graph == rmat(10, 8, threads=1)
    assert graph.pages == 1024
    assert 0.7 * 8 * 1024 < graph.links < 8 * 1024
    found = measure(graph)
    assert (found["sweeps"] or 0) < 30
    with pytest.raises(UsageError, match="scale"):
        rmat(31, 1)


def test_an_unknown_preset_is_rejected() -> None:
    with pytest.raises(UsageError, match="choose one of small, site"):
        synthetic_web("large")


def test_the_exponent_of_a_power_law_is_estimated() -> None:
    luck = np.random.default_rng(1).random(200_000)
    degrees = np.floor(9.5 / luck ** (1 / 1.2) + 0.5).astype(np.int64)
    assert exponent(degrees) == pytest.approx(2.2, abs=0.02)
    assert exponent(np.ones(5, np.int64)) is None


def test_measures_of_a_known_graph() -> None:
    graph = Graph.from_arrays(np.array([0, 1, 1, 2]), np.array([1, 0, 2, 3]), 4)
    found = measure(graph, np.array([0, 0, 0, 1]))
    assert (found["dangling"], found["no in-links"], found["reciprocal"]) == (0.25, 0, 0.5)
    assert (found["intra-site"], found["near"]) == (0.75, 1)


def test_the_table_skips_missing_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("experiments.synthetic_fit.synthetic_graphs", lambda: [("small", synthetic_web().graph, None)])
    monkeypatch.setattr("sys.argv", ["synthetic_fit", "--data", str(tmp_path)])
    main()
    printed = capsys.readouterr()
    assert printed.out.splitlines()[2].startswith("| small | 1,500 | 15,624 | 10.4 |")
    assert "no cnr-2000" in printed.err
    assert next(table([])).startswith("| graph | pages |")
