"""Links of a page and the composition of its score, from the graph of a view and the visits of the journal.

A link contributes damping · score(source) / out-links(source) to the score of its target. In-links are ordered by that;
the fractions are of the score of the target. Anchor texts are those of the latest visit that fetched the source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import IdArray, map_npy
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.outcome import has_changed
from surveyor.rank.explain import explain
from surveyor.rank.pagerank import Ranking
from surveyor.report.explanation import link_rows, origin_rows
from surveyor.serve.view.paging import check_limit
from surveyor.serve.view.schema import GRAPH
from surveyor.store.tabular import LISTS, contexts_of

if TYPE_CHECKING:
    from surveyor.outcome import Visit
    from surveyor.serve.view.view import View
    from surveyor.web.link_context import LinkContext

Row = dict[str, Any]
SHOWN = ("id", "url", "title", "status", "share", "score")  # columns of the other end of a link
LONGEST_PATH = 20  # pages of a path that are returned


class Links:
    """The graph of a view, with the ranks as of its build."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._place = view.generation.folder
        self._ranked: IdArray = map_npy(self._place / "rank" / "page.npy")
        self._alias_of: IdArray = map_npy(self._place / "rank" / "alias_of.npy")

    @cached_property
    def graph(self) -> Graph:
        """The in-scope links as fetched, aliases merged."""
        return Graph.open(self._place / GRAPH, verify=False)

    @cached_property
    def ranking(self) -> Ranking:
        """The ranking with jumps to the seeds."""
        about = self._view.generation.about["ranking"]
        teleport = np.asarray(map_npy(self._place / "rank" / "teleport.npy"))
        return Ranking(
            scores=np.asarray(map_npy(self._place / "rank" / "scores.npy")),
            teleport_weights=teleport,
            dangling_weights=teleport,
            **about,
        )

    def node(self, page: int) -> int | None:
        """Return the node of a page, or of the page that it is an alias of; None if that is not ranked."""
        goal = int(self._alias_of[page]) if page < self._alias_of.size else page
        at = int(np.searchsorted(self._ranked, goal))
        return at if at < self._ranked.size and int(self._ranked[at]) == goal else None

    def in_links(self, page: int, limit: int, after: str) -> Row:
        """Return the links to a page with the largest contributions, from a token on."""
        check_limit(limit)
        node = self.node(page)
        if node is None:
            return {"rows": [], "next": "", "total": 0}
        graph, ranking = self.graph, self.ranking
        sources, links = np.unique(graph.in_links_of(node), return_counts=True)
        degrees = graph.indptr[sources + np.int64(1)] - graph.indptr[sources]
        passed = ranking.damping * ranking.scores[sources] * links / degrees
        order = np.lexsort((sources, -passed))
        if after:
            value, source = _read(after)
            behind = (passed < value) | ((passed == value) & (sources > source))
            order = order[behind[order]]
        chosen = order[:limit]
        share = float(ranking.scores[node])
        ids = self._ranked[sources[chosen]].tolist()
        contexts = self.contexts(ids, int(self._ranked[node]))
        rows = []
        for at, row in zip(chosen.tolist(), self._rows(ids), strict=True):
            context = contexts.get(row["id"])
            fraction = {"fraction": float(passed[at]) / share if share else None, "contribution": float(passed[at])}
            numbers = {"links": int(links[at]), "out_links": int(degrees[at])}
            rows.append({**row, **fraction, **numbers, "context": None if context is None else context._asdict()})
        last = chosen[-1:].tolist()
        token = json.dumps([float(passed[last[0]]), int(sources[last[0]])]) if order.size > limit else ""
        return {"rows": rows, "next": token, "total": int(sources.size)}

    def explanation(self, page: int, top: int) -> Row | None:
        """Return where the score of a page comes from; None if it is not ranked."""
        node = self.node(page)
        if node is None:
            return None
        check_limit(top)
        found = explain(self.graph, self.ranking, node, top=top, sites=self._sites)
        ids = self._ranked[[link.page for link in found.links]].tolist() if found.links else []
        contexts = self.contexts(ids, int(self._ranked[node]))
        by_name = {link.name: contexts[one] for link, one in zip(found.links, ids, strict=True) if one in contexts}
        fields = {**found.to_dict(), "id": int(self._ranked[node]), "path_pages": len(found.path)}
        if len(found.path) > LONGEST_PATH:  # its first and its last pages
            fields["path"] = (*found.path[: LONGEST_PATH // 2], *found.path[-LONGEST_PATH // 2 :])
        for kind, listed in (("links", found.links), ("origins", found.origins)):
            numbers = self._ranked[[one.page for one in listed]].tolist() if listed else []
            fields[kind] = [{**row, "id": one} for row, one in zip(fields[kind], numbers, strict=True)]
        return {
            **fields,
            "rows": [asdict(row) for row in link_rows(found, by_name)],
            "origin_rows": [asdict(row) for row in origin_rows(found)],
            "contexts": {name: context._asdict() for name, context in by_name.items()},
        }

    @cached_property
    def _sites(self) -> tuple[IdArray, Sequence[str]]:
        """The host of each node, and the names of the hosts."""
        hosts, names = self._view.column("host"), self._view.host_names
        listed = self._ranked < hosts.size  # seeds that were added since the last fetch are in no table yet
        codes = np.where(listed, hosts[np.minimum(self._ranked, hosts.size - 1)], len(names))
        return codes, [*names, ""]

    def contexts(self, sources: Iterable[int], target: int) -> dict[int, LinkContext]:
        """Return how pages link to a page, or to an alias of it, by id of the source; the others are omitted."""
        found: dict[int, LinkContext] = {}
        for source in sources:
            visit = self._view.last_fetch(source)
            if visit is None or not visit.contexts:
                continue
            contexts = contexts_of(self._view.journal, visit)
            known = (page for page in contexts if page < self._alias_of.size)
            leading = next((page for page in known if self._alias_of[page] == target), None)
            if leading is not None:
                found[source] = contexts[leading]
        return found

    def _rows(self, ids: list[int]) -> list[Row]:
        return [{name: row[name] for name in SHOWN} for row in self._view.rows_of("pages", ids)]


def out_links(view: View, page: int, limit: int, after: str) -> Row:
    """Return the links of a page as of its latest fetch, in the order of the page ids of their targets."""
    check_limit(limit)
    visit = view.last_fetch(page)
    if visit is None:
        return {"rows": [], "next": "", "total": 0}
    kinds = {target: kind for kind, name in LISTS.items() for target in getattr(visit, name).tolist()}
    contexts = contexts_of(view.journal, visit) if visit.contexts else {}
    first = int(_read(after)[1]) if after else -1
    known = sorted(target for target in kinds if target < view.size)
    left = [target for target in known if target > first]
    rows = []
    for row in view.rows_of("pages", left[:limit]):
        context = contexts.get(row["id"])
        shown = {name: row[name] for name in SHOWN}
        rows.append({**shown, "kind": kinds[row["id"]], "context": None if context is None else context._asdict()})
    token = json.dumps([0.0, left[limit - 1]]) if len(left) > limit else ""
    return {"rows": rows, "next": token, "total": len(known)}


def visit_rows(visits: Sequence[Visit], limit: int) -> list[Row]:
    """Return the latest visits of a page, latest first; `changed` compares each fetch with the one before it."""
    rows = []
    for at, visit in enumerate(visits[:limit]):
        before = next((one for one in visits[at + 1 :] if one.kind == "fetched"), None)
        changed = has_changed(before, visit) if before is not None and visit.kind == "fetched" else None
        rows.append(
            {
                "kind": visit.kind,
                "reason": visit.reason or None,
                "http_status": visit.status or None,
                "fetched_at": visit.fetched_at or None,
                "seconds": visit.seconds,
                "bytes": visit.size,
                "title": visit.title or None,
                "language": visit.language or None,
                "redirected_to": None if visit.target < 0 else visit.target,
                "changed": changed,
                "archived": visit.warc is not None,
            }
        )
    return rows


def _read(token: str) -> tuple[float, int]:
    """Return the contents of a token."""
    try:
        value, row = json.loads(token[:100])
        if type(value) is not float or type(row) is not int:
            raise ValueError("it names no link")
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"after is no token of these links ({error})", hint="start from the first one") from error
    return value, row
