"""Crawl from Python in one process, or in shards on a cluster: `sv.crawl(seeds, cluster="local:2", …)`."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

from surveyor.cluster.crawl import ShardedRun
from surveyor.cluster.session import Session
from surveyor.crawler.seed_pages import Given
from surveyor.crawler.session import Watch
from surveyor.crawler.shards.description import is_sharded
from surveyor.crawler.shards.folder import check_count
from surveyor.crawler.shards.merge import refresh
from surveyor.crawler.shards.prepare import check_settings, prepare
from surveyor.errors import UsageError
from surveyor.fetch.event_loops import in_thread, run_sync
from surveyor.stopping import Rule, as_rule, parse_rule
from surveyor.survey import crawl as one_process
from surveyor.survey.survey import Survey

NOT_POSSIBLE = ("client", "resolver", "from_last_good")  # options of `crawl`


def crawl(
    seeds: Given,
    *,
    until: Rule | str | None = None,
    out: Path | str | None = None,
    watch: Watch | None = None,
    cluster: str | None = None,
    shards: int | None = None,
    **options: Any,
) -> Survey:
    """Crawl from seeds in order of importance until a rule is met, and open the survey.

    Seeds may be a mapping from URLs to weights, in proportion to which random surfers jump to them; pages of weight 0
    are listed: known in advance and fetched after all others, without an effect on coverage and ranks.

    The options are the settings of the command line: contact, strategy, scope, include, exclude, depth, damping, delay,
    concurrency, allow, archive, … (docs/reference/settings.md), and those of `RunOptions`: fresh, add_seeds, again,
    from_last_good, quiet, client, resolver. If the folder holds a survey, it is resumed; `seeds` may also be that
    folder, and seeds that are new in it need `add_seeds=True`.

    `survey.goal_reached` is whether a rule of `until` was met, `survey.ending` how the crawl ended: reached,
    unreachable (too much mass is blocked), exhausted (no page is left) or fruitless. If nothing was fetched in the
    whole survey, `NothingFetched` is raised; its folder remains.

    Ctrl-C, or interrupting the kernel of a notebook, saves and returns the survey, whose ending is then interrupted;
    the same call resumes. `watch(run, outcome)` is called with each outcome and periodically without one, in a notebook
    from another thread. A notebook shows the progress, unless `quiet`.
    """
    if cluster is None:
        if shards is not None:
            raise UsageError("shards needs a cluster", hint='for example cluster="local:2": two processes here')
        watched = {} if watch is None else {"watch": watch}
        return one_process.crawl(seeds, until=until, out=out, **watched, **options)
    refused = [name for name in NOT_POSSIBLE if options.get(name)]
    for name in [*refused, *(["watch"] if watch is not None else [])]:
        raise UsageError(f"{name} is not possible with cluster", hint=f"omit {name}, or cluster")
    asked = None if until is None else as_rule(until)
    if isinstance(until, str):
        options["until"] = until
    if shards is not None:
        check_count(shards)
    with Session(cluster) as session:
        workers = session.workers or sum(node.cpus for node in session.nodes())
        folder, chosen, _ = one_process.open_to_crawl(seeds, out, options, sharded=True)
        rule = parse_rule(chosen.until) if asked is None else asked
        with folder:
            check_settings(chosen, rule)
            made = prepare(folder, chosen, shards or (None if is_sharded(folder.folder) else workers))
        run = ShardedRun(made, chosen, rule, workers, restore=session.restore)
        ending = run_sync(run.run())
    if problem := refresh(folder.folder):
        warnings.warn(problem, stacklevel=2)
    return one_process.opened_after(folder.folder, ending, rule)


async def crawl_async(
    seeds: Given,
    *,
    until: Rule | str | None = None,
    out: Path | str | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Survey:
    """Crawl as `crawl` does, in a thread, so that the event loop of the caller stays free.

    Cancelling it, also by a timeout, saves what is fetched; repeating the call resumes. `watch` is called in that
    thread.
    """
    work = partial(crawl, seeds, until=until, out=out, watch=watch, **options)
    return await in_thread(work, discard=_close_interrupted)


def _close_interrupted(survey: Survey) -> str:
    """Close a survey whose crawl was cancelled; return what to do about it."""
    with survey:
        return f"interrupted and saved; the same call resumes, and sv.open({str(survey.folder)!r}) opens the survey"
