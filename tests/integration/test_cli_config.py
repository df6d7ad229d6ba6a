"""Settings on the command line: shown with their origins, listed, written down, and result when a crawl obeys them."""

from __future__ import annotations

import csv
import io
import os
import re
import select
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import surveyor
from console import CommandResult
from surveyor.cli.config_commands import TEMPLATES, as_toml
from surveyor.cli.lazy import GROUPS
from surveyor.config import FIELDS, TABLE, Settings, load
from surveyor.errors import UsageError
from surveyor.store.directory import SurveyFolder
from surveyor.store.tabular import unescape_cell
from surveyor.testing import EmbeddedWeb, WebSettings, running

pytestmark = pytest.mark.usefixtures("nowhere")

SECRET = "hunter2"  # noqa: S105  # that must not be shown


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings.plain(web="small")) as made:
        yield made


def user_file(text: str) -> Path:
    path = Path("config/surveyor/config.toml")
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    return path.absolute()


# --- config show ---


def test_every_setting_is_shown_with_its_origin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = user_file('contact = "me@example.org"\ndelay = 7\n')
    Path("surveyor.toml").write_text(
        f'delay = 2\nproxy = "http://u:{SECRET}@p:1/"\nca_file = "a.pem"\n[auth]\n"a.org" = "u:{SECRET}"\n'
        f'[headers]\nCookie = "{SECRET}"\n'
    )
    monkeypatch.setenv("SURVEYOR_DAMPING", "0.5")
    untrusted = CommandResult(capsys, "config", "show")
    assert untrusted.code == 2
    assert untrusted.err.startswith("surveyor.toml: proxy applies only in a trusted file")
    assert CommandResult(capsys, "config", "trust").code == 0
    done = CommandResult(capsys, "config", "show", "--depth", "3", "--json")
    result = done.json()
    rows = {row["setting"]: (row["value"], row["origin"]) for row in result["settings"]}
    assert list(rows) == list(FIELDS)
    assert rows["delay"] == (2.0, "surveyor.toml")
    assert rows["contact"] == ("me@example.org", str(path))
    assert rows["damping"] == (0.5, "SURVEYOR_DAMPING")
    assert rows["depth"] == (3, "--depth")
    assert rows["timeout"] == (60.0, "default")
    assert rows["auth"] == ({"a.org": "***"}, "surveyor.toml")
    assert SECRET not in done.out
    assert result["user_agent"] == f"surveyor/{surveyor.__version__} (me@example.org)"
    assert [(Path(file["path"]).name, file["state"]) for file in result["files"]] == [
        ("config.toml", "read"), ("pyproject.toml", "missing"), ("surveyor.toml", "read"),
    ]  # fmt: skip
    text = CommandResult(capsys, "config", "show")
    assert SECRET not in text.out + text.err
    assert re.search(r"^  delay +2 +surveyor.toml$", text.out, re.MULTILINE)
    assert "User-Agent  surveyor/" in text.out
    table = list(csv.reader(io.StringIO(CommandResult(capsys, "config", "show", "--csv").out)))
    assert table[0] == ["setting", "value", "origin"]
    assert ["delay", "2", "surveyor.toml"] in table


@pytest.mark.parametrize(
    ("own", "project", "state"),
    [
        (None, "[tool.surveyor]\ndelay = 3\n", "read"),
        ("", "[tool.surveyor]\ndelay = 3\n", "not read: surveyor.toml exists"),
        (None, "[project]\nname = 'x'\n", "no [tool.surveyor] table"),
    ],
)
def test_files_looked_at(own: str | None, project: str, state: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text(project)
    if own is not None:
        Path("surveyor.toml").write_text(own)
    result = CommandResult(capsys, "config", "show", "--json").json()
    assert result["files"][1]["state"] == state
    delay = next(row for row in result["settings"] if row["setting"] == "delay")
    assert delay["origin"] == ("pyproject.toml" if state == "read" else "default")


def test_without_a_contact_there_is_no_user_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert "User-Agent  none: a contact is required" in CommandResult(capsys, "config", "show").out
    assert CommandResult(capsys, "config", "show", "--json").json()["user_agent"] == ""


def test_settings_of_a_survey(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    Path("surveyor.toml").write_text("delay = 0\n")
    assert CommandResult(capsys, "config", "trust").code == 0
    assert CommandResult(capsys, "crawl", *words(web, "--until", "pages=3", "-q")).code == 0
    Path("surveyor.toml").write_text("delay = 9\n")  # what holds here is not what holds there
    result = CommandResult(capsys, "config", "show", "a.survey", "--json").json()
    rows = {row["setting"]: (row["value"], row["origin"]) for row in result["settings"]}
    assert rows["delay"] == (0.0, "surveyor.toml")
    assert rows["until"] == ("pages=3", "--until")
    assert rows["seeds"][0] == web.seeds[:1]
    assert "proxy" not in rows
    assert "(me@example.org)" in result["user_agent"]
    assert "are not stored in a survey" in CommandResult(capsys, "config", "show", "a.survey").err


@pytest.mark.parametrize(
    ("given", "code", "sentence"),
    [
        (["show", "nowhere.survey"], 4, "nowhere.survey does not exist"),
        (["show", "a.survey", "--delay", "2"], 2, "--delay cannot be combined with a survey."),
        (["show", "--delya", "2"], 2, "No option --delya. Did you mean --delay?"),
        (["shwo"], 2, "There is no command shwo. Did you mean show?"),
        (["list", "all"], 2, "unexpected extra argument"),
    ],
)
def test_what_goes_wrong_is_said(
    given: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = CommandResult(capsys, "config", *given)
    assert (done.code, done.out) == (code, "")
    assert sentence in done.err
    assert "hint:" in done.err


@pytest.mark.parametrize(("name", "meant"), [("dealy", "delay"), ("pause", "backoff")])
def test_a_typo_in_a_file_is_said_here_too(name: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("surveyor.toml").write_text(f"{name} = 2\n")
    done = CommandResult(capsys, "config", "show")
    assert (done.code, done.err) == (2, f"surveyor.toml: unknown setting '{name}'\n  hint: did you mean {meant}?\n")


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_a_group_alone_shows_its_commands(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = CommandResult(capsys, name)
    assert done.code == 0
    assert all(f"  {command}" in done.out for command in GROUPS[name])


# --- config list ---


def test_all_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["setting"]: row for row in CommandResult(capsys, "config", "list", "--json").json()["settings"]}
    assert list(rows) == list(FIELDS)
    assert rows["max_bytes"] == {
        "setting": "max_bytes", "kind": "a whole number, or text such as '10MB'", "default": "10000000",
        "flag": "--max-bytes", "variable": "SURVEYOR_MAX_BYTES", "example": "10MB",
        "meaning": "Maximum bytes of one page.",
    }  # fmt: skip
    assert (rows["auth"]["flag"], rows["auth"]["variable"]) == ("", "")
    table = list(csv.DictReader(io.StringIO(CommandResult(capsys, "config", "list", "--csv").out)))
    assert [{name: unescape_cell(cell) for name, cell in row.items()} for row in table] == list(rows.values())
    text = CommandResult(capsys, "config", "list").out
    for row in rows.values():
        assert all(value in text for value in row.values())


# --- init ---


def test_a_crawl_from_the_file_alone(
    web: EmbeddedWeb, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--seed", web.seeds[0], "--contact", "me@example.org", "--until", "pages=4", "--delay", "0"]
    done = CommandResult(capsys, "init", *given)
    assert (done.code, done.out) == (0, "surveyor.toml written\n")
    assert "surveyor crawl" in done.err
    monkeypatch.setenv("SURVEYOR_PROXY", f"http://u:{SECRET}@127.0.0.1:{web.port}")
    crawl = CommandResult(capsys, "crawl")
    assert crawl.code == 0, crawl.err
    assert f"set by surveyor.toml: seeds {web.seeds[0]}, scope host, delay 0\n" in crawl.err
    assert f"set by SURVEYOR_PROXY: proxy http://***@127.0.0.1:{web.port}\n" in crawl.err
    assert SECRET not in crawl.err
    survey = next(Path().glob("*.survey"))
    with SurveyFolder.open(survey, write=False) as folder:
        assert list(folder.manifest.seeds) == web.seeds[:1]
        assert folder.manifest.origins["until"] == "surveyor.toml"
        assert "seeds" not in folder.manifest.settings
    again = CommandResult(capsys, "crawl", "--until", "pages=6")
    assert "Resuming from 4 pages" in again.err


def test_seeds_that_are_named_take_the_place_of_those_in_the_file(
    web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("surveyor.toml").write_text('seeds = ["https://elsewhere.example/"]\n')
    done = CommandResult(capsys, "crawl", *words(web, "--until", "pages=2", "--delay", "0"))
    assert done.code == 0, done.err
    assert "elsewhere" not in done.err
    assert "set by " not in done.err  # all else was asked for
    with SurveyFolder.open(Path("a.survey"), write=False) as folder:
        assert list(folder.manifest.seeds) == web.seeds[:1]


def test_stored_settings_are_reported_on_resume(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    first = words(web, "--until", "pages=2", "--delay", "0", "--strategy", "breadth")
    assert "set by " not in CommandResult(capsys, "crawl", *first).err
    again = CommandResult(capsys, "crawl", *words(web, "--until", "pages=3"))
    assert "set by the survey: strategy breadth, delay 0\n" in again.err


def test_seeds_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    Path("surveyor.toml").write_text('seeds = ["ftp://a.org/"]\ncontact = "me@example.org"\n')
    assert CommandResult(capsys, "config", "trust").code == 0
    assert "'ftp://a.org/' is not an http or https URL" in CommandResult(capsys, "crawl").err
    Path("surveyor.toml").write_text("seeds = []\n")
    done = CommandResult(capsys, "crawl")
    assert (done.code, done.err.startswith("there are no seeds\n")) == (2, True)
    assert "`surveyor init`" in done.err


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_the_file_is_what_config_reads(template: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--template", template, "--seed", "docs.example.org", "--seed", "https://b.org/x", "--delay", "0"]
    result = CommandResult(capsys, "init", *given, "--contact", "me@example.org", "--json").json()
    settings, origins = load()
    usual = TEMPLATES[template][1]
    assert settings == Settings(
        seeds=("https://docs.example.org/", "https://b.org/x"), scope=usual["scope"], until=usual["until"], delay=0,
        contact="me@example.org",
    )  # fmt: skip
    written = {name for name, origin in origins.items() if origin == "surveyor.toml"}
    assert written == set(result["settings"]) == {"seeds", "scope", "until", "delay", "contact"}
    lines = Path("surveyor.toml").read_text("utf-8").splitlines()
    for name, field in FIELDS.items():  # each has its help line above it, also where it is a comment
        place = next(at for at, line in enumerate(lines) if re.match(rf"(# )?(\[{name}\]|{name} = )", line))
        assert lines[place - 1] == f"# {field.metadata['help']}"
        assert lines[place].startswith("# ") == (name not in written)


def test_each_comment_can_be_made_a_setting() -> None:
    lines = as_toml({}).splitlines()
    for name, field in FIELDS.items():
        place = next(at for at, line in enumerate(lines) if re.match(rf"# (\[{name}\]|{name} = )", line))
        kept = lines[place : place + 1 + (field.metadata["kind"] is TABLE)]
        table: dict[str, Any] = tomllib.loads("\n".join(line.removeprefix("# ") for line in kept))
        assert list(table) == [name]
        value = getattr(Settings(**table), name)
        assert value == field.default or field.default in (None, "", ()) or field.metadata["kind"] is TABLE


def test_a_file_that_is_there_stays(capsys: pytest.CaptureFixture[str]) -> None:
    Path("surveyor.toml").write_text("delay = 5\n")
    done = CommandResult(capsys, "init", "--seed", "a.org")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("surveyor.toml already exists\n  hint: --replace")
    assert Path("surveyor.toml").read_text() == "delay = 5\n"
    Path("pyproject.toml").write_text("[tool.surveyor]\ndelay = 3\n")
    replaced = CommandResult(capsys, "init", "--seed", "a.org", "--replace")
    assert replaced.code == 0
    assert "! [tool.surveyor] in pyproject.toml is ignored from now on" in replaced.err
    assert "It has no contact yet" in replaced.err
    assert load()[0].seeds == ("https://a.org/",)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--seed", "ftp://a.org"], "'ftp://a.org' is not an http or https URL"),
        (["--seed", "foo"], "'foo' is not an http or https URL"),
        (["--contact", "me"], "contact must be an e-mail address or a URL"),
        (["--until", "coverage=1"], "100 % cannot be certified"),
        (["--delay", "-1"], "delay must be at least 0"),
        (["--template", "sites"], "'sites' is not one of"),
    ],
)
def test_wrong_answers_are_refused_before_anything_is_written(
    given: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = CommandResult(capsys, "init", *given)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert not Path("surveyor.toml").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_it_asks_and_asks_again() -> None:
    done = answered(
        ["init", "--until", "pages=9"],
        ("what to crawl", "topic"), ("pages to start", "ftp://x"), ("is not an http or https URL", "a.org b.org/c"),
        ("contact", "me@example.org"), ("seconds between", "fast"), ("is not a number", "2"),
    )  # fmt: skip
    assert "surveyor.toml written" in done
    assert load()[0] == Settings(
        seeds=("https://a.org/", "https://b.org/c"), contact="me@example.org", scope="any", until="pages=9", delay=2
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_with_a_contact_of_the_user_and_yes_nothing_is_asked() -> None:
    user_file('contact = "me@example.org"\n')
    assert "?" not in (done := answered(["init", "--yes", "--seed", "a.org"]))
    assert "names no" not in done
    assert load()[1]["contact"] != "surveyor.toml"


def answered(given: Sequence[str], *turns: tuple[str, str]) -> str:
    """Run a command on a terminal of its own, give each answer once its question is there, and return what it said."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "surveyor", *given]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as child:
        os.close(theirs)
        done, seen, waiting = "", 0, list(turns)
        while True:
            if waiting and (at := done.find(waiting[0][0], seen)) >= 0 and done.rstrip(" ").endswith(":"):
                seen = at + len(waiting[0][0])
                os.write(ours, f"{waiting.pop(0)[1]}\n".encode())
            assert select.select([ours], [], [], 60)[0], f"it waits: {done}"
            try:
                more = os.read(ours, 4096)
            except OSError:  # it has ended
                break
            if not more:
                break
            done += more.decode()
    os.close(ours)
    assert child.returncode == 0, done
    return done


def words(web: EmbeddedWeb, *more: str) -> list[str]:
    """Return the options of a crawl of this web."""
    proxy = ["--proxy", f"http://127.0.0.1:{web.port}"]
    return [web.seeds[0], *proxy, "--contact", "me@example.org", "--out", "a.survey", *more]


def test_files_must_be_writable(capsys: pytest.CaptureFixture[str]) -> None:
    Path("surveyor.toml").mkdir()
    assert CommandResult(capsys, "init", "--replace").code == 2
    with pytest.raises(UsageError):
        load()
