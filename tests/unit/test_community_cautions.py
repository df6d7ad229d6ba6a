"""What a community refuses or warns of, topics as local pages, and the impact of outside pages."""

from __future__ import annotations

import numpy as np
import pytest

import surveyor as sv
from surveyor.errors import UsageError
from surveyor.estimate.community.community_options import LocalRule, list_digest
from surveyor.kernels.mass import Rows
from surveyor.rank.expansion import POWER, Expansion

WEB = sv.synthetic_web("small").graph
SITE = "domain:site41.example"


def test_very_small_communities_are_refused() -> None:
    with pytest.raises(UsageError, match="local 4 pages by id selects 4 pages, and a global rank is estimated for at"):
        sv.community(WEB, [0, 1, 2, 3])
    assert "with fewer than 10 local pages" in " ".join(sv.community(WEB, [0, 1, 2, 3, 4], extra=20).notes)


def test_a_note_without_fetched_pages_and_none_with_them() -> None:
    assert [note[:28] for note in sv.community(WEB, SITE, extra=0).notes] == ["no page was fetched in round"]
    assert sv.community(WEB, SITE, extra=20).notes == ()


def test_topics_of_a_graph() -> None:
    urls = sv.community(WEB, r"url:site41\.example/", extra=10)
    site = sv.community(WEB, SITE, extra=10)
    assert urls.pages.tolist() == site.pages.tolist()
    assert (str(LocalRule.parse('words:Solar,"heat  Pump"')), list_digest("word:solar")) == (
        'words:solar,"heat pump"',
        "",
    )
    with pytest.raises(UsageError, match="local word:solar needs the text of pages, and a graph has none"):
        sv.community(WEB, "word:solar")


def test_impact_of_outside_pages() -> None:
    found = sv.community(WEB, SITE, extra="n", truth=True)
    ranks = sv.pagerank(WEB, 0.85, 1e-10).scores
    local = set(found.pages.tolist())
    slow = {
        page: ranks[page] * sum(goal in local for goal in links) / links.size
        for page in range(WEB.pages)
        if page not in local and (links := WEB.links_of(page)).size
    }
    rows = found.largest_impacts(5)
    best = sorted(slow, key=lambda page: (-slow[page], page))[:5]
    assert [row["id"] for row in rows] == best
    assert [row["impact"] for row in rows] == pytest.approx([slow[page] for page in best], rel=1e-6)
    fetched = set(found.extra.tolist())
    assert [row["round"] is not None for row in rows] == [page in fetched for page in best]
    assert found.impacts is not None
    share = sum(slow.get(page, 0.0) for page in fetched) / sum(slow.values())
    assert found.impacts.fetched == pytest.approx(share, rel=1e-6)
    assert found.to_dict(3)["impact"]["pages"] == rows[:3]
    with pytest.raises(UsageError, match="the impact needs the true ranks"):
        sv.community(WEB, SITE, extra=5).largest_impacts()


def test_explored_pages_are_drawn_by_a_power_of_their_score() -> None:
    pages, values = np.arange(100, 104, dtype=np.int32), np.array([1.0, 2.0, 3.0, 0.0])
    found = Expansion(np.arange(3, dtype=np.int32), "explore")
    known = found.update(_no_links(), np.arange(3, dtype=np.int32), 200)
    first = np.zeros(4)
    runs = 4000
    for seed in range(runs):
        draw = Expansion(np.arange(3, dtype=np.int32), "explore", seed=seed)._drawn(known, pages, values, 3)
        assert len(set(draw.tolist())) == 3
        assert 103 not in draw  # a page without influence comes last
        first[draw[0] - 100] += 1 / runs
    expected = values**POWER / (values**POWER).sum()
    assert np.abs(first - expected).max() < 4 * 0.5 / np.sqrt(runs)


def _no_links() -> Rows:
    return Rows(np.zeros(200, np.int64), np.zeros(200, np.int64), np.empty(0, np.int32))
