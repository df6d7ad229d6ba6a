"""`surveyor explain`: templates, the rank without them, and the path from a seed."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from console import CommandResult
from example_site import HOME, survey_of
from fake_web import page
from oracles import dense_pagerank
from surveyor import Graph, Ranking
from surveyor.crawler.replay import Derived, derive
from surveyor.rank.explain import Explanation, RankWithoutLinks
from surveyor.report.explanation import path_line, without_line
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey

FOOTER = [HOME + name for name in ("imprint", "contact", "terms")]
POSTS = [f"{HOME}posts/{number}" for number in range(20)]
ABOUT = f"{HOME}about"


def web() -> dict[str, list[str]]:
    """Posts have a footer; of two older pages without it, one links to the imprint in its text."""
    links = {HOME: [*POSTS, ABOUT], ABOUT: [FOOTER[0], HOME]}
    links |= {post: [*FOOTER, HOME, POSTS[(at * 7 + 1) % 20]] for at, post in enumerate(POSTS)}
    return links | {goal: [HOME] for goal in FOOTER}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> str:
    answers = {url: page(url, *goals) for url, goals in web().items()}
    return str(survey_of(tmp_path_factory.mktemp("explain") / "a.survey", answers))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "links.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, goals in web().items() for b in goals))
    return str(path)


def test_templates_and_the_path_from_a_seed(survey: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = CommandResult(capsys, "explain", survey, "/imprint")
    assert done.code == 0, done.err
    assert "of 25   21 in-links\n" in done.out
    assert f"reached from {HOME} → /posts/0 → /imprint\n" in done.out
    assert "share the same 4 links: one template" in done.out
    assert "20 pages of a.example " in done.out
    assert "1 of 2 links" in done.out
    assert "Without the template's links to it, it would be at " in done.out
    start = CommandResult(capsys, "explain", survey, "/")
    assert "this is a teleport page\n" in start.out


def test_the_rank_without_a_template_is_that_of_a_dense_solve(survey: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "explain", survey, "/imprint", "--json").json()["explanation"]
    (group,) = result["templates"]
    assert (group["host"], group["pages"], sorted(group["shared_links"])) == ("a.example", 20, sorted([HOME, *FOOTER]))
    assert result["path"] == [HOME, POSTS[0], FOOTER[0]]
    assert [link["name"] for link in result["links"]] == [ABOUT]
    with Survey(survey) as opened:
        found = opened.as_graph()
    graph = found.graph
    pairs = [(a, b) for a, goals in web().items() for b in goals if not (b == FOOTER[0] and a in POSTS)]
    ids = np.array([(graph.page(a), graph.page(b)) for a, b in pairs])
    smaller = Graph.from_arrays(ids[:, 0], ids[:, 1], graph.pages)
    truth = dense_pagerank(smaller, 0.85, found.teleport, found.teleport)
    share = truth[graph.page(FOOTER[0])]
    without = result["without_templates"]
    assert without["links"] == 20
    assert abs(without["share"] - share) <= without["error"] < 1e-5
    assert without["position"] == int((truth > share + without["error"]).sum()) + 1
    assert without["share"] < result["share"]


def test_a_file_of_links_between_urls(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = CommandResult(capsys, "explain", file, FOOTER[0])
    assert "share the same 4 links: one template" in done.out
    assert "Without the template's links" in done.out
    assert "reached from" not in done.out  # the teleport is uniform
    trusted = Path(file).with_name("trusted.txt")
    trusted.write_text(f"{POSTS[0]}\n")
    done = CommandResult(capsys, "explain", file, FOOTER[0], "--trusted", str(trusted))
    assert f"reached from {POSTS[0]} → /imprint" in done.out
    rows = list(csv.DictReader(io.StringIO(CommandResult(capsys, "explain", file, FOOTER[0], "--csv").out)))
    expected = [("template", "20", "4"), ("link", "1", "2"), ("teleport", "", "")]
    assert [(row["kind"], row["pages"], row["links"]) for row in rows] == expected
    assert sum(float(row["fraction"]) for row in rows) == pytest.approx(1, abs=1e-5)


def test_names_that_are_not_urls_have_no_template(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(file)
    path.write_text(path.read_text().replace("https://", ""))
    done = CommandResult(capsys, "explain", file, FOOTER[0].removeprefix("https://"), "-n", "3")
    assert done.code == 0, done.err
    assert "template" not in done.out
    assert "18 other pages" in done.out
    plain = CommandResult(capsys, "explain", file, FOOTER[0].removeprefix("https://"), "--json").json()
    assert plain["explanation"]["without_templates"] is None


def test_a_survey_is_derived_once(
    survey: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[SurveyFolder] = []

    def counted(folder: SurveyFolder) -> Derived:
        times.append(folder)
        return derive(folder)

    monkeypatch.setattr("surveyor.survey.survey.derive", counted)
    assert CommandResult(capsys, "explain", survey, "/imprint").code == 0
    assert len(times) == 1


def _explanation(*path: str) -> Explanation:
    return Explanation(0, path[-1] if path else "", 0.1, 1, 1, path, (), (), 0, 0.0, 0.0, 0.0, (), 0.0)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), "no path of links leads here from the teleport pages"),
        ((HOME,), "this is a teleport page"),
        ((HOME, "https://b.example/x", HOME), f"reached from {HOME} → https://b.example/x → {HOME}"),
        ((HOME, f"{HOME}a", "https://a.example.org/"), f"reached from {HOME} → /a → https://a.example.org/"),
        (("home", "news"), "reached from home → news"),
        (
            tuple(f"{HOME}{number}" for number in range(9)),
            f"reached from {HOME}0 → /1 → /2 → … 3 pages … → /6 → /7 → /8",
        ),
    ],
)
def test_path_line(path: tuple[str, ...], line: str) -> None:
    ranking = Ranking(np.ones(1), 0.0, 1, 0.85, 1e-6, "power", "teleport", teleport_weights=np.ones(1))
    assert path_line(ranking, _explanation(*path)) == line


def test_a_position_is_approximate_only_if_the_error_allows_several() -> None:
    certain, uncertain = RankWithoutLinks(3, 0.007, 2**-30, 9, 9, 9), RankWithoutLinks(3, 0.007, 1e-3, 9, 8, 12)
    assert without_line(certain, 1) == (
        "Without the template's links to it, it would be at position 9 (share 0.700 %, proven error at most 9.4e-10)."
    )
    assert "links of the 2 templates to it, it would be at about position 9, between 8 and 12 (" in without_line(
        uncertain, 2
    )
