"""Reports of samples: formatted numbers, files, figures and HTML with hostile names."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surveyor as sv
from surveyor.estimate.sampling.estimates import Estimate
from surveyor.estimate.sampling.sample_result import Sample
from surveyor.report import sample as report
from surveyor.report import sample_plots
from surveyor.report.sample import Breakdown, SampleReport, SampleSummary, Statistic, render, write_pages
from surveyor.report.svg import alone
from surveyor.store.tabular import unescape_cell

BAD = "https://www.bad.example/<script>alert(1)</script>\x1b[31m$x^2$"


def estimate(value: float, low: float, high: float, *, share: bool = True, ess: float = 100.0) -> Estimate:
    return Estimate(value, low, high, 0.95, 0.01, ess, 1000, 500, 8, "", share)


@pytest.fixture(scope="module")
def sample() -> Sample:
    return sv.sample(sv.synthetic_web("small").graph, topic="tld:example", method="trial", until="steps=2000", rng=3)


@pytest.fixture(scope="module")
def hostile() -> Sample:
    """Return a sample of a ring of pages, one of which has a hostile name."""
    names = [f"https://www.site{number}.example/" for number in range(7)]
    ring = [*names, BAD]
    graph = sv.Graph.from_edges([(page, ring[place - 1]) for place, page in enumerate(ring)])
    return sv.sample(graph, topic="everything", method="trial", until="steps=400", rng=3)


# Numbers


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_intervals_round_outward(one: float, two: float, three: float) -> None:
    low, value, high = sorted((one, two, three))
    result = report.format_interval(estimate(value, low, high))
    shown = [float(number) for number in re.findall(r"[\d.]+", result)]
    assert result.endswith(" %")
    if low == high:  # exact: an interval around it would show an error
        assert shown[0] == shown[1] == pytest.approx(100 * low, abs=0.05 + 1e-6)
    else:
        assert shown[0] <= 100 * low + 1e-6
        assert shown[1] >= 100 * high - 1e-6


@pytest.mark.parametrize(
    ("one", "value", "interval"),
    [
        (estimate(0.41234, 0.379, 0.4451), "41.2 %", "37.9 to 44.6 %"),
        (estimate(0, 0, 0.0123), "0.00 %", "0.00 to 1.23 %"),
        (estimate(0.000132, 0.000069, 0.00023), "0.0132 %", "0.0069 to 0.0230 %"),
        (estimate(1, 1, 1), "100.0 %", "100.0 to 100.0 %"),
        (estimate(36777.4, 29635, 46229, share=False), "36,777", "29,635 to 46,229"),
        (estimate(9.512, 7.21, 11.84, share=False), "9.5", "7.2 to 11.9"),
        (estimate(math.inf, 1234, math.inf, share=False), "-", "1,234 or more"),
        (estimate(3, -math.inf, math.inf, share=False), "3", "unknown"),
    ],
)
def test_format_estimates(one: Estimate, value: str, interval: str) -> None:
    assert (report.format_value(one), report.format_interval(one)) == (value, interval)


def test_labels_of_bins() -> None:
    from surveyor.estimate.sampling.estimates import Distribution

    bins = Distribution(((0.0, 1.0), (1.0, 2.0), (2.0, 4.0), (4.0, math.inf)), (estimate(0.25, 0.2, 0.3),) * 4)
    assert Breakdown("out_degree", bins).labels == ["0", "1", "2 to 3", "4 or more"]
    assert report.doubling_bins(0) == [0.0, 1.0, 2.0]
    assert report.doubling_bins(1024)[-2:] == [1024.0, 2048.0]


def test_label_of_empty_category() -> None:
    from surveyor.estimate.sampling.estimates import Distribution

    breakdown = Breakdown("language", Distribution(("", "de\x1b"), (estimate(0.5, 0.4, 0.6),) * 2))
    assert breakdown.labels == ["(none)", "de\\x1b"]
    assert [record[2] for record in report.categories_table(breakdown).records] == ["(none)", "de\\x1b"]


# Files


def rows_of(path: Path) -> list[dict[str, str]]:
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("name", ["pages.csv", "pages.csv.gz", "pages.parquet"])
def test_write_pages(sample: Sample, tmp_path: Path, name: str) -> None:
    path = write_pages(sample, tmp_path / name)
    parquet = name.endswith(".parquet")
    rows = pyarrow.parquet.read_table(path).to_pylist() if parquet else rows_of(path)
    expected = sample.pages()
    assert [row["url"] for row in rows] == expected["url"]
    assert list(rows[0]) == list(expected)
    assert [int(row["visits"]) for row in rows] == expected["visits"]
    weights = np.array([float(row["weight"]) for row in rows])
    assert weights.sum() == pytest.approx(1)
    assert weights == pytest.approx(expected["weight"])
    arts = np.array(["/arts/" in row["url"] for row in rows])
    share = sample.share("url:/arts/")
    assert share.low - 1e-12 <= weights[arts].sum() <= share.high + 1e-12  # burn-in may differ; a census has no error


def test_names_in_files_are_unchanged(hostile: Sample, tmp_path: Path) -> None:
    assert BAD in [unescape_cell(row["url"]) for row in rows_of(write_pages(hostile, tmp_path / "a.csv"))]
    table = pyarrow.parquet.read_table(write_pages(hostile, tmp_path / "a.parquet"))
    assert BAD in table["url"].to_pylist()


# Figures and HTML


def full_summary(sample: Sample) -> SampleSummary:
    statistics = [
        Statistic("share", "url:<script>", sample.share("url:<script>")),
        Statistic("mean", "out_degree", sample.mean("out_degree")),
        Statistic("size", "", sample.size()),
    ]
    edges = report.bin_edges(sample, "out_degree")
    breakdowns = [
        Breakdown("host", sample.distribution("host")),
        Breakdown("out_degree", sample.histogram("out_degree", edges)),
    ]
    return SampleSummary(statistics, breakdowns, [BAD])


def test_figures_are_valid_svg(hostile: Sample) -> None:
    summary = full_summary(hostile)
    figures = sample_plots.all_figures(hostile, summary)
    assert list(figures) == ["running-1", "running-2", "host", "out-degree", "weights"]
    for one in figures.values():
        assert ElementTree.fromstring(alone(one.svg)).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314  # our own
        assert "<script" not in one.svg
        assert "\x1b" not in one.svg
    assert "www.site3.example" in figures["host"].svg
    assert (
        figures["running-1"].svg
        == sample_plots.all_figures(hostile, SampleSummary(summary.statistics))["running-1"].svg
    )


def test_out_degrees_are_always_plotted(sample: Sample) -> None:
    figures = sample_plots.all_figures(sample, SampleSummary())
    assert list(figures) == ["out-degree", "weights"]
    assert "8 to 15" in figures["out-degree"].svg
    assert "steps of the walks" in figures["weights"].svg


def test_independent_draws_have_neither_walks_nor_weights() -> None:
    drawn = sv.sample(sv.synthetic_web("small").graph, topic="tld:example", method="uniform", until="ess=50", rng=3)
    summary = full_summary(drawn)
    figures = sample_plots.all_figures(drawn, summary)
    assert "weights" not in figures
    assert not any("walk" in one.about for one in figures.values())
    page = render(SampleReport(drawn, "<web>", "surveyor sample", summary, figures))
    assert "by independent draws" in page
    assert "<dt>R-hat" not in page


def test_html_escapes_hostile_names(hostile: Sample) -> None:
    summary = full_summary(hostile)
    figures = sample_plots.all_figures(hostile, summary)
    warned = dataclasses.replace(hostile, remarks=("few <b>pages</b>",))
    page = render(SampleReport(warned, "<web>", "surveyor sample '<x>'", summary, figures))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "<b>pages" not in page
    for words in (
        "<h1>Sample of everything</h1>",
        "share with url:&lt;script&gt;",
        "Few &lt;b&gt;pages&lt;/b&gt;.",
        "By host",
        "Pages drawn",
        "Assumptions and diagnostics",
        "<pre>surveyor sample &#x27;&lt;x&gt;&#x27;</pre>",
        "&lt;web&gt;",
    ):
        assert words in page
    assert page.count("<svg") == len(figures)
    assert "src=" not in page  # self-contained
    assert 'href="https://www.site3.example/"' in page
    assert len(page) < 2_000_000


def test_html_without_figures(sample: Sample) -> None:
    page = render(SampleReport(sample, "a graph", "surveyor sample", SampleSummary()))
    assert "<svg" not in page
    assert "Sampled pages" in page
