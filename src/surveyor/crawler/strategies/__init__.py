"""Crawl ordering strategies: one small module per strategy; the interface is in `strategy.py`.

On the command line a strategy is selected by name, with an optional argument after a colon: `rankmass`, `rankmass:1`,
`windowed:0.05`, `opic:random`. Some take arguments by name: `breadth:coverage=0.9`,
`adaptive:window=fixed,size=4,policy=cycle`, `complement:batch=50,extra=2000`. A user-defined strategy is given as
`module:Class`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from surveyor.crawler.strategies.strategy import Strategy
from surveyor.errors import UsageError

NAMES: dict[str, tuple[str, str, str, str]] = {  # name -> module, class, argument, its type
    "breadth": ("breadth", "Breadth", "levels", "an integer"),
    "rankmass": ("rankmass", "RankMass", "closure", "a number"),
    "windowed": ("windowed", "Windowed", "window", "a number"),
    "sweep": ("windowed", "Sweep", "window", "a number"),
    "printed": ("printed", "PrintedRankMass", "", ""),
    "opic": ("opic", "Opic", "policy", "a string"),
    "adaptive": ("adaptive", "AdaptiveOpic", "window", "a string"),
    "tracking": ("tracking", "Tracking", "", ""),
    "cho": ("cho", "Cho", "", ""),
    "outlinks": ("outlinks", "Outlinks", "", ""),
    "random": ("random", "Random", "", ""),
    "complement": ("rounds", "Complement", "batch", "an integer"),
    "flow": ("rounds", "Flow", "batch", "an integer"),
    "rounds": ("rounds", "Rounds", "select", "a string"),
}
KINDS: dict[str, Callable[[str], Any]] = {"an integer": int, "a number": float, "a string": str}
HELP = "see docs/how-to/own-strategy.md"


def by_name(text: str) -> Strategy:
    """Create a strategy by name.

    >>> by_name("windowed:0.05").window
    0.05
    """
    name, _, argument = text.strip().partition(":")
    if name in NAMES:
        module, made, parameter, kind = NAMES[name]
        make = getattr(import_module(f"surveyor.crawler.strategies.{module}"), made)
        if not argument:
            strategy: Strategy = make()
            return strategy
        if "=" in argument and hasattr(make, "parameters"):
            several: Strategy = make(**_numbers(text, argument, make.parameters))
            return several
        if not parameter:
            raise UsageError(f"strategy {name} takes no argument, got {argument!r}", hint=f"write {name}")
        try:
            value = KINDS[kind](argument)
        except ValueError:
            raise UsageError(
                f"{parameter} of strategy {name} must be {kind}, got {argument!r}", hint=f"or write {name} alone"
            ) from None
        given: Strategy = make(**{parameter: value})
        return given
    if argument.isidentifier():  # module:Class
        return _made(_own(name, argument), text)
    near = get_close_matches(name, NAMES, 1)
    known = f"did you mean {near[0]}?" if near else f"strategies are {', '.join(NAMES)}, or module:Class for your own"
    raise UsageError(f"unknown strategy {text!r}", hint=known)


def split_names(text: str) -> list[str]:
    """Return the names in a list, without duplicates; the commas between arguments of a strategy do not separate names.

    >>> split_names("opic, adaptive:window=fixed,size=4,rankmass:1")
    ['opic', 'adaptive:window=fixed,size=4', 'rankmass:1']
    """
    names: list[str] = []
    for word in filter(None, map(str.strip, text.split(","))):
        if "=" in word and ":" not in word and names and "=" in names[-1]:
            names[-1] += f",{word}"
        else:
            names.append(word)
    return list(dict.fromkeys(names))


def check(strategy: Any, name: str) -> Strategy:
    """Reject objects that are not strategies."""
    if isinstance(strategy, type):
        raise UsageError(f"strategy must be an object, got the class {name}", hint=f"write {name}()")
    if not callable(getattr(strategy, "observe", None)):
        raise UsageError(f"strategy {name} has no method `observe`", hint=HELP)
    made: Strategy = strategy
    return made


def _numbers(text: str, argument: str, parameters: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    """Parse comma-separated name=value pairs."""
    given = {}
    for part in argument.split(","):
        name, _, value = part.strip().partition("=")
        if name not in parameters:
            raise UsageError(
                f"unknown argument {name!r} of strategy {text!r}", hint=f"arguments are {', '.join(parameters)}"
            )
        try:
            given[name] = parameters[name](value)
        except ValueError:
            kind, example = ("an integer", 100) if parameters[name] is int else ("a number", 0.5)
            raise UsageError(
                f"{name} of strategy {text!r} must be {kind}, got {value!r}", hint=f"for example {name}={example}"
            ) from None
    return given


def _made(make: Callable[..., Any], name: str) -> Strategy:
    try:
        strategy = make()
    except Exception as error:
        raise UsageError(f"strategy {name} cannot be created: {type(error).__name__}: {error}", hint=HELP) from error
    return check(strategy, name)


def _own(module: str, name: str) -> Callable[..., Any]:
    """Import a user-defined class, also from the current directory."""
    if os.getcwd() not in sys.path:  # noqa: PTH109
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except Exception as error:  # the user's module may raise anything when imported
        problem = f"strategy {module}:{name} cannot be imported: {type(error).__name__}: {error}"
        raise UsageError(problem, hint="check the spelling, or fix the module") from error
    return found
