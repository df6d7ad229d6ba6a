"""Topics: a rule, a trained model or a Python function that selects pages.

| rule | pages |
|---|---|
| `host:example.org` | on this host, at any port; `host:example.org:8080` at this port only |
| `domain:example.org` | on all hosts of a registrable domain |
| `tld:uk`, `tld:ac.uk` | on hosts with this suffix |
| `prefix:https://example.org/docs` | this page and all below it; `…/docs*` is a string prefix; http equals https |
| `url:REGEX` | whose URL contains a match of the regular expression |
| `word:solar`, `words:"solar power",photovoltaic` | with any of these words or phrases in the title or text |
| `all:solar,"feed-in tariff"` | with all of these words and phrases |
| `model:FILE` | that a trained model accepts (`surveyor topic train`) |
| `not:RULE` | that do not match another rule |
| `everything` | all pages |

Text without a rule name (`solar power`) is a phrase, and a URL is a prefix. *URL-only* rules need no page content: no
page is fetched to decide them, and the pages of a graph are decided in bulk (`matches`).

**Words** are whole words, compared without case, diacritics and punctuation, so that `solar power` matches
`Solar-Power`; inflected forms are different words. In scripts without spaces any sequence of characters matches
(`page_content`). A phrase does not extend from the title into the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import BoolArray
from surveyor.crawler.topics.page_content import SampledPage, words
from surveyor.errors import UsageError
from surveyor.web.suffixes import spelt

if TYPE_CHECKING:
    from surveyor.graph.names import Names

RULES = ("host", "domain", "tld", "prefix", "url", "word", "words", "all", "model", "not")
URL_RULES = ("host", "domain", "tld", "prefix", "url")
SYNTAX_HINT = (
    "rules are host:, domain:, tld:, prefix:, url:, word:, words:, all:, model:, not: and everything; "
    'other text is a phrase; write words:"…" for a phrase that looks like a rule'
)
_LOOKS_LIKE_RULE = re.compile(r"[A-Za-z-]+:\S")
_TERM = re.compile(r'"([^"]*)"|([^",]+)')
_TERMS = re.compile(r'\s*(?:"[^"]*"\s*|[^",]*)(?:,\s*(?:"[^"]*"\s*|[^",]*))*')
_DOUBLE_NEGATION = re.compile(r"^(?:not:\s*not:\s*)+")

Predicate = Callable[[SampledPage], object]
NameMatcher = Callable[["Names"], BoolArray]


@dataclass(frozen=True, slots=True)
class Topic:
    """A named selection of pages."""

    text: str  # the canonical rule, or the name of a function
    url_only: bool = field(repr=False)  # decided from the URL, without the content
    predicate: Predicate = field(repr=False, compare=False)
    match_names: NameMatcher | None = field(default=None, repr=False, compare=False)
    digest: str = field(default="", repr=False)  # hash of the parameters of a model
    needs_content: bool = field(default=False, repr=False)  # False for a function, of which it is unknown

    @classmethod
    def of(cls, topic: object) -> Topic:
        """Return a topic from a topic, a rule, or a function of a page that returns a truth value."""
        if isinstance(topic, Topic):
            return topic
        if isinstance(topic, str):
            return cls.parse(topic)
        if not callable(topic):
            raise UsageError(
                f"topic must be a rule, a Topic or a function, got {topic!r:.200}",
                hint="give a rule such as 'solar power' or host:example.org, or a function of a page",
            )
        return cls(getattr(topic, "__name__", type(topic).__name__), url_only=False, predicate=topic)

    @classmethod
    def parse(cls, text: str) -> Topic:
        """Parse a rule.

        >>> from surveyor.crawler.topics.page_content import PageContent
        >>> topic = Topic.parse('words:"Solar  Power",PV')
        >>> topic, topic(SampledPage("https://a.example/", load=lambda: PageContent("Solar-power!")))
        (Topic(text='words:"solar power",pv'), True)
        >>> Topic.parse("tld:uk").url_only, Topic.parse("solar power")
        (True, Topic(text='word:"solar power"'))
        """
        text = _DOUBLE_NEGATION.sub("", text.strip())
        if text == "everything":
            return _url_topic(text, lambda _: True, lambda names: np.ones(len(names), np.bool_))
        if text.lower().startswith(("http://", "https://")):
            return _parse_url_rule("prefix", text)
        name, colon, value = (part.strip() for part in text.partition(":"))
        kind = name.lower()
        if kind in RULES and colon and not value:
            raise UsageError(f"the topic {text!r} has no value after the colon", hint=SYNTAX_HINT)
        if kind not in RULES or not colon:
            if _LOOKS_LIKE_RULE.match(text):
                near = get_close_matches(kind, RULES, 1)
                hint = f"did you mean {near[0]}:{value}?" if near else SYNTAX_HINT
                raise UsageError(f"unknown topic rule {kind!r}", hint=hint)
            return _word_topic("word", [text], text)
        if kind == "not":
            return _negate(cls.parse(value))
        if kind in URL_RULES:
            return _parse_url_rule(kind, value)
        return _model_topic(value) if kind == "model" else _word_topic(kind, _split_terms(value, text), text)

    def __call__(self, page: SampledPage) -> bool:
        """Return whether a page is on topic."""
        return bool(self.predicate(page))

    def matches(self, names: Names) -> BoolArray:
        """Mark the names that are on topic; raise unless the rule is URL-only."""
        if self.match_names is None:
            raise UsageError(
                f"the topic {self.text} needs page content, and a graph has only names",
                hint="use a URL rule (host:, domain:, tld:, prefix:, url:), or a survey with its archive",
            )
        return self.match_names(names)

    def __str__(self) -> str:
        return self.text


def is_url_rule(text: str) -> bool:
    """Return whether URLs decide a rule, from its name alone: a model is not loaded.

    >>> is_url_rule("not:host:example.org"), is_url_rule("model:solar.json"), is_url_rule("https://example.org/docs")
    (True, False, True)
    """
    text = text.strip()
    while text.lower().startswith("not:"):
        text = text[4:].strip()
    name = text.partition(":")[0].strip().lower()
    return text == "everything" or name in (*URL_RULES, "http", "https")


def _negate(topic: Topic) -> Topic:
    match_names = topic.match_names
    return Topic(
        f"not:{topic.text}",
        url_only=topic.url_only,
        predicate=lambda page: not topic(page),
        match_names=None if match_names is None else lambda names: ~match_names(names),
        digest=topic.digest,
        needs_content=topic.needs_content,
    )


# --- URL rules ---

HOST_EXAMPLES = {"host": "example.org", "domain": "example.org", "tld": "uk"}


def _parse_url_rule(kind: str, value: str) -> Topic:
    from surveyor.graph import hosts_and_domains as sites

    if kind == "url":
        pattern = _compile(value)
        return _url_topic(f"url:{value}", lambda url: pattern.search(url) is not None)
    if kind == "prefix":
        if not value.rstrip("*"):
            raise UsageError(f"'prefix:{value}' is empty", hint="for example prefix:https://example.org/docs")
        prefix = sites.UrlPrefix(value)
        return _url_topic(f"prefix:{value}", prefix.matches, prefix.select)
    name = spelt(value.removeprefix(".") if kind == "tld" else value)
    if not name:
        raise UsageError(
            f"{value!r} in '{kind}:{value}' is not a host name", hint=f"for example {kind}:{HOST_EXAMPLES[kind]}"
        )
    if kind == "host" and sites.has_port(value):
        matches = sites.host_matcher(value.lower())
        text = f"host:{name}:{value.rpartition(':')[2]}"
        on_host = partial(sites.on_host, host=value.lower())
        return _url_topic(text, lambda url: matches(sites.authority(url)), on_host)
    if kind == "domain":
        from surveyor.web.urls import domain

        name = domain(name)
    matches_name = name.__eq__ if kind == "host" else sites.domain_matcher(name)
    return _url_topic(
        f"{kind}:{name}",
        lambda url: matches_name(spelt(sites.authority(url))),
        partial(sites.where, matches=matches_name),
    )


def _url_topic(text: str, matches: Callable[[str], bool], match_names: NameMatcher | None = None) -> Topic:
    in_bulk = match_names or (lambda names: np.fromiter(map(matches, names), np.bool_, len(names)))
    return Topic(text, url_only=True, predicate=lambda page: matches(page.url), match_names=in_bulk)


def _compile(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(
            f"{text!r} is not a regular expression", hint=f"{error}; escape special characters with \\"
        ) from None


# --- content rules ---


def _word_topic(kind: str, terms: list[str], text: str) -> Topic:
    phrases = list(dict.fromkeys(" ".join(words(term)) for term in terms))
    if not all(phrases):
        problem = f"the topic {text!r} has no words" if text else "the topic is empty"
        raise UsageError(problem, hint=SYNTAX_HINT)
    requires_all = kind == "all" and len(phrases) > 1
    kind = "all" if requires_all else "words" if len(phrases) > 1 else "word"
    canonical = ",".join(f'"{phrase}"' if " " in phrase else phrase for phrase in phrases)
    padded, combine = [f" {phrase} " for phrase in phrases], all if requires_all else any

    def predicate(page: SampledPage) -> bool:
        content = _searchable(page.title, page.text)
        return combine(phrase in content for phrase in padded)

    return Topic(f"{kind}:{canonical}", url_only=False, predicate=predicate, needs_content=True)


@lru_cache(maxsize=32)  # the topic and each property search the same page
def _searchable(title: str, text: str) -> str:
    """Return space-separated words; the line break between title and text occurs in no phrase."""
    return f" {' '.join(words(title))} \n {' '.join(words(text))} "


def _split_terms(value: str, text: str) -> list[str]:
    if not _TERMS.fullmatch(value):
        raise UsageError(f"unbalanced quotes in {text!r}", hint='for example words:"solar power",photovoltaic')
    terms = [quoted or plain for quoted, plain in _TERM.findall(value)]
    return [term for term in terms if term.strip()] or [""]


def _model_topic(path: str) -> Topic:
    from surveyor.crawler.topics.classifier import Classifier

    model = Classifier.load(path)
    return Topic(f"model:{path}", url_only=False, predicate=model, digest=model.digest, needs_content=True)
