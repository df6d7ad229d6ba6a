"""A process that crawls one site with one tool, and says what it took.

`python -m benchmarks.crawlers TOOL URL FOLDER CORE`

Each tool is warm when its clock starts: imported, and surveyor's kernels loaded by a crawl of a few pages.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import memory

CONCURRENCY = 64
Report = dict[str, Any]


def surveyor(strategy: str, *, archive: bool) -> Callable[[str, Path], Report]:
    """Crawl with surveyor as anyone would, but without pauses."""

    def crawl(url: str, folder: Path) -> Report:
        import surveyor as sv

        def run(name: str, until: str) -> None:
            sv.crawl(
                url,
                until=until,
                out=folder / name,
                strategy=strategy,
                archive=archive,
                delay=0,
                concurrency=CONCURRENCY,
                allow=["127.0.0.1"],
                scope="host",
                contact="bench@example.org",
                rng=7,
            )

        run("warm-up", "pages=40")
        with _Clock() as clock:
            run("measured", "pages=1000000")
        from surveyor.store.directory import SurveyFolder

        with SurveyFolder.open(folder / "measured", write=False) as kept:
            pages = kept.journal.cost()[0]
        return clock.report(pages)

    return crawl


def scrapy(*, job: bool) -> Callable[[str, Path], Report]:
    """Crawl one site with Scrapy: all that is not needed is off; with a `job` folder, what it knows lasts."""

    def crawl(url: str, folder: Path) -> Report:
        return scrapy_crawl([url], {"JOBDIR": str(folder / "job")} if job else {}, domains=[urlsplit(url).netloc])

    return crawl


def scrapy_crawl(
    seeds: Sequence[str], job: dict[str, Any], *, domains: Sequence[str] = (), proxy: str = "", most: int = 1 << 40
) -> Report:
    """Follow all links with Scrapy, to these domains or to all, until so many pages are read."""
    from scrapy import Request, Spider, signals
    from scrapy.crawler import CrawlerProcess
    from scrapy.exceptions import CloseSpider
    from scrapy.linkextractors import LinkExtractor

    pages = 0
    clock = _Clock()
    meta = {"proxy": proxy} if proxy else {}

    class Follow(Spider):  # type: ignore[misc]  # it may not be installed
        name = "follow"
        extractor = LinkExtractor(allow_domains=domains)

        async def start(self) -> Any:
            for seed in seeds:
                yield Request(seed, meta=dict(meta))

        def parse(self, response: Any) -> Any:
            nonlocal pages
            if pages >= most:
                raise CloseSpider
            pages += 1
            for link in self.extractor.extract_links(response):
                yield Request(link.url, callback=self.parse, meta=dict(meta))

    settings: dict[str, Any] = {
        "LOG_ENABLED": False,
        "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
        "DOWNLOAD_DELAY": 0,
    }
    if job:
        settings |= {"ROBOTSTXT_OBEY": True, "TELNETCONSOLE_ENABLED": False, **job}
    else:
        bare = ("DOWNLOADER_MIDDLEWARES_BASE", "SPIDER_MIDDLEWARES_BASE", "EXTENSIONS_BASE")
        settings |= {"ROBOTSTXT_OBEY": False, "STATS_DUMP": False, **{name: {} for name in bare}}
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Follow)
    crawler.signals.connect(lambda: clock.__enter__(), signals.engine_started, weak=False)
    crawler.signals.connect(lambda: clock.__exit__(), signals.engine_stopped, weak=False)
    process.crawl(crawler)
    process.start()
    return clock.report(pages)


class _Clock:
    def __enter__(self) -> _Clock:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._wall, self._cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu

    def report(self, pages: int) -> Report:
        return {"pages": pages, "seconds": self._wall, "cpu": self._cpu, "peak": memory.peak()}


CRAWLERS: dict[str, Callable[[str, Path], Report]] = {
    "surveyor, RankMass": surveyor("rankmass", archive=False),
    "surveyor, breadth-first": surveyor("breadth", archive=False),
    "surveyor, RankMass, WARC": surveyor("rankmass", archive=True),
    "surveyor, breadth-first, WARC": surveyor("breadth", archive=True),
    "Scrapy, all extras off": scrapy(job=False),
    "Scrapy, usual, JOBDIR": scrapy(job=True),
}


def main() -> None:
    name, url, folder, core = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answers.write(json.dumps(CRAWLERS[name](url, Path(folder))) + "\n")


if __name__ == "__main__":
    main()
