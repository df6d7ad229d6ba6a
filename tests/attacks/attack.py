"""The decorator that makes a test a row of the table of attacks: what is sent, how many inputs, what must hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])

AREAS = (
    "pages",
    "links and URLs",
    "headers and bodies",
    "connections",
    "redirects",
    "robots.txt",
    "sitemaps and lists",
    "traps and limits",
    "addresses",
    "hashing",
    "surveys from elsewhere",
    "files from elsewhere",
    "journal and archives",
    "output",
    "surveyor serve",
    "surveyor mcp",
)


@dataclass(frozen=True)
class Attack:
    """One row: a test proves that `must_hold` holds for each of `inputs` inputs."""

    name: str
    area: str
    inputs: int
    must_hold: str
    test: str


@dataclass(frozen=True)
class Mark:
    """What the decorator records on the test; the row is made from it."""

    name: str
    area: str
    must_hold: str
    inputs: int | None


def attack(name: str, *, area: str, must_hold: str, inputs: int | None = None) -> Callable[[Test], Test]:
    """Register the test below as an attack; put it above all other decorators.

    Without `inputs` they are counted: the cases of `pytest.mark.parametrize`, times the examples of Hypothesis.
    With it, give the constant that the test itself loops over, never a number written twice.
    """
    if area not in AREAS:
        raise ValueError(f"area {area!r} is not one of {', '.join(AREAS)}")

    def register(test: Test) -> Test:
        if inputs is not None and inputs < 1:
            raise ValueError(f"{test.__name__}: inputs is {inputs}, at least 1 is needed")
        vars(test)["attack"] = Mark(name, area, must_hold, inputs)
        return test

    return register


def inputs_of(test: Callable[..., Any]) -> int:
    """Return how many inputs a test sends: as recorded, times its parametrised cases and generated examples."""
    mark: Mark = vars(test)["attack"]
    cases = [
        len(list(one.args[1])) for one in vars(test).get("pytestmark", []) if one.name == "parametrize" and one.args
    ]
    examples = getattr(getattr(test, "_hypothesis_internal_use_settings", None), "max_examples", None)
    if examples is None and hasattr(test, "hypothesis"):
        from hypothesis import settings

        examples = settings().max_examples
    return (mark.inputs or 1) * math.prod(cases) * (examples or 1)
