"""Effect of the classifier on a sample: a keyword rule and a decision tree (section 5.3 of the paper).

On Wikispeedia, whose categories are the ground truth. The keyword rule accepts the pages that name the topic. The tree
is trained by the paper's recipe: the pages of the topic with the most in-links, as a search engine would list them, and
pages off topic. Classifiers read the beginning of a page. The topic of each classifier is then sampled, and the
estimates are compared with the truth about the category.
"""

from __future__ import annotations

import io
import tarfile
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.chosen_domains import say
from experiments.community_tables import table
from experiments.local_domains import articles
from experiments.sampled_runs import WALKS, run_samples
from experiments.topic_webs import TopicWeb, article_topics
from surveyor.arrays import BoolArray, IntArray
from surveyor.crawler.topics.page_content import PageContent, SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import MissingExtra
from surveyor.kernels.thread_pool import ThreadPool

TOPICS = {
    "Science": "words:species,chemical,physics",
    "Design_and_Technology": "words:technology,engineering",
    "Language_and_literature": "words:literature,novel,poem",
}
TRAINING_PAGES = 100  # on topic, and three times as many off topic
FETCHES = 800
MAX_CHARACTERS = 4_000  # of an article


class Errors(NamedTuple):
    """A statistic of the category, of the accepted pages, and of samples of the accepted pages."""

    truth: float
    accepted: float
    mean_estimate: float
    rmse: float


@dataclass(frozen=True)
class ClassifierResult:
    """One classifier of one topic."""

    topic: str
    classifier: str
    pages: int
    precision: float
    recall: float
    statistics: dict[str, Errors]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def compare_classifiers(data: Path, runs: int, pool: ThreadPool) -> list[ClassifierResult]:
    """Classify all articles by category, keywords and tree, and sample the topic of each classifier."""
    path = data / "wikispeedia.tar.xz"
    if not path.exists():
        say(f"no {path.name} in {data}: classifiers are not compared")
        return []
    say("reading articles")
    wiki = articles(path)
    pages = _read_pages(path, wiki.number, wiki.graph.out_degrees.tolist())
    in_links: IntArray = np.bincount(wiki.graph.indices, minlength=wiki.graph.pages)
    results = []
    for web in article_topics(wiki, TOPICS):
        for classifier, accepted in _classify(pages, web.topic, TOPICS[web.name], in_links).items():
            say(f"{web.name}, {classifier}: {int(accepted.sum()):,} pages")
            results.append(_sample_accepted(web, classifier, accepted, runs, pool))
    return results


def _classify(pages: list[SampledPage], truth: BoolArray, rule: str, in_links: IntArray) -> dict[str, BoolArray]:
    topic = Topic.parse(rule)
    accepted = {"category": truth, f"keywords ({rule})": np.array([topic(page) for page in pages])}
    try:
        from surveyor.estimate.sampling.training import train

        on, off = np.flatnonzero(truth), np.flatnonzero(~truth)
        positive = on[np.argsort(-in_links[on], kind="stable")][:TRAINING_PAGES]
        negative = np.random.default_rng(7).choice(off, min(3 * TRAINING_PAGES, off.size), replace=False)
        tree = train([pages[page] for page in positive], [pages[page] for page in negative], kind="tree")
        accepted["decision tree"] = np.array([tree(page) for page in pages])
    except MissingExtra as missing:
        say(str(missing))
    return accepted


def _sample_accepted(
    category: TopicWeb, classifier: str, accepted: BoolArray, runs: int, pool: ThreadPool
) -> ClassifierResult:
    """Sample the accepted pages; the truth is that of the category."""
    web = replace(category, name=classifier, topic=accepted)
    done = run_samples(web, "trial", WALKS, FETCHES, runs, pool)
    statistics = {}
    for name in ("subtopic", "log out-degree"):
        values, truth = done.values[name], float(np.mean(category.properties[name][category.topic]))
        rmse = float(np.sqrt(np.nanmean((values - truth) ** 2)))
        statistics[name] = Errors(
            truth, float(np.mean(web.properties[name][accepted])), float(np.nanmean(values)), rmse
        )
    count, correct = int(accepted.sum()), int((accepted & category.topic).sum())
    precision, recall = correct / max(count, 1), correct / int(category.topic.sum())
    return ClassifierResult(category.name, classifier, count, precision, recall, statistics)


def classifier_table(results: list[ClassifierResult]) -> str:
    """Return a table with one row per classifier."""
    rows = []
    for one in results:
        cells = [
            f"{truth:.3f} / {accepted:.3f} / {mean:.3f} (RMSE {rmse:.3f})"
            for truth, accepted, mean, rmse in one.statistics.values()
        ]
        rows.append([one.topic, one.classifier, f"{one.pages:,}", f"{one.precision:.0%}", f"{one.recall:.0%}", *cells])
    statistics = ["subtopic: category / accepted pages / sample", "log out-degree: the same"]
    return table(["topic", "classifier", "pages", "precision", "recall", *statistics], rows, 2)


def _read_pages(path: Path, number: dict[str, int], out_degrees: list[int]) -> list[SampledPage]:
    """Read all articles; the archive is read once, in its order."""
    texts = [""] * len(number)
    with tarfile.open(path) as archive:
        for item in archive:
            name = item.name.rsplit("/", 1)[-1].removesuffix(".txt")
            file = archive.extractfile(item) if name in number and "plaintext" in item.name else None
            if file is not None:
                texts[number[name]] = io.TextIOWrapper(file, encoding="utf-8", errors="replace").read(MAX_CHARACTERS)
    return [
        SampledPage(name, out_degrees[page], partial(PageContent, title=name.replace("_", " "), text=texts[page]))
        for name, page in number.items()
    ]
