"""Settings that are wrong, secret or saved: what is said, shown and kept."""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import surveyor as sv
from setting_sources import USER, Places
from surveyor.config import FIELDS, Settings, save_contact, user_file
from surveyor.crawler.preview import preview
from surveyor.crawler.seeds import read_seeds
from surveyor.errors import UsageError
from surveyor.store.manifest import toml


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setattr(sys, "platform", "linux")
    return Places(tmp_path)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("foo", "the options are "),
        ("dellay", "did you mean delay?"),
        ("Delay", "did you mean delay?"),
        ("pause", "did you mean backoff?"),
    ],
)
def test_an_unknown_option_of_a_crawl_from_python_is_named(name: str, hint: str) -> None:
    given: dict[str, Any] = {name: 3}
    with pytest.raises(UsageError) as caught:
        sv.crawl("http://127.0.0.1:9/", **given)
    assert caught.value.problem == f"unknown option {name!r}"
    assert caught.value.hint.startswith(hint)
    with pytest.raises(UsageError, match=f"unknown option {name!r}"):
        preview("http://127.0.0.1:9/", **given)
    with pytest.raises(UsageError, match=f"unknown option {name!r}"):
        read_seeds("seeds.txt", **given)


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("untill = 'pages=5'", "unknown setting 'untill'", "did you mean until?"),
        ("Delay = 2", "unknown setting 'Delay'", "did you mean delay?"),
        ("follow-nofollow = true", "unknown setting 'follow-nofollow'", "did you mean follow_nofollow?"),
        ("delay = 'fast'", "delay must be a number of seconds, got 'fast'", "for example 1.5"),
        ("delay = true", "delay must be a number of seconds, got True", "for example 1.5"),
        ("delay = nan", "delay must be a number of seconds, got nan", "for example 1.5"),
        (f"delay = 1{400 * '0'}", f"delay must be a number of seconds, got 1{400 * '0'}", "for example 1.5"),
        ("delay = -1", "delay must be at least 0, got -1", "for example 1.5"),
        ("damping = 1", "damping must be above 0 and at most 0.999, got 1", "for example 0.85"),
        ("damping = 0.99999999", "damping must be above 0 and at most 0.999, got 0.99999999", "for example 0.85"),
        ("damping = 'x'", "damping must be a number, got 'x'", "for example 0.85"),
        ("timeout = 0", "timeout must be above 0, got 0", "for example 60"),
        ("concurrency = 0", "concurrency must be above 0, got 0", "for example 32"),
        ("concurrency = 1.5", "concurrency must be a whole number, got 1.5", "for example 32"),
        ("depth = -1", "depth must be at least 0, got -1", "for example 5"),
        ("depth = 'deep'", "depth must be a whole number, got 'deep'", "for example 5"),
        ("rng = -7", "rng must be from 0 to 2**64 - 1, got -7", "for example 7"),
        (
            "max_bytes = 'big'",
            "max_bytes must be a whole number, or text such as '10MB', got 'big'",
            "for example 10MB",
        ),
        ("max_bytes = '0MB'", "max_bytes must be above 0, got '0MB'", "for example 10MB"),
        ("archive = 'no'", "archive must be true or false, got 'no'", "for example true"),
        ("until = 5", "until must be text, or a list of text, got 5", "for example pages=5000"),
        ("until = ''", "until must be text, or a list of text, got ''", "for example pages=5000"),
        ("strategy = ['opic']", "strategy must be text, got ['opic']", "for example rankmass"),
        ("include = [3]", "include must be a list of text, got [3]", "for example example.org/docs/*"),
        ("exclude = ['']", "exclude must be a list of text, got ['']", "for example */print/*"),
        ("ca_file = 3", "ca_file must be the name of a file, got 3", "for example company.pem"),
        ("scope = 'web'", "scope must be host, domain, prefix or any, got 'web'", "for example host"),
        ("contact = 'me'", "contact must be an e-mail address or a URL, got 'me'", "for example me@example.org"),
        ("proxy = 'u:secret@p'", "proxy must be a URL of http or https", "for example http://proxy.example.org:3128"),
        ("headers = 'Cookie: secret'", "headers must be a table of text", 'for example Accept-Language = "de"'),
        (
            "[headers]\nCookie = '***'",
            "headers of Cookie must be a value, not the *** that replaces it in output",
            'for example Accept-Language = "de"',
        ),
        ("auth = 'secret'", "auth must be a table of text", 'for example "example.org" = "user:password"'),
        (
            "[auth]\n'a.org' = 'secret'",
            "auth of a.org must be user:password",
            'for example "example.org" = "user:password"',
        ),
        (
            "[permission]\n'a.org' = ' '",
            "permission of a.org must be a reason, got ' '",
            'for example "example.org" = "my own site"',
        ),
        (
            "[permission]\na.org = 3",
            "permission must be a table of text, got {'a': {'org': 3}}",
            'for example "example.org" = "my own site"',
        ),
    ],
)
@pytest.mark.parametrize("place", ["user", "surveyor.toml", "pyproject.toml"])
def test_what_is_wrong_in_a_file_is_said_in_one_sentence(
    place: str, text: str, problem: str, hint: str, places: Places
) -> None:
    if place == "pyproject.toml":
        text = f"[tool.surveyor.{text[1:]}" if text.startswith("[") else f"[tool.surveyor]\n{text}"
    places.write(place, text)
    name = USER if place == "user" else place
    assert places.problem({"delay": 3}) == (f"{name}: {problem}", hint)  # even what a flag replaces is refused


@pytest.mark.parametrize(
    ("variable", "text", "problem", "hint"),
    [
        ("SURVEYOR_DELAI", "2", "unknown setting 'SURVEYOR_DELAI'", "did you mean SURVEYOR_DELAY?"),
        ("SURVEYOR_PAUSE", "2", "unknown setting 'SURVEYOR_PAUSE'", "did you mean SURVEYOR_BACKOFF?"),
        ("SURVEYOR_delay", "2", "unknown setting 'SURVEYOR_delay'", "did you mean SURVEYOR_DELAY?"),
        ("SURVEYOR_DELAI", "", "unknown setting 'SURVEYOR_DELAI'", "did you mean SURVEYOR_DELAY?"),
        ("SURVEYOR_DELAY", "fast", "SURVEYOR_DELAY must be a number of seconds, got 'fast'", "for example 1.5"),
        ("SURVEYOR_DELAY", "inf", "SURVEYOR_DELAY must be a number of seconds, got 'inf'", "for example 1.5"),
        ("SURVEYOR_DELAY", "-1", "SURVEYOR_DELAY must be at least 0, got '-1'", "for example 1.5"),
        ("SURVEYOR_DEPTH", "2.5", "SURVEYOR_DEPTH must be a whole number, got '2.5'", "for example 5"),
        ("SURVEYOR_ARCHIVE", "maybe", "SURVEYOR_ARCHIVE must be true or false, got 'maybe'", "for example true"),
        ("SURVEYOR_PROXY", "secret", "SURVEYOR_PROXY must be a URL of http or https",
         "for example http://proxy.example.org:3128"),
        ("SURVEYOR_AUTH", "secret", "SURVEYOR_AUTH: a variable cannot hold a table", "write [auth] in surveyor.toml"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_variable_is_said(variable: str, text: str, problem: str, hint: str, places: Places) -> None:
    places.environ[variable] = text
    assert places.problem() == (problem, hint)


def test_a_name_that_is_like_no_other_is_answered_with_all_there_are(places: Places) -> None:
    places.write("surveyor.toml", "xyzzy = 1")
    problem, hint = places.problem()
    assert problem == "surveyor.toml: unknown setting 'xyzzy'"
    assert hint == f"known settings: {', '.join(FIELDS)}"


def test_what_is_wrong_in_a_flag_is_said(places: Places) -> None:
    assert places.problem({"untill": "x"}) == ("unknown setting '--untill'", "did you mean --until?")
    assert places.problem({"max_bytes": "x"})[0].startswith("--max-bytes must be a whole number")
    assert places.problem({"delay": None})[0] == "--delay must be a number of seconds, got None"


def test_what_is_wrong_in_an_argument_is_said() -> None:
    with pytest.raises(UsageError, match=r"^delay must be a number of seconds, got 'fast'\n  hint: for example 1\.5$"):
        Settings(delay="fast")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^headers must be a table of text"):
        Settings(headers={1: "a"})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=r"^contact must be"):
        Settings(contact="me@example.org\r\nX: y")


@pytest.mark.parametrize(
    "contact", ["", "ana@uni.example", "a+b@c", "https://example.org", "http://[::1]/", "https://example.org/@ana?x=1"]
)
def test_contacts(contact: str) -> None:
    assert Settings(contact=contact).contact == contact


@pytest.mark.parametrize("contact", ["ana", "@", "a b@c", "ana@bücher.example", "https:///x", "a@b\x00", "<a@b>"])
def test_no_contacts(contact: str) -> None:
    with pytest.raises(UsageError, match="contact must be an e-mail address or a URL"):
        Settings(contact=contact)


@pytest.mark.parametrize("place", ["user", "surveyor.toml", "pyproject.toml"])
def test_a_file_that_is_not_toml(place: str, places: Places) -> None:
    places.write(place, "# surveyor\n[headers]\nx = fast\n")
    problem, hint = places.problem()
    assert problem == f"{USER if place == 'user' else place} is not TOML: Invalid value (at line 3, column 5)"
    assert hint == 'text needs quotes: strategy = "opic"'


def test_a_file_that_nests_too_deep_is_not_toml_either(places: Places) -> None:
    places.write("surveyor.toml", "a = " + 50_000 * "[")
    assert places.problem()[0].startswith("surveyor.toml is not TOML: ")


def test_a_table_of_tools_that_is_none(places: Places) -> None:
    places.write("pyproject.toml", "tool.surveyor = 3")
    assert places.problem() == ("pyproject.toml: tool.surveyor must be a table, got 3", "write [tool.surveyor]")
    places.write("pyproject.toml", "tool = 'surveyor'")
    assert places.load()[0] == Settings()


def test_files_that_cannot_be_read(places: Places) -> None:
    path = places.project / "surveyor.toml"
    path.mkdir()
    problem, hint = places.problem()
    assert problem.startswith("surveyor.toml cannot be read: ")
    assert hint == "it must be readable UTF-8 text"
    path.rmdir()
    path.write_bytes(b"contact = '\xff'")
    assert places.problem()[0].startswith("surveyor.toml cannot be read: 'utf-8' codec can't decode byte 0xff")


def test_a_mark_at_the_beginning_as_windows_writes_it_does_no_harm(places: Places) -> None:
    (places.project / "surveyor.toml").write_bytes(b"\xef\xbb\xbfdelay = 2\r\ndepth = 3\r\n")
    settings, _ = places.load()
    assert (settings.delay, settings.depth) == (2.0, 3)


def test_secrets_are_not_shown() -> None:
    settings = Settings(
        delay=2, proxy="http://ana:secret@proxy:1/", auth={"a.org": "ana:secret"}, headers={"Cookie": "secret"}
    )
    assert repr(settings) == (
        "Settings(delay=2.0, proxy='http://***@proxy:1/', headers={'Cookie': '***'}, auth={'a.org': '***'})"
    )
    assert "secret" not in str(settings.shown())
    assert settings.auth == {"a.org": "ana:secret"}
    assert list(settings.shown()) == list(FIELDS)
    assert repr(Settings()) == "Settings()"


def test_what_is_shown_can_be_kept_in_a_survey() -> None:
    settings = Settings(include=("a*",), permission={"a.org": "mine"}, auth={"b.org": "x:y"})
    kept = tomllib.loads(toml(settings.shown()))
    assert kept.pop("auth") == {"b.org": "***"}
    assert Settings(**kept) == replace(settings, auth={})


@pytest.mark.parametrize(
    ("platform", "environ", "path"),
    [
        ("linux", {"HOME": "/h"}, "/h/.config/surveyor/config.toml"),
        ("linux", {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/surveyor/config.toml"),
        ("linux", {"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config/surveyor/config.toml"),
        ("linux", {"HOME": "/h", "XDG_CONFIG_HOME": ""}, "/h/.config/surveyor/config.toml"),
        ("linux", {"HOME": "/h", "APPDATA": "/a"}, "/h/.config/surveyor/config.toml"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/surveyor/config.toml"),
        ("darwin", {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/surveyor/config.toml"),
        ("win32", {"USERPROFILE": "/h", "HOME": "/other"}, "/h/AppData/Roaming/surveyor/config.toml"),
        ("win32", {"USERPROFILE": "/h", "APPDATA": "/a"}, "/a/surveyor/config.toml"),
        ("win32", {"USERPROFILE": "/h", "APPDATA": "/a", "XDG_CONFIG_HOME": "/x"}, "/x/surveyor/config.toml"),
    ],
)
def test_where_the_file_of_the_user_is(
    platform: str, environ: dict[str, str], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert user_file(environ) == Path(path)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_origin_of_what_the_user_set_is_his_file(
    platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    here = Places(tmp_path)
    here.write("user", "delay = 3")
    short = {"linux": ".config", "darwin": "Library/Application Support", "win32": "AppData/Roaming"}[platform]
    assert here.load()[1]["delay"] == f"~/{short}/surveyor/config.toml"
    here.environ["XDG_CONFIG_HOME"] = str(tmp_path / "elsewhere")
    here.write("user", "delay = 4")
    assert here.load()[1]["delay"] == str(tmp_path / "elsewhere" / "surveyor" / "config.toml")


def test_a_contact_is_saved_where_there_was_no_file(places: Places) -> None:
    path = save_contact("ana@uni.example", places.environ)
    assert path == places.user
    assert path.read_text() == 'contact = "ana@uni.example"\n'
    settings, origins = places.load()
    assert (settings.contact, origins["contact"]) == ("ana@uni.example", USER)
    assert [one.name for one in path.parent.iterdir()] == ["config.toml"]
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "contact = NEW\n"),
        ("# mine\ndelay = 2 # slow\n", "contact = NEW\n# mine\ndelay = 2 # slow\n"),
        ("delay = 2", "contact = NEW\ndelay = 2"),
        ("[headers]\ncontact = 'x'\n", "contact = NEW\n[headers]\ncontact = 'x'\n"),
        ("# c\ncontact = 'a@b'   # me\ndelay = 2\n", "# c\ncontact = NEW   # me\ndelay = 2\n"),
        ('  "contact"="a\\"b@c"\n', '  "contact"=NEW\n'),
        ("# contact = 'x'\ncontact = 'a@b'\n", "# contact = 'x'\ncontact = NEW\n"),
        ("delay = 2\r\n[auth]\r\n", "contact = NEW\r\ndelay = 2\r\n[auth]\r\n"),
        ("contact = 'a@b'\r\ndelay = 2\r\n", "contact = NEW\r\ndelay = 2\r\n"),
        # what only looks like the line stays as it is
        ("x = '''\ncontact = 'no'\n'''\ncontact = 'a@b'\n", "x = '''\ncontact = 'no'\n'''\ncontact = NEW\n"),
        ("contact = 'a@b'\n[headers]\ncontact = 'no'", "contact = NEW\n[headers]\ncontact = 'no'"),
        ("contact = 'ü'\n# ä\n", "contact = NEW\n# ä\n"),
    ],
)
def test_a_contact_is_saved_and_other_lines_are_kept(before: str, after: str, places: Places) -> None:
    places.user.parent.mkdir(parents=True)
    places.user.write_bytes(before.encode())
    for _ in range(2):  # again changes nothing
        save_contact("ana@uni.example", places.environ)
        assert places.user.read_bytes().decode() == after.replace("NEW", '"ana@uni.example"')


def test_a_link_to_the_file_stays_one(places: Places, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.toml"
    kept.write_text("delay = 2\n")
    places.user.parent.mkdir(parents=True)
    places.user.symlink_to(kept)
    save_contact("ana@uni.example", places.environ)
    assert places.user.is_symlink()
    assert kept.read_text() == 'contact = "ana@uni.example"\ndelay = 2\n'


@pytest.mark.parametrize("before", ["contact = '''\na@b'''\n", "contact = 3\n"])
def test_a_contact_in_a_form_of_its_own_is_left_alone(before: str, places: Places) -> None:
    places.write("user", before)
    with pytest.raises(UsageError, match="contact is not on a separate line") as caught:
        save_contact("ana@uni.example", places.environ)
    assert caught.value.hint == 'set contact = "ana@uni.example" in an editor'
    assert places.user.read_text() == before


def test_contacts_that_cannot_be_saved(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="contact must be an e-mail address"):
        save_contact("ana", places.environ)
    places.write("user", "broken")
    with pytest.raises(UsageError, match=f"^{USER} is not TOML"):
        save_contact("ana@uni.example", places.environ)
    assert places.user.read_text() == "broken"
    places.home.rename(places.home.with_name("away"))
    places.home.write_text("a file")
    with pytest.raises(UsageError, match=f"^{USER} cannot be written: .*\n  hint: set SURVEYOR_CONTACT instead"):
        save_contact("ana@uni.example", places.environ)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(UsageError, match="the contact cannot be saved: there is no home folder"):
        save_contact("ana@uni.example", {})


def test_a_file_is_whole_when_writing_it_fails(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    places.write("user", "delay = 2\n")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="cannot be written: No space left on device"):
        save_contact("ana@uni.example", places.environ)
    assert [(one.name, one.read_text()) for one in places.user.parent.iterdir()] == [("config.toml", "delay = 2\n")]
