"""What comes of `surveyor sample`: walk, and ask the sample for all that was wished for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import SurveyorError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from surveyor.cli.output import Output
    from surveyor.cli.sample_wish import Wish
    from surveyor.estimate.sampling.estimates import Estimate
    from surveyor.estimate.sampling.properties import Property
    from surveyor.estimate.sampling.sample_result import Sample
    from surveyor.estimate.sampling.walk_trace import WalkTrace
    from surveyor.report.samples import Breakdown, Statistic

NOT_REACHED = 3  # the exit code, also if something could not be told
USUAL = "out_degree"  # the mean that is shown if nothing was asked for


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it."""

    sample: Sample
    source: str  # in words
    place: str = ""  # the survey of what was fetched


@dataclass(frozen=True, slots=True)
class Stopped:
    """A sample that was stopped, and can be gone on with."""

    code: int
    remark: str


@dataclass(frozen=True, slots=True)
class Told:
    """What the sample tells of all that was asked for; nothing if no walk found the topic."""

    statistics: Sequence[Statistic] = ()
    breakdowns: Sequence[Breakdown] = ()
    draws: Sequence[str] | None = None  # None if none were asked for
    failed: Sequence[str] = ()  # why something is not told

    def fields(self, sample: Sample) -> dict[str, Any]:
        """Return what JSON says."""
        told: dict[str, Any] = {
            "estimates": [{"statistic": one.kind, "of": one.of, **one.found.to_dict()} for one in self.statistics],
            "by": {one.of: one.found.to_dict() for one in self.breakdowns},
        }
        plain = sample.to_dict()
        told["notes"] = [*plain["notes"], *self.failed]
        return {**plain, **told, **({} if self.draws is None else {"draws": list(self.draws)})}


def found(output: Output, wish: Wish, given: Mapping[str, Any]) -> Found | Stopped:
    """Walk."""
    if wish.place == "web":
        from surveyor.cli.sample_live import fetched

        return fetched(output, wish, given)
    return _stored(output, wish)


def _stored(output: Output, wish: Wish) -> Found:
    """Walk in a graph or survey: nothing is fetched."""
    from surveyor.cli.pages import find
    from surveyor.cli.ranked import open_graph
    from surveyor.cli.sample_display import WalkDisplay
    from surveyor.estimate.sampling.sample import sample
    from surveyor.report.numbers import counted
    from surveyor.survey.survey import Survey

    (path,) = wish.where
    named = {"method": wish.method, "walks": wish.walks, "reach": wish.reach, "window": wish.window, "rng": wish.rng}
    terms: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    source: Any = path
    words = f"{path}, a survey: nothing was fetched"
    if wish.place == "survey":
        Survey(path).close()  # refuses what is none
    start: Sequence[Any] = wish.start
    if wish.place == "graph":
        source = graph = open_graph(output, path)
        words = f"{path}, a graph that plays the web: {counted(graph.pages, 'page')}, {counted(graph.links, 'link')}"
        terms["in_links"], start = _known(wish.in_links), [find(graph, page) for page in start]
    display = WalkDisplay(wish.goal, silent=output.quiet, color=output.color)

    def say(trace: WalkTrace, fetches: int, watched: Mapping[str, Property]) -> None:
        display.watch(watched)
        display(lambda: trace, fetches)

    try:
        taken = sample(
            source, wish.topic, until=wish.goal, of=wish.watched, start=list(start) or None, progress=say, **terms
        )
    finally:
        display.clear()
    return Found(taken, words)


def _known(in_links: Sequence[str]) -> Any:
    """Return which in-links of a graph walks know: a share of them, or those of another graph of the same pages."""
    from surveyor.graph.formats import read_graph

    if not in_links:
        return None
    if len(in_links) > 1:
        raise UsageError("a graph knows its in-links, and more than one --in-links is for the web", hint="give one")
    (given,) = in_links
    try:
        return float(given.removesuffix("%")) / (100 if given.endswith("%") else 1)
    except ValueError:
        if not Path(given).exists():
            raise UsageError(
                f"{given} is neither a share of the in-links nor a graph", hint="such as 30%, to see what that does"
            ) from None
        return read_graph(Path(given))


def code(sample: Sample, told: Told) -> int:
    """Return 0 if the goal was reached, and all that was asked for is told."""
    return 0 if sample.reached and sample.trace.on_topic.any() and not told.failed else NOT_REACHED


def told(sample: Sample, wish: Wish, held: set[str]) -> Told:
    """Ask the sample for all that was wished for; `held` are the URLs that --recall names.

    What cannot be told does not take the rest along: it may have taken hours.
    """
    from surveyor.report.samples import Breakdown, Statistic

    if not sample.trace.on_topic.any():
        return Told(draws=[] if wish.draws else None)
    failed: list[str] = []

    def tried(option: str, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except SurveyorError as error:
            failed.append(f"{option} cannot be told: {error.problem}; {error.hint}")
            return None

    statistics = [
        Statistic(kind, of, estimate)
        for kind, of, option, ask in _asked(sample, wish, held)
        if (estimate := tried(option, ask)) is not None
    ]
    breakdowns = [
        Breakdown(name, spread)
        for name in dict.fromkeys(wish.by)
        if (spread := tried(f"--by {name}", partial(_spread, sample, name))) is not None
    ]
    count = wish.draws
    draws = None if count is None else tried(f"--draws {count}", partial(sample.draws, count)) or []
    return Told(statistics, breakdowns, draws, failed)


def _asked(sample: Sample, wish: Wish, held: set[str]) -> Iterator[tuple[str, str, str, Callable[[], Estimate]]]:
    """Yield the kind of each number that was asked for, what it is of, its option, and how to ask for it."""
    from surveyor.estimate.sampling.properties import NUMERIC

    of = (wish.of,) if wish.of else ()  # what the goal is about is told, too
    shares = dict.fromkeys((*wish.share, *(one for one in of if one not in NUMERIC)))
    means = dict.fromkeys((*wish.mean, *(one for one in of if one in NUMERIC)))
    for rule in shares:
        yield "share", rule, f"--share {rule}", partial(sample.share, rule)
    for name in means or (() if shares else (USUAL,)):
        yield "mean", name, f"--mean {name}", partial(sample.mean, name)
    if wish.size:
        yield "size", "", "--size", sample.size
    if wish.size and sample.method == "webwalker":
        yield "relative size", "", "--size", sample.relative_size
    if wish.recall:
        yield "recall", wish.recall, f"--recall {wish.recall}", partial(sample.recall, held)


def _spread(sample: Sample, name: str) -> Any:
    if name != "out_degree":
        return sample.distribution(name)
    from surveyor.report.sample_plots import edges_of

    return sample.histogram(name, edges_of(sample, name))


def held(place: str | None) -> set[str]:
    """Return the URLs that a survey has read, or that a list names."""
    from surveyor.cli.ranked import is_survey

    if place is None:
        return set()
    if is_survey(place):
        from surveyor.survey.survey import Survey

        with Survey(place) as survey:
            return {url for _, url, visit in survey.pages() if visit is not None and visit.kind == "fetched"}
    from surveyor.crawler.seeds import read_seeds

    urls = set(read_seeds(place))
    if not urls:
        raise UsageError(f"{place} names no pages", hint="write one URL a line")
    return urls
