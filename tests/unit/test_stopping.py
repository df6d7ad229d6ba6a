from __future__ import annotations

import math
import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import surveyor as sv
from surveyor.errors import UsageError
from surveyor.stopping import (
    COMMUNITY,
    CRAWL,
    NO_LIMIT,
    SAMPLE,
    Both,
    Bytes,
    Coverage,
    Either,
    Minutes,
    Pages,
    Progress,
    Quantities,
    Requests,
    Rule,
    parse_limits,
    parse_rule,
)

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
PROGRESS = st.builds(
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


def test_coverage_is_unreachable_only_when_little_is_left_in_motion() -> None:
    rule = Coverage(0.9)
    assert not rule.unreachable(Progress(1, best_possible=0.8, in_motion=0.02))
    assert rule.unreachable(Progress(1, best_possible=0.8, in_motion=0.01))
    assert not rule.unreachable(Progress(1, best_possible=0.9, in_motion=0.0))
    assert not (rule | Pages(10)).unreachable(Progress(1, best_possible=0.8, in_motion=0.0))
    assert (rule & Pages(10)).unreachable(Progress(1, best_possible=0.8, in_motion=0.0))


@given(RULES, RULES, PROGRESS)
def test_combined_rules_follow_logic(one: Rule, other: Rule, progress: Progress) -> None:
    assert (one | other).done(progress) == (one.done(progress) or other.done(progress))
    assert (one & other).done(progress) == (one.done(progress) and other.done(progress))
    assert (one | other).unreachable(progress) == (one.unreachable(progress) and other.unreachable(progress))
    assert (one & other).unreachable(progress) == (one.unreachable(progress) or other.unreachable(progress))


@given(RULES, RULES, RULES)
def test_grouping_does_not_matter(one: Rule, two: Rule, three: Rule) -> None:
    assert (one | two) | three == one | (two | three)
    assert (one & two) & three == one & (two & three)


@given(RULES, PROGRESS)
def test_limits_agree_with_done(rule: Rule, progress: Progress) -> None:
    limits = rule.limits()
    if limits is not None:
        assert rule.done(progress) == (progress.at_least >= limits[0] or progress.pages >= limits[1])


def test_limits() -> None:
    assert Coverage(0.9).limits() == (0.9, NO_LIMIT)
    assert Pages(7).limits() == (math.inf, 7)
    assert Requests(7).limits() is None
    assert (Coverage(0.9) | Pages(7) | Coverage(0.8) | Pages(9)).limits() == (0.8, 7)
    assert Pages(2**70).limits() == (math.inf, NO_LIMIT - 1)  # NO_LIMIT itself means no limit
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
def test_rules_as_text(rule: Rule, words: str) -> None:
    assert str(rule) == words


@pytest.mark.parametrize("share", [1, 1.0, np.float64(1)])
def test_full_coverage_is_rejected(share: float) -> None:
    with pytest.raises(UsageError) as caught:
        Coverage(share)
    assert "coverage must be above 0 and below 1, got 1: 100 % cannot be certified" in caught.value.problem


def test_percentages_without_a_sign_get_a_hint() -> None:
    with pytest.raises(UsageError, match=r"hint: write 0\.95 for 95 %"):
        Coverage(95)
    with pytest.raises(UsageError, match="coverage must be above 0 and below 1, got 100"):
        Coverage(100)


@pytest.mark.parametrize("kind", [Coverage, Pages, Minutes, Bytes])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, -math.inf, "0.5", None])
def test_values_out_of_range_are_rejected(kind: type, value: object) -> None:
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
        ("coverage=0.9 and pages=5k or minutes=1", (Coverage(0.9) & Pages(5000)) | Minutes(1)),
        ("pages=1,coverage=0.9&pages=5k|minutes=1", Either((Pages(1), Both((Coverage(0.9), Pages(5000))), Minutes(1)))),
    ],
)
def test_rules_are_parsed(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("covrage=0.9", "did you mean coverage?"),
        ("page=5", "did you mean pages?"),
        ("fish=5", "write coverage=0.9, pages=5000, requests=20k, minutes=10 or bytes=2GB"),
        ("5000", "'5000' is not a stopping rule"),
        ("", "'' is not a stopping rule"),
        ("pages=5,000", "'000' is not a stopping rule"),
        ("pages=", "pages= is not a number of pages"),
        ("pages=many", "for example pages=5000"),
        ("pages=1__0", "pages=1__0 is not a number of pages\n  hint: for example pages=5000"),
        ("pages=1_", "pages=1_ is not a number of pages"),
        ("pages=_1", "pages=_1 is not a number of pages"),
        ("pages=1_.5k", "pages=1_.5k is not a number of pages"),
        ("pages=\u0665", "pages=\u0665 is not a number of pages"),  # Arabic-Indic 5
        ("pages=\uff15", "pages=\uff15 is not a number of pages"),  # fullwidth 5
        ("coverage=1__0", "coverage=1__0 is not a number of coverage\n  hint: for example coverage=0.9"),
        ("pages=2.5", "whole number"),
        ("pages=5GB", "not a number of pages"),
        ("pages=0", "at least 1"),
        ("minutes=5k", "not a number of minutes"),
        ("minutes=nan", "not a number of minutes"),
        ("minutes=1e999", "finite"),
        ("bytes=-1", "above 0"),
        ("coverage=100%", "100 % cannot be certified"),
        ("coverage=95", "write 0.95 for 95 %"),
        ("coverage=9k", "for example coverage=0.9"),
        ("coverage=0.9,", "'' is not a stopping rule"),
    ],
)
def test_invalid_text_is_rejected(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "quantities", "limits"),
    [
        ("ess=400", SAMPLE, {"ess": 400}),
        ("width=3% | fetches=2k or steps=100k", SAMPLE, {"width": 0.03, "fetches": 2000, "steps": 100_000}),
        ("stable=1e-3", COMMUNITY, {"stable": 0.001}),
    ],
)
def test_limits_are_parsed_by_the_same_rules(text: str, quantities: Quantities, limits: dict[str, float]) -> None:
    assert parse_limits(text, quantities) == limits


@pytest.mark.parametrize(
    ("text", "quantities", "message"),
    [
        ("ess=many", SAMPLE, "ess=many is not a number of ess"),
        ("ess=1__0", SAMPLE, "ess=1__0 is not a number of ess\n  hint: for example ess=400"),
        ("stable=1__0", COMMUNITY, "stable=1__0 is not a number of stable\n  hint: for example stable=0.001"),
        ("ess=40%", SAMPLE, "ess=40% is not a number of ess"),
        ("fetches=0.5", SAMPLE, "fetches must be a whole number of at least 1, got 0.5"),
        ("width=3", SAMPLE, "width must be above 0 and below 1, got 3"),
        ("ess=4, ess=5", SAMPLE, "each quantity at most once"),
        ("ess=4 & fetches=5", SAMPLE, "separated by commas"),
        ("pages=5", SAMPLE, "write ess=400, width=3%, fetches=2000, steps=100k or minutes=30"),
        ("stable=2", COMMUNITY, "stable must be above 0 and below 2, got 2"),
    ],
)
def test_invalid_limits_are_rejected(text: str, quantities: Quantities, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_limits(text, quantities)
    assert message in str(caught.value)


NUMBERS = st.text("0123456789_.+-eE%kKmMgGtTbB \u0660\u06f3\uff15\u00b2\u0130", max_size=12)
TERMS = st.builds("{}{}{}".format, st.sampled_from([*CRAWL, *SAMPLE, *COMMUNITY, ""]), st.sampled_from("=,"), NUMBERS)
TEXTS = (
    st.text()
    | TERMS
    | st.lists(TERMS, max_size=3).flatmap(lambda terms: st.sampled_from(",|&").map(lambda by: by.join(terms)))
)


@given(TEXTS)
@example("pages=1__0")
@example("bytes=1e308t")
@example("requests=\u0130")
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    with suppress(UsageError):
        assert str(parse_rule(text))
    for quantities in (CRAWL, SAMPLE, COMMUNITY):
        with suppress(UsageError):
            assert all(value > 0 for value in parse_limits(text, quantities).values())


def test_a_crawl_from_python_rejects_a_malformed_number() -> None:
    with pytest.raises(UsageError, match="pages=1__0 is not a number of pages"):
        sv.crawl("http://127.0.0.1:9/", until="pages=1__0")


def test_remaining_requests() -> None:
    now = Progress(pages=3, requests=10)
    assert Coverage(0.9).remaining(now) == Minutes(1).remaining(now) == NO_LIMIT
    assert (Pages(5).remaining(now), Requests(11).remaining(now), Requests(5).remaining(now)) == (2, 1, 0)
    assert (Pages(5) | Requests(11) | Minutes(1)).remaining(now) == 1
    assert (Pages(5) & Requests(11)).remaining(now) == 2
    assert (Pages(5) & Coverage(0.9)).remaining(now) == NO_LIMIT


def test_requests_must_be_a_whole_number() -> None:
    for wrong in (0, -1, 2.5):
        with pytest.raises(UsageError, match="requests must be a whole number"):
            Requests(wrong)  # type: ignore[arg-type]
    assert Requests(3).done(Progress(0, requests=3))
    assert not Requests(3).done(Progress(9, requests=2))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("coverage=0.9@", "coverage=0.9@ has no confidence after the @"),
        ("coverage=0.9@200%", "the confidence of coverage=0.9@200% must be above 0 and below 1"),
        ("coverage=0.9@1", "the confidence of coverage=0.9@1 must be above 0 and below 1"),
        ("coverage=0.9 @ 95", "the confidence of coverage=0.9@95 must be above 0 and below 1"),
        ("coverage=0.9@high", "the confidence of coverage=0.9@high must be above 0 and below 1"),
        ("coverage=0.9@95%@90%", "the confidence of coverage=0.9@95%@90% must be above 0 and below 1"),
        ("pages=5@95%", "pages=5 cannot have a confidence, got @95%"),
        ("coverage=@95%", "coverage= is not a number of coverage"),
    ],
)
def test_a_wrong_confidence_is_explained_in_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)) as caught:
        parse_rule(text)
    assert "coverage=0.9" in str(caught.value.hint)
    assert "\n" not in caught.value.problem


def test_a_sampled_goal_is_met_by_either_bound() -> None:
    rule = parse_rule("coverage=90%@0.95")
    assert rule == Coverage(0.9, confidence=0.95)
    assert rule.limits() is None  # not for compiled crawls
    assert rule.done(Progress(1, at_least=0.9))
    assert not rule.done(Progress(1, at_least=0.89))
    assert rule.done(Progress(1, at_least=0.5, proves=lambda share, confidence: (share, confidence) == (0.9, 0.95)))
    assert not Coverage(0.9).done(Progress(1, at_least=0.5, proves=lambda *_: True))
