"""Run the command line in tests, in this process or another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from surveyor.cli import run
from surveyor.store.directory import SurveyFolder

LINKS = [
    ("home", "news"),
    ("news", "home"),
    ("home", "about"),
    ("about", "home"),
    ("blog", "home"),
    ("blog", "stuck"),
]

#: Script that runs a command with a limit on file sizes, as on a full disk.
FULL = """
import resource, sys
from surveyor.cli import run
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(run(sys.argv[2:]))
"""
#: Environment without compilation, so that no kernel cache is written to a full disk.
NO_KERNELS = {"NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": "unused", "PYTHONWARNINGS": "ignore"}


class CommandResult:
    """Exit code and output of one command."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *args: str) -> None:
        capsys.readouterr()
        self.code = run(args)
        self.out, err = capsys.readouterr()
        lines = err.splitlines(keepends=True)  # the notice depends on the kernel cache, not on the command
        self.err = "".join(line for line in lines if not line.startswith("compiling kernels"))

    def json(self) -> Any:
        assert self.out.count("\n") == 1
        data = json.loads(self.out)
        assert data["schema"] == 3
        return data


def process(*args: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **settings.pop("env", {})}
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, env=env, check=False, **settings)


def wait_for(survey: Path, visits: int) -> None:
    """Wait until a crawl in another process has committed `visits` visits."""
    for _ in range(6000):  # long, for busy machines
        time.sleep(0.05)
        if (survey / "survey.toml").is_file():
            folder = SurveyFolder.open(survey, write=False)
            position = folder.journal.position
            folder.close()
            if position >= visits:
                return
    raise AssertionError("the crawl makes no progress")
