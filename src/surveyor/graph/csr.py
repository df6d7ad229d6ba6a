"""An immutable link graph with the out-links and the in-links of each page.

Both directions are CSR arrays: row p of `indices` is `indices[indptr[p]:indptr[p + 1]]`, ascending, without
duplicates and without p itself. `indptr` is int64, `indices` int32. The arrays may be memory maps, so that a
graph larger than RAM is read as a stream. The in-links are computed on first use and kept.

A graph may have a weight per link, and keep self-links and duplicates, if that is asked for. PageRank uses them; other
results are those of the graph without them (`simple()`).

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
    >>> graph
    Graph(3 pages, 4 links, named)
    >>> graph.links_of(2)
    array([0, 1], dtype=int32)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import MAX_PAGES, AnyIntArray, FloatArray, IdArray, IntArray, let_go, read_only
from surveyor.errors import UsageError
from surveyor.graph.labels import Labels
from surveyor.graph.names import Names

AT_ONCE = 1 << 22  # pages
MANY = 1 << 25  # number of pages from which memory of read file pages is released


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One direction of a graph."""

    indptr: IntArray
    indices: IdArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "indptr", read_only(self.indptr))
        object.__setattr__(self, "indices", read_only(self.indices))

    def degrees(self) -> IntArray:
        """Return the number of links in each row."""
        return np.diff(self.indptr)


@dataclass(frozen=True, slots=True, eq=False)
class Extra:
    """What only some graphs have."""

    weights: FloatArray | None = None  # of each link, positive
    multigraph: bool = False  # self-links or several links between the same pages are kept
    folder: Path | None = None  # that it was opened from

    def __post_init__(self) -> None:
        if self.weights is not None:
            object.__setattr__(self, "weights", read_only(self.weights))


PLAIN = Extra()


class Graph:
    """An immutable link graph with optional names, and optional weights of links."""

    def __init__(
        self,
        indptr: IntArray,
        indices: IdArray,
        *,
        names: Names | None = None,
        in_links: Rows | None = None,
        provenance: Mapping[str, Any] | None = None,
        extra: Extra = PLAIN,
    ) -> None:
        if indptr.size - 1 > MAX_PAGES:
            raise UsageError(
                f"{indptr.size - 1:,} pages are more than page ids can number ({MAX_PAGES:,})", hint="split the graph"
            )
        if names is not None and len(names) != indptr.size - 1:
            raise UsageError(f"{len(names):,} names for {indptr.size - 1:,} pages", hint="pass one name per page id")
        self.indptr: IntArray = read_only(indptr)
        self.indices: IdArray = read_only(indices)
        self.names = names
        self.provenance: Mapping[str, Any] = dict(provenance or {})
        self._in_links = in_links
        self._extra = extra
        self._chances: FloatArray | None = None

    @classmethod
    def from_arrays(
        cls,
        sources: AnyIntArray,
        targets: AnyIntArray,
        nodes: int | None = None,
        names: Sequence[str] | None = None,
        *,
        weights: FloatArray | None = None,
        self_links: bool = False,
        multi_links: bool = False,
        threads: int | None = None,
    ) -> Graph:
        """Build a graph from one source id and one target id per link; duplicates are merged, self-links dropped.

        With `weights`, one positive number per link, the weights of duplicates are added; links of weight 0 are
        dropped. `self_links` and `multi_links` keep what is otherwise dropped or merged. Only PageRank and `explain`
        use these.

        >>> graph = Graph.from_arrays(np.array([0, 0]), np.array([1, 2]), weights=np.array([3.0, 1.0]))
        >>> graph, graph.weights.tolist()
        (Graph(3 pages, 2 links, weighted), [3.0, 1.0])
        """
        from surveyor.graph.build import Builder, sorted_rows

        if names is not None:
            nodes = len(names) if nodes is None else nodes
            if len(set(names)) < len(names):
                raise UsageError("some pages have the same name", hint="names must be distinct, one per page id")
        table = names if names is None or isinstance(names, Names) else Names.of(names)
        sources, targets = np.asarray(sources), np.asarray(targets)
        if weights is not None or self_links or multi_links:
            from surveyor.graph.weighted import build_weighted

            kept = build_weighted(sources, targets, nodes, weights, self_links=self_links, multi_links=multi_links)
            return cls(kept.indptr, kept.indices, names=table, provenance=kept.provenance, extra=kept.extra)
        if (rows := sorted_rows(sources, targets, nodes)) is not None:
            seen = {"links_read": rows.indices.size, "self_links_dropped": 0, "repeats_merged": 0}
            return cls(rows.indptr, rows.indices, names=table, provenance=seen)
        with Builder(expected_links=len(sources), memory=None, threads=threads) as builder:
            builder.add(sources, targets)
            return builder.finish(nodes, table)

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]]) -> Graph:
        """Build a graph from pairs of names; ids follow the order of first appearance."""
        ids: dict[str, int] = {}
        pairs = [(ids.setdefault(a, len(ids)), ids.setdefault(b, len(ids))) for a, b in _named_pairs(edges)]
        links = np.array(pairs, np.int64).reshape(-1, 2)
        return cls.from_arrays(links[:, 0], links[:, 1], len(ids), list(ids))

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = True) -> Graph:
        """Open a graph folder by memory map; with `verify`, read it once to check its checksums."""
        from surveyor.graph.folder import open_folder

        return open_folder(Path(folder), verify=verify)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._extra.folder is not None:  # by path: the arrays may be larger than memory
            return _open_again, (self._extra.folder,)
        return _rebuilt, (self.indptr, self.indices, self.names, self._in_links, dict(self.provenance), self._extra)

    def save(self, folder: str | Path, *, replace: bool = False) -> Path:
        """Write the graph, in both directions, as a folder that opens by memory map."""
        from surveyor.graph.folder import save_folder

        return save_folder(self, Path(folder), replace=replace)

    @property
    def pages(self) -> int:
        """The number of pages."""
        return int(self.indptr.size - 1)

    @property
    def links(self) -> int:
        """The number of links."""
        return int(self.indices.size)

    @property
    def out_degrees(self) -> IntArray:
        """The out-degree of each page."""
        return np.diff(self.indptr)

    @property
    def share_per_link(self) -> FloatArray:
        """The reciprocal of the out-degree of each page, 0 for a page without links."""
        shares = np.zeros(self.pages)
        for first in range(0, self.pages, AT_ONCE):  # in blocks: degrees take as much memory again
            last = min(first + AT_ONCE, self.pages)
            degrees = np.diff(self.indptr[first : last + 1])
            np.divide(1.0, degrees, out=shares[first:last], where=degrees > 0)
            if self.pages > MANY:
                let_go(self.indptr, first, last)
        return shares

    @property
    def in_links(self) -> Rows:
        """The transposed graph: row p holds the pages that link to p."""
        if self._in_links is None:
            from surveyor.graph.build import transpose

            self._in_links = transpose(self.indptr, self.indices)
        return self._in_links

    def links_of(self, page: int) -> IdArray:
        """Return the pages that a page links to."""
        return self.indices[self.indptr[page] : self.indptr[page + 1]]

    def in_links_of(self, page: int) -> IdArray:
        """Return the pages that link to a page."""
        rows = self.in_links
        return rows.indices[rows.indptr[page] : rows.indptr[page + 1]]

    def distinct_links_from(self, pages: AnyIntArray) -> tuple[IntArray, IdArray]:
        """Return the distinct links of some pages: for each, the index of its page in `pages`, and its target.

        >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
        >>> owners, goals = graph.distinct_links_from(np.array([2, 0]))
        >>> owners.tolist(), goals.tolist()
        ([0, 0, 1], [0, 1, 1])
        """
        first = self.indptr[pages]
        degrees = self.indptr[np.asarray(pages) + 1] - first
        owners = np.repeat(np.arange(degrees.size), degrees)
        goals = self.indices[np.arange(owners.size) + np.repeat(first - np.cumsum(degrees) + degrees, degrees)]
        new = np.ones(owners.size, np.bool_)
        new[1:] = (goals[1:] != goals[:-1]) | (owners[1:] != owners[:-1])  # rows are ascending
        return owners[new], goals[new]

    def to_networkx(self) -> Any:
        """Return a NetworkX DiGraph; a MultiDiGraph if several links between the same pages were kept.

        >>> sorted(Graph.from_edges([("a", "b"), ("b", "a")]).to_networkx().edges)
        [('a', 'b'), ('b', 'a')]
        """
        from surveyor.graph.exchange import to_networkx

        return to_networkx(self)

    def to_scipy(self) -> Any:
        """Return a SciPy csr_array; row i, column j is the weight of the link i → j, 1 without weights.

        >>> Graph.from_edges([("a", "b"), ("b", "a")]).to_scipy().toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        from surveyor.graph.exchange import to_scipy

        return to_scipy(self)

    def to_arrow(self) -> Any:
        """Return a PyArrow table of the links, with the columns source, target and, if there are any, weight.

        >>> Graph.from_edges([("a", "b"), ("b", "a")]).to_arrow().to_pylist()
        [{'source': 'a', 'target': 'b'}, {'source': 'b', 'target': 'a'}]
        """
        from surveyor.graph.exchange import to_arrow

        return to_arrow(self)

    @property
    def weights(self) -> FloatArray | None:
        """The weight of each link, parallel to `indices`; None without weights."""
        return self._extra.weights

    @property
    def multigraph(self) -> bool:
        """Whether the graph was built to keep self-links or parallel links, and has some."""
        return self._extra.multigraph

    @property
    def chances(self) -> FloatArray | None:
        """The probability of following each link, in the order of the in-links; None without weights."""
        if self.weights is not None and self._chances is None:
            from surveyor.graph.weighted import transposed_probabilities

            self._chances = read_only(transposed_probabilities(self))
        return self._chances

    def with_names(self, names: Names | None) -> Graph:
        """Return the same graph with other names."""
        return Graph(
            self.indptr,
            self.indices,
            names=names,
            in_links=self._in_links,
            provenance=self.provenance,
            extra=Extra(self.weights, self.multigraph),
        )

    def simple(self) -> Graph:
        """Return the graph without weights, self-links and duplicate links: itself if it has none."""
        if self.weights is None and not self.multigraph:
            return self
        sources = np.repeat(np.arange(self.pages, dtype=np.int32), self.out_degrees)
        plain = Graph.from_arrays(sources, np.asarray(self.indices), self.pages)
        return Graph(plain.indptr, plain.indices, names=self.names, provenance=self.provenance)

    def reversed(self) -> Graph:
        """Return the graph with every link reversed, sharing its arrays."""
        rows = self.in_links
        extra = self._extra
        if self.weights is not None:
            from surveyor.graph.weighted import transposed

            extra = Extra(transposed(self, self.weights), multigraph=self.multigraph)
        own = Rows(self.indptr, self.indices)
        return Graph(
            rows.indptr, rows.indices, names=self.names, in_links=own, extra=Extra(extra.weights, extra.multigraph)
        )

    @property
    def labelled(self) -> bool:
        """Whether pages are the nodes of a user's object, so that results are keyed by them and not by page ids."""
        return isinstance(self.names, Labels)

    def name(self, page: int) -> str:
        """Return the name of a page, or its id as text."""
        return str(page) if self.names is None else self.names[page]

    def page(self, name: Any) -> int:
        """Return the id of a page by name or node (or by id, in a graph without names)."""
        if self.names is not None and (isinstance(name, str) or self.labelled):
            return self.names.id_of(name)
        if not isinstance(name, str):
            return page_id(name, self.pages)
        if not name.isdecimal() or int(name) >= self.pages:
            raise UsageError(
                f"no page {name!r}: this graph has no names", hint=f"pass an id from 0 to {self.pages - 1}"
            )
        return int(name)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Graph)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
            and self.names == other.names
            and np.array_equal(self._weights_or_none, other._weights_or_none)
        )

    @property
    def _weights_or_none(self) -> FloatArray:
        return np.empty(0) if self.weights is None else self.weights

    __hash__ = None  # type: ignore[assignment]  # compared by value, too large to hash

    def __repr__(self) -> str:
        named = ", named" if self.names is not None else ""
        weighted = ", weighted" if self.weights is not None else ""
        return f"Graph({self.pages:,} pages, {self.links:,} links{named}{weighted})"


def page_id(page: Any, pages: int) -> int:
    """Return a page id after checking that it is one of `pages`."""
    if isinstance(page, bool) or not isinstance(page, int | np.integer) or not 0 <= page < pages:
        raise UsageError(f"page id must be in [0, {pages - 1}], got {page!r:.200}", hint="see .top()")
    return int(page)


def _open_again(folder: Path) -> Graph:
    return Graph.open(folder, verify=False)


def _rebuilt(
    indptr: IntArray,
    indices: IdArray,
    names: Names | None,
    in_links: Rows | None,
    provenance: Mapping[str, Any],
    extra: Extra,
) -> Graph:
    return Graph(indptr, indices, names=names, in_links=in_links, provenance=provenance, extra=extra)


def _named_pairs(edges: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield pairs of names; raise UsageError for anything else."""
    hint = 'for example [("a", "b"), ("b", "c")]; for page ids use Graph.from_arrays'
    if not isinstance(edges, Iterable):
        raise UsageError(f"edges must be pairs of names, got {edges!r:.200}", hint=hint)
    for number, edge in enumerate(edges):
        pair = () if isinstance(edge, str) or not isinstance(edge, Iterable) else tuple(edge)
        if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], str):
            raise UsageError(f"edges[{number}] must be a pair of names, got {edge!r:.200}", hint=hint)
        yield pair
