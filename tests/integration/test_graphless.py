"""A crawl without a link graph: the same estimates as with one, and nothing lost when it is killed at any commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crash_recovery import MOODY, STEADY, Image, Setting, difference, rows
from slow_cases import one_in
from surveyor.arrays import FloatArray
from surveyor.crawler.graphless import opic_of, total_cash
from surveyor.crawler.strategies.opic import Opic
from surveyor.store.directory import SurveyFolder
from surveyor.testing.web_plan import WebSettings

UNTIL = "requests=300"
STRATEGIES = ("opic", "opic:cycle", "opic:random", "adaptive:bao")


def crawled(path: Path, web: WebSettings, strategy: str, *, graph: bool, **hooks: Any) -> Setting:
    setting = Setting(web, options={"strategy": strategy, "graph": graph, "until": UNTIL, "backoff": 0.0})
    assert setting.crawl(path, UNTIL, **hooks) == "reached"
    return setting


def importance(setting: Setting) -> FloatArray:
    strategy = setting.state.crawl.strategy
    assert isinstance(strategy, Opic)
    return strategy.importance()[: len(setting.state.urls)]


def stored(path: Path) -> Opic:
    with SurveyFolder.open(path, write=False) as folder:
        opic = opic_of(folder)
    assert opic is not None
    return opic


@pytest.mark.parametrize(
    ("web", "strategy"),
    one_in(4, [(STEADY, "opic"), *((MOODY, strategy) for strategy in STRATEGIES)]),
    ids=["steady", *STRATEGIES],
)
def test_same_estimates_as_with_a_graph(tmp_path: Path, web: WebSettings, strategy: str) -> None:
    with_graph = crawled(tmp_path / "a", web, strategy, graph=True)
    without = crawled(tmp_path / "b", web, strategy, graph=False)
    expected, found = rows(tmp_path / "a"), rows(tmp_path / "b")
    assert [row[1:5] for row in expected["visits"]] == [row[1:5] for row in found["visits"]]
    assert {row[2] for row in found["visits"]} >= {"fetched", "gone", "redirected", "blocked"}
    assert len(found["visits"]) > 1.5 * len({row[1] for row in found["visits"]})  # pages were read again
    assert not any(row[11] for row in found["visits"])  # links
    assert np.array_equal(importance(with_graph), importance(without))
    opic = stored(tmp_path / "b")
    assert abs(total_cash(opic) - 1) < 1e-9
    size = importance(without).size
    assert np.abs(opic.importance()[:size] - importance(without)).sum() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_killed_after_any_commit(tmp_path: Path, strategy: str) -> None:
    setting = Setting(STEADY, options={"strategy": strategy, "graph": False, "until": UNTIL, "backoff": 0.0})
    images: list[Image] = []

    def keep(folder: SurveyFolder) -> None:
        if len(images) * 40 <= folder.journal.last_commit.number:
            images.append(setting.image(folder, tmp_path / f"{len(images)}"))

    assert setting.crawl(tmp_path / "whole", UNTIL, after=keep) == "reached"
    assert len(images) > 5
    expected, whole = rows(tmp_path / "whole"), importance(setting)
    for image in images:
        setting.go_back(image)
        if image.position:
            assert abs(total_cash(stored(image.folder)) - 1) < 1e-9
        assert setting.crawl(image.folder, UNTIL) == "reached"
        assert not difference(expected, rows(image.folder))
        assert np.array_equal(importance(setting)[: whole.size], whole)
