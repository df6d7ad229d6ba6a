"""Run the command line in tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from surveyor.cli import run

LINKS = [
    ("home", "news"),
    ("news", "home"),
    ("home", "about"),
    ("about", "home"),
    ("blog", "home"),
    ("blog", "stuck"),
]


class Said:
    """What one run printed and returned."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *args: str) -> None:
        capsys.readouterr()
        self.code = run(args)
        self.out, self.err = capsys.readouterr()

    def json(self) -> Any:
        assert self.out.count("\n") == 1
        told = json.loads(self.out)
        assert told["schema"] == 1
        return told


def process(*args: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **settings.pop("env", {})}
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, env=env, check=False, **settings)
