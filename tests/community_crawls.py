"""Community crawls without sockets, on a fake clock and with fixed random seeds, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash_recovery import Hook, Setting, calm, hook, rough
from surveyor.config import Settings
from surveyor.crawler.sources.live import Connection
from surveyor.estimate.community.community_options import CommunityOptions
from surveyor.estimate.community.community_survey import CrawledCommunity, crawl_community, open_community_survey
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.synthetic.generate import WebShape

SHAPE = WebShape(
    pages=480,
    smallest_site=60,
    largest_site=60,
    topics=2,
    external=0.5,
    mutual=0.5,
    dangling=0.1,
    dead=0.4,
    farms=0.0,
    exchanges=0.0,
)
CALM, ROUGH = calm(SHAPE), rough(SHAPE)


@dataclass
class Around(Setting):
    """A web, a survey of one of its hosts, and communities of it."""

    def base(self, path: Path, *, scope: str = "host", until: str = "pages=100000") -> Path:
        """Crawl the host of the first seed."""
        before, self.seeds = dict(self.options), 1
        self.options |= {"scope": scope}
        self.crawl(path, until)
        self.options = before
        return path

    def community(
        self, base: Path, out: Path, *, before: Hook | None = None, after: Hook | None = None, **options: Any
    ) -> CrawledCommunity:
        """Create or resume a community; the hooks are called around each commit."""
        chosen: Mapping[str, Any] = {"concurrency": self.concurrency, **self.options}
        local, origins = options.pop("local", "all"), dict.fromkeys(chosen, "argument")
        request = CommunityOptions(**options, out=out)
        with open_community_survey(base, local, request, settings=Settings(**chosen), origins=origins) as community:
            hook(community.folder, before, after)
            delay, journal = community.settings.delay, community.folder.journal
            self.hosts = Hosts(delay, clock=self.clock, stored=journal.robots)
            connection = Connection(self.client, hosts=self.hosts, wait=self.client.wait, patience=0)
            return asyncio.run(crawl_community(community, connection=connection, watch=self._see))
