"""What a page is about: a rule in a few words, a trained model, or a function from Python.

| rule | pages |
|---|---|
| `host:example.org` | of this host, at any port; `host:example.org:8080` at this port alone |
| `domain:example.org` | of a registrable domain, with all its hosts |
| `tld:uk`, `tld:ac.uk` | of hosts whose names end so |
| `prefix:https://example.org/docs` | this page and all below it; `…/docs*` is whatever begins so; https is http |
| `url:REGEX` | in whose URL the regular expression matches somewhere |
| `word:solar`, `words:"solar power",photovoltaic` | with any of these words or phrases in title or text |
| `all:solar,"feed-in tariff"` | with all of them |
| `model:FILE` | that a trained model takes for it (`surveyor topic train`) |
| `not:RULE` | that are not |
| `everything` | all |

Plain words (`solar power`) are the phrase that they make, and a URL alone is a prefix. Rules that need the URL alone
are *free*: no page is fetched to decide them, and of a graph all pages are decided at once (`matches`).

**Words** are whole words, folded: case and accents do not count, nor does what stands between them, so that
`solar power` is found in `Solar-Power`; forms of a word are other words. Where a script puts no blanks between words,
any run of characters counts (`words.py`). A phrase does not go on from the title to the text.
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
from surveyor.errors import UsageError
from surveyor.estimate.sampling.page import SampledPage
from surveyor.estimate.sampling.words import words
from surveyor.web.suffixes import spelt

if TYPE_CHECKING:
    from surveyor.graph.names import Names

KINDS = ("host", "domain", "tld", "prefix", "url", "word", "words", "all", "model", "not")
FREE = ("host", "domain", "tld", "prefix", "url")
THERE_ARE = (
    "there are host:, domain:, tld:, prefix:, url:, words:, all:, model: and not:, everything, and plain words; "
    'words that look like a rule go as words:"…"'
)
_RULE = re.compile(r"[A-Za-z-]+:\S")  # what is meant for a rule
_TERM = re.compile(r'"([^"]*)"|([^",]+)')
_TERMS = re.compile(r'\s*(?:"[^"]*"\s*|[^",]*)(?:,\s*(?:"[^"]*"\s*|[^",]*))*')
_TWICE = re.compile(r"^(?:not:\s*not:\s*)+")

Judge = Callable[[SampledPage], object]


@dataclass(frozen=True, slots=True)
class Topic:
    """Which pages are meant, and how to tell."""

    text: str  # the rule in its one spelling, or the name of a function
    free: bool = field(repr=False)  # decided by the URL alone
    judge: Judge = field(repr=False, compare=False)
    among: Callable[[Names], BoolArray] | None = field(default=None, repr=False, compare=False)
    digest: str = field(default="", repr=False)  # of a model: its words and weights summed up
    reads: bool = field(default=False, repr=False)  # decided by what pages say; of a function nobody knows

    @classmethod
    def of(cls, given: object) -> Topic:
        """Take a topic, a rule, or a function from pages to truth values."""
        if isinstance(given, Topic):
            return given
        if isinstance(given, str):
            return cls.parse(given)
        if not callable(given):
            hint = "give a rule such as 'solar power' or host:example.org, or a function from pages to true or false"
            raise UsageError(f"{type(given).__name__} is no topic", hint=hint)
        return cls(getattr(given, "__name__", type(given).__name__), free=False, judge=given)

    @classmethod
    def parse(cls, text: str) -> Topic:
        """Read a rule.

        >>> from surveyor.estimate.sampling.page import Said
        >>> topic = Topic.parse('words:"Solar  Power",PV')
        >>> topic, topic(SampledPage("https://a.example/", read=lambda: Said("Solar-power!")))
        (Topic(text='words:"solar power",pv'), True)
        >>> Topic.parse("tld:uk").free, Topic.parse("solar power")
        (True, Topic(text='word:"solar power"'))
        """
        text = _TWICE.sub("", text.strip())
        if text == "everything":
            return cls(text, free=True, judge=lambda _: True, among=lambda names: np.ones(len(names), np.bool_))
        if text.lower().startswith(("http://", "https://")):
            return _placed("prefix", text)
        word, colon, value = (part.strip() for part in text.partition(":"))
        kind = word.lower()
        if kind in KINDS and colon and not value:
            raise UsageError(f"the topic {text!r} says no more than its kind", hint=THERE_ARE)
        if kind not in KINDS or not colon:
            if _RULE.match(text):
                near = get_close_matches(kind, KINDS, 1)
                hint = f"did you mean {near[0]}:{value}?" if near else THERE_ARE
                raise UsageError(f"{kind}: is no kind of topic", hint=hint)
            return _worded("word", [text], text)
        if kind == "not":
            return _negated(cls.parse(value))
        if kind in FREE:
            return _placed(kind, value)
        return _trained(value) if kind == "model" else _worded(kind, _parted(value, text), text)

    def __call__(self, page: SampledPage) -> bool:
        """Say whether a page is on topic."""
        return bool(self.judge(page))

    def matches(self, names: Names) -> BoolArray:
        """Say which names are on topic, of rules that are free."""
        if self.among is None:
            raise UsageError(
                f"the topic {self.text} needs what pages say, and a graph has their names alone",
                hint="use a rule for URLs (host:, domain:, tld:, prefix:, url:), or a survey with its archive",
            )
        return self.among(names)

    def __str__(self) -> str:
        return self.text


def _negated(topic: Topic) -> Topic:
    among = topic.among
    return Topic(
        f"not:{topic.text}",
        free=topic.free,
        judge=lambda page: not topic(page),
        among=None if among is None else lambda names: ~among(names),
        digest=topic.digest,
        reads=topic.reads,
    )


# --- rules for URLs ---


def _placed(kind: str, value: str) -> Topic:
    from surveyor.graph import located

    if kind == "url":
        pattern = _pattern(value)
        return _free(f"url:{value}", lambda url: pattern.search(url) is not None)
    if kind == "prefix":
        if not value.rstrip("*"):
            raise UsageError(f"'prefix:{value}' names no pages", hint="such as prefix:https://example.org/docs")
        prefix = located.Prefix(value)
        return _free(f"prefix:{value}", prefix.holds, prefix.among)
    name = spelt(value.removeprefix(".") if kind == "tld" else value)
    if not name:
        raise UsageError(f"{value!r} in '{kind}:{value}' is no name of a host", hint=f"such as {kind}:{EXAMPLES[kind]}")
    if kind == "host" and located.has_port(value):
        is_meant = located.is_at(value.lower())
        text = f"host:{name}:{value.rpartition(':')[2]}"
        return _free(text, lambda url: is_meant(located.authority(url)), partial(located.on_host, host=value.lower()))
    if kind == "domain":
        from surveyor.web.urls import domain

        name = domain(name)
    meant = name.__eq__ if kind == "host" else located.ends_with(name)
    return _free(
        f"{kind}:{name}", lambda url: meant(spelt(located.authority(url))), partial(located.where, is_meant=meant)
    )


EXAMPLES = {"host": "example.org", "domain": "example.org", "tld": "uk"}


def _free(text: str, holds: Callable[[str], bool], among: Callable[[Names], BoolArray] | None = None) -> Topic:
    each = among or (lambda names: np.fromiter(map(holds, names), np.bool_, len(names)))
    return Topic(text, free=True, judge=lambda page: holds(page.url), among=each)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        hint = f"{error}; to have a character stand for itself, write \\ before it"
        raise UsageError(f"{text!r} is not a regular expression", hint=hint) from None


# --- rules for what pages say ---


def _worded(kind: str, terms: list[str], text: str) -> Topic:
    phrases = list(dict.fromkeys(" ".join(words(term)) for term in terms))
    if not all(phrases):
        problem = f"the topic {text!r} names no words" if text else "no topic was given"
        raise UsageError(problem, hint=THERE_ARE)
    every = kind == "all" and len(phrases) > 1
    kind = "all" if every else "words" if len(phrases) > 1 else "word"
    spelling = ",".join(f'"{phrase}"' if " " in phrase else phrase for phrase in phrases)
    padded, enough = [f" {phrase} " for phrase in phrases], all if every else any

    def judge(page: SampledPage) -> bool:
        there = _heard(page.title, page.text)
        return enough(phrase in there for phrase in padded)

    return Topic(f"{kind}:{spelling}", free=False, judge=judge, reads=True)


@lru_cache(maxsize=32)  # a page is asked by the topic and by each property
def _heard(title: str, text: str) -> str:
    """Return what is searched: words between blanks, and a line end that no phrase has."""
    return f" {' '.join(words(title))} \n {' '.join(words(text))} "


def _parted(value: str, text: str) -> list[str]:
    if not _TERMS.fullmatch(value):
        raise UsageError(f"the quotes in {text!r} do not match", hint='such as words:"solar power",photovoltaic')
    terms = [quoted or plain for quoted, plain in _TERM.findall(value)]
    return [term for term in terms if term.strip()] or [""]


def _trained(path: str) -> Topic:
    from surveyor.estimate.sampling.classifier import Classifier

    model = Classifier.load(path)
    return Topic(f"model:{path}", free=False, judge=model, digest=model.digest, reads=True)
