"""`surveyor.domains`: any score of any source, the same in memory and as a stream, with nothing left behind."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from graph_distances import at_distance
from surveyor.errors import UsageError
from surveyor.graph.synthetic.generate import rmat
from surveyor.rank.domains.memory import needed
from surveyor.rank.domains.scores import SCORES

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


def test_the_best_domain_and_all_that_is_known_of_it() -> None:
    told = sv.domains(sv.Graph.from_edges(STAR), trusted=["fan0.org", "nowhere.org"])
    star = told["star.org"]
    assert isinstance(told, sv.Domains)
    assert isinstance(star, sv.Domain)
    assert told.top(1) == [star]
    assert (star.name, star.position, star.score, star.low, star.high) == ("star.org", 1, 9.0, 9.0, 9.0)
    assert (star.in_links, star.out_links) == (1, 0)
    assert told[star.id] == star
    assert told.trust is not None
    assert star.spam_mass == told.trust.mass(star.id)
    assert star.trust == told.trust.trust.marks()[star.id]
    assert star.popularity == told.trust.popularity.marks()[star.id]
    assert told.trust.known == 1
    assert set(sv.domains(sv.Graph.from_edges(STAR))["star.org"].to_dict()) == {
        "name", "id", "position", "score", "low", "high", "in_links", "out_links",
    }  # fmt: skip
    assert "12, by tse" in repr(told)
    assert "star.org" in told._repr_html_()


def test_every_score_is_that_of_its_function(folder: Path) -> None:
    graph = sv.Graph.open(folder)
    told = sv.domains(graph, SCORES, p=0.5, rng=3)
    assert list(told.scores) == list(SCORES)
    assert told.scores["supp"].scores.tolist() == at_distance(graph, 2).sum(0).tolist()
    assert told.scores["tse"].raw.tolist() == sv.sampled_supporters(graph, 0.5, rng=3).raw.tolist()
    assert told.scores["in"].scores.tolist() == graph.in_links.degrees().tolist()
    assert np.array_equal(told.scores["pagerank"].raw, sv.pagerank(graph).scores)
    assert np.array_equal(told.scores["harmonic"].raw, sv.harmonic(graph, rng=3).raw)
    every = sv.domains(graph, "all", p=0.5)
    assert list(every.scores) == [name for name in SCORES if name != "supp"]
    assert list(sv.domains(graph, "in, win,in").scores) == ["in", "win"]


def test_supporters_of_other_levels(folder: Path) -> None:
    graph = sv.Graph.open(folder)
    told = sv.domains(graph, ("supp", "tse"), depth=3, p=1.0)
    assert told.scores["supp"].scores.tolist() == at_distance(graph, 3).sum(0).tolist()
    assert told.scores["tse"].scores.tolist() == told.scores["supp"].scores.tolist()
    with pytest.raises(UsageError, match="only supporters have a level 3"):
        sv.domains(graph, "in", depth=3)


def test_a_stream_tells_the_same_and_leaves_nothing(folder: Path, scratch: Path) -> None:
    whole = sv.domains(folder, p=0.3, rng=5)
    told = sv.domains(folder, p=0.3, rng=5, memory=1000)
    assert (whole.mode, told.mode) == ("in RAM", "streamed")
    assert told.top(30) == whole.top(30)
    assert [place.name[:9] for place in scratch.iterdir()] == ["surveyor-"]
    del told
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_a_file_of_links_is_built_aside_where_memory_is_short(tmp_path: Path, scratch: Path) -> None:
    lines = "".join(f"{one}\t{other}\n" for one, other in STAR)
    (tmp_path / "links.tsv").write_text(lines)
    told = sv.domains(tmp_path / "links.tsv", memory=100)
    assert (told.mode, told.top(1)[0].name, told.top(1)[0].score) == ("streamed", "star.org", 9.0)
    del told
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_scores_that_do_not_fit_are_refused(folder: Path, scratch: Path) -> None:
    graph = sv.Graph.open(folder)
    for score in SCORES:
        limit = needed(score, graph.pages, graph.links, 1)
        assert sv.domains(graph, score, memory=limit, threads=1, p=0.5).mode == "in RAM"
        with pytest.raises(UsageError, match=f"^{score} over 512 domains needs about .* of memory"):
            sv.domains(graph, score, memory=limit - 1, threads=1, p=0.5)
    with pytest.raises(UsageError, match="hint: only level 2 can be read as a stream"):
        sv.domains(folder, depth=3, memory=1000)
    with pytest.raises(UsageError, match="trust needs two rankings"):
        sv.domains(folder, p=0.5, memory=1000, trusted=["0"])
    assert list(scratch.iterdir()) == []


def test_a_survey_is_condensed(tmp_path: Path) -> None:
    home, far = "http://www.a.org/", "http://news.b.co.uk/"
    crawled(tmp_path / "a.survey", [home], Sites(Time(), {home: page(home, "/x", far)}))
    with sv.open(tmp_path / "a.survey") as survey:
        told = sv.domains(survey, "in")
    assert [(row.name, row.score) for row in told.top()] == [("b.co.uk", 1.0), ("a.org", 0.0)]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"score": "best"}, "no score 'best'"),
        ({"score": ()}, "no score was asked for"),
        ({"p": 0.0}, "p = 0 is no chance to be sampled"),
        ({"p": 1.5}, "p = 1.5 is no chance"),
        ({"error": 1.0}, "an error of 1 cannot be asked for"),
        ({"top": 0}, "the best 0 domains are none"),
        ({"depth": 0}, "there are no level-0 supporters"),
        ({"trusted": ["nowhere.org"]}, "none of the 1 trusted domains is in the graph"),
    ],
)
def test_what_cannot_be_asked_for(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        sv.domains(sv.Graph.from_edges(STAR), **settings)  # type: ignore[arg-type]


def test_a_graph_without_domains() -> None:
    told = sv.domains(sv.Graph.from_edges([]), SCORES)
    assert told.top() == []
