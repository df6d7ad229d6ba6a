"""A survey as one HTML file: how much it covers and how that grew, its best pages, hosts, and what could not be read.

However large the survey is, the file is not: each table has an end, and each name is cut where it is too long.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report import page, surveys
from surveyor.report.accounts import MEANING, by_kind
from surveyor.report.census import Census, by_domain, by_reason, census, keep_delays
from surveyor.report.mass_bar import mass_bar
from surveyor.report.numbers import at_most, count, counted, duration, percent, share_at_least, share_at_most, size
from surveyor.report.pages import near_ties, order_in_words, top_pages
from surveyor.report.survey_plots import coverage_plot, rate_plot
from surveyor.stopping import coverage_goal, parse_rule
from surveyor.store import layout
from surveyor.survey.survey import Survey
from surveyor.web.urls import host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.arrays import FloatArray
    from surveyor.rank.ranking import Ranking

PAGES, HOSTS, REASONS, REFUSED, SEEDS = 200, 100, 50, 50, 20  # rows at most
ABOUT = (
    "Importance is the share of time that a reader spends on a page who follows links at random and now and then "
    "jumps back to a seed. Without having seen the rest of the web, the crawl knows how much of it the pages hold "
    f"that it has read, at least and at most; {MEANING}."
)
NO_PLOTS = "Plots need matplotlib: pip install 'surveyor[report]', then write the report again."


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known of a made-up web beside what a survey says of it."""

    shares: Mapping[str, float]  # of importance, by URL
    covered: FloatArray  # true coverage after each page read


@dataclass(frozen=True, slots=True)
class SurveyReport:
    """What the report of a survey tells."""

    survey: Survey
    title: str = ""  # by default, the hosts of the seeds
    command: str = ""  # that made the survey; by default, as its settings say
    truth: Truth | None = None
    plots: bool = True


def write_report(
    survey: Survey | Path | str,
    path: Path | str | None = None,
    *,
    title: str = "",
    command: str = "",
    truth: Truth | None = None,
    plots: bool | None = None,
) -> Path:
    """Write the report of a survey as one HTML file, `report.html` in its folder unless said otherwise.

    Without matplotlib there are no plots; `plots=False` leaves them out in any case.
    """
    if not isinstance(survey, Survey):
        with Survey(survey) as opened:
            return write_report(opened, path, title=title, command=command, truth=truth, plots=plots)
    drawn = can_plot() if plots is None else plots
    report = SurveyReport(survey, title, command, truth, drawn)
    return page.write(render(report), survey.folder / layout.REPORT if path is None else path)


def can_plot() -> bool:
    """Say whether plots can be drawn here."""
    return find_spec("matplotlib") is not None


def render(report: SurveyReport) -> str:
    """Return the report as HTML."""
    survey = report.survey
    ranking, found = survey.rank(), survey.as_graph()
    refused = survey.blocked_pages(survey.visits)
    wanted = found.pages[ranking.top(PAGES)].tolist()
    taken = census(survey, ranking, refused, wanted)
    parts = [
        *_headline(report, taken, refused),
        *_figures(report, taken),
        *_pages(report, ranking, taken),
        *_hosts(survey, taken),
        *_refused(survey, refused),
        *_requests(survey, taken),
        *_method(report),
    ]
    return page.document(report.title or _title(survey), parts)


def _title(survey: Survey) -> str:
    hosts = list(dict.fromkeys(host(seed) for seed in survey.manifest.seeds))
    return "Survey of " + ", ".join(hosts[:3]) + (f" and {len(hosts) - 3:,} more" if len(hosts) > 3 else "")


def _headline(report: SurveyReport, taken: Census, refused: list[dict[str, Any]]) -> list[str]:
    survey, coverage = report.survey, report.survey.coverage
    goal = coverage_goal(parse_rule(survey.manifest.setting("until")))
    facts = {
        "captured, at least": share_at_least(coverage.at_least),
        "at most": share_at_most(coverage.at_most),
        **({} if report.truth is None else {"in truth": percent(float(report.truth.covered[-1]))}),
        **({} if goal is None else {"goal": f"{100 * goal:.10g} %"}),
        "pages read": count(survey.pages_fetched),
        "pages known": count(survey.pages_known),
        "hosts": count(len(taken.hosts)),
    }
    reasons: dict[str, float] = {}
    for row in refused:
        reasons[row["reason"]] = reasons.get(row["reason"], 0.0) + row["mass"]
    notes = {"waiting": counted(survey.pages_queued, "page"), "blocked": by_kind(reasons)}
    about = (
        f"{counted(survey.pages_fetched, 'page')} fetched of {count(survey.pages_known)} known, in order of importance."
    )
    return [
        f'<p class="soft">{about}</p>',
        page.facts(facts),
        *mass_bar(coverage, goal, notes),
        *(f"<p>{page.text(line)}</p>" for line in surveys.javascript_lines(survey)),
        f"<p>{page.text(ABOUT)}</p>",
    ]


def _figures(report: SurveyReport, taken: Census) -> list[str]:
    if not report.plots:
        return [f'<p class="soft">{page.text(NO_PLOTS)}</p>']
    survey, history = report.survey, report.survey.history()
    if not history.pages.size:
        return []
    about = "What the crawl could guarantee after each page, from both sides."
    truth = None
    if report.truth is not None:
        truth = report.truth.covered
        about += " The truth, which only a made-up web has, lies between."
    goal = coverage_goal(parse_rule(survey.manifest.setting("until")))
    figures = [page.figure(coverage_plot(history, goal, truth), "Importance captured.", about)]
    if rate := rate_plot(taken.ended):
        about = "How requests ended. Breaks of more than five minutes are left out."
        figures.append(page.figure(rate, "Pages per second.", about))
    return ["<h2>How coverage grew</h2>", '<div class="figures">', *figures, "</div>"]


def _pages(report: SurveyReport, ranking: Ranking, taken: Census) -> list[str]:
    found = report.survey.as_graph()
    rows = top_pages(found.graph, ranking, PAGES)
    visits = [taken.last.get(int(found.pages[row.page])) for row in rows]
    known = None if report.truth is None else report.truth.shares
    distance = ""
    if known is not None:
        true = np.array([known.get(name, 0.0) for name in found.graph.names or ()])
        apart = float(np.abs(ranking.scores - true).sum()) + max(0.0, 1 - float(true.sum()))
        distance = f" All shares together are {apart:.3f} away from the true ones (2 would be nothing in common)."
    about = (
        f"The first {count(len(rows))} of {counted(found.graph.pages, 'page')}. PageRank of all pages known, with "
        "jumps to the seeds; pages not read count as pages without links. For this graph the shares are off by at most "
        f"{at_most(ranking.error)} in all; {order_in_words(near_ties(ranking, PAGES))}.{distance} "
        "Score: 0 to 100, log scale, this survey only."
    )
    return ["<h2>Best pages</h2>", page.grid(surveys.ranked_table(rows, visits, known), about, links=True)]


def _hosts(survey: Survey, taken: Census) -> list[str]:
    shown = taken.hosts[:HOSTS]
    keep_delays(survey, shown)
    about = (
        f"{_first(HOSTS, len(taken.hosts))}Known: pages of the scope, not counting those that lead to others. "
        "Requests: for pages, each try. Errors: those that brought none (http 4xx and 5xx, no answer). Delay: what had "
        "to be kept between an answer and the next request, by the settings or by robots.txt; kept: the shortest there "
        "was."
    )
    parts = ["<h2>Hosts</h2>", page.grid(surveys.hosts_table(shown), about)]
    domains = by_domain(taken.hosts)
    if 1 < len(domains) < len(taken.hosts):
        about = f"{_first(HOSTS, len(domains))}Hosts, summed up."
        parts += ["<h2>Domains</h2>", page.grid(surveys.domains_table(domains[:HOSTS]), about)]
    return parts


def _first(most: int, total: int) -> str:
    return f"The first {count(most)} of {count(total)}, by importance. " if total > most else ""


def _refused(survey: Survey, refused: list[dict[str, Any]]) -> list[str]:
    parts = ["<h2>What could not be read</h2>"]
    if not refused:
        parts.append("<p>Nothing: every page that was asked for could be read, moved or is gone.</p>")
    else:
        rows = by_reason(refused)
        about = f"{_first(REASONS, len(rows))}Importance that waits behind each reason."
        parts.append(page.grid(surveys.reasons_table(rows[:REASONS]), about))
        about = f"The pages with the most importance of {counted(len(refused), 'page')} that could not be read."
        parts.append(page.grid(surveys.refused_table(refused[:REFUSED]), about, links=True))
    leaving = survey.links_by_scope()
    if any(row["where"] != "in scope" for row in leaving):
        about = "Where links lead. Those out of scope are kept but carry no importance; here they count as if they did."
        parts.append(page.grid(surveys.leaving_table(leaving[:REASONS]), about))
    return parts


def _requests(survey: Survey, taken: Census) -> list[str]:
    if not taken.statuses:
        return []
    total = sum(taken.statuses.values())
    seconds = max((float(times.max()) for times in taken.ended.values() if times.size), default=0.0)
    about = f"{counted(total, 'request')} for pages in {duration(seconds)} of crawling, {size(survey.bytes)} received."
    return ["<h2>Answers</h2>", page.grid(surveys.statuses_table(taken.statuses), about)]


def _method(report: SurveyReport) -> list[str]:
    survey = report.survey
    manifest = survey.manifest
    seeds = ", ".join(manifest.seeds[:SEEDS]) + (", …" if len(manifest.seeds) > SEEDS else "")
    facts = {
        "measure": "PageRank: the share of time that a reader who follows links at random spends on each page",
        "jumps go to": "the seeds",
        "seeds": seeds if len(manifest.seeds) <= SEEDS else f"{count(len(manifest.seeds))}: {seeds}",
        "random seed": str(manifest.rng),
        "begun": f"{manifest.created:%Y-%m-%d %H:%M} UTC, with surveyor {manifest.surveyor}",
        "report made with": page.MADE_WITH,
    }
    told = "".join(
        f"<tr><th>{page.text(name)}</th><td>{page.text(_cut(value))}</td></tr>" for name, value in facts.items()
    )
    name = str(survey.folder)
    commands = {
        "To go on:": ["surveyor", "crawl", manifest.seeds[0], "--out", name],
        "To write this report again:": ["surveyor", "report", name],
    }
    again = report.command or surveys.command_of(manifest)
    return [
        "<h2>Method</h2>",
        f'<table class="plain"><tbody>{told}</tbody></table>',
        "<h2>Settings</h2>",
        page.grid(
            surveys.values_table(manifest.settings, manifest.origins),
            "What the survey goes by, and where each value came from. Logins, headers, the proxy and certificates are "
            "not kept in a survey.",
        ),
        f"<p>The command that made it:</p><pre>{page.text(_cut(again, 4000))}</pre>",
        *(f"<p>{why}</p><pre>{page.text(_cut(shlex.join(words), 4000))}</pre>" for why, words in commands.items()),
    ]


def _cut(value: str, longest: int = 2000) -> str:
    return value if len(value) <= longest else value[: longest - 1] + "…"
