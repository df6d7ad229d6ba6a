"""How command lines may be written: servers under development, the order of words, names of outputs, stdout."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from console import CommandResult, process
from loopback import SMALL, served
from surveyor.cli import run
from surveyor.cli.lazy import implied_command, surveyor
from surveyor.crawler.seed_pages import normalised_seed


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> str:
    from surveyor import Pages, crawl

    folder = tmp_path_factory.mktemp("surveys") / "small.survey"
    with served(SMALL) as site:
        crawl(site, until=Pages(4), out=folder, contact="me@example.org", delay=0.0).close()
    return str(folder)


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("localhost", "http://localhost/"),
        ("localhost:8000/docs?a=1", "http://localhost:8000/docs?a=1"),
        ("LOCALHOST:8000", "http://localhost:8000/"),
        ("localhost:443", "https://localhost/"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/"),
        ("[::1]:8000", "http://[::1]:8000/"),
        ("192.0.2.1", "https://192.0.2.1/"),
        ("192.0.2.1:443/a", "https://192.0.2.1/a"),
        ("localhost.example:80", "https://localhost.example:80/"),
        ("example.org:8000", "https://example.org:8000/"),
    ],
)
def test_the_scheme_of_a_server_under_development(written: str, url: str) -> None:
    assert normalised_seed(written) == url
    assert implied_command(written) == "crawl"


@pytest.mark.usefixtures("nowhere")
def test_a_crawl_of_localhost_without_a_command_and_a_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    with served(SMALL) as site:
        place = site.partition("://")[2].strip("/")
        done = CommandResult(
            capsys, "--contact", "me@example.org", "--delay", "0", "--until", "pages=4", place, "--json"
        )
    assert done.code == 0, done.err
    assert done.json()["seeds"] == [f"http://{place}/"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--json", "top", "X", "-n", "2"], ["top", "--json", "X", "-n", "2"]),
        (["-n", "2", "top", "X"], ["top", "-n", "2", "X"]),
        (["--top=2", "top", "X"], ["top", "--top=2", "X"]),
        (["--top", "top", "top", "X"], ["top", "--top", "top", "X"]),
        (["--json", "graph", "info", "X"], ["graph", "info", "--json", "X"]),
        (["--until", "pages=5", "https://a.example", "-q"], ["crawl", "https://a.example", "--until", "pages=5", "-q"]),
        (["--until", "https://a.example"], ["--until", "https://a.example"]),
        (["--help"], ["--help"]),
        (["-q"], ["-q"]),
    ],
)
def test_options_may_come_first(words: list[str], expected: list[str]) -> None:
    import click

    assert surveyor._command_first(click.Context(surveyor), words) == expected


def test_an_unknown_option_before_a_url_is_an_error_of_the_crawl(capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "--untill", "coverage=0.9", "https://a.example")
    assert printed.code == 2
    assert "No option --untill. Did you mean --until?" in printed.err


@pytest.mark.parametrize("name", ["--out", "--to", "--into"])
def test_the_names_of_an_output(name: str, survey: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pages.csv"
    assert CommandResult(capsys, "export", survey, name, str(path)).code == 0
    assert path.read_text().startswith("id,url,")


def test_help_names_the_output_once(capsys: pytest.CaptureFixture[str]) -> None:
    printed = CommandResult(capsys, "rank", "--help").out
    assert "--out FILE" in printed
    assert "--to" not in printed.replace("--tolerance", "").replace("--top", "")


@pytest.mark.slow
def test_an_export_to_stdout_is_the_file(survey: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pages.csv"
    CommandResult(capsys, "export", survey, "--to", str(path))
    piped = process("-m", "surveyor", "export", survey, "--to", "-")
    assert (piped.stdout, piped.stderr) == (path.read_text(), "")
    assert [row["id"] for row in csv.DictReader(io.StringIO(piped.stdout))] == ["0", "1", "2", "3"]
    lines = process("-m", "surveyor", "export", survey, "--to", "-", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [0, 1, 2, 3]
    gexf = process("-m", "surveyor", "export", survey, "--to", "-", "--format", "gexf").stdout
    assert gexf.startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--json"], "--out - and --json both write to stdout."),
        (["--format", "parquet"], "a stream of text cannot hold Parquet"),
        (["--table", "links", "--top", "3"], "top is for pages and graphs, not for links"),
    ],
)
def test_wrong_exports_to_stdout(
    words: list[str], expected: str, survey: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", survey, "--to", "-", *words]) == 2
    assert expected in capsys.readouterr().err
