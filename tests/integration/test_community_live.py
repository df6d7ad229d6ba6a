"""A live community fetches the pages that a simulation fetches, resumes, and does not change its base survey."""

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
from surveyor.estimate.community.community_options import CommunityOptions, extra_pages
from surveyor.estimate.community.community_survey import (
    CrawledCommunity,
    community_folder,
    community_record,
    open_community_survey,
)
from surveyor.estimate.community.known_graph import ExpansionPlan, expand
from surveyor.graph.csr import Graph
from surveyor.store.directory import SurveyFolder
from surveyor.survey.derived_survey import CopiedOutcomes
from surveyor.survey.survey import Survey
from surveyor.web.urls import host


def by_round(pages: Any, batch: Any) -> list[set[int]]:
    """Return the pages of each round."""
    return [set(pages[batch == number].tolist()) for number in range(1, int(batch.max(initial=0)) + 1)]


def rounds_of(done: CrawledCommunity) -> list[set[int]]:
    expanded = done.expanded()
    assert sorted(expanded.extra.tolist()) == sorted(done.requested.tolist())
    of = dict(zip(expanded.known.pages.tolist(), expanded.batch_of.tolist(), strict=True))
    return by_round(done.requested, np.array([of[page] for page in done.requested.tolist()]))


def urls_of(path: Path) -> list[str]:
    with SurveyFolder.open(path, write=False) as folder:
        return list(folder.journal.urls())


# --- the same as a simulation ---


@pytest.mark.parametrize("select", ["complement", "flow"])
@pytest.mark.parametrize("concurrency", [1, 5])
def test_live_is_simulated(tmp_path: Path, select: str, concurrency: int) -> None:
    """Each round requests the same pages, independent of the order of responses; pages that are gone are replaced."""
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
    plan = ExpansionPlan(done.requested.size, select, batch, seed=seed)  # type: ignore[arg-type]
    found = expand(graph, done.local, plan, start=np.arange(done.record.start, dtype=np.int32), gone=gone)
    of = dict(zip(found.known.pages.tolist(), found.batch_of.tolist(), strict=True))
    simulated = by_round(found.extra, np.array([of[page] for page in found.extra.tolist()]))
    assert len(simulated) >= 20
    assert rounds_of(done) == simulated
    assert done.requested.size == 2 * done.record.local > done.fetched.size  # some were gone
    mine = done.expanded()
    assert np.abs(mine.expansion.local_ranks() - found.expansion.local_ranks()).sum() <= 2e-6
    assert [(one.fetched, one.requested) for one in mine.rounds] == [
        (one.fetched, one.requested) for one in found.rounds
    ]


def test_which_pages_are_read_does_not_depend_on_timing(tmp_path: Path) -> None:
    """Except for ties, which are broken by page ids, and ids depend on the order of responses."""
    read = []
    for seed in (1, 2, 3):
        around = Around(ROUGH, concurrency=6, seed=seed)
        here = tmp_path / str(seed)
        here.mkdir()
        base, out = around.base(here / "base.survey"), here / "around.survey"
        done = around.community(base, out, extra="n", select="complement")
        urls = urls_of(here / "around.survey")
        read.append({urls[page] for page in done.requested.tolist()})
    assert all(len(one & other) >= 0.7 * len(one) for one in read for other in read)


# --- outcomes of the base ---


def test_a_new_community_contains_the_outcomes_of_the_base(tmp_path: Path) -> None:
    around = Around(ROUGH, options={"exclude": ("*/print/*",)})
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    with SurveyFolder.open(base, write=False) as folder:
        last = {url: visit for _, url, visit in folder.pages() if visit is not None}
        names = list(folder.journal.urls())
    asked = len(around.client.asked)
    done = around.community(base, out, extra=0)
    assert len(around.client.asked) == asked
    assert (done.ending, done.requested.size, done.remark) == ("complete", 0, "")
    with SurveyFolder.open(out, write=False) as folder:
        record, manifest = community_record(folder), folder.manifest
        visits, urls = list(folder.journal.visits()), list(folder.journal.urls())
        robots = folder.journal.robots(around.web.seeds[0].rstrip("/"))
    assert record is not None
    read = [url for url, visit in last.items() if visit.kind == "fetched"]
    assert sorted(urls[: record.local]) == sorted(read)
    assert record.local == record.fetched == len(read) > 5
    assert record.start == len(visits) == len({visit.page for visit in visits})
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
    assert outside > 0  # links out of the scope of the base are in scope here


def test_start_with_local_pages_only(tmp_path: Path) -> None:
    around = Around(CALM)
    base = around.base(tmp_path / "base.survey", scope="any", until="pages=80")
    rule = f"host:{host(around.web.seeds[0])}"
    every = around.community(base, tmp_path / "all.survey", local=rule, extra=0)
    alone = around.community(base, tmp_path / "local.survey", local=rule, extra=0, known="local")
    assert every.record.local == alone.record.local == alone.record.fetched < every.record.fetched == 80
    ranks = every.expanded().expansion.local_ranks(), alone.expanded().expansion.local_ranks()
    assert np.abs(ranks[0] - ranks[1]).sum() > 0.01


def test_the_base_survey_is_not_changed(tmp_path: Path) -> None:
    around = Around(ROUGH)
    base = around.base(tmp_path / "base.survey")
    before = {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}
    around.community(base, tmp_path / "around.survey", extra="n")
    after = {path: path.read_bytes() for path in base.rglob("*") if path.is_file() and path.suffix != ".sqlite-shm"}
    assert {path: after[path] for path in before} == before


def test_creation_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    with monkeypatch.context() as patch:
        patch.setattr(CopiedOutcomes, "_waits", lambda _: 1 / 0)  # when all visits are written
        with pytest.raises(ZeroDivisionError):
            around.community(base, out)
    assert [path.name for path in tmp_path.iterdir()] == ["base.survey"]


def test_backoffs_and_deleted_hosts_of_the_base_apply(tmp_path: Path) -> None:
    """A host with a backoff is not requested before it ends; a deleted host is never requested."""
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


# --- resume ---


def images_of(around: Around, base: Path, here: Path, every: int, **options: Any) -> list[Image]:
    """Crawl into `a.survey` without interruption; copy the folder after some commits."""
    images: list[Image] = []
    count = iter(range(1 << 20))

    def keep(folder: SurveyFolder) -> None:
        if next(count) % every == 0:
            images.append(around.image(folder, here / f"{len(images)}.survey"))

    around.community(base, here / "a.survey", after=keep, **options)
    return images


@pytest.mark.parametrize("saves", [True, False], ids=["checkpoints", "journal alone"])
@pytest.mark.slow
def test_resume_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, saves: bool) -> None:
    """The remaining pages are fetched as without the crash."""
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


def test_interrupt_and_resume(tmp_path: Path) -> None:
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
    assert 0 < first.requested.size < 2 * first.record.local
    second = around.community(base, out)
    assert (second.ending, second.requested.size) == ("complete", 2 * first.record.local)


def test_a_larger_extra_requests_more_pages(tmp_path: Path) -> None:
    calm = replace(CALM, web=replace(CALM.web, dead=0.0))  # type: ignore[type-var]
    at_once, in_parts = Around(calm), Around(calm)
    here = [tmp_path / "1", tmp_path / "2"]
    bases = [one.base(path / "base.survey") for one, path in zip((at_once, in_parts), here, strict=True)]
    whole = at_once.community(bases[0], here[0] / "a.survey", extra="2n")
    first = in_parts.community(bases[1], here[1] / "a.survey", extra="0.7n")
    asked = len(in_parts.client.asked)
    again = in_parts.community(bases[1], here[1] / "a.survey")  # what was asked for is there
    assert len(in_parts.client.asked) == asked
    assert (first.ending, again.ending) == ("complete", "complete")
    assert again.requested.tolist() == first.requested.tolist()
    fewer = in_parts.community(bases[1], here[1] / "a.survey", extra=1)
    assert fewer.requested.size == first.requested.size
    second = in_parts.community(bases[1], here[1] / "a.survey", extra="2n")
    assert second.requested[: first.requested.size].tolist() == first.requested.tolist()
    assert second.requested.tolist() == whole.requested.tolist()
    assert whole.requested.size == 2 * whole.record.local
    assert len(set(in_parts.client.asked)) == len(in_parts.client.asked)


def test_resume_without_a_rule(tmp_path: Path) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    first = around.community(base, out, extra=3)
    chosen = Settings(contact="me@example.org")
    options = CommunityOptions(extra=5)
    with open_community_survey(out, None, options, settings=chosen) as community:
        assert (community.is_new, community.extra, community.requested) == (False, 5, first.requested.size)
        assert community.warnings == ()
    with pytest.raises(UsageError, match="local pages are not specified"):
        open_community_survey(base, None, options, settings=chosen)


def test_warning_if_the_base_has_grown(tmp_path: Path) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey", until="pages=6"), tmp_path / "around.survey"
    around.community(base, out, extra=3)
    around.base(base, until="pages=9")
    with open_community_survey(base, "all", CommunityOptions(out=out)) as community:
        (warning,) = community.warnings
        assert warning.startswith("base.survey has 3 more visits since around.survey was created")
        assert community.record.local == 6


# --- endings and errors ---


def test_no_frontier(tmp_path: Path) -> None:
    around = Around(replace(CALM, web=replace(CALM.web, dead=0.0)))  # type: ignore[type-var]
    base = around.base(tmp_path / "base.survey", scope="any")
    asked = len(around.client.asked)
    done = around.community(base, tmp_path / "around.survey")
    assert done.ending == "no_frontier"
    assert done.remark.startswith("no page of all links to a page that was not fetched")
    assert len(around.client.asked) == asked
    assert done.expanded().extra.size == 0


def test_exhausted_frontier(tmp_path: Path) -> None:
    around = Around(CALM)
    done = around.community(around.base(tmp_path / "base.survey"), tmp_path / "around.survey", extra=100_000)
    assert done.ending == "exhausted"
    assert done.remark == f"no page is left to request outside after {done.requested.size:,} pages"
    assert done.requested.size > 50


def test_stop_when_ranks_are_stable(tmp_path: Path) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey"), tmp_path / "around.survey"
    calm = around.community(base, out, extra="2n", stable=0.5)
    assert (calm.ending, calm.remark) == ("stable", "")
    assert len(calm.expanded().rounds) == 4  # the start, and three more
    whole = around.community(base, out, extra="2n")
    assert whole.ending == "complete"
    assert whole.requested[: calm.requested.size].tolist() == calm.requested.tolist()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"extra": "-1"}, "extra must be .* got '-1'"),
        ({"extra": "some"}, "extra must be .* got 'some'"),
        ({"extra": ""}, "extra must be .* got ''"),
        ({"select": "best"}, "unknown select 'best'"),
        ({"rounds": 0}, "rounds must be .* at least 1, got 0"),
        ({"known": "none"}, "known must be all or local, got 'none'"),
        ({"local": "host:other.example"}, "no page of the 6 pages fetched in base.survey matches local host:other"),
    ],
)
def test_invalid_options(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey", until="pages=6"), tmp_path / "around.survey"
    with pytest.raises(UsageError, match=problem):
        around.community(base, out, **options)
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"local": "ids:0-3"}, "was created with --local all, got ids:0-3"),
        ({"select": "flow"}, "was created with --select explore, got flow"),
        ({"rounds": 3}, "was created without --rounds, got 3"),
        ({"local": ["https://other.example/"]}, "was created without the list or model of local pages"),
    ],
)
def test_changed_options(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    around = Around(CALM)
    base, out = around.base(tmp_path / "base.survey", until="pages=6"), tmp_path / "around.survey"
    around.community(base, out, extra=0)
    with pytest.raises(UsageError, match=problem):
        around.community(base, out, **options)
    with pytest.raises(UsageError, match="is a survey, but not a community"):
        around.community(base, base)


def test_extra_pages_and_default_folders() -> None:
    assert [extra_pages(word, 30) for word in ("2n", "n", "0.5N", ".1n", "1,500", 7)] == [60, 30, 15, 3, 1500, 7]
    path = Path("a/docs.example.org.survey")
    assert community_folder(path, "host:b.example").name == "docs.example.org-community-b.example.survey"
    assert community_folder(path, "https://b.example/x y/").name == "docs.example.org-community-b.example-x-y.survey"
    one, other = community_folder(path, ["a", "b"]), community_folder(path, ["a", "c"])
    assert one.name.startswith("docs.example.org-community-")
    assert one != other
    assert one == community_folder(path, ["b", "a"])
