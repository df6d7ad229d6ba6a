"""The results of `surveyor sample` as tables, text, a file of pages and one HTML page.

Bounds of intervals are rounded outward, with no more decimals than the width of the interval supports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import SurveyorError, UsageError
from surveyor.report import html_page
from surveyor.report.column_files import batches, readable, write_columns
from surveyor.report.numbers import count, counted, percent, printable
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from surveyor.estimate.sampling.diagnostics import Diagnostics
    from surveyor.estimate.sampling.estimates import Distribution, Estimate
    from surveyor.estimate.sampling.goodness_of_fit import GoodnessOfFit
    from surveyor.estimate.sampling.sample_result import Sample
    from surveyor.report.sample_plots import Figure

KEYS = ("statistic", "of", "category", "value", "low", "high", "level", "standard_error", "ess", "pages")
PAGE_COLUMNS = {
    "url": "string",
    "weight": "float64",
    "visits": "int64",
    "degree": "float64",
    "walk": "int64",
    "fetches": "int64",
}
DEFAULT_MEAN = "out_degree"  # estimated if no statistic is requested
SHOWN_CATEGORIES = 12  # in the terminal
HTML_PAGES, HTML_CATEGORIES = 200, 30
ENDINGS = {
    "ess": "the effective sample size was reached",
    "width": "the interval is narrow enough",
    "fetches": "the limit of fetches was reached",
    "steps": "the limit of steps was reached",
    "minutes": "the time limit was reached",
    "complete": "all pages on topic were drawn",
    "missed": "the sample missed a part of the topic",
    "parts": "the walks are in parts of the topic that do not connect",
    "lost": "no page on topic was found",
    "longest": "the maximum number of steps was reached",
    "exhausted": "the walks found no new pages",
    "interrupted": "interrupted",
}
CAVEATS = (
    "Walks visit pages in proportion to their number of neighbours (degree). Each step is weighted by 1/degree, so "
    "that every page on topic that the walks can reach counts equally.",
    "The 95 % intervals cover the true value in 95 of 100 such samples if the walks are long enough to mix. They do "
    "not account for pages that no walk can reach, nor for unknown in-links: where in-links are missing, pages with "
    "many in-links are over-represented, and no interval shows it.",
)
DRAWN = (
    "Stored pages were drawn uniformly and without replacement, and those on topic are the sample, however they are "
    "linked. The 95 % intervals of shares are exact: they cover the true value in at least 95 of 100 such samples.",
)
DIAGNOSTICS = (
    "ESS: effective sample size, the number of independent uniform pages with the same variance. R-hat: near 1 if all "
    "walks cover the same pages. Geweke's z: difference between the start and the end of the walks in standard errors, "
    "within ±2 if they have converged."
)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One requested number."""

    kind: str  # share, mean, size, relative size or recall
    of: str  # a rule, a property, or the name of a list of URLs
    estimate: Estimate

    @property
    def label(self) -> str:
        """Description of the number."""
        return {
            "share": f"share with {self.of}",
            "mean": f"mean {self.of}",
            "size": "number of pages on topic",
            "relative size": "share of all pages that are on topic",
            "recall": f"share contained in {self.of}",
            "recall of all": f"share contained in all of {self.of}",
            "recall of any": f"share contained in any of {self.of}",
            "recall difference": f"recall of {self.of}",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Shares of hosts, domains, languages, or of bins of a number."""

    of: str
    distribution: Distribution

    @property
    def labels(self) -> list[str]:
        """Names of the categories or bins."""
        return [_label(label) for label in self.distribution.labels]


@dataclass(frozen=True, slots=True)
class Fit:
    """A test of a sampled distribution against a known one."""

    of: str
    file: str
    result: GoodnessOfFit


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRequest:
    """Statistics that a sample is to estimate."""

    share: tuple[str, ...] = ()
    mean: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    of: str | None = None  # the property that the stopping rule applies to
    size: bool = False
    recall: tuple[str, ...] = ()
    fit: tuple[str, ...] = ()
    draws: int | None = None

    @property
    def tracked(self) -> tuple[str, ...]:
        """The properties that the stopping rule applies to."""
        return (self.of,) if self.of else (*self.share, *self.mean)


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """Estimates of the requested statistics; empty if no walk found the topic."""

    statistics: Sequence[Statistic] = ()
    breakdowns: Sequence[Breakdown] = ()
    draws: Sequence[str] | None = None  # None if not requested
    fits: Sequence[Fit] = ()
    failures: Sequence[str] = ()  # why a statistic could not be estimated

    def to_dict(self, sample: Sample) -> dict[str, Any]:
        """Return the fields for JSON."""
        fields = sample.to_dict()
        fields["estimates"] = [
            {"statistic": one.kind, "of": one.of, **one.estimate.to_dict()} for one in self.statistics
        ]
        fields["by"] = {one.of: one.distribution.to_dict() for one in self.breakdowns}
        fields["fits"] = [{"of": one.of, "file": one.file, **one.result.to_dict()} for one in self.fits]
        fields["notes"] = [*fields["notes"], *self.failures]
        return fields if self.draws is None else {**fields, "draws": list(self.draws)}


def summarise(
    sample: Sample,
    request: StatisticsRequest,
    recall_urls: Mapping[str, set[str]],
    expected: Mapping[str, Mapping[str, float]],
) -> SampleSummary:
    """Estimate the requested statistics; one that fails is reported in `failures` and does not affect the others."""
    if not sample.trace.on_topic.any():
        return SampleSummary(draws=[] if request.draws else None)
    failures: list[str] = []

    def attempt(option: str, estimate: Callable[[], Any]) -> Any:
        try:
            return estimate()
        except SurveyorError as error:
            failures.append(f"{option} could not be estimated: {error.problem}; {error.hint}")
            return None

    statistics = [
        Statistic(kind, of, estimate)
        for kind, of, option, function in _requested(sample, request, recall_urls)
        if (estimate := attempt(option, function)) is not None
    ]
    breakdowns = [
        Breakdown(name, distribution)
        for name in dict.fromkeys(request.by)
        if (distribution := attempt(f"--by {name}", partial(_distribution, sample, name))) is not None
    ]
    number = request.draws
    draws = None if number is None else attempt(f"--draws {number}", partial(sample.draws, number)) or []
    fits = []
    for name in request.fit:
        of, _, file = name.partition("=")
        if (result := attempt(f"--fit {name}", partial(sample.fits, of, expected[name]))) is not None:
            fits.append(Fit(of, file, result))
    return SampleSummary(statistics, breakdowns, draws, fits, failures)


def _requested(
    sample: Sample, request: StatisticsRequest, recall_urls: Mapping[str, set[str]]
) -> Iterator[tuple[str, str, str, Callable[[], Estimate]]]:
    """Yield kind, property, option and estimator of each requested number."""
    from surveyor.estimate.sampling.properties import NUMERIC

    of = (request.of,) if request.of else ()
    shares = dict.fromkeys((*request.share, *(name for name in of if name not in NUMERIC)))
    means = dict.fromkeys((*request.mean, *(name for name in of if name in NUMERIC)))
    for rule in shares:
        yield "share", rule, f"--share {rule}", partial(sample.share, rule)
    for name in means or (() if shares else (DEFAULT_MEAN,)):
        yield "mean", name, f"--mean {name}", partial(sample.mean, name)
    if request.size:
        yield "size", "", "--size", sample.size
    if request.size and sample.method == "webwalker":
        yield "relative size", "", "--size", sample.relative_size
    for index, urls in recall_urls.items():
        yield "recall", index, f"--recall {index}", partial(sample.recall, urls)
    if len(recall_urls) > 1:
        names, sets = ", ".join(recall_urls), list(recall_urls.values())
        yield "recall of any", names, "--recall", partial(sample.recall, set.union(*sets))
        yield "recall of all", names, "--recall", partial(sample.recall, set.intersection(*sets))
    for one, other in combinations(recall_urls, 2):
        difference = partial(sample.recall_difference, recall_urls[one], recall_urls[other])
        yield "recall difference", f"{one} minus that of {other}", "--recall", difference


def _distribution(sample: Sample, name: str) -> Distribution:
    if name != "topic_link_share":
        return sample.histogram(name, bin_edges(sample, name)) if name == "out_degree" else sample.distribution(name)
    if getattr(sample.source, "needs_draws", False):
        raise UsageError(
            "live walks classify too few link targets of a page for its share of links on topic",
            hint="use --mean topic_link_share, or sample the survey afterwards",
        )
    return sample.histogram(name, [tenth / 10 for tenth in range(11)])


def bin_edges(sample: Sample, name: str) -> list[float]:
    """Return edges of bins for an integer property of pages."""
    import numpy as np

    return doubling_bins(float(np.nanmax(sample.values(name), initial=1)))


def doubling_bins(largest: float) -> list[float]:
    """Return edges of bins of integers that double.

    >>> doubling_bins(9.0)
    [0.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    """
    return [0.0, *(2.0**power for power in range(math.floor(math.log2(max(largest, 1.0))) + 2))]


def _label(label: Any) -> str:
    if not isinstance(label, tuple):
        return printable(str(label)) or "(none)"
    low, high = label
    if high == math.inf:
        return f"{low:g} or more"
    if high <= 1 and high - low < 1:
        return f"{100 * low:g} to {100 * high:g} %"
    return f"{low:g}" if high - low == 1 else f"{low:g} to {high - 1:g}"


def facts(sample: Sample) -> dict[str, str]:
    """Return a description of the walks and their diagnostics, by name."""
    from surveyor.estimate.sampling.walk_methods import method_named

    ess, rhat = worst_diagnostics(sample)
    method = f"{sample.method}: {method_named(sample.method).about}"
    common = {"reach": sample.reach.text, "effective sample size": count(ess)}
    if sample.independent:
        draws = f"{count(sample.distinct_pages)} of the {counted(sample.fetches, 'page')} examined are on topic"
        return {"topic": sample.topic, "method": method, "draws": draws, **common, "ended": ENDINGS[sample.ending]}
    walks = f"{count(sample.walks)}, {counted(sample.steps, 'step')}, {counted(sample.fetches, 'page')} requested"
    return {
        "topic": sample.topic,
        "method": method,
        "walks": walks,
        "pages on topic": f"{count(sample.distinct_pages)} distinct",
        "precision": f"{percent(sample.precision)} of the requested pages",
        **common,
        "R-hat": "unknown: the walks are too short" if math.isnan(rhat) else f"{rhat:.3f}",
        "in-links": _in_links(sample),
        "ended": ENDINGS[sample.ending],
    }


def worst_diagnostics(sample: Sample) -> tuple[float, float]:
    """Return the smallest effective sample size and the largest R-hat of the tracked properties."""
    if not sample.has_estimates:
        return 0.0, math.nan
    diagnostics = sample.diagnostics
    known = [rhat for rhat in diagnostics.rhat.values() if not math.isnan(rhat)]
    return min(diagnostics.ess.values()), max(known, default=math.nan)


def _in_links(sample: Sample) -> str:
    in_links = sample.in_links
    return f"{in_link_share(sample)}: {in_links.source}" + ("; weights partly corrected" if in_links.corrected else "")


def in_link_share(sample: Sample) -> str:
    """Return the share of the in-links of visited pages that were reported."""
    reported = sample.in_links.reported
    if sample.in_links.complete:
        return "all known"
    if not reported.links:
        return "none reported"
    low, high = _down(100 * reported.low, 0), _up(100 * reported.high, 0)
    return f"{percent(reported.value)} reported ({low} to {high} %)"


def statistics_table(statistics: Sequence[Statistic]) -> Table:
    """Return the statistics, one per row."""
    cells = [
        [format_value(one.estimate), format_interval(one.estimate), _ess(one.estimate), one.label] for one in statistics
    ]
    records = [_record(one.kind, one.of, "", one.estimate) for one in statistics]
    level = statistics[0].estimate.level if statistics else 0.95
    return Table(["estimate", f"{100 * level:g} % interval", "ESS", "of the pages on topic"], cells, KEYS, records)


def categories_table(breakdown: Breakdown, shown: int | None = None) -> Table:
    """Return the shares of categories, one per row; records hold all of them."""
    rows = list(zip(breakdown.distribution.shares, breakdown.labels, strict=True))
    cells = [[format_value(one), format_interval(one), _ess(one), label] for one, label in rows[:shown]]
    records = [_record("by", breakdown.of, label, one) for one, label in rows]
    return Table(["share", "95 % interval", "ESS", breakdown.of], cells, KEYS, records)


def fits_table(fits: Sequence[Fit]) -> Table:
    """Return the tests of goodness of fit, one per row."""
    cells = [
        [
            f"{one.result.statistic:,.1f}",
            count(one.result.df),
            f"{one.result.p_value:.3g}",
            f"{one.result.design_effect:.1f}",
            f"{one.of} as in {one.file}",
        ]
        for one in fits
    ]
    return Table(["chi-square", "df", "p-value", "design effect", "test of"], cells, (), ())


def csv_table(summary: SampleSummary) -> Table:
    """Return all statistics and categories as one table."""
    records = [*statistics_table(summary.statistics).records]
    for breakdown in summary.breakdowns:
        records += categories_table(breakdown).records
    return Table(KEYS, [], KEYS, records)


def draws_table(draws: Sequence[str]) -> Table:
    """Return the drawn pages."""
    return Table(["page"], [[printable(url)] for url in draws], ("url",), [[url] for url in draws])


def footnotes(sample: Sample) -> list[str]:
    """Return how to read the estimates."""
    from surveyor.estimate.sampling.walk_methods import method_named

    weights = "weights make every reachable page on topic count equally; intervals are at 95 %"
    if sample.independent:
        weights = "every page on topic was drawn with the same probability; intervals are at 95 %"
    if not method_named(sample.method).exact:
        weights = "this method is implemented as published; its weights are biased, and no interval shows it"
    return [weights, "ESS: effective sample size, the number of independent uniform pages with the same variance"]


def _record(kind: str, of: str, category: str, estimate: Estimate) -> list[Any]:
    fields = estimate.to_dict()
    return [kind, of, category, *(fields[key] for key in KEYS[3:])]


def _ess(estimate: Estimate) -> str:
    return count(estimate.ess) if math.isfinite(estimate.ess) else ""


def format_value(estimate: Estimate) -> str:
    """Format an estimate with the decimals that its interval supports.

    >>> from surveyor.estimate.sampling.estimates import Estimate
    >>> format_value(Estimate(0.41234, 0.379, 0.445, 0.95, 0.02, 870, 2000, 900, 8, "", True))
    '41.2 %'
    >>> format_value(Estimate(12.345, 11.2, 13.5, 0.95, 0.5, 870, 2000, 900, 8, ""))
    '12.3'
    """
    if not math.isfinite(estimate.value):
        return "-"
    scale, unit = (100, " %") if estimate.is_share else (1, "")
    return f"{scale * estimate.value:,.{_decimals(estimate)}f}{unit}"


def format_interval(estimate: Estimate) -> str:
    """Format an interval, rounded outward.

    >>> from surveyor.estimate.sampling.estimates import Estimate
    >>> format_interval(Estimate(0.41234, 0.379, 0.4451, 0.95, 0.02, 870, 2000, 900, 8, "", True))
    '37.9 to 44.6 %'
    >>> format_interval(Estimate(float("inf"), 1234, float("inf"), 0.95, 0.0, 0, 2000, 900, 8, ""))
    '1,234 or more'
    >>> format_interval(Estimate(0.8083, 0.8083, 0.8083, 0.95, 0.0, 120, 120, 120, 1, "", True))
    '80.8 to 80.8 %'
    """
    decimals = _decimals(estimate)
    scale, unit = (100, " %") if estimate.is_share else (1, "")
    if estimate.low == estimate.high and math.isfinite(estimate.low):  # exact: rounding outward would show an error
        exact = f"{scale * estimate.low:,.{decimals}f}"
        return f"{exact} to {exact}{unit}"
    low, high = _down(scale * estimate.low, decimals), _up(scale * estimate.high, decimals)
    if not math.isfinite(estimate.low) and not math.isfinite(estimate.high):
        return "unknown"
    if not math.isfinite(estimate.high):
        return f"{low} or more"
    return f"{low} to {high}{unit}"


def _decimals(estimate: Estimate) -> int:
    """Return the number of decimals: two significant digits of half the interval."""
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return 0
    half = (estimate.high - estimate.low) / 2 * (100 if estimate.is_share else 1)
    exact = half <= 0 and not estimate.is_share and not float(estimate.value).is_integer()
    least = 2 if exact else 1 if estimate.is_share else 0
    return least if half <= 0 else min(6, max(least, 1 - math.floor(math.log10(half))))


def _down(number: float, digits: int) -> str:
    return f"{math.floor(number * 10**digits + 1e-9) / 10**digits:,.{digits}f}" if math.isfinite(number) else "-"


def _up(number: float, digits: int) -> str:
    return f"{math.ceil(number * 10**digits - 1e-9) / 10**digits:,.{digits}f}" if math.isfinite(number) else "-"


def write_pages(sample: Sample, path: str | Path) -> Path:
    """Write the visited pages on topic with their weights, in the format of the suffix."""
    columns = sample.pages()
    columns["url"] = readable(columns["url"])
    kinds = {name: PAGE_COLUMNS[name] for name in columns}
    return write_columns(Path(path), kinds, batches(columns))


@dataclass(frozen=True, slots=True)
class SampleReport:
    """The contents of the HTML report."""

    sample: Sample
    source: str  # description of the graph, survey or seeds
    command: str  # that reproduces it
    summary: SampleSummary
    figures: Mapping[str, Figure] | None = None


def write_report(report: SampleReport, path: str | Path) -> Path:
    """Write the report as one HTML file."""
    return html_page.write(render(report), path)


def render(report: SampleReport) -> str:
    """Return the report as HTML."""
    sample = report.sample
    ess, rhat = worst_diagnostics(sample)
    diagnostics = sample.diagnostics if sample.has_estimates else None
    overview = {
        "pages on topic": count(sample.distinct_pages),
        "pages requested": count(sample.fetches),
        "effective sample size": count(ess),
        **({} if sample.independent else {"R-hat": "-" if math.isnan(rhat) else f"{rhat:.3f}"}),
        "in-links": in_link_share(sample),
    }
    notes = (*sample.notes, *report.summary.failures)
    how = "independent draws" if sample.independent else "random walks with weighted steps"
    parts = [
        f'<p class="soft">A uniform sample of the pages on a topic, by {how}.</p>',
        html_page.facts(overview),
        *(f"<p><b>!</b> {html_page.text(line[0].upper() + line[1:])}.</p>" for line in notes),
        *_statistics_section(report.summary),
        *_fits_section(report.summary),
        *_figures_section(report),
        *_breakdown_sections(report.summary),
        *_pages_section(sample),
        *_draws_section(report.summary),
        "<h2>Assumptions and diagnostics</h2>",
        f"<p>{html_page.text(sample.reach.text[0].upper() + sample.reach.text[1:])}.</p>",
        *(f"<p>{html_page.text(line)}</p>" for line in (DRAWN if sample.independent else CAVEATS)),
        *([] if diagnostics is None else [html_page.grid(_diagnostics_table(diagnostics), DIAGNOSTICS)]),
        *_method_section(report, diagnostics),
    ]
    return html_page.document(f"Sample of {sample.topic}", parts)


def _statistics_section(summary: SampleSummary) -> list[str]:
    if not summary.statistics:
        return []
    about = "Estimates with 95 % confidence intervals; the assumptions are listed below."
    return ["<h2>Estimates</h2>", html_page.grid(statistics_table(summary.statistics), about)]


def _fits_section(summary: SampleSummary) -> list[str]:
    if not summary.fits:
        return []
    about = "Chi-square, divided by the design effect of dependent steps; a small p-value: the distributions differ."
    return ["<h2>Goodness of fit</h2>", html_page.grid(fits_table(summary.fits), about)]


def _figures_section(report: SampleReport) -> list[str]:
    if not report.figures:
        return []
    figures = [html_page.figure(one.svg, f"{one.title}.", one.about) for one in report.figures.values()]
    return ["<h2>Curves</h2>", '<div class="figures">', *figures, "</div>"]


def _breakdown_sections(summary: SampleSummary) -> list[str]:
    parts = []
    for breakdown in summary.breakdowns:
        omitted = len(breakdown.labels) - HTML_CATEGORIES
        about = "Shares of the pages on topic; intervals are per row."
        about += f" {omitted:,} more categories are omitted." if omitted > 0 else ""
        table = categories_table(breakdown, HTML_CATEGORIES)
        parts += [f"<h2>By {html_page.text(breakdown.of)}</h2>", html_page.grid(table, about)]
    return parts


def _pages_section(sample: Sample) -> list[str]:
    columns = sample.pages()
    if not columns["url"]:
        return []
    best = sorted(range(len(columns["url"])), key=lambda row: (-columns["weight"][row], columns["url"][row]))
    cells = [
        [
            percent(columns["weight"][row]),
            count(columns["visits"][row]),
            f"{columns['degree'][row]:,.0f}",
            printable(columns["url"][row]),
        ]
        for row in best[:HTML_PAGES]
    ]
    about = (
        f"The {count(len(cells))} pages with the largest weights, of {count(len(columns['url']))}. Weights sum to "
        "100 %; visits: number of steps on the page; degree: number of neighbours when a walk first drew from it."
    )
    table = Table(["weight", "visits", "degree", "page"], cells, (), ())
    return ["<h2>Sampled pages</h2>", html_page.grid(table, about, links=True)]


def _draws_section(summary: SampleSummary) -> list[str]:
    if not summary.draws:
        return []
    cells = [[count(place), printable(url)] for place, url in enumerate(summary.draws[:HTML_PAGES], 1)]
    about = "Pages drawn uniformly from the pages on topic, with replacement."
    return ["<h2>Pages drawn</h2>", html_page.grid(Table(["", "page"], cells, (), ()), about, links=True)]


def _diagnostics_table(diagnostics: Diagnostics) -> Table:
    def number(value: float, digits: int) -> str:
        return f"{value:.{digits}f}" if math.isfinite(value) else "-"

    cells = [
        [count(ess), number(diagnostics.rhat[name], 3), number(diagnostics.geweke[name], 1), printable(name)]
        for name, ess in diagnostics.ess.items()
    ]
    return Table(["ESS", "R-hat", "Geweke's z", "property"], cells, (), ())


def _method_section(report: SampleReport, diagnostics: Diagnostics | None) -> list[str]:
    sample = report.sample
    walks = {}
    if diagnostics is not None:
        walks = {
            "jumps out of traps": count(diagnostics.jumps),
            "burn-in": counted(diagnostics.burn_in_steps, "step"),
            "mean degree": (
                f"{diagnostics.mean_degree_of_steps:,.1f} over steps, "
                f"{diagnostics.mean_degree_of_pages:,.1f} over pages on topic"
            ),
        }
    values = {
        "source": report.source,
        **{name: value for name, value in facts(sample).items() if name != "R-hat"},
        **walks,
        "random seed": str(sample.rng),
        "made with": html_page.GENERATOR,
    }
    return html_page.method(values, report.command)
