"""Options of all commands: one word means one thing, help lists accepted values, completion offers them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import click
import pytest

from surveyor.cli.lazy import COMMANDS, GROUPS, surveyor
from surveyor.cli.options import SETTING_VALUES, STRATEGIES, Suggested
from surveyor.config import Settings
from surveyor.crawler.strategies import NAMES
from surveyor.stopping import parse_rule

#: Text that the help of an option has in every command that has the option.
MEANINGS = {
    "--damping": "Probability of following a link",
    "--out": "(?i)folder|file|write",
    "--plot": "(?i)plot|draw|figure|svg",
    "--replace": "(?i)replace|overwrite",
    "--report": "(?i)report",
    "--rng": "(?i)seed",
    "--suffixes": "Public Suffix List",
    "--threads": "(?i)threads",
    "--tolerance": "error",
    "--top": "(?i)list|print|write",
    "--until": "(?i)stop",
}
#: Shared by all commands except `completion`.
EVERYWHERE = {"--json", "--quiet", "--verbose", "--log-json", "--no-color", "--debug"}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with their names."""
    context = click.Context(surveyor)
    for name in COMMANDS:
        command = surveyor.get_command(context, name)
        assert command is not None
        if name not in GROUPS:
            yield name, command
        for inner in GROUPS.get(name, ()):
            assert isinstance(command, click.Group)
            subcommand = command.get_command(context, inner)
            assert subcommand is not None
            yield f"{name} {inner}", subcommand


ALL = dict(commands())
OPTIONS = [
    (name, option) for name, command in ALL.items() for option in command.params if isinstance(option, click.Option)
]


def kind(option: click.Option) -> str:
    """Return the kind of value: a flag, a number, a path or text."""
    if option.is_flag or option.count:
        return "flag"
    if isinstance(option.type, click.Path | click.File):
        return "path"
    number = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType) or option.type.name in (
        "integer",
        "amount",
        "share",
    )
    return "number" if number else "text"


def accepted(option: click.Parameter) -> list[str]:
    """Return the accepted or suggested values of an option, if they are listed."""
    values: Any = getattr(option.type, "choices", None) or getattr(option.type, "values", None) or ()
    return [str(value) for value in values]


def test_an_option_has_one_kind_of_value_in_all_commands() -> None:
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for _, option in OPTIONS:
        for flag in (*option.opts, *option.secondary_opts):
            kinds[flag].add(kind(option))
    different = {flag: found for flag, found in kinds.items() if len(found) > 1}
    assert different.pop("--seeds") == {"text", "path"}  # a file, or in a crawl also a URL
    assert different.pop("--budget") == {"text", "number"}  # a number of pages, or with reputations also a formula
    assert different.pop("--since") == {"text", "path"}  # a time, or in a check an earlier survey
    assert different.pop("--explain") == {"text", "flag"}  # a page, or in a search all results
    assert different == {}


@pytest.mark.parametrize("flag", MEANINGS)
def test_an_option_has_one_meaning_in_all_commands(flag: str) -> None:
    found = {name: option.help or "" for name, option in OPTIONS if flag in option.opts}
    assert len(found) > 1
    for name, text in found.items():
        assert re.search(MEANINGS[flag], text), (name, text)


def test_short_options_mean_the_same_everywhere() -> None:
    long: defaultdict[str, set[str]] = defaultdict(set)
    for _, option in OPTIONS:
        for flag in option.opts:
            if not flag.startswith("--"):
                long[flag].add(max(option.opts, key=len))
    assert {flag: names for flag, names in long.items() if len(names) > 1} == {}
    assert long["-n"] == {"--top"}


@pytest.mark.parametrize("name", [name for name in ALL if name != "completion"])
def test_every_command_has_the_shared_options(name: str) -> None:
    assert {flag for option in ALL[name].params for flag in option.opts} >= EVERYWHERE


@pytest.mark.parametrize("name", ALL)
def test_help_lists_the_accepted_values(name: str) -> None:
    command = ALL[name]
    shown = command.get_help(command.make_context(name, [], resilient_parsing=True))
    text = " ".join(re.sub(r"-\n\s*", "-", shown).split())  # lines may be broken after a hyphen, and are indented
    for option in command.params:
        values = accepted(option)
        for value in values:
            assert re.search(rf"(?<![\w]){re.escape(value)}(?![\w])", text), (option.name, value)


@pytest.mark.parametrize("name", ALL)
def test_completion_offers_the_accepted_values(name: str) -> None:
    command = ALL[name]
    context = command.make_context(name, [], resilient_parsing=True)
    for option in command.params:
        values = accepted(option)
        if values:
            offered = [item.value for item in option.shell_complete(context, "")]
            assert offered == values, option.name
            assert values[0] in [item.value for item in option.shell_complete(context, values[0][:1])]


@pytest.mark.parametrize(
    ("name", "option", "typed", "expected"),
    [
        ("domains", "--score", "tse,q", ["tse,qvs"]),
        ("domains", "--score", "su", ["supp"]),
        ("domains", "--budget", "s", ["star"]),
        ("community", "--until", "st", ["stable=0.001"]),
        ("sample", "--until", "w", ["width=3%"]),
        ("simulate", "--until", "p", ["pages=5000"]),
    ],
)
def test_completion_of_rules_and_lists(name: str, option: str, typed: str, expected: list[str]) -> None:
    context = ALL[name].make_context(name, [], resilient_parsing=True)
    (found,) = (one for one in ALL[name].params if option in one.opts)
    assert [item.value for item in found.shell_complete(context, typed)] == expected


@pytest.mark.parametrize("name", ALL)
def test_help_does_not_break_values_at_a_hyphen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    help_text = ALL[name].get_help(ALL[name].make_context(name, [], resilient_parsing=True))
    broken = re.findall(r"(\S+-)\n\s*(\w+)", help_text)
    assert {first + rest for first, rest in broken} <= {"self-links"}


def test_suggested_values_are_valid() -> None:
    assert tuple(NAMES) == STRATEGIES
    for name, values in SETTING_VALUES.items():
        for value in values:
            settings: dict[str, Any] = {name: value}
            Settings(**settings)
    for rule in SETTING_VALUES["until"]:
        parse_rule(rule)
    assert not Suggested("host").shell_complete(click.Context(surveyor), click.Option(["--x"]), "x")
