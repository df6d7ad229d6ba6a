"""Templates in synthetic webs with known footers, navigation and links in the text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor import Graph, explain, pagerank
from surveyor.graph.hosts_and_domains import hosts_of
from surveyor.graph.names import Names
from surveyor.rank.explain import Explanation, Template, find_templates
from webs import random_web

A, B, C = "https://a.example/", "https://b.example/", "http://c.example:8080/"
GOAL = f"{A}goal"
Links = dict[str, set[str]]


def pages(host: str, count: int) -> list[str]:
    return [f"{host}{number}" for number in range(count)]


def text_links(urls: list[str], each: int = 5, seed: int = 7) -> Links:
    """Every page links to a few others in its text."""
    rng = np.random.default_rng(seed)
    return {url: {urls[at] for at in rng.integers(0, len(urls), each)} - {url} for url in urls}


def box(host: str, name: str, size: int) -> list[str]:
    """The other links of a footer or of a navigation."""
    return [f"{host}{name}{number}" for number in range(size)]


def put(links: Links, urls: list[str], goals: list[str]) -> None:
    for url in urls:
        links.setdefault(url, set()).update(set(goals) - {url})


def templates(links: Links, goal: str = GOAL) -> tuple[Graph, list[Template]]:
    graph = Graph.from_edges([(a, b) for a, goals in links.items() for b in sorted(goals)])
    target = graph.page(goal)
    sources = graph.in_links_of(target)
    return graph, find_templates(graph, target, sources, np.full(sources.size, 1 / max(sources.size, 1)))


def explained(links: Links, goal: str = GOAL) -> Explanation:
    graph = Graph.from_edges([(a, b) for a, goals in links.items() for b in sorted(goals)])
    return explain(graph, pagerank(graph, tolerance=1e-12), goal, what_if=True)


def members(graph: Graph, template: Template) -> set[str]:
    return {graph.name(page) for page in template.pages.tolist()}


def test_a_footer_is_distinguished_from_links_in_the_text() -> None:
    urls = pages(A, 200)
    links = text_links(urls)
    put(links, urls[:150], [GOAL, *box(A, "footer", 4)])
    put(links, urls[150:170], [GOAL])
    graph, (template,) = templates(links)
    assert members(graph, template) == set(urls[:150])
    assert {graph.name(page) for page in template.core.tolist()} == {GOAL, *box(A, "footer", 4)}
    assert template.host == "a.example"
    assert template.fraction == pytest.approx(150 / 170)


def test_text_links_from_pages_with_one_navigation_are_no_template() -> None:
    urls = pages(A, 400)
    links = text_links(urls)
    put(links, urls, box(A, "nav", 8))
    put(links, urls[:100], [GOAL])
    assert templates(links)[1] == []
    assert len(templates(links, f"{A}nav3")[1]) == 1


def test_pages_of_a_navigation_count_as_linking_to_themselves() -> None:
    urls, nav = pages(A, 30), [GOAL, *box(A, "nav", 3)]
    links = text_links(urls)
    put(links, [*urls, *nav], nav)
    graph, (template,) = templates(links)
    assert members(graph, template) == {*urls, *nav} - {GOAL}


def test_a_section_navigation_and_a_site_navigation_are_two_templates() -> None:
    urls = pages(A, 400)
    links = text_links(urls)
    put(links, urls, box(A, "nav", 12))
    put(links, urls[:60], [GOAL, *box(A, "section", 3)])
    put(links, urls[200:240], [GOAL])
    graph, (template,) = templates(links)
    assert members(graph, template) == set(urls[:60])
    assert template.core.size == 4


def test_two_templates_of_one_host_are_two() -> None:
    urls = pages(A, 300)
    links = text_links(urls)
    put(links, urls[:120], [GOAL, *box(A, "docs", 5)])
    put(links, urls[120:200], [GOAL, *box(A, "blog", 4)])
    graph, found = templates(links)
    assert [members(graph, template) for template in found] == [set(urls[:120]), set(urls[120:200])]


def test_a_footer_may_lack_a_link_on_some_pages() -> None:
    urls, footer, rng = pages(A, 200), box(A, "footer", 9), np.random.default_rng(3)
    links = text_links(urls)
    for url in urls:
        missing = footer[int(rng.integers(len(footer)))]
        put(links, [url], [GOAL, *(goal for goal in footer if goal != missing)])
    graph, (template,) = templates(links)
    assert members(graph, template) == set(urls)


def test_hosts_are_processed_separately() -> None:
    links = text_links([*pages(A, 80), *pages(B, 90), *pages(C, 70)])
    put(links, pages(A, 80), [GOAL, *box(A, "footer", 4)])
    put(links, pages(B, 90), [GOAL, *box(A, "footer", 4)])
    put(links, pages(C, 70), box(C, "nav", 6))
    put(links, pages(C, 30), [GOAL])
    graph, found = templates(links)
    assert [(template.host, members(graph, template)) for template in found] == [
        ("b.example", set(pages(B, 90))),
        ("a.example", set(pages(A, 80))),
    ]
    put(links, pages(C, 70), [GOAL])
    assert [template.host for template in templates(links)[1]] == ["b.example", "a.example", "c.example:8080"]


def test_few_pages_or_few_links_are_no_template() -> None:
    for number, size, expected in ((9, 4, 0), (10, 4, 1), (30, 1, 0), (30, 2, 1)):
        links = text_links(pages(A, 100))
        put(links, pages(A, number), [GOAL, *box(A, "footer", size)])
        assert len(templates(links)[1]) == expected


def test_small_contributions_of_a_host_are_ignored() -> None:
    links = text_links(pages(A, 400))
    put(links, pages(A, 300), [GOAL, *box(A, "docs", 4)])
    for size, expected in ((14, 1), (20, 2)):
        some = {url: set(goals) for url, goals in links.items()}
        put(some, pages(A, 400)[-size:], [GOAL, *box(A, "blog", 4)])
        assert len(templates(some)[1]) == expected


def test_pages_without_score_belong_to_the_template() -> None:
    """Some of them cannot be reached from the only teleport page."""
    urls = pages(A, 60)
    links: Links = {url: {urls[(at + 1) % 30]} for at, url in enumerate(urls)}
    put(links, urls, [GOAL, *box(A, "footer", 3)])
    graph = Graph.from_edges([(a, b) for a, goals in links.items() for b in sorted(goals)])
    ranking = pagerank(graph, teleport=[urls[0]])
    assert ranking.share(urls[50]) == 0
    assert [group.pages for group in explain(graph, ranking, GOAL).templates] == [60]


def test_random_links_are_no_template() -> None:
    urls = [f"https://h{number % 3}.example/{number}" for number in range(1500)]
    webs = [random_web(1500, 15_000, 1)]
    rng = np.random.default_rng(2)
    hub = np.column_stack([rng.integers(0, 1500, 15_000), rng.integers(0, 1500, 15_000)])
    everyone = np.column_stack([np.arange(1500), np.zeros(1500, np.int64)])  # links to page 0
    both = np.concatenate([hub, everyone])
    webs.append(Graph.from_arrays(both[:, 0], both[:, 1], 1500))
    for web in webs:
        graph = Graph(web.indptr, web.indices, names=Names.of(urls))
        ranking = pagerank(graph)
        for page in [*ranking.top(40).tolist(), *range(0, 1500, 100)]:
            assert explain(graph, ranking, page).templates == ()


def test_names_that_are_not_urls_have_no_templates() -> None:
    links = text_links(pages(A, 60))
    put(links, pages(A, 60), [GOAL, *box(A, "footer", 4)])
    graph, found = templates(links)
    assert len(found) == 1
    sources = graph.in_links_of(graph.page(GOAL))
    parts = np.full(sources.size, 1 / sources.size)
    hosts_only = Names.of(name.removeprefix("https://") for name in graph.names or ())
    for names in (None, hosts_only):
        bare = Graph(graph.indptr, graph.indices, names=names)
        assert find_templates(bare, graph.page(GOAL), sources, parts) == []


def test_an_explanation_counts_a_template_once_and_sums_to_one() -> None:
    urls = pages(A, 200)
    links = text_links(urls)
    put(links, urls[:150], [GOAL, *box(A, "footer", 4)])
    put(links, urls[150:170], [GOAL])
    put(links, [GOAL], [urls[0]])
    why = explained(links)
    (group,) = why.templates
    assert (group.pages, len(group.shared_links), why.in_links) == (150, 5, 170)
    assert (len(why.links), why.other_pages) == (10, 10)
    assert {part.name for part in why.links} <= set(urls[150:170])
    whole = group.fraction + sum(part.fraction for part in why.links) + why.other_links + why.dangling + why.teleport
    assert whole == pytest.approx(1, abs=1e-9)
    assert why.without_templates is not None
    assert why.without_templates.links == 150
    assert why.to_dict()["without_templates"]["share"] < why.share


def test_two_links_to_a_page_count_twice() -> None:
    """As in surveys, where a page may have two URLs, and may link to itself."""
    graph = Graph(np.array([0, 3, 4, 5]), np.array([1, 1, 2, 1, 0], np.int32), names=Names.of([A, B, C]))
    why = explain(graph, pagerank(graph, tolerance=1e-12), B)
    assert why.in_links == 3
    assert {(part.name, part.links, part.out_links) for part in why.links} == {(A, 2, 3), (B, 1, 1)}
    assert sum(part.fraction for part in why.links) + why.teleport == pytest.approx(1, abs=1e-9)
    owners, goals = graph.distinct_links_from(np.arange(3))
    assert list(zip(owners.tolist(), goals.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 1), (2, 0)]


word = st.text("ahtps:/.", max_size=14)


@given(st.lists(st.one_of(word, word.map("http://{}".format), word.map("https://{}".format))))
def test_hosts_of_urls(names: list[str]) -> None:
    at, hosts = hosts_of(Names.of(names))
    for name, number in zip(names, at.tolist(), strict=True):
        scheme, _, rest = name.partition("://")
        host = rest.split("/")[0] if scheme in ("http", "https") and "://" in name else ""
        assert (hosts[number] if number >= 0 else "") == host
    assert all(a < b for a, b in pairwise(hosts.offsets.tolist()))
