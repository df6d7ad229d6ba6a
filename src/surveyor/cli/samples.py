"""What `surveyor sample` needs around its table: check what was asked for, walk, and ask the sample."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import SurveyorError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from surveyor.cli.output import Output
    from surveyor.report.samples import Breakdown, Statistic
    from surveyor.sampling.estimates import Estimate
    from surveyor.sampling.properties import Property
    from surveyor.sampling.result import Sample
    from surveyor.sampling.trail import Trail

UNTIL, UNTIL_LIVE = "ess=400", "ess=400,fetches=5000"  # nobody fetches without end unasked
NOT_REACHED = 3  # the exit code, also if something could not be told
GRAPHS = (".graph", ".tsv", ".csv", ".txt", ".gz", ".zst", ".parquet", ".npz", ".mtx", ".graphml", ".gexf")
USUAL = "out_degree"  # the mean that is shown if nothing was asked for
BUDGET = re.compile(r"((?:fetches|steps)\s*=\s*)([\d.]+)", re.IGNORECASE)
BUDGETS = ("fetches", "steps")  # endings that a larger budget puts off


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for."""

    where: tuple[str, ...]
    topic: str
    method: str | None
    until: tuple[str, ...]
    walks: int | None
    share: tuple[str, ...]
    mean: tuple[str, ...]
    by: tuple[str, ...]
    of: str | None
    size: bool
    recall: str | None
    draws: int | None
    in_links: tuple[str, ...]
    start: tuple[str, ...]
    lists: tuple[str, ...]
    reach: int | None
    window: int | None
    rng: int | None
    out: str | None

    @property
    def goal(self) -> str:
        """When to end."""
        return ",".join(self.until) or (UNTIL_LIVE if self.place == "web" else UNTIL)

    @property
    def place(self) -> str:
        """What kind of place it walks in: web, survey or graph."""
        from surveyor.cli.ranked import is_survey

        if len(self.where) != 1 or self.lists or "://" in self.where[0]:
            return "web"
        (word,) = self.where
        if is_survey(word):
            return "survey"
        return "graph" if _is_file(word) or "." not in word else "web"

    @property
    def watched(self) -> tuple[str, ...]:
        """The properties that the goal is about."""
        return (self.of,) if self.of else (*self.share, *self.mean)


def _is_file(word: str) -> bool:
    return Path(word).exists() or word.endswith(GRAPHS)


ASKED = tuple(one.name for one in fields(Wish) if one.name != "where")


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


def check(wish: Wish, given: Mapping[str, Any]) -> None:
    """Refuse what cannot work, before any of it is done."""
    from surveyor.sampling.properties import NUMBERS, check_known
    from surveyor.sampling.topics import Topic
    from surveyor.sampling.until import Until

    if not wish.where and not wish.lists:
        raise UsageError("nothing says where to walk", hint="name a graph, a survey, or URLs to begin at")
    here = wish.place
    _check_where(wish)
    _check_names(wish)
    rules = [Topic.parse(one) for one in (wish.topic, *wish.share, *wish.watched) if one not in NUMBERS]
    if here == "graph" and (worded := next((rule for rule in rules if not rule.free), None)):
        raise UsageError(
            f"{worded.text} needs what pages say, and a graph has their names alone",
            hint="use a rule for URLs (host:, domain:, tld:, prefix:, url:), or walk in a survey or on the web",
        )
    if here != "graph":
        check_known((*wish.mean, *wish.watched), free=rules[0].free)
    if Until.parse(wish.goal).width is not None:
        _check_width(wish)
    fetching = {**given, **({"out": wish.out} if wish.out else {})}
    if fetching and here != "web":
        raise UsageError(
            f"--{next(iter(fetching)).replace('_', '-')} is for pages that are fetched, and in a {here} none are",
            hint="leave it out, or give URLs to begin at",
        )
    if wish.start and here == "web":
        raise UsageError("--start is for graphs and surveys", hint="walks on the web begin at the URLs that are named")
    if "language" in wish.by and here == "graph":
        raise UsageError("a graph does not know in which language pages are", hint="--by language needs their text")
    if wish.in_links and here == "survey":
        raise UsageError("--in-links is not for surveys: all links between pages read are known", hint="leave it out")


def _check_where(wish: Wish) -> None:
    """Refuse what is not there, and graphs and surveys among URLs: nobody means to fetch http://web.graph/."""
    from surveyor.cli.ranked import is_survey

    if wish.place == "graph" and not Path(wish.where[0]).exists():
        raise UsageError(
            f"there is no graph or survey {wish.where[0]!r}", hint="check the name; URLs begin with https://"
        )
    for word in wish.where if wish.place == "web" else ():
        if "://" not in word and (is_survey(word) or _is_file(word)):
            raise UsageError(
                f"{word} is a file or folder, and walks go over one of them alone, or over the web",
                hint="name one graph or survey; URLs begin with https://, and lists of them go with --seeds",
            )


def _check_names(wish: Wish) -> None:
    """Refuse to take the share of a number, or to wait for the interval of a category."""
    from surveyor.sampling.properties import CATEGORIES, NUMBERS

    if number := next((one for one in wish.share if one in NUMBERS), None):
        raise UsageError(f"{number} is a number, and pages have no share of it", hint=f"ask for --mean {number}")
    if kind := next((one for one in (*wish.share, *wish.watched) if one in CATEGORIES), None):
        raise UsageError(
            f"{kind} is no rule that a page meets or not", hint=f"ask for --by {kind}, or name one, such as tld:uk"
        )


def _check_width(wish: Wish) -> None:
    """Refuse a width of nothing, or of links: 3 % of a link is never reached."""
    if not wish.watched:
        raise UsageError("nothing says which interval is to be narrow", hint="name it with --share, --mean or --of")
    if number := next((one for one in wish.watched if one in ("out_degree", "degree")), None):
        raise UsageError(
            f"a width is for shares, and {number} is a number of links",
            hint="name a share with --of, or end by ess=400",
        )


def longer(words: Sequence[str], wish: Wish) -> list[str]:
    """Return a command line with twice the budget; empty if it has none.

    A budget that nobody asked for is written down.
    """
    rules = [one for one in (*wish.until, wish.goal) if BUDGET.search(one)]
    if not rules:
        return []
    if not wish.until:
        return [*words, "--until", _twice(wish.goal)]
    return [_twice(word) if word.removeprefix("--until=") in rules else word for word in words]


def _twice(rule: str) -> str:
    """Double a budget; all of its figures are kept.

    >>> _twice("ess=400,fetches=2.50k"), _twice("steps=1234567")
    ('ess=400,fetches=5k', 'steps=2469134')
    """
    return BUDGET.sub(lambda found: found[1] + _plain(2 * Decimal(found[2])), rule)


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


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
    from surveyor.crawling.survey import Survey
    from surveyor.report.numbers import counted
    from surveyor.sampling.sample import sample

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

    def say(trail: Trail, fetches: int, watched: Mapping[str, Property]) -> None:
        display.watch(watched)
        display(lambda: trail, fetches)

    try:
        taken = sample(
            source, wish.topic, until=wish.goal, of=wish.watched, start=list(start) or None, say=say, **terms
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
    return 0 if sample.reached and sample.trail.on_topic.any() and not told.failed else NOT_REACHED


def told(sample: Sample, wish: Wish, held: set[str]) -> Told:
    """Ask the sample for all that was wished for; `held` are the URLs that --recall names.

    What cannot be told does not take the rest along: it may have taken hours.
    """
    from surveyor.report.samples import Breakdown, Statistic

    if not sample.trail.on_topic.any():
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
    from surveyor.sampling.properties import NUMBERS

    of = (wish.of,) if wish.of else ()  # what the goal is about is told, too
    shares = dict.fromkeys((*wish.share, *(one for one in of if one not in NUMBERS)))
    means = dict.fromkeys((*wish.mean, *(one for one in of if one in NUMBERS)))
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
        from surveyor.crawling.survey import Survey

        with Survey(place) as survey:
            return {url for _, url, visit in survey.pages() if visit is not None and visit.kind == "read"}
    from surveyor.crawling.seeds import read_seeds

    urls = set(read_seeds(place))
    if not urls:
        raise UsageError(f"{place} names no pages", hint="write one URL a line")
    return urls
