"""The experiment on estimates runs, splits domains as it says, and its tables hold what was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from experiments import estimators, uncertainty
from experiments.local_domains import Domain

from surveyor import Graph, pagerank
from surveyor.graph.synthetic.generate import synthetic_web


@pytest.fixture(scope="module")
def web() -> tuple[Graph, list[Domain]]:
    made = synthetic_web("small", rng=3)
    sizes = np.diff(made.first_page)
    sites = np.argsort(-sizes, kind="stable")[:3]
    return made.graph, [
        Domain(f"small:{site}", "site", np.flatnonzero(made.site == site).astype(np.int32)) for site in sites
    ]


@pytest.mark.slow
def test_knowing_all_that_link_here_leaves_little_error(web: tuple[Graph, list[Domain]]) -> None:
    graph, domains = web
    truth = pagerank(graph, tolerance=1e-12).scores
    for domain in domains:
        found = estimators.measure(graph, truth, domain, (0.0, 1.0))
        assert found is not None
        assert found[0.0, 1.0]["frontier"] < found[0.0, 0.0]["frontier"]


@pytest.mark.slow
def test_tables(web: tuple[Graph, list[Domain]], capsys: pytest.CaptureFixture[str]) -> None:
    graph, domains = web
    estimators.run([("small web", graph, domains)], back_links=False, pages=True)
    printed = capsys.readouterr().out
    assert "| small, site |" in printed
    assert "| safe |" in printed
    estimators.run([("small web", graph, domains)], back_links=True, pages=False)
    assert "| 100% |" in capsys.readouterr().out


@pytest.mark.slow
def test_a_domain_that_no_link_leaves_is_left_out() -> None:
    graph = Graph.from_edges([("a", "b"), ("b", "a"), ("c", "a")])
    truth = pagerank(graph).scores
    assert estimators.measure(graph, truth, Domain("all", "site", np.array([0, 1], np.int32))) is None


@pytest.mark.slow
def test_parts_follow_names_and_directories_follow_their_site() -> None:
    none = np.empty(0, np.int32)
    parts = [Domain(f"debian:{number}", "site", none).part for number in range(200)]
    assert 0.3 < parts.count("tuning") / 200 < 0.5
    inside = [Domain(f"debdir:{number}/html/api", "directory", none).part for number in range(200)]
    assert inside == parts
    assert Domain("debian:1", "site", none, fresh=True).part == "fresh"


@pytest.mark.slow
def test_uncertainty_next_to_the_true_error(web: tuple[Graph, list[Domain]]) -> None:
    graph, domains = web
    fresh = [replace(domain, fresh=True) for domain in domains]
    found = uncertainty.measure([("small web", graph, [*fresh, replace(domains[0], name="x", fresh=True)])], 70)
    assert not found  # all are larger
    found = uncertainty.measure([("small web", graph, fresh)], 100)
    assert len(found["small, site"]) == 3
    assert all(one.error > 0 and one.disagreement > 0 for one in found["small, site"])
    lines = list(uncertainty.table(found))
    assert lines[2].startswith("| small, site | 3 |")
    assert len(lines) == 4
