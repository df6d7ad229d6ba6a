"""The experiment on local domains: known errors, and a complete run on a small web."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from experiments import communities, inflow
from experiments import community_tables as tables
from experiments.chosen_domains import Web, kind_of, real, synthetic
from experiments.community_errors import (
    AT,
    ESTIMATORS,
    SELECTORS,
    SHARES,
    Errors,
    Run,
    back_links,
    mean,
    ratio,
    run,
)
from experiments.community_tables import DomainRuns
from experiments.local_domains import Domain

from surveyor.graph.csr import Graph

if TYPE_CHECKING:
    from pathlib import Path

    from surveyor.rank.expansion import Select

LOCAL = 20  # pages of a ring
HUBS, LEAVES = 5, 400  # pages outside: hubs link back, leaves have no links


def web_with_hubs() -> Web:
    """Local pages in a ring, each with a link to one of some hubs, which link to page 0, and with many to leaves."""
    links = [(page, (page + 1) % LOCAL) for page in range(LOCAL)]
    links += [(page, LOCAL + page % HUBS) for page in range(LOCAL)]
    links += [(LOCAL + hub, 0) for hub in range(HUBS)]
    first = LOCAL + HUBS
    links += [(page, first + leaf) for page in range(LOCAL) for leaf in range(page, LEAVES, LOCAL)]
    ends = np.array(links)
    graph = Graph.from_arrays(ends[:, 0], ends[:, 1], first + LEAVES)
    return Web("hubs", graph, (Domain("hubs", "site", np.arange(LOCAL, dtype=np.int32)),))


def small_web() -> Web:
    """Fifteen pages that all reach each other; the first five are local, so that 2n further ones are all there is."""
    links = [(page, (page + step) % 15) for page in range(15) for step in (1, 2 + page % 5)]
    links += [(10, 0), (11, 0), (12, 0), (13, 2), (14, 3)]
    ends = np.array(links)
    graph = Graph.from_arrays(ends[:, 0], ends[:, 1], 15)
    return Web("ring", graph, (Domain("ring", "topic", np.arange(5, dtype=np.int32)),))


@pytest.mark.parametrize("select", SELECTORS)
@pytest.mark.slow
def test_no_error_if_all_pages_are_fetched(select: Select) -> None:
    web = small_web()
    result = run(web, web.domains[0], select, 7)
    assert result.extra == 10
    for estimator in ESTIMATORS:
        before, *_, after = result.at[estimator]
        assert before.l1 > 0.05
        assert after.l1 < 1e-8
        assert after.l_inf < 1e-8
        assert after.kendall == pytest.approx(1.0)


@pytest.mark.slow
def test_complement_finds_linking_pages_sooner_than_random_selection() -> None:
    web = web_with_hubs()
    chosen, drawn = (run(web, web.domains[0], select, 7) for select in ("complement", "random"))
    after = AT.index(1.0)
    assert chosen.at["frontier"][after].l1 < 1e-6  # all pages that link to local pages were fetched
    assert drawn.at["frontier"][after].l1 > 0.01
    assert chosen.at["crawled"][after].l1 < 0.8 * drawn.at["crawled"][after].l1


@pytest.mark.slow
def test_errors_after_the_frontier_is_exhausted() -> None:
    links = np.array([(0, 1), (1, 0), (1, 2), (2, 0), (3, 0), (4, 3)] + [(page, page + 1) for page in range(4, 29)])
    web = Web("end", Graph.from_arrays(links[:, 0], links[:, 1], 30), ())
    result = run(web, Domain("end", "site", np.array([0, 1], np.int32)), "flow", 7, draws=True)
    assert result.extra == 1  # page 2; no fetched page links to page 3
    assert result.at["auto"][2] == result.at["auto"][3] != result.at["auto"][0]
    assert [at for at, _ in result.curve["auto"]] == [0.0, 0.5]


@pytest.mark.slow
def test_all_back_links_remove_most_of_the_error() -> None:
    web = web_with_hubs()
    result = back_links(web, web.domains[0], 7)
    assert {name: len(pairs) for name, pairs in result.items()} == dict.fromkeys(ESTIMATORS, len(SHARES))
    before = [one for one, _ in result["frontier"]]
    assert before[0] > 0.1  # the links of the hubs to page 0 are unknown
    assert before[-1] < 1e-6  # all five are known, and their ranks come from local pages
    assert all(pair[1] < 1e-6 for pair in result["frontier"])  # fetched anyway


@pytest.mark.slow
def test_intervals() -> None:
    assert mean([1.0, 2.0, 3.0]) == pytest.approx((2.0, 4.303 / math.sqrt(3)))
    assert mean([2.0, 2.0]) == (2.0, 0.0)
    assert math.isnan(mean([1.0])[1])
    value, low, high = ratio([(1.0, 2.0), (2.0, 2.0), (3.0, 8.0)])
    assert low < value == 0.5 < high
    assert ratio([(1.0, 4.0)] * 5) == (0.25, 0.25, 0.25)


@pytest.mark.slow
def test_target_line_excludes_tuning_domains() -> None:
    def found(auto: float, *, tuned: bool) -> DomainRuns:
        each = {"crawled": 0.2, "frontier": 0.3, "auto": auto}
        at = {name: [Errors(value, value, None)] * len(AT) for name, value in each.items()}
        runs = [Run(select, 7, 10, 0.1, at, {}) for select in SELECTORS]
        return DomainRuns("some", "site", False, tuned, 10, 100, 0.0, runs, {})

    result = tables.target_line([found(0.1, tuned=False), found(0.9, tuned=True)])
    assert "0.500 (0.500 to 0.500)" in result
    assert "on 1 domains" in result
    assert result.endswith("met.")
    assert tables.target_line([found(0.19, tuned=False)]).endswith("missed.")
    assert [found(0.21, tuned=False).sound(0), found(0.23, tuned=False).sound(0)] == [True, False]
    assert "| 2 of 2 |" in tables.family_table("sites, real", [found(0.1, tuned=False)] * 2)


@pytest.mark.compiled
@pytest.mark.slow
def test_synthetic_domains() -> None:
    web = synthetic(30_000)
    assert [kind_of(domain) for domain in web.domains] == ["site"] * 3 + ["topic"] * 3
    assert all(domain.part == "fresh" for domain in web.domains)
    assert [domain.pages.size for domain in web.domains[:3]] == sorted(domain.pages.size for domain in web.domains[:3])
    assert all(0 < domain.pages.size <= 0.02 * 30_000 for domain in web.domains[3:])


@pytest.mark.slow
def test_no_real_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(real(tmp_path)) == []
    assert "only a synthetic web is used" in capsys.readouterr().err


@pytest.mark.compiled
@pytest.mark.slow
def test_the_whole_experiment_on_a_small_web(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    communities.main(["--quick", "--pages", "2000", "--seeds", "2", "--json", "--plots", str(tmp_path)])
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["schema"] == 1
    assert len(result["domains"]) == 6
    for domain in result["domains"]:
        assert len(domain["runs"]) == 2 * len(SELECTORS)
        for one in domain["runs"]:
            assert all(0 <= error[0] <= 2 for errors in one["at"].values() for error in errors)
            assert one["extra"] <= 2 * domain["pages"]
    for words in (
        "## Sites, synthetic",
        "## Topics, synthetic",
        "## SC compared with",
        "## Estimators",
        "## Back-links",
        "Target:",
    ):
        assert words in captured.err
    figures = sorted(tmp_path.glob("*.svg"))
    assert len(figures) == 6
    assert "extra pages" in figures[0].read_text("utf-8")


@pytest.mark.slow
def test_inflow_share_of_the_extra_pages() -> None:
    edges = [("in", "out"), ("out", "in"), ("fan", "in"), ("fan", "out"), ("out", "fan"), ("far", "in")]
    graph = Graph.from_edges(edges)
    web = Web("small", graph, (Domain("d", "site", np.array([graph.page("in")], np.int32)),))
    # two pages are fetched: out and fan; no page links to far
    sends = {
        name: web.ranks[graph.page(name)] / len(graph.links_of(graph.page(name))) for name in ("out", "fan", "far")
    }
    expected = (sends["out"] + sends["fan"]) / sum(sends.values())
    for share, error in inflow.measure(web, web.domains[0], 1):
        assert share == pytest.approx(expected)
        assert error == 0
    assert list(inflow.rows(iter([web]), 1))[2:] == []  # all selectors are equal
