from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.stopping import ENDLESS, Both, Bytes, Coverage, Either, Minutes, Pages, Progress, Requests, Rule, parse

SIMPLE: st.SearchStrategy[Rule] = st.one_of(
    st.builds(Coverage, st.floats(0.01, 0.99)),
    st.builds(Pages, st.integers(1, 100)),
    st.builds(Minutes, st.floats(0.1, 10)),
    st.builds(Bytes, st.integers(1, 100)),
)
RULES: st.SearchStrategy[Rule] = st.recursive(
    SIMPLE,
    lambda inner: st.tuples(inner, inner, st.booleans()).map(lambda t: t[0] | t[1] if t[2] else t[0] & t[1]),
    max_leaves=6,
)
STANDINGS = st.builds(
    Progress,
    pages=st.integers(0, 100),
    seconds=st.floats(0, 600),
    bytes=st.integers(0, 100),
    at_least=st.floats(0, 1),
    best_possible=st.floats(0, 1),
    in_motion=st.sampled_from([0.0, 0.01, 0.02, 1.0]),
)


def test_each_rule_is_done_at_its_limit_and_not_before() -> None:
    before, at = (
        Progress(pages=9, seconds=59.9, bytes=1999, at_least=0.899),
        Progress(pages=10, seconds=60.0, bytes=2000, at_least=0.9),
    )
    for rule in (Coverage(0.9), Pages(10), Minutes(1), Bytes(2000)):
        assert not rule.done(before)
        assert rule.done(at)
        assert rule.reached(at)


def test_coverage_is_hopeless_only_when_little_is_left_in_motion() -> None:
    rule = Coverage(0.9)
    assert not rule.hopeless(Progress(1, best_possible=0.8, in_motion=0.02))
    assert rule.hopeless(Progress(1, best_possible=0.8, in_motion=0.01))
    assert not rule.hopeless(Progress(1, best_possible=0.9, in_motion=0.0))
    assert not (rule | Pages(10)).hopeless(Progress(1, best_possible=0.8, in_motion=0.0))
    assert (rule & Pages(10)).hopeless(Progress(1, best_possible=0.8, in_motion=0.0))


@given(RULES, RULES, STANDINGS)
def test_combined_rules_follow_logic(one: Rule, other: Rule, progress: Progress) -> None:
    assert (one | other).done(progress) == (one.done(progress) or other.done(progress))
    assert (one & other).done(progress) == (one.done(progress) and other.done(progress))
    assert (one | other).hopeless(progress) == (one.hopeless(progress) and other.hopeless(progress))
    assert (one & other).hopeless(progress) == (one.hopeless(progress) or other.hopeless(progress))
    assert (one | other).reached(progress) == (one | other).done(progress)


@given(RULES, RULES, RULES)
def test_grouping_does_not_matter(one: Rule, two: Rule, three: Rule) -> None:
    assert (one | two) | three == one | (two | three)
    assert (one & two) & three == one & (two & three)


@given(RULES, STANDINGS)
def test_limits_say_when_a_rule_is_done(rule: Rule, progress: Progress) -> None:
    limits = rule.limits()
    if limits is not None:
        assert rule.done(progress) == (progress.at_least >= limits[0] or progress.pages >= limits[1])


def test_limits() -> None:
    assert Coverage(0.9).limits() == (0.9, ENDLESS)
    assert Pages(7).limits() == (math.inf, 7)
    assert Requests(7).limits() is None
    assert (Coverage(0.9) | Pages(7) | Coverage(0.8) | Pages(9)).limits() == (0.8, 7)
    assert Pages(2**70).limits() == (math.inf, ENDLESS - 1)  # ENDLESS itself means no limit
    for rule in (Minutes(1), Bytes(1), Coverage(0.9) & Pages(7), Pages(7) | Minutes(1), Pages(7) & Pages(8) | Pages(9)):
        assert rule.limits() is None


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Coverage(0.9), "coverage 90 %"),
        (Coverage(0.57), "coverage 57 %"),
        (Coverage(0.9995), "coverage 99.95 %"),
        (Pages(5000), "5,000 pages"),
        (Pages(1), "1 page"),
        (Requests(20_000), "20,000 requests"),
        (Requests(1), "1 request"),
        (Minutes(1), "1 minute"),
        (Minutes(0.5), "0.5 minutes"),
        (Bytes(2_000_000_000), "2 GB"),
        (Bytes(1500), "1.5 kB"),
        (Bytes(1), "1 byte"),
        (Coverage(0.95) | Pages(5000), "coverage 95 % or 5,000 pages"),
        (Coverage(0.95) | Pages(5000) | Minutes(2), "coverage 95 % or 5,000 pages or 2 minutes"),
        (Coverage(0.95) & Pages(5000) | Minutes(2), "(coverage 95 % and 5,000 pages) or 2 minutes"),
        (Coverage(0.95) & (Pages(5000) | Minutes(2)), "coverage 95 % and (5,000 pages or 2 minutes)"),
    ],
)
def test_rules_in_words(rule: Rule, words: str) -> None:
    assert str(rule) == words


@pytest.mark.parametrize("share", [1, 1.0, np.float64(1)])
def test_full_coverage_is_refused(share: float) -> None:
    with pytest.raises(UsageError) as caught:
        Coverage(share)
    assert caught.value.problem == "a coverage of 100 % cannot be guaranteed: mass always remains on links not followed"
    assert caught.value.hint == "ask for less, such as 0.99"


def test_percentages_are_noticed() -> None:
    with pytest.raises(UsageError, match=r"hint: write 0\.95 for 95 %"):
        Coverage(95)
    with pytest.raises(UsageError, match="hint: ask for less"):
        Coverage(100)


@pytest.mark.parametrize("kind", [Coverage, Pages, Minutes, Bytes])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, -math.inf, "0.5", None])
def test_impossible_values_are_refused(kind: type, value: object) -> None:
    with pytest.raises(UsageError, match="hint: "):
        kind(value)


def test_pages_are_whole() -> None:
    assert Pages(5e3) == Pages(5000)  # type: ignore[arg-type]
    assert type(Pages(np.int64(3)).count) is int  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="whole number"):
        Pages(2.5)  # type: ignore[arg-type]


def test_only_rules_combine() -> None:
    with pytest.raises(TypeError):
        Pages(5) | 5  # type: ignore[operator]
    with pytest.raises(TypeError):
        Pages(5) & 5  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("coverage=0.9", Coverage(0.9)),
        ("coverage=.9", Coverage(0.9)),
        (" Coverage = 90 % ", Coverage(0.9)),
        ("pages=5000", Pages(5000)),
        ("requests=20k", Requests(20_000)),
        ("pages=5_000", Pages(5000)),
        ("pages=5k", Pages(5000)),
        ("pages=1.1k", Pages(1100)),
        ("pages=1.5M", Pages(1_500_000)),
        ("pages=2e6", Pages(2_000_000)),
        ("minutes=10", Minutes(10)),
        ("minutes=0.5", Minutes(0.5)),
        ("bytes=2GB", Bytes(2e9)),
        ("bytes=500 kB", Bytes(5e5)),
        ("bytes=100", Bytes(100)),
        ("coverage=0.9,pages=5k", Coverage(0.9) | Pages(5000)),
        ("coverage=0.9 | pages=5k", Coverage(0.9) | Pages(5000)),
        ("coverage=0.9 & pages=5k", Coverage(0.9) & Pages(5000)),
        ("pages=1,coverage=0.9&pages=5k|minutes=1", Either((Pages(1), Both((Coverage(0.9), Pages(5000))), Minutes(1)))),
    ],
)
def test_rules_are_read_from_text(text: str, rule: Rule) -> None:
    assert parse(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("covrage=0.9", "did you mean coverage?"),
        ("page=5", "did you mean pages?"),
        ("fish=5", "there are coverage, pages, requests, minutes, bytes"),
        ("5000", "'5000' is not a rule"),
        ("", "'' is not a rule"),
        ("pages=5,000", "'000' is not a rule"),
        ("pages=", "'' is not a number of pages"),
        ("pages=many", "write pages=5000 or 5k"),
        ("pages=2.5", "whole number"),
        ("pages=5GB", "not a number of pages"),
        ("pages=0", "at least 1"),
        ("minutes=5k", "not a number of minutes"),
        ("minutes=nan", "not a number of minutes"),
        ("minutes=1e999", "finite"),
        ("bytes=-1", "above 0"),
        ("coverage=100%", "cannot be guaranteed"),
        ("coverage=95", "write 0.95 for 95 %"),
        ("coverage=9k", "write coverage=0.9 or 90%"),
        ("coverage=0.9,", "'' is not a rule"),
    ],
)
def test_text_that_is_no_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_room_is_what_may_be_under_way() -> None:
    now = Progress(pages=3, requests=10)
    assert Coverage(0.9).room(now) == Minutes(1).room(now) == ENDLESS
    assert (Pages(5).room(now), Requests(11).room(now), Requests(5).room(now)) == (2, 1, 0)
    assert (Pages(5) | Requests(11) | Minutes(1)).room(now) == 1
    assert (Pages(5) & Requests(11)).room(now) == 2
    assert (Pages(5) & Coverage(0.9)).room(now) == ENDLESS


def test_requests_must_be_a_whole_number() -> None:
    for wrong in (0, -1, 2.5):
        with pytest.raises(UsageError, match="requests must be a whole number"):
            Requests(wrong)  # type: ignore[arg-type]
    assert Requests(3).done(Progress(0, requests=3))
    assert not Requests(3).done(Progress(9, requests=2))
