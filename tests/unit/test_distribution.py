"""Each long family has representatives in `make test`, and only one process starts a Ray cluster."""

from __future__ import annotations

from pathlib import Path

from distribution import group
from slow_cases import one_in, pairs

TESTS = Path(__file__).parents[1]


def test_files_that_use_the_cluster_are_in_one_group() -> None:
    texts = {path: path.read_text("utf-8") for path in TESTS.glob("*/test_*.py") if path != Path(__file__)}
    users = [path for path, text in texts.items() if "cluster: Session," in text or 'usefixtures("cluster")' in text]
    assert len(users) >= 4
    assert {group(path) for path in users} == {"cluster"}
    assert group(Path(__file__)) == __file__


def fast(cases: list[object]) -> list[tuple[object, ...]]:
    return [tuple(case.values) for case in cases if not case.marks]  # type: ignore[attr-defined]


def test_all_values_have_a_fast_case() -> None:
    assert fast(pairs("abcd", [1, 2, 3])) == [("a", 1), ("b", 3), ("c", 2), ("d", 1)]
    assert len(pairs("abcd", [1, 2, 3])) == 12
    assert fast(one_in(3, "abcde")) == [("a",), ("d",)]
    assert fast(one_in(2, [("a", 1), ("b", 2)])) == [("a", 1)]
