"""`surveyor.domains`: any score of any source, the same in memory and streamed, without leftover files."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from graph_distances import at_distance
from surveyor.errors import UsageError
from surveyor.graph.synthetic.generate import rmat
from surveyor.rank.domains.scores import SCORES, needed_memory

FANS = [(f"fan{number}.org", "hub.org") for number in range(9)]
STAR = [*FANS, ("hub.org", "star.org"), ("fan0.org", "side.org")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return rmat(9, 6, rng=3).save(tmp_path / "web.graph")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def test_the_best_domain_and_its_fields() -> None:
    result = sv.domains(sv.Graph.from_edges(STAR), trusted=["fan0.org", "nowhere.org"])
    star = result["star.org"]
    assert isinstance(result, sv.Domains)
    assert isinstance(star, sv.Domain)
    assert result.top(1) == [star]
    assert (star.name, star.position, star.score, star.low, star.high) == ("star.org", 1, 9.0, 9.0, 9.0)
    assert (star.in_links, star.out_links) == (1, 0)
    assert result[star.id] == star
    assert result.trust is not None
    assert star.spam_mass == result.trust.spam_mass(star.id)
    assert star.trust == result.trust.trust.log_scores()[star.id]
    assert star.popularity == result.trust.popularity.log_scores()[star.id]
    assert result.trust.trusted == 1
    fields = {"name", "id", "position", "score", "low", "high", "in_links", "out_links"}
    assert set(sv.domains(sv.Graph.from_edges(STAR))["star.org"].to_dict()) == fields
    assert "12, by tse" in repr(result)
    assert "star.org" in result._repr_html_()


def test_every_score_is_that_of_its_function(folder: Path) -> None:
    graph = sv.Graph.open(folder)
    result = sv.domains(graph, SCORES, options=sv.DomainOptions(p=0.5), rng=3)
    assert list(result.scores) == list(SCORES)
    assert result.scores["supp"].scores.tolist() == at_distance(graph, 2).sum(0).tolist()
    assert result.scores["tse"].raw.tolist() == sv.sampled_supporters(graph, 0.5, rng=3).raw.tolist()
    assert result.scores["in"].scores.tolist() == graph.in_links.degrees().tolist()
    assert np.array_equal(result.scores["pagerank"].raw, sv.pagerank(graph).scores)
    assert np.array_equal(result.scores["harmonic"].raw, sv.harmonic(graph, rng=3).raw)
    every = sv.domains(graph, "all", options=sv.DomainOptions(p=0.5))
    assert list(every.scores) == [name for name in SCORES if name != "supp"]
    assert list(sv.domains(graph, "in, win,in").scores) == ["in", "win"]


def test_popularity_is_the_pagerank_score_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    teleports: list[object] = []

    def counted(graph: sv.Graph, *args: Any, **options: Any) -> sv.Ranking:
        teleports.append(options.get("teleport"))
        return sv.pagerank(graph, *args, **options)

    monkeypatch.setattr("surveyor.rank.domains.scores.pagerank", counted)
    monkeypatch.setattr("surveyor.rank.domains.trust.pagerank", counted)
    result = sv.domains(sv.Graph.from_edges(STAR), "pagerank,in", trusted=["fan0.org"])
    assert result.trust is not None
    assert [teleport is None for teleport in teleports] == [True, False]
    assert np.array_equal(result.trust.popularity.scores, result.scores["pagerank"].raw)


def test_supporters_of_other_levels(folder: Path) -> None:
    graph = sv.Graph.open(folder)
    result = sv.domains(graph, ("supp", "tse"), options=sv.DomainOptions(depth=3, p=1.0))
    assert result.scores["supp"].scores.tolist() == at_distance(graph, 3).sum(0).tolist()
    assert result.scores["tse"].scores.tolist() == result.scores["supp"].scores.tolist()
    with pytest.raises(UsageError, match="depth must be 2 for the score in, got 3"):
        sv.domains(graph, "in", options=sv.DomainOptions(depth=3))


def test_a_stream_gives_the_same_scores_and_leaves_no_files(folder: Path, scratch: Path) -> None:
    whole = sv.domains(folder, options=sv.DomainOptions(p=0.3), rng=5)
    result = sv.domains(folder, options=sv.DomainOptions(p=0.3, memory=1000), rng=5)
    assert (whole.mode, result.mode) == ("in memory", "streamed")
    assert result.top(30) == whole.top(30)
    assert [place.name[:9] for place in scratch.iterdir()] == ["surveyor-"]
    del result
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_a_file_of_links_is_built_into_a_folder_if_memory_is_limited(tmp_path: Path, scratch: Path) -> None:
    lines = "".join(f"{one}\t{other}\n" for one, other in STAR)
    (tmp_path / "links.tsv").write_text(lines)
    result = sv.domains(tmp_path / "links.tsv", options=sv.DomainOptions(memory=100))
    assert (result.mode, result.top(1)[0].name, result.top(1)[0].score) == ("streamed", "star.org", 9.0)
    del result
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_scores_that_exceed_the_memory_limit_are_rejected(folder: Path, scratch: Path) -> None:
    graph = sv.Graph.open(folder)
    for score in SCORES:
        limit = needed_memory(score, graph.pages, graph.links, 1)
        assert sv.domains(graph, score, options=sv.DomainOptions(memory=limit, threads=1, p=0.5)).mode == "in memory"
        with pytest.raises(UsageError, match=f"^{score} over 512 domains needs about .* of memory"):
            sv.domains(graph, score, options=sv.DomainOptions(memory=limit - 1, threads=1, p=0.5))
    with pytest.raises(UsageError, match="hint: only depth 2 can be read as a stream"):
        sv.domains(folder, options=sv.DomainOptions(depth=3, memory=1000))
    with pytest.raises(UsageError, match="trust needs memory for two rankings"):
        sv.domains(folder, options=sv.DomainOptions(p=0.5, memory=1000), trusted=["0"])
    assert list(scratch.iterdir()) == []


def test_a_survey_is_condensed(tmp_path: Path) -> None:
    home, far = "http://www.a.org/", "http://news.b.co.uk/"
    crawled(tmp_path / "a.survey", [home], Sites(Time(), {home: page(home, "/x", far)}))
    with sv.open(tmp_path / "a.survey") as survey:
        result = sv.domains(survey, "in")
    assert [(row.name, row.score) for row in result.top()] == [("b.co.uk", 1.0), ("a.org", 0.0)]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"score": "best"}, "unknown score 'best'"),
        ({"score": ()}, "score must name at least one"),
        ({"options": sv.DomainOptions(p=0.0)}, r"p must be in \(0, 1\], got 0"),
        ({"options": sv.DomainOptions(p=1.5)}, r"p must be in \(0, 1\], got 1.5"),
        ({"error": 1.0}, r"error must be in \(0, 1\), got 1"),
        ({"top": 0}, "top must be at least 1, got 0"),
        ({"options": sv.DomainOptions(depth=0)}, "depth must be at least 1, got 0"),
        ({"trusted": ["nowhere.org"]}, "none of the 1 trusted domains is in the graph"),
    ],
)
def test_invalid_arguments(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        sv.domains(sv.Graph.from_edges(STAR), **arguments)  # type: ignore[arg-type]


def test_a_graph_without_domains() -> None:
    result = sv.domains(sv.Graph.from_edges([]), SCORES)
    assert result.top() == []
