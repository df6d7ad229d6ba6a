"""Crawl from Python: `sv.crawl(seeds, until=…, contact=…)`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from surveyor.config import Settings
from surveyor.crawling.live import Watch, run
from surveyor.crawling.start import clean_seeds, folder_for, named, start
from surveyor.crawling.survey import Survey
from surveyor.sources import http
from surveyor.stopping import Rule, parse

if TYPE_CHECKING:
    from surveyor.sources.addresses import Resolver
    from surveyor.sources.http import Client

Done = TypeVar("Done")


def crawl(
    seeds: str | Sequence[str],
    *,
    until: Rule | str | None = None,
    out: Path | str | None = None,
    fresh: bool = False,
    again: bool = False,
    resolver: Resolver | None = None,
    client: Client | None = None,
    watch: Watch = lambda _run, _outcome: None,
    **settings: Any,
) -> Survey:
    """Crawl from seeds in order of importance until a rule is met, and open the survey.

    The settings are those of the command line: contact, strategy, scope, include, exclude, depth, damping, delay,
    concurrency, allow, archive, … (docs/reference/settings.md). If the folder holds a survey, it is gone on with,
    and with `again` what could not be read gets another try.
    `survey.ending` says how it ended: reached, hopeless (too much may not be read), or empty (no page is left).
    """
    if isinstance(until, str):
        settings["until"] = until
    start_at = clean_seeds(seeds)
    path = folder_for(start_at, out, fresh=fresh)
    chosen, origins = named(Settings(**settings), dict.fromkeys(settings, "argument"), start_at)
    folder, chosen = start(path, start_at, chosen, origins, again=again)
    with folder:
        rule = until if isinstance(until, Rule) else parse(chosen.until)
        ending = finished(run(folder, chosen, rule, client=client, resolver=resolver, watch=watch))
    survey = Survey(path)
    survey.ending = ending
    return survey


def finished(work: Coroutine[Any, Any, Done]) -> Done:
    """Run work to its end, in a thread of its own if an event loop runs here already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return http.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(http.run, work).result()
