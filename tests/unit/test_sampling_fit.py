from __future__ import annotations

import json

import numpy as np
import pytest

from surveyor.arrays import IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.fit import fit
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walking import communities, many_trails, trail_of

WEB = communities(np.random.default_rng(1))
KIND = np.random.default_rng(2).choice(5, WEB.pages, p=[0.4, 0.3, 0.15, 0.1, 0.05])
KIND[(WEB.community == 0) & (KIND == 1)] = 2  # kinds and communities have to do with each other
TRUTH = dict(enumerate((np.bincount(KIND) / WEB.pages).tolist()))


def independent(rng: np.random.Generator, rows: int, chances: list[float]) -> tuple[WalkTrace, IntArray]:
    """Return a sample without weights whose rows are independent, and a category for each row."""
    sample = trail_of(np.arange(rows).reshape(rows // 20, 20), np.ones(rows))
    return sample, rng.choice(len(chances), rows, p=chances)


def test_independent_rows_have_about_the_plain_statistic() -> None:
    stats = pytest.importorskip("scipy.stats")
    sample, kinds = independent(np.random.default_rng(3), 4000, [0.5, 0.3, 0.2])
    found = fit(sample, kinds, {0: 0.5, 1: 0.3, 2: 0.2}, burn=0.0)
    plain = stats.chisquare(np.bincount(kinds), 4000 * np.array([0.5, 0.3, 0.2]))
    assert found.freedom == 2
    assert found.design_effect == pytest.approx(1, abs=0.15)
    assert found.statistic * found.design_effect == pytest.approx(plain.statistic)
    assert found.p_value == pytest.approx(plain.pvalue, abs=0.05)


def test_a_true_distribution_is_rejected_as_rarely_as_promised_and_a_wrong_one_often() -> None:
    samples = many_trails(WEB, 300, 8, 300, np.random.default_rng(4))
    wrong = TRUTH | {0: TRUTH[0] + 0.15}
    right = [fit(sample, KIND[sample.page], TRUTH) for sample in samples]
    rejected = np.mean([one.p_value < 0.05 for one in right])
    assert 0.015 <= rejected <= 0.1  # 5 %, four standard errors of 300 runs
    assert 0.3 <= np.mean([one.p_value < 0.5 for one in right]) <= 0.65
    assert np.mean([one.design_effect for one in right]) > 2  # steps as draws would reject far too often
    assert np.mean([fit(sample, KIND[sample.page], wrong).p_value < 0.05 for sample in samples[:50]]) > 0.8


def test_small_cells_are_taken_together() -> None:
    sample, kinds = independent(np.random.default_rng(6), 400, [0.6, 0.38, 0.006, 0.008, 0.006])
    found = fit(sample, kinds, {0: 0.6, 1: 0.38, 2: 0.006, 3: 0.008, 4: 0.006}, burn=0.0)
    assert (found.cells, found.merged, found.freedom) == (3, 3, 2)
    assert json.loads(json.dumps(found.to_dict()))["cells"] == 3


def test_expected_numbers_may_be_counts_and_unseen_categories() -> None:
    sample, kinds = independent(np.random.default_rng(7), 400, [0.5, 0.5])
    shares = fit(sample, kinds, {0: 0.5, 1: 0.4, 2: 0.1}, burn=0.0)
    assert shares == fit(sample, kinds, {0: 500, 1: 400, 2: 100}, burn=0.0)
    assert shares.p_value < 1e-3


def test_what_cannot_be_compared_says_so() -> None:
    sample, kinds = independent(np.random.default_rng(8), 400, [0.5, 0.5])
    with pytest.raises(UsageError, match="no page of category 1"):
        fit(sample, kinds, {0: 1.0, 1: 0.0})
    with pytest.raises(UsageError, match="no page of category 1"):
        fit(sample, kinds, {0: 1.0})
    with pytest.raises(UsageError, match="no known distribution"):
        fit(sample, kinds, {})
    with pytest.raises(UsageError, match="no known distribution"):
        fit(sample, kinds, {0: -1.0, 1: 2.0})
    with pytest.raises(UsageError, match="fills one cell"):
        fit(sample, np.zeros(400, np.int64), {0: 1.0})


def test_a_sample_of_one_category_is_compared_as_if_it_fitted() -> None:
    sample, kinds = independent(np.random.default_rng(8), 400, [1.0])
    found = fit(sample, kinds, {0: 0.98, 1: 0.02}, burn=0.0)
    assert found.statistic == pytest.approx(400 * (0.02**2 / 0.98 + 0.02))
    assert found.p_value == pytest.approx(0.0043, abs=1e-3)
    assert fit(sample, kinds, {0: 0.5, 1: 0.5}).p_value < 1e-9
