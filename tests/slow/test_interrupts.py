"""Ctrl-C ends the real command line in every state, with the exit code of an interruption and a survey that opens."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from experiments.interrupts import STATES, interrupt, table

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
HANGING = 20.0  # seconds: a generous bound, as times on a busy machine mean little; the experiment measures them


@pytest.mark.parametrize("state", STATES)
@pytest.mark.slow
def test_an_interrupt_ends_the_crawl_and_saves(state: str, tmp_path: Path) -> None:
    result = interrupt(state, tmp_path / "a.survey")
    assert (result.code, result.saved) == (130, True)
    assert result.seconds < HANGING
    assert state in table([result])
