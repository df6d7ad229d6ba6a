"""The settings of a crawl as command-line options, and the prompt for a missing contact."""

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

#: Settings that affect how pages are fetched.
FETCHING = frozenset(FIELDS) - {"check", "damping", "rng", "seeds", "strategy", "topic", "until"}
NO_OPTIONS = frozenset({"headers", "auth", "permission", "check", "seeds"})  # tables; seeds are arguments
REPORTED = (
    "seeds",
    "strategy",
    "topic",
    "scope",
    "delay",
    "allow",
    "proxy",
    "permission",
    "budget",
    "budget_file",
)  # if not by flag


def _option(name: str, field: Field[Any]) -> Callable[[Any], Any]:
    """Return the option of a setting; its default is None, so that files and variables apply."""
    flag, kind, default = "--" + name.replace("_", "-"), field.metadata["kind"], field.default
    about = field.metadata["help"]
    if kind is config.SWITCH:
        return click.option(
            f"{flag}/--no-{flag[2:]}", name, default=None, help=f"{about}  [{'yes' if default else 'no'}]"
        )
    shown = f"  [{default:.12g}]" if isinstance(default, int | float) else f"  [{default}]" if default else ""
    types = {config.WHOLE: int, config.PERHAPS: int, config.NUMBER: float, config.SECONDS: float}
    many = kind in (config.LIST, config.RULES)
    values = options.SETTING_VALUES.get(name, ())
    kind_of_value: Any = options.Suggested(*values) if values else types.get(kind, str)
    if values and not all(value.partition(":")[0] in about for value in values):
        about = f"{about} {'Values' if name == 'strategy' else 'Examples'}: {', '.join(values)}."
    return click.option(
        flag,
        name,
        type=kind_of_value,
        default=None,
        multiple=many,
        help=about + shown,
        metavar={int: "N", float: "X"}.get(types.get(kind, str), "RULE" if kind is config.RULES else "TEXT"),
    )


def some_options(*names: str) -> Callable[[Any], Any]:
    """Return the options of some settings."""
    return options.stacked(*(_option(name, FIELDS[name]) for name in names))


all_options = some_options(*(name for name in FIELDS if name not in NO_OPTIONS))


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None and value != ()}


def without_flags(settings: Settings, origins: Mapping[str, str]) -> list[str]:
    """Return the reported settings that no flag set, by origin, so that a file or survey cannot set them unnoticed."""
    from surveyor.report.survey_tables import format_setting

    values, defaults = settings.shown(), config.Settings().shown()
    found: dict[str, list[str]] = {}
    for name in REPORTED:
        origin = origins.get(name, "default")
        if origin.startswith("--") or (origin == "default" and values[name] == defaults[name]):
            continue
        place = {"default": "the survey", "seed": "the seed URL"}.get(origin, origin)  # a survey keeps its settings
        found.setdefault(place, []).append(f"{name} {format_setting(values[name]) or 'none'}")
    return [f"set by {place}: {', '.join(parts)}" for place, parts in found.items()]


def report_settings(output: Output, settings: Settings, origins: Mapping[str, str]) -> None:
    """Print settings that were not given as flags, robots.txt exceptions, and a warning about a short delay."""
    output.info(*without_flags(settings, origins))
    for host, reason in settings.permission.items():
        output.info(f"robots.txt of {host} is not applied: {reason}")
    if settings.delay < 0.1 and not settings.allow and not settings.proxy:
        output.warn(f"a delay of {settings.delay:g} s puts a high load on hosts that are not your own")


def with_contact(output: Output, settings: Settings) -> Settings:
    """Prompt for a missing contact on a terminal, and save it."""
    if settings.contact or output.quiet or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return settings
    output.info("A contact is sent with every request, so that sites can reach you.")
    contact: str = click.prompt("contact (e-mail or URL)", value_proc=_contact, err=True)
    settings = replace(settings, contact=contact)
    path = config.save_contact(contact)
    home = Path.home()
    output.info(f"saved in {Path('~') / path.relative_to(home) if path.is_relative_to(home) else path}\n")
    return settings


def _contact(text: str) -> str:
    """Return a valid contact; raise click.UsageError so that the prompt is repeated."""
    from surveyor.errors import UsageError

    try:
        return config.Settings(contact=text.strip()).contact
    except UsageError as error:
        raise click.UsageError(f"{error.problem}; {error.hint}") from None
