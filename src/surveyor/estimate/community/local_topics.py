"""Local pages selected by a topic: the rules of `sample` that select pages by words, a trained model or their URL.

Words and models need the text of pages: they apply to the fetched pages of a survey with an archive. URL rules also
apply to graphs with names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.arrays import BoolArray
    from surveyor.crawler.topics.rules import Topic
    from surveyor.graph.names import Names
    from surveyor.store.directory import SurveyFolder

#: Rules that are topics; `host`, `domain` and `prefix` select the same pages by the rules of `community_options`.
TOPIC_KINDS = ("word", "words", "all", "model", "tld", "url", "not")


def parse_topic(text: str) -> Topic:
    """Parse a topic rule.

    >>> parse_topic('words:solar,"feed-in  tariff"').text
    'words:solar,"feed in tariff"'
    """
    from surveyor.crawler.topics.rules import Topic

    return Topic.parse(text)


def on_topic(topic: Topic, names: Names, count: int, archive: SurveyFolder | None) -> BoolArray:
    """Mark the pages that are on topic, of `count` pages with these names."""
    if topic.match_names is not None:
        return topic.matches(names)
    if topic.url_only:
        from surveyor.crawler.topics.page_content import SampledPage

        return np.fromiter((topic(SampledPage(str(names[page]))) for page in range(count)), np.bool_, count)
    if archive is None:
        raise UsageError(
            f"local {topic.text} needs the text of pages, and a graph has none",
            hint="pass a survey with its archive, or select pages by host:, domain:, prefix:, tld: or url:",
        )
    if not archive.manifest.settings.get("archive", True):
        raise UsageError(
            f"local {topic.text} needs the text of pages, and {archive.folder.name} has no archive",
            hint="crawl again with --archive, or select pages by host:, domain:, prefix:, tld: or url:",
        )
    from surveyor.estimate.sampling.sample_pages import archived_pages, is_on_topic

    found = np.zeros(count, np.bool_)
    for page in archived_pages(archive):
        index = names.find(page.url)
        if index is not None and is_on_topic(topic, page):
            found[index] = True
    return found
