"""Community crawls without sockets, on a fake clock and with fixed random seeds, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash_recovery import Hook, Setting, calm, hook, rough
from surveyor.config import Settings
from surveyor.estimate.community.beginning import begin
from surveyor.estimate.community.live import Crawled, run
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.synthetic.shapes import WebShape

SHAPE = WebShape(
    pages=480, smallest_site=60, largest_site=60, topics=2, external=0.5, mutual=0.5, dangling=0.1, dead=0.4,
    farms=0.0, exchanges=0.0,
)  # fmt: skip
CALM, ROUGH = calm(SHAPE), rough(SHAPE)


@dataclass
class Around(Setting):
    """A web, and a survey of one of its hosts that is to be seen from all around."""

    def base(self, path: Path, *, scope: str = "host", until: str = "pages=100000") -> Path:
        """Crawl the host of the first seed."""
        before, self.seeds = dict(self.options), 1
        self.options |= {"scope": scope}
        self.crawl(path, until)
        self.options = before
        return path

    def community(
        self, base: Path, out: Path, *, before: Hook | None = None, after: Hook | None = None, **wish: Any
    ) -> Crawled:
        """Begin a community or go on with it; the hooks are called around each commit."""
        chosen: Mapping[str, Any] = {"concurrency": self.concurrency, **self.options}
        given = {"local": "all", **wish, "settings": Settings(**chosen), "origins": dict.fromkeys(chosen, "argument")}
        with begin(base, out=out, **given) as community:
            hook(community.folder, before, after)
            delay, journal = community.settings.delay, community.folder.journal
            self.hosts = Hosts(delay, clock=self.clock, stored=journal.robots)
            return asyncio.run(
                run(community, client=self.client, hosts=self.hosts, wait=self.client.wait, watch=self._see, patience=0)
            )
