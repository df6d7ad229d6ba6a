"""The settings of a crawl as options, one for each; and the one question that is asked."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor import config
from surveyor.cli import options
from surveyor.config import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from dataclasses import Field

    from surveyor.cli.output import Output
    from surveyor.config import Settings

NO_OPTIONS = frozenset({"headers", "auth", "permission", "seeds"})  # tables; and seeds are what a crawl is given
TOLD = (
    "seeds",
    "strategy",
    "scope",
    "delay",
    "allow",
    "proxy",
    "permission",
    "budget",
    "budget_file",
)  # what a crawl must not do unnoticed


def _option(name: str, field: Field[Any]) -> Callable[[Any], Any]:
    """Make the option of a setting; one that is not given is None, so that files and variables count."""
    flag, kind, default = "--" + name.replace("_", "-"), field.metadata["kind"], field.default
    about = field.metadata["help"]
    if kind is config.SWITCH:
        return click.option(
            f"{flag}/--no-{flag[2:]}", name, default=None, help=f"{about}  [{'yes' if default else 'no'}]"
        )
    shown = f"  [{default:g}]" if isinstance(default, int | float) else f"  [{default}]" if default else ""
    types = {config.WHOLE: int, config.PERHAPS: int, config.NUMBER: float, config.SECONDS: float}
    many = kind in (config.LIST, config.RULES)
    return click.option(
        flag, name, type=types.get(kind, str), default=None, multiple=many, help=about + shown,
        metavar={int: "N", float: "X"}.get(types.get(kind, str), "RULE" if kind is config.RULES else "TEXT"),
    )  # fmt: skip


def some_options(*names: str) -> Callable[[Any], Any]:
    """Make the options of some settings."""
    return options.stacked(*(_option(name, FIELDS[name]) for name in names))


all_options = some_options(*(name for name in FIELDS if name not in NO_OPTIONS))


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None and value != ()}


def not_asked_for(settings: Settings, origins: Mapping[str, str]) -> list[str]:
    """Say what holds though no flag says so, by where it came from, so that nothing is obeyed in silence."""
    from surveyor.report.survey_tables import format_setting

    values, usual = settings.shown(), config.Settings().shown()
    told: dict[str, list[str]] = {}
    for name in TOLD:
        origin = origins.get(name, "default")
        if origin.startswith("--") or (origin == "default" and values[name] == usual[name]):
            continue
        place = "the survey" if origin == "default" else origin  # one that is gone on with keeps its settings
        told.setdefault(place, []).append(f"{name} {format_setting(values[name]) or 'none'}")
    return [f"from {place}: {', '.join(parts)}" for place, parts in told.items()]


def say_unusual(output: Output, settings: Settings, origins: Mapping[str, str]) -> None:
    """Say what a crawl does that nobody may have thought of."""
    for line in not_asked_for(settings, origins):
        output.say(line)
    for host, reason in settings.permission.items():
        output.say(f"reading all of {host}, whatever its robots.txt says: {reason}")
    if settings.delay < 0.1 and not settings.allow and not settings.proxy:
        output.warn(f"a delay of {settings.delay:g} s is a burden to hosts that are not your own")


def with_contact(output: Output, settings: Settings) -> Settings:
    """Ask for the contact, once, if somebody is there to answer."""
    if settings.contact or output.quiet or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return settings
    output.say("Sites should be able to reach whoever crawls them.")
    contact: str = click.prompt("contact (e-mail or URL)", value_proc=_contact, err=True)
    settings = replace(settings, contact=contact)
    path = config.save_contact(contact)
    home = Path.home()
    output.say(f"saved in {Path('~') / path.relative_to(home) if path.is_relative_to(home) else path}\n")
    return settings


def _contact(text: str) -> str:
    """Take an answer, or say what is wrong with it, so that it is asked for again."""
    from surveyor.errors import UsageError

    try:
        return config.Settings(contact=text.strip()).contact
    except UsageError as error:
        raise click.UsageError(f"{error.problem}; {error.hint}") from None
