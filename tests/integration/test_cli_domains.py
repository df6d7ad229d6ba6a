"""`surveyor domains`: every option, against the library and against obvious counts."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from console import CommandResult
from domain_links import LINKS as PAGES
from fake_web import Sites, Time, crawled, page
from surveyor.cli.domains import SCORES
from surveyor.crawler import budgets
from surveyor.rank.bad_domains import RANKS
from surveyor.rank.domains import scores as library
from surveyor.report.domain_scores import side_by_side
from terminal import Terminal


@pytest.fixture(scope="module")
def web() -> sv.SyntheticWeb:
    return sv.synthetic_web("domains", links=30_000)


@pytest.fixture(scope="module")
def path(web: sv.SyntheticWeb, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(web.graph.save(tmp_path_factory.mktemp("domains") / "web.graph"))


def names(graph: sv.Graph, ids: Any) -> list[str]:
    return [graph.name(int(node)) for node in ids]


def listed(path: Path, domains: list[str]) -> str:
    path.write_text("\n".join(domains))
    return str(path)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_scores_are_those_of_the_library() -> None:
    assert library.SCORES == SCORES


def test_the_list_and_its_confidence(capsys: pytest.CaptureFixture[str], path: str, web: sv.SyntheticWeb) -> None:
    done = CommandResult(capsys, "domains", path, "--top", "5", "--error", "5%")
    result = sv.domains(web.graph, top=5, error=0.05)
    lines = done.out.splitlines()
    assert done.code == 0
    assert lines[0].split() == ["supporters", "95", "%", "interval", "in-links", "domain"]
    rows = [line.split() for line in lines[1:6]]
    for place, (row, domain) in enumerate(zip(rows, result.top(5), strict=True), 1):
        number = [f"{round(value):,}" for value in (domain.score, domain.low, domain.high, domain.in_links)]
        assert row == [str(place), number[0], number[1], "-", number[2], number[3], domain.name]
    p, sampled = result.main.method["p"], result.main.method["sampled"]
    size = f"{web.graph.pages:,} domains"
    assert f"tse: level-2 supporters: {sampled:,} of {size} sampled (p = {p:.2g}); relative standard error " in done.out
    assert result.main.method["error"] <= 0.05
    pairs = zip(result.top(5), result.top(5)[1:], strict=False)
    sure = sum(sv.order_confidence(web.graph, result.main, one.id, other.id) >= 0.95 for one, other in pairs)
    assert f"order: {sure} of 4 domains in the list " in done.out
    assert f"{size}, {web.graph.links:,} links; in memory (" in done.err
    assert f"surveyor domains {path} --top 5 --error 5% --budget star\n" in done.err
    quiet = CommandResult(capsys, "domains", path, "--top", "5", "--error", "5%", "-q")
    assert (quiet.out, quiet.err) == (done.out, "")


def test_one_json_object(capsys: pytest.CaptureFixture[str], path: str, web: sv.SyntheticWeb) -> None:
    result = CommandResult(
        capsys, "domains", path, "--json", "--p", "0.5", "--rng", "3", "--top", "4", "--threads", "1"
    ).json()
    expected = sv.domains(web.graph, options=sv.DomainOptions(p=0.5), rng=3, top=4)
    assert result["command"] == "domains"
    assert result["graph"] == {"path": path, "domains": web.graph.pages, "links": web.graph.links}
    assert result["mode"] == "in memory"
    assert (result["scores"]["tse"]["p"], result["scores"]["tse"]["rng"]) == (0.5, 3)
    assert result["scores"]["tse"]["confidence"] == 0.95
    rows = [row.to_dict() for row in expected.top(4)]
    assert result["domains"] == [{"domain": row.pop("name"), **row} for row in rows]
    assert 0 <= result["certain_neighbours"] <= 3
    assert set(result) == {"schema", "command", "graph", "mode", "scores", "certain_neighbours", "domains"}


def test_a_top_larger_than_the_graph(capsys: pytest.CaptureFixture[str], path: str, web: sv.SyntheticWeb) -> None:
    rows = table(CommandResult(capsys, "domains", path, "--csv", "--top", "99999", "--score", "in").out)
    assert [row["domain"] for row in rows] == names(web.graph, sv.domains(web.graph, "in").main.top(web.graph.pages))
    assert [row["position"] for row in rows] == [str(place) for place in range(1, web.graph.pages + 1)]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".npy"])
@pytest.mark.slow
def test_files_hold_the_results_of_the_library(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str, web: sv.SyntheticWeb, suffix: str
) -> None:
    good = listed(tmp_path / "good.txt", names(web.graph, range(5)))
    bad = listed(tmp_path / "bad.txt", names(web.graph, web.pages_of_kind("boosted")))
    out = str(tmp_path / f"all{suffix}")
    more = ["--score", "tse,pagerank,in", "--p", "0.4", "--trusted", good, "--blacklist", bad, "--budget", "star+7"]
    args = ["domains", path, "--top", "99999", *more]
    printed = table(CommandResult(capsys, *args, "--csv").out)
    done = CommandResult(capsys, *args, "--out", out)
    assert f"domains written to {out}\n" in done.err
    trusted, sampling = names(web.graph, range(5)), sv.DomainOptions(p=0.4)
    result = sv.domains(web.graph, ("tse", "pagerank", "in"), trusted=trusted, options=sampling)
    if suffix == ".npy":
        assert np.array_equal(np.load(out), result.main.scores)
        return
    order = result.main.top(web.graph.pages)
    low, high = result.main.intervals(order)
    assert result.trust is not None
    expected: dict[str, Any] = {
        "position": np.arange(1, order.size + 1),
        "id": order,
        "domain": names(web.graph, order),
        "score": result.main.scores[order],
        "low": low,
        "high": high,
        "in_links": web.graph.in_links.degrees()[order],
        "out_links": web.graph.out_degrees[order],
        "trust": result.trust.trust.log_scores()[order],
        "popularity": result.trust.popularity.log_scores()[order],
        "spam_mass": result.trust.spam_masses(order),
        "pagerank": result.scores["pagerank"].scores[order],
        "in": result.scores["in"].scores[order],
        "pages": budgets.parse("star+7").for_graph(order.size).pages(np.arange(1, order.size + 1), order < 5),
        "bad": np.isin(order, web.pages_of_kind("boosted")).astype(int),
    }
    if suffix == ".parquet":
        import pyarrow.parquet as parquet

        columns = parquet.read_table(out).to_pydict()
        assert {name: list(values) for name, values in expected.items()} == columns
        return
    raw = Path(out).read_bytes()
    rows = table((gzip.decompress(raw) if suffix == ".csv.gz" else raw).decode())
    assert list(rows[0]) == list(expected)
    assert rows == printed
    for name, values in expected.items():
        read = [row[name] if name == "domain" else float(row[name]) for row in rows]
        assert read == list(values), name


@pytest.mark.slow
def test_several_scores_side_by_side(capsys: pytest.CaptureFixture[str], path: str, web: sv.SyntheticWeb) -> None:
    args = ["domains", path, "--score", "in,pagerank", "--top", "3"]
    done = CommandResult(capsys, *args)
    tops = {name: names(web.graph, score.top(3)) for name, score in sv.domains(web.graph, "in,pagerank").scores.items()}
    rows = [line.split() for line in done.out.splitlines()[:4]]
    assert rows == [["in", "pagerank"], *([str(n + 1), tops["in"][n], tops["pagerank"][n]] for n in range(3))]
    assert "in: in-links, counted\n" in done.out
    assert "pagerank: PageRank; proven error at most " in done.out
    assert CommandResult(capsys, *args, "--json").json()["top"] == tops
    every = CommandResult(capsys, "domains", path, "--score", "all,supp", "--top", "1", "--json").json()
    assert list(every["top"]) == ["tse", "in", "win", "pagerank", "harmonic", "bv", "qvs", "supp"]


@pytest.mark.slow
def test_every_score_fits_its_terminal(web: sv.SyntheticWeb, path: str) -> None:
    from surveyor.report.domain_scores import DomainReport

    result = DomainReport(sv.domains(web.graph, "all"))
    assert [len(part.titles) - 1 for part in side_by_side(result, 5, None)] == [7]
    for width in (40, 80, 100):
        parts = side_by_side(result, 5, width)
        assert [title for part in parts for title in part.titles if title] == list(result.domains.scores)
        assert len(parts) > 1
    for columns in (80, 100):
        with Terminal("domains", path, "--score", "all", "--top", "5", columns=columns) as terminal:
            assert terminal.finish() == 0
        shown = terminal.text[terminal.text.index("tse ") :].splitlines()
        rows = [line.split() for line in shown if line.startswith("  1   ")]
        parts = side_by_side(result, 1, columns)
        assert rows == [["1", *part.cells[0][1:]] for part in parts]
        assert max(map(len, shown[:-4])) <= columns  # the last lines are commands to copy


def test_trust_and_spam_mass(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str, web: sv.SyntheticWeb
) -> None:
    good = listed(tmp_path / "good.txt", ["https://www.nowhere.example/", *names(web.graph, [1, 2, 3])])
    done = CommandResult(capsys, "domains", path, "--trusted", good, "--top", "8", "--json")
    result = sv.trust(web.graph, np.array([1, 2, 3]))
    for row in done.json()["domains"]:
        assert row["spam_mass"] == result.spam_mass(row["id"])
        assert row["trust"] == result.trust.log_scores()[row["id"]]
    assert "! 1 of 4 trusted domains is not in the graph\n" in done.err
    text = CommandResult(capsys, "domains", path, "--trusted", good, "--top", "8").out
    assert text.splitlines()[0].split()[-4:] == ["spam", "trust", "in-links", "domain"]
    assert "spam: fraction of the popularity that 3 trusted domains do not explain" in text


def test_bad_domains_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str, web: sv.SyntheticWeb
) -> None:
    bad = set(names(web.graph, web.pages_of_kind("boosted", "exchange")))
    half = sorted(bad)[::2]
    one, two = listed(tmp_path / "one.txt", half), listed(tmp_path / "two.txt", sorted(bad - set(half[3:])))
    lists = ["--blacklist", one, "--blacklist", two]
    plot = tmp_path / "bad.svg"
    args = ["domains", path, "--score", "in,pagerank", "--top", "60", *lists]
    result = CommandResult(capsys, *args, "--json").json()
    assert result["bad_domains"] == len(bad)
    orders = {
        name: names(web.graph, score.top(web.graph.pages))
        for name, score in sv.domains(web.graph, "in,pagerank").scores.items()
    }
    text = CommandResult(capsys, *args, "--plot", str(plot)).out
    for name, order in orders.items():
        first = next(place for place, domain in enumerate(order, 1) if domain in bad)
        among = {at: len(bad.intersection(order[:at])) for at in RANKS if at <= len(order)}
        assert result["spam"][name]["first_bad"] == first
        assert result["spam"][name]["bad_among_first"] == {str(at): number for at, number in among.items()}
        assert [str(first), *map(str, among.values()), name] in [line.split() for line in text.splitlines()]
    assert [row["bad"] for row in result["domains"]] == [row["domain"] in bad for row in result["domains"]]
    for line in text.splitlines()[1:61]:  # in order, with a mark before the bad
        place, *cells = line.replace("! ", "!").split()
        assert [cell.startswith("!") for cell in cells] == [
            orders[name][int(place) - 1] in bad for name in ("in", "pagerank")
        ]
    assert plot.read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg" width=')
    assert "--one: #" in plot.read_text()


def test_a_blacklist_without_known_domains(capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str) -> None:
    none = listed(tmp_path / "none.txt", ["nowhere.example"])
    done = CommandResult(capsys, "domains", path, "--blacklist", none, "--plot", str(tmp_path / "p.svg"), "-q")
    assert done.code == 0
    assert f"! none of the 1 domains in {none} is in the graph.\n" in done.err
    assert "p.svg was not written: no bad domain is ranked" in done.err
    assert not (tmp_path / "p.svg").exists()


def test_budgets_are_accepted_by_a_crawl(capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str) -> None:
    done = CommandResult(capsys, "domains", path, "--budget", "star:10-1000@50", "--top", "60", "--csv")
    rows = table(done.out)
    plan = budgets.parse("star:10-1000@50")
    assert [int(row["pages"]) for row in rows] == plan.pages(np.arange(1, 61)).tolist()
    limits = budgets.read_limits(done.out.splitlines(), "budgets.csv", rest=10)
    assert limits.of(rows[0]["domain"]) == 1000
    text = CommandResult(capsys, "domains", path, "--budget", "star:10-1000@50", "--top", "2").out
    size = sv.Graph.open(path).pages
    assert f"budget star:10-1000@50: at most {plan.total(size):,} pages in {size:,} domains\n" in text
    for text, code in ((done.out, 5), (done.out.replace("pages", "some"), 2)):  # nothing to read; no budget
        (tmp_path / "budgets.csv").write_text(text)
        files = ["--budget-file", str(tmp_path / "budgets.csv"), "--out", str(tmp_path / "a.survey")]
        crawl = CommandResult(capsys, "crawl", "http://nowhere.invalid/", *files, "--contact", "me@example.org", "-q")
        assert crawl.code == code


def test_order_confidence_of_two_domains(capsys: pytest.CaptureFixture[str], path: str, web: sv.SyntheticWeb) -> None:
    result = sv.domains(web.graph, options=sv.DomainOptions(p=0.3))
    one, other = (row.name for row in result.top(2))
    args = ["domains", path, "--p", "30%", "--compare", one, other, "--top", "2"]
    sure = sv.order_confidence(web.graph, result.main, one, other)
    assert (
        f"{one} has more supporters than {other}: confidence {100 * sure:.1f} %\n" in CommandResult(capsys, *args).out
    )
    assert CommandResult(capsys, *args, "--json").json()["order_confidence"] == sure


def test_levels(capsys: pytest.CaptureFixture[str], path: str, web: sv.SyntheticWeb) -> None:
    result = CommandResult(
        capsys, "domains", path, "--score", "supp", "--supporter-depth", "1", "--top", "3", "--json"
    ).json()
    degrees = web.graph.in_links.degrees()
    assert [row["score"] for row in result["domains"]] == sorted(degrees.tolist(), reverse=True)[:3]


# Sources


def test_pages_are_condensed_to_domains(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pages = str(sv.Graph.from_edges(PAGES).save(tmp_path / "pages"))
    done = CommandResult(capsys, "domains", pages, "--csv")
    expected = {"db.intern": "1.0", "github.io": "1.0", "b.co.uk": "0.0", "a.org": "0.0"}
    assert [(row["domain"], row["score"]) for row in table(done.out)] == list(expected.items())
    assert "7 names are on 4 domains\n" in done.err
    assert "! 1 page whose name is neither a URL nor a host is omitted\n" in done.err
    assert "! 1 host without a known public suffix" in done.err
    private = CommandResult(capsys, "domains", pages, "--csv", "--private-suffixes").out
    assert "joe.github.io" in private
    (tmp_path / "own.dat").write_text("org\nuk\nio\nintern\n")
    assert ",co.uk," in CommandResult(capsys, "domains", pages, "--csv", "--suffixes", str(tmp_path / "own.dat")).out
    streamed = CommandResult(capsys, "domains", pages, "--csv", "--memory", "100")
    assert "streamed" in streamed.err
    assert streamed.out == done.out


def test_hosts_are_condensed_with_an_option(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    edges = [("www.a.org", "b.org"), ("a.org", "b.org"), ("news.b.org", "c.org")]
    hosts = str(sv.Graph.from_edges(edges).save(tmp_path / "hosts"))
    assert len(table(CommandResult(capsys, "domains", hosts, "--csv").out)) == 5
    result = table(CommandResult(capsys, "domains", hosts, "--condense", "--csv").out)
    assert [(row["domain"], row["score"]) for row in result] == [("c.org", "1.0"), ("b.org", "0.0"), ("a.org", "0.0")]
    done = CommandResult(capsys, "domains", hosts, "--private-suffixes", "-q")
    assert "! the suffix list was not used: names are taken as domains" in done.err


def test_a_release_of_common_crawl(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    vertices = "0\tcom.fan\t1\n1\tcom.hub\t1\n2\torg.star\t1\n3\torg.two\t1\n"
    for name, text in (("vertices", vertices), ("edges", "0\t1\n1\t2\n3\t1\n")):
        (tmp_path / f"cc-domain-{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
    for more in ([], ["--memory", "1MB"]):
        rows = table(CommandResult(capsys, "domains", str(tmp_path), "--csv", *more).out)
        assert [(row["domain"], row["score"]) for row in rows][:2] == [("star.org", "2.0"), ("hub.com", "0.0")]


def test_a_survey(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    home, far = "http://www.a.org/", "http://news.b.co.uk/"
    crawled(tmp_path / "a.survey", [home], Sites(Time(), {home: page(home, "/x", far)}))
    rows = table(CommandResult(capsys, "domains", str(tmp_path / "a.survey"), "--score", "in", "--csv").out)
    assert [(row["domain"], row["score"]) for row in rows] == [("b.co.uk", "1.0"), ("a.org", "0.0")]
