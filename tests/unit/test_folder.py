from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from surveyor import Graph, GraphError, UsageError
from surveyor.graph.folder import ARRAYS
from webs import graphs, random_web


@given(graphs())
@settings(max_examples=30, deadline=None)
def test_a_saved_graph_opens_equal(tmp_path_factory, graph: Graph) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("graphs") / "graph"
    graph.save(folder)
    opened = Graph.open(folder)
    assert opened == graph
    assert np.array_equal(opened.in_links.indices, graph.in_links.indices)


def test_names_and_provenance_are_kept(tmp_path: Path) -> None:
    graph = Graph.from_edges([("https://a.example/ü", "b c"), ("", "b c")])
    graph.save(tmp_path / "graph")
    opened = Graph.open(tmp_path / "graph")
    assert opened == graph
    assert opened.provenance == graph.provenance
    assert opened.page("https://a.example/ü") == 0


def _truncate(folder: Path) -> None:
    path = folder / "in_indices.npy"
    path.write_bytes(path.read_bytes()[:-4])


def _flip_a_bit(folder: Path) -> None:
    path = folder / "indices.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _remove(folder: Path) -> None:
    (folder / "indptr.npy").unlink()


def _describe(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "graph.json"
        about = json.loads(path.read_text()) | changes
        del about["checksum"]
        path.write_text(json.dumps(about))

    return change


def _crafted(folder: Path) -> None:
    """Links that lead out of the graph, with checksums that fit."""
    indices = np.load(folder / "indices.npy")
    indices[0] = 10**9
    np.save(folder / "indices.npy", indices)
    about = json.loads((folder / "graph.json").read_text())
    del about["checksum"]
    about["files"]["indices.npy"]["crc32"] = f"{zlib.crc32((folder / 'indices.npy').read_bytes()):08x}"
    (folder / "graph.json").write_text(json.dumps(about))


def _provenance(folder: Path) -> None:
    path = folder / "graph.json"
    path.write_text(path.read_text().replace('"provenance": {', '"provenance": {"source": "elsewhere", ', 1))


def _garble(folder: Path) -> None:
    (folder / "graph.json").write_text("{")


def _no_description(folder: Path) -> None:
    (folder / "graph.json").unlink()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_truncate, "in_indices.npy has .* bytes instead of"),
        (_flip_a_bit, "indices.npy is corrupt"),
        (_remove, "indptr.npy is missing"),
        (_describe(version=99), "newer surveyor"),
        (_describe(format="recipe"), "describes a 'recipe'"),
        (_describe(pages=3), "does not contain 4 int64"),
        (_describe(files=None), "damaged"),
        (_crafted, "links to pages that do not exist"),
        (_garble, "graph.json is damaged"),
        (_provenance, "graph.json is damaged .*its checksum differs"),
        (_no_description, "not a graph folder"),
    ],
)
def test_a_damaged_graph_is_rejected(damage, sentence: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = random_web(50, 200, seed=1).save(tmp_path / "graph")
    damage(folder)
    with pytest.raises(GraphError, match=sentence) as caught:
        Graph.open(folder)
    assert "\n" not in caught.value.problem
    assert caught.value.hint
    assert caught.value.exit_code == 4


def test_a_missing_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="does not exist"):
        Graph.open(tmp_path / "nothing")


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    graph, other = random_web(50, 200, seed=1), random_web(50, 200, seed=2)
    folder = graph.save(tmp_path / "graph")
    with pytest.raises(UsageError, match="already exists"):
        other.save(folder)
    assert Graph.open(folder) == graph
    other.save(folder, replace=True)
    assert Graph.open(folder) == other
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="already exists"):
        other.save(tmp_path / "mine", replace=True)
    (folder / "notes.txt").write_text("about this graph")
    with pytest.raises(UsageError, match=r"contains notes\.txt"):
        graph.save(folder, replace=True)
    (tmp_path / "link").symlink_to(graph.save(tmp_path / "third"))
    with pytest.raises(UsageError, match="symbolic link"):
        graph.save(tmp_path / "link", replace=True)
    assert (folder / "notes.txt").exists()


def test_a_crash_while_saving_leaves_no_half_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("surveyor.graph.folder._describe", crash)
    with pytest.raises(KeyboardInterrupt):
        random_web(50, 200, seed=1).save(tmp_path / "graph")
    assert not list(tmp_path.iterdir())


def test_the_format_is_plain_numpy(tmp_path: Path) -> None:
    graph = random_web(50, 200, seed=1)
    folder = graph.save(tmp_path / "graph")
    for name, dtype in ARRAYS.items():
        assert np.load(folder / name).dtype == dtype
    assert np.array_equal(np.load(folder / "indices.npy"), graph.indices)
