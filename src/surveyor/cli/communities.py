"""What `surveyor community` needs around its list: check, read around the local pages, write files."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from surveyor.arrays import IdArray
    from surveyor.cli.output import Output
    from surveyor.communities.result import CommunityRank
    from surveyor.graph.names import Names

NOTHING = 3  # the exit code where nothing was learnt
EXTRA, RNG = "2n", 7


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for."""

    local: str | None
    extra: str | None
    select: str | None
    rounds: int | None
    estimator: str
    still: float | None
    start: str | None
    back_links: str | None
    replay: bool
    into: str | None
    truth: bool
    damping: float | None
    rng: int | None
    explain: str | None = None


ASKED = tuple(one.name for one in fields(Wish) if one.name != "explain")


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it; no result if it was stopped."""

    found: CommunityRank | None
    rule: str
    source: str  # in words
    code: int = 0
    place: str = ""  # the survey of what was fetched
    remark: str = ""


def check(path: str, wish: Wish, given: Mapping[str, Any], **files: str | None) -> None:
    """Refuse what cannot work, before any of it is done."""
    from surveyor.cli.ranked import is_survey
    from surveyor.communities.beginning import extra_pages
    from surveyor.report.column_files import check_file
    from surveyor.report.scores import check_place
    from surveyor.report.svg import check_plots

    live = is_survey(path) and not wish.replay
    if wish.extra is not None:
        extra_pages(wish.extra, 1)
    if wish.local is None and not live:
        raise UsageError("nothing says which pages are local", hint="name them with --local, such as host:HOST")
    what = "a replay" if wish.replay else "a graph"
    fetching = {**given, **({"into": wish.into} if wish.into else {})}
    if fetching and not live:
        raise UsageError(
            f"--{next(iter(fetching)).replace('_', '-')} is for pages that are fetched, and {what} fetches none",
            hint="leave it out, or give a survey without --replay",
        )
    if not is_survey(path) and (wish.replay or wish.start):
        raise UsageError(f"{path} is no survey", hint=f"--{'replay' if wish.replay else 'start'} is for surveys")
    if wish.truth and is_survey(path):
        raise UsageError("nobody knows the true rank of the pages of a survey", hint="--truth is for graphs")
    if files["out"]:
        check_file(files["out"])
    for place in filter(None, files.values()):
        check_place(place)
    if files["plot"]:
        check_plots()


def estimated(output: Output, path: str, wish: Wish, given: Mapping[str, Any]) -> Told:
    """Read around the local pages of a graph or survey, and estimate."""
    from surveyor.cli.ranked import is_survey

    if not is_survey(path):
        return _simulated(output, path, wish)
    if wish.replay:
        return _replayed(output, path, wish)
    from surveyor.cli.community_live import fetched

    return fetched(output, path, wish, given)


def _simulated(output: Output, path: str, wish: Wish) -> Told:
    """Let a graph play the web."""
    from surveyor.cli.ranked import open_graph
    from surveyor.communities.community import community
    from surveyor.communities.local import local_pages
    from surveyor.report.numbers import counted

    graph = open_graph(output, path)
    chosen = local_pages(wish.local or "", graph.names, graph.pages, what=path)
    if chosen.missing:
        verb = "is" if chosen.missing == 1 else "are"
        output.warn(f"{counted(chosen.missing, 'page')} that {chosen.rule} names {verb} not in {path}")
    if wish.explain is not None:
        local_entry(chosen.places, graph.name, graph.names, wish.explain)  # refuses what is none before the work
    with output.progress() as progress, output.timed() as seconds:
        found = community(graph, chosen.places, truth=wish.truth, progress=progress, **_terms(wish))
    _say_time(output, found, seconds[0])
    size = f"{counted(graph.pages, 'page')}, {counted(graph.links, 'link')}"
    return told_of(output, found, chosen.rule, f"{path}, a graph that plays the web: {size}")


def _replayed(output: Output, path: str, wish: Wish) -> Told:
    """Let a survey play the web: what it never read cannot be read."""
    import numpy as np

    from surveyor.communities.community import community
    from surveyor.communities.local import Rule
    from surveyor.communities.replayed import replayed
    from surveyor.crawling.survey import Survey

    rule = str(Rule.parse(wish.local or ""))
    terms = _terms(wish)
    with Survey(path) as survey, output.progress() as progress, output.timed() as seconds:
        if wish.start == "all":  # nothing is left to read then
            terms |= {"start": np.flatnonzero(replayed(survey).read), "extra": 0}
        if wish.damping is None:
            terms["damping"] = survey.damping
        found = community(survey, rule, replay=True, progress=progress, **terms)
    _say_time(output, found, seconds[0])
    return told_of(output, found, rule, f"{path}, a survey, replayed: nothing was fetched")


def _terms(wish: Wish) -> dict[str, Any]:
    return {
        "extra": wish.extra or EXTRA, "select": wish.select or "complement", "rounds": wish.rounds,
        "estimator": wish.estimator, "still": wish.still or 0.0, "back_links": wish.back_links,
        "damping": wish.damping, "rng": RNG if wish.rng is None else wish.rng,
    }  # fmt: skip


def _say_time(output: Output, found: CommunityRank, seconds: float) -> None:
    from surveyor.report.numbers import counted, duration

    output.say(f"{counted(found.known.pages.size, 'page')} read in all, {duration(seconds)}")


def told_of(output: Output, found: CommunityRank, rule: str, source: str, place: str = "") -> Told:
    """Say what kept it from learning anything; the exit code is 3 then."""
    unasked = found.ending == "spent" and not found.extra.size
    if unasked:
        output.say("no page was asked for: the estimate is from links that are known")
    elif found.ending == "nothing" and not place:
        output.warn(f"no page of {rule} links to a page outside that can be read: there is nothing to learn from")
    elif found.extra.size and not found.read:
        output.warn(f"none of {found.extra.size:,} pages outside could be read: nothing was learnt from them")
    return Told(found, rule, source, 0 if unasked or found.read else NOTHING, place)


def local_entry(pages: IdArray, name: Callable[[int], str], names: Names | None, text: str) -> int:
    """Find a local page by its name, by its path alone, or by its id as #3; return which of them it is."""
    from surveyor.cli.pages import ID

    page = names.find(text) if names is not None else None
    if page is None and (ID.fullmatch(text) or (names is None and text.isdecimal())):
        page = int(text.removeprefix("#"))
    if page is not None:
        found = (pages == page).nonzero()[0].tolist()
    else:
        spelt = [name(page) for page in pages.tolist()] if text.startswith("/") else []
        found = [place for place, url in enumerate(spelt) if re.sub("^https?://[^/]+", "", url) == text]
    if len(found) == 1:
        return int(found[0])
    raise UsageError(f"{text} is no local page", hint="give a name as the list shows it, or an id as #3")


def keep(output: Output, told: Told, *, out: str | None, plot: str | None, report: str | None) -> None:
    """Write what was asked for; each file appears when it is complete."""
    from surveyor.graph.formats.streams import aside
    from surveyor.report.community_files import write_community

    found = told.found
    if found is None:
        return
    if out:
        write_community(found, out)
        output.say(f"local pages written to {out}")
    if plot:
        from surveyor.report.community_plots import both_plots
        from surveyor.report.svg import alone

        with aside(Path(plot)) as draft:
            draft.write_text(alone(both_plots(found)), "utf-8")
        output.say(f"plot written to {plot}")
    if report:
        from surveyor.report.community_html import CommunityReport, write_report
        from surveyor.report.survey_html import NO_PLOTS, can_plot

        again = shlex.join(["surveyor", *(click.get_current_context().obj or ())])
        named = told.rule.partition(":")[2] or told.rule
        page = CommunityReport(f"Global rank of {named}", found, told.rule, told.source, again, plots=can_plot())
        with aside(Path(report)) as draft:
            write_report(page, draft)
        output.say(f"report written to {report}")
        if not can_plot():
            output.say(NO_PLOTS)
