"""Topics: which pages each rule means, one by one and all at once, and what is said of a rule that is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.estimate.sampling.page import Said, SampledPage
from surveyor.estimate.sampling.topics import KINDS, Topic
from surveyor.estimate.sampling.words import words
from surveyor.graph.names import Names

URLS = [
    "https://example.org/",
    "http://example.org/docs",
    "https://example.org/docs/a?b=c",
    "https://example.org/docs-old/",
    "https://www.example.org/docs/",
    "https://example.org:8080/docs/",
    "https://notexample.org/",
    "https://a.example.co.uk/x",
    "https://b.example.co.uk/%7Ejoe/",
    "https://10.0.0.1/uk",
    "https://xn--bcher-kva.example/",
    "www.example.org",  # of a graph of hosts
]
NAMES = Names.of(URLS)


def saying(text: str, title: str = "") -> SampledPage:
    return SampledPage("https://a.example/", read=lambda: Said(title, "", text))


def problem(given: Any) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        Topic.of(given)
    return caught.value.problem, caught.value.hint


@pytest.mark.parametrize(
    ("rule", "pages"),
    [
        ("host:example.org", [0, 1, 2, 3, 5]),
        ("host: WWW.Example.ORG", [4, 11]),
        ("host:example.org:8080", [5]),
        ("host:bücher.example", [10]),
        ("domain:example.org", [0, 1, 2, 3, 4, 5, 11]),
        ("domain:a.example.co.uk", [7, 8]),
        ("tld:uk", [7, 8]),
        ("tld:.co.uk", [7, 8]),
        ("tld:1", []),
        ("prefix:https://example.org/docs", [1, 2]),
        ("prefix:example.org/docs", [1, 2]),
        ("https://Example.org/docs", [1, 2]),
        ("prefix:https://example.org/docs*", [1, 2, 3]),
        ("prefix:https://b.example.co.uk/~joe/", []),
        (r"url:/docs/\w+\?", [2]),
        ("url:^http:", [1]),
        ("not:domain:example.org", [6, 7, 8, 9, 10]),
        ("not:not:tld:uk", [7, 8]),
        ("everything", list(range(12))),
        ("not:everything", []),
    ],
)
def test_rules_for_urls_are_free_and_hold_one_by_one_and_for_all(rule: str, pages: list[int]) -> None:
    topic = Topic.parse(rule)
    assert topic.free
    assert np.flatnonzero(topic.matches(NAMES)).tolist() == pages
    assert [number for number, url in enumerate(URLS) if topic(SampledPage(url))] == pages
    assert Topic.parse(topic.text).text == topic.text == str(topic)


NAME = st.sampled_from(
    ["a.example", "b.a.example", "a.example:81", "xa.example", "example", "10.0.0.1", "[::1]", "A.Example."]
)
URL = st.builds(
    lambda scheme, host, rest: f"{scheme}{host}{rest}",
    st.sampled_from(["http://", "https://", "HTTPS://"]),
    NAME,
    st.sampled_from(["", "/", "/docs", "/docs/", "/docs/x?y", "/docsx", "?q", "/docs#z"]),
)
RULE = st.one_of(
    st.builds("{}:{}".format, st.sampled_from(["host", "domain", "tld"]), NAME.filter(lambda name: ":81" not in name)),
    st.sampled_from(["prefix:https://a.example/docs", "prefix:a.example/docs*", "prefix:http://a.example/", "url:doc"]),
)


@given(RULE, st.lists(URL | st.sampled_from(["a.example", "b.a.example", "home", ""]), min_size=1, max_size=8))
def test_names_at_once_are_judged_as_pages_are(rule: str, urls: list[str]) -> None:
    topic = Topic.parse(rule)
    assert topic.matches(Names.of(urls)).tolist() == [topic(SampledPage(url)) for url in urls]


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("solar power", "All about Solar-Power.", True),
        ("solar power", "solar\n\n power", True),
        ("solar power", "power, solar", False),
        ("solar", "solarium", False),  # whole words
        ("solar", "extrasolar", False),
        ("word:cafe", "Das CAFÉ", True),
        ("word:Straße", "in der STRASSE", True),
        ("word:ｓｏｌａｒ", "solar", True),
        ("word:coop", "co\u00adop", True),
        ("word:елка", "Ёлка", True),
        ('words:"solar power",photovoltaic', "photovoltaic cells", True),
        ('words:"solar power",photovoltaic', "solar cells, wind power", False),
        ('words: "solar power" , wind ', "wind", True),
        ('all:"solar power",wind', "wind and solar power", True),
        ('all:"solar power",wind', "solar power", False),
        ("word:太陽光", "日本の太陽光発電", True),  # no blanks: a run of characters counts
        ("word:太陽光", "太陽と光", False),
        ("AI研究", "最新AI研究所", True),
        ("word:か", "が", False),  # another character, not an accent
        ("word:발전", "태양광 발전", True),
        ("word:발전", "태양광발전", False),
        ("word:की", "भाषा की", True),
        ("word:क", "भाषा की", False),  # the vowel belongs to the word
        ("not:solar", "wind", True),
        ("C++: a language", "c a language", True),
        ("word:", "", None),
    ],
)
def test_words_are_whole_words_folded(rule: str, text: str, expected: bool | None) -> None:
    if expected is None:
        assert "no more than its kind" in problem(rule)[0]
        return
    topic = Topic.parse(rule)
    assert topic(saying(text)) == topic(saying("", text)) == expected
    assert not topic.free
    assert Topic.parse(topic.text).text == topic.text
    with pytest.raises(UsageError, match="names alone"):
        topic.matches(NAMES)


def test_a_phrase_does_not_go_on_from_the_title_to_the_text() -> None:
    assert not Topic.parse("solar power")(saying("power", title="solar"))
    assert Topic.parse("all:solar,power")(saying("power", title="solar"))


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3), st.sampled_from(["words", "all"]))
def test_the_one_spelling_of_a_rule_means_the_same(terms: list[str], kind: str) -> None:
    terms = [term.replace('"', " ") for term in terms]
    rule = f"{kind}:" + ",".join(f'"{term}"' for term in terms)
    if not all(words(term) for term in terms if term.strip()) or not any(term.strip() for term in terms):
        assert problem(rule)
        return
    topic = Topic.parse(rule)
    again = Topic.parse(topic.text)
    assert again.text == topic.text
    assert topic(saying(". ".join(terms)))
    assert again(saying(". ".join(terms)))


def test_functions_are_topics() -> None:
    def short(page: SampledPage) -> bool:
        return len(page.text) < 5

    topic = Topic.of(short)
    assert (topic.text, topic.free, topic(saying("a")), topic(saying("a" * 9))) == ("short", False, True, False)
    assert Topic.of(topic) is topic
    assert Topic.of("solar") == Topic.parse("word:solar")


@pytest.mark.parametrize(
    ("rule", "expected", "hint"),
    [
        ("", "no topic was given", "there are host:"),
        ("hots:example.org", "hots: is no kind of topic", "did you mean host:example.org?"),
        ("colour:red", "colour: is no kind of topic", 'words:"…"'),
        ("host:", "the topic 'host:' says no more than its kind", "there are host:"),
        ("words:!!", "the topic 'words:!!' names no words", "there are host:"),
        ("...", "the topic '...' names no words", "there are host:"),
        ('words:"solar', "the quotes in 'words:\"solar' do not match", 'words:"solar power",photovoltaic'),
        ("url:(", "'(' is not a regular expression", "unterminated"),
        ("host:two words", "'two words' in 'host:two words' is no name of a host", "host:example.org"),
        ("prefix:*", "'prefix:*' names no pages", "prefix:https://example.org/docs"),
        (7, "int is no topic", "a function from pages"),
    ],
)
def test_what_is_no_rule_is_told_in_one_sentence(rule: Any, expected: str, hint: str) -> None:
    said, further = problem(rule)
    assert said == expected
    assert hint in further


def test_every_kind_is_named_in_the_hint() -> None:
    _, hint = problem("")
    assert [kind for kind in KINDS if f"{kind}:" not in hint] == ["word"]  # a spelling of words:
    assert Topic.parse("not:" * 2001 + "tld:uk").text == "not:tld:uk"
