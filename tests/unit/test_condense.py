"""Graphs of hosts and domains, against dictionaries and sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.graph import condense as condensing
from surveyor.graph.condense import CondensedGraph, condense
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph, write_graph
from surveyor.graph.hosts_and_domains import Level
from surveyor.graph.names import Names
from surveyor.web.suffixes import Suffixes, spelt

SUFFIXES = Suffixes()
HOSTS = [
    "a.org",
    "www.a.org",
    "x.y.a.org",
    "a-b.org",
    "WWW.A.org",
    "a.org:8080",
    "b.co.uk",
    "www.b.co.uk",
    "co.uk",
    "org",
    "joe.github.io",
    "ann.github.io",
    "bücher.de",
    "xn--bcher-kva.de",
    "www.Bücher.de.",
    "192.0.2.1",
    "[::1]",
    "[::1]:81",
    "localhost",
    "db.intern",
    "a..b",
    "my_host.com",
    "x" * 270 + ".com",
    "me@a.org",
]
STRANGE = [
    "",
    "no host at all",
    "ftp://a.org/",
    "http://",
    "https:///x",
    "http://a b/",
    "mailto:me@a.org",
    "http://256.0.0.1/",
]
NAMES = st.one_of(
    st.builds(
        lambda scheme, host, path: f"{scheme}://{host}{path}",
        st.sampled_from(["http", "https"]),
        st.sampled_from(HOSTS),
        st.sampled_from(["", "/", "/x", "/x/y?z", "?q=/a"]),
    ),
    st.sampled_from([host for host in HOSTS if "@" not in host]),
    st.sampled_from(STRANGE),
)


def place_of(name: str, to: str) -> str:
    """The slow and obvious way."""
    host = name
    for scheme in ("http://", "https://"):
        if name.startswith(scheme):
            host = name.removeprefix(scheme).partition("/")[0].partition("?")[0].rpartition("@")[2]
    found = spelt(host)
    return found if to == "hosts" or not found else SUFFIXES.domain(found)


def read_from_the_right(name: str) -> bytes:
    return ".".join(reversed(name.split("."))).encode()


def check(made: CondensedGraph, names: list[str], links: set[tuple[int, int]], to: str) -> None:
    places = [place_of(name, to) for name in names]
    assert made.graph.names is not None
    known = list(made.graph.names)
    assert known == sorted({place for place in places if place}, key=read_from_the_right)
    assert [known[at] if at >= 0 else "" for at in made.site_of.tolist()] == places
    expected = {(places[a], places[b]) for a, b in links if places[a] and places[b] and places[a] != places[b]}
    found = [(known[at], known[to]) for at in range(len(known)) for to in made.graph.links_of(at).tolist()]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert made.sizes.tolist() == [places.count(place) for place in known]
    assert made.without_host == places.count("") == made.graph.provenance["names_without_host"]
    if to == "domains":
        unknown = {place for place in places if place and not SUFFIXES.knows(place)}
        assert made.without_suffix == len(unknown) == made.graph.provenance["hosts_under_no_suffix"]
    result = made.graph.provenance
    assert result["links_read"] == len(links)
    lost = sum(1 for a, b in links if not (places[a] and places[b]))
    assert result["self_links_dropped"] + result["repeats_merged"] + lost + made.graph.links == len(links)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], set[tuple[int, int]]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=25, unique=True))
    page = st.integers(0, len(names) - 1)
    links = draw(st.sets(st.tuples(page, page), max_size=80))
    return names, {(a, b) for a, b in links if a != b}


def graph_of(names: list[str], links: set[tuple[int, int]]) -> Graph:
    ends = np.array(sorted(links), np.int64).reshape(-1, 2)
    return Graph.from_arrays(ends[:, 0], ends[:, 1], len(names), names)


@given(
    graphs(), st.sampled_from(["hosts", "domains"]), st.sampled_from([1, 3, 1 << 18]), st.sampled_from([1, 7, 1 << 21])
)
@settings(max_examples=150, deadline=None)
def test_a_condensed_graph_is_that_of_sets(
    web: tuple[list[str], set[tuple[int, int]]], to: Level, names_at_once: int, links_at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(condensing, "NAMES", names_at_once)
        patch.setattr(condensing, "LINKS", links_at_once)
        check(condense(graph_of(*web), to, suffixes=SUFFIXES), *web, to)


@given(graphs())
@settings(max_examples=50, deadline=None)
def test_from_pages_to_hosts_to_domains_is_from_pages_to_domains(web: tuple[list[str], set[tuple[int, int]]]) -> None:
    hosts = condense(graph_of(*web), "hosts")
    by_hosts = condense(hosts.graph, suffixes=SUFFIXES)
    at_once = condense(graph_of(*web), suffixes=SUFFIXES)
    assert by_hosts.graph == at_once.graph
    assert np.append(by_hosts.site_of, -1)[hosts.site_of].tolist() == at_once.site_of.tolist()
    assert by_hosts.without_suffix == at_once.without_suffix
    assert by_hosts.without_host == 0


def many(pages: int = 3_000, links: int = 40_000) -> Graph:
    rng = np.random.default_rng(3)
    names = [f"https://h{page % 97}.d{page % 41}.{'org' if page % 3 else 'co.uk'}/{page}" for page in range(pages)]
    return Graph.from_arrays(rng.integers(0, pages, links), rng.integers(0, pages, links), pages, names)


def test_in_bounded_memory_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = many()
    graph.save(tmp_path / "pages")
    whole = condense(graph, suffixes=SUFFIXES)
    monkeypatch.setattr(condensing, "LINKS", 1 << 10)
    monkeypatch.setattr(condensing, "NAMES", 100)
    result: list[str] = []
    small = condense(
        Graph.open(tmp_path / "pages"),
        suffixes=SUFFIXES,
        folder=tmp_path / "domains",
        memory=1 << 12,
        progress=lambda stage, *_: result.append(stage),
    )
    assert list(dict.fromkeys(result)) == ["finding hosts", "reading links", "merging", "transposing"]
    assert small.graph == whole.graph == Graph.open(tmp_path / "domains")
    assert dict(small.graph.provenance) == dict(whole.graph.provenance)
    assert np.array_equal(small.site_of, whole.site_of)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["domains", "pages"]


def test_a_folder_is_replaced_only_if_asked(tmp_path: Path) -> None:
    condense(many(), folder=tmp_path / "d")
    with pytest.raises(UsageError, match="already exists"):
        condense(many(), folder=tmp_path / "d")
    hosts = condense(many(), "hosts", folder=tmp_path / "d", replace=True)
    assert Graph.open(tmp_path / "d") == hosts.graph


def test_a_host_graph_of_common_crawl(tmp_path: Path) -> None:
    (tmp_path / "x-host-vertices.txt").write_text("0\torg.a\n1\torg.a-b\n2\torg.a.www\n3\tuk.co.b.x\n")
    (tmp_path / "x-host-edges.txt").write_text("0\t2\n2\t3\n1\t0\n3\t2\n3\t0\n")
    domains = condense(read_graph(tmp_path)).graph
    assert domains.names is not None
    assert list(domains.names) == ["a.org", "a-b.org", "b.co.uk"]
    assert [domains.links_of(at).tolist() for at in range(3)] == [[2], [0], [0]]
    write_graph(domains, tmp_path / "out", format="commoncrawl")
    assert read_graph(tmp_path / "out") == domains  # the ids are those of the format


def test_mirrors_count_as_one() -> None:
    graph = Graph.from_edges([("http://a.org/", "http://mirror.net/"), ("http://www.mirror.net/", "http://b.intern/")])
    made = condense(graph, aliases={"MIRROR.net": "www.a.org", "b.intern": "c.com"})
    assert made.graph.names is not None
    assert list(made.graph.names) == ["c.com", "a.org"]
    assert made.graph.links_of(1).tolist() == [0]
    assert made.without_suffix == 0


def test_graphs_that_cannot_be_condensed() -> None:
    nameless = Graph.from_arrays(np.array([0]), np.array([1]))
    with pytest.raises(UsageError, match="the graph has no names, so the hosts of its pages are unknown"):
        condense(nameless)
    with pytest.raises(UsageError, match="unknown level 'pages'"):
        condense(many(), "pages")  # type: ignore[arg-type]


def test_an_empty_graph() -> None:
    made = condense(Graph(np.zeros(1, np.int64), np.empty(0, np.int32), names=Names.of([])))
    assert (made.graph.pages, made.graph.links, made.site_of.size) == (0, 0, 0)
    assert repr(made) == "CondensedGraph(0 domains of 0 pages, 0 links)"


@given(st.lists(st.binary(max_size=20) | st.text("ab", max_size=30).map(str.encode), max_size=40))
@settings(max_examples=200, deadline=None)
def test_names_are_sorted_byte_by_byte(names: list[bytes]) -> None:
    table = Names.of(name.decode("utf-8", "surrogateescape") for name in names)
    order = table.order()
    assert order.tolist() == sorted(range(len(names)), key=names.__getitem__)
    assert list(table.take(order)) == [table[at] for at in order.tolist()]
