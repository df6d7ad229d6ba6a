"""Time, memory and disk of the view tables of a large survey, and the time of each query over them.

python -m benchmarks.view --pages 1000000
python -m benchmarks.view --survey DIR
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import surveyor as sv
from surveyor.config import Settings
from surveyor.crawler.loop import crawl
from surveyor.crawler.replay import derive, save
from surveyor.crawler.session import RunStore
from surveyor.crawler.sources.graph import Instant
from surveyor.crawler.start import start
from surveyor.graph.csr import Graph
from surveyor.outcome import Outcome, Visit
from surveyor.web.link_context import by_page, mark

LINKS_PER_PAGE = 20  # of the web, of which the crawl fetches about two thirds
WORDS = [
    "archive",
    "report",
    "guide",
    "garden",
    "river",
    "winter",
    "market",
    "letter",
    "museum",
    "theory",
    "engine",
    "harbour",
    "island",
    "season",
    "village",
    "music",
    "paper",
    "silver",
    "forest",
    "history",
    "table",
    "window",
    "summer",
    "bridge",
    "corner",
    "number",
    "planet",
    "orange",
    "camera",
    "doctor",
]
LANGUAGES = ("en", "en", "en", "de", "fr", "es", "", "pt-BR")
MARK = mark("a", "main", "")
BEGAN = 1.76e9


class TitledSource(Instant):
    """The pages of a graph with titles, languages, sizes and times; some are gone, blocked or redirected."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self._graph, self._rng, self._now = graph, np.random.default_rng(seed), BEGAN

    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Yield a visit to each page."""
        draws = self._rng.random((len(pages), 3)).tolist()
        for page, (kind, size, wait) in zip(pages, draws, strict=True):
            self._now += 0.05
            common = {"fetched_at": self._now, "seconds": round(0.05 + wait * wait, 4)}
            if kind < 0.02:
                yield Visit(page, "gone", status=404 if kind < 0.015 else 410, **common)
            elif kind < 0.03:
                yield Visit(page, "blocked", reason="robots")
            elif kind < 0.035:
                yield Visit(page, "blocked", reason="HTTP 503", status=503, **common)
            elif kind < 0.045 and page > 10:
                target = int(self._graph.links_of(page)[0]) if self._graph.links_of(page).size else page - 1
                yield Visit(page, "redirected", target=target, status=301, **common)
            else:
                links = self._graph.links_of(page)
                texts = [title(int(link), 2) for link in links[:4].tolist()] + [""] * max(0, links.size - 4)
                yield Visit(
                    page,
                    "fetched",
                    links,
                    status=200,
                    title=title(page, 3 + page % 4),
                    language=LANGUAGES[page % len(LANGUAGES)],
                    size=int(2_000 + 200_000 * size**3),
                    contexts=by_page(page, links, texts, [MARK] * links.size),
                    **common,
                )


def title(page: int, words: int) -> str:
    """Return the title of a page."""
    numbers = ((page + 1) * 2654435761 >> 5 * at & 31 for at in range(1, words + 1))
    return " ".join(WORDS[number % len(WORDS)] for number in numbers).capitalize() + f" {page % 9973}"


def make(path: Path, pages: int) -> None:
    """Make a survey of so many fetched pages, with a checkpoint."""
    began = time.perf_counter()
    web = sv.synthetic_web("web", links=LINKS_PER_PAGE * pages, rng=7, names=True).graph
    names = [f"{name}/" if name.count("/") < 3 else name for name in web.names or ()]
    say(f"a web of {web.pages:,} pages and {web.links:,} links", began)
    seeds = sorted(np.argsort(-np.diff(web.in_links.indptr))[:3].tolist())
    settings = Settings(contact="bench@example.org", until=f"pages={pages}", rng=7, archive=False, scope="any")
    folder, settings = start(path, [names[page] for page in seeds], settings, {})
    with folder:
        folder.commit([], names)  # so that the pages of the survey have the numbers of the graph
        began = time.perf_counter()
        state = derive(folder)
        store = RunStore(folder, state, time.time)
        work = crawl(state.crawl, TitledSource(web, 7), store, sv.Pages(pages), batch=256, tally=state.tally)
        ending = asyncio.run(work)
        say(f"crawled {state.crawl.ledger.read:,} pages ({ending}): {state.crawl.ledger.coverage()}", began)
        began = time.perf_counter()
        save(folder, state)
        say("checkpoint saved", began)


def say(what: str, began: float) -> None:
    """Print what was done and how long it took."""
    print(f"{time.perf_counter() - began:8.2f} s  {what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.view", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--survey", type=Path)
    options = parser.parse_args()
    make(options.survey, options.pages)


if __name__ == "__main__":
    main()
