"""Links of any source as arrays, on their way to a `Graph`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surveyor.arrays import AnyIntArray, FloatArray
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.labels import Labels


@dataclass(frozen=True, slots=True)
class Keep:
    """What a graph keeps of its source; None: the default of the source."""

    weights: str | bool | None = None
    self_links: bool | None = None
    multi_links: bool | None = None
    missing: bool = False  # whether no edge need have the attribute

    def attribute(self, name: str, *, default: bool) -> str | None:
        """Return the name of the weights, None without weights; `name` is the usual one."""
        if self.weights is not None and not isinstance(self.weights, str | bool):
            raise UsageError(f"weights must be a name, True or False, got {self.weights!r:.80}", hint="weights=True")
        if isinstance(self.weights, str):
            return self.weights
        return name if (default if self.weights is None else self.weights) else None


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """One source and one target per link, by page id, and the labels of the pages."""

    sources: AnyIntArray
    targets: AnyIntArray
    nodes: int
    labels: Any = None  # a list, an array or Names; None: the page ids
    weights: FloatArray | None = None
    ids: dict[Any, int] | None = None  # of the labels
    faithful: bool = False  # by default, self-links and parallel links are kept

    def both_ways(self) -> Links:
        """Return the links of undirected edges: each in both directions, a self-link once."""
        other = np.flatnonzero(self.sources != self.targets)
        weights = None if self.weights is None else np.concatenate([self.weights, self.weights[other]])
        return replace(
            self,
            sources=np.concatenate([self.sources, self.targets[other]]),
            targets=np.concatenate([self.targets, self.sources[other]]),
            weights=weights,
        )

    def graph(self, keep: Keep) -> Graph:
        """Return the graph of these links."""
        self_links = self.faithful if keep.self_links is None else keep.self_links
        multi_links = self.faithful if keep.multi_links is None else keep.multi_links
        labels = None if self.labels is None else Labels(self.labels, self.ids)
        if self.weights is None and not self._has_more(self_links=self_links, multi_links=multi_links):
            graph = Graph.from_arrays(self.sources, self.targets, self.nodes)
        else:
            graph = Graph.from_arrays(
                self.sources,
                self.targets,
                self.nodes,
                weights=self.weights,
                self_links=self_links,
                multi_links=multi_links,
            )
        return graph if labels is None else graph.with_names(labels)

    def _has_more(self, *, self_links: bool, multi_links: bool) -> bool:
        """Return whether something is to be kept that a simple graph does not have; parallel links may be there."""
        return multi_links or (self_links and bool((self.sources == self.targets).any()))
