"""A trained topic classifier: terms and weights in a JSON file, used without the library that trained it.

**Vectors.** A page is the normalised words of its title and text (`page_content.words`; in scripts without spaces, also
pairs of characters). A term that occurs n times has the value (1 + ln n)·idf, with idf = 1 + ln((1 + N)/(1 + N_t)) if
N_t of N pages contain it; the vector is then scaled to length 1. At most 20,000 terms are used, the most frequent ones.

**Models.** `linear`: logistic regression with balanced classes; on topic if intercept + weights · vector is above the
threshold. `tree`: a decision tree by entropy with cost-complexity pruning. It is similar to, but not the same as, the
C4.5 of the paper on focused sampling: no gain ratio, and another pruning.

**Quality** is measured by cross-validation: precision, recall, F1 and accuracy, with Wilson's 95 % intervals. That of
F1 = 2p/(1 + p) follows from p, the share of true positives among all pages that are, or are predicted to be, on topic.
Pages of one site are similar: an interval describes the random choice of pages, not the accuracy on other sites. It is
approximate, because the folds share most of their training pages.

**The file** is data, not code: it is validated on loading, and nothing in it is executed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from surveyor.arrays import FloatArray, IntArray, read_only
from surveyor.crawler.topics.page_content import SampledPage, is_unspaced, words
from surveyor.crawler.topics.proportions import wilson
from surveyor.errors import InputError
from surveyor.web.html import MOST_TEXT

FORMAT, SCHEMA = "surveyor-topic", 2
MAX_FILE_BYTES = 100_000_000
MAX_MAGNITUDE = 1e100  # products of larger numbers may overflow
LEAF = -1
RETRAIN = "train it again: surveyor topic train"
MEASURES = ("precision", "recall", "f1", "accuracy")
Kind = Literal["linear", "tree"]


class Proportion(NamedTuple):
    """A proportion with its 95 % confidence interval; the value is None without observations."""

    value: float | None
    low: float
    high: float

    @classmethod
    def of(cls, successes: int, trials: int) -> Proportion:
        """Return a proportion with Wilson's interval.

        >>> Proportion.of(0, 0)
        Proportion(value=None, low=0.0, high=1.0)
        """
        share = successes / trials if trials else None
        return cls(None, 0.0, 1.0) if share is None else cls(share, *wilson(share, trials, 0.95))

    def to_dict(self) -> dict[str, float | None]:
        """Return the fields for JSON."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class ConfusionMatrix:
    """Counts of predictions by true label, and the measures derived from them."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    folds: int = 0  # of a cross-validation; 0 if no page was used for training

    @classmethod
    def of(cls, labels: Sequence[bool], predictions: Sequence[bool], folds: int = 0) -> ConfusionMatrix:
        """Count labels and predictions."""
        pairs = list(zip(map(bool, labels), map(bool, predictions), strict=True))
        cases = ((True, True), (False, True), (True, False), (False, False))
        true_positives, false_positives, false_negatives, true_negatives = map(pairs.count, cases)
        return cls(true_positives, false_positives, false_negatives, true_negatives, folds)

    @property
    def precision(self) -> Proportion:
        """The share of pages predicted on topic that are on topic."""
        return Proportion.of(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> Proportion:
        """The share of pages on topic that are predicted on topic."""
        return Proportion.of(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def accuracy(self) -> Proportion:
        """The share of correct predictions."""
        correct = self.true_positives + self.true_negatives
        return Proportion.of(correct, correct + self.false_positives + self.false_negatives)

    @property
    def f1(self) -> Proportion:
        """The harmonic mean of precision and recall."""
        value, low, high = Proportion.of(
            self.true_positives, self.true_positives + self.false_positives + self.false_negatives
        )
        return Proportion(None if value is None else _f1(value), _f1(low), _f1(high))

    def to_dict(self) -> dict[str, Any]:
        """Return counts and measures for JSON."""
        counts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**counts, **{name: getattr(self, name).to_dict() for name in MEASURES}}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ConfusionMatrix:
        """Return the matrix from the counts of `to_dict`."""
        counts = [fields[name] for name in cls.__dataclass_fields__]
        if not all(isinstance(count, int) and count >= 0 for count in counts):
            raise ValueError("counts must be whole numbers")
        return cls(*counts)


def _f1(share: float) -> float:
    return 2 * share / (1 + share)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A decision tree; node 0 is the root, and children have larger numbers than their parents."""

    term: IntArray  # whose value is compared; -1 in a leaf
    threshold: FloatArray  # values up to it lead left
    left: IntArray
    right: IntArray
    probability: FloatArray  # of being on topic, with balanced classes

    def leaf(self, values: Mapping[int, float]) -> int:
        """Return the leaf of a vector; values are compared as 32-bit numbers, as in training."""
        node = 0
        while (term := int(self.term[node])) != LEAF:
            is_left = float(np.float32(values.get(term, 0.0))) <= self.threshold[node]
            node = int((self.left if is_left else self.right)[node])
        return node


@dataclass(frozen=True, eq=False)
class Classifier:
    """A model that predicts whether a page is on topic."""

    kind: Kind
    terms: Sequence[str] = field(repr=False)
    idf: FloatArray = field(repr=False)
    weights: FloatArray | None = field(default=None, repr=False)  # of a linear model
    intercept: float = 0.0
    threshold: float = 0.0  # scores above it are on topic
    tree: Tree | None = field(default=None, repr=False)
    trained: Mapping[str, Any] = field(default_factory=dict)  # numbers of pages, random seed
    quality: ConfusionMatrix | None = None  # cross-validated

    def __call__(self, page: SampledPage) -> bool:
        """Return whether a page is predicted on topic."""
        return self.score(page) > self.threshold

    def score(self, page: SampledPage) -> float:
        """Return the score of a page: the log odds of a linear model, the probability of a tree."""
        return self.score_counts(count_terms(page))

    def score_counts(self, counts: Mapping[str, float]) -> float:
        """Return the score of a page given its term counts."""
        ids, values = self.vector(counts)
        if self.tree is not None:
            return float(self.tree.probability[self.tree.leaf(dict(zip(ids.tolist(), values.tolist(), strict=True)))])
        assert self.weights is not None  # noqa: S101  # a model has a tree or weights
        return float(values @ self.weights[ids]) + self.intercept

    def vector(self, counts: Mapping[str, float]) -> tuple[IntArray, FloatArray]:
        """Return the ids and values of the known terms of a page."""
        known = sorted((self._term_ids[term], count) for term, count in counts.items() if term in self._term_ids)
        ids, times = np.array(known, np.int64).reshape(-1, 2).T  # ordered as in training, for equal rounding
        values = (1 + np.log(times)) * self.idf[ids]
        return ids, values / max(float(np.linalg.norm(values)), 1e-300)

    @cached_property
    def _term_ids(self) -> dict[str, int]:
        return {term: number for number, term in enumerate(self.terms)}

    def top_terms(self, count: int = 10) -> tuple[list[str], list[str]]:
        """Return the strongest terms for and against the topic; of a tree, those nearest to the root."""
        if self.weights is not None:
            order = np.argsort(-self.weights, kind="stable")
            best, worst = order[:count].tolist(), order[::-1][:count].tolist()
            return (
                [self.terms[term] for term in best if self.weights[term] > 0],
                [self.terms[term] for term in worst if self.weights[term] < 0],
            )
        assert self.tree is not None  # noqa: S101  # a model has a tree or weights
        inner = np.flatnonzero(self.tree.term != LEAF)
        gains = self.tree.probability[self.tree.right[inner]] - self.tree.probability[self.tree.left[inner]]
        terms = [self.terms[int(term)] for term in self.tree.term[inner]]
        for_topic, against = (
            list(dict.fromkeys(term for term, gain in zip(terms, gains.tolist(), strict=True) if sign * gain > 0))
            for sign in (1, -1)
        )
        return for_topic[:count], against[:count]

    @cached_property
    def digest(self) -> str:
        """A hash of the parameters that predictions depend on."""
        return blake2b(json.dumps(self._parameters(), sort_keys=True).encode(), digest_size=8).hexdigest()

    def _parameters(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"kind": self.kind, "threshold": self.threshold}
        if self.weights is not None:
            fields |= {"intercept": self.intercept, "weights": self.weights.tolist()}
        if self.tree is not None:
            fields["tree"] = {name: getattr(self.tree, name).tolist() for name in Tree.__dataclass_fields__}
        return {**fields, "terms": list(self.terms), "idf": self.idf.tolist()}

    def save(self, path: Path | str) -> None:
        """Write the model as JSON."""
        from surveyor.store.disk import disk_errors, write_atomically

        quality = None if self.quality is None else self.quality.to_dict()
        about = {"format": FORMAT, "schema": SCHEMA, "trained": dict(self.trained), "quality": quality}
        text = json.dumps({**about, **self._parameters()}, ensure_ascii=False, allow_nan=False)
        with disk_errors(Path(path)):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(Path(path), text + "\n")

    @classmethod
    def load(cls, path: Path | str) -> Classifier:
        """Read a model; raise if the file is damaged or has another schema."""
        path = Path(path)
        try:
            if (size := path.stat().st_size) > MAX_FILE_BYTES:
                problem = f"the topic {path} has {size:,} bytes, more than the maximum of {MAX_FILE_BYTES:,}"
                raise InputError(problem, hint=RETRAIN)
            fields = json.loads(path.read_bytes())
        except OSError as error:
            raise InputError(f"the topic {path} cannot be read: {error.strerror}", hint=RETRAIN) from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not a trained topic: it is not JSON", hint=RETRAIN) from error
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise InputError(f"{path} is not a trained topic", hint=RETRAIN)
        schema = fields.get("schema")
        if schema != SCHEMA:
            is_newer = not isinstance(schema, int) or schema > SCHEMA
            raise InputError(
                f"the topic {path} has schema {schema}; this version of surveyor reads schema {SCHEMA}",
                hint="pip install --upgrade surveyor" if is_newer else RETRAIN,
            )
        try:
            return _parse_model(fields)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(f"the topic {path} is damaged ({error})", hint=RETRAIN) from error


def count_terms(page: SampledPage) -> Counter[str]:
    """Count the terms of a page."""
    counts: Counter[str] = Counter()
    for text in (page.title, page.text[:MOST_TEXT]):
        terms = words(text)
        counts.update(terms)
        if not text.isascii():
            counts.update(a + b for a, b in pairwise(terms) if is_unspaced(a) and is_unspaced(b))
    return counts


def _parse_model(fields: dict[str, Any]) -> Classifier:
    kind, terms = fields["kind"], fields["terms"]
    if kind not in get_args(Kind):
        raise ValueError(f"unknown kind {kind!r}")
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms) or len(set(terms)) < len(terms):
        raise ValueError("terms must be distinct strings")
    quality = fields.get("quality")
    is_linear = kind == "linear"
    return Classifier(
        kind,
        tuple(terms),
        _parse_array(fields["idf"], len(terms)),
        weights=_parse_array(fields["weights"], len(terms)) if is_linear else None,
        intercept=_parse_number(fields["intercept"]) if is_linear else 0.0,
        threshold=_parse_number(fields["threshold"]),
        tree=None if is_linear else _parse_tree(fields["tree"], len(terms)),
        trained=dict(fields.get("trained") or {}),
        quality=None if quality is None else ConfusionMatrix.from_dict(quality),
    )


def _parse_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_MAGNITUDE:
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _parse_array(values: Any, size: int) -> FloatArray:
    if not isinstance(values, list) or len(values) != size:
        raise ValueError(f"expected a list of {size:,} numbers")
    array: FloatArray = read_only(np.array([_parse_number(value) for value in values], np.float64))
    return array


def _parse_tree(fields: Any, terms: int) -> Tree:
    size = len(fields["term"])
    term, left, right = (_parse_array(fields[name], size).astype(np.int64) for name in ("term", "left", "right"))
    inner = np.flatnonzero(term != LEAF)
    is_valid = size > 0 and term.min() >= LEAF and term.max() < terms
    if not is_valid or any((child[inner] <= inner).any() or (child[inner] >= size).any() for child in (left, right)):
        raise ValueError("invalid tree")
    threshold, probability = (_parse_array(fields[name], size) for name in ("threshold", "probability"))
    return Tree(term, threshold, left, right, probability)
