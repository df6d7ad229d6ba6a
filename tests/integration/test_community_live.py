"""A community that is read live reads what a simulation reads, keeps what it has, and leaves its base alone."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from community_crawls import CALM, ROUGH, Around
from crash_recovery import Image, difference, rows
from surveyor.config import Settings
from surveyor.crawler import session as live
from surveyor.errors import UsageError
from surveyor.estimate.community.beginning import begin, extra_pages, folder_for, terms_of
from surveyor.estimate.community.copied import Copy
from surveyor.estimate.community.known_graph import Plan, expand
from surveyor.estimate.community.live import Crawled
from surveyor.graph.csr import Graph
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey
from surveyor.web.urls import host


def by_round(pages: Any, batch: Any) -> list[set[int]]:
    """Return the pages of each round."""
    return [set(pages[batch == number].tolist()) for number in range(1, int(batch.max(initial=0)) + 1)]


def rounds_of(done: Crawled) -> list[set[int]]:
    expanded = done.expanded()
    assert sorted(expanded.extra.tolist()) == sorted(done.asked.tolist())
    of = dict(zip(expanded.known.pages.tolist(), expanded.batch_of.tolist(), strict=True))
    return by_round(done.asked, np.array([of[page] for page in done.asked.tolist()]))


def urls_of(path: Path) -> list[str]:
    with SurveyFolder.open(path, write=False) as folder:
        return list(folder.journal.urls())


# --- the same as a simulation ---


@pytest.mark.parametrize("select", ["complement", "flow"])
@pytest.mark.parametrize("concurrency", [1, 5])
def test_live_is_simulated(tmp_path: Path, select: str, concurrency: int) -> None:
    """Round by round the same pages, whatever the order of answers; of pages that are gone, others take the place."""
    around = Around(CALM, concurrency=concurrency, seed=concurrency)
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    done = around.community(base, out, extra="2n", select=select)
    with Survey(out) as survey:
        seed = int(np.random.default_rng(survey.manifest.rng).integers(2**62))
        strategy = survey.manifest.settings["strategy"]
    truth, urls = around.web.truth(), urls_of(out)
    number = {url: page for page, url in enumerate(urls)}
    for url in truth.urls:
        number.setdefault(url, len(number))
    new = np.array([number[url] for url in truth.urls])
    sources = new[np.repeat(np.arange(truth.graph.pages), np.diff(truth.graph.indptr))]
    graph = Graph.from_arrays(sources, new[truth.graph.indices], nodes=len(number))
    gone = np.zeros(len(number), np.bool_)
    gone[[number[url] for url in truth.urls if truth.status(url) == "gone"]] = True
    batch = int(strategy.partition("batch=")[2].partition(",")[0])
    plan = Plan(done.asked.size, select, batch, seed=seed)  # type: ignore[arg-type]
    found = expand(graph, done.local, plan, start=np.arange(done.terms.start, dtype=np.int32), gone=gone)
    of = dict(zip(found.known.pages.tolist(), found.batch_of.tolist(), strict=True))
    simulated = by_round(found.extra, np.array([of[page] for page in found.extra.tolist()]))
    assert len(simulated) >= 20
    assert rounds_of(done) == simulated
    assert done.asked.size == 2 * done.terms.local > done.read.size  # some were gone
    mine = done.expanded()
    assert np.abs(mine.expansion.local_ranks() - found.expansion.local_ranks()).sum() <= 2e-6
    assert [(one.read, one.asked) for one in mine.rounds] == [(one.read, one.asked) for one in found.rounds]


def test_which_pages_are_read_does_not_depend_on_timing(tmp_path: Path) -> None:
    """But for ties, which are broken by numbers of pages, and these by the order of answers."""
    read = []
    for seed in (1, 2, 3):
        around = Around(ROUGH, concurrency=6, seed=seed)
        here = tmp_path / str(seed)
        here.mkdir()
        done = around.community(around.base(here / "base.survey"), here / "around.survey", extra="n")
        urls = urls_of(here / "around.survey")
        read.append({urls[page] for page in done.asked.tolist()})
    assert all(len(one & other) >= 0.7 * len(one) for one in read for other in read)


# --- what it begins with ---


def test_it_begins_with_what_was_read(tmp_path: Path) -> None:
    around = Around(ROUGH, options={"exclude": ("*/print/*",)})
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    with SurveyFolder.open(base, write=False) as folder:
        last = {url: visit for _, url, visit in folder.pages() if visit is not None}
        names = list(folder.journal.urls())
    asked = len(around.client.asked)
    done = around.community(base, out, extra=0)
    assert len(around.client.asked) == asked
    assert (done.ending, done.asked.size, done.remark) == ("spent", 0, "")
    with SurveyFolder.open(out, write=False) as folder:
        terms, manifest = terms_of(folder), folder.manifest
        visits, urls = list(folder.journal.visits()), list(folder.journal.urls())
        robots = folder.journal.robots(around.web.seeds[0].rstrip("/"))
    assert terms is not None
    read = [url for url, visit in last.items() if visit.kind == "fetched"]
    assert sorted(urls[: terms.local]) == sorted(read)
    assert terms.local == terms.read == len(read) > 5
    assert terms.start == len(visits) == len({visit.page for visit in visits})
    assert {visit.kind for visit in visits} >= {"fetched", "gone", "redirected"}
    assert manifest.settings["scope"] == "any"
    assert manifest.settings["exclude"] == ["*/print/*"]
    assert (manifest.settings["contact"], manifest.settings["delay"], manifest.rng) == ("me@example.org", 0.0, 5)
    assert manifest.seeds == tuple(around.web.seeds[:1])
    assert robots is None or robots.status > 0
    outside = 0
    for visit in visits:
        before = last[urls[visit.page]]
        ours = {urls[page] for page in np.concatenate([visit.links, visit.out_of_scope]).tolist()}
        theirs = {names[page] for page in np.concatenate([before.links, before.out_of_scope]).tolist()}
        assert ours == theirs or before.reason == "redirects out of the scope"
        assert visit.warc is None
        assert (visit.fetched_at, visit.hash, visit.title) == (before.fetched_at, before.hash, before.title)
        outside += sum(host(urls[page]) != host(urls[0]) for page in visit.links.tolist())
    assert outside > 0  # links that left the scope of the base belong here


def test_only_local_pages_count_as_read_if_asked_for(tmp_path: Path) -> None:
    around = Around(CALM)
    base = around.base(tmp_path / "base.survey", scope="any", until="pages=80")
    rule = f"host:{host(around.web.seeds[0])}"
    every = around.community(base, tmp_path / "all.survey", local=rule, extra=0)
    alone = around.community(base, tmp_path / "local.survey", local=rule, extra=0, start="local")
    assert every.terms.local == alone.terms.local == alone.terms.read < every.terms.read == 80
    ranks = every.expanded().expansion.local_ranks(), alone.expanded().expansion.local_ranks()
    assert np.abs(ranks[0] - ranks[1]).sum() > 0.01


def test_the_base_is_only_read(tmp_path: Path) -> None:
    around = Around(ROUGH)
    base = around.base(tmp_path / "base.survey")
    before = {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}
    around.community(base, tmp_path / "around.survey", extra="n")
    after = {path: path.read_bytes() for path in base.rglob("*") if path.is_file() and path.suffix != ".sqlite-shm"}
    assert {path: after[path] for path in before} == before


def test_it_is_made_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    with monkeypatch.context() as patch:
        patch.setattr(Copy, "_waits", lambda _: 1 / 0)  # when all visits are written
        with pytest.raises(ZeroDivisionError):
            around.community(base, out)
    assert [path.name for path in tmp_path.iterdir()] == ["base.survey"]


def test_what_hosts_asked_for_holds(tmp_path: Path) -> None:
    """A host is left alone that asked for it, and one whose pages were deleted is never asked again."""
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey", scope="any", until="pages=100"), tmp_path / "around.survey"
    ours, *others = dict.fromkeys(host(url) for url in urls_of(base))
    until = around.clock.now + 500.0
    with SurveyFolder.open(base) as folder:
        folder.note("backoff", host=others[0], until=until - 400, why="Retry-After")
        folder.note("backoff", host=others[0], until=until, why="Retry-After")
        assert folder.delete_host(others[1]) > 0
    around.web.log.clear()
    around.options |= {"patient": True}  # to wait for the host at the end
    around.community(base, out, local=f"host:{ours}", extra=60)
    asked = {request.host: request.time for request in reversed(around.web.log)}
    assert asked[others[0]] >= until
    assert others[1] not in asked


# --- going on ---


def images_of(around: Around, base: Path, here: Path, every: int, **wish: Any) -> list[Image]:
    """Crawl into `a.survey` without a break; keep the disk as it is after some commits."""
    images: list[Image] = []
    count = iter(range(1 << 20))

    def keep(folder: SurveyFolder) -> None:
        if next(count) % every == 0:
            images.append(around.image(folder, here / f"{len(images)}.survey"))

    around.community(base, here / "a.survey", after=keep, **wish)
    return images


@pytest.mark.parametrize("saves", [True, False], ids=["checkpoints", "journal alone"])
@pytest.mark.slow
def test_killed_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, saves: bool) -> None:
    """Whatever could not be read meanwhile: the rest is read as if nothing had happened."""
    around = Around(ROUGH)
    base = around.base(tmp_path / "base.survey")
    with monkeypatch.context() as patch:
        if saves:  # one between any two batches
            patch.setattr(live, "SAVE_EVERY", 0.0)
            patch.setattr(live, "SAVE_SHARE", 0.0)
        else:
            patch.setattr(live, "save", lambda *_: False)
        images = images_of(around, base, tmp_path, 19, extra="2n")
    assert sum((image.folder / "checkpoint").is_dir() for image in images[1:]) == saves * len(images[1:])
    expected = rows(tmp_path / "a.survey")
    start = next(row[1] for row in expected["events"] if row[3] == "community")
    kinds = {(row[2], row[6] is not None) for row in expected["visits"][start:]}
    assert kinds >= {("fetched", True), ("gone", True), ("blocked", True), ("blocked", False), ("redirected", True)}
    assert len(images) > 5
    for image in images:
        around.go_back(image)
        around.community(base, image.folder, extra="2n")
        assert difference(expected, rows(image.folder)) == ""
        shutil.rmtree(image.folder)


def test_stopped_in_good_order(tmp_path: Path) -> None:
    around = Around(CALM, concurrency=3)
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    see, count = around._see, iter(range(1 << 20))

    def stop(now: live.Run, _outcome: object) -> None:
        see(now, _outcome)
        if _outcome is None:  # time goes by: another task
            return
        if next(count) == 20 and (task := asyncio.current_task()) is not None:
            task.cancel()

    around._see = stop  # type: ignore[method-assign]
    first = around.community(base, out, extra="2n")
    assert (first.ending, first.remark) == ("interrupted", "")
    assert 0 < first.asked.size < 2 * first.terms.local
    second = around.community(base, out)
    assert (second.ending, second.asked.size) == ("spent", 2 * first.terms.local)


def test_more_pages_go_on_from_those_there_are(tmp_path: Path) -> None:
    calm = replace(CALM, web=replace(CALM.web, dead=0.0))  # type: ignore[type-var]
    at_once, in_parts = Around(calm), Around(calm)
    here = [tmp_path / "1", tmp_path / "2"]
    bases = [one.base(path / "base.survey") for one, path in zip((at_once, in_parts), here, strict=True)]
    whole = at_once.community(bases[0], here[0] / "a.survey", extra="2n")
    first = in_parts.community(bases[1], here[1] / "a.survey", extra="0.7n")
    asked = len(in_parts.client.asked)
    again = in_parts.community(bases[1], here[1] / "a.survey")  # what was asked for is there
    assert len(in_parts.client.asked) == asked
    assert (first.ending, again.ending) == ("spent", "spent")
    assert again.asked.tolist() == first.asked.tolist()
    fewer = in_parts.community(bases[1], here[1] / "a.survey", extra=1)
    assert fewer.asked.size == first.asked.size
    second = in_parts.community(bases[1], here[1] / "a.survey", extra="2n")
    assert second.asked[: first.asked.size].tolist() == first.asked.tolist()
    assert second.asked.tolist() == whole.asked.tolist()
    assert whole.asked.size == 2 * whole.terms.local
    assert len(set(in_parts.client.asked)) == len(in_parts.client.asked)


def test_without_a_rule_a_community_is_gone_on_with(tmp_path: Path) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    first = around.community(base, out, extra=3)
    chosen = Settings(contact="me@example.org")
    with begin(out, extra=5, settings=chosen) as community:
        assert (community.is_new, community.extra, community.asked) == (False, 5, first.asked.size)
        assert community.warnings == ()
    with pytest.raises(UsageError, match="nothing says which pages are local"):
        begin(base, extra=5, settings=chosen)


def test_a_base_that_has_grown_is_told_of(tmp_path: Path) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey", until="pages=6"), tmp_path / "around.survey"
    around.community(base, out, extra=3)
    around.base(base, until="pages=9")
    with begin(base, "all", out=out) as community:
        (warning,) = community.warnings
        assert warning.startswith("base.survey has 3 more visits since around.survey was begun")
        assert community.terms.local == 6


# --- what cannot be done ---


def test_a_community_to_which_nothing_is_outside(tmp_path: Path) -> None:
    around = Around(replace(CALM, web=replace(CALM.web, dead=0.0)))  # type: ignore[type-var]
    base = around.base(tmp_path / "base.survey", scope="any")
    asked = len(around.client.asked)
    done = around.community(base, tmp_path / "around.survey")
    assert done.ending == "nothing"
    assert done.remark == "no page of all links to a page that is not read: there is nothing outside to learn from"
    assert len(around.client.asked) == asked
    assert done.expanded().extra.size == 0


def test_a_web_that_ends_before_the_budget_does(tmp_path: Path) -> None:
    around = Around(CALM)
    done = around.community(around.base(tmp_path / "base.survey"), tmp_path / "around.survey", extra=100_000)
    assert done.ending == "exhausted"
    assert done.remark == f"no page is left to ask for outside after {done.asked.size:,} of them"
    assert done.asked.size > 50


def test_it_ends_when_ranks_stand_still(tmp_path: Path) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    calm = around.community(base, out, extra="2n", still=0.5)
    assert (calm.ending, calm.remark) == ("still", "")
    assert len(calm.expanded().rounds) == 4  # the start, and three more
    whole = around.community(base, out, extra="2n")
    assert whole.ending == "spent"
    assert whole.asked[: calm.asked.size].tolist() == calm.asked.tolist()


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ({"extra": "-1"}, "'-1' is no number of extra pages"),
        ({"extra": "some"}, "'some' is no number of extra pages"),
        ({"extra": ""}, "'' is no number of extra pages"),
        ({"select": "best"}, "no selection 'best'"),
        ({"rounds": 0}, "rounds must be at least 1, not 0"),
        ({"start": "none"}, "no start from 'none'"),
        ({"local": "host:other.example"}, "no page of the 6 pages read in base.survey is local by host:other.example"),
    ],
)
def test_wishes_that_mean_nothing(tmp_path: Path, wish: dict[str, Any], problem: str) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey", until="pages=6"), tmp_path / "around.survey"
    with pytest.raises(UsageError) as caught:
        around.community(base, out, **wish)
    assert caught.value.problem == problem
    assert not out.exists()


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ({"local": "ids:0-3"}, "was begun with --local all"),
        ({"select": "flow"}, "was begun with --select complement"),
        ({"rounds": 3}, "was begun with rounds of 4 %"),
        ({"local": ["https://other.example/"]}, "was begun with another list of local pages"),
    ],
)
def test_another_community_than_was_begun(tmp_path: Path, wish: dict[str, Any], problem: str) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey", until="pages=6"), tmp_path / "around.survey"
    around.community(base, out, extra=0)
    with pytest.raises(UsageError, match=problem):
        around.community(base, out, **wish)
    with pytest.raises(UsageError, match="is a survey, but no community"):
        around.community(base, base)


def test_words_for_extra_pages_and_folders() -> None:
    assert [extra_pages(word, 30) for word in ("2n", "n", "0.5N", ".1n", "1,500", 7)] == [60, 30, 15, 3, 1500, 7]
    path = Path("a/docs.example.org.survey")
    assert folder_for(path, "host:b.example").name == "docs.example.org-community-b.example.survey"
    assert folder_for(path, "https://b.example/x y/").name == "docs.example.org-community-b.example-x-y.survey"
    one, other = folder_for(path, ["a", "b"]), folder_for(path, ["a", "c"])
    assert one.name.startswith("docs.example.org-community-")
    assert one != other
    assert one == folder_for(path, ["b", "a"])
