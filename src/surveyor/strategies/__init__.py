"""In which order to read: one small file per strategy, and the contract they share in `strategy.py`.

A strategy is known on the command line by its name, with one number or word after a colon where it takes one:
`rankmass`, `rankmass:1`, `windowed:0.05`, `opic:random`; or as `module:Class` if it is yours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from surveyor.errors import UsageError
from surveyor.strategies.strategy import Strategy

NAMES: dict[str, tuple[str, str, str]] = {  # name -> module, class, the argument after a colon
    "breadth": ("breadth", "Breadth", "levels"),
    "rankmass": ("rankmass", "RankMass", "closure"),
    "windowed": ("windowed", "Windowed", "window"),
    "opic": ("opic", "Opic", "policy"),
    "adaptive": ("adaptive", "AdaptiveOpic", "window"),
    "tracking": ("tracking", "Tracking", ""),
    "cho": ("cho", "Cho", ""),
    "outlinks": ("outlinks", "Outlinks", ""),
    "random": ("random", "Random", ""),
}


def by_name(text: str) -> Strategy:
    """Make the strategy that a name stands for.

    >>> by_name("windowed:0.05").window
    0.05
    """
    name, _, argument = text.strip().partition(":")
    if name in NAMES:
        module, kind, parameter = NAMES[name]
        make = getattr(import_module(f"surveyor.strategies.{module}"), kind)
        if argument and not parameter:
            raise UsageError(f"the strategy {name} takes nothing after a colon, not {argument!r}", hint=f"write {name}")
        settings = {parameter: _value(argument)} if argument else {}
        return _made(make, settings, text)
    if argument:
        return _made(_own(name, argument), {}, text)
    near = get_close_matches(name, NAMES, 1)
    known = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}, or module:Class for your own"
    raise UsageError(f"no strategy {text!r}", hint=known)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _made(make: Callable[..., Any], settings: dict[str, Any], text: str) -> Strategy:
    try:
        strategy: Strategy = make(**settings)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the strategy {text!r} cannot be made: {error}", hint="see docs/how-to/own-strategy.md"
        ) from error
    if not callable(getattr(strategy, "observe", None)):
        raise UsageError(f"{text} is no strategy: it has no method observe", hint="see docs/how-to/own-strategy.md")
    return strategy


def _own(module: str, name: str) -> Callable[..., Any]:
    """Import a class of the user's, also from the folder he stands in."""
    if os.getcwd() not in sys.path:  # noqa: PTH109
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"the strategy {module}:{name} cannot be imported: {error}", hint="check the spelling"
        ) from error
    return found
