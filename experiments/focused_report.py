"""The tables and figures of `focused`: errors at equal fetches, ratios to the paper's methods, precision, bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from experiments.community_tables import table
from experiments.focused_fits import DistributionFits
from experiments.sampled_runs import (
    OURS,
    PAPERS,
    WALKS,
    Runs,
    best,
    bootstrap_interval,
    finite,
    geometric_mean,
    rmse_ratios,
)
from experiments.topic_webs import TopicWeb
from surveyor.arrays import FloatArray
from surveyor.report.svg import INK, LINES, SIZE, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REFERENCES = {**{paper: (paper,) for paper in PAPERS}, "the best of them": PAPERS}
GOAL = 0.7  # of the paper's RMSE
PAPER_PRECISION = {"hard-paper": "100 %", "neighbourhood-paper": "70 %", "trial-paper": "26 %"}
STATISTICS = {
    "shares of pages": ("subtopic", "camp", "blogspot"),
    "mean log out-degree": ("log out-degree",),
    "topic link share": ("topic link share",),
}
MAX_CATEGORIES = 8  # in a figure
SHOWN = ("trial", "mixture", *PAPERS)
Series: TypeAlias = dict[str, tuple[FloatArray, FloatArray | None]]  # heights, and error bars below and above


@dataclass(frozen=True, eq=False)
class Comparison:
    """All methods on one topic with one budget of fetches."""

    web: TopicWeb
    fetches: int
    runs: tuple[Runs, ...]

    def of(self, method: str) -> list[Runs]:
        """Return the runs of a method, for each number of walks."""
        return [runs for runs in self.runs if runs.method == method]

    def ratios(self, ours: str, papers: Sequence[str]) -> dict[str, FloatArray]:
        """Return our RMSE relative to the smallest of these methods of the paper, by statistic."""
        our_runs = next(runs for runs in self.of(ours) if runs.walks == WALKS)
        others = [runs for paper in papers for runs in self.of(paper)]
        return {
            name: rmse_ratios(our_runs, others, name)
            for name, truth in our_runs.truth.items()
            if 0 < truth < 1 or name == "log out-degree"
            if any(runs.rmse(name) > 0 for runs in others)  # NaN without a sample
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        methods = [
            {
                "method": runs.method,
                "walks": runs.walks,
                "steps": runs.steps,
                "empty": runs.empty,
                "truth": runs.truth,
                "rmse": {name: finite(runs.rmse(name)) for name in runs.values},
                "bias": {name: finite(runs.bias(name)) for name in runs.values},
            }
            for runs in self.runs
        ]
        return {"topic": self.web.name, "fetches": self.fetches, "methods": methods}


# --- tables ---


def error_table(comparison: Comparison) -> str:
    """Return RMSE and bias of each method."""
    truth = comparison.runs[0].truth
    header = ["method", "steps", *(f"{name} (true {value:.3f})" for name, value in truth.items()), "no sample"]
    rows = []
    for runs in comparison.runs:
        cells = [f"{runs.rmse(name):.4f} ({runs.bias(name):+.4f})" for name in truth]
        rows.append([runs.name, f"{runs.steps:,.0f}", *cells, f"{runs.empty}" if runs.empty else "–"])
    title = f"### {comparison.web.name}, {comparison.fetches:,} fetches: RMSE (bias)"
    return f"{title}\n\n{table(header, rows, 1)}"


def ratio_table(comparisons: Sequence[Comparison], ours: str) -> str:
    """Compare one of our methods with the best of the paper's, for each topic and statistic."""
    rows = []
    for comparison in comparisons:
        for name, ratios in comparison.ratios(ours, PAPERS).items():
            theirs = best([runs for runs in comparison.runs if runs.method in PAPERS], name)
            rows.append([comparison.web.name, f"{comparison.fetches:,}", name, _ratio_cell([ratios]), theirs.name])
    return table(["topic", "fetches", "of", f"{ours} / best of the paper's", "which is"], rows, 3)


def overall_table(comparisons: Sequence[Comparison]) -> str:
    """Return the geometric mean of the RMSE ratios over all topics and statistics, for each pair of methods."""
    rows = [
        [ours, *(_ratio_cell(_all_ratios(comparisons, ours, papers)) for papers in REFERENCES.values())]
        for ours in OURS
    ]
    return table(["RMSE relative to", *REFERENCES], rows, 1)


def statistic_table(comparisons: Sequence[Comparison], ours: str) -> str:
    """Return the geometric mean of the RMSE ratios by statistic, for one of our methods."""
    rows = [
        [title, *(_ratio_cell(_all_ratios(comparisons, ours, papers, names)) for papers in REFERENCES.values())]
        for title, names in STATISTICS.items()
    ]
    return table([f"{ours}, RMSE relative to", *REFERENCES], rows, 1)


def verdict(comparisons: Sequence[Comparison], ours: str) -> str:
    """State for each method of the paper whether our RMSE is at least 30 % lower."""
    parts = []
    for paper in (*PAPERS, ""):
        ratios = _all_ratios(comparisons, ours, (paper,) if paper else PAPERS)
        if not ratios:
            continue
        value, low, high = bootstrap_interval(geometric_mean(ratios))
        word = "met" if value <= GOAL else "missed"
        parts.append(f"{paper or 'the best of them in each cell'} {value:.2f} ({low:.2f} to {high:.2f}), {word}")
    return f"Target: RMSE of {ours} at most {GOAL:g} of the paper's at equal fetches: against {'; '.join(parts)}."


def precision_table(comparisons: Sequence[Comparison]) -> str:
    """Return the share of pages on topic among the visited and among the fetched pages."""
    small = [comparison for comparison in comparisons if comparison.web.topic.mean() < 0.1]
    rows = []
    for method in (*OURS, *PAPERS):
        selected = [runs for comparison in small for runs in comparison.of(method) if runs.walks == WALKS]
        if selected:
            known = [runs.visited_on_topic for runs in selected if runs.empty < runs.visited_on_topic.size]
            visited = float(np.mean([np.nanmean(shares) for shares in known])) if known else float("nan")
            fetched = np.mean([runs.fetched_on_topic.mean() for runs in selected])
            rows.append([method, f"{visited:.0%}", f"{fetched:.0%}", PAPER_PRECISION.get(method, "–")])
    return table(["method", "of visited pages", "of fetched pages", "in the paper"], rows, 1)


def _all_ratios(
    comparisons: Sequence[Comparison], ours: str, papers: Sequence[str], names: Sequence[str] | None = None
) -> list[FloatArray]:
    found = [comparison.ratios(ours, papers) for comparison in comparisons]
    return [ratios for by_name in found for name, ratios in by_name.items() if names is None or name in names]


def _ratio_cell(ratios: Sequence[FloatArray]) -> str:
    if not ratios:
        return "–"
    value, low, high = bootstrap_interval(geometric_mean(ratios))
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


# --- figures ---


def distribution_plot(fits: DistributionFits) -> str:
    """Draw the true distribution and the mean of the samples of each method, with their 10 to 90 % range."""
    order = np.argsort(-fits.truth)[:MAX_CATEGORIES] if fits.of == "domain" else np.arange(fits.truth.size)
    series: Series = {"truth": (fits.truth[order], None)}
    for method in SHOWN:
        shares = fits.shares[method]
        if len(shares):
            mean = shares.mean(axis=0)[order]
            series[method] = mean, np.abs(np.quantile(shares[:, order], (0.1, 0.9), axis=0) - mean)
    what = "out-degree" if fits.of == "out-degree" else "domain or category"
    return _bars(f"{fits.web.name}: {what}", [fits.names[index] for index in order], series)


def subtopic_plot(comparisons: Sequence[Comparison]) -> str:
    """Draw the true share of the subtopic in each topic and the mean of the samples of each method."""
    shown = [one for one in comparisons if "subtopic" in one.runs[0].truth and one.fetches == one.web.fetches[-1]]
    series: Series = {"truth": (np.array([one.runs[0].truth["subtopic"] for one in shown]), None)}
    for method in SHOWN:
        runs = [next(runs for runs in one.of(method) if runs.walks == WALKS) for one in shown]
        values = [one.values["subtopic"] for one in runs]
        if all(np.isnan(each).all() for each in values):
            continue
        values = [np.zeros(1) if np.isnan(each).all() else each for each in values]
        means = np.array([np.nanmean(each) for each in values])
        ends = np.array([np.nanquantile(each, (0.1, 0.9)) for each in values]).T
        series[method] = means, np.abs(ends - means)
    return _bars("Pages of the subtopic", [one.web.name.replace(": ", ":\n") for one in shown], series)


def _bars(title: str, names: Sequence[str], series: Series) -> str:
    label = "share of the pages on topic"

    def draw(axes: Axes) -> None:
        width = 0.84 / len(series)
        for index, (name, (heights, error_bars)) in enumerate(series.items()):
            axes.bar(
                np.arange(len(names)) - 0.42 + (index + 0.5) * width,
                100 * heights,
                width,
                label=name,
                color=INK if name == "truth" else LINES[index - 1],
                yerr=None if error_bars is None else 100 * error_bars,
                ecolor=INK,
                error_kw={"linewidth": 0.7},
            )
        rotated = max(map(len, names)) > 8
        rotation, alignment = (25, "right") if rotated else (0, "center")
        axes.set_xticks(range(len(names)), names, rotation=rotation, ha=alignment, fontsize=9)
        axes.set_axisbelow(True)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(f"{label}, %")
        axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=11)
        axes.figure.legend(loc="outside lower center", ncols=3, fontsize=9)

    return figure(draw, f"{title}: {label}, truth and samples of each method", title, (SIZE[0] * 1.35, 4.4))
