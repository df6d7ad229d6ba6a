"""Weights of seeds, and listed pages: known in advance and fetched, without an effect on coverage and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from console import CommandResult
from example_site import HOME, site
from fake_web import CONTACT, Sites, Time, crawled, page
from oracles import dense_pagerank
from surveyor.arrays import FloatArray
from surveyor.config import Settings
from surveyor.crawler.seed_pages import SeedPages
from surveyor.crawler.start import start
from surveyor.errors import InputError, SurveyError, UsageError
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey

NEWS, LIBRARY = HOME + "news/", HOME + "library/"
ORPHANS = [HOME + name for name in ("orphan/1", "orphan/2", "library/deep", "missing", "private/y", "old")]
ANSWERS = site() | {
    ORPHANS[0]: page(ORPHANS[0], LIBRARY, HOME + "orphan/child"),
    ORPHANS[1]: page(ORPHANS[1], HOME),
    HOME + "orphan/child": page(HOME + "orphan/child", ORPHANS[0]),
}
STRATEGIES = [
    "rankmass",
    "windowed",
    "sweep",
    "breadth",
    "cho",
    "outlinks",
    "random",
    "opic",
    "complement",
    "rankmass:1",
]


def survey(path: Path, seeds: Mapping[str, float], answers: Any = None, **settings: Any) -> Survey:
    crawled(path, SeedPages.of(seeds), Sites(Time(), ANSWERS if answers is None else answers), **settings)  # type: ignore[arg-type]
    return sv.open(path)


def shares(found: Survey) -> dict[str, float]:
    return {row["url"]: row["share"] for row in found.top(100)}


def order(found: Survey) -> list[str]:
    urls = {page: url for page, url, _ in found.pages()}
    return [urls[visit.page] for visit in found._folder.journal.visits(0)]


def dense_multigraph(graph: sv.Graph, damping: float, jumps: FloatArray) -> FloatArray:
    """Return importance by a dense solve, where a page may link to another twice."""
    rows = np.repeat(np.arange(graph.pages), graph.out_degrees)
    links = np.zeros((graph.pages, graph.pages))
    np.add.at(links, (rows, graph.indices), 1.0)
    links[graph.out_degrees == 0] = jumps
    links /= links.sum(axis=1, keepdims=True)
    return np.asarray(np.linalg.solve(np.eye(graph.pages) - damping * links.T, (1 - damping) * jumps), np.float64)


def truth(found: Survey) -> tuple[Mapping[str, float], float]:
    """Return the importance of each page by a dense solve, and that of the fetched pages."""
    ranked = found.as_graph()
    jumps = np.zeros(ranked.graph.pages)
    for url, weight in zip(found.manifest.seeds, found.manifest.seed_weights, strict=True):
        jumps[ranked.graph.page(url)] += weight
    jumps /= jumps.sum()
    solved = dense_multigraph(ranked.graph, found.damping, jumps)
    return {ranked.graph.name(node): solved[node] for node in range(solved.size)}, float(solved[ranked.read].sum())


@pytest.mark.parametrize("weights", [{HOME: 1.0}, {HOME: 1, NEWS: 3.5, LIBRARY: 0.25}])
@pytest.mark.parametrize("pages", [1, 2, 3, 100])
def test_coverage_and_ranks_are_those_of_the_weights(tmp_path: Path, weights: dict[str, float], pages: int) -> None:
    with survey(tmp_path / "a", weights, until=f"pages={pages}") as found:
        solved, covered = truth(found)
        ranking = found.rank(tolerance=1e-9)
        got = {ranking.name(node): ranking.scores[node] for node in range(ranking.scores.size)}
        assert sum(abs(got[url] - solved[url]) for url in solved) <= ranking.error
        assert found.coverage.at_least - 1e-12 <= covered <= found.coverage.at_most + 1e-12
        assert found.manifest.seed_weights == list(weights.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.slow
def test_listed_pages_are_fetched_last_and_change_nothing(tmp_path: Path, strategy: str) -> None:
    steady = ANSWERS | {HOME + "gone": page(HOME + "gone")}  # while it waits for a retry, others would be fetched
    with survey(tmp_path / "a", {HOME: 1}, steady, strategy=strategy) as alone:
        before, coverage, visits = shares(alone), alone.coverage, order(alone)
        error = alone.ranking.error
    with survey(tmp_path / "b", {HOME: 1, **dict.fromkeys(ORPHANS, 0)}, steady, strategy=strategy) as found:
        after = shares(found)
        assert found.coverage.at_least == pytest.approx(coverage.at_least, abs=1e-4)  # the precision of its pushes
        assert found.coverage.at_most == pytest.approx(coverage.at_most, abs=1e-4)
        assert sum(abs(after[url] - before[url]) for url in before) <= error + found.ranking.error
        assert sum(after[url] for url in after.keys() - before.keys()) <= found.ranking.error
        assert found.listed == {"pages": 6, "fetched": 3, "queued": 0}
        assert {row["url"] for row in found.orphans()} == {*ORPHANS[:2]}
        done = order(found)
        linked = [url for url in done if url in visits]
        assert sorted(linked) == sorted(visits)
        assert done[: len(linked)] == linked  # orphans come last, listed ones first
        last = [url for url in done[len(linked) :] if url != ORPHANS[3]]  # which is retried
        assert last == [ORPHANS[0], ORPHANS[1], ORPHANS[4], HOME + "orphan/child"]
    replayed = Survey(tmp_path / "b")
    with replayed:
        assert replayed.coverage == found.coverage
        assert shares(replayed) == after


def test_a_trap_behind_a_listed_page_starves_no_listed_page(tmp_path: Path) -> None:
    trap = {HOME + f"t/{n}": page(HOME + f"t/{n}", HOME + f"t/{n + 1}") for n in range(50)}
    pages = {HOME + "t/0": 0.0, HOME + "orphan/2": 0.0}
    for strategy in ("rankmass", "breadth", "opic"):
        with survey(
            tmp_path / strategy, {HOME: 1, **pages}, ANSWERS | trap, strategy=strategy, until="pages=8"
        ) as found:
            assert HOME + "orphan/2" in order(found)


@pytest.mark.parametrize("goal", ["coverage=0.5", "coverage=0.5@95%"])
def test_a_coverage_goal_includes_the_listed_pages_only(tmp_path: Path, goal: str) -> None:
    with survey(tmp_path / "a", {HOME: 1}, until=goal) as alone:
        before = order(alone)
    with survey(tmp_path / "b", {HOME: 1, **dict.fromkeys(ORPHANS, 0)}, until=goal) as found:
        assert found.listed == {"pages": 6, "fetched": 3, "queued": 0}
        assert set(before) | set(ORPHANS) == set(order(found))


def test_a_stopped_crawl_resumes_identically(tmp_path: Path) -> None:
    seeds = {HOME: 2.0, NEWS: 0.5, **dict.fromkeys(ORPHANS, 0)}
    whole = survey(tmp_path / "whole", seeds)
    for pages in range(1, 8):
        survey(tmp_path / "part", seeds, until=f"pages={pages}").close()
    with survey(tmp_path / "part", seeds) as parts, whole:
        assert order(parts) == order(whole)
        assert parts.coverage == whole.coverage


def test_other_weights_replay_the_survey(tmp_path: Path) -> None:
    survey(tmp_path / "a", {HOME: 1, NEWS: 1}).close()
    with survey(tmp_path / "b", {HOME: 1, NEWS: 7}) as direct, survey(tmp_path / "a", {HOME: 1, NEWS: 7}) as again:
        assert again.manifest.weights == {NEWS: 7.0}
        assert shares(again) == pytest.approx(shares(direct), abs=1e-5)
        assert again.coverage.at_least == pytest.approx(direct.coverage.at_least, abs=1e-4)
    folder, _ = start(tmp_path / "a", [HOME], Settings(contact=CONTACT), {})  # weights that are not given stay
    with folder:
        assert folder.manifest.weights == {NEWS: 7.0}
    with survey(tmp_path / "a", {HOME: 1, ORPHANS[0]: 0}) as more:
        assert more.manifest.listed == (ORPHANS[0],)
        assert ORPHANS[0] in order(more)
    folder, _ = start(tmp_path / "a", SeedPages.of({HOME: 1, NEWS: 0}), Settings(contact=CONTACT), {})
    with folder:
        assert "remain seeds" in folder.notices[0]
        assert folder.manifest.seeds == (HOME, NEWS)
        assert folder.manifest.listed == (ORPHANS[0],)


def test_without_a_link_graph(tmp_path: Path) -> None:
    seeds = {HOME: 3, NEWS: 1, **dict.fromkeys(ORPHANS[:2], 0)}
    options: dict[str, Any] = {"strategy": "opic", "until": "pages=100"}
    bare = {**options, "graph": False}
    with (
        survey(tmp_path / "a", seeds, **options) as kept,
        survey(tmp_path / "b", seeds, **bare) as found,
    ):
        one, other = kept.own_importance, found.own_importance
        assert one is not None
        assert other is not None
        assert {row["url"]: row["share"] for row in other.top(99)} == pytest.approx(
            {row["url"]: row["share"] for row in one.top(99)}, abs=1e-9
        )
        assert found.listed == {"pages": 2, "fetched": 2, "queued": 0}
        whole = order(found)
    survey(tmp_path / "c", seeds, **{**bare, "until": "pages=2"}).close()
    with survey(tmp_path / "c", seeds, **bare) as resumed:
        assert order(resumed) == whole
    with pytest.raises(UsageError, match="weighted again"):
        survey(tmp_path / "b", {**seeds, NEWS: 2}, **bare)
    survey(tmp_path / "b", {**seeds, ORPHANS[3]: 0}, **bare).close()
    with SurveyFolder.open(tmp_path / "b", write=False) as folder:
        assert folder.manifest.listed == tuple(ORPHANS[:2])


def test_the_scope_applies_to_listed_pages(tmp_path: Path) -> None:
    seeds = {LIBRARY: 1, ORPHANS[0]: 0, "https://other.example/x": 0, HOME + "library/deep": 0}
    with survey(tmp_path / "a", seeds) as found:
        assert found.listed["pages"] == 1
        assert ORPHANS[0] not in order(found)
    with survey(tmp_path / "a", seeds, scope="host") as found:
        assert ORPHANS[0] in order(found)


# --- lists ---


def test_a_list_has_weights_in_a_second_column(tmp_path: Path) -> None:
    place = tmp_path / "seeds.txt"
    place.write_text(f"# trusted\n{HOME}\t2.5\n{NEWS} 1e1\n{LIBRARY}, 3\na.example/0,1518\n{ORPHANS[0]} 0\n", "utf-8")
    found = sv.read_seeds(str(place))
    assert found == {HOME: 2.5, NEWS: 10.0, LIBRARY: 3.0, "a.example/0,1518": 1.0, ORPHANS[0]: 0.0}
    place.write_text(f"{HOME},2\n{NEWS},0.5\n", "utf-8")
    assert sv.read_seeds(str(place)) == {HOME: 2.0, NEWS: 0.5}
    for wrong in ("-1", "nan", "inf", "high", "1_0_x"):
        place.write_text(f"{NEWS} 1\n{HOME} {wrong}\n", "utf-8")
        with pytest.raises(InputError, match=rf"seeds.txt, entry 2: the weight of a seed must be .* got '{wrong}'"):
            sv.read_seeds(str(place))


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "2", True, 10**400, Fraction(10**400), None])
def test_wrong_weights_are_refused(wrong: Any) -> None:
    if wrong is None:
        with pytest.raises(UsageError, match="no seed has a weight above 0"):
            SeedPages.of({HOME: 0})
        with pytest.raises(UsageError, match="factor of at most"):
            SeedPages.of({HOME: 1e-9, NEWS: 1e9})
        return
    with pytest.raises(UsageError, match="the weight of a seed must be a number above 0"):
        SeedPages.of({HOME: wrong})


@pytest.mark.parametrize("wrong", ["1" + "0" * 400, "-1", "nan", "inf", "0", "true"])
def test_a_manifest_with_a_wrong_weight_is_damaged(tmp_path: Path, wrong: str) -> None:
    survey(tmp_path / "a", {HOME: 2.5, NEWS: 1.0}, until="pages=2").close()
    manifest = tmp_path / "a" / "survey.toml"
    manifest.write_text(manifest.read_text("utf-8").replace("= 2.5", f"= {wrong}"), "utf-8")
    with pytest.raises(SurveyError, match="the weight of a seed must be a number above 0"):
        sv.open(tmp_path / "a")


def test_weights_whose_sum_no_float_holds_are_shares() -> None:
    graph = sv.synthetic_web("small", rng=1).graph
    huge, equal = (sv.simulate(graph, ["rankmass"], sv.Pages(30), seeds={3: one, 9: one}) for one in (1e308, 1.0))
    assert huge.runs[0].at_least[-1] == pytest.approx(equal.runs[0].at_least[-1])
    found = sv.sample(graph, "everything", until="steps=200", rng=1)
    ends = {"example": 1.2e308, "test": 0.6e308}
    assert found.fits("tld", ends) == found.fits("tld", {"example": 2.0, "test": 1.0})


# --- graphs ---


def test_ranks_and_simulations_take_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    links = tmp_path / "links.csv"
    links.write_text("source,target\na,b\nb,c\nc,a\nd,a\nb 2,a\n", "utf-8")
    trusted = tmp_path / "trusted.txt"
    trusted.write_text("a 3\nb, 1\nb 2\nd 0\n", "utf-8")  # "b 2" is a page
    result = CommandResult(capsys, "rank", str(links), "--trusted", str(trusted), "--tolerance", "1e-9", "--json")
    graph = sv.read_graph(links)
    jumps = np.zeros(graph.pages)
    for name, weight in (("a", 0.6), ("b", 0.2), ("b 2", 0.2)):
        jumps[graph.page(name)] = weight
    solved = dense_pagerank(graph, 0.85, jumps, jumps)
    for row in result.json()["pages"]:
        assert row["share"] == pytest.approx(solved[graph.page(row["name"])], abs=1e-8)
    race = CommandResult(
        capsys, "simulate", str(links), "--seeds", str(trusted), "--rng", "7", "--until", "pages=9", "--json"
    ).json()
    assert race["weights"] == [3.0, 1.0, 1.0]
    for run in race["runs"]:
        assert run["fetches"] == 5  # d is listed: fetched, though no page links to it
    trusted.write_text("a x\n", "utf-8")
    wrong = CommandResult(capsys, "rank", str(links), "--trusted", str(trusted))
    assert wrong.code == 2
    assert "the weight of a seed must be" in wrong.err


@pytest.mark.parametrize("seed", range(12))
def test_simulated_bounds_hold_with_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sources, targets = rng.integers(0, 60, 150), rng.integers(0, 60, 150)
    graph = sv.Graph.from_arrays(sources, targets, nodes=60)
    seeds = dict(zip(rng.choice(60, 5, replace=False).tolist(), [*rng.uniform(0.1, 9, 4), 0.0], strict=True))
    gone = rng.random(60) < 0.1
    blocked = (rng.random(60) < 0.1) & ~gone
    options = sv.SimulationOptions(gone=gone, block=blocked)
    race = sv.simulate(
        graph, ["rankmass", "breadth", "windowed", "opic"], sv.Pages(60), seeds=seeds, rng=1, options=options
    )
    dense = np.zeros(60)
    for page_id, weight in seeds.items():
        dense[page_id] = weight
    dense /= dense.sum()
    kept = ~gone[np.repeat(np.arange(60), graph.out_degrees)]
    rows = np.repeat(np.arange(60), graph.out_degrees)[kept]
    solved = dense_pagerank(sv.Graph.from_arrays(rows, graph.indices[kept], nodes=60), 0.85, dense, dense)
    for run in race.runs:
        covered = np.cumsum(solved[run.order])
        assert (run.at_least <= covered + 1e-9).all()
        assert (covered <= run.at_most + 1e-9).all()
        assert np.abs(run.true - covered).max() <= race.truth_error
