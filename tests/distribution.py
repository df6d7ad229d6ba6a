"""How tests are distributed over processes."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

GROUP = re.compile(r"xdist_group\(\"(\w+)\"\)")


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Run a file in one process, so that its fixtures are made once, and all files of a group in one.

    A group is the name in the mark `xdist_group`, found in the text of a file. `LoadGroupScheduling` gets it from a
    suffix that xdist appends to test ids, which pytest 9.2 ignores: without this class there would be a cluster per
    process. Files start in the order in which they are collected.
    """

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group(self.config.rootpath / nodeid.partition("::")[0])


@lru_cache
def group(file: Path) -> str:
    """Return the name of the group of a file, which is its path if it is in none."""
    found = GROUP.search(file.read_text("utf-8"))
    return found[1] if found else str(file)
