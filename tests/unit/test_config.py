"""Settings: each place replaces the one before, and each value knows where it came from."""

from __future__ import annotations

import os
import pickle
import sys
import tomllib
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from setting_sources import PLACES, USER, Places, as_text
from surveyor import stopping
from surveyor.config import FIELDS, OTHERS, TABLE, Settings, load, user_file
from surveyor.errors import UsageError
from surveyor.store.manifest import toml
from surveyor.web import scope

#: For each setting a value of each place, so that the winning place can be identified.
VALUES: dict[str, list[Any]] = {
    "until": [f"pages={count}" for count in range(1, 6)],
    "strategy": ["breadth", "opic", "cho", "random", "tracking"],
    "topic": [f"word:{name}" for name in "abcde"],
    "scope": ["host", "domain", "prefix", "any", "host"],
    "depth": [0, 1, 2, 3, 4],
    "budget": ["star", "power:0.8", "flat:5", "7", "none"],
    "budget_file": [f"{name}.csv" for name in "abcde"],
    "damping": [0.1, 0.2, 0.3, 0.4, 0.5],
    "delay": [0.0, 2.0, 3.0, 4.0, 5.0],
    **{name: [0.0, 2.0, 3.0, 4.0, 5.0] for name in ("domain_delay", "max_delay", "max_wait")},
    "backoff": [0.0, 2.0, 3.0, 4.0, 5.0],
    "concurrency": [1, 2, 3, 4, 5],
    "max_fruitless": [0, 2, 3, 4, 5],
    "patient": [True, False, True, False, True],
    "keep_busy": [True, False, True, False, True],
    "contact": [f"{name}@example.org" for name in "abcde"],
    "archive": [False, True, False, True, False],
    "main_text": [True, False, True, False, True],
    "follow_nofollow": [True, False, True, False, True],
    "graph": [True, False, True, False, True],
    "timeout": [1.0, 2.0, 3.0, 4.0, 5.0],
    "max_bytes": [1, 2, 3, 4, 5],
    "proxy": [f"http://proxy{count}:1/" for count in range(5)],
    "ca_file": [f"{name}.pem" for name in "abcde"],
    "rng": [0, 1, 2, 3, 4],
    **{
        name: [("a*",), ("b*", "c*"), (), ("d",), ("e", "f")]
        for name in ("seeds", "include", "exclude", "allow", "avoid")
    },
    "check": [{"thin-page": value} for value in ("off", "error", "warning", "note")] + [{"orphan": "off"}],
    **{name: [{"host": f"{name}:{count}"} for count in range(5)] for name in ("headers", "auth", "permission")},
}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setattr(sys, "platform", "linux")
    return Places(tmp_path)


def test_defaults(places: Places) -> None:
    settings, origins = places.load()
    assert settings == Settings()
    assert set(origins) == set(FIELDS)
    assert set(origins.values()) == {"default"}
    assert (settings.until, settings.strategy, settings.delay, settings.concurrency) == (
        "coverage=0.95", "rankmass", 1.0, 32,
    )  # fmt: skip
    assert stopping.parse_rule(settings.until) == stopping.Coverage(0.95)
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
        before, known = dict(values), dict(origins)
        values |= given
        word = {"user": USER, "variable": "SURVEYOR_{}", "flag": "--{}"}.get(place, place)
        origins |= {
            name: word.format(name.upper() if place == "variable" else name.replace("_", "-")) for name in names
        }
        if before.get("avoid") and "avoid" in given:  # places add to each other
            values["avoid"] = tuple(dict.fromkeys((*before["avoid"], *given["avoid"])))
            origins["avoid"] = f"{known['avoid']}, {origins['avoid']}"
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
    with pytest.raises(UsageError, match="scope must be host, domain, prefix or any, got 'hots'"):
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
    assert stopping.parse_rule(settings.until) == stopping.Coverage(0.9) | stopping.Pages(10)
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
