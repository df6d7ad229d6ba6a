"""The experiment with sharded crawls finds no joint report that is wrong."""

from __future__ import annotations

import pytest
from experiments.sharded_crawl import SHARDS, crawled


@pytest.mark.slow
def test_every_joint_report_contains_the_truth() -> None:
    done = [crawled(300 + number, shards, kills=4) for number, shards in enumerate((*SHARDS, *SHARDS))]
    assert sum(one.wrong for one in done) == 0
    assert sum(one.moments for one in done) > 500
    assert sum(one.restarts for one in done) >= 10
