"""Train a topic from pages on it and pages off it, and say by cross-validation how good it is.

Each class is divided at random into as many parts as there are folds; words, weights and all else are learnt from the
other parts, and the part left out is judged. Verdicts of all folds are counted together (`quality.py`). The model that
is kept is trained on all pages. The same pages and `rng` give the same model.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from surveyor.arrays import BoolArray, IdArray, IntArray, read_only
from surveyor.errors import MissingExtra, UsageError
from surveyor.estimate.sampling.classifier import Classifier, Kind, Tree, counted
from surveyor.estimate.sampling.page import SampledPage
from surveyor.estimate.sampling.quality import Quality
from surveyor.stopping import ProgressCallback, silent

MOST_TERMS = 20_000
MOST_PAGES = 5_000  # of each class; of more, so many are drawn
FEW = 50  # pages; in more, a word counts that stands in two of them at least
FOLDS = 5
LEAST = 2  # pages of a class
STRENGTH = 10.0  # of what pages say, against weights near zero
PRUNING = 0.005  # what a fork has to save, in bits


class Examples:
    """Pages with labels, kept as numbers of terms: a few kilobytes a page, each text once, and not too many."""

    def __init__(self, rng: int = 7, most: int = MOST_PAGES) -> None:
        self.given = {True: 0, False: 0}  # pages with different texts
        self.repeated = self.empty = 0
        self._chance, self._most = np.random.default_rng(rng), most
        self._number: dict[str, int] = {}
        self._pages: dict[bool, list[tuple[IdArray, IdArray]]] = {True: [], False: []}
        self._seen: set[tuple[bool, int]] = set()

    def add(self, page: SampledPage, *, label: bool) -> None:
        """Take a page, unless it says nothing, or what another one says; when there are too many, chance decides."""
        counts = counted(page)
        key = label, hash(frozenset(counts.items()))
        if not counts or key in self._seen:
            self.empty += not counts
            self.repeated += bool(counts)
            return
        self._seen.add(key)
        kept = self._pages[label]
        self.given[label] += 1
        place = len(kept) if len(kept) < self._most else int(self._chance.integers(self.given[label]))
        if place < self._most:
            ids = [self._number.setdefault(term, len(self._number)) for term in counts]
            kept[place : place + 1] = [(np.array(ids, np.int32), np.array([*counts.values()], np.int32))]

    @property
    def labels(self) -> BoolArray:
        """The labels of the pages that are kept: those on topic come first."""
        return np.repeat([True, False], [len(self._pages[True]), len(self._pages[False])])

    @property
    def terms(self) -> list[str]:
        """All terms, by number."""
        return list(self._number)

    def rows(self, chosen: IntArray) -> Any:
        """Return pages as rows of a sparse matrix: how often each term stands there."""
        pages = self._pages[True] + self._pages[False]
        parts = [pages[row] for row in chosen.tolist()]
        ends = np.cumsum([0, *(ids.size for ids, _ in parts)])
        ids, counts = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
        shape = len(parts), len(self._number)
        made = _library("scipy.sparse").csr_matrix((counts.astype(np.float64), ids, ends), shape=shape)
        made.sort_indices()
        return made


def train(
    positive: Iterable[SampledPage],
    negative: Iterable[SampledPage],
    *,
    kind: Kind = "linear",
    rng: int = 7,
    progress: ProgressCallback = silent,
) -> Classifier:
    """Train a topic on pages that are on it and pages that are not; how good it is comes with it."""
    examples = Examples(rng)
    for pages, label in ((positive, True), (negative, False)):
        for page in pages:
            examples.add(page, label=label)
    return train_on(examples, kind=kind, rng=rng, progress=progress)


def train_on(
    examples: Examples, *, kind: Kind = "linear", rng: int = 7, progress: ProgressCallback = silent
) -> Classifier:
    """Train a topic on pages that were read before."""
    if kind not in get_args(Kind):
        raise UsageError(f"no kind of model {kind!r}", hint=f"there are {' and '.join(get_args(Kind))}")
    labels = examples.labels
    positive, negative = int(labels.sum()), int((~labels).sum())
    _check(positive, negative)
    folds = min(FOLDS, positive, negative)
    chance, part = np.random.default_rng(rng), np.empty(labels.size, np.int64)
    for label in (True, False):
        own = np.flatnonzero(labels == label)
        part[chance.permutation(own)] = np.arange(own.size) % folds
    verdicts = np.zeros(labels.size, np.bool_)
    for fold in range(folds):
        progress("training", fold, folds + 1, "fold")
        model = _fitted(examples, np.flatnonzero(part != fold), kind, rng)
        verdicts[part == fold] = judged(model, examples, np.flatnonzero(part == fold))
    progress("training", folds, folds + 1, "fold")
    about = {"positive": positive, "negative": negative, "repeated": examples.repeated, "empty": examples.empty}
    about |= {"given_positive": examples.given[True], "given_negative": examples.given[False], "rng": rng}
    quality = Quality.of(labels.tolist(), verdicts.tolist(), folds)
    return replace(_fitted(examples, np.arange(labels.size), kind, rng), trained=about, quality=quality)


def judged(model: Classifier, examples: Examples, chosen: IntArray) -> BoolArray:
    """Say which of some pages a model takes for its topic, page by page as it will be used."""
    terms, rows = examples.terms, examples.rows(chosen)
    verdicts = []
    for first, last in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        named = (terms[term] for term in rows.indices[first:last].tolist())
        verdicts.append(model.score_of(dict(zip(named, rows.data[first:last].tolist(), strict=True))) > model.threshold)
    return np.array(verdicts, np.bool_)


def _check(positive: int, negative: int) -> None:
    hint = f"give {LEAST} pages on topic and {LEAST} others at least, with different texts; some dozens are better"
    if not positive and not negative:
        raise UsageError("there are no pages with text to train on", hint=hint)
    if not positive or not negative:
        all_of_them = f"all {positive + negative:,} pages are" if positive + negative > 1 else "the only page is"
        problem = f"{all_of_them} {'on' if positive else 'off'} topic: there is nothing to tell from"
        raise UsageError(problem, hint=hint)
    if min(positive, negative) < LEAST:
        raise UsageError(
            f"there is 1 page {'on' if positive < LEAST else 'off'} topic, too few to learn from", hint=hint
        )


def _fitted(examples: Examples, chosen: IntArray, kind: Kind, rng: int) -> Classifier:
    """Learn words and weights from some pages."""
    rows, labels = examples.rows(chosen), examples.labels[chosen]
    common: IntArray = np.bincount(rows.indices, minlength=rows.shape[1])
    order = np.argsort(-common, kind="stable")[:MOST_TERMS]  # of equals, those met first
    kept = np.sort(order[common[order] >= (2 if chosen.size > FEW else 1)])
    terms = examples.terms
    idf = 1 + np.log((1 + chosen.size) / (1 + common[kept]))
    blank = Classifier(kind, tuple(terms[term] for term in kept.tolist()), read_only(idf))
    matrix = rows[:, kept]
    matrix.data = (1 + np.log(matrix.data)) * idf[matrix.indices]
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1)).A1
    matrix.data /= np.repeat(np.maximum(lengths, 1e-300), np.diff(matrix.indptr))
    if kind == "linear":
        learner = _library("sklearn.linear_model").LogisticRegression(
            C=STRENGTH, class_weight="balanced", max_iter=1000, random_state=rng % 2**32
        )
        learner.fit(matrix, labels)
        return replace(blank, weights=read_only(learner.coef_[0].copy()), intercept=float(learner.intercept_[0]))
    learner = _library("sklearn.tree").DecisionTreeClassifier(
        criterion="entropy", ccp_alpha=PRUNING, class_weight="balanced", random_state=rng % 2**32
    )
    learner.fit(matrix, labels)
    grown = learner.tree_
    each = grown.value[:, 0, :]
    tree = Tree(
        np.where(grown.children_left < 0, -1, grown.feature).astype(np.int64),
        grown.threshold.copy(),
        grown.children_left.copy(),
        grown.children_right.copy(),
        each[:, 1] / each.sum(axis=1),
    )
    return replace(blank, tree=tree, threshold=0.5)


def check_installed() -> None:
    """Refuse to begin where there is nothing to train with."""
    _library("sklearn")


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra("training a topic", "scikit-learn", "topics") from error
