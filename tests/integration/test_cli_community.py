"""`surveyor community`: every option, compared with the library and with a small web computed by hand."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import surveyor as sv
from community_web import FAR, HOST, SITE, links, web
from console import CommandResult, wait_for
from example_site import HOME, survey_of
from fake_web import page, rules
from surveyor.cli.community import ESTIMATORS, SELECTORS
from surveyor.estimate.community.estimators import Method
from surveyor.rank.expansion import SELECTORS as ALL
from surveyor.store.tabular import unescape_cell
from surveyor.testing import EmbeddedWeb, WebSettings, running

pytestmark = pytest.mark.usefixtures("nowhere", "tiny_communities")

RULE = f"host:{HOST}"
QUICK = {"slow_seconds": 0.02, "pace": 0.05, "crawl_delay": 0.02}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(web().save(tmp_path / "web.graph"))


def test_choices_are_those_of_the_library() -> None:
    assert tuple(ALL) == SELECTORS
    assert get_args(Method) == ESTIMATORS


def test_a_list_of_local_pages_and_what_moved_them(capsys: pytest.CaptureFixture[str], path: str) -> None:
    found = sv.community(web(), RULE)
    done = CommandResult(capsys, "community", path, "--local", HOST)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split() == ["local", "change", "share", "page", "of", f"https://{HOST}"]
    for line, row in zip(lines[1:6], found.top(5), strict=True):
        cells = line.split()
        change = row["change"]
        arrow = ["▲" if change > 0 else "▼", str(abs(change))] if change else []
        assert cells[:2] == [str(row["position"]), str(row["local_position"])]
        assert cells[2 : 2 + len(arrow)] == arrow
        assert f"https://{HOST}{cells[-1]}" == row["name"]
    d = next(line for line in lines if line.endswith("/d"))
    assert "▲ 3" in d  # the far pages link to it
    assert next(line.split()[-1] for line in lines if line.endswith("example.net/")) == found.name(
        found.movers(count=1)[0].page
    )
    assert f"5 local pages ({RULE}); 5 pages outside requested in 5 rounds by explore, all fetched" in done.out
    assert "; stopped early because no page was left to request" in done.out  # no page links to FAR[4]
    assert "L1 distance of the estimate from the local rank: " in done.out
    assert "the error cannot be bounded or estimated: pages that were not fetched may change the ranks" in done.out
    assert f"surveyor community {path} --local {HOST} --explain {SITE[4]}\n" in done.err
    assert f"surveyor community {path} --local {HOST} --report community.html\n" in done.err
    quiet = CommandResult(capsys, "community", path, "--local", HOST, "-q")
    assert (quiet.out, quiet.err) == (done.out, "")


def test_one_json_object(capsys: pytest.CaptureFixture[str], path: str) -> None:
    result = CommandResult(
        capsys, "community", path, "--local", RULE, "--json", "--top", "2", "--truth", "--rng", "3"
    ).json()
    found = sv.community(web(), RULE, truth=True, rng=3)
    assert (result["command"], result["source"], result["local"]) == ("community", path, RULE)
    assert [page["name"] for page in result["pages"]] == [row["name"] for row in found.top(2)]
    assert set(result["pages"][0]) == {
        *("id", "name", "url", "position", "share", "local_position", "local_share", "change"),
        "true_share",
    }
    assert (result["local_pages"], result["requested"], result["fetched"], result["rng"]) == (5, 5, 5, 3)
    assert (result["select"], result["damping"], result["ending"]) == ("explore", 0.85, "exhausted")
    assert result["estimator_requested"] == "auto"
    assert set(result["comparison"]) == {"local", "crawled", "frontier", "auto"}
    assert result["comparison"]["auto"]["l1"] == pytest.approx(found.compare("auto").l1, abs=1e-6)
    assert len(result["rounds"]) == len(result["errors"]) == len(found.rounds)
    assert [mover["id"] for mover in result["movers"]] == [mover.page for mover in found.movers()]
    assert set(result["movers"][0]) == {"id", "name", "url", "flow", "change", "error"}
    assert "explained" not in result
    one = CommandResult(capsys, "community", path, "--local", RULE, "--json", "--explain", "/d").json()["explained"]
    assert one["name"] == SITE[4]
    assert {mover["name"] for mover in one["movers"]} == {FAR[0], FAR[1], FAR[5]}
    assert one["local_links"] == {
        "pages": 1,
        "links": 4,
        "leaving": 0.0,
    }  # of the first page


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv(capsys: pytest.CaptureFixture[str], path: str) -> None:
    rows = table(CommandResult(capsys, "community", path, "--local", RULE, "--csv", "--top", "3").out)
    found = sv.community(web(), RULE)
    assert [row["name"] for row in rows] == [row["name"] for row in found.top(3)]
    assert [float(row["share"]) for row in rows] == pytest.approx([row["share"] for row in found.top(3)], abs=1e-12)


@pytest.mark.parametrize("name", ["all.csv", "all.csv.gz", "all.parquet", "all.npy"])
def test_all_local_pages_as_a_file(capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path, name: str) -> None:
    import gzip

    import pyarrow.parquet

    place = tmp_path / name
    done = CommandResult(capsys, "community", path, "--local", RULE, "--top", "1", "--save", str(place))
    assert done.code == 0
    assert f"local pages written to {place}\n" in done.err
    found = sv.community(web(), RULE)
    if name.endswith(".npy"):
        assert np.abs(np.load(place) - found.scores).max() < 1e-9
        return
    if name.endswith(".parquet"):
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(place).to_pylist()
    else:
        data = place.read_bytes()
        rows = list(table((gzip.decompress(data) if name.endswith(".gz") else data).decode()))
    assert [row["name"] for row in rows] == [row["name"] for row in found.top(5)]
    for row, expected in zip(rows, found.top(5), strict=True):
        assert list(row) == list(found.columns())
        assert [float(row[key]) for key in row if key != "name"] == pytest.approx(
            [float(expected[key]) for key in row if key != "name"], abs=1e-9
        )


def test_truth(capsys: pytest.CaptureFixture[str], path: str) -> None:
    done = CommandResult(capsys, "community", path, "--local", RULE, "--truth", "--estimator", "crawled")
    found = sv.community(web(), RULE, truth=True, estimator="crawled")
    methods = ("local", "crawled")
    rows = {name: line for line in done.out.splitlines() for name in methods if f" {name}: " in line}
    for name in methods:
        assert rows[name].split()[0] == f"{found.compare(name).l1:.4f}"
    assert rows["crawled"].endswith("(shown)")
    assert "true share" in done.out
    assert found.compare().l1 < found.compare("local").l1


def test_one_page_is_explained(capsys: pytest.CaptureFixture[str], path: str) -> None:
    done = CommandResult(capsys, "community", path, "--local", RULE, "--explain", SITE[4])
    found = sv.community(web(), RULE)
    row = next(row for row in found.top(5) if row["name"] == SITE[4])
    assert f"estimated global rank: position {row['position']} of 5, share " in done.out
    assert f"local rank: position {row['local_position']}, share " in done.out
    assert "1 local page links to it\n" in done.out
    shown = [line.split()[-1] for line in done.out.splitlines() if line.endswith("example.net/")]
    assert shown == [found.name(mover.page) for mover in found.movers(SITE[4])]
    without = [line.split()[2] for line in done.out.splitlines() if line.endswith("example.net/")]
    assert all(change.startswith("-") for change in without)  # it would lose without their links
    assert CommandResult(capsys, "community", path, "--local", RULE, "--explain", f"#{row['id']}").code == 0


def test_a_plot_and_a_report(capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path) -> None:
    plot, report = tmp_path / "plot.svg", tmp_path / "report.html"
    done = CommandResult(
        capsys, "community", path, "--local", RULE, "--truth", "--plot", str(plot), "--report", str(report)
    )
    assert done.code == 0
    drawn = plot.read_text("utf-8")
    assert drawn.count("<svg") == 3  # a frame, and two figures
    assert "estimated share / local share" in drawn
    assert "distance from the true rank" in drawn
    page = report.read_text("utf-8")
    assert "<h1>Global rank of www.example.org</h1>" in page
    for words in (
        "no bound is stated",
        "Comparison with the true rank",
        "Outside pages with the largest effect",
        "Largest changes",
    ):
        assert words in page
    assert f"<pre>surveyor community {path} --local {RULE} --truth " in page
    assert page.count("<svg") == 2


def test_a_plot_needs_no_rounds(capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path) -> None:
    done = CommandResult(capsys, "community", path, "--local", RULE, "--extra", "0", "--plot", str(tmp_path / "p.svg"))
    assert done.code == 0
    assert "no page was requested: the estimate may be worse than the local rank" in done.err
    assert "no page outside was requested" in done.out
    assert (tmp_path / "p.svg").read_text().count("<svg") == 2
    assert "error" not in done.out.splitlines()[0]


def test_names_cannot_drive_a_terminal_or_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = f"https://{HOST}/<script>\x1b[31m\nsecond $x^2$"
    other = "https://far.example.net/<b>\x1b]0;\n"
    path = str(sv.Graph.from_edges([*links(), (SITE[0], bad), (bad, other), (other, bad)]).save(tmp_path / "g"))
    files = ["--save", str(tmp_path / "a.csv"), "--plot", str(tmp_path / "p.svg"), "--report", str(tmp_path / "r.html")]
    done = CommandResult(capsys, "community", path, "--local", RULE, *files)
    assert done.code == 0
    assert "\x1b" not in done.out + done.err
    assert "   /<script>\\x1b[31m\\nsecond $x^2$" in done.out
    for name in ("p.svg", "r.html"):
        text = (tmp_path / name).read_text("utf-8")
        assert "<script>" not in text
        assert "<b>\\x1b" not in text
        assert "\x1b" not in text
    rows = table((tmp_path / "a.csv").read_text("utf-8"))
    assert bad in [unescape_cell(row["name"]) for row in rows]


def test_rules_for_graphs_without_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "links.txt"
    path.write_text("0 1\n1 2\n2 0\n2 3\n3 1\n")
    done = CommandResult(capsys, "community", str(path), "--local", "ids:0-2", "--csv")
    assert [row["id"] for row in table(done.out)] == ["1", "2", "0"]
    assert CommandResult(capsys, "community", str(path), "--local", "ids:0-2", "--explain", "1").code == 0


def test_a_list_that_names_pages_that_are_not_there(
    capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path
) -> None:
    (tmp_path / "pages.txt").write_text("\n".join([*SITE[:3], "https://nowhere.example/"]))
    done = CommandResult(capsys, "community", path, "--local", f"file:{tmp_path / 'pages.txt'}")
    assert done.code == 0
    assert f"! 1 page of file:{tmp_path / 'pages.txt'} is not in {path}\n" in done.err
    assert {line.split()[-1] for line in done.out.splitlines()[1:4]} == {"/", "/a", "/b"}


def test_back_links_and_stable_ranks(capsys: pytest.CaptureFixture[str], path: str, tmp_path: Path) -> None:
    (tmp_path / "back.tsv").write_text(f"https://other.example.com/\t{SITE[2]}\t3\n")
    more = ["--local", RULE, "--json", "--extra", "0"]
    plain = CommandResult(capsys, "community", path, *more).json()
    result = CommandResult(capsys, "community", path, *more, "--back-links", str(tmp_path / "back.tsv")).json()
    shares = [{page["name"]: page["share"] for page in one["pages"]} for one in (plain, result)]
    assert shares[1][SITE[2]] > shares[0][SITE[2]]
    assert result["notes"][0] == "1 page that was not fetched links to local pages, according to the back-links"
    assert [mover["name"] for mover in result["movers"]] == ["https://other.example.com/"]
    stable = CommandResult(capsys, "community", path, "--local", RULE, "--json", "--until", "stable=1.9").json()
    assert stable["ending"] == "stable"
    assert stable["requested"] < plain["local_pages"] * 2


# A survey


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddedWeb]:
    with running(WebSettings(**QUICK)) as made:  # type: ignore[arg-type]
        yield made


def polite(web: EmbeddedWeb) -> list[str]:
    proxy = ["--proxy", f"http://127.0.0.1:{web.port}"]
    return [*proxy, "--contact", "me@example.org", "--delay", "0", "--backoff", "0.02"]


def test_pages_are_fetched_around_a_survey_and_it_resumes(
    served: EmbeddedWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = served.seeds[0]
    host = seed.split("/")[2].split(":")[0]
    crawl = CommandResult(
        capsys, "crawl", seed, *polite(served), "--scope", "host", "--until", "pages=30", "--out", "s.survey"
    )
    assert crawl.code in (0, 3)
    before = Path("s.survey/journal.sqlite").read_bytes()
    words = ["community", "s.survey", "--local", host, "--out", "c.survey", *polite(served), "--select", "complement"]
    done = CommandResult(capsys, *words, "--extra", "12", "--json")
    result = done.json()
    assert done.code == 0
    assert (result["local_pages"], result["requested"]) == (30, 12)
    assert "saving to c.survey" in done.err
    assert "robots.txt obeyed, delay 0 s" in done.err
    more = CommandResult(capsys, *words, "--extra", "20", "--json").json()
    assert more["requested"] == 20
    assert more["rounds"][: len(result["rounds"]) - 1] == result["rounds"][:-1]  # what was read stays
    again = CommandResult(capsys, "community", "c.survey", "--top", "3", "--report", "r.html", "--explain", "/")
    assert again.code == 0
    assert "20 pages outside requested before, none left to request" in again.err
    assert "surveyor c.survey\n" in again.err
    assert Path("s.survey/journal.sqlite").read_bytes() == before
    assert "pages fetched into c.survey" in Path("r.html").read_text("utf-8")
    replayed = CommandResult(
        capsys, "community", "c.survey", "--local", host, "--replay", "--json", "--extra", "8", "--select", "complement"
    ).json()
    assert replayed["requested"] == 8
    whole = CommandResult(
        capsys, "community", "c.survey", "--local", host, "--replay", "--known", "all", "--json"
    ).json()
    assert whole["requested"] == 0
    assert whole["local_pages"] >= 30  # pages of the host may have been fetched, too
    json.dumps(whole, allow_nan=False)


@pytest.mark.slow
def test_a_signal_stops_it_and_it_resumes(served: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    seed = served.seeds[0]
    crawl = ["crawl", seed, *polite(served), "--scope", "host", "--until", "pages=20", "--out", "s.survey", "-q"]
    assert CommandResult(capsys, *crawl).code == 0
    words = ["community", "s.survey", "--local", "all", "--out", "c.survey", "--extra", "60", *polite(served)]
    started = subprocess.Popen(
        [sys.executable, "-m", "surveyor", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    wait_for(Path("c.survey"), 22)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, ""), err
    assert re.search(r"Stopped\. \d+ of 60 pages outside were requested; all are saved in c\.survey\.", err)
    assert f"surveyor {shlex.join(words)}\n" in err
    assert CommandResult(capsys, *words, "--json").json()["requested"] == 60


def test_a_site_that_leads_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    pages = {HOME: page(HOME, HOME + "a"), HOME + "a": page(HOME + "a", HOME), **rules(HOME.rstrip("/"), "")}
    survey_of(Path("s.survey"), pages)
    done = CommandResult(capsys, "community", "s.survey", "--local", "all")
    assert done.code == 3
    assert "no page of all links to a page that was not fetched" in done.out
    assert done.out.splitlines()[1].split()[-1] == "/"
    replayed = CommandResult(capsys, "community", "s.survey", "--local", "all", "--replay")
    assert (replayed.code, replayed.out) == (2, "")
    assert "no page is left outside" in replayed.err
