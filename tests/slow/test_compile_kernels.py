"""Kernels compiled in advance: the usual commands and calls then compile nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console import process

#: A script that counts the kernels that are compiled while the library is used.
COUNTED = """
import sys, warnings
from numba.core import event
warnings.simplefilter("ignore")
class Counter(event.Listener):
    compiled = []
    def on_start(self, started): self.compiled.append(str(started.data["dispatcher"]))
    def on_end(self, ended): pass
event.register("numba:compile", Counter())
import surveyor as sv
graph = sv.Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
sv.pagerank(graph)
web = sv.synthetic_web("small").graph
web.save("web.graph")
stored = sv.Graph.open("web.graph")
for graph in (web, stored):
    sv.explain(graph, sv.pagerank(graph), 0)
    sv.domains(sv.condense(graph).graph, "tse", top=10)
    sv.sample(graph, until="ess=50")
sv.simulate(stored, "rankmass", sv.Pages(100), rng=1)
sv.community(stored, "domain:site41.example")
print(Counter.compiled)
"""


@pytest.mark.slow
@pytest.mark.compiled
def test_nothing_is_compiled_after_compiling_all(tmp_path: Path) -> None:
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    done = process("-m", "surveyor", "doctor", "--compile", "--json", env=env)
    found = json.loads(done.stdout)["compiled"]
    assert found["kernels"] > 0.7 * found["all_kernels"]
    files = [path for path in (tmp_path / "kernels").rglob("*") if path.is_file()]
    assert found["bytes"] == sum(path.stat().st_size for path in files)
    assert Path(found["folder"]).parent == tmp_path / "kernels"
    used = process("-c", COUNTED, env=env, cwd=tmp_path)
    assert used.stdout == "[]\n", used.stdout + used.stderr
