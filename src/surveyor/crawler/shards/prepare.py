"""Prepare the shards of a survey for a crawl: create them, or check that they still fit the survey."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.crawler.shards.description import (
    Shards,
    advice,
    check_shards,
    is_sharded,
    lost_shards,
    read_shards,
    recovered,
    terms_of,
)
from surveyor.crawler.shards.folder import build, check_count, join
from surveyor.crawler.shards.merge import behind_copies, merge, merged_positions
from surveyor.errors import SurveyError, UsageError
from surveyor.stopping import parse_rule, sampled_goal, scouting_rule
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder, locked

if TYPE_CHECKING:
    from surveyor.config import Settings
    from surveyor.stopping import Rule


def check_settings(settings: Settings, until: Rule) -> None:
    """Reject settings that need one process."""
    name = settings.strategy.partition(":")[0].partition("(")[0]
    refused = {
        f"the strategy {settings.strategy}": name != "rankmass",
        "a topic": bool(settings.topic),
        "a survey without links (--no-graph)": not settings.graph,
        "a depth limit": settings.depth is not None,
        "page budgets": bool(settings.budget or settings.budget_file),
        "a sampled coverage": sampled_goal(until) is not None,
        "a scout": scouting_rule(until) is not None,
    }
    for what, found in refused.items():
        if found:
            raise UsageError(
                f"{what} is not possible in a sharded crawl",
                hint="leave it out, or crawl in one process without --shards",
            )


def check_before(path: Path, count: int | None) -> None:
    """Reject shards that cannot be crawled before anything is written or started; the survey may not exist yet."""
    if count is not None:
        check_count(count)
    if (shards := read_shards(path)) is not None:
        check_shards(shards)


def prepare(folder: SurveyFolder, settings: Settings, count: int | None) -> Shards:
    """Return the shards of an open survey, built or updated as needed; `count` is None for as many as there are."""
    check_settings(settings, parse_rule(settings.until))
    before = read_shards(folder.folder)
    if before is not None and count not in (None, before.count):
        raise UsageError(
            f"{folder.folder} has {before.count} shards, got --shards {count}",
            hint=f"omit --shards, or run {advice(folder.folder, count or 0, 'first')}",
        )
    if before is None:
        if count is None:
            raise UsageError("shards is not set", hint="for example --shards 4: one or two per core of the cluster")
        return build(folder, count)
    merged_positions(folder, before)  # raises if it is of another number
    check_shards(before)
    merge(folder, before)
    if before.terms != terms_of(folder):
        return build(folder, before.count)
    manifest = folder.manifest
    for path in before.paths:
        with SurveyFolder.open(path) as shard:
            if (shard.manifest.settings, shard.manifest.origins) != (manifest.settings, manifest.origins):
                shard.change(settings=manifest.settings, origins=manifest.origins)
    return before


def reshard(folder: SurveyFolder, count: int) -> int:
    """Divide an open survey into another number of shards; with 0, join them into one survey. Return the number before.

    All visits are kept, and all mass starts from the seeds again. A shard that is lost, damaged or of another crawl is
    left out, with a notice.
    """
    if count:
        check_count(count)
    sharded = is_sharded(folder.folder)
    before = _as_found(folder) if sharded else None
    with ExitStack() as stack:
        if sharded:
            stack.enter_context(driving(folder.folder))
        if before is not None:
            lost = lost_shards(before)
            lost |= behind_copies(folder, before, lost)
            folder.notices += [f"{why}: the visits that were not copied from it are lost" for why in lost.values()]
            merge(folder, before, lost)
        if count:
            build(folder, count)
        elif sharded:
            join(folder)
    return 0 if before is None else before.count


def _as_found(folder: SurveyFolder) -> Shards | None:
    """Return the shards as `crawl.json` has them, or by what they say themselves if it is lost or does not fit them."""
    try:
        shards = read_shards(folder.folder)
        if shards is not None:
            merged_positions(folder, shards)
            if len(lost_shards(shards)) < shards.count:
                return shards
    except SurveyError as error:
        folder.notices.append(error.problem)
    return recovered(folder)


@contextmanager
def driving(folder: Path) -> Iterator[None]:
    """Hold the lock of the process that drives a sharded crawl."""
    with locked(folder / layout.SHARDS):
        yield
