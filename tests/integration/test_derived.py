"""State derived from a journal, compared with slow reference constructions; and resumed surveys."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_web import Answers, Sites, Time, begun, crawled, moved, page, rules
from ledger_histories import Crawl, Event, new_crawl
from slow_cases import one_in, pairs
from surveyor.config import Settings
from surveyor.crawler.queues import HostQueues, SingleQueue
from surveyor.crawler.replay import Derived, derive, save, scope_of, to_graph
from surveyor.crawler.seed_pages import clean_seeds
from surveyor.crawler.start import folder_for, start
from surveyor.errors import UsageError
from surveyor.fetch.event_loops import run_sync
from surveyor.fetch.http import Fetched
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.outcome import Outcome
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey
from surveyor.web.urls import host, origin

STRATEGIES = [
    "breadth",
    "rankmass",
    "windowed",
    "sweep",
    "printed",
    "opic",
    "adaptive",
    "tracking",
    "cho",
    "outlinks",
    "random",
]
SEEDS = ["http://a.example/0", "http://b.example/1"]


def web(seed: int, pages: int = 40) -> dict[str, Answers]:
    """Pages of three hosts with links, redirects, aliases, errors and rules; all random."""
    chance = random.Random(seed)  # noqa: S311
    names = [f"http://{'abc'[number % 3]}.example/{number}" for number in range(pages)]
    answers: dict[str, Answers] = {**rules("http://c.example", "User-agent: *\nDisallow: /5\nCrawl-delay: 3")}
    for number, name in enumerate(names):
        links = chance.sample(names, 5) + chance.sample(["http://out.example/", f"{name}?x", "/8", "/nowhere"], 2)
        kind = chance.choice(["page"] * 8 + ["moved", "canonical", "busy", "gone"]) if number > 1 else "page"
        if kind == "moved":
            answers[name] = moved(name, chance.choice(names))
        elif kind == "canonical":
            answers[name] = page(name, extra=f'<link rel=canonical href="{names[(number + 3) % pages]}">')
        elif kind == "busy":
            answers[name] = Fetched(name, 503)
        elif kind == "page":
            extra = f'<a rel=nofollow href="{chance.choice(names)}">x</a>'
            answers[name] = page(name, *links, extra=extra, etag=f'"{number}"')
    return answers


def sites(seed: int = 1, **more: Answers) -> Sites:
    return Sites(Time(), {**web(seed), **more})


def same(one: Derived, two: Derived) -> None:
    """Compare everything; room that was set aside does not count."""
    size = len(one.urls)
    assert one.urls.added(0) == two.urls.added(0)
    every = np.arange(size, dtype=np.int32)
    assert np.array_equal(one.urls.canonical(every), two.urls.canonical(every))
    known = min(size, one.crawl.ledger.capacity, two.crawl.ledger.capacity)
    for name in ("residual", "settled", "state"):
        mine, its = getattr(one.crawl.ledger.mass, name), getattr(two.crawl.ledger.mass, name)
        assert np.array_equal(mine[:known], its[:known])
        assert not mine[known:].any()
        assert not its[known:].any()
    assert one.crawl.ledger.coverage() == two.crawl.ledger.coverage()
    for number in range(size):
        assert one.crawl.graph.links_of(number).tolist() == two.crawl.graph.links_of(number).tolist()
    waits = [state.crawl.frontier.queued() for state in (one, two)]
    assert waits[0].pages.tolist() == waits[1].pages.tolist()
    assert waits[0].priorities.tolist() == waits[1].priorities.tolist()
    assert (one.tally.pages, one.tally.bytes) == (two.tally.pages, two.tally.bytes)


def derived(path: Path, *, checkpoint: bool = True) -> Derived:
    with SurveyFolder.open(path, write=False) as folder:
        return derive(folder, watch=None if checkpoint else lambda _state, _outcome: None)


# --- replay and checkpoint ---


@pytest.mark.parametrize("strategy", one_in(3, STRATEGIES))
def test_a_replay_is_the_same_with_and_without_a_checkpoint(tmp_path: Path, strategy: str) -> None:
    path, client = tmp_path / "a.survey", sites()
    for pages in (3, 8):
        crawled(path, SEEDS, client, strategy=strategy, until=f"pages={pages}", scope="any")
        assert (path / "checkpoint").is_dir()
        same(derived(path), derived(path, checkpoint=False))
    shutil.copytree(path / "checkpoint", tmp_path / "kept")
    crawled(path, SEEDS, client, strategy=strategy, until="pages=14", scope="any")
    shutil.rmtree(path / "checkpoint")
    shutil.copytree(tmp_path / "kept", path / "checkpoint")  # an earlier one: what came since is replayed
    with SurveyFolder.open(path, write=False) as folder:
        kept = folder.load_checkpoint()
        assert kept is not None
        assert 0 < kept.position < folder.journal.position
    same(derived(path), derived(path, checkpoint=False))
    same(derived(path), derived(path))


@pytest.mark.parametrize("strategy", ["rankmass", "opic", "breadth"])
@pytest.mark.slow
def test_interrupted_or_not_the_same_pages_are_read_each_once(tmp_path: Path, strategy: str) -> None:
    whole, parts = sites(2), sites(2)
    crawled(tmp_path / "whole", SEEDS, whole, strategy=strategy, scope="any")
    for pages in (1, 2, 3, 5, 8, 13, 1000):
        crawled(tmp_path / "parts", SEEDS, parts, strategy=strategy, scope="any", until=f"pages={pages}")
    reads: list[dict[str, str]] = []
    for name in ("whole", "parts"):
        with SurveyFolder.open(tmp_path / name, write=False) as folder:
            visits = [(folder_url, visit.kind) for _, folder_url, visit in folder.pages() if visit]
            reads.append(dict(visits))
            assert len(visits) == folder.journal.position  # none twice
    assert reads[0] == reads[1]


def test_a_resumed_survey_stays_polite_for_any_page_ids(tmp_path: Path) -> None:
    """Seeds that were added later have other numbers than those of a new survey: each page must keep its host."""
    path, client = tmp_path / "a.survey", sites(3)
    crawled(path, SEEDS[:1], client, scope="any", until="pages=3")
    crawled(path, [*SEEDS, "http://c.example/2"], client, until="pages=5")
    crawled(path, SEEDS, client, until="pages=7")
    crawled(path, SEEDS, client)
    last: dict[str, float] = {}
    for url, at in client.log:
        pause = 3.0 if host(url) == "c.example" else 1.0
        assert at - last.get(host(url), 0.0) >= pause + client.seconds - 1e-6
        last[host(url)] = at
    asked = [url for url, _ in client.log if not url.endswith("/robots.txt")]
    fine = [url for url in asked if isinstance(result := client.answers.get(url), Fetched) and result.status == 200]
    assert len(fine) == len(set(fine))


def test_queues_of_hosts_hold_what_one_queue_holds(tmp_path: Path) -> None:
    path, client = tmp_path / "a.survey", sites()
    crawled(path, SEEDS, client, scope="any", until="pages=6")
    with SurveyFolder.open(path, write=False) as folder:
        hosts = Hosts(1.0, clock=client.time)
        made = derive(folder, lambda pages, urls: HostQueues(pages, hosts, urls.__getitem__))
        same(made, derive(folder))
        waiting = made.crawl.frontier.queued().pages.tolist()
        assert waiting
        assert len(made.crawl.frontier) == len(waiting)
        assert {hosts[number].name for number in range(len(hosts))} >= {host(made.urls[one]) for one in waiting}


def test_whoever_watches_sees_every_state(tmp_path: Path) -> None:
    path = tmp_path / "a.survey"
    crawled(path, SEEDS, sites(), scope="any", until="pages=9")
    seen = []
    with SurveyFolder.open(path, write=False) as folder:
        state = derive(folder, watch=lambda state, outcome: seen.append((outcome, state.crawl.ledger.read)))
        assert [outcome for outcome, _ in seen] == list(folder.journal.outcomes())
    assert seen[-1][1] == state.tally.pages == 9


def test_who_looks_sees_what_the_crawl_said_when_it_ended(tmp_path: Path) -> None:
    path, seen = tmp_path / "a.survey", []
    for until in ("pages=6", "pages=1000"):
        crawled(path, SEEDS, sites(), scope="any", until=until, watch=lambda run, _outcome: seen.append(run))
        with Survey(path) as survey:
            assert survey.coverage == seen[-1].state.crawl.ledger.coverage()
        same(derived(path), derived(path, checkpoint=False))


def test_a_limit_of_depth_is_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.survey"
    crawled(path, SEEDS, sites(), depth=1)
    assert not (path / "checkpoint").exists()
    with SurveyFolder.open(path) as folder:
        assert not save(folder, derive(folder))
    same(derived(path), derived(path))


# --- the graph ---


def slow_graph(path: Path, *, crawled_only: bool) -> tuple[list[str], list[tuple[int, int]], list[float]]:
    with SurveyFolder.open(path, write=False) as folder:
        names = list(folder.journal.urls())
        seeds = [names.index(seed) for seed in folder.manifest.seeds]
        model: Crawl = new_crawl(seeds)
        for outcome in folder.journal.outcomes():
            model.happen(Event(outcome.kind, outcome.page, tuple(outcome.links.tolist()), outcome.target))
    wanted = [one for one in sorted(model.life) if model.life[one] != "alias"]
    if crawled_only:
        wanted = [one for one in wanted if model.life[one] == "fetched"]
    number = {one: place for place, one in enumerate(wanted)}
    links = [
        (number[one], number[goal])
        for one in wanted
        for link in model.links.get(one, [])
        if (goal := model.stands_for(link)) in number
    ]
    jumps = [0.0] * len(wanted)
    for seed in seeds:
        if (goal := model.stands_for(seed)) in number:
            jumps[number[goal]] += 1.0
    total = sum(jumps)
    return [names[one] for one in wanted], sorted(links), [j / total if total else 1 / len(wanted) for j in jumps]


@pytest.mark.parametrize(("seed", "crawled_only"), pairs(range(4), [False, True]))
def test_the_graph_is_what_was_fetched_with_aliases_merged(tmp_path: Path, seed: int, crawled_only: bool) -> None:
    path, client = tmp_path / "a.survey", sites(seed)
    client.answers = {**client.answers, SEEDS[1]: moved(SEEDS[1], "http://a.example/3")}
    for pages in (1, 4, 1000):
        crawled(path, SEEDS, client, scope="any", until=f"pages={pages}")
        found = to_graph(derived(path), crawled_only=crawled_only)
        names, links, jumps = slow_graph(path, crawled_only=crawled_only)
        state = derived(path)
        assert [state.urls[one] for one in found.pages.tolist()] == names
        sources = np.repeat(np.arange(len(names)), np.diff(found.graph.indptr))
        assert list(zip(sources.tolist(), found.graph.indices.tolist(), strict=True)) == links
        assert found.teleport.tolist() == pytest.approx(jumps)
        life = {one: state.crawl.ledger.state[one] & 7 for one in found.pages.tolist()}
        assert found.read.tolist() == [life[one] == 2 for one in found.pages.tolist()]


def test_a_survey_that_has_not_begun_has_its_seeds(tmp_path: Path) -> None:
    begun(tmp_path / "a.survey", SEEDS)[0].close()
    state = derived(tmp_path / "a.survey")
    assert to_graph(state).graph.indptr.tolist() == [0, 0, 0]
    assert to_graph(state).teleport.tolist() == [0.5, 0.5]
    assert to_graph(state, crawled_only=True).graph.indptr.tolist() == [0]


def test_two_addresses_of_one_page_are_two_links_to_it(tmp_path: Path) -> None:
    home, one, two = SEEDS[0], "http://a.example/one", "http://a.example/two"
    client = Sites(Time(), {home: page(home, one, two), one: moved(one, two), two: page(two, home)})
    crawled(tmp_path / "a.survey", [home], client, scope="host")
    found = to_graph(derived(tmp_path / "a.survey"))
    assert found.graph.indptr.tolist() == [0, 2, 3]
    assert found.graph.indices.tolist() == [1, 1, 0]


def test_urls_out_of_scope_need_no_room_in_the_graph(tmp_path: Path) -> None:
    path, home = tmp_path / "a.survey", SEEDS[0]
    others = [f"http://h{number}.example/" for number in range(3_000)]
    crawled(path, [home], Sites(Time(), {home: page(home, *others)}), scope="host")
    for checkpoint in (True, False):
        found = to_graph(derived(path, checkpoint=checkpoint))
        assert found.pages.tolist() == [0]
        assert found.teleport.tolist() == [1.0]


# --- creating and resuming ---


def test_seeds_are_spelt_in_one_way() -> None:
    assert clean_seeds("Example.org") == ["https://example.org/"]
    assert clean_seeds(["http://a.example", " http://a.example/#x ", "[::1]:80/x"]) == [
        "http://a.example/",
        "http://[::1]/x",
    ]
    assert clean_seeds(["localhost", "foo/", "foo:80", "http://foo"]) == [
        "http://localhost/",
        "https://foo/",
        "https://foo:80/",
        "http://foo/",
    ]
    for wrong in ("", "mailto:me", "http://", "http://a b/", "ftp://a.example/", "foo", " foo-bar "):
        with pytest.raises(UsageError, match="not an http or https URL"):
            clean_seeds([wrong])
    with pytest.raises(UsageError, match="a seed must be a URL, got 3"):
        clean_seeds([3])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="no seeds"):
        clean_seeds([])


def test_a_folder_is_named_after_the_first_host_and_a_fresh_one_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [folder_for([url], None).name for url in ("https://a.example:8080/", "http://[::1]:8080/")]
    assert names == ["a.example_8080.survey", "1_8080_02f9113511.survey"]
    for out in (None, "a.example.survey", "plain", tmp_path / "deep" / "x.survey"):
        path = folder_for(["https://a.example/"], out)
        assert folder_for(["https://a.example/"], out, fresh=True) == path  # not in use yet
        path.mkdir(parents=True, exist_ok=True)
        second = folder_for(["https://a.example/"], out, fresh=True)
        assert second.name == path.name.replace(".survey", "") + "-2" + ".survey" * (".survey" in path.name)
        second.mkdir()
        assert "-3" in folder_for(["https://a.example/"], out, fresh=True).name
        second.rmdir()
        path.rmdir()


def test_settings_stay_until_others_are_given(tmp_path: Path) -> None:
    path = tmp_path / "a.survey"

    def opened(seeds: list[str], **given: Any) -> tuple[SurveyFolder, Settings]:
        return start(path, seeds, Settings(**given), dict.fromkeys(given, "--flag"), add_seeds=True)

    with opened(SEEDS[:1], delay=2.5, exclude=("*/x",), contact="me@example.org", headers={"X-A": "b"})[0] as folder:
        assert folder.manifest.origins["delay"] == "--flag"
        assert folder.manifest.origins["strategy"] == "default"
        assert "headers" not in folder.manifest.settings  # secrets are not kept
        rng = folder.manifest.rng
    folder, settings = opened(SEEDS[1:], until="pages=5", rng=rng)
    with folder:
        assert (settings.delay, settings.exclude, settings.until) == (2.5, ("*/x",), "pages=5")
        assert folder.manifest.seeds == tuple(SEEDS)
        assert (folder.manifest.origins["until"], folder.manifest.origins["delay"]) == ("--flag", "--flag")
        assert [event.kind for event in folder.journal.events()] == ["scope_changed", "settings_changed"]
    with opened([])[0] as folder:
        assert len(list(folder.journal.events())) == 2  # nothing is new
        assert folder.manifest.settings["until"] == "pages=5"
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"rng": rng + 1}, f"--rng {rng}"),
        ({"strategy": "x"}, "unknown strategy"),
        ({"until": "pages=x"}, "pages"),
        ({"include": ("re:(",)}, "regular expression"),
    ]
    for wrong, problem in mistakes:
        with pytest.raises(UsageError, match=problem):
            opened([], **wrong)
    opened([])[0].close()  # it was closed each time, and is as it was


def test_another_goal_strategy_seed_or_scope(tmp_path: Path) -> None:
    path, client = tmp_path / "a.survey", sites(4)
    assert crawled(path, SEEDS[:1], client, scope="host", until="pages=2") == "reached"
    assert derived(path).tally.pages == 2
    crawled(path, SEEDS[:1], client, until="pages=4", strategy="breadth")
    same(derived(path), derived(path, checkpoint=False))
    crawled(path, SEEDS[:1], client)
    asked = len(client.log)
    assert {origin(url) for url, _ in client.log} == {"http://a.example"}
    few = derived(path)
    crawled(path, SEEDS[:1], client, scope="any", exclude=("*/8", "out.example/*"))
    many = derived(path)
    assert many.crawl.ledger.known > few.crawl.ledger.known
    assert many.tally.pages > few.tally.pages
    later = [url for url, _ in client.log[asked:]]
    assert {origin(url) for url in later} >= {"http://b.example", "http://c.example"}
    assert not [url for url in later if url.endswith("/8")]
    same(many, derived(path, checkpoint=False))
    read = [
        url for url, _ in client.log if isinstance(result := client.answers.get(url), Fetched) and result.status == 200
    ]
    assert max(map(read.count, read)) == 1  # a wider scope reads nothing again
    with SurveyFolder.open(path, write=False) as folder:
        scope = scope_of(folder.manifest)
        for visit in folder.journal.visits():
            judged = many.reader.judged(visit)
            assert all(scope.admits(many.urls[link]) for link in judged.links.tolist())
    crawled(path, SEEDS, client, scope="host")
    same(derived(path), derived(path, checkpoint=False))
    waiting = derived(path).crawl.ledger.waiting.tolist()
    assert all(host(many.urls[one]) in ("a.example", "b.example") for one in waiting)


def test_a_crawl_can_be_run_where_a_loop_runs_already() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    async def notebook() -> int:
        return run_sync(work())

    assert asyncio.run(notebook()) == run_sync(work()) == 7


def test_a_checkpoint_is_used_also_after_seeds_were_added(tmp_path: Path) -> None:
    """A checkpoint that is passed over costs only time, so nothing else would notice."""
    from surveyor.crawler.replay import _from_checkpoint

    settings = Settings(contact="me@example.org", scope="any", rng=1)
    for seeds in (["http://a.example/"], ["http://b.example/"]):
        folder, _ = start(tmp_path / "a.survey", seeds, settings, {}, add_seeds=True)
        with folder:
            urls = ["http://a.example/", "http://c.example/", "http://b.example/"][folder.journal.url_count :]
            folder.commit([Outcome(0, "fetched", np.array([1], np.int32))], urls)
            assert save(folder, derive(folder))
            kept = _from_checkpoint(folder, lambda pages, _: SingleQueue(pages), None, code=False)
            assert kept is not None
            assert kept[1] == folder.journal.position
            assert [kept[0].urls[page] for page in kept[0].crawl.ledger.seeds.tolist()] == list(folder.manifest.seeds)
