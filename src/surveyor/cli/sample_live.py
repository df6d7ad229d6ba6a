"""`surveyor sample` of the live web: pages are fetched as walks need them, and it stops in good order."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.cli.sample_wish import Wish
from surveyor.cli.samples import Found, Stopped
from surveyor.errors import UsageError
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from surveyor.cli.output import Output
    from surveyor.config import Settings
    from surveyor.crawler.session import Run
    from surveyor.estimate.sampling.sample_goals import SampleGoal
    from surveyor.estimate.sampling.sample_survey import SampleSurvey
    from surveyor.estimate.sampling.walk_scheduler import WalkResult, WalkScheduler
    from surveyor.outcome import Outcome


RNG = 7  # of a sample that is begun, as in a graph
LONG = 5.0  # seconds of rest worth a word


def fetched(output: Output, wish: Wish, given: Mapping[str, Any]) -> Found | Stopped:
    """Fetch the pages that walks come to, into a survey of their own."""
    from surveyor.cli.settings import with_contact
    from surveyor.config import load
    from surveyor.crawler.start import allow_named_hosts, clean_seeds
    from surveyor.estimate.sampling.sample import sample_of
    from surveyor.estimate.sampling.sample_goals import SampleGoal
    from surveyor.estimate.sampling.sample_survey import SampleOptions, open_sample_survey, sample_folder
    from surveyor.estimate.sampling.topics import Topic

    own = {} if wish.rng is None else {"rng": wish.rng}
    chosen, origins = load({**given, **own})
    chosen = with_contact(output, chosen)
    chosen, origins = allow_named_hosts(chosen, origins, clean_seeds(wish.where) if wish.where else ())
    seeds, topic, until = _seeds(output, wish, chosen), Topic.parse(wish.topic), SampleGoal.parse(wish.goal)
    _check_budget(seeds, wish, until)
    place = Path(wish.out) if wish.out else sample_folder(seeds, topic.text)
    if chosen.rng is None and not layout.is_survey(place):
        chosen = replace(chosen, rng=RNG)
    options = SampleOptions(
        wish.method,
        wish.walks,
        wish.reach,
        wish.window,
        in_links=list(wish.in_links) or None,
        until=str(until),
        fetches=until.fetches,
    )
    begun = open_sample_survey(seeds, topic, options, out=place, settings=chosen, origins=origins)
    for line in begun.folder.notices:
        output.warn(line)
    with begun:
        _introduce(output, begun, origins)
        walked, stopped = _walked(output, begun, wish, until)
        if walked is None or walked.ending == "interrupted":
            asked = 0 if walked is None else walked.requested.size
            return Stopped(stopped, f"{asked:,} pages were asked for; all is kept in {place}")
    sample = sample_of(walked, until, wish.watched)
    return Found(sample, f"the web, from {', '.join(seeds[:3])}; pages are kept in {place}", str(place))


def _seeds(output: Output, wish: Wish, settings: Settings) -> list[str]:
    """Gather the pages to begin at, those of lists too."""
    from surveyor.crawler.seeds import gather_seeds
    from surveyor.crawler.start import clean_seeds
    from surveyor.fetch.http import run_sync

    named = list(wish.where)
    if wish.lists:
        named += run_sync(gather_seeds(wish.lists, settings, say=output.say)).urls
    return clean_seeds(named)


def _check_budget(seeds: Sequence[str], wish: Wish, until: SampleGoal) -> None:
    """Refuse a budget that ends before the first step."""
    from surveyor.estimate.sampling.walk_methods import DEFAULT_WALKS

    first = min(len(seeds), wish.walks or DEFAULT_WALKS)
    if until.fetches is not None and until.fetches < first:
        raise UsageError(
            f"fetches={until.fetches} is less than the {first} pages at which walks begin",
            hint="allow for more fetches, or name fewer pages to begin at",
        )


def _introduce(output: Output, begun: SampleSurvey, origins: Mapping[str, str]) -> None:
    from surveyor.cli.settings import report_settings
    from surveyor.report.numbers import counted

    folder, terms = begun.folder, begun.record
    told = f"{terms.topic}   {counted(terms.walks, 'walk')}, {terms.method}, rng {folder.manifest.rng}"
    output.say(f"{told}   robots.txt obeyed, delay {begun.settings.delay:g} s")
    if begun.is_new:
        output.say(f"saving to {folder.folder}     Ctrl-C is safe: run the same command to go on")
    else:
        output.say(f"going on with {folder.folder}")
    own = dict.fromkeys(("seeds", "strategy", "until", *(["scope"] if origins.get("scope") == "default" else [])), "--")
    report_settings(output, begun.settings, {**origins, **own})


def waiting(course: WalkScheduler, now: Run) -> str:
    """Name the host that all walks wait for, if it is to be left alone for a while: a round needs all of its pages."""
    from surveyor.report.numbers import duration
    from surveyor.web.urls import host

    names = {host(now.state.urls[page]) for page in course.pending}
    known = (now.hosts[number] for number in range(len(now.hosts)))
    latest = max((one for one in known if one.name in names), key=lambda one: one.ready_at, default=None)
    rest = 0.0 if latest is None else latest.ready_at - now.hosts.clock()
    return f"waiting for {latest.name}, {duration(rest)}" if latest is not None and rest > LONG else ""


def _walked(output: Output, begun: SampleSurvey, wish: Wish, until: SampleGoal) -> tuple[WalkResult | None, int]:
    """Walk, with a display and with signals that stop it in good order."""
    from surveyor.cli import stoppable
    from surveyor.cli.sample_display import WalkDisplay
    from surveyor.estimate.sampling.live_walks import walk_live
    from surveyor.estimate.sampling.sample_goals import WalkLimits

    display, said = WalkDisplay(wish.goal, silent=output.quiet, color=output.color), 0
    limits = WalkLimits.of(until, wish.watched, lambda _trace, _fetches, watched: display.watch(watched))

    def watch(course: WalkScheduler, now: Run, _: Outcome | None) -> None:
        nonlocal said
        if len(now.hosts.remarks) > said:
            display.clear()
            for remark in [] if output.quiet else now.hosts.remarks[said:]:
                output.warn(remark)
            said = len(now.hosts.remarks)
        display(course.trace, len(course.requested), lambda: waiting(course, now) or f"{len(now.hosts):,} hosts")

    work = partial(walk_live, begun, limits, watch=watch)
    try:
        return stoppable.run(work, [])
    finally:
        display.clear()
