"""Suggested commands: the current command line with additions, or some of its options for another command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from surveyor.config import FIELDS

if TYPE_CHECKING:
    from collections.abc import Collection

PIPE = re.compile(r"/(dev|proc/self)/(fd/|stdin$)|/proc/\d+/fd/")
#: Options of `options.ranking`.
RANKING = ("damping", "trusted", "teleport", "crawled_only", "dangling", "tolerance", "max_sweeps")
#: Settings that affect how pages are fetched.
FETCHING = frozenset(FIELDS) - {"damping", "rng", "seeds", "strategy", "until"}


def current_command(*more: str, without: Collection[str] = ()) -> list[str]:
    """Return the current command line with more words, and without some of its flags."""
    words = click.get_current_context().obj or ()
    return ["surveyor", *(_reusable(word) for word in words if word not in without), *more]


def _reusable(word: str) -> str:
    """Return an argument in a form that works later; a pipe such as `<(command)` does not exist any more then."""
    name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{name}{equals}FILE" if PIPE.match(value) else word


def given_options(names: Collection[str]) -> list[str]:
    """Return those of the named options that are set on the command line, as words."""
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
            words += [flag, *(_reusable(str(part)) for part in (one if option.nargs > 1 else [one]))]
    return words
