"""The tables of `focused`: errors at equal fetches, ratios to the paper's methods, distributions, precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.community_tables import table
from experiments.sampled_runs import OURS, PAPERS, WALKS, Runs, best, finite, interval, ratio, together
from experiments.topic_webs import TopicWeb

RIVALS = {**{paper: (paper,) for paper in PAPERS}, "the best of them": PAPERS}
GOAL = 0.7  # of the paper's error
PAPER_PRECISION = {"hard-paper": "100 %", "neighbourhood-paper": "70 %", "trial-paper": "26 %"}


@dataclass(frozen=True, eq=False)
class Compared:
    """All methods on one topic at one number of fetches."""

    web: TopicWeb
    fetches: int
    runs: tuple[Runs, ...]

    def of(self, method: str) -> list[Runs]:
        """Return the runs of a method, with as many walks as it was tried with."""
        return [one for one in self.runs if one.method == method]

    def against(self, ours: str, papers: Sequence[str]) -> dict[str, Any]:
        """Return our RMSE of each statistic as a part of the least that these methods of the paper have."""
        mine = next(one for one in self.of(ours) if one.walks == WALKS)
        others = [one for paper in papers for one in self.of(paper)]
        return {
            what: ratio(mine, others, what)
            for what, true in mine.truth.items()
            if 0 < true < 1 or what == "log out-degree"
            if any(one.rmse(what) > 0 for one in others)  # NaN where there was no sample
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "topic": self.web.name,
            "fetches": self.fetches,
            "methods": [
                {
                    "method": one.method, "walks": one.walks, "steps": one.steps, "empty": one.empty,
                    "truth": one.truth,
                    "rmse": {what: finite(one.rmse(what)) for what in one.values},
                    "bias": {what: finite(one.bias(what)) for what in one.values},
                }
                for one in self.runs
            ],
        }  # fmt: skip


def error_table(found: Compared) -> str:
    """Tell RMSE and bias of each method; methods of the paper are labelled with what was measured of their bias."""
    names = list(found.runs[0].truth)
    header = ["method", "steps", *(f"{name} (truth {found.runs[0].truth[name]:.3f})" for name in names), "no sample"]
    rows = []
    for one in found.runs:
        cells = [f"{one.rmse(name):.4f} ({one.bias(name):+.4f})" for name in names]
        rows.append([one.name, f"{one.steps:,.0f}", *cells, f"{one.empty}" if one.empty else "–"])
    title = f"### {found.web.name}, {found.fetches:,} fetches: RMSE (bias)"
    return f"{title}\n\n{table(header, rows, 1)}"


def ratio_table(all_found: Sequence[Compared], ours: str) -> str:
    """Compare one of our methods with the best of the paper's, for each topic and statistic."""
    rows = []
    for one in all_found:
        for what, ratios in one.against(ours, PAPERS).items():
            theirs = best([run for run in one.runs if run.method in PAPERS], what)
            rows.append([one.web.name, f"{one.fetches:,}", what, _told(ratios), theirs.name])
    header = ["topic", "fetches", "of", f"{ours} / best of the paper's", "which is"]
    return table(header, rows, 3)


def target_table(all_found: Sequence[Compared]) -> str:
    """Tell the geometric mean of the ratio of RMSE over all topics and statistics, for each pair of methods."""
    rows = []
    for ours in OURS:
        cells = []
        for papers in RIVALS.values():
            ratios = [one for each in all_found for one in each.against(ours, papers).values()]
            cells.append(_told(together(ratios)) if ratios else "–")
        rows.append([ours, *cells])
    return table(["RMSE as a part of that of", *RIVALS], rows, 1)


def statistic_table(all_found: Sequence[Compared], ours: str) -> str:
    """Tell the same by statistic for one of our methods."""
    kinds = {"shares of pages": ("subtopic", "camp", "blogspot"), "mean log out-degree": ("log out-degree",),
             "links that stay on topic": ("links that stay",)}  # fmt: skip
    rows = []
    for name, kind in kinds.items():
        cells = []
        for papers in RIVALS.values():
            told = [each.against(ours, papers) for each in all_found]
            ratios = [one for each in told for what, one in each.items() if what in kind]
            cells.append(_told(together(ratios)) if ratios else "–")
        rows.append([name, *cells])
    return table([f"{ours}, RMSE as a part of that of", *RIVALS], rows, 1)


def verdict(all_found: Sequence[Compared], ours: str) -> str:
    """Say for each method of the paper whether ours has at least 30 % less error."""
    parts = []
    for paper in (*PAPERS, ""):
        ratios = [one for each in all_found for one in each.against(ours, (paper,) if paper else PAPERS).values()]
        if not ratios:
            continue
        value, low, high = interval(together(ratios))
        word = "met" if value <= GOAL else "missed"
        parts.append(f"{paper or 'the best of them in each cell'} {value:.2f} ({low:.2f} to {high:.2f}), {word}")
    return f"Target: RMSE of {ours} at most {GOAL:g} of the paper's at equal fetches: against {'; '.join(parts)}."


def precision_table(all_found: Sequence[Compared]) -> str:
    """Tell the share of pages on topic among those that walks stood on, and among those fetched."""
    small = [one for one in all_found if one.web.topic.mean() < 0.1]
    rows = []
    for method in (*OURS, *PAPERS):
        runs = [run for one in small for run in one.of(method) if run.walks == WALKS]
        if runs:
            known = [float(np.nanmean(run.stood)) for run in runs if run.empty < run.stood.size]
            stood = float(np.mean(known)) if known else float("nan")
            fetched = np.mean([run.fetched.mean() for run in runs])
            rows.append([method, f"{stood:.0%}", f"{fetched:.0%}", PAPER_PRECISION.get(method, "–")])
    return table(["method", "of pages stood on", "of pages fetched", "in the paper"], rows, 1)


def _told(ratios: Any) -> str:
    value, low, high = interval(ratios)
    return f"{value:.2f} ({low:.2f} to {high:.2f})"
