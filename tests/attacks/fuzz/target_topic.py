"""Trained topics: JSON files with words and weights."""

from __future__ import annotations

import json
import math
from typing import Any

from scratch import scratch

from surveyor.crawler.topics.classifier import Classifier

NAME = "topic"
TOKENS = [b'"tree":', b'"linear"', b'"quality":', b"null", b"true", b"1e400", b"NaN", b"-Infinity", b"{}", b"[" * 200]
PATH = scratch() / "topic.json"
ABOUT: dict[str, Any] = {"format": "surveyor-topic", "schema": 2, "trained": {"pages": 3}, "threshold": 0.5}
QUALITY = {"true_positives": 3, "false_positives": 1, "false_negatives": 2, "true_negatives": 4, "folds": 2}


def seeds() -> list[bytes]:
    words = {"terms": ["jazz", "piano", "band"], "idf": [1.0, 1.5, 2.0]}
    linear = {**ABOUT, **words, "kind": "linear", "intercept": -0.5, "weights": [1.0, -1.0, 0.25], "quality": None}
    tree = {"term": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0]}
    tree["probability"] = [0.5, 0, 1]
    grown = {**ABOUT, **words, "kind": "tree", "tree": tree, "quality": QUALITY}
    return [json.dumps(one).encode() for one in (linear, grown)]


def run(data: bytes) -> None:
    PATH.write_bytes(data)
    topic = Classifier.load(PATH)
    score = topic.score_counts({"jazz": 2.0, "band": 1.0})
    assert not math.isnan(score)
    topic.top_terms()
    if topic.quality is not None:
        topic.quality.to_dict()
    assert len(topic.digest) == 16
