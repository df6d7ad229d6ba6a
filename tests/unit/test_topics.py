"""Topic rules: matches of single pages and of graph names, canonical spelling, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.crawler.topics.page_content import PageContent, SampledPage, words
from surveyor.crawler.topics.rules import RULES, Topic
from surveyor.errors import UsageError
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
    "www.example.org",  # in a graph of hosts
]
NAMES = Names.of(URLS)


def page_with(text: str, title: str = "") -> SampledPage:
    return SampledPage("https://a.example/", load=lambda: PageContent(title, "", text))


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
def test_url_rules_match_pages_and_names(rule: str, pages: list[int]) -> None:
    topic = Topic.parse(rule)
    assert topic.url_only
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
def test_names_match_like_single_pages(rule: str, urls: list[str]) -> None:
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
        ("word:太陽光", "日本の太陽光発電", True),  # no spaces: any sequence of characters matches
        ("word:太陽光", "太陽と光", False),
        ("AI研究", "最新AI研究所", True),
        ("word:か", "が", False),  # another character, not a diacritic
        ("word:발전", "태양광 발전", True),
        ("word:발전", "태양광발전", False),
        ("word:की", "भाषा की", True),
        ("word:क", "भाषा की", False),  # the vowel mark belongs to the word
        ("not:solar", "wind", True),
        ("C++: a language", "c a language", True),
        ("word:", "", None),
    ],
)
def test_words_match_whole_normalised_words(rule: str, text: str, expected: bool | None) -> None:
    if expected is None:
        assert "no value after the colon" in problem(rule)[0]
        return
    topic = Topic.parse(rule)
    assert topic(page_with(text)) == topic(page_with("", text)) == expected
    assert not topic.url_only
    assert Topic.parse(topic.text).text == topic.text
    with pytest.raises(UsageError, match="needs page content"):
        topic.matches(NAMES)


def test_a_phrase_does_not_extend_from_the_title_into_the_text() -> None:
    assert not Topic.parse("solar power")(page_with("power", title="solar"))
    assert Topic.parse("all:solar,power")(page_with("power", title="solar"))


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3), st.sampled_from(["words", "all"]))
def test_the_canonical_rule_is_equivalent(terms: list[str], kind: str) -> None:
    terms = [term.replace('"', " ") for term in terms]
    rule = f"{kind}:" + ",".join(f'"{term}"' for term in terms)
    if not all(words(term) for term in terms if term.strip()) or not any(term.strip() for term in terms):
        assert problem(rule)
        return
    topic = Topic.parse(rule)
    again = Topic.parse(topic.text)
    assert again.text == topic.text
    assert topic(page_with(". ".join(terms)))
    assert again(page_with(". ".join(terms)))


def test_functions_are_topics() -> None:
    def short(page: SampledPage) -> bool:
        return len(page.text) < 5

    topic = Topic.of(short)
    assert (topic.text, topic.url_only, topic(page_with("a")), topic(page_with("a" * 9))) == (
        "short",
        False,
        True,
        False,
    )
    assert Topic.of(topic) is topic
    assert Topic.of("solar") == Topic.parse("word:solar")


@pytest.mark.parametrize(
    ("rule", "expected", "hint"),
    [
        ("", "the topic is empty", "rules are host:"),
        ("hots:example.org", "unknown topic rule 'hots'", "did you mean host:example.org?"),
        ("colour:red", "unknown topic rule 'colour'", 'words:"…"'),
        ("host:", "the topic 'host:' has no value after the colon", "rules are host:"),
        ("words:!!", "the topic 'words:!!' has no words", "rules are host:"),
        ("...", "the topic '...' has no words", "rules are host:"),
        ('words:"solar', "unbalanced quotes in 'words:\"solar'", 'words:"solar power",photovoltaic'),
        ("url:(", "'(' is not a regular expression", "unterminated"),
        ("host:two words", "'two words' in 'host:two words' is not a host name", "host:example.org"),
        ("prefix:*", "'prefix:*' is empty", "prefix:https://example.org/docs"),
        (7, "topic must be a rule, a Topic or a function, got 7", "a function of a page"),
    ],
)
def test_invalid_rules_raise(rule: Any, expected: str, hint: str) -> None:
    message, further = problem(rule)
    assert message == expected
    assert hint in further


def test_every_rule_is_named_in_the_hint() -> None:
    _, hint = problem("")
    assert [kind for kind in RULES if f"{kind}:" not in hint] == []
    assert Topic.parse("not:" * 2001 + "tld:uk").text == "not:tld:uk"
