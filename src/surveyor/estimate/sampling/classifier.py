"""A trained topic: words and their weights in a JSON file, used without the library that trained it.

**Vectors.** A page is the folded words of its title and text (`words.py`; where a script puts no blanks between words,
pairs of characters too). A word that stands in it n times counts (1 + ln n)·idf, with idf = 1 + ln((1 + N)/(1 + N_w))
for N_w of N pages that have the word; then the vector is made to have length 1. At most 20,000 words count, those that
most pages have.

**Kinds.** `linear`: logistic regression, both classes weighing the same; on topic if intercept + weights · vector is
above the threshold. `tree`: a decision tree by entropy with cost-complexity pruning. It is C4.5-like, and not the C4.5
that the paper on focused sampling used: no gain ratio, and another pruning.

**The file** is data, not code: it is checked when it is read, and nothing in it is run.
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
from typing import Any, Literal, get_args

import numpy as np

from surveyor.arrays import FloatArray, IntArray, read_only
from surveyor.errors import InputError
from surveyor.estimate.sampling.page import SampledPage
from surveyor.estimate.sampling.quality import Quality
from surveyor.estimate.sampling.words import is_unspaced, words
from surveyor.web.html import MOST_TEXT

FORMAT, SCHEMA = "surveyor-topic", 1
LARGEST = 100_000_000  # bytes of a file that is read
EXTREME = 1e100  # numbers beyond have no finite products
LEAF = -1
Kind = Literal["linear", "tree"]


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A decision tree; node 0 is the root, and children come after their parents."""

    term: IntArray  # whose value decides; -1 in a leaf
    at_most: FloatArray  # goes left, what is above right
    left: IntArray
    right: IntArray
    share: FloatArray  # of pages on topic, both classes weighing the same

    def leaf(self, values: Mapping[int, float]) -> int:
        """Return where a vector ends; values are compared as 32-bit numbers, as they were in training."""
        node = 0
        while (term := int(self.term[node])) != LEAF:
            low = float(np.float32(values.get(term, 0.0))) <= self.at_most[node]
            node = int((self.left if low else self.right)[node])
        return node


@dataclass(frozen=True, eq=False)
class Classifier:
    """Tells pages on topic from others."""

    kind: Kind
    terms: Sequence[str] = field(repr=False)
    idf: FloatArray = field(repr=False)
    weights: FloatArray | None = field(default=None, repr=False)  # of a linear one
    intercept: float = 0.0
    threshold: float = 0.0  # above which a score is on topic
    tree: Tree | None = field(default=None, repr=False)
    trained: Mapping[str, Any] = field(default_factory=dict)  # on how many pages, by which rng, from what
    quality: Quality | None = None  # cross-validated

    def __call__(self, page: SampledPage) -> bool:
        """Say whether a page is on topic."""
        return self.score(page) > self.threshold

    def score(self, page: SampledPage) -> float:
        """Return how much speaks for a page: log odds of a linear model, of a tree the share in its leaf."""
        return self.score_of(counted(page))

    def score_of(self, counts: Mapping[str, float]) -> float:
        """Return the score of a page that has terms so many times."""
        ids, values = self.vector(counts)
        if self.tree is not None:
            return float(self.tree.share[self.tree.leaf(dict(zip(ids.tolist(), values.tolist(), strict=True)))])
        assert self.weights is not None  # noqa: S101  # one of both is there
        return float(values @ self.weights[ids]) + self.intercept

    def vector(self, counts: Mapping[str, float]) -> tuple[IntArray, FloatArray]:
        """Return which terms a page has, and their values, by number."""
        known = sorted((self._number[term], count) for term, count in counts.items() if term in self._number)
        ids, times = np.array(known, np.int64).reshape(-1, 2).T  # in the order of training, to the last bit
        values = (1 + np.log(times)) * self.idf[ids]
        return ids, values / max(float(np.linalg.norm(values)), 1e-300)

    @cached_property
    def _number(self) -> dict[str, int]:
        return {term: number for number, term in enumerate(self.terms)}

    def telling(self, count: int = 10) -> tuple[list[str], list[str]]:
        """Return the words that speak most for the topic, and most against it; of a tree, those it asks for first."""
        if self.weights is not None:
            order = np.argsort(-self.weights, kind="stable")
            best, worst = order[:count].tolist(), order[::-1][:count].tolist()
            return (
                [self.terms[at] for at in best if self.weights[at] > 0],
                [self.terms[at] for at in worst if self.weights[at] < 0],
            )
        assert self.tree is not None  # noqa: S101  # one of both is there
        inner = np.flatnonzero(self.tree.term != LEAF)
        gain = self.tree.share[self.tree.right[inner]] - self.tree.share[self.tree.left[inner]]
        named = [(self.terms[int(self.tree.term[node])], more) for node, more in zip(inner, gain.tolist(), strict=True)]
        both = ([term for term, more in named if sign * more > 0] for sign in (1, -1))
        speaking, against = (list(dict.fromkeys(found))[:count] for found in both)
        return speaking, against

    @cached_property
    def digest(self) -> str:
        """What it decides by, summed up."""
        return blake2b(json.dumps(self._decides(), sort_keys=True).encode(), digest_size=8).hexdigest()

    def _decides(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"kind": self.kind, "threshold": self.threshold}
        if self.weights is not None:
            fields |= {"intercept": self.intercept, "weights": self.weights.tolist()}
        if self.tree is not None:
            names = Tree.__dataclass_fields__
            fields["tree"] = {name: getattr(self.tree, name).tolist() for name in names}
        return {**fields, "terms": list(self.terms), "idf": self.idf.tolist()}

    def save(self, path: Path | str) -> None:
        """Write it as JSON."""
        from surveyor.store.disk import disk_errors, write_atomically

        quality = None if self.quality is None else self.quality.to_dict()
        about = {"format": FORMAT, "schema": SCHEMA, "trained": dict(self.trained), "quality": quality}
        with disk_errors(Path(path)):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(
                Path(path), json.dumps({**about, **self._decides()}, ensure_ascii=False, allow_nan=False) + "\n"
            )

    @classmethod
    def load(cls, path: Path | str) -> Classifier:
        """Read it, and refuse what is damaged or newer."""
        path = Path(path)
        again = "train it again: surveyor topic train"
        try:
            if path.stat().st_size > LARGEST:
                raise InputError(f"{path} is too large for a topic", hint=again)
            told = json.loads(path.read_bytes())
        except OSError as error:
            raise InputError(f"the topic {path} cannot be read: {error.strerror}", hint=again) from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not a trained topic: it is no JSON", hint=again) from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise InputError(f"{path} is not a trained topic", hint=again)
        if not isinstance(told.get("schema"), int) or told["schema"] > SCHEMA:
            problem = (
                f"{path} was made by a newer surveyor (schema {told.get('schema')}; this one reads up to {SCHEMA})"
            )
            raise InputError(problem, hint="pip install --upgrade surveyor")
        try:
            return _read(told)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(f"the topic {path} is damaged ({error})", hint=again) from error


def counted(page: SampledPage) -> Counter[str]:
    """Count the terms of a page."""
    counts: Counter[str] = Counter()
    for text in (page.title, page.text[:MOST_TEXT]):
        found = words(text)
        counts.update(found)
        if not text.isascii():
            counts.update(a + b for a, b in pairwise(found) if is_unspaced(a) and is_unspaced(b))
    return counts


def _read(told: dict[str, Any]) -> Classifier:
    kind, terms = told["kind"], told["terms"]
    if kind not in get_args(Kind):
        raise ValueError(f"no kind {kind!r}")
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms) or len(set(terms)) < len(terms):
        raise ValueError("terms are not words, each once")
    quality = told.get("quality")
    return Classifier(
        kind,
        tuple(terms),
        _numbers(told["idf"], len(terms)),
        _numbers(told["weights"], len(terms)) if kind == "linear" else None,
        _number(told["intercept"]) if kind == "linear" else 0.0,
        _number(told["threshold"]),
        _grown(told["tree"], len(terms)) if kind == "tree" else None,
        dict(told.get("trained") or {}),
        None if quality is None else Quality.from_dict(quality),
    )


def _number(told: Any) -> float:
    if isinstance(told, bool) or not isinstance(told, int | float) or not abs(told) <= EXTREME:
        raise ValueError(f"{told!r} is no number")
    return float(told)


def _numbers(told: Any, size: int) -> FloatArray:
    if not isinstance(told, list) or len(told) != size:
        raise ValueError(f"there are not {size:,} numbers")
    found: FloatArray = read_only(np.array([_number(one) for one in told], np.float64))
    return found


def _grown(told: Any, terms: int) -> Tree:
    size = len(told["term"])
    term, left, right = (_numbers(told[name], size).astype(np.int64) for name in ("term", "left", "right"))
    inner = np.flatnonzero(term != LEAF)
    sound = size > 0 and term.min() >= LEAF and term.max() < terms
    if not sound or any((child[inner] <= inner).any() or (child[inner] >= size).any() for child in (left, right)):
        raise ValueError("its tree leads nowhere")
    return Tree(term, _numbers(told["at_most"], size), left, right, _numbers(told["share"], size))
