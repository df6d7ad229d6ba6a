"""How long work tells where it stands.

The library calls a `Progress` with a stage, how much is done and how much there is (0 when unknown);
the command line draws it. `silent` is the default everywhere.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called now and then by long work."""

    def __call__(self, stage: str, done: float, total: float, unit: str) -> None:
        """Say that `done` of `total` units of this stage are finished; total 0 means unknown."""


def silent(stage: str, done: float, total: float, unit: str) -> None:
    """Show nothing."""
