"""What `surveyor community` needs around its list: check, read around the local pages, write files."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.estimate.community.result import CommunityRank

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

    def words(self) -> list[str]:
        """Return the options that give the same numbers again."""
        valued = {
            "--local": self.local, "--extra": self.extra, "--select": self.select, "--rounds": self.rounds,
            "--estimator": None if self.estimator == "auto" else self.estimator,
            "--until": None if self.still is None else f"stable={self.still!r}", "--start": self.start,
            "--back-links": self.back_links, "--into": self.into, "--damping": self.damping, "--rng": self.rng,
        }  # fmt: skip
        words = [word for flag, value in valued.items() if value is not None for word in (flag, str(value))]
        return [*words, *["--replay"] * self.replay, *["--truth"] * self.truth]


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
    from surveyor.cli.graph_source import is_survey
    from surveyor.estimate.community.beginning import extra_pages
    from surveyor.report.column_files import check_file, check_place
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
    if wish.damping is not None and not 0 < wish.damping < 1:
        raise UsageError(f"damping {wish.damping:g} is not between 0 and 1", hint="0.85 is usual")
    _apart({**files, "back_links": wish.back_links})
    if files["out"]:
        check_file(files["out"])
    for place in filter(None, files.values()):
        check_place(place)
    if files["plot"]:
        check_plots()


def _apart(files: Mapping[str, str | None]) -> None:
    """Refuse to write a file over another of the same command."""
    taken: dict[Path, str] = {}
    for name, place in files.items():
        if place and (other := taken.setdefault(Path(place).resolve(), name)) != name:
            both = f"--{other} and --{name.replace('_', '-')}"
            raise UsageError(f"{both} name the same file, {place}", hint="give each a name of its own")


def estimated(output: Output, path: str, wish: Wish, given: Mapping[str, Any]) -> Told:
    """Read around the local pages of a graph or survey, and estimate."""
    from surveyor.cli.graph_source import is_survey

    if not is_survey(path):
        return _simulated(output, path, wish)
    if wish.replay:
        return _replayed(output, path, wish)
    from surveyor.cli.community_live import fetched

    return fetched(output, path, wish, given)


def _simulated(output: Output, path: str, wish: Wish) -> Told:
    """Let a graph play the web."""
    from surveyor.cli.community_page import local_entry
    from surveyor.cli.graph_source import open_graph
    from surveyor.estimate.community.community import community
    from surveyor.estimate.community.local import local_pages
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

    from surveyor.cli.community_page import check_replayed
    from surveyor.estimate.community.community import community
    from surveyor.estimate.community.local import Rule
    from surveyor.estimate.community.replayed import replayed
    from surveyor.survey.survey import Survey

    rule = str(Rule.parse(wish.local or ""))
    terms = _terms(wish)
    with Survey(path) as survey, output.progress() as progress, output.timed() as seconds:
        if wish.explain is not None:
            check_replayed(survey, rule, wish.explain)
        if wish.start == "all":  # nothing is left to read then
            _say_unused(output, wish)
            terms |= {"start": np.flatnonzero(replayed(survey).read), "extra": 0}
        if wish.damping is None:
            terms["damping"] = survey.damping
        found = community(survey, rule, replay=True, progress=progress, **terms)
    _say_time(output, found, seconds[0])
    return told_of(output, found, rule, f"{path}, a survey, replayed: nothing was fetched")


def _say_unused(output: Output, wish: Wish) -> None:
    asking = {"--extra": wish.extra, "--select": wish.select, "--rounds": wish.rounds, "--until": wish.still}
    if unused := ", ".join(flag for flag, value in asking.items() if value is not None):
        output.warn(f"not used: {unused}; a replay with --start all asks for no page, as all of them are read")


def _terms(wish: Wish) -> dict[str, Any]:
    return {
        "extra": wish.extra or EXTRA, "select": wish.select or "complement", "rounds": wish.rounds,
        "estimator": wish.estimator, "still": wish.still or 0.0, "back_links": wish.back_links,
        "damping": wish.damping, "rng": RNG if wish.rng is None else wish.rng,
    }  # fmt: skip


def _say_time(output: Output, found: CommunityRank, seconds: float) -> None:
    from surveyor.report.numbers import counted, duration

    output.info(f"{counted(found.known.pages.size, 'page')} read in all, {duration(seconds)}")


def told_of(output: Output, found: CommunityRank, rule: str, source: str, place: str = "") -> Told:
    """Say what kept it from learning anything; the exit code is 3 if nothing outside was known before, either."""
    from surveyor.report.numbers import counted

    unasked = found.ending == "spent" and not found.extra.size
    before = _known_before(found)
    rest = f"the estimate is from {counted(before, 'page')} outside known before" if before else ""
    if unasked:
        output.info("no page was asked for: the estimate is from links that are known")
    elif found.ending == "nothing" and not place:
        why = rest or "there is nothing to learn from"
        output.warn(f"no page of {rule} links to a page outside that can be read: {why}")
    elif found.extra.size and not found.read:
        asked = int(found.extra.size)
        failed = "the page outside that was asked for" if asked == 1 else f"none of {asked:,} pages outside"
        output.warn(f"{failed} could {'not ' * (asked == 1)}be read: {rest or 'nothing was learnt'}")
    return Told(found, rule, source, 0 if unasked or found.read or before else NOTHING, place)


def _known_before(found: CommunityRank) -> int:
    """Count pages outside that were read before or told by back-links; those without links tell nothing."""
    import numpy as np

    known = found.known
    telling = (found.batch_of == 0) & (known.degrees + known.leaving > 0)
    return int((telling & ~np.isin(known.pages, found.pages)).sum())


def keep(output: Output, told: Told, *, out: str | None, plot: str | None, report: str | None) -> None:
    """Write what was asked for; each file appears when it is complete."""
    from surveyor.graph.formats.streams import aside
    from surveyor.report.community_files import write_community

    found = told.found
    if found is None:
        return
    if out:
        write_community(found, out)
        output.info(f"local pages written to {out}")
    if plot:
        from surveyor.report.community_plots import both_plots
        from surveyor.report.svg import alone

        with aside(Path(plot)) as draft:
            draft.write_text(alone(both_plots(found)), "utf-8")
        output.info(f"plot written to {plot}")
    if report:
        from surveyor.report.community_html import CommunityReport, write_report
        from surveyor.report.survey_html import NO_PLOTS, can_plot

        again = shlex.join(["surveyor", *(click.get_current_context().obj or ())])
        named = told.rule.partition(":")[2] or told.rule
        page = CommunityReport(f"Global rank of {named}", found, told.rule, told.source, again, plots=can_plot())
        write_report(page, Path(report))  # as a draft first
        output.info(f"report written to {report}")
        if not can_plot():
            output.info(NO_PLOTS)
