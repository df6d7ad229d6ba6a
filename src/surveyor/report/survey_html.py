"""The report of a survey as one HTML file: coverage and its growth, top pages, hosts, blocked pages and settings.

The size of the file is bounded: each table has a maximum number of rows, and long names are cut. All numbers describe
the journal as it was when the survey was opened; another process may be writing to it.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report import charts, html_page, survey_tables
from surveyor.report.html_page import text
from surveyor.report.numbers import (
    MEANING,
    at_most,
    by_kind,
    confidence_level,
    count,
    counted,
    duration,
    estimate_bound,
    percent,
    share_at_least,
    share_at_most,
    size,
)
from surveyor.report.race import share
from surveyor.report.ranking import near_ties, order_line, top_pages
from surveyor.report.svg import NO_PLOTS, can_plot, lines_plot, thinned_lines
from surveyor.stopping import coverage_goal, parse_rule
from surveyor.store import layout
from surveyor.survey.overview import overview
from surveyor.survey.survey import Survey
from surveyor.web.robots import Robots
from surveyor.web.urls import domain, host, origin

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray
    from surveyor.crawler.coverage_walks import SampledCoverage
    from surveyor.crawler.ledger import CoverageInterval
    from surveyor.outcome import Visit
    from surveyor.rank.pagerank import Ranking
    from surveyor.survey.survey import History

PAGES, HOSTS, REASONS, BLOCKED, SEEDS = 200, 100, 50, 50, 20  # maximum numbers of rows
LONGEST_FACT, LONGEST_COMMAND = 2_000, 4_000  # characters
BINS = 60  # of the rate plot
IDLE = 300.0  # seconds without any request: the crawl was not running
BAR_WIDTH, BAR_HEIGHT, MARK_OVERHANG = 1000, 40, 6  # of the drawing of the five accounts
ACCOUNTS = {  # account -> colour of the page, meaning
    "captured": ("one", "settled on fetched pages"),
    "moving": ("eight", "on fetched pages, not yet passed on to their links"),
    "waiting": ("seven", "on known pages that are not fetched yet"),
    "blocked": ("two", "on pages that cannot be fetched"),
    "lost": ("six", "on pages that are gone"),
}
ABOUT = (
    "Importance is PageRank: the share of time that a random surfer spends on a page when following links at random "
    "and sometimes jumping back to a seed. The crawl has not seen the rest of the web, but it has a lower and an upper "
    f"bound on the importance of the fetched pages, {MEANING}. These bounds are certified: they are always true."
)
ABOUT_SAMPLED = (
    "The sampled lower bound comes from random walks that start on pages not fetched yet. Unlike the certified one it "
    "may be wrong at some moment, but at most once in {crawls:,} crawls, provided that what a page answers does not "
    "depend on which pages were requested before."
)


@dataclass(frozen=True, slots=True)
class Truth:
    """Ground truth about a synthetic web."""

    shares: Mapping[str, float]  # of importance, by URL
    covered: FloatArray  # true coverage after each fetched page


@dataclass(frozen=True, slots=True)
class SurveyReport:
    """A survey and the options of its report."""

    survey: Survey
    title: str = ""  # default: the hosts of the seeds
    command: str = ""  # that created the survey; default: derived from its settings
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
    """Write the report of a survey as one HTML file, by default `report.html` in its folder; return its path.

    Plots need matplotlib; `plots=False` omits them in any case.
    """
    if not isinstance(survey, Survey):
        with Survey(survey) as opened:
            return write_report(opened, path, title=title, command=command, truth=truth, plots=plots)
    report = SurveyReport(survey, title, command, truth, can_plot() if plots is None else plots)
    return html_page.write(render(report), survey.folder / layout.REPORT if path is None else path)


def render(report: SurveyReport) -> str:
    """Return the report as HTML."""
    survey = report.survey
    history = survey.history() if report.plots else None  # first: its replay also derives the state of the survey
    ranking, ranked = survey.ranking, survey.as_graph()
    blocked = survey.blocked_pages(survey.visits)
    summary = summarize(survey, ranking, blocked, ranked.pages[ranking.top(PAGES)].tolist())
    parts = [
        *_headline(report, summary, blocked),
        *_figures(report, history, summary),
        *charts.overview_parts(overview(survey)),
        *_pages(report, ranking, summary),
        *_hosts(survey, summary),
        *_blocked(survey, blocked, _base(summary)),
        *_requests(survey, summary),
        *_method(report),
    ]
    return html_page.document(report.title or _title(survey), parts, sortable=True)


def _title(survey: Survey) -> str:
    hosts = list(dict.fromkeys(host(seed) for seed in survey.manifest.seeds))
    return "Survey of " + ", ".join(hosts[:3]) + (f" and {len(hosts) - 3:,} more" if len(hosts) > 3 else "")


def _headline(report: SurveyReport, summary: CrawlSummary, blocked: list[dict[str, Any]]) -> list[str]:
    survey, coverage, sampled = report.survey, report.survey.coverage, report.survey.sampled
    goal, own = coverage_goal(parse_rule(survey.manifest.setting("until"))), survey.own_importance
    facts = {
        "captured, certified lower bound": share_at_least(coverage.at_least),
        "captured, certified upper bound": share_at_most(coverage.at_most),
        **({} if sampled is None else sampled_facts(sampled)),
        **({} if report.truth is None else {"true coverage": percent(float(report.truth.covered[-1]))}),
        **({} if goal is None else {"goal": f"{100 * goal:.10g} %"}),
        **({} if own is None else {f"importance by {own.method}": estimate_bound(own.error, own.reason)}),
        "pages fetched": count(survey.pages_fetched),
        "pages known": count(survey.pages_known),
        "hosts": count(len(summary.hosts)),
    }
    reasons = {row["reason"]: row["mass"] for row in by_reason(blocked)}
    notes = {"waiting": counted(survey.pages_queued, "page"), "blocked": by_kind(reasons)}
    pages = f"{counted(survey.pages_fetched, 'page')} fetched of {count(survey.pages_known)} known"
    return [
        f'<p class="soft">{pages}, in order of importance.</p>',
        html_page.facts(facts),
        *mass_bar(coverage, goal, notes),
        *(f"<p>{text(line)}</p>" for line in survey_tables.javascript_lines(survey)),
        *(f"<p>{text(line)}</p>" for line in [" ".join(survey_tables.budget_lines(survey))] if line),
        f"<p>{text(ABOUT)}</p>",
        *([] if sampled is None else [f"<p>{text(about_sampled(sampled))}</p>"]),
    ]


def sampled_facts(sampled: SampledCoverage) -> dict[str, str]:
    """Return the sampled lower bound and the walks that it comes from."""
    name = f"captured, lower bound sampled at {confidence_level(sampled.confidence)}"
    return {name: share_at_least(sampled.at_least), "random walks": count(sampled.walks)}


def about_sampled(sampled: SampledCoverage) -> str:
    """Say what the sampled bound guarantees, and what it cost."""
    crawls = math.floor(1 / (1 - sampled.confidence) + 1e-9)
    cost = f"{counted(sampled.walks, 'walk')}, {count(sampled.finished)} of them finished"
    return f"{ABOUT_SAMPLED.format(crawls=crawls)} Here: {cost}, which fetched {counted(sampled.fetches, 'page')}."


def mass_bar(coverage: CoverageInterval, goal: float | None, notes: Mapping[str, str]) -> list[str]:
    """Draw the five accounts of importance as one bar with the goal as a mark, and a legend with notes."""
    shares = {name: max(0.0, getattr(coverage, name)) for name in ACCOUNTS}
    rows = "".join(_account_row(name, part, notes.get(name, "")) for name, part in shares.items())
    mark = " The mark is the goal." if goal is not None else ""
    return [
        _bar(shares, goal),
        f'<table class="accounts"><tbody>{rows}</tbody></table>',
        f'<p class="soft">All importance, in five accounts that always sum to 100 %.{mark}</p>',
    ]


def _bar(shares: Mapping[str, float], goal: float | None) -> str:
    total, at, parts = sum(shares.values()) or 1.0, 0.0, []
    for name, part in shares.items():
        width = BAR_WIDTH * part / total
        parts.append(
            f'<rect x="{at:.2f}" width="{width:.2f}" height="{BAR_HEIGHT}" fill="var(--{ACCOUNTS[name][0]})">'
            f"<title>{name} {100 * part:.2f} %</title></rect>"
        )
        at += width
    height = BAR_HEIGHT + 2 * MARK_OVERHANG
    if goal is not None:
        x = f"{BAR_WIDTH * goal - 1.5:.1f}"
        parts.append(f'<rect x="{x}" y="{-MARK_OVERHANG}" width="3" height="{height}" fill="var(--ink)"/>')
    label = ", ".join(f"{name} {100 * part:.2f} %" for name, part in shares.items())
    return (
        f'<svg class="mass" viewBox="0 {-MARK_OVERHANG} {BAR_WIDTH} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )


def _account_row(name: str, part: float, note: str) -> str:
    color, meaning = ACCOUNTS[name]
    swatch = f'<rect width="10" height="10" fill="var(--{color})"/>'
    more = f' <span class="soft">({text(note)})</span>' if note else ""
    return (
        f'<tr><td><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">{swatch}</svg></td>'
        f"<td>{100 * part:.2f} %</td><td>{name}</td><td>{meaning}{more}</td></tr>\n"
    )


def _figures(report: SurveyReport, history: History | None, summary: CrawlSummary) -> list[str]:
    if history is None:
        return [f'<p class="soft">{text(NO_PLOTS)}</p>']
    if not history.pages.size:
        return []
    about = "Certified lower and upper bound on coverage after each fetched page."
    if history.sampled is not None:
        about += " The sampled lower bound holds with its confidence at all moments together."
    truth = None
    if report.truth is not None:
        truth = report.truth.covered
        about += " The true coverage of this synthetic web lies between the certified bounds."
    goal = coverage_goal(parse_rule(report.survey.manifest.setting("until")))
    figures = [html_page.figure(coverage_plot(history, goal, truth), "Importance captured.", about)]
    if rate := rate_plot(summary.ended):
        about = "Requests by result. Breaks of more than five minutes are left out."
        figures.append(html_page.figure(rate, "Pages per second.", about))
    return ["<h2>Growth of coverage</h2>", '<div class="figures">', *figures, "</div>"]


def coverage_plot(history: History, goal: float | None, truth: FloatArray | None = None) -> str:
    """Plot the bounds of coverage over fetched pages, the goal, and the true coverage where it is known."""
    lines: dict[str, FloatArray] = {"certified lower bound": history.at_least, "upper bound": history.at_most}
    if history.sampled is not None:
        lines["sampled lower bound"] = history.sampled
    if truth is not None:
        lines["true coverage"] = truth
    mark = None if goal is None else (f"goal: {share(goal)}", goal)
    return thinned_lines(lines, mark, x_title="pages fetched", label="bounds of coverage over fetched pages")


def rate_plot(ended: Mapping[str, FloatArray]) -> str:
    """Plot the pages fetched, redirected or failed per second; return an empty string if the crawl took no time."""
    last = max((float(times.max()) for times in ended.values() if times.size), default=0.0)
    if last <= 0:
        return ""
    edges = np.linspace(0, last, min(BINS, max(2, int(last))) + 1)
    unit, word = (3600.0, "hours") if last > 3 * 3600 else (60.0, "minutes") if last > 180 else (1.0, "seconds")
    middles = (edges[:-1] + edges[1:]) / 2 / unit
    width = edges[1] - edges[0]
    series = {kind: (middles, np.histogram(times, edges)[0] / width) for kind, times in ended.items() if times.size}
    label = "pages fetched, redirected and failed per second over time"
    return lines_plot(series, x_title=f"{word} of crawling", y_title="per second", label=label)


def _pages(report: SurveyReport, ranking: Ranking, summary: CrawlSummary) -> list[str]:
    ranked = report.survey.as_graph()
    rows = top_pages(ranked.graph, ranking, PAGES)
    visits = [summary.last.get(int(ranked.pages[row.id])) for row in rows]
    known = None if report.truth is None else report.truth.shares
    distance = ""
    if known is not None:
        true = np.array([known.get(name, 0.0) for name in ranked.graph.names or ()])
        l1 = float(np.abs(ranking.scores - true).sum()) + max(0.0, 1 - float(true.sum()))
        distance = f" L1 distance of all shares to the true ones: {l1:.3f} (2 is the maximum)."
    about = (
        f"The first {count(len(rows))} of {counted(ranked.graph.pages, 'page')}. PageRank of all known pages, with "
        "jumps to the seeds; pages that are not fetched count as pages without links. Error of the shares on this "
        f"graph: at most {at_most(ranking.error)} in total; {order_line(near_ties(ranking, PAGES))}.{distance} "
        "Score: 0 to 100, log scale, comparable within this survey only."
    )
    return [
        "<h2>Top pages</h2>",
        html_page.grid(survey_tables.ranked_table(rows, visits, known), about, links=True, base=_base(summary)),
    ]


def _base(summary: CrawlSummary) -> str:
    """Return the origin of all pages; empty if there are several."""
    origins = set[str]().union(*(one.origins for one in summary.hosts))
    return origins.pop() if len(origins) == 1 else ""


def _hosts(survey: Survey, summary: CrawlSummary) -> list[str]:
    shown = summary.hosts[:HOSTS]
    set_delays(survey, shown)
    about = (
        f"{_first(HOSTS, len(summary.hosts))}Known: pages in scope, without redirects. Requests: requests for pages, "
        "including retries. Errors: requests without a page (HTTP 4xx and 5xx, no response). Delay: required time "
        "between a response and the next request, from the settings or robots.txt. Shortest: the shortest such time "
        "in this crawl."
    )
    parts = ["<h2>Hosts</h2>", html_page.grid(survey_tables.hosts_table(shown), about)]
    domains = by_domain(summary.hosts)
    if 1 < len(domains) < len(summary.hosts):
        about = f"{_first(HOSTS, len(domains))}Sums over the hosts of each registrable domain."
        parts += ["<h2>Domains</h2>", html_page.grid(survey_tables.domains_table(domains[:HOSTS]), about)]
    return parts


def _first(most: int, total: int) -> str:
    return f"The first {count(most)} of {count(total)}, by importance. " if total > most else ""


def _blocked(survey: Survey, blocked: list[dict[str, Any]], base: str) -> list[str]:
    parts = ["<h2>Blocked pages</h2>"]
    if not blocked:
        parts.append("<p>None: every requested page was fetched, redirected or gone.</p>")
    else:
        rows = by_reason(blocked)
        about = f"{_first(REASONS, len(rows))}Importance on blocked pages, by reason."
        parts.append(html_page.grid(survey_tables.reasons_table(rows[:REASONS]), about))
        about = f"The most important of {counted(len(blocked), 'blocked page')}."
        parts.append(html_page.grid(survey_tables.blocked_pages_table(blocked[:BLOCKED]), about, links=True, base=base))
    scopes = survey.links_by_scope()
    if any(row["where"] != "in scope" for row in scopes):
        about = "Links by scope. Links out of scope carry no importance; this table counts them as if they did."
        parts.append(html_page.grid(survey_tables.scope_table(scopes[:REASONS]), about))
    return parts


def _requests(survey: Survey, summary: CrawlSummary) -> list[str]:
    if not summary.statuses:
        return []
    total = sum(summary.statuses.values())
    seconds = max((float(times.max()) for times in summary.ended.values() if times.size), default=0.0)
    about = f"{counted(total, 'request')} for pages in {duration(seconds)} of crawling, {size(survey.bytes)} received."
    return ["<h2>Responses</h2>", html_page.grid(survey_tables.statuses_table(summary.statuses), about)]


def _method(report: SurveyReport) -> list[str]:
    survey = report.survey
    manifest = survey.manifest
    seeds = ", ".join(manifest.written_seeds[:SEEDS]) + (", …" if len(manifest.seeds) > SEEDS else "")
    facts = {
        "measure": "PageRank: the share of time that a random surfer spends on each page",
        "jumps": "to the seeds",
        "seeds": seeds if len(manifest.seeds) <= SEEDS else f"{count(len(manifest.seeds))}: {seeds}",
        "random seed": str(manifest.rng),
        "created": f"{manifest.created:%Y-%m-%d %H:%M} UTC, with surveyor {manifest.surveyor}",
        "report written with": html_page.GENERATOR,
    }
    rows = "".join(
        f"<tr><th>{text(name)}</th><td>{text(_cut(value, LONGEST_FACT))}</td></tr>" for name, value in facts.items()
    )
    name = str(survey.folder)
    commands = {
        "Command that created it:": report.command or survey_tables.command_of(manifest),
        "To resume the crawl:": shlex.join(survey.resume_words),
        "To write this report again:": shlex.join(["surveyor", "report", name]),
    }
    about = (
        "Settings of the survey and their origins. Logins, headers, the proxy and certificates are not stored in a "
        "survey."
    )
    return [
        "<h2>Method</h2>",
        f'<table class="plain"><tbody>{rows}</tbody></table>',
        "<h2>Settings</h2>",
        html_page.grid(survey_tables.values_table(manifest.settings, manifest.origins), about),
        *(f"<p>{title}</p><pre>{text(_cut(line, LONGEST_COMMAND))}</pre>" for title, line in commands.items()),
    ]


def _cut(value: str, longest: int) -> str:
    return value if len(value) <= longest else value[: longest - 1] + "…"


@dataclass(slots=True)
class HostSummary:
    """Counts of a host or domain, and the delays between requests to it."""

    name: str
    fetched: int = 0
    known: int = 0
    share: float = 0.0
    blocked: float = 0.0
    requests: int = 0
    errors: int = 0
    bytes: int = 0
    shortest: float | None = None  # time between a response and the next request, in seconds
    delay: float = 0.0  # required time
    origins: set[str] = field(default_factory=set)
    free_at: float = 0.0  # end of the last response

    def add_request(self, visit: Visit) -> None:
        """Count a request that is in the journal as a visit."""
        self.requests += 1
        self.errors += visit.status >= 400 or not visit.status
        self.bytes += visit.size
        if self.free_at:
            gap = max(0.0, visit.fetched_at - self.free_at)
            self.shortest = gap if self.shortest is None else min(gap, self.shortest)
        self.free_at = max(self.free_at, visit.fetched_at + visit.seconds)


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """Statistics of one pass over the visits."""

    hosts: list[HostSummary]  # most important first
    statuses: dict[str, int]  # requests, by HTTP status
    ended: dict[str, FloatArray]  # end of each request in seconds of crawling: fetched, redirected, failed
    last: dict[int, Visit]  # the latest visit to each of the pages asked for


def summarize(
    survey: Survey, ranking: Ranking, blocked: Sequence[dict[str, Any]] = (), pages: Collection[int] = ()
) -> CrawlSummary:
    """Compute statistics of all visits in one pass, and the latest visits to some pages of the journal."""
    ranked = survey.as_graph()
    hosts: dict[str, HostSummary] = {}
    scores = zip(ranked.graph.names or (), ranking.scores.tolist(), ranked.read.tolist(), strict=True)
    for name, part, fetched in scores:
        one = _host(hosts, name)
        one.known += 1
        one.fetched += fetched
        one.share += part
    for row in blocked:
        if row["mass"] > 0:  # otherwise it is no longer in scope
            _host(hosts, row["url"]).blocked += row["mass"]
    last: dict[int, Visit] = {}
    statuses = Counter[str]()
    ended: dict[str, list[float]] = {"fetched": [], "redirected": [], "failed": []}
    keep = frozenset(pages)
    for visit in islice(survey.journal.visits(), survey.visits):
        if visit.page in keep:
            last[visit.page] = visit
        if visit.fetched_at:  # otherwise no request was sent
            _host(hosts, survey.url(visit.page)).add_request(visit)
            statuses[str(visit.status or "no response")] += 1
            kind = visit.kind if visit.kind in ended else "failed"
            ended[kind].append(visit.fetched_at + visit.seconds)
    for page, at in _retries(survey):
        one = _host(hosts, survey.url(page))
        one.requests += 1
        one.errors += 1
        statuses["retried later"] += 1
        ended["failed"].append(at)
    by_importance = sorted(hosts.values(), key=lambda one: (-one.share, one.name))
    return CrawlSummary(by_importance, dict(statuses.most_common()), _elapsed(ended), last)


def set_delays(survey: Survey, hosts: Sequence[HostSummary]) -> None:
    """Set the required delay of hosts: that of the settings, or of robots.txt if it is longer."""
    least = float(survey.manifest.settings.get("delay", 0.0))
    for one in hosts:
        files = [file for name in one.origins if (file := survey.journal.robots(name)) is not None]
        robots = [Robots.from_answer(file.status or None, file.body) for file in files]
        one.delay = max([least, *(rules.crawl_delay or 0.0 for rules in robots)])


def by_domain(hosts: Sequence[HostSummary]) -> list[HostSummary]:
    """Sum hosts by registrable domain, most important first."""
    domains: dict[str, HostSummary] = {}
    for one in hosts:
        name = domain(one.name)
        total = domains.setdefault(name, HostSummary(name))
        for column in ("fetched", "known", "share", "blocked", "requests", "errors", "bytes"):
            setattr(total, column, getattr(total, column) + getattr(one, column))
    return sorted(domains.values(), key=lambda one: (-one.share, one.name))


def by_reason(blocked: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Group blocked pages by reason, most mass first: reason, hosts, pages, mass."""
    mass: defaultdict[str, float] = defaultdict(float)
    pages = Counter[str]()
    hosts: defaultdict[str, set[str]] = defaultdict(set)
    for row in blocked:
        reason = row["reason"]
        mass[reason] += row["mass"]
        pages[reason] += 1
        hosts[reason].add(host(row["url"]))
    most = sorted(mass, key=lambda reason: (-mass[reason], reason))
    return [{"reason": why, "hosts": sorted(hosts[why]), "pages": pages[why], "mass": mass[why]} for why in most]


def _host(hosts: dict[str, HostSummary], url: str) -> HostSummary:
    name = host(url)
    if (one := hosts.get(name)) is None:
        one = hosts[name] = HostSummary(name)
    one.origins.add(origin(url))
    return one


def _retries(survey: Survey) -> Iterator[tuple[int, float]]:
    """Yield the page and time of each failed request that was retried."""
    for event in survey.journal.events():
        page = event.detail.get("page")
        if event.kind == "retry" and event.visit <= survey.visits and isinstance(page, int):
            yield page, event.at


def _elapsed(ended: dict[str, list[float]]) -> dict[str, FloatArray]:
    """Convert Unix times to seconds of crawling, without breaks."""
    every = np.sort(np.array([at for times in ended.values() for at in times], np.float64))
    passed = np.concatenate([np.zeros(min(1, every.size)), np.cumsum(np.minimum(np.diff(every), IDLE))])
    return {kind: np.interp(times, every, passed) if times else np.zeros(0) for kind, times in ended.items()}
