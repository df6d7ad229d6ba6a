"""A program as a user writes it: the tests check its types and run it."""

from __future__ import annotations

from typing import assert_type

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

import surveyor as sv

graph = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
ranking = sv.pagerank(graph, tolerance=1e-9, teleport={"a": 1.0}, dangling={"b": 1.0})
assert_type(ranking, sv.Ranking)
assert_type(ranking.share("b"), float)
assert_type(ranking.error, float)
assert_type(ranking.to_polars(), pl.DataFrame)
assert [ranking.position(node) for node in ranking.top(2).tolist()] == [1, 2]

table = pd.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [0.5, 1.0]})
sv.pagerank(table)
sv.pagerank(pl.DataFrame({"source": [1, 2], "target": [2, 3]}))
sv.pagerank(pa.table({"source": [1, 2], "target": [2, 3]}))
sv.pagerank(np.array([[1, 2], [2, 3]]))
sv.pagerank(sparse.csr_array((3, 3)))
sv.pagerank([(1, 2), ("a", 3)])
sv.pagerank({"a": ["b"], "b": []})
sv.pagerank(sv.synthetic_web("small"))
weighted = sv.as_graph(table, weights="weight", self_links=True)
assert_type(weighted, sv.Graph)
assert_type(sv.domains(graph, "in").top(3)[0].score, float)
assert_type(sv.simulate([("a", "b"), ("b", "a")], "breadth", sv.Pages(2)), sv.Race)
assert_type(sv.explain(graph, ranking, "b").share, float)
