"""`surveyor sample` on graphs: every option, compared with the library."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import surveyor as sv
from console import CommandResult
from surveyor.cli import sample as command
from surveyor.cli.sample import SampleCommand, with_doubled_limits
from surveyor.estimate.sampling.sample_goals import SampleGoal
from surveyor.estimate.sampling.walk_methods import METHODS, UNIFORM
from surveyor.report.sample import StatisticsRequest
from surveyor.store.tabular import unescape_cell

pytestmark = pytest.mark.usefixtures("nowhere")

TOPIC = "tld:example"
QUICK = ["--topic", TOPIC, "--until", "steps=1500", "--rng", "3", "--method", "trial"]


@pytest.fixture(scope="module")
def web() -> sv.Graph:
    return sv.synthetic_web("small").graph


@pytest.fixture(scope="module")
def path(web: sv.Graph, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(web.save(tmp_path_factory.mktemp("webs") / "web.graph"))


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_choices_are_those_of_the_library() -> None:
    assert UNIFORM.name == command.INDEPENDENT
    assert set(METHODS) == {*command.EXACT_METHODS, *command.PUBLISHED_METHODS}
    assert all(METHODS[name].exact for name in command.EXACT_METHODS)
    assert not any(METHODS[name].exact for name in command.PUBLISHED_METHODS)


def test_estimates_as_text(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    result = CommandResult(
        capsys, "sample", path, *QUICK, "--share", "url:/arts/", "--mean", "out_degree", "--by", "tld", "--size"
    )
    found = sv.sample(web, TOPIC, method="trial", until="steps=1500", rng=3)
    assert result.code == 0
    arts = found.share("url:/arts/")
    shown = {line.rstrip().rpartition("   ")[2]: line.split() for line in result.out.splitlines()}
    assert float(shown["share with url:/arts/"][0]) == pytest.approx(100 * arts.value, abs=0.06)
    low, high = (float(shown["share with url:/arts/"][place]) for place in (2, 4))
    assert low <= 100 * arts.low
    assert high >= 100 * arts.high
    assert "mean out_degree" in shown
    assert shown["example"][0].startswith("100.0")
    size = found.size()
    assert int(shown["number of pages on topic"][0].replace(",", "")) == round(size.value)
    for words in (
        f"topic                  {TOPIC}",
        f"{found.fetches:,} pages requested",
        "method                 trial: ",
        "effective sample size  ",
        "R-hat                  ",
        "in-links               all known: the graph",
        "weights make every reachable page on topic count equally",
    ):
        assert words in result.out
    assert f"surveyor sample {path} --topic {TOPIC} " in result.err
    quiet = CommandResult(capsys, "sample", path, *QUICK, "--share", "url:/arts/", "-q")
    assert all(line.startswith("! ") for line in quiet.err.splitlines())


def test_default_statistic(capsys: pytest.CaptureFixture[str], path: str) -> None:
    result = CommandResult(capsys, "sample", path, *QUICK)
    assert "mean out_degree" in result.out
    assert "--share url:/blog/" in result.err


def test_tracked_property_is_estimated_once(capsys: pytest.CaptureFixture[str], path: str) -> None:
    rule = "url:/arts/"
    for words, expected in (
        (["--of", rule], [("share", rule)]),
        (["--of", rule, "--share", rule], [("share", rule)]),
        (["--of", "degree", "--share", rule, "--share", rule], [("share", rule), ("mean", "degree")]),
    ):
        fields = CommandResult(capsys, "sample", path, *QUICK, *words, "--json").json()
        assert [(one["statistic"], one["of"]) for one in fields["estimates"]] == expected
    result = CommandResult(capsys, "sample", path, *QUICK, "--by", "tld", "--by", "tld")
    assert [line.split()[-1] for line in result.out.splitlines() if line].count("tld") == 1


def test_one_json_object(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    words = ["--share", "url:/arts/", "--by", "host", "--by", "out_degree", "--draws", "4", "--json"]
    fields = CommandResult(capsys, "sample", path, *QUICK, *words).json()
    found = sv.sample(web, TOPIC, method="trial", until="steps=1500", rng=3)
    assert (fields["command"], fields["topic"], fields["method"], fields["rng"]) == ("sample", TOPIC, "trial", 3)
    assert (fields["until"], fields["reached"], fields["ending"]) == ("1,500 steps", True, "steps")
    assert fields["fetches"] == found.fetches
    (arts,) = fields["estimates"]
    assert (arts["statistic"], arts["of"]) == ("share", "url:/arts/")
    assert arts["value"] == pytest.approx(found.share("url:/arts/").value)
    assert arts["low"] < arts["value"] < arts["high"]
    assert set(fields["by"]) == {"host", "out_degree"}
    assert len(fields["by"]["host"]["labels"]) == len(fields["by"]["host"]["shares"])
    assert fields["by"]["out_degree"]["labels"][0] == [0.0, 1.0]
    assert len(fields["draws"]) == 4
    json.dumps(fields, allow_nan=False)


def test_csv_has_all_categories(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    rows = table(CommandResult(capsys, "sample", path, *QUICK, "--csv", "--share", "url:/arts/", "--by", "host").out)
    found = sv.sample(web, TOPIC, method="trial", until="steps=1500", rng=3)
    assert rows[0]["statistic"] == "share"
    assert float(rows[0]["value"]) == pytest.approx(found.share("url:/arts/").value)
    hosts = found.distribution("host")
    assert [row["category"] for row in rows[1:]] == list(hosts.labels)
    assert [float(row["high"]) for row in rows[1:]] == pytest.approx([one.high for one in hosts.shares])


def test_draws(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    found = sv.sample(web, TOPIC, method="trial", until="steps=1500", rng=3)
    rows = table(CommandResult(capsys, "sample", path, *QUICK, "--draws", "20", "--csv").out)
    assert [row["url"] for row in rows] == list(found.draws(20))
    result = CommandResult(capsys, "sample", path, *QUICK, "--draws", "20")
    assert all(f"  {row['url']}\n" in result.out for row in rows)


def test_recall_of_a_list(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    contained = [web.name(page) for page in range(0, web.pages, 2)]
    Path("held.txt").write_text("\n".join(contained))
    fields = CommandResult(capsys, "sample", path, *QUICK, "--recall", "held.txt", "--json").json()
    recall = next(one for one in fields["estimates"] if one["statistic"] == "recall")
    assert recall["of"] == "held.txt"
    found = sv.sample(web, TOPIC, method="trial", until="steps=1500", rng=3)
    assert recall["value"] == pytest.approx(found.recall(contained).value)
    assert 0 < recall["low"] < recall["value"] < recall["high"] < 1
    assert "share contained in held.txt" in CommandResult(capsys, "sample", path, *QUICK, "--recall", "held.txt").out


def test_several_indexes_are_compared(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    one, other = ([web.name(page) for page in range(0, web.pages, step)] for step in (2, 3))
    Path("one.txt").write_text("\n".join(one))
    Path("other.txt").write_text("\n".join(other))
    words = ["sample", path, "--topic", TOPIC, "--recall", "one.txt", "--recall", "other.txt"]
    estimates = CommandResult(capsys, *words, "--until", "steps=400", "--json").json()["estimates"]
    by = {(row["statistic"], row["of"]): row for row in estimates}
    pages = [web.name(page) for page in range(web.pages) if ".example/" in web.name(page)]
    in_one, in_other = ({*index} & {*pages} for index in (one, other))
    truth = {
        ("recall", "one.txt"): len(in_one),
        ("recall", "other.txt"): len(in_other),
        ("recall of any", "one.txt, other.txt"): len(in_one | in_other),
        ("recall of all", "one.txt, other.txt"): len(in_one & in_other),
        ("recall difference", "one.txt minus that of other.txt"): len(in_one) - len(in_other),
    }
    assert set(truth) == {key for key in by if key[0] != "mean"}
    for key, count in truth.items():
        assert by[key]["low"] <= count / len(pages) <= by[key]["high"]
    found = sv.sample(web, TOPIC, until="steps=400")
    assert by["recall difference", "one.txt minus that of other.txt"]["value"] == pytest.approx(
        found.recall(one).value - found.recall(other).value
    )
    assert "recall of one.txt minus that of other.txt" in CommandResult(capsys, *words).out


def test_fit_to_a_known_distribution(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    ends = [web.name(page).split("/")[2].rpartition(".")[2] for page in range(web.pages)]
    rows = [f"{end},{ends.count(end)}" for end in sorted(set(ends))]
    Path("right.csv").write_text("tld,pages\n" + "\n".join(rows))
    Path("wrong.tsv").write_text("\n".join(f"{end}\t{1 / len(rows)}" for end in sorted(set(ends))))
    words = ["sample", path, "--topic", "everything", "--until", "steps=600", "--fit", "tld=right.csv"]
    result = CommandResult(capsys, *words, "--fit", "tld=wrong.tsv", "--json").json()
    right, wrong = result["fits"]
    assert (right["of"], right["file"], right["df"]) == ("tld", "right.csv", len(rows) - 1)
    assert right["p_value"] > 0.001
    assert wrong["p_value"] < 0.001
    shown = CommandResult(capsys, *words, "--report", "r.html")
    assert re.search(r"chi-square +df +p-value +design effect +test of\n.* tld as in right.csv", shown.out)
    assert "Goodness of fit" in Path("r.html").read_text()
    for fit, problem in (
        ("tld", "--fit needs host, domain, tld or language and a file, got tld"),
        ("size=right.csv", "--fit needs host"),
        ("tld=none.csv", "none.csv cannot be read"),
    ):
        wrong_use = CommandResult(capsys, *words[:4], "--fit", fit)
        assert (wrong_use.code, problem in wrong_use.err) == (2, True), wrong_use.err
    Path("bad.csv").write_text("test,1\nexample,many\n")
    assert (
        "line 2 of bad.csv has no category and share" in CommandResult(capsys, *words[:4], "--fit", "tld=bad.csv").err
    )


def test_default_for_a_graph_is_independent_draws(capsys: pytest.CaptureFixture[str], path: str) -> None:
    words = ["sample", path, "--topic", TOPIC, "--share", "url:/arts/", "--size"]
    result = CommandResult(capsys, *words)
    assert result.code == 0
    for line in ("method                 uniform: ", "reach                  ", "was drawn with the same probability"):
        assert line in result.out
    fields = CommandResult(capsys, *words, "--json").json()
    assert fields["method"] == "uniform"
    assert fields["reach"]["conclusive"] is True
    radius = ["--method", "neighbourhood-paper", "--radius", "2", "--until", "steps=400"]
    assert "neighbourhood-paper: " in CommandResult(capsys, *words[:4], *radius).out


def test_files(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    words = ["--share", "url:/arts/", "--by", "host", "--save", "p.parquet", "--plot", "curves", "--report", "r.html"]
    result = CommandResult(capsys, "sample", path, *QUICK, *words)
    assert result.code == 0
    found = sv.sample(web, TOPIC, method="trial", until="steps=1500", rng=3)
    assert pyarrow.parquet.read_table("p.parquet")["url"].to_pylist() == found.pages()["url"]
    files = sorted(one.name for one in Path("curves").iterdir())
    assert files == ["host.svg", "out-degree.svg", "running-1.svg", "weights.svg"]
    assert all(Path("curves", name).read_text("utf-8").startswith("<svg xmlns=") for name in files)
    page = Path("r.html").read_text("utf-8")
    assert f"<h1>Sample of {TOPIC}</h1>" in page
    assert page.count("<svg") == 4
    assert f"<pre>surveyor sample {path} --topic {TOPIC} " in page
    for line in (
        "sampled pages written to p.parquet",
        "report written to r.html",
        "figures written to curves: running-1.svg, host.svg, out-degree.svg, weights.svg",
    ):
        assert line in result.err


def test_limit_before_the_goal(capsys: pytest.CaptureFixture[str], path: str) -> None:
    words = ["sample", path, "--topic", TOPIC, "--rng", "3", "--until", "ess=100000", "--until", "steps=300"]
    result = CommandResult(capsys, *words)
    assert result.code == 3
    assert "! the goal ess=100000,steps=300 was not reached" in result.err
    assert "--until ess=100000 --until steps=600\n" in result.err
    assert "mean out_degree" in result.out  # results are printed anyway
    assert CommandResult(capsys, *words, "--json").json()["reached"] is False
    assert CommandResult(capsys, "sample", path, "--topic", TOPIC, "--until", "fetches=100").code == 0
    assert CommandResult(capsys, "sample", path, "--topic", TOPIC, "--until", "ess=20").code == 0


@pytest.mark.parametrize("method", [*command.EXACT_METHODS, *command.PUBLISHED_METHODS])
def test_every_method(capsys: pytest.CaptureFixture[str], path: str, method: str) -> None:
    result = CommandResult(capsys, "sample", path, "--topic", TOPIC, "--until", "steps=400", "--method", method)
    assert result.code == 0
    assert f"method                 {method}: " in result.out
    assert ("as published; its" in result.out) is (method in command.PUBLISHED_METHODS)


def test_start_pages(capsys: pytest.CaptureFixture[str], web: sv.Graph, path: str) -> None:
    start = web.name(40)
    words = [*QUICK, "--start", start, "--walks", "4", "--json"]
    assert CommandResult(capsys, "sample", path, *words).json()["walks"] == 4


def test_control_characters_are_escaped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ring = [f"https://www.site{number}.example/" for number in range(5)] + ["https://x.example/\x1b[31m<b>"]
    graph = sv.Graph.from_edges([(page, ring[place - 1]) for place, page in enumerate(ring)])
    path = str(graph.save(tmp_path / "g"))
    words = ["--topic", "everything", "--until", "steps=300", "--draws", "40", "--by", "host"]
    result = CommandResult(capsys, "sample", path, *words, "--save", "a.csv", "--report", "r.html")
    assert result.code == 0
    assert "\x1b" not in result.out + result.err
    assert "https://x.example/\\x1b[31m<b>" in result.out
    assert "\x1b" not in Path("r.html").read_text("utf-8")
    assert ring[5] in [unescape_cell(row["url"]) for row in table(Path("a.csv").read_text("utf-8"))]


# Options


def options(*where: str, until: tuple[str, ...] = (), **statistics: Any) -> SampleCommand:
    return SampleCommand(
        where=where, topic="everything", statistics=StatisticsRequest(**statistics), until=until, settings={}
    )


@pytest.mark.parametrize(
    ("where", "source"),
    [
        (("https://example.org/",), "web"),
        (("example.org",), "web"),
        (("a.example", "b.example"), "web"),
        (("some.survey",), "survey"),
        (("web.graph",), "graph"),
        (("nothing",), "graph"),
        (("links.tsv.gz",), "graph"),
        ((".",), "graph"),
    ],
)
def test_kind_of_source(where: tuple[str, ...], source: str) -> None:
    assert options(*where).source == source


def test_tracked_properties() -> None:
    one = options("a.graph", share=("word:a",), mean=("degree",), until=("ess=400", "fetches=2000, steps=5k"))
    assert one.statistics.tracked == ("word:a", "degree")
    assert options("a.graph", mean=("degree",), of="tld:uk").statistics.tracked == ("tld:uk",)
    assert options("a.graph").statistics.tracked == ()


def test_doubled_limits() -> None:
    one = options("a.graph", until=("ess=400", "fetches=2000, STEPS=1.25m"))
    words = ["sample", "a.graph", "--until=ess=400", "--until", "fetches=2000, STEPS=1.25m", "-q"]
    assert with_doubled_limits(words, one) == [*words[:4], "fetches=4000, STEPS=2.5m", "-q"]
    assert with_doubled_limits(["--until=fetches=1.5k"], options("a.graph", until=("fetches=1.5k",))) == [
        "--until=fetches=3k"
    ]
    assert with_doubled_limits(["sample", "a.graph"], options("a.graph")) == []
    assert with_doubled_limits(["sample", "a.example"], options("a.example"))[-2:] == [
        "--until",
        "ess=400,fetches=10000",
    ]


@pytest.mark.parametrize("limit", ["700000", "1234567", "0.5k", "700000k", "2.50m", "99999999999"])
def test_doubled_limit_can_be_parsed(limit: str) -> None:
    (rule,) = with_doubled_limits([f"ess=9,fetches={limit}"], options("a.graph", until=(f"ess=9,fetches={limit}",)))
    once, twice = SampleGoal.parse(f"fetches={limit}").fetches, SampleGoal.parse(rule).fetches
    assert once is not None
    assert twice is not None
    assert 0 <= 2 * once - twice <= 1  # counts are integers
