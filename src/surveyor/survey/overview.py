"""The shape of a site: pages by depth, URLs by status, importance by folder.

>>> urls = ["https://a.example/x/1", "https://a.example/x/2", "https://a.example/y/1"]
>>> [(one.name, one.pages) for one in folders(urls, [0.5, 0.2, 0.3])]
[('/x/', 2), ('/y/', 1)]
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from surveyor.survey.survey import Survey
from surveyor.web.urls import origin

MOST_FOLDERS = 40
DEEPEST = 15  # links from the nearest seed that are counted separately
SPLIT = 0.02  # share of importance above which a folder is divided


class Folder(NamedTuple):
    """The pages of a folder."""

    name: str  # without what all URLs begin with; ends with a slash
    pages: int
    share: float  # of importance


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of a survey."""

    depths: dict[int, int]  # fetched pages by number of links from the nearest seed; -1 if it is not known
    statuses: dict[str, int]  # URLs by kind: fetched, redirected, gone, blocked, queued
    folders: tuple[Folder, ...]  # most important first

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        depths = {str(depth): count for depth, count in self.depths.items()}
        return {"depths": depths, "statuses": self.statuses, "folders": [one._asdict() for one in self.folders]}


def overview(survey: Survey) -> Overview:
    """Count the pages of a survey."""
    depths, statuses = Counter[int](), Counter[str]()
    by_page = survey.tables.depths()
    for page, _, visit in survey.pages():
        if visit is None:
            continue
        statuses[visit.kind] += 1
        if visit.kind == "fetched":
            depth = int(by_page[page]) if page < by_page.size else -1
            depths[min(depth, DEEPEST)] += 1
    if survey.pages_queued:
        statuses["queued"] = survey.pages_queued
    ranked = survey.as_graph()
    names = ranked.graph.names or ()
    return Overview(
        depths=dict(sorted(depths.items())),
        statuses=dict(statuses.most_common()),
        folders=tuple(folders([*names], survey.ranking.scores.tolist())),
    )


def folders(
    urls: Sequence[str], shares: Sequence[float], most: int = MOST_FOLDERS, counts: Sequence[int] | None = None
) -> list[Folder]:
    """Divide URLs into at most about `most` folders, so that important ones are divided further.

    Pages that are directly in a folder with subfolders count as the folder itself. With `counts`, each URL stands for
    so many pages of the same folder.
    """
    paths = [_parts(url) for url in urls]
    start = _common(paths)
    whole = (-sum(shares), start, [*range(len(urls))])
    open_, done = [whole] if urls else [], list[tuple[float, tuple[str, ...], list[int]]]()
    while open_:
        one = heapq.heappop(open_)
        share, prefix, members = one
        inside = defaultdict[str, list[int]](list)
        own = []
        for page in members:
            if len(paths[page]) > len(prefix):
                inside[paths[page][len(prefix)]].append(page)
            else:
                own.append(page)
        more = len(inside) + bool(own)
        first = prefix == start
        if not inside or (not first and (-share < SPLIT or len(open_) + len(done) + more > most)):
            done.append(one)
            continue
        if own:
            done.append((-sum(shares[page] for page in own), prefix, own))
        for name, pages in inside.items():
            heapq.heappush(open_, (-sum(shares[page] for page in pages), (*prefix, name), pages))
    done.sort()
    return [
        Folder(
            "/".join(["", *prefix[max(1, len(start)) :], ""]) if len(start) > 0 else _spelt(prefix),
            len(pages) if counts is None else sum(counts[page] for page in pages),
            -share,
        )
        for share, prefix, pages in done
    ]


def _parts(url: str) -> tuple[str, ...]:
    """Return the origin and the folders of a URL."""
    place = origin(url)
    path = url[len(place) :].partition("?")[0]
    return place, *path.split("/")[1:-1]


def _spelt(prefix: tuple[str, ...]) -> str:
    """Return a folder with its host."""
    return f"{'/'.join(prefix).partition('://')[2]}/"


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return what all paths begin with."""
    if not paths:
        return ()
    low, high = min(paths), max(paths)
    same = 0
    while same < min(len(low), len(high)) and low[same] == high[same]:
        same += 1
    return low[:same]
