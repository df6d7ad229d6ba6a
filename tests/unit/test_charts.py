"""Charts of reports: areas of a treemap, folders, escaped names."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from planted_site import HOME, survey_of
from surveyor.report.charts import bars, overview_parts, squarified, treemap
from surveyor.survey.overview import DEEPEST, Folder, Overview, folders, overview
from surveyor.survey.survey import Survey


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("skew", [0.0, 1.0, 3.0])
def test_boxes_have_the_right_areas_and_do_not_overlap(count: int, skew: float) -> None:
    draw = np.random.default_rng(count)
    weights = sorted((draw.random(count) ** (1 + skew) + 1e-6).tolist(), reverse=True)
    boxes = squarified(weights)
    for weight, box in zip(weights, boxes, strict=True):
        assert box.width * box.height == pytest.approx(weight / sum(weights))
        assert box.left >= -1e-9
        assert box.top >= -1e-9
        assert box.left + box.width <= 1 + 1e-9
        assert box.top + box.height <= 1 + 1e-9
    for one, two in combinations(boxes, 2):
        across = min(one.left + one.width, two.left + two.width) - max(one.left, two.left)
        down = min(one.top + one.height, two.top + two.height) - max(one.top, two.top)
        assert min(across, down) <= 1e-9


def test_folders_hold_every_page_once() -> None:
    draw = np.random.default_rng(3)
    names = [f"https://a.example/{'/'.join(draw.choice(list('abc'), draw.integers(0, 5)))}/p{n}" for n in range(500)]
    shares = (draw.random(500) / 500).tolist()
    found = folders(names, shares)
    assert sum(one.pages for one in found) == 500
    assert sum(one.share for one in found) == pytest.approx(sum(shares))
    assert [one.share for one in found] == sorted((one.share for one in found), reverse=True)
    assert 3 < len(found) <= 60
    assert folders([], []) == []


def test_folders_of_several_hosts_have_their_names() -> None:
    found = folders(["https://a.example/x", "http://b.example:8000/y/z"], [0.25, 0.75])
    assert [one.name for one in found] == ["b.example:8000/y/", "a.example/"]


def test_the_common_folder_is_left_out() -> None:
    found = folders([f"https://a.example/docs/3/{name}" for name in ("a/1", "a/2", "b/1", "index.html")], [0.25] * 4)
    assert {one.name: one.pages for one in found} == {"/a/": 2, "/b/": 1, "/": 1}


def test_names_are_escaped() -> None:
    bad = Folder('/<script>"&', 1, 0.5)
    page = treemap("t", "a", [bad, Folder("/b/", 1, 0.5)]) + bars("t", "a", {"<b>": 1})
    assert "<script>" not in page
    assert "<b>1" not in page
    assert "/&lt;script&gt;&quot;&amp;" in page
    assert bars("t", "a", {})


def test_the_overview_of_a_site(tmp_path: Path) -> None:
    with Survey(survey_of(tmp_path / "a.survey")) as survey:
        found = overview(survey)
        fetched = survey.pages_fetched
    assert sum(found.depths.values()) == found.statuses["fetched"] == fetched
    assert found.depths[0] == 1
    assert found.depths[6] == 1  # the last of the chain
    assert sum(one.share for one in found.folders) == pytest.approx(1.0, abs=1e-6)
    html = "".join(overview_parts(found))
    assert "<th>unknown</th>" in html  # the orphan
    assert HOME not in html


def test_deep_sites_have_a_last_bar() -> None:
    html = "".join(overview_parts(Overview({DEEPEST: 3}, {"fetched": 3}, ())))
    assert "<th>15 or more</th>" in html
    assert "treemap" not in html
