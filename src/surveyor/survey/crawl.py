"""Crawl from Python: `sv.crawl(seeds, until=…, contact=…)`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.config import Settings
from surveyor.crawler.naming import folder_for
from surveyor.crawler.nothing_fetched import nothing_fetched
from surveyor.crawler.session import Watch, run
from surveyor.crawler.start import check_default, clean_seeds, cut_back, named, start, survey_named
from surveyor.fetch.http import run_sync
from surveyor.stopping import Rule, as_rule, parse_rule
from surveyor.survey.survey import Survey

if TYPE_CHECKING:
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client


def crawl(
    seeds: str | Sequence[str],
    *,
    until: Rule | str | None = None,
    out: Path | str | None = None,
    fresh: bool = False,
    add_seeds: bool = False,
    again: bool = False,
    from_last_good: bool = False,
    resolver: Resolver | None = None,
    client: Client | None = None,
    watch: Watch = lambda _run, _outcome: None,
    **settings: Any,
) -> Survey:
    """Crawl from seeds in order of importance until a rule is met, and open the survey.

    The settings are those of the command line: contact, strategy, scope, include, exclude, depth, damping, delay,
    concurrency, allow, archive, … (docs/reference/settings.md). If the folder holds a survey, it is resumed; `seeds`
    may also be that folder, and seeds that are new in it need `add_seeds`. With `again`, blocked pages are retried.
    With `from_last_good`, a damaged journal is first truncated to the commits before the damage; the damaged files are
    kept beside it.

    `survey.goal_reached` is whether a rule of `until` was met, `survey.ending` how the crawl ended: reached,
    unreachable (too much mass is blocked), or empty (no page is left). If nothing was fetched in the whole survey,
    `NothingFetched` is raised; its folder remains.
    """
    asked = None if until is None else as_rule(until)
    if isinstance(until, str):
        settings["until"] = until
    existing = None if fresh else survey_named(seeds, out)
    start_at = [] if existing else clean_seeds(seeds)
    chosen, origins = named(Settings(**settings), dict.fromkeys(settings, "argument"), start_at)
    path = existing or folder_for(start_at, out, scope=chosen.scope, fresh=fresh)
    if existing is None and out is None and not add_seeds:
        check_default(path, start_at, chosen, origins)
    if from_last_good:
        cut_back(path)
    folder, chosen = start(path, start_at, chosen, origins, again=again, add_seeds=add_seeds)
    for notice in folder.notices:
        warnings.warn(notice, stacklevel=2)
    with folder:
        rule = parse_rule(chosen.until) if asked is None else asked
        ending = run_sync(run(folder, chosen, rule, client=client, resolver=resolver, watch=watch))
    survey = Survey(path)
    survey.ending, survey.goal = ending, rule
    if ending != "interrupted" and not survey.pages_fetched:
        with survey:
            raise nothing_fetched(survey)
    return survey
