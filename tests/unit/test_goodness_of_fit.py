from __future__ import annotations

import json

import numpy as np
import pytest

from surveyor.arrays import IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.goodness_of_fit import goodness_of_fit
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walk_webs import communities, many_traces, trace_of

WEB = communities(np.random.default_rng(1))
CATEGORY = np.random.default_rng(2).choice(5, WEB.pages, p=[0.4, 0.3, 0.15, 0.1, 0.05])
CATEGORY[(WEB.community == 0) & (CATEGORY == 1)] = 2  # the category depends on the community
TRUTH = dict(enumerate((np.bincount(CATEGORY) / WEB.pages).tolist()))


def independent(rng: np.random.Generator, rows: int, probabilities: list[float]) -> tuple[WalkTrace, IntArray]:
    """Return an unweighted sample with independent rows, and a category for each row."""
    sample = trace_of(np.arange(rows).reshape(rows // 20, 20), np.ones(rows))
    return sample, rng.choice(len(probabilities), rows, p=probabilities)


def test_independent_rows_give_the_pearson_statistic() -> None:
    stats = pytest.importorskip("scipy.stats")
    sample, categories = independent(np.random.default_rng(3), 4000, [0.5, 0.3, 0.2])
    found = goodness_of_fit(sample, categories, {0: 0.5, 1: 0.3, 2: 0.2}, burn_in=0.0)
    pearson = stats.chisquare(np.bincount(categories), 4000 * np.array([0.5, 0.3, 0.2]))
    assert found.df == 2
    assert found.design_effect == pytest.approx(1, abs=0.15)
    assert found.statistic * found.design_effect == pytest.approx(pearson.statistic)
    assert found.p_value == pytest.approx(pearson.pvalue, abs=0.05)


def test_rejection_rate_is_nominal_for_the_true_distribution_and_high_for_a_wrong_one() -> None:
    samples = many_traces(WEB, 300, 8, 300, np.random.default_rng(4))
    wrong = TRUTH | {0: TRUTH[0] + 0.15}
    right = [goodness_of_fit(sample, CATEGORY[sample.page], TRUTH) for sample in samples]
    rejected = np.mean([one.p_value < 0.05 for one in right])
    assert 0.015 <= rejected <= 0.1  # 5 %, four standard errors of 300 runs
    assert 0.3 <= np.mean([one.p_value < 0.5 for one in right]) <= 0.65
    assert (
        np.mean([one.design_effect for one in right]) > 2
    )  # treating steps as independent draws would reject far too often
    assert (
        np.mean([goodness_of_fit(sample, CATEGORY[sample.page], wrong).p_value < 0.05 for sample in samples[:50]]) > 0.8
    )


def test_small_cells_are_merged() -> None:
    sample, categories = independent(np.random.default_rng(6), 400, [0.6, 0.38, 0.006, 0.008, 0.006])
    found = goodness_of_fit(sample, categories, {0: 0.6, 1: 0.38, 2: 0.006, 3: 0.008, 4: 0.006}, burn_in=0.0)
    assert (found.cells, found.merged, found.df) == (3, 3, 2)
    assert json.loads(json.dumps(found.to_dict()))["cells"] == 3


def test_expected_accepts_counts_and_unobserved_categories() -> None:
    sample, categories = independent(np.random.default_rng(7), 400, [0.5, 0.5])
    shares = goodness_of_fit(sample, categories, {0: 0.5, 1: 0.4, 2: 0.1}, burn_in=0.0)
    assert shares == goodness_of_fit(sample, categories, {0: 500, 1: 400, 2: 100}, burn_in=0.0)
    assert shares.p_value < 1e-3


def test_invalid_expected_distributions_raise() -> None:
    sample, categories = independent(np.random.default_rng(8), 400, [0.5, 0.5])
    with pytest.raises(UsageError, match="category 1, which expected gives no share"):
        goodness_of_fit(sample, categories, {0: 1.0, 1: 0.0})
    with pytest.raises(UsageError, match="category 1, which expected gives no share"):
        goodness_of_fit(sample, categories, {0: 1.0})
    with pytest.raises(UsageError, match="expected must give each category"):
        goodness_of_fit(sample, categories, {})
    with pytest.raises(UsageError, match="expected must give each category"):
        goodness_of_fit(sample, categories, {0: -1.0, 1: 2.0})
    with pytest.raises(UsageError, match="too small for two cells"):
        goodness_of_fit(sample, np.zeros(400, np.int64), {0: 1.0})


def test_a_sample_with_one_category_uses_the_number_of_distinct_pages() -> None:
    sample, categories = independent(np.random.default_rng(8), 400, [1.0])
    found = goodness_of_fit(sample, categories, {0: 0.98, 1: 0.02}, burn_in=0.0)
    assert found.statistic == pytest.approx(400 * (0.02**2 / 0.98 + 0.02))
    assert found.p_value == pytest.approx(0.0043, abs=1e-3)
    assert goodness_of_fit(sample, categories, {0: 0.5, 1: 0.5}).p_value < 1e-9
