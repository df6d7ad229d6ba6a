"""The score of a page for a query.

**Words.** With the weights of the fields (`segment.WEIGHTS`), the weighted frequency of a word in a page is f, the sum
over its occurrences of the weight of the field, and L the same sum over all words of the page. A word of the query is
any of its stems in the languages of the index. Of N pages, n have the word. The score is BM25F (Robertson and Zaragoza
2009), which weighs frequencies before they are saturated:

    words(page) = Σ ln(1 + (N - n + ½) / (n + ½)) · f (k + 1) / (f + k (1 - b + b · L / mean L)),  k = 1.2, b = 0.75

**Importance and words.** W is words(page) over its maximum, I the importance over its maximum, both among the pages
that match. With the weight w from 0 (words only) to 1 (importance only),

    score(page) = W^(1-w) · I^w

A page whose importance is not known counts with half of the least one known among all pages. Pages match if they have
all words, phrases and no excluded one; if no page does, those with some of the words match. Every matching page is
scored, so the order is exact. Logarithms of scores that are equal to 12 digits after the point are ties, in the order
of page ids. Of a group of near-duplicates, only the first page in this order is a result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IntArray

SATURATION, LENGTH = 1.2, 0.75  # k and b
DIGITS = 12


def idf(pages: int, having: int) -> float:
    """Return the weight of a word that some of all pages have."""
    return float(np.log1p((pages - having + 0.5) / (having + 0.5)))


def saturated(frequency: FloatArray, length: FloatArray) -> FloatArray:
    """Return the part of the score that a weighted frequency adds, before the idf; lengths are relative to the mean."""
    found: FloatArray = frequency * (SATURATION + 1.0) / (frequency + SATURATION * (1.0 - LENGTH + LENGTH * length))
    return found


@dataclass(frozen=True, slots=True)
class Ordered:
    """Matching pages, best first, as rows of the index."""

    rows: IntArray
    scores: FloatArray
    words: FloatArray  # W
    importance: FloatArray  # I


def combined(rows: IntArray, words: FloatArray, importance: FloatArray, weight: float, least: float) -> Ordered:
    """Order matching pages; `importance` is nan where it is not known, and `least` then takes its place."""
    if not rows.size:
        nothing: FloatArray = np.empty(0)
        return Ordered(rows, nothing, nothing, nothing)
    relative = words / words.max()
    known = np.where(np.isnan(importance), least, importance)
    best = known.max()
    share = known / best
    logs = np.zeros(rows.size)
    if weight < 1.0:
        logs += (1.0 - weight) * np.log(relative)
    if weight > 0.0:
        logs += weight * (np.log(known) - np.log(best))  # the share may be too small for a number
    order = np.lexsort((rows, -np.round(logs, DIGITS)))
    return Ordered(rows[order], np.exp(logs[order]), relative[order], share[order])


def first_of_groups(order: IntArray, group: IntArray) -> tuple[BoolArray, IntArray]:
    """Return which of ordered pages are the first of their group, and how many of each group are among them."""
    _, first, inverse, counts = np.unique(group[order], return_index=True, return_inverse=True, return_counts=True)
    is_first = np.zeros(order.size, np.bool_)
    is_first[first] = True
    return is_first, counts[inverse]
