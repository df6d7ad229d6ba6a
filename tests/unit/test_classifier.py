"""Trained topics: saved models predict like trained ones, files are validated, and quality is cross-validated."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.crawler.topics import classifier
from surveyor.crawler.topics.classifier import Classifier, ConfusionMatrix, Kind, count_terms
from surveyor.crawler.topics.page_content import PageContent, SampledPage, words
from surveyor.crawler.topics.proportions import wilson
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import InputError, MissingExtra, UsageError
from surveyor.estimate.sampling import training
from surveyor.estimate.sampling.training import TrainingSet, train

KINDS: tuple[Kind, ...] = ("linear", "tree")
sklearn = pytest.importorskip("sklearn")


def page_with(text: str, title: str = "") -> SampledPage:
    return SampledPage("https://a.example/", load=lambda: PageContent(title, "", text))


def pages(count: int, *, solar: bool, rng: int = 1) -> list[SampledPage]:
    """Return pages from one vocabulary; some words are more frequent on topic."""
    random = np.random.default_rng([rng, solar])
    vocabulary = np.array([f"word{number}" for number in range(300)] + ["Größe", "太陽光", "naïve"])
    shares = 1 / np.arange(1, vocabulary.size + 1)
    shares[20:40] *= 3 if solar else 1
    chosen = random.choice(vocabulary, (count, 60), p=shares / shares.sum())
    return [page_with(" ".join(row), f"Page {number}") for number, row in enumerate(chosen)]


ON, OFF = pages(60, solar=True), pages(90, solar=False)


@pytest.fixture(scope="module")
def models() -> dict[str, Classifier]:
    return {kind: train(ON, OFF, kind=kind) for kind in KINDS}


def reference(kind: str, on: Sequence[SampledPage], off: Sequence[SampledPage]) -> tuple[Any, Any]:
    """Return the vectoriser and estimator of scikit-learn with the documented settings."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.tree import DecisionTreeClassifier  # type: ignore[import-untyped]

    order = list(dict.fromkeys(term for page in [*on, *off] for term in count_terms(page)))
    page_counts = {term: sum(term in count_terms(page) for page in [*on, *off]) for term in order}
    vectoriser = TfidfVectorizer(
        analyzer=lambda page: list(count_terms(page).elements()),
        sublinear_tf=True,
        vocabulary=[term for term in order if page_counts[term] >= 2],
    )
    matrix = vectoriser.fit_transform([*on, *off])
    balanced: dict[str, Any] = {"class_weight": "balanced", "random_state": 7}
    estimator: Any = (
        LogisticRegression(C=training.INVERSE_REGULARISATION, max_iter=1000, **balanced)
        if kind == "linear"
        else DecisionTreeClassifier(criterion="entropy", ccp_alpha=training.PRUNING, **balanced)
    )
    return vectoriser, estimator.fit(matrix, [True] * len(on) + [False] * len(off))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_equal_those_of_scikit_learn(kind: str, models: dict[str, Classifier], tmp_path: Path) -> None:
    model = models[kind]
    model.save(tmp_path / "a.json")
    loaded = Classifier.load(tmp_path / "a.json")
    vectoriser, estimator = reference(kind, ON, OFF)
    others = [
        *pages(200, solar=True, rng=2),
        *pages(200, solar=False, rng=3),
        page_with("nothing known"),
        page_with(""),
    ]
    matrix = vectoriser.transform([*ON, *OFF, *others])
    expected = estimator.predict(matrix).tolist()
    assert [loaded(page) for page in [*ON, *OFF, *others]] == expected == [model(page) for page in [*ON, *OFF, *others]]
    assert 0 < sum(expected) < len(expected)
    for page, row in zip([*ON, *others], matrix[[*range(60), *range(150, matrix.shape[0])]], strict=True):
        ids, values = loaded.vector(count_terms(page))
        assert np.allclose(row.toarray()[0][ids], values, atol=1e-12)
        assert row.nnz == ids.size
    scores = estimator.decision_function(matrix) if kind == "linear" else estimator.predict_proba(matrix)[:, 1]
    assert np.allclose([loaded.score(page) for page in [*ON, *OFF, *others]], scores, atol=1e-9)


def test_a_model_is_a_topic_rule(models: dict[str, Classifier], tmp_path: Path) -> None:
    models["linear"].save(tmp_path / "a.json")
    topic = Topic.parse(f"model:{tmp_path / 'a.json'}")
    assert (topic.url_only, topic.digest) == (False, models["linear"].digest)
    assert [topic(page) for page in ON] == [models["linear"](page) for page in ON]
    assert Topic.parse(f"not:model:{tmp_path / 'a.json'}")(ON[0]) != topic(ON[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_pages_and_seed_give_the_same_bytes(kind: Kind, tmp_path: Path) -> None:
    for name in "ab":
        train(ON, OFF, kind=kind, rng=3).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_top_terms_separate_the_classes(models: dict[str, Classifier]) -> None:
    expected = {f"word{number}" for number in range(20, 40)}
    for_topic, against = models["linear"].top_terms(8)
    assert len(expected & set(for_topic)) >= 6
    assert not expected & set(against)
    first, *_ = models["tree"].top_terms(8)[0]
    assert first in expected


# --- quality ---


def test_quality_is_cross_validated() -> None:
    """Random labels can be memorised, which cross-validation must reveal."""
    labels = np.random.default_rng(4).permutation([True] * 75 + [False] * 75).tolist()
    mixed = list(zip([*ON, *OFF], labels, strict=True))
    model = train([page for page, on in mixed if on], [page for page, on in mixed if not on])
    assert sum(model(page) == on for page, on in mixed) > 140
    assert model.quality is not None
    assert model.quality.accuracy.value is not None
    assert 0.3 < model.quality.accuracy.value < 0.7


def test_quality_is_close_to_that_on_new_pages(models: dict[str, Classifier]) -> None:
    model = models["linear"]
    fresh = [*pages(500, solar=True, rng=8), *pages(500, solar=False, rng=9)]
    truth = ConfusionMatrix.of([True] * 500 + [False] * 500, [model(page) for page in fresh])
    assert model.quality is not None
    assert model.quality.folds == 5
    assert model.quality.true_positives + model.quality.false_negatives == 60
    assert truth.recall.value is not None
    assert model.quality.recall.low - 0.05 <= truth.recall.value <= model.quality.recall.high + 0.05


def test_confusion_matrix_measures() -> None:
    quality = ConfusionMatrix.of([True, True, True, False, False], [True, True, False, True, False])
    assert list(quality.to_dict().values())[:5] == [2, 1, 1, 1, 0]
    assert (quality.precision.value, quality.recall.value, quality.accuracy.value) == (2 / 3, 2 / 3, 0.6)
    assert quality.f1.value == pytest.approx(2 / 3)
    assert ConfusionMatrix.from_dict(quality.to_dict()) == quality
    nothing = ConfusionMatrix.of([True, False], [False, False])
    assert nothing.precision == (None, 0.0, 1.0)
    assert nothing.f1.value == 0.0


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilson_bounds_solve_the_score_equation(hits: int, more: int) -> None:
    of = hits + more
    share = hits / of
    low, high = wilson(share, of, 0.95)
    for bound in (low, high):
        if 0 < bound < 1:
            assert abs(share - bound) == pytest.approx(1.959963984540054 * math.sqrt(bound * (1 - bound) / of))
    assert 0 <= low <= share <= high <= 1
    assert high > low


# --- limits and small training sets ---


@pytest.mark.parametrize("kind", KINDS)
def test_two_pages_of_each_class_suffice(kind: Kind) -> None:
    model = train(
        [page_with("solar power"), page_with("solar cells")],
        [page_with("wind power"), page_with("wind mills")],
        kind=kind,
    )
    assert (model(page_with("all solar")), model(page_with("all wind"))) == (True, False)
    assert model.quality is not None
    assert model.quality.folds == 2


@pytest.mark.parametrize(
    ("on", "off", "counts"),
    [
        ([], [], "0 and 0"),
        (["a", "b"], [], "2 and 0"),
        ([], ["a", "b", "c"], "0 and 3"),
        (["a"], ["b", "c"], "1 and 2"),
        (["a", "b"], ["c"], "2 and 1"),
        (["a", "a", "..."], ["b", "c"], "1 and 2"),  # a duplicate, and a page without words
    ],
)
def test_too_few_pages_of_a_class_raise(on: list[str], off: list[str], counts: str) -> None:
    with pytest.raises(UsageError) as caught:
        train([page_with(text) for text in on], [page_with(text) for text in off])
    assert "at least 2 pages on topic and 2 off topic" in caught.value.problem
    assert caught.value.problem.endswith(f"got {counts}")


def test_pages_and_terms_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MAX_TERMS", 50)
    training_set = TrainingSet(rng=5, max_pages=20)
    for page in OFF:
        training_set.add(page, label=False)
    for page in ON[:30]:
        training_set.add(page, label=True)
    training_set.add(ON[29], label=True)
    model = training.train_on(training_set)
    trained = model.trained
    assert (trained["positive"], trained["negative"], trained["duplicates"]) == (20, 20, 1)
    assert (trained["distinct_positive"], trained["distinct_negative"]) == (30, 90)
    assert len(model.terms) == 50
    monkeypatch.setattr(classifier, "MOST_TEXT", 10)
    assert count_terms(page_with("abc def ghi jkl")) == {"abc": 1, "def": 1, "gh": 1}


def test_scripts_without_spaces_add_character_pairs() -> None:
    assert count_terms(page_with("太陽光 x", "ab cd")) == dict.fromkeys(
        ["ab", "cd", "太", "陽", "光", "x", "太陽", "陽光"], 1
    )
    assert words("ab cd") == ["ab", "cd"]


def test_models_work_without_scikit_learn_but_training_raises(
    models: dict[str, Classifier], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models["linear"].save(tmp_path / "a.json")
    for name in ("sklearn", "sklearn.linear_model", "sklearn.tree", "scipy", "scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, None)
    loaded = Classifier.load(tmp_path / "a.json")
    assert [loaded(page) for page in ON] == [models["linear"](page) for page in ON]
    with pytest.raises(MissingExtra, match=r"surveyor\[topics\]"):
        train(ON, OFF)
    with pytest.raises(UsageError, match="kind must be linear or tree, got 'forest'"):
        train(ON, OFF, kind="forest")  # type: ignore[arg-type]


# --- files ---


def saved_fields(models: dict[str, Classifier], kind: str, folder: Path) -> dict[str, Any]:
    models[kind].save(folder / "topic.json")
    found: dict[str, Any] = json.loads((folder / "topic.json").read_text("utf-8"))
    return found


def problem(folder: Path, text: str) -> str:
    (folder / "topic.json").write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        Classifier.load(folder / "topic.json")
    assert "\n" not in caught.value.problem
    assert caught.value.hint
    return caught.value.problem


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("linear", {"schema": 3}, "has schema 3; this version of surveyor reads schema 2"),
        ("linear", {"schema": 1}, "has schema 1; this version of surveyor reads schema 2"),
        ("linear", {"format": "surveyor-survey"}, "is not a trained topic"),
        ("linear", {"kind": "forest"}, "is damaged (unknown kind 'forest')"),
        ("linear", {"weights": [1.0]}, "numbers"),
        ("linear", {"intercept": float("nan")}, "nan is not a number"),
        ("linear", {"intercept": True}, "True is not a number"),
        ("linear", {"terms": ["a", "a"]}, "terms must be distinct strings"),
        ("linear", {"idf": None}, "numbers"),
        ("linear", {"threshold": "0"}, "'0' is not a number"),
        ("linear", {"quality": {"true_positives": -1}}, "is damaged"),
        ("tree", {"tree": {}}, "is damaged"),
        (
            "tree",
            {"tree": {"term": [0], "left": [0], "right": [0], "threshold": [0], "probability": [1]}},
            "invalid tree",
        ),
        ("tree", {"tree": {"term": [10**6, -1, -1], "left": [1, -1, -1], "right": [2, -1, -1]}}, "invalid tree"),
        ("tree", {"tree": {"term": [0, -1], "left": [1, -1], "right": [2, -1]}}, "invalid tree"),
        ("tree", {"tree": {"term": [], "left": [], "right": []}}, "is damaged"),
    ],
)
def test_damaged_files_and_other_schemas_raise(
    kind: str, changes: dict[str, Any], expected: str, models: dict[str, Classifier], tmp_path: Path
) -> None:
    assert expected in problem(tmp_path, json.dumps(saved_fields(models, kind, tmp_path) | changes))


def test_files_of_other_formats_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "it is not JSON" in problem(tmp_path, "{")
    assert "it is not JSON" in problem(tmp_path, "[" * 100_000)
    assert "is not a trained topic" in problem(tmp_path, "[]")
    monkeypatch.setattr(classifier, "MAX_FILE_BYTES", 10)
    assert "more than the maximum of 10" in problem(tmp_path, "[" + " " * 20 + "]")
    with pytest.raises(InputError, match="cannot be read"):
        Classifier.load(tmp_path / "nowhere.json")
    with pytest.raises(InputError, match="cannot be read"):
        Topic.parse(f"model:{tmp_path}/nowhere.json")


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_files_raise(kind: str, models: dict[str, Classifier], tmp_path: Path) -> None:
    models[kind].save(tmp_path / "whole.json")
    data = (tmp_path / "whole.json").read_text("utf-8")
    for end in range(0, len(data) - 2, len(data) // 40):
        assert problem(tmp_path, data[:end])
