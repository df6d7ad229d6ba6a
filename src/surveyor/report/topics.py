"""Topics in words: how good one is, and pages on it and off it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import count, share_at_least, share_at_most
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from surveyor.estimate.sampling.classifier import ConfusionMatrix

NAMES = {"precision": "of those taken for it, are on topic", "recall": "of those on topic, are found",
         "f1": "between precision and recall", "accuracy": "of all, judged rightly"}  # fmt: skip
KEYS = ("url", "on_topic", "label", "title")


def quality_table(quality: ConfusionMatrix) -> Table:
    """Return shares with their intervals."""
    cells, records = [], []
    for name, meaning in NAMES.items():
        share = getattr(quality, name)
        shown = "unknown" if share.value is None else f"{100 * share.value:.1f} %"
        between = "" if share.value is None else f"{share_at_least(share.low)} - {share_at_most(share.high)}"
        cells.append((shown, between, "F1" if name == "f1" else name, meaning))
        records.append((name, *share))
    return Table(("share", "95% between", "", "meaning"), cells, ("measure", "value", "low", "high"), records, left=2)


def counts_line(quality: ConfusionMatrix) -> str:
    """Return the verdicts beside the labels."""
    found, false, missed, passed = (
        count(number)
        for number in (quality.true_positives, quality.false_positives, quality.false_negatives, quality.true_negatives)
    )
    told = f"on topic: {found} found, {missed} missed; off topic: {passed} left out, {false} taken for it"
    return f"{told} ({quality.folds}-fold cross-validation)" if quality.folds else told


def pages_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return pages, whether they are on topic, and what their label says."""
    words = {True: "on", False: "off", None: ""}
    labelled = any(row["label"] is not None for row in rows)
    cells = [
        (words[row["on_topic"]], *([words[row["label"]]] if labelled else []), row["url"], row["title"][:60])
        for row in rows
    ]
    titles = ("topic", *(["label"] if labelled else []), "page", "title")
    return Table(titles, cells, KEYS, [[row[key] for key in KEYS] for row in rows], left=2)
