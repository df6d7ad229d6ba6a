from __future__ import annotations

import os
import pickle
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from surveyor import scope, stopping
from surveyor.config import FIELDS, OTHERS, TABLE, Settings, load, save_contact, user_file
from surveyor.errors import UsageError
from surveyor.store.survey import toml

USER = "~/.config/surveyor/config.toml"
PLACES = ("user", "surveyor.toml", "pyproject.toml", "variable", "flag")

#: For each setting a value of each place, so that what won can be told from what lost.
VALUES: dict[str, list[Any]] = {
    "until": [f"pages={count}" for count in range(1, 6)],
    "strategy": ["breadth", "opic", "cho", "random", "tracking"],
    "scope": ["host", "domain", "prefix", "any", "host"],
    "depth": [0, 1, 2, 3, 4],
    "damping": [0.1, 0.2, 0.3, 0.4, 0.5],
    "delay": [0.0, 2.0, 3.0, 4.0, 5.0],
    "pause": [0.0, 2.0, 3.0, 4.0, 5.0],
    "concurrency": [1, 2, 3, 4, 5],
    "contact": [f"{name}@example.org" for name in "abcde"],
    "archive": [False, True, False, True, False],
    "follow_nofollow": [True, False, True, False, True],
    "timeout": [1.0, 2.0, 3.0, 4.0, 5.0],
    "max_bytes": [1, 2, 3, 4, 5],
    "proxy": [f"http://proxy{count}:1/" for count in range(5)],
    "ca_file": [f"{name}.pem" for name in "abcde"],
    "rng": [0, 1, 2, 3, 4],
    **{name: [("a*",), ("b*", "c*"), (), ("d",), ("e", "f")] for name in ("include", "exclude", "allow")},
    **{name: [{"host": f"{name}:{count}"} for count in range(5)] for name in ("headers", "auth", "permission")},
}


class Places:
    """A home, a working folder, variables and flags."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.project.mkdir(parents=True)
        self.environ = {"HOME": str(self.home), "USERPROFILE": str(self.home)}

    @property
    def user(self) -> Path:
        return user_file(self.environ)

    def write(self, place: str, text: str) -> None:
        path = self.user if place == "user" else self.project / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def load(self, flags: Mapping[str, object] | None = None) -> tuple[Settings, dict[str, str]]:
        return load(flags, folder=self.project, environ=self.environ)

    def problem(self, flags: Mapping[str, object] | None = None) -> tuple[str, str]:
        with pytest.raises(UsageError) as caught:
            self.load(flags)
        return caught.value.problem, caught.value.hint


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setattr(sys, "platform", "linux")
    return Places(tmp_path)


def as_text(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def test_defaults(places: Places) -> None:
    settings, origins = places.load()
    assert settings == Settings()
    assert set(origins) == set(FIELDS)
    assert set(origins.values()) == {"default"}
    assert (settings.until, settings.strategy, settings.delay, settings.concurrency) == (
        "coverage=0.95", "rankmass", 1.0, 32,
    )  # fmt: skip
    assert stopping.parse(settings.until) == stopping.Coverage(0.95)
    assert isinstance(hash(settings), int)
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301
    with pytest.raises(FrozenInstanceError):
        settings.delay = 2.0  # type: ignore[misc]


@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.dictionaries(st.sampled_from(PLACES), st.sets(st.sampled_from(sorted(FIELDS)))))
def test_each_place_replaces_the_one_before(
    chosen: dict[str, set[str]], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    here = Places(tmp_path_factory.mktemp("places"))
    chosen = {place: chosen[place] for place in PLACES if place in chosen}
    if "variable" in chosen:  # which hold no tables, and nothing if they are empty
        chosen["variable"] = {name for name in chosen["variable"] if as_text(VALUES[name][3]) and not is_table(name)}
    values: dict[str, Any] = {}
    origins = dict.fromkeys(FIELDS, "default")
    flags: dict[str, Any] = {}
    for place, names in chosen.items():
        given = {name: VALUES[name][PLACES.index(place)] for name in names}
        if place == "user" or place == "surveyor.toml":
            here.write(place, toml(given))
        elif place == "pyproject.toml":
            here.write(place, toml({"project": {"name": "x"}, "tool": {"other": {"a": 1}, "surveyor": given}}))
            if "surveyor.toml" in chosen:
                continue  # it hides this one
        elif place == "variable":
            here.environ |= {f"SURVEYOR_{name.upper()}": as_text(value) for name, value in given.items()}
        else:
            flags = given
        values |= given
        word = {"user": USER, "variable": "SURVEYOR_{}", "flag": "--{}"}.get(place, place)
        origins |= {
            name: word.format(name.upper() if place == "variable" else name.replace("_", "-")) for name in names
        }
    settings, found = here.load(flags)
    assert settings == Settings(**values)
    assert found == origins


def is_table(name: str) -> bool:
    return FIELDS[name].metadata["kind"] is TABLE


def test_values_for_the_tests_are_complete_and_differ_from_place_to_place() -> None:
    assert set(VALUES) == set(FIELDS)
    for row in VALUES.values():
        assert all(one != other for one, other in pairwise(row))


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_every_setting_has_one_line_of_help_and_an_example_that_is_accepted(name: str) -> None:
    about, example = FIELDS[name].metadata["help"], FIELDS[name].metadata["example"]
    assert about.endswith(".")
    assert "\n" not in about
    assert 10 < len(about) < 90
    if is_table(name):
        table: Any = tomllib.loads(example)
        Settings(**{name: table})
    else:
        load(folder=Path("nowhere"), environ={"XDG_CONFIG_HOME": "/nowhere", f"SURVEYOR_{name.upper()}": example})


def test_scopes_are_those_there_are() -> None:
    words = [*get_args(scope.Kind), ""]
    assert [Settings(scope=word).scope for word in words] == words
    with pytest.raises(UsageError, match="scope must be host, domain, prefix or any, not 'hots'"):
        Settings(scope="hots")


def test_pyproject_is_read_only_where_there_is_no_file_of_our_own(places: Places) -> None:
    places.write("pyproject.toml", "[tool.surveyor]\ndelay = 3\n[tool.surveyor.permission]\n'a.org' = 'mine'")
    settings, origins = places.load()
    assert (settings.delay, settings.permission) == (3.0, {"a.org": "mine"})
    assert origins["permission"] == "pyproject.toml"
    places.write("surveyor.toml", "")
    assert places.load()[0] == Settings()


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'", "[tool.other]\na = 1\n# surveyor", "broken ="])
def test_a_pyproject_that_does_not_speak_of_us_does_not_matter(text: str, places: Places) -> None:
    places.write("pyproject.toml", text)
    assert places.load()[0] == Settings()


def test_files_of_parent_folders_are_not_read(places: Places) -> None:
    (places.project.parent / "surveyor.toml").write_text("delay = 3")
    assert places.load()[0].delay == 1


def test_without_arguments_the_process_itself_is_asked(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    places.write("surveyor.toml", "depth = 4")
    monkeypatch.chdir(places.project)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(places.home))
    monkeypatch.setenv("SURVEYOR_DELAY", "2")
    settings, origins = load()
    assert (settings.depth, settings.delay) == (4, 2.0)
    assert (origins["depth"], origins["delay"]) == ("surveyor.toml", "SURVEYOR_DELAY")
    assert user_file() == places.home / "surveyor" / "config.toml"


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("include", "a*, b*", ("a*", "b*")),
        ("include", " a*\n\tb* ,", ("a*", "b*")),
        ("archive", "No", False),
        ("archive", "FALSE", False),
        ("archive", "0", False),
        ("follow_nofollow", "yes", True),
        ("follow_nofollow", " true ", True),
        ("follow_nofollow", "1", True),
        ("max_bytes", "1.5 GB", 1_500_000_000),
        ("max_bytes", "2_000k", 2_000_000),
        ("max_bytes", "20000", 20_000),
        ("until", "coverage=0.9, pages=5k", "coverage=0.9, pages=5k"),
        ("delay", "1e1", 10.0),
        ("delay", "  ", 1.0),
        ("depth", "", None),
    ],
)
def test_variables_are_read(variable: str, text: str, value: object, places: Places) -> None:
    places.environ[f"SURVEYOR_{variable.upper()}"] = text
    settings, origins = places.load()
    assert getattr(settings, variable) == value
    assert origins[variable] == (f"SURVEYOR_{variable.upper()}" if text.strip() else "default")


def test_variables_that_are_no_settings_are_left_alone(places: Places) -> None:
    places.environ |= {**dict.fromkeys(OTHERS, "x"), "_SURVEYOR_COMPLETE": "x", "SURVEYORS": "x", "DELAY": "7"}
    assert places.load()[0] == Settings()


def test_values_are_brought_into_form() -> None:
    table = {"a.org": "mine"}
    settings = Settings(
        until=["coverage=0.9", "pages=10"],  # type: ignore[arg-type]
        include="a*",  # type: ignore[arg-type]
        exclude=["b*"],  # type: ignore[arg-type]
        max_bytes="10MB",  # type: ignore[arg-type]
        delay=2,
        ca_file=Path("~/company.pem"),  # type: ignore[arg-type]
        permission=table,
    )
    assert settings.until == "coverage=0.9, pages=10"
    assert stopping.parse(settings.until) == stopping.Coverage(0.9) | stopping.Pages(10)
    assert (settings.include, settings.exclude, settings.max_bytes) == (("a*",), ("b*",), 10_000_000)
    assert isinstance(settings.delay, float)
    assert settings.ca_file == os.path.expanduser("~/company.pem")  # noqa: PTH111
    table["b.org"] = ""
    assert settings.permission == {"a.org": "mine"}  # a copy
    assert replace(settings, depth=3).depth == 3


def test_a_none_that_is_given_counts(places: Places) -> None:
    places.write("surveyor.toml", "depth = 3")
    settings, origins = places.load({"depth": None})
    assert (settings.depth, origins["depth"]) == (None, "--depth")


def test_hosts_need_no_quotes(places: Places) -> None:
    places.write("surveyor.toml", "[permission]\nexample.org = 'mine'\nwww.example.org = 'too'\n'b.org' = 'his'")
    assert places.load()[0].permission == {"example.org": "mine", "www.example.org": "too", "b.org": "his"}


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("untill = 'pages=5'", "no setting 'untill'", "did you mean until?"),
        ("Delay = 2", "no setting 'Delay'", "did you mean delay?"),
        ("follow-nofollow = true", "no setting 'follow-nofollow'", "did you mean follow_nofollow?"),
        ("delay = 'fast'", "delay must be a number of seconds, not 'fast'", "such as 1.5"),
        ("delay = true", "delay must be a number of seconds, not True", "such as 1.5"),
        ("delay = nan", "delay must be a number of seconds, not nan", "such as 1.5"),
        (f"delay = 1{400 * '0'}", f"delay must be a number of seconds, not 1{400 * '0'}", "such as 1.5"),
        ("delay = -1", "delay must be at least 0, not -1", "such as 1.5"),
        ("damping = 1", "damping must be above 0 and below 1, not 1", "such as 0.85"),
        ("damping = 'x'", "damping must be a number, not 'x'", "such as 0.85"),
        ("timeout = 0", "timeout must be above 0, not 0", "such as 60"),
        ("concurrency = 0", "concurrency must be above 0, not 0", "such as 32"),
        ("concurrency = 1.5", "concurrency must be a whole number, not 1.5", "such as 32"),
        ("depth = -1", "depth must be at least 0, not -1", "such as 5"),
        ("depth = 'deep'", "depth must be a whole number, not 'deep'", "such as 5"),
        ("rng = -7", "rng must be at least 0, not -7", "such as 7"),
        ("max_bytes = 'big'", "max_bytes must be a whole number, or text such as '10MB', not 'big'", "such as 10MB"),
        ("max_bytes = '0MB'", "max_bytes must be above 0, not '0MB'", "such as 10MB"),
        ("archive = 'no'", "archive must be true or false, not 'no'", "such as true"),
        ("until = 5", "until must be text, or a list of text, not 5", "such as pages=5000"),
        ("until = ''", "until must be text, or a list of text, not ''", "such as pages=5000"),
        ("strategy = ['opic']", "strategy must be text, not ['opic']", "such as rankmass"),
        ("include = [3]", "include must be a list of text, not [3]", "such as example.org/docs/*"),
        ("exclude = ['']", "exclude must be a list of text, not ['']", "such as */print/*"),
        ("ca_file = 3", "ca_file must be the name of a file, not 3", "such as company.pem"),
        ("scope = 'web'", "scope must be host, domain, prefix or any, not 'web'", "such as host"),
        ("contact = 'me'", "contact must be an e-mail address or a URL, not 'me'", "such as me@example.org"),
        ("proxy = 'u:secret@p'", "proxy must be a URL of http or https", "such as http://proxy.example.org:3128"),
        ("headers = 'Cookie: secret'", "headers must be a table of text", 'such as Accept-Language = "de"'),
        (
            "[headers]\nCookie = '***'",
            "headers of Cookie must be a value, not the *** that stands for one",
            'such as Accept-Language = "de"',
        ),
        ("auth = 'secret'", "auth must be a table of text", 'such as "example.org" = "user:password"'),
        (
            "[auth]\n'a.org' = 'secret'",
            "auth of a.org must be user:password",
            'such as "example.org" = "user:password"',
        ),
        (
            "[permission]\n'a.org' = ' '",
            "permission of a.org must be a reason, not ' '",
            'such as "example.org" = "my own site"',
        ),
        (
            "[permission]\na.org = 3",
            "permission must be a table of text, not {'a': {'org': 3}}",
            'such as "example.org" = "my own site"',
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
        ("SURVEYOR_DELAI", "2", "no setting 'SURVEYOR_DELAI'", "did you mean SURVEYOR_DELAY?"),
        ("SURVEYOR_delay", "2", "no setting 'SURVEYOR_delay'", "did you mean SURVEYOR_DELAY?"),
        ("SURVEYOR_DELAI", "", "no setting 'SURVEYOR_DELAI'", "did you mean SURVEYOR_DELAY?"),
        ("SURVEYOR_DELAY", "fast", "SURVEYOR_DELAY must be a number of seconds, not 'fast'", "such as 1.5"),
        ("SURVEYOR_DELAY", "inf", "SURVEYOR_DELAY must be a number of seconds, not 'inf'", "such as 1.5"),
        ("SURVEYOR_DELAY", "-1", "SURVEYOR_DELAY must be at least 0, not '-1'", "such as 1.5"),
        ("SURVEYOR_DEPTH", "2.5", "SURVEYOR_DEPTH must be a whole number, not '2.5'", "such as 5"),
        ("SURVEYOR_ARCHIVE", "maybe", "SURVEYOR_ARCHIVE must be true or false, not 'maybe'", "such as true"),
        ("SURVEYOR_PROXY", "secret", "SURVEYOR_PROXY must be a URL of http or https",
         "such as http://proxy.example.org:3128"),
        ("SURVEYOR_AUTH", "secret", "SURVEYOR_AUTH: a variable cannot hold a table", "write [auth] in surveyor.toml"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_variable_is_said(variable: str, text: str, problem: str, hint: str, places: Places) -> None:
    places.environ[variable] = text
    assert places.problem() == (problem, hint)


def test_a_name_that_is_like_no_other_is_answered_with_all_there_are(places: Places) -> None:
    places.write("surveyor.toml", "xyzzy = 1")
    problem, hint = places.problem()
    assert problem == "surveyor.toml: no setting 'xyzzy'"
    assert hint == f"there are {', '.join(FIELDS)}"


def test_what_is_wrong_in_a_flag_is_said(places: Places) -> None:
    assert places.problem({"untill": "x"}) == ("no setting '--untill'", "did you mean --until?")
    assert places.problem({"max_bytes": "x"})[0].startswith("--max-bytes must be a whole number")
    assert places.problem({"delay": None})[0] == "--delay must be a number of seconds, not None"


def test_what_is_wrong_in_an_argument_is_said() -> None:
    with pytest.raises(UsageError, match=r"^delay must be a number of seconds, not 'fast'\n  hint: such as 1\.5$"):
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
    assert places.problem() == ("pyproject.toml: tool.surveyor must be a table, not 3", "write [tool.surveyor]")
    places.write("pyproject.toml", "tool = 'surveyor'")
    assert places.load()[0] == Settings()


def test_files_that_cannot_be_read(places: Places) -> None:
    path = places.project / "surveyor.toml"
    path.mkdir()
    problem, hint = places.problem()
    assert problem.startswith("surveyor.toml cannot be read: ")
    assert hint == "it must be UTF-8 text that you may read"
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
    with pytest.raises(UsageError, match="contact is not on a line of its own") as caught:
        save_contact("ana@uni.example", places.environ)
    assert caught.value.hint == 'write contact = "ana@uni.example" there yourself'
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
    with pytest.raises(UsageError, match="there is no home folder to keep the contact in"):
        save_contact("ana@uni.example", {})


def test_a_file_is_whole_when_writing_it_fails(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    places.write("user", "delay = 2\n")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="cannot be written: No space left on device"):
        save_contact("ana@uni.example", places.environ)
    assert [(one.name, one.read_text()) for one in places.user.parent.iterdir()] == [("config.toml", "delay = 2\n")]
