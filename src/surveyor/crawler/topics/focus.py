"""The topic of a focused crawl: decided from URLs, or from the content of pages when they are fetched.

Content is judged once, when a page is fetched, and the result is an event in the journal (`topic`). So a replay needs
neither the content nor the rule, and resumes identically.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.strategies.focused import Focused
from surveyor.crawler.strategies.rankmass import RankMass
from surveyor.crawler.topics.page_content import PageContent, SampledPage
from surveyor.crawler.topics.rules import Topic, is_url_rule
from surveyor.errors import UsageError
from surveyor.web.html import Page

if TYPE_CHECKING:
    from surveyor.crawler.strategies.strategy import Strategy
    from surveyor.web.urls import Urls

UNKNOWN = 2  # not decided yet
Judge = Callable[[str, Page], bool]  # whether a page of this URL is on topic


class UrlTopic:
    """Decides from URLs which pages are on topic; each page once."""

    def __init__(self, rule: str, urls: Urls) -> None:
        self.rule, self.urls = rule, urls
        self._decided = np.full(1024, UNKNOWN, np.uint8)

    def __call__(self, pages: IdArray) -> FloatArray:
        """Return 1 for pages on topic and 0 for others."""
        largest = int(pages.max(initial=-1))
        if largest >= self._decided.size:
            more = np.full(2 * largest + 2 - self._decided.size, UNKNOWN, np.uint8)
            self._decided = np.append(self._decided, more)
        topic = _topic(self.rule)
        for page in pages[self._decided[pages] == UNKNOWN].tolist():
            self._decided[page] = topic(SampledPage(self.urls[page]))
        return self._decided[pages].astype(np.float64)


@lru_cache(maxsize=8)
def _topic(rule: str) -> Topic:
    return Topic.parse(rule)


def focused(strategy: Strategy, rule: str, urls: Urls) -> Strategy:
    """Return RankMass focused on a topic; `strategy` has its closure."""
    if not isinstance(strategy, RankMass):
        raise UsageError(
            f"a focused crawl orders by importance times topic probability, got the strategy "
            f"{getattr(strategy, 'name', strategy)!s}",
            hint="leave out --strategy, or --topic",
        )
    known = UrlTopic(rule, urls) if is_url_rule(rule) else None
    return Focused(known=known, closure=strategy.closure)


def judge_of(rule: str) -> Judge | None:
    """Return what judges the content of fetched pages; None if URLs decide, or without a topic."""
    if not rule or is_url_rule(rule):
        return None
    topic = Topic.parse(rule)

    def judge(url: str, page: Page) -> bool:
        content = PageContent(page.title, page.language, page.text)
        return topic(SampledPage(url, load=lambda: content))

    return judge


def check_topic(settings: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
    """Reject an invalid rule, and another one in a survey whose pages were judged by their content."""
    rule, old = str(settings.get("topic") or ""), str((before or {}).get("topic") or "")
    if rule:
        Topic.parse(rule)
    if before is not None and rule != old and old and not is_url_rule(old):
        if not rule:  # of a survey from elsewhere; the topic may name a file, so only the user can give it
            raise UsageError(
                f"pages of this survey were judged by the topic {old!r}, which came with the survey and is ignored",
                hint=f"give it again (--topic {shlex.quote(old)}), or trust the survey with `surveyor config trust`",
            )
        raise UsageError(
            f"the topic of a survey whose pages were judged by their content cannot change, from {old!r} to {rule!r}",
            hint="leave --topic out to resume the survey, or begin another one with --fresh",
        )
