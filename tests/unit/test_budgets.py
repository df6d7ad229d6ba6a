"""Budgets by rank: against an obvious loop, and as they are written in one line or in a table."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.crawler.budgets import Kind, Limits, Plan, parse, read_limits
from surveyor.errors import InputError, UsageError


def obvious(plan: Plan, rank: int) -> int:
    """Work the pages of one rank out as the formula says, with exact fractions; halves go up."""
    if plan.kind == "flat" or rank < 1:
        return plan.least
    if plan.kind == "power":
        return max(plan.least, round(plan.most * math.pow(rank, -plan.gamma)))
    if rank > plan.ranks:
        return plan.least
    part = Fraction(rank - 1, plan.ranks - 1) if plan.ranks > 1 else Fraction(0)
    return math.floor(plan.least + (plan.most - plan.least) * (1 - part) + Fraction(1, 2))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    kind: Kind = draw(st.sampled_from(get_args(Kind)))
    least = draw(st.integers(1, 50))
    most = least if kind == "flat" else draw(st.integers(least, 5_000))
    ranks = draw(st.integers(1, 300)) if kind == "star" else 10_000
    if kind == "auto":
        least, most = 10, 10_000
    gamma = draw(st.floats(0.05, 3)) if kind == "power" else 1.0
    return Plan(kind, least, most, ranks, gamma, draw(st.sampled_from([0, 7])))


@given(plans(), st.lists(st.integers(-3, 500), max_size=40))
def test_pages_are_those_of_the_formula(plan: Plan, ranks: list[int]) -> None:
    assert plan.pages(np.array(ranks, np.int64)).tolist() == [obvious(plan, rank) for rank in ranks]


@given(plans())
def test_budgets_rise_with_rank_and_never_fall_below_the_minimum(plan: Plan) -> None:
    pages = plan.pages(np.arange(1, 600))
    assert (np.diff(pages) <= 0).all()
    assert pages[0] == plan.most
    assert pages[-1] >= plan.least
    assert (pages[plan.reach :] == plan.least).all()


@given(plans(), st.integers(0, 700), st.integers(0, 5))
def test_the_total_is_the_sum(plan: Plan, domains: int, trusted: int) -> None:
    each = sum(obvious(plan, rank) for rank in range(1, domains + 1))
    assert plan.total(domains, trusted) == each + trusted * plan.trusted


@given(plans())
def test_what_is_written_is_read_again(plan: Plan) -> None:
    assert parse(str(plan)) == plan


def test_the_default_is_that_of_irlbot() -> None:
    assert parse("star") == Plan("auto")
    assert parse("star").for_graph(10**6) == parse("star:10-10000") == Plan("star", 10, 10_000, 10_000)
    assert parse("star").for_graph(50).ranks == 50
    assert parse("star:5x").for_graph(10**6) == parse("star:50-50000@10000")
    assert Plan().pages(np.array([1, 10_000, 10_001])).tolist() == [10_000, 10, 10]
    assert Plan(ranks=1).pages(np.array([1, 2])).tolist() == [10_000, 10]


def test_large_numbers_do_not_overflow() -> None:
    plan = parse("star:1-1g@1g")
    assert plan.pages(np.array([1, 10**9, 10**12])).tolist() == [10**9, 1, 1]


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("500", Plan("flat", 500, 500)),
        (" Flat:2K ", Plan("flat", 2_000, 2_000)),
        ("1.5k+250", Plan("flat", 1_500, 1_500, trusted=250)),
        ("star:5-100", Plan("star", 5, 100, 10_000)),
        ("star:5-100@20+1", Plan("star", 5, 100, 20, trusted=1)),
        ("power:0.8", Plan("power", 10, 10_000, gamma=0.8)),
        ("power:1:1-1_000", Plan("power", 1, 1_000, gamma=1.0)),
        ("star+5", Plan("auto", trusted=5)),
        ("star,score=tse,p=auto", Plan("auto")),
        ("Star, score=SUPP", Plan("auto", score="supp")),
        ("star,p=1%,error=20%", Plan("auto", p=0.01, error=0.2)),
        ("star:5-100@20+1,score=in", Plan("star", 5, 100, 20, trusted=1, score="in")),
    ],
)
def test_plans_in_one_line(text: str, plan: Plan) -> None:
    assert parse(text) == plan


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' is not a budget"),
        ("moon", "'moon' is not a budget"),
        ("star:10", "'star:10' is not a budget"),
        ("power", "'power' is not a budget"),
        ("-5", "'-5' is not a budget"),
        ("1.2345k", "'1.2345k' is not a number of pages"),
        ("star+many", "'many' is not a number of pages"),
        ("0", "a budget from 0 to 0 pages"),
        ("star:100-10", "a budget from 100 to 10 pages"),
        ("star:1-10@0", "a budget with 0 ranks"),
        ("power:0", "a budget with power 0"),
        ("9999g", "pages"),
        ("star,score=pagerank", "by the score 'pagerank'"),
        ("star,p=2", "a budget with p = 2"),
        ("star,p=x", "'x' is not a share"),
        ("star,error=0", "a budget with an error of 0"),
        ("star,size=3", "'size=3' is not an option"),
        ("star,p=0.1,p=0.2", "'p=0.2' is not an option"),
        ("star,score=in,p=0.1", "only tse has p and error"),
        ("500,score=in", "500 needs no ranking"),
    ],
)
def test_bad_plans_get_one_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert says in caught.value.problem
    assert caught.value.hint
    assert "\n" not in caught.value.problem


def test_limits_by_rank_name_only_what_differs_and_trust_adds() -> None:
    limits = Limits.by_rank(
        Plan("star", 10, 30, 3, trusted=5), ["a.org", "b.org", "c.org", "d.org"], ["d.org", "e.org"]
    )
    assert limits.pages == {"a.org": 30, "b.org": 20, "d.org": 15, "e.org": 15}
    assert [limits.of(name) for name in ("c.org", "x.org")] == [10, 10]
    assert Limits.by_rank(Plan("star", 10, 30, 3), ["a.org"], ["a.org"]).of("a.org") == 30


def test_digests_distinguish_limits() -> None:
    one, same = Limits(10, {"a.org": 5, "b.org": 6}), Limits(10, {"b.org": 6, "a.org": 5})
    assert one.digest == same.digest
    assert len({one.digest, Limits(11, one.pages).digest, Limits(10, {"a.org": 5}).digest}) == 3


@pytest.mark.parametrize(
    "lines",
    [
        ["a.org,500", "B.org.,7"],
        ["\ufeffdomain,pages", "a.org,500", "", "b.org,7"],
        ["# made by hand", "position,Domain,score,Pages", '1,a.org,3.5,"500"', "2,b.org,1,7"],
        ["domain,pages\n", "a.org, 500\n", "b.org,7\n", "b.org,7\n"],
    ],
)
def test_tables_are_read_in_many_spellings(lines: list[str]) -> None:
    limits = read_limits(lines, "budgets.csv", rest=10)
    assert limits == Limits(10, {"a.org": 500, "b.org": 7})


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "budgets.csv names no domain"),
        (["domain,pages"], "budgets.csv names no domain"),
        (["domain,score", "a.org,3"], "budgets.csv has no column `pages`"),
        (["a.org"], "row 1: 'a.org' is not a domain and its pages"),
        (["a.org,5", ",5"], "row 2: ',5' is not a domain"),
        (["a.org,many"], "row 1: 'many' is not a number of pages"),
        (["a.org,0"], "row 1: '0' is not a number of pages"),
        (["a.org,-3"], "row 1: '-3' is not a number of pages"),
        (["a.org,2.5"], "row 1: '2.5' is not a number of pages"),
        (["a.org," + "9" * 5_000], "is not a number of pages"),
        (["a.org,5", "a.org,6"], "row 2: a.org has two budgets"),
    ],
)
def test_bad_tables_get_one_sentence(lines: list[str], says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_limits(lines, "budgets.csv", rest=10)
    assert says in caught.value.problem
    assert caught.value.hint


def test_numbers_with_marks_and_a_whole_power() -> None:
    assert {str(parse(text)) for text in ("5_000", "5__000", "5000_")} == {"flat:5000"}
    assert Plan("power", gamma=1).pages(np.array([1, 4])).tolist() == [10_000, 2_500]


@pytest.mark.parametrize("name", ["www.example.org", "joe.github.io", "https://x.org/", "x.com:80"])
def test_a_budget_that_no_domain_could_use_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no registrable domain"):
        read_limits([f"{name},500"], "b.csv", rest=10)
