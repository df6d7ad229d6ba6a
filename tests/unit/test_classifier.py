"""Trained topics: what is kept decides as what was trained, is checked when it is read, and tells how good it is."""

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

from surveyor.errors import InputError, MissingExtra, UsageError
from surveyor.estimate.sampling import classifier, training
from surveyor.estimate.sampling.classifier import Classifier, Kind, counted
from surveyor.estimate.sampling.distributions import wilson
from surveyor.estimate.sampling.page import Said, SampledPage
from surveyor.estimate.sampling.quality import Quality
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.training import Examples, train
from surveyor.estimate.sampling.words import words

KINDS: tuple[Kind, ...] = ("linear", "tree")
sklearn = pytest.importorskip("sklearn")


def saying(text: str, title: str = "") -> SampledPage:
    return SampledPage("https://a.example/", read=lambda: Said(title, "", text))


def pages(count: int, *, solar: bool, rng: int = 1) -> list[SampledPage]:
    """Return pages of a common vocabulary, some words of which are more common on topic."""
    chance = np.random.default_rng([rng, solar])
    vocabulary = np.array([f"word{number}" for number in range(300)] + ["Größe", "太陽光", "naïve"])
    shares = 1 / np.arange(1, vocabulary.size + 1)
    shares[20:40] *= 3 if solar else 1
    chosen = chance.choice(vocabulary, (count, 60), p=shares / shares.sum())
    return [saying(" ".join(row), f"Page {number}") for number, row in enumerate(chosen)]


ON, OFF = pages(60, solar=True), pages(90, solar=False)


@pytest.fixture(scope="module")
def models() -> dict[str, Classifier]:
    return {kind: train(ON, OFF, kind=kind) for kind in KINDS}


def reference(kind: str, on: Sequence[SampledPage], off: Sequence[SampledPage]) -> tuple[Any, Any]:
    """Return scikit-learn's own vectors and learner, with the settings that are documented."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.tree import DecisionTreeClassifier  # type: ignore[import-untyped]

    order = list(dict.fromkeys(term for page in [*on, *off] for term in counted(page)))
    common = {term: sum(term in counted(page) for page in [*on, *off]) for term in order}
    vectors = TfidfVectorizer(
        analyzer=lambda page: list(counted(page).elements()),
        sublinear_tf=True,
        vocabulary=[term for term in order if common[term] >= 2],
    )
    matrix = vectors.fit_transform([*on, *off])
    balanced: dict[str, Any] = {"class_weight": "balanced", "random_state": 7}
    learner: Any = (
        LogisticRegression(C=training.STRENGTH, max_iter=1000, **balanced)
        if kind == "linear"
        else DecisionTreeClassifier(criterion="entropy", ccp_alpha=training.PRUNING, **balanced)
    )
    return vectors, learner.fit(matrix, [True] * len(on) + [False] * len(off))


@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_are_those_of_scikit_learn_on_all_pages(
    kind: str, models: dict[str, Classifier], tmp_path: Path
) -> None:
    model = models[kind]
    model.save(tmp_path / "a.json")
    kept = Classifier.load(tmp_path / "a.json")
    vectors, learner = reference(kind, ON, OFF)
    others = [*pages(200, solar=True, rng=2), *pages(200, solar=False, rng=3), saying("nothing known"), saying("")]
    matrix = vectors.transform([*ON, *OFF, *others])
    expected = learner.predict(matrix).tolist()
    assert [kept(page) for page in [*ON, *OFF, *others]] == expected == [model(page) for page in [*ON, *OFF, *others]]
    assert 0 < sum(expected) < len(expected)
    for page, row in zip([*ON, *others], matrix[[*range(60), *range(150, matrix.shape[0])]], strict=True):
        ids, values = kept.vector(counted(page))
        assert np.allclose(row.toarray()[0][ids], values, atol=1e-12)
        assert row.nnz == ids.size
    scores = learner.decision_function(matrix) if kind == "linear" else learner.predict_proba(matrix)[:, 1]
    assert np.allclose([kept.score(page) for page in [*ON, *OFF, *others]], scores, atol=1e-9)


def test_a_model_is_a_topic(models: dict[str, Classifier], tmp_path: Path) -> None:
    models["linear"].save(tmp_path / "a.json")
    topic = Topic.parse(f"model:{tmp_path / 'a.json'}")
    assert (topic.free, topic.digest) == (False, models["linear"].digest)
    assert [topic(page) for page in ON] == [models["linear"](page) for page in ON]
    assert Topic.parse(f"not:model:{tmp_path / 'a.json'}")(ON[0]) != topic(ON[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_pages_and_seed_give_the_same_bytes(kind: Kind, tmp_path: Path) -> None:
    for name in "ab":
        train(ON, OFF, kind=kind, rng=3).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_tells_pages_apart_is_told(models: dict[str, Classifier]) -> None:
    telling = {f"word{number}" for number in range(20, 40)}
    speaking, against = models["linear"].telling(8)
    assert len(telling & set(speaking)) >= 6
    assert not telling & set(against)
    first, *_ = models["tree"].telling(8)[0]
    assert first in telling


# --- how good ---


def test_quality_is_of_pages_not_learnt_from() -> None:
    """Labels by chance are learnt by heart, and cross-validation must tell so."""
    labels = np.random.default_rng(4).permutation([True] * 75 + [False] * 75).tolist()
    mixed = list(zip([*ON, *OFF], labels, strict=True))
    model = train([page for page, on in mixed if on], [page for page, on in mixed if not on])
    assert sum(model(page) == on for page, on in mixed) > 140
    assert model.quality is not None
    assert model.quality.accuracy.value is not None
    assert 0.3 < model.quality.accuracy.value < 0.7


def test_quality_is_near_that_on_further_pages(models: dict[str, Classifier]) -> None:
    model = models["linear"]
    fresh = [*pages(500, solar=True, rng=8), *pages(500, solar=False, rng=9)]
    truth = Quality.of([True] * 500 + [False] * 500, [model(page) for page in fresh])
    assert model.quality is not None
    assert model.quality.folds == 5
    assert model.quality.hits + model.quality.missed == 60
    assert truth.recall.value is not None
    assert model.quality.recall.low - 0.05 <= truth.recall.value <= model.quality.recall.high + 0.05


def test_quality_counts_by_hand() -> None:
    quality = Quality.of([True, True, True, False, False], [True, True, False, True, False])
    assert (quality.hits, quality.false, quality.missed, quality.passed) == (2, 1, 1, 1)
    assert (quality.precision.value, quality.recall.value, quality.accuracy.value) == (2 / 3, 2 / 3, 0.6)
    assert quality.f1.value == pytest.approx(2 / 3)
    assert Quality.from_dict(quality.to_dict()) == quality
    nothing = Quality.of([True, False], [False, False])
    assert nothing.precision == (None, 0.0, 1.0)
    assert nothing.f1.value == 0.0


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilsons_limits_solve_their_equation(hits: int, more: int) -> None:
    of = hits + more
    share = hits / of
    low, high = wilson(share, of, 0.95)
    for bound in (low, high):
        if 0 < bound < 1:
            assert abs(share - bound) == pytest.approx(1.959963984540054 * math.sqrt(bound * (1 - bound) / of))
    assert 0 <= low <= share <= high <= 1
    assert high > low


# --- bounds and few pages ---


@pytest.mark.parametrize("kind", KINDS)
def test_two_pages_of_each_class_are_enough(kind: Kind) -> None:
    model = train(
        [saying("solar power"), saying("solar cells")], [saying("wind power"), saying("wind mills")], kind=kind
    )
    assert (model(saying("all solar")), model(saying("all wind"))) == (True, False)
    assert model.quality is not None
    assert model.quality.folds == 2


@pytest.mark.parametrize(
    ("on", "off", "problem"),
    [
        ([], [], "there are no pages with text to train on"),
        (["a", "b"], [], "all 2 pages are on topic: there is nothing to tell from"),
        ([], ["a", "b", "c"], "all 3 pages are off topic: there is nothing to tell from"),
        (["a"], ["b", "c"], "there is 1 page on topic, too few to learn from"),
        (["a", "b"], ["c"], "there is 1 page off topic, too few to learn from"),
        (["a", "a", "..."], ["b", "c"], "there is 1 page on topic, too few to learn from"),  # one says nothing
    ],
)
def test_one_class_alone_is_refused(on: list[str], off: list[str], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        train([saying(text) for text in on], [saying(text) for text in off])
    assert caught.value.problem == problem
    assert "2 pages on topic" in caught.value.hint


def test_pages_and_words_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MOST_TERMS", 50)
    examples = Examples(rng=5, most=20)
    for page in OFF:
        examples.add(page, label=False)
    for page in ON[:30]:
        examples.add(page, label=True)
    examples.add(ON[29], label=True)
    model = training.train_on(examples)
    trained = model.trained
    assert (trained["positive"], trained["negative"], trained["repeated"]) == (20, 20, 1)
    assert (trained["given_positive"], trained["given_negative"]) == (30, 90)
    assert len(model.terms) == 50
    monkeypatch.setattr(classifier, "MOST_TEXT", 10)
    assert counted(saying("abc def ghi jkl")) == {"abc": 1, "def": 1, "gh": 1}


def test_pairs_of_characters_count_where_there_are_no_blanks() -> None:
    assert counted(saying("太陽光 x", "ab cd")) == dict.fromkeys(["ab", "cd", "太", "陽", "光", "x", "太陽", "陽光"], 1)
    assert words("ab cd") == ["ab", "cd"]


def test_without_scikit_learn_topics_are_used_but_not_trained(
    models: dict[str, Classifier], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models["linear"].save(tmp_path / "a.json")
    for name in ("sklearn", "sklearn.linear_model", "sklearn.tree", "scipy", "scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, None)
    kept = Classifier.load(tmp_path / "a.json")
    assert [kept(page) for page in ON] == [models["linear"](page) for page in ON]
    with pytest.raises(MissingExtra, match=r"surveyor\[topics\]"):
        train(ON, OFF)
    with pytest.raises(UsageError, match="no kind of model 'forest'"):
        train(ON, OFF, kind="forest")  # type: ignore[arg-type]


# --- what is read back ---


def told(models: dict[str, Classifier], kind: str, folder: Path) -> dict[str, Any]:
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
        ("linear", {"schema": 2}, "newer surveyor (schema 2; this one reads up to 1)"),
        ("linear", {"format": "surveyor-survey"}, "is not a trained topic"),
        ("linear", {"kind": "forest"}, "is damaged (no kind 'forest')"),
        ("linear", {"weights": [1.0]}, "numbers"),
        ("linear", {"intercept": float("nan")}, "nan is no number"),
        ("linear", {"intercept": True}, "True is no number"),
        ("linear", {"terms": ["a", "a"]}, "terms are not words, each once"),
        ("linear", {"idf": None}, "numbers"),
        ("linear", {"threshold": "0"}, "'0' is no number"),
        ("linear", {"quality": {"hits": -1}}, "is damaged"),
        ("tree", {"tree": {}}, "is damaged"),
        ("tree", {"tree": {"term": [0], "left": [0], "right": [0], "at_most": [0], "share": [1]}}, "leads nowhere"),
        ("tree", {"tree": {"term": [10**6, -1, -1], "left": [1, -1, -1], "right": [2, -1, -1]}}, "leads nowhere"),
        ("tree", {"tree": {"term": [0, -1], "left": [1, -1], "right": [2, -1]}}, "leads nowhere"),
        ("tree", {"tree": {"term": [], "left": [], "right": []}}, "is damaged"),
    ],
)
def test_damaged_and_newer_files_are_refused(
    kind: str, changes: dict[str, Any], expected: str, models: dict[str, Classifier], tmp_path: Path
) -> None:
    assert expected in problem(tmp_path, json.dumps(told(models, kind, tmp_path) | changes))


def test_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "it is no JSON" in problem(tmp_path, "{")
    assert "it is no JSON" in problem(tmp_path, "[" * 100_000)
    assert "is not a trained topic" in problem(tmp_path, "[]")
    monkeypatch.setattr(classifier, "LARGEST", 10)
    assert "too large" in problem(tmp_path, "[" + " " * 20 + "]")
    with pytest.raises(InputError, match="cannot be read"):
        Classifier.load(tmp_path / "nowhere.json")
    with pytest.raises(InputError, match="cannot be read"):
        Topic.parse(f"model:{tmp_path}/nowhere.json")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_short_anywhere_is_refused(kind: str, models: dict[str, Classifier], tmp_path: Path) -> None:
    models[kind].save(tmp_path / "whole.json")
    data = (tmp_path / "whole.json").read_text("utf-8")
    for end in range(0, len(data) - 2, len(data) // 40):
        assert problem(tmp_path, data[:end])
