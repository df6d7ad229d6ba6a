"""Crash safety: a crawl that is killed at any commit and resumed ends like an uninterrupted one."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attack import attack

from crash_recovery import MOODY, SHAPE, STEADY, Image, Setting, accounts, difference, ranks_of, read_urls, rows, sums
from surveyor.crawler import session as live
from surveyor.errors import SurveyError
from surveyor.store.directory import SurveyFolder
from surveyor.testing.web_plan import WebSettings

ALL = "pages=100000"
SOME = "pages=40"
# A robots.txt that waits to be asked for elsewhere is under way, and is asked for anew.
HERE = replace(MOODY, robots_moved=0.0)
PAST = [
    ("rankmass", 2),
    ("opic", 8),
    ("adaptive:fixed", 12),
    ("tracking", 8),
    ("random", 8),
]  # of each strategy, every so many commits


class Killed(Exception):
    """The process is no more."""


def kill(_folder: SurveyFolder) -> None:
    raise Killed


def whole_run(setting: Setting, here: Path, until: str, when: str = "after", every: int = 1) -> list[Image]:
    """Crawl into `a.survey` without a break; keep the disk as it is before or after commits."""
    images: list[Image] = []
    count = iter(range(1 << 20))

    def keep(folder: SurveyFolder) -> None:
        if next(count) % every == 0:
            images.append(setting.image(folder, here / f"{len(images)}.survey"))

    hooks: dict[str, Any] = {when: keep}
    setting.crawl(here / "a.survey", until, **hooks)
    return images


@pytest.fixture
def no_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "save", lambda *_: False)


# Concurrency 1 and answers that come in order: the second run must be the first, bit for bit. Compared are all rows of
# all tables, but for `meta`, which holds the random name of the journal. Nothing is archived: the ids of WARC records
# are random, so places would differ. There is no delay: when the last request of a run ended is not known if it was
# killed, so hosts with a delay wait longer than they would have; see test_delays_hold_over_a_crash.


@attack(
    "a process killed after any commit",
    area="journal and archives",
    must_hold="the resumed crawl equals one that was not interrupted",
)
@pytest.mark.usefixtures("no_checkpoints")
@pytest.mark.parametrize(("web", "until"), [(STEADY, ALL), (HERE, SOME)], ids=["steady", "moody"])
@pytest.mark.slow
def test_killed_after_any_commit(tmp_path: Path, web: WebSettings, until: str) -> None:
    setting = Setting(web)
    images = whole_run(setting, tmp_path, until)
    expected, result = rows(tmp_path / "a.survey"), accounts(tmp_path / "a.survey")
    assert sums(setting.state).items() <= result.items()  # what the run had in memory is what its journal says
    assert len(images) > 55
    kinds = {row[2] for row in expected["visits"]}
    assert kinds == {"fetched", "gone", "redirected", "blocked"}
    passing = {"retry", "backoff"} if web is HERE else {"retry", "settled"}
    assert {row[3] for row in expected["events"]} >= {"robots_retry", *passing}
    for number, image in enumerate(images):
        setting.go_back(image)
        setting.crawl(image.folder, until)
        assert difference(expected, rows(image.folder)) == ""
        assert number % 4 or accounts(image.folder) == result  # they follow from the rows


@pytest.mark.usefixtures("no_checkpoints")
@pytest.mark.slow
def test_killed_before_any_commit(tmp_path: Path) -> None:
    """What was asked and not yet committed is asked again: where the answer is the same, so is the journal."""
    setting = Setting(STEADY)
    images = whole_run(setting, tmp_path, ALL, "before")
    expected, result = rows(tmp_path / "a.survey"), accounts(tmp_path / "a.survey")
    for image in images:
        setting.go_back(image)
        setting.crawl(image.folder, ALL)
        assert difference(expected, rows(image.folder)) == ""
    assert accounts(images[len(images) // 2].folder) == result


@pytest.mark.parametrize(("strategy", "every"), PAST)
@pytest.mark.slow
def test_a_checkpoint_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str, every: int
) -> None:
    # These two fetch pages again and again.
    until = {"tracking": "pages=60", "adaptive:fixed": "requests=140"}.get(strategy, ALL)
    setting = Setting(STEADY, options={"strategy": strategy, "until": until})
    with monkeypatch.context() as patch:  # one between any two batches
        patch.setattr(live, "SAVE_EVERY", 0.0)
        patch.setattr(live, "SAVE_SHARE", 0.0)
        images = whole_run(setting, tmp_path, until, every=every)
    expected, result, hosts = rows(tmp_path / "a.survey"), accounts(tmp_path / "a.survey"), setting.host_names
    assert sum((image.folder / "checkpoint").is_dir() for image in images) >= len(images) - 4  # and they are used
    for number, image in enumerate(images):
        setting.go_back(image)
        if number % 2 == 0:
            shutil.rmtree(image.folder / "checkpoint", ignore_errors=True)
        setting.crawl(image.folder, until)
        assert difference(expected, rows(image.folder)) == ""
        assert setting.host_names == hosts  # ties are ordered by the number of the host
        if number % 4 < 2:
            assert accounts(image.folder) == result  # from a checkpoint
            shutil.rmtree(image.folder / "checkpoint", ignore_errors=True)
        if number % 8 < 2:
            assert accounts(image.folder) == result  # from the journal alone


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_again_and_again(tmp_path: Path, moment: str) -> None:
    """Each run gets as far as its second commit, the process dies by an exception, and files are closed properly."""
    setting, whole = Setting(STEADY), Setting(STEADY)
    whole_run(whole, tmp_path, ALL, every=1000)
    path, runs = tmp_path / "killed.survey", 0
    commits: list[int] = []

    def second(folder: SurveyFolder) -> None:
        commits.append(folder.journal.position)
        if len(commits) == 2:
            kill(folder)

    hooks: dict[str, Any] = {"after": second}
    while True:
        runs += 1
        commits.clear()
        if moment == "before":  # the third commit never reaches the disk
            hooks = {"before": lambda folder: kill(folder) if len(commits) == 2 else commits.append(0)}
        try:
            setting.crawl(path, ALL, **hooks)
        except Killed:
            continue
        break
    assert runs > 20
    assert difference(rows(tmp_path / "a.survey"), rows(path)) == ""
    assert accounts(path) == accounts(tmp_path / "a.survey")


@pytest.mark.parametrize("web", [STEADY, MOODY], ids=["steady", "moody"])
@pytest.mark.slow
def test_several_at_once(tmp_path: Path, web: WebSettings) -> None:
    """Pages in flight are asked for again, all others are not; the server remembers that it was asked."""
    setting = Setting(web, concurrency=4)
    until = ALL if web is STEADY else SOME
    images = whole_run(setting, tmp_path, until, every=3)
    everything, (ranks, error) = read_urls(tmp_path / "a.survey"), ranks_of(tmp_path / "a.survey")
    coverage = accounts(tmp_path / "a.survey")["coverage"]
    asked, in_flight = setting.client.asked, 0
    for number, image in enumerate(images):
        kept = rows(image.folder)
        done = {kept["urls"][row[1]][1] for row in kept["visits"]} | {f"{row[0]}/robots.txt" for row in kept["robots"]}
        setting.go_back(image, seed=number)
        setting.crawl(image.folder, until)
        now = rows(image.folder)
        for table in ("urls", "visits", "events"):
            assert now[table][: len(kept[table])] == kept[table]
        assert {row[0] for row in kept["robots"]} <= {row[0] for row in now["robots"]}
        again = set(setting.client.asked)
        assert not done & again
        in_flight += len(set(asked[: image.asked]) & again)
        if web is STEADY:
            assert read_urls(image.folder) == everything
            mine, its = ranks_of(image.folder)
            assert sum(abs(mine[url] - ranks[url]) for url in ranks) <= error + its
            assert mine.keys() == ranks.keys()
            result = accounts(image.folder)["coverage"]
            # all is read, and mass moves on until at most 1e-4 of it is left
            assert all(abs(result[name] - coverage[name]) <= 1e-4 for name in coverage)
    assert in_flight > 5


@attack(
    "a write-ahead log torn at any place",
    area="journal and archives",
    must_hold="the survey opens at an earlier commit",
)
def test_a_log_that_is_torn_anywhere(tmp_path: Path) -> None:
    """A power cut may take the end of what was written: that is reported, and all commits before it are there."""
    setting = Setting(STEADY)
    image = whole_run(setting, tmp_path, SOME, every=50)[-1]
    log = image.folder / "journal.sqlite-wal"
    data, whole = log.read_bytes(), rows(image.folder)
    rng = random.Random(4)  # noqa: S311
    lengths = set()
    for cut in [0, 31, *sorted(rng.sample(range(len(data)), 30))]:
        other = tmp_path / f"cut-{cut}.survey"
        shutil.copytree(image.folder, other, ignore=shutil.ignore_patterns("*-shm"))
        (other / log.name).write_bytes(data[:cut] + rng.randbytes(100) * (cut % 2))
        with pytest.raises(SurveyError, match=r"is damaged.* cannot be read"):
            SurveyFolder.open(other)
        with SurveyFolder.open(other, from_last_good=True) as folder:  # as a crawl would
            folder.journal.check()
        found = rows(other)
        lengths.add(len(found["visits"]))
        assert found["events"].pop()[3] == "recovery"
        for table in ("urls", "visits", "events"):
            assert found[table] == whole[table][: len(found[table])]
        assert set(found["robots"]) <= set(whole["robots"])
        shutil.rmtree(other)
    assert len(lengths) > 10


@pytest.mark.slow
def test_delays_hold_over_a_crash(tmp_path: Path) -> None:
    """Crawl-delay counts from the moment of the resume, as the last request may not be in the journal."""
    web = WebSettings.plain(web=SHAPE, port=80, seeds=2, robots_delay=0.3, crawl_delay=7.0)
    setting = Setting(web)
    slow = {host for host, file in setting.web.plan.robots.items() if file.style == "delay"}
    images = whole_run(setting, tmp_path, ALL, every=3)
    asked = 0
    for image in images:
        setting.go_back(image)
        setting.web.log.clear()
        known = {row[0].partition("://")[2] for row in rows(image.folder)["robots"]}
        setting.crawl(image.folder, ALL)
        times = defaultdict(list)
        for request in setting.web.log:
            times[request.host].append(request.time)
        for host in slow & times.keys():
            if host in known:
                asked += 1
                assert times[host][0] >= image.now + 7.0
            assert all(later - earlier >= 7.0 for earlier, later in pairwise(times[host]))
    assert asked > 5


def test_a_host_that_asks_to_be_left_alone_is(tmp_path: Path) -> None:
    """Also without a delay, when a host with a required wait is ready."""
    setting = Setting(MOODY)
    whole_run(setting, tmp_path, SOME, every=1000)
    free_at: dict[str, float] = {}
    refused = 0
    for request in setting.web.log:
        assert request.time >= free_at.get(request.host, 0.0)
        if request.status == 429:
            refused += 1
            free_at[request.host] = request.time + 1.0
    assert refused > 2


def test_resuming_without_a_network(tmp_path: Path) -> None:
    """Hosts that have answered before the crash are not blamed for what is amiss here."""
    whole, setting = Setting(STEADY), Setting(STEADY)
    whole.crawl(tmp_path / "whole.survey", ALL)
    path = tmp_path / "a.survey"
    setting.crawl(path, "pages=10")
    setting.client.down_until = setting.clock.now + 400.0  # after which pages would have been given up
    setting.crawl(path, ALL)
    assert {row[3] for row in rows(path)["events"]} >= {"offline"}
    assert read_urls(path) == read_urls(tmp_path / "whole.survey")
