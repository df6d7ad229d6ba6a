"""What `rank`, `top`, `explain` and `demo` share: open a graph, rank it, show how well that went."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from surveyor.store import layout

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray
    from surveyor.cli.output import Output
    from surveyor.crawler.ledger import CoverageInterval
    from surveyor.errors import NotConverged
    from surveyor.graph.csr import Graph
    from surveyor.rank.explain import Explanation
    from surveyor.rank.ranking import Ranking
    from surveyor.survey.survey import Survey

DAMPING = 0.85
WORTH_A_RATE = 1_000_000  # links passed; a rate over fewer says nothing


@dataclass(frozen=True, slots=True)
class Ranked:
    """A graph, its ranking, and whether the ranking is as good as asked for."""

    path: str
    graph: Graph
    ranking: Ranking
    seconds: float
    problem: NotConverged | None
    teleport: FloatArray | None = None
    coverage: CoverageInterval | None = None  # of a survey
    notes: tuple[str, ...] = ()  # what else to know about its pages

    @property
    def exit_code(self) -> int:
        """0, or the code of a guarantee that was not reached."""
        return self.problem.exit_code if self.problem else 0

    def fields(self) -> dict[str, Any]:
        """Return what JSON says about the ranking."""
        ranking = self.ranking
        return {
            "graph": {"path": self.path, "pages": self.graph.pages, "links": self.graph.links},
            "ranking": {
                "damping": ranking.damping, "tolerance": ranking.tolerance, "teleport": ranking.teleport,
                "dangling": ranking.dangling, "solver": ranking.solver, "error": ranking.error,
                "reached": self.problem is None, "sweeps": ranking.sweeps, "seconds": round(self.seconds, 4),
            },
            **({} if self.coverage is None else {"coverage": self.coverage.to_dict()}),
        }  # fmt: skip

    def explain(self, page: int, number: int, *, what_if: bool = False) -> Explanation:
        """Say where the score of a page comes from, under the jumps of this ranking."""
        from surveyor.rank.explain import explain

        return explain(self.graph, self.ranking, page, count=number, what_if=what_if)

    def say(self, output: Output, *more: str) -> None:
        """Print the proven error and what it cost; warn if it is not what was asked for."""
        from surveyor.report.accounts import MEANING, interval
        from surveyor.report.numbers import amount, at_most, counted, duration, tiny

        work = self.graph.links * self.ranking.sweeps
        rate = f", {amount(work / self.seconds)} links/s" if work >= WORTH_A_RATE else ""
        output.line(
            f"{counted(self.graph.pages, 'page')}, {counted(self.graph.links, 'link')}; proven error at most "
            f"{at_most(self.ranking.error)} in total"
        )
        for line in more:
            output.line(line)
        if self.coverage is not None:
            output.line(f"captured {interval(self.coverage)}, {MEANING}")
        for note in self.notes:
            output.line(note)
        output.say(f"{counted(self.ranking.sweeps, 'sweep')}, {duration(self.seconds)}{rate}")
        if self.problem:
            output.warn(
                f"the error bound is still {at_most(self.ranking.error)}, above {tiny(self.ranking.tolerance)}, "
                f"after {counted(self.ranking.sweeps, 'sweep')}."
            )
            output.say("  hint: raise --max-sweeps or --tolerance; the list above is good to the error it states")


def is_survey(path: str) -> bool:
    """Say whether a path is that of a survey, or was meant to be."""
    return layout.is_survey(path) or (path.rstrip("/").endswith(".survey") and not Path(path).exists())


class OpenedSurvey(NamedTuple):
    """What of a survey is ranked, and how."""

    graph: Graph
    teleport: FloatArray | None
    damping: float
    coverage: CoverageInterval
    notes: tuple[str, ...]  # about pages that need JavaScript


def open_survey(path: str, teleport: str | None, *, crawled_only: bool, survey: Survey | None = None) -> OpenedSurvey:
    """Return what of a survey is ranked; one that is open stays open."""
    from surveyor.report.survey_tables import javascript_lines
    from surveyor.survey.survey import Survey

    with nullcontext(survey) if survey else Survey(path) as opened:
        found = opened.as_graph(crawled_only=crawled_only)
        jumps, notes = None if teleport == "uniform" else found.teleport, tuple(javascript_lines(opened))
        return OpenedSurvey(found.graph, jumps, opened.damping, opened.coverage, notes)


def open_graph(output: Output, path: str, threads: int | None = None) -> Graph:
    """Open a graph folder, read any file of links, or take the links of a survey; say what had to be left out."""
    if is_survey(path):
        return open_survey(path, None, crawled_only=False).graph
    from surveyor.cli.options import format_means
    from surveyor.graph.formats import read_graph

    with output.progress() as progress, format_means("`surveyor graph build --format`"):
        graph = read_graph(path, threads=threads, progress=progress)
    if not Path(path).is_dir():
        output.caveats(graph)
    return graph


def rank_graph(
    output: Output,
    path: str,
    *,
    trusted: str | None = None,
    teleport: str | None = None,
    crawled_only: bool = False,
    threads: int | None = None,
    warm_start: str | None = None,
    out: str | None = None,
    damping: float | None = None,
    survey: Survey | None = None,
    **settings: Any,
) -> Ranked:
    """Open and rank a graph or a survey, which may be open; what did not converge is kept, with its own bound."""
    from surveyor.errors import UsageError

    jumps: FloatArray | None = None
    notes: tuple[str, ...] = ()
    coverage, usual = None, DAMPING
    if is_survey(path):
        graph, jumps, usual, coverage, notes = open_survey(path, teleport, crawled_only=crawled_only, survey=survey)
    elif teleport == "seeds" or crawled_only:
        raise UsageError(f"{path} is no survey", hint="--teleport seeds and --crawled-only are for surveys")
    else:
        graph = open_graph(output, path, threads)
    from surveyor.cli.pages import trusted_teleport
    from surveyor.errors import NotConverged
    from surveyor.rank.pagerank import pagerank
    from surveyor.report.scores import check_names

    if out:
        check_names(graph, out)

    jumps = jumps if trusted is None else trusted_teleport(output, graph, trusted)
    start = None if warm_start is None else _earlier(output, graph, warm_start)
    problem = None
    with output.progress() as progress, output.timed() as seconds:
        try:
            settings["damping"] = usual if damping is None else damping
            ranking = pagerank(graph, teleport=jumps, start=start, threads=threads, progress=progress, **settings)
        except NotConverged as error:
            ranking, problem = error.best, error
    return Ranked(path, graph, ranking, seconds[0], problem, jumps, coverage, notes)


def _earlier(output: Output, graph: Graph, path: str) -> FloatArray:
    """Read the ranks to start from; say if they are those of another graph in part."""
    from surveyor.report.numbers import count, counted
    from surveyor.report.scores import read_start

    start = read_start(graph, path)
    if start.known < max(start.ranks, graph.pages):
        output.warn(
            f"{count(start.known)} of {counted(start.ranks, 'rank')} in {path} are of pages in this graph; "
            f"{count(graph.pages - start.known)} of its {counted(graph.pages, 'page')} start with an even share"
        )
    return start.scores
