"""Types as a user of the library sees them."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("user_program.py")
WRONG = """import surveyor as sv
sv.pagerank(42)
sv.pagerank([(1, 2)], tolerance="small")
sv.as_graph([], weights=3.5)
"""


def check(path: Path, tmp_path: Path) -> str:
    """Run mypy as a user does, with the settings that are strictest."""
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--config-file=", str(path)]
    done = subprocess.run(
        [*command, f"--cache-dir={tmp_path}"], capture_output=True, text=True, timeout=400, check=False, cwd=tmp_path
    )
    return done.stdout


def test_a_user_program_runs() -> None:
    assert runpy.run_path(str(PROGRAM))["ranking"].error <= 1e-9


@pytest.mark.slow  # the first check of all imported libraries takes half a minute
def test_a_user_program_has_the_stated_types(tmp_path: Path) -> None:
    assert check(PROGRAM, tmp_path).startswith("Success")


@pytest.mark.slow
def test_wrong_arguments_are_type_errors(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    assert [int(line) for line in re.findall(r":(\d+): error:", check(path, tmp_path))] == [2, 3, 4]
