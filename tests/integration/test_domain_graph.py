"""The domain graph of a survey, at any moment, against sets made of all that the journal holds."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fake_web import Answers, Sites, Time, crawled, moved, page
from surveyor.crawler import domain_graph
from surveyor.crawler.domain_graph import DomainGraph
from surveyor.errors import UsageError
from surveyor.fetch.responses import LEFT
from surveyor.graph.condense import CondensedGraph, condense
from surveyor.graph.csr import Graph
from surveyor.graph.hosts_and_domains import Level
from surveyor.outcome import Visit
from surveyor.store.journal import Journal
from surveyor.survey.survey import Survey
from surveyor.web.suffixes import Suffixes

SUFFIXES = Suffixes()
HOSTS = ["a.org", "www.a.org", "b.org", "c.co.uk", "www.c.co.uk", "d.intern", "192.0.2.1"]
URLS = [f"http://{HOSTS[number % len(HOSTS)]}/{number}" for number in range(20)]


def ends_at(number: int, moves: dict[int, int]) -> int:
    """Follow moves, however many; who goes in circles stays."""
    seen, here = {number}, number
    while here in moves:
        here = moves[here]
        if here in seen:
            return number
        seen.add(here)
    return here


def from_scratch(urls: Sequence[str], visits: Sequence[Visit], to: str, *, nofollow: bool) -> CondensedGraph:
    """Make the whole page graph, each page where it lies now, and condense it."""
    last: dict[int, Visit] = {}
    for visit in visits:
        if visit.kind != "blocked" or visit.reason == LEFT:
            last[visit.page] = visit
    moves = {visit.page: visit.target for visit in last.values() if visit.kind == "redirected"}
    moves |= {visit.page: int(visit.out_of_scope[0]) for visit in last.values() if visit.kind == "blocked"}
    moves = {here: goal for here, goal in moves.items() if goal != here}
    final = [ends_at(number, moves) for number in range(len(urls))]
    links = set[tuple[int, int]]()
    for visit in last.values():
        if visit.kind == "fetched":
            goals = [*visit.links, *visit.out_of_scope, *(visit.nofollow if nofollow else ())]
            links |= {(visit.page, final[int(goal)]) for goal in goals}
    kept = sorted(set(final))  # a page that moved is no more
    number = {old: new for new, old in enumerate(kept)}
    ends = np.array([(number[a], number[b]) for a, b in sorted(links)], np.int64).reshape(-1, 2)
    graph = Graph.from_arrays(ends[:, 0], ends[:, 1], len(kept), [urls[old] for old in kept])
    made = condense(graph, "hosts" if to == "hosts" else "domains", suffixes=SUFFIXES)
    of = made.site_of[[number[old] for old in final]]
    return CondensedGraph(made.graph, of, np.bincount(of, minlength=made.graph.pages), made.level, made.without_suffix)


def same(one: CondensedGraph, two: CondensedGraph) -> None:
    assert one.graph == two.graph
    assert one.site_of.tolist() == two.site_of.tolist()
    assert one.sizes.tolist() == two.sizes.tolist()
    assert (one.level, one.without_host, one.without_suffix) == (two.level, two.without_host, two.without_suffix)


def ids(*pages: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(pages, np.int32)


@st.composite
def visits(draw: st.DrawFn) -> Visit:
    number = st.integers(0, len(URLS) - 1)
    some = st.lists(number, max_size=4).map(lambda pages: ids(*pages))
    here, kind = draw(number), draw(st.sampled_from(["fetched"] * 5 + ["redirected", "left", "gone", "blocked"]))
    if kind == "fetched":
        return Visit(here, "fetched", draw(some), out_of_scope=draw(some), nofollow=draw(some))
    if kind == "redirected":
        return Visit(here, "redirected", target=draw(number))
    if kind == "left":
        return Visit(here, "blocked", reason=LEFT, out_of_scope=ids(draw(number)))
    return Visit(here, "gone") if kind == "gone" else Visit(here, "blocked", reason="robots")


@given(
    st.lists(st.lists(visits(), max_size=8), max_size=6),
    st.sampled_from(["domains", "hosts"]),
    st.booleans(),
    st.sampled_from([1, 10, 1 << 20]),
)
@settings(max_examples=60, deadline=None, phases=[Phase.reuse, Phase.generate])  # shrinking takes minutes
@pytest.mark.slow
def test_a_snapshot_matches_the_journal_at_any_time(
    batches: list[list[Visit]], to: Level, nofollow: bool, run: int
) -> None:
    kept = DomainGraph(to, SUFFIXES, nofollow=nofollow)
    done: list[Visit] = []
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(domain_graph, "RUN", run)
        with closing(Journal.open(Path(folder) / "journal.sqlite", create=True)) as journal:
            for number, batch in enumerate(batches):
                journal.commit(batch, [f"http://new{number}.com/", f"http://a.org/new{number}"] if number else URLS)
                done += batch
                kept.catch_up(journal)
                same(kept.snapshot(), from_scratch(list(journal.urls()), done, to, nofollow=nofollow))


def web(chance: random.Random) -> dict[str, Answers]:
    """Pages of several domains with links, redirects near and far, and nofollow links."""
    names = [f"http://{chance.choice(HOSTS[:5])}/{number}" for number in range(60)]
    answers: dict[str, Answers] = {}
    for number, name in enumerate(names):
        far = [f"http://{chance.choice('xyz')}.example.net/{chance.randrange(5)}" for _ in range(2)]
        if number > 2 and chance.random() < 0.25:
            answers[name] = moved(name, chance.choice([*names, *far]))
        else:
            extra = f'<a rel=nofollow href="http://nofollow{number % 3}.com/">x</a>'
            answers[name] = page(name, *chance.sample(names, 4), *far, extra=extra)
    return answers


@pytest.mark.parametrize("nofollow", [False, True])
def test_a_crawl_and_its_domains(tmp_path: Path, nofollow: bool) -> None:
    answers = web(random.Random(5))  # noqa: S311
    seeds = [url for url in answers if url.startswith("http://www.a.org/")][:2]
    kept, path = DomainGraph(suffixes=SUFFIXES, nofollow=nofollow), tmp_path / "a.survey"
    sizes = []
    for pages in (1, 4, 9, 1000):
        crawled(path, seeds, Sites(Time(), answers), until=f"pages={pages}", scope="domain")
        with Survey(path) as survey:
            kept.catch_up(survey.journal)
            now = kept.snapshot()
            journal = survey.journal
            expected = from_scratch(list(journal.urls()), list(journal.visits()), "domains", nofollow=nofollow)
            same(now, expected)
            same(survey.domain_graph(suffixes=SUFFIXES, nofollow=nofollow), expected)
            sizes.append(now.graph.links)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert now.graph.names is not None
    names = list(now.graph.names)
    assert {"a.org", "b.org", "example.net"} <= set(names)
    some = now.graph.names.id_of("nofollow0.com")  # it is known, whether links to it count or not
    assert bool(now.graph.in_links_of(some).size) == nofollow
    assert now.graph.provenance["visits"] == kept.position


def test_a_journal_whose_past_changed_is_read_from_its_beginning(tmp_path: Path) -> None:
    kept = DomainGraph(suffixes=SUFFIXES)
    with closing(Journal.open(tmp_path / "journal.sqlite", create=True)) as journal:
        journal.commit([Visit(0, "fetched", ids(2)), Visit(2, "fetched", ids(3))], URLS)
        kept.catch_up(journal)
        assert kept.snapshot().graph.links == 2
        journal.delete_host("a.org", [0])
        kept.catch_up(journal)
        assert kept.snapshot().graph.links == 1


def test_links_follow_pages_that_move_later() -> None:
    kept = DomainGraph(suffixes=SUFFIXES)
    kept.add_urls(["http://a.org/", "http://a.org/out", "http://b.org/"])
    kept.observe(Visit(0, "fetched", ids(1)))
    assert kept.snapshot().graph.links == 0
    kept.observe(Visit(1, "blocked", reason=LEFT, out_of_scope=ids(2)))
    now = kept.snapshot()
    assert now.site_of.tolist() == [0, 1, 1]
    assert now.graph.links_of(0).tolist() == [1]
    kept.observe(Visit(0, "redirected", target=2), Visit(0, "fetched", ids(1)))
    now = kept.snapshot()  # nothing is left on a.org
    assert now.graph.names is not None
    assert list(now.graph.names) == ["b.org"]
    assert now.graph.links == 0


def test_observe_needs_the_replaced_visit() -> None:
    kept = DomainGraph()
    kept.add_urls(["http://a.org/", "http://b.org/"])
    kept.observe(Visit(0, "fetched", ids(1)))
    with pytest.raises(UsageError, match="page 0 was fetched before"):
        kept.observe(Visit(0, "fetched"))


def test_before_anything_is_known() -> None:
    assert repr(DomainGraph("hosts").snapshot()) == "CondensedGraph(0 hosts of 0 pages, 0 links)"
