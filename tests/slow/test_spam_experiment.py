"""The experiment on spam: its graphs, and all of it on small ones."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from experiments import spam
from experiments.spam_webs import CLIQUES, TRUSTED, domain_graph, planted, real

if TYPE_CHECKING:
    from pathlib import Path


def pack(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of real graphs, but tiny."""
    folder = tmp_path / "data"
    cut = folder / "cc2024-labelled"
    pack(
        cut / "link_spam.nodes.tsv.gz",
        "".join(f"n{n}.com\t1\t{'news' if n < 20 else 'link spam'}\n" for n in range(30)),
    )
    pack(cut / "link_spam.edges.tsv.gz", "".join(f"n{n}.com\tn{n % 7}.com\n" for n in range(30)))
    links = [{"src": f"www.n{n}.com", "dst": f"n{n % 5}.com", "count": 1} for n in range(40)]
    pack(folder / "walk-domains" / "a-graph.json.gz", json.dumps({"nodes": [], "links": links}))
    pack(folder / "lists" / "stevenblack-hosts.txt.gz", "0.0.0.0 n3.com\n0.0.0.0 ads.n4.com\n")
    pack(folder / "lists" / "majestic_10k.csv.gz", "Rank,Domain\n" + "".join(f"{n},n{n}.com\n" for n in range(12)))
    return folder


@pytest.mark.slow
def test_links_between_hosts_become_links_between_domains() -> None:
    graph = domain_graph(
        [("www.a.com", "b.co.uk"), ("x.a.com", "y.b.co.uk"), ("a.com", "www.a.com"), ("10.0.0.1", "b.com")]
    )
    assert (list(graph.names or []), graph.links) == (["a.com", "b.co.uk"], 1)


@pytest.mark.slow
def test_every_planted_domain_is_known_after_the_ids_were_mixed() -> None:
    kinds = dict(planted(2_000, [7]))
    (case,) = kinds["cliques of new domains"]
    assert case.bad.size == sum(CLIQUES)
    sizes = np.bincount(case.groups)
    assert sorted(sizes.tolist()) == sorted(CLIQUES)
    assert case.graph.in_links.degrees()[case.bad].tolist() == (sizes[case.groups] - 1).tolist()
    assert not np.isin(case.trusted, case.bad).any()
    assert case.trusted.size == TRUSTED


@pytest.mark.slow
def test_missing_real_graphs_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(real(tmp_path / "nowhere", [7])) == []
    assert "only synthetic webs are used" in capsys.readouterr().err
    (tmp_path / "data").mkdir()
    assert list(real(tmp_path / "data", [7])) == []
    assert capsys.readouterr().err.count("skipped") >= 4


@pytest.mark.slow
def test_real_graphs_come_with_their_labels(data: Path) -> None:
    found = {name: cases[0] for name, cases in real(data, [7])}
    cut = found["Common Crawl 2024, link_spam"]
    assert sorted(map(cut.graph.name, cut.bad.tolist())) == [f"n{n}.com" for n in range(20, 30)]
    archive = found["Canadian web archives, blacklisted"]
    assert list(map(archive.graph.name, archive.bad.tolist())) == ["n3.com"]
    assert archive.popular["Majestic"].size == 11
    assert archive.bad[0] not in archive.trusted
    assert found["Canadian web archives, blacklisted by host"].bad.size == 2
    assert found["Canadian web archives, cliques and farms planted"].bad.size > sum(CLIQUES)


@pytest.mark.slow
def test_the_whole_experiment_on_small_graphs(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    spam.main(["--domains", "2000", "--seeds", "2", "--data", str(data), "--out", str(out)])
    printed = capsys.readouterr().out
    tables = json.loads((out / "spam.json").read_text())["tables"]
    assert len(tables) == printed.count("###") == 7 + 4
    cliques = next(table for table in tables if table["name"] == "cliques of new domains")
    counts = {row["score"]: row["bad_among_first"]["100"] for row in cliques["scores"] if row["graph"] == 0}
    assert counts["IN"] > 50
    assert counts["SUPP2"] == 0
    assert {found["other"] for found in cliques["differences"]} == set(counts) - {"SUPP2"}
    with (out / "spam.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(table["scores"]) for table in tables)
    assert (out / "spam.html").read_text().count("<svg") == 2 * len(tables)
