"""What a crude judge of topics does to a sample: the paper's keyword rule beside a decision tree (its section 5.3).

On Wikispeedia, whose categories tell the truth. The keyword rule takes the pages that name the topic. The tree is
trained after the paper's recipe: the pages of the topic that are linked to most, as a search engine would list them,
and pages off it. Judges read the beginning of a page. Each judge's topic is then sampled, and what the sample tells is
set beside the truth about the category.
"""

from __future__ import annotations

import io
import tarfile
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.chosen_domains import say
from experiments.community_tables import table
from experiments.local_domains import articles
from experiments.sampled_runs import WALKS, measured
from experiments.topic_data import article_topics
from experiments.topic_webs import TopicWeb
from surveyor.arrays import BoolArray
from surveyor.errors import MissingExtra
from surveyor.estimate.sampling.sampled_page import PageContent, SampledPage
from surveyor.estimate.sampling.topics import Topic
from surveyor.kernels.thread_pool import ThreadPool

TOPICS = {
    "Science": "words:species,chemical,physics",
    "Design_and_Technology": "words:technology,engineering",
    "Language_and_literature": "words:literature,novel,poem",
}
TAUGHT = 100  # pages on topic that the tree is shown, and three times as many off it
FETCHES = 800
READ = 4_000  # characters of an article


@dataclass(frozen=True)
class Judged:
    """One judge of one topic."""

    topic: str
    judge: str
    pages: int
    precision: float
    recall: float
    told: dict[str, tuple[float, float, float, float]]  # truth, over all judged pages, mean estimate, RMSE

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def classified(data: Path, runs: int, pool: ThreadPool) -> list[Judged]:
    """Judge all articles by keyword and by tree; sample each judge's topic."""
    path = data / "wikispeedia.tar.xz"
    if not path.exists():
        say(f"no {path.name} in {data}: judges are not compared")
        return []
    say("reading articles")
    wiki = articles(path)
    pages = _pages(path, wiki.number, wiki.graph.out_degrees.tolist())
    linked = np.bincount(wiki.graph.indices, minlength=wiki.graph.pages)
    found = []
    for whole in article_topics(wiki, TOPICS):
        for judge, verdicts in _judges(pages, whole.topic, TOPICS[whole.name], linked).items():
            say(f"{whole.name}, {judge}: {int(verdicts.sum()):,} pages")
            found.append(_sampled(whole, judge, verdicts, runs, pool))
    return found


def _judges(pages: list[SampledPage], truth: BoolArray, rule: str, linked: Any) -> dict[str, BoolArray]:
    topic = Topic.parse(rule)
    judges = {"category": truth, f"keywords ({rule})": np.array([topic(page) for page in pages])}
    try:
        from surveyor.estimate.sampling.training import train

        on, off = np.flatnonzero(truth), np.flatnonzero(~truth)
        shown = on[np.argsort(-linked[on], kind="stable")][:TAUGHT]
        others = np.random.default_rng(7).choice(off, min(3 * TAUGHT, off.size), replace=False)
        tree = train([pages[page] for page in shown], [pages[page] for page in others], kind="tree")
        judges["decision tree"] = np.array([tree(page) for page in pages])
    except MissingExtra as missing:
        say(str(missing))
    return judges


def _sampled(whole: TopicWeb, judge: str, verdicts: BoolArray, runs: int, pool: ThreadPool) -> Judged:
    """Sample what a judge takes for the topic; the truth stays that of the category."""
    web = replace(whole, name=judge, topic=verdicts)
    done = measured(web, "trial", WALKS, FETCHES, runs, pool)
    told = {}
    for what in ("subtopic", "log out-degree"):
        values, true = done.values[what], float(np.mean(whole.numbers[what][whole.topic]))
        off = float(np.sqrt(np.nanmean((values - true) ** 2)))
        told[what] = true, float(np.mean(web.numbers[what][verdicts])), float(np.nanmean(values)), off
    both = int((verdicts & whole.topic).sum())
    return Judged(
        whole.name, judge, int(verdicts.sum()), both / max(int(verdicts.sum()), 1), both / int(whole.topic.sum()), told
    )


def judge_table(found: list[Judged]) -> str:
    """Tell what each judge does."""
    rows = []
    for one in found:
        cells = [
            f"{true:.3f} / {over:.3f} / {mean:.3f} (RMSE {off:.3f})" for true, over, mean, off in one.told.values()
        ]
        rows.append([one.topic, one.judge, f"{one.pages:,}", f"{one.precision:.0%}", f"{one.recall:.0%}", *cells])
    header = ["topic", "judge", "pages", "precision", "recall", "subtopic: category / judged pages / sample",
              "log out-degree: the same"]  # fmt: skip
    return table(header, rows, 2)


def _pages(path: Path, number: dict[str, int], out_degrees: list[int]) -> list[SampledPage]:
    """Read all articles; the archive is read once, in its order."""
    texts = [""] * len(number)
    with tarfile.open(path) as archive:
        for item in archive:
            name = item.name.rsplit("/", 1)[-1].removesuffix(".txt")
            file = archive.extractfile(item) if name in number and "plaintext" in item.name else None
            if file is not None:
                texts[number[name]] = io.TextIOWrapper(file, encoding="utf-8", errors="replace").read(READ)
    return [
        SampledPage(name, out_degrees[at], partial(PageContent, title=name.replace("_", " "), text=texts[at]))
        for name, at in number.items()
    ]
