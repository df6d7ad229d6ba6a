"""Commands to be suggested: as they were typed, or with the options that matter for the next one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from surveyor.config import FIELDS

if TYPE_CHECKING:
    from collections.abc import Collection

PIPE = re.compile(r"/(dev|proc/self)/(fd/|stdin$)|/proc/\d+/fd/")
#: Options of `options.ranking`, which change what is ranked.
RANKING = ("damping", "trusted", "teleport", "crawled_only", "dangling", "tolerance", "max_sweeps")
#: Settings of a crawl, which change how pages are fetched.
FETCHING = frozenset(FIELDS) - {"damping", "rng", "seeds", "strategy", "until"}


def typed(*more: str, without: Collection[str] = ()) -> list[str]:
    """Return the command line as it was typed, and more words; without some of its flags."""
    words = click.get_current_context().obj or ()
    return ["surveyor", *(_lasting(word) for word in words if word not in without), *more]


def _lasting(word: str) -> str:
    """Return a word of a command that may be typed later: a pipe such as `<(command)` is gone by then."""
    name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{name}{equals}FILE" if PIPE.match(value) else word


def options_given(names: Collection[str]) -> list[str]:
    """Return those of the named options that stand on the command line, as words."""
    context = click.get_current_context()
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        if not isinstance(option, click.Option) or name not in names or not given:
            continue
        flag, value = max(option.opts, key=len), context.params[name]
        if option.is_flag:
            words += [flag] if value else option.secondary_opts[:1]
            continue
        for one in value if option.multiple else [value]:
            words += [flag, *(_lasting(str(part)) for part in (one if option.nargs > 1 else [one]))]
    return words
