"""What `surveyor sample` needs around its table: check what was asked for, walk, and ask the sample."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from surveyor.cli.output import Output
    from surveyor.cli.sample_display import Watched
    from surveyor.report.samples import Breakdown, Statistic
    from surveyor.sampling.result import Sample

UNTIL, UNTIL_LIVE = "ess=400", "ess=400,fetches=5000"  # nobody fetches without end unasked
NOT_REACHED = 3  # the exit code
GRAPHS = (".graph", ".tsv", ".csv", ".txt", ".gz", ".zst", ".parquet", ".npz", ".mtx", ".graphml", ".gexf")
USUAL = "out_degree"  # the mean that is shown if nothing was asked for
BUDGET = re.compile(r"((?:fetches|steps)\s*=\s*)([\d.]+)")


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
        return "graph" if Path(word).exists() or "." not in word or word.endswith(GRAPHS) else "web"

    @property
    def watched(self) -> tuple[str, ...]:
        """The properties that the goal is about."""
        return (self.of,) if self.of else (*self.share, *self.mean)


ASKED = tuple(one.name for one in fields(Wish) if one.name != "where")


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it."""

    sample: Sample
    source: str  # in words
    code: int = 0
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
    draws: Sequence[str] = ()

    def fields(self, sample: Sample) -> dict[str, Any]:
        """Return what JSON says."""
        told: dict[str, Any] = {
            "estimates": [{"statistic": one.kind, "of": one.of, **one.found.to_dict()} for one in self.statistics],
            "by": {one.of: one.found.to_dict() for one in self.breakdowns},
        }
        return {**sample.to_dict(), **told, **({"draws": list(self.draws)} if self.draws else {})}


def check(wish: Wish, given: Mapping[str, Any]) -> None:
    """Refuse what cannot work, before any of it is done."""
    from surveyor.sampling.properties import NUMBERS
    from surveyor.sampling.topics import Topic
    from surveyor.sampling.until import Until

    if not wish.where and not wish.lists:
        raise UsageError("nothing says where to walk", hint="name a graph, a survey, or URLs to begin at")
    here = wish.place
    rules = [Topic.parse(one) for one in (wish.topic, *wish.share, *wish.watched) if one not in NUMBERS]
    if here == "graph" and (worded := next((rule for rule in rules if not rule.free), None)):
        raise UsageError(
            f"{worded.text} needs what pages say, and a graph has their names alone",
            hint="use a rule for URLs (host:, domain:, tld:, prefix:, url:), or walk in a survey or on the web",
        )
    if Until.parse(wish.goal).width is not None and not wish.watched:
        raise UsageError("nothing says which interval is to be narrow", hint="name it with --share, --mean or --of")
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
    """Double a budget.

    >>> _twice("ess=400,fetches=2k"), _twice("steps=5e3")
    ('ess=400,fetches=4k', 'steps=10e3')
    """
    return BUDGET.sub(lambda found: f"{found[1]}{2 * float(found[2]):g}", rule)


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
    from surveyor.cli.sample_display import WalkDisplay, watching
    from surveyor.crawling.survey import Survey
    from surveyor.report.numbers import counted
    from surveyor.sampling.of_graph import GraphPages, kinds
    from surveyor.sampling.sample import sample
    from surveyor.sampling.topics import Topic

    (path,) = wish.where
    named = {"method": wish.method, "walks": wish.walks, "reach": wish.reach, "window": wish.window, "rng": wish.rng}
    terms: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    source: Any = path
    watched: Watched | None = None
    words = f"{path}, a survey: nothing was fetched"
    if wish.place == "survey":
        Survey(path).close()  # refuses what is none
    start: Sequence[Any] = wish.start
    if wish.place == "graph":
        source = graph = open_graph(output, path)
        words = f"{path}, a graph that plays the web: {counted(graph.pages, 'page')}, {counted(graph.links, 'link')}"
        terms["in_links"], start = _known(wish.in_links), [find(graph, page) for page in start]
        watched = watching(wish.watched, GraphPages(graph, kinds(graph, Topic.parse(wish.topic))))
    display = WalkDisplay(wish.goal, watched, silent=output.quiet, color=output.color)
    try:
        taken = sample(
            source, wish.topic, until=wish.goal, of=wish.watched, start=list(start) or None,
            say=lambda trail, fetches: display(lambda: trail, fetches), **terms,
        )  # fmt: skip
    finally:
        display.clear()
    return Found(taken, words, code(taken))


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


def code(sample: Sample) -> int:
    """Return 0 if the goal was reached."""
    return 0 if sample.reached and sample.trail.on_topic.any() else NOT_REACHED


def told(sample: Sample, wish: Wish, held: set[str]) -> Told:
    """Ask the sample for all that was wished for; `held` are the URLs that --recall names."""
    from surveyor.report.samples import Breakdown, Statistic

    if not sample.trail.on_topic.any():
        return Told()
    means = wish.mean or (() if wish.share else (USUAL,))
    statistics = [
        *(Statistic("share", rule, sample.share(rule)) for rule in wish.share),
        *(Statistic("mean", name, sample.mean(name)) for name in means),
        *([Statistic("size", "", sample.size())] if wish.size else []),
        *([Statistic("relative size", "", sample.relative_size())] if wish.size and wish.method == "webwalker" else []),
        *([Statistic("recall", wish.recall, sample.recall(held))] if wish.recall else []),
    ]
    breakdowns = [Breakdown(name, _spread(sample, name)) for name in wish.by]
    return Told(statistics, breakdowns, sample.draws(wish.draws) if wish.draws else [])


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
