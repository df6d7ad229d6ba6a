"""Fixtures that several tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from console import LINKS
from surveyor import Graph

settings.register_profile("no clock", deadline=None)  # a busy machine is no failure
settings.load_profile("no clock")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    path = tmp_path / "web.graph"
    Graph.from_edges(LINKS).save(path)
    return str(path)
