"""The experiments on small local domains and on single candidates, on webs whose answers are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from experiments import influence, small_communities
from experiments.local_domains import Domain
from test_communities_experiment import LOCAL, web_with_hubs

from surveyor.rank.pagerank import pagerank

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_errors_of_one_domain() -> None:
    name, graph, local = influence.chosen_domain(None, None)
    found = small_communities.measure(graph, pagerank(graph).scores, Domain(name, "site", local), 2)
    assert set(found.at) == {
        f"{select} {method}" for select in small_communities.SELECTORS for method in ("auto", "crawled", "frontier")
    }
    assert found.at["complement crawled"][2][0] < found.local[0]
    assert 0 < found.inflow["complement"][0] <= found.inflow["complement"][2] <= 1
    lines = list(small_communities.summary([found]))
    assert lines[0].startswith("1 domains, 1 with an order")
    assert sum(line.startswith("| explore") for line in lines) == 3


def test_parts_are_disjoint_by_name() -> None:
    pages = np.arange(100, dtype=np.int32)
    parts = {Domain(f"debian:{name}", "site", pages).part for name in "abcdefghij"}
    assert parts == {"tuning", "test"}


def test_the_figure_of_influence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = influence.main(["--plots", str(tmp_path)])
    assert "domain:site41.example: 71 local pages, " in capsys.readouterr().out
    assert (found.after > 0).all()
    assert {one.name for one in tmp_path.iterdir()} == {"influence.svg", "links.svg"}
    web = web_with_hubs()
    one = influence.measure(web.graph, np.arange(LOCAL, dtype=np.int32), 1000)
    hubs = one.after < one.before - 1e-9
    assert hubs.any()
    assert one.influence[hubs].mean() > one.influence[~hubs].mean()  # only the hubs link back
