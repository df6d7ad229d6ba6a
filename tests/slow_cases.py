"""Parameters of long families of tests: representatives run in `make test`, all others in `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def pairs(first: Iterable[Any], second: Sequence[Any], of: int = 0) -> list[Any]:
    """Return all pairs, of which one in `of` is fast, by default each value of `first` once; all values are in one."""
    of = of or len(second)
    return [
        pytest.param(one, two, marks=() if (row + column) % of == 0 else pytest.mark.slow)
        for row, one in enumerate(first)
        for column, two in enumerate(second)
    ]


def one_in(of: int, values: Iterable[Any]) -> list[Any]:
    """Return all values, of which the first and each `of`-th after it are fast."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow if place % of else ())
        for place, value in enumerate(values)
    ]
