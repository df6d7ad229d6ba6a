"""Figures and tables of bad domains in rankings, drawn by the real library."""

from __future__ import annotations

import io

import numpy as np
import pytest
from experiments.spam_statistics import NAME, positions_plot

from surveyor.rank.bad_domains import BadDomains, bad_domains_in, top_lists
from surveyor.report.domain_scores import spam_plot, top_table
from surveyor.report.tables import plain_lines, write_csv
from test_race import words_in
from test_report import CONTROL, NASTY

BAD = np.arange(0, 1_000, 10)


def found(name: str, seed: int) -> BadDomains:
    return bad_domains_in(name, np.random.default_rng(seed).permutation(1_000), BAD)


def test_curves_start_at_the_first_bad_domain_and_end_with_all() -> None:
    here = found("in", 1)
    plot = spam_plot([here, found("supp2", 2)])
    words = words_in(plot)
    assert all(word in words for word in ("in", "supp2", "rank", "bad domains up to this rank"))
    assert plot.count("var(--one)") >= 1
    assert plot.count("var(--two)") >= 1
    assert plot == spam_plot([here, found("supp2", 2)])


def test_a_row_for_each_ranking_with_the_first_position() -> None:
    one, other = found("in", 1), found("supp2", 2)
    words = words_in(positions_plot([one, other]))
    assert all(word in words for word in ("in", "supp2", f" {one.first:,} ", f" {other.first:,} "))
    clean = BadDomains("clean", np.empty(0, np.int64), 1_000, 3)
    assert "none" in words_in(positions_plot([clean]))
    assert "after 100" in words_in(positions_plot([BadDomains("late", np.array([900]), 1_000, 3)], first=100))


@pytest.mark.parametrize("name", ["_hidden", "$x^", "日本語", NASTY, CONTROL, ""])
def test_any_name_can_be_drawn(name: str) -> None:
    for plot in (spam_plot([found(name, 1)]), positions_plot([found(name, 1)])):
        assert "\x1b" not in plot
        assert not name.isprintable() or name[:NAME] in words_in(plot)


def test_empty_and_tiny_plots() -> None:
    nothing = BadDomains("x", np.empty(0, np.int64), 0, 0)
    for few in ([], [nothing], [BadDomains("y", np.array([1]), 1, 1)]):
        assert spam_plot(few).startswith("<svg")
        assert positions_plot(few).startswith("<svg")


def test_tops_side_by_side_mark_the_bad() -> None:
    rows = top_lists({"in": np.array([3, 1]), "tse": np.array([1])}, np.array([3]), 2)
    table = top_table(["in", "tse"], rows, lambda node: f"d{node}.com")
    assert [line.split() for line in plain_lines(table)] == [
        ["in", "tse"],
        ["1", "!", "d3.com", "d1.com"],
        ["2", "d1.com"],
    ]
    file = io.StringIO()
    write_csv(table, file)
    assert file.getvalue() == "position,in,in_bad,tse,tse_bad\n1,d3.com,1,d1.com,0\n2,d1.com,0,,\n"
