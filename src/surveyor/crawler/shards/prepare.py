"""Prepare the shards of a survey for a crawl: create them, or check that they still fit the survey."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from surveyor.crawler.shards.folder import Shards, build, join, read_shards, terms_of
from surveyor.crawler.shards.merge import lost_shards, merge
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


def prepare(folder: SurveyFolder, settings: Settings, count: int | None) -> Shards:
    """Return the shards of an open survey, built or updated as needed; `count` is None for as many as there are."""
    check_settings(settings, parse_rule(settings.until))
    before = read_shards(folder.folder)
    if before is not None and count not in (None, before.count):
        raise UsageError(
            f"{folder.folder} has {before.count} shards, got --shards {count}",
            hint=f"omit --shards, or run `surveyor cluster reshard {folder.folder} --shards {count}` first",
        )
    if before is None:
        if count is None:
            raise UsageError("shards is not set", hint="for example --shards 4: one or two per core of the cluster")
        return build(folder, count)
    if lost := lost_shards(before):
        raise SurveyError(
            f"{lost[0]} is missing",
            hint=f"`surveyor cluster reshard {folder.folder} --shards {before.count}` builds the shards again",
        )
    merge(folder, before)
    if before.terms != terms_of(folder):
        return build(folder, before.count)
    manifest = folder.manifest
    for path in before.paths:
        with SurveyFolder.open(path) as shard:
            if (shard.manifest.settings, shard.manifest.origins) != (manifest.settings, manifest.origins):
                shard.change(settings=manifest.settings, origins=manifest.origins)
    return before


def reshard(folder: SurveyFolder, count: int) -> Shards | None:
    """Divide an open survey into another number of shards; with 0, join them into one survey.

    All visits are kept, and all mass starts from the seeds again.
    """
    before = read_shards(folder.folder)
    with ExitStack() as stack:
        if before is not None:
            stack.enter_context(driving(before))
            if lost := lost_shards(before):
                folder.notices.append(f"{lost[0]} is missing: the visits that were not copied from it are lost")
            else:
                merge(folder, before)
        if count:
            return build(folder, count)
        if before is not None:
            join(folder)
    return None


@contextmanager
def driving(shards: Shards) -> Iterator[None]:
    """Hold the lock of the process that drives a sharded crawl."""
    with locked(shards.folder / layout.SHARDS):
        yield
