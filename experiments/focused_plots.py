"""Bars as in the paper's figures: the truth beside what samples of each method tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from experiments.focused_fits import Fitted
from experiments.focused_tables import Compared
from experiments.sampled_runs import PAPERS, WALKS
from surveyor.arrays import FloatArray
from surveyor.report.svg import INK, LINES, SIZE, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 8  # bars of categories
Series: TypeAlias = dict[str, tuple[FloatArray, FloatArray | None]]  # heights, and how far down and up runs go
SHOWN = ("trial", "mixture", *PAPERS)


def distribution_plot(found: Fitted) -> str:
    """Draw the true distribution beside the mean of those of each method's samples, with their 10 to 90 % range."""
    order = np.argsort(-found.truth)[:MOST] if found.of == "domain" else np.arange(found.truth.size)
    series: Series = {"truth": (found.truth[order], None)}
    for method in SHOWN:
        shares = found.shares[method]
        if len(shares):
            middle = shares.mean(axis=0)[order]
            spread = np.abs(np.quantile(shares[:, order], (0.1, 0.9), axis=0) - middle)
            series[method] = (middle, spread)
    names = [found.names[place] for place in order]
    what = "out-degree" if found.of == "out-degree" else "domain or category"
    title = f"{found.web.name}: {what}"
    return _bars(title, names, series, "share of the pages on topic")


def subtopic_plot(found: Sequence[Compared]) -> str:
    """Draw the share of the subtopic in each topic: the truth, and the mean of each method's samples."""
    kept = [one for one in found if "subtopic" in one.runs[0].truth and one.fetches == one.web.fetches[-1]]
    series: Series = {"truth": (np.array([one.runs[0].truth["subtopic"] for one in kept]), None)}
    for method in SHOWN:
        runs = [next(run for run in one.of(method) if run.walks == WALKS) for one in kept]
        values = [run.values["subtopic"] for run in runs]
        if all(np.isnan(each).all() for each in values):
            continue
        values = [np.zeros(1) if np.isnan(each).all() else each for each in values]
        middle = np.array([np.nanmean(each) for each in values])
        ends = np.array([np.nanquantile(each, (0.1, 0.9)) for each in values]).T
        series[method] = (middle, np.abs(ends - middle))
    names = [one.web.name.replace(": ", ":\n") for one in kept]
    return _bars("Pages of the subtopic", names, series, "share of the pages on topic")


def _bars(title: str, names: Sequence[str], series: Series, label: str) -> str:
    def draw(axes: Axes) -> None:
        width = 0.84 / len(series)
        for place, (name, (heights, spread)) in enumerate(series.items()):
            at = np.arange(len(names)) - 0.42 + (place + 0.5) * width
            axes.bar(
                at, 100 * heights, width, label=name, color=INK if name == "truth" else LINES[place - 1],
                yerr=None if spread is None else 100 * spread, ecolor=INK, error_kw={"linewidth": 0.7},
            )  # fmt: skip
        turned = max(map(len, names)) > 8
        axes.set_xticks(range(len(names)), names, rotation=25 if turned else 0, ha="right" if turned else "center",
                        fontsize=9)  # fmt: skip
        axes.set_axisbelow(True)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(f"{label}, %")
        axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=11)
        axes.figure.legend(loc="outside lower center", ncols=3, fontsize=9)

    return figure(draw, f"{title}: {label}, the truth beside samples of each method", title, (SIZE[0] * 1.35, 4.4))
