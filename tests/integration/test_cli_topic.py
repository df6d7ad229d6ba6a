"""`surveyor topic train` and `surveyor topic test` on surveys, files, folders and lists, and their errors."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from console import CommandResult
from example_site import HOME, survey_of
from fake_web import page as answer
from fake_web import rules
from surveyor.crawler.topics.rules import Topic
from surveyor.estimate.sampling.training import Labels, labelled_pages

SUN = [
    "solar",
    "panels",
    "on",
    "the",
    "roof",
    "give",
    "power",
    "from",
    "the",
    "sun",
    "panels",
    "cells",
    "inverter",
    "module",
    "watt",
    "grid",
]
WIND = [
    "a",
    "mill",
    "in",
    "the",
    "storm",
    "turns",
    "rotor",
    "blades",
    "and",
    "tower",
    "gearbox",
    "offshore",
    "gust",
    "turbine",
    "mast",
    "grid",
]


def text_of(number: int, words: list[str]) -> str:
    return " ".join(words[(number * step + step) % len(words)] for step in range(1, 30))


def site() -> dict[str, Any]:
    paths = [f"{kind}/{number}" for kind in ("sun", "wind") for number in range(10)]
    answers: dict[str, Any] = {HOME: answer(HOME, *[HOME + path for path in paths], extra="<title>Energy</title>")}
    for path in paths:
        kind, _, number = path.partition("/")
        text = text_of(int(number), SUN if kind == "sun" else WIND)
        answers[HOME + path] = answer(HOME + path, HOME, extra=f"<title>Page {number}</title><p>{text}")
    return {**answers, **rules(HOME.rstrip("/"), "")}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey_of(tmp_path_factory.mktemp("topic") / "energy.survey", site())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for kind, words in (("sun", SUN), ("wind", WIND)):
        (tmp_path / kind / "deep").mkdir(parents=True)
        for number in range(6):
            name = f"{kind}/{'deep/' if number % 2 else ''}{number}.{'html' if number % 3 else 'txt'}"
            (tmp_path / name).write_text(f"<title>T</title>{text_of(number, words)}", "utf-8")
    return tmp_path


def test_train_on_a_survey_with_a_rule(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    result = CommandResult(capsys, "topic", "train", "sun", "--survey", str(survey), "--label", "url:/sun/")
    kept = survey / "topics" / "sun.json"
    assert result.code == 0
    assert kept.is_file()
    assert "on topic: 10 found, 0 missed; off topic: " in result.out
    assert "(5-fold cross-validation)" in result.out
    assert "solar" in next(line for line in result.out.splitlines() if line.startswith("positive terms"))
    assert f"surveyor sample {survey} --topic model:{kept}" in result.err
    tested = CommandResult(capsys, "topic", "test", "model:sun", str(survey))
    assert tested.out.startswith("10 of 21 pages")
    sampled = CommandResult(capsys, "sample", str(survey), "--topic", "model:sun", "--until", "steps=200")
    assert f"topic                  model:{kept}" in sampled.out
    again = CommandResult(capsys, "topic", "train", "sun", "--survey", str(survey), "--label", "url:/sun/")
    assert again.code == 2
    assert "already exists" in again.err
    other = CommandResult(
        capsys,
        "topic",
        "train",
        "sun",
        "--survey",
        str(survey),
        "--label",
        "url:/sun/",
        "--replace",
        "--kind",
        "tree",
        "--json",
    ).json()
    assert other["kind"] == "tree"
    assert (other["trained"]["positive"], other["trained"]["negative"]) == (10, 11)
    assert set(other["quality"]) >= {"precision", "recall", "f1", "accuracy", "true_positives"}


def test_topic_test_lists_pages_and_quality(survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "topic", "test", "solar", str(survey), "--top", "2")
    found = int(result.out.split()[0])
    assert result.code == 0
    assert result.out.startswith(f"{found} of 21 pages (")
    assert "match word:solar" in result.out
    assert 0 < found <= 10
    assert result.out.count(" on ") == result.out.count(" off ") == 2
    assert f"surveyor sample {survey} --topic word:solar" in result.err
    table = tmp_path / "labels.tsv"
    table.write_text(f"url\tlabel\n{HOME}sun/1\tyes\n{HOME}sun/2\t1\n{HOME}wind/1\tno\n{HOME}nowhere\t0\n", "utf-8")
    fields = CommandResult(capsys, "topic", "test", "url:/sun/1", str(survey), "--label", str(table), "--json")
    quality = fields.json()["quality"]
    assert list(quality.values())[:4] == [1, 0, 1, 1]
    assert f"1 of 4 labelled URLs are not fetched in {survey}: {HOME}nowhere" in fields.err
    listed = list(
        csv.DictReader(io.StringIO(CommandResult(capsys, "topic", "test", "url:/sun/", str(survey), "--csv").out))
    )
    assert len(listed) == 21
    assert {row["url"] for row in listed if row["on_topic"] == "True"} == {f"{HOME}sun/{n}" for n in range(10)}


def test_train_on_files_folders_and_lists(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    (files / "on.txt").write_text("# pages\n\n" + "".join(f"sun/{name.name}\n" for name in (files / "sun").glob("*.*")))
    args = [
        "--positive",
        str(files / "on.txt"),
        "--positive",
        str(files / "sun" / "deep"),
        "--negative",
        str(files / "wind"),
    ]
    result = CommandResult(capsys, "topic", "train", str(files / "sun"), *args, "--json").json()
    assert result["topic"] == str(files / "sun.json")
    assert (result["trained"]["positive"], result["trained"]["negative"]) == (6, 6)
    tested = CommandResult(
        capsys, "topic", "test", str(files / "sun.json"), str(files / "sun"), str(files / "wind"), "--json"
    )
    fields = tested.json()
    assert (fields["topic"], fields["pages"], fields["on_topic"]) == (f"model:{files / 'sun.json'}", 12, 6)
    topic = Topic.parse(fields["topic"])
    assert topic.digest == result["digest"]
    compared = CommandResult(
        capsys, "topic", "test", "solar", "--positive", str(files / "sun"), "--negative", str(files / "wind")
    )
    assert "off topic: 6 rejected, 0 accepted\n" in compared.out
    (files / "labels.csv").write_text("sun/0.txt,1\nsun/2.html,1\nwind/0.txt,0\nwind/2.html,0\n")
    tabled = CommandResult(
        capsys, "topic", "train", str(files / "b.json"), "--label", str(files / "labels.csv"), "--json"
    ).json()
    assert (tabled["trained"]["positive"], tabled["trained"]["negative"]) == (2, 2)


def test_listed_urls_are_positive_and_all_others_negative(
    survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    (tmp_path / "on.txt").write_text("".join(f"{HOME}sun/{number}#top\n" for number in range(10)))
    given = [
        "topic",
        "train",
        str(tmp_path / "a.json"),
        "--survey",
        str(survey),
        "--positive",
        str(tmp_path / "on.txt"),
    ]
    fields = CommandResult(capsys, *given, "--json").json()["trained"]
    assert (fields["positive"], fields["negative"]) == (10, 11)
    few = CommandResult(
        capsys, *given, "--replace", "--negative", f"{HOME}wind/1", "--negative", f"{HOME}wind/2", "--json"
    ).json()
    assert (few["trained"]["positive"], few["trained"]["negative"]) == (10, 2)
    ruled = CommandResult(capsys, *given, "--replace", "--negative", "not:words:grid,energy", "--json").json()[
        "trained"
    ]
    assert ruled["positive"] == 10
    assert 2 <= ruled["negative"] < 10  # pages without a label are left out


def test_rule_without_matches(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "topic", "test", "zeppelin", str(survey))
    assert result.code == 0
    assert result.out.startswith("0 of 21 pages (0 %) match word:zeppelin")
    assert "! no page is on topic" in result.err


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["train", "a", "--survey", "SURVEY", "--label", "zeppelin"], "got 0 and 21"),
        (["train", "a", "--survey", "SURVEY", "--label", "everything"], "got 21 and 0"),
        (["train", "a", "--survey", "SURVEY"], "no page is labelled on topic"),
        (["train", "a", "--survey", "nowhere.survey", "--label", "x"], "nowhere.survey does not exist"),
        (["train", "a", "--label", "solar"], "no pages to label by word:solar"),
        (["train", "a", "--positive", "https://a.example/"], "https://a.example/ needs a survey that has fetched it"),
        (["train", "a", "--positive", "ftp://a.example/"], "'ftp://a.example/' is not a valid URL"),
        (["train", "a", "--positive", "nowhere"], "nowhere is neither a file nor a folder"),
        (["train", "a", "--positive", "EMPTY", "--negative", "EMPTY"], "contains no pages"),
        (["train", "a", "--positive", "PAGE"], "got 1 and 0"),
        (["train", "a", "--positive", "PAGE", "--negative", "PAGE"], "is labelled both on topic and off topic"),
        (["train", "a", "--survey", "SURVEY", "--label", "BAD"], "labels.csv:2: 'perhaps' is not a label"),
        (["train", "a", "--survey", "BARE", "--label", "solar"], "has no server responses"),
        (["test", "solar"], "no pages were given"),
        (["test", "solar", "SURVEY", "SURVEY"], "at most one survey may be given"),
        (["test", "hots:a", "SURVEY"], "unknown topic rule 'hots'"),
        (["test", "model:nowhere.json", "SURVEY"], "the topic nowhere.json cannot be read"),
        (["test", "nosuch.json"], "the topic nosuch.json does not exist"),
        (["test", "nosuch.topic", "SURVEY"], "the topic nosuch.topic does not exist"),
        (["test", "word:nosuch.json"], "no pages were given"),
        (["test", "BAD", "solar"], "solar is neither a file nor a folder"),
        (["test", "model:PAGE", "SURVEY"], "is not a trained topic"),
        (["test", "solar", "BARE"], "has no server responses"),
    ],
)
def test_invalid_arguments(
    args: list[str],
    expected: str,
    survey: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if args[0] == "train":
        pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "page.html").write_text("<p>solar")
    (tmp_path / "labels.csv").write_text("url,label\nhttps://a.example/,perhaps\n")
    bare = tmp_path / "bare.survey"
    if "BARE" in args:
        survey_of(bare, site(), archive=False)
    names = {"SURVEY": survey, "EMPTY": "empty", "PAGE": "page.html", "BAD": "labels.csv", "BARE": bare}
    words = [str(names.get(word, word)).replace("model:PAGE", "model:page.html") for word in args]
    result = CommandResult(capsys, "topic", *words)
    assert (result.code, result.out) == (4 if "nowhere.survey" in args else 2, "")
    assert expected in result.err
    assert result.err.count("hint:") == 1
    assert "Traceback" not in result.err
    assert not (survey / "topics" / "a.json").exists()


def test_rules_for_urls_need_no_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = survey_of(tmp_path / "bare.survey", site(), archive=False)
    assert CommandResult(capsys, "topic", "test", "url:/sun/", str(bare), "--json").json()["on_topic"] == 10


def test_training_needs_an_extra(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sklearn", "sklearn.linear_model", "scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, None)
    places = ["--positive", str(files / "sun"), "--negative", str(files / "wind")]
    result = CommandResult(capsys, "topic", "train", str(files / "a.json"), *places)
    assert (result.code, result.out) == (2, "")
    assert "training a topic needs scikit-learn" in result.err
    assert "surveyor[topics]" in result.err


def test_files_without_extension_are_read_by_content(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    (files / "sun" / "README").write_text("<!DOCTYPE html><title>Sun</title><script>var wind</script>solar power plant")
    (files / "wind" / "NOTES").write_text("wind power plants at sea, a note")
    (files / "wind" / "program").write_bytes(b"\x7fELF\0\0\1\2")
    (files / "wind" / ".hidden").write_text("not a page")
    args = ["--positive", str(files / "sun"), "--negative", str(files / "wind")]
    result = CommandResult(capsys, "topic", "train", str(files / "m.json"), *args, "--json")
    trained = result.json()["trained"]
    assert (trained["positive"], trained["negative"]) == (7, 7)
    assert f"1 pages were left out, as they are no text or not archived: {files / 'wind' / 'program'}" in result.err
    (page,) = [page for page, _ in labelled_pages(Labels(), None, [str(files / "sun" / "README")])]
    assert (page.title, "var" in page.text) == ("Sun", False)


def test_unreadable_pages(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = files / "sun" / "gone.html"
    gone.symlink_to(files / "nowhere.html")
    (files / "list.txt").write_text("sun/1.txt\n")
    assert CommandResult(capsys, "topic", "test", "solar", str(gone)).code == 2
    text = files / "text.txt"
    text.write_text("solar power\nsun/0.txt\n")  # not a list of pages: a page
    fields = CommandResult(capsys, "topic", "test", "solar", str(text), "--json").json()
    assert (fields["pages"], fields["on_topic"]) == (1, 1)
    assert json.dumps(fields)
