"""Bad domains in rankings: lists, positions, significance of differences, and planted spam."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.spam_statistics import Difference, Measure, compare_by_bootstrap
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Graph
from surveyor.errors import InputError, UsageError
from surveyor.graph.names import Names
from surveyor.graph.synthetic.generate import PRESETS, synthetic_web
from surveyor.graph.synthetic.spam import buy_links, low_domains, plant_clique, plant_exchange, plant_farm
from surveyor.rank.bad_domains import BEYOND, bad_domains_in, positions_in, read_labels, top_lists
from webs import graphs

FORMS = {
    "plain.txt": "# bad ones\nbad.com\nWWW.worse.co.uk  # a comment\n\nhttp://worst.org:8080/path?x\n",
    "hosts.txt": "127.0.0.1 localhost\n::1 localhost\n0.0.0.0 0.0.0.0\n"
    "0.0.0.0 bad.com www.worse.co.uk\n0.0.0.0 worst.org\n",
    "adblock.txt": "! title\n||bad.com^\n*.worse.co.uk\n.worst.org\n",
    "alexa.csv": "1,bad.com\n2,worse.co.uk\n3,worst.org\n",
    "headed.csv": "\ufeffGlobalRank ,Domain      ,Label\n1 ,bad.com  ,x\n2 ,worse.co.uk  ,y\n3 ,worst.org ,x\n",
    "sniffed": "bad.com\t1\tx\nworse.co.uk\t0\ty\nworst.org\t1\tx\n",
}
MEASURES: tuple[Measure, ...] = ("count", "area")


def supporters(graph: Graph, depth: int) -> np.ndarray:
    """Count the domains at exactly this distance backwards, one domain at a time."""
    counts = np.zeros(graph.pages, np.int64)
    for page in range(graph.pages):
        seen, level = {page}, {page}
        for _ in range(depth):
            level = {int(y) for x in level for y in graph.in_links_of(x)} - seen
            seen |= level
        counts[page] = len(level)
    return counts


def compared(one: np.ndarray, other: np.ndarray, bad: np.ndarray, first: int, **options: Any) -> Difference:
    return compare_by_bootstrap(("one", positions_in(one, bad)), ("other", positions_in(other, bad)), first, **options)


def ranked(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-scores, kind="stable")


def saved(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("name", FORMS)
def test_lists_are_read_in_all_formats(name: str, tmp_path: Path) -> None:
    labels = read_labels(saved(tmp_path, name, FORMS[name]))
    assert set(labels.domains) == {"bad.com", "worse.co.uk", "worst.org"}
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(FORMS[name].encode()))
    assert read_labels(packed).domains == labels.domains


def test_labels_come_from_a_column_by_name_or_number(tmp_path: Path) -> None:
    headed = read_labels(saved(tmp_path, "headed.csv", FORMS["headed.csv"]))
    numbered = read_labels(saved(tmp_path, "nodes.tsv", FORMS["sniffed"]), label=2)
    assert dict(headed.domains) == dict(numbered.domains) == {"bad.com": "x", "worse.co.uk": "y", "worst.org": "x"}
    assert set(headed.labelled("x").domains) == {"bad.com", "worst.org"}
    with pytest.raises(UsageError, match=r"no domain in .* has the label z\n.*its labels are: x, y"):
        headed.labelled("z")
    other = read_labels(tmp_path / "headed.csv", domain="Domain", label="globalrank")
    assert other.domains["worst.org"] == "3"


def test_a_host_counts_as_its_domain_only_if_requested(tmp_path: Path) -> None:
    path = saved(tmp_path, "hosts.txt", "0.0.0.0 ads.news.com\n0.0.0.0 www.bad.com\n0.0.0.0 local\n")
    assert set(read_labels(path).domains) == {"news.com", "bad.com"}
    strict = read_labels(path, hosts=False)
    assert (set(strict.domains), strict.subdomains, strict.invalid) == ({"bad.com"}, 1, 1)


def test_domains_of_a_list_are_found_in_a_graph(tmp_path: Path) -> None:
    labels = read_labels(saved(tmp_path, "nodes.tsv", FORMS["sniffed"]), label=2)
    found = labels.in_graph(Names.of(["good.org", "worst.org", "x.net", "bad.com"]))
    assert (found.ids.tolist(), found.labels, found.listed, found.warning) == ([1, 3], ("x", "x"), 3, "")
    none = labels.in_graph(Names.of(["good.org"]))
    assert none.warning == f"none of the 3 domains in {tmp_path / 'nodes.tsv'} is in the graph"


@pytest.mark.parametrize(
    ("content", "options", "problem"),
    [
        (b"", {}, "names no domain"),
        (b"# only a comment\n\nlocalhost\n0.0.0.0\n", {}, "names no domain"),
        (b"a.com,1\n", {"label": "label"}, "has no column 'label'"),
        (b"domain,label\na.com,1\n", {"label": "kind"}, "has no column 'kind'"),
        (b"a.com,1\n", {"label": 7}, "has no column 7"),
        (b"rank,number\n1,2\n", {}, "has no column of domains"),
        (b"a.com\n", {"label": 1}, "has no columns"),
        (b"\x89PNG\0\0\0\0", {}, "is not a text file"),
        (b"\x1f\x8b\x08\x00broken", {}, "truncated or damaged"),
    ],
)
def test_invalid_lists_are_rejected(
    content: bytes, options: dict[str, int | str], problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        read_labels(path, **options)  # type: ignore[arg-type]  # only columns
    assert str(path) in caught.value.problem
    assert caught.value.hint


def test_a_missing_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.txt cannot be read"):
        read_labels(tmp_path / "nowhere.txt")
    with pytest.raises(InputError, match="is a folder"):
        read_labels(tmp_path)


@given(st.permutations(range(12)), st.sets(st.integers(0, 15)), st.integers(0, 12))
def test_positions_counts_and_areas(order: list[int], bad: set[int], ranked: int) -> None:
    ids, listed = np.array(order[:ranked], np.int64), np.array(sorted(bad), np.int64)
    here = bad_domains_in("x", ids, listed)
    curve = [sum(node in bad for node in order[:r]) for r in range(1, ranked + 1)]
    assert here.counts(np.arange(1, ranked + 1)).tolist() == curve
    assert [here.count(r) for r in range(1, ranked + 1)] == curve
    assert here.first == next((r for r, count in enumerate(curve, 1) if count), None)
    worst = sum(min(r, len(bad)) for r in range(1, ranked + 1))
    assert here.area() == pytest.approx(sum(curve) / worst if worst else 0.0)
    places = positions_in(ids, listed)
    assert all((place == BEYOND) == (node not in order[:ranked]) for node, place in zip(listed, places, strict=True))


def test_rankings_and_lists_hold_each_domain_once() -> None:
    with pytest.raises(UsageError, match="a ranking names a domain twice"):
        positions_in(np.array([1, 2, 1]), np.array([1]))
    with pytest.raises(UsageError, match="listed twice"):
        positions_in(np.array([1, 2]), np.array([1, 1]))


def test_top_lists_side_by_side() -> None:
    rows = top_lists({"in": np.array([3, 1, 2]), "tse": np.array([1, 0])}, np.array([3, 0]), 3)
    assert [(row.position, row.domains, row.bad) for row in rows] == [
        (1, (3, 1), (True, False)),
        (2, (1, 0), (False, True)),
        (3, (2, None), (False, False)),
    ]


@pytest.mark.slow
def test_the_interval_contains_zero_for_equally_good_rankings() -> None:
    rng = np.random.default_rng(1)
    for domains, bad, first in ((2_000, 200, 100), (2_000, 40, 200)):
        for measure in MEASURES:
            held = 0
            for _ in range(400):
                one, other = rng.permutation(domains), rng.permutation(domains)
                found = compared(one, other, np.arange(bad), first, measure=measure, draws=500, rng=rng)
                held += not found.significant
            assert held >= 0.93 * 400, (domains, bad, measure)


def test_a_clear_difference_is_detected_and_reproducible() -> None:
    domains, bad = np.arange(1_000), np.arange(900, 1_000)
    spoilt = np.concatenate([bad[:30], domains[:900], bad[30:]])
    found = compared(domains, spoilt, bad, 100)
    assert found.difference == -30
    assert -45 < found.low < -30 < found.high < -15
    assert (found.better, found.worse, found.significant) == (1.0, 0.0, True)
    assert found == compared(domains, spoilt, bad, 100)
    area = compared(spoilt, domains, bad, 100, measure="area")
    assert area.difference == sum(min(r, 30) for r in range(1, 101))
    assert area.low > 0


def test_a_group_counts_as_one_observation() -> None:
    domains, bad = np.arange(1_000), np.arange(900, 1_000)
    spoilt = np.concatenate([bad[:30], domains[:900], bad[30:]])
    groups = np.repeat(np.arange(10), [30, 10, 10, 10, 10, 10, 5, 5, 5, 5])
    found = compared(domains, spoilt, bad, 100, groups=groups)
    assert found.difference == -30
    assert not found.significant


def test_few_entries_on_one_side_are_not_significant() -> None:
    order, bad = np.arange(100), np.arange(90, 100)
    other = np.concatenate([bad[:4], order[:90], bad[4:]])
    assert not compared(order, other, bad, 10).significant
    same = compared(order, order, bad, 10)
    assert (same.low, same.high, same.better, same.worse) == (0, 0, 0, 0)
    with pytest.raises(UsageError, match="draws must be at least 1, got 10 and 0"):
        compared(order, other, bad, 10, draws=0)
    with pytest.raises(UsageError, match="got 2 and 3"):
        compare_by_bootstrap(("a", np.arange(2)), ("b", np.arange(3)), 10)
    with pytest.raises(UsageError, match=r"groups must have .* 10 bad domains, got 3"):
        compared(order, other, bad, 10, groups=np.arange(3))


@settings(deadline=None)
@given(graphs(), st.integers(2, 8), st.booleans())
def test_planting_adds_its_links_and_keeps_all_others(graph: Graph, count: int, new: bool) -> None:
    rng = np.random.default_rng(count)
    if not new and low_domains(graph).size < count:
        with pytest.raises(UsageError, match="count must be at most"):
            plant_clique(graph, count, rng, new=new)
        return
    spoilt, members = plant_clique(graph, count, rng, new=new)
    assert spoilt.pages == graph.pages + (count if new else 0)
    for page in range(graph.pages):
        assert set(graph.links_of(page)) <= set(spoilt.links_of(page))
    for member in members:
        assert set(members) - {member} <= set(spoilt.links_of(int(member)))
    others = np.setdiff1d(np.arange(graph.pages), members)
    assert all(np.array_equal(graph.links_of(int(page)), spoilt.links_of(int(page))) for page in others)


def test_gains_of_each_kind_of_spam() -> None:
    graph = Graph.from_edges([(f"fan{n}.com", "famous.com") for n in range(20)] + [("famous.com", "partner.com")])
    rng = np.random.default_rng(3)
    exchange, members = plant_exchange(graph, 25, 6, rng)
    assert np.diff(exchange.in_links.indptr)[members].tolist() == [6] * 25
    assert supporters(exchange, 2)[members].min() >= 12
    farm, planted = plant_farm(graph, 10)
    assert (np.diff(farm.in_links.indptr)[planted[0]], supporters(farm, 2)[planted[0]]) == (10, 0)
    aimed, planted = plant_farm(graph, 10, through=2)
    assert (np.diff(aimed.in_links.indptr)[planted[0]], supporters(aimed, 2)[planted[0]]) == (2, 8)
    seller = np.array([graph.page("famous.com")])
    bought, (target,) = buy_links(graph, [seller])
    assert (np.diff(bought.in_links.indptr)[target], supporters(bought, 2)[target]) == (1, 20)
    assert bought.name(int(target)) == f"bought{target}.test"
    boosted, planted = plant_farm(graph, 5, graph.page("partner.com"))
    assert planted[0] == graph.page("partner.com")
    assert boosted.pages == graph.pages + 5


def test_invalid_plantings_are_rejected() -> None:
    graph, rng = Graph.from_edges([("a.com", "b.com")]), np.random.default_rng(1)
    with pytest.raises(UsageError, match="count must be at least 2, got 1"):
        plant_clique(graph, 1, rng)
    with pytest.raises(UsageError, match=r"partners .* got 3"):
        plant_exchange(graph, 10, 3, rng)
    with pytest.raises(UsageError, match=r"through .* got 3"):
        plant_farm(graph, 3, through=3)
    with pytest.raises(UsageError, match=r"target must be in \[0, 1\], got 9"):
        plant_farm(graph, 3, 9)


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("rng", [7, 8, 9])
def test_a_planted_clique_reaches_the_top_by_in_links_but_not_by_supporters(rng: int, new: bool) -> None:
    """The weakness of in-degree that the paper found (worldnews.com), as a regression test."""
    web = synthetic_web(replace(PRESETS["domains"], pages=3_000, farms=0.0, exchanges=0.0), rng=rng, names=False)
    spoilt, members = plant_clique(web.graph, 120, np.random.default_rng(rng), new=new)
    top = 100
    by_links = bad_domains_in("in", ranked(spoilt.in_links.degrees()), members)
    by_supporters = bad_domains_in("supp2", ranked(supporters(spoilt, 2)), members)
    assert by_links.count(top) > top // 4
    assert by_supporters.count(top) == 0
