"""In-link sources: tables, graphs, surveys, combinations, and sources with invalid answers."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from surveyor.errors import UsageError
from surveyor.estimate.sampling.in_links import (
    CombinedInLinks,
    InLinkFile,
    InLinkGraph,
    InLinkSurvey,
    NoInLinks,
    in_link_source,
    query,
    source_name,
)

A, B, C, D = (f"http://{letter}.example/" for letter in "abcd")


class Fixed:
    """Returns fixed answers."""

    def __init__(self, answers: Any) -> None:
        self.answers = answers

    def in_links(self, url: str, limit: int) -> Iterable[str]:  # noqa: ARG002
        if isinstance(self.answers, Exception):
            raise self.answers
        found: Iterable[str] = self.answers
        return found


def test_no_in_links() -> None:
    assert query(in_link_source(None), A) == []
    assert source_name(NoInLinks()) == ""


def test_a_table(tmp_path: Path) -> None:
    table = tmp_path / "back.tsv"
    table.write_text(f"source\ttarget\n{B}\t{A}\n{C}\tHTTP://A.example\n{B}\t{A}\n-\t{A}\n{C}\t{B}\n", "utf-8")
    source = in_link_source(table)
    assert isinstance(source, InLinkFile)
    assert source_name(source) == "file back.tsv"
    assert query(source, A) == [B, C]
    assert query(source, A, 1) == [B]
    assert query(source, D) == []
    packed = tmp_path / "back.tsv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    assert query(in_link_source(packed), A) == [B, C]
    table.write_text("source\ttarget\n", "utf-8")
    with pytest.raises(UsageError, match="has no links"):
        in_link_source(table)


def test_a_graph(tmp_path: Path) -> None:
    graph = sv.Graph.from_edges([(B, A), (C, A), (A, B)])
    assert set(query(in_link_source(graph), A)) == {B, C}
    graph.save(tmp_path / "web.graph")
    source = in_link_source(str(tmp_path / "web.graph"))
    assert isinstance(source, InLinkGraph)
    assert (query(source, B), query(source, C), query(source, D)) == ([A], [], [])
    with pytest.raises(UsageError, match="the graph of in-links has no page names"):
        in_link_source(sv.Graph.from_arrays(np.array([0]), np.array([1])))


def test_a_survey(tmp_path: Path) -> None:
    client = Sites(Time(), {A: page(A, B, C), B: page(B, C), C: page(C)})
    crawled(tmp_path / "a.survey", [A], client, scope="any")
    source = in_link_source(tmp_path / "a.survey")
    assert isinstance(source, InLinkSurvey)
    assert set(query(source, C)) == {A, B}
    assert source_name(source) == "survey a.survey"


def test_combined_sources() -> None:
    several = in_link_source([sv.Graph.from_edges([(B, A)]), Fixed([C, B, D])])
    assert isinstance(several, CombinedInLinks)
    assert query(several, A) == [B, C, D]
    assert query(several, A, 2) == [B, C]
    assert source_name(several) == "graph, Fixed"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([A, B, B.upper(), f"{B}#top"], [B]),  # without the page itself, distinct
        ([None, 7, b"http://x.example/", "", "x", "mailto:a@b.c", "javascript:1", "http://", "\ud800", C], [C]),
        (["ftp://x.example/", "http://x.example:99999/", "http://[::1", "http://x" + "y" * 100_000, D], [D]),
        ("http://b.example/", []),
        ({B: 1}, [B]),
        ((f"http://b.example/{number}" for number in count()), [f"http://b.example/{number}" for number in range(5)]),
        ((f"nothing {number}" for number in count()), []),
    ],
    ids=["same", "none", "wrong", "text", "mapping", "endless", "endless nothing"],
)
def test_invalid_answers_are_dropped(answers: Any, expected: list[str]) -> None:
    assert query(Fixed(answers), A, 5) == expected


@pytest.mark.parametrize(
    ("answers", "problem"),
    [(RuntimeError("down"), "RuntimeError: down"), (None, "TypeError"), (7, "TypeError"), (KeyError("x"), "KeyError")],
)
def test_source_that_raises_is_named(answers: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=rf"the in-link source Fixed failed for {A}: {problem}"):
        query(Fixed(answers), A)


@pytest.mark.parametrize("given", [7, Fixed, object(), 0.5])
def test_invalid_source(given: object) -> None:
    with pytest.raises(UsageError, match="in_links must be a source of in-links"):
        in_link_source(given)


def test_missing_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        in_link_source(tmp_path / "none.tsv")
