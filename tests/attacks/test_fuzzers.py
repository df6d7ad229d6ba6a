"""Every fuzz target for a few inputs, and proof that the fuzzer reports what goes wrong."""

from __future__ import annotations

import subprocess
import sys
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from attack import attack

from surveyor.errors import InputError

FOLDER = Path(__file__).parent / "fuzz"
INPUTS = 150  # for each target; `make fuzz` tries more
PLANTED = """
import os
from surveyor.errors import InputError
NAME = "planted"
def seeds(): return [b"seed"]
def run(data):
    if len(data) > 60:
        {action}
    raise InputError("no", hint="none")
"""


def module_at(path: Path) -> ModuleType:
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


runner: Any = module_at(FOLDER / "run.py")


@attack(
    "mutated inputs of everything that is parsed, one fuzz target each",
    area="files from elsewhere",
    must_hold="accepted, or rejected in one sentence; nothing else is raised beneath the boundary",
    inputs=INPUTS,
)
@pytest.mark.parametrize("name", list(runner.targets()))
def test_a_target_rejects_changed_inputs_by_our_errors_alone(name: str) -> None:
    found = runner.explore(runner.load(name), INPUTS, "tests")
    assert found.inputs == INPUTS
    assert not found.findings, next(iter(found.findings.values()))


@pytest.mark.parametrize("name", list(runner.targets()))
def test_a_target_begins_with_valid_inputs(name: str) -> None:
    target, found = runner.load(name), runner.Found()
    outcomes = [runner.attempt(target, seed, found) for seed in target.seeds()]
    assert "accepted" in outcomes
    assert not found.findings


def test_an_unexpected_error_is_a_finding_with_its_input() -> None:
    def run(data: bytes) -> None:
        if b"s" in data:
            raise InputError("rejected", hint="none")
        raise KeyError(data)

    found = runner.explore(SimpleNamespace(NAME="planted", seeds=lambda: [b"seed"], run=run), 300, "1")
    (finding,) = found.findings.values()
    assert finding.kind == "KeyError"
    assert b"s" not in finding.data
    assert 0 < found.rejected < 300


@pytest.mark.parametrize(("action", "kind"), [("os.abort()", "exit -6"), ("bytes(1 << 40)", "MemoryError")])
def test_crashes_and_memory_bombs_are_findings(tmp_path: Path, action: str, kind: str) -> None:
    for file in ("run.py", "mutation.py", "scratch.py"):
        (tmp_path / file).write_bytes((FOLDER / file).read_bytes())
    (tmp_path / "target_planted.py").write_text(PLANTED.format(action=action))
    done = subprocess.run(
        [sys.executable, tmp_path / "run.py", "planted", "--inputs", "100", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"  {kind} at " in done.stdout
    assert int(done.stdout.split()[1].replace(",", "")) >= 100  # the search continued after the crash
